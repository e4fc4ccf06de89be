"""Runs the samples of an operator on the CPU and on gpu(0): values, written states and gradients."""

from __future__ import annotations

import functools
import pathlib
import sys
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops"))
sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "tools"))

import gpu_operators
import hybridnet as mx
import numpy as np
from hybridnet import autograd
from hybridnet.errors import HybridNetError
from sweep import FLOATS, OPS, Use, in_dtype

# Relative to the largest magnitude of a result; other dtypes have equal bits.
TOLERANCE = {"float32": 2e-6, "float64": 1e-13}
# Sparse arrays stay on the CPU (docs/gpu.md).
SPARSE = {"_with_values"}


def names() -> list[str]:
    """The operators that have samples, run without code of the user and return dense arrays."""
    return [name for name, op in OPS.items() if op["samples"] and not op["subgraphs"] and name not in SPARSE]


def kind_of(name: str) -> str:
    """'composed', 'device' or 'CPU with copies'."""
    if OPS[name]["composed"]:
        return "composed"
    return "device" if OPS[name]["any_device"] else "CPU with copies"


def difference(value: np.ndarray, expected: np.ndarray) -> float:
    """0.0 for equal bits, else the largest difference relative to the largest magnitude; infinity if kinds differ."""
    assert value.shape == expected.shape
    assert value.dtype == expected.dtype
    if value.tobytes() == expected.tobytes():
        return 0.0
    if value.dtype.name not in FLOATS:
        return float("inf")
    got, want = value.astype("float64"), expected.astype("float64")
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    if not (np.isfinite(got[~same]).all() and np.isfinite(want[~same]).all()):
        return float("inf")
    scale = max(float(np.abs(want[np.isfinite(want)]).max(initial=0)), 1e-30)
    return float(np.abs(got - want)[~same].max(initial=0)) / scale


class Run:
    """One sample on one device."""

    def __init__(self, use: Use, ctx: mx.Context, dtype: str) -> None:
        self.use, self.ctx, self.name = use, ctx, use.op
        self.arrays = [mx.nd.array(value, dtype=value.dtype, ctx=ctx) for value in use.inputs(dtype)]
        self.attrs = dict(use.attrs)
        if not self.arrays and any(field["name"] == "ctx" for field in OPS[self.name]["fields"]):
            self.attrs["ctx"] = str(ctx)

    def call(self) -> list[mx.nd.NDArray]:
        function = getattr(mx.nd, self.name, None) or getattr(mx.nd._internal, self.name)
        out = function(*self.arrays, **self.attrs)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    def values(self, train: bool) -> list[np.ndarray]:
        mx.random.seed(7)
        with autograd.train_mode() if train else autograd.predict_mode():
            out = self.call()
        for array in out if self.arrays or "ctx" in self.attrs else ():
            assert self.ctx.device_type == "cpu" or array.context == self.ctx, (
                f"{self.name} gave an array on {array.context}"
            )
        return [array.asnumpy() for array in out + self.arrays]

    def gradients(self) -> list[np.ndarray]:
        wanted = [self.arrays[i] for i in self.use.differentiated()]
        for array in wanted:
            array.attach_grad()
        mx.random.seed(7)
        with autograd.record():
            out = [array for array in self.call() if array.dtype in (np.float32, np.float64)]
        rng = np.random.default_rng(1)
        heads = [mx.nd.array(rng.uniform(0.5, 1.5, array.shape), dtype=array.dtype, ctx=self.ctx) for array in out]
        if not wanted or not out:
            return []
        autograd.backward(out, heads)
        return [array.grad.asnumpy() for array in wanted]


def runs_on_cpu(use: Use, dtype: str) -> bool:
    """False for dtypes that a composed operator or the bounds of a sample do not allow, and for sparse results."""
    low, high = use.sample["low"], use.sample["high"]
    if dtype not in FLOATS and int(np.ceil(max(low, 0) if dtype == "uint8" else low)) > int(np.floor(high)):
        return False
    try:
        return all(array.stype == "default" for array in Run(use, mx.cpu(), dtype).call())
    except HybridNetError:
        return False


def uses_by_dtype(name: str) -> dict[str, list[Use]]:
    """The samples that run in float32 and in float64; for an operator that has neither, those of every other dtype."""
    uses = {dtype: [use for use in in_dtype(name, dtype) if runs_on_cpu(use, dtype)] for dtype in OPS[name]["dtypes"]}
    uses = {dtype: samples for dtype, samples in uses.items() if samples}
    return {dtype: samples for dtype, samples in uses.items() if dtype in TOLERANCE} or uses


def has_gradient(use: Use, dtype: str) -> bool:
    """True if the gradients of a sample can be compared."""
    op = OPS[use.op]
    differentiable = op["differentiable"] and not op["stops_gradient"] and use.sample["check_gradient"]
    return bool(differentiable and dtype in TOLERANCE)


def worst(name: str) -> dict[str, Any]:
    """The largest difference of values and of gradients, by dtype."""
    found: dict[str, Any] = {}
    op = OPS[name]
    for dtype, uses in uses_by_dtype(name).items():
        value = gradient = 0.0
        for use in uses:
            for train in (False, True) if op["train_sensitive"] else (False,):
                pairs = zip(
                    Run(use, mx.gpu(0), dtype).values(train), Run(use, mx.cpu(), dtype).values(train), strict=True
                )
                value = max([value, *(difference(got, want) for got, want in pairs)])
            if has_gradient(use, dtype):
                pairs = zip(Run(use, mx.gpu(0), dtype).gradients(), Run(use, mx.cpu(), dtype).gradients(), strict=True)
                gradient = max([gradient, *(difference(got, want) for got, want in pairs)])
        found[dtype] = (value, gradient)
    return found


@functools.cache
def names_with_same_bits() -> set[str]:
    """The operators of docs/gpu-operators.md that have no difference at all."""
    return {row.name for row in gpu_operators.read_rows() if row.kind == gpu_operators.SAME}


def check(name: str) -> None:
    found = worst(name)
    assert found, f"no sample of {name} was compared"
    for dtype, differences in found.items():
        allowed = 0.0 if name in names_with_same_bits() else TOLERANCE.get(dtype, 0.0)
        for what, apart in zip(("values", "gradients"), differences, strict=True):
            assert apart <= allowed, f"{name}, {what} in {dtype}: {apart:.3g} apart, {allowed} allowed"


def fallbacks() -> list[str]:
    """The operators that users can call and that run on the CPU, with copies."""
    public = {name for name, op in OPS.items() if not op["internal"]}
    return sorted(name for name in public if kind_of(name) == "CPU with copies" and not OPS[name]["subgraphs"])


if __name__ == "__main__":
    for operator in sys.argv[1:] or names():
        print(operator, kind_of(operator), worst(operator), flush=True)
