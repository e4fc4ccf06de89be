"""autograd.detect_anomaly names the operator that made the first NaN or infinity."""

from __future__ import annotations

import inspect
import math
import re

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon, nd
from hybridnet.errors import AnomalyError
from hybridnet.gluon import nn


def line_of(function, text: str) -> str:
    """ "file:line" of the line of function that contains text."""
    lines, first = inspect.getsourcelines(function)
    number = next(i for i, line in enumerate(lines) if text in line)
    return f"{inspect.getsourcefile(function)}:{first + number}"


def caught(run) -> AnomalyError:
    with pytest.raises(AnomalyError) as found, autograd.detect_anomaly():
        run()
    return found.value


def gradient_of(function, *values):
    arrays = [nd.array(value) for value in values]
    for array in arrays:
        array.attach_grad()
    with autograd.record():
        out = function(*arrays)
    out.backward()
    return [array.grad.asnumpy() for array in arrays]


# -------------------------------------------------------------------------------------------------------------- forward
def test_the_error_names_operator_line_count_place_shape_and_cause():
    x = nd.array([[1, 0, 2], [-1, 4, 5]])

    def run():
        y = x + 0
        return nd.log(y)  # here

    error = caught(run)
    assert isinstance(error, ValueError)
    assert (error.op, error.input, error.block, error.node) == ("log", None, None, None)
    assert error.where == line_of(run, "# here")
    assert error.given == "1 NaN and 1 infinity among 6 values, the first at [1, 0] of shape (2, 3)"
    assert "'data' is float32(2, 3) from -1 to 5; 'data' is -1 there" in str(error)
    assert "Fix: log(0) is -infinity" in str(error)


CASES = [
    (lambda x: nd.array([1.0]) / (x - x), "broadcast_div", "division by 0"),
    (lambda x: x / 0, "_div_scalar", "division by 0"),
    (lambda x: 1 / (x - x), "_rdiv_scalar", "division by 0"),
    (lambda x: (x * 100).exp(), "exp", "exp overflows"),
    (lambda x: nd.sqrt(-x), "sqrt", "root of a negative"),
    (lambda x: (-x) ** 0.5, "_power_scalar", "negative number to the power"),
    (lambda x: (x * 1e5).astype("float16"), "Cast", "65504"),
    (lambda x: nd.arccos(x + 1), "arccos", "outside of the function's range"),
    (lambda x: nd.dot(x.reshape((1, 1)) * 1e30, x.reshape((1, 1)) * 1e30), "dot", "products overflow"),
    (lambda x: nd.linalg.sumlogdiag(nd.zeros((2, 2)) * x), "sumlogdiag", "range of the operator's inputs"),
    (lambda x: nd.power(-x, 0.5), "power", "negative number to the power"),
    (lambda x: mx.np.log(mx.np.zeros((2,))), "log", "log(0)"),
    (lambda x: mx.np.ones((2,)) / mx.np.zeros((2,)), "true_divide", "division by 0"),
    (lambda x: mx.np.divide(mx.np.ones((2,)), mx.np.zeros((2,))), "divide", "division by 0"),
    (lambda x: mx.np.linalg.norm(mx.np.ones((2,)) * 1e38) * 1e30, "multiply", "larger than the dtype can hold"),
]


@pytest.mark.parametrize(("function", "op", "fix"), CASES, ids=[f"{i}-{case[1]}" for i, case in enumerate(CASES)])
def test_operators_of_every_form_are_named_with_their_usual_causes(function, op, fix):
    x = nd.array([1.0])
    error = caught(lambda: function(x))
    assert op in error.op
    assert fix in error.fix


def test_writes_in_place_are_checked_and_their_old_values_count_as_inputs():
    x = nd.array([1.0, 2.0])

    def divide():
        nonlocal x
        x /= nd.array([1.0, 0.0])

    assert "div" in caught(divide).op
    y = nd.ones((2,))
    assert caught(lambda: nd.log(nd.zeros((2,)), out=y)).op == "log"


def test_nan_that_was_there_before_is_reported_as_an_input():
    data = nd.array([1.0, math.nan])
    error = caught(lambda: data * 2)
    assert error.input == "data" and "no operator inside of detect_anomaly made it" in error.because
    with autograd.detect_anomaly():
        kept = nd.where(data == data, data, nd.zeros((2,)))  # removes it
    assert kept.asnumpy().tolist() == [1, 0]


def test_infinities_that_a_program_uses_as_masks_are_no_anomaly():
    mask = nd.array([0.0, -math.inf])
    with autograd.detect_anomaly():
        weights = nd.softmax(nd.ones((2,)) + mask)
    assert weights.asnumpy().tolist() == [1, 0]
    error = caught(lambda: mask - mask)
    assert error.given.startswith("1 NaN") and "no input is NaN" in error.because


