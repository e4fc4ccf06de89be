"""mx.sym.gradient: gradients are values of a graph and may be part of outputs, updates, losses and files."""

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.gluon import nn


def _array(values, dtype="float64"):
    return mx.nd.array(np.asarray(values, dtype), dtype=dtype)


@pytest.fixture
def x():
    return mx.sym.var("x", dtype="float64")


def test_it_is_an_output_of_a_function(x):
    cube = x * x * x
    value, slope = mx.function([x], [cube, mx.sym.gradient(cube, x)])(_array([1, 2, -3]))
    assert value.asnumpy().tolist() == [1, 8, -27]
    assert slope.asnumpy().tolist() == [3, 12, 27]
    assert slope.dtype == np.float64


def test_its_gradient_is_the_second_derivative_and_so_on(x):
    value, wanted = mx.sym.exp(2 * x), []
    for order in range(4):
        wanted.append((value, 2**order))
        value = mx.sym.gradient(value, x)
    at = np.array([0.5, -1.0, 0.0])
    for result, factor in zip(
        mx.function([x], [one for one, _ in wanted])(_array(at)), [factor for _, factor in wanted], strict=True
    ):
        np.testing.assert_allclose(result.asnumpy(), factor * np.exp(2 * at), rtol=1e-12)


def test_a_penalty_on_the_gradient_is_differentiated_by_the_tape(x):
    slope = mx.sym.gradient(mx.sym.sum(mx.sym.sin(x)), x)
    penalty = mx.function([x], mx.sym.sum(slope * slope))
    at = _array([0.1, 0.7, 2.0])
    at.attach_grad()
    with mx.autograd.record():
        value = penalty(at)
    value.backward()
    point = at.asnumpy()
    np.testing.assert_allclose(at.grad.asnumpy(), -2 * np.cos(point) * np.sin(point), rtol=1e-12)


def test_updates_descend_along_it():
    x, target = mx.sym.var("x"), mx.sym.var("target")
    weight = mx.shared(mx.nd.zeros((2, 1)))
    error = mx.sym.dot(x, weight) - target
    loss = mx.sym.mean(mx.sym.square(error))
    step = mx.function([x, target], loss, updates={weight: weight - 0.1 * mx.sym.gradient(loss, weight)})
    rng = np.random.default_rng(0)
    data = rng.normal(size=(64, 2)).astype("float32")
    labels = data @ np.array([[2.0], [-1.0]], "float32")
    losses = [step(data, labels).asscalar() for _ in range(200)]
    assert losses[-1] < 1e-6 < losses[0]
    np.testing.assert_allclose(weight.get_value().asnumpy(), [[2], [-1]], atol=1e-3)


def test_parameters_of_blocks_are_asked_for_as_they_are():
    net = nn.HybridSequential()
    net.add(nn.Dense(3, in_units=2, activation="tanh"), nn.Dense(1, in_units=3))
    net.initialize(mx.init.Normal(0.5))
    x = mx.sym.var("x")
    params = list(net.collect_params().values())
    grads = mx.function([x], mx.sym.gradient(net(x), params))(mx.nd.ones((4, 2)))
    with mx.autograd.record():
        net(mx.nd.ones((4, 2))).backward()
    assert len(grads) == len(params) == 4
    for grad, param in zip(grads, params, strict=True):
        assert grad.shape == param.shape
        np.testing.assert_allclose(grad.asnumpy(), param.grad().asnumpy(), rtol=1e-5, atol=1e-6)


def test_heads_weigh_the_elements_of_losses_and_get_no_gradient(x):
    head = x * 10
    grads = mx.function([x], mx.sym.gradient([x * x, x], [x], head_grads=[head, None]))(_array([1, 2]))
    assert grads[0].asnumpy().tolist() == [2 * 10 + 1, 4 * 20 + 1]


def test_variables_that_losses_do_not_read_have_zeros(x):
    y = mx.sym.var("y", shape=(2, 0), dtype="float64")
    grads = mx.function([x, y], mx.sym.gradient(x * 2, [x, y]))(_array([1]), _array(np.ones((2, 3))))
    assert [grad.asnumpy().tolist() for grad in grads] == [[2], [[0, 0, 0], [0, 0, 0]]]


def test_it_goes_through_loops_and_branches(x):
    def body(item, state):
        grown = mx.sym.contrib.cond(item > 0, lambda: state * item, lambda: state + item)
        return grown, grown

    outputs, _ = mx.sym.contrib.foreach(body, x, mx.sym.ones((1,), dtype="float64"))
    grads = mx.function([x], mx.sym.gradient(outputs, x))(_array([[2], [-1], [3]]))
    # The states are a, a + b, (a + b) c.
    assert grads.asnumpy().ravel().tolist() == [1 + 1 + 3, 1 + 3, 1]


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 4)])
def test_shapes_without_axes_or_elements(shape):
    with mx.util.np_shape(True):
        x = mx.sym.var("x")
        grad = mx.function([x], mx.sym.gradient(x * x, x))(mx.nd.ones(shape))
        assert grad.shape == shape
        assert (grad.asnumpy() == 2).all()


def test_arrays_of_the_numpy_interface_have_gradients_of_that_interface():
    x = mx.sym.var("x").as_np_ndarray()
    grad = mx.sym.gradient(mx.sym.np.sum(x**2), x)
    assert type(grad) is type(x)
    assert isinstance(mx.function([x], grad)(mx.np.array([1.0, 3.0])), mx.np.ndarray)


def test_bind_eval_infer_shape_and_files_take_it(x, tmp_path):
    grad = (x * x).gradient(["x"])[0]
    assert grad.infer_shape(x=(2, 3))[1] == [(2, 3)]
    assert grad.bind(mx.cpu(), {"x": _array([4])}).forward()[0].asscalar() == 8
    grad.save(tmp_path / "grad.json")
    again = mx.sym.load(tmp_path / "grad.json")
    assert again.eval(x=_array([4]))[0].asscalar() == 8


@pytest.mark.parametrize("passes", ["none", "fast_compile", "fast_run", "debug"])
def test_each_profile_gives_the_same(x, passes):
    loss = mx.sym.log(mx.sym.sum(mx.sym.exp(x)))
    grad = mx.function([x], mx.sym.gradient(loss, x), passes=passes)(_array([1, 2, 3])).asnumpy()
    raised = np.exp([1.0, 2, 3])
    np.testing.assert_allclose(grad, raised / raised.sum(), rtol=1e-12)


def test_misuse_is_named(x):
    y = x * x
    with pytest.raises(TypeError, match=r"wrt: expected variables, got '.*', which an operator computes"):
        mx.sym.gradient(y * y, y)
    with pytest.raises(TypeError, match="wrt: expected variables, got a float"):
        mx.sym.gradient(y, 1.5)
    with pytest.raises(ValueError, match="unknown variable 'xx'"):
        y.gradient("xx")
    with pytest.raises(TypeError, match=r"loss: expected a Symbol.*NDArray(?s:.)*autograd.record"):
        mx.sym.gradient(mx.nd.ones(1), x)
    with pytest.raises(ValueError, match="head_grads: expected 1, one per loss, got 2"):
        mx.sym.gradient(y, x, [x, x])
    with pytest.raises(TypeError, match="head_grads: expected Symbols or None, got a int"):
        mx.sym.gradient(y, x, [1])
    with pytest.raises(ValueError, match="one loss and one variable at least"):
        mx.sym.gradient([], x)
    with pytest.raises(mx.MXNetError, match=r"int32.*has no gradient"):
        mx.function([x], mx.sym.gradient(mx.sym.Cast(x, dtype="int32"), x))(_array([1]))
