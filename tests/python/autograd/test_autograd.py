"""Recording, backward, gradients of gradients, functions with their own backward."""

from __future__ import annotations

import gc
import json
import threading

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd


def leaf(values, **kwargs):
    x = mx.nd.array(values)
    x.attach_grad(**kwargs)
    return x


def test_scopes_nest_and_restore():
    assert not autograd.is_recording()
    assert not autograd.is_training()
    with autograd.record():
        assert autograd.is_recording() and autograd.is_training()
        with autograd.pause():
            assert not autograd.is_recording() and not autograd.is_training()
        with autograd.predict_mode():
            assert autograd.is_recording() and not autograd.is_training()
        with autograd.pause(train_mode=True):
            assert autograd.is_training()
        assert autograd.is_recording() and autograd.is_training()
    with autograd.record(train_mode=False):
        assert not autograd.is_training()
    with autograd.train_mode():
        assert autograd.is_training() and not autograd.is_recording()
    assert autograd.set_recording(True) is False
    assert autograd.set_recording(False) is True


def test_a_scope_object_can_be_entered_again():
    scope = autograd.record()
    for _ in range(2):
        with scope, scope:
            assert autograd.is_recording()
    assert not autograd.is_recording()


def test_recording_is_per_thread():
    seen = []
    with autograd.record():
        thread = threading.Thread(target=lambda: seen.append(autograd.is_recording()))
        thread.start()
        thread.join()
    assert seen == [False]


def test_backward_fills_grad():
    x = leaf([1.0, 2.0, 3.0])
    assert x.grad.shape == (3,)
    with autograd.record():
        y = x * x + 2 * x
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [4, 6, 8])


def test_head_gradients():
    x = leaf([1.0, 2.0])
    with autograd.record():
        y = x * 3
    y.backward(mx.nd.array([10.0, 100.0]))
    np.testing.assert_allclose(x.grad.asnumpy(), [30, 300])
    with autograd.record():
        y, z = x * 2, x * 3
    autograd.backward([y, z], [None, mx.nd.array([0.0, 1.0])])
    np.testing.assert_allclose(x.grad.asnumpy(), [2, 5])


@pytest.mark.parametrize(("grad_req", "expected"), [("write", [2, 4]), ("add", [6, 12])])
def test_grad_req(grad_req, expected):
    x = leaf([1.0, 2.0], grad_req=grad_req)
    for _ in range(3):
        with autograd.record():
            y = x * x
        y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), expected)
    x.zero_grad()
    np.testing.assert_allclose(x.grad.asnumpy(), [0, 0])


def test_null_asks_for_no_gradient():
    x, w = leaf([1.0], grad_req="null"), leaf([2.0])
    with autograd.record():
        y = x * w
    y.backward()
    assert x.grad is None
    np.testing.assert_allclose(w.grad.asnumpy(), [1])


def test_unknown_grad_req():
    with pytest.raises(ValueError, match="sometimes"):
        mx.nd.ones((1,)).attach_grad("sometimes")


def test_mark_variables():
    x, grad = mx.nd.array([3.0]), mx.nd.zeros((1,))
    autograd.mark_variables(x, grad)
    with autograd.record():
        y = x * x
    y.backward()
    np.testing.assert_allclose(grad.asnumpy(), [6])
    with pytest.raises(ValueError, match="mark_variables"):
        autograd.mark_variables([x], [grad, grad])


def test_detach_stops_gradients_but_shares_memory():
    x = leaf([2.0])
    with autograd.record():
        y = x * x
        z = y.detach() * x
    z.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [4])
    y.detach()[:] = 7
    np.testing.assert_allclose(y.asnumpy(), [7])


def test_retain_graph_allows_a_second_backward():
    x = leaf([2.0])
    with autograd.record():
        y = x * x
    y.backward(retain_graph=True)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [4])
    with pytest.raises(mx.errors.GradientError, match="retain_graph"):
        y.backward()


def test_states_of_an_earlier_step_are_constants():
    w, state = leaf([2.0]), mx.nd.array([1.0])
    for expected in (1, 2, 4):
        with autograd.record():
            state = state * w
        state.backward()
        np.testing.assert_allclose(w.grad.asnumpy(), [expected])


def test_integers_have_gradients_if_asked_for():
    x = mx.nd.array([[3, 1, 2]], dtype="int32")
    x.attach_grad()
    with autograd.record():
        y = mx.nd.topk(x * 2, k=2, ret_typ="value")
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [[2, 0, 2]])


