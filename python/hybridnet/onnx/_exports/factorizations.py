"""Linear algebra that ONNX lacks: algorithms in Loops, over stacks of matrices, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._export_errors import does_not_follow
from .._export_table import export_form, no_form
from .._export_values import Number, Open, Tensor
from .shapes import make_diagonal, on_diagonal, take_diagonal


def _wide(g: Any, x: Tensor) -> Tensor:
    return g.cast(x, "float64")


def _is_place(g: Any, number: Tensor, count: Number) -> Tensor:
    """A vector that is 1 at `number` and 0 elsewhere."""
    return g.cast(g.emit("Equal", g.iota(count), number), "float64")


def _row(g: Any, x: Tensor, number: Tensor) -> Tensor:
    """One row of each matrix."""
    made = g.emit("Gather", x, number, axis=x.ndim - 2)
    made.spec = g.reduce_spec(x, [-2])
    return made


def _column(g: Any, x: Tensor, number: Tensor) -> Tensor:
    """One column of each matrix."""
    made = g.emit("Gather", x, number, axis=x.ndim - 1)
    made.spec = g.reduce_spec(x, [-1])
    return made


def _outer(g: Any, a: Tensor, b: Tensor) -> Tensor:
    """Products of all pairs of the last axes."""
    return g.emit("Mul", g.unsqueeze(a, [a.ndim]), g.unsqueeze(b, [b.ndim - 1]))


def _times_vector(g: Any, matrix: Tensor, vector: Tensor) -> Tensor:
    product = g.matmul(matrix, g.unsqueeze(vector, [vector.ndim]))
    return g.squeeze(product, [product.ndim - 1])


def _identity(g: Any, like: Tensor) -> Tensor:
    """Identity matrices in the shape of `like`."""
    size = like.dim(-1)
    return g.expand(g.cast(on_diagonal(g, size, size, 0), "float64"), like.dims)


# ----------------------------------------------------------------------------------------------------------- triangles
def _triangle(g: Any, x: Tensor, lower: bool) -> Tensor:
    if g.opset >= 14:
        return g.emit("Trilu", x, upper=int(not lower))
    rows, columns = g.unsqueeze(g.iota(x.dim(-2)), [1]), g.iota(x.dim(-1))
    inside = g.emit("GreaterOrEqual", rows, columns) if lower else g.emit("LessOrEqual", rows, columns)
    return g.where(inside, x, 0)


@export_form("_linalg_keep_triangle")
def _keep_triangle(g: Any, node: Any) -> Tensor:
    x, p = node.inputs[0], node.params
    kept = _triangle(g, x, p["lower"])
    if p["diagonal"] != p["factor"]:
        on = on_diagonal(g, x.dim(-2), x.dim(-1), 0)
        return g.emit("Mul", kept, g.where(on, g.like(x, p["diagonal"]), p["factor"]))
    return g.emit("Mul", kept, p["factor"]) if p["factor"] != 1 else kept


def solve_triangular(g: Any, a: Tensor, b: Tensor, lower: bool) -> Tensor:
    """X with A X = B, row by row. The other triangle of A is multiplied by zeros, so it must be finite."""
    count = a.dim(-1)

    def body(number: Tensor, carried: list[Tensor]) -> tuple[None, list[Tensor], list[Tensor]]:
        solved = carried[0]
        place = number if lower else g.emit("Sub", g.number(count - 1, "int64"), number)
        factors = _row(g, a, place)
        known = g.squeeze(g.matmul(g.unsqueeze(factors, [factors.ndim - 1]), solved), [-2])
        pivot = g.emit("Gather", factors, place, axis=factors.ndim - 1)
        pivot.spec = g.reduce_spec(factors, [-1])
        row = g.emit("Div", g.emit("Sub", _row(g, b, place), known), g.unsqueeze(pivot, [pivot.ndim]))
        return None, [g.emit("Add", solved, _outer(g, _is_place(g, place, count), row), spec=b.spec)], []

    carried, _ = g.loop(g.number(count, "int64"), None, [g.full(b.dims, 0, "float64")], body)
    return carried[0]


@export_form("_linalg_trsm")
def _trsm(g: Any, node: Any) -> Tensor:
    a, b = (_wide(g, x) for x in node.inputs)
    p = node.params
    lower, transpose = p["lower"], p["transpose"]
    if p["rightside"]:  # X op(A) = B is op(A)^T X^T = B^T
        b, transpose = g.swap_last(b), not transpose
    if transpose:
        a, lower = g.swap_last(a), not lower
    made = solve_triangular(g, a, b, lower)
    if p["rightside"]:
        made = g.swap_last(made)
    return g.emit("Mul", made, p["alpha"]) if p["alpha"] != 1 else made


@export_form("_linalg_trmm")
def _trmm(g: Any, node: Any) -> Tensor:
    a, b = node.inputs
    p = node.params
    a = _triangle(g, a, p["lower"])
    a = g.swap_last(a) if p["transpose"] else a
    made = g.matmul(b, a) if p["rightside"] else g.matmul(a, b)
    return g.emit("Mul", made, p["alpha"]) if p["alpha"] != 1 else made


# ------------------------------------------------------------------------------------------------------------ Cholesky
@export_form("_linalg_potrf")
def _potrf(g: Any, node: Any) -> Tensor:
    """Computes the Cholesky factor column by column."""
    a = _wide(g, node.inputs[0])
    lower = node.params["lower"]
    if not lower:
        a = g.swap_last(a)
    count = a.dim(-1)

    def body(number: Tensor, carried: list[Tensor]) -> tuple[None, list[Tensor], list[Tensor]]:
        factor = carried[0]
        rest = g.emit("Sub", _column(g, a, number), _times_vector(g, factor, _row(g, factor, number)))
        pivot = g.emit("Gather", rest, number, axis=rest.ndim - 1)
        pivot.spec = g.reduce_spec(rest, [-1])
        below = g.cast(g.emit("GreaterOrEqual", g.iota(count), number), "float64")
        scaled = g.emit("Div", rest, g.unsqueeze(g.emit("Sqrt", pivot), [pivot.ndim]))
        column = g.emit("Mul", scaled, below)
        return None, [g.emit("Add", factor, _outer(g, column, _is_place(g, number, count)), spec=a.spec)], []

    carried, _ = g.loop(g.number(count, "int64"), None, [g.full(a.dims, 0, "float64")], body)
    return carried[0] if lower else g.swap_last(carried[0])


@export_form("_linalg_potri")
def _potri(g: Any, node: Any) -> Tensor:
    a = _wide(g, node.inputs[0])
    if not node.params["lower"]:
        a = g.swap_last(a)
    inverse = solve_triangular(g, a, _identity(g, a), lower=True)
    return g.matmul(g.swap_last(inverse), inverse)


# --------------------------------------------------------------------------------------------------------- elimination
def solve(g: Any, a: Tensor, b: Tensor) -> Tensor:
    """X with A X = B, by elimination with exchanges of rows."""
    count, width = a.dim(-1), a.dim(-1) + b.dim(-1)
    joined = g.concat([a, b], a.ndim - 1)

    def body(number: Tensor, carried: list[Tensor]) -> tuple[None, list[Tensor], list[Tensor]]:
        system = carried[0]
        places = g.iota(count)
        column = g.emit("Abs", _column(g, system, number))
        open_rows = g.emit("GreaterOrEqual", places, number)
        chosen = g.emit("ArgMax", g.where(open_rows, column, -1), axis=column.ndim - 1, keepdims=1)
        chosen.spec = g.reduce_spec(column, [-1], keepdims=True, dtype="int64")
        is_here, is_there = g.emit("Equal", places, number), g.emit("Equal", places, chosen)
        order = g.where(is_here, chosen, g.where(is_there, number, places))
        exchange = g.cast(g.emit("Equal", g.unsqueeze(order, [order.ndim]), places), "float64")
        system = g.matmul(exchange, system)
        top = _row(g, system, number)
        pivot = g.emit("Gather", top, number, axis=top.ndim - 1)
        pivot.spec = g.reduce_spec(top, [-1])
        top = g.emit("Div", top, g.unsqueeze(pivot, [pivot.ndim]))
        here = _is_place(g, number, count)
        factors = g.emit("Sub", _column(g, system, number), here)
        return None, [g.emit("Sub", system, _outer(g, factors, top), spec=joined.spec)], []

    # The row of the pivot: s - (p - 1) s / p = s / p.
    carried, _ = g.loop(g.number(count, "int64"), None, [joined], body)
    return g.slice(carried[0], a.ndim - 1, count, width)


@export_form("_linalg_inverse")
def _inverse(g: Any, node: Any) -> Tensor:
    a = _wide(g, node.inputs[0])
    return solve(g, a, _identity(g, a))


@export_form("_linalg_inverse_or_zero")
def _inverse_or_zero(g: Any, node: Any) -> Tensor:
    a = _wide(g, node.inputs[0])
    made = solve(g, a, _identity(g, a))
    bad = g.emit("Or", g.emit("IsNaN", made), g.emit("IsInf", made))
    worst = g.reduce("Max", g.cast(bad, "int32"), [-2, -1], keepdims=True)
    return g.where(worst, 0, made)


@export_form("_np_solve_matrices")
def _solve_matrices(g: Any, node: Any) -> Tensor:
    return solve(g, *(_wide(g, x) for x in node.inputs))


@export_form("_linalg_det")
def _det(g: Any, node: Any) -> Tensor:
    return g.reshape(g.emit("Det", node.inputs[0]), node.dims())


@export_form("_linalg_slogdet")
def _slogdet(g: Any, node: Any) -> list[Tensor]:
    determinant = g.reshape(g.emit("Det", node.inputs[0]), node.dims())
    return [g.emit("Sign", determinant), g.emit("Log", g.emit("Abs", determinant))]


# --------------------------------------------------------------------------------------------------------- orthonormal
def _scalar(g: Any, x: Tensor) -> Tensor:
    """One number for each matrix, to be multiplied with it."""
    return g.unsqueeze(x, [x.ndim, x.ndim + 1])


@export_form("_linalg_gelqf")
def _gelqf(g: Any, node: Any) -> list[Tensor]:
    """Householder's reflections from the right, one for each row, with LAPACK's choice of signs."""
    a = _wide(g, node.inputs[0])
    rows, columns = a.dims[-2:]

    def body(number: Tensor, carried: list[Tensor]) -> tuple[None, list[Tensor], list[Tensor]]:
        work, basis = carried
        row = _row(g, work, number)
        places = g.iota(columns)
        kept = g.emit("Mul", row, g.cast(g.emit("GreaterOrEqual", places, number), "float64"))
        here = _is_place(g, number, columns)
        first = g.reduce("Sum", g.emit("Mul", kept, here), [-1], keepdims=True)
        squares = g.reduce("Sum", g.emit("Mul", kept, kept), [-1], keepdims=True)
        size = g.where(g.emit("Less", first, 0), g.emit("Sqrt", squares), g.emit("Neg", g.emit("Sqrt", squares)))
        mirror = g.emit("Sub", kept, g.emit("Mul", size, here))
        length = g.reduce("Sum", g.emit("Mul", mirror, mirror), [-1], keepdims=True)
        is_done = g.emit("Equal", g.emit("Mul", first, first), squares)
        factor = g.where(is_done, 0, g.emit("Div", 2.0, g.where(is_done, 1, length)))
        factor = g.unsqueeze(factor, [factor.ndim])

        def reflected(x: Tensor) -> Tensor:
            along = _times_vector(g, x, mirror)
            return g.emit("Sub", x, g.emit("Mul", _outer(g, along, mirror), factor), spec=x.spec)

        return None, [reflected(work), reflected(basis)], []

    square = g.full([*a.dims[:-2], columns, columns], 0, "float64")
    carried, _ = g.loop(g.number(rows, "int64"), None, [a, _identity(g, square)], body)
    work, basis = carried
    lower = _triangle(g, g.slice(work, a.ndim - 1, 0, rows), lower=True)
    return [g.slice(g.swap_last(basis), a.ndim - 2, 0, rows), lower]


_MOST_SWEEPS = 30


def _rotations(g: Any, count: int) -> Tensor:
    """All pairs of axes of one sweep of Jacobi's method."""
    pairs = [(p, q) for p in range(count) for q in range(p + 1, count)] or [(0, 0)]
    return g.const(np.array(pairs, dtype="int64"))


