"""Graphs that are cut where sizes depend on values read their inputs as they were when the call began."""

from __future__ import annotations

import hybridnet as mx
import numpy as onp
import pytest
from hybridnet import nd

MASK = onp.array([1, 0, 0, 1], dtype="float32")
START = onp.array([-1.25, -0.25, -1.5, 0.5], dtype="float32")


class Writer(mx.gluon.HybridBlock):
    """Selects elements of a parameter, then overwrites it; `order` names what is returned first."""

    def __init__(self, returns: str) -> None:
        super().__init__()
        self._returns = returns
        self.w = self.params.get("w", shape=(4,), grad_req="null")
        self.v = self.params.get("v", shape=(4,), grad_req="null")

    def forward(self, mask: nd.NDArray) -> list[nd.NDArray] | nd.NDArray:
        w, v = self.w.data(), self.v.data()
        results = {"selected": nd.contrib.boolean_mask(w, mask)}
        results["doubled"] = v * 2
        results["before"] = w * 1
        w[:] = v + 10
        results["after"] = w + 1
        results["selected after"] = nd.contrib.boolean_mask(w, mask)
        return [results[name] for name in self._returns.split(", ")]


def made(returns: str) -> Writer:
    net = Writer(returns)
    net.initialize()
    net.w.set_data(nd.array(START))
    net.v.set_data(nd.arange(4))
    return net


ORDERS = [
    "doubled, selected",
    "selected, doubled",
    "after, selected",
    "before, selected",
    "after, before, selected",
    "selected after, selected, before",
    "after, selected after, doubled, selected",
]


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("returns", ORDERS)
def test_values_selected_before_a_write_are_the_old_ones(returns: str, static: bool) -> None:
    imperative, hybridized = made(returns), made(returns)
    hybridized.hybridize(static_alloc=static)
    for _ in range(3):
        wanted, got = imperative(nd.array(MASK)), hybridized(nd.array(MASK))
        for one, other in zip(wanted, got, strict=True):
            onp.testing.assert_array_equal(one.asnumpy(), other.asnumpy())
        onp.testing.assert_array_equal(imperative.w.data().asnumpy(), hybridized.w.data().asnumpy())


def test_an_exported_graph_selects_the_old_values(tmp_path) -> None:
    net = made("doubled, selected")
    net.hybridize()
    wanted = [x.asnumpy() for x in made("doubled, selected")(nd.array(MASK))]
    net(nd.array(MASK))
    net.w.set_data(nd.array(START))
    files = net.export(str(tmp_path / "net"))
    loaded = mx.gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    for one, other in zip(wanted, loaded(nd.array(MASK)), strict=True):
        onp.testing.assert_array_equal(one, other.asnumpy())


class Running(mx.gluon.HybridBlock):
    """Returns the running mean that batch normalization had before it was updated, behind a mask."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.norm = mx.gluon.nn.BatchNorm(in_channels=4)

    def forward(self, x: nd.NDArray, mask: nd.NDArray) -> tuple[nd.NDArray, nd.NDArray]:
        mean = self.norm.running_mean.data()
        return self.norm(x), nd.contrib.boolean_mask(mean, mask)


def test_statistics_behind_a_mask_are_those_before_their_update() -> None:
    net = Running()
    net.initialize()
    net.hybridize()
    x = nd.array(onp.random.default_rng(0).normal(3, 1, (16, 4)).astype("float32"))
    with mx.autograd.record():
        _, first = net(x, nd.array(MASK))
        _, second = net(x, nd.array(MASK))
    onp.testing.assert_array_equal(first.asnumpy(), [0, 0])
    expected = 0.1 * x.asnumpy().mean(axis=0)[[0, 3]]
    onp.testing.assert_allclose(second.asnumpy(), expected, rtol=1e-5)
