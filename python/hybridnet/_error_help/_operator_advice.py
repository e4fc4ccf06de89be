"""Completes errors of operators when they are shown: blames the data of a layer, adds a missing fix.

The library states the operator, the input, the expected and the given value. Only Python knows that the parameters of
a layer are fixed, so that the batch is wrong, and how the call is written in Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..errors import DTypeError, _text, _with_fix, suggestion

__all__ = ["completed"]

_SHAPE = re.compile(r"\(([0-9?, ]*)\)")
_MOST_COLORS = 4  # channels of an image
_FLOATS = ("float16", "bfloat16", "float32", "float64")
# Layers whose parameter decides how many channels the data has: name of the size, keyword of the layer.
_PARAMETERS_OF_LAYERS = {
    "FullyConnected": ("features", "in_units"),
    "Convolution": ("input channels", "in_channels"),
    "Deconvolution": ("input channels", "in_channels"),
    "BatchNorm": ("channels", "in_channels"),
    "LayerNorm": ("features", "in_channels"),
    "InstanceNorm": ("channels", "in_channels"),
}


def completed(error: Any, text: str) -> str:
    """Returns the text of an error of an operator with the data blamed and a fix that can be applied."""
    if not error.op:
        return text
    if "\n" in (error.given or ""):  # a container of arrays, which the fix names
        kind = error.given.partition(" ")[0]
        text = text.replace(error.given, f"a {kind}")
    lines = text.split("\n")
    if blamed := _blamed_data(error):
        head = lines[0].partition(f", input '{error.input}'")[0]
        places = [line for line in lines if line.startswith(("  At: ", "  Block: "))]
        return "\n".join([_text(f"{head}, input 'data'", blamed), *places])
    fix = _better_fix(error)
    if fix is None and not any(line.startswith("  Fix: ") for line in lines):
        fix = _missing_fix(error)
    return _with_fix(text, fix) if fix else text


def _sizes(text: str | None) -> list[str] | None:
    """Returns the sizes of the first shape in a text."""
    found = _SHAPE.search(text or "")
    return [size for size in found[1].replace(" ", "").split(",") if size] if found else None


# --- layers -----------------------------------------------------------------------------------------------------------


def _blamed_data(error: Any) -> dict[str, str | None] | None:
    """Returns the parts of an error that blames the data in place of a layer's parameter; None if neither is meant."""
    if not error.block or error.op not in _PARAMETERS_OF_LAYERS or error.input in (None, "data"):
        return None
    if (error.expected or "").startswith("dtype "):
        data, own = error.expected.removeprefix("dtype "), error.given
        because = f"the parameters of the layer are {own}"
        return {"expected": f"dtype {own}", "given": data, "because": because, "fix": _cast_of_data(data, own)}
    batch, layer = _sizes(error.expected), _sizes(error.given)
    if batch is None or layer is None or len(batch) != len(layer):
        return None
    one_row = _sizes(error.because)
    if one_row == layer[-1:] and error.op == "FullyConnected":
        return {
            "expected": f"shape (batch, {one_row[0]})",
            "given": f"shape ({one_row[0]},)",
            "because": "the first axis of the data counts the samples",
            "fix": "add the axis of the batch: net(x.expand_dims(0))",
        }
    different = [(int(a), int(b)) for a, b in zip(batch, layer, strict=True) if a != b and "?" not in a + b]
    if len(different) != 1:
        return None
    got, expected = different[0]
    things, keyword = _PARAMETERS_OF_LAYERS[error.op]
    right = f"{expected} {things if expected != 1 else things.removesuffix('s')}"
    shape = ", ".join(layer) + ("," if len(layer) == 1 else "")
    because = f"the layer was built for {right}: its {error.input} has shape ({shape})"
    fix = f"pass data with {right}, or make a new layer with {keyword}={got}"
    if "flatten" in (error.fix or ""):
        fix = error.fix
    elif len(layer) == 4 and expected <= _MOST_COLORS < got:
        fix = "if the channels are the last axis of the images, move them: data.transpose((0, 3, 1, 2))"
    return {"expected": right, "given": str(got), "because": because, "fix": fix}


def _cast_of_data(data: str, own: str) -> str:
    if own in _FLOATS:
        return f"cast the data: net(x.astype('{own}'))"
    return f"make the layer's parameters {data}: net.cast('{data}')"


# --- fixes ------------------------------------------------------------------------------------------------------------


def _better_fix(error: Any) -> str | None:
    """Returns a fix in place of the library's, in the words of the user's call."""
    fix = error.fix or ""
    if error.op == "Reshape" and len(_sizes(error.given) or ()) == 1 and fix.startswith("use -1"):
        return "give all sizes as one tuple, such as shape=(2, -1), where -1 has a size computed"
    if error.op == "softmax" and error.input == "length":
        return "name the axis: x.softmax(axis=-1)"
    if (error.expected or "").startswith("an NDArray or a Symbol"):
        return _array_fix(error)
    return None


def _array_fix(error: Any) -> str | None:
    """The fix for a value that is no array, by its kind, which is the first word of the given value."""
    kind, _, value = (error.given or "").partition(" ")
    if kind.endswith(("Parameter", "Constant")):
        return "pass its array: weight.data()"
    if kind == "dict":
        return "pass the arrays themselves, such as net(batch['x'])"
    if kind in ("list", "tuple") and error.block:
        return "pass the arrays one by one: net(*arrays); a batch of equal arrays is mx.nd.stack(*arrays)"
    if kind in ("int", "float", "bool") and error.op == "where":
        return f"make an array of the number: mx.nd.full(condition.shape, {value})"
    if error.op == "tile" and error.input == "data":
        return "pass the array first: mx.nd.tile(x, reps=(2, 3))"
    return None


