"""A worker of :mod:`.samples`: runs samples of operators on the CPU and on the GPU and compares them."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import _core, autograd
from hybridnet.errors import EngineError, HybridNetError
from sweep import OPS, Use, in_dtype  # tests/python/ops

from . import stand_in
from .compare import Difference, compare

__all__ = ["falls_back", "jobs_of"]

CPU, GPU = mx.cpu(), mx.gpu(0)
IS_STAND_IN = os.environ.get("HYBRIDNET_CUDA_DRIVER") == "stand-in"
# Values of these are those of the memory that they get, or of another process.
UNDEFINED = {"_empty", "_npi_empty", "_npi_empty_like", "empty_like"}

# Their samples use 0 in a shape for an unchanged size; elsewhere () is a scalar.
CLASSIC_SHAPES = {"broadcast_to"}


def jobs_of(dtypes: tuple[str, ...], count: int) -> list[tuple[str, str]]:
    """Returns the jobs, an operator and a dtype each, by dtype. count: of so many operators, from all over the list."""
    names = [name for name, op in OPS.items() if op["samples"] and not op["subgraphs"] and name not in UNDEFINED]
    if count:
        names = names[:: max(1, len(names) // count)][:count]
    return [(name, dtype) for dtype in dtypes for name in names if dtype in OPS[name]["dtypes"]]


def falls_back(names: set[str]) -> list[str]:
    """Returns the operators that have no form for GPUs."""
    return sorted(name for name in names if not (OPS[name]["any_device"] or OPS[name]["composed"]))


def run_job(name: str, dtype: str) -> dict[str, Any]:
    """Compares all samples of an operator; the answer is the worst difference. end: this process cannot go on."""
    worst, end = Difference(), False
    for use in in_dtype(name, dtype):
        try:
            worst = _compare_use(use, dtype).worse(worst)
        except HybridNetError as error:
            text = " ".join(str(error).split())[:400]
            worst = Difference("WRONG", float("inf"), -1, f"sample {use.index}: {type(error).__name__}: {text}")
            end = isinstance(error, EngineError)  # after an error of a kernel the device refuses all work
            break
    if IS_STAND_IN and (found := stand_in.reports()):
        worst, end = Difference("WRONG", float("inf"), -1, " | ".join(found)), True
    values = {"kind": worst.kind, "relative": worst.relative, "ulps": worst.ulps, "note": worst.note}
    return {"op": name, "dtype": dtype, **values, **({"end": True} if end else {})}


def _compare_use(use: Use, dtype: str) -> Difference:
    try:
        inputs = use.inputs(dtype)
    except ValueError:
        return Difference()  # there is no integer within the sample's bounds
    with mx.util.np_shape(use.op not in CLASSIC_SHAPES):
        try:
            expected = run_on(CPU, use, inputs, dtype)
        except HybridNetError:
            return Difference()  # not for this dtype
        found = run_on(GPU, use, inputs, dtype)
    worst = Difference()
    for what, values in expected.items():
        for index, value in enumerate(values):
            difference = compare(found[what][index], value)
            if difference.kind == "WRONG":
                note = difference.note or f"differs by {difference.relative:.2g}, {difference.ulps} ulp"
                note = f"sample {use.index}, {what} {index}: {note}"
                difference = Difference("WRONG", difference.relative, difference.ulps, note)
            worst = difference.worse(worst)
    return worst


def run_on(ctx: mx.Context, use: Use, inputs: list[np.ndarray], dtype: str) -> dict[str, list[np.ndarray]]:
    """Runs a sample on a device: its outputs, its inputs afterwards, and for float32 the gradients of inputs."""
    op = use.described
    arrays = [mx.nd.array(value, ctx=ctx, dtype=value.dtype) for value in inputs]
    attrs = dict(use.attrs)
    if not arrays and any(field["name"] == "ctx" for field in op["fields"]):
        attrs["ctx"] = str(ctx)
    derived = use.differentiated() if dtype == "float32" and op["differentiable"] else []
    for index in derived:
        arrays[index].attach_grad()
    mx.random.seed(7)
    with ctx, autograd.record(train_mode=bool(op["train_sensitive"])) if derived else autograd.predict_mode():
        outputs = _call(use, arrays, attrs)
    result = {"output": [array.asnumpy() for array in outputs]}
    result["input"] = [array.asnumpy() for array in arrays]
    for array in outputs:
        if array.context != ctx:
            raise EngineError(f"an output is on {array.context}")
    if derived:
        result["gradient"] = _gradients(outputs, [arrays[index] for index in derived])
    return result


def _call(use: Use, arrays: list[mx.nd.NDArray], attrs: dict[str, Any]) -> list[mx.nd.NDArray]:
    function = _core.op_function(use.op, use.op, "hybridnet.ndarray", symbolic=False)
    if use.described["variadic"]:
        outputs = function(*arrays, **attrs)
    else:
        outputs = function(**dict(zip(use.use["inputs"], arrays, strict=True)), **attrs)
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def _gradients(outputs: list[mx.nd.NDArray], inputs: list[mx.nd.NDArray]) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    floating = [array for array in outputs if "float" in np.dtype(array.dtype).name]
    heads = [mx.nd.array(rng.random(array.shape), ctx=array.context, dtype=array.dtype) for array in floating]
    autograd.backward(floating, heads)
    return [array.grad.asnumpy() for array in inputs]


def main() -> None:
    """Answers one line of JSON for each line; what libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(run_job(*json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
