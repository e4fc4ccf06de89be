"""HYBRIDNET_CUDA_CHECK=1: each kernel is compared with the CPU's, in every mode, and a wrong one is named."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import hybridnet as mx
import numpy as np
import operator_sweep
import pytest
import stand_in
from hybridnet import autograd, gluon
from hybridnet.errors import EngineError
from hybridnet.gluon import nn
from sklearn.datasets import load_digits

GPU = mx.gpu(0)
RNG = np.random.default_rng(4)
IMAGES = RNG.random((4, 1, 8, 8)).astype("float32")
MOST_LAUNCHES = 400
FOUND = re.compile(
    r"operator '(\w+)'.*HYBRIDNET_CUDA_CHECK: element \d+ of output \d+ .* is \S+ on gpu\(0\) and \S+ on"
)


@pytest.fixture(autouse=True)
def is_on() -> Iterator[None]:
    assert os.environ["HYBRIDNET_CUDA_CHECK"] == "1"  # test_on_stand_in.py sets it
    yield
    stand_in.corrupt("")


def failure_of(step: Callable[[], Any]) -> str:
    """The text of the error of a step; afterwards no error waits in an array."""
    text = ""
    for attempt in range(20):
        try:
            if attempt == 0:
                step()
            mx.nd.waitall()
            return text
        except EngineError as error:
            text = text or str(error)
    raise AssertionError(f"errors without end: {text}")


def errors_by_launch(step: Callable[[], Any]) -> list[tuple[str, str]]:
    """Runs the step once for each of its launches, whose result is wrong then: the kernel and the error."""
    assert failure_of(step) == ""
    found: list[tuple[str, str]] = []
    while len(found) < MOST_LAUNCHES:
        stand_in.corrupt(f"any:{len(found) + 1}")
        text = failure_of(step)
        kernel = stand_in.corrupted()
        stand_in.corrupt("")
        if not kernel:
            return found
        found.append((kernel, text))
    raise AssertionError("the step never came to its end")


def test_a_wrong_element_is_named_with_operator_place_values_and_line() -> None:
    x = mx.nd.array(np.arange(6).reshape(2, 3), ctx=GPU)
    x.wait_to_read()
    stand_in.corrupt("any:1")
    with pytest.raises(EngineError) as caught:
        (x + 1).wait_to_read()
    text = str(caught.value)
    assert "operator '_plus_scalar'" in text
    assert re.search(r"element 0 of output 0 \('out', float32\(2, 3\)\) is \S+ on gpu\(0\) and 1 on the CPU", text)
    assert "promise the same bits" in text
    assert "check_compared.py:" in text


def net_with_state(hybridize: bool) -> nn.HybridSequential:
    mx.random.seed(1)
    net = nn.HybridSequential()
    net.add(nn.Conv2D(3, 3, in_channels=1), nn.BatchNorm(in_channels=3), nn.Activation("relu"), nn.MaxPool2D())
    net.add(nn.Dense(5, in_units=27, activation="tanh"), nn.Dropout(0.3), nn.Dense(3, in_units=5))
    net.initialize(mx.init.Xavier(), ctx=GPU)
    net.hybridize(hybridize)
    return net


@pytest.mark.parametrize("mode", ["imperative", "hybridized"])
def test_each_wrong_kernel_of_a_training_step_is_found(mode: str) -> None:
    net = net_with_state(mode == "hybridized")
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01, "momentum": 0.9})
    label = mx.nd.array([0, 1, 2, 0], ctx=GPU)
    parameters = {name: value.data().asnumpy() for name, value in net.collect_params().items()}
    number = 0

    def step() -> None:
        nonlocal number
        number += 1  # other values each time, so that each launch changes what it writes
        data = mx.nd.array(IMAGES + 0.01 * number, ctx=GPU)
        with autograd.record():
            loss = loss_of(net(data), label)
        loss.backward()
        trainer.step(4)
        loss.wait_to_read()

    def from_same_parameters() -> None:
        for name, value in net.collect_params().items():
            value.set_data(mx.nd.array(parameters[name], ctx=mx.cpu()))
        step()

    found = errors_by_launch(from_same_parameters)
    assert len(found) >= 40
    unseen = {kernel for kernel, text in found if not FOUND.search(text) and not kernel.startswith("nothing of")}
    # A count of wrong indices is no result, and the first 4 bytes of sums in float64 are the lower half of a fraction.
    assert unseen <= {"read_indices", "rows"}
    assert stand_in.counters()["graph_launches"] == 0
    if mode == "hybridized":
        assert any("node '" in text for _, text in found)


@pytest.mark.parametrize("mode", ["imperative", "hybridized"])
def test_digits_train_without_a_difference(mode: str) -> None:
    images, labels = load_digits(return_X_y=True)
    net = nn.HybridSequential()
    net.add(nn.Dense(32, activation="relu"), nn.BatchNorm(), nn.Dropout(0.1), nn.Dense(10))
    mx.random.seed(1)
    net.initialize(mx.init.Xavier(), ctx=GPU)
    net.hybridize(mode == "hybridized")
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    losses = []
    for begin in range(0, 1280, 64):
        data = mx.nd.array(images[begin : begin + 64] / 16, dtype="float32", ctx=GPU)
        with autograd.record():
            loss = loss_of(net(data), mx.nd.array(labels[begin : begin + 64], ctx=GPU)).mean()
        loss.backward()
        trainer.step(1)
        losses.append(float(loss.asscalar()))
    assert losses[-1] < losses[0] / 2


def test_writes_in_place_draws_and_loops_agree() -> None:
    x = mx.nd.array(RNG.normal(size=(8, 6)), ctx=GPU)
    x += 1
    x[2:4] = x[0:2] * 2
    mx.nd.relu(x, out=x)
    for draw in (mx.nd.random.uniform, mx.nd.random.normal, mx.nd.random.exponential):
        draw(shape=(50,), ctx=GPU).wait_to_read()
    mx.nd.random.gamma(alpha=2.0, beta=0.5, shape=(50,), ctx=GPU).wait_to_read()
    mx.nd.random.poisson(3.0, shape=(50,), ctx=GPU).wait_to_read()
    cell = gluon.rnn.LSTMCell(4, input_size=6)
    cell.initialize(ctx=GPU)
    cell.hybridize()
    outputs, _ = cell.unroll(8, x.reshape((1, 8, 6)), layout="NTC")
    assert np.isfinite(outputs.asnumpy() if isinstance(outputs, mx.nd.NDArray) else outputs[0].asnumpy()).all()


def test_sums_of_many_equal_terms_agree() -> None:
    """A library may sum the bias gradient of a convolution in float32 on the CPU; the GPU sums it in float64."""
    weight = mx.nd.array(RNG.normal(size=(64, 64, 3, 3)), dtype="float32", ctx=GPU)
    bias = mx.nd.zeros((64,), ctx=GPU)
    bias.attach_grad()
    with autograd.record():
        images = mx.nd.ones((4, 64, 16, 16), ctx=GPU)
        out = mx.nd.Convolution(images, weight, bias, kernel=(3, 3), pad=(1, 1), num_filter=64)
    out.backward(mx.nd.full(out.shape, 0.0123, ctx=GPU))
    np.testing.assert_allclose(bias.grad.asnumpy(), 0.0123 * 1024, rtol=1e-6)


def test_rounding_that_an_operator_enlarges_agrees() -> None:
    for seed in range(12):
        random = np.random.default_rng(seed)
        dense = nn.Dense(32, activation="tanh", in_units=11)
        dense.initialize(mx.init.Normal(1.0), ctx=GPU)
        dense.hybridize()
        dense(mx.nd.array(random.normal(size=(6, 11)) * 30, dtype="float32", ctx=GPU)).wait_to_read()
        for dtype in ("float32", "float64"):
            for columns in (1, 2, 29):
                x = mx.nd.array(random.normal(size=(5, columns)) * 30, dtype=dtype, ctx=GPU)
                x.attach_grad()
                with autograd.record():
                    scale, shift = (
                        mx.nd.ones((columns,), ctx=GPU, dtype=dtype),
                        mx.nd.zeros((columns,), ctx=GPU, dtype=dtype),
                    )
                    loss = mx.nd.LayerNorm(x, scale, shift) ** 3 + mx.nd.softmax(x) * 7
                loss.backward()
                x.grad.wait_to_read()


@pytest.mark.parametrize("name", operator_sweep.names()[::12])
def test_samples_agree(name: str) -> None:
    operator_sweep.check(name)
