"""Layers of gluon.nn: values against NumPy, shapes, parameters, errors, imperative and hybridized."""

from __future__ import annotations

import itertools
import math

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd
from hybridnet.gluon import nn


def run(layer, *inputs, train=False):
    """Returns the layer's output, and checks that hybridized and imperative outputs agree."""
    arrays = [mx.nd.array(x, dtype=x.dtype) for x in inputs]
    if any(param._data is None for param in layer.collect_params().values()):
        layer.initialize(mx.init.Uniform(1))
    outs = []
    for hybrid in (False, True):
        layer.hybridize(hybrid)
        mode = autograd.train_mode() if train else autograd.predict_mode()
        with mode:
            outs.append(layer(*arrays).asnumpy())
    np.testing.assert_allclose(outs[0], outs[1], rtol=2e-5, atol=2e-6)
    return outs[0]


def floats(rng, *shape):
    return rng.normal(size=shape).astype("float32")


def value(param):
    return param.data().asnumpy().astype("float64")


# -- dense and containers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("flatten", [True, False])
@pytest.mark.parametrize("activation", [None, "relu", "tanh", "sigmoid", "softrelu", "softsign"])
def test_dense(use_bias, flatten, activation, rng):
    layer = nn.Dense(4, activation=activation, use_bias=use_bias, flatten=flatten)
    x = floats(rng, 2, 3, 5)
    got = run(layer, x)
    flat = x.reshape(2, 15) if flatten else x
    expected = flat @ value(layer.weight).T + (value(layer.bias) if use_bias else 0)
    expected = {None: lambda v: v, **ACTIVATIONS}[activation](expected)
    assert layer.weight.shape == (4, 15 if flatten else 5)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: nn.Dense(0), r"Dense\.units: expected an int >= 1, got 0"),
        (lambda: nn.Dense(2.5), r"Dense\.units"),
        (lambda: nn.Dense(2, in_units=-3), r"Dense\.in_units"),
        (lambda: nn.Dropout(1.5), r"Dropout\.rate.*1\.5"),
        (lambda: nn.Embedding(0, 3), r"Embedding\.input_dim"),
        (lambda: nn.Conv2D(4, (3,)), r"Conv2D\.kernel_size"),
        (lambda: nn.Conv2D(4, 3, strides=0), r"Conv2D\.strides"),
        (lambda: nn.Conv2D(4, 3, padding=-1), r"Conv2D\.padding"),
        (lambda: nn.Conv2D(4, 3, groups=3), "multiples of groups"),
        (lambda: nn.Conv2D(4, 3, layout="HWC"), r"Conv2D\.layout"),
        (lambda: nn.MaxPool2D(0), r"pool_size"),
        (lambda: nn.Activation("relux"), "Activation.*relux"),
        (lambda: nn.LeakyReLU(-1), "LeakyReLU"),
        (lambda: nn.GroupNorm(0), r"GroupNorm\.num_groups"),
        (lambda: nn.Lambda("no_such_function"), "no_such_function"),
        (lambda: nn.HybridLambda("no_such_function"), "no_such_function"),
        (lambda: nn.Lambda(3), "Unrecognized function"),
    ],
)
def test_wrong_arguments_are_named(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_dense_learns_in_units_from_the_first_batch_and_keeps_it():
    layer = nn.Dense(2, prefix="fc_")
    layer.initialize()
    layer(mx.nd.ones((3, 7)))
    assert layer.weight.shape == (2, 7)
    with pytest.raises(mx.errors.ShapeError, match=r"(?s)expected 7 features, got 8.*weight has shape \(2, 7\)"):
        layer(mx.nd.ones((3, 8)))


@pytest.mark.parametrize("kind", [nn.Sequential, nn.HybridSequential])
def test_sequences_index_slice_and_iterate(kind):
    net = kind()
    net.add(nn.Dense(4), nn.Dense(3), nn.Dense(2))
    assert len(net) == 3
    assert [layer._units for layer in net] == [4, 3, 2]
    assert net[1]._units == 3
    assert net[-1]._units == 2
    part = net[1:]
    assert isinstance(part, kind)
    assert [layer._units for layer in part] == [3, 2]
    assert part[0] is net[1]


def test_sequence_passes_on_tuples():
    net = nn.Sequential()
    net.add(nn.Lambda(lambda x: (x, x + 1)), nn.Lambda(lambda x, y: x + y))
    assert net(mx.nd.ones((1,))).asscalar() == 3


def test_sequential_hybridizes_its_children():
    net = nn.Sequential()
    net.add(nn.Dense(2))
    with pytest.warns(UserWarning, match="HybridSequential"):
        net.hybridize()
    assert net[0]._active


def test_lambda_takes_functions_and_names(rng):
    x = floats(rng, 3, 4)
    np.testing.assert_allclose(run(nn.HybridLambda("tanh"), x), np.tanh(x), rtol=1e-5)
    np.testing.assert_allclose(run(nn.HybridLambda(lambda F, a: F.relu(a) + 1), x), np.maximum(x, 0) + 1, rtol=1e-6)
    np.testing.assert_allclose(nn.Lambda("exp")(mx.nd.array(x)).asnumpy(), np.exp(x), rtol=1e-5)
    assert repr(nn.HybridLambda("tanh")) == "HybridLambda(tanh)"


def test_concatenate_joins_outputs(rng):
    x = floats(rng, 2, 3)
    net = nn.HybridConcatenate(axis=1)
    net.add(nn.Identity(), nn.HybridLambda(lambda F, a: a * 2))
    np.testing.assert_array_equal(run(net, x), np.concatenate([x, 2 * x], 1))
    plain = nn.Concatenate(axis=0)
    plain.add(nn.Identity(), nn.Identity())
    assert plain(mx.nd.array(x)).shape == (4, 3)


def test_flatten_and_embedding(rng):
    x = floats(rng, 2, 3, 4)
    np.testing.assert_array_equal(run(nn.Flatten(), x), x.reshape(2, 12))
    layer = nn.Embedding(10, 4)
    index = np.array([[1, 9], [0, 1]], "int32")
    got = run(layer, index)
    np.testing.assert_allclose(got, value(layer.weight)[index], rtol=1e-6)
    with autograd.record():
        loss = layer(mx.nd.array(index, dtype="int32")).sum()
    loss.backward()
    counts = np.bincount(index.ravel(), minlength=10)
    np.testing.assert_array_equal(layer.weight.grad().asnumpy(), np.repeat(counts[:, None], 4, 1))


# -- activations ----------------------------------------------------------------------------------------------------


def _erf(x):
    return np.vectorize(math.erf, otypes=[float])(x)


def _softrelu(x):
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "softrelu": _softrelu,
    "softsign": lambda x: x / (1 + np.abs(x)),
}

SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772

LAYERS = [
    *((lambda name=name: nn.Activation(name), function) for name, function in ACTIVATIONS.items()),
    (lambda: nn.LeakyReLU(0.1), lambda x: np.where(x > 0, x, 0.1 * x)),
    (lambda: nn.ELU(0.7), lambda x: np.where(x > 0, x, 0.7 * np.expm1(x))),
    (lambda: nn.SELU(), lambda x: SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(x))),
    (lambda: nn.GELU(), lambda x: x * 0.5 * (1 + _erf(x / np.sqrt(2)))),
    (lambda: nn.Swish(), lambda x: x / (1 + np.exp(-x))),
    (lambda: nn.Swish(2.0), lambda x: x / (1 + np.exp(-2 * x))),
    (lambda: nn.SiLU(), lambda x: x / (1 + np.exp(-x))),
    (lambda: nn.PReLU(), lambda x: np.where(x > 0, x, 0.25 * x)),
]


@pytest.mark.parametrize(("make", "reference"), LAYERS, ids=lambda v: None)
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 1), (0, 2)])
def test_activations(make, reference, shape, rng):
    x = 2 * floats(rng, *shape)
    layer = make()
    layer.initialize()
    np.testing.assert_allclose(run(layer, x), reference(x.astype("float64")), rtol=1e-4, atol=1e-6)


def test_prelu_has_a_slope_per_channel(rng):
    layer = nn.PReLU(alpha_initializer=mx.init.Uniform(1), in_channels=3)
    x = floats(rng, 2, 3, 4)
    got = run(layer, x)
    slope = value(layer.alpha).reshape(1, 3, 1)
    np.testing.assert_allclose(got, np.where(x > 0, x, slope * x), rtol=1e-5)
    with autograd.record():
        loss = layer(mx.nd.array(x)).sum()
    loss.backward()
    np.testing.assert_allclose(layer.alpha.grad().asnumpy(), np.minimum(x, 0).sum((0, 2)), rtol=1e-4)


