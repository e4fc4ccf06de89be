"""Head gradients of any dtype, storage and context give the same gradients as heads of the output's own dtype."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, nd
from hybridnet.errors import ShapeError

DTYPES = ["float16", "float32", "float64", "bfloat16", "int32", "int64", "int8", "uint8", "bool"]
HEAD = np.array([[1, 0, 3], [2, 1, 0]])


class _Square(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return x * x * 2, F.sum(x * 3, axis=1)


def _ways():
    block = _Square()
    yield "imperative", block
    for static in (False, True):
        hybrid = _Square()
        hybrid.hybridize(static_alloc=static)
        yield f"hybridized, static_alloc={static}", hybrid
    variable = mx.sym.var("x")
    yield "function", mx.function([variable], [variable * variable * 2, mx.sym.sum(variable * 3, axis=1)])
    yield "cut", _cut


def _cut(x):
    mask = nd.ones((2,))
    return x * x * 2, mx.nd.sum(mx.nd.contrib.boolean_mask(x, mask) * 3, axis=1)


WAYS = dict(_ways())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("own", ["float32", "float16", "float64"])
def test_a_head_of_another_dtype_is_cast(way: str, dtype: str, own: str) -> None:
    values = np.arange(6.0).reshape(2, 3)
    x = nd.array(values, dtype=own)
    x.attach_grad()
    head = nd.array(HEAD).astype(dtype)
    rows = nd.array([1, 2]).astype(dtype)
    with autograd.record():
        first, second = WAYS[way](x)
    autograd.backward([first, second], [head, rows])
    wanted = 4 * values * head.asnumpy().astype("float64") + 3 * rows.asnumpy().astype("float64")[:, None]
    assert x.grad.dtype == np.dtype(own)
    np.testing.assert_allclose(x.grad.asnumpy(), wanted, rtol=1e-2)


@pytest.mark.parametrize("way", ["imperative", "hybridized, static_alloc=False", "function"])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_grad_casts_heads_and_gradients_of_gradients_reach_them(way: str, dtype: str) -> None:
    x = nd.array([[1.0, 2.0, 3.0]])
    head = nd.array([[1.0, 2.0, 4.0]], dtype=dtype)
    x.attach_grad()
    head.attach_grad()
    with autograd.record():
        first = WAYS[way](x)[0]
        (gradient,) = autograd.grad([first], [x], head_grads=[head], create_graph=True)
    gradient.backward(nd.array([[1.0, 1.0, 1.0]], dtype="float64"))
    np.testing.assert_allclose(x.grad.asnumpy(), 4 * head.asnumpy().astype("float64"))
    assert head.grad.dtype == np.dtype(dtype)
    np.testing.assert_allclose(head.grad.asnumpy(), 4 * x.asnumpy())


@pytest.mark.parametrize("way", ["imperative", "hybridized, static_alloc=True", "function"])
def test_many_elements_are_not_read_beyond_the_head(way: str) -> None:
    x = nd.ones((1000, 300))
    x.attach_grad()
    with autograd.record():
        first = WAYS[way](x)[0]
    first.backward(nd.ones(first.shape, dtype="float16"))
    assert (x.grad.asnumpy() == 4).all()


@pytest.mark.parametrize("way", WAYS)
def test_a_head_of_another_shape_is_refused(way: str) -> None:
    x = nd.ones((2, 3))
    x.attach_grad()
    with autograd.record():
        first = WAYS[way](x)[0]
    for shape in ((3, 2), (6,), (2, 3, 1), (1, 3), (0, 3)):
        with pytest.raises(ShapeError, match="head gradient"):
            first.backward(nd.ones(shape, dtype="float64"), retain_graph=True)


@pytest.mark.parametrize("way", WAYS)
def test_views_and_sparse_heads_are_read_as_their_values(way: str) -> None:
    base = nd.array(np.arange(18.0).reshape(6, 3), dtype="float64")
    sparse = nd.array([[0.0, 0.0, 0.0], [4.0, 5.0, 6.0]]).tostype("row_sparse")
    for head in (base[2:4], base.reshape((3, 2, 3))[1], sparse, sparse.astype("float64")):
        x = nd.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        x.attach_grad()
        with autograd.record():
            first = WAYS[way](x)[0]
        first.backward(head)
        np.testing.assert_allclose(x.grad.asnumpy(), 4 * x.asnumpy() * head.asnumpy())


@pytest.mark.parametrize("way", WAYS)
def test_empty_heads(way: str) -> None:
    if way == "cut":
        pytest.skip("the mask has two rows")
    with mx.util.np_shape(True):
        x = nd.zeros((0, 3))
        x.attach_grad()
        with autograd.record():
            first = WAYS[way](x)[0]
        first.backward(nd.zeros((0, 3), dtype="float16"))
        assert x.grad.shape == (0, 3)


@pytest.mark.parametrize("request_", ["write", "add"])
def test_heads_that_are_gradient_buffers_are_read_before_they_are_written(request_: str) -> None:
    a, b, c = nd.array([1.0, 2.0]), nd.array([3.0, 4.0]), nd.array([5.0, 6.0])
    for array in (a, b, c):
        array.attach_grad(request_)
    old = [np.array([7.0, 8.0]), np.array([9.0, 1.0]), np.array([2.0, 3.0])]
    for array, value in zip((a, b, c), old, strict=True):
        array.grad[:] = value
    with autograd.record():
        first, second, third = a + c, b * 2, a * b
    autograd.backward([first, second, third], [b.grad, a.grad, c.grad])
    wanted = [
        old[1] + old[2] * b.asnumpy(),
        2 * old[0] + old[2] * a.asnumpy(),
        old[1],
    ]
    for array, value, before in zip((a, b, c), wanted, old, strict=True):
        np.testing.assert_allclose(array.grad.asnumpy(), value + (before if request_ == "add" else 0))


def test_one_array_may_be_the_head_of_several_outputs() -> None:
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    head = nd.array([3.0, 5.0], dtype="float64")
    block = mx.gluon.nn.HybridLambda(lambda F, x: (x * 2, x * x))
    block.hybridize()
    with autograd.record():
        first, second = block(x)
    autograd.backward([first, second, first], [head, head, head])
    np.testing.assert_allclose(x.grad.asnumpy(), head.asnumpy() * (2 + 2 * x.asnumpy() + 2))
    np.testing.assert_array_equal(head.asnumpy(), [3, 5])


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
def test_executors_and_modules_cast_heads(dtype: str) -> None:
    variable = mx.sym.var("x")
    x, gradient = nd.array([1.0, 2.0, 3.0]), nd.zeros((3,))
    executor = (variable * variable).bind(mx.cpu(), {"x": x}, args_grad={"x": gradient})
    executor.forward(is_train=True)
    executor.backward([nd.array([1.0, 2.0, 4.0], dtype=dtype)])
    np.testing.assert_allclose(gradient.asnumpy(), [2, 8, 24])
    with pytest.raises(ShapeError, match="out_grads"):
        executor.backward([nd.ones((4,))])
    module = mx.mod.Module(mx.sym.FullyConnected(variable, num_hidden=2, no_bias=True, name="fc"), ["x"], None)
    module.bind([("x", (1, 3))], inputs_need_grad=True)
    module.init_params(mx.init.One())
    module.forward(mx.io.DataBatch([nd.ones((1, 3))]), is_train=True)
    module.backward([nd.array([[1.0, 3.0]], dtype=dtype)])
    np.testing.assert_allclose(module.get_input_grads()[0].asnumpy(), [[4, 4, 4]])


def test_gradient_arrays_of_an_executor_must_fit_their_arguments() -> None:
    variable = mx.sym.var("x")
    for wrong in (nd.zeros((4,)), nd.zeros((3,), dtype="float64")):
        with pytest.raises(mx.MXNetError, match="args_grad of 'x'"):
            (variable * 2).bind(mx.cpu(), {"x": nd.ones((3,))}, args_grad={"x": wrong})


def test_slices_of_one_buffer_as_gradients_of_an_executor() -> None:
    a, b = mx.sym.var("a"), mx.sym.var("b")
    flat = nd.zeros((4,))
    executor = (a + b).bind(
        mx.cpu(), {"a": nd.ones((2,)), "b": nd.ones((2,))}, args_grad={"a": flat[0:2], "b": flat[2:4]}
    )
    executor.forward(is_train=True)
    executor.backward([nd.array([5.0, 6.0])])
    np.testing.assert_array_equal(flat.asnumpy(), [5, 6, 5, 6])
