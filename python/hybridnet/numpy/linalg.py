"""``mx.np.linalg``: linear algebra with NumPy's interface.

Functions take stacks of matrices (..., m, n). Results are float32 or float64; integers give float32. Inputs without a
result (singular, not positive definite, not finite) raise ValueError when the result is waited for.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as onp

from .._public_names import dir_of
from ..errors import HybridNetError, ParamError
from . import _contractions, _grids
from ._array_standard import matrix_transpose, vecdot
from ._calls import as_array, cast
from ._contractions import outer, tensordot
from ._creation import array, zeros, zeros_like
from ._elementwise import greater, square
from ._operators import _converted, is_number, np_operator
from ._rearranging import concatenate, dot, expand_dims, matmul, swapaxes
from ._reductions import max, sum

__all__ = [
    "LinAlgError", "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
    "lstsq", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv",
    "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot",
    "vector_norm",
]  # fmt: skip

LinAlgError = HybridNetError

# Values of the attribute `flag` of _npi_norm.
_ALL_ELEMENTS, _BY_ORDER, _FROBENIUS, _NUCLEAR = -2, -1, 1, 2


def norm(
    x: Any, ord: float | str | None = None, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Any:
    """Norms of vectors (one axis) or matrices (two: rows, columns); of all elements if ord and axis are None.

    ord: for vectors any number, 0 (the number of nonzeros), inf, -inf; for matrices 1, -1, 2, -2, inf, -inf, 'fro',
    'nuc'.
    Raises ParamError for an order that does not fit the axes.
    """
    axes = None if axis is None else tuple(axis) if isinstance(axis, Sequence) else (axis,)
    flag, order = _BY_ORDER, 2.0
    if ord is None:
        flag = _ALL_ELEMENTS if axes is None else _FROBENIUS
    elif ord in ("fro", "f", "nuc"):
        if axes is not None and len(axes) != 2:
            raise ParamError("np.linalg.norm: ord", expected="a number, for one axis", given=repr(ord))
        flag = _NUCLEAR if ord == "nuc" else _FROBENIUS
    else:
        order = float(ord)
        if len(axes or ()) == 2:
            flag = 0
    return np_operator("_npi_norm")(x, ord=order, axis=axes, keepdims=keepdims, flag=flag)


class SVDResult(NamedTuple):
    """The result of svd: a = U @ diag(S) @ Vh."""

    U: Any
    S: Any
    Vh: Any


class SlogdetResult(NamedTuple):
    """The result of slogdet: det(a) = sign * exp(logabsdet)."""

    sign: Any
    logabsdet: Any


class EigResult(NamedTuple):
    """The result of eig: eigenvalues, and eigenvectors in columns."""

    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    """The result of eigh: eigenvalues, ascending, and eigenvectors in columns."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """The result of qr: a = Q @ R."""

    Q: Any
    R: Any


def svd(a: Any, full_matrices: bool = False) -> SVDResult:
    """Singular value decomposition: (ut, l, v) with a = ut @ diag(l) @ v.

    ut (..., m, k), l (..., k) descending, v (..., k, n), k = min(m, n). full_matrices (default False, like MXNet): ut
    and v are square; no gradient flows through the added rows and columns.
    """
    ut, s, v = np_operator("_npi_svd")(a)
    if full_matrices:
        rows, columns = a.shape[-2:]
        if rows > columns:
            ut = concatenate([ut, _orthogonal_columns(ut)], axis=-1)
        elif columns > rows:
            right = swapaxes(v, -1, -2)
            v = swapaxes(concatenate([right, _orthogonal_columns(right)], axis=-1), -1, -2)
    return SVDResult(ut, s, v)


def _orthogonal_columns(basis: Any) -> Any:
    """Completes basis (..., m, k) to m orthonormal columns: eigenvectors of the complementary projection."""
    rows, columns = basis.shape[-2:]
    basis = np_operator("BlockGrad")(basis)
    projection = _grids.eye(rows, dtype=basis.dtype) - matmul(basis, swapaxes(basis, -1, -2))
    return eigh(projection)[1][..., columns:]


def cholesky(a: Any, *, upper: bool = False) -> Any:
    """Cholesky factor of symmetric positive definite matrices: lower triangular L, a = L @ L.T; with upper, L.T."""
    factor = np_operator("_npi_cholesky")(a)
    return swapaxes(factor, -1, -2) if upper else factor


def inv(a: Any) -> Any:
    """Inverses of square matrices."""
    return np_operator("_npi_inv")(a)


def pinv(a: Any, rcond: Any = 1e-15, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """Pseudo-inverses; singular values up to rcond (a number or one per matrix) times the largest count as 0.

    rtol: NumPy 2's name for rcond.
    """
    rcond = rcond if rtol is None else rtol
    if is_number(rcond):
        return np_operator("_npi_pinv_scalar_rcond")(a, rcond=rcond, hermitian=hermitian)
    return np_operator("_npi_pinv")(a, rcond, hermitian=hermitian)


def det(a: Any) -> Any:
    """Determinants of square matrices."""
    return np_operator("_npi_det")(a)


def slogdet(a: Any) -> SlogdetResult:
    """Signs of determinants, and logarithms of their absolute values; 0 and -inf for singular matrices."""
    return SlogdetResult(*np_operator("_npi_slogdet")(a))


def solve(a: Any, b: Any) -> Any:
    """Solves a @ x = b for x. b: matrices, one vector (n,), or one vector (..., n) for each matrix of a (..., n, n)."""
    return np_operator("_npi_solve")(a, b)


def tensorinv(a: Any, ind: int = 2) -> Any:
    """Returns the tensor whose tensordot with a, over ind axes, is the identity."""
    return np_operator("_npi_tensorinv")(a, ind=ind)


def tensorsolve(a: Any, b: Any, axes: Sequence[int] | None = None) -> Any:
    """Solves tensordot(a, x, x.ndim) = b for x; the given axes of a are moved to the end first."""
    return np_operator("_npi_tensorsolve")(a, b, a_axes=tuple(axes or ()))


def eig(a: Any) -> EigResult:
    """Eigenvalues and eigenvectors (columns of length 1). Raises ValueError if eigenvalues are complex."""
    return EigResult(*np_operator("_npi_eig")(a))


def eigvals(a: Any) -> Any:
    """Eigenvalues. Raises ValueError if they are complex."""
    return np_operator("_npi_eigvals")(a)


def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """Eigenvalues, ascending, and eigenvectors (columns) of symmetric matrices; UPLO: the triangle that is read."""
    return EighResult(*np_operator("_npi_eigh")(a, UPLO=UPLO))


def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues of symmetric matrices, ascending; UPLO: the triangle that is read."""
    return np_operator("_npi_eigvalsh")(a, UPLO=UPLO)


