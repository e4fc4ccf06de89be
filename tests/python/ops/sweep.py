"""Samples of the registry as NumPy inputs, and the results of the references."""

from __future__ import annotations

import importlib
import inspect
import pathlib
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
from hybridnet import _core

sys.path.insert(0, str(pathlib.Path(__file__).parent))

FLOATS = ("float16", "bfloat16", "float32", "float64")
# Tolerance by dtype, relative to the largest magnitude of a result.
TOLERANCE = {"float16": 1e-2, "bfloat16": 6e-2, "float32": 5e-5, "float64": 1e-7}
# The dtype codes of parameter files.
DTYPE_CODES = {"float32": 0, "float64": 1, "float16": 2, "uint8": 3, "int32": 4, "int8": 5, "int64": 6, "bool": 7}
DTYPE_CODES["bfloat16"] = 12
# Their parameters stay float32 with data of half precision.
FLOAT32_PARAMETERS = {"BatchNorm", "_contrib_SyncBatchNorm", "_contrib_BatchNormWithReLU", "_batch_norm_apply"}
# Their parameters are int8 and floats for every dtype of the data.
INT8_PARAMETERS = {
    "_contrib_quantized_conv",
    "_contrib_quantized_fully_connected",
    "_contrib_quantized_embedding",
    "_contrib_weight_only_fully_connected",
    "_contrib_weight_only_embedding",
    "_contrib_dynamic_quantized_fully_connected",
    "_fused_dynamic_quantized_fully_connected",
    "_fused_quantized_conv",
    "_fused_quantized_fully_connected",
    "_quantized_layer_conv",
    "_quantized_layer_conv_add",
    "_quantized_layer_dense",
}


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def load_references() -> dict[str, Callable[..., list[np.ndarray]]]:
    """Returns the references of all files in references/: operator name -> reference(inputs, attrs)."""
    found: dict[str, Callable[..., list[np.ndarray]]] = {}
    for path in sorted((pathlib.Path(__file__).parent / "references").glob("*.py")):
        if path.stem not in ("__init__", "attributes"):
            found.update(importlib.import_module(f"references.{path.stem}").REFERENCES)
    return found


REFERENCES = load_references()
OPS: dict[str, dict[str, Any]] = {name: _core.describe_op(name) for name, _, _ in _core.op_names()}
for _runs_python_code in ("Custom", "_backward_Custom", "_subgraph"):  # tests/python/operator, rewrite/test_partition
    del OPS[_runs_python_code]


