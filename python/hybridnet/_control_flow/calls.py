"""Checked arguments of one use of foreach, while_loop or cond, and calls of the user's functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .. import errors
from . import nests, rules
from .nests import Nest


@dataclass(frozen=True)
class BodyNode:
    """A value of a loop's body, passed to a policy given as ``checkpoint=``.

    op: name of the operator, "_foreach", "_while_loop" or "_cond". attrs: its parameters as strings. shapes, dtypes:
    per output; None if the trace does not know them.
    """

    op: str
    name: str
    attrs: dict[str, str]
    shapes: tuple[tuple[int, ...] | None, ...]
    dtypes: tuple[Any, ...]


@dataclass
class Step:
    """The results of one run of a body, as flat lists."""

    outs: list[Any]
    out_nest: Nest
    states: list[Any]


@dataclass
class Foreach:
    """The arguments of one use of foreach."""

    body: Callable[..., Any]
    data: list[Any]
    data_nest: Nest
    states: list[Any]  # arrays and numbers
    state_nest: Nest
    length: int | None
    reverse: bool
    with_index: bool
    truncate_gradient: int
    detach_every: int
    checkpoint: Any
    name: str | None
    construct: str = "foreach"
    rows_by_iteration: ClassVar[bool] = False  # rows of outputs are in the order of the iterations

    @property
    def stand_ins(self) -> Sequence[Any]:
        """Values from outside the loop that the last states replace: if the body reads them, it reads these states."""
        return ()

    @property
    def function(self) -> Callable[..., Any]:
        return self.body

    def state_paths(self) -> list[str]:
        return self.state_nest.paths("states")

    def step(self, index: Any, slices: Sequence[Any], states: Sequence[Any]) -> Step:
        """Runs the body once and checks its results."""
        arguments = [nests.restore(self.data_nest, slices), nests.restore(self.state_nest, states)]
        result = self.body(index, *arguments) if self.with_index else self.body(*arguments)
        outs, new_states = rules.split_step(self.construct, result, self.body)
        return _checked_step(self, outs, new_states, states, self.state_nest)

    def ends_after(self, step: Step) -> bool:
        """Called after each iteration on arrays: returns whether the loop ends before its last row."""
        return False


@dataclass
class WhileLoop:
    """The arguments of one use of while_loop."""

    cond: Callable[..., Any]
    func: Callable[..., Any]
    states: list[Any]
    state_nest: Nest
    spread: bool  # loop_vars was a list or tuple: its items become the arguments of the functions
    max_iterations: Any  # int, array of one element, or None
    exact: bool
    has_outputs: bool
    on_limit: str
    checkpoint: Any = None
    free_sizes: list[Sequence[Any]] = field(default_factory=list)  # per state
    name: str | None = None
    construct: str = "while_loop"

    @property
    def stand_ins(self) -> Sequence[Any]:
        """Same as Foreach.stand_ins."""
        return ()

    @property
    def function(self) -> Callable[..., Any]:
        return self.func

    def state_paths(self) -> list[str]:
        return self.state_nest.paths("loop_vars")

    def _arguments(self, states: Sequence[Any]) -> Sequence[Any]:
        value = nests.restore(self.state_nest, states)
        return value if self.spread else (value,)

    def test(self, states: Sequence[Any]) -> Any:
        """Returns the condition, an array or a number."""
        return self.cond(*self._arguments(states))

    def step(self, states: Sequence[Any]) -> Step:
        """Runs the body once and checks its results."""
        result = self.func(*self._arguments(states))
        outs, new_states = rules.split_step(self.construct, result, self.func) if self.has_outputs else ([], result)
        if self.spread and len(self.state_nest.children) == 1 and rules.is_array(new_states):
            new_states = [new_states]
        return _checked_step(self, outs, new_states, states, self.state_nest)


def _checked_step(
    call: Foreach | WhileLoop, outs: Any, new_states: Any, states: Sequence[Any], state_nest: Nest
) -> Step:
    path = "states" if isinstance(call, Foreach) else "loop_vars"
    out_leaves, out_nest = rules.take_apart(call.construct, outs, "outputs")
    leaves, nest = rules.take_apart(call.construct, new_states, path)
    if call.state_nest.kind == "array" and nest.kind in ("list", "tuple") and len(leaves) == 1:
        nest = state_nest  # a single state may be returned in a list
    rules.check_structure(
        call.construct,
        state_nest,
        nest,
        path,
        call.function,
        "an iteration must return the states that the next one takes",
    )
    free = getattr(call, "free_sizes", None) or [()] * len(leaves)
    for name, before, after, sizes in zip(nest.paths(path), states, leaves, free, strict=True):
        if not rules.is_number(before):
            rules.check_kept_spec(
                call.construct, name, rules.spec_of(before), rules.spec_of(after), call.function, sizes
            )
    return Step(out_leaves, out_nest, leaves)


@dataclass
class Cond:
    """The arguments of one use of cond."""

    pred: Any
    then_func: Callable[..., Any]
    else_func: Callable[..., Any]
    inputs: Sequence[Any]
    strict_shape: bool
    name: str | None
    construct: str = "cond"

    def branch(self, taken: bool) -> tuple[list[Any], Nest]:
        """Runs one of the functions; returns its flattened results."""
        result = (self.then_func if taken else self.else_func)(*self.inputs)
        return rules.take_apart(self.construct, result, "outputs")

    def check_branches(self, then: list[Any], then_nest: Nest, other: list[Any], other_nest: Nest) -> None:
        """Raises an error unless both branches have the same structure, dtypes and numbers of axes."""
        rules.check_structure(
            self.construct,
            then_nest,
            other_nest,
            "outputs",
            self.else_func,
            "later steps do not know which branch was taken",
            f"those of then_func ({rules.line_of(self.then_func)})",
        )
        for path, one, two in zip(then_nest.paths("outputs"), then, other, strict=True):
            self._check_specs(path, rules.spec_of(one), rules.spec_of(two))

    def _check_specs(self, path: str, one: rules.Spec | None, two: rules.Spec | None) -> None:
        if one is None or two is None or one == two:
            return
        if one[1] == two[1] and len(one[0]) == len(two[0]) and not self.strict_shape:
            return
        kind = errors.DTypeError if one[1] != two[1] else errors.ShapeError
        rules.fail(
            kind,
            self.construct,
            f"{path} differs between the branches",
            expected=f"{rules.describe(one)} from then_func ({rules.line_of(self.then_func)})",
            given=f"{rules.describe(two)} from else_func",
            because="later steps do not know which branch was taken",
            fix="cast or reshape in one of the branches",
            function=self.else_func,
        )
