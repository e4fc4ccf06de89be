"""Helpers of the sweeps: run a case on arrays, as a hybridized block, and for central differences."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as onp
from numpy_cases import FLOATS, Case

TOLERANCE = {"float16": 2e-2, "float32": 2e-5, "float64": 1e-10}


def arrays_of(values: list[onp.ndarray]) -> list[Any]:
    return [mx.np.array(value, dtype=value.dtype) for value in values]


def as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (list, tuple)) else [result]


def wide(value: onp.ndarray) -> onp.ndarray:
    """Converts floats to float64, so that the reference has no rounding of its own."""
    return value.astype("float64") if value.dtype.name in FLOATS else value


def assert_same(got: Any, want: onp.ndarray, dtype: str, what: str) -> None:
    assert got.shape == onp.shape(want), f"{what}: shape {got.shape}, expected {onp.shape(want)}"
    actual = got.asnumpy()
    if actual.dtype.name not in FLOATS:
        onp.testing.assert_array_equal(actual, want, err_msg=what)
        return
    tolerance = TOLERANCE[min([dtype, actual.dtype.name], key=lambda d: FLOATS.index(d) if d in FLOATS else 9)]
    scale = float(onp.abs(want[onp.isfinite(want)]).max(initial=0)) if onp.size(want) else 0.0
    onp.testing.assert_allclose(
        actual.astype("float64"), want, rtol=tolerance, atol=tolerance * max(scale, 1e-3), err_msg=what
    )


class Calling(mx.gluon.HybridBlock):
    """A block that runs a case with the functions of mx.np."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case = case

    def forward(self, *arrays: Any) -> Any:
        return self.case.run(mx.np, list(arrays))


def hybridized(case: Case) -> Calling:
    block = Calling(case)
    block.initialize()
    block.hybridize()
    return block


def weighted(results: list[Any], heads: list[onp.ndarray]) -> Any:
    terms = [
        (result * mx.np.array(head, dtype="float64")).sum()
        for result, head in zip(results, heads, strict=True)
        if onp.dtype(result.dtype).name in FLOATS
    ]
    return sum(terms[1:], terms[0])


def heads_for(results: list[onp.ndarray]) -> list[onp.ndarray]:
    rng = onp.random.default_rng(3)
    return [rng.uniform(0.5, 1.5, onp.shape(result)) for result in results]


def numeric_gradients(case: Case, values: list[onp.ndarray], heads: list[onp.ndarray]) -> list[onp.ndarray]:
    """Central differences of the weighted sum of NumPy's results."""

    def loss() -> float:
        results = as_list(case.run(onp, values))
        return float(
            sum(onp.sum(r * h) for r, h in zip(results, heads, strict=True) if onp.asarray(r).dtype.kind == "f")
        )

    step = 1e-5
    gradients = []
    for value in values:
        gradient = onp.zeros(value.shape)
        for index in onp.ndindex(value.shape):
            before = value[index]
            value[index] = before + step
            above = loss()
            value[index] = before - step
            gradient[index] = (above - loss()) / (2 * step)
            value[index] = before
        gradients.append(gradient)
    return gradients