def test_nan_and_inf_select_what_counts():
    zero = nd.zeros((1,))
    with autograd.detect_anomaly(inf=False):
        nd.log(zero)
        with pytest.raises(AnomalyError, match="mul"):
            zero * nd.log(zero)
    with autograd.detect_anomaly(nan=False):
        nd.sqrt(zero - 1)
        with pytest.raises(AnomalyError, match="without infinities"):
            nd.log(zero)


def test_scopes_switch_and_decorator_begin_and_end():
    zero = nd.zeros((1,))
    nd.log(zero)

    @autograd.detect_anomaly()
    def decorated():
        return nd.log(zero)

    for _ in range(2):
        with pytest.raises(AnomalyError):
            decorated()
    nd.log(zero)
    autograd.set_detect_anomaly(True)
    try:
        with pytest.raises(AnomalyError):
            nd.log(zero)
        with autograd.detect_anomaly(False, False):
            nd.log(zero)
        with pytest.raises(AnomalyError):
            1 / zero
    finally:
        autograd.set_detect_anomaly(False)
    assert math.isinf((1 / zero).asscalar())


def test_nothing_is_left_behind_after_a_scope():
    before = (nd.NDArray.__add__, type(nd), gluon.HybridBlock.__call__, gluon.Block.__call__, nd.NDArray.exp)
    own = set(vars(nd.NDArray))
    with autograd.detect_anomaly():
        assert type(nd) is not before[1]
        x = nd.ones((2,)) + 1
    after = (nd.NDArray.__add__, type(nd), gluon.HybridBlock.__call__, gluon.Block.__call__, nd.NDArray.exp)
    assert after == before
    assert set(vars(nd.NDArray)) == own
    assert (x + x).asnumpy().tolist() == [4, 4]
    assert isinstance(nd.exp, type(nd.log))


def test_other_threads_are_not_observed():
    import threading

    results = []
    with autograd.detect_anomaly():
        thread = threading.Thread(target=lambda: results.append(nd.log(nd.zeros((1,))).asscalar()))
        thread.start()
        thread.join()
    assert results == [-math.inf]


# ------------------------------------------------------------------------------------------------------------- backward
def test_a_gradient_is_blamed_on_the_operator_that_made_it():
    def forward(x):
        root = nd.sqrt(x)  # root
        return (root * 3 + 1).sum()

    error = caught(lambda: gradient_of(forward, [4.0, 0.0]))
    assert (error.op, error.input) == ("sqrt", "data")
    assert error.where == line_of(forward, "# root")
    assert "gradient of input 'data'" in str(error)
    assert error.given == "1 infinity among 2 values, the first at [1] of shape (2,)"
    assert "'data' is 0 there" in error.because
    assert "infinite at 0" in error.fix


def test_the_where_trap_is_found():
    def forward(x):
        return nd.where(x > 0, 1 / x, nd.zeros_like(x)).sum()

    error = caught(lambda: gradient_of(forward, [1.0, 0.0]))
    assert error.op == "_rdiv_scalar"  # forward: 1 / 0

    def masked(x):
        return nd.where(x > 0, x.sqrt(), nd.zeros_like(x)).sum()

    error = caught(lambda: gradient_of(masked, [1.0, 0.0]))
    assert error.op == "sqrt" and "gradient" in str(error)


def test_gradients_are_the_same_inside_of_a_scope(rng):
    def forward(x, w):
        hidden = nd.tanh(nd.dot(x, w)) * x.sum(axis=1, keepdims=True)
        first, second = nd.split(nd.concat(hidden, hidden * 2, dim=1), 2, axis=1)
        return (nd.stack(first, second) ** 2).mean() + x[1:].sum() + x.reshape((-1,)).max()

    values = rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
    expected = gradient_of(forward, *values)
    with autograd.detect_anomaly():
        got = gradient_of(forward, *values)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_gradients_of_gradients_pass(rng):
    x = nd.array([0.5, 2.0])
    x.attach_grad()

    def second():
        with autograd.record():
            (first,) = autograd.grad((x**3).sum(), [x], create_graph=True)
        first.backward()
        return x.grad.asnumpy()

    with autograd.detect_anomaly():
        got = second()
    np.testing.assert_allclose(got, 6 * x.asnumpy(), rtol=1e-6)


