"""Products of bytes are exact sums with every instruction set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import hybridnet as mx
import numpy as np
import pytest

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


@pytest.mark.parametrize("isa", ["sse4", "avx2", "avx512"])
def test_sums_are_exact_on_smaller_instruction_sets(isa):
    if "HYBRIDNET_MAX_ISA" in os.environ:
        pytest.skip("this run has a cap of its own")
    env = {**os.environ, "HYBRIDNET_MAX_ISA": isa}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(Path(__file__))]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
