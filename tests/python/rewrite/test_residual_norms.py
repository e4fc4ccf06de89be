"""LayerNorm of a residual sum, with and without dropout in front of the sum, runs as one operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hybridnet as mx
import ml_dtypes
import numpy as np
import pytest
from hybridnet import autograd

from rewrite.graphs import Function

RTOL = {"float64": 1e-11, "float32": 2e-5, "float16": 1e-2, "bfloat16": 4e-2}
EPS = 1e-3


def _plain(F: Any, x: Any, y: Any, gamma: Any, beta: Any) -> Any:
    return F.LayerNorm(F.tanh(x) + y, gamma, beta, eps=EPS)


def _dropped(F: Any, x: Any, y: Any, gamma: Any, beta: Any) -> Any:
    return F.LayerNorm(y + F.Dropout(F.tanh(x), p=0.3), gamma, beta, eps=EPS)


def _sum_read(F: Any, x: Any, y: Any, gamma: Any, beta: Any) -> Any:
    total = F.Dropout(x, p=0.2) + y
    return total * 2 + F.LayerNorm(total, gamma, beta, eps=EPS)


def _moments_read(F: Any, x: Any, y: Any, gamma: Any, beta: Any) -> Any:
    out, mean, std = F.LayerNorm(x + y, gamma, beta, eps=EPS, output_mean_var=True)
    return F.broadcast_add(F.broadcast_mul(out, std), mean)


def _twice(F: Any, x: Any, y: Any, gamma: Any, beta: Any) -> Any:
    first = F.LayerNorm(F.Dropout(x, p=0.2) + y, gamma, beta, eps=EPS)
    return F.LayerNorm(first + F.Dropout(F.relu(first), p=0.1), beta, gamma, axis=2)


FORMS = {"plain": _plain, "dropped": _dropped, "sum read": _sum_read, "moments read": _moments_read, "twice": _twice}
SHAPES = [(3, 4, 37), (3, 4, 37), (37,), (37,)]


def _dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def _arrays(rng: np.random.Generator, dtype: str) -> list[mx.nd.NDArray]:
    return [mx.nd.array(rng.uniform(-2, 2, shape).astype(_dtype(dtype)), dtype=_dtype(dtype)) for shape in SHAPES]


def _trained(function: Callable[..., Any], arrays: list[mx.nd.NDArray], **options: Any) -> tuple[list[np.ndarray], str]:
    net = Function(function)
    net.hybridize(**options)
    for array in arrays:
        array.attach_grad()
    mx.random.seed(3)
    with autograd.record():
        out = net(*arrays)
    head = np.arange(out.size).reshape(out.shape) % 7
    out.backward(mx.nd.array(head.astype(out.dtype), dtype=out.dtype))
    results = [out.asnumpy(), *(a.grad.asnumpy() for a in arrays)]
    return [r.astype("float64") for r in results], net.plan_text()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", RTOL)
def test_every_form_gives_the_values_and_gradients_of_its_parts(form, dtype, rng):
    arrays = _arrays(rng, dtype)
    wide = [a.astype("float64") for a in arrays]
    apart, _ = _trained(FORMS[form], wide, exclude=["add_layer_norm"])
    fused, text = _trained(FORMS[form], arrays)
    assert "add_layer_norm" in text
    assert "Dropout" not in text
    for a, b in zip(apart, fused, strict=True):
        np.testing.assert_allclose(b, a, rtol=RTOL[dtype], atol=RTOL[dtype] * np.abs(a).max())


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_one_operator_in_prediction(form, rng):
    arrays = _arrays(rng, "float64")
    results = []
    for exclude in (["add_layer_norm"], []):
        net = Function(FORMS[form])
        net.hybridize(exclude=exclude)
        results.append(net(*arrays).asnumpy())
    assert "_add_layer_norm" in net.plan_text()
    np.testing.assert_allclose(results[1], results[0], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("remat", ["auto", 5000])
def test_recomputed_values_have_the_bits_of_kept_ones(remat, rng):
    arrays = _arrays(rng, "float32")
    kept, _ = _trained(_twice, arrays, remat="none")
    again, _ = _trained(_twice, arrays, remat=remat)
    for a, b in zip(kept, again, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("form", ["plain", "dropped", "sum read"])
def test_second_derivatives(form, rng):
    arrays = _arrays(rng, "float64")
    results = []
    for exclude in (["add_layer_norm"], []):
        net = Function(FORMS[form])
        net.hybridize(exclude=exclude)
        for array in arrays:
            array.attach_grad()
        mx.random.seed(5)
        with autograd.record():
            out = net(*arrays)
            grads = autograd.grad((out * out * out).sum(), arrays, create_graph=True)
            total = sum((i + 1) * (g * g).sum() for i, g in enumerate(grads))
        total.backward()
        results.append([a.grad.asnumpy() for a in arrays])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9 * np.abs(a).max())


def test_arrays_without_elements(rng):
    net = Function(_sum_read)
    net.hybridize()
    arrays = [mx.nd.zeros((0, 37)), mx.nd.zeros((0, 37)), mx.nd.ones((37,)), mx.nd.ones((37,))]
    for array in arrays:
        array.attach_grad()
    with autograd.record():
        out = net(*arrays)
    out.backward()
    assert out.shape == (0, 37)
    np.testing.assert_array_equal(arrays[2].grad.asnumpy(), np.zeros(37))


LEFT_ALONE: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "another axis": (
        lambda F, x, y, g, b: F.LayerNorm(F.tanh(x) + y, g, b, axis=1),
        [(2, 5, 3), (2, 5, 3), (5,), (5,)],
    ),
    "repeated summand": (lambda F, x, y, g, b: F.LayerNorm(F.broadcast_add(x, y), g, b), [(2, 5), (1, 5), (5,), (5,)]),
    "a layer adds itself": (
        lambda F, x, y, g, b: F.LayerNorm(F.FullyConnected(x, y, num_hidden=5, no_bias=True) + x, g, b),
        [(2, 5), (5, 5), (5,), (5,)],
    ),
    "no sum": (lambda F, x, y, g, b: F.LayerNorm(x * y, g, b), [(2, 5), (2, 5), (5,), (5,)]),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_other_norms_stay(case, rng):
    function, shapes = LEFT_ALONE[case]
    net = Function(function)
    net.hybridize()
    net(*(mx.nd.array(rng.normal(size=shape)) for shape in shapes))
    assert "LayerNorm" in net.plan_text()
    assert "_add_layer_norm" not in net.plan_text()