def test_a_gradient_from_outside_is_not_blamed_on_an_operator():
    x = nd.ones((2,))
    x.attach_grad()

    def run():
        with autograd.record():
            y = x * 2
        y.backward(nd.array([1.0, math.nan]))

    error = caught(run)
    assert "gradient of the output" in str(error)
    assert "gradient given to backward()" in error.because


def test_a_function_with_its_own_backward_is_not_mistaken_for_an_operator():
    class Bad(autograd.Function):
        def forward(self, x):
            return x * 2

        def backward(self, dy):
            return nd.array([math.nan, 1.0])

    error = caught(lambda: gradient_of(lambda x: Bad()(x * 3).sum(), [1.0, 2.0]))
    assert error.op == "_mul_scalar" and "autograd.Function" in error.because


def test_float16_overflow_of_a_gradient_names_the_dtype():
    x = nd.ones((2,), dtype="float16")
    x.attach_grad()

    def run():
        with autograd.record():
            y = (x * 300) * 300 * 1e-3
        y.backward(nd.array([1e4, 1.0], dtype="float16"))

    assert "float16" in caught(run).fix


# --------------------------------------------------------------------------------------------------------------- blocks
class Unstable(gluon.HybridBlock):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.body = nn.HybridSequential()
        self.body.add(nn.Dense(3), Logarithm())

    def forward(self, x):
        return self.body(x)


class Logarithm(gluon.HybridBlock):
    def forward(self, x):
        return (x * 0).log()  # bad


def built(hybridize):
    net = Unstable(prefix="net_")
    net.initialize()
    if hybridize:
        net.hybridize()
    return net


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("called_before", [False, True])
def test_the_path_of_the_block_is_named(hybridize, called_before):
    net, x = built(hybridize), nd.ones((2, 4))
    if called_before:
        net(x)
    error = caught(lambda: net(x))
    assert error.op == "log"
    assert error.block == f"{net.name}.body.1"
    assert error.where == line_of(Logarithm.forward, "# bad")
    assert error.block in str(error)
    if hybridize:
        assert re.fullmatch(r".*log\d+", error.node)
        assert error.node in net.graph().text()
    assert net._active == hybridize


def test_a_hybridized_block_keeps_its_graph():
    net, x = built(True), nd.ones((2, 4))
    net(x)
    graph = net._last_graph
    caught(lambda: net(x))
    net(x)
    assert net._last_graph is graph


class Roots(gluon.HybridBlock):
    """sqrt in the body of a loop and in a branch."""

    def __init__(self, kind, **kwargs):
        super().__init__(**kwargs)
        self.kind = kind

    def hybrid_forward(self, F, x):
        if self.kind == "foreach":
            return F.contrib.foreach(
                lambda row, state: (F.sqrt(row) + state, state),  # foreach
                x,
                F.zeros((2,)),
            )[0]
        if self.kind == "while_loop":
            return F.contrib.while_loop(
                lambda i, s: i < 2,
                lambda i, s: (s, [i + 1, F.sqrt(s)]),  # while_loop
                [F.zeros((1,)), x[0]],
                max_iterations=3,
            )[1][1]
        return F.contrib.cond(
            x.sum() > 0,
            lambda: F.sqrt(x),  # cond
            lambda: x,
        )


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("kind", ["foreach", "while_loop", "cond"])
@pytest.mark.parametrize("backward", [False, True])
def test_bodies_of_loops_and_branches_are_observed(hybridize, kind, backward):
    net = Roots(kind, prefix="net_")
    net.initialize()
    if hybridize:
        net.hybridize()
    x = nd.array([[0.0, 2.0], [1.0, 3.0]] if backward else [[-1.0, 2.0], [1.0, 3.0]])
    x.attach_grad()

    def run():
        with autograd.record():
            out = net(x).sum()
        out.backward()

    error = caught(run)
    assert error.op == "sqrt"
    assert error.where == line_of(Roots.hybrid_forward, f"# {kind}")
    assert error.block == "net"
    assert ("gradient" in str(error)) == backward
    assert (error.node or "").startswith("net_sqrt" if hybridize else "")


class Stored(gluon.HybridBlock):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.root = nd.sqrt

    def forward(self, x):
        return self.root(x)


@pytest.mark.parametrize("make", [lambda: nn.HybridLambda("sqrt"), lambda: nn.Lambda("sqrt"), Stored])
def test_operators_that_blocks_keep_are_observed(make):
    net = make()
    before = dict(vars(net))
    assert caught(lambda: net(-nd.ones((2,)))).op == "sqrt"
    assert vars(net) == before


sqrt = nd.sqrt


