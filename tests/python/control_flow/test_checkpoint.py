"""checkpoint: fewer values are kept for the gradient, and the gradient stays the same."""

from __future__ import annotations

import re

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors, gluon
from hybridnet.contrib import foreach, while_loop

from .blocks import Block, gradients

nd = mx.nd


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("checkpoint", ["sqrt", 1, 2, 3, 7, 100])
@pytest.mark.parametrize("count", [1, 2, 7, 9])
def test_loops_over_data(count, checkpoint, reverse, order):
    def function(x, w, s, checkpoint=None):
        def body(d, h):
            return (h * w + d).sin() * d, ((h * w).tanh() + d)

        outs, last = foreach(body, x, s, reverse=reverse, checkpoint=checkpoint)
        return outs.sum(axis=0) + last

    r = np.random.default_rng(count)
    arrays = r.normal(size=(count, 3)), r.normal(size=3), r.normal(size=3)
    want, _ = gradients(function, arrays, order)
    got, _ = gradients(lambda *a: function(*a, checkpoint=checkpoint), arrays, order)
    for one, two in zip(want, got, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("checkpoint", ["sqrt", 2])
def test_loops_that_do_not_run(checkpoint):
    """No pass removes a loop without data; "sqrt" of 0 iterations must be a valid segment length, too."""

    def function(w, checkpoint=None):
        return foreach(lambda _, h: (h * w, (h * w).sin()), [], w * 2, length=0, checkpoint=checkpoint)[1]

    want, _ = gradients(function, (np.ones(2),))
    got, _ = gradients(lambda w: function(w, checkpoint), (np.ones(2),))
    for one, two in zip(want, got, strict=True):
        np.testing.assert_array_equal(two, one)


@pytest.mark.parametrize("order", [1, 2])
def test_loops_with_a_condition(order):
    def function(x, w, checkpoint=None):
        outs, (_, last) = while_loop(
            lambda i, v: i < 4,
            lambda i, v: (v * w, (i + 1, (v * w).sin() + x)),
            (x[:1] * 0, x),
            6,
            checkpoint=checkpoint,
        )
        return outs.sum(axis=0) + last

    r = np.random.default_rng(3)
    arrays = r.normal(size=3), r.normal(size=3)
    want, _ = gradients(function, arrays, order)
    got, _ = gradients(lambda *a: function(*a, checkpoint="sqrt"), arrays, order)
    for one, two in zip(want, got, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-12)


def kept_bytes(count, checkpoint):
    def function(x, s):
        return foreach(lambda d, h: ([], ((h * 2 + d).sin() * h).tanh()), x, s, checkpoint=checkpoint)[1]

    _, block = gradients(function, [np.ones((count, 50)), np.ones(50)])
    return int(block._cached_op.summary().split("kept for backward ")[1].split(" bytes")[0])


def test_memory():
    row = 50 * 8
    assert kept_bytes(1000, None) >= 1000 * row
    assert kept_bytes(1000, "sqrt") <= 3 * 32 * row + 1000
    assert kept_bytes(1000, 100) <= 2 * 10 * row + 1000


@pytest.mark.parametrize("count", [1000, 1024, 36, 960])
def test_segments_that_fill_the_rows_copy_no_sequence(count):
    def function(x, s):
        return foreach(lambda d, h: ([], (h * 2 + d).tanh()), x, s, checkpoint="sqrt")[1]

    _, block = gradients(function, [np.ones((count, 50)), np.ones(50)])
    assert "slice_axis" not in block._cached_op.plan_text()
    arenas = re.findall(r"arena (\d+) bytes", block._cached_op.summary())
    assert len(arenas) == 2
    assert max(int(arena) for arena in arenas) <= 4 * 50 * 8


@pytest.mark.parametrize("checkpoint", ["sqrt", 1, 3])
def test_recomputation_draws_the_same_numbers(checkpoint):
    drop = gluon.nn.Dropout(0.5)
    block = Block(lambda x: foreach(lambda d, s: (drop(d) * s, s), x, nd.ones((200,)), checkpoint=checkpoint)[0], drop)
    block.hybridize()
    x = nd.ones((8, 200))
    x.attach_grad()
    with mx.autograd.record():
        out = block(x)
    out.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), out.asnumpy())
    assert 0.3 < (out.asnumpy() > 0).mean() < 0.7
    assert (out.asnumpy()[0] != out.asnumpy()[1]).any()
    assert (out.asnumpy()[0] != out.asnumpy()[7]).any()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("checkpoint", ["sqrt", 1, 3, 7])
