"""Graphs that are cut where sizes depend on values read their inputs as they were when the call began."""

from __future__ import annotations

import hybridnet as mx
import numpy as onp
import pytest
from hybridnet import nd

MASK = onp.array([1, 0, 0, 1], dtype="float32")
START = onp.array([-1.25, -0.25, -1.5, 0.5], dtype="float32")


class Writer(mx.gluon.HybridBlock):
    """Selects elements of a parameter, then overwrites it; `order` names the results."""

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


class Momentum(mx.gluon.HybridBlock):
    """Selects a momentum, lets an optimizer update it, and reads it again."""

    def __init__(self, cut: bool) -> None:
        super().__init__()
        self._cut = cut
        self.w = self.params.get("w", shape=(2,), grad_req="null")
        self.m = self.params.get("m", shape=(2,), grad_req="null")

    def forward(self, x: nd.NDArray) -> list[nd.NDArray]:
        w, m = self.w.data(), self.m.data()
        before = nd.contrib.boolean_mask(m, nd.ones_like(m)) if self._cut else m * 1
        nd.sgd_mom_update(w, x, m, lr=1, momentum=0.5, wd=0, out=w)
        after = m * 1
        m += 5
        return [before, w * 1, after, m * 1]


@pytest.mark.parametrize("cut", [False, True])
def test_an_optimizer_in_a_block_updates_its_state_for_later_lines_and_calls(cut: bool) -> None:
    results = []
    for hybridize in (False, True):
        net = Momentum(cut)
        net.initialize(mx.init.One())
        if hybridize:
            net.hybridize()
        calls = [[y.asnumpy() for y in net(nd.array([1.0, 2.0]))] for _ in range(3)]
        results.append((calls, net.m.data().asnumpy(), net.w.data().asnumpy()))
    (calls, m, w), (calls_of_graph, m_of_graph, w_of_graph) = results
    onp.testing.assert_allclose(calls, calls_of_graph)
    onp.testing.assert_allclose([m, w], [m_of_graph, w_of_graph])


class Predicting(mx.gluon.HybridBlock):
    """Normalizes selected rows, then overwrites the running mean."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.norm = mx.gluon.nn.BatchNorm(in_channels=1, momentum=0.5)

    def forward(self, x: nd.NDArray) -> tuple[nd.NDArray, nd.NDArray]:
        y = self.norm(nd.contrib.boolean_mask(x, nd.array([1.0, 1.0])))
        self.norm.running_mean.data()[:] = 100
        return x * 1, y


def test_prediction_behind_a_mask_reads_statistics_that_are_written_later() -> None:
    net = Predicting()
    net.initialize()
    net.hybridize()
    _, y = net(nd.array([[1.0], [2.0]]))
    onp.testing.assert_allclose(y.asnumpy(), [[1], [2]], rtol=1e-4)
    assert net.norm.running_mean.data().asscalar() == 100


def test_a_state_that_an_operator_and_the_program_write_is_refused_with_both_lines() -> None:
    net = Predicting()
    net.initialize()
    net.hybridize()
    with mx.autograd.train_mode(), pytest.raises(mx.errors.ValueError, match=r"written twice(.|\n)*test_segments"):
        net(nd.array([[1.0], [2.0]]))


class Overwriting(mx.gluon.HybridBlock):
    """Overwrites the running mean that its prediction has read; the gradient must be that of the old value."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.norm = mx.gluon.nn.BatchNorm(in_channels=1)

    def forward(self, x: nd.NDArray) -> tuple[nd.NDArray, nd.NDArray]:
        y = self.norm(x[:2] * 1)
        p = y * y * y
        nd.broadcast_add(x[0] * 0, nd.array([100.0]), out=self.norm.running_mean.data())
        return p, y * 3


