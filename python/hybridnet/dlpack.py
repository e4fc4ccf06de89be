"""DLPack, under MXNet's module name."""

from ._public_names import dir_of
from .ndarray.ndarray import from_dlpack, from_numpy, to_dlpack_for_read, to_dlpack_for_write

__all__ = ["from_dlpack", "from_numpy", "to_dlpack_for_read", "to_dlpack_for_write"]

__dir__ = dir_of(__name__)
