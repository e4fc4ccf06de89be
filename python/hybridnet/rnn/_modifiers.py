"""ZoneoutCell and ResidualCell: cells that modify the steps of another cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import symbol
from ..errors import UnsupportedError
from ..gluon.rnn._sequences import format_sequence
from ..symbol import Symbol
from ._base_cell import BaseRNNCell, RNNParams
from ._containers import BidirectionalCell, SequentialRNNCell
from ._fused_cell import FusedRNNCell

__all__ = ["ModifierCell", "ResidualCell", "ZoneoutCell"]


class ModifierCell(BaseRNNCell):
    """Base of cells that wrap a cell; parameters and states are those of base_cell."""

    def __init__(self, base_cell: BaseRNNCell) -> None:
        super().__init__()
        base_cell._modified = True
        self.base_cell = base_cell

    @property
    def params(self) -> RNNParams:
        """The parameters of the wrapped cell."""
        self._own_params = False
        return self.base_cell.params

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """The states of the wrapped cell."""
        return self.base_cell.state_info

    def begin_state(self, init_sym: Callable[..., Symbol] = symbol.zeros, **kwargs: Any) -> list[Symbol]:  # type: ignore[override]
        """Returns the initial states of the wrapped cell; arguments: see BaseRNNCell.begin_state."""
        self._check_not_modified()
        self.base_cell._modified = False
        try:
            return self.base_cell.begin_state(**{"func": init_sym, **kwargs})
        finally:
            self.base_cell._modified = True

    def unpack_weights(self, args: dict[str, Any]) -> dict[str, Any]:
        """Same as for the wrapped cell."""
        return self.base_cell.unpack_weights(args)

    def pack_weights(self, args: dict[str, Any]) -> dict[str, Any]:
        """Same as for the wrapped cell."""
        return self.base_cell.pack_weights(args)


def _zoneout(rate: float, new: Symbol, old: Symbol) -> Symbol:
    """Returns new, with random elements replaced by those of old."""
    return symbol.where(symbol.Dropout(symbol.ones_like(new), p=rate), new, old) if rate else new


class ZoneoutCell(ModifierCell):
    """Keeps random elements of output and states from the previous step, in training.

    Source: Krueger et al., arXiv 1606.01305. zoneout_outputs, zoneout_states: rates. Raises UnsupportedError for
    FusedRNNCell and BidirectionalCell, which have no single step.
    """

    def __init__(self, base_cell: BaseRNNCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0) -> None:
        inner = base_cell._cells if isinstance(base_cell, SequentialRNNCell) else [base_cell]
        if any(isinstance(cell, (FusedRNNCell, BidirectionalCell)) for cell in inner):
            raise UnsupportedError(
                "ZoneoutCell: FusedRNNCell and BidirectionalCell do not support zoneout: they cannot be stepped",
                fix="unfuse() first, or put ZoneoutCell around the cells inside",
            )
        super().__init__(base_cell)
        self.zoneout_outputs = zoneout_outputs
        self.zoneout_states = zoneout_states

    def reset(self) -> None:
        """Also deletes the previous output."""
        super().reset()
        self.prev_output: Symbol | None = None
        if hasattr(self, "base_cell"):
            self.base_cell.reset()

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        output, next_states = self.base_cell(inputs, states)
        before = symbol.zeros_like(output) if self.prev_output is None else self.prev_output
        output = _zoneout(self.zoneout_outputs, output, before)
        next_states = [_zoneout(self.zoneout_states, new, old) for new, old in zip(next_states, states, strict=True)]
        self.prev_output = output
        return output, next_states


class ResidualCell(ModifierCell):
    """Adds the input to the output of base_cell. Source: Wu et al., arXiv 1609.08144."""

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        output, states = self.base_cell(inputs, states)
        return symbol.elemwise_add(output, inputs, name=f"{output.name}_plus_residual"), states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: list[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Any, list[Symbol]]:
        """Unrolls the wrapped cell, then adds the inputs. Arguments: see BaseRNNCell.unroll."""
        self.reset()
        self.base_cell._modified = False
        try:
            outputs, states = self.base_cell.unroll(length, inputs, begin_state, layout, merge_outputs)
        finally:
            self.base_cell._modified = True
        merged = isinstance(outputs, Symbol)
        inputs = format_sequence(length, inputs, layout, merged)[0]
        pairs = [(outputs, inputs)] if merged else zip(outputs, inputs, strict=True)
        sums = [symbol.elemwise_add(output, given, name=f"{output.name}_plus_residual") for output, given in pairs]
        return (sums[0] if merged else sums), states