def test_a_repeated_forward_run_never_reads_a_statistic_that_the_call_wrote() -> None:
    net = Overwriting()
    net.initialize()
    net.hybridize()
    for call in range(2):
        net.norm.running_mean.set_data(nd.array([0.5]))
        net.norm.running_var.set_data(nd.array([2.0]))
        x = nd.array([[1.0], [2.0], [3.0]])
        x.attach_grad()
        with mx.autograd.record(train_mode=False):
            p, y = net(x)
            loss = p.sum() + y.sum() if call == 0 else p.sum()
        loss.backward()
    rate = 1 / onp.sqrt(2 + 1e-5)
    normal = (onp.array([1.0, 2.0]) - 0.5) * rate
    onp.testing.assert_allclose(x.grad.asnumpy().ravel(), [*(3 * normal**2 * rate), 0], rtol=1e-4)


# ------------------------------------------------------------------------------------------- runs that are repeated
class Dropping(mx.gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.drop = mx.gluon.nn.Dropout(0.5)

    def forward(self, x: nd.NDArray) -> nd.NDArray:
        return nd.contrib.cond(x.sum() > 0, lambda: self.drop(x) * 2, lambda: self.drop(x)[:1])


def test_gradients_with_a_graph_of_their_own_belong_to_the_draws_of_the_run() -> None:
    net = Dropping()
    net.initialize()
    net.hybridize()
    for _ in range(4):
        x = nd.ones(64)
        x.attach_grad()
        with mx.autograd.record():
            y = net(x)
            gradient = mx.autograd.grad(y, [x], create_graph=True)[0]
        onp.testing.assert_array_equal(gradient.asnumpy(), y.asnumpy())


class Looping(mx.gluon.HybridBlock):
    def __init__(self, **options: bool) -> None:
        super().__init__()
        self._options = options
        with self.name_scope():
            self.norm = mx.gluon.nn.BatchNorm(in_channels=4, momentum=0.5)

    def forward(self, x: nd.NDArray) -> nd.NDArray:
        def step(i: nd.NDArray, v: nd.NDArray):
            return [i + 1, self.norm(v) + v]

        return nd.contrib.while_loop(
            lambda i, v: i < 2, step, [nd.array([0.0]), x], has_outputs=False, **self._options
        )[1]


def test_a_repeated_loop_without_a_limit_updates_statistics_once() -> None:
    means = []
    for hybridize in (False, True):
        net = Looping()
        net.initialize()
        if hybridize:
            net.hybridize()
        x = nd.arange(12).reshape((3, 4))
        x.attach_grad()
        with mx.autograd.record():
            mx.autograd.grad((net(x) ** 2).sum(), [x], create_graph=True)[0].wait_to_read()
        means.append(net.norm.running_mean.data().asnumpy())
    onp.testing.assert_allclose(means[0], means[1], rtol=1e-5)


@pytest.mark.parametrize("truncate", [-1, 3, 4, 5])
def test_truncation_of_loops_that_run_by_steps_is_that_of_arrays(truncate: int) -> None:
    def inner(state: nd.NDArray) -> nd.NDArray:
        return nd.contrib.while_loop(
            lambda i, q: i < 1, lambda i, q: [i + 1, q * 3], [nd.array([0.0]), state], has_outputs=False
        )[1]

    gradients = []
    for hybridize in (False, True):
        net = mx.gluon.nn.HybridLambda(
            lambda F, x: F.contrib.foreach(
                lambda d, s: (inner(s), s * 2), F.ones((3, 1)), x, truncate_gradient=truncate
            )[0]
        )
        if hybridize:
            net.hybridize()
        x = nd.array([2.0])
        x.attach_grad()
        with mx.autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        gradients.append(x.grad.asnumpy())
    onp.testing.assert_allclose(gradients[0], gradients[1])


def test_a_report_of_a_cut_graph_lists_each_segment_once() -> None:
    net = mx.gluon.nn.HybridLambda(lambda F, x: F.contrib.boolean_mask(x * 2, x[:, 0] > 0) + 1)
    net.hybridize()
    x = nd.ones((3, 2))
    x.attach_grad()
    with mx.autograd.record():
        loss = net(x).sum()
    loss.backward()
    text = net.pass_report()
    assert text.count("segment 0") == 1
    assert " 0 plans" not in text
