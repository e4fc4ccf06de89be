"""Optimizer updates inside a compiled training step (mx.jit.train_step), as operators of its graph.

The library's table of optimizers (src/optimizer) describes their updates as data, from which nodes are made here.
Values that change at each step (rates, the step number) come from an array, one row per parameter; everything else is
an attribute of the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .. import _core, symbol
from ..errors import UnsupportedError
from .optimizer import Optimizer

if TYPE_CHECKING:
    from ..symbol import Symbol

__all__ = ["GraphUpdate", "Rule", "rule_of"]


@dataclass
class GraphUpdate:
    """The inputs of a parameter's update as nodes."""

    optimizer: Any
    index: int  # index of the parameter in its trainer
    weight: Symbol
    grad: Symbol
    state: Any  # nest of Symbols, built as the optimizer's own state
    dtype: str  # dtype of the weight
    rates: Symbol  # (parameters, columns) float64
    columns: tuple[str, ...]
    row: int
    condition: Symbol | None = None  # (1,) float32: 0 if the update is skipped

    def apply(
        self,
        op: str,
        inputs: Sequence[Symbol],
        attributes: dict[str, Any],
        rates: dict[str, str],
        row: Symbol | None = None,
    ) -> Symbol:
        """Returns the first output of an operator with some attributes from columns of the step's rates, or of row.

        If op is an update operator, it replaces the weight and the states among its inputs.
        """
        of_column = {column: attribute for attribute, column in rates.items()}
        texts = [f"{name}={value}" for name, value in attributes.items()]
        table = (self.rates if row is None else row,)
        return symbol._internal._update_with_rates(
            *inputs,
            *(table if self.condition is None else (*table, self.condition)),
            update=op,
            attributes=";".join(texts),
            rates=";".join(of_column.get(column, "-") for column in self.columns),
            row=self.row if row is None else 0,
            conditional=self.condition is not None,
        )

    def own_rates(self) -> Symbol:
        """Returns the rates of the step for this parameter, (1, columns) float64."""
        return symbol.slice_axis(self.rates, axis=0, begin=self.row, end=self.row + 1)

    def unless_skipped(self, value: Symbol, old: Symbol) -> Symbol:
        """Returns value, or old if the update is skipped."""
        if self.condition is None:
            return value
        return symbol.reshape_like(symbol._internal._npi_where(self.condition, value, old), old)

    @property
    def has_master(self) -> bool:
        """Whether the update uses a float32 copy of the weight."""
        return self.optimizer.multi_precision and self.dtype in ("float16", "bfloat16")


