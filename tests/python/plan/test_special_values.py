"""A layer and the functions behind it give the same results as one kernel and one after the other, also on NaN,
infinities, signed zeros and huge numbers: the sweep over kernels that take post-operations (docs/numerics.md)."""

from __future__ import annotations

from pathlib import Path

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon, nd
from hybridnet.gluon import nn
from special_networks import differences_of_network
from special_values import LAYERS, OTHER_FUNCTIONS, POST_OPERATIONS, differences, fused_operators, make

LAYER_OF = {"_fused_convolution": "Convolution", "_fused_fully_connected": "FullyConnected"}
NON_FINITE = (np.nan, np.inf, -np.inf)


def is_of_bytes(name: str) -> bool:
    """True for operators on bytes, which have no NaN."""
    return "quantized" in name


def test_every_post_operation_is_swept() -> None:
    operators = {name: choices for name, choices in fused_operators() if not is_of_bytes(name)}
    assert set(operators) == set(LAYER_OF), "add the new operator's layer to LAYER_OF and to special_values.py"
    for name, choices in operators.items():
        assert set(choices) == set(POST_OPERATIONS), f"{name} takes others: add them to special_values.py"
        assert any(operator == LAYER_OF[name] for _, _, operator in LAYERS.values())


@pytest.mark.parametrize("layer", LAYERS)
def test_predictions_keep_special_values(layer: str) -> None:
    found = []
    for i, (name, after) in enumerate(POST_OPERATIONS.items()):
        for addend in (False, True) if name in ("none", "relu", "clip") else (i % 2 == 0,):
            net, inputs = make(layer, after, addend, norm=False)
            found += [f"{name}, addend {addend}: {text}" for text in differences(net, inputs, ("predict",))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_dtypes_keep_special_values(dtype: str) -> None:
    found = []
    for layer in ("dense of few rows", "dense of many rows", "convolution"):
        for name in ("relu", "clip", "leaky", "tanh"):
            net, inputs = make(layer, POST_OPERATIONS[name], False, norm=False, dtype=dtype)
            for text in differences(net, inputs, ("predict",), values=NON_FINITE, tolerance=0.1):
                found.append(f"{layer}, {name}: {text}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("layer", ["convolution", "3x3", "1x1 of few pixels", "depthwise"])
def test_batch_norm_in_the_weights_keeps_special_values(layer: str) -> None:
    found = []
    for name in ("none", "relu", "clip"):
        net, inputs = make(layer, POST_OPERATIONS[name], True, norm=True)
        found += [f"{name}: {text}" for text in differences(net, inputs, ("predict",))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("layer", ["dense of few rows", "convolution", "3x3", "1x1 of few pixels", "depthwise"])
def test_recorded_calls_and_gradients_keep_special_values(layer: str) -> None:
    found = []
    for name, after in {**POST_OPERATIONS, **OTHER_FUNCTIONS}.items():
        if name == "gelu_tanh":  # the fused function has a gradient at infinity, the separate operators give NaN
            continue
        net, inputs = make(layer, after, False, norm=False)
        found += [f"{name}: {text}" for text in differences(net, inputs, ("record",), values=NON_FINITE)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("seed", range(8))
def test_networks_keep_special_values(seed: int) -> None:
    assert not differences_of_network(seed)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("kernel", [(2, 2), (3, 1), (5, 7)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_maximum_of_a_window_with_nan_is_nan(layout: str, kernel: tuple[int, int], dtype: str) -> None:
    """NaN may have any place in the window; the gradient goes to the first maximum."""
    rng = np.random.default_rng(0)
    shape = (2, 5, 7, 21)
    for at in range(int(np.prod(kernel))):
        values = rng.standard_normal(shape).astype(dtype)
        place = (at // kernel[1], at % kernel[1])
        where = (1, 3, *place) if layout == "NCHW" else (1, *place, 3)
        values[where] = np.nan
        x = nd.array(values, dtype=dtype)
        x.attach_grad()
        with autograd.record():
            y = nd.Pooling(x, kernel=kernel, stride=(2, 2), pool_type="max", layout=layout)
        y.backward(nd.ones_like(y))
        windows = np.isnan(y.asnumpy())
        first = (1, 3, 0, 0) if layout == "NCHW" else (1, 0, 0, 3)
        assert windows[first]
        assert x.grad.asnumpy()[where] == windows.sum()
        whole = nd.Pooling(x, kernel=(1, 1), global_pool=True, pool_type="max", layout=layout).asnumpy()
        assert np.isnan(whole[(1, 3, 0, 0) if layout == "NCHW" else (1, 0, 0, 3)])
        assert np.isnan(whole).sum() == 1


def test_the_maximum_of_a_region_with_nan_is_nan() -> None:
    regions = nd.array([[0, 0, 0, 3, 3]])
    for at in range(16):
        values = np.arange(16, dtype="float32").reshape(1, 1, 4, 4)
        values.reshape(-1)[at] = np.nan
        x = nd.array(values)
        x.attach_grad()
        with autograd.record():
            y = nd.ROIPooling(x, regions, pooled_size=(1, 1), spatial_scale=1.0)
        y.backward()
        assert np.isnan(y.asscalar())
        assert x.grad.asnumpy().reshape(-1)[at] == 1


def test_a_broken_row_changes_no_bits_of_the_others() -> None:
    rng = np.random.default_rng(0)
    for layer in ("dense of few rows", "convolution", "3x3", "depthwise"):
        net, (x,) = make(layer, POST_OPERATIONS["relu"], False, norm=False)
        net.hybridize()
        clean = net(x).asnumpy()
        broken = x.asnumpy()
        broken[2].reshape(-1)[rng.integers(broken[2].size)] = np.nan
        found = net(nd.array(broken)).asnumpy()
        assert np.isnan(found[2]).any()
        np.testing.assert_array_equal(np.delete(found, 2, 0), np.delete(clean, 2, 0))


def test_winograd_does_not_spread_huge_numbers() -> None:
    """Winograd transforms mix the pixels of a tile, but outputs that do not depend on the pixel must not change."""
    net, (x,) = make("3x3", POST_OPERATIONS["none"], False, norm=False)
    net.hybridize()
    clean = net(x).asnumpy()
    for value in (np.nan, np.inf, 1e30, -3e38):
        special = x.asnumpy()
        special[0, 0, 6, 6] = value
        found = net(nd.array(special)).asnumpy()
        touched = np.zeros(clean.shape, bool)
        touched[0, :, 5:8, 5:8] = True
        np.testing.assert_allclose(found[~touched], clean[~touched], rtol=1e-4, atol=1e-4)
        assert not np.isfinite(found[touched]).all() or np.abs(found[touched]).min() > 1e20


def test_a_training_step_on_nan_reports_nan() -> None:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, activation="relu"), nn.MaxPool2D(), nn.Dense(16, activation="relu"), nn.Dense(10))
    net.initialize(mx.init.Xavier())
    x = nd.random.normal(shape=(4, 3, 12, 12))
    net(x)
    net.hybridize()
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    x[1, 0, 5, 5] = np.nan
    with autograd.record():
        value = loss(net(x), nd.array([1, 2, 3, 4]))
    value.backward()
    assert np.isnan(value.asnumpy()).tolist() == [False, True, False, False]
    assert all(np.isnan(p.grad().asnumpy()).any() for p in net.collect_params().values())


def test_an_exported_network_keeps_nan(tmp_path: Path) -> None:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, activation="relu", in_channels=3), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D())
    net.add(nn.Flatten(), nn.Dense(10, activation="relu"))
    net.initialize(mx.init.Xavier())
    x = nd.random.normal(shape=(2, 3, 10, 10))
    x[1, 2, 3, 4] = np.nan
    net.hybridize()
    expected = net(x).asnumpy()
    assert np.isnan(expected[1]).all()
    assert np.isfinite(expected[0]).all()
    net.export(str(tmp_path / "net"))
    loaded = gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), "data", str(tmp_path / "net-0000.params"))
    np.testing.assert_array_equal(loaded(x).asnumpy(), expected)
