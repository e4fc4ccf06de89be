"""Runs a traced graph with a callback for the inputs and outputs of every operator (Block.register_op_hook)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _core
from .._monitor_names import names_of_inputs
from ..symbol import Symbol

__all__ = ["ObservedGraph"]


class _Report(NamedTuple):
    name: str
    op: str
    position: int  # index among the values of all entries


class ObservedGraph:
    """Replaces a CachedOp: same call, but all entries are computed and reported.

    outputs : Symbol, the traced graph
    callback : called with (name, operator name, array) for each output of each operator, in order of execution; with
      monitor_all also for its inputs, before the outputs
    """

    def __init__(self, outputs: Symbol, callback: Callable[..., None], monitor_all: bool) -> None:
        internals = outputs.get_internals()
        # Outputs follow the internals, because an output may be an entry with another name among the internals.
        self._op = _core.CachedOp(_core.group([internals, outputs]), name="observed", passes="none")
        self._callback = callback
        self._count = internals.num_outputs
        self._reports = self._plan(internals, monitor_all)

    @staticmethod
    def _plan(internals: Symbol, monitor_all: bool) -> list[_Report]:
        names = internals.list_outputs()
        positions = {name: i for i, name in enumerate(names)}
        reports = []
        seen = set()
        for i, name in enumerate(names):
            entry = internals[i]
            op = _core.symbol_op(entry)
            if op is None:
                continue
            node = entry.name
            if monitor_all and node not in seen:
                children = entry.get_children()
                sources = [] if children is None else children.list_outputs()
                for source, label in zip(sources, names_of_inputs(op, len(sources)), strict=False):
                    reports.append(_Report(f"{node}_{label}", op, positions[source]))
            seen.add(node)
            reports.append(_Report(name, op, i))
        return reports

    def __call__(self, *inputs: Any) -> Any:
        values = self._op(*inputs)
        if not isinstance(values, (list, tuple)):
            values = [values]
        for report in self._reports:
            self._callback(report.name, report.op, values[report.position])
        outputs = list(values[self._count :])
        return outputs[0] if len(outputs) == 1 else outputs
