"""A scan as a foreach or as a while_loop: previous outputs as states, and calls of the function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import autograd, errors, symbol
from ..ndarray import NDArray
from ..symbol import Symbol
from . import nests, rules
from .calls import Foreach, Step, WhileLoop
from .scan_arguments import Output, Returned, row, row_at, take_result_apart


class Restart(Exception):
    """Raised when the traced function of a scan returns updates or a stop condition that the loop did not know of."""


@dataclass
class Shared:
    """A value that the function of a scan updates, and the Symbol that represents it outside the loop."""

    target: Any  # Parameter or variable
    symbol: Symbol


@dataclass
class Scan:
    """The common part of both kinds of loops.

    The states are the previous values of each output, oldest first, then the shared values. All previous values up to
    the oldest tap are states: a state that moves up one place is passed by pointer. A ring buffer with one row written
    per step was slower in all measurements except for arrays of a few numbers with taps below -50.
    """

    function: Callable[..., Any]
    outputs: list[Output] | None  # None: as many as the function returns, none of them carried
    non_sequences: list[Any]
    truncate_gradient: int
    traced: bool
    # For a traced scan: results of the function in an earlier trace.
    shared: list[Shared] = field(default_factory=list)
    stops: bool = False
    _out_nest: nests.Nest | None = None

    def starts(self) -> tuple[list[Any], list[str]]:
        """Returns the initial values of the states, and their names for messages."""
        states: list[Any] = []
        paths: list[str] = []
        for output in self.outputs or []:
            if output.depth == 1:
                states.append(output.initial)
            else:
                states.extend(row(output.initial, i) for i in range(output.depth))
            paths.extend([output.path] * output.depth)
        states.extend(shared.symbol for shared in self.shared)
        return states, paths + ["a shared value"] * len(self.shared)

    def call(self, slices: Sequence[Any], states: Sequence[Any]) -> tuple[Step, Returned]:
        """Calls the function once and checks its result."""
        outputs = self.outputs or []
        previous: list[Any] = []
        place = 0
        for output in outputs:
            end = place + output.depth
            previous.extend([states[end + tap] for tap in output.taps])
            place = end
        returned = take_result_apart(self.function(*slices, *previous, *self.non_sequences), self.function)
        outs = returned.outs
        self._check(returned)
        if self._out_nest is None or len(self._out_nest.children) != len(outs):
            self._out_nest = nests.list_of(len(outs))
        next_states: list[Any] = []
        for i, output in enumerate(outputs):
            if output.depth:
                begin = len(next_states)
                self._check_kept(output.path, states[begin], outs[i])
                next_states.extend(states[begin + 1 : begin + output.depth])
                next_states.append(outs[i])
        next_states.extend(self._new_shared(returned, states[place:]))
        return Step(outs, self._out_nest, next_states), returned

    def _check(self, returned: Returned) -> None:
        count = len(returned.outs)
        if self.outputs is not None and count != len(self.outputs):
            rules.fail(
                errors.TypeError,
                "scan",
                "the function returns another number of outputs than outputs_info describes",
                expected=str(len(self.outputs)),
                given=str(count),
                fix="give outputs_info one item per output, None for those that the next step does not read",
                function=self.function,
            )
        if returned.stop is None:
            return
        if not rules.is_number(returned.stop):
            rules.check_pred("scan", returned.stop, self.function)
        if self.truncate_gradient:
            rules.fail(
                errors.ParamError,
                "scan",
                "truncate_gradient",
                expected="-1 if the function returns until(...)",
                given=str(self.truncate_gradient),
                because="the last steps are known only when the loop has ended",
                function=self.function,
            )

    def _check_kept(self, path: str, before: Any, after: Any) -> None:
        if not rules.is_number(before):
            rules.check_kept_spec("scan", path, rules.spec_of(before), rules.spec_of(after), self.function)

    # ---------------------------------------------------------------------------------------------------- shared values
    def _new_shared(self, returned: Returned, before: Sequence[Any]) -> list[Any]:
        """Returns the next states of the shared values. A trace must know them, and whether the loop stops early."""
        if not self.traced:
            return []
        known = [shared.target for shared in self.shared]
        new = [target for target, _ in returned.updates if not any(target is other for other in known)]
        if new or (returned.stop is not None and not self.stops):
            self.shared.extend(Shared(target, self._symbol_of(target)) for target in new)
            self.stops = self.stops or returned.stop is not None
            raise Restart
        states = list(before)
        for target, value in returned.updates:
            place = next(i for i, other in enumerate(known) if other is target)
            spec = rules.spec_of(before[place])
            if rules.is_number(value) and spec is not None:
                value = symbol.full(spec[0], value, dtype=spec[1])
            self._check_kept(f"the update of {_name_of(target)}", before[place], value)
            states[place] = symbol.BlockGrad(value)
        return states

    def _symbol_of(self, target: Any) -> Symbol:
        _check_target(target, self.function)
        if isinstance(target, NDArray):
            rules.fail(
                errors.TypeError,
                "scan",
                "an array is updated in a graph",
                because="a graph treats arrays from outside it as constants",
                fix="make it a Parameter with grad_req='null' of the block, and read it with data()",
                function=self.function,
            )
        return target if isinstance(target, Symbol) else target.var()

    def write(self, updates: list[tuple[Any, Any]]) -> None:
        """Writes the new values of shared arrays and parameters."""
        for target, _ in updates:
            _check_target(target, self.function)
        with autograd.pause():
            values = [value.copy() if isinstance(value, NDArray) else value for _, value in updates]
            for (target, _), value in zip(updates, values, strict=True):
                array = target if isinstance(target, NDArray) else target.data()
                if isinstance(value, NDArray):
                    self._check_kept(f"the update of {_name_of(target)}", array, value)
                array[()] = value


def _name_of(target: Any) -> str:
    return "an array" if isinstance(target, NDArray) else f"'{target.name}'"


def _check_target(target: Any, function: Callable[..., Any]) -> None:
    variable = isinstance(target, Symbol) and target.num_outputs == 1
    parameter = hasattr(target, "set_data")
    if not (variable or parameter or isinstance(target, NDArray)):
        rules.fail(
            errors.TypeError,
            "scan",
            "updates are a dict from a shared value to its new value",
            expected="a Parameter, an array, or in a graph a variable",
            given=f"a {type(target).__name__}",
            function=function,
        )
    if parameter and target.grad_req != "null":
        rules.fail(
            errors.ValueError,
            "scan",
            f"the Parameter '{target.name}' is updated",
            expected="grad_req='null'",
            given=repr(target.grad_req),
            because="gradients do not pass through updates",
            fix="create it with grad_req='null', or carry its value as an output",
            function=function,
        )


@dataclass
class ScanForeach(Foreach):
    """A scan without a condition, or on arrays."""

    scan: Scan = None  # type: ignore[assignment]  # required, but follows fields with defaults
    paths: list[str] = field(default_factory=list)
    rows_by_iteration = True

    @property
    def function(self) -> Callable[..., Any]:
        return self.scan.function

    @property
    def stand_ins(self) -> Sequence[Any]:
        return [shared.symbol for shared in self.scan.shared]

    def state_paths(self) -> list[str]:
        return self.paths

    def step(self, index: Any, slices: Sequence[Any], states: Sequence[Any]) -> Step:
        """Calls the scan's function."""
        step, self.returned = self.scan.call(slices, states)
        return step

    def ends_after(self, step: Step) -> bool:
        """Writes the updates of an iteration on arrays. Returns whether it is the last one."""
        if self.returned.updates:
            self.scan.write(self.returned.updates)
        stop = self.returned.stop
        return stop is not None and rules.truth("scan", stop, self.function)


