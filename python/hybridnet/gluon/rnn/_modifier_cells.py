"""Cells that change the values between steps: dropout, zoneout, residual connections."""

from __future__ import annotations

import contextlib
import numbers
from collections.abc import Callable, Iterator
from typing import Any

from ... import symbol
from ...errors import ParamError, not_overridden
from .._parameter_dict import ParameterDict
from ..parameter import tensor_types
from ._cell_containers import BidirectionalCell
from ._sequences import (
    begin_state_of,
    format_sequence,
    is_traced_sequence,
    mask_beyond,
    traced_sequence,
    zeros_for_batch,
)
from ._unrolling import Attributes, run_steps
from .rnn_cell import HybridRecurrentCell, RecurrentCell

__all__ = ["DropoutCell", "ModifierCell", "ResidualCell", "ZoneoutCell"]


class DropoutCell(HybridRecurrentCell):
    """Dropout of the inputs in training; it has no states. Over one merged array, all steps are dropped in one call.

    rate : float in [0, 1]; axes : tuple of int, default (): axes along which all elements share one decision.
    """

    def __init__(self, rate: float, axes: tuple[int, ...] = (), prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix, params)
        if not isinstance(rate, numbers.Number) or not 0 <= rate <= 1:
            raise ParamError("DropoutCell.rate: rate must be a number in [0, 1]", given=repr(rate))
        self._rate = rate
        self._axes = axes

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rate={self._rate}, axes={self._axes})"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """There are no states."""
        return []

    def _alias(self) -> str:
        return "dropout"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        if self._rate > 0:
            inputs = F.Dropout(inputs, p=self._rate, axes=self._axes, name=f"t{self._counter}_fwd")
        return inputs, states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list[Any]]:
        """Applies dropout to the inputs of all steps. Arguments: see RecurrentCell.unroll."""
        self.reset()
        inputs, _, functions, _ = format_sequence(length, inputs, layout, merge_outputs)
        if isinstance(inputs, tensor_types):
            return self.hybrid_forward(functions, inputs, begin_state or [])
        return super().unroll(length, inputs, begin_state, layout, merge_outputs, None)

    def _gives_array(self, ends: bool, given: bool) -> bool:
        return given


class ModifierCell(HybridRecurrentCell):
    """Base of cells that wrap another one and share its parameters and states.

    Raises ParamError if base_cell is wrapped already.
    """

    def __init__(self, base_cell: RecurrentCell) -> None:
        if base_cell._modified:
            raise ParamError(f"Cell {base_cell.name} is already modified. One cell cannot be modified twice")
        base_cell._modified = True
        super().__init__(prefix=base_cell.prefix + self._alias(), params=None)
        self.base_cell = base_cell

    @property
    def params(self) -> ParameterDict:
        """The parameters of the wrapped cell."""
        return self.base_cell.params

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Returns the states of the wrapped cell."""
        return self.base_cell.state_info(batch_size)

    @contextlib.contextmanager
    def _unwrapped(self) -> Iterator[RecurrentCell]:
        """Context in which the wrapped cell can be called directly."""
        self.base_cell._modified = False
        try:
            yield self.base_cell
        finally:
            self.base_cell._modified = True

    def begin_state(self, func: Callable[..., Any] = symbol.zeros, **kwargs: Any) -> list[Any]:  # type: ignore[override]
        """Returns the initial states of the wrapped cell."""
        self._check_not_modified()
        with self._unwrapped() as cell:
            return cell.begin_state(func=func, **kwargs)

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        raise not_overridden(self, "hybrid_forward()")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_cell!r})"


def _check_steps(base_cell: RecurrentCell, what: str) -> None:
    if isinstance(base_cell, BidirectionalCell):
        raise ParamError(
            f"BidirectionalCell doesn't support {what} since it doesn't support step",
            fix="wrap the cells underneath instead",
        )


