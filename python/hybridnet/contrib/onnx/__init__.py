"""``mx.contrib.onnx``: MXNet's name of ``mx.onnx``, with the functions of MXNet 1.9.1."""

from __future__ import annotations

from ..._lazy_names import names_from
from ..._public_names import dir_of

__all__ = ["export_model", "get_model_metadata", "import_model", "import_to_gluon"]

__getattr__, __dir__ = names_from(__name__, {"...onnx": " ".join(__all__)})
__dir__ = dir_of(__name__, __dir__)
