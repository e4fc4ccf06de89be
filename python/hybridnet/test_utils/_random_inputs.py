"""Random shapes, arrays and matrices for tests. All use NumPy's global generator and its seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..context import Context
from ..errors import ValueError as HybridNetValueError
from ..ndarray import NDArray, array
from ._compare import default_dtype


def random_arrays(*shapes: Sequence[int]) -> Any:
    """Returns standard normal float32 arrays, one for each shape; a single array for one shape."""
    made: list[Any] = [np.asarray(np.random.standard_normal(tuple(shape)), dtype=default_dtype()) for shape in shapes]
    return made[0] if len(made) == 1 else made


def random_uniform_arrays(
    *shapes: Sequence[int], low: float = 0.0, high: float = 1.0, dtype: Any = None
) -> list[np.ndarray]:
    """Returns arrays with elements uniform in [low, high), one for each shape."""
    return [np.random.uniform(low, high, tuple(shape)).astype(dtype or default_dtype()) for shape in shapes]


def random_sample(population: Sequence[Any], k: int) -> list[Any]:
    """Returns k different elements of population in random order."""
    if not 0 <= k <= len(population):
        raise HybridNetValueError(
            f"random_sample: k is {k}; expected 0 to {len(population)}, the size of the population"
        )
    return [population[i] for i in np.random.permutation(len(population))[:k]]


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """Returns a shape of num_dim sizes, each from 1 (or 0) to dim."""
    return tuple(int(n) for n in np.random.randint(0 if allow_zero_size else 1, dim + 1, size=num_dim))


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """Returns a shape of two sizes from 1 (or 0) to dim0 and dim1."""
    return tuple(rand_shape_nd(1, dim, allow_zero_size)[0] for dim in (dim0, dim1))


def rand_shape_3d(dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """Returns a shape of three sizes from 1 (or 0) to dim0, dim1 and dim2."""
    return tuple(rand_shape_nd(1, dim, allow_zero_size)[0] for dim in (dim0, dim1, dim2))


def rand_coord_2d(x_low: int, x_high: int, y_low: int, y_high: int) -> tuple[Any, Any]:
    """Returns a point with int64 coordinates in [x_low, x_high) and [y_low, y_high)."""
    return np.random.randint(x_low, x_high, dtype=np.int64), np.random.randint(y_low, y_high, dtype=np.int64)


def rand_ndarray(
    shape: Sequence[int],
    stype: str = "default",
    density: float | None = None,
    dtype: Any = None,
    modifier_func: Callable[[Any], Any] | None = None,
    shuffle_csr_indices: bool = False,
    distribution: str | None = None,
    ctx: Context | None = None,
) -> NDArray:
    """Returns a standard normal array; in another storage type, stored elements are uniform in [0, 1)."""
    if stype != "default":
        return rand_sparse_ndarray(shape, stype, density, dtype, distribution, modifier_func=modifier_func, ctx=ctx)[0]
    values = random_arrays(shape)
    values = values if modifier_func is None else assign_each(values, modifier_func)
    return array(values, ctx=ctx, dtype=dtype or default_dtype())


def rand_sparse_ndarray(
    shape: Sequence[int],
    stype: str,
    density: float | None = None,
    dtype: Any = None,
    distribution: str | None = None,
    data_init: float | None = None,
    rsp_indices: Any = None,
    modifier_func: Callable[[Any], Any] | None = None,
    shuffle_csr_indices: bool = False,
    ctx: Context | None = None,
) -> tuple[NDArray, tuple[Any, ...]]:
    """Returns (sparse array, its parts): (values, row indices) of "row_sparse", (indptr, indices, data) of "csr".

    Rows or elements are stored with probability density (random if None), uniform in [0, 1) or data_init; rsp_indices
    lists the rows instead. modifier_func is applied to every stored value.
    """
    if stype not in ("row_sparse", "csr"):
        raise HybridNetValueError(f"rand_sparse_ndarray: stype is {stype!r}; expected 'row_sparse' or 'csr'")
    shape, density = tuple(shape), np.random.rand() if density is None else density
    values = np.random.rand(*shape) if data_init is None else np.full(shape, data_init, dtype="float64")
    values = values if modifier_func is None else assign_each(values, modifier_func)
    kept = np.random.rand(*(shape[:1] if stype == "row_sparse" else shape)) < density
    if rsp_indices is not None:
        kept = np.isin(np.arange(shape[0]), np.asarray(rsp_indices))
    values = np.where(kept.reshape(kept.shape + (1,) * (len(shape) - kept.ndim)), values, 0)
    result = array(values, ctx=ctx, dtype=dtype or default_dtype()).tostype(stype)
    if stype == "row_sparse":
        return result, (result.data.asnumpy(), result.indices.asnumpy())
    return result, (result.indptr, result.indices, result.data)


def create_sparse_array(
    shape: Sequence[int],
    stype: str,
    data_init: float | None = None,
    rsp_indices: Any = None,
    dtype: Any = None,
    modifier_func: Callable[[Any], Any] | None = None,
    density: float = 0.5,
    shuffle_csr_indices: bool = False,
) -> NDArray:
    """Returns the array of :func:`rand_sparse_ndarray`."""
    return rand_sparse_ndarray(shape, stype, density, dtype, None, data_init, rsp_indices, modifier_func)[0]


def create_sparse_array_zd(
    shape: Sequence[int], stype: str, density: float, rsp_indices: Any = None, **kwargs: Any
) -> NDArray:
    """Returns :func:`create_sparse_array` with only the rows in rsp_indices."""
    return create_sparse_array(
        shape, stype, rsp_indices=rsp_indices, density=0.0 if stype == "row_sparse" else density, **kwargs
    )


def assign_each(the_input: np.ndarray, function: Callable[[Any], Any] | None) -> np.ndarray:
    """Applies function to every element; copies the array if it is None."""
    if function is None:
        return np.array(the_input)
    return np.vectorize(function, otypes=[the_input.dtype])(the_input)


def assign_each2(input1: np.ndarray, input2: np.ndarray, function: Callable[[Any, Any], Any] | None) -> np.ndarray:
    """Applies function to every pair of elements; copies input1 if it is None."""
    if function is None:
        return np.array(input1)
    return np.vectorize(function, otypes=[input1.dtype])(input1, input2)


def create_2d_tensor(rows: int, columns: int, dtype: Any = np.int64) -> NDArray:
    """Returns a (rows, columns) array with i in row i."""
    return array(np.repeat(np.arange(rows, dtype=dtype)[:, None], columns, axis=1), dtype=dtype)


def create_vector(size: int, dtype: Any = np.int64) -> NDArray:
    """Returns 0, 1, ..., size - 1."""
    return array(np.arange(size, dtype=dtype), dtype=dtype)


def get_identity_mat(size: int) -> np.ndarray:
    """Returns a float32 identity matrix."""
    return np.identity(size, dtype=np.float32)


def get_identity_mat_batch(size: int) -> np.ndarray:
    """Returns two float32 identity matrices, (2, size, size)."""
    return np.stack([get_identity_mat(size)] * 2)


def new_orthonormal_matrix_2d(n: int) -> np.ndarray:
    """Returns a random orthonormal n x n matrix."""
    return np.linalg.qr(np.random.standard_normal((n, n)))[0]


def _eigenvalues(n: int) -> np.ndarray:
    """Returns n distinct, well separated numbers of both signs, none near zero."""
    return np.random.permutation(np.arange(1, n + 1)) * np.random.choice([-1.0, 1.0], n) / n


def new_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """Returns a well-conditioned n x n matrix with small real eigenvalues."""
    basis = new_orthonormal_matrix_2d(n) @ np.diag(np.random.uniform(0.5, 1.5, n)) @ new_orthonormal_matrix_2d(n)
    return basis @ np.diag(_eigenvalues(n)) @ np.linalg.inv(basis)


def new_sym_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """Returns a well-conditioned symmetric n x n matrix."""
    basis = new_orthonormal_matrix_2d(n)
    return basis @ np.diag(_eigenvalues(n)) @ basis.T


def _batch(shape: Sequence[int], make: Callable[[int], np.ndarray]) -> np.ndarray:
    *lead, rows, columns = shape
    if rows != columns:
        raise HybridNetValueError(f"shape is {tuple(shape)}; expected square matrices, (..., n, n)")
    made = [make(rows) for _ in range(int(np.prod(lead)))]
    return np.array(made).reshape(shape)


def new_matrix_with_real_eigvals_nd(shape: Sequence[int]) -> np.ndarray:
    """Returns matrices (..., n, n) of :func:`new_matrix_with_real_eigvals_2d`."""
    return _batch(shape, new_matrix_with_real_eigvals_2d)


def new_sym_matrix_with_real_eigvals_nd(shape: Sequence[int]) -> np.ndarray:
    """Returns matrices (..., n, n) of :func:`new_sym_matrix_with_real_eigvals_2d`."""
    return _batch(shape, new_sym_matrix_with_real_eigvals_2d)
