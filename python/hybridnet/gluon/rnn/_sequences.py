"""Sequences as one array with a time axis or as a list of steps; masks and reversal by valid length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import _tracing, ndarray, symbol
from ...errors import ParamError, ShapeError
from ...ndarray import NDArray
from ...symbol import Symbol

__all__ = [
    "begin_state_of",
    "format_sequence",
    "is_traced_sequence",
    "mask_beyond",
    "namespace_of",
    "reversed_in_time",
    "traced_sequence",
    "zeros_for_batch",
]

_TENSORS = (NDArray, Symbol)


def namespace_of(value: Any) -> Any:
    """Returns mx.sym for a Symbol (or a list that starts with one), else mx.nd."""
    first = value[0] if isinstance(value, (list, tuple)) else value
    return symbol if isinstance(first, Symbol) else ndarray


def _axis(layout: str, letter: str) -> int:
    axis = layout.find(letter)
    if axis < 0:
        raise ParamError("unroll: layout must contain N, T and C, such as 'NTC' or 'TNC'", given=repr(layout))
    return axis


def _check_length(length: int | None, given: int) -> None:
    if length is not None and length != given:
        raise ShapeError(f"unroll: length is {length} but the inputs have {given} steps")
    if given == 0:
        raise ShapeError("unroll: the inputs have no steps", fix="leave empty sequences out, or pad them to one step")


def _check_given(inputs: Any) -> None:
    if inputs is None:
        raise ParamError("unroll: inputs is None; make the input variables outside of unroll")
    if not isinstance(inputs, _TENSORS):
        _check_length(None, len(inputs))


def _split(inputs: Any, length: int | None, axis: int) -> list[Any]:
    if isinstance(inputs, NDArray):
        _check_length(length, inputs.shape[axis])
        length = inputs.shape[axis]
    if length is None:
        raise ParamError("unroll: a Symbol needs length to be cut into steps")
    steps = namespace_of(inputs).split(inputs, axis=axis, num_outputs=length, squeeze_axis=1)
    # While tracing, x[0] of a Symbol with one output is its first row.
    return [steps] if length == 1 and isinstance(steps, _TENSORS) else [steps[i] for i in range(length)]


def format_sequence(
    length: int | None, inputs: Any, layout: str, merge: bool | None, in_layout: str | None = None
) -> tuple[Any, int, Any, int]:
    """Converts inputs to a list of steps (merge False) or one array in layout (merge True); None keeps them.

    Returns (inputs, time axis of layout, mx.nd or mx.sym, batch size; 0 for Symbols: inference finds it).
    Raises ParamError for a layout without T or N and if inputs is None, ShapeError if length disagrees.
    """
    _check_given(inputs)
    axis, batch_axis = _axis(layout, "T"), _axis(layout, "N")
    in_axis = axis if in_layout is None else _axis(in_layout, "T")
    batch_size = 0
    functions = namespace_of(inputs)
    if isinstance(inputs, _TENSORS):
        if isinstance(inputs, NDArray):
            batch_size = inputs.shape[batch_axis]
        if merge is False:
            inputs = _split(inputs, length, in_axis)
        elif axis != in_axis:
            inputs = functions.swapaxes(inputs, dim1=axis, dim2=in_axis)
    else:
        _check_length(length, len(inputs))
        if functions is ndarray:
            batch_size = inputs[0].shape[0]
        if merge is True:
            inputs = functions.stack(*inputs, axis=axis)
    return inputs, axis, functions, batch_size


def is_traced_sequence(inputs: Any, layout: str) -> bool:
    """Whether inputs is one array of known sizes in a block under tracing."""
    if not isinstance(inputs, Symbol) or not isinstance(_tracing.current(), _tracing.Trace):
        return False
    shape = _traced_shape(inputs)
    return shape is not None and len(shape) >= len(layout) and min(shape, default=0) >= 0


def _traced_shape(inputs: Any) -> tuple[int, ...] | None:
    """Returns the shape known to the trace; unlike inputs.shape, this does not make the graph depend on it."""
    try:
        return inputs._spec[0]
    except AttributeError:  # outside of traces
        return None


def traced_sequence(length: int | None, inputs: Symbol, layout: str) -> tuple[Symbol, int]:
    """Returns (inputs with time first, time axis of layout). Raises ShapeError if length disagrees."""
    axis = _axis(layout, "T")
    _check_length(length, inputs.shape[axis])
    return (inputs if axis == 0 else symbol.swapaxes(inputs, dim1=0, dim2=axis)), axis


def mask_beyond(functions: Any, data: Any, length: int, valid_length: Any, axis: int, merge: bool) -> Any:
    """Zeros data beyond each sample's valid length; returns one array if merge, else a list of steps."""
    if not isinstance(data, _TENSORS):
        data = functions.stack(*data, axis=axis)
    data = functions.SequenceMask(data, sequence_length=valid_length, use_sequence_length=True, axis=axis)
    return data if merge else _split(data, length, axis)


def reversed_in_time(steps: Sequence[Any], length: int, valid_length: Any = None) -> list[Any]:
    """Reverses the steps; with valid_length, only each sample's valid part, and the rest stays in place."""
    if valid_length is None:
        return list(reversed(steps))
    functions = namespace_of(steps)
    stacked = functions.stack(*steps, axis=0)
    turned = functions.SequenceReverse(stacked, sequence_length=valid_length, use_sequence_length=True)
    return _split(turned, length, 0)


def begin_state_of(cell: Any, begin_state: Any, inputs: Any, layout: str) -> Any:
    """Returns begin_state, or the cell's zeros for the inputs' batch size, element type and context."""
    if begin_state is not None:
        return begin_state
    _check_given(inputs)
    merged = isinstance(inputs, _TENSORS)
    first, axis = (inputs, _axis(layout, "N")) if merged else (inputs[0], 0)
    if not isinstance(first, Symbol):
        with first.context:
            return cell.begin_state(func=ndarray.zeros, batch_size=first.shape[axis], **_dtype_of(first.dtype))
    shape = _traced_shape(first)
    if shape is None or shape[axis] < 0:
        return cell.begin_state(func=symbol.zeros, batch_size=0)
    return cell.begin_state(func=zeros_for_batch(first, axis), batch_size=0, **_dtype_of(first._spec[1]))


def _dtype_of(dtype: Any) -> dict[str, Any]:
    """Returns the dtype argument for states of such inputs: float32, unless they have another floating type."""
    # float32 is not passed on, because begin_state of some cells takes no dtype.
    return {} if dtype is None or dtype == np.float32 or np.dtype(dtype).kind in "iub" else {"dtype": dtype}


def zeros_for_batch(inputs: Symbol, batch_axis: int) -> Callable[..., Symbol]:
    """Returns a function of shape, name, ... for zero states. The batch size is that of inputs when the graph runs."""

    def zeros(shape: Any, name: str | None = None, dtype: Any = None, **attrs: Any) -> Symbol:
        axis = max(attrs.get("__layout__", "N").find("N"), 0)
        if [i for i, size in enumerate(shape) if size == 0] != [axis]:  # other sizes than the batch size are unknown
            return symbol.zeros(shape, dtype=dtype, name=name, **attrs)
        row = symbol.zeros((*shape[:axis], 1, *shape[axis + 1 :]), dtype=dtype)
        return symbol.broadcast_like(row, inputs, lhs_axes=(axis,), rhs_axes=(batch_axis,), name=name, **attrs)

    return zeros