class ZoneoutCell(ModifierCell):
    """Keeps outputs and states of the previous step, each value with some probability, in training.

    Source: Krueger et al., arXiv 1606.01305.

    Parameters
    ----------
    base_cell : RecurrentCell
    zoneout_outputs, zoneout_states : float, default 0
        Probabilities of keeping a value.

    Raises ParamError for a BidirectionalCell.
    """

    def __init__(self, base_cell: RecurrentCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0) -> None:
        _check_steps(base_cell, "zoneout")
        super().__init__(base_cell)
        self.zoneout_outputs = zoneout_outputs
        self.zoneout_states = zoneout_states
        self._prev_output: Any = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p_out={self.zoneout_outputs}, p_state={self.zoneout_states}, {self.base_cell!r})"

    def _alias(self) -> str:
        return "zoneout"

    def reset(self) -> None:
        """Deletes the output of the previous step."""
        super().reset()
        self._prev_output = None

    @staticmethod
    def _mix(F: Any, rate: float, new: Any, old: Any) -> Any:
        return F.where(F.Dropout(F.ones_like(new), p=rate), new, old)

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        output, next_states = self.base_cell(inputs, states)
        if self.zoneout_outputs:
            before = self._prev_output
            # An output of another mode (an array while tracing, or vice versa) belongs to another sequence.
            if type(before) is not type(output):
                before = F.zeros_like(output)
            self._prev_output = output = self._mix(F, self.zoneout_outputs, output, before)
        if self.zoneout_states:
            next_states = [
                self._mix(F, self.zoneout_states, new, old) for new, old in zip(next_states, states, strict=True)
            ]
        return output, next_states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list[Any]]:
        """Unrolls the cell over a sequence. Arguments: see RecurrentCell.unroll."""
        if not self.zoneout_outputs or not is_traced_sequence(inputs, layout):
            return super().unroll(length, inputs, begin_state, layout, merge_outputs, valid_length)
        states = begin_state_of(self, begin_state, inputs, layout)
        self.reset()
        before = self._no_output(length, inputs, layout, states)

        def step(x: Any, before: list[Any]) -> tuple[Any, list[Any]]:
            *old, self._prev_output = before
            output, new = self(x, old)
            return output, [*new, output]

        given = [*states, before]
        outputs, states = run_steps(self.base_cell, step, length, inputs, given, layout, merge_outputs, valid_length)
        self._prev_output = None  # belongs to the loop
        return outputs, states[:-1]

    def _no_output(self, length: int, inputs: Any, layout: str, states: list[Any]) -> Any:
        """Returns zeros like an output. Runs one step to find the shape; the step's result is unused."""
        sequence, _ = traced_sequence(length, inputs, layout)
        attributes = Attributes(self.base_cell)
        output, _ = self.base_cell(sequence[0], states)
        attributes.restore()
        shape, dtype = output._spec
        if shape is None or min(shape[1:], default=0) < 0:
            return symbol.zeros_like(output)
        return zeros_for_batch(inputs, layout.find("N"))((0, *shape[1:]), dtype=dtype)


class ResidualCell(ModifierCell):
    """Adds the input to the output, so the wrapped cell must keep the number of features.

    Source: Wu et al., arXiv 1609.08144.
    """

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        output, states = self.base_cell(inputs, states)
        return F.elemwise_add(output, inputs, name=f"t{self._counter}_fwd"), states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list[Any]]:
        """Runs the wrapped cell and adds the inputs of all steps. Arguments: see RecurrentCell.unroll."""
        self.reset()
        with self._unwrapped() as cell:
            outputs, states = cell.unroll(length, inputs, begin_state, layout, merge_outputs, valid_length)
        if merge_outputs is None:
            merge_outputs = isinstance(outputs, tensor_types)
        inputs, axis, functions, _ = format_sequence(length, inputs, layout, merge_outputs)
        if valid_length is not None:
            inputs = mask_beyond(functions, inputs, length, valid_length, axis, merge_outputs)
        if merge_outputs:
            return functions.elemwise_add(outputs, inputs), states
        return [functions.elemwise_add(a, b) for a, b in zip(outputs, inputs, strict=True)], states

    def _gives_array(self, ends: bool, given: bool) -> bool:
        return self.base_cell._gives_array(ends, given)