@pytest.mark.parametrize("hybrid", [False, True], ids=["imperative", "hybrid"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize(
    "function, expected",
    [
        (lambda F, x: x * x, [6, 2, 4]),
        (lambda F, x: F.flip(x, axis=0), [1, 1, 1]),
        (lambda F, x: F.sum(x) * 2, [2, 2, 2]),
        (lambda F, x: F.cast(x, "float64") * 2.5, [2, 2, 2]),  # 2.5, truncated to the integer type of the gradient
        (lambda F, x: F.cast(F.cast(x, "int32") * 3, "int64"), [3, 3, 3]),
        (lambda F, x: x % 2, [0, 0, 0]),
    ],
    ids=["square", "flip", "sum", "to_float", "to_int", "mod"],
)
def test_gradients_of_integers_are_the_same_in_graphs(function, expected, dtype, hybrid):
    class Block(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return function(F, x)

    net = Block()
    if hybrid:
        net.hybridize()
    x = mx.nd.array([3, 1, 2], dtype=dtype)
    x.attach_grad()
    with autograd.record():
        y = net(x)
    y.backward()
    assert x.grad.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(x.grad.asnumpy(), expected)


def test_indices_made_of_floats_have_no_gradient_in_graphs():
    class Block(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return x * F.cast(F.cast(x, "int32"), "float32")

    net = Block()
    net.hybridize()
    x = leaf([1.5, 2.5])
    with autograd.record():
        y = net(x)
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [1, 2])


def test_backward_of_an_unrecorded_array():
    with pytest.raises(mx.errors.GradientError, match="record"):
        (mx.nd.ones((1,)) * 2).backward()


def test_grad_returns_new_arrays():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    with autograd.record():
        y = x * x * w
    gx, gw = autograd.grad(y, [x, w])
    np.testing.assert_allclose(gx.asnumpy(), [6, 16])
    np.testing.assert_allclose(gw.asnumpy(), [1, 4])
    np.testing.assert_allclose(x.grad.asnumpy(), [0, 0])


def test_grad_of_an_unrelated_variable():
    x, w = leaf([1.0]), leaf([1.0])
    with autograd.record():
        y = x * 2
    np.testing.assert_array_equal(autograd.grad(y, w)[0].asnumpy(), [0])


@pytest.mark.parametrize("order", [2, 3])
def test_gradients_of_gradients(order):
    x = leaf([0.5, 2.0])
    with autograd.record():
        y = x**4
        for _ in range(order - 1):
            (y,) = autograd.grad(y, x, create_graph=True)
    y.backward()
    factor = {2: 12, 3: 24}[order]
    np.testing.assert_allclose(x.grad.asnumpy(), factor * np.array([0.5, 2.0]) ** (4 - order), rtol=1e-5)


def test_an_overwritten_value_is_an_error_that_names_both_lines():
    x = leaf([1.0, 2.0])
    with autograd.record():
        y = x * x
        z = y * y
    y[:] = 0
    with pytest.raises(
        mx.errors.GradientError, match=r"recorded at .*test_autograd.py:\d+ and overwritten at .*test_autograd.py:\d+"
    ):
        z.backward()


def test_memory_of_a_recorded_graph_is_freed():
    x = leaf(np.ones((64, 64)))

    def step():
        with autograd.record():
            y = x
            for _ in range(10):
                y = y * x
        y.backward()

    step()
    mx.nd.waitall()
    before = mx._core.memory_statistics(1, 0)["in_use"]
    for _ in range(20):
        step()
    mx.nd.waitall()
    assert mx._core.memory_statistics(1, 0)["in_use"] == before


def test_a_long_chain_does_not_overflow_the_stack():
    x = leaf([1.0])
    with autograd.record():
        y = x
        for _ in range(100_000):
            y = y + 1
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [1])


class Sigmoid(autograd.Function):
    def forward(self, x):
        y = 1 / (1 + (-x).exp())
        self.save_for_backward(y)
        return y

    def backward(self, dy):
        (y,) = self.saved_tensors
        return dy * y * (1 - y)


class TwoInTwoOut(autograd.Function):
    def forward(self, a, b):
        return a * 2, b * 3

    def backward(self, da, db):
        return da * 2, db * 3


class Broken(autograd.Function):
    def forward(self, x):
        return x + 1

    def backward(self, dy):
        raise KeyError("broken on purpose")


def test_function(rng):
    values = rng.normal(size=5).astype("float32")
    x = leaf(values)
    with autograd.record():
        y = Sigmoid()(x * 2)
    y.backward()
    s = 1 / (1 + np.exp(-2 * values))
    np.testing.assert_allclose(y.asnumpy(), s, rtol=1e-5)
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * s * (1 - s), rtol=1e-4)


def test_function_is_differentiable_again():
    x = leaf([0.3])
    with autograd.record():
        y = Sigmoid()(x)
        (g,) = autograd.grad(y, [x], create_graph=True)
    g.backward()
    s = 1 / (1 + np.exp(-0.3))
    np.testing.assert_allclose(x.grad.asnumpy(), s * (1 - s) * (1 - 2 * s), rtol=1e-4)


def test_function_with_an_unused_output():
    a, b = leaf([1.0]), leaf([1.0])
    with autograd.record():
        y, _ = TwoInTwoOut()(a, b)
    y.backward()
    np.testing.assert_allclose(a.grad.asnumpy(), [2])
    np.testing.assert_allclose(b.grad.asnumpy(), [0])


def test_function_outside_of_record():
    np.testing.assert_allclose(Sigmoid()(mx.nd.array([0.0])).asnumpy(), [0.5])


def test_function_errors_keep_their_class():
    x = leaf([1.0])
    with autograd.record():
        y = Broken()(x)
    with pytest.raises(KeyError, match="on purpose"):
        y.backward()
    function = Sigmoid()
    function(x)
    with pytest.raises(ValueError, match="once"):
        function(x)


def test_function_objects_are_freed():
    import weakref

    x = leaf([1.0])
    function = Sigmoid()
    alive = weakref.ref(function)
    with autograd.record():
        y = function(x)
    y.backward()
    del function, y
    gc.collect()
    assert alive() is None


def test_get_symbol_gives_the_recorded_operators_as_a_graph(rng):
    x, w = (mx.nd.array(rng.normal(size=(2, 3))) for _ in range(2))
    for leaf in (x, w):
        leaf.attach_grad()
    with autograd.record():
        y = mx.nd.split(mx.nd.concat(x * w, 2 * x - 1, dim=0), 2, axis=0)[1] + mx.nd.exp(w)
    graph = autograd.get_symbol(y)
    assert sorted(graph.list_arguments()) == ["var0", "var1"]
    np.testing.assert_allclose(graph.eval(var0=x, var1=w)[0].asnumpy(), y.asnumpy(), rtol=1e-6)
    again = mx.sym.load_json(graph.tojson())
    np.testing.assert_allclose(again.eval(var0=x, var1=w)[0].asnumpy(), y.asnumpy(), rtol=1e-6)


def test_get_symbol_makes_constants_variables():
    x, constant = mx.nd.ones((2,)), mx.nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        y = x * constant + x
    assert len(autograd.get_symbol(y).list_arguments()) == 2


def test_get_symbol_opens_hybridized_blocks():
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(4, activation="relu"), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Dense(2))
    net.initialize()
    net.hybridize()
    with autograd.record():
        y = net(mx.nd.ones((2, 3))) * 2
    graph = autograd.get_symbol(y)
    operators = [node["op"] for node in json.loads(graph.tojson())["nodes"] if node["op"] != "null"]
    assert operators.count("FullyConnected") == 2
    assert "BatchNorm" in operators
    assert operators[-1] == "_mul_scalar"
    assert len(graph.list_auxiliary_states()) == 2


