"""Explicit sizes of 0 in a block mean 0 in its graph, too, not an unknown size."""

from __future__ import annotations

import numpy as onp
import pytest
from control_flow import c_model
from hybridnet import autograd, gluon, nd
from hybridnet import np as mxnp
from hybridnet.gluon import HybridBlock, SymbolBlock


class Classic(HybridBlock):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def hybrid_forward(self, F, x):
        return self.function(F, x)


class Plain(HybridBlock):
    def __init__(self, function, module=nd):
        super().__init__()
        self.function, self.module = function, module

    def forward(self, x):
        return self.function(self.module, x)


def joined(make):
    """Returns a function that puts the rows of make(F) in front of the rows of x."""
    return lambda F, x: F.concat(make(F), x, dim=0)


FORMS = {
    "zeros": joined(lambda F: F.zeros((0, 2))),
    "ones": joined(lambda F: F.ones(shape=(0, 2))),
    "full": joined(lambda F: F.full((0, 2), 3.0)),
    "uniform": joined(lambda F: F.random.uniform(shape=(0, 2))),
    "normal": joined(lambda F: F.random.normal(0, 1, (0, 2))),
    "randint": joined(lambda F: F.cast(F.random.randint(0, 3, shape=(0, 2)), "float32")),
    "arange": lambda F, x: F.concat(F.arange(0), F.arange(3, 3), x.reshape((-1,)), dim=0),
    "eye": lambda F, x: F.concat(F.eye(0).reshape((0, 0)).reshape((-1,)), x.reshape((-1,)), dim=0),
    "linspace": lambda F, x: F.concat(F.linspace(0, 1, 0), x.reshape((-1,)), dim=0),
    "one row plus no rows": lambda F, x: (F.zeros((0, 2)) + x[0:1], x * 1),
    "broadcast": lambda F, x: (F.broadcast_add(F.zeros((0, 2)), x[0:1]), x * 1),
    "empty products": lambda F, x: F.dot(F.zeros((2, 0)), F.ones((0, 2))) + x,
    "empty sums": lambda F, x: F.broadcast_add(F.sum(F.ones((0, 2)), axis=0, keepdims=True), x),
    "empty means": lambda F, x: F.broadcast_add(F.mean(x[0:0], axis=0, keepdims=True), x),
    "empty norms": lambda F, x: F.broadcast_add(F.norm(x[1:1]).reshape((1, 1)), x),
    "slices of nothing": lambda F, x: F.concat(x[2:1], F.slice_axis(x, axis=0, begin=1, end=1), x, dim=0),
    "a split with no rows": lambda F, x: F.concat(*F.split_v2(x, (0,), axis=0), dim=0),
    "rows by no positions": lambda F, x: F.concat(F.take(x, F.zeros((0,))), x, dim=0),
    "a loop of no trips": lambda F, x: [
        *F.contrib.foreach(lambda d, s: (d + s, d * s), F.zeros((0, 2)), x[0]), x * 1
    ],
    "no rows in a body": lambda F, x: F.contrib.foreach(
        lambda d, s: (F.concat(F.zeros((0,)), d, F.ones((0,)), dim=0), s), x, x[0]
    )[0],
    "written and read": lambda F, x: _written(F, x),
}  # fmt: skip


def _written(F, x):
    t = F.zeros((0, 2))
    t += 1
    t[:] = 5
    s = x * 1
    s[1:1] = 7
    s[0:0] += 1
    return F.concat(t, s, dim=0)


def values(out):
    return [a.asnumpy() for a in out] if isinstance(out, (list, tuple)) else [out.asnumpy()]


def assert_same(got, want):
    for one, other in zip(got, want, strict=True):
        assert one.shape == other.shape
        onp.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", FORMS)
def test_a_block_gives_the_values_of_arrays_in_every_mode(name, tmp_path):
    x = nd.array([[1.0, 2.0], [3.0, 4.0]])
    want = values(FORMS[name](nd, x))
    for net in (Classic(FORMS[name]), Plain(FORMS[name])):
        for static_alloc in (False, True):
            net.hybridize(static_alloc=static_alloc)
            assert_same(values(net(x)), want)
        files = net.export(str(tmp_path / "m"))
        assert_same(values(SymbolBlock.imports(files[0], ["data"], files[1])(x)), want)
        assert_same(c_model.run(*files, {"data": x.asnumpy()}), want)


@pytest.mark.parametrize("name", [name for name in FORMS if name != "randint"])
def test_gradients_are_those_of_arrays(name):
    found = []
    for active in (False, True):
        net = Classic(FORMS[name])
        net.hybridize(active=active)
        x = nd.array([[1.0, 2.0], [3.0, 4.0]])
        x.attach_grad()
        with autograd.record():
            out = net(x)
            loss = sum((a * a).sum() for a in (out if isinstance(out, (list, tuple)) else [out]))
        loss.backward()
        found.append(x.grad.asnumpy())
    onp.testing.assert_array_equal(*found)


NUMPY_FORMS = {
    "zeros": lambda np, x: np.concatenate([np.zeros((0, 2)), x]),
    "ones": lambda np, x: np.concatenate([np.ones((0, 2)), x]),
    "full": lambda np, x: np.concatenate([np.full((0, 2), 3.0), x]),
    "uniform": lambda np, x: np.concatenate([np.random.uniform(size=(0, 2)), x]),
    "normal": lambda np, x: np.concatenate([np.random.normal(size=(0, 2)), x]),
    "arange": lambda np, x: np.concatenate([np.arange(0), x.reshape(-1)]),
    "eye": lambda np, x: np.concatenate([np.eye(0, 2), x]),
    "one row plus no rows": lambda np, x: np.concatenate([np.zeros((0, 2)) + x[0:1], x]),
    "sums": lambda np, x: np.sum(np.ones((0, 2)), axis=0) + x,
    "products": lambda np, x: np.dot(np.zeros((2, 0)), np.ones((0, 2))) + x,
    "like": lambda np, x: np.concatenate([np.zeros_like(x[0:0]), np.ones_like(x[2:]), x]),
}


@pytest.mark.parametrize("name", NUMPY_FORMS)
def test_numpy_blocks_give_the_values_of_arrays(name):
    x = mxnp.array([[1.0, 2.0], [3.0, 4.0]])
    net = Plain(NUMPY_FORMS[name], mxnp)
    want = values(net(x))
    net.hybridize(strict=True)
    assert_same(values(net(x)), want)


def test_states_of_recurrent_cells_still_take_the_size_of_the_batch():
    class Net(HybridBlock):
        def __init__(self):
            super().__init__()
            self.cell = gluon.rnn.LSTMCell(4, input_size=3)

        def hybrid_forward(self, F, x):
            out, _ = self.cell(x, self.cell.begin_state(func=F.zeros))
            return out

    net = Net()
    net.initialize()
    net.hybridize()
    assert net(nd.ones((5, 3))).shape == (5, 4)
