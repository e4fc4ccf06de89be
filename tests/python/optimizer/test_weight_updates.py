"""The functions of nd.contrib that run steps of AdamW and LAMB."""

from __future__ import annotations

import numpy as np
import pytest
from hybridnet import nd


def tensors(rng, count, dtype="float32"):
    return [nd.array(rng.normal(size=(3, 2)), dtype=dtype) for _ in range(count)]


def copies(arrays):
    return [array.copy() for array in arrays]


@pytest.mark.parametrize("rescale", [0.5, "array"])
def test_adamw_of_one_and_of_many_agree(rng, rescale):
    factor = nd.array([0.5]) if rescale == "array" else rescale
    weights, grads = tensors(rng, 2), tensors(rng, 2)
    mean, var = [nd.zeros((3, 2))] * 2, [nd.zeros((3, 2))] * 2
    singles = [
        nd.contrib.adamw_update(w.copy(), g, m.copy(), v.copy(), factor, lr, 1.0, wd=0.1)
        for w, g, m, v, lr in zip(weights, grads, mean, var, (0.1, 0.2), strict=True)
    ]
    mine = copies(weights)
    states = copies(mean), copies(var)
    nd.contrib.multi_adamw_update(mine, grads, *states, factor, (0.1, 0.2), (0.1, 0.1), (1.0, 1.0), out=mine)
    for one, many, before in zip(singles, mine, weights, strict=True):
        np.testing.assert_allclose(many.asnumpy(), one.asnumpy(), rtol=1e-6)
        assert (many.asnumpy() != before.asnumpy()).any()


def test_adamw_skips_a_step_whose_factor_is_not_finite(rng):
    (weight,), (grad,) = tensors(rng, 1), tensors(rng, 1)
    before = weight.asnumpy()
    nd.contrib.adamw_update(weight, grad, nd.zeros((3, 2)), nd.zeros((3, 2)), float("inf"), 0.1, 1.0, out=weight)
    np.testing.assert_array_equal(weight.asnumpy(), before)


def test_adamw_in_half_precision_keeps_a_copy(rng):
    weights32, grads = tensors(rng, 2), tensors(rng, 2, "float16")
    halves = [w.astype("float16") for w in weights32]
    mean, var = copies([nd.zeros((3, 2))] * 2), copies([nd.zeros((3, 2))] * 2)
    one = nd.contrib.mp_adamw_update(
        halves[0].copy(), grads[0], mean[0].copy(), var[0].copy(), weights32[0].copy(), 1.0, 0.1, 1.0
    )
    nd.contrib.multi_mp_adamw_update(halves, grads, mean, var, weights32, 1.0, (0.1, 0.1), (0, 0), (1, 1), out=halves)
    np.testing.assert_array_equal(halves[0].asnumpy(), one.asnumpy())
    np.testing.assert_allclose(halves[1].asnumpy(), weights32[1].asnumpy(), rtol=1e-3, atol=1e-3)


def lamb_step(weight, grad, lr, wd):
    """First LAMB step from zero states without bias correction: You et al., Large Batch Optimization, algorithm 2."""
    mean, var = 0.1 * grad, 0.001 * grad**2
    direction = mean / (np.sqrt(var) + 1e-6) + wd * weight
    return weight - lr * np.linalg.norm(weight) / np.linalg.norm(direction) * direction


def test_lamb_of_many(rng):
    weights, grads = tensors(rng, 2), tensors(rng, 2)
    before = [w.asnumpy().astype("float64") for w in weights]
    mean, var = copies([nd.zeros((3, 2))] * 2), copies([nd.zeros((3, 2))] * 2)
    nd.contrib.multi_lamb_update(
        weights, grads, mean, var, (1, 1), (0.1, 0.2), (0.01, 0.0), out=weights, bias_correction=False
    )
    for weight, grad, old, lr, wd in zip(weights, grads, before, (0.1, 0.2), (0.01, 0.0), strict=True):
        np.testing.assert_allclose(weight.asnumpy(), lamb_step(old, grad.asnumpy(), lr, wd), rtol=1e-4)
    with pytest.raises(TypeError, match="momentum"):
        nd.contrib.multi_lamb_update(weights, grads, mean, var, (1, 1), (0.1, 0.2), (0, 0), momentum=0.9)


def test_lamb_in_half_precision(rng):
    copies32, grads = tensors(rng, 1), tensors(rng, 1, "float16")
    old = copies32[0].asnumpy().astype("float64")
    halves = [copies32[0].astype("float16")]
    mean, var = [nd.zeros((3, 2))], [nd.zeros((3, 2))]
    nd.contrib.multi_mp_lamb_update(
        halves, grads, mean, var, copies32, (1,), (0.1,), (0.0,), out=halves, bias_correction=False
    )
    expected = lamb_step(old, grads[0].asnumpy().astype("float64"), 0.1, 0.0)
    np.testing.assert_allclose(copies32[0].asnumpy(), expected, rtol=1e-3)
    np.testing.assert_allclose(halves[0].asnumpy(), expected, rtol=5e-3, atol=1e-3)
