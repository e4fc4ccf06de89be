"""Sparse arrays: a csr matrix stores only some values, a row_sparse array stores only some rows.

Both are NDArrays. Operators that keep zeros work on the stored values and return arrays in the same storage; others
convert to dense copies, with one warning per operator (docs/sparse.md lists them). Index arrays are int64.
"""

from __future__ import annotations

import builtins  # operators with these names replace the built-in ones in this module on first use
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from .._public_names import dir_of
from ..context import Context
from ..errors import IndexError as HybridNetIndexError
from ..errors import ShapeError
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from ..ops._namespace import lazy_functions
from . import ndarray as dense
from ._broadcasting import add, divide, multiply, subtract
from ._creation import _context
from ._dtypes import numpy_dtype
from .ndarray import NDArray, _other_dtype

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
    """An array that stores only some of its values. Writing to it replaces the stored values."""

    __slots__ = ()

    def __repr__(self) -> str:
        shape = "x".join(str(size) for size in self.shape)
        return f"\n<{type(self).__name__} {shape} @{self.context}{_other_dtype(self)}>"

    @property
    def data(self) -> NDArray:
        """The stored values."""
        return _core.sparse_part(self, "data")

    @property
    def indices(self) -> NDArray:
        """The positions of the stored values: columns of a csr matrix, row numbers of a row_sparse array; int64."""
        return _core.sparse_part(self, "indices")

    def asnumpy(self) -> np.ndarray:
        """Waits and returns all values as a dense NumPy array. Raises FormatError for broken indices."""
        return _core.asnumpy(self)

    def tostype(self, stype: str) -> NDArray:
        """Returns a new array with the same values in storage 'default', 'row_sparse' or 'csr'."""
        return cast_storage(self, stype)

    def as_nd_ndarray(self) -> NDArray:
        """Returns this array."""
        return self

    def as_np_ndarray(self) -> Any:
        """Returns the same values as a dense array of ``mx.np``."""
        return self.tostype("default").as_np_ndarray()

    def todense(self) -> NDArray:
        """Returns the same values as a new dense array."""
        return cast_storage(self, "default")

    def copyto(self, other: NDArray | Context) -> NDArray:
        """Copies into another array of any storage (same shape, any dtype), or to a device. Returns the target."""
        return _moved(self, other) if isinstance(other, Context) else super().copyto(other)

    def check_format(self, full_check: bool = True) -> None:
        """Raises FormatError if indices are out of bounds or not ascending (csr: within a row).

        full_check=False checks sizes only; every array has passed this check when it was made.
        """
        if full_check:
            _core.check_sparse(self)

    def __setitem__(self, key: Any, value: Any) -> None:
        """``x[:] = value``: a number, or values of the same shape in any storage. Raises ValueError for other keys."""
        if not (key is Ellipsis or (isinstance(key, builtins.slice) and key == builtins.slice(None))):
            raise HybridNetValueError(
                f"{type(self).__name__} can be written as a whole only",
                expected="x[:] = value",
                given=f"x[{key!r}] = value",
                fix="convert it first: x.tostype('default')",
            )
        _core.assign_sparse(self, self._source(value))

    def _source(self, value: Any) -> NDArray:
        """Returns an array of this shape and dtype that holds value."""
        if np.isscalar(value):
            if value == 0:
                return zeros(self.stype, self.shape, dtype=self.dtype)
            return dense.full(self.shape, value, dtype=self.dtype)
        source = value if isinstance(value, NDArray) else dense.array(value, dtype=self.dtype)
        if source.shape != self.shape:
            raise ShapeError(f"{type(self).__name__}[:]", expected=f"shape {self.shape}", given=str(source.shape))
        return source if source.dtype is self.dtype else source.astype(self.dtype)

    def _sync_copyfrom(self, source: Any) -> None:
        self[:] = source

    def reshape(self, *shape: Any, **kwargs: Any) -> NDArray:
        """Raises UnsupportedError: the stored values cannot be reshaped. Convert to 'default' first."""
        return _core.reshaped(self, self.shape)

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Same as NDArray.attach_grad; the gradient has this array's storage unless stype names another."""
        super().attach_grad(grad_req, stype or self.stype)

    @property
    def _num_aux(self) -> int:
        """Number of index arrays."""
        return 2 if self.stype == "csr" else 1