class Rule:
    """A row of the table of optimizers, used in graphs."""

    def __init__(self, row: Any) -> None:
        self._row = row
        self.columns: tuple[str, ...] = row.columns
        self.draws: bool = row.draws
        # Passed to each step.
        given = ("learning_rate", "wd", "rescale_grad", "begin_num_update")
        self._settings = [attribute for name, (attribute, _) in row.defaults.items() if name not in given]

    def key(self, optimizer: Any, indices: Sequence[int]) -> tuple[Any, ...]:
        """Returns a key: graphs with equal keys are valid for the next update of the parameters with these indices."""
        settings = tuple(getattr(optimizer, name) for name in self._settings)
        return (*settings, *self._variants(optimizer, indices))

    def _variants(self, optimizer: Any, indices: Sequence[int]) -> list[int]:
        if not self._row.adjusts:
            return [0] * len(indices)
        counts = [optimizer._index_update_count.get(index, optimizer.begin_num_update) + 1 for index in indices]
        return self._row.variants(optimizer, [optimizer._name(index) for index in indices], counts)

    def progress(self, optimizer: Any) -> dict[str, Any]:
        """Returns the current state of the optimizer that a step changes."""
        return {name: getattr(optimizer, name) for name in (*self._row.variables, "num_update")} | {
            "_index_update_count": dict(optimizer._index_update_count)
        }

    def set_progress(self, optimizer: Any, before: dict[str, Any]) -> None:
        """Undoes a step."""
        for name, value in before.items():
            if name == "_index_update_count":
                optimizer._index_update_count.clear()
                optimizer._index_update_count.update(value)
            else:
                setattr(optimizer, name, value)

    def rows(self, optimizer: Any, indices: Sequence[int], dtypes: Sequence[str]) -> list[list[float]]:
        """Counts an update of the parameters with these indices, and returns their rows of the table of rates.

        In the order of trainer.step: by index, or by dtype if weights are updated together.
        """
        order = sorted(range(len(indices)), key=indices.__getitem__)
        groups: dict[Any, list[int]] = {}
        for place in order:
            groups.setdefault(dtypes[place] if self._row.aggregates else None, []).append(place)
        found: list[list[float]] = [[] for _ in indices]
        for places in groups.values():
            own = [indices[place] for place in places]
            if self._row.aggregates:
                optimizer._update_count(own)
                lrs, wds = optimizer._get_lrs(own), optimizer._get_wds(own)
            else:
                begun = [optimizer._rates(index) for index in own]
                lrs, wds = [lr for lr, _ in begun], [wd for _, wd in begun]
            counts = [optimizer._index_update_count[index] for index in own]
            base_lr = optimizer.learning_rate if self._row.adjusts else 0.0
            rows = self._row.rates(optimizer, lrs, wds, counts, base_lr)
            for place, row in zip(places, rows, strict=True):
                found[place] = row
        return found

    def build(self, use: GraphUpdate) -> list[tuple[Symbol, Symbol]]:
        """Adds the nodes of an update; returns new values with the variables that store them.

        Values that an update operator replaces among its inputs are not in the list, except for the weight.
        """
        state, values = use.state, {"weight": use.weight, "grad": use.grad, "rates": use.own_rates()}
        if use.has_master:
            state, values["master"] = state if self._row.native_master else state[::-1]
        states = list(state) if isinstance(state, (list, tuple)) else [state]
        has_state = [each is not None for each in states]
        olds: dict[str, list[Any]] = {"weight": [use.weight], "master": [values.get("master")], "state": list(states)}
        written: dict[tuple[str, int], Symbol] = {}
        results: list[Symbol] = []
        of_kind: dict[str, Any] = {"state": states, "result": results}

        def value_of(operand: tuple[str, int]) -> Symbol:
            kind, place = operand
            return of_kind[kind][place] if kind in of_kind else values[kind]

        (variant,) = self._variants(use.optimizer, [use.index])
        program = self._row.program(use.optimizer, use.dtype, use.has_master, has_state, variant)
        for op, operands, attributes, rates, target, is_update, row in program:
            inputs = [value_of(operand) for operand in operands]
            if rates:
                value = use.apply(op, inputs, attributes, rates, None if row is None else value_of(row))
            else:
                value = _operator(op)(*inputs, **attributes)
            results.append(value)
            kind, place = target
            if kind == "result":
                continue
            written[target] = value if is_update else use.unless_skipped(value, olds[kind][place])
            if kind == "state":
                states[place] = value
            else:
                values[kind] = value
        return [(value, olds[kind][place]) for (kind, place), value in written.items()]


def _operator(name: str) -> Any:
    return getattr(symbol._internal if name.startswith("_") else symbol, name)


_rule_of_row = lru_cache(maxsize=64)(Rule)


def rule_of(optimizer: Optimizer) -> Rule:
    """Returns the rule of an optimizer. Raises UnsupportedError for updates written in Python."""
    row = vars(type(optimizer)).get("_rule")
    if row is not None:
        return _rule_of_row(row)
    raise UnsupportedError(
        f"train_step: optimizer {type(optimizer).__name__} cannot be compiled",
        because="its update is written in Python, not as operators",
        fix=f"use one of {', '.join(sorted(_core.optimizer_names()))}; or train with autograd.record(), backward() and "
        "trainer.step()",
    )
