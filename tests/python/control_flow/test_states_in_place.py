"""States that a body writes over stay in one place, and states that only grow become rows: values stay right."""

from __future__ import annotations

import gc
import time

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd
from hybridnet.contrib import cond, foreach, while_loop

from .blocks import Block, flat

nd = mx.nd


def rows(count=5, width=4, seed=0):
    return nd.array(np.random.default_rng(seed).normal(size=(count, width)).astype("float32"))


def at(i):
    return i.astype("int64").reshape((1,))


def copied(buffer, i, row):
    return nd.contrib.index_copy(buffer, at(i), row.reshape((1, -1)))


def start(x):
    return nd.zeros_like(x)


def appends(x):
    return foreach(lambda i, d, s: ([], copied(s, i, d * 2)), x, start(x), with_index=True)


def appends_and_reads(x):
    def body(i, d, s):
        s = copied(s, i, d + s.sum())
        return s.sum(axis=0), s

    return foreach(body, x, start(x), with_index=True)


def reads_the_state_before_it_writes(x):
    def body(i, d, s):
        before = s * 3
        after = copied(s, i, d)
        return [before.sum(), (after - before).sum()], after

    return foreach(body, x, start(x) + 1, with_index=True)


def reads_the_state_after_it_wrote(x):
    def body(i, d, s):
        after = copied(s, i, d)
        return (s - after).sum(), after

    return foreach(body, x, start(x) + 1, with_index=True)


def writes_twice(x):
    def body(i, d, s):
        s = copied(s, i, d)
        return [], copied(s, (i + 1) % 5, s.sum(axis=0))

    return foreach(body, x, start(x), with_index=True)


def reads_between_two_writes(x):
    def body(i, d, s):
        first = copied(s, i, d)
        second = copied(first, (i + 2) % 5, d * 2)
        return [first.sum(axis=0) * 1, (first * second).sum()], second

    return foreach(body, x, start(x), with_index=True)


def delays_a_state(x):
    return foreach(lambda i, d, s: ([], [copied(s[0], i, d), s[0]]), x, [start(x), start(x) - 1], with_index=True)


def stacks_the_state(x):
    return foreach(lambda i, d, s: (s, copied(s, i, d)), x, start(x), with_index=True)


def stacks_the_new_state(x):
    def body(i, d, s):
        s = copied(s, i, d)
        return s, s

    return foreach(body, x, start(x), with_index=True)


def two_states_from_one_array(x):
    same = start(x) + 1
    body = lambda i, d, s: ([], [copied(s[0], i, d), copied(s[1], i, -d)])  # noqa: E731
    return [*flat(foreach(body, x, [same, same], with_index=True)), same]


def swaps_states(x):
    return foreach(lambda i, d, s: ([], [copied(s[1], i, d), s[0] * 2]), x, [start(x), start(x) + 1], with_index=True)


def starts_from_an_argument(x):
    return [*flat(foreach(lambda i, d, s: ([], copied(s, i, d * 2)), x, x, with_index=True)), x]


def starts_from_a_captured_array(x):
    c = start(x) + 2
    return [*flat(foreach(lambda i, d, s: (c.sum(), copied(s, i, d + c[0])), x, c, with_index=True)), c]


def reads_the_state_in_the_condition(x):
    def body(i, s):
        return s.sum(), (i + 1, copied(s, i, s.sum(axis=0) + 1))

    return while_loop(lambda i, s: (i < 4) * (s.sum() < 30).astype("float32"), body, (nd.zeros((1,)), start(x)), 5)


def returns_the_state_of_a_loop_that_never_runs(x):
    return while_loop(lambda i, s: i > 4, lambda i, s: (s, (i + 1, copied(s, i, s[0]))), (nd.zeros((1,)), x * 1), 5)


def writes_in_a_nested_loop(x):
    def body(i, d, s):
        _, s = foreach(lambda j, e, t: ([], copied(t, j, t[0] + e + d)), x, s, with_index=True)
        return s.sum(), s

    return foreach(body, x, start(x), with_index=True)


def writes_in_a_branch(x):
    def body(i, d, s):
        return [], cond(d.sum() > 0, lambda: copied(s, i, d), lambda: s)

    return foreach(body, x, start(x), with_index=True)


def scales_the_state(x):
    return foreach(lambda d, s: (s.max(), s * 0.5 + d), x, x[0])


