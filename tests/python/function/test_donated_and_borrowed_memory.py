"""mx.In(donate) and mx.Out(borrow): the storage of a donated input is reused, a borrowed output is overwritten."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.errors import ValueError as HybridNetValueError


def address(array):
    array.wait_to_read()
    return np.from_dlpack(array).ctypes.data


def fresh(shape=(64, 8), value=1.0):
    return mx.nd.array(np.full(shape, value))


@pytest.mark.parametrize("graph", ["one operator", "fused", "product"])
def test_the_memory_of_a_donated_input_is_reused(graph):
    x = mx.sym.var("x")
    y = {
        "one operator": lambda: mx.sym.exp(x),
        "fused": lambda: mx.sym.tanh(x * 2 + 1),
        "product": lambda: mx.sym.dot(x, x, transpose_b=True).reshape((64, 8, 8)).mean(axis=2) + 1,
    }[graph]()
    keeps, gives = mx.function([x], y), mx.function([mx.In(x, donate=True)], y)
    value = np.random.RandomState(3).rand(64, 8).astype("float32")
    wanted = keeps(mx.nd.array(value)).asnumpy()
    given = mx.nd.array(value)
    place = address(given)
    out = gives(given)
    assert address(out) == place
    np.testing.assert_allclose(out.asnumpy(), wanted, rtol=1e-6)
    held = mx.nd.array(value)
    assert address(keeps(held)) != address(held)


def test_a_donated_array_cannot_be_read():
    x = mx.sym.var("x")
    f = mx.function([mx.In(x, donate=True)], x + 1)
    given = fresh()
    f(given)
    line = "test_donated_and_borrowed_memory"
    for read in (
        given.asnumpy,
        lambda: (given * 2).asnumpy(),
        lambda: f(given).asnumpy(),
        lambda: float(given[0, 0].asscalar()),
    ):
        with pytest.raises(HybridNetValueError, match=rf"(?s)donated to a call.*{line}.*x\.copy\(\)"):
            read()
    assert given.shape == (64, 8)


@pytest.mark.parametrize("beside", [False, True])
def test_a_donated_input_may_be_a_result_itself(beside):
    x = mx.sym.var("x")
    outputs = [x, x * 2, x] if beside else [x]
    f = mx.function([mx.In(x, donate=True)], outputs)
    for value in (1.0, 3.0):
        results = f(fresh(value=value))
        assert [float(result[3, 4].asscalar()) for result in results] == [value, value * 2, value][: len(outputs)]


def test_memory_visible_to_other_arrays_is_not_overwritten():
    x, y = mx.sym.var("x"), mx.sym.var("y")
    f = mx.function([mx.In(x, donate=True), y], x + y + 1)
    given = fresh()
    view = given[2:4]
    assert f(given, fresh()).asnumpy()[0, 0] == 3
    assert (view.asnumpy() == 1).all()
    both = fresh()
    assert (f(both, both.detach()).asnumpy() == 3).all()
    outside = np.ones((64, 8), "float32")
    f(mx.nd.from_numpy(outside), fresh()).wait_to_read()
    assert (outside == 1).all()


def test_an_input_that_is_read_later_is_not_written_over():
    x = mx.sym.var("x")
    f = mx.function([mx.In(x, donate=True)], [mx.sym.exp(x), x, mx.sym.sum(mx.sym.exp(x) * x)])
    first, same, total = f(fresh(value=2.0))
    np.testing.assert_allclose(first.asnumpy(), np.exp(2.0), rtol=1e-6)
    np.testing.assert_array_equal(same.asnumpy(), 2)
    np.testing.assert_allclose(total.asnumpy(), 512 * 2 * np.exp(2.0), rtol=1e-5)


def test_donation_while_recording_keeps_values_that_gradients_need():
    x = mx.sym.var("x")
    f = mx.function([mx.In(x, donate=True)], mx.sym.exp(x) * x)
    leaf = fresh(value=0.5)
    leaf.attach_grad()
    grad = leaf.grad
    with mx.autograd.record():
        out = f(leaf)
    out.backward()
    np.testing.assert_allclose(grad.asnumpy(), np.exp(0.5) * 1.5, rtol=1e-6)


def test_a_default_is_given_again_and_again():
    x = mx.sym.var("x")
    f = mx.function([mx.In(x, default=[1.0, 2.0], donate=True)], x * 2)
    for _ in range(3):
        assert f().asnumpy().tolist() == [2, 4]


def test_a_chain_of_donating_calls():
    x = mx.sym.var("x")
    f = mx.function([mx.In(x, donate=True)], x + 1)
    state = fresh(value=0.0)
    place = address(state)
    for _ in range(50):
        state = f(state)
    assert (state.asnumpy() == 50).all()
    assert address(state) == place


def test_a_borrowed_output_is_overwritten_by_the_next_call():
    x = mx.sym.var("x")
    f = mx.function([x], [mx.Out(x + 1, borrow=True), x + 2])
    first, kept = f(fresh(value=1.0))
    assert (first.asnumpy() == 2).all()
    place = address(first)
    second, _ = f(fresh(value=5.0))
    assert address(second) == place
    assert (first.asnumpy() == 6).all()
    assert (kept.asnumpy() == 3).all()
    other, _ = f(fresh((3, 3), 1.0))  # outputs of other sizes have their own memory
    assert (second.asnumpy() == 6).all()
    assert (other.asnumpy() == 2).all()


def test_a_borrowed_output_that_gradients_need_is_not_overwritten():
    x = mx.sym.var("x")
    f = mx.function([x], mx.Out(mx.sym.exp(x), borrow=True))
    leaf = fresh(value=0.0)
    leaf.attach_grad()
    with mx.autograd.record():
        out = f(leaf)
    f(fresh(value=3.0))
    out.backward()
    np.testing.assert_allclose(leaf.grad.asnumpy(), 1)
