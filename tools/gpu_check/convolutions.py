"""Convolutions by cuDNN against those of our own kernel: values, equal bits in each run, and times."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import autograd

from .by_library import check_samples, check_tf32, compare, microseconds
from .outcome import Options, Outcome

__all__ = ["check_convolutions"]

GPU = mx.gpu(0)
# Differences relative to the largest magnitude: roundings of sums, and of a result in halves before and after the bias.
TOLERANCE = {"float32": 1e-5, "float64": 1e-13, "float16": 4e-3, "bfloat16": 3e-2}
OPERATORS = ("Convolution", "Deconvolution", "_conv_backward_data", "_conv_backward_weights")

# Data, weight, attributes; all have a bias.
Case = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]


def check_convolutions(options: Options) -> Outcome:
    """Compares all dtypes and kinds of convolutions with their gradients; the times on both sides are figures."""
    outcome = Outcome()
    library = mx.runtime.gpu_libraries()["cuDNN"]
    if not library[:1].isdigit():
        outcome.skipped = f"cuDNN: {library}"
        return outcome
    outcome.rows["library"] = library
    cases = _cases(options.size(56, 7), options.size(32, 4))
    worst = {dtype: max(_differences(dtype, cases, outcome)) for dtype in TOLERANCE}
    outcome.rows["largest difference"] = {dtype: float(f"{value:.3g}") for dtype, value in worst.items()}
    inputs = _inputs(cases["3x3"], "float32")
    check_tf32(lambda: _results(inputs, cases["3x3"]), outcome)
    check_samples("cuDNN", OPERATORS, outcome)
    outcome.line = "; ".join(f"{dtype} within {value:.2g}" for dtype, value in worst.items())
    if not options.stand_in:
        outcome.rows["us by our kernel, by cuDNN"] = times = _times()
        ours, theirs = times["float32 forward 56x56, 64 channels"]
        outcome.line += f"; float32 3x3 of 64 channels: {ours:.3g} us by our kernel, {theirs:.3g} us by cuDNN"
    return outcome


def _cases(size: int, channels: int) -> dict[str, Case]:
    c = channels
    square = (3, 3)
    return {
        "3x3": ((4, c, size, size), (2 * c, c, 3, 3), {"kernel": square, "pad": (1, 1)}),
        "1x1, stride": ((4, c, size, size), (2 * c, c, 1, 1), {"kernel": (1, 1), "stride": (2, 2)}),
        "groups, dilation": (
            (2, c, size, size - 1),
            (2 * c, c // 2, 3, 2),
            {"kernel": (3, 2), "num_group": 2, "dilate": (2, 1)},
        ),
        "one channel a group": ((2, c, size, size), (c, 1, 3, 3), {"kernel": square, "num_group": c, "pad": (1, 1)}),
        "channels last": ((2, size, size, c), (c, 3, 3, c), {"kernel": square, "pad": (1, 1), "layout": "NHWC"}),
        "1-D": ((4, c, size), (c, c, 3), {"kernel": (3,), "pad": (1,)}),
        "3-D": ((1, c, 7, 6, size), (c, c, 3, 3, 3), {"kernel": (3, 3, 3), "pad": (1, 0, 1), "stride": (1, 1, 2)}),
    }


def _differences(dtype: str, cases: dict[str, Case], outcome: Outcome) -> Iterator[float]:
    for name, case in cases.items():
        results = functools.partial(_results, _inputs(case, dtype), case)
        yield from compare("cuDNN", f"{dtype} {name}", results, TOLERANCE[dtype], outcome)


def _inputs(case: Case, dtype: str) -> list[mx.nd.NDArray]:
    random = np.random.default_rng(1)
    data, weight, _ = case
    return [mx.nd.array(random.standard_normal(shape), ctx=GPU, dtype=dtype) for shape in (data, weight, weight[:1])]


def _results(inputs: list[mx.nd.NDArray], case: Case) -> dict[str, np.ndarray]:
    """The output and the gradients."""
    for array in inputs:
        array.attach_grad()
    with autograd.record():
        output = mx.nd.Convolution(*inputs, num_filter=case[1][0], **case[2])
    output.backward(output)
    found = dict(zip(("output", "data", "weight", "bias"), (output, *(x.grad for x in inputs)), strict=True))
    return {name: array.astype("float64").asnumpy() for name, array in found.items()}


def _times() -> dict[str, tuple[float, float]]:
    found = {}
    for dtype in ("float32", "float16"):
        for size, channels in ((7, 8), (14, 16), (28, 32), (56, 64)):
            for name, call in _calls(size, channels, dtype).items():
                found[f"{dtype} {name} {size}x{size}, {channels} channels"] = microseconds(call, 20)
    return found


def _calls(size: int, channels: int, dtype: str) -> dict[str, Callable[[], Any]]:
    image = mx.nd.ones((8, channels, size, size), ctx=GPU, dtype=dtype)
    weight = mx.nd.ones((channels, channels, 3, 3), ctx=GPU, dtype=dtype)
    same = {"kernel": (3, 3), "pad": (1, 1), "num_filter": channels, "no_bias": True}
    gradient = {**same, "data_size": (size, size)}
    internal = mx.nd._internal
    return {
        "forward": lambda: mx.nd.Convolution(image, weight, **same),
        "data gradient": lambda: internal._conv_backward_data(image, weight, **gradient),
        "weight gradient": lambda: internal._conv_backward_weights(image, image, **gradient),
    }
