"""unroll in every mode: default states, graphs for any length and batch size, gradients, modifiers in loops."""

from __future__ import annotations

import json

import hybridnet as mx
import numpy as np
import pytest
from control_flow import c_model
from hybridnet import autograd, gluon
from hybridnet.gluon import rnn
from hybridnet.gluon.contrib import rnn as contrib_rnn


def stack(*cells):
    result = rnn.HybridSequentialRNNCell()
    for cell in cells:
        result.add(cell)
    return result


def both():
    return rnn.BidirectionalCell(rnn.LSTMCell(3), rnn.GRUCell(3))


CELLS = {
    "rnn": lambda: rnn.RNNCell(3),
    "lstm": lambda: rnn.LSTMCell(3),
    "gru": lambda: rnn.GRUCell(3),
    "lstmp": lambda: contrib_rnn.LSTMPCell(3, 2),
    "stack": lambda: stack(rnn.LSTMCell(3), rnn.ResidualCell(rnn.GRUCell(3))),
    "bidirectional": both,
    "stack of bidirectional": lambda: stack(both(), rnn.DropoutCell(0.5), both()),
    "zoneout": lambda: rnn.ZoneoutCell(rnn.LSTMCell(3), 0.3, 0.3),
    "variational": lambda: contrib_rnn.VariationalDropoutCell(rnn.LSTMCell(3), 0.3, 0.3, 0.3),
    "variational inputs": lambda: contrib_rnn.VariationalDropoutCell(rnn.LSTMCell(3), 0.3, 0, 0.3),
    "dropout below": lambda: stack(rnn.DropoutCell(0.4), rnn.LSTMCell(3)),
    "dropout above": lambda: stack(rnn.LSTMCell(3), rnn.DropoutCell(0.4)),
    "variational in bidirectional": lambda: rnn.BidirectionalCell(
        contrib_rnn.VariationalDropoutCell(rnn.GRUCell(3), 0.3), rnn.LSTMCell(2)
    ),
}


class Unrolls(gluon.HybridBlock):
    """Unrolls a cell over x, an array of the given layout or, with `steps`, a list of its steps."""

    def __init__(self, cell, layout="NTC", merge=True, steps=False):
        super().__init__()
        self._layout, self._merge, self._steps = layout, merge, steps
        with self.name_scope():
            self.cell = cell

    def forward(self, x, lengths=None):
        time = self._layout.find("T")
        length = x.shape[time]
        if self._steps:
            F = mx.sym if isinstance(x, mx.sym.Symbol) else mx.nd
            x = [F.squeeze(F.slice_axis(x, axis=time, begin=t, end=t + 1), axis=time) for t in range(length)]
        return self.cell.unroll(length, x, layout=self._layout, merge_outputs=self._merge, valid_length=lengths)


def flat(value):
    return [item for part in value for item in flat(part)] if isinstance(value, (list, tuple)) else [value]


def block_of(name, dtype="float32", **options):
    block = Unrolls(CELLS[name](), **options)
    block.initialize(mx.init.Uniform(1))
    for param in block.collect_params(".*bias").values():
        param.initialize(mx.init.Uniform(1), force_reinit=True)
    block.cast(dtype)
    return block


def some(rng, *shape, dtype="float32"):
    return mx.nd.array(rng.normal(size=shape), dtype=dtype)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("name", CELLS)
