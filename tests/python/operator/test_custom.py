"""Operators written in Python: on arrays, in graphs, in hybridized blocks, in files."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon


class Square(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.trained = is_train
        self.assign(out_data[0], req[0], in_data[0] * in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        assert self.trained  # this is the object of the forward pass
        self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])


@mx.operator.register("square_of_tests")
class SquareProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Square()


class Softmax(mx.operator.CustomOp):
    """A softmax loss computed with NumPy, from MXNet's tutorial."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].asnumpy()
        y = np.exp(x - x.max(axis=1, keepdims=True))
        self.assign(out_data[0], req[0], mx.nd.array(y / y.sum(axis=1, keepdims=True)))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        labels = in_data[1].asnumpy().astype(int)
        grad = out_data[0].asnumpy()
        grad[np.arange(labels.size), labels] -= 1
        self.assign(in_grad[0], req[0], mx.nd.array(grad * self.scale))


@mx.operator.register("softmax_of_tests")
class SoftmaxProp(mx.operator.CustomOpProp):
    def __init__(self, scale="1.0"):
        super().__init__(need_top_grad=False)
        self.scale = float(scale)

    def list_arguments(self):
        return ["data", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0], (in_shape[0][0],)], [in_shape[0]], []

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Softmax(self.scale)


class Counter(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        aux[0][:] += 1
        self.assign(out_data[0], req[0], in_data[0] + 1)
        self.assign(out_data[1], req[1], in_data[0].sum().reshape((1,)))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] + out_grad[1])


@mx.operator.register("counter_of_tests")
class CounterProp(mx.operator.CustomOpProp):
    def list_outputs(self):
        return ["plus", "total"]

    def list_auxiliary_states(self):
        return ["calls"]

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0], (1,)], [(1,)]

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Counter()


def leaf(values):
    x = mx.nd.array(values)
    x.attach_grad()
    return x


def test_on_arrays():
    x = leaf([1.0, -2.0])
    with autograd.record():
        y = mx.nd.Custom(x * 3, op_type="square_of_tests")
    y.backward()
    np.testing.assert_allclose(y.asnumpy(), [9, 36])
    np.testing.assert_allclose(x.grad.asnumpy(), [18, -36])


def test_arguments_arrive_as_texts_and_inputs_by_name():
    x, label = leaf([[1.0, 2.0, 3.0]]), mx.nd.array([2])
    with autograd.record():
        y = mx.nd.Custom(label=label, data=x, op_type="softmax_of_tests", scale=0.5)
    y.backward()
    expected = np.exp([1.0, 2, 3]) / np.exp([1.0, 2, 3]).sum()
    np.testing.assert_allclose(y.asnumpy()[0], expected, rtol=1e-5)
    np.testing.assert_allclose(x.grad.asnumpy()[0], 0.5 * (expected - [0, 0, 1]), rtol=1e-5)


def test_several_outputs_and_a_state():
    x, calls = leaf([1.0, 2.0]), mx.nd.zeros((1,))
    for count in (1, 2):
        with autograd.record():
            plus, total = mx.nd.Custom(x, calls, op_type="counter_of_tests")
            loss = (plus * mx.nd.array([1.0, 10.0])).sum() + 3 * total
        loss.backward()
        assert calls.asscalar() == count
        assert total.asscalar() == 3
        np.testing.assert_allclose(x.grad.asnumpy(), [4, 13])


def test_in_a_graph():
    data = mx.sym.var("data")
    net = mx.sym.Custom(data=data * 2, name="softmax", op_type="softmax_of_tests", scale=2)
    assert net.list_arguments() == ["data", "softmax_label"]
    assert net.infer_shape(data=(4, 3))[0] == [(4, 3), (4,)]
    args = {"data": mx.nd.array([[1.0, 2.0]]), "softmax_label": mx.nd.array([0])}
    grads = {"data": mx.nd.zeros((1, 2))}
    executor = net.bind(mx.cpu(), args, args_grad=grads, grad_req={"data": "write", "softmax_label": "null"})
    (out,) = executor.forward(is_train=True)
    expected = np.exp([2.0, 4]) / np.exp([2.0, 4]).sum()
    np.testing.assert_allclose(out.asnumpy()[0], expected, rtol=1e-5)
    executor.backward()
    np.testing.assert_allclose(grads["data"].asnumpy()[0], 4 * (expected - [1, 0]), rtol=1e-4)


def test_files_keep_the_arguments():
    net = mx.sym.Custom(mx.sym.var("a"), mx.sym.var("b"), name="s", op_type="softmax_of_tests", scale=0.25)
    text = net.tojson()
    assert '"scale": "0.25"' in text
    assert '"op_type": "softmax_of_tests"' in text
    assert "open_attributes" not in text
    again = mx.sym.load_json(text)
    assert again.tojson() == text
    out = again.eval(a=mx.nd.array([[0.0, 0.0]]), b=mx.nd.array([1]))[0]
    np.testing.assert_allclose(out.asnumpy(), [[0.5, 0.5]])


