"""Matrix products absorb transposes of operands, a factor and a summand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from numpy.testing import assert_allclose, assert_array_equal

from rewrite.graphs import Function

Case = tuple[Callable[..., Any], Callable[..., Any], list[tuple[int, ...]], str]
# Name -> (expression, the same in NumPy, shapes, the product that remains).
ABSORBED: dict[str, Case] = {
    "right": (lambda F, a, b: F.dot(a, F.transpose(b)), lambda a, b: a @ b.T, [(7, 5), (6, 5)], "dot"),
    "left": (lambda F, a, b: F.dot(a.T, b), lambda a, b: a.T @ b, [(5, 7), (5, 6)], "dot"),
    "both": (lambda F, a, b: F.dot(a.T, b.T), lambda a, b: a.T @ b.T, [(5, 7), (6, 5)], "dot"),
    "flag and transpose": (
        lambda F, a, b: F.dot(a, F.transpose(b, axes=(1, 0)), transpose_b=True),
        lambda a, b: a @ b,
        [(7, 5), (5, 6)],
        "dot",
    ),
    "swapped": (
        lambda F, a, b: F.batch_dot(a, F.SwapAxis(b, dim1=1, dim2=2)),
        lambda a, b: a @ b.swapaxes(1, 2),
        [(3, 7, 5), (3, 6, 5)],
        "batch_dot",
    ),
    "stack of stacks": (
        lambda F, a, b: F.batch_dot(F.transpose(a, axes=(0, 1, 3, 2)), b),
        lambda a, b: a.swapaxes(2, 3) @ b,
        [(2, 3, 5, 7), (2, 3, 5, 6)],
        "batch_dot",
    ),
    "result": (lambda F, a, b: F.transpose(F.dot(a, b)), lambda a, b: (a @ b).T, [(7, 5), (5, 6)], "dot"),
    "results": (
        lambda F, a, b: F.SwapAxis(F.batch_dot(a, b, transpose_b=True), dim1=-1, dim2=1),
        lambda a, b: b @ a.swapaxes(1, 2),
        [(3, 7, 5), (3, 6, 5)],
        "batch_dot",
    ),
    "dense": (
        lambda F, a, w: F.FullyConnected(a, w.T, num_hidden=6, no_bias=True),
        lambda a, w: a @ w,
        [(7, 5), (5, 6)],
        "dot",
    ),
    "dense with bias": (
        lambda F, a, w, c: F.FullyConnected(a, w.T, c, num_hidden=6),
        lambda a, w, c: a @ w + c,
        [(7, 5), (5, 6), (6,)],
        "dot",
    ),
    "factor": (lambda F, a, b: F.dot(a, b) * 0.25, lambda a, b: a @ b / 4, [(7, 5), (5, 6)], "_scaled_product"),
    "divisor": (
        lambda F, a, b: F.batch_dot(a, b, transpose_b=True) / 3,
        lambda a, b: a @ b.swapaxes(1, 2) / 3,
        [(3, 17, 9), (3, 16, 9)],
        "_scaled_product",
    ),
    "summand": (
        lambda F, a, b, c: F.dot(a, b) + c,
        lambda a, b, c: a @ b + c,
        [(33, 40), (40, 35), (33, 35)],
        "_scaled_product",
    ),
    "all of them": (
        lambda F, a, b, c: c + F.batch_dot(F.SwapAxis(a, dim1=1, dim2=2), b) * -0.5,
        lambda a, b, c: c - a.swapaxes(1, 2) @ b / 2,
        [(2, 40, 33), (2, 40, 35), (2, 33, 35)],
        "_scaled_product",
    ),
}
RTOL = {"float64": 1e-12, "float32": 1e-5}


def _run(net: gluon.HybridBlock, arrays: list[np.ndarray], head: np.ndarray) -> list[np.ndarray]:
    inputs = [mx.nd.array(a, dtype=a.dtype) for a in arrays]
    for array in inputs:
        array.attach_grad()
    with autograd.record():
        out = net(*inputs)
    out.backward(mx.nd.array(head, dtype=head.dtype))
    return [out.asnumpy(), *(array.grad.asnumpy() for array in inputs)]


def _plan_of_prediction(net: gluon.HybridBlock, arrays: list[np.ndarray]) -> str:
    net(*(mx.nd.array(a, dtype=a.dtype) for a in arrays))
    return net.plan_text()


@pytest.mark.parametrize("case", ABSORBED)
@pytest.mark.parametrize("dtype", RTOL)
def test_values_and_gradients_are_those_of_the_parts(case, dtype, rng):
    function, expected, shapes, product = ABSORBED[case]
    arrays = [rng.normal(size=shape).astype(dtype) for shape in shapes]
    head = rng.normal(size=expected(*arrays).shape).astype(dtype)
    net = Function(function)
    net.hybridize()
    got, apart = _run(net, arrays, head), _run(Function(function), arrays, head)
    for a, b in zip(got, apart, strict=True):
        assert_allclose(a, b, rtol=RTOL[dtype], atol=RTOL[dtype] * np.abs(b).max())
    wide = [a.astype("float64") for a in arrays]
    assert_allclose(got[0], expected(*wide), rtol=RTOL[dtype], atol=RTOL[dtype] * np.abs(apart[0]).max())
    plan = _plan_of_prediction(net, arrays)
    assert f" {product} " in plan or (dtype, case) == ("float64", "summand")  # a summand is absorbed in float32 only
    assert "transpose " not in plan
    assert "SwapAxis" not in plan


@pytest.mark.parametrize("case", ["factor", "divisor", "summand", "all of them"])
def test_infinities_and_nan_are_kept(case, rng):
    function, _, shapes, _ = ABSORBED[case]
    arrays = [rng.normal(size=shape).astype("float32") for shape in shapes]
    for array, value in zip(arrays, (np.inf, -np.inf, np.nan), strict=False):
        array.flat[3] = value
    arrays[0].flat[-1] = np.nan
    nets = []
    for words in ("fast_run,-gemm_absorb", "fast_run"):
        net = Function(function)
        net.hybridize(passes=words)
        nets.append(net(*(mx.nd.array(a) for a in arrays)).asnumpy())
    assert_array_equal(np.isnan(nets[1]), np.isnan(nets[0]))
    assert_allclose(nets[1], nets[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shapes", [[(0, 5), (5, 6)], [(7, 0), (0, 6)], [(7, 5), (5, 0)], [(1, 1), (1, 1)]])
def test_empty_and_single_matrices(shapes, rng):
    arrays = [rng.normal(size=shape).astype("float32") for shape in shapes]
    net = Function(lambda F, a, b: F.transpose(F.dot(a, b.T, transpose_b=True)) * 0.5)
    net.hybridize()
    out = net(*(mx.nd.array(a, dtype="float32") for a in arrays)).asnumpy()
    assert_allclose(out, (arrays[0] @ arrays[1]).T / 2, rtol=1e-6)


def test_second_derivatives_go_through_the_flags(rng):
    a, b = (mx.nd.array(rng.normal(size=size), dtype="float64") for size in ((3, 4), (5, 4)))
    found = []
    for hybridized in (False, True):
        net = Function(lambda F, a, b: F.dot(a, b.T) * 0.5)
        net.hybridize(active=hybridized)
        for array in (a, b):
            array.attach_grad()
        with autograd.record():
            slope = autograd.grad((net(a, b) ** 3).sum(), [a], create_graph=True)[0]
            (slope * slope).sum().backward()
        found.append((a.grad.asnumpy().copy(), b.grad.asnumpy().copy()))
    for one, other in zip(*found, strict=True):
        assert_allclose(one, other, rtol=1e-10)


LEFT_ALONE: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], str]] = {
    "the copy is read elsewhere": (
        lambda F, a, b: F.dot(a, b.T) + F.sum(F.exp(b.T)).reshape((1, 1)),
        [(7, 5), (7, 5)],
        "transpose ",
    ),
    "other axes": (
        lambda F, a, b: F.batch_dot(F.transpose(a, axes=(1, 0, 2)), b),
        [(7, 3, 5), (3, 5, 6)],
        "transpose ",
    ),
    "factor zero": (lambda F, a, b: F.dot(a, b) * 0.0, [(7, 5), (5, 6)], " dot "),
    "factor infinite": (lambda F, a, b: F.dot(a, b) * float("inf"), [(7, 5), (5, 6)], " dot "),
    "factor below what 32 bits hold": (lambda F, a, b: F.dot(a, b) * 1e-42, [(7, 5), (5, 6)], " dot "),
    "summand that is repeated": (
        lambda F, a, b: F.broadcast_add(F.dot(a, b), F.slice_axis(b, axis=0, begin=0, end=1)),
        [(64, 50), (50, 60)],
        " dot ",
    ),
    "product read elsewhere": (lambda F, a, b: (lambda y: y * 0.5 + F.tanh(y))(F.dot(a, b)), [(7, 5), (5, 6)], " dot "),
    "few rows": (lambda F, a, b: F.dot(a, b) + F.slice_axis(b, axis=0, begin=0, end=8), [(8, 50), (50, 60)], " dot "),
    "dense layer of many rows": (
        lambda F, a, w: F.FullyConnected(a, w.T, F.slice_axis(w, axis=0, begin=0, end=1).reshape((-1,)), num_hidden=6),
        [(50, 5), (5, 6)],
        "FullyConnected",
    ),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_products_without_gain_or_with_other_values_stay(case, rng):
    function, shapes, kept = LEFT_ALONE[case]
    arrays = [mx.nd.array(rng.normal(size=shape)) for shape in shapes]
    net = Function(function)
    expected = net(*arrays).asnumpy()
    net.hybridize()
    assert_allclose(net(*arrays).asnumpy(), expected, rtol=1e-4, atol=1e-5)
    plan = net.plan_text()
    assert kept in plan
    assert "_scaled_product" not in plan


@pytest.mark.parametrize("case", ["summand", "dense with bias"])
def test_other_sizes_decide_anew(case, rng):
    function, _, shapes, _ = ABSORBED[case]
    columns = shapes[0][1]
    kept = [rng.normal(size=shape).astype("float32") for shape in shapes[1:]]
    net = Function(function)
    net.hybridize()
    for rows in (64, 65, 66, 4 * columns, 8, 3):
        data = rng.normal(size=(rows, columns)).astype("float32")
        others = [kept[0], rng.normal(size=(rows, 35)).astype("float32") if case == "summand" else kept[1]]
        arrays = [mx.nd.array(a) for a in (data, *others)]
        alone = Function(function)
        alone.hybridize()
        assert_array_equal(net(*arrays).asnumpy(), alone(*arrays).asnumpy())


def test_a_transposed_sparse_matrix_keeps_its_storage(rng):
    dense = rng.normal(size=(6, 5)) * (rng.random((6, 5)) < 0.4)
    data, weight = mx.nd.array(dense).tostype("csr"), mx.nd.array(rng.normal(size=(5, 4)))
    net = Function(lambda F, a, w: F.dot(a, w) * 0.5)
    net.hybridize()
    assert_allclose(net(data, weight).asnumpy(), dense @ weight.asnumpy() / 2, rtol=1e-5)