def test_states_that_are_not_given_have_the_type_of_the_inputs(name, hybridize, dtype, rng):
    block = block_of(name)
    x = some(rng, 2, 4, 3)
    expected = flat(block(x))
    block.cast(dtype)
    block.hybridize(hybridize)
    found = flat(block(x.astype(dtype)))
    assert {out.dtype for out in found} == {np.dtype(dtype).type}
    for out, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(out.asnumpy(), wanted.asnumpy(), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("merge", [True, False, None])
@pytest.mark.parametrize("with_lengths", [False, True])
@pytest.mark.parametrize("name", CELLS)
def test_graphs_equal_arrays_for_every_size(name, with_lengths, merge, rng):
    for batch, length, layout, steps in [
        (2, 4, "NTC", False),
        (2, 4, "TNC", True),
        (1, 1, "TNC", False),
        (1, 3, "NTC", True),
        (3, 1, "NTC", False),
        (0, 3, "NTC", False),
    ]:
        block = block_of(name, layout=layout, merge=merge, steps=steps)
        inputs = [some(rng, *((batch, length, 3) if layout == "NTC" else (length, batch, 3)))]
        if with_lengths:
            inputs.append(mx.nd.array(rng.integers(1, length + 1, size=batch), dtype="float32"))
        plain, states = block(*inputs)
        block.hybridize()
        traced, traced_states = block(*inputs)
        assert isinstance(plain, list) == isinstance(traced, list)
        for out, wanted in zip(flat([traced, traced_states]), flat([plain, states]), strict=True):
            assert out.shape == wanted.shape
            np.testing.assert_allclose(out.asnumpy(), wanted.asnumpy(), rtol=1e-4, atol=1e-5)


def number_of_nodes(graph):
    return sum(1 + sum(map(number_of_nodes, node.get("subgraphs", []))) for node in graph["nodes"])


@pytest.mark.parametrize("layout", ["NTC", "TNC"])
@pytest.mark.parametrize("with_lengths", [False, True])
@pytest.mark.parametrize("name", CELLS)
def test_one_file_serves_every_length_and_batch_size(name, with_lengths, layout, rng, tmp_path):
    block = block_of(name, layout=layout)
    sizes = []
    for length in (3, 12):
        block.hybridize()
        lengths = [mx.nd.array([length, 1])] if with_lengths else []
        block(some(rng, *((2, length, 3) if layout == "NTC" else (length, 2, 3))), *lengths)
        files = block.export(str(tmp_path / "net"))
        with open(files[0], encoding="utf-8") as file:
            sizes.append(number_of_nodes(json.load(file)))
    assert sizes[0] == sizes[1]
    names = ["data0", "data1"] if with_lengths else ["data"]
    loaded = gluon.SymbolBlock.imports(files[0], names, files[1])
    block.hybridize(False)
    for batch, length in [(5, 12), (1, 20), (3, 1), (0, 2)]:
        inputs = [some(rng, *((batch, length, 3) if layout == "NTC" else (length, batch, 3)))]
        if with_lengths:
            inputs.append(mx.nd.array(rng.integers(1, length + 1, size=batch), dtype="float32"))
        expected = flat(block(*inputs))
        arrays = dict(zip(names, (a.asnumpy() for a in inputs), strict=True))
        for found in (flat(loaded(*inputs)), c_model.run(*files, arrays)):
            for out, wanted in zip(found, expected, strict=True):
                assert out.shape == wanted.shape
                out = out.asnumpy() if isinstance(out, mx.nd.NDArray) else out
                np.testing.assert_allclose(out, wanted.asnumpy(), rtol=1e-4, atol=1e-5)


def test_states_that_are_not_given_follow_the_batch_in_graphs_that_are_cut(rng):
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.cell = rnn.LSTMCell(3)

        def forward(self, x, n):
            out, _ = self.cell.unroll(4, x, merge_outputs=True)
            rows, _ = mx.contrib.control_flow.while_loop(
                lambda i: i < n, lambda i: (i * 2, (i + 1,)), (mx.nd.zeros((1,)),), exact=True
            )
            return out, rows[0] if isinstance(rows, list) else rows

    net = Net()
    net.initialize()
    x, n = some(rng, 2, 4, 3), mx.nd.array([3])
    expected = net(x, n)
    net.hybridize()
    for out, wanted in zip(net(x, n), expected, strict=True):
        np.testing.assert_allclose(out.asnumpy(), wanted.asnumpy(), rtol=1e-5, atol=1e-6)


# -- gradients --------------------------------------------------------------------------------------------------------


def gradients(block, inputs, arrays, directions):
    """Returns the loss, its first-order gradients, and the gradients of their product with `directions`."""
    for array in arrays:
        array.attach_grad()
    with autograd.record():
        outputs = flat(block(*inputs))
        loss = sum(((i + 1) * out**3).sum() for i, out in enumerate(outputs))
        first = autograd.grad(loss, arrays, create_graph=True, retain_graph=True)
        product = sum((a * d).sum() for a, d in zip(first, directions, strict=True))
    product.backward()
    return loss.asscalar(), [a.asnumpy() for a in first], [a.grad.asnumpy() for a in arrays]


@pytest.mark.parametrize("with_lengths", [False, True])
@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("name", ["rnn", "lstm", "gru", "lstmp", "stack", "bidirectional"])
def test_gradients_of_both_orders_are_those_of_differences(name, hybridize, with_lengths, rng):
    block = block_of(name, dtype="float64")
    x = some(rng, 2, 3, 3, dtype="float64")
    inputs = [x, mx.nd.array([2, 3])] if with_lengths else [x]
    block(*inputs)
    block.hybridize(hybridize)
    params = [param.data() for param in block.collect_params().values()]
    arrays = [x, *params]
    directions = [some(rng, *a.shape, dtype="float64") for a in arrays]
    _, first, second = gradients(block, inputs, arrays, directions)
    ways = [some(rng, *a.shape, dtype="float64") for a in arrays]
    starts = [a.copy() for a in arrays]
    ends = []
    for sign in (1, -1):
        for array, start, way in zip(arrays, starts, ways, strict=True):
            array[:] = start + sign * 1e-5 * way
        loss, slopes, _ = gradients(block, inputs, arrays, directions)
        product = sum((a * d.asnumpy()).sum() for a, d in zip(slopes, directions, strict=True))
        ends.append((loss, product))
    for order, found in enumerate((first, second)):
        along = sum((a * w.asnumpy()).sum() for a, w in zip(found, ways, strict=True))
        difference = (ends[0][order] - ends[1][order]) / 2e-5
        assert abs(along - difference) < 1e-6 + 1e-5 * abs(along)


# -- PyTorch ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("kind", ["rnn_relu", "rnn_tanh", "lstm", "gru"])
def test_layers_and_cells_agree_with_pytorch_in_double_precision(kind, hybridize, bidirectional, rng):
    torch = pytest.importorskip("torch")
    options = {"num_layers": 2, "bidirectional": bidirectional, "layout": "NTC", "input_size": 3, "dtype": "float64"}
    layer = {
        "rnn_relu": lambda: rnn.RNN(4, activation="relu", **options),
        "rnn_tanh": lambda: rnn.RNN(4, activation="tanh", **options),
        "lstm": lambda: rnn.LSTM(4, **options),
        "gru": lambda: rnn.GRU(4, **options),
    }[kind]()
    layer.initialize(mx.init.Uniform(0.7))
    other = {"batch_first": True, "num_layers": 2, "bidirectional": bidirectional, "dtype": torch.float64}
    if kind.startswith("rnn"):
        reference = torch.nn.RNN(3, 4, nonlinearity=kind[4:], **other)
    else:
        reference = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[kind](3, 4, **other)
    with torch.no_grad():
        for direction in "lr"[: 1 + bidirectional]:
            for i in range(2):
                for group, short in (("i2h", "ih"), ("h2h", "hh")):
                    for what in ("weight", "bias"):
                        param = getattr(layer, f"{direction}{i}_{group}_{what}")
                        param.set_data(some(rng, *param.shape, dtype="float64") * 0.5)
                        target = getattr(reference, f"{what}_{short}_l{i}{'_reverse' if direction == 'r' else ''}")
                        target.copy_(torch.from_numpy(param.data().asnumpy()))
    x = rng.normal(size=(3, 5, 3))
    given = torch.from_numpy(x.copy()).requires_grad_()
    wanted, states = reference(given)
    (wanted**2).sum().backward()
    cells = Unrolls(layer._unfuse())
    layer.hybridize(hybridize)
    cells.hybridize(hybridize)
    data = mx.nd.array(x, dtype="float64")
    data.attach_grad()
    for block in (layer, cells):
        with autograd.record():
            result = block(data)
            outputs = result[0] if block is cells else result
            loss = (outputs**2).sum()
        loss.backward()
        np.testing.assert_allclose(outputs.asnumpy(), wanted.detach().numpy(), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(data.grad.asnumpy(), given.grad.numpy(), rtol=1e-9, atol=1e-11)
    begin = layer.begin_state(3, dtype="float64")
    for found, state in zip(layer(data, begin)[1], states if kind == "lstm" else [states], strict=True):
        np.testing.assert_allclose(found.asnumpy(), state.detach().numpy(), rtol=1e-9, atol=1e-11)


# -- modifiers in training --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hybridize", [False, True])
def test_zoneout_keeps_outputs_of_the_step_before_in_loops(hybridize, rng):
    block = Unrolls(rnn.ZoneoutCell(rnn.RNNCell(50), zoneout_outputs=0.5))
    block.initialize(mx.init.Uniform(1))
    block.hybridize(hybridize)
    x = some(rng, 4, 6, 3)
    plain = block(x)[0].asnumpy()
    with autograd.record():
        zoned = block(x)[0].asnumpy()
    before = np.zeros_like(zoned[:, 0])
    kept = 0
    for t in range(6):
        same, new = zoned[:, t] == before, np.isclose(zoned[:, t], plain[:, t], rtol=1e-4, atol=1e-5)
        assert np.all(same | new)
        kept += same.sum()
        before = zoned[:, t]
    assert 0.4 < kept / zoned.size < 0.6
    with autograd.record():
        assert np.any(block(x)[0].asnumpy() != zoned)


@pytest.mark.parametrize("hybridize", [False, True])
def test_variational_dropout_of_states_has_one_mask_for_all_steps_in_loops(hybridize, rng):
    cell = contrib_rnn.VariationalDropoutCell(rnn.RNNCell(40, activation="relu"), drop_states=0.5)
    block = Unrolls(cell)
    block.initialize(mx.init.One())
    # The state's weight is the identity, so a dropped unit is zero after each step.
    cell.base_cell.h2h_weight.set_data(mx.nd.eye(40))
    cell.base_cell.i2h_weight.shape = (40, 2)
    block(mx.nd.zeros((1, 1, 2)))
    cell.base_cell.i2h_weight.set_data(mx.nd.zeros((40, 2)))
    cell.base_cell.i2h_bias.set_data(mx.nd.ones((40,)))
    block.hybridize(hybridize)
    masks = []
    for _ in range(2):
        with autograd.record():
            out = block(mx.nd.zeros((3, 5, 2)))[0].asnumpy()
        dropped = out[:, 1] == 1
        masks.append(dropped)
        for t in range(1, 5):  # dropped: 1; kept: 1 + 2 * state
            np.testing.assert_allclose(out[:, t], np.where(dropped, 1, 2.0 ** (t + 1) - 1))
        assert 0.3 < dropped.mean() < 0.7
    assert np.any(masks[0] != masks[1])


def test_sequences_without_steps_are_refused(rng):
    cell = rnn.GRUCell(3)
    cell.initialize()
    for inputs in (mx.nd.zeros((2, 0, 3)), []):
        with pytest.raises(mx.errors.ShapeError, match="no steps"):
            cell.unroll(0, inputs)


# -- cells of users -----------------------------------------------------------------------------------------------


class Remembers(rnn.ModifierCell):
    """Adds half of the previous step's output, which it stores in an attribute."""

    def _alias(self):
        return "remembers"

    def reset(self):
        super().reset()
        self.last = None

    def hybrid_forward(self, F, x, states):
        output, states = self.base_cell(x, states)
        self.last = output if self.last is None else output + self.last / 2
        return self.last, states


class Collects(Remembers):
    """Sums all outputs so far, which it stores in a list that reset() empties."""

    def reset(self):
        rnn.ModifierCell.reset(self)
        self.outputs = []

    def hybrid_forward(self, F, x, states):
        output, states = self.base_cell(x, states)
        self.outputs.append(output)
        return sum(self.outputs[1:], self.outputs[0]), states


class Alternates(Remembers):
    """Changes the sign of every second output."""

    def reset(self):
        rnn.ModifierCell.reset(self)
        self.sign = -1

    def hybrid_forward(self, F, x, states):
        output, states = self.base_cell(x, states)
        self.sign = -self.sign
        return output * self.sign, states


WRAPPED = {
    "alone": lambda kind: kind(rnn.GRUCell(3)),
    "in zoneout": lambda kind: rnn.ZoneoutCell(kind(rnn.GRUCell(3)), 0.2),
    "in variational dropout": lambda kind: contrib_rnn.VariationalDropoutCell(kind(rnn.GRUCell(3)), 0, 0.2),
    "in residual": lambda kind: rnn.ResidualCell(kind(rnn.GRUCell(3))),
    "in bidirectional": lambda kind: rnn.BidirectionalCell(kind(rnn.GRUCell(3)), rnn.LSTMCell(2)),
    "around zoneout": lambda kind: kind(rnn.ZoneoutCell(rnn.GRUCell(3), 0.2)),
}


@pytest.mark.parametrize("with_lengths", [False, True])
@pytest.mark.parametrize("kind", [Remembers, Collects, Alternates])
@pytest.mark.parametrize("name", WRAPPED)
def test_cells_that_keep_something_of_a_step_do_the_same_in_graphs(name, kind, with_lengths, rng):
    block = Unrolls(WRAPPED[name](kind))
    block.initialize(mx.init.Uniform(1))
    inputs = [some(rng, 2, 4, 3)] + ([mx.nd.array([2, 4])] if with_lengths else [])
    expected = flat(block(*inputs))
    block.hybridize()
    for _ in range(2):
        for out, wanted in zip(flat(block(*inputs)), expected, strict=True):
            np.testing.assert_allclose(out.asnumpy(), wanted.asnumpy(), rtol=1e-5, atol=1e-6)
    block.hybridize(False)
    np.testing.assert_allclose(flat(block(*inputs))[0].asnumpy(), expected[0].asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("lengths", [None, [2, 4]])
@pytest.mark.parametrize("kind", [Remembers, Alternates, lambda cell: cell])
def test_dynamic_unroll_of_cells_that_keep_something_does_the_same_in_graphs(kind, lengths, rng):
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.cell = kind(rnn.GRUCell(3))

        def hybrid_forward(self, F, x, h, n):
            valid = None if lengths is None else n
            outputs, states = contrib_rnn.dynamic_unroll(self.cell, x, [h], layout="NTC", valid_length=valid)
            return outputs, states[0] + 0 * n.sum()

    net = Net()
    net.initialize(mx.init.Uniform(1))
    inputs = [some(rng, 2, 4, 3), some(rng, 2, 3), mx.nd.array(lengths or [4, 4])]
    net(*inputs)
    net.cell.reset()
    expected = net(*inputs)
    net.cell.reset()
    net.hybridize()
    for out, wanted in zip(net(*inputs), expected, strict=True):
        np.testing.assert_allclose(out.asnumpy(), wanted.asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float16", "float64"])
def test_lengths_may_have_any_type(dtype, dynamic, hybridize, rng):
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.cell = rnn.GRUCell(3)

        def forward(self, x, lengths):
            if not dynamic:
                return self.cell.unroll(140, x, merge_outputs=True, valid_length=lengths)
            begin = mx.nd.zeros((2, 3))
            return contrib_rnn.dynamic_unroll(self.cell, x, begin, layout="NTC", valid_length=lengths)

    net = Net()
    net.initialize(mx.init.Uniform(1))
    x = some(rng, 2, 140, 3)
    outputs, states = net(x, mx.nd.array([3, 120]))
    net.hybridize(hybridize)
    found, ends = net(x, mx.nd.array([3, 120], dtype=dtype))
    np.testing.assert_allclose(found.asnumpy(), outputs.asnumpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ends[0].asnumpy(), states[0].asnumpy(), rtol=1e-4, atol=1e-5)
    for i, n in enumerate((3, 120)):
        np.testing.assert_array_equal(found[i, n - 1].asnumpy(), ends[0][i].asnumpy())
        assert not found[i, n:].asnumpy().any()


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("make", [lambda: rnn.GRUCell(3), lambda: rnn.LSTMCell(3)])
def test_a_sample_of_no_steps_keeps_its_first_states(make, hybridize, rng):
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.cell = make()

        def hybrid_forward(self, F, x, lengths, *states):
            return self.cell.unroll(
                4, x, begin_state=list(states), valid_length=lengths, layout="NTC", merge_outputs=True
            )

    net = Net()
    net.initialize(mx.init.Uniform(0.5))
    if hybridize:
        net.hybridize()
    x = mx.nd.array(rng.standard_normal((3, 4, 2)))
    begin = [mx.nd.array(rng.standard_normal((3, 3))) for _ in net.cell.state_info(3)]
    outputs, states = net(x, mx.nd.array([0, 3, 4]), *begin)
    assert not outputs[0].asnumpy().any()
    for first, last in zip(begin, states, strict=True):
        np.testing.assert_array_equal(last[0].asnumpy(), first[0].asnumpy())
        assert not np.array_equal(last[1].asnumpy(), first[1].asnumpy())
