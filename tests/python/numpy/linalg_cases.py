"""Tables of cases for the sweeps of this folder: linear algebra and sums of products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp
from numpy_cases import FLOATS, NUMBERS, Case

REALS = ("int32", "float32", "float64")
EXACT = ("float32", "float64")


def _transposed(np: Any, x: Any) -> Any:
    return np.swapaxes(x, -1, -2)


def _symmetric(np: Any, x: Any) -> Any:
    return x + _transposed(np, x)


def _gram(np: Any, x: Any) -> Any:
    """Returns x x^T, which is symmetric and positive definite."""
    return np.matmul(x, _transposed(np, x))


def _row(np: Any, x: Any) -> Any:
    return np.expand_dims(x, -2)


def _thin_svd(np: Any, x: Any) -> tuple[Any, Any, Any]:
    return onp.linalg.svd(x, full_matrices=False) if np is onp else np.linalg.svd(x)


# Functions of factorizations that do not depend on signs and order of the factors.
def _svd_function(np: Any, x: Any) -> list[Any]:
    u, s, v = _thin_svd(np, x)
    return [s, np.matmul(u * _row(np, s * s), v), np.matmul(u * _row(np, s), _transposed(np, u))]


def _eigh_function(np: Any, x: Any, uplo: str = "L") -> list[Any]:
    w, v = np.linalg.eigh(_symmetric(np, x), uplo)
    return [w, np.matmul(v * _row(np, w * w * w), _transposed(np, v))]


def _real(np: Any, x: Any) -> Any:
    """Drops imaginary parts, because NumPy 2.5 returns complex numbers even if all eigenvalues are real."""
    return onp.real(x) if np is onp else x


def _eig_function(np: Any, x: Any, y: Any) -> list[Any]:
    w, v = (_real(np, part) for part in np.linalg.eig(np.matmul(_gram(np, x), _symmetric(np, y))))
    return [np.sum(np.sin(w)), np.sum(v * v * _row(np, w), axis=-1)]


def _eigvals_function(np: Any, x: Any, y: Any) -> Any:
    return np.sum(np.cos(_real(np, np.linalg.eigvals(np.matmul(_gram(np, x), _symmetric(np, y))))), axis=-1)


def _qr_function(np: Any, x: Any) -> list[Any]:
    q, r = np.linalg.qr(x)
    return [np.matmul(q, _transposed(np, q)), np.matmul(_transposed(np, r), r), q * np.sign(_diagonal(np, r))]


def _diagonal(np: Any, r: Any) -> Any:
    return np.einsum("...ii->...i", r[..., : r.shape[-2]])[..., None, :]


def _linalg(name: str, shape: tuple[int, ...], call: Callable[..., Any] | None = None, **options: Any) -> Case:
    """A case that calls a function of mx.np.linalg with one matrix or stack of matrices."""
    call = call or (lambda np, *arrays: getattr(np.linalg, name)(*arrays))
    options = {"dtypes": REALS, "whole": "float", "call": call, **options}
    return Case(name, (shape,), **options)


def _norm(shape: tuple[int, ...], order: Any, axis: Any, keepdims: bool = False, **options: Any) -> Case:
    return Case(
        "norm",
        (shape,),
        {"ord": order, "axis": axis, "keepdims": keepdims},
        dtypes=options.pop("dtypes", REALS),
        whole="float",
        call=lambda np, x: np.linalg.norm(x, ord=order, axis=axis, keepdims=keepdims),
        **options,
    )


NORMS = [
    *(_norm(shape, None, None) for shape in ((5,), (2, 3), (2, 3, 4), (0,), (0, 3))),
    _norm((2, 3), None, None, True, dtypes=("int32", *FLOATS)),
    *(
        _norm(shape, order, axis, keepdims)
        for order in (1, 2, 3, 2.5, -1, onp.inf, -onp.inf)
        for shape, axis, keepdims in (((5,), None, False), ((2, 3, 4), 1, False), ((2, 3), -1, True))
    ),
    _norm((5,), 0, None, smooth=False),
    _norm((2, 3), None, 0),
    _norm((2, 3, 4), None, (0, 2)),
    *(
        _norm(shape, order, axis, keepdims)
        for order in (1, -1, 2, -2, onp.inf, -onp.inf, "fro", "nuc")
        for shape, axis, keepdims in (
            ((3, 4), None, False),
            ((2, 3, 4), (0, 2), False),
            ((2, 3, 4), (2, 0), True),
            ((2, 3, 4), (-1, 1), False),
        )
    ),
]

MATRICES = [
    *(
        _linalg(name, shape)
        for name in ("inv", "det", "slogdet")
        for shape in ((3, 3), (2, 3, 3), (1, 1), (0, 3, 3), (2, 0, 0))
    ),
    *(_linalg("svd", shape, _svd_function) for shape in ((3, 3), (2, 4), (4, 2), (2, 3, 2), (0, 2, 3))),
    *(
        _linalg("cholesky", shape, lambda np, x: np.linalg.cholesky(_gram(np, x)), low=0.5, dtypes=EXACT)
        for shape in ((3, 3), (2, 2, 2))
    ),
    *(_linalg("eigh", shape, _eigh_function) for shape in ((3, 3), (2, 3, 3), (1, 1), (0, 2, 2))),
    _linalg("eigh", (3, 3), lambda np, x: _eigh_function(np, x, "U"), kwargs={"UPLO": "U"}),
    *(
        _linalg(
            "eigvalsh", (3, 3), lambda np, x, u=uplo: np.linalg.eigvalsh(_symmetric(np, x), u), kwargs={"UPLO": uplo}
        )
        for uplo in "LU"
    ),
    Case("eig", ((3, 3), (3, 3)), dtypes=EXACT, low=-1, high=1, call=_eig_function),
    Case("eig", ((2, 2, 2), (2, 2, 2)), dtypes=EXACT, low=-1, high=1, call=_eig_function),
    Case("eigvals", ((2, 3, 3), (2, 3, 3)), dtypes=EXACT, low=-1, high=1, call=_eigvals_function),
    *(_linalg("pinv", shape, dtypes=EXACT) for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2))),
    _linalg(
        "pinv", (3, 3), lambda np, x: np.linalg.pinv(_symmetric(np, x), hermitian=True), kwargs={"hermitian": True}
    ),
    *(_linalg("qr", shape, _qr_function, dtypes=EXACT) for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2))),
    *(
        _linalg("tensorinv", shape, lambda np, x, i=ind: np.linalg.tensorinv(x, i), kwargs={"ind": ind}, dtypes=EXACT)
        for shape, ind in (((4, 2, 2), 1), ((2, 3, 3, 2), 2), ((3, 2, 6), 2))
    ),
    *(
        _linalg("matrix_power", (2, 2), lambda np, x, n=n: np.linalg.matrix_power(x, n), kwargs={"n": n}, dtypes=EXACT)
        for n in (-2, 0, 1, 3, 6)
    ),
    *(
        _linalg("cond", (3, 3), lambda np, x, p=p: np.linalg.cond(x, p), kwargs={"p": p}, dtypes=EXACT)
        for p in (None, 1, 2, -2, onp.inf, "fro")
    ),
    _linalg("matrix_rank", (3, 2), result="int64", smooth=False),
    _linalg(
        "matrix_rank",
        (2, 3, 3),
        lambda np, x: np.linalg.matrix_rank(x[..., :1] * x[..., :1, :]),
        result="int64",
        smooth=False,
    ),
]

SYSTEMS = [
    *(
        Case("solve", shapes, dtypes=REALS, whole="float", call=lambda np, a, b: np.linalg.solve(a, b))
        for shapes in (
            ((3, 3), (3, 2)),
            ((3, 3), (3,)),
            ((2, 3, 3), (2, 3, 2)),
            ((2, 1, 3, 3), (4, 3, 2)),
            ((3, 3), (0, 3, 2)),
        )
    ),
    Case("tensorsolve", ((2, 3, 6), (2, 3)), dtypes=EXACT, call=lambda np, a, b: np.linalg.tensorsolve(a, b)),
    Case(
        "tensorsolve",
        ((6, 2, 3), (2, 3)),
        {"axes": (0,)},
        dtypes=EXACT,
        call=lambda np, a, b: np.linalg.tensorsolve(a, b, axes=(0,)),
    ),
    *(
        Case("tensorsolve", shapes, dtypes=EXACT, call=lambda np, a, b: np.linalg.tensorsolve(a, b))
        for shapes in (((1, 1, 1), (1, 1, 1)), ((1, 1), (1, 1, 1)), ((1, 1), (1, 1, 1, 1, 1)))
    ),
    Case("multi_dot", ((2, 3), (3, 4), (4, 2)), dtypes=EXACT, call=lambda np, *x: np.linalg.multi_dot(x)),
    Case("multi_dot", ((3,), (3, 4), (4, 2), (2,)), dtypes=EXACT, call=lambda np, *x: np.linalg.multi_dot(x)),
]

_SMALL = ("bool", "int32", "int64", "float32", "float64")
CONTRACTIONS = [
    *(
        Case(
            "einsum",
            shapes,
            {"subscripts": subscripts},
            dtypes=_SMALL,
            call=lambda np, *arrays, s=subscripts: np.einsum(s, *arrays),
        )
        for subscripts, shapes in (
            ("ij,jk->ik", ((2, 3), (3, 4))),
            ("ij,jk", ((2, 3), (3, 4))),
            ("ii", ((3, 3),)),
            ("ii->i", ((3, 3),)),
            ("ij->", ((2, 3),)),
            ("ji", ((2, 3),)),
            ("ij -> j", ((2, 3),)),
            ("i,i", ((3,), (3,))),
            ("i,j->ij", ((2,), (3,))),
            ("i,j->ji", ((2,), (3,))),
            ("ij,ij->ij", ((2, 3), (2, 3))),
            ("ij,ij->i", ((2, 3), (2, 3))),
            ("bij,bjk->bik", ((2, 3, 4), (2, 4, 2))),
            ("...ij,...jk->...ik", ((2, 3, 4), (4, 2))),
            ("...ij,...jk", ((2, 1, 3, 4), (5, 4, 2))),
            ("...->...", ((2, 3),)),
            ("i...->...", ((2, 3),)),
            ("...i->...", ((2, 3),)),
            ("i...,i...->...", ((2, 3), (2, 1))),
            ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 2))),
            ("ab,bc,ca->", ((2, 3), (3, 4), (4, 2))),
            ("ijk,jil->kl", ((2, 3, 4), (3, 2, 5))),
            ("iji->j", ((2, 3, 2),)),
            ("iijj->ij", ((2, 2, 3, 3),)),
            ("ij,jk->k", ((2, 3), (3, 4))),
            ("i,->i", ((3,), ())),
            (",", ((), ())),
            ("ij,j->ij", ((2, 1), (3,))),
            ("ij,jk", ((2, 0), (0, 3))),
            ("abc,cd,de,ef->abf", ((2, 2, 3), (3, 4), (4, 3), (3, 2))),
            ("Aa,aB->AB", ((2, 3), (3, 2))),
        )
    ),
    *(
        Case(
            "einsum",
            ((2, 3), (3, 4), (4, 5), (5, 2)),
            {"optimize": optimize},
            dtypes=_SMALL,
            low=-1,
            high=1,
            call=lambda np, *arrays, o=optimize: np.einsum("ij,jk,kl,lm->im", *arrays, optimize=o),
        )
        for optimize in (False, True, "greedy")
    ),
    *(
        Case(
            "tensordot", shapes, {"axes": axes}, dtypes=_SMALL, call=lambda np, a, b, x=axes: np.tensordot(a, b, axes=x)
        )
        for shapes, axes in (
            (((2, 3, 4), (3, 4, 2)), 2),
            (((2,), (3,)), 0),
            (((2, 3), (3, 2)), 1),
            (((2, 3, 4), (4, 5, 2)), ([0, 2], [2, 0])),
            (((2, 3, 4), (5, 3)), (1, 1)),
            (((2, 3), (4, 2)), (0, 1)),
            (((), ()), 0),
            (((0, 3), (3, 2)), 1),
            (((2, 0), (0, 3)), 1),
            (((2, 3), (3, 2)), ((-1,), (0,))),
        )
    ),
    *(
        Case("inner", shapes, dtypes=_SMALL)
        for shapes in (((3,), (3,)), ((2, 3), (4, 3)), ((2, 3), ()), ((2, 1, 3), (3,)))
    ),
    *(Case("outer", shapes, dtypes=_SMALL) for shapes in (((3,), (2,)), ((2, 2), (3,)), ((), (3,)), ((0,), (2,)))),
    *(Case("vdot", shapes, dtypes=_SMALL) for shapes in (((3,), (3,)), ((2, 3), (3, 2)), ((), ()), ((0,), (0,)))),
    *(
        Case("kron", shapes, dtypes=_SMALL)
        for shapes in (((2, 3), (3, 2)), ((2,), (2, 2)), ((), (2,)), ((2, 1, 2), (3,)), ((0,), (2,)))
    ),
    *(
        Case("cross", shapes, kwargs, dtypes=NUMBERS)
        for shapes, kwargs in (
            (((3,), (3,)), {}),
            (((2, 3), (3,)), {}),
            (((3, 2), (2, 3)), {"axisa": 0, "axisc": 0}),
            (((3, 4), (3, 4)), {"axis": 0}),
            (((2, 1, 3), (4, 3)), {"axisc": 1}),
            (((0, 3), (3,)), {}),
        )
    ),
    *(
        Case("trace", (shape,), kwargs, dtypes=("int32", "int64", *FLOATS))
        for shape, kwargs in (
            ((3, 3), {}),
            ((2, 4), {"offset": 1}),
            ((4, 2), {"offset": -2}),
            ((2, 2), {"offset": 5}),
            ((3, 2, 4), {"axis1": 0, "axis2": -1}),
            ((3, 2, 4), {"axis1": 2, "axis2": 0, "offset": -1}),
            ((0, 3), {}),
            ((0, 2, 2), {"axis1": 1, "axis2": 2}),
        )
    ),
    Case("trace", ((3, 3),), dtypes=("bool",), whole="int64"),
]

CASES = [*NORMS, *MATRICES, *SYSTEMS, *CONTRACTIONS]
