"""``mx.onnx``: models from ONNX files and to ONNX files. Needs the package onnx: ``pip install hybridnet[onnx]``."""

from __future__ import annotations

from .._lazy_names import refusing
from .._public_names import dir_of
from ._api import convert, get_model_metadata, import_model, import_to_gluon
from ._export_api import export_model
from ._table import form

__all__ = ["convert", "export_model", "form", "get_model_metadata", "import_model", "import_to_gluon"]

__getattr__ = refusing(__name__)
__dir__ = dir_of(__name__)