class CSRNDArray(BaseSparseNDArray):
    """A matrix in compressed sparse row format.

    The values of row r are ``data[indptr[r]:indptr[r + 1]]``, in the columns ``indices[indptr[r]:indptr[r + 1]]``.
    """

    __slots__ = ()

    @property
    def indptr(self) -> NDArray:
        """The offset in data at which each row begins; int64, one element more than rows."""
        return _core.sparse_part(self, "indptr")

    def asscipy(self) -> Any:
        """Returns the same matrix as ``scipy.sparse.csr_matrix``."""
        import scipy.sparse

        parts = (self.data.asnumpy(), self.indices.asnumpy(), self.indptr.asnumpy())
        return scipy.sparse.csr_matrix(parts, shape=self.shape, dtype=self.dtype)

    def __getitem__(self, key: Any) -> Any:
        """Selects rows: ``x[i]`` (a matrix of one row), ``x[begin:end]``, ``x[:]``. Raises ValueError for others."""
        rows = self.shape[0]
        if key is Ellipsis or (isinstance(key, builtins.slice) and key == builtins.slice(None)):
            return self
        if isinstance(key, (int, np.integer)):
            if not -rows <= key < rows:
                raise HybridNetIndexError("CSRNDArray", expected=f"a row in [{-rows}, {rows})", given=str(key))
            begin = int(key) % rows
            return _core.slice_csr(self, begin, begin + 1, 0, self.shape[1])
        if isinstance(key, builtins.slice) and key.step in (None, 1):
            begin, end, _ = key.indices(rows)
            return _core.slice_csr(self, begin, builtins.max(begin, end), 0, self.shape[1])
        raise HybridNetValueError(
            "CSRNDArray",
            expected="rows: an int or a slice of step 1",
            given=f"x[{key!r}]",
            fix="use nd.slice for columns",
        )


class RowSparseNDArray(BaseSparseNDArray):
    """An array that stores only some of its rows: row ``indices[i]`` is ``data[i]``, all others are zeros."""

    __slots__ = ()

    def retain(self, indices: NDArray) -> RowSparseNDArray:
        """Returns an array that stores exactly these rows; all other rows become zero."""
        return _core.retain_rows(self, indices)

    def __getitem__(self, key: Any) -> Any:
        """``x[:]`` returns the array itself. Raises ValueError for other keys."""
        if key is Ellipsis or (isinstance(key, builtins.slice) and key == builtins.slice(None)):
            return self
        raise HybridNetValueError(
            "RowSparseNDArray", expected="x[:]", given=f"x[{key!r}]", fix="use retain, or tostype('default') first"
        )


_core.register_sparse_class("csr", CSRNDArray)
_core.register_sparse_class("row_sparse", RowSparseNDArray)


def cast_storage(arr: NDArray, stype: str) -> NDArray:
    """Returns a new array with the same values in storage 'default', 'row_sparse' or 'csr'.

    Recorded like an operator. Raises ParamError for unknown storages, ShapeError for csr if arr is not a matrix.
    """
    return _core.cast_storage(arr, stype)


def zeros(stype: str, shape: Any, ctx: Any = None, dtype: Any = None, **kwargs: Any) -> Any:
    """Returns a new array of zeros in the given storage, with no stored values; float32 if dtype is None."""
    if stype == "default":
        return dense.zeros(shape, ctx, dtype, **kwargs)
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    return _placed(_core.sparse_zeros(stype, shape, numpy_dtype(dtype)), ctx)


