"""Running a step over a sequence: step by step, or as one loop of the graph of a block that is being traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import symbol as F
from ...symbol import Symbol
from .sequences import format_sequence, is_traced_sequence, mask_beyond, traced_sequence

__all__ = ["Step", "run_steps"]

Step = Callable[[Any, list[Any]], tuple[Any, list[Any]]]


def run_steps(
    step: Step,
    length: int | None,
    inputs: Any,
    states: list[Any],
    layout: str,
    merge_outputs: bool | None,
    valid_length: Any,
    may_loop: bool = True,
) -> tuple[Any, list[Any]]:
    """step over the inputs from states on; arguments and results as RecurrentCell.unroll.

    may_loop: whether all that one step hands to the next are states, so that a graph may hold one step for all.
    """
    if may_loop and is_traced_sequence(inputs, layout):
        return _loop(step, length, inputs, states, layout, merge_outputs, valid_length)
    inputs, axis, functions, _ = format_sequence(length, inputs, layout, False)
    outputs: Any = []
    all_states = []
    for x in inputs:
        output, states = step(x, states)
        outputs.append(output)
        if valid_length is not None:
            all_states.append(states)
    if valid_length is not None:
        states = [
            functions.SequenceLast(
                functions.stack(*steps, axis=0), sequence_length=valid_length, use_sequence_length=True, axis=0
            )
            for steps in zip(*all_states, strict=True)
        ]
        outputs = mask_beyond(functions, outputs, len(inputs), valid_length, axis, True)
    return format_sequence(len(inputs), outputs, layout, merge_outputs)[0], states


def _loop(
    step: Step,
    length: int | None,
    inputs: Symbol,
    states: list[Any],
    layout: str,
    merge_outputs: bool | None,
    valid_length: Any,
) -> tuple[Any, list[Any]]:
    """One foreach; states of samples that have ended stay as they are."""
    sequence, axis = traced_sequence(length, inputs, layout)
    ends = valid_length is not None

    def step_of_some(t: Any, x: Any, before: list[Any]) -> tuple[Any, list[Any]]:
        output, after = step(x, before)
        goes_on = F.broadcast_greater(valid_length, t.astype(valid_length.dtype))
        return output, [F.where(goes_on, new, old) for new, old in zip(after, before, strict=True)]

    outputs, states = F.contrib.foreach(step_of_some if ends else step, sequence, list(states), with_index=ends)
    if ends:
        outputs = F.SequenceMask(outputs, sequence_length=valid_length, use_sequence_length=True)
    if axis != 0:
        outputs = F.swapaxes(outputs, dim1=0, dim2=axis)
    merge = ends if merge_outputs is None else bool(merge_outputs)  # as without a graph
    return format_sequence(length, outputs, layout, merge)[0], states
