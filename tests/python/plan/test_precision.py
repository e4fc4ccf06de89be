"""hybridize(precision=...): products in 16 bits, everything that a user sees in float32."""

from __future__ import annotations

import re
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon, nd
from hybridnet.gluon import nn

HALVES = ["bfloat16", "float16"]
# For sums of products that are rounded to so many digits.
TOLERANCE = {"bfloat16": 4e-2, "float16": 6e-3}


def _close(got: Any, wanted: Any, dtype: str, least_scale: float = 0.0) -> None:
    got, wanted = got.asnumpy(), wanted.asnumpy()
    assert got.dtype == wanted.dtype
    scale = max(np.abs(wanted).max(), least_scale)
    np.testing.assert_allclose(got, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale)


def _convolutional() -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(8, 3, padding=1, in_channels=3), nn.BatchNorm(in_channels=8), nn.Activation("relu"), nn.MaxPool2D(),
        nn.Conv2D(8, 3, padding=1, in_channels=8, activation="relu"), nn.GlobalAvgPool2D(), nn.Flatten(),
        nn.Dense(5, in_units=8),
    )  # fmt: skip
    return net


class _Attention(gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Dense(16, flatten=False, in_units=16) for _ in range(3))
        self.norm = nn.LayerNorm(in_channels=16)
        self.out = nn.Dense(4, in_units=16 * 6)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        scores = F.batch_dot(self.q(x), self.k(x), transpose_b=True) / 4
        mixed = F.batch_dot(F.softmax(scores), self.v(x))
        return self.out(self.norm(x + mixed))


