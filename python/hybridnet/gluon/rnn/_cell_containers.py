"""Cells made of cells: stacked, or one in each direction."""

from __future__ import annotations

from typing import Any

from ... import symbol
from ...errors import ParamError, UnsupportedError
from ..parameter import tensor_types
from ..utils import _indent
from ._sequences import (
    begin_state_of,
    format_sequence,
    is_traced_sequence,
    mask_beyond,
    reversed_in_time,
    traced_sequence,
)
from .rnn_cell import HybridRecurrentCell, RecurrentCell

__all__ = ["BidirectionalCell", "HybridSequentialRNNCell", "SequentialRNNCell"]


class _CellContainer(RecurrentCell):
    """Base of containers: the states of all children in sequence."""

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Returns the states of all cells, in order."""
        return [info for cell in self._children.values() for info in cell.state_info(batch_size)]

    def begin_state(self, **kwargs: Any) -> list[Any]:  # type: ignore[override]
        """Returns the initial states of all cells; arguments: see RecurrentCell.begin_state."""
        self._check_not_modified()
        return [state for cell in self._children.values() for state in cell.begin_state(**kwargs)]


class _Stack(_CellContainer):
    def __repr__(self) -> str:
        lines = [f"({i}): {_indent(repr(cell), 2)}" for i, cell in self._children.items()]
        return "{}(\n{}\n)".format(type(self).__name__, "\n".join(lines))

    def add(self, cell: RecurrentCell) -> None:
        """Adds a cell on top."""
        self.register_child(cell)

    def __getitem__(self, i: int) -> Any:
        return list(self._children.values())[i]

    def __len__(self) -> int:
        return len(self._children)

    def _step(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        next_states: list[Any] = []
        position = 0
        for cell in self._children.values():
            count = len(cell.state_info())
            inputs, own = cell(inputs, states[position : position + count])
            position += count
            next_states.extend(own)
        return inputs, next_states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list[Any]]:
        """Unrolls each cell over the whole sequence before the next. Arguments: see RecurrentCell.unroll."""
        self.reset()
        inputs = format_sequence(length, inputs, layout, None)[0]
        begin_state = begin_state_of(self, begin_state, inputs, layout)
        next_states: list[Any] = []
        position = 0
        between = None
        if is_traced_sequence(inputs, layout):
            between = True  # one array, so that the next cell is a loop too
            if merge_outputs is None:
                merge_outputs = self._gives_array(valid_length is not None, True)
        for i, cell in enumerate(self._children.values()):
            count = len(cell.state_info())
            inputs, states = cell.unroll(
                length,
                inputs=inputs,
                begin_state=begin_state[position : position + count],
                layout=layout,
                merge_outputs=merge_outputs if i == len(self._children) - 1 else between,
                valid_length=valid_length,
            )
            position += count
            next_states.extend(states)
        return inputs, next_states

    def _gives_array(self, ends: bool, given: bool) -> bool:
        for cell in self._children.values():
            given = cell._gives_array(ends, given)
        return given


class SequentialRNNCell(_Stack):
    """Stacked cells: the output of one is the input of the next. Add them with add()."""

    def forward(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        """Runs one step through all cells."""
        return self._step(inputs, states)


class HybridSequentialRNNCell(_Stack, HybridRecurrentCell):
    """Stacked hybrid cells, hybridized as one graph. Add them with add()."""

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        return self._step(inputs, states)


class BidirectionalCell(_CellContainer, HybridRecurrentCell):
    """Runs one cell from the first step to the last, another backwards, and joins their outputs along the features.

    It cannot run a single step, only unroll. States: those of l_cell, then those of r_cell.

    Parameters
    ----------
    l_cell, r_cell : RecurrentCell
        Forward and backward.
    output_prefix : str, default 'bi_'
        Prefix of the outputs' names.
    """

    def __init__(self, l_cell: RecurrentCell, r_cell: RecurrentCell, output_prefix: str = "bi_") -> None:
        super().__init__(prefix="", params=None)
        self.register_child(l_cell, "l_cell")
        self.register_child(r_cell, "r_cell")
        self._output_prefix = output_prefix

    def __call__(self, inputs: Any, states: Any, *args: Any, **kwargs: Any) -> Any:
        """Raises UnsupportedError: the backward cell starts at the last step."""
        raise UnsupportedError(
            "BidirectionalCell cannot be stepped",
            because="its backward cell needs the whole sequence",
            fix="call unroll",
        )

    def __repr__(self) -> str:
        left, right = self._children.values()
        return f"{type(self).__name__}(forward={left!r}, backward={right!r})"

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list[Any]]:
        """Runs both cells over the sequence. Arguments: see RecurrentCell.unroll."""
        if layout not in ("NTC", "TNC"):
            raise ParamError("BidirectionalCell.unroll: layout must be 'NTC' or 'TNC'", given=repr(layout))
        self.reset()
        states = begin_state_of(self, begin_state, inputs, layout)
        if is_traced_sequence(inputs, layout):
            return self._loops(length, inputs, states, layout, merge_outputs, valid_length)
        inputs, axis, functions, _ = format_sequence(length, inputs, layout, False)
        length = len(inputs)
        left, right = self._children.values()
        count = len(left.state_info())
        common = {"layout": layout, "valid_length": valid_length}
        l_outputs, l_states = left.unroll(length, inputs, states[:count], merge_outputs=merge_outputs, **common)
        backwards = reversed_in_time(inputs, length, valid_length)
        r_outputs, r_states = right.unroll(length, backwards, states[count:], merge_outputs=False, **common)
        r_outputs = reversed_in_time(r_outputs, length, valid_length)
        if merge_outputs is None:
            merge_outputs = isinstance(l_outputs, tensor_types)
        l_outputs, _, _, _ = format_sequence(None, l_outputs, layout, merge_outputs)
        outputs = self._join(functions, l_outputs, r_outputs, axis, merge_outputs)
        if valid_length is not None:
            outputs = mask_beyond(functions, outputs, length, valid_length, axis, merge_outputs)
        return outputs, [*l_states, *r_states]

    def _loops(
        self, length: int, inputs: Any, states: list[Any], layout: str, merge_outputs: bool | None, valid_length: Any
    ) -> tuple[Any, list[Any]]:
        """Unrolls as one loop in each direction."""
        ends = {"sequence_length": valid_length, "use_sequence_length": True} if valid_length is not None else {}
        sequence, axis = traced_sequence(length, inputs, layout)
        left, right = self._children.values()
        count = len(left.state_info())
        common = {"layout": "TNC", "merge_outputs": True, "valid_length": valid_length}
        ahead, l_states = left.unroll(length, sequence, states[:count], **common)
        back, r_states = right.unroll(length, symbol.SequenceReverse(sequence, **ends), states[count:], **common)
        back = symbol.SequenceReverse(back, **ends)
        outputs = symbol.concat(ahead, back, dim=2, name=f"{self._output_prefix}out")
        if ends:
            outputs = symbol.SequenceMask(outputs, **ends)
        if axis != 0:
            outputs = symbol.swapaxes(outputs, dim1=0, dim2=axis)
        merge = self._gives_array(bool(ends), True) if merge_outputs is None else merge_outputs
        return format_sequence(length, outputs, layout, merge)[0], [*l_states, *r_states]

    def _gives_array(self, ends: bool, given: bool) -> bool:
        left, _ = self._children.values()
        return left._gives_array(ends, False)  # without a graph, the left cell gets a list

    def _join(self, functions: Any, left: Any, right: list[Any], axis: int, merge: bool) -> Any:
        if merge:
            return functions.concat(left, functions.stack(*right, axis=axis), dim=2, name=f"{self._output_prefix}out")
        return [
            functions.concat(a, b, dim=1, name=f"{self._output_prefix}t{i}")
            for i, (a, b) in enumerate(zip(left, right, strict=True))
        ]