def _transpose_fix(error: Any) -> str:
    axes, rank = _sizes(error.given) or [], int((re.findall(r"\d+", error.because or "") or ["2"])[0])
    if len(axes) == 2 and rank > 2:
        return f"swap two axes by x.swapaxes({', '.join(axes)})"
    return f"name each axis once, such as axes=({', '.join(map(str, reversed(range(rank))))})"


def _axis_fix(error: Any) -> str:
    if error.op == "topk":
        return f"name the number: x.topk(k={error.given}, ret_typ='both') returns values and indices"
    if error.op in ("BatchNorm", "LayerNorm", "InstanceNorm"):
        return f"leave the first argument of nn.{error.op}, the axis of the channels, out, or name it: axis=-1"
    return "axes count from 0, or backwards from -1, the last"


def _rank_fix(error: Any) -> str:
    sizes = _sizes((error.given or "").replace("shape ", "")) or []
    missing = {"Convolution": 4, "Pooling": 4, "Deconvolution": 4, "RNN": 3}.get(error.op, 0) - len(sizes)
    if "1 of space" in (error.expected or ""):
        missing = 3 - len(sizes)
    if error.op == "RNN":
        one_sequence = missing == 1
        return "add the axis of the batch: data.expand_dims(1)" if one_sequence else "pass (steps, batch, inputs)"
    if missing == 1:
        return "add the axis of the batch: data.expand_dims(0)"
    if missing == 2:
        return f"add the axes of batch and channels: data.reshape((1, 1, {', '.join(sizes)}))"
    return "pass data (batch, channels, height, width)"


def _dot_fix(error: Any) -> str:
    if isinstance(error, DTypeError):
        return f"cast one side, by .astype('{error.expected}') or .astype('{error.given}')"
    left, right = _sizes(error.because), _sizes(error.given)
    if left and right and len(left) == len(right) == 3 and left[0] == right[0]:
        if left[2] == right[1]:
            return "multiply the matrices of both stacks by mx.nd.batch_dot(a, b)"
        if left[2] == right[2]:
            return "multiply the matrices of both stacks by mx.nd.batch_dot(a, b, transpose_b=True)"
        if left[1] == right[1]:
            return "multiply the matrices of both stacks by mx.nd.batch_dot(a, b, transpose_a=True)"
    if left and right and left[-1] == right[-1]:
        return "transpose the second array: mx.nd.dot(a, b, transpose_b=True)"
    if left and right and len(left) == 2 and left[0] == right[0]:
        return "transpose the first array: mx.nd.dot(a, b, transpose_a=True)"
    return "the last size of the first array must be the first size of the second"


def _choice_fix(error: Any) -> str:
    return suggestion(error.given.strip("'"), re.findall(r"'([^']*)'", error.expected))


# (operator, input, beginning of the expected value; None for any) and the fix.
_FIXES: list[tuple[str | None, str | None, str, str | Callable[[Any], str]]] = [
    (None, None, "2 inputs", "pass both arrays"),
    (None, None, "3 inputs", "pass all three arrays"),
    ("tile", None, "at most", "give the counts as one tuple: mx.nd.tile(x, reps=(2, 3))"),
    ("Flatten", None, "at most", "it keeps the first axis; to merge others write x.reshape((-1,)) with all sizes"),
    (None, None, "an axis in", _axis_fix),
    (None, None, "no axis", "reshape the data first: it has no axes"),
    (None, "data", "4 dimensions", _rank_fix),
    (None, "data", "3 dimensions", _rank_fix),
    (None, "data", "3 to 5 dimensions", _rank_fix),
    ("RNN", "data", "(steps, batch, inputs)", _rank_fix),
    (
        "LayerNorm",
        "data",
        "shape",
        "pass data with as many features as gamma, or make a layer with in_channels=",
    ),
    (None, "data", "at least", "use a smaller kernel_size, more padding, or larger images"),
    ("Concat", None, "shape", "only the sizes along dim may differ: choose another dim=, or reshape one array"),
    ("stack", None, "shape", "stack joins equal shapes; join different ones along an axis by concat(..., dim=0)"),
    ("Reshape", "shape", "sizes that divide", "choose sizes whose product divides the number of elements"),
    ("dot", "rhs", "", _dot_fix),
    ("transpose", "axes", "every axis", _transpose_fix),
    ("SliceChannel", "data", "", "choose a number that divides the size, or cut at positions by split_v2"),
    ("squeeze", "data", "", "name axes of size 1 only, or none to remove all of them"),
    ("_arange", "step", "", "pass a step such as 1"),
    (None, "shape", "sizes that are not negative", "give every size: -1 has a meaning in reshape only"),
    (None, None, "one of '", _choice_fix),
    ("pick", "index", "", "pass one index for each row: the shape of the data without the axis"),
    ("reshape_like", "lhs", "", "pass arrays with the same number of elements"),
]


def _missing_fix(error: Any) -> str | None:
    expected = error.expected or ""
    for op, name, start, fix in _FIXES:
        if op in (None, error.op) and name in (None, error.input) and expected.startswith(start):
            return fix if isinstance(fix, str) else fix(error)
    return None