def _moved(array: NDArray, context: Context) -> Any:
    """Returns a copy on another device."""
    parts: Any = array.copy()
    data = parts.data.as_in_context(context)
    if array.stype == "csr":
        return _core.make_csr(array.shape, data, parts.indices, parts.indptr)
    return _core.make_row_sparse(array.shape, data, parts.indices)


def _placed(made: NDArray, ctx: Any) -> Any:
    return made.as_in_context(_context(ctx))


def empty(stype: str, shape: Any, ctx: Any = None, dtype: Any = None) -> NDArray:
    """Same as zeros; for storage 'default' the values are uninitialized."""
    return dense.empty(shape, ctx, dtype) if stype == "default" else zeros(stype, shape, ctx, dtype)


def whole(values: NDArray, stype: str) -> NDArray:
    """Converts dense values to another storage; row_sparse stores every row, including rows of zeros."""
    if stype != "row_sparse":
        return cast_storage(values, stype)
    rows = dense.arange(values.shape[0], dtype="int64")
    return _core.make_row_sparse(values.shape, values.copy(), rows)


def retain_rows(table: NDArray, rows: NDArray) -> RowSparseNDArray:
    """Returns rows of a dense or row_sparse array as a row_sparse array of the same shape. Raises IndexError."""
    return _core.take_rows(table, rows)


def rows_of_table(table: NDArray, rows: NDArray) -> RowSparseNDArray:
    """Same as retain_rows, for recording: gradients go to the table's own buffer."""
    return _core.rows_of_table(table, rows)


def array(source_array: Any, ctx: Any = None, dtype: Any = None) -> NDArray:
    """Returns a sparse array made from another one, or a csr matrix from a SciPy matrix; dtype None: the source's."""
    if isinstance(source_array, BaseSparseNDArray):
        return _placed(source_array.copy() if dtype is None else source_array.astype(dtype), ctx)
    if hasattr(source_array, "tocsr"):
        return csr_matrix(source_array, ctx=ctx, dtype=dtype)
    raise HybridNetValueError(
        "sparse.array",
        expected="a sparse array or a SciPy matrix",
        given=type(source_array).__name__,
        fix="use csr_matrix or row_sparse_array",
    )


def _values(source: Any, dtype: Any) -> NDArray:
    """Returns stored values as a new dense array; dtype None: that of an array, float32 for lists."""
    if isinstance(source, NDArray):
        return source.astype(dtype or source.dtype)
    return dense.array(source, dtype=dtype or getattr(source, "dtype", None))


def _index(source: Any) -> NDArray:
    """Returns indices as a new dense int64 array."""
    values = source.asnumpy() if isinstance(source, NDArray) else np.asarray(source)
    return dense.array(values.astype(np.int64, copy=False), dtype=np.int64)


def _is_size(value: Any) -> bool:
    return isinstance(value, (int, np.integer))


def csr_matrix(arg1: Any, shape: Sequence[int] | None = None, ctx: Any = None, dtype: Any = None) -> CSRNDArray:
    """Returns a csr matrix.

    arg1: (data, indices, indptr); (data, (rows, columns)), where values at the same position are summed; (rows,
    columns), the shape of a matrix of zeros; a SciPy matrix; a csr matrix; or dense values.
    dtype: by default that of arrays among the values, float32 for lists. Raises ShapeError if the parts do not fit
    together.
    """
    if isinstance(arg1, tuple) and len(arg1) == 3:
        return _placed(_csr_from_parts(arg1, shape, dtype), ctx)
    if isinstance(arg1, tuple) and len(arg1) == 2:
        if all(map(_is_size, arg1)):
            _check_shape("csr_matrix", shape, arg1)
            return zeros("csr", arg1, ctx, dtype)
        return _placed(_csr_from_coordinates(*arg1, shape, dtype), ctx)
    if hasattr(arg1, "tocsr") and not isinstance(arg1, NDArray):
        source = arg1.tocsr()
        if not source.has_canonical_format:  # columns out of order, or duplicate positions
            source = source.copy()
            source.sum_duplicates()
        _check_shape("csr_matrix", shape, source.shape)
        return _placed(_csr_from_parts((source.data, source.indices, source.indptr), source.shape, dtype), ctx)
    return _placed(_from_values(arg1, "csr", shape, dtype), ctx)