def test_the_block_is_named_if_its_operator_is_not_observed():
    class Imported(gluon.HybridBlock):
        def forward(self, x):
            return sqrt(x) if isinstance(x, nd.NDArray) else x

    net = nn.HybridSequential(prefix="net_")
    net.add(Imported())
    error = caught(lambda: net(-nd.ones((2,))))
    assert (error.op, error.block) == ("Imported", "net.0")
    assert "imported before" in error.fix


class Halving(gluon.HybridBlock):
    def forward(self, x):
        while x.sum() > 1:
            x = (x - 1).log()  # bad
        return x


def test_loops_of_plain_python_are_observed():
    net = Halving()
    net.hybridize()
    assert caught(lambda: net(nd.array([2.0, 1.0]))).where == line_of(Halving.forward, "# bad")


def test_training_states_are_updated_once(rng):
    def states(detect):
        net = nn.HybridSequential()
        net.add(nn.BatchNorm(in_channels=3))
        net.initialize()
        net.hybridize()
        x = nd.array(np.random.RandomState(1).rand(4, 3))
        with autograd.detect_anomaly(detect, detect), autograd.record():
            net(x)
        return net[0].running_mean.data().asnumpy()

    np.testing.assert_allclose(states(True), states(False), rtol=1e-6)


def test_a_training_step_works_inside_of_a_scope(rng):
    def weights(detect):
        mx.random.seed(3)
        net = nn.HybridSequential()
        net.add(nn.Conv2D(4, 3, in_channels=2), nn.BatchNorm(), nn.Activation("relu"), nn.Flatten(), nn.Dense(3))
        net.initialize(mx.init.Xavier())
        net.hybridize()
        trainer = gluon.Trainer(net.collect_params(), "adam")
        loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
        x, y = nd.array(np.random.RandomState(2).rand(4, 2, 6, 6)), nd.array([0, 1, 2, 1])
        for _ in range(2):
            with autograd.detect_anomaly(detect, detect):
                with autograd.record():
                    loss = loss_fn(net(x), y)
                loss.backward()
                trainer.step(4)
        return net[4].weight.data().asnumpy()

    np.testing.assert_allclose(weights(True), weights(False), rtol=1e-4, atol=1e-6)


# --------------------------------------------------------------------------------------------------------------- graphs
def graph():
    x = mx.sym.var("data")
    return mx.sym.sqrt(mx.sym.FullyConnected(x, num_hidden=2, no_bias=True, name="fc"), name="root") * 2


def test_a_loaded_graph_names_its_node(tmp_path):
    weight = nd.array([[1.0, 0.0], [0.0, -1.0]])
    net = gluon.SymbolBlock(graph(), [mx.sym.var("data")])
    net.initialize()
    net.collect_params()["fc_weight"].set_data(weight)
    assert caught(lambda: net(nd.ones((1, 2)))).node == "root"
    x = nd.array([[1.0, 0.0]])
    x.attach_grad()

    def run():
        with autograd.record():
            out = net(x)
        out.backward()

    error = caught(run)
    assert (error.op, error.node) == ("sqrt", "root") and "gradient" in str(error)


def test_an_executor_names_its_node_forward_and_backward():
    executor = graph().simple_bind(mx.cpu(), data=(1, 2))
    executor.arg_dict["fc_weight"][:] = nd.array([[1.0, 0.0], [0.0, -1.0]])
    executor.arg_dict["data"][:] = 1
    assert caught(lambda: executor.forward(is_train=True)).node == "root"
    executor.arg_dict["data"][:] = nd.array([[1.0, 0.0]])

    def run():
        executor.forward(is_train=True)
        executor.backward(nd.ones((1, 2)))

    error = caught(run)
    assert error.node == "root" and "gradient of input 'data'" in str(error)
    executor.arg_dict["data"][:] = nd.array([[1.0, -1.0]])
    with autograd.detect_anomaly():
        run()
    np.testing.assert_allclose(executor.grad_dict["data"].asnumpy(), [[1, -1]])


def test_a_function_is_checked_as_a_whole():
    x = mx.sym.var("x")
    logarithm = mx.function([x], mx.sym.log(x))
    assert caught(lambda: logarithm(nd.zeros((2,)))).op == "mx.function"


def test_an_estimator_runs_the_operators_one_by_one_in_the_scope():
    from hybridnet.gluon.contrib.estimator import Estimator

    net = gluon.nn.Dense(2)
    net.initialize()
    net.hybridize()
    values = np.ones((4, 2), "float32")
    values[3, 0] = np.nan
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(values, np.zeros(4)), 2)
    estimator = Estimator(net, gluon.loss.SoftmaxCrossEntropyLoss())
    error = caught(lambda: estimator.fit(loader, epochs=1))
    assert error.op == "FullyConnected" and error.input == "data"
