"""Functions that create nodes: constants, joins, splits, binary operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from ..base import numeric_types
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from ..ndarray._broadcasting import PYTHON_OPERATORS
from ..ndarray._dtypes import dtype_name
from . import _internal
from .symbol import Symbol, main_operator

__all__ = [
    "arange", "concatenate", "eye", "full", "histogram", "hypot", "linspace", "maximum", "minimum", "ones", "pow",
    "power", "split_v2", "zeros",
]  # fmt: skip


def zeros(shape: Any, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Returns a node of zeros."""
    return _internal._zeros(shape=shape, dtype=dtype_name(dtype), **kwargs)


def ones(shape: Any, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Returns a node of ones."""
    return _internal._ones(shape=shape, dtype=dtype_name(dtype), **kwargs)


def full(shape: Any, val: float, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Returns a node filled with val."""
    return _internal._full(shape=shape, value=float(val), dtype=dtype_name(dtype), **kwargs)


def eye(N: int, M: int = 0, k: int = 0, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Returns a node of zeros with ones on diagonal k."""
    return _internal._eye(N=N, M=M, k=k, dtype=dtype_name(dtype), **kwargs)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool = False,
    name: str | None = None,
    dtype: Any = None,
) -> Symbol:
    """Returns a node of start, start + step, ... below stop, each repeated ``repeat`` times."""
    if stop is None and not infer_range:
        start, stop = 0, start
    return _internal._arange(
        start=start, stop=stop, step=step, repeat=repeat, infer_range=infer_range, name=name, dtype=dtype_name(dtype)
    )


def linspace(
    start: float, stop: float, num: int, endpoint: bool = True, name: str | None = None, dtype: Any = None
) -> Symbol:
    """Returns a node of num evenly spaced numbers from start to stop."""
    step = (stop - start) / max(num - 1 if endpoint else num, 1)
    return _internal._arange(start=0, stop=float(num), step=1.0, dtype=dtype_name(dtype), name=name) * step + start


def concatenate(arrays: Sequence[Symbol], axis: int = 0, always_copy: bool = True) -> Symbol:
    """Joins Symbols along an existing axis."""
    return main_operator("Concat")(*arrays, dim=axis)


def split_v2(ary: Symbol, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> Symbol:
    """Splits a Symbol along axis into equal sections (int) or at the given positions (sequence)."""
    if isinstance(indices_or_sections, (int, np.integer)):
        return _internal._split_v2(ary, indices=(), axis=axis, squeeze_axis=squeeze_axis, sections=indices_or_sections)
    return _internal._split_v2(ary, indices=[0, *indices_or_sections], axis=axis, squeeze_axis=squeeze_axis)


def histogram(a: Symbol, bins: Any = 10, range: Any = None, **kwargs: Any) -> Symbol:
    """Counts of values per bin, and the bin edges."""
    if isinstance(bins, _core.SymbolBase):
        return _internal._histogram(a, bins, **kwargs)
    if range is None:
        raise HybridNetValueError("sym.histogram: expected a range together with a number of bins")
    return _internal._histogram(a, bin_cnt=bins, range=range, **kwargs)


def _binary(kind: int, name: str, left: Any, right: Any) -> Any:
    if isinstance(left, numeric_types) and isinstance(right, numeric_types):
        return PYTHON_OPERATORS[name](left, right)
    result = _core.symbol_binary(kind, left, right)
    if result is NotImplemented:
        raise HybridNetTypeError(
            name, expected="Symbols or numbers", given=f"{type(left).__name__} and {type(right).__name__}"
        )
    return result


def maximum(left: Any, right: Any) -> Any:
    """Elementwise maximum; either operand may be a number."""
    return _binary(6, "maximum", left, right)


def minimum(left: Any, right: Any) -> Any:
    """Elementwise minimum; either operand may be a number."""
    return _binary(7, "minimum", left, right)


def hypot(left: Any, right: Any) -> Any:
    """Returns sqrt(left**2 + right**2); either may be a number."""
    return _binary(8, "hypot", left, right)


def power(base: Any, exp: Any) -> Any:
    """Returns base ** exp; either may be a number."""
    return _binary(5, "power", base, exp)


pow = power
