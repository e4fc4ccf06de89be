"""Decisions that Python made while a block was traced, which are fixed in the graph and its exported file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from .._files import read_text, replacing
from ._baked_attributes import AttributeReads
from ._read_variables import ReadVariables
from ._snapshots import MOST_ITEMS, MOST_LEVELS

if TYPE_CHECKING:
    from .block import Block

__all__ = ["Decisions", "note_in_file"]

_IN_FILE = "hybridnet_traced_with"


class Decisions:
    """The values of the program that Python code read during one trace."""

    def __init__(
        self,
        attributes: AttributeReads,
        value_reads: Sequence[str],
        shape_line: str,
        shapes: Sequence[tuple[int, ...]],
        arrays: Sequence[Any] = (),
        block: Block | None = None,
        before: ReadVariables | None = None,
    ) -> None:
        self.attributes = attributes
        self._variables = ReadVariables(block, before)
        self._arrays = [_core.WatchedArray(array) for array in arrays]
        self._checks: list[Callable[[], bool]] = []
        if self._variables.some:
            self._checks.append(self._variables.hold)
        if self.attributes.has_containers:
            self._checks.append(self.attributes.holds)
        if self._arrays:
            self._checks.append(self._arrays_hold)
        self.value_reads = list(value_reads)
        self._shape_line, self._shapes = shape_line, list(shapes)
        self.draws: str = ""  # file:line of the first draw from a generator of the program

    @classmethod
    def none(cls) -> Decisions:
        """The value for graphs that were not made by running Python code."""
        return cls(AttributeReads(), [], "", [])

    @property
    def must_be_checked(self) -> bool:
        """Whether calls must check holds()."""
        return bool(self._checks)

    @property
    def holds(self) -> Callable[[], bool]:
        """Returns a function that checks that the variables, arrays and containers that were read have not changed."""
        return self._checks[0] if len(self._checks) == 1 else self._all_hold

    def _all_hold(self) -> bool:
        return all(check() for check in self._checks)

    def _arrays_hold(self) -> bool:
        return all(array.holds() for array in self._arrays)

    def warnings(self, block: Block) -> list[tuple[str, str]]:
        """Returns (text, file:line) for values that may change without a new trace."""
        name = type(block).__name__
        found = [
            (
                f"{name} is hybridized: the values of an array are read in Python while its graph is made, and the "
                "graph keeps the decisions that depend on them. It is traced again when the array is written to, but "
                "not when another array takes its place in a variable. Pass the array as an argument and branch with "
                "mx.nd.contrib.cond, or compute with operators.",
                line,
            )
            for line in self.value_reads
        ]
        for owner, attribute, line in self.attributes.changed_by_forward():
            found.append(
                (
                    f"{name} is hybridized: forward sets {owner.name}.{attribute}, which it also reads. Python code "
                    "runs when the graph is made and not at each call, so it computes with that value.",
                    line,
                )
            )
        return found + self._warnings_of_contents(name)

    def _warnings_of_contents(self, name: str) -> list[tuple[str, str]]:
        """Returns (text, file:line) for values that change in place, or that are too large to be compared."""
        attributes, variables = self.attributes, self._variables
        once = (
            "Python code runs when the graph is made and not at each call, so it computes with the values of that time."
        )
        texts = {
            f"forward changes {{}}. {once}": (
                attributes.contents_changed_by_forward(),
                variables.changed_by_forward,
            ),
            f"forward reads an iterator in {{}}. {once}": (attributes.iterators(), variables.iterators),
            f"forward reads {{}}, which holds more than {MOST_ITEMS} values or more than {MOST_LEVELS} levels. Changes "
            "behind these limits do not make it trace again: call hybridize() after them.": (
                attributes.cut(),
                variables.cut,
            ),
        }
        found = []
        for text, (of_blocks, of_code) in texts.items():
            places = [(f"{owner.name}.{attribute}", line) for owner, attribute, line in of_blocks]
            found += [(f"{name} is hybridized: {text.format(place)}", line) for place, line in (*places, *of_code)]
        return found

    def of_shapes(self) -> str:
        """Returns the limits of an exported file as text; '' if forward read no shape."""
        if not self._shape_line:
            return ""
        shapes = ", ".join(map(str, self._shapes))
        return f"the shape of an array is read in Python ({self._shape_line}): traced for inputs of shape {shapes}"

    def listed(self) -> list[str]:
        """Returns one line for each decision."""
        lines = [self.of_shapes()] if self._shape_line else []
        lines += [f"the values of an array are read in Python ({line})" for line in self.value_reads]
        lines += [f"random numbers are drawn in Python ({self.draws})"] if self.draws else []
        return lines + list(self.attributes.of_users()) + self._variables.names()


def note_in_file(symbol_file: str, decisions: Decisions) -> None:
    """Writes the decisions into the graph's file, as an attribute of the graph, which readers ignore."""
    listed = decisions.listed()
    if not listed:
        return
    graph: dict[str, Any] = json.loads(read_text(symbol_file, "export"))
    graph["attrs"] = {**graph.get("attrs", {}), _IN_FILE: ["str", "; ".join(listed)]}
    with replacing(symbol_file, "export") as file:
        file.write(json.dumps(graph, indent=2, ensure_ascii=False).encode("utf-8", "surrogatepass"))
