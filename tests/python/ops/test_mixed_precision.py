"""Every operator behind a product in 16 bits gives the results of float32 on the rounded values, up to rounding.

Integers (positions, counts) are compared exactly: they must not be computed in 16 bits.
"""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core, autograd, nd
from hybridnet.errors import HybridNetError
from sweep import OPS, Use, assert_agrees, numpy_dtype, uses

LENGTH = 1000  # more integers than bfloat16 has, and float16 has


def _is_swept(op: dict[str, Any]) -> bool:
    return not (op["random"] or op["data_dependent_shape"] or op["subgraphs"]) and "float32" in op["dtypes"]


def _through_product(variable: Any, shape: tuple[int, ...]) -> Any:
    """The same value as the output of a product with 1."""
    column = mx.sym.reshape(variable, shape=(-1, 1))
    return mx.sym._internal._np_reshape(mx.sym.dot(column, mx.sym.ones((1, 1))), newshape=shape)


def _results(op: str, attrs: dict[str, Any], values: list[np.ndarray], precision: str) -> list[np.ndarray]:
    """The outputs of the operator on float inputs that a product gives."""
    variables = [mx.sym.var(f"x{i}", shape=v.shape, dtype=v.dtype) for i, v in enumerate(values)]
    inputs = [
        _through_product(variable, value.shape) if value.dtype == np.float32 and value.size else variable
        for variable, value in zip(variables, values, strict=True)
    ]
    function = _core.op_function(op, op, "test", symbolic=True)
    made = function(*inputs, **attrs)
    call = mx.function(variables, [made[i] for i in range(made.num_outputs)], precision=precision)
    with autograd.predict_mode():
        return [output.asnumpy() for output in call(*[nd.array(v, dtype=v.dtype) for v in values])]


def _rounded(value: np.ndarray, dtype: str) -> np.ndarray:
    return value.astype(numpy_dtype(dtype)).astype("float32") if value.dtype == np.float32 else value


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("use", uses(_is_swept), ids=str)
def test_results_are_those_of_float32_up_to_rounding(use: Use, dtype: str) -> None:
    values = [_rounded(value, dtype) for value in use.inputs()]
    try:
        wanted = _results(use.op, use.attrs, values, "float32")
    except HybridNetError as error:
        pytest.skip(f"not behind a product: {str(error)[:80]}")
    for got, expected in zip(_results(use.op, use.attrs, values, dtype), wanted, strict=True):
        assert got.dtype == expected.dtype
        assert_agrees(got, expected, dtype, f"{use} {dtype}")


def _takes_one_row(name: str) -> bool:
    op = OPS[name]
    return _is_swept(op) and not op["internal"] and len(op["inputs"]) == 1 and not op["variadic"]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("op", [name for name in OPS if _takes_one_row(name)])
def test_integers_that_an_operator_makes_are_exact(op: str, dtype: str) -> None:
    row = np.arange(3 * LENGTH).reshape(3, LENGTH) % 7 == 3
    row[:, -1] = True
    values = [np.where(row, np.float32(1.5), np.float32(0.25)).astype("float32")]
    values[0][1, -3] = 2.5  # the largest element is far behind
    try:
        wanted = _results(op, {}, values, "float32")
    except HybridNetError:
        pytest.skip("it needs parameters or another input")
    for got, expected in zip(_results(op, {}, values, dtype), wanted, strict=True):
        if expected.dtype.kind == "f" and np.isfinite(expected).all() and (expected == np.rint(expected)).all():
            np.testing.assert_array_equal(got, expected)
