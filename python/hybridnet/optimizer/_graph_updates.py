"""How optimizers update inside a compiled training step (mx.jit.train_step): as operators of its graph.

The library's table of optimizers (src/optimizer) has their updates as data, of which nodes are made here. What changes
from step to step (rates, the number of the step) comes from an array, one row per parameter; everything else is an
attribute of the graph.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import symbol
from ..errors import UnsupportedError
from .optimizer import Optimizer

if TYPE_CHECKING:
    from ..symbol import Symbol

__all__ = ["GraphUpdate", "Rule", "rule_of"]


@dataclass
class GraphUpdate:
    """The update of one parameter as nodes: what they read."""

    optimizer: Any
    weight: Symbol
    grad: Symbol
    state: Any  # nest of Symbols, built as the optimizer's own state
    dtype: str  # of the weight
    rates: Symbol  # (parameters, columns) float64
    columns: tuple[str, ...]
    row: int
    condition: Symbol | None = None  # (1,) float32: 0 where nothing is to be updated

    def apply(
        self, update: str, inputs: Sequence[Symbol], attributes: dict[str, Any], rates: Collection[str]
    ) -> Symbol:
        """The first output of an update operator; it replaces the weight and the states among its inputs."""
        texts = [f"{name}={value}" for name, value in attributes.items()]
        table = (self.rates,) if self.condition is None else (self.rates, self.condition)
        return symbol._internal._update_with_rates(
            *inputs,
            *table,
            update=update,
            attributes=";".join(texts),
            rates=";".join(column if column in rates else "-" for column in self.columns),
            row=self.row,
            conditional=self.condition is not None,
        )

    def rate(self, column: str, dtype: str) -> Symbol:
        """One number of the table, of shape (1,)."""
        place = self.columns.index(column)
        cell = symbol.slice(self.rates, begin=(self.row, place), end=(self.row + 1, place + 1))
        return symbol.Cast(symbol.reshape(cell, shape=(1,)), dtype=dtype)

    @property
    def has_master(self) -> bool:
        """Whether the update goes through a float32 copy of the weight."""
        return self.optimizer.multi_precision and self.dtype in ("float16", "bfloat16")


class Rule:
    """A row of the table of optimizers, for graphs."""

    def __init__(self, row: Any) -> None:
        self._row = row
        self.columns: tuple[str, ...] = row.columns
        # They come with each step.
        given = ("learning_rate", "wd", "rescale_grad", "begin_num_update")
        self._settings = [attribute for name, (attribute, _) in row.defaults.items() if name not in given]

    def key(self, optimizer: Any) -> tuple[Any, ...]:
        """Graphs made for an equal key are valid."""
        return tuple(getattr(optimizer, name) for name in self._settings)

    def rows(self, optimizer: Any, indices: Sequence[int]) -> list[list[float]]:
        """Counts an update of the parameters with these indices, and gives what the table of rates holds for it."""
        if self._row.aggregates:
            optimizer._update_count(list(indices))
            lrs, wds = optimizer._get_lrs(indices), optimizer._get_wds(indices)
        else:
            begun = [optimizer._rates(index) for index in indices]
            lrs, wds = [lr for lr, _ in begun], [wd for _, wd in begun]
        counts = optimizer._index_update_count
        return self._row.rates(optimizer, lrs, wds, [counts[index] for index in indices])

    def build(self, use: GraphUpdate) -> Symbol:
        """Adds the nodes of an update and returns the new weight."""
        state, values = use.state, {"weight": use.weight, "grad": use.grad}
        if use.has_master:
            state, values["master"] = state if self._row.native_master else state[::-1]
        states = list(state) if isinstance(state, (list, tuple)) else [state]
        has_state = [each is not None for each in states]
        results: list[Symbol] = []
        program = self._row.program(use.optimizer, use.dtype, use.has_master, has_state)
        for op, operands, attributes, rates, (target, _) in program:
            of_kind: dict[str, Any] = {"state": states, "result": results}
            inputs = [of_kind[kind][place] if kind in of_kind else values[kind] for kind, place in operands]
            if op == "_full":
                results.append(use.rate(rates["value"], attributes["dtype"]))
            elif rates:
                results.append(use.apply(op, inputs, attributes, rates.values()))
            else:
                results.append(getattr(symbol, op)(*inputs, **attributes))
            if target != "result":
                values[target] = results[-1]
        return values["weight"]


def rule_of(optimizer: Optimizer) -> Rule:
    """The rule of an optimizer. Raises UnsupportedError for those whose update is not made of update operators."""
    row = vars(type(optimizer)).get("_rule")
    if row is not None and row.can_be_compiled:
        return Rule(row)
    known = Optimizer.opt_registry.values()
    compiled = {klass.__name__ for klass in known if "_rule" in vars(klass) and klass._rule.can_be_compiled}  # type: ignore[attr-defined]
    what = "is not made of update operators alone" if row is not None else "is written in Python, not as an operator"
    raise UnsupportedError(
        f"train_step: optimizer {type(optimizer).__name__} cannot be compiled",
        because=f"its update {what}",
        fix=f"use one of {', '.join(sorted(compiled))}; or train with autograd.record(), backward() and trainer.step()",
    )