FUNCTIONS = [
    appends, appends_and_reads, reads_the_state_before_it_writes, reads_the_state_after_it_wrote, writes_twice,
    reads_between_two_writes, delays_a_state, stacks_the_state, stacks_the_new_state, two_states_from_one_array,
    swaps_states, starts_from_an_argument, starts_from_a_captured_array, reads_the_state_in_the_condition,
    returns_the_state_of_a_loop_that_never_runs, writes_in_a_nested_loop, writes_in_a_branch, scales_the_state,
]  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"static_alloc": True}, {"passes": "none"}])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_states_written_in_place_have_the_values_of_the_loop_over_arrays(function, options):
    x = rows()
    want = [array.asnumpy() for array in flat(function(x))]
    block = Block(function)
    block.hybridize(strict=True, **options)
    for _ in range(2):
        for one, two in zip(flat(block(x)), want, strict=True):
            np.testing.assert_allclose(one.asnumpy(), two, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(x.asnumpy(), rows().asnumpy())


@pytest.mark.parametrize("function", FUNCTIONS)
def test_states_written_in_place_have_the_gradients_of_the_loop_over_arrays(function):
    found = []
    for hybridized in (False, True):
        block, x = Block(function), rows().astype("float64")
        block.hybridize(hybridized, strict=True)
        x.attach_grad()
        with autograd.record():
            loss = sum((array.astype("float64") ** 2).sum() for array in flat(block(x)))
        loss.backward()
        found.append(x.grad.asnumpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-12)


def copies_of(function, *arguments):
    """The bytes that a call writes into memory of states, by a profile: copies of plans by the name of their node."""
    block = Block(function)
    block.hybridize(strict=True, static_alloc=True)
    block(*arguments)
    with mx.test_utils.exec_counts() as counts:
        block(*arguments)
    return sum(count for (operator, _), count in counts.items() if operator == "copy")


@pytest.mark.parametrize("function", [appends, appends_and_reads, writes_twice, reads_between_two_writes])
def test_the_number_of_copies_of_a_state_does_not_depend_on_the_number_of_iterations(function):
    assert copies_of(function, rows()) <= 1


def test_a_loop_that_fails_leaves_arguments_and_parameters_as_they_were():
    block = Block(lambda x, i: foreach(lambda k, s: ([], nd.contrib.index_copy(s, k.reshape((1,)), s[1:2])), i, x)[1])
    block.hybridize(strict=True)
    x = rows()
    with pytest.raises(mx.errors.IndexError):
        block(x, nd.array([0, 1, 99], dtype="int64")).asnumpy()
    np.testing.assert_array_equal(x.asnumpy(), rows().asnumpy())
    good = block(x, nd.array([0, 2], dtype="int64")).asnumpy()
    np.testing.assert_array_equal(good[[0, 2]], rows().asnumpy()[[1, 1]])


def seconds_of(block, *arguments):
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        block(*arguments)
        nd.waitall()
        best = min(best, time.perf_counter() - begin)
    return best


# ------------------------------------------------------------------------------------------------------------ growing
class Grows(mx.gluon.HybridBlock):
    def __init__(self, axis=0, parts=1):
        super().__init__()
        self.axis, self.parts = axis, parts

    def forward(self, x, steps):
        count, cache = nd.zeros((1,)), x
        shape = [None if i == self.axis else size for i, size in enumerate(x.shape)]
        mx.autograph.shape_invariants(cache=tuple(shape))
        while count < steps:
            x = (x * 0.9 + 0.1).tanh()
            cache = nd.concat(cache, *[x * (k + 1) for k in range(self.parts)], dim=self.axis)
            count = count + 1
        return cache, count


@pytest.mark.parametrize(("axis", "parts"), [(0, 1), (1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("steps", [0, 1, 7, 40])
def test_a_state_that_only_grows_has_the_values_and_gradients_of_the_loop_over_arrays(axis, parts, steps):
    found = []
    for hybridized in (False, True):
        block = Grows(axis, parts)
        block.hybridize(hybridized, strict=True)
        x = nd.array(np.random.default_rng(1).normal(size=(2, 3, 4)), dtype="float64")
        x.attach_grad()
        with autograd.record():
            cache, count = block(x, nd.array([steps]))
            loss = (cache**2).sum()
        loss.backward()
        found.append([cache.asnumpy(), count.asnumpy(), x.grad.asnumpy()])
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-12)


def test_the_time_of_a_loop_whose_state_only_grows_is_linear():
    block = Grows()
    block.hybridize(strict=True)
    x = nd.ones((1, 256))
    few, many = (seconds_of(block, x, nd.array([steps])) for steps in (500, 8000))
    assert many < 16 * few * 2.5  # a quadratic loop needs 256 times as long
    gc.collect()


def test_a_state_that_grows_and_is_read_has_the_values_of_the_loop_over_arrays():
    class Attends(mx.gluon.HybridBlock):
        def forward(self, x, steps):
            count, cache = nd.zeros((1,)), x
            mx.autograph.shape_invariants(cache=(None, 3))
            while count < steps:
                x = nd.dot(nd.softmax(nd.dot(x, cache, transpose_b=True)), cache)
                cache = nd.concat(cache, x, dim=0)
                count = count + 1
            return cache

    block, x = Attends(), rows(1, 3)
    want = block(x, nd.array([6])).asnumpy()
    block.hybridize(strict=True)
    np.testing.assert_allclose(block(x, nd.array([6])).asnumpy(), want, rtol=1e-6)


def test_a_state_of_the_numpy_interface_that_only_grows_has_the_values_of_the_loop_over_arrays():
    class Grows(mx.gluon.HybridBlock):
        def forward(self, x, steps):
            count, cache = mx.np.zeros((1,)), x
            mx.autograph.shape_invariants(cache=(2, None))
            while count < steps:
                cache = mx.np.concatenate([cache, x[:, :1] * count], axis=1)
                count = count + 1
            return cache

    for steps in (0, 3):
        found = []
        for hybridized in (False, True):
            block = Grows()
            block.hybridize(hybridized, strict=True)
            found.append(block(mx.np.array([[1.0, 2.0], [3.0, 4.0]]), mx.np.array([steps])).asnumpy())
        np.testing.assert_array_equal(found[1], found[0])
