"""Forms of HybridNet's operators in ONNX, by family; each file registers its own in the table (_export_table.py)."""
