"""Arrays are freed with their last handle, whatever was recorded: an in-place write does not keep its target."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon

Program = Callable[[mx.nd.NDArray], object]


def block(function) -> gluon.HybridBlock:
    made = gluon.nn.HybridLambda(function)
    made.hybridize()
    return made


def compiled(x):
    return block(lambda F, x: F.sin(x) * x)(x)


def into_the_gradient(x):
    mx.nd.sin(x, out=x.grad)


def into_a_view_of_the_gradient(x):
    x.grad[:] = mx.nd.sin(x)


def into_the_input(x):
    y = mx.nd.sin(x)
    mx.nd.sin(y, out=y)


def into_an_input_of_inputs(x):
    y = mx.nd.sin(x)
    mx.nd.cos(mx.nd.exp(mx.nd.cos(y)), out=y)


def into_a_part_of_the_input(x):
    y = mx.nd.sin(x)
    y[0:2] = mx.nd.cos(y)[0:2]


def into_a_view_of_the_input(x):
    y = mx.nd.sin(x)
    v = y[0:2]
    v *= mx.nd.cos(v)
    return (y * y).sum()


def into_rows_from_rows(x):
    h = mx.nd.zeros((4, 4))
    h[0] = x
    for i in range(3):
        h[i + 1] = mx.nd.sin(h[i]) * h[i]
    return (h * h).sum()


def into_a_detached_array(x):
    y = mx.nd.sin(x)
    mx.nd.cos(y, out=y.detach())
    return (y * y).sum()


def added_in_place(x):
    y = mx.nd.sin(x)
    y += mx.nd.cos(y)


def assigned(x):
    y = mx.nd.sin(x)
    y[:] = mx.nd.cos(y)


def assigned_from_a_compiled_block(x):
    y = compiled(x)
    y[:] = compiled(y)


def compiled_over_its_input(x):
    y = mx.nd.sin(x)
    compiled(y).copyto(y)


def of_unknown_shape(x):
    m = mx.nd.contrib.boolean_mask(x, x > 0)
    m += mx.nd.cos(m)


def gradient_of_a_gradient(x):
    x.grad.attach_grad()
    mx.nd.sin(x, out=x.grad.grad)


def gradient_that_stems_from_the_variable(x):
    autograd.mark_variables([x], [mx.nd.sin(x)])


def of_a_product_with_a_sparse_array(x):
    rows = x.reshape((2, 2)).tostype("csr")
    mx.nd.dot(rows, mx.nd.sin(x).reshape((2, 2)), out=x.grad.reshape((2, 2)))


PROGRAMS: list[Program] = [
    into_the_gradient,
    into_a_view_of_the_gradient,
    into_the_input,
    into_an_input_of_inputs,
    into_a_part_of_the_input,
    into_a_view_of_the_input,
    into_rows_from_rows,
    into_a_detached_array,
    added_in_place,
    assigned,
    assigned_from_a_compiled_block,
    compiled_over_its_input,
    of_unknown_shape,
    gradient_of_a_gradient,
    gradient_that_stems_from_the_variable,
    of_a_product_with_a_sparse_array,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_array_dies_with_its_last_handle(program: Program) -> None:
    memory = np.arange(1.0, 5.0, dtype="float32")
    gone = weakref.ref(memory)
    x = mx.nd.from_numpy(memory, zero_copy=True)
    del memory
    x.attach_grad()
    with autograd.record():
        program(x)
    mx.nd.waitall()
    assert gone() is not None
    del x
    gc.collect()
    mx.nd.waitall()
    assert gone() is None


def test_a_gradient_buffer_holds_values_written_while_recording() -> None:
    x = mx.nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        mx.nd.sin(x, out=x.grad)
        y = (x.grad * x).sum()  # the buffer is a constant
    np.testing.assert_allclose(x.grad.asnumpy(), np.sin([1.0, 2.0]), rtol=1e-6)
    (gradient,) = autograd.grad([y], [x])
    np.testing.assert_allclose(gradient.asnumpy(), np.sin([1.0, 2.0]), rtol=1e-6)


def test_results_in_the_buffer_of_another_variable_are_recorded() -> None:
    x, other = mx.nd.array([1.0, 2.0]), mx.nd.array([3.0, 4.0])
    x.attach_grad()
    other.attach_grad()
    place = other.grad
    with autograd.record():
        mx.nd.sin(x, out=place)
        y = (place * place).sum()
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * np.sin([1.0, 2.0]) * np.cos([1.0, 2.0]), rtol=1e-6)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_variable_cannot_be_its_own_gradient(length: int) -> None:
    arrays = [mx.nd.ones((2,)) for _ in range(length)]
    for variable, gradient in itertools.pairwise(arrays):
        autograd.mark_variables([variable], [gradient])
    with pytest.raises(ValueError, match="gradient"):
        autograd.mark_variables([arrays[-1]], [arrays[0]])


@pytest.mark.parametrize("hybridize", [False, True])
def test_gradients_of_gradients_after_an_overwrite_name_the_line(hybridize: bool) -> None:
    function = gluon.nn.HybridLambda(lambda F, x: F.sin(x) * x)
    function.hybridize(hybridize)
    x = mx.nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = function(x)
    x[:] = 3
    with pytest.raises(mx.errors.GradientError, match="overwritten") as error, autograd.record():
        autograd.grad([y], [x], create_graph=True)
    assert __file__ in str(error.value)


def test_gradients_of_gradients_do_not_mind_new_running_means() -> None:
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(3, in_units=2), gluon.nn.BatchNorm(in_channels=3))
    net.initialize()
    net.hybridize()
    x = mx.nd.array([[1.0, 2.0], [3.0, 5.0], [0.5, -1.0]])
    x.attach_grad()

    def second_order(between: bool) -> np.ndarray:
        with autograd.record():
            y = (net(x) ** 3).sum()
            if between:
                net(x * 7)
            (gradient,) = autograd.grad([y], [x], create_graph=True)
            (gradient**2).sum().backward()
        return x.grad.asnumpy()

    np.testing.assert_allclose(second_order(True), second_order(False), rtol=1e-4, atol=1e-5)