def _check_shape(function: str, wanted: Any, given: Any) -> None:
    if wanted is not None and tuple(wanted) != tuple(given):
        raise ShapeError(function, expected=f"values of shape {tuple(wanted)}", given=str(tuple(given)))


def _from_values(source: Any, stype: str, shape: Any, dtype: Any) -> NDArray:
    """Converts dense values to the storage, or copies a sparse array."""
    if source is None:
        raise HybridNetTypeError(stype, expected="values", given="None")
    values = source if isinstance(source, NDArray) else _values(source, dtype)
    _check_shape(stype, shape, values.shape)
    if dtype is not None and values.dtype is not numpy_dtype(dtype).type:
        values = values.astype(dtype)
    return cast_storage(values, stype)


def _csr_from_parts(parts: tuple[Any, Any, Any], shape: Any, dtype: Any) -> CSRNDArray:
    data, indices, indptr = _values(parts[0], dtype), _index(parts[1]), _index(parts[2])
    if shape is None:
        if not indices.size:
            raise HybridNetValueError(
                "csr_matrix: without indices the number of columns is not known", fix="pass shape"
            )
        shape = (indptr.size - 1, int(indices.asnumpy().max()) + 1)
    return _core.make_csr(tuple(shape), data, indices, indptr)


def _csr_from_coordinates(data: Any, places: Any, shape: Any, dtype: Any) -> CSRNDArray:
    rows, columns = places
    values, row, column = _values(data, dtype), _index(rows).asnumpy(), _index(columns).asnumpy()
    if not len(values) == len(row) == len(column):
        raise HybridNetValueError(f"csr_matrix: {len(values)} values have {len(row)} rows and {len(column)} columns")
    if shape is None:
        shape = (int(row.max()) + 1, int(column.max()) + 1) if len(row) else (0, 0)
    if len(row) and (row.min() < 0 or row.max() >= shape[0] or column.min() < 0 or column.max() >= shape[1]):
        raise HybridNetValueError(f"csr_matrix: an index lies outside of shape {tuple(shape)}")
    # One row per position; duplicate positions are summed.
    numbers = dense.array(row * shape[1] + column, dtype=np.int64)
    summed = _core.row_sparse_sum((shape[0] * shape[1],), values, numbers)
    place = summed.indices.asnumpy()
    indptr = np.searchsorted(place, np.arange(shape[0] + 1) * shape[1])
    return _core.make_csr(
        tuple(shape),
        summed.data,
        dense.array(place % builtins.max(shape[1], 1), dtype=np.int64),
        dense.array(indptr, dtype=np.int64),
    )


def row_sparse_array(
    arg1: Any, shape: Sequence[int] | None = None, ctx: Any = None, dtype: Any = None
) -> RowSparseNDArray:
    """Returns a row_sparse array.

    arg1: (data, row numbers); a shape, for an array of zeros; a row_sparse array; or dense values.
    dtype: by default that of arrays among the values, float32 for lists. Raises ShapeError if the parts do not fit.
    """
    if isinstance(arg1, tuple):
        if all(map(_is_size, arg1)):
            _check_shape("row_sparse_array", shape, arg1)
            return zeros("row_sparse", arg1, ctx, dtype)
        if len(arg1) == 2:
            data, rows = _values(arg1[0], dtype), _index(arg1[1])
            if shape is None:
                shape = (int(rows.asnumpy().max()) + 1 if rows.size else 0, *data.shape[1:])
            return _placed(_core.make_row_sparse(tuple(shape), data, rows), ctx)
    return _placed(_from_values(arg1, "row_sparse", shape, dtype), ctx)


__dir__ = dir_of(__name__, __dir__)
