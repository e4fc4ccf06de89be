"""Sparse arrays: their values are kept densely, their indices are shown as MXNet shows them.

``csr_matrix`` and ``row_sparse_array`` make arrays that know their storage type, so that programs written for sparse
storage run and files with sparse records load; memory and time are those of dense arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from ..errors import ShapeError
from ..errors import ValueError as HybridNetValueError
from ..ops._namespace import lazy_functions
from . import ndarray as dense
from ._broadcasting import add, divide, multiply, subtract
from .ndarray import NDArray

__all__ = [
    "BaseSparseNDArray",
    "CSRNDArray",
    "RowSparseNDArray",
    "add",
    "array",
    "cast_storage",
    "csr_matrix",
    "divide",
    "empty",
    "multiply",
    "row_sparse_array",
    "subtract",
    "zeros",
]

_lazy, __dir__ = lazy_functions(globals(), "sparse", symbolic=False, fallback="")


def __getattr__(name: str) -> Any:
    return _lazy(name)


class BaseSparseNDArray(NDArray):
    """An array that counts as sparse."""

    __slots__ = ()

    def __repr__(self) -> str:
        shape = "x".join(str(size) for size in self.shape)
        return f"\n<{type(self).__name__} {shape} @{self.context}>"

    def tostype(self, stype: str) -> NDArray:
        """A new array of the same values in storage 'default', 'row_sparse' or 'csr'."""
        return cast_storage(self, stype)

    def todense(self) -> NDArray:
        """The same values as a new dense array."""
        return cast_storage(self, "default")

    def copy(self) -> Any:
        """A new array with the same values and storage."""
        return _core.retyped(super().copy(), type(self))

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """A copy of another dtype, of the same storage."""
        return _core.retyped(super().astype(dtype, copy), type(self))

    def check_format(self, full_check: bool = True) -> None:
        """Nothing to find: indices follow from the values."""


class CSRNDArray(BaseSparseNDArray):
    """A matrix by compressed rows: ``data``, ``indices`` (columns) and ``indptr`` (where rows begin)."""

    __slots__ = ()

    @property
    def stype(self) -> str:
        """'csr'"""
        return "csr"

    @property
    def indptr(self) -> NDArray:
        """Where each row begins in data; int64, one more than rows."""
        counts = np.count_nonzero(self.asnumpy(), axis=1)
        return dense.array(np.concatenate([[0], np.cumsum(counts)]), dtype=np.int64)

    @property
    def indices(self) -> NDArray:
        """Column of each stored value; int64."""
        return dense.array(np.nonzero(self.asnumpy())[1], dtype=np.int64)

    @property
    def data(self) -> NDArray:
        """The stored values, row by row."""
        values = self.asnumpy()
        return dense.array(values[np.nonzero(values)], dtype=self.dtype)

    def asscipy(self) -> Any:
        """The same matrix as ``scipy.sparse.csr_matrix``."""
        import scipy.sparse

        return scipy.sparse.csr_matrix(self.asnumpy())

    def __getitem__(self, key: Any) -> Any:
        result = _core.retyped(self, NDArray)[key]
        return _core.retyped(result, CSRNDArray) if isinstance(key, slice) else result


class RowSparseNDArray(BaseSparseNDArray):
    """An array of which only some rows are stored: ``indices`` (which) and ``data`` (their values)."""

    __slots__ = ()

    @property
    def stype(self) -> str:
        """'row_sparse'"""
        return "row_sparse"

    @property
    def indices(self) -> NDArray:
        """Numbers of the stored rows, ascending; int64."""
        return dense.array(self._rows(), dtype=np.int64)

    @property
    def data(self) -> NDArray:
        """The stored rows."""
        return dense.array(self.asnumpy()[self._rows()], dtype=self.dtype)

    def _rows(self) -> np.ndarray:
        values = self.asnumpy()
        return np.nonzero(values.reshape(values.shape[0], -1).any(axis=1))[0]

    def retain(self, indices: NDArray) -> RowSparseNDArray:
        """Only the given rows; the others become zero."""
        mask = np.zeros(self.shape[0], dtype=bool)
        mask[indices.asnumpy().astype(np.int64)] = True
        values = self.asnumpy()
        values[~mask] = 0
        return _core.retyped(dense.array(values, self.context, self.dtype), RowSparseNDArray)


_CLASSES = {"default": NDArray, "csr": CSRNDArray, "row_sparse": RowSparseNDArray}


def _class_of(stype: str) -> type:
    if stype not in _CLASSES:
        raise HybridNetValueError("storage type", expected=f"one of {', '.join(_CLASSES)}", given=repr(stype))
    return _CLASSES[stype]


def cast_storage(arr: NDArray, stype: str) -> NDArray:
    """A new array of the same values in another storage. Raises ValueError for csr of arrays that are no matrices."""
    return _stored(arr.copy(), stype)


def _stored(arr: NDArray, stype: str) -> NDArray:
    """The array itself under the class of a storage."""
    cls = _class_of(stype)
    if stype == "csr" and arr.ndim != 2:
        raise HybridNetValueError("cast_storage: csr needs a matrix", given=f"shape {arr.shape}")
    return _core.retyped(arr, cls)


def zeros(stype: str, shape: Any, ctx: Any = None, dtype: Any = None, **kwargs: Any) -> NDArray:
    """A new array of zeros in the given storage."""
    return _core.retyped(dense.zeros(shape, ctx, dtype), _class_of(stype))


empty = zeros


def array(source_array: Any, ctx: Any = None, dtype: Any = None) -> NDArray:
    """A sparse array from another one, or a csr matrix from a SciPy matrix."""
    if isinstance(source_array, BaseSparseNDArray):
        return _core.retyped(dense.array(source_array, ctx, dtype or source_array.dtype), type(source_array))
    if hasattr(source_array, "tocsr"):
        values = source_array.toarray()
        return _core.retyped(dense.array(values, ctx, dtype or values.dtype), CSRNDArray)
    raise HybridNetValueError(
        "sparse.array",
        expected="a sparse array or a SciPy matrix",
        given=type(source_array).__name__,
        fix="use csr_matrix or row_sparse_array",
    )


def _numpy(value: Any) -> np.ndarray:
    return value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)


def csr_matrix(arg1: Any, shape: Sequence[int] | None = None, ctx: Any = None, dtype: Any = None) -> CSRNDArray:
    """A csr matrix from (data, indices, indptr), (data, (rows, columns)), a shape, a SciPy matrix, or dense values."""
    if isinstance(arg1, tuple) and len(arg1) == 3:
        data, indices, indptr = (_numpy(part) for part in arg1)
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr.astype(np.int64)).astype(np.int64))
        return _from_coordinates(data, rows, indices, shape or _extent(len(indptr) - 1, indices), ctx, dtype)
    if isinstance(arg1, tuple) and len(arg1) == 2 and isinstance(arg1[1], tuple):
        data, (rows, columns) = _numpy(arg1[0]), (_numpy(part) for part in arg1[1])
        return _from_coordinates(data, rows, columns, shape or _extent(int(rows.max()) + 1, columns), ctx, dtype)
    if isinstance(arg1, tuple) and len(arg1) == 2:
        return zeros("csr", arg1, ctx, dtype)  # type: ignore[return-value]
    values = arg1.toarray() if hasattr(arg1, "toarray") else _numpy(arg1)
    if shape is not None and tuple(shape) != values.shape:
        raise ShapeError("csr_matrix", expected=f"values of shape {tuple(shape)}", given=str(values.shape))
    return _stored(dense.array(values, ctx, dtype or _value_dtype(arg1)), "csr")  # type: ignore[return-value]


def _value_dtype(source: Any) -> Any:
    return source.dtype if hasattr(source, "dtype") else np.float32


def _extent(rows: int, columns: np.ndarray) -> tuple[int, int]:
    return rows, int(columns.max()) + 1 if columns.size else 0


def _from_coordinates(
    data: np.ndarray, rows: Any, columns: Any, shape: Sequence[int], ctx: Any, dtype: Any
) -> CSRNDArray:
    rows, columns = rows.astype(np.int64), columns.astype(np.int64)
    if len(data) != len(rows) or len(data) != len(columns):
        raise HybridNetValueError(f"csr_matrix: {len(data)} values have {len(rows)} rows and {len(columns)} columns")
    if columns.size and (columns.min() < 0 or columns.max() >= shape[1] or rows.min() < 0 or rows.max() >= shape[0]):
        raise HybridNetValueError(f"csr_matrix: an index lies outside of shape {tuple(shape)}")
    values = np.zeros(tuple(shape), dtype=data.dtype)
    np.add.at(values, (rows, columns), data)
    return _stored(dense.array(values, ctx, dtype or data.dtype), "csr")  # type: ignore[return-value]


def row_sparse_array(
    arg1: Any, shape: Sequence[int] | None = None, ctx: Any = None, dtype: Any = None
) -> RowSparseNDArray:
    """An array from (data, row numbers), a shape, or dense values."""
    if isinstance(arg1, tuple) and len(arg1) == 2 and not isinstance(arg1[0], (int, np.integer)):
        data, rows = _numpy(arg1[0]), _numpy(arg1[1]).astype(np.int64)
        count = shape[0] if shape is not None else (int(rows.max()) + 1 if rows.size else 0)
        if rows.size and (rows.min() < 0 or rows.max() >= count):
            raise HybridNetValueError(f"row_sparse_array: a row number lies outside of {count} rows")
        values = np.zeros((count, *data.shape[1:]), dtype=data.dtype)
        values[rows] = data
        return _stored(dense.array(values, ctx, dtype or _float_dtype(data)), "row_sparse")  # type: ignore[return-value]
    if isinstance(arg1, tuple) and all(isinstance(size, (int, np.integer)) for size in arg1):
        return zeros("row_sparse", arg1, ctx, dtype)  # type: ignore[return-value]
    return _stored(dense.array(_numpy(arg1), ctx, dtype or _value_dtype(arg1)), "row_sparse")  # type: ignore[return-value]


def _float_dtype(data: np.ndarray) -> Any:
    return np.float32 if data.dtype == np.float64 else data.dtype


def from_parts(values: NDArray, storage_type: str, data: NDArray, aux: list[NDArray]) -> NDArray:
    """What a file's sparse record loads as."""
    return _stored(values, storage_type)