class _Loop(gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Dense(8, in_units=16, activation="tanh")

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        def step(row: Any, states: Any) -> Any:
            made = self.cell(F.concat(row, states[0], dim=1))
            return made, [made]

        rows, _ = F.contrib.foreach(step, x, [F.zeros_like(F.slice_axis(x, axis=0, begin=0, end=1)).reshape((-3, 0))])
        return rows


NETS = {
    "convolutional": (_convolutional, (4, 3, 8, 8)),
    "attention": (_Attention, (2, 6, 16)),
    "loop": (_Loop, (3, 2, 8)),
    "lstm": (lambda: gluon.rnn.LSTM(8, input_size=6), (5, 2, 6)),
}


def _made(name: str) -> tuple[Any, Any]:
    make, shape = NETS[name]
    mx.random.seed(3)
    net = make()
    net.initialize(mx.init.Xavier())
    return net, nd.random.normal(shape=shape)


def _trained(net: Any, x: Any) -> tuple[Any, dict[str, Any]]:
    x.attach_grad()
    with autograd.record():
        loss = (net(x) ** 2).mean()
    loss.backward()
    grads = {name: param.grad() for name, param in net.collect_params().items() if param.grad_req != "null"}
    return loss, {**grads, "data": x.grad.copy()}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", list(NETS))
def test_predictions_and_gradients_are_those_of_float32_up_to_rounding(name: str, dtype: str) -> None:
    (net, x), (other, _) = _made(name), _made(name)
    net.hybridize()
    other.hybridize(precision=dtype)
    _close(other(x), net(x), dtype)
    loss, grads = _trained(net, x)
    other_loss, other_grads = _trained(other, x)
    _close(other_loss, loss, dtype)
    largest = max(float(grad.abs().max().asscalar()) for grad in grads.values())
    for got, wanted in zip(other_grads.values(), grads.values(), strict=True):
        _close(got, wanted, dtype, largest / 5)  # some gradients are 0, and are sums of terms that cancel


@pytest.mark.parametrize("dtype", HALVES)
def test_products_run_in_the_type_and_norms_and_softmax_in_float32(dtype: str) -> None:
    net, x = _made("attention")
    net.hybridize(precision=dtype)
    net(x)
    text = net.plan_text()
    kinds: dict[str, set[str]] = {}
    for op, found in re.findall(r"^\s*\[\d+\] (\w+) .*?-> \S+ (b?float\d+)\(", text, re.MULTILINE):
        kinds.setdefault(op, set()).add(found)
    products = {
        kind for op, found in kinds.items() if re.search("FullyConnected|attention|batch_dot", op) for kind in found
    }
    norms = {kind for op, found in kinds.items() if re.search("layer_norm|LayerNorm|softmax", op) for kind in found}
    assert products == {dtype}, text
    assert norms == {"float32"}, text


def test_other_types_of_input_are_left_alone() -> None:
    net = nn.Dense(3, in_units=4, dtype="float64")
    net.initialize()
    x = nd.random.normal(shape=(2, 4)).astype("float64")
    wanted = net(x).asnumpy()
    net.hybridize(precision="bfloat16")
    np.testing.assert_array_equal(net(x).asnumpy(), wanted)


def test_cast_weights_are_kept_between_predictions_and_follow_updates() -> None:
    net, x = _made("convolutional")
    net.hybridize(precision="bfloat16")
    first = net(x).asnumpy()
    np.testing.assert_array_equal(net(x).asnumpy(), first)
    dense = net[7]
    dense.weight.set_data(dense.weight.data() * 2)
    dense.bias.set_data(dense.bias.data() * 2)
    np.testing.assert_allclose(net(x).asnumpy(), 2 * first, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("dtype", HALVES)
def test_prediction_casts_weights_once_and_folds_batch_norm(dtype: str) -> None:
    net, x = _made("convolutional")
    net.hybridize(precision=dtype)
    for _ in range(3):
        net(x)
    main = net.plan_text().rsplit(" instructions, arena", 1)[1]  # behind the part that is prepared once
    assert "BatchNorm" not in main
    assert len(re.findall(r"\] Cast ", main)) <= 2, main  # the image, and the result


def test_running_statistics_stay_in_float32() -> None:
    net, x = _made("convolutional")
    reference, _ = _made("convolutional")
    for one, precision in ((net, "bfloat16"), (reference, "float32")):
        one.hybridize(precision=precision)
        with autograd.record():
            one(x)
    for got, wanted in zip(net.collect_params().values(), reference.collect_params().values(), strict=True):
        assert got.data().dtype == np.float32
        np.testing.assert_allclose(got.data().asnumpy(), wanted.data().asnumpy(), rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("dtype", HALVES)
def test_a_compiled_step_trains_in_it(dtype: str) -> None:
    losses = {}
    for precision in ("float32", dtype):
        net, x = _made("convolutional")
        net.hybridize()
        y = nd.array([0, 1, 2, 3])
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
        step = mx.jit.train_step(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer, precision=precision)
        losses[precision] = np.array([float(step(x, y).mean().asscalar()) for _ in range(20)])
        assert all(param.data().dtype == np.float32 for param in net.collect_params().values())
    assert losses["float32"][-1] < 0.7 * losses["float32"][0]
    np.testing.assert_allclose(losses[dtype], losses["float32"], rtol=0.1, atol=0.02)


def test_a_function_computes_in_it() -> None:
    a, b = mx.sym.var("a"), mx.sym.var("b")
    product = mx.function([a, b], mx.sym.dot(a, b), precision="bfloat16")
    x, y = nd.random.normal(shape=(4, 5)), nd.random.normal(shape=(5, 6))
    got = product(x, y)
    rounded = nd.dot(x.astype("bfloat16"), y.astype("bfloat16")).astype("float32")
    assert got.dtype == np.float32
    np.testing.assert_allclose(got.asnumpy(), rounded.asnumpy(), rtol=1e-2, atol=1e-2)


def test_exact_in_float32_means_no_rounding() -> None:
    net, x = _made("attention")
    net.hybridize()
    wanted = net(x).asnumpy()
    net.hybridize(precision="float32")
    np.testing.assert_array_equal(net(x).asnumpy(), wanted)


@pytest.mark.parametrize("value", ["float8", "int8", None, 16])
def test_wrong_names_are_refused(value: Any) -> None:
    net = nn.Dense(3)
    with pytest.raises(mx.errors.ParamError, match="precision"):
        net.hybridize(precision=value)
    with pytest.raises(mx.errors.ParamError, match="precision"):
        mx.function([], mx.sym.zeros((2,)), precision=value)


def test_special_values_pass() -> None:
    net = nn.Dense(2, in_units=3, use_bias=False)
    net.initialize(mx.init.One())
    net.hybridize(precision="bfloat16")
    got = net(nd.array([[np.nan, 1, 1], [np.inf, 1, 1], [-np.inf, 1, 1], [3e38, 0, 0]])).asnumpy()
    assert np.isnan(got[0]).all()
    assert np.isposinf(got[1]).all()
    assert np.isneginf(got[2]).all()
    assert np.isfinite(got[3]).all()


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("write", ["index_copy", "slice"])
def test_an_array_in_16_bits_takes_what_is_written_and_indices_stay(write: str, dtype: str) -> None:
    class Writes(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.array, self.new = (nn.Dense(6, in_units=8) for _ in range(2))

        def forward(self, x: Any, new: Any, rows: Any) -> Any:
            array, new = self.array(x), self.new(new)
            if write == "index_copy":
                return nd.contrib.index_copy(array, rows, new)
            array[300:302] = new
            return array

    net = Writes()
    net.initialize(mx.init.Xavier())
    # bfloat16 holds neither 299 nor 301: a row that was rounded would be another one.
    arrays = nd.random.normal(shape=(400, 8)), nd.random.normal(shape=(2, 8)), nd.array([299, 301])
    arrays = arrays if write == "index_copy" else (*arrays[:2], None)
    expected = net(*arrays)
    net.hybridize(precision=dtype)
    _close(net(*arrays), expected, dtype)
    written = "index_copy" if write == "index_copy" else "_slice_assign"
    (line,) = (
        line for line in net.plan_text().splitlines() if f"] _contrib_{written} (" in line or f"] {written} (" in line
    )
    assert f"{dtype}(400, 6)" in line
