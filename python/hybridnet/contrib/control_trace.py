"""foreach, while_loop and cond in graphs: the functions run once on abstract arrays, what they leave becomes one node."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core, autograd, errors
from ..gluon import trace
from ..name import NameManager
from ..ndarray import NDArray
from ..symbol import Symbol
from ..util import is_np_shape
from . import control_eager
from . import control_rules as rules
from .control_calls import Cond, Foreach, Step, WhileLoop


class _Abstract(trace.Scope):
    """Runs a body on abstract arrays outside any block: for its shapes only."""

    def __init__(self) -> None:
        self._variables: dict[Any, Symbol] = {}

    def variable(self, parameter: Any) -> Symbol:
        if parameter not in self._variables:
            self._variables[parameter] = parameter._make_traced(f"{parameter.name}_{len(self._variables)}")
        return self._variables[parameter]

    def __enter__(self) -> _Abstract:
        self._before = _core.set_trace_state(True, "")
        super().__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        super().__exit__(*details)
        _core.set_trace_state(*self._before)


def _slice_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[1:] if len(shape) > 1 or is_np_shape() else (1,)


def abstract_step(call: Foreach | WhileLoop, states: list[Any]) -> tuple[Step, list[NDArray]]:
    """One iteration on abstract arrays: specs of what the body gives. Also the states as arrays."""

    def run(arrays: list[Any]) -> Step:
        slots = [_core.traced_variable(f"state{i}", a.shape, np.dtype(a.dtype)) for i, a in enumerate(arrays)]
        if isinstance(call, WhileLoop):
            return call.step(slots)
        slices = [
            _core.traced_variable(f"data{i}", _slice_shape(a.shape), np.dtype(a.dtype)) for i, a in enumerate(call.data)
        ]
        index = _core.traced_variable("index", control_eager._scalar_shape(), np.dtype(np.int64))
        return call.step(index if call.with_index else None, slices, slots)

    with autograd.pause(train_mode=autograd.is_training()), _Abstract(), NameManager():
        arrays, step = control_eager.settle_numbers(call, states, run)
    return step, arrays


def _unsupported(construct: str) -> None:
    rules.fail(
        errors.UnsupportedError,
        construct,
        "loops and branches cannot be traced into a graph yet",
        fix="call the block without hybridize()",
    )


def foreach(call: Foreach) -> tuple[Any, Any]:
    """Makes the node of a loop over data."""
    _unsupported(call.construct)


def while_loop(call: WhileLoop) -> tuple[Any, Any, Any]:
    """Makes the node of a loop with a condition."""
    _unsupported(call.construct)


def cond(call: Cond) -> Any:
    """Makes the node of a branch."""
    _unsupported(call.construct)
