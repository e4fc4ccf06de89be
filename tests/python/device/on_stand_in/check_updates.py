"""Updates of optimizers on gpu(0) have the CPU's bits: any size, many tensors in a launch, rates from arrays."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
import stand_in
from both_devices import difference
from hybridnet import autograd, gluon
from hybridnet.errors import UnsupportedError

RANDOM = np.random.default_rng(3)
TENSORS = 70  # more than a launch has room for
SIZES = [0, 1, *(int(size) for size in RANDOM.integers(1, 5000, TENSORS - 2))]
SINGLE: dict[str, tuple[int, dict[str, Any]]] = {  # the number of arrays, and attributes
    "sgd_update": (2, {"lr": 0.137, "wd": 0.013, "rescale_grad": 0.7}),
    "sgd_mom_update": (3, {"lr": 0.137, "wd": 0.013, "momentum": 0.91}),
    "nag_mom_update": (3, {"lr": 0.137, "wd": 0.013, "momentum": 0.91}),
    "signsgd_update": (2, {"lr": 0.137, "wd": 0.013}),
    "signum_update": (3, {"lr": 0.137, "wd": 0.013, "momentum": 0.91, "wd_lh": 0.1}),
    "adam_update": (4, {"lr": 0.137, "wd": 0.013, "clip_gradient": 1.1}),
    "lamb_update_phase1": (4, {"t": 3, "wd": 0.013}),
    "rmsprop_update": (3, {"lr": 0.137, "wd": 0.013}),
    "rmspropalex_update": (5, {"lr": 0.137, "wd": 0.013, "epsilon": 5.0}),
    "_sparse_adagrad_update": (3, {"lr": 0.137, "wd": 0.013}),
    "ftrl_update": (4, {"lr": 0.137, "wd": 0.013}),
    "ftml_update": (5, {"lr": 0.137, "wd": 0.013, "t": 3}),
}


def draw(size: int, dtype: str = "float32") -> np.ndarray:
    return RANDOM.uniform(0.1, 2, size).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", SINGLE)
def test_an_update_has_the_cpu_s_bits(name: str, dtype: str) -> None:
    count, attrs = SINGLE[name]
    for size in (1, 13, 2047, 2049, 10001):
        element = mx.nd.array([0], dtype=dtype).asnumpy().dtype
        assert difference(name, [draw(size).astype(element) for _ in range(count)], **attrs) == 0.0


@pytest.mark.parametrize(("name", "arrays"), [("multi_sgd_mom_update", 3), ("_multi_adam_update", 4)])
def test_many_tensors_take_few_launches(name: str, arrays: int) -> None:
    tensors = [draw(size) for size in SIZES for _ in range(arrays)]
    rates = {"lrs": tuple(0.1 + 0.01 * i for i in range(TENSORS)), "wds": (0.01,) * TENSORS}
    before = stand_in.counters()["launches"]
    assert difference(name, tensors, num_weights=TENSORS, **rates) == 0.0
    assert stand_in.counters()["launches"] - before <= 4


def test_rates_of_many_tensors_are_read_on_the_device() -> None:
    tensors = [draw(size) for size in SIZES for _ in range(3)] + [draw(TENSORS), draw(TENSORS)]
    assert difference("preloaded_multi_sgd_mom_update", tensors, momentum=0.9, num_weights=TENSORS) == 0.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lamb_agrees_within_the_rounding_of_its_norms(dtype: str) -> None:
    tensors = [draw(size, dtype) for size in (1, 4096, 10001, 0) for _ in range(4)]
    attrs = {"learning_rates": (0.1, 0.2, 0.3, 0.4), "wds": (0.01,) * 4, "step_count": (1, 2, 3, 4)}
    assert difference("_multi_lamb_update", tensors, num_tensors=4, **attrs) <= 8 * np.finfo(dtype).eps


@pytest.mark.parametrize("condition", [0, 1])
@pytest.mark.parametrize(
    ("update", "arrays", "attributes", "rates"),
    [
        ("sgd_mom_update", 3, "momentum=0.9", "lr;wd;-"),
        ("lamb_update_phase1", 4, "wd=0.1", "-;wd;t"),
        ("ftml_update", 5, "", "lr;wd;t"),
    ],
)
def test_an_update_with_rates_is_one_launch_that_waits_for_nothing(
    update: str, arrays: int, attributes: str, rates: str, condition: int
) -> None:
    table = np.array([[9.0, 9.0, 9.0], [0.2, 0.02, 4.0]])
    inputs = [*(draw(3000) for _ in range(arrays)), table, np.array([condition], "float32")]
    attrs = {"update": update, "attributes": attributes, "rates": rates, "row": 1, "conditional": True}
    assert difference("_update_with_rates", inputs, **attrs) == 0.0
    on_device = [mx.nd.array(value, dtype=value.dtype, ctx=mx.gpu(0)) for value in inputs]
    mx.nd.waitall()
    before = stand_in.counters()
    mx.nd._internal._update_with_rates(*on_device, **attrs)
    after = stand_in.counters()
    assert after["launches"] - before["launches"] == 1
    assert after["bytes_out"] == before["bytes_out"]


def test_sums_of_squares_agree_within_float32() -> None:
    arrays = [draw(size) for size in SIZES * 3]
    assert difference("multi_sum_sq", arrays, num_arrays=len(arrays)) < 1e-6


def test_an_infinite_element_of_many_arrays_is_found() -> None:
    arrays = [draw(size) for size in SIZES * 3]
    assert difference("multi_all_finite", arrays, num_arrays=len(arrays)) == 0.0
    arrays[150][-1] = np.inf
    assert difference("multi_all_finite", arrays, num_arrays=len(arrays)) == 0.0


def trained(optimizer: str, dtype: str, ctx: mx.Context, compiled: bool) -> list[np.ndarray]:
    """The weights of a Dense layer after three steps."""
    mx.random.seed(3)
    net = gluon.nn.Dense(5, in_units=4, use_bias=optimizer != "groupadagrad")  # it updates matrices only
    net.initialize(mx.init.Constant(0.25), ctx=ctx)
    net.cast(dtype)
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"multi_precision": dtype == "float16"})
    rng = np.random.default_rng(1)
    data = mx.nd.array(rng.uniform(0.1, 1, (8, 4)), dtype=dtype, ctx=ctx)
    label = mx.nd.array(rng.uniform(0.1, 1, (8, 5)), dtype=dtype, ctx=ctx)
    loss_of = gluon.loss.L2Loss()
    step = mx.jit.train_step(net, loss_of, trainer) if compiled else None
    for _ in range(3):
        if step is not None:
            step(data, label)
            continue
        with autograd.record():
            loss = loss_of(net(data), label)
        loss.backward()
        trainer.step(8)
    return [parameter.data().astype("float32").asnumpy() for parameter in net.collect_params().values()]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("optimizer", sorted(mx.optimizer.Optimizer.opt_registry))
def test_every_optimizer_trains_as_on_the_cpu(optimizer: str, dtype: str) -> None:
    for compiled in (False, True):
        try:
            expected = trained(optimizer, dtype, mx.cpu(), compiled)
        except UnsupportedError:
            assert compiled  # not every optimizer has a compiled step
            continue
        for found, wanted in zip(trained(optimizer, dtype, mx.gpu(0), compiled), expected, strict=True):
            tolerance = {"float32": 1e-5, "float16": 4e-3}[dtype]
            np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * 0.1)
