"""Every differentiable operator, with its result written over one of its inputs while recording.

The gradients equal those of the same call into a new array; if a needed value is lost, the error names both lines.
"""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.errors import GradientError
from sweep import OPS, Use, assert_agrees, uses
from test_sweep import CLASSIC_SHAPES, arrays_of, call, differentiable


@pytest.fixture(autouse=True)
def numpy_shapes(request: pytest.FixtureRequest):
    with mx.util.np_shape(request.node.callspec.params["name"] not in CLASSIC_SHAPES):
        yield


def gradients(use: Use, values: list[np.ndarray], over: int | None) -> list[np.ndarray]:
    """Returns gradients of the weighted sum of the first output, written over input `over`, and the output itself."""
    mx.random.seed(3)
    leaves = arrays_of(values)
    wanted = use.differentiated()
    for i in wanted:
        leaves[i].attach_grad()
    with mx.autograd.record(train_mode=True):
        arrays: list[Any] = [leaf * 1 if i in wanted else leaf for i, leaf in enumerate(leaves)]
        result = call(use, arrays, **({} if over is None else {"out": arrays[over]}))[0]
        weights = np.random.default_rng(5).normal(size=result.shape).astype(result.dtype)
        total = (result * mx.nd.array(weights, dtype=weights.dtype)).sum()
        total = total + sum(leaves[i].sum().astype(total.dtype) * 0 for i in wanted)  # depends on all inputs
    total.backward()
    return [leaves[i].grad.asnumpy() for i in wanted] + [result.asnumpy()]


def places(use: Use, values: list[np.ndarray]) -> list[int]:
    """The inputs over which the first output, if it is the only visible one, may be written."""
    counted = use.attrs.get(use.described["count_param"] or "")
    if counted is not None and int(counted) != len(values):  # for files only: Python counts the arguments
        return []
    result = call(use, arrays_of(values))
    if len(result) != 1 or use.described["random"]:
        return []
    return [
        i for i in use.differentiated() if values[i].shape == result[0].shape and values[i].dtype == result[0].dtype
    ]


@pytest.mark.parametrize("name", sorted({use.op for use in uses(differentiable)}))
def test_gradients_are_those_of_the_values_read(name: str) -> None:
    for index in range(len(OPS[name]["samples"])):
        use = Use(name, index)
        dtype = use.gradient_dtype()
        values = use.inputs(dtype)
        if not use.differentiated():
            continue
        for over in places(use, values):
            want = gradients(use, values, None)
            try:
                got = gradients(use, values, over)
            except GradientError as error:
                assert "recorded at" in str(error) and "overwritten at" in str(error)
                pytest.fail(f"{use} over input {over}: {error}")
            for i, (g, w) in enumerate(zip(got, want, strict=True)):
                assert_agrees(g, w, dtype, f"{use} over input {over}: gradient {i}")
