"""Products of bytes are exact sums with every instruction set."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from smaller_isas import ISAS, run_again

CASES = {  # batch, channels, size, outputs, kernel, stride, pad, groups
    "3x3 deep": (1, 512, 5, 32, 3, 1, 1, 1),
    "1x1 deep": (2, 1200, 4, 20, 1, 1, 0, 1),
    "7x7 images": (1, 3, 17, 24, 7, 2, 3, 1),
    "depthwise": (2, 32, 9, 32, 3, 1, 1, 32),
    "groups": (1, 24, 9, 36, 3, 2, 1, 3),
    "odd": (3, 5, 7, 7, 3, 1, 0, 1),
    "one pixel": (4, 2048, 1, 40, 1, 1, 0, 1),
}


def _bytes(rng, shape, kind, extreme):
    """Draws bytes; `extreme` ones are near the maximum, where sums of two products exceed 16 bits."""
    if not extreme:
        return rng.integers(-128 if kind == "int8" else 0, 128 if kind == "int8" else 256, shape).astype(kind)
    return ((127 if kind == "int8" else 255) - rng.integers(0, 3, shape)).astype(kind)


def _expected(x, w, stride, pad, groups):
    wide = np.pad(x.astype("int64"), [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    windows = np.lib.stride_tricks.sliding_window_view(wide, w.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    parts = [
        np.einsum("nchwij,ocij->nohw", data, weight.astype("int64"), optimize=True)
        for data, weight in zip(np.split(windows, groups, 1), np.split(w, groups, 0), strict=True)
    ]
    return np.concatenate(parts, 1)


@pytest.mark.parametrize("mode", ["imperative", "hybrid"])
@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("case", CASES)
def test_convolution_gives_the_exact_sums(case, kind, extreme, mode, rng):
    n, c, size, o, kernel, stride, pad, groups = CASES[case]
    x = _bytes(rng, (n, c, size, size), kind, extreme)
    w = _bytes(rng, (o, c // groups, kernel, kernel), "int8", extreme)
    attrs = {
        "kernel": (kernel, kernel),
        "stride": (stride, stride),
        "pad": (pad, pad),
        "num_filter": o,
        "num_group": groups,
        "no_bias": True,
    }
    names = ("data", "weight", "min_data", "max_data", "min_weight", "max_weight")
    arrays = [mx.nd.array(x, dtype=kind), mx.nd.array(w, dtype="int8")]
    arrays += [mx.nd.array([end]) for end in (-1.0, 1.0, -2.0, 2.0)]
    if mode == "imperative":
        out = mx.nd.contrib.quantized_conv(**dict(zip(names, arrays, strict=True)), **attrs)[0]
    else:
        symbol = mx.sym.contrib.quantized_conv(**{name: mx.sym.var(name) for name in names}, **attrs)
        out = symbol.bind(mx.cpu(), dict(zip(names, arrays, strict=True))).forward()[0]
    np.testing.assert_array_equal(out.asnumpy(), _expected(x, w, stride, pad, groups))


@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("rows", [1, 17])
def test_fully_connected_gives_the_exact_sums(rows, kind, extreme, rng):
    x, w = _bytes(rng, (rows, 2048), kind, extreme), _bytes(rng, (33, 2048), "int8", extreme)
    ends = [mx.nd.array([end]) for end in (-1.0, 1.0, -2.0, 2.0)]
    out, low, high = mx.nd.contrib.quantized_fully_connected(
        mx.nd.array(x, dtype=kind), mx.nd.array(w, dtype="int8"), None, *ends, num_hidden=33, no_bias=True
    )
    np.testing.assert_array_equal(out.asnumpy(), x.astype("int64") @ w.astype("int64").T)
    reach = np.float32(1 / (127 if kind == "int8" else 255)) * np.float32(2 / 127) * np.float32(2**31)
    np.testing.assert_allclose([low.asscalar(), high.asscalar()], [-reach, reach], rtol=1e-6)


def _dense(mx_or_sym, data, weight, bias, ends, hidden):
    return mx_or_sym.contrib.quantized_fully_connected(
        data, weight, bias, *ends, num_hidden=hidden, no_bias=bias is None, flatten=False
    )[0]


class _Dense(mx.gluon.HybridBlock):
    """One product of bytes, with weights that prediction packs once."""

    def __init__(self, w, bias=None):
        super().__init__()
        self.hidden = len(w)
        self.weight = self.params.get_constant("weight", mx.nd.array(w, dtype="int8"))
        self.bias = None if bias is None else self.params.get_constant("bias", mx.nd.array(bias, dtype="int8"))

    def hybrid_forward(self, F, data, low, high, weight, bias=None):
        ends = [low, high] * (2 if bias is None else 3)
        return _dense(F, data, weight, bias, ends, self.hidden)


# The deep ones exceed what float32 holds exactly; the wide ones have incomplete blocks of columns.
SIZES = [(1, 768, 80), (3, 513, 65), (8, 3072, 33), (13, 31, 1), (70, 1030, 129)]


@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("size", SIZES)
def test_packed_weights_give_the_exact_sums(size, kind, extreme, rng):
    rows, depth, hidden = size
    x, w = _bytes(rng, (rows, depth), kind, extreme), _bytes(rng, (hidden, depth), "int8", extreme)
    net = _Dense(w)
    net.initialize()
    net.hybridize()
    ends = [mx.nd.array([end]) for end in (-1.0, 1.0)]
    for _ in range(2):  # the second call reads the kept copy
        out = net(mx.nd.array(x, dtype=kind), *ends)
        np.testing.assert_array_equal(out.asnumpy(), x.astype("int64") @ w.astype("int64").T)
    np.testing.assert_array_equal(net.weight.data().asnumpy(), w)


@pytest.mark.parametrize("rows", [1, 8])
def test_a_written_weight_is_packed_again(rows, rng):
    x, w = _bytes(rng, (rows, 256), "int8", False), _bytes(rng, (64, 256), "int8", False)
    net = _Dense(w)
    net.initialize()
    net.hybridize()
    data, ends = mx.nd.array(x, dtype="int8"), [mx.nd.array([end]) for end in (-1.0, 1.0)]
    net(data, *ends).wait_to_read()
    other = _bytes(rng, w.shape, "int8", False)
    net.weight.data()[:] = mx.nd.array(other, dtype="int8")
    np.testing.assert_array_equal(net(data, *ends).asnumpy(), x.astype("int64") @ other.astype("int64").T)


def test_a_bias_of_bytes_is_added_to_the_sums(rng):
    x, w, b = (_bytes(rng, shape, "int8", False) for shape in ((8, 600), (70, 600), (70,)))
    net = _Dense(w, b)
    net.initialize()
    net.hybridize()
    out = net(mx.nd.array(x, dtype="int8"), mx.nd.array([-1.0]), mx.nd.array([1.0])).asnumpy()
    # Ranges of dense layers have 127.5 steps: a step of the bias is 127.5 steps of the sums, cut to integers.
    steps = np.trunc(b.astype("float32") * np.float32(127.5)).astype("int64")
    np.testing.assert_array_equal(out, x.astype("int64") @ w.astype("int64").T + steps)


def test_sizes_of_zero_give_empty_or_zero_sums():
    ends = [mx.nd.array([end]) for end in (-1.0, 1.0, -1.0, 1.0)]
    none = _dense(mx.nd, mx.nd.zeros((0, 5), dtype="int8"), mx.nd.ones((3, 5), dtype="int8"), None, ends, 3)
    assert none.shape == (0, 3)
    out = _dense(mx.nd, mx.nd.zeros((2, 0), dtype="int8"), mx.nd.ones((3, 0), dtype="int8"), None, ends, 3)
    np.testing.assert_array_equal(out.asnumpy(), np.zeros((2, 3), "int32"))


@pytest.mark.parametrize("isa", ISAS)
def test_sums_are_exact_on_smaller_instruction_sets(isa):
    run_again(__file__, isa)
