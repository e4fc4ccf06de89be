"""Every function of mx.np in the tables of numpy_cases.py, compared with NumPy in every mode of calls."""

from __future__ import annotations

import hybridnet as mx
import numpy as onp
import pytest
from linalg_cases import CASES as LINALG_CASES
from manipulation_cases import CASES as MANIPULATION_CASES
from numpy_cases import CASES as ARRAY_CASES
from numpy_cases import Case
from numpy_sweep import (
    Calling,
    arrays_of,
    as_list,
    assert_same,
    heads_for,
    hybridized,
    numeric_gradients,
    weighted,
    wide,
)

CASES = [*ARRAY_CASES, *LINALG_CASES, *MANIPULATION_CASES]
SWEPT = [(case, dtype) for case in CASES for dtype in case.dtypes]
DIFFERENTIATED = [case for case in CASES if case.smooth and "float64" in case.dtypes]


@pytest.fixture(params=[False, True], ids=["classic", "set_np"])
def switched(request: pytest.FixtureRequest):
    """Runs each test with and without npx.set_np(), on which NumPy's interface does not depend."""
    if request.param:
        mx.npx.set_np()
    yield
    mx.npx.reset_np()


@pytest.mark.parametrize("case, dtype", SWEPT, ids=lambda value: str(value))
def test_results_agree_with_numpy(case: Case, dtype: str, switched: None):
    values = case.inputs(dtype)
    with onp.errstate(all="ignore"):
        wanted = as_list(case.run(onp, [wide(v) for v in values]))
    results = as_list(case.run(mx.np, arrays_of(values)))
    assert len(results) == len(wanted)
    for result, want in zip(results, wanted, strict=True):
        want = onp.asarray(want)
        assert type(result) is mx.np.ndarray
        assert onp.dtype(result.dtype) == case.expected_dtype([dtype] * len(values), want)
        assert_same(result, want, dtype, f"{case} {dtype}")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_hybridized_results_are_those_of_arrays(case: Case, switched: None):
    values = arrays_of(case.inputs("float32" if "float32" in case.dtypes else case.dtypes[0]))
    block = hybridized(case)
    for compiled, run in zip(as_list(block(*values)), as_list(Calling(case)(*values)), strict=True):
        assert type(compiled) is mx.np.ndarray
        assert compiled.dtype == run.dtype and compiled.shape == run.shape
        onp.testing.assert_allclose(compiled.asnumpy(), run.asnumpy(), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("mode", ["imperative", "hybrid"])
@pytest.mark.parametrize("case", DIFFERENTIATED, ids=str)
def test_gradients_agree_with_central_differences(case: Case, mode: str):
    values = case.inputs("float64")
    heads = heads_for(as_list(case.run(onp, values)))
    arrays = arrays_of(values)
    for array in arrays:
        array.attach_grad()
    block = hybridized(case) if mode == "hybrid" else Calling(case)
    with mx.autograd.record():
        loss = weighted(as_list(block(*arrays)), heads)
    loss.backward()
    for array, want in zip(arrays, numeric_gradients(case, values, heads), strict=True):
        assert type(array.grad) is mx.np.ndarray
        onp.testing.assert_allclose(array.grad.asnumpy(), want, rtol=1e-6, atol=1e-6)
