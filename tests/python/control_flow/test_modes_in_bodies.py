"""pause(), predict_mode() and train_mode() inside bodies have the same effect in graphs as on arrays."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, errors, gluon
from hybridnet.contrib import cond, foreach, while_loop

from .blocks import Block, exported, flat, operators

nd = mx.nd


def within(scope, function):
    def call(*args):
        with scope():
            return function(*args)

    return call


def in_foreach(scope, inner):
    inside = within(scope, inner)
    return lambda x: foreach(lambda d, s: (d * inside(d) + s, s + inside(s)), x, x[0])


def in_while_loop(scope, inner):
    inside = within(scope, inner)
    return lambda x: while_loop(lambda i, a: i < 3, lambda i, a: (a * inside(a), (i + 1, a + inside(a))), (0, x), 5)


def in_a_branch(scope, inner):
    inside = within(scope, inner)
    return lambda x: cond(x.sum() > -1e9, lambda: x * inside(x), lambda: inside(x))


def around_a_loop(scope, inner):
    inside = within(scope, lambda x: foreach(lambda d, s: (inner(d), s), x, [])[0])
    return lambda x: x * inside(x)


PLACES = [in_foreach, in_while_loop, in_a_branch, around_a_loop]


def rows():
    return nd.array(np.random.default_rng(0).normal(size=(5, 8, 3)).astype("float32"))


def train(block, hybridized, norm=None, train_mode=True):
    if norm is not None:
        for statistic, value in ((norm.running_mean, 0.5), (norm.running_var, 2)):
            statistic.set_data(nd.full((3,), value))
    block.hybridize(hybridized)
    x = rows()
    x.attach_grad()
    with autograd.record(train_mode=train_mode):
        out = flat(block(x))
        loss = sum((array.astype("float32") ** 2).sum() * (i + 1) for i, array in enumerate(out))
    loss.backward()
    found = [array.asnumpy() for array in out] + [x.grad.asnumpy()]
    return found if norm is None else [*found, norm.running_mean.data().asnumpy(), norm.gamma.grad().asnumpy()]


def agree(one, two):
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("scope", [autograd.pause, lambda: autograd.pause(train_mode=True)])
def test_work_of_a_body_within_pause_has_no_gradient(place, scope):
    block = Block(place(scope, lambda v: v.sin()))
    agree(train(block, False), train(block, True))


def test_pause_ends_where_its_block_ends():
    def function(x):
        with autograd.pause():
            with autograd.record():
                a = x * 2
            b = x * 3
        return x * a * b

    block = Block(function)
    agree(train(block, False), train(block, True))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("scope", [autograd.pause, autograd.predict_mode])
@pytest.mark.parametrize("trained_first", [False, True])
def test_batch_norm_within_predict_mode_uses_and_keeps_its_statistics(place, scope, trained_first):
    norm = gluon.nn.BatchNorm(axis=-1, in_channels=3)
    block = Block(place(scope, lambda v: norm(v)), norm)
    block.hybridize()
    with autograd.train_mode() if trained_first else autograd.predict_mode():
        block(rows())  # the graph may be traced in either mode
    agree(train(block, False, norm), train(block, True, norm))


@pytest.mark.parametrize("place", PLACES)
def test_dropout_within_predict_mode_passes(place, tmp_path):
    drop = gluon.nn.Dropout(0.5)
    block = Block(place(autograd.predict_mode, drop), drop)
    want = train(block, False)
    agree(want, train(block, True))
    with autograd.train_mode():
        agree(want[:-1], [array.asnumpy() for array in flat(exported(block, tmp_path, 1)(rows()))])


def test_dropout_within_train_mode_drops_in_prediction():
    block = Block(
        lambda x: foreach(
            lambda d, s: (within(autograd.train_mode, lambda: operators(d).Dropout(d, p=0.5))(), s), x, []
        )[0]
    )
    block.hybridize()
    kept = block(nd.ones((4, 1000))).asnumpy() > 0
    assert 0.4 < kept.mean() < 0.6
    assert (kept[0] != kept[1]).any()


def test_batch_norm_within_train_mode_learns_when_the_graph_does_and_is_refused_else():
    norm = gluon.nn.BatchNorm(axis=-1, in_channels=3)
    block = Block(in_foreach(autograd.train_mode, lambda v: norm(v)), norm)
    agree(train(block, False, norm), train(block, True, norm))
    block.hybridize(strict=True)
    with pytest.raises(errors.TraceError, match=r"BatchNorm.*train_mode\(\) inside a hybridized block"):
        block(rows())
