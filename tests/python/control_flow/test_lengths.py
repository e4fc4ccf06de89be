"""Loops over sequences of many lengths: one plan, laid out for each length."""

import random
import threading
import time

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon, nd
from hybridnet.gluon import nn

UNITS = 5
LENGTHS = random.Random(7).sample(range(2, 90), 50)
assert UNITS in LENGTHS[10:]  # rows of this length have the shape of the weights


class Loop(gluon.HybridBlock):
    """A loop with a state, with work on each row in front of it and work on all rows behind it."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.of_row = nn.Dense(UNITS, flatten=False, in_units=UNITS)
            self.of_state = nn.Dense(UNITS, flatten=False, in_units=UNITS, use_bias=False)
            self.head = nn.Dense(3, flatten=False, in_units=UNITS)

    def step(self, F, row, state):
        state = F.tanh(self.of_row(row) + self.of_state(state))
        return state, state

    def hybrid_forward(self, F, data, start):
        rows, last = F.contrib.foreach(lambda row, state: self.step(F, row, state), data, start)
        return self.head(rows), F.softmax(rows, axis=0).sum(axis=0), last


class Nested(Loop):
    """Each row is a sequence of fixed length for an inner loop; a branch depends on the state."""

    def step(self, F, row, state):
        def inner(column, total):
            total = total + F.sin(column)
            return total * 2, total

        doubled, total = F.contrib.foreach(inner, row, F.zeros_like(row.slice_axis(axis=0, begin=0, end=1)).reshape(-1))
        state = F.contrib.cond(
            state.sum() > 0, lambda: F.tanh(state - total.expand_dims(0)), lambda: F.tanh(state + doubled)
        )
        return self.of_state(state), state


class Independent(Loop):
    """A loop of independent iterations, then a loop with a state over the reversed rows, whose rows are transposed."""

    def hybrid_forward(self, F, data, start):
        rows, _ = F.contrib.foreach(lambda row, none: (F.tanh(self.of_row(row)), none), data, [])
        sums, last = F.contrib.foreach(lambda row, s: (row + s, row + s), F.flip(rows, axis=0), start)
        return sums.transpose((1, 0, 2)), self.head(rows).mean(axis=(0, 2)), last


class BesideWhile(Loop):
    """A loop over the rows beside a while_loop whose number of iterations does not depend on the length."""

    def hybrid_forward(self, F, data, start):
        rows, last = F.contrib.foreach(lambda row, state: self.step(F, row, state), data, start)
        _, (count, grown) = F.contrib.while_loop(
            lambda count, _: count < 4,
            lambda count, value: (value, (count + 1, F.tanh(self.of_state(value)))),
            (F.zeros((1,)), last),
            max_iterations=6,
        )
        return rows, rows.max(axis=0) * count, grown


BLOCKS = [Loop, Nested, Independent, BesideWhile]


def made(kind):
    net = kind()
    net.initialize(mx.init.Normal(0.4))
    return net


def arrays(length):
    rng = np.random.default_rng(length)
    return nd.array(rng.normal(size=(length, 3, UNITS))), nd.array(rng.normal(size=(3, UNITS)))


def trained(net, length):
    """Returns the results, and the gradients of data, start and parameters."""
    data, start = arrays(length)
    data.attach_grad()
    start.attach_grad()
    with autograd.record():
        results = net(data, start)
        loss = sum((r * r).sum() for r in results)
    loss.backward()
    gradients = [p.grad().asnumpy() for p in net.collect_params().values()]
    return [*(r.asnumpy() for r in results), data.grad.asnumpy(), start.grad.asnumpy(), *gradients]


def predicted(net, length):
    return [r.asnumpy() for r in net(*arrays(length))]


def assert_all_close(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        scale = np.abs(other).max(initial=1)
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-5 * scale)


@pytest.mark.parametrize("static_alloc", [False, True])
@pytest.mark.parametrize("run", [trained, predicted])
@pytest.mark.parametrize("kind", BLOCKS)
def test_fifty_lengths_in_any_order_have_one_plan_and_the_values_of_the_loop_on_arrays(kind, run, static_alloc):
    net = made(kind)
    for parameter in net.collect_params().values():
        parameter.zero_grad()
    expected = {length: run(net, length) for length in LENGTHS}
    net.hybridize(static_alloc=static_alloc)
    for length in LENGTHS + LENGTHS[:5]:
        assert_all_close(run(net, length), expected[length])
        assert net._cached_op.num_plans == 1
    assert net._cached_op.num_linked == 1
    assert net._cached_op.num_rewritten <= 9
    assert net._cached_op.num_layouts == len(LENGTHS) + 5  # a layout is made again if 32 others were used since


@pytest.mark.parametrize("run", [trained, predicted])
@pytest.mark.parametrize("kind", BLOCKS)
def test_a_first_length_that_is_the_size_of_something_else_leaves_one_plan_for_all_others(kind, run):
    net = made(kind)
    lengths = [UNITS, 11, 7, UNITS, 20]
    expected = {length: run(net, length) for length in lengths}
    net.hybridize()
    for length in lengths:
        assert_all_close(run(net, length), expected[length])
    assert net._cached_op.num_plans <= 2
    assert net._cached_op.num_layouts == len(set(lengths))


@pytest.mark.parametrize("run", [trained, predicted])
@pytest.mark.parametrize("kind", [Loop, Nested, BesideWhile])
def test_lengths_one_and_zero_stand_beside_the_others(kind, run):
    net = made(kind)
    lengths = [8, 1, 9, 0, 6, 1, 0, 12]
    if kind is not Nested:
        lengths = [length for length in lengths if length > 0] + [1]
    expected = {length: run(net, length) for length in lengths}
    net.hybridize()
    for length in lengths:
        assert_all_close(run(net, length), expected[length])
    assert net._cached_op.num_plans == len({min(length, 2) for length in lengths})


@pytest.mark.parametrize("static_alloc", [False, True])
@pytest.mark.parametrize("kind", BLOCKS)
def test_threads_that_call_with_different_lengths_get_their_own_results(kind, static_alloc):
    net = made(kind)
    lengths = LENGTHS[:24]
    expected = {length: predicted(net, length) for length in lengths}
    net.hybridize(static_alloc=static_alloc)
    failures = []

    def call_all(seed):
        order = random.Random(seed).sample(lengths * 3, 3 * len(lengths))
        try:
            for length in order:
                assert_all_close(predicted(net, length), expected[length])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=call_all, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert net._cached_op.num_plans == 1


def test_kept_bytes_and_time_are_proportional_to_the_length():
    net = made(Loop)
    net.hybridize(static_alloc=True)

    def cost(length):
        trained(net, length)
        begin = time.process_time()
        trained(net, length)
        (line,) = [line for line in net._cached_op.summary().splitlines() if "kept for backward" in line][:1]
        return time.process_time() - begin, int(line.split("kept for backward ")[1].split()[0])

    (short_time, short_bytes), (long_time, long_bytes) = cost(1_000), cost(20_000)
    assert 15 * short_bytes < long_bytes < 25 * short_bytes
    assert long_time < 60 * short_time
    assert net._cached_op.num_plans == 1