@dataclass(frozen=True)
class Use:
    """One sample of one operator; `dtype`, if given, replaces the dtype that the sample names."""

    op: str
    index: int
    dtype: str = ""

    def __str__(self) -> str:
        return f"{self.op}-{self.index}"

    @property
    def described(self) -> dict[str, Any]:
        return OPS[self.op]

    @property
    def sample(self) -> dict[str, Any]:
        return self.described["samples"][self.index]

    @property
    def attrs(self) -> dict[str, str]:
        """Attributes of the sample; without inputs, the parameter `dtype` (a name or a code) sets the dtype."""
        if not self.dtype or not self.generates:
            return self.sample["attrs"]
        kind = next(field["kind"] for field in self.described["fields"] if field["name"] == "dtype")
        return {**self.sample["attrs"], "dtype": str(DTYPE_CODES[self.dtype]) if kind == "int" else self.dtype}

    @property
    def generates(self) -> bool:
        return not self.sample["shapes"] and any(field["name"] == "dtype" for field in self.described["fields"])

    @cached_property
    def use(self) -> dict[str, Any]:
        count = self.described["count_param"]
        implied = {count: len(self.sample["shapes"])} if count else {}
        use = _core.describe_use(self.op, {**implied, **self.attrs})
        if self.described["variadic"]:
            use["inputs"] = [f"arg{i}" for i in range(len(self.sample["shapes"]))]
        return use

    def dtypes(self, swept: str) -> list[str]:
        given = self.sample["dtypes"]
        if self.dtype and self.fixes_dtypes:
            given = [self.dtype if name == given[0] else name for name in given]
            if self.op in INT8_PARAMETERS:
                given[1:] = self.sample["dtypes"][1:]
        if self.op in FLOAT32_PARAMETERS and swept in ("float16", "bfloat16"):
            given = [None, "float32", "float32", "float32", "float32"]
        return [(given[i] if i < len(given) else None) or swept for i in range(len(self.sample["shapes"]))]

    @property
    def fixes_dtypes(self) -> bool:
        """True if the sample names the dtype of every input; kernels are declared for the dtype of the first."""
        given, shapes = self.sample["dtypes"], self.sample["shapes"]
        return bool(shapes) and len(given) == len(shapes) and None not in given

    def runs_in(self, dtype: str) -> bool:
        """False if no value of the dtype is within the sample's bounds, or the sample has no input of that dtype."""
        if not self.sample["shapes"] and not self.generates:
            return dtype == self.described["dtypes"][0]
        if dtype == "bool":
            return self.sample["low"] <= 1 <= self.sample["high"]
        return True

    def inputs(self, swept: str = "float32", shapes: Any = None) -> list[np.ndarray]:
        """Draws input values as the sample declares them; the same in every call."""
        rng = np.random.default_rng(zlib.crc32(str(self).encode()))
        low, high = self.sample["low"], self.sample["high"]
        values = []
        for shape, name in zip(shapes or self.sample["shapes"], self.dtypes(swept), strict=True):
            if name == "bool":
                values.append(rng.random(shape) < (0.5 if low <= 0 else 1))
            elif self.sample["integer_valued"] or name not in FLOATS:
                least = max(low, 0) if name.startswith("uint") else low
                values.append(
                    rng.integers(int(np.ceil(least)), int(np.floor(high)) + 1, shape).astype(numpy_dtype(name))
                )
            else:
                values.append(rng.uniform(low, high, shape).astype(numpy_dtype(name)))
        return values

    def differentiated(self) -> list[int]:
        """The inputs whose gradients are checked."""
        named = self.described["inputs"]
        auxiliary = (
            {i for i, item in enumerate(named) if item["auxiliary"]} if not self.described["variadic"] else set()
        )
        return [i for i, name in enumerate(self.dtypes("float64")) if name in FLOATS and i not in auxiliary]

    def gradient_dtype(self) -> str:
        return "float64" if "float64" in self.described["dtypes"] else "float32"


def uses(select: Callable[[dict[str, Any]], bool] = lambda op: True) -> list[Use]:
    return [Use(name, i) for name, op in OPS.items() if select(op) for i in range(len(op["samples"]))]


def in_dtype(op: str, dtype: str) -> list[Use]:
    """The samples of an operator that can be run in a declared dtype."""
    return [use for i in range(len(OPS[op]["samples"])) if (use := Use(op, i, dtype)).runs_in(dtype)]


def wide(value: np.ndarray) -> np.ndarray:
    """Converts floating values to float64 and leaves integers unchanged."""
    return value.astype("float64") if value.dtype.name in FLOATS else value


def reference_outputs(use: Use, inputs: list[np.ndarray], train: bool = False) -> list[np.ndarray | None]:
    """Outputs of the reference for inputs in float64, which keeps its own rounding small. None: not compared."""
    reference = REFERENCES[use.op]
    mode = {"train": train} if "train" in inspect.signature(reference).parameters else {}
    outputs = reference([wide(value) for value in inputs], dict(use.attrs), **mode)
    return [None if output is None else np.asarray(output) for output in outputs]


def assert_agrees(actual: np.ndarray, expected: np.ndarray, dtype: str, what: str) -> None:
    """Checks that shapes are equal and values agree within the tolerance of the dtype."""
    assert tuple(actual.shape) == tuple(expected.shape), f"{what}: expected shape {expected.shape}, got {actual.shape}"
    if actual.dtype.name not in FLOATS:
        np.testing.assert_array_equal(actual, expected.astype(actual.dtype), err_msg=what)
        return
    got, want = actual.astype("float64"), np.asarray(expected).astype("float64")
    with np.errstate(over="ignore"):
        want = want.astype(actual.dtype).astype("float64") if actual.dtype.name == "float16" else want
    tolerance = TOLERANCE[dtype if dtype in FLOATS else "float32"]
    finite = np.abs(want[np.isfinite(want)])
    scale = float(finite.max(initial=0.0))
    np.testing.assert_allclose(
        got, want, rtol=tolerance, atol=tolerance * max(scale, 1e-3), equal_nan=True, err_msg=what
    )
