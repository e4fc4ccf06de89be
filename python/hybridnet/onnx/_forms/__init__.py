"""The forms of ONNX operators, one file per family. Each file registers its forms when it is imported (_table.py)."""
