"""Calls of graphs: changing shapes, aliases, inputs that are outputs, constants, threads."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from hybridnet.gluon import nn
from networks import NETWORKS, make
from rounding import assert_close
from threads import in_threads

STATIC = [{}, {"static_alloc": True}, {"static_alloc": True, "static_shape": True}]


class Function(gluon.HybridBlock):
    """A block that calls a function of F and arrays."""

    def __init__(self, function: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._function = function

    def hybrid_forward(self, F: Any, *args: Any) -> Any:
        return self._function(F, *args)


def hybrid(function: Any, **flags: Any) -> Function:
    block = Function(function)
    block.hybridize(**flags)
    return block


def array(*values: float) -> mx.nd.NDArray:
    return mx.nd.array(values)


@pytest.mark.parametrize("flags", STATIC, ids=str)
@pytest.mark.parametrize("name", ["norm_chain", "residual", "mlp"])
def test_shapes_change_between_calls(name: str, flags: dict[str, bool], rng: np.random.Generator) -> None:
    net, x = make(name, 7)
    inputs = [mx.nd.array(rng.standard_normal((n, *x.shape[1:]), dtype="float32")) for n in (1, 4, 2, 4, 1, 7)]
    expected = [net(i).asnumpy() for i in inputs]
    net.hybridize(**flags)
    found = [net(i).asnumpy() for i in inputs]
    for f, e in zip(found, expected, strict=True):
        assert_close(f, e)
    for i, f in zip(inputs, found, strict=True):  # after plans for other shapes were made and used
        np.testing.assert_array_equal(net(i).asnumpy(), f)


@pytest.mark.parametrize("flags", STATIC, ids=str)
def test_results_of_earlier_calls_keep_their_values(flags: dict[str, bool]) -> None:
    block = hybrid(lambda F, x: F.tanh(x) * 2 + x, **flags)
    results = [block(array(float(i), i + 0.5)) for i in range(20)]
    for i, result in enumerate(results):
        x = np.array([i, i + 0.5], dtype="float32")
        np.testing.assert_allclose(result.asnumpy(), np.tanh(x) * 2 + x, rtol=1e-5)


@pytest.mark.parametrize("flags", STATIC, ids=str)
def test_one_array_given_twice(flags: dict[str, bool]) -> None:
    block = hybrid(lambda F, x, y: F.exp(x) * y - y, **flags)
    x, y = array(1, 2), array(3, 4)
    block(x, y)
    np.testing.assert_allclose(block(x, x).asnumpy(), np.exp([1, 2]) * [1, 2] - [1, 2], rtol=1e-5)
    x.attach_grad()
    with autograd.record():
        z = block(x, x)
    z.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), np.exp([1, 2]) * [1, 2] + np.exp([1, 2]) - 1, rtol=1e-5)


@pytest.mark.parametrize("flags", STATIC, ids=str)
def test_an_output_that_is_an_input(flags: dict[str, bool]) -> None:
    block = hybrid(lambda F, x, y: (x, x + y, y), **flags)
    x, y = array(1, 2), array(3, 4)
    first, total, last = block(x, y)
    np.testing.assert_array_equal(first.asnumpy(), [1, 2])
    np.testing.assert_array_equal(total.asnumpy(), [4, 6])
    np.testing.assert_array_equal(last.asnumpy(), [3, 4])
    first[:] = 100  # the caller owns the result: writing to it changes no input
    np.testing.assert_array_equal(x.asnumpy(), [1, 2])


@pytest.mark.parametrize("flags", STATIC, ids=str)
def test_one_value_as_two_outputs(flags: dict[str, bool]) -> None:
    def twice(F: Any, x: Any) -> tuple[Any, Any, Any]:
        y = F.tanh(x)
        return y, y, F.reshape(y, shape=(2, 1))

    block = hybrid(twice, **flags)
    x = array(0.5, -1)
    x.attach_grad()
    with autograd.record():
        a, b, c = block(x)
        loss = (a + 2 * b).sum() + (c * 3).sum()
    loss.backward()
    assert c.shape == (2, 1)
    np.testing.assert_allclose(x.grad.asnumpy(), 6 * (1 - np.tanh([0.5, -1]) ** 2), rtol=1e-5)


def test_constants_in_the_graph() -> None:
    block = hybrid(lambda F, x: x * (F.ones(shape=(2,)) * 3) + F.arange(0, 2))
    np.testing.assert_array_equal(block(array(1, 2)).asnumpy(), [3, 7])
    np.testing.assert_array_equal(block(array(5, 6)).asnumpy(), [15, 19])


def test_an_output_without_inputs() -> None:
    block = hybrid(lambda F, x: (x + 1, F.zeros(shape=(3,)) + 2))
    _, constant = block(array(1))
    np.testing.assert_array_equal(constant.asnumpy(), [2, 2, 2])
    constant[:] = 9
    np.testing.assert_array_equal(block(array(1))[1].asnumpy(), [2, 2, 2])


@pytest.mark.filterwarnings("ignore:The 1-th input")
def test_inputs_that_nothing_reads() -> None:
    block = hybrid(lambda F, x, unused: F.square(x))
    x, unused = array(1, 2), array(7)
    x.attach_grad()
    unused.attach_grad()
    with autograd.record():
        y = block(x, unused)
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [2, 4])
    np.testing.assert_array_equal(unused.grad.asnumpy(), [0])


def test_empty_arrays() -> None:
    block = hybrid(lambda F, x: F.tanh(x) * 2 + 1)
    with mx.util.np_shape(True):
        assert block(mx.nd.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("name", NETWORKS)
def test_batches_without_images(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    net, x = make(name, 14)
    net.hybridize(static_alloc=True)
    with mx.util.np_shape(True):
        empty = mx.nd.zeros((0, *x.shape[1:]))
        empty.attach_grad()
        with autograd.record(train_mode=False):
            y = net(empty)
        y.backward()
        assert y.shape == (0, *net(x).shape[1:])
        assert empty.grad.shape == empty.shape
    assert capfd.readouterr().err == ""  # no rewrite reports a problem


def test_updates_in_place_between_calls_are_seen() -> None:
    net, x = make("norm_chain", 8)
    net.hybridize(static_alloc=True, static_shape=True)
    net(x)
    for factor in (2.0, 0.5, -1.0):
        for param in net.collect_params().values():
            if not param.name.endswith("running_var"):
                param.data()[:] = param.data() * factor
        compiled = net(x).asnumpy()
        net.hybridize(False)
        expected = net(x).asnumpy()
        net.hybridize(static_alloc=True, static_shape=True)
        np.testing.assert_allclose(compiled, expected, rtol=1e-4, atol=1e-5)


def test_folded_weights_follow_training() -> None:
    net, x = make("norm_chain", 9)
    net.hybridize(static_alloc=True)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for _ in range(3):
        before = net(x).asnumpy()
        with autograd.record():
            loss = (net(x) ** 2).mean()
        loss.backward()
        trainer.step(1)
        after = net(x).asnumpy()
        assert np.abs(after - before).max() > 1e-4
        net.hybridize(False)
        np.testing.assert_allclose(after, net(x).asnumpy(), rtol=1e-4, atol=1e-5)
        net.hybridize(static_alloc=True)


def test_states_change_in_training_only() -> None:
    net, x = make("residual", 10)
    net.hybridize()
    states = {k: p for k, p in net.collect_params().items() if "running" in k}
    before = {k: p.data().asnumpy() for k, p in states.items()}
    net(x)
    with autograd.record(train_mode=False):
        net(x)
    for k, p in states.items():
        np.testing.assert_array_equal(p.data().asnumpy(), before[k])
    with autograd.train_mode():
        net(x)
    for k, p in states.items():
        assert np.abs(p.data().asnumpy() - before[k]).max() > 0


def test_a_layer_used_twice_updates_its_state_twice() -> None:
    class Twice(gluon.HybridBlock):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.norm = nn.BatchNorm(momentum=0.5)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return self.norm(self.norm(x) + 3)

    x = mx.nd.array(np.random.default_rng(0).standard_normal((4, 3), dtype="float32"))
    means = []
    for flags in ({"active": False}, {"active": True}):
        block = Twice()
        block.initialize()
        block.hybridize(**flags)
        with autograd.train_mode():
            block(x)
            block(x)
        means.append(block.norm.running_mean.data().asnumpy())
    np.testing.assert_allclose(means[1], means[0], rtol=1e-5)


@pytest.mark.parametrize("flags", STATIC, ids=str)
@pytest.mark.parametrize("name", NETWORKS)
def test_two_threads_call_one_network(name: str, flags: dict[str, bool], rng: np.random.Generator) -> None:
    net, x = make(name, 11)
    inputs = [mx.nd.array(rng.standard_normal(x.shape, dtype="float32")) for _ in range(2)]
    expected = [net(i).asnumpy() for i in inputs]
    scale = 2e-5 * max(1.0, float(np.abs(expected).max()))
    net.hybridize(**flags)
    net(x)

    def work(k: int) -> None:
        for _ in range(25):
            np.testing.assert_allclose(net(inputs[k]).asnumpy(), expected[k], rtol=1e-4, atol=scale)

    in_threads(2, work)


def test_threads_train_copies_of_one_network() -> None:
    """Recording is per thread; plans are shared."""
    net, x = make("norm_chain", 12)
    net.hybridize()
    with autograd.record():
        net(x)

    def work(seed: int) -> None:
        data = mx.nd.array(np.random.default_rng(seed).standard_normal(x.shape, dtype="float32"))
        data.attach_grad()
        first = None
        for _ in range(10):
            with autograd.record(train_mode=False):
                y = net(data)
            grad = autograd.grad(y, [data])[0].asnumpy()
            first = grad if first is None else first
            np.testing.assert_allclose(grad, first, rtol=1e-5, atol=1e-6)

    in_threads(2, work)


def test_backward_twice_and_overwritten_inputs() -> None:
    block = hybrid(lambda F, x: F.exp(x) * x)
    x = array(1, 2)
    x.attach_grad()
    with autograd.record():
        y = block(x)
    y.backward(retain_graph=True)
    first = x.grad.asnumpy()
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), first)
    with pytest.raises(mx.MXNetError):
        y.backward()
    with autograd.record():
        y = block(x)
    x[:] = 5
    with pytest.raises(mx.MXNetError, match="overwritten"):
        y.backward()


def test_image_layers_in_a_loop_body(rng: np.random.Generator) -> None:
    class Loop(gluon.HybridBlock):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            with self.name_scope():
                self.first = nn.Conv2D(6, 3, padding=1, in_channels=8, activation="relu")
                self.second = nn.Conv2D(4, 3, padding=1, in_channels=10)

        def hybrid_forward(self, F: Any, steps: Any, state: Any) -> Any:
            def body(x: Any, s: Any) -> Any:
                both = F.concat(x, s, dim=1)
                y = self.second(F.concat(self.first(both), s, dim=1))
                return F.mean(y, axis=(2, 3)), y

            return F.contrib.foreach(body, steps, state)

    block = Loop()
    block.initialize(mx.init.Xavier())
    steps = mx.nd.array(rng.standard_normal((3, 2, 4, 9, 7), dtype="float32"))
    state = mx.nd.array(rng.standard_normal((2, 4, 9, 7), dtype="float32"))
    results = []
    for active in (False, True):
        block.hybridize(active)
        state.attach_grad()
        with autograd.record():
            means, last = block(steps, state)
            loss = means.sum() + (last * last).sum()
        loss.backward()
        results.append([means.asnumpy(), last.asnumpy(), state.grad.asnumpy()])
    for actual, expected in zip(results[1], results[0], strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_pass_report() -> None:
    net, x = make("norm_chain", 13)
    with pytest.raises(RuntimeError, match="has no graph yet"):
        net.pass_report()
    net.hybridize(static_alloc=True)
    net(x)
    report = net.pass_report()
    assert "forward: " in report
    fired = {line.split()[0]: int(line.split()[2]) for line in report.splitlines() if " fired " in line}
    assert fired["conv_bn_fold"] == 2
    assert fired["batch_norm_relu"] == 2


def test_weights_in_memory_of_others_are_read_in_every_call(rng: np.random.Generator) -> None:
    def layer(F: Any, x: Any, weight: Any, gamma: Any, beta: Any, mean: Any, var: Any) -> Any:
        y = F.Convolution(x, weight, kernel=(3, 3), num_filter=8, no_bias=True)
        return F.BatchNorm(y, gamma, beta, mean, var, fix_gamma=False)

    theirs = rng.standard_normal((8, 4, 3, 3), dtype="float32")
    vectors = [mx.nd.array(rng.uniform(0.5, 1, 8).astype("float32")) for _ in range(4)]
    x = mx.nd.array(rng.standard_normal((2, 4, 6, 6), dtype="float32"))
    weight = mx.nd.from_dlpack(theirs)
    compiled, plain = hybrid(layer, static_alloc=True), Function(layer)
    for factor in (1, 2, -1):
        theirs *= factor
        result = compiled(x, weight, *vectors).asnumpy()
        np.testing.assert_allclose(result, plain(x, weight, *vectors).asnumpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "function",
    [
        lambda F, x: (x + 1, x + 1),
        lambda F, x: (lambda y: (y, y * 1))(x + 1),
        lambda F, x: (lambda y: (y, F.transpose(F.transpose(y))))(x + 1),
        lambda F, x: (F.zeros((2,)) + 1, F.zeros((2,)) + 1),
        lambda F, x: (F.identity(x), x * 1),
    ],
    ids=["merged", "times one", "there and back", "constants", "the input"],
)
@pytest.mark.parametrize("record", [False, True])
def test_writing_to_one_result_leaves_the_others_alone(function: Any, record: bool) -> None:
    block, x = hybrid(function), array(1, 2)
    x.attach_grad()
    with autograd.record() if record else autograd.pause():
        one, other = block(x)
    before = other.asnumpy()
    one.detach()[:] = 10
    np.testing.assert_array_equal(other.asnumpy(), before)
    np.testing.assert_array_equal(x.asnumpy(), [1, 2])


def test_a_result_returned_twice_is_two_arrays_as_in_mxnet() -> None:
    one, other = hybrid(lambda F, x: (lambda y: (y, y))(x + 1))(array(1, 2))
    one[:] = 10
    np.testing.assert_array_equal(other.asnumpy(), [2, 3])
