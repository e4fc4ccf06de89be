"""Unrolling of a step over a sequence: step by step, or as one loop in the graph of a block under tracing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ... import symbol as F
from ...symbol import Symbol
from ..block import Block
from ._sequences import format_sequence, is_traced_sequence, mask_beyond, traced_sequence

__all__ = ["Attributes", "Step", "run_steps"]

Step = Callable[[Any, list[Any]], tuple[Any, list[Any]]]

_COUNTERS = {"_counter", "_init_counter"}  # step counters, which are parts of names


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for child in block._children.values():
        yield from _blocks(child)


def _symbols(value: Any) -> set[int]:
    values = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else [value]
    return {id(item) for item in values if isinstance(item, Symbol)}


class Attributes:
    """The attributes of a cell and its descendants, to detect whether a step stores values for the next one."""

    def __init__(self, cell: Block) -> None:
        self._of = [(block, dict(vars(block))) for block in _blocks(cell)]
        self._symbols = [{name: _symbols(value) for name, value in before.items()} for _, before in self._of]

    def changed(self) -> bool:
        """Whether an attribute was set since, or a Symbol was put into one."""
        for (block, before), symbols in zip(self._of, self._symbols, strict=True):
            for name, value in vars(block).items():
                if name in _COUNTERS:
                    continue
                if name not in before or value is not before[name] or _symbols(value) - symbols[name]:
                    return True
        return False

    def restore(self) -> None:
        """Restores the attributes."""
        for block, before in self._of:
            vars(block).clear()
            vars(block).update(before)


def run_steps(
    cell: Any,
    step: Step,
    length: int | None,
    inputs: Any,
    states: list[Any],
    layout: str,
    merge_outputs: bool | None,
    valid_length: Any,
) -> tuple[Any, list[Any]]:
    """Runs step, a step of cell, over the inputs from states on; arguments and results: see RecurrentCell.unroll.

    A graph holds one step for all steps, unless the cell stores values for the next step in its attributes.
    """
    if is_traced_sequence(inputs, layout):
        attributes = Attributes(cell)
        result = _loop(step, length, inputs, states, layout, merge_outputs, valid_length)
        if not attributes.changed():
            return result
        attributes.restore()
        cell.reset()
    inputs, axis, functions, _ = format_sequence(length, inputs, layout, False)
    outputs: Any = []
    all_states = []
    first_states = states
    for x in inputs:
        output, states = step(x, states)
        outputs.append(output)
        if valid_length is not None:
            all_states.append(states)
    if valid_length is not None:
        # Samples of length 0 keep their initial states, as in _loop.
        at_least_one = functions.maximum(valid_length, 1)
        states = [
            functions.where(
                valid_length > 0,
                functions.SequenceLast(
                    functions.stack(*steps, axis=0), sequence_length=at_least_one, use_sequence_length=True, axis=0
                ),
                first,
            )
            for first, steps in zip(first_states, zip(*all_states, strict=True), strict=True)
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
    """Unrolls with one foreach; states of samples that have ended do not change."""
    sequence, axis = traced_sequence(length, inputs, layout)
    ends = valid_length is not None
    last = F.cast(valid_length, dtype="float32") if ends else None  # step numbers may exceed its dtype's range

    def step_of_some(t: Any, x: Any, before: list[Any]) -> tuple[Any, list[Any]]:
        output, after = step(x, before)
        goes_on = F.broadcast_greater(last, t.astype("float32"))
        return output, [F.where(goes_on, new, old) for new, old in zip(after, before, strict=True)]

    outputs, states = F.contrib.foreach(step_of_some if ends else step, sequence, list(states), with_index=ends)
    if ends:
        outputs = F.SequenceMask(outputs, sequence_length=valid_length, use_sequence_length=True)
    if axis != 0:
        outputs = F.swapaxes(outputs, dim1=0, dim2=axis)
    merge = ends if merge_outputs is None else bool(merge_outputs)  # same as without a graph
    return format_sequence(length, outputs, layout, merge)[0], states