# -- dropout --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hybridize", [False, True])
def test_dropout_drops_in_training_only(hybridize):
    layer = nn.Dropout(0.3)
    layer.hybridize(hybridize)
    x = mx.nd.ones((200, 200))
    assert (layer(x).asnumpy() == 1).all()
    with autograd.train_mode():
        first, second = layer(x).asnumpy(), layer(x).asnumpy()
    assert (first != second).any()
    assert set(np.unique(first.round(5))) == {0.0, np.float32(1 / 0.7).round(5)}
    assert (first == 0).mean() == pytest.approx(0.3, abs=0.02)


def test_dropout_shares_decisions_along_axes():
    layer = nn.Dropout(0.5, axes=(1,))
    with autograd.train_mode():
        out = layer(mx.nd.ones((50, 20))).asnumpy()
    assert (out == out[:, :1]).all()
    assert 0 < (out[:, 0] == 0).mean() < 1


# -- convolution ----------------------------------------------------------------------------------------------------


def convolve(x, weight, bias, stride, pad, dilate, groups):
    """Convolution of (N, C, ...) with (O, C / groups, ...), in float64, position by position."""
    n = x.ndim - 2
    x = np.pad(x.astype("float64"), [(0, 0), (0, 0), *((p, p) for p in pad)])
    kernel = weight.shape[2:]
    sizes = [(x.shape[2 + i] - dilate[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(n)]
    out = np.zeros((x.shape[0], weight.shape[0], *sizes))
    into, outof = weight.shape[1], weight.shape[0] // groups
    for group in range(groups):
        channels, filters = slice(group * into, (group + 1) * into), slice(group * outof, (group + 1) * outof)
        for offset in itertools.product(*map(range, kernel)):
            window = tuple(
                slice(o * d, o * d + s * (size - 1) + 1, s)
                for o, d, s, size in zip(offset, dilate, stride, sizes, strict=True)
            )
            part = x[(slice(None), channels, *window)]
            out[:, filters] += np.einsum("nc...,oc->no...", part, weight[(filters, slice(None), *offset)])
    return out if bias is None else out + bias.reshape(1, -1, *(1,) * n)


CONVOLUTIONS = [
    (nn.Conv1D, (9,), {"kernel_size": 3}),
    (nn.Conv1D, (9,), {"kernel_size": 3, "strides": 2, "padding": 1, "groups": 2}),
    (nn.Conv2D, (7, 8), {"kernel_size": 3}),
    (nn.Conv2D, (7, 8), {"kernel_size": (3, 2), "strides": (2, 1), "padding": (1, 0), "dilation": (1, 2)}),
    (nn.Conv2D, (7, 8), {"kernel_size": 1, "use_bias": False}),
    (nn.Conv2D, (7, 8), {"kernel_size": 3, "groups": 4}),
    (nn.Conv3D, (4, 5, 6), {"kernel_size": 2, "strides": 2, "padding": 1}),
]


def _triple(value, n):
    return (value,) * n if isinstance(value, int) else tuple(value)


@pytest.mark.parametrize(("kind", "size", "settings"), CONVOLUTIONS)
def test_convolutions(kind, size, settings, rng):
    layer = kind(8, **settings)
    x = floats(rng, 2, 4, *size)
    got = run(layer, x)
    n = len(size)
    expected = convolve(
        x,
        value(layer.weight),
        None if layer.bias is None else value(layer.bias),
        _triple(settings.get("strides", 1), n),
        _triple(settings.get("padding", 0), n),
        _triple(settings.get("dilation", 1), n),
        settings.get("groups", 1),
    )
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


TRANSPOSED = [
    (nn.Conv1DTranspose, (5,), {"kernel_size": 3, "strides": 2, "padding": 1, "output_padding": 1}),
    (nn.Conv2DTranspose, (4, 5), {"kernel_size": 3}),
    (nn.Conv2DTranspose, (4, 5), {"kernel_size": (3, 2), "strides": (2, 3), "padding": (1, 0)}),
    (nn.Conv2DTranspose, (4, 5), {"kernel_size": 3, "strides": 2, "groups": 2, "use_bias": False}),
    (nn.Conv3DTranspose, (2, 3, 2), {"kernel_size": 2, "strides": 2}),
]


@pytest.mark.parametrize(("kind", "size", "settings"), TRANSPOSED)
def test_transposed_convolutions_are_the_adjoint(kind, size, settings, rng):
    layer = kind(6, **settings)
    x = floats(rng, 2, 4, *size)
    got = run(layer, x)
    n, groups = len(size), settings.get("groups", 1)
    stride, pad = _triple(settings.get("strides", 1), n), _triple(settings.get("padding", 0), n)
    extra, kernel = _triple(settings.get("output_padding", 0), n), _triple(settings["kernel_size"], n)
    sizes = tuple((size[i] - 1) * stride[i] - 2 * pad[i] + kernel[i] + extra[i] for i in range(n))
    assert got.shape == (2, 6, *sizes)
    # <deconvolve(x), y> = <x, convolve(y)> for every y
    y = floats(rng, *got.shape)
    weight = value(layer.weight)
    back = convolve(y, weight, None, stride, pad, (1,) * n, groups)
    bias = 0 if layer.bias is None else value(layer.bias).reshape(1, -1, *(1,) * n)
    left = ((got - bias) * y).sum()
    assert left == pytest.approx((x * back[tuple(slice(s) for s in x.shape)]).sum(), rel=1e-4, abs=1e-3)


def test_convolution_with_channels_last(rng):
    x = floats(rng, 2, 5, 6, 3)
    layer = nn.Conv2D(4, 3, layout="NHWC", padding=1)
    got = run(layer, x)
    assert layer.weight.shape == (4, 3, 3, 3)
    weight = value(layer.weight).transpose(0, 3, 1, 2)
    expected = convolve(x.transpose(0, 3, 1, 2), weight, value(layer.bias), (1, 1), (1, 1), (1, 1), 1)
    np.testing.assert_allclose(got, expected.transpose(0, 2, 3, 1), rtol=1e-4, atol=1e-5)


# -- pooling --------------------------------------------------------------------------------------------------------


def pool(x, kernel, stride, pad, ceil, how, count_pad=True):
    n = len(kernel)
    sizes = []
    for i in range(n):
        span = x.shape[2 + i] + 2 * pad[i] - kernel[i]
        sizes.append((math.ceil(span / stride[i]) if ceil else span // stride[i]) + 1)
    out = np.zeros((*x.shape[:2], *sizes))
    for position in itertools.product(*map(range, sizes)):
        window, full = [slice(None), slice(None)], 1
        for i, p in enumerate(position):
            begin = p * stride[i] - pad[i]
            end = min(begin + kernel[i], x.shape[2 + i] + pad[i])
            full *= end - begin
            window.append(slice(max(begin, 0), min(end, x.shape[2 + i])))
        part = x[tuple(window)].astype("float64")
        axes = tuple(range(2, 2 + n))
        if how == "max":
            out[(slice(None), slice(None), *position)] = part.max(axes)
        else:
            count = full if count_pad else math.prod(part.shape[2:])
            out[(slice(None), slice(None), *position)] = part.sum(axes) / count
    return out


POOLINGS = [
    ("1D", (9,), {"pool_size": 3}),
    ("1D", (9,), {"pool_size": 2, "strides": 1, "padding": 1}),
    ("2D", (7, 8), {}),
    ("2D", (7, 8), {"pool_size": 3, "strides": 2}),
    ("2D", (7, 8), {"pool_size": 3, "strides": 2, "ceil_mode": True}),
    ("2D", (7, 8), {"pool_size": (3, 2), "strides": (2, 1), "padding": (1, 1)}),
    ("3D", (4, 5, 6), {"pool_size": 2, "strides": 2}),
]


@pytest.mark.parametrize(("rank", "size", "settings"), POOLINGS)
@pytest.mark.parametrize("how", ["Max", "Avg", "AvgWithoutPad"])
def test_poolings(rank, size, settings, how, rng):
    x = floats(rng, 2, 3, *size)
    extra = {"count_include_pad": False} if how == "AvgWithoutPad" else {}
    layer = getattr(nn, how[:3] + "Pool" + rank)(**settings, **extra)
    n = len(size)
    kernel = _triple(settings.get("pool_size", 2), n)
    stride = _triple(settings.get("strides", kernel), n)
    pad = _triple(settings.get("padding", 0), n)
    expected = pool(x, kernel, stride, pad, settings.get("ceil_mode", False), how[:3].lower(), not extra)
    np.testing.assert_allclose(run(layer, x), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("rank", "size"), [("1D", (9,)), ("2D", (5, 6)), ("3D", (2, 3, 4))])
def test_global_poolings(rank, size, rng):
    x = floats(rng, 2, 3, *size)
    axes = tuple(range(2, 2 + len(size)))
    np.testing.assert_allclose(run(getattr(nn, "GlobalAvgPool" + rank)(), x), x.mean(axes, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(run(getattr(nn, "GlobalMaxPool" + rank)(), x), x.max(axes, keepdims=True))


def test_reflection_padding(rng):
    x = floats(rng, 1, 2, 4, 5)
    expected = np.pad(x, [(0, 0), (0, 0), (2, 2), (2, 2)], "reflect")
    np.testing.assert_array_equal(run(nn.ReflectionPad2D(2), x), expected)


# -- normalization --------------------------------------------------------------------------------------------------


def normalize(x, axes, eps):
    x = x.astype("float64")
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(var + eps), mean, var


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("hybridize", [False, True])
def test_batch_norm_uses_the_batch_in_training_and_running_values_otherwise(axis, hybridize, rng):
    layer = nn.BatchNorm(axis=axis, momentum=0.8, epsilon=1e-3)
    layer.initialize(mx.init.Uniform(1))
    layer.hybridize(hybridize)
    shape = (6, 3, 5)
    channel = axis % 3
    axes = tuple(i for i in range(3) if i != channel)
    aligned = [1, 1, 1]
    aligned[channel] = shape[channel]
    mean, var = np.zeros(shape[channel]), np.ones(shape[channel])
    for _ in range(3):
        x = floats(rng, *shape) * 2 + 1
        with autograd.record():
            got = layer(mx.nd.array(x))
        wanted, batch_mean, batch_var = normalize(x, axes, 1e-3)
        gamma, beta = value(layer.gamma).reshape(aligned), value(layer.beta).reshape(aligned)
        np.testing.assert_allclose(got.asnumpy(), wanted * gamma + beta, rtol=1e-3, atol=1e-4)
        mean = 0.8 * mean + 0.2 * batch_mean.ravel()
        var = 0.8 * var + 0.2 * batch_var.ravel()
        np.testing.assert_allclose(layer.running_mean.data().asnumpy(), mean, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(layer.running_var.data().asnumpy(), var, rtol=1e-3)
    x = floats(rng, *shape)
    got = layer(mx.nd.array(x)).asnumpy()
    expected = (x - mean.reshape(aligned)) / np.sqrt(var.reshape(aligned) + 1e-3) * gamma + beta
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)


def test_batch_norm_options(rng):
    x = floats(rng, 4, 3, 2)
    fixed = nn.BatchNorm(scale=False, center=False, in_channels=3)
    fixed.initialize()
    assert fixed.gamma.grad_req == "null"
    assert fixed.beta.grad_req == "null"
    fixed.gamma.set_data(mx.nd.array([5, 5, 5]))
    np.testing.assert_allclose(run(fixed, x), x / np.sqrt(1 + 1e-5), rtol=1e-5)
    frozen = nn.BatchNorm(use_global_stats=True, in_channels=3)
    frozen.initialize()
    np.testing.assert_allclose(run(frozen, x, train=True), x / np.sqrt(1 + 1e-5), rtol=1e-5)
    assert (frozen.running_mean.data().asnumpy() == 0).all()
    relu = nn.BatchNormReLU(in_channels=3)
    relu.initialize()
    np.testing.assert_allclose(run(relu, x), np.maximum(x, 0) / np.sqrt(1 + 1e-5), rtol=1e-5)
    fixed.cast("float16")
    assert fixed.gamma.data().dtype == np.float32


@pytest.mark.parametrize("make", [lambda: nn.SyncBatchNorm(), lambda: mx.gluon.contrib.nn.SyncBatchNorm(num_devices=1)])
def test_sync_batch_norm_is_batch_norm_on_one_device(make, rng):
    x = floats(rng, 4, 3, 2)
    layer = make()
    layer.initialize()
    with autograd.train_mode():
        got = layer(mx.nd.array(x)).asnumpy()
    np.testing.assert_allclose(got, normalize(x, (0, 2), 1e-5)[0], rtol=1e-3, atol=1e-4)


def test_layer_norm(rng):
    x = floats(rng, 3, 4, 5)
    for axis in (-1, 1):
        layer = nn.LayerNorm(axis=axis, epsilon=1e-4, gamma_initializer=mx.init.Uniform(1))
        got = run(layer, x)
        aligned = (1, 1, 5) if axis == -1 else (1, 4, 1)
        expected = normalize(x, axis, 1e-4)[0] * value(layer.gamma).reshape(aligned) + value(layer.beta).reshape(
            aligned
        )
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-5)


def test_instance_norm(rng):
    x = floats(rng, 3, 4, 5, 2)
    layer = nn.InstanceNorm(scale=True, epsilon=1e-4, gamma_initializer=mx.init.Uniform(1))
    got = run(layer, x)
    expected = normalize(x, (2, 3), 1e-4)[0] * value(layer.gamma).reshape(1, 4, 1, 1)
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-5)
    last = nn.InstanceNorm(axis=-1)
    np.testing.assert_allclose(run(last, x), normalize(x, (1, 2), 1e-5)[0], rtol=1e-3, atol=1e-4)


def test_group_norm(rng):
    x = floats(rng, 3, 6, 5)
    layer = nn.GroupNorm(num_groups=2, gamma_initializer=mx.init.Uniform(1))
    got = run(layer, x)
    expected = normalize(x.reshape(3, 2, 3, 5), (2, 3), 1e-5)[0]
    expected = expected * value(layer.gamma).reshape(1, 2, 1, 1) + value(layer.beta).reshape(1, 2, 1, 1)
    np.testing.assert_allclose(got, expected.reshape(x.shape), rtol=1e-3, atol=1e-5)


# -- pixel shuffles -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "factors", "size"),
    [("PixelShuffle1D", (3,), (4,)), ("PixelShuffle2D", (2, 3), (4, 5)), ("PixelShuffle3D", (2, 3, 4), (2, 3, 1))],
)
def test_pixel_shuffles_move_channels_into_positions(kind, factors, size, rng):
    n = len(factors)
    channels = 2
    x = floats(rng, 2, channels * math.prod(factors), *size)
    layer = getattr(mx.gluon.contrib.nn, kind)(factors if n > 1 else factors[0])
    split = x.reshape(2, channels, *factors, *size)
    order = [0, 1, *itertools.chain.from_iterable((2 + n + i, 2 + i) for i in range(n))]
    expected = split.transpose(order).reshape(2, channels, *(s * f for s, f in zip(size, factors, strict=True)))
    np.testing.assert_array_equal(run(layer, x), expected)


def test_layers_of_float64_compute_in_float64(rng):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(3, 3, activation="tanh"), nn.BatchNorm(), nn.Dense(2, activation="sigmoid"), nn.LayerNorm())
    net.cast("float64")
    x = rng.normal(size=(2, 2, 5, 5))
    assert run(net, x).dtype == np.float64


@pytest.mark.parametrize("mode", ["composed", "traced"])
def test_graphs_carry_the_initializer_of_prelu(mode):
    net = nn.PReLU()
    net.initialize()
    if mode == "composed":
        graph = net(mx.sym.var("data"))
    else:
        net.hybridize()
        net(mx.nd.ones((2, 3)))
        graph = net._cached_graph[1]
    (init,) = [a["__init__"] for a in graph.attr_dict().values() if "__init__" in a]
    module = mx.mod.Module(graph, label_names=None)
    module.bind([("data", (2, 3))], for_training=False)
    module.init_params(mx.init.Zero())
    (alpha,) = module.get_params()[0].values()
    assert mx.init.create(init) == mx.init.Constant(0.25)
    assert (alpha.asnumpy() == 0.25).all()


def test_pooling_takes_more_paddings_than_axes_if_they_are_equal(rng):
    x = mx.nd.array(rng.normal(size=(1, 2, 5, 6)))
    expected = mx.nd.Pooling(x, kernel=(3, 3), pad=(1, 1), pool_type="max")
    np.testing.assert_array_equal(
        mx.nd.Pooling(x, kernel=(3, 3), pad=(1, 1, 1, 1), pool_type="max").asnumpy(), expected.asnumpy()
    )
    with pytest.raises(mx.errors.ParamError, match=r"pad.*2 numbers"):
        mx.nd.Pooling(x, kernel=(3, 3), pad=(0, 1, 0, 1), pool_type="max")
    with pytest.raises(mx.errors.ParamError, match=r"pad.*at least 0"):
        mx.nd.Pooling(x, kernel=(3, 3), pad=(-1, -1, -1, -1), pool_type="max")
