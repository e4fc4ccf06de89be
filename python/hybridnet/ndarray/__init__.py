"""``mx.nd``: arrays, the functions that make them, and every operator.

Submodules ``random``, ``linalg``, ``contrib``, ``image``, ``sparse``, ``op`` and ``_internal`` hold operators whose
registered names begin with that word.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .._public_names import dir_of
from ..ops._namespace import lazy_functions
from . import _internal, ndarray, random
from ._broadcasting import *
from ._cached_op import CachedOp
from ._creation import *
from ._rearranging import *
from .ndarray import NDArray as NDArray
from .utils import load as load
from .utils import load_frombuffer as load_frombuffer
from .utils import save as save

if TYPE_CHECKING:  # for completion in editors; at run time the registry provides the names
    from ..ops._generated import *

_lazy, _names = lazy_functions(globals(), "", symbolic=False)
_SUBMODULES = ("contrib", "image", "linalg", "op", "sparse", "utils")
_NUMPY = {"np": "numpy", "npx": "numpy_extension", "numpy": "numpy", "numpy_extension": "numpy_extension"}


def __getattr__(name: str) -> Any:
    if name == "Custom":
        return importlib.import_module("hybridnet.operator").custom_on_arrays
    if name == "cast_storage":  # the function knows the classes of sparse arrays, the operator does not
        return importlib.import_module(f"{__name__}.sparse").cast_storage
    if name in _NUMPY:  # used as F.np and F.npx in hybrid_forward
        return importlib.import_module(f"hybridnet.{_NUMPY[name]}")
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    return _lazy(name)


def _listed() -> list[str]:
    return sorted({*_names(), *_SUBMODULES, *_NUMPY})


__dir__ = dir_of(__name__, _listed)
