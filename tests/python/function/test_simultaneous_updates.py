"""Updates of a function are written at the end of the call, all at once: {a: b, b: a} swaps, and an error changes
neither, unless atomic=False."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.gluon import nn


def values(*shared):
    return [variable.get_value().asnumpy().tolist() for variable in shared]


@pytest.fixture
def pair():
    return mx.shared([1.0, 2.0], name="a"), mx.shared([3.0, 4.0], name="b")


@pytest.mark.parametrize("atomic", [True, False])
def test_swap(pair, atomic):
    a, b = pair
    swap = mx.function([], [a, b, a + b], updates={a: b, b: a}, atomic=atomic)
    for old_a, old_b in [([1, 2], [3, 4]), ([3, 4], [1, 2])]:
        assert [out.asnumpy().tolist() for out in swap()] == [old_a, old_b, [4, 6]]
        assert values(a, b) == [old_b, old_a]


@pytest.mark.parametrize("atomic", [True, False])
def test_every_expression_sees_old_values(pair, atomic):
    a, b = pair
    x = mx.sym.var("x")
    f = mx.function([x], [a * x, b * x], updates={a: a + b, b: a * 10}, atomic=atomic)
    first, second = f(mx.nd.array([1.0, 1.0]))
    assert first.asnumpy().tolist() == [1, 2]
    assert second.asnumpy().tolist() == [3, 4]
    assert values(a, b) == [[4, 6], [10, 20]]


@pytest.mark.parametrize("atomic", [True, False])
def test_a_ring_of_views_and_one_value_for_two(atomic):
    a, b, c = (mx.shared(np.full((2, 3), k), name=name) for k, name in enumerate("abc"))
    turn = mx.function(
        [],
        None,
        updates={a: b.reshape((3, 2)).reshape((2, 3)), b: c, c: mx.sym.reshape(a, shape=(2, 3))},
        atomic=atomic,
    )
    turn()
    assert [v.get_value().asnumpy()[0, 0] for v in (a, b, c)] == [1, 2, 0]
    both = mx.function([], None, updates={a: a + b, c: a + b}, atomic=atomic)
    both()
    assert [v.get_value().asnumpy()[0, 0] for v in (a, b, c)] == [3, 2, 3]


class Failing(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        if in_data[0].asnumpy().sum() > 10:
            raise RuntimeError("too much")
        self.assign(out_data[0], req[0], in_data[0] + 1)


@mx.operator.register("row14_failing")
class FailingProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Failing()


def taken(x, table):
    return mx.sym.take(table, x, mode="raise")


@pytest.mark.parametrize("cut", [False, True])
def test_an_index_error_leaves_both(pair, cut):
    a, b = pair
    table = mx.shared([0.0, 1.0], name="table")
    i = mx.sym.var("i", dtype="int32")
    row = taken(i, table)
    if cut:  # at an operator whose output shape is known only at run time
        row = mx.sym.contrib.boolean_mask(row, mx.sym.ones_like(row))
    f = mx.function([i], row, updates={a: a * 2, b: mx.sym.broadcast_add(b, mx.sym.sum(row))})
    assert f(mx.nd.array([1], dtype="int32")).asnumpy().tolist() == [1]
    assert values(a, b) == [[2, 4], [4, 5]]
    with pytest.raises(mx.MXNetError, match=r"indices"):
        f(mx.nd.array([7], dtype="int32")).asnumpy()
    assert values(a, b) == [[2, 4], [4, 5]]
    f(mx.nd.array([0], dtype="int32"))
    assert values(a, b) == [[4, 8], [4, 5]]
    mx.nd.waitall()


def test_an_error_that_shows_up_later_leaves_both(pair):
    a, b = pair
    n = 512  # large enough to be queued
    x, i = mx.sym.var("x"), mx.sym.var("i", dtype="int32")
    product = mx.sym.dot(mx.sym.dot(x, x), x)
    last = mx.sym.take(product, i, mode="raise")
    f = mx.function([x, i], last, updates={a: a * 2, b: mx.sym.broadcast_add(b, mx.sym.sum(product) * 0 + 1)})
    data = mx.nd.ones((n, n))
    out = f(data, mx.nd.array([n], dtype="int32"))
    assert values(a, b) == [[1, 2], [3, 4]]  # reading them raises no error
    with pytest.raises(mx.MXNetError, match=r"indices"):
        out.asnumpy()
    f(data, mx.nd.array([0], dtype="int32"))
    assert values(a, b) == [[2, 4], [4, 5]]


def test_a_custom_operator_that_raises_in_the_middle_leaves_both(pair):
    a, b = pair
    x = mx.sym.var("x")
    y = mx.sym.Custom(x, op_type="row14_failing")
    f = mx.function([x], y, updates={a: a * 2, b: mx.sym.broadcast_add(b, mx.sym.sum(y))})
    f(mx.nd.array([1.0]))
    assert values(a, b) == [[2, 4], [5, 6]]
    with pytest.raises(RuntimeError, match=r"too much"):
        f(mx.nd.array([11.0]))
    assert values(a, b) == [[2, 4], [5, 6]]


def test_running_statistics_are_left_too():
    norm = nn.BatchNorm(in_channels=2)
    norm.initialize()
    x, i = mx.sym.var("x"), mx.sym.var("i", dtype="int32")
    f = mx.function([x, i], mx.sym.take(norm(x), i, mode="raise"))
    data = mx.nd.array([[1, 2], [3, 5]])
    with mx.autograd.train_mode():
        with pytest.raises(mx.MXNetError, match=r"indices"):
            f(data, mx.nd.array([2], dtype="int32")).asnumpy()
        assert norm.running_mean.data().asnumpy().tolist() == [0, 0]
        f(data, mx.nd.array([0], dtype="int32")).wait_to_read()
    np.testing.assert_allclose(norm.running_mean.data().asnumpy(), [0.2, 0.35], rtol=1e-6)


def test_written_in_place_where_nothing_reads_the_old_value_later():
    w, x = mx.shared(mx.nd.ones((4, 4)), name="w"), mx.sym.var("x")
    descend = mx.function([x], None, updates={w: w - 0.5 * x})
    descend(mx.nd.ones((4, 4)))
    assert "] copy (" not in descend.plan_text()
    kept = mx.function([x], w, updates={w: w - 0.5 * x})
    assert kept(mx.nd.ones((4, 4))).asnumpy()[0, 0] == 0.5
    assert w.get_value().asnumpy()[0, 0] == 0


def test_updates_without_atomic_are_written_before_work_that_may_fail():
    w = mx.shared(mx.nd.ones(3), name="w")
    i = mx.sym.var("i", dtype="int32")
    other = mx.shared([1.0, 2.0], name="other")

    def plan(atomic):
        new = w * 2
        f = mx.function([i], mx.sym.take(other, i + mx.sym.cast(mx.sym.sum(new) * 0, "int32"), mode="raise"),
                        updates={w: new}, atomic=atomic)  # fmt: skip
        f(mx.nd.array([0], dtype="int32")).wait_to_read()
        return f.plan_text()

    assert "] copy (" in plan(True)
    assert "] copy (" not in plan(False)


def test_an_argument_that_is_the_updated_array_itself(pair):
    a, b = pair
    x = mx.sym.var("x")
    f = mx.function([x], None, updates={a: a + x, b: b - x})
    f(a.value)
    assert values(a, b) == [[2, 4], [2, 2]]


def test_gradients_of_a_call_with_updates_are_those_at_the_old_values():
    w, x = mx.shared([2.0, 3.0], name="w"), mx.sym.var("x")
    f = mx.function([x], mx.sym.sum(w * w * x), updates={w: w * 0})
    w.value.attach_grad()
    data = mx.nd.array([1.0, 10.0])
    data.attach_grad()
    with mx.autograd.record():
        out = f(data)
    assert w.get_value().asnumpy().tolist() == [0, 0]
    out.backward()
    assert w.value.grad.asnumpy().tolist() == [4, 60]
    assert data.grad.asnumpy().tolist() == [4, 9]


def test_errors_of_updates(pair):
    a, _ = pair
    x = mx.sym.var("x")
    with pytest.raises(mx.errors.ShapeError, match=r"'a'.*\(2,\).*\(1,\)"):
        mx.function([], None, updates={a: mx.sym.sum(a)})()
    with pytest.raises(mx.errors.DTypeError, match=r"'a'.*float32.*int32"):
        mx.function([], None, updates={a: mx.sym.cast(a, "int32")})()
    with pytest.raises(mx.errors.TypeError, match=r"shared variable.*'x', which has no value"):
        mx.function([x], None, updates={x: x + 1})
    with pytest.raises(mx.errors.TypeError, match=r"update of 'a'.*a Symbol.*int"):
        mx.function([], None, updates={a: 1})
    with pytest.raises(mx.errors.ValueError, match=r"'a' has two updates"):
        mx.function([], None, updates=[(a, a + 1), (a, a + 2)])
    assert values(a) == [[1, 2]]
