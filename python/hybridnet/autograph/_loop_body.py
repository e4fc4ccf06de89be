"""The body of a loop of the graph: the state that it carries, the lists that it fills, and checks of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _core, symbol
from .._control_flow import rules
from ..errors import TraceError
from ..symbol import Symbol
from ._branches import other_contents
from ._cells import (
    Cell,
    State,
    apart,
    binding_place,
    carried_memories,
    other_type,
    sharing_undecided,
    shown_name,
    together,
)
from ._errors import errors_of_program, refusal
from ._iterables import flipped as flip_rows
from ._journal import Frame, note_contents
from ._leaves import are_equal, as_output, placeholder_of, type_of_leaf
from ._numbers import TracedNumber, classic, fits_dtype, is_number, kind_of, wider_kind
from ._rows import FilledNow, Rows
from ._structure import UNDEFINED, Structure, is_array

__all__ = ["LoopBody", "NeedsFirstIteration", "Start", "nodes_with_gradient", "pause_of_program"]


class NeedsFirstIteration(BaseException):
    """The first iteration gives a name another type than the later ones: it must run before the loop."""

    def __init__(self, error: TraceError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass
class Start:
    """The state before the loop. slots: positions in `leaves` that the loop carries."""

    cells: list[Cell]
    structures: list[Structure]
    leaves: list[list[Any]]
    arrays: list[Any] = field(default_factory=list)  # the initial values of the carried leaves
    places: list[tuple[int, int]] = field(default_factory=list)  # (cell, leaf) of each carried leaf
    kinds: list[Any] = field(default_factory=list)  # per carried leaf: kind of a number, None for arrays


@contextmanager
def pause_of_program(paused: bool) -> Iterator[None]:
    """Restores the program's autograd.pause() while its body is traced."""
    before = _core.set_traced_pause(paused)
    try:
        yield
    finally:
        _core.set_traced_pause(before)


@contextmanager
def nodes_with_gradient(loop: LoopBody) -> Iterator[None]:
    """Makes a node through which gradients pass even in autograd.pause(): only values of the body are constants."""
    loop.paused = _core.set_traced_pause(False)
    try:
        yield
    finally:
        _core.set_traced_pause(loop.paused)


