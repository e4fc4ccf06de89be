"""Decoders that append to their state, as plain Python: lists, growing caches, bounded buffers, beam search."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon, nd

from .corpus_support import count_nodes, graph_of

WIDTH = 8


class Decoder(gluon.HybridBlock):
    """A greedy decoder: a step computes query, key and value of a vector and attends to the keys so far."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.project = gluon.nn.Dense(3 * WIDTH, in_units=WIDTH, use_bias=False)
            self.out = gluon.nn.Dense(WIDTH, in_units=WIDTH, activation="tanh")
        for number, parameter in enumerate(self.collect_params().values()):
            values = np.sin(np.arange(np.prod(parameter.shape)) * 1.3 + number).reshape(parameter.shape)
            parameter.initialize(mx.init.Constant(nd.array(values)))
        self.cast("float64")

    def split(self, x):
        return nd.split(self.project(x), num_outputs=3, axis=1)

    def attend(self, query, keys, values):
        weights = nd.softmax(nd.dot(query, keys, transpose_b=True) * WIDTH**-0.5, axis=1)
        return self.out(nd.dot(weights, values))


class Listed(Decoder):
    """A list filled in a for loop: the outputs so far are its rows."""

    def forward(self, x, inputs):
        outputs = []
        for given in inputs:
            query, key, value = self.split(x + given)
            x = self.attend(query, key, value)
            outputs.append(x[0])
        return nd.stack(*outputs), outputs[-1]


class GrowsInFor(Decoder):
    """A cache that a for loop extends; the rows of the inputs are its steps."""

    def forward(self, x, inputs):
        query, keys, values = self.split(x)
        outputs = []
        mx.autograph.shape_invariants(keys=(None, WIDTH), values=(None, WIDTH))
        for given in inputs:
            query, key, value = self.split(x + given)
            keys = nd.concat(keys, key, dim=0)
            values = nd.concat(values, value, dim=0)
            x = self.attend(query, keys, values)
            outputs.append(x[0])
        return nd.stack(*outputs), keys


class GrowsInWhile(Decoder):
    """A cache that a while loop extends until an output, or the number of steps, ends it."""

    def forward(self, x, steps):
        _, keys, values = self.split(x)
        count = 0
        mx.autograph.shape_invariants(keys=(None, WIDTH), values=(None, WIDTH))
        while count < steps and x[0, 0] < 0.95:
            query, key, value = self.split(x)
            keys = nd.concat(keys, key, dim=0)
            values = nd.concat(values, value, dim=0)
            x = self.attend(query, keys, values)
            count += 1
        return x, keys, values


class GrowsInRange(Decoder):
    """A cache that a loop over range(traced number) extends, with one more condition that ends it."""

    def forward(self, x, steps):
        _, keys, values = self.split(x)
        mx.autograph.shape_invariants(keys=(None, WIDTH), values=(None, WIDTH))
        for _ in range(steps):
            query, key, value = self.split(x)
            keys = nd.concat(keys, key, dim=0)
            values = nd.concat(values, value, dim=0)
            x = self.attend(query, keys, values)
            if x[0, 0] >= 0.95:
                break
        return x, keys, values


class Bounded(Decoder):
    """Buffers of a fixed size, written in place; a mask hides the rows that are not written yet."""

    def forward(self, x, steps):
        keys = nd.zeros((32, WIDTH), dtype="float64")
        values = nd.zeros((32, WIDTH), dtype="float64")
        length = 0
        for t in range(steps):
            query, key, value = self.split(x)
            keys[t] = key[0]
            values[t] = value[0]
            length = t + 1
            x = self.masked(query, keys, values, length)
        return x, keys, values

    def masked(self, query, keys, values, length):
        scores = nd.dot(query, keys, transpose_b=True) * WIDTH**-0.5
        positions = nd.arange(32, dtype="float64").reshape((1, -1))
        scores = nd.where(positions < length, scores, nd.full((1, 32), -1e30, dtype="float64"))
        return self.out(nd.dot(nd.softmax(scores, axis=1), values))


class BoundedByCopies(Bounded):
    """The same without writes in place, after which arrays refuse gradients that need the values of before."""

    def forward(self, x, steps):
        keys = nd.zeros((32, WIDTH), dtype="float64")
        values = nd.zeros((32, WIDTH), dtype="float64")
        for t in range(steps):
            query, key, value = self.split(x)
            keys = nd.contrib.index_copy(keys, nd.array([t], dtype="int64"), key)
            values = nd.contrib.index_copy(values, nd.array([t], dtype="int64"), value)
            x = self.masked(query, keys, values, t + 1)
        return x, keys, values


class BoundedInState(Bounded):
    """Buffers and length in a dict of the state, in a while loop."""

    def forward(self, x, steps):
        state = {
            "keys": nd.zeros((32, WIDTH), dtype="float64"),
            "values": nd.zeros((32, WIDTH), dtype="float64"),
            "length": 0,
        }
        while state["length"] < steps:
            query, key, value = self.split(x)
            state["keys"][state["length"]] = key[0]
            state["values"][state["length"]] = value[0]
            state["length"] += 1
            x = self.masked(query, state["keys"], state["values"], state["length"])
        return x, state["keys"], state["values"]


