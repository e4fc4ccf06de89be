"""Normalizations composed of operators run as one operator: the root mean square norm in its usual forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hybridnet as mx
import ml_dtypes
import numpy as np
import pytest
from hybridnet import autograd, gluon
from numpy.testing import assert_allclose, assert_array_equal

from rewrite.graphs import Function

RTOL = {"float64": 1e-12, "float32": 1e-5, "float16": 1e-2, "bfloat16": 2e-2}
EPS = 1e-3


def _mean_square(F: Any, x: Any, axis: Any = -1) -> Any:
    return F.mean(F.square(x), axis=axis, keepdims=True) + EPS


FORMS: dict[str, Callable[..., Any]] = {
    "rsqrt": lambda F, x, w: F.broadcast_mul(F.broadcast_mul(x, F.rsqrt(_mean_square(F, x))), w),
    "sqrt and divide": lambda F, x, w: F.broadcast_mul(w, F.broadcast_div(x, F.sqrt(_mean_square(F, x)))),
    "one over sqrt": lambda F, x, w: F.broadcast_mul(F.broadcast_mul(x, 1 / F.sqrt(_mean_square(F, x))), w),
    "power": lambda F, x, w: F.broadcast_mul(F.broadcast_mul(_mean_square(F, x) ** -0.5, x), w),
    "power and divide": lambda F, x, w: F.broadcast_mul(F.broadcast_div(x, _mean_square(F, x) ** 0.5), w),
    "x ** 2": lambda F, x, w: F.broadcast_mul(
        F.broadcast_mul(x, F.rsqrt(F.mean(x**2, axis=2, keepdims=True) + EPS)), w
    ),
    "weight first": lambda F, x, w: F.broadcast_mul(F.broadcast_mul(w, x), F.rsqrt(_mean_square(F, x))),
    "weight first, divided": lambda F, x, w: F.broadcast_div(F.broadcast_mul(x, w), F.sqrt(_mean_square(F, x))),
    "no weight": lambda F, x, w: F.broadcast_mul(x, F.rsqrt(_mean_square(F, x))),
}


def _dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def _run(net: gluon.HybridBlock, x: np.ndarray, w: np.ndarray, head: np.ndarray) -> list[np.ndarray]:
    arrays = [mx.nd.array(x, dtype=x.dtype), mx.nd.array(w, dtype=w.dtype)]
    for array in arrays:
        array.attach_grad()
    with autograd.record():
        out = net(*arrays)
    out.backward(mx.nd.array(head, dtype=head.dtype))
    return [a.asnumpy().astype("float64") for a in (out, *(a.grad for a in arrays))]


def _expected(x: np.ndarray, w: np.ndarray, head: np.ndarray, weighted: bool) -> list[np.ndarray]:
    x, w, head = (a.astype("float64") for a in (x, w, head))
    gamma = w if weighted else np.ones_like(w)
    root = np.sqrt((x * x).mean(-1, keepdims=True) + EPS)
    h, v = x / root, head * gamma
    of_w = (head * h).sum((0, 1)) if weighted else np.zeros_like(w)
    return [h * gamma, (v - h * (v * h).mean(-1, keepdims=True)) / root, of_w]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", RTOL)
def test_every_form_is_one_operator_with_the_right_gradient(form, dtype, rng):
    x, w, head = (rng.uniform(-2, 2, size).astype(_dtype(dtype)) for size in ((5, 3, 37), (37,), (5, 3, 37)))
    net = Function(FORMS[form])
    net.hybridize()
    got = _run(net, x, w, head)
    text = net.plan_text()
    assert "_contrib_rms_norm" in text
    assert "sqrt" not in text
    for a, b in zip(got, _expected(x, w, head, form != "no weight"), strict=True):
        assert_allclose(a, b, rtol=RTOL[dtype], atol=RTOL[dtype] * np.abs(b).max())


@pytest.mark.parametrize("form", FORMS)
def test_infinities_nan_and_signed_zeros_are_kept(form):
    x = np.array([[[np.inf, 1, -2, 0], [np.nan, 1, 0, 2], [-0.0, 0.0, 3, -1e30], [-0.0, 0.0, -0.0, 1e-40]]], "float32")
    w = np.array([1, -0.0, np.inf, 2], "float32")
    results = []
    for words in ("-rms_norm", "fast_run"):
        net = Function(FORMS[form])
        net.hybridize(passes="fast_run,-rms_norm" if words == "-rms_norm" else words)
        results.append(net(mx.nd.array(x), mx.nd.array(w)).asnumpy())
    assert_array_equal(np.isnan(results[1]), np.isnan(results[0]))
    assert_allclose(results[1], results[0], rtol=1e-6)
    zeros = results[0] == 0
    assert_array_equal(np.signbit(results[1])[zeros], np.signbit(results[0])[zeros])


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 3, 0), (1, 1, 1), (2, 3, 1), (2, 1, 5)])
def test_empty_and_narrow_arrays(shape, rng):
    x, w, head = (rng.normal(size=size) for size in (shape, shape[-1:], shape))
    net = Function(FORMS["rsqrt"])
    net.hybridize()
    for a, b in zip(_run(net, x, w, head), _run(Function(FORMS["rsqrt"]), x, w, head), strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_sums_of_squares_beyond_a_half_count(rng):
    x = (300 * rng.choice([-1.0, 1.0], (2, 2, 64))).astype("float16")
    net = Function(FORMS["no weight"])
    net.hybridize()
    assert_allclose(net(mx.nd.array(x, dtype="float16"), mx.nd.ones(64)).asnumpy(), np.sign(x), rtol=2e-3)


@pytest.mark.parametrize("hybridized", [False, True])
def test_the_second_derivative_agrees_with_central_differences(hybridized, rng):
    x, w, a, b = (rng.uniform(0.5, 1.5, size) for size in ((3, 5), (5,), (3, 5), (5,)))
    net = Function(lambda F, x, w: F.contrib.rms_norm(x, w, eps=EPS) if not hybridized else FORMS["rsqrt"](F, x, w))
    net.hybridize(active=hybridized)

    def slopes(at: np.ndarray, weight: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        data, gamma = mx.nd.array(at, dtype="float64"), mx.nd.array(weight, dtype="float64")
        data.attach_grad()
        gamma.attach_grad()
        with autograd.record():
            out = (net(data, gamma) ** 3).sum()
            of_data, of_gamma = autograd.grad(out, [data, gamma], create_graph=True)
            total = (of_data * mx.nd.array(a, dtype="float64")).sum() + (
                of_gamma * mx.nd.array(b, dtype="float64")
            ).sum()
        total.backward()
        return total.asscalar(), data.grad.asnumpy(), gamma.grad.asnumpy()

    _, of_x, of_w = slopes(x, w)
    step = 1e-6
    for value, gradient, which in ((x, of_x, 0), (w, of_w, 1)):
        for index in np.ndindex(*value.shape):
            moved = [[x.copy(), w.copy()] for _ in range(2)]
            moved[0][which][index] += step
            moved[1][which][index] -= step
            slope = (slopes(*moved[0])[0] - slopes(*moved[1])[0]) / (2 * step)
            assert_allclose(gradient[index], slope, rtol=1e-6, atol=1e-7)


LEFT_ALONE: dict[str, Callable[..., Any]] = {
    "eps behind the root": lambda F, x, w: F.broadcast_div(
        x, F.sqrt(F.mean(F.square(x), axis=-1, keepdims=True)) + EPS
    ),
    "other axis": lambda F, x, w: F.broadcast_mul(x, F.rsqrt(_mean_square(F, x, 1))),
    "two axes": lambda F, x, w: F.broadcast_mul(x, F.rsqrt(_mean_square(F, x, (1, 2)))),
    "statistic read": lambda F, x, w: (lambda m: F.broadcast_add(F.broadcast_mul(x, F.rsqrt(m)), m))(
        _mean_square(F, x)
    ),
    "root read": lambda F, x, w: (lambda r: F.broadcast_add(F.broadcast_mul(x, r), r))(F.rsqrt(_mean_square(F, x))),
    "of another array": lambda F, x, w: F.broadcast_mul(x + 1, F.rsqrt(_mean_square(F, x))),
    "negative eps": lambda F, x, w: F.broadcast_mul(x, F.rsqrt(_mean_square(F, x) - 2 * EPS)),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_other_functions_stay_themselves(case, rng):
    x, w = mx.nd.array(rng.normal(size=(3, 4, 5)) + 2), mx.nd.array(rng.normal(size=5))
    net = Function(LEFT_ALONE[case])
    expected = net(x, w).asnumpy()
    net.hybridize()
    assert_allclose(net(x, w).asnumpy(), expected, rtol=1e-5, atol=1e-6)
    assert "rms_norm" not in net.plan_text()


def test_a_composed_layer_norm_is_not_a_root_mean_square_norm_of_centered_data(rng):
    def written_out(F: Any, x: Any, w: Any) -> Any:
        centered = F.broadcast_sub(x, F.mean(x, axis=-1, keepdims=True))
        return F.broadcast_mul(F.broadcast_mul(centered, F.rsqrt(_mean_square(F, centered))), w)

    net = Function(written_out)
    net.hybridize()
    net(mx.nd.array(rng.normal(size=(2, 3, 4))), mx.nd.ones(4))
    assert "LayerNorm" in net.plan_text()
    assert "rms_norm" not in net.plan_text()