def _with_normalized_sign(g: Any, rows: Tensor) -> Tensor:
    """Makes the first of the largest elements of each row positive."""
    place = g.emit("ArgMax", g.emit("Abs", rows), axis=rows.ndim - 1, keepdims=1)
    place.spec = g.reduce_spec(rows, [-1], keepdims=True, dtype="int64")
    largest = g.emit("GatherElements", rows, place, axis=rows.ndim - 1, spec=place.spec)
    return g.where(g.emit("Less", largest, 0), g.emit("Neg", rows), rows)


@export_form("_linalg_syevd")
def _syevd(g: Any, node: Any) -> list[Tensor]:
    """Jacobi's rotations until all elements beside the diagonal are zero."""
    a = _wide(g, node.inputs[0])
    count = a.dim(-1)
    if isinstance(count, Open):
        raise does_not_follow("the order of the rotations", count)
    on = g.cast(on_diagonal(g, count, count, 0), "float64")
    low = _triangle(g, a, lower=True)
    a = g.emit("Sub", g.emit("Add", low, g.swap_last(low)), g.emit("Mul", low, on), spec=a.spec)
    pairs = _rotations(g, count)

    def element(x: Tensor, row: Tensor, column: Tensor) -> Tensor:
        return _scalar(g, g.reduce("Sum", g.emit("Mul", x, _outer(g, row, column)), [-2, -1], keepdims=False))

    def body(number: Tensor, carried: list[Tensor]) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        matrix, vectors = carried
        pair = g.emit("Gather", pairs, g.emit("Mod", number, pairs.dim(0)), axis=0)
        pair.spec = g.const([0, 0]).spec
        p, q = (_is_place(g, g.slice(pair, 0, i, i + 1), count) for i in (0, 1))
        app, aqq, apq = element(matrix, p, p), element(matrix, q, q), element(matrix, p, q)
        is_zero = g.emit("LessOrEqual", g.emit("Abs", apq), 1e-300)
        ratio = g.emit("Div", g.emit("Sub", aqq, app), g.emit("Mul", g.where(is_zero, 1, apq), 2))
        root = g.emit("Sqrt", g.emit("Add", g.emit("Mul", ratio, ratio), 1))
        tangent = g.emit(
            "Div", g.where(g.emit("Less", ratio, 0), g.like(ratio, -1), 1), g.emit("Add", g.emit("Abs", ratio), root)
        )
        tangent = g.where(is_zero, 0, tangent)
        cosine = g.emit("Reciprocal", g.emit("Sqrt", g.emit("Add", g.emit("Mul", tangent, tangent), 1)))
        sine = g.emit("Mul", tangent, cosine)
        square = g.emit("Add", _outer(g, p, p), _outer(g, q, q))
        rotation = g.emit("Add", g.emit("Mul", g.emit("Sub", cosine, 1), square), on)
        rotation = g.emit("Add", rotation, g.emit("Mul", sine, g.emit("Sub", _outer(g, p, q), _outer(g, q, p))))
        matrix = g.matmul(g.matmul(g.swap_last(rotation), matrix), rotation)
        aside = g.emit("Mul", matrix, g.emit("Sub", 1, on))
        left = g.reduce("Max", g.emit("Abs", aside), range(a.ndim), keepdims=False)
        largest = g.reduce("Max", g.emit("Abs", matrix), range(a.ndim), keepdims=False)
        again = g.emit("Greater", left, g.emit("Mul", largest, 1e-17))
        return again, [matrix, g.matmul(vectors, rotation)], []

    limit = g.const(_MOST_SWEEPS * max(1, count * (count - 1) // 2), "int64")
    carried, _ = g.loop(limit, g.const(count > 1), [a, _identity(g, a)], body)
    values = take_diagonal(g, carried[0], 0)
    values, order = g.emit("TopK", values, g.ints([count]), axis=-1, largest=0, outputs=2, spec=values.spec)
    order.dtype, order.spec = "int64", values.spec
    rows = g.swap_last(carried[1])
    places = g.expand(g.unsqueeze(order, [order.ndim]), rows.dims)
    rows = g.emit("GatherElements", rows, places, axis=rows.ndim - 2, spec=rows.spec)
    return [_with_normalized_sign(g, rows), values]


no_form("a factorization of general matrices by iterations, which ONNX has no operator for",
        "_npi_eig _npi_eigvals _npi_svd _npi_pinv _npi_pinv_scalar_rcond _np_singular_values")  # fmt: skip


# ----------------------------------------------------------------------------------------------------------- diagonals
@export_form("_linalg_makediag")
def _makediag(g: Any, node: Any) -> Tensor:
    return make_diagonal(g, node.inputs[0], int(node.params["offset"]))


@export_form("_linalg_extractdiag")
def _extractdiag(g: Any, node: Any) -> Tensor:
    return take_diagonal(g, node.inputs[0], int(node.params["offset"]))


@export_form("_linalg_sumlogdiag")
def _sumlogdiag(g: Any, node: Any) -> Tensor:
    diagonal = take_diagonal(g, node.inputs[0], 0)
    return g.reshape(g.reduce("Sum", g.emit("Log", diagonal), [-1], keepdims=False), node.dims())


def _places_of_triangle(size: int, p: Any) -> tuple[np.ndarray, np.ndarray]:
    offset = int(p["offset"])
    # An offset above the diagonal selects the upper triangle from there, one below the lower.
    lower = p["lower"] if offset == 0 else offset < 0
    return np.tril_indices(size, offset) if lower else np.triu_indices(size, offset)


@export_form("_linalg_extracttrian")
def _extracttrian(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    size = x.dim(-1)
    if isinstance(size, Open):
        raise does_not_follow("the places of a triangle", size)
    rows, columns = _places_of_triangle(size, node.params)
    flat = g.reshape(x, [*x.dims[:-2], size * size])
    return g.emit("Gather", flat, g.ints(rows * size + columns), axis=-1)


@export_form("_linalg_maketrian")
def _maketrian(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    size = node.dims()[-1]
    if isinstance(size, Open):
        raise does_not_follow("the places of a triangle", size)
    rows, columns = _places_of_triangle(size, node.params)
    source = np.full(size * size, len(rows))
    source[rows * size + columns] = np.arange(len(rows))
    padded = g.pad(x, [0] * x.ndim, [*[0] * (x.ndim - 1), 1])
    return g.reshape(g.emit("Gather", padded, g.ints(source), axis=-1), node.dims())