def test_get_symbol_is_an_error_for_arrays_without_a_graph():
    with pytest.raises(mx.MXNetError, match="not computed while recording"):
        autograd.get_symbol(mx.nd.ones((2,)))

    class Double(autograd.Function):
        def forward(self, x):
            return x * 2

        def backward(self, dy):
            return dy * 2

    x = mx.nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        y = Double()(x) + 1
    with pytest.raises(mx.MXNetError, match=r"Double.*backward written in Python"):
        autograd.get_symbol(y)


def test_gradients_of_relu_show_broken_inputs():
    x = mx.nd.array([float("nan"), 2, -2])
    x.attach_grad()
    with autograd.record():
        y = mx.nd.relu(x)
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [np.nan, 1, 0])


class _Doubled(mx.autograd.Function):
    """Its backward is not that of its forward, so that an ignored backward shows."""

    def forward(self, x):
        return x * 3

    def backward(self, dy):
        return dy * 2


class _Doubling(mx.gluon.HybridBlock):
    def forward(self, x):
        return _Doubled()(x)


def test_a_function_with_its_own_backward_is_not_lost_in_a_hybridized_block():
    net = _Doubling()
    x = mx.nd.array([1, 2])
    x.attach_grad()
    net.hybridize()
    assert net(x).asnumpy().tolist() == [3, 6]
    with pytest.warns(UserWarning, match="Function is recorded while a block is traced"), mx.autograd.record():
        y = net(x)
    y.backward()
    assert x.grad.asnumpy().tolist() == [2, 2]


def test_recording_a_function_in_a_strict_block_is_an_error_that_names_its_line():
    net = _Doubling()
    net.hybridize(strict=True)
    x = mx.nd.array([1, 2])
    x.attach_grad()
    with pytest.raises(mx.errors.TraceError, match="Function is recorded") as caught, mx.autograd.record():
        net(x)
    assert "test_autograd.py" in caught.value.where
