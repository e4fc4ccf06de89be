"""Loops over cells of gluon.rnn run as the operator RNN with the same values, and gradients of any order."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon, test_utils
from hybridnet.contrib import foreach
from hybridnet.gluon import rnn

nd = mx.nd
SIZE, BATCH = 5, 3
CELLS = {
    "lstm": lambda: rnn.LSTMCell(SIZE, input_size=SIZE),
    "gru": lambda: rnn.GRUCell(SIZE, input_size=SIZE),
    "tanh": lambda: rnn.RNNCell(SIZE, input_size=SIZE),
    "relu": lambda: rnn.RNNCell(SIZE, "relu", input_size=SIZE),
}


def stack(*cells):
    net = rnn.HybridSequentialRNNCell()
    for cell in cells:
        net.add(cell)
    return net


class Loop(gluon.HybridBlock):
    """Runs a cell over x (steps, batch, SIZE) by foreach and returns outputs and final states."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x, *states):
        outputs, states = foreach(self.cell, x, list(states))
        return [outputs, *states]


def made(cell):
    block = Loop(cell)
    block.initialize(mx.init.Normal(0.5))
    block.cast("float64")
    return block


def inputs_of(block, steps, batch=BATCH, seed=0):
    rng = np.random.default_rng(seed)
    states = [rng.normal(size=(batch, SIZE)) for _ in block.cell.state_info()]
    return [nd.array(a, dtype="float64") for a in (rng.normal(size=(steps, batch, SIZE)), *states)]


def evaluate(block, inputs, order):
    """Returns outputs, and gradients of this order by inputs and parameters; order 0: a prediction."""
    if order == 0:
        return [out.asnumpy() for out in block(*inputs)]
    variables = [*inputs, *(p.data() for p in block.collect_params().values())]
    for x in inputs:
        x.attach_grad()
    with mx.autograd.record():
        outputs = block(*inputs)
        loss = sum((out * out).sum() * (k + 1) for k, out in enumerate(outputs))
        for _ in range(order - 1):
            first = mx.autograd.grad(loss, variables, create_graph=True, retain_graph=True)
            loss = sum((g * g).sum() for g in first)
    loss.backward()
    return [out.asnumpy() for out in outputs] + [v.grad.asnumpy().copy() for v in variables]


def ran(block, inputs, order):
    evaluate(block, inputs, order)
    with test_utils.exec_counts() as counts:
        evaluate(block, inputs, order)
    return {op for (op, _), count in counts.items() if count}


@pytest.mark.parametrize(("order", "steps"), [(0, 1), (0, 2), (0, 7), (1, 1), (1, 2), (1, 7), (2, 2), (2, 7), (3, 2)])
@pytest.mark.parametrize("kind", CELLS)
def test_values_and_gradients_are_those_of_the_steps(kind, order, steps):
    block = made(CELLS[kind]())
    inputs = inputs_of(block, steps)
    want = evaluate(block, inputs, order)
    block.hybridize()
    for one, two in zip(evaluate(block, inputs, order), want, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("kind", CELLS)
def test_no_loop_is_left(kind, order):
    block = made(stack(CELLS[kind](), CELLS[kind]()))
    inputs = inputs_of(block, 6)
    want = evaluate(block, inputs, order)
    block.hybridize()
    operators = ran(block, inputs, order)
    assert "RNN" in operators
    assert "_foreach" not in operators
    for one, two in zip(evaluate(block, inputs, order), want, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-10)


class OtherOrder(rnn.LSTMCell):
    """An LSTM cell whose first gate is the forget gate."""

    def _next(self, F, i2h, h2h, memory, t, name="out"):
        f, i, g, o = F.SliceChannel(F.elemwise_add(i2h, h2h), num_outputs=4)
        memory = F.sigmoid(f) * memory + F.sigmoid(i) * F.tanh(g)
        return F.sigmoid(o) * F.tanh(memory), memory


class Peephole(rnn.LSTMCell):
    """An LSTM cell whose output gate reads the memory."""

    def _next(self, F, i2h, h2h, memory, t, name="out"):
        i, f, g, o = F.SliceChannel(F.elemwise_add(i2h, h2h), num_outputs=4)
        memory = F.sigmoid(f) * memory + F.sigmoid(i) * F.tanh(g)
        return F.sigmoid(o + memory) * F.tanh(memory), memory


class Normalized(rnn.LSTMCell):
    """An LSTM cell with a layer norm of the gates' inputs."""

    def _next(self, F, i2h, h2h, memory, t, name="out"):
        total = F.elemwise_add(i2h, h2h)
        ones = F.ones((4 * SIZE,), dtype="float64")
        return super()._next(F, F.LayerNorm(total, ones, F.zeros_like(ones)), F.zeros_like(total), memory, t, name)


OTHERS = {
    "gates in another order": lambda: OtherOrder(SIZE, input_size=SIZE),
    "peepholes": lambda: Peephole(SIZE, input_size=SIZE),
    "layer norm": lambda: Normalized(SIZE, input_size=SIZE),
    "another activation": lambda: rnn.LSTMCell(SIZE, input_size=SIZE, activation="softsign"),
    "zoneout": lambda: rnn.ZoneoutCell(rnn.LSTMCell(SIZE, input_size=SIZE), zoneout_states=0.5),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_cells_stay_loops(kind):
    block = made(OTHERS[kind]())
    inputs = inputs_of(block, 6)
    want = evaluate(block, inputs, 0)
    block.hybridize()
    operators = ran(block, inputs, 1)
    assert "RNN" not in operators
    assert "_foreach" in operators
    for one, two in zip(evaluate(block, inputs, 0), want, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-10)


def test_residual_cells_keep_their_sum_in_the_loop():
    block = made(stack(rnn.ResidualCell(CELLS["gru"]()), CELLS["lstm"]()))
    inputs = inputs_of(block, 6)
    want = evaluate(block, inputs, 1)
    block.hybridize()
    assert "RNN" in ran(block, inputs, 1)
    for one, two in zip(evaluate(block, inputs, 1), want, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-10)


def test_one_weight_may_stand_in_two_places():
    cell = rnn.LSTMCell(SIZE, input_size=SIZE)
    block = made(stack(cell, rnn.LSTMCell(SIZE, input_size=SIZE, params=cell.params)))
    inputs = inputs_of(block, 6)
    want = evaluate(block, inputs, 1)
    block.hybridize()
    for one, two in zip(evaluate(block, inputs, 1), want, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-10)


def test_other_sizes_take_the_same_graph():
    block = made(CELLS["lstm"]())
    calls = [inputs_of(block, steps, batch, seed=steps) for steps, batch in ((6, 3), (9, 3), (9, 14), (0, 2), (4, 0))]
    want = [evaluate(block, inputs, 1) for inputs in calls]
    block.hybridize()
    for inputs, expected in zip(calls, want, strict=True):
        for one, two in zip(evaluate(block, inputs, 1), expected, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("lengths", [(4, 64), (64, 4)])
def test_few_steps_of_large_cells_stay_loops_after_any_other_lengths(order, lengths):
    """The operator packs the weights in each call, which does not pay for few positions."""
    units = 128
    block = made(rnn.LSTMCell(units, input_size=units))
    block.hybridize()
    for steps in lengths:
        rng = np.random.default_rng(steps)
        shapes = (steps, BATCH, units), (BATCH, units), (BATCH, units)
        inputs = [nd.array(rng.normal(size=shape), dtype="float64") for shape in shapes]
        operators = ran(block, inputs, order)
        assert ("RNN" in operators) == (steps == 64)
        assert ("_foreach" in operators) == (steps == 4)
