"""mx.function with loops, random operators, shapes that depend on values, gradients of any order, and threads."""

from __future__ import annotations

import threading

import hybridnet as mx
import numpy as np
import pytest


def test_random_draws_are_those_of_the_seed_and_differ_from_call_to_call():
    x = mx.sym.var("x")
    f = mx.function([x], mx.sym.Dropout(x, p=0.5, mode="always"))
    data = mx.nd.ones((100,))

    def draws():
        mx.random.seed(5)
        return [f(data).asnumpy() for _ in range(2)]

    first, again = draws(), draws()
    np.testing.assert_array_equal(first, again)
    assert (first[0] != first[1]).any()


def test_a_random_value_is_drawn_once_for_outputs_and_updates():
    last, x = mx.shared(mx.nd.zeros(50), name="last"), mx.sym.var("x")
    draw = mx.sym.random.uniform(shape=(50,))
    f = mx.function([x], [draw + x, draw * 1], updates={last: draw})
    shifted, plain = f(mx.nd.ones(50))
    np.testing.assert_array_equal(last.get_value().asnumpy(), plain.asnumpy())
    np.testing.assert_allclose(shifted.asnumpy() - 1, plain.asnumpy(), atol=1e-6)


@pytest.mark.parametrize("atomic", [True, False])
def test_shapes_that_depend_on_values(atomic):
    x = mx.sym.var("x")
    count, sums = mx.shared([0.0], name="count"), mx.shared(mx.nd.zeros(2), name="sums")
    rows = mx.sym.contrib.boolean_mask(x, mx.sym.sum(x, axis=1) > 0)
    f = mx.function([x], rows, updates={count: count + 1, sums: sums + mx.sym.sum(rows, axis=0)}, atomic=atomic)
    values = np.array([[1, 2], [-3, 1], [4, 0]], "float32")
    data = mx.nd.array(values)
    data.attach_grad()
    for calls in (1, 2):
        with mx.autograd.record():
            out = f(data)
            total = (out * out).sum()
        total.backward()
        np.testing.assert_array_equal(out.asnumpy(), values[[0, 2]])
        np.testing.assert_array_equal(data.grad.asnumpy(), [[2, 4], [0, 0], [8, 0]])
        assert count.get_value().asnumpy() == calls
        np.testing.assert_array_equal(sums.get_value().asnumpy(), np.array([5, 2]) * calls)
    assert f(mx.nd.array(-values)).shape == (1, 2)


def test_an_update_whose_wrong_size_is_known_at_run_time_is_an_error():
    x = mx.sym.var("x")
    kept = mx.shared(mx.nd.zeros(2), name="kept")
    f = mx.function([x], x * 2, updates={kept: mx.sym.contrib.boolean_mask(x, x)})
    f(mx.nd.array([1, 0, 2])).wait_to_read()
    assert kept.get_value().asnumpy().tolist() == [1, 2]
    with pytest.raises(mx.errors.ShapeError, match=r"'kept'.*\(2,\).*\(3,\)"):
        f(mx.nd.array([1, 3, 2])).wait_to_read()
        mx.nd.waitall()
    assert kept.get_value().asnumpy().tolist() == [1, 2]


def test_loops_with_as_many_iterations_as_rows():
    x, h = mx.sym.var("x"), mx.shared(mx.nd.zeros(3), name="h")
    outs, last = mx.sym.contrib.foreach(lambda row, s: (s + row, s + row), x, h)
    f = mx.function([x], outs, updates={h: last})
    wanted = np.zeros(3)
    for rows in (4, 1, 7):
        data = np.random.RandomState(rows).rand(rows, 3)
        out = f(mx.nd.array(data)).asnumpy()
        np.testing.assert_allclose(out, wanted + np.cumsum(data, axis=0), rtol=1e-5)
        wanted = out[-1]
    np.testing.assert_allclose(h.get_value().asnumpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("updated", [False, True])
def test_second_order_gradients(updated):
    w, x = mx.shared([2.0, 3.0], name="w", dtype="float64"), mx.sym.var("x")
    f = mx.function([x], mx.sym.sum(x * x * x * w), updates={w: w * 0} if updated else None)
    data = mx.nd.array([1.5, -2.0], dtype="float64")
    data.attach_grad()
    with mx.autograd.record():
        [first] = mx.autograd.grad(f(data), [data], create_graph=True)
        total = (first * first).sum()
    total.backward()
    values, weights = data.asnumpy(), np.array([2.0, 3.0])
    np.testing.assert_allclose(first.asnumpy(), 3 * weights * values**2)
    np.testing.assert_allclose(data.grad.asnumpy(), 2 * (3 * weights * values**2) * (6 * weights * values))


def test_sizes_are_rewritten_once():
    x, total = mx.sym.var("x", shape=(0, 8)), mx.shared(mx.nd.zeros(8), name="total")
    f = mx.function([x], mx.sym.tanh(x * 2 + 1), updates={total: total + mx.sym.sum(x, axis=0)})
    for rows in range(3, 30):
        f(mx.nd.ones((rows, 8)))
    assert total.get_value().asnumpy().tolist() == [sum(range(3, 30))] * 8
    assert f._op.num_rewritten <= 3


def test_updates_of_many_threads_are_all_there():
    count, x = mx.shared([0.0], name="count"), mx.sym.var("x")
    f = mx.function([x], count + x, updates={count: count + 1})
    g = f.copy(name="other")
    threads = [
        threading.Thread(target=lambda h=h: [h(mx.nd.zeros(1)) for _ in range(200)])
        for h in (f, g, f, g)  # type: ignore[misc]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count.get_value().asnumpy() == 800


def test_arrays_of_numpys_interface():
    x = mx.sym.var("x").as_np_ndarray()
    f = mx.function([x], mx.sym.np.tanh(x) + 1)
    out = f(mx.np.array([0.0, 1.0]))
    assert type(out) is mx.np.ndarray
    np.testing.assert_allclose(out.asnumpy(), np.tanh([0, 1]) + 1, rtol=1e-6)


def test_zero_sizes():
    x, total = mx.sym.var("x", shape=(0, 3)), mx.shared(mx.nd.zeros(3), name="total")
    f = mx.function([mx.In(x, donate=True)], mx.Out(x * 2, borrow=True), updates={total: total + mx.sym.sum(x, axis=0)})
    with mx.np_shape():
        assert f(mx.nd.zeros((0, 3))).shape == (0, 3)
    assert total.get_value().asnumpy().tolist() == [0, 0, 0]