class Squaring(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return F.Custom(x + 1, op_type="square_of_tests") * 2


@pytest.mark.parametrize("hybrid", [False, True])
def test_in_a_block(hybrid):
    net = Squaring()
    net.hybridize(hybrid)
    x = leaf([1.0, 2.0])
    with autograd.record():
        y = net(x)
    y.backward()
    np.testing.assert_allclose(y.asnumpy(), [8, 18])
    np.testing.assert_allclose(x.grad.asnumpy(), [8, 12])


class Failing(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        raise KeyError("no such thing")


@mx.operator.register("failing_of_tests")
class FailingProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Failing()


class WrongCount(SquareProp):
    def infer_shape(self, in_shape):
        return in_shape, [], []


mx.operator.register("wrong_count_of_tests")(WrongCount)


def test_errors():
    x = leaf([1.0])
    with pytest.raises(KeyError, match="no such thing"):
        mx.nd.Custom(x, op_type="failing_of_tests")
    with pytest.raises(mx.errors.ParamError, match=r"'no_such_operator'(.|\n)*register"):
        mx.nd.Custom(x, op_type="no_such_operator")
    with pytest.raises(mx.errors.ParamError, match="no label"):
        mx.nd.Custom(x, op_type="softmax_of_tests")
    with pytest.raises(mx.errors.ParamError, match="'rows'"):
        mx.nd.Custom(x, rows=x, op_type="square_of_tests")
    with pytest.raises(mx.errors.ShapeError, match="0 and 0"):
        mx.nd.Custom(x, op_type="wrong_count_of_tests")
    with pytest.raises(TypeError, match="CustomOpProp"):
        mx.operator.register("x")(int)
    with pytest.raises(mx.errors.ParamError, match="op_type"):
        mx.nd.Custom(x)


def test_overwriting_arrays_kept_for_backward_is_an_error():
    x = leaf([1.0])
    with autograd.record():
        y = x * 2
        z = mx.nd.Custom(y, op_type="square_of_tests")
    y[:] = 7
    with pytest.raises(mx.errors.GradientError, match="overwritten"):
        z.backward()


def test_the_gradient_of_its_gradient_is_refused():
    x = leaf([1.0])
    with autograd.record():
        y = mx.nd.Custom(x, op_type="square_of_tests")
        with pytest.raises(mx.errors.GradientError, match="Function"):
            autograd.grad(y, x, create_graph=True)


def test_a_file_that_names_an_unregistered_operator():
    text = (
        mx.sym.Custom(mx.sym.var("a"), name="s", op_type="square_of_tests").tojson().replace("square_of_tests", "gone")
    )
    with pytest.raises(mx.errors.ParamError, match="'gone'"):
        mx.sym.load_json(text).eval(a=mx.nd.ones((1,)))


def test_states_are_auxiliary_in_graphs(tmp_path):
    out = mx.sym.Custom(mx.sym.var("x"), op_type="counter_of_tests", name="count")[0]
    assert out.list_arguments() == ["x"]
    assert out.list_auxiliary_states() == ["count_calls"]
    assert out.list_inputs() == ["x", "count_calls"]
    assert out.infer_shape(x=(2, 3)) == ([(2, 3)], [(2, 3)], [(1,)])
    executor = mx.sym.load_json(out.tojson()).simple_bind(mx.cpu(), x=(2, 3))
    assert set(executor.grad_dict) == {"x"}
    for calls in (1, 2):
        executor.forward(is_train=True, x=mx.nd.ones((2, 3)))
        executor.backward(mx.nd.ones((2, 3)))
        assert executor.aux_dict["count_calls"].asscalar() == calls
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), np.ones((2, 3)))


def test_modules_keep_states_apart_from_parameters():
    hidden = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    out = mx.sym.Custom(hidden, op_type="counter_of_tests", name="count")[0]
    module = mx.mod.Module(mx.sym.MakeLoss(out), label_names=None)
    module.bind([("data", (4, 3))])
    module.init_params(mx.init.One(), aux_params={"count_calls": mx.nd.zeros(1)}, allow_missing=True)
    module.init_optimizer(optimizer_params={"learning_rate": 0.5})
    for _ in range(3):
        module.forward_backward(mx.io.DataBatch([mx.nd.ones((4, 3))]))
        module.update()
    arguments, states = module.get_params()
    assert set(arguments) == {"fc_weight", "fc_bias"}
    assert {name: array.asscalar() for name, array in states.items()} == {"count_calls": 3}
    assert (arguments["fc_weight"].asnumpy() < 1).all()


def test_states_of_a_block_are_exported_as_auxiliary(tmp_path):
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.calls = self.params.get("calls", shape=(1,), init="zeros", grad_req="null")

        def hybrid_forward(self, F, data, calls):
            return F.Custom(data, calls, op_type="counter_of_tests")

    net = Net()
    net.initialize()
    net.hybridize()
    outputs = net(mx.nd.ones((2, 2)))
    assert len(outputs) == 2
    symbol, params = net.export(str(tmp_path / "net"))
    assert [name.partition(":")[0] for name in mx.nd.load(params)] == ["aux"]
    loaded = gluon.SymbolBlock.imports(symbol, ["data"], params)
    np.testing.assert_array_equal(loaded(mx.nd.ones((2, 2)))[0].asnumpy(), outputs[0].asnumpy())
    assert net.calls.data().asscalar() == 1


def test_an_operator_without_inputs_runs_on_arrays_and_is_a_node_in_graphs():
    class Count(mx.operator.CustomOp):
        def __init__(self, length):
            super().__init__()
            self.length = length

        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], mx.nd.arange(self.length))

    @mx.operator.register("count_up")
    class CountProp(mx.operator.CustomOpProp):
        def __init__(self, length):
            super().__init__()
            self.length = int(length)

        def list_arguments(self):
            return []

        def infer_shape(self, in_shape):
            return [], [(self.length,)], []

        def infer_type(self, in_type):
            return [], [np.float32], []

        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Count(self.length)

    with mx.autograd.record():
        values = mx.nd.Custom(op_type="count_up", length=3)
    assert values.asnumpy().tolist() == [0, 1, 2]
    node = mx.sym.Custom(op_type="count_up", length=4)
    assert isinstance(node, mx.sym.Symbol)
    assert node.bind(mx.cpu(), {}).forward()[0].asnumpy().tolist() == [0, 1, 2, 3]