# ------------------------------------------------------------------------------------ composed of the functions above
def qr(a: Any, mode: str = "reduced") -> Any:
    """QR decomposition: (q, r) with a = q @ r, orthonormal columns and an upper triangle; mode 'r': r alone.

    Gradients need matrices of full rank. Raises ParamError for other modes.
    """
    if mode not in ("reduced", "r"):
        raise ParamError("np.linalg.qr: mode", expected="'reduced' or 'r'", given=repr(mode))
    a = _converted(a)
    rows, columns = a.shape[-2:]
    square = a if rows >= columns else a[..., :rows]
    whole = np_operator("_linalg_gelqf")(swapaxes(_floating(square), -1, -2))
    q, r = (swapaxes(part, -1, -2) for part in whole)
    if rows < columns:
        r = concatenate([r, matmul(swapaxes(q, -1, -2), _floating(a)[..., rows:])], axis=-1)
    return r if mode == "r" else QRResult(q, r)


def _floating(a: Any) -> Any:
    return a if onp.dtype(a.dtype).name in ("float32", "float64") else a.astype("float32")


def _epsilon(dtype: Any) -> float:
    return float(onp.finfo(dtype).eps)


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The number of singular values above tol; int64. None: the largest times max(m, n) times the dtype's epsilon.

    rtol: tol as a fraction of the largest one. Vectors and scalars have rank 1 unless they are 0. hermitian has no
    effect.
    """
    A = _floating(_converted(A))
    if A.ndim < 2:
        return greater(max(np_operator("abs")(A)), 0).astype("int64")
    values = svd(A)[1]
    if rtol is not None:
        tol = max(values, axis=-1, keepdims=True) * (rtol if is_number(rtol) else expand_dims(_converted(rtol), -1))
    elif tol is None:
        tol = max(values, axis=-1, keepdims=True) * (builtins.max(A.shape[-2:]) * _epsilon(A.dtype))
    elif not is_number(tol):
        tol = expand_dims(_converted(tol), -1)
    return sum(greater(values, tol), axis=-1)


def cond(x: Any, p: Any = None) -> Any:
    """Condition numbers: norm(x, p) times norm(inv(x), p); for p None, 2, -2: ratios of singular values."""
    x = _converted(x)
    if p in (None, 2, -2):
        values = svd(x)[1]
        return values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    return norm(x, p, axis=(-2, -1)) * norm(inv(x), p, axis=(-2, -1))


def matrix_power(a: Any, n: int) -> Any:
    """Multiplies n matrices a; -n inverses if n < 0; returns the identity if n is 0."""
    a = _converted(a)
    if n < 0:
        a, n = inv(a), -n
    if n == 0:
        return zeros_like(a) + np_operator("_eye")(N=a.shape[-1], dtype=onp.dtype(a.dtype).name)
    result = None
    while True:
        if n % 2:
            result = a if result is None else matmul(result, a)
        n //= 2
        if n == 0:
            return result
        a = matmul(a, a)


def multi_dot(arrays: Sequence[Any], *, out: Any = None) -> Any:
    """Multiplies two or more arrays, in the order that needs the fewest multiplications.

    The first and the last may be vectors.
    """
    parts = [_converted(part) for part in arrays]
    if len(parts) < 2:
        raise ParamError("np.linalg.multi_dot: arrays", expected="two or more", given=str(len(parts)))
    sizes = [part.shape[0] if part.ndim == 2 else 1 for part in parts[:1]]
    sizes += [part.shape[0] for part in parts[1:]] + [parts[-1].shape[1] if parts[-1].ndim == 2 else 1]
    result = _chain(parts, _cheapest_splits(sizes), 0, len(parts) - 1)
    if out is None:
        return result
    out[...] = result
    return out


def _cheapest_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Matrix chain ordering: the best split of the product of matrices i to j, of shapes (sizes[i], sizes[i + 1])."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            prices = {k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)}
            split[i, j] = builtins.min(prices, key=prices.__getitem__)
            cost[i, j] = prices[split[i, j]]
    return split


def _chain(parts: list[Any], split: dict[tuple[int, int], int], i: int, j: int) -> Any:
    if i == j:
        return parts[i]
    k = split[i, j]
    return dot(_chain(parts, split, i, k), _chain(parts, split, k + 1, j))


def lstsq(a: Any, b: Any, rcond: Any = "warn") -> tuple[Any, Any, Any, Any]:
    """Least squares: (x, residuals, rank, s), with the x of smallest norm that minimizes the norm of a @ x - b.

    a: (m, n). b: (m,) or (m, k). residuals: sums of squares, of size 0 if the rank is below n or m <= n. rank: int32 of
    shape (). s: singular values; those up to rcond times the largest count as 0 (None and "warn": epsilon times max(m,
    n); -1: epsilon alone).
    """
    a, b = _floating(_converted(a)), _converted(b)
    rows, columns = a.shape
    limit = _epsilon(a.dtype) * builtins.max(rows, columns) if rcond in (None, "warn") else rcond
    limit = _epsilon(a.dtype) if limit == -1 else limit
    values = svd(a)[1]
    rank = sum(greater(values, max(values) * limit)).astype("int32") if values.shape[0] else array(0, dtype="int32")
    x = dot(pinv(a, limit), b)
    if rows <= columns or int(rank) < columns:
        return x, zeros((0,), dtype=a.dtype), rank, values
    residuals = sum(square(dot(a, x) - b), axis=0)
    return x, residuals if residuals.ndim else residuals.reshape(1), rank, values


# -------------------------------------------------------------------------------------- names of the Array API standard
def cross(x1: Any, x2: Any, axis: int = -1) -> Any:
    """Cross products of vectors of 3 elements along an axis."""
    return _contractions.cross(x1, x2, axis=axis)


def diagonal(x: Any, offset: int = 0) -> Any:
    """Diagonals of matrices (..., m, n) as the last axis; offset > 0: above the main diagonal."""
    return _grids.diagonal(x, offset, -2, -1)


def trace(x: Any, offset: int = 0, dtype: Any = None) -> Any:
    """Sums along the diagonals of matrices (..., m, n); integers are summed in int64 unless dtype is given."""
    return sum(diagonal(as_array(x) if dtype is None else cast(as_array(x), dtype), offset), axis=-1)


def svdvals(x: Any) -> Any:
    """Singular values of matrices (..., m, n), descending."""
    return svd(x)[1]


def matrix_norm(x: Any, keepdims: bool = False, ord: float | str | None = "fro") -> Any:
    """Norms of matrices (..., m, n); see :func:`norm` for the orders."""
    return norm(x, ord, (-2, -1), keepdims)


def vector_norm(
    x: Any, axis: int | Sequence[int] | None = None, keepdims: bool = False, ord: float | str | None = 2
) -> Any:
    """Norms of the elements along axes, taken as one vector; of all elements if axis is None."""
    x = as_array(x)
    rank = builtins.len(x.shape)
    if axis is None:
        axes = tuple(onp.arange(rank).tolist())
    else:
        axes = tuple(i % rank for i in (axis if isinstance(axis, Sequence) else (axis,)))
    rest = tuple(i for i in onp.arange(rank).tolist() if i not in axes)
    length = int(onp.prod([x.shape[i] for i in axes]))
    merged = x.transpose((*rest, *axes)) if rank > 1 else x
    found = norm(merged.reshape((*(x.shape[i] for i in rest), length)), ord, -1)
    return found.reshape(tuple(1 if i in axes else n for i, n in enumerate(x.shape))) if keepdims else found


__dir__ = dir_of(__name__)