class BeamSearch(Decoder):
    """Three beams in Python lists of fixed length: vector, score and tokens of each."""

    beams = 3

    def forward(self, x, steps):
        states = [x, x * 0.5, x - 0.25]
        scores = [nd.zeros((1,), dtype="float64") for _ in range(self.beams)]
        tokens = [nd.zeros((16,), dtype="float64") for _ in range(self.beams)]
        t = 0
        while t < steps:
            candidates = []
            for state, score in zip(states, scores):
                query, key, value = self.split(state)
                logits = nd.log_softmax(self.attend(query, key, value), axis=1)
                candidates.append(nd.broadcast_add(logits, score.reshape((1, 1))).reshape((-1,)))
            best, places = nd.topk(nd.concat(*candidates, dim=0), k=self.beams, ret_typ="both", dtype="float64")
            beam, token = nd.floor(places / WIDTH), places % WIDTH
            every_state, every_token = nd.concat(*states, dim=0), nd.stack(*tokens)
            states, scores, tokens = [], [], []
            for i in range(self.beams):
                chosen = beam[i : i + 1]
                states.append(
                    nd.one_hot((token[i : i + 1] + t) % WIDTH, WIDTH, dtype="float64") - nd.take(every_state, chosen)
                )
                scores.append(best[i : i + 1])
                row = nd.take(every_token, chosen)[0]
                row[t] = token[i]
                tokens.append(row)
            t += 1
        return scores, nd.stack(*tokens)


def first():
    return nd.array(np.cos(np.arange(WIDTH)).reshape(1, WIDTH), dtype="float64")


def rows(count):
    return nd.array(np.sin(np.arange(count * WIDTH) * 0.7).reshape(count, 1, WIDTH), dtype="float64")


def number(count):
    return nd.array([count], dtype="int64")


CASES = {
    "listed": (Listed, rows, (1, 2, 9)),
    "grows in for": (GrowsInFor, rows, (1, 2, 9)),
    "grows in while": (GrowsInWhile, number, (0, 1, 5, 20)),
    "grows in range": (GrowsInRange, number, (0, 1, 5, 20)),
    "bounded": (Bounded, number, (0, 1, 5, 32), BoundedByCopies),
    "bounded in a dict": (BoundedInState, number, (0, 1, 5, 32), BoundedByCopies),
}


def cases(*more, without=()):
    return [case for case in [*CASES, *more] if case not in without]


def flat(value):
    return [one for item in value for one in flat(item)] if isinstance(value, (list, tuple)) else [value]


def results(net, *inputs):
    """Returns outputs, the gradient of the first input, and those of the parameters."""
    inputs[0].attach_grad()
    params = list(net.collect_params().values())
    for parameter in params:
        parameter.zero_grad()
    with mx.autograd.record():
        outs = flat(net(*inputs))
        loss = sum(((one * one).sum() for one in outs[1:]), (outs[0] * outs[0]).sum())
    loss.backward()
    return [one.asnumpy() for one in outs] + [inputs[0].grad.asnumpy()] + [p.grad().asnumpy() for p in params]


def assert_equal(given, wanted):
    assert len(given) == len(wanted)
    for one, other in zip(given, wanted, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"static_alloc": True}], ids=["", "static_alloc"])
@pytest.mark.parametrize("case", cases())
def test_values_and_gradients_equal_the_imperative_program(case, options):
    kind, argument, sizes, *plain = CASES[case]
    plain = [*plain, kind][0]
    net = kind()
    net.hybridize(strict=True, **options)
    for size in (*sizes, sizes[0]):
        assert_equal(results(net, first(), argument(size)), results(plain(), first(), argument(size)))
    assert len({id(graph) for variants in net._variants.values() for graph in variants.table.values()}) == 1


@pytest.mark.parametrize("case", cases("beam search"))
def test_files_run_for_other_numbers_of_steps(case, tmp_path):
    kind, argument, sizes, *_ = CASES.get(case, (BeamSearch, number, (0, 1, 4, 16)))
    net = kind()
    net.hybridize(strict=True)
    net(first(), argument(sizes[1]))
    files = net.export(str(tmp_path / "net"))
    loaded = gluon.SymbolBlock.imports(files[0], ["data0", "data1"], files[1])
    for size in sizes:
        given, wanted = flat(loaded(first(), argument(size))), flat(kind()(first(), argument(size)))
        assert_equal([one.asnumpy() for one in given], [one.asnumpy() for one in wanted])


def test_beam_search():
    net, plain = BeamSearch(), BeamSearch()
    net.hybridize(strict=True)
    for steps in (4, 0, 16):
        given, wanted = flat(net(first(), number(steps))), flat(plain(first(), number(steps)))
        assert_equal([one.asnumpy() for one in given], [one.asnumpy() for one in wanted])
    assert len(set(wanted[-1].asnumpy().ravel())) > 2


@pytest.mark.parametrize("case", cases(without=("listed",)))
def test_one_loop_for_any_number_of_steps(case):
    kind, argument, sizes, *_ = CASES[case]
    net = kind()
    net.hybridize(strict=True)
    net(first(), argument(sizes[-1]))
    counts = count_nodes(graph_of(net))
    assert counts["_while_loop"] == 1
    assert counts["_foreach"] == 0
