"""The order of work on a device: streams run late and in any legal order, and results stay those of the CPU."""

from __future__ import annotations

import threading
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
import stand_in
from hybridnet import autograd, gluon
from hybridnet.gluon import nn

GPU = mx.gpu(0)
SEEDS = 200


def step(ctx: mx.Context, net: nn.HybridSequential, batch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Copies in, computes, frees, copies out: work on all three streams, with memory that is used again."""
    data = mx.nd.array(batch, ctx=mx.cpu()).as_in_context(ctx)
    scratch = mx.nd.array(batch, ctx=ctx) * 2
    data.attach_grad()
    with autograd.record():
        out = net(data * scratch)
        loss = (out * out).sum()
    del scratch
    loss.backward()
    other = mx.nd.array(batch[::-1].copy(), ctx=ctx)  # takes freed memory while the kernels before may still run
    return (out + other.sum()).asnumpy(), data.grad.as_in_context(mx.cpu()).asnumpy()


@pytest.fixture(scope="module")
def nets() -> list[nn.HybridSequential]:
    made = []
    for ctx in (mx.cpu(), GPU):
        mx.random.seed(2)
        net = nn.HybridSequential()
        net.add(nn.Dense(8, in_units=6, activation="tanh"), nn.Dense(3, in_units=8))
        net.initialize(mx.init.Xavier(), ctx=ctx)
        made.append(net)
    return made


@pytest.mark.parametrize("mode", ["imperative", "hybridized"])
def test_results_do_not_depend_on_the_order_of_streams(nets: list[nn.HybridSequential], mode: str) -> None:
    batch = np.random.default_rng(0).random((5, 6)).astype("float32")
    for net in nets:
        net.hybridize(mode == "hybridized")
    expected = step(mx.cpu(), nets[0], batch)
    first = None
    for number in range(SEEDS):
        stand_in.seed(number)
        found = step(GPU, nets[1], batch)
        for value, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(value, want, rtol=1e-5, atol=1e-6)
        first = first or found
        for value, want in zip(found, first, strict=True):
            np.testing.assert_array_equal(value, want)
    assert stand_in.reports() == []


def test_threads_share_a_device() -> None:
    values = np.arange(1000, dtype="float32")
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            array = mx.nd.array(values, ctx=GPU)
            for _ in range(20):
                array = array + number
            np.testing.assert_array_equal(array.asnumpy(), values + 20 * number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_shared_array_is_read_by_a_copy_while_a_later_write_waits() -> None:
    for number in range(40):
        stand_in.seed(number)
        array = mx.nd.ones((1000,), ctx=GPU)
        before = array.as_in_context(mx.cpu())
        array[:] = 5
        assert (before.asnumpy() == 1).all()
        assert (array.asnumpy() == 5).all()


class AddsConstants(gluon.HybridBlock):
    """The sum has a term that a pass computes when the graph is compiled."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.broadcast_add(x, F.concat(F.arange(start=0, stop=500), F.ones((500,)), dim=0) * 2)


@pytest.mark.parametrize("options", [{}, {"static_alloc": True}], ids=["hybridized", "static"])
def test_constants_that_passes_compute_are_there_before_the_first_run(options: dict[str, bool]) -> None:
    expected = 1 + 2 * np.concatenate([np.arange(500), np.ones(500)])
    for number in range(20):
        stand_in.seed(number)
        net = AddsConstants()
        net.hybridize(**options)
        np.testing.assert_array_equal(net(mx.nd.ones((1000,), ctx=GPU)).asnumpy(), expected)


def test_a_captured_array_that_a_copy_has_written_is_read_behind_the_copy() -> None:
    captured = mx.nd.ones((1000,), ctx=GPU)

    class Multiplies(gluon.HybridBlock):
        def forward(self, x: Any) -> Any:
            return x * captured

    for number in range(20):
        stand_in.seed(number)
        net = Multiplies()
        net.hybridize(static_alloc=number % 2 == 1)
        for factor in (number, number + 1):
            captured[:] = np.full((1000,), factor, "float32")
            result = net(mx.nd.ones((1000,), ctx=GPU))
            captured[:] = np.zeros((1000,), "float32")  # must wait for the run
            assert (result.asnumpy() == factor).all()
