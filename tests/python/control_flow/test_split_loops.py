"""A loop over stacked layers trains as one loop per layer; each reads the layer below in one product over all rows."""

from __future__ import annotations

import re

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet.contrib import foreach

nd = mx.nd
WIDTH = 4
PASSES = "fast_run,-rnn_cell"  # rnn_cell would replace the loops by the operator RNN


class Stack(gluon.HybridBlock):
    """Loops over step(net, d, states) -> (outs, states); a cell has a dense layer for input and one for state."""

    def __init__(self, step, cells=2, **options) -> None:
        super().__init__()
        self.step, self.options = step, options
        self.layers = []
        for i in range(2 * cells):
            layer = gluon.nn.Dense(WIDTH, in_units=WIDTH, flatten=False)
            setattr(self, f"layer{i}", layer)
            self.layers.append(layer)
        self.drop = gluon.nn.Dropout(0.5)
        self.initialize(mx.init.Normal(0.5))

    def forward(self, x, *states):
        outs, last = foreach(lambda d, s: self.step(self, d, s), x, list(states), **self.options)
        outs = outs if isinstance(outs, (list, tuple)) else [outs]
        return sum((o * (i + 1)).sum() for i, o in enumerate([*outs, *last]))

    def cell(self, i, x, h):
        return (self.layers[2 * i](x) + self.layers[2 * i + 1](h)).tanh()


def two_layers(net, d, s):
    h0 = net.cell(0, d, s[0])
    h1 = net.cell(1, h0, s[1])
    return h1, [h0, h1]


def states_in_other_order(net, d, s):
    h0 = net.cell(0, d, s[1])
    h1 = net.cell(1, h0, s[0])
    return [h0, h1, h0 * h1], [h1, h0]


def three_layers(net, d, s):
    h0 = net.cell(0, d, s[0])
    h1 = net.cell(1, h0, s[1])
    h2 = net.cell(2, h1 + h0, s[2])
    return h2, [h0, h1, h2]


def reads_the_state_before(net, d, s):
    h0 = net.cell(0, d, s[0])
    h1 = net.cell(1, h0, s[1])
    return h1 * s[0], [h0, h1 + s[0]]


def with_dropout(net, d, s):
    h0 = net.cell(0, net.drop(d), s[0])
    h1 = net.cell(1, net.drop(h0), s[1])
    return net.drop(h1), [h0, h1]


def state_that_only_follows(net, d, s):
    h0 = net.cell(0, d, s[0])
    h1 = net.cell(1, h0, s[1])
    return h1, [h0, h1, h0]


def layer_below_alone(net, d, s):
    h0 = net.layers[1](s[0]).tanh()
    h1 = net.cell(1, h0, s[1]) * d
    return h1, [h0, h1]


def feeds_back(net, d, s):
    h0 = net.cell(0, d + s[1], s[0])
    h1 = net.cell(1, h0, s[1])
    return h1, [h0, h1]


def one_layer(net, d, s):
    h0 = net.cell(0, d, s[0])
    return net.layers[2](h0), [h0, s[1] + d]


SPLIT = {
    two_layers: (2, 2),
    states_in_other_order: (2, 2),
    three_layers: (3, 3),
    reads_the_state_before: (2, 2),
    with_dropout: (3, 2),  # the dropout of the data is a loop of its own, without states
    state_that_only_follows: (2, 3),
    layer_below_alone: (2, 2),
}


def trained(step, passes=None, order=1, count=5, **options):
    """Returns value and gradients, and the number of loops of the forward graph."""
    _, states = SPLIT.get(step, (2, 2))
    mx.random.seed(3)
    r = np.random.default_rng(5)
    net = Stack(step, max(2, states), **options)
    net(nd.zeros((1, 2, WIDTH)), *[nd.zeros((2, WIDTH))] * states)
    for i, parameter in enumerate(net.collect_params().values()):
        parameter.set_data(nd.array(np.random.default_rng(i).normal(size=parameter.shape) * 0.5))
    net.cast("float64")
    if passes != "arrays":
        net.hybridize(passes=passes or PASSES)
    arrays = [nd.array(r.normal(size=(count, 2, WIDTH)), dtype="float64")]
    arrays += [nd.array(r.normal(size=(2, WIDTH)), dtype="float64") for _ in range(states)]
    for a in arrays:
        a.attach_grad()
    mx.random.seed(7)
    with mx.autograd.record():
        loss = net(*arrays)
        if order == 2:
            loss = sum((g * g).sum() for g in mx.autograd.grad(loss, arrays, create_graph=True, retain_graph=True))
    loss.backward()
    values = [loss.asnumpy()] + [a.grad.asnumpy() for a in arrays]
    values += [p.grad().asnumpy() for p in net.collect_params().values() if p.grad_req != "null"]
    loops = 0 if passes == "arrays" else loops_of(net)
    return values, loops