def test_checkpoints_change_no_draw(checkpoint, reverse):
    """Random draws depend on the iterations of the loop as written, not on the segments that it runs in."""
    drop = gluon.nn.Dropout(0.5)

    def function(x, option):
        return foreach(lambda d, s: (drop(d) * s, drop(s)), x, nd.ones((50,)), reverse=reverse, checkpoint=option)[0]

    found = []
    for option in (None, checkpoint):
        block = Block(lambda x, o=option: function(x, o), drop)
        block.hybridize()
        mx.random.seed(17)
        x = nd.ones((8, 50))
        x.attach_grad()
        with mx.autograd.record():
            out = block(x)
        out.backward()
        found.append((out.asnumpy(), x.grad.asnumpy()))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("checkpoint", ["sqrt", 3])
def test_checkpoints_change_no_draw_of_a_loop_with_a_condition(checkpoint):
    drop = gluon.nn.Dropout(0.5)

    def function(x, option):
        return while_loop(
            lambda i, v: drop(x).sum() + i < 1000, lambda i, v: (drop(v) * x, (i + 1, v)), (x[:1] * 0, x), 100,
            checkpoint=option,
        )[0]  # fmt: skip

    found = []
    for option in (None, checkpoint):
        block = Block(lambda x, o=option: function(x, o), drop)
        block.hybridize()
        mx.random.seed(17)
        x = nd.ones((40,))
        x.attach_grad()
        with mx.autograd.record():
            out = block(x)
        out.backward()
        found.append((out.asnumpy(), x.grad.asnumpy()))
    assert len(np.unique(found[0][0].sum(axis=1))) > 5
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("checkpoint", ["sqrt", 2])
def test_running_statistics_advance_once(checkpoint):
    found = []
    for option in (None, checkpoint):
        norm = gluon.nn.BatchNorm(in_channels=3)
        block = Block(lambda x, n=norm, o=option: foreach(lambda d, s: (n(d), s), x, [], checkpoint=o)[0], norm)
        block.hybridize()
        x = nd.array(np.random.default_rng(1).normal(size=(5, 8, 3)).astype("float32"))
        x.attach_grad()
        with mx.autograd.record():
            (block(x) ** 3).sum().backward()
        found.append((norm.running_mean.data().asnumpy(), norm.running_var.data().asnumpy(), x.grad.asnumpy()))
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------------------------------------------------- policies
def is_product(node):
    return node.op == "FullyConnected"


