"""A driver call that fails is a named error; nothing is lost, and the next step works."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import hybridnet as mx
import numpy as np
import pytest
import stand_in
from hybridnet import _core, autograd, gluon
from hybridnet.errors import HybridNetError
from hybridnet.gluon import nn

GPU = mx.gpu(0)
BATCH = np.random.default_rng(0).random((4, 6)).astype("float32")
CALLS = 100  # more than a step makes


def step(net: gluon.Block, trainer: gluon.Trainer) -> float:
    data = mx.nd.array(BATCH, ctx=GPU)
    with autograd.record():
        loss = (net(data) ** 2).mean()
    loss.backward()
    trainer.step(1)
    return float(loss.asscalar())


@pytest.fixture(params=["own kernels", "a library"])
def products(request: pytest.FixtureRequest) -> Iterator[None]:
    """Products by kernels of ours, which these small ones have by default, or by cuBLASLt."""
    before = _core.set_least_library_steps(0 if request.param == "a library" else 1 << 62)
    yield
    _core.set_least_library_steps(before)


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("mode", ["imperative", "hybridized"])
def test_each_call_of_a_training_step_may_fail_once(mode: str) -> None:
    net = nn.HybridSequential()
    net.add(nn.Dense(5, in_units=6, activation="tanh"), nn.Dense(2, in_units=5))
    net.initialize(ctx=GPU)
    net.hybridize(mode == "hybridized")
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
    for _ in range(3):
        step(net, trainer)
    before, failed = memory_in_use(), 0
    for position in range(1, CALLS):
        stand_in.fail(f"any:{position}")
        try:
            step(net, trainer)
            mx.nd.waitall()
        except HybridNetError as error:
            failed += 1
            assert "CUDA" in str(error) or "bytes left" in str(error), str(error)
        finally:
            stand_in.fail("")
            wait_until_quiet()
        assert np.isfinite(step(net, trainer))
    assert failed >= 20
    assert memory_in_use() == before


def memory_in_use() -> tuple[int, int]:
    """The numbers of allocations and of bytes that the driver has given and not got back, without spare memory."""
    mx.nd.waitall()
    gc.collect()
    GPU.empty_cache()
    counters = stand_in.counters()
    return counters["live_allocations"], counters["live_bytes"]


def wait_until_quiet() -> None:
    """Takes the errors that wait in arrays of the failed step."""
    for _ in range(20):
        try:
            mx.nd.waitall()
            return
        except HybridNetError:
            continue


def test_a_fork_after_the_first_use_leaves_an_error_in_the_child() -> None:
    mx.nd.ones((2,), ctx=GPU).wait_to_read()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            mx.nd.ones((2,), ctx=GPU).asnumpy()
            text = "no error"
        except HybridNetError as error:
            text = str(error)
        os.write(writer, text.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert "fork" in os.read(reader, 1 << 16).decode()
    assert (mx.nd.ones((2,), ctx=GPU).asnumpy() == 1).all()
