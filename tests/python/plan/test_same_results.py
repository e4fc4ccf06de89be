"""Hybridized networks have the values, gradients and states of imperative ones."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from networks import NETWORKS, gradients_of, make, values_of
from rounding import assert_all_close, assert_close

FLAGS = [
    {},
    {"static_alloc": True},
    {"static_alloc": True, "static_shape": True},
    {"passes": "none"},
    {"passes": "fast_compile"},
    {"passes": "fast_run,-channels_last"},
    {"passes": "fast_run,-fusion"},
]


def train_once(net: gluon.HybridBlock, x: mx.nd.NDArray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the output and the gradient of the input, and computes the parameters' gradients."""
    x = x.copy()
    x.attach_grad()
    with autograd.record():
        y = net(x)
        loss = (y * y).sum() + y.mean()
    loss.backward()
    return y.asnumpy(), x.grad.asnumpy()


@pytest.mark.parametrize("flags", FLAGS, ids=str)
@pytest.mark.parametrize("name", NETWORKS)
def test_prediction(name: str, flags: dict[str, object]) -> None:
    net, x = make(name, 1)
    expected = net(x).asnumpy()
    net.hybridize(**flags)
    for _ in range(3):
        assert_close(net(x).asnumpy(), expected)


@pytest.mark.parametrize("flags", FLAGS, ids=str)
@pytest.mark.parametrize("name", NETWORKS)
def test_training(name: str, flags: dict[str, object]) -> None:
    plain, x = make(name, 2)
    compiled, _ = make(name, 2)
    compiled.hybridize(**flags)
    for _ in range(2):  # states change from step to step
        y, dx = train_once(plain, x)
        hybrid_y, hybrid_dx = train_once(compiled, x)
        assert_close(hybrid_y, y)
        assert_close(hybrid_dx, dx)
        assert_all_close(gradients_of(compiled), gradients_of(plain))
        assert_all_close(values_of(compiled), values_of(plain))


@pytest.mark.parametrize("dtype", ["float64", "float16"])
@pytest.mark.parametrize("name", ["norm_chain", "residual", "mlp"])
def test_other_dtypes(name: str, dtype: str) -> None:
    net, x = make(name, 3)
    net.cast(dtype)
    x = x.astype(dtype)
    expected = net(x).asnumpy()
    net.hybridize()
    actual = net(x).asnumpy()
    assert actual.dtype == np.dtype(dtype)
    np.testing.assert_allclose(
        actual, expected, rtol=1e-9 if dtype == "float64" else 2e-2, atol=2e-2 if dtype == "float16" else 0
    )


def test_trainer_steps_agree() -> None:
    plain, x = make("residual", 4)
    compiled, _ = make("residual", 4)
    compiled.hybridize(static_alloc=True, static_shape=True)
    for net in (plain, compiled):
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01, "momentum": 0.9, "wd": 1e-3})
        for _ in range(4):
            with autograd.record():
                loss = (net(x) ** 2).mean()
            loss.backward()
            trainer.step(1)
    assert_all_close(values_of(compiled), values_of(plain))


def test_gradients_that_add_up() -> None:
    plain, x = make("norm_chain", 5)
    compiled, _ = make("norm_chain", 5)
    compiled.hybridize()
    for net in (plain, compiled):
        for param in net.collect_params().values():
            if param.grad_req != "null":
                param.grad_req = "add"
        train_once(net, x)
        train_once(net, x)
    assert_all_close(gradients_of(compiled), gradients_of(plain))


def test_second_gradients() -> None:
    def penalty(net: gluon.HybridBlock, x: mx.nd.NDArray) -> np.ndarray:
        x = x.copy()
        x.attach_grad()
        with autograd.record():
            y = net(x)
            dx = autograd.grad((y * y).sum(), [x], create_graph=True)[0]
            loss = (dx * dx).sum()
        loss.backward()
        return x.grad.asnumpy()

    x = make("lenet", 6)[1]
    chain = gluon.nn.HybridSequential()
    chain.add(gluon.nn.Conv2D(4, 3, activation="tanh", in_channels=1), gluon.nn.AvgPool2D(2, 2), gluon.nn.Dense(3))
    chain.initialize(mx.init.Xavier())
    expected = penalty(chain, x)
    chain.hybridize()
    assert_close(penalty(chain, x), expected)
