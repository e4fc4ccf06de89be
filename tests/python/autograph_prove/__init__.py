"""Random programs of plain Python control flow, and mutations of programs into forms that are refused."""
