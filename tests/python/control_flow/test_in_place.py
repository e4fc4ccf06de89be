"""In-place writes around loops and branches keep results, arguments, constants and the inputs of a body separate."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors
from hybridnet.contrib import cond, foreach, while_loop

from .blocks import Block, flat

nd = mx.nd


def rows(count=4, width=3, seed=0):
    return nd.array(np.random.default_rng(seed).normal(size=(count, width)).astype("float32"))


def adds_to_state(x):
    def body(d, s):
        s += d
        return s, s

    return foreach(body, x, x[0])


def scales_its_row(x):
    def body(d, s):
        d *= 2
        return d, s + d

    return [*flat(foreach(body, x, x[0])), x]


def adds_to_variable(x):
    def body(i, a):
        a *= 1.5
        i += 1
        return a, (i, a)

    return while_loop(lambda i, a: i < 3, body, (0, x), 5)


def writes_later_only(x):
    def body(i, a):
        b = a * 1
        b += i
        return b, (i + 1, b)

    return while_loop(lambda i, a: i < 3, body, (0, x), 5)


@pytest.mark.parametrize("function", [adds_to_state, scales_its_row, adds_to_variable, writes_later_only])
def test_a_body_that_writes_to_its_inputs_gives_the_same_on_arrays_and_in_graphs(function):
    found = []
    for hybridized in (False, True):
        block, x = Block(function), rows()
        block.hybridize(hybridized, strict=True)
        before = x.asnumpy()
        results = [array.asnumpy() for array in flat(block(x))]
        np.testing.assert_array_equal(x.asnumpy(), before)
        x.attach_grad()
        with mx.autograd.record():
            loss = sum((array.astype("float32") ** 2).sum() for array in flat(block(x)))
        loss.backward()
        found.append([*results, x.grad.asnumpy()])
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


ALIASES = {
    "a state that stays": lambda x, s: foreach(lambda d, t: (d, t), x, s),
    "a state twice": lambda x, s: foreach(lambda d, t: (d, [t[0], t[0]]), x, [s, s * 2]),
    "two states from one array": lambda x, s: foreach(lambda d, t: (d, t), x, [s, s]),
    "the last row": lambda x, s: foreach(lambda d, t: ([], d), x, s),
    "one iteration": lambda x, s: foreach(lambda d, t: ([d, t], t), x[:1], s),
    "a captured array": lambda x, s: foreach(lambda d, t: ([s, s], s), x, x[0]),
    "while never": lambda x, s: while_loop(lambda i, t: i < 0, lambda i, t: (t, (i + 1, t)), [0, s], 3),
    "while without iterations": lambda x, s: while_loop(lambda t: True, lambda t: t, s, 0, has_outputs=False),
    "while, captured": lambda x, s: while_loop(lambda i, t: i < 2, lambda i, t: (x, (i + 1, x)), [0, x * 2], 3),
    "a branch": lambda x, s: cond(x.sum() > -1e9, lambda: [x, x, s], lambda: [x * 2, x, s]),
    "a view from a branch": lambda x, s: cond(x.sum() > -1e9, lambda: x.reshape((-1,)), lambda: x.reshape((-1,)) * 2),
    "a slice from a branch": lambda x, s: cond(x.sum() > -1e9, lambda: x[1:3], lambda: x[1:3] * 2),
    "a branch in a loop": lambda x, s: foreach(lambda d, t: ([], cond(d.sum() > -1e9, lambda: t, lambda: d)), x, s),
}


@pytest.mark.parametrize("hybridized", [False, True])
@pytest.mark.parametrize("name", ALIASES)
@pytest.mark.filterwarnings("ignore:The .*-th input")
def test_writing_into_a_result_changes_neither_arguments_nor_other_results(name, hybridized):
    block, arguments = Block(ALIASES[name]), [rows(), rows()[1].copy()]
    block.hybridize(hybridized, strict=True)
    results = flat(block(*arguments))
    values = [array.asnumpy() for array in (*arguments, *results)]
    for written in range(len(results)):
        results[written][:] = -77
        values[len(arguments) + written][...] = -77
        for array, value in zip((*arguments, *results), values, strict=True):
            np.testing.assert_array_equal(array.asnumpy(), value)
    for argument in arguments:
        argument[:] = 55
    assert all((array.asnumpy() == -77).all() for array in results)


def test_no_iterations_give_states_of_their_own():
    with mx.util.np_shape(True):
        start = nd.ones((2,))
        for data, options in ((nd.array(np.zeros((0, 2), "float32")), {}), ([], {"length": 0})):
            _, last = foreach(lambda d, s: (s, s * 2), data, start, **options)
            last[:] = 5
            np.testing.assert_array_equal(start.asnumpy(), [1, 1])


def test_equal_results_of_a_graph_have_memory_of_their_own():
    block = Block(lambda x: [x * 2, x * 2, (x * 2).reshape((-1,))])
    block.hybridize(strict=True)
    for record in (False, True):
        x = rows()
        x.attach_grad()
        with mx.autograd.record() if record else mx.autograd.pause():
            one, two, three = block(x)
        one[:] = 1
        np.testing.assert_array_equal(two.asnumpy(), x.asnumpy() * 2)
        two[:] = 2
        np.testing.assert_array_equal(three.asnumpy(), x.asnumpy().reshape(-1) * 2)


# ----------------------------------------------------------------------------------------------------------- constants
def written_before(x):
    c = nd.array([1.0, 2.0, 3.0])
    c[:] = 7
    c[1] = 5
    return foreach(lambda d, s: (d * c, s + c), x, x[0])


def written_before_in_the_body(x):
    def body(i, a):
        c = nd.array([1.0, 2.0, 3.0])
        c[:] = 10
        c += 1
        return a * c, (i + 1, a + c)

    return while_loop(lambda i, a: i < 3, body, (0, x), 5)


@pytest.mark.parametrize("function", [written_before, written_before_in_the_body])
def test_constants_may_be_written_before_they_are_read(function):
    block, x = Block(function), rows()
    want = [array.asnumpy() for array in flat(block(x))]
    block.hybridize(strict=True)
    for one, two in zip(flat(block(x)), want, strict=True):
        np.testing.assert_allclose(one.asnumpy(), two, rtol=1e-6)


def written_after(x):
    c = nd.array([1.0, 2.0, 3.0])
    y = x * c  # read
    c[:] = 100  # written
    return y + c


def written_after_in_the_body(x):
    def body(i, a):
        c = nd.array([1.0, 2.0, 3.0])
        y = a * c  # read
        c[:] = 10  # written
        return y, (i + 1, a + c)

    return while_loop(lambda i, a: i < 3, body, (0, x), 5)


def written_by_an_operator(x):
    def body(d, s):
        c = nd.array([1.0, 2.0, 3.0])
        y = d * c  # read
        nd.exp(c, out=c)  # written
        return y, s

    return foreach(body, x, [])[0]


@pytest.mark.parametrize("function", [written_after, written_after_in_the_body, written_by_an_operator])
def test_a_constant_that_is_written_after_it_was_read_is_refused(function):
    import linecache
    import re

    block = Block(function)
    block(rows())
    block.hybridize(strict=True)
    with pytest.raises(errors.TraceError, match="written to in place while the graph is being made") as caught:
        block(rows())
    text = str(caught.value)
    for pattern, mark in ((r"reads it at (\S+):(\d+)", "# read"), (r"\n  At: (\S+):(\d+)", "# written")):
        path, line = re.search(pattern, text).groups()
        assert mark in linecache.getline(path, int(line)), text
    assert "Fix: make a new array instead" in text


def test_an_array_that_changes_between_calls_is_seen():
    c, x = nd.array([1.0, 2.0, 3.0]), rows()
    block = Block(lambda x: foreach(lambda d, s: (d * c, s), x, [])[0])
    block.hybridize(strict=True)
    block(x)
    c[:] = 10
    np.testing.assert_allclose(block(x).asnumpy(), x.asnumpy() * 10, rtol=1e-6)


def test_a_traced_value_cannot_be_written_into_an_array():
    target = nd.zeros((3,))
    block = Block(lambda x: foreach(lambda d, s: (nd.exp(d, out=target), s), x, [])[0])
    block.hybridize(strict=True)
    with pytest.raises(errors.TraceError, match="use the array that the call returns"):
        block(rows())


# -------------------------------------------------------------------------------------------------- arrays from outside
def adds_in_place(c):
    c += 1


def adds_floor_divided(c):
    c //= 2


def assigns(c):
    c[:] = 5


def assigns_numpy(c):
    c[1] = np.float32(3) * np.ones(())


def assigns_values(c):
    c[:] = np.arange(3)


def writes_by_operator(c):
    nd.exp(c, out=c)


@pytest.mark.parametrize(
    "write", [adds_in_place, adds_floor_divided, assigns, assigns_numpy, assigns_values, writes_by_operator]
)
def test_a_traced_body_does_not_write_into_arrays_from_outside(write):
    c = nd.ones((3,))

    def body(d, s):
        write(c)
        return d * c, s

    block = Block(lambda x: foreach(body, x, [])[0])
    block(rows())  # on arrays each iteration writes the constant
    before = c.asnumpy()
    block.hybridize(strict=True)
    with pytest.raises(errors.TraceError, match=r"is written to in place inside the body of foreach \(") as caught:
        block(rows())
    assert "test_in_place.py:" in str(caught.value)
    np.testing.assert_array_equal(c.asnumpy(), before)