@dataclass
class ScanWhile(WhileLoop):
    """A scan in a graph that ends by a condition, or with a number of steps known only at run time.

    Its states are the number of finished steps, whether it has ended, and those of the scan.
    """

    scan: Scan = None  # type: ignore[assignment]  # required, but follows fields with defaults
    data: list[Any] = field(default_factory=list)  # the rows for each tap of each sequence
    steps: Any = None  # int or Symbol
    paths: list[str] = field(default_factory=list)

    @property
    def stand_ins(self) -> Sequence[Any]:
        return [shared.symbol for shared in self.scan.shared]

    def state_paths(self) -> list[str]:
        return ["steps", "ended", *self.paths]

    def test(self, states: Sequence[Any]) -> Any:
        """Returns whether the scan has neither ended nor done all steps."""
        done, ended = states[:2]
        return symbol.broadcast_lesser(done, self.steps) * (1 - ended)

    def step(self, states: Sequence[Any]) -> Step:
        """Calls the scan's function."""
        done = states[0]
        step, returned = self.scan.call([row_at(rows, done) for rows in self.data], states[2:])
        ended = states[1]
        if returned.stop is not None:
            ended = _flag(returned.stop)
        return Step(step.outs, step.out_nest, [done + 1, ended, *step.states])


def _flag(condition: Any) -> Symbol:
    """Returns 1 if condition is nonzero, else 0, as int64."""
    if rules.is_number(condition):
        return symbol.full((1,), int(condition != 0), dtype="int64")
    return symbol.reshape(symbol.cast(condition != 0, dtype="int64"), shape=(1,))