def loops_of(net):
    text = net._cached_op.graph_text().split("backward:")[0]
    return len(re.findall(r"^%\S+ = loop\[", text, re.MULTILINE))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("step", SPLIT, ids=lambda step: step.__name__)
def test_each_layer_becomes_a_loop_with_the_same_gradients(step, reverse, order):
    got, loops = trained(step, order=order, reverse=reverse)
    want, one = trained(step, passes=f"{PASSES},-split_loops", order=order, reverse=reverse)
    assert one == 1
    if order == 1:
        assert loops == SPLIT[step][0]
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
    if step is not with_dropout:
        for a, b in zip(got, trained(step, passes="arrays", order=order, reverse=reverse)[0], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("step", [feeds_back, one_layer], ids=lambda step: step.__name__)
def test_a_layer_that_reads_the_one_above_stays_with_it(step):
    got, loops = trained(step)
    assert loops == 1
    for a, b in zip(got, trained(step, passes="arrays")[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("options", [{"checkpoint": "sqrt"}, {"truncate_gradient": 2}, {"detach_every": 2}], ids=str)
def test_loops_that_keep_less_are_not_split(options):
    _, loops = trained(two_layers, **options)
    _, unsplit = trained(two_layers, passes=f"{PASSES},-split_loops", **options)
    assert loops == unsplit


def test_prediction_holds_one_iteration_only():
    net = Stack(two_layers)
    net.hybridize(passes=PASSES)
    net(nd.ones((6, 2, WIDTH)), nd.ones((2, WIDTH)), nd.ones((2, WIDTH)))
    assert loops_of(net) == 1


def test_weights_of_stacked_layers_meet_all_iterations_at_once():
    net = Stack(two_layers)
    net.hybridize(passes=PASSES)
    args = [nd.ones((6, 2, WIDTH)), nd.ones((2, WIDTH)), nd.ones((2, WIDTH))]
    with mx.autograd.record():
        net(*args).backward()
    inside = [line for line in net._cached_op.graph_text().splitlines() if line.startswith("    ")]
    products = [line for line in inside if " = FullyConnected(" in line or " = dot(" in line]
    assert len(products) == 4  # per layer one product with the state, in forward and in backward


def test_a_training_step_runs_each_product_once_and_copies_no_state(tmp_path):
    count, net = 6, Stack(two_layers)
    net.hybridize(passes=PASSES)
    args = [nd.ones((count, 2, WIDTH)), nd.ones((2, WIDTH)), nd.ones((2, WIDTH))]

    def step():
        with mx.autograd.record():
            net(*args).backward()
        nd.waitall()

    step()
    mx.profiler.set_config(profile_all=True, aggregate_stats=True, filename=str(tmp_path / "profile.json"))
    mx.profiler.set_state("run")
    mx.profiler.dumps(reset=True)
    step()
    mx.profiler.set_state("stop")
    table = mx.profiler.dumps(reset=True)
    ran = {name: int(times) for name, times in re.findall(r"^(\w+) +(\d+) ", table, re.MULTILINE)}
    forward = ran.get("FullyConnected", 0) + ran.get("_fused_fully_connected", 0)
    assert forward == 2 * count + 2  # products with the states, and one per layer with all inputs
    assert ran["dot"] == 2 * count + 5  # per layer two for the weights; one for the input of the upper layer
    assert ran.get("_copy", 0) < count


def test_training_takes_no_fresh_memory_from_step_to_step():
    resource = pytest.importorskip("resource")
    net = Stack(two_layers)
    net.hybridize(passes=PASSES)
    args = [nd.ones((64, 256, WIDTH)), nd.ones((256, WIDTH)), nd.ones((256, WIDTH))]

    def faults(steps):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(steps):
            with mx.autograd.record():
                loss = net(*args)
            loss.backward()
            nd.waitall()
        return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / steps

    faults(10)
    assert min(faults(10) for _ in range(3)) < 20
