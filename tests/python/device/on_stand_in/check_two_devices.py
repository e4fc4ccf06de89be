"""Two GPUs in one process: copies between them, data-parallel training, errors that name the device."""

from __future__ import annotations

import os

os.environ["HNSTANDIN_DEVICES"] = "2"  # read at the first use of a GPU

import hybridnet as mx
import numpy as np
import pytest
import stand_in
from hybridnet import _core, autograd, gluon
from hybridnet.errors import HybridNetError
from hybridnet.gluon import nn

DEVICES = [mx.gpu(0), mx.gpu(1)]
VALUES = np.arange(12, dtype="float32").reshape(3, 4)


def test_each_gpu_computes() -> None:
    assert mx.num_gpus() == 2
    for ctx in DEVICES:
        array = mx.nd.array(VALUES, ctx=ctx) * 2
        assert array.context == ctx
        np.testing.assert_array_equal(array.asnumpy(), VALUES * 2)


def test_copies_go_from_gpu_to_gpu() -> None:
    there = (mx.nd.array(VALUES, ctx=DEVICES[0]) + 1).as_in_context(DEVICES[1])
    assert there.context == DEVICES[1]
    np.testing.assert_array_equal((there * 3).asnumpy(), (VALUES + 1) * 3)
    target = mx.nd.zeros(VALUES.shape, ctx=DEVICES[0])
    there.copyto(target)
    np.testing.assert_array_equal(target.asnumpy(), VALUES + 1)


def test_each_gpu_has_a_library_of_products() -> None:
    before = _core.set_least_library_steps(0)
    for ctx in DEVICES + DEVICES:
        there = mx.nd.array(VALUES, ctx=ctx)
        np.testing.assert_array_equal(mx.nd.dot(there, there, transpose_b=True).asnumpy(), VALUES @ VALUES.T)
    _core.set_least_library_steps(before)
    counters = stand_in.counters()
    assert (counters["products"], counters["product_choices"]) == (4, 2)


def test_gradients_go_back_to_the_first_gpu() -> None:
    x = mx.nd.array(VALUES, ctx=DEVICES[0])
    x.attach_grad()
    with autograd.record():
        y = (x.as_in_context(DEVICES[1]) ** 2).sum()
    y.backward()
    assert x.grad.context == DEVICES[0]
    np.testing.assert_array_equal(x.grad.asnumpy(), 2 * VALUES)


def test_arrays_of_two_gpus_are_an_error() -> None:
    with pytest.raises(HybridNetError, match=r"gpu\(1\)"):
        mx.nd.ones((2,), ctx=DEVICES[0]) + mx.nd.ones((2,), ctx=DEVICES[1])
    with pytest.raises(HybridNetError, match=r"from gpu\(0\) to gpu\(1\)"):
        mx.nd.ones((2,), ctx=mx.gpu(2))


@pytest.mark.parametrize("hybridize", [False, True], ids=["imperative", "hybridized"])
def test_data_parallel_training_has_the_weights_of_one_device(hybridize: bool) -> None:
    data = np.random.default_rng(0).random((8, 4)).astype("float32")
    found = []
    for devices in ([mx.cpu()], DEVICES):
        mx.random.seed(3)
        net = nn.Dense(3, in_units=4)
        net.initialize(mx.init.Xavier(), ctx=devices)
        net.hybridize(hybridize)
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
        for _ in range(3):
            with autograd.record():
                losses = [net(part).square().sum() for part in gluon.utils.split_and_load(mx.nd.array(data), devices)]
            autograd.backward(losses)
            trainer.step(len(data))
        found.append(net.weight.data(devices[0]).asnumpy())
        for ctx in devices:
            np.testing.assert_array_equal(net.weight.data(ctx).asnumpy(), found[-1])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-7)


def test_a_hybridized_block_has_a_plan_for_each_gpu() -> None:
    net = nn.Dense(3, in_units=4)
    net.initialize(ctx=DEVICES)
    net.hybridize(static_alloc=True)
    results = [net(mx.nd.array(VALUES, ctx=ctx)) for ctx in DEVICES + DEVICES]
    for result, ctx in zip(results, DEVICES + DEVICES, strict=True):
        assert result.context == ctx
        np.testing.assert_array_equal(result.asnumpy(), results[0].asnumpy())


def test_weights_of_two_gpus_are_updated_in_one_call() -> None:
    for name in ("sgd", "adamw"):
        optimizer = mx.optimizer.create(name, learning_rate=0.1)
        weights, grads = ([mx.nd.ones((3,), ctx=ctx) for ctx in DEVICES] for _ in range(2))
        states = [optimizer.create_state(i, weight) for i, weight in enumerate(weights)]
        optimizer.update_multi_precision([0, 1], weights, grads, states)
        assert [weight.context for weight in weights] == DEVICES
        np.testing.assert_array_equal(weights[0].asnumpy(), weights[1].asnumpy())
        assert (weights[0].asnumpy() < 1).all()


def test_an_array_captured_on_another_gpu_is_an_error_that_names_both() -> None:
    captured = mx.nd.ones((3, 4), ctx=DEVICES[0])

    class Adds(gluon.HybridBlock):
        def forward(self, x: mx.nd.NDArray) -> mx.nd.NDArray:
            return x + captured

    net = Adds()
    net.hybridize()
    with pytest.raises(HybridNetError, match=r"gpu\(1\).*gpu\(0\)|gpu\(0\).*gpu\(1\)"):
        net(mx.nd.array(VALUES, ctx=DEVICES[1])).asnumpy()
    np.testing.assert_array_equal(net(mx.nd.array(VALUES, ctx=DEVICES[0])).asnumpy(), VALUES + 1)


class Formula(gluon.HybridBlock):
    """Has no parameters, so that one block serves every device."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def hybrid_forward(self, F, x: mx.nd.NDArray):
        if self.kind == "fused":
            return F.tanh(F.exp(x)) + x
        if self.kind == "product":
            return F.softmax(F.dot(x, x.T), axis=-1).sum(axis=1)
        if self.kind == "constant":
            return x * F.ones((4, 4)) + F.arange(4)
        total, _ = F.contrib.foreach(lambda row, sum_: (F.tanh(row + sum_), row + sum_), x, x[0] * 0)
        return total


@pytest.mark.parametrize(("recorded", "static"), [(False, False), (False, True), (True, False)])
@pytest.mark.parametrize("kind", ["fused", "product", "constant", "loop"])
@pytest.mark.parametrize("devices", [(mx.gpu(0), mx.cpu(), mx.gpu(1)), (mx.cpu(), mx.gpu(0), mx.cpu())])
def test_one_hybridized_block_runs_where_its_input_is(devices: tuple, kind: str, recorded: bool, static: bool) -> None:
    net, plain = Formula(kind), Formula(kind)
    net.hybridize(static_alloc=static, static_shape=static)
    for size in (4, 4, 4):
        for device in devices:
            x = np.random.default_rng(1).standard_normal((size, size)).astype("float32")
            arrays = mx.nd.array(x, ctx=device), mx.nd.array(x)
            results = []
            for block, array in zip((net, plain), arrays, strict=True):
                array.attach_grad()
                with autograd.record() if recorded else autograd.pause():
                    out = block(array)
                if recorded:
                    out.backward()
                results.append((out, array.grad))
            assert results[0][0].ctx == device
            for mine, expected in zip(*results, strict=True):
                np.testing.assert_allclose(mine.asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6)
