"""Results have the dtypes of MXNet 1.9.1, for every operator and many expressions.

The table (tests/fixtures/dtypes) was written by tools/record_mxnet_dtypes.py, which says how.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from dtype_expressions import OF_ONE_ARRAY, OF_TWO_ARRAYS, VALUES
from hybridnet import errors
from sweep import Use
from test_sweep import CLASSIC_SHAPES, call

ROOT = Path(__file__).resolve().parents[3]
TABLE = json.loads((ROOT / "tests" / "fixtures" / "dtypes" / "mxnet-1.9.1.json").read_text(encoding="utf-8"))
WHOLE = "Bbil?"

# Integer inputs are refused with an error: MXNet rounds fractions to integers in each of these operators.
FLOATING_ONLY = {
    "Convolution", "LeakyReLU", "_contrib_div_sqrt_dim", "_contrib_hawkesll", "_image_normalize", "log_softmax",
    "moments", "smooth_l1", "softmax", "softmin",
}  # fmt: skip
# Inputs of different dtypes are refused; MXNet accepts any dtype for inputs other than data.
ONE_TYPE = {"IdentityAttachKLSparseReg", "_contrib_BilinearResize2D"}
# Image operators do not accept bool.
NO_TRUTH_VALUES = {"_image_adjust_lighting", "_image_random_hue", "_image_resize"}
# MXNet returns bytes as the other byte dtype without converting them.
OTHER_TYPE = {("_contrib_quantize_v2", "B"): "Bff", ("_contrib_quantize_v2", "b"): "bff"}
# Positions that the dtype of data may not hold.
POSITIONS = ("argmax", "argmin", "argmax_channel")
OTHER_TYPE |= {(op, letter): "f" for op in POSITIONS for letter in "eBb?"}
# Expressions that are refused for integers like FLOATING_ONLY.
REFUSED_EXPRESSIONS = {"nd.smooth_l1(x)", "nd.moments(x, axes=0)", "nd.smooth_l1(x - y)"}


def _letters(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "".join(map(_letters, value))
    return np.dtype(value.dtype).char.replace("q", "l")


def _arrays(use: Use, letters: str) -> list[Any]:
    """Arrays of values within the bounds of the sample that every dtype can hold."""
    rng = np.random.default_rng(0)
    arrays = []
    for shape, letter in zip(use.sample["shapes"], letters, strict=True):
        low = max(use.sample["low"], 0) if letter in "B?" else use.sample["low"]
        values = rng.uniform(low, use.sample["high"], shape)
        values = np.clip(values if letter in "efd" else np.rint(values), np.ceil(low), np.floor(use.sample["high"]))
        arrays.append(mx.nd.array(values, dtype=np.dtype(letter)))
    return arrays


def _found(use: Use, letters: str) -> str:
    with mx.util.np_shape(use.op not in CLASSIC_SHAPES):
        outputs = call(use, _arrays(use, letters))
        mx.nd.waitall()
    return _letters(outputs)


def _refusal_is_known(op: str, letters: str, error: errors.HybridNetError) -> bool:
    if op in FLOATING_ONLY:
        return bool(set(letters) & set(WHOLE)) and isinstance(error, errors.DTypeError)
    if op in NO_TRUTH_VALUES:
        return "?" in letters and isinstance(error, errors.DTypeError)
    return op in ONE_TYPE and len(set(letters)) > 1 and isinstance(error, errors.DTypeError)


@pytest.mark.parametrize("op", TABLE["operators"])
def test_results_of_operators_have_the_types_of_mxnet(op):
    differing = []
    for index, rows in TABLE["operators"][op].items():
        use = Use(op, int(index))
        for letters, recorded in rows.items():
            expected = OTHER_TYPE.get((op, letters), recorded)
            try:
                found = _found(use, letters)
            except errors.HybridNetError as error:
                if not _refusal_is_known(op, letters, error):
                    differing.append((index, letters, expected, str(error)))
                continue
            visible = min(len(found), len(expected))
            if found[:visible] != expected[:visible]:
                differing.append((index, letters, expected, found))
    assert not differing


@pytest.mark.parametrize("text", TABLE["expressions"])
def test_results_of_expressions_have_the_types_of_mxnet(text):
    compute: Any = OF_ONE_ARRAY.get(text) or OF_TWO_ARRAYS[text]
    differing = []
    for letters, recorded in TABLE["expressions"][text].items():
        arrays = [mx.nd.array(VALUES, dtype=np.dtype(letter)) for letter in letters]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = _letters(compute(mx.nd, *arrays))
        except errors.DTypeError:
            found = "refused" if text in REFUSED_EXPRESSIONS and set(letters) <= set(WHOLE) else "error"
        wide = "f" if any(f"{op}(" in text for op in POSITIONS) and letters in "eBb?" else recorded
        if found not in (wide, "refused"):
            differing.append((letters, recorded, found))
    assert not differing


def test_the_table_covers_the_operators_and_all_expressions():
    assert len(TABLE["operators"]) > 300
    assert set(TABLE["expressions"]) == {*OF_ONE_ARRAY, *OF_TWO_ARRAYS}
    assert sum(len(rows) for cases in TABLE["operators"].values() for rows in cases.values()) > 3500


# --- arrays of integers and a number with a fraction -------------------------------------------------------------


class Scaled(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return x * 2.5, x >= 1.5, 3.0 - x, x / 2.0


@pytest.mark.filterwarnings("ignore:int32 array and")
@pytest.mark.parametrize("hybridize", [False, True])
def test_integers_keep_their_type_and_count_numbers_without_their_fraction(hybridize):
    net = Scaled()
    net.hybridize(hybridize)
    found = net(mx.nd.array([1, 2, 5], dtype="int32"))
    assert [out.dtype for out in found] == [np.int32] * 4
    assert [out.asnumpy().tolist() for out in found] == [[2, 4, 10], [0, 1, 1], [2, 1, -2], [0, 1, 2]]


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_number_that_loses_its_fraction_is_a_warning_with_the_line(hybridize):
    net = Scaled()
    net.hybridize(hybridize)
    with pytest.warns(UserWarning, match="int32 array and 2.5: the number counts as 2") as caught:
        net(mx.nd.array([1, 2], dtype="int32"))
    first = Scaled.hybrid_forward.__code__.co_firstlineno
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, first + 1)]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_arrays_with_fractions_keep_those_of_numbers_silently(dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (mx.nd.array([1, 2], dtype=dtype) * 2.5).asnumpy().tolist() == [2.5, 5]


def test_in_strict_programs_a_number_that_loses_its_fraction_is_an_error():
    program = (
        "import hybridnet as mx\n"
        "x = mx.nd.ones((2,), dtype='int32')\n"
        "print((x * 2.0).dtype, (x > 0.5).asnumpy())\n"
        "try:\n    x * 2.5\n"
        "except mx.errors.ParamError as error:\n    print(error.fix)\n"
    )
    path = str(Path(mx.__file__).parents[1])
    environment = {"PYTHONPATH": path, "HYBRIDNET_STRICT": "1", "PATH": "/usr/bin:/bin"}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=100)
    assert ran.stdout == "<class 'numpy.int32'> [1 1]\nconvert the array first: x.astype('float32')\n", ran.stderr