POLICIES = {
    "none": lambda node: False,
    "all": lambda node: True,
    "sin": lambda node: node.op == "sin",
    "alternate": lambda node: len(node.name) % 2 == 0,
}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("count", [1, 7])
def test_a_policy_changes_no_gradient(count, policy, reverse, order):
    def function(x, w, s, checkpoint=None):
        def body(d, h):
            inner, _ = foreach(lambda e, g: (e * g, g + e.cos()), w, h.sum().reshape((1,)))
            return (h * w + d).sin() * d, ((h * w).tanh() + inner.reshape((-1,)) * d)

        outs, last = foreach(body, x, s, reverse=reverse, checkpoint=checkpoint)
        return outs.sum(axis=0) + last

    r = np.random.default_rng(count)
    arrays = r.normal(size=(count, 3)), r.normal(size=3), r.normal(size=3)
    want, _ = gradients(lambda x, w, s: function(x, w, s), arrays, order)
    got, _ = gradients(lambda *a: function(*a, checkpoint=POLICIES[policy]), arrays, order)
    for one, two in zip(want, got, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_in_a_loop_with_a_condition(policy):
    def function(x, w, checkpoint=None):
        return while_loop(
            lambda i, v: i < 4,
            lambda i, v: ((v * w).cos(), (i + 1, (v * w).sin() + x)),
            (x[:1] * 0, x),
            6,
            checkpoint=checkpoint,
        )[0].sum(axis=0)

    arrays = np.linspace(0.1, 1, 3), np.linspace(1, 2, 3)
    want, _ = gradients(function, arrays)
    got, _ = gradients(lambda *a: function(*a, checkpoint=POLICIES[policy]), arrays)
    for one, two in zip(want, got, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-12)


def test_a_policy_keeps_its_chosen_values_and_the_states():
    row, count = 50 * 8, 100

    def kept(policy):
        return kept_bytes(count, policy)

    assert count * row <= kept(POLICIES["none"]) < count * row * 1.05  # the states alone
    assert 2 * count * row <= kept(POLICIES["sin"]) < 2.05 * count * row
    assert kept(None) > kept(POLICIES["sin"])


def test_values_kept_by_a_policy_are_not_recomputed():
    def function(x, w, s, checkpoint=None):
        def body(d, h):
            return [], nd.FullyConnected(h, w, no_bias=True, num_hidden=3).exp() * d

        return foreach(body, x, s, checkpoint=checkpoint)[1]

    def products(policy):
        r = np.random.default_rng(0)
        arrays = r.normal(size=(5, 2, 3)) / 9, r.normal(size=(3, 3)), r.normal(size=(2, 3))
        _, block = gradients(lambda *a: function(*a, checkpoint=policy), arrays)
        return block._cached_op.graph_text().count("FullyConnected")

    assert products(lambda node: False) == products(is_product) + 1


def test_a_policy_is_called_once_per_value_of_the_body():
    asked = []

    def policy(node):
        asked.append(node)
        return False

    def function(x, s):
        inner = lambda e, g: (e.sin(), g)  # noqa: E731
        return foreach(lambda d, h: (foreach(inner, h, [])[0] * d, h * 2), x, s, checkpoint=policy)[0]

    gradients(function, [np.ones((4, 3)), np.ones(3)])
    assert sorted(node.op for node in asked) == sorted(["_foreach", "_mul_scalar", "broadcast_mul"]) or sorted(
        node.op for node in asked
    ) == sorted(["_foreach", "_mul_scalar", "elemwise_mul"])
    scalar = next(node for node in asked if node.op == "_mul_scalar")
    assert float(scalar.attrs["scalar"]) == 2
    assert scalar.shapes == ((3,),)
    assert scalar.dtypes == (np.dtype("float64"),)
    assert scalar.name


def test_arrays_do_not_call_a_policy():
    asked = []
    x = nd.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with mx.autograd.record():
        last = foreach(lambda d, s: ([], (s * d).sin()), x, nd.ones((1,)), checkpoint=asked.append)[1]
    last.backward()
    assert asked == []
    assert np.all(x.grad.asnumpy() != 0)


def test_saved_models_keep_the_answers_of_a_policy(tmp_path):
    def function(x, s):
        body = lambda d, h: ([], ((h * 2 + d).sin() * h).tanh())  # noqa: E731
        return foreach(body, x, s, checkpoint=POLICIES["sin"])[1]

    block = Block(function)
    block.hybridize()
    args = nd.ones((100, 50)), nd.ones((50,))
    block(*args)
    block.export(str(tmp_path / "net"))
    names = ["data0", "data1"]
    loaded = gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), names, str(tmp_path / "net-0000.params"))
    loaded.hybridize()
    found = []
    for net in (block, loaded):
        x = args[0].copy()
        x.attach_grad()
        with mx.autograd.record():
            net(x, args[1]).sum().backward()
        kept = int(net._cached_op.summary().split("kept for backward ")[1].split(" bytes")[0])
        found.append((kept, x.grad.asnumpy()))
    assert found[0][0] == found[1][0] < 3 * 100 * 50 * 4
    np.testing.assert_array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize("keep", [True, False])
def test_a_policy_over_random_draws_and_running_statistics(keep):
    drop, norm = gluon.nn.Dropout(0.5), gluon.nn.BatchNorm(in_channels=200)
    block = Block(
        lambda x: foreach(lambda d, s: (drop(d) * s + norm(d) * 0, s), x, nd.ones((200,)), checkpoint=lambda n: keep)[
            0
        ],
        drop,
        norm,
    )
    block.hybridize()
    x = nd.ones((8, 4, 200))
    x.attach_grad()
    with mx.autograd.record():
        out = block(x)
    out.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), out.asnumpy(), atol=1e-5)
    np.testing.assert_allclose(norm.running_mean.data().asnumpy(), 1 - 0.9**8, rtol=1e-5)


def test_a_policy_must_answer_true_or_false():
    block = Block(lambda x: foreach(lambda d, s: (d * 2, s), x, [], checkpoint=lambda node: node.op)[0])
    block.hybridize()
    with pytest.raises(errors.TypeError, match=r"True \(keep\) or False"):
        block(nd.ones((2, 3)))


@pytest.mark.parametrize("checkpoint", ["all", 0, True, -3, 2.5])
def test_wrong_values(checkpoint):
    with pytest.raises(errors.ParamError, match="checkpoint"):
        foreach(lambda d, s: (d, s), nd.ones((2, 1)), [], checkpoint=checkpoint)
