"""SequentialRNNCell and BidirectionalCell: cells made of cells."""

from __future__ import annotations

from typing import Any

from .. import symbol
from ..errors import ParamError, UnsupportedError
from ..gluon.rnn._sequences import format_sequence
from ..symbol import Symbol
from ._base_cell import BaseRNNCell, RNNParams

__all__ = ["BidirectionalCell", "SequentialRNNCell"]


class _Container(BaseRNNCell):
    def __init__(self, params: RNNParams | None) -> None:
        super().__init__(prefix="", params=params)
        self._override_cell_params = params is not None
        self._cells: list[BaseRNNCell] = []

    def _adopt(self, cell: BaseRNNCell) -> None:
        self._cells.append(cell)
        if self._override_cell_params:
            if not cell._own_params:
                raise ParamError(f"Either specify params for {type(self).__name__} or child cells, not both.")
            cell.params._params.update(self.params._params)
        self.params._params.update(cell.params._params)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Returns the states of all cells, in order."""
        return [info for cell in self._cells for info in cell.state_info]

    def begin_state(self, **kwargs: Any) -> list[Symbol]:  # type: ignore[override]
        """Returns the initial states of all cells; arguments: see BaseRNNCell.begin_state."""
        self._check_not_modified()
        return [state for cell in self._cells for state in cell.begin_state(**kwargs)]

    def unpack_weights(self, args: dict[str, Any]) -> dict[str, Any]:
        """Applies unpack_weights of all cells."""
        for cell in self._cells:
            args = cell.unpack_weights(args)
        return args

    def pack_weights(self, args: dict[str, Any]) -> dict[str, Any]:
        """Applies pack_weights of all cells."""
        for cell in self._cells:
            args = cell.pack_weights(args)
        return args


class SequentialRNNCell(_Container):
    """Stacked cells. params: RNNParams that all of them share."""

    def __init__(self, params: RNNParams | None = None) -> None:
        super().__init__(params)

    def add(self, cell: BaseRNNCell) -> None:
        """Adds a cell on top. Raises ParamError if both it and the stack were created with params."""
        self._adopt(cell)

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        next_states: list[Symbol] = []
        position = 0
        for cell in self._cells:
            count = len(cell.state_info)
            inputs, own = cell(inputs, states[position : position + count])
            position += count
            next_states.extend(own)
        return inputs, next_states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: list[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Any, list[Symbol]]:
        """Unrolls cell by cell. Arguments: see BaseRNNCell.unroll."""
        self.reset()
        states = self.begin_state() if begin_state is None else begin_state
        next_states: list[Symbol] = []
        position = 0
        for i, cell in enumerate(self._cells):
            count = len(cell.state_info)
            own = states[position : position + count]
            position += count
            merge = merge_outputs if i == len(self._cells) - 1 else None
            inputs, own = cell.unroll(length, inputs, own, layout, merge)
            next_states.extend(own)
        return inputs, next_states


class BidirectionalCell(_Container):
    """Runs one cell forwards and one backwards, and concatenates their outputs.

    l_cell, r_cell: the cells; params: RNNParams that both share; output_prefix: prefix of the outputs' names.
    """

    def __init__(
        self, l_cell: BaseRNNCell, r_cell: BaseRNNCell, params: RNNParams | None = None, output_prefix: str = "bi_"
    ) -> None:
        super().__init__(params)
        self._output_prefix = output_prefix
        self._adopt(l_cell)
        self._adopt(r_cell)

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        raise UnsupportedError("BidirectionalCell cannot be stepped: it needs the whole sequence", fix="use unroll")

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: list[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Any, list[Any]]:
        """Runs both cells. Arguments: see BaseRNNCell.unroll; returns states as [forward states, backward states]."""
        self.reset()
        inputs = format_sequence(length, inputs, layout, False)[0]
        states = self.begin_state() if begin_state is None else begin_state
        left, right = self._cells
        count = len(left.state_info)
        ahead, left_states = left.unroll(length, inputs, states[:count], layout, False)
        back, right_states = right.unroll(length, inputs[::-1], states[count:], layout, False)
        outputs = [
            symbol.Concat(one, other, dim=1, name=f"{self._output_prefix}t{i}")
            for i, (one, other) in enumerate(zip(ahead, reversed(back), strict=True))
        ]
        return format_sequence(length, outputs, layout, merge_outputs)[0], [left_states, right_states]
