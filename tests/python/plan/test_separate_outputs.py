"""Outputs of a graph are separate arrays: writing to one changes no other output, no input, no later call."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet.contrib import foreach

nd = mx.nd


class Block(gluon.HybridBlock):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def same_array(x):
    y = x * 2
    return y, y


def copy(x):
    y = x * 2
    return y, y.copy()


def view(x):
    y = x * 2
    return y, y.reshape((3, 1))


CASES = {
    "computed twice": lambda x: (x * 2, x * 2),
    "copied": copy,
    "multiplied by one": lambda x: (x * 2, (x * 2) * 1),
    "reshaped apart": lambda x: (x * 2, (x * 2).reshape((3, 1))),
    "states of a loop": lambda x: foreach(lambda d, h: ([], [h[0] * 2, h[1] * 2]), x.reshape((1, 3)), [x, x])[1],
    "reshaped by an operator": lambda x: (lambda y: (y, nd.reshape(y, shape=(3, 1))))(x * 2),
    "with one more axis": lambda x: (lambda y: (y, nd.expand_dims(y, axis=0)))(x * 2),
    "flattened": lambda x: (lambda y: (nd.Flatten(y), nd.squeeze(nd.expand_dims(y, axis=1), axis=1)))(x * 2),
    "without gradient": lambda x: (lambda y: (y, nd.BlockGrad(y)))(x * 2),
    "parts of a split": lambda x: tuple(nd.split(x * 2, num_outputs=1, axis=0, squeeze_axis=False) for _ in "12"),
}
# Outputs that share memory without a graph: an array twice, and a view (docs/differences-from-mxnet.md).
SHARED = {"handed out twice": same_array, "a view": view}


def written(function, hybridized):
    """Returns the second output after a write to the first, and the first after a write to the second."""
    found = []
    for first in (0, 1):
        block = Block(function)
        block.hybridize(hybridized)
        outputs = block(nd.ones((3,)))
        outputs[first][:] = 7
        found.append(outputs[1 - first].asnumpy().ravel())
    return found


@pytest.mark.parametrize("name", CASES)
def test_writing_to_one_output_changes_the_other_as_without_a_graph(name):
    np.testing.assert_array_equal(written(CASES[name], True), written(CASES[name], False))


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_equal_outputs_add_up(name):
    found = []
    for hybridized in (False, True):
        block = Block(CASES[name])
        block.hybridize(hybridized)
        x = nd.ones((3,))
        x.attach_grad()
        with mx.autograd.record():
            one, two = block(x)
            loss = (one * one).sum() + 3 * (two * two).sum()
        loss.backward()
        found.append(x.grad.asnumpy())
    np.testing.assert_array_equal(found[1], found[0])


# --------------------------------------------------------------------------------------------- always separate memory
def identity(x):
    return x, x * 2


def view_of_input(x):
    return x.reshape((3, 1)), nd.reshape(x, shape=(1, 3)), nd.expand_dims(x, axis=0), x[0:2]


def of_unknown_size(x):
    rows = nd.contrib.boolean_mask(x.reshape((3, 1)), nd.ones((3,)))
    return rows, rows, nd.reshape(rows, shape=(-1,)), x, CONSTANT


def constant(x):
    return CONSTANT.reshape((2, 1)), x * 2, CONSTANT


CONSTANT = nd.array([1.0, 2.0])


class WithParameter(gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.weight = self.params.get("weight", shape=(4,), init="ones")

    def hybrid_forward(self, F, x, weight):
        return weight, F.reshape(weight, shape=(2, 2)), x * 2


def check_apart(outputs, others, again):
    """Checks that writing to an output changes no other output, none of `others`, and no result of again()."""
    before = [a.asnumpy() for a in others]
    for i, output in enumerate(outputs):
        kept = [a.asnumpy() for a in outputs]
        output[:] = 70 + i
        for j, other in enumerate(outputs):
            if j != i:
                np.testing.assert_array_equal(other.asnumpy(), kept[j])
        kept = [a.asnumpy() for a in outputs]
        later = again()
        for array, values in zip(outputs, kept, strict=True):
            np.testing.assert_array_equal(array.asnumpy(), values)
        for array in later:
            assert not np.any(array.asnumpy() >= 70)
    for array, values in zip(others, before, strict=True):
        np.testing.assert_array_equal(array.asnumpy(), values)


ALL = {
    **CASES,
    **SHARED,
    "the input": identity,
    "views of the input": view_of_input,
    "a constant": constant,
    "a size known at run time": of_unknown_size,
}


@pytest.mark.parametrize("static_alloc", [False, True])
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("record", [False, True])
def test_outputs_of_a_hybridized_block_share_no_memory(name, static_alloc, record):
    block = Block(ALL[name])
    block.hybridize(static_alloc=static_alloc, static_shape=static_alloc)
    x = nd.ones((3,))

    def call():
        if not record:
            return list(block(x))
        with mx.autograd.record():
            return [out.detach() for out in block(x)]

    if record:
        x.attach_grad()
    check_apart(call(), [x, CONSTANT], call)


@pytest.mark.parametrize("static_alloc", [False, True])
def test_outputs_that_show_a_parameter_leave_it_alone(static_alloc):
    block = WithParameter()
    block.initialize()
    block.hybridize(static_alloc=static_alloc)
    x = nd.ones((3,))
    check_apart(list(block(x)), [x, block.weight.data()], lambda: list(block(x)))


def graph_outputs():
    x = mx.sym.var("x")
    y = x * 2
    return x, [y, mx.sym.reshape(y, shape=(3, 1)), y, mx.sym.expand_dims(x, axis=0), x, mx.sym.BlockGrad(y)]


@pytest.mark.parametrize("static_alloc", [False, True])
def test_outputs_of_functions_share_no_memory(static_alloc):
    x, outputs = graph_outputs()
    function = mx.function([x], outputs, static_alloc=static_alloc)
    value = nd.ones((3,))
    check_apart(function(value), [value], lambda: function(value))


def test_outputs_of_cached_operators_and_executors_share_no_memory():
    _, outputs = graph_outputs()
    value = nd.ones((3,))
    operator = mx.nd.CachedOp(mx.sym.Group(outputs))
    check_apart(operator(value), [value], lambda: operator(value))
    executor = mx.sym.Group(outputs).bind(mx.cpu(), {"x": value})
    executor.forward()
    results = executor.outputs
    for i, output in enumerate(results):
        kept = [a.asnumpy() for a in results]
        output[:] = 9
        for j, other in enumerate(results):
            if i != j:
                np.testing.assert_array_equal(other.asnumpy(), kept[j])
    np.testing.assert_array_equal(value.asnumpy(), 1)
    for output in executor.forward():
        assert not np.any(output.asnumpy() == 9)


def test_gradients_that_are_one_value_are_arrays_of_their_own():
    block = Block2(lambda x, y: x + y)
    block.hybridize()
    x, y = nd.ones((3,)), nd.ones((3,))
    x.attach_grad()
    y.attach_grad()
    with mx.autograd.record():
        out = block(x * 1, y * 1)
    one, two = mx.autograd.grad(out, [x, y], retain_graph=True)
    one[:] = 9
    np.testing.assert_array_equal(two.asnumpy(), 1)
    out.backward()
    x.grad[:] = 9
    np.testing.assert_array_equal(y.grad.asnumpy(), 1)


class Block2(gluon.HybridBlock):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x, y):
        return self.function(x, y)


def test_no_copy_where_nothing_is_shared():
    block = Block(lambda x: (x * 2, nd.exp(x), nd.reshape(nd.tanh(x), shape=(3, 1))))
    block.hybridize()
    block(nd.ones((3,)))
    assert "copy" not in block.plan_text()
