"""Names that MXNet programs use in ``mx.base``, and conversions between Python values and ``_core``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._c_interface import *  # noqa: F403
from ._c_interface import _LIB as _LIB
from ._public_names import dir_of
from .errors import HybridNetError, MXNetError, TraceError

__all__ = ["HybridNetError", "MXNetError", "NotImplementedForSymbol", "integer_types", "numeric_types", "string_types"]

integer_types = (int, np.integer)
numeric_types = (float, int, np.generic)
string_types = (str,)
mx_real_t = np.float32
mx_uint = int


class _NullType:
    """The default of omitted arguments in generated MXNet signatures."""

    def __repr__(self) -> str:
        return "_Null"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "_Null"


_Null = _NullType()


class NotImplementedForSymbol(TraceError):
    """An operation that needs values was called on a Symbol."""


def no_values(symbol: Any, asked: str, fix: str) -> NotImplementedForSymbol:
    """Returns the error for an operation that needs the values of a Symbol: "float()", "autograd.grad"."""
    place = _core.control_place() or ("the block" if _core.symbol_specs(symbol) is not None else "a graph")
    return NotImplementedForSymbol(
        f"{asked} of Symbol {symbol.name or symbol.list_outputs()}: it has no values while the graph is being built",
        because=f"{place} is traced once and run many times, so Python cannot branch on computed values",
        fix=fix,
        where=_core.current_location(),
    )


def data_dir() -> str:
    """Returns the folder for downloaded data and models: ``$HYBRIDNET_HOME``, else ``~/.hybridnet``."""
    return _core.home() or str(Path.home() / ".hybridnet")


def py_str(value: Any) -> str:
    """Converts bytes or str to str."""
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def _as_list(value: Any) -> list[Any]:
    """Returns a list as it is; puts anything else into a list."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _simple_value(value: Any) -> Any:
    """Converts values that users pass as parameters (dtypes, contexts, NumPy numbers) to plain values; keeps others."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (np.dtype, type)):
        try:
            return np.dtype(value).name
        except TypeError:
            return value
    if isinstance(value, np.ndarray) and value.ndim <= 1:
        return value.item() if value.ndim == 0 else tuple(value.tolist())
    if isinstance(value, _core.NDArrayBase) and value.size == 1:
        return _core.asnumpy(value).item()
    if hasattr(value, "device_typeid"):  # a Context
        return str(value)
    if hasattr(value, "__index__"):
        return value.__index__()
    if isinstance(value, (range, set, frozenset)):
        return tuple(value)
    if hasattr(value, "__float__") and not isinstance(value, _core.NDArrayBase):
        return float(value)
    return value


_core.set_not_given(_Null)
_core.set_value_simplifier(_simple_value)
_core.install_location_probe(str(Path(__file__).resolve().parent))

__dir__ = dir_of(__name__)