class LoopBody:
    """One attempt after another to trace the body of a loop."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.paused = False  # whether the program is in autograd.pause()
        self._site = state.site
        self._appended: list[tuple[Cell, list[Structure]]] = []
        self._item_roots: list[Any] = []  # the arrays that own the memory of appended items
        self._roots: list[Any] = []  # per carried leaf: the array that owns its memory after an iteration
        self._slots: set[int] = set()
        self.rows: list[tuple[int, Any]] = []  # the memory of each row, and the array that it is a row of

    # -- before the body --------------------------------------------------------------------------------------------

    def start(self) -> Start:
        """Takes the state before the loop apart."""
        state, plan = self.state, self.state.plan
        names = state.before
        found = Start(state.cells(), [], [])
        for i, cell in enumerate(found.cells):
            value = state.value(cell, names)
            if cell.is_generated and value is UNDEFINED and cell.key in plan.placeholders:
                structure, leaves = plan.placeholders[cell.key]
                leaves = [placeholder_of(leaf) for leaf in leaves]
                if any(is_array(leaf) for leaf in leaves):
                    _core.note_trace_read(1)  # the shape of the placeholder is that of this trace
            elif self._is_filled(cell):
                structure, leaves = Structure("object"), [value]
            else:
                structure, leaves = apart(value)
            found.structures.append(structure)
            found.leaves.append(leaves)
            if self._is_filled(cell):
                continue
            for j, (path, leaf) in enumerate(zip(structure.paths(""), leaves, strict=True)):
                kind = self._carried_kind(cell, path, leaf)
                if kind is not None:
                    self._check_is_not_written(cell, leaf, kind)
                    found.arrays.append(self._initial(cell, path, leaf, kind))
                    found.places.append((i, j))
                    found.kinds.append(None if kind == "array" else kind)
        return found

    def _check_is_not_written(self, cell: Cell, leaf: Any, kind: Any) -> None:
        """Refuses a variable that shares memory with an array to which the loop writes in place."""
        if kind != "array" or not isinstance(leaf, Symbol):
            return
        number = _core.memory_root(leaf)[1]
        if any(_core.memory_root(memory)[1] == number for memory in self.state.plan.memories):
            raise refusal(
                "HN109",
                f"{cell.text} is bound anew by this loop and shares memory with an array that the loop writes to",
                self._site.place,
                because="the two share memory until the first iteration that binds the name",
                fix="start with a copy, as in z = y.copy()",
            )

    def _is_filled(self, cell: Cell) -> bool:
        return not isinstance(cell.key, str) and cell.key[0] == "contents" and cell.key[1] in self.state.plan.filled

    def _carried_kind(self, cell: Cell, path: str, leaf: Any) -> Any:
        """Returns "array" or the kind of a number for a leaf that the loop carries, else None."""
        if is_array(leaf):
            # Arrays that are only written in place stay the same object: their memory is carried instead.
            return "array" if self._is_bound_anew(cell, path) else None
        if type(leaf) is not TracedNumber and not is_number(leaf):
            return None
        cast = self.state.plan.casts.get((cell.key, path))
        if isinstance(cast, tuple):
            return "array"
        is_counter = isinstance(cell.key, str) and not path and not self._is_rebound(cell.key)
        if (
            type(leaf) is TracedNumber or cast is not None or is_counter or cell.is_generated
            or (cell.key, path) in self.state.plan.varying
        ):  # fmt: skip
            return kind_of(leaf) if cast is None else cast
        return None

    def _is_bound_anew(self, cell: Cell, path: str) -> bool:
        """Whether the body binds the array of a leaf anew."""
        key = (cell.key, path)
        if key in self.state.plan.invariant:
            return False
        if not isinstance(cell.key, str):
            return key in self.state.plan.varying
        return bool(path) or self._is_rebound(cell.key)

    def _is_rebound(self, name: str) -> bool:
        return name in self._site.rebound or name in self.state.plan.rebound

    def _initial(self, cell: Cell, path: str, leaf: Any, kind: Any) -> Any:
        cast = self.state.plan.casts.get((cell.key, path))
        made = as_output(leaf, cast if cast is not None else None if kind == "array" else kind)
        return _core.traced_value(made)

    def carry_numbers(self, start: Start) -> bool:
        """Carries all numbers of the state from the next attempt on. Returns False if there are none."""
        before = len(self.state.plan.varying)
        for cell, structure, leaves in zip(start.cells, start.structures, start.leaves, strict=True):
            for path, leaf in zip(structure.paths(""), leaves, strict=True):
                if is_number(leaf):
                    self.state.plan.varying.add((cell.key, path))
        return len(self.state.plan.varying) > before

    # -- in the body ------------------------------------------------------------------------------------------------

    def run(
        self, start: Start, slots: Sequence[Any], memories: Sequence[Any], body: Callable[[], Any]
    ) -> tuple[list[Any], list[Any]]:
        """Runs the body with the slots in place of the carried leaves. Returns (items appended, new values)."""
        state = self.state
        with Frame() as frame, pause_of_program(self.paused):
            try:
                with carried_memories(state.plan.memories, memories):
                    self.enter(start, slots)
                    with errors_of_program(self._site.place):
                        body()
                    self._note_filled(frame)
                    state.learn(frame)
                    after = self._after(start, slots)
                    outs = self._collect_appended(start)
                    finals = [_core.traced_value(memory) for memory in state.plan.memories]
                    # Values of now: after this run, arrays from outside have their values of before it again.
                    return outs, [*[_core.traced_value(value) for value in after], *finals]
            finally:
                frame.undo()
                state.set_names(state.before)

    def enter(self, start: Start, slots: Sequence[Any]) -> None:
        """Assigns the cells for one iteration."""
        leaves = [list(given) for given in start.leaves]
        for (i, j), kind, slot in zip(start.places, start.kinds, slots, strict=True):
            leaves[i][j] = slot if kind is None else TracedNumber(slot, kind)
            # A variable that starts as a number has memory of its own from the first iteration on.
            if is_array(start.leaves[i][j]) or self.state.plan.shares:
                _core.leave_sharing_undecided(slot, sharing_undecided(self._site.place, start.cells[i].text))
        values: dict[Any, Any] = {}
        for cell, structure, given, original in zip(start.cells, start.structures, leaves, start.leaves, strict=True):
            if self._is_filled(cell):
                values[cell.key] = [FilledNow(self._site.place)]
            elif any(a is not b for a, b in zip(given, original, strict=True)):
                values[cell.key] = together(structure, given, cell.holder)
        self.state.assign(values)

    def _note_filled(self, frame: Frame) -> None:
        """Finds lists to which the body appended."""
        plan = self.state.plan
        new = False
        for key, (container, before) in frame.contents.items():
            if key in frame.fresh or key in plan.filled or type(container) is not list:
                continue
            kept = len(container) > len(before) and all(a is b for a, b in zip(container, before, strict=False))
            if kept:
                plan.filled.add(key)
                plan.containers[key] = container
                new = True
        if new:
            raise plan.again()

    def _after(self, start: Start, slots: Sequence[Any]) -> list[Any]:
        """Returns the new values of the carried leaves as arrays, after checks."""
        state = self.state
        names = state.names()
        made: list[Any] = []
        self._roots = []
        self._slots = {_core.memory_root(slot)[1] for slot in slots}
        position = 0
        for i, cell in enumerate(start.cells):
            if self._is_filled(cell):
                continue
            structure, leaves = apart(state.value(cell, names))
            if structure != start.structures[i]:
                leaves = self._other_structure(cell, start, i, structure, leaves)
            for j, (path, before, leaf) in enumerate(
                zip(start.structures[i].paths(""), start.leaves[i], leaves, strict=True)
            ):
                carried = position < len(start.places) and start.places[position] == (i, j)
                if carried:
                    made.append(self._carried(cell, path, before, leaf, slots[position], start.kinds[position]))
                    position += 1
                else:
                    self._kept(cell, path, before, leaf)
        numbers = [root[1] for root in self._roots if root is not None]
        own = [_core.memory_root(slot)[1] for slot in slots]
        of_others = [
            root is not None and root[1] in self._slots and root[1] != number
            for root, number in zip(self._roots, own, strict=True)
        ]
        if not self.state.plan.shares and (len(set(numbers)) < len(numbers) or any(of_others)):
            self.state.plan.shares = True
            raise self.state.plan.again()
        return made

    def _other_structure(self, cell: Cell, start: Start, i: int, structure: Structure, leaves: list[Any]) -> list[Any]:
        before = start.structures[i]
        name = cell.key if isinstance(cell.key, str) else ""
        if before.kind == "undefined":
            if cell.is_generated:
                specs = [type_of_leaf(leaf) for leaf in leaves]
                self.state.plan.placeholders[name] = (structure, specs)
                raise self.state.plan.again()
            if structure.kind == "undefined":
                return leaves
            error = refusal(
                "HN102",
                f"{repr(shown_name(name)) if name else cell.text} has no value before this loop, and "
                + (
                    "an iteration reads the one of the iteration before"
                    if name in self._site.head
                    else "later code reads it"
                ),
                self._site.place,
                binding_place(self._site, name),
                because="the loop may run zero times, and its variables have fixed types",
                fix=f"assign {shown_name(name)} before the loop",
            )
            raise NeedsFirstIteration(error)
        if {before.kind, structure.kind} == {"array", "number"}:
            return leaves
        values = together(before, start.leaves[i]), together(structure, leaves)
        if not isinstance(cell.key, str) and cell.key[0] == "contents":
            raise refusal(
                "HN107",
                f"{cell.text} has {len(start.leaves[i])} values before an iteration and {len(leaves)} after it",
                self._site.place,
                because="the structure of containers is fixed while the graph is made",
                fix="append to a list that starts empty, or write into an array",
            )
        raise NeedsFirstIteration(
            other_type(
                self._site, cell, "", *values, ("before the loop", "after an iteration"),
                "give it the same type, length and keys before the loop",
            )
        )  # fmt: skip

    def _carried(self, cell: Cell, path: str, before: Any, leaf: Any, slot: Any, kind: Any) -> Any:
        plan, key = self.state.plan, (cell.key, path)
        self._check_is_not_written(cell, leaf, "array")
        self._roots.append(_core.memory_root(leaf) if isinstance(leaf, Symbol) else None)
        if leaf is before and is_array(leaf):
            plan.invariant.add(key)
            raise plan.again()
        if kind is not None:
            if is_array(leaf):
                return self._number_becomes_array(cell, path, before, leaf)
            if type(leaf) is not TracedNumber and not is_number(leaf):
                raise self._other(cell, path, before, leaf)
            wide = wider_kind(kind, kind_of(leaf))
            if wide != kind:
                plan.casts[key] = wide
                raise plan.again()
            return as_output(leaf, kind)
        spec = rules.spec_of(slot)
        if not is_array(leaf):
            is_value = type(leaf) is TracedNumber or is_number(leaf)
            if is_value and spec is not None and fits_dtype(leaf, spec[1]):
                return as_output(leaf, spec)
            raise self._other(cell, path, before, leaf)
        new = rules.spec_of(leaf)
        if spec is not None and new is not None and spec != new and not self._may_change(cell, spec, new):
            if is_number(before) or type(before) is TracedNumber:
                return self._number_becomes_array(cell, path, before, leaf)
            raise NeedsFirstIteration(
                other_type(
                    self._site, cell, path, slot, leaf, ("before an iteration", "after it"),
                    "cast or reshape the initial value, or declare mx.autograph.shape_invariants",
                )
            )  # fmt: skip
        return leaf

    def _may_change(self, cell: Cell, before: Any, after: Any) -> bool:
        sizes = (self.state.options.get("shape_invariants") or {}).get(cell.key)
        return sizes is not None and before[1] == after[1] and len(before[0]) == len(after[0]) == len(sizes)

    def _number_becomes_array(self, cell: Cell, path: str, before: Any, leaf: Any) -> Any:
        spec = rules.spec_of(leaf)
        plan, key = self.state.plan, (cell.key, path)
        is_scalar = spec is not None and int(np.prod(spec[0], dtype=np.int64)) == 1
        if spec is None or not is_scalar or isinstance(plan.casts.get(key), tuple) or not fits_dtype(before, spec[1]):
            raise NeedsFirstIteration(self._other(cell, path, before, leaf))
        plan.casts[key] = spec
        raise plan.again()

    def _other(self, cell: Cell, path: str, before: Any, leaf: Any) -> TraceError:
        return other_type(
            self._site, cell, path, before, leaf, ("before the loop", "after an iteration"),
            "start with an array of the same shape and dtype",
        )  # fmt: skip

    def _kept(self, cell: Cell, path: str, before: Any, leaf: Any) -> None:
        """Checks a leaf that the loop does not carry."""
        if before is leaf or (not is_array(before) and are_equal(before, leaf)):
            return
        name = cell.key if isinstance(cell.key, str) else ""
        if is_array(before) and is_array(leaf) and (cell.key, path) in self.state.plan.invariant:
            raise self._other(cell, path, before, leaf)
        if not name and is_array(before) and is_array(leaf):
            self.state.plan.varying.add((cell.key, path))
            raise self.state.plan.again()
        if name and is_array(before) and not self._is_rebound(name):
            self.state.plan.rebound.add(name)  # x += y bound the name to another object: it is no write in place
            raise self.state.plan.again()
        numbers = (is_number(before) or type(before) is TracedNumber) and (
            is_number(leaf) or type(leaf) is TracedNumber or is_array(leaf)
        )
        if numbers:
            if is_array(leaf):
                self._number_becomes_array(cell, path, before, leaf)
            self.state.plan.varying.add((cell.key, path))
            raise self.state.plan.again()
        if not name and cell.key[0] == "contents" and not is_array(before):
            raise other_contents(self._site, cell, before, leaf, ("before the loop", "after an iteration"))
        raise NeedsFirstIteration(self._other(cell, path, before, leaf))

    def _collect_appended(self, start: Start) -> list[Any]:
        self._appended, self._item_roots = [], []
        outs: list[Any] = []
        for cell in start.cells:
            if not self._is_filled(cell):
                continue
            contents = list(cell.holder)
            if not contents or type(contents[0]) is not FilledNow or any(type(c) is FilledNow for c in contents[1:]):
                raise refusal(
                    "HN104",
                    "a list changes in another way than by append in this loop",
                    self._site.place,
                    because="the items of all iterations become one array after the loop",
                    fix="only append to it in the loop",
                )
            structures = []
            for item in contents[1:]:
                structure, leaves = apart(item)
                arrays = [as_output(leaf, None) for leaf in leaves]
                self._note_appended(leaves)
                if any(array is None for array in arrays):
                    raise refusal(
                        "HN104",
                        "an item that this loop appends to a list is neither an array nor a number",
                        self._site.place,
                        fix="append arrays, or tuples and dicts of arrays",
                    )
                structures.append(structure)
                outs += [_core.traced_value(array) for array in arrays]
            self._appended.append((cell, structures))
        return outs

    def _note_appended(self, leaves: list[Any]) -> None:
        """Records the memory of the arrays of an item; refuses memory that the loop writes to in place."""
        written = {_core.memory_root(memory)[1] for memory in self.state.plan.memories}
        for leaf in leaves:
            if not isinstance(leaf, Symbol):
                continue
            root = _core.memory_root(leaf)
            if root[1] in written:
                raise refusal(
                    "HN109",
                    "an array is appended to a list in each iteration and written to in place by the loop",
                    self._site.place,
                    because="all items of the list would be this one array; the graph stacks its values instead",
                    fix="append a copy, as in items.append(x.copy())",
                )
            self._item_roots.append(root)

    # -- after the loop ---------------------------------------------------------------------------------------------

    def finish(self, start: Start, outs: list[Any], finals: list[Any], count: int | None, flipped: bool) -> None:
        """Assigns the state after the loop."""
        state = self.state
        number = len(state.plan.memories)
        memories = finals[len(finals) - number :]
        for memory, value in zip(state.plan.memories, memories, strict=True):
            _core.traced_write(memory, value, False, True)
        leaves = [list(given) for given in start.leaves]
        for (i, j), kind, value in zip(start.places, start.kinds, finals, strict=False):
            leaves[i][j] = value if kind is None else TracedNumber(value, kind)
        values = {
            cell.key: together(structure, given, cell.holder)
            for cell, structure, given, original in zip(
                start.cells, start.structures, leaves, start.leaves, strict=True
            )
            if not self._is_filled(cell)
            and (cell.key in state.plan.placeholders or any(a is not b for a, b in zip(given, original, strict=True)))
        }
        self._leave_sharing_undecided(start, finals, count)
        self._share_with_items(start)
        state.assign(values)
        rest = iter(outs)
        for cell, structures in self._appended:
            self._add_rows(cell, structures, rest, count, flipped)

    def _leave_sharing_undecided(self, start: Start, finals: list[Any], count: int | None) -> None:
        """Refuses later writes to results whose memory may be that of another array, and to that array."""
        numbers = [root[1] for root in self._roots if root is not None]
        for (i, j), kind, value, root in zip(start.places, start.kinds, finals, self._roots, strict=False):
            if kind is not None or root is None:
                continue
            cell, before = start.cells[i], start.leaves[i][j]
            others = [root[0]] if root[2] else []
            others += [array for number, array in self.rows if number == root[1]]
            is_item = any(root[1] == item[1] for item in self._item_roots)
            is_slot = root[1] in self._slots and is_array(before)
            shares = bool(others) or is_item or is_slot or numbers.count(root[1]) > 1 or root[3]
            if (root[3] or root[1] in self._slots) and isinstance(before, Symbol):
                others.append(_core.memory_root(before)[0])
            if not count and isinstance(before, Symbol) and cell.key not in self.state.private:
                others.append(_core.memory_root(before)[0])  # zero iterations
                shares = True
            if shares:
                for array in (value, *others):
                    _core.leave_sharing_undecided(array, sharing_undecided(self._site.place, cell.text))

    def _share_with_items(self, start: Start) -> None:
        """Refuses later writes to arrays from outside that are items of a list which the loop fills."""
        text = sharing_undecided(self._site.place, "items of a list")
        for root, number, outside, _ in self._item_roots:
            owners = [array for row, array in self.rows if row == number]
            if number in self._slots:
                owners += [start.leaves[i][j] for i, j in start.places if isinstance(start.leaves[i][j], Symbol)]
            for array in [*owners, *([root] if outside else [])]:
                _core.leave_sharing_undecided(_core.memory_root(array)[0], text)

    def _add_rows(self, cell: Cell, structures: list[Structure], rest: Any, count: int | None, flipped: bool) -> None:
        note_contents(cell.holder)
        rows = []
        for structure in structures:
            stacked = [next(rest) for _ in structure.paths("")]
            if flipped:
                stacked = [flip_rows(array) for array in stacked]
            rows.append((structure, stacked))
        if any(structure.kind == "maybe" for structure, _ in rows):
            rows = [_optional_rows(structure, stacked) for structure, stacked in rows]
        first = rows[0][0]
        if any(structure != first for structure, _ in rows):
            raise refusal(
                "HN104", "an iteration of this loop appends items of different structures to a list", self._site.place,
                fix="append them to different lists",
            )  # fmt: skip
        leaves = [_interleaved([arrays[i] for _, arrays in rows]) for i in range(len(rows[0][1]))]
        if first.kind == "maybe":
            first, leaves, count = first.detail, _present(leaves), None
        total = None if count is None else count * len(rows)
        structure = first
        if first.kind == "rows":  # an inner loop filled the list: its rows are rows of rows
            structure, inner, _ = first.detail
            leaves = [symbol.reshape(classic(leaf), shape=(-3, -2)) for leaf in leaves]
            total = None if total is None or inner is None else total * inner
        elif first.kind == "number":
            structure = Structure("array")
        numbers = [root[1] for root in self._item_roots]
        own = all(not root[2] and root[1] not in self._slots for root in self._item_roots)
        if not own or len(set(numbers)) < len(numbers) or any(number in numbers for number, _ in self.rows):
            for leaf in leaves:
                _core.leave_sharing_undecided(leaf, sharing_undecided(self._site.place, "items of a list"))
        cell.holder.append(Rows(structure, leaves, total, self._site.place))


def _optional_rows(structure: Structure, stacked: list[Any]) -> tuple[Structure, list[Any]]:
    """Returns rows as optional ones, which have a last array that says which are present."""
    if structure.kind == "maybe":
        return structure, [*stacked[:-1], _first_elements(symbol.cast(classic(stacked[-1]), dtype="int32"))]
    every = symbol.ones_like(symbol.cast(_first_elements(classic(stacked[0])), dtype="int32"))
    children = (*structure.children, Structure("number")) if structure.children else (structure, Structure("number"))
    return Structure("maybe", children, structure), [*stacked, every]


def _first_elements(stacked: Any) -> Any:
    """Returns an array of shape (T, 1) from one of shape (T, ...)."""
    return symbol.slice_axis(symbol.reshape(stacked, shape=(0, -1)), axis=1, begin=0, end=1)


def _present(leaves: list[Any]) -> list[Any]:
    """Returns the rows for which the last array is true."""
    mask = symbol.reshape(symbol.cast(classic(leaves[-1]), dtype="int32"), shape=(-1,))
    return [rules.in_interface(leaf, symbol.contrib.boolean_mask(classic(leaf), mask)) for leaf in leaves[:-1]]


def _interleaved(arrays: list[Any]) -> Any:
    if len(arrays) == 1:
        return arrays[0]
    specs = [rules.spec_of(array) for array in arrays]
    whole = symbol.stack(*map(classic, arrays), axis=1)
    rank = len(specs[0][0]) if specs[0] is not None else 2
    return rules.in_interface(arrays[0], symbol.reshape(whole, shape=(-3, -2) if rank > 1 else (-3,)))
