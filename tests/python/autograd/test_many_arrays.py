"""Calls with many arrays: results, shared memory and gradients are the same as in calls with few arrays."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest

COUNTS = (3, 40, 70, 300)  # up to 64 arrays are compared pairwise, more are sorted


def arrays(count: int) -> list[mx.nd.NDArray]:
    return [mx.nd.array(np.arange(5) + 10.0 * number) for number in range(count)]


@pytest.mark.parametrize("count", COUNTS)
def test_a_sum_may_be_written_over_one_of_its_inputs(count) -> None:
    for place in (0, count // 2, count - 1):
        inputs = arrays(count)
        expected = sum(one.asnumpy() for one in inputs)
        mx.nd.add_n(*inputs, out=inputs[place])
        np.testing.assert_allclose(inputs[place].asnumpy(), expected)


@pytest.mark.parametrize("count", COUNTS)
def test_a_sum_may_be_written_over_part_of_an_input(count) -> None:
    base = mx.nd.array(np.arange(20.0))
    inputs = [*arrays(count - 1), base[3:8]]
    expected = sum(one.asnumpy() for one in inputs)
    out = base[5:10]  # overlaps the last input, but is another view
    mx.nd.add_n(*inputs, out=out)
    np.testing.assert_allclose(out.asnumpy(), expected)
    np.testing.assert_allclose(base.asnumpy()[:5], np.arange(5.0))
    np.testing.assert_allclose(base.asnumpy()[10:], np.arange(10.0, 20.0))


@pytest.mark.parametrize("count", COUNTS)
def test_calls_on_the_same_arrays_keep_their_order(count) -> None:
    inputs = arrays(count)
    expected = [one.asnumpy() for one in inputs]
    for step in range(20):
        target = step * 7 % count
        mx.nd.add_n(*inputs, out=inputs[target])
        expected[target] = sum(expected)
        inputs[target] *= 1 / count
        expected[target] = expected[target] / count
    for one, wanted in zip(inputs, expected, strict=True):
        np.testing.assert_allclose(one.asnumpy(), wanted, rtol=1e-4)


@pytest.mark.parametrize("count", COUNTS)
def test_updates_of_many_weights_are_those_of_each(count) -> None:
    weights, single = arrays(count), arrays(count)
    gradients = [one * 0.5 for one in weights]
    pairs = [array for pair in zip(weights, gradients, strict=True) for array in pair]
    rates = tuple(0.1 + 0.01 * number for number in range(count))
    mx.nd.multi_sgd_update(*pairs, lrs=rates, wds=(0.0,) * count, num_weights=count, out=weights)
    for one, other, gradient, rate in zip(weights, single, gradients, rates, strict=True):
        mx.nd.sgd_update(other, gradient, lr=rate, wd=0.0, out=other)
        assert one.asnumpy().tobytes() == other.asnumpy().tobytes()


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("req", ["write", "add"])
def test_gradients_that_are_one_array_are_separate_afterwards(count, req) -> None:
    inputs = arrays(count)
    for one in inputs:
        one.attach_grad(grad_req=req)
    with mx.autograd.record():
        total = mx.nd.add_n(*inputs, inputs[0])  # the first twice
    total.backward()
    inputs[1].grad[:] = 7
    assert inputs[0].grad.asnumpy().tolist() == [2.0] * 5
    assert all(one.grad.asnumpy().tolist() == [1.0] * 5 for one in inputs[2:])
