"""if statements and conditional expressions whose condition is known only when the graph runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core, _tracing
from .._control_flow import rules
from .._control_flow.trace import Body, may_differ
from ..errors import TraceError
from ..symbol import Symbol
from ._cells import (
    Again,
    Cell,
    NeedsFilledList,
    RestartTrace,
    State,
    apart,
    binding_place,
    carried_memories,
    innermost_range,
    inside_loop,
    other_type,
    sharing_undecided,
    shown_name,
    together,
)
from ._convert import Site
from ._errors import ConversionError, errors_of_program, refusal
from ._journal import Frame, frames
from ._leaves import are_equal, as_output, placeholder_of, type_of_leaf
from ._numbers import TracedNumber, fits_dtype, is_number, kind_of, wider_kind
from ._rows import FilledNow, MaybeItem
from ._structure import UNDEFINED, Structure, is_array, take_apart

__all__ = ["choose", "stage_if"]

_DEEPEST = 20
_BRANCHES = ("then branch", "else branch")


@dataclass
class _Outcome:
    """The state at the end of one branch."""

    cells: list[Cell]
    structures: list[Structure]
    leaves: list[list[Any]]
    outs: list[Any]  # an array per leaf, or None; then the arrays written in place
    items: list[list[Any]]  # per cell of a list that a loop fills: structure and types of each item
    specs: list[list[Any]]  # per cell with a generated name: the types of its leaves
    roots: list[tuple[Any, int, bool] | None]  # per leaf: what owns its memory
    body: Any = None


def stage_if(
    test: Any,
    then: Callable[[], Any],
    other: Callable[[], Any],
    get: Callable[[], tuple[Any, ...]] | None,
    set_: Callable[[Any], None] | None,
    site: Site,
) -> None:
    """Makes a _cond node of an if statement and assigns the names that its branches bind."""
    test = predicate(test, site)
    state = State(site, get, set_)
    branch = _If(state, test, (then, other))
    while True:
        try:
            with _tracing.Refusals(tells_outer=False):
                values = branch.trace()
            break
        except Again:
            state.set_names(state.before)
            continue
        except TraceError as error:
            state.set_names(state.before)
            if state.retry_for_memory(error):
                continue
            _tracing.note_refusal(error)
            raise
    branch.finish(values)


def predicate(test: Any, site: Site) -> Any:
    """Returns a condition as an array of one element."""
    array = test.array if type(test) is TracedNumber else test
    spec = rules.spec_of(array)
    if spec is not None and int(np.prod(spec[0], dtype=np.int64)) != 1:
        raise refusal(
            "HN103",
            f"the condition of this {site.place.construct} has shape {tuple(spec[0])}",
            site.place,
            because="it decides once, so it must have one element; the truth value of more is ambiguous",
            fix="reduce it with .max() (any) or .min() (all), or choose element by element with where",
        )
    return array


class _If:
    """One attempt after another to trace both branches."""

    def __init__(self, state: State, test: Any, runs: Sequence[Callable[[], Any]]) -> None:
        self._state, self._test, self._runs = state, test, runs
        self._site = state.site

    def trace(self) -> list[Any]:
        """Traces both branches, makes the node; returns the values of the cells and of the memories."""
        outcomes = [self._branch(i) for i in (0, 1)]
        one, two = outcomes
        if [cell.key for cell in one.cells] != [cell.key for cell in two.cells]:
            raise self._state.plan.again()
        for i, cell in enumerate(one.cells):
            self._match(cell, one, two, i)
        return self._make(one, two)

    def _branch(self, which: int) -> _Outcome:
        state = self._state
        line = str(self._site.place)
        if len(frames()) > _DEEPEST:
            raise refusal(
                "HN108",
                f"more than {_DEEPEST} branches and loops of the graph are inside each other",
                self._site.place,
                because="a function that calls itself on a condition of the graph has no end while the graph is made",
                fix="write the recursion as a while loop",
            )
        with Body(f"the {_BRANCHES[which]} of {self._site.place.construct}", line) as body, Frame() as frame:
            try:
                with carried_memories(state.plan.memories):
                    state.set_names(state.before)
                    with errors_of_program(self._site.place):
                        self._runs[which]()
                    state.learn(frame, which)
                    outcome = self._collect()
                    outcome.body = body
                    outs = [out for out in outcome.outs if out is not None]
                    body.close(outs, hoist=False)
            finally:
                frame.undo()
        state.set_names(state.before)
        return outcome

    def _collect(self) -> _Outcome:
        state, plan = self._state, self._state.plan
        names = state.names()
        outcome = _Outcome(state.cells(), [], [], [], [], [], [])
        for cell in outcome.cells:
            value = state.value(cell, names)
            if cell.is_generated and value is UNDEFINED and cell.key in plan.placeholders:
                structure, leaves = plan.placeholders[cell.key]
                leaves = [placeholder_of(leaf) for leaf in leaves]
            else:
                if cell.key in plan.optional:
                    value = _with_optional(value, *plan.optional[cell.key])
                structure, leaves = apart(value)
            outcome.structures.append(structure)
            outcome.items.append(_item_specs(value))
            outcome.leaves.append(leaves)
            outcome.specs.append([type_of_leaf(leaf) for leaf in leaves] if cell.is_generated else [])
            for path, leaf in zip(structure.paths(""), leaves, strict=True):
                outcome.outs.append(as_output(leaf, plan.casts.get((cell.key, path))))
                outcome.roots.append(_core.memory_root(leaf) if isinstance(leaf, Symbol) else None)
        outcome.outs += [_core.traced_value(memory) for memory in plan.memories]
        return outcome

    def _match(self, cell: Cell, one: _Outcome, two: _Outcome, i: int) -> None:
        """Checks that a cell has the same structure after both branches."""
        first, second = one.structures[i], two.structures[i]
        if first == second:
            return
        name = cell.key if isinstance(cell.key, str) else ""
        undefined = [s.kind == "undefined" for s in (first, second)]
        if any(undefined):
            known = two if undefined[0] else one
            if cell.is_generated and name not in self._state.plan.placeholders:
                self._state.plan.placeholders[name] = (known.structures[i], known.specs[i])
                raise self._state.plan.again()
            raise refusal(
                "HN101",
                f"{shown_name(name)!r} has a value after only the {_BRANCHES[0 if undefined[1] else 1]} of this if, "
                "and later code reads it",
                self._site.place,
                binding_place(self._site, name),
                because="the condition is known only when the graph runs, so both branches must bind the name",
                fix=f"assign {shown_name(name)} before the if, or in both branches",
            )
        self._reconcile(cell, one, two, i)

    def _reconcile(self, cell: Cell, one: _Outcome, two: _Outcome, i: int) -> None:
        """Handles a number in one branch and an array in the other; refuses other differences."""
        values = [together(o.structures[i], o.leaves[i]) for o in (one, two)]
        first, second = one.structures[i], two.structures[i]
        pairs = (
            list(zip(first.paths(""), one.leaves[i], strict=True)),
            list(zip(second.paths(""), two.leaves[i], strict=True)),
        )
        if _without_leaves(first) == _without_leaves(second):
            new = False
            for (path, a), (_, b) in zip(*pairs, strict=True):
                if is_array(a) == is_array(b):
                    continue
                array = a if is_array(a) else b
                number = b if is_array(a) else a
                spec = rules.spec_of(array)
                is_value = type(number) is TracedNumber or is_number(number)
                if (
                    is_value
                    and spec is not None
                    and fits_dtype(number, spec[1])
                    and int(np.prod(spec[0], dtype=np.int64)) == 1
                ):
                    if (cell.key, path) not in self._state.plan.casts:
                        self._state.plan.casts[cell.key, path] = spec
                        new = True
                    continue
                raise other_type(
                    self._site, cell, path, a, b, ("after the then branch", "after the else branch"),
                    "make an array of the same shape in both branches, as in mx.nd.full_like(x, 0)",
                )  # fmt: skip
            if new:
                raise self._state.plan.again()
            return
        if not isinstance(cell.key, str) and cell.key[0] == "contents":
            self._make_optional(cell, one.items[i], two.items[i], values)
            raise refusal(
                "HN107",
                f"{cell.text} has other items after one branch of this if: "
                f"{len(one.leaves[i])} and {len(two.leaves[i])} values",
                self._site.place,
                because="the structure of containers is fixed while the graph is made",
                fix="change it in the same way in both branches, or use arrays and where",
            )
        raise other_type(
            self._site, cell, "", values[0], values[1], ("after the then branch", "after the else branch"),
            "give it the same type, length and keys in both branches",
        )  # fmt: skip

    def _make_optional(self, cell: Cell, one: list[Any], two: list[Any], values: list[Any]) -> None:
        """Handles a list that a loop fills and to which only one branch appends."""
        if one and two and len(one) != len(two) and cell.key not in self._state.plan.optional:
            longer = one if len(one) > len(two) else two
            common = min(len(one), len(two))
            if all(spec is not None for spec in longer[common:]):
                self._state.plan.optional[cell.key] = (common, longer[common:])
                raise self._state.plan.again()
        is_outer = not any(id(cell.holder) in frame.fresh for frame in frames())
        if not (one or two) and type(cell.holder) is list and is_outer and _appended(cell.holder, values):
            if inside_loop():
                raise NeedsFilledList(cell.holder)
            if site := innermost_range():
                raise RestartTrace(site)

    def _make(self, one: _Outcome, two: _Outcome) -> list[Any]:
        plan, count = self._state.plan, len(self._state.plan.memories)
        leaves = list(zip(_flat(one.leaves), _flat(two.leaves), strict=True))
        cells = [(cell, path) for cell, s in zip(one.cells, one.structures, strict=True) for path in s.paths("")]
        for (cell, path), (a, b), x, y in zip(cells, leaves, one.outs, two.outs, strict=False):
            self._check_leaf(cell, path, a, b, x, y)
        if not any(out is not None for out in one.outs):
            return [together(s, leaves_) for s, leaves_ in zip(one.structures, one.leaves, strict=True)]
        pairs = [(x, y) for x, y in zip(one.outs, two.outs, strict=True) if x is not None]
        dynamic = any(may_differ(x, y) for x, y in pairs)
        # Gradients pass through the node even in autograd.pause(): only values of the branches are constants.
        paused = _core.set_traced_pause(False)
        try:
            made = _core.control_cond(self._test, one.body.handle, two.body.handle, dynamic, False, None)
        finally:
            _core.set_traced_pause(paused)
        parts = iter(rules.in_interface(x, part) for (x, _), part in zip(pairs, made, strict=True))
        results: list[Any] = []
        shared: dict[tuple[int, int], Any] = {}
        reasons: list[tuple[Any, Any]] = []
        for i, (a, b) in enumerate(leaves):
            part = next(parts) if one.outs[i] is not None else None
            results.append(
                self._result(
                    a,
                    b,
                    part,
                    (one.roots[i], two.roots[i]),
                    shared,
                    reasons,
                    plan.casts.get((cells[i][0].key, cells[i][1])),
                )
            )
        self._memories = [next(parts) for _ in range(count)]
        for array, root in reasons:
            text = sharing_undecided(self._site.place)
            _core.leave_sharing_undecided(array, text)
            if root is not None:
                _core.leave_sharing_undecided(root, text)
        values, rest = [], iter(results)
        for cell, structure, other in zip(one.cells, one.structures, one.leaves, strict=True):
            taken = [next(rest) for _ in other]
            values.append(together(structure, taken, cell.holder if cell.holder is not None else None))
        return values

    def _check_leaf(self, cell: Cell, path: str, a: Any, b: Any, x: Any, y: Any) -> None:
        when = ("after the then branch", "after the else branch")
        if x is None or y is None:
            if a is b or (x is None and y is None and are_equal(a, b)):
                return
            if not isinstance(cell.key, str) and cell.key[0] == "contents":
                raise other_contents(self._site, cell, a, b, when)
            raise other_type(
                self._site, cell, path, a, b, when, "keep values of Python equal in both branches, or use arrays"
            )
        one, two = rules.spec_of(x), rules.spec_of(y)
        key = (cell.key, path)
        if not is_array(a) and not is_array(b) and key not in self._state.plan.casts:
            if one != two:
                self._state.plan.casts[key] = wider_kind(kind_of(a), kind_of(b))
                raise self._state.plan.again()
            return
        if one is None or two is None or one == two:
            return
        if one[1] != two[1] or len(one[0]) != len(two[0]):
            raise other_type(self._site, cell, path, a, b, when, "cast or reshape the value in one of the branches")

    def _result(
        self, a: Any, b: Any, part: Any, roots: Any, shared: dict[Any, Any], reasons: list[Any], cast: Any
    ) -> Any:
        """Returns the value of a leaf after the if."""
        if part is None or a is b:
            return a
        if not is_array(a) and not is_array(b) and not isinstance(cast, tuple):
            if is_number(a) and is_number(b) and type(a) is type(b) and are_equal(a, b):
                return a
            return TracedNumber(part, wider_kind(kind_of(a), kind_of(b)))
        if roots[0] is None or roots[1] is None:
            return part
        key = (id(a), id(b))
        if key in shared:
            return shared[key][0]
        numbers = [root[1] for root in roots]
        for other, theirs in shared.values():
            if any(x == y for x, y in zip(numbers, theirs, strict=True)):
                reasons.append((part, None))
                reasons.append((other, None))
        shared[key] = (part, numbers)
        reasons += [(part, root[0]) for root in roots if root[2]]
        return part

    def finish(self, values: list[Any]) -> None:
        """Assigns the results."""
        state = self._state
        for memory, value in zip(state.plan.memories, getattr(self, "_memories", []), strict=True):
            _core.traced_write(memory, value, False, True)
        state.assign({cell.key: value for cell, value in zip(state.cells(), values, strict=True)})


def other_contents(site: Site, cell: Cell, one: Any, two: Any, when: tuple[str, str]) -> ConversionError:
    """Returns error HN107 for a container such as a set, whose items are objects of Python."""
    return refusal(
        "HN107",
        f"{cell.text} is {one!r:.60} {when[0]} and {two!r:.60} {when[1]}",
        site.place,
        because="objects of Python are fixed while the graph is made",
        fix="keep the values in an array, or change the container outside of this construct",
    )


def _appended(before: list[Any], values: list[Any]) -> bool:
    """Whether both branches at most append to a list."""
    return all(
        len(value) >= len(before) and all(a is b for a, b in zip(before, value, strict=False)) for value in values
    )


def _item_specs(items: Any) -> list[Any]:
    """Returns structure and types of each item of a list that a loop fills; None for items that cannot be optional."""
    found: list[Any] = []
    if type(items) is not list or not items or type(items[0]) is not FilledNow:
        return found
    for item in items:
        structure, leaves = apart(item)
        if structure.kind == "maybe":
            structure, leaves = structure.detail, leaves[:-1]
        known = structure.kind != "rows" and all(as_output(leaf, None) is not None for leaf in leaves)
        found.append((structure, [type_of_leaf(leaf) for leaf in leaves]) if known else None)
    return found


def _with_optional(items: list[Any], common: int, specs: list[Any]) -> list[Any]:
    """Returns the items of a list with those behind the common ones as optional ones."""
    made = list(items[:common])
    for i, (structure, types) in enumerate(specs):
        if common + i < len(items):
            item = items[common + i]
            leaves: list[Any] = []
            if not isinstance(item, MaybeItem):
                item = MaybeItem(take_apart(item, leaves), [as_output(leaf, None) for leaf in leaves], True)
        else:
            item = MaybeItem(structure, [as_output(placeholder_of(spec), None) for spec in types], False)
        made.append(item)
    return made


def choose(test: Any, one: Callable[[], Any], two: Callable[[], Any], site: Site) -> Any:
    """Returns the value of a conditional expression whose condition is traced."""
    from dataclasses import replace

    result: list[Any] = [UNDEFINED]

    def assigns(branch: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            result[0] = branch()

        return run

    def set_(values: tuple[Any, ...]) -> None:
        result[0] = values[0]

    name = "the value"
    stage_if(
        test, assigns(one), assigns(two), lambda: (result[0],), set_,
        replace(site, names=(name,), live=frozenset((name,)), rebound=frozenset((name,))),
    )  # fmt: skip
    return result[0]


def _flat(lists: Sequence[list[Any]]) -> list[Any]:
    return [item for items in lists for item in items]


def _without_leaves(structure: Structure) -> Structure:
    if structure.kind in ("array", "number") and not structure.children:
        return Structure("leaf")
    return Structure(structure.kind, tuple([_without_leaves(child) for child in structure.children]), structure.detail)
