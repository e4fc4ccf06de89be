"""scan: a loop with steps that read several rows of its sequences and several of its previous outputs.

A scan is a foreach or, if a condition ends it, a while_loop. map, reduce, foldl and foldr are scans, too.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

from .. import _core, _tracing, autograd, errors, symbol
from ..name import NameManager
from ..ndarray import NDArray
from ..symbol import Symbol
from . import nests, rules
from .arrays import array_of_number
from .functions import check_checkpoint, check_gradient_options, is_traced
from .scan_arguments import (
    Sequence,
    Until,
    check_non_sequences,
    check_outputs,
    check_sequences,
    rows,
    turned_around,
    until,
)  # fmt: skip
from .scan_calls import Restart, Scan, ScanForeach, ScanWhile

__all__ = ["Until", "foldl", "foldr", "map", "reduce", "scan", "until"]


def scan(
    fn: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    non_sequences: Any = None,
    n_steps: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    strict: bool = False,
    *,
    detach_every: int = 0,
    checkpoint: Any = None,
    return_list: bool = False,
    name: str | None = None,
) -> Any:
    """Runs fn step by step; returns the outputs of all steps.

    Parameters
    ----------
    fn : function (*rows of sequences, *previous outputs, *non_sequences) -> outputs
        One argument per tap, in the order of sequences, outputs_info and non_sequences. Returns an array or a list of
        arrays; after them, optionally, a dict {shared value: new value} and until(condition), as in
        ``return out, {count: count.data() + 1}, until(out > 3)``.
    sequences : array, dict(input=array, taps=[0]), or list of these, optional
        Step t reads row t + tap of each, counted from the first step for which all rows exist.
    outputs_info : initial value, dict(initial=array, taps=[-1]), None, or list of these, optional
        One entry per output of fn. None: steps do not read the output. An array or a number: the previous output for
        the first step. With taps other than -1, initial holds one row per step from the oldest tap on, oldest first.
    non_sequences : array, number, Parameter, or list of these, optional
        Constant arguments of each step. fn may also read values of its closure.
    n_steps : int or integer array of one element, optional
        Maximum number of steps; needed without sequences. Default: the number for which the shortest sequence has rows.
        An array is read in each run of a graph; an array from outside of a hybridized block is read during tracing.
    truncate_gradient : int, default -1
        Gradients flow through this number of last steps only.
    go_backwards : bool, default False
        Sequences are read from their end. Outputs are in the order of the steps.
    strict : bool, default False
        fn may read its arguments only: reading an array or parameter of its closure is an error.
    detach_every, checkpoint, name
        See foreach.
    return_list : bool, default False
        Returns a list even for one output.

    Returns
    -------
    outputs : array, or list of arrays, of shape (steps, ...)
        Outputs without the initial values. None if fn has no outputs.

    Raises
    ------
    TypeError, ValueError, ParamError, ShapeError, DTypeError
        If an argument or the result of fn violates the rules above; the message names it.

    Examples
    --------
    >>> h = mx.nd.array([0, 1])
    >>> info = dict(initial=h, taps=[-2, -1])
    >>> mx.contrib.scan(lambda two, one: two + one, outputs_info=info, n_steps=4)  # 1, 2, 3, 5
    """
    outs, _ = _scan(
        fn, sequences, outputs_info, non_sequences, n_steps, truncate_gradient, go_backwards, strict, detach_every,
        checkpoint, name,
    )  # fmt: skip
    return outs if return_list else _unpacked(outs)


def map(
    fn: Callable[..., Any],
    sequences: Any,
    non_sequences: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    name: str | None = None,
) -> Any:
    """Applies fn to each row of the sequences and stacks the results: a scan without previous outputs."""
    return _unpacked(
        _scan(
            fn, sequences, None, non_sequences, None, truncate_gradient, go_backwards, False, 0, None, name,
        )[0]
    )  # fmt: skip


def reduce(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    go_backwards: bool = False,
    name: str | None = None,
) -> Any:
    """Returns only the last outputs of a scan; without rows the initial values, which are the items of outputs_info."""
    finals = _scan(fn, sequences, outputs_info, non_sequences, None, -1, go_backwards, False, 0, None, name)[1]
    return _unpacked(finals)


def foldl(
    fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None, name: str | None = None
) -> Any:
    """Same as reduce, from the first row to the last."""
    return reduce(fn, sequences, outputs_info, non_sequences, False, name)


def foldr(
    fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None, name: str | None = None
) -> Any:
    """Same as reduce, from the last row to the first."""
    return reduce(fn, sequences, outputs_info, non_sequences, True, name)


def _unpacked(outs: list[Any]) -> Any:
    return None if not outs else outs[0] if len(outs) == 1 else outs


# -------------------------------------------------------------------------------------------------------------- running
def _scan(
    fn: Any, sequences: Any, outputs_info: Any, non_sequences: Any, n_steps: Any, truncate_gradient: Any,
    go_backwards: Any, strict: Any, detach_every: Any, checkpoint: Any, name: str | None,
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """Returns the outputs of all steps, and the last value of each carried output."""
    rules.check_function("scan", fn, "fn")
    check_gradient_options("scan", truncate_gradient, detach_every)
    check_checkpoint("scan", checkpoint)
    items = check_sequences(sequences)
    outputs = check_outputs(outputs_info)
    others = check_non_sequences(non_sequences)
    initials = [output.initial for output in outputs or [] if output.depth]
    n_steps = _checked_steps(n_steps, items)
    traced = is_traced([*(item.array for item in items), *initials, *others, n_steps])
    if traced:
        for item in items:
            item.array = _traced_value(item.array)
        for output in outputs or []:
            if output.depth > 1:
                output.initial = _traced_value(output.initial)
    if isinstance(n_steps, NDArray):
        n_steps = rules.check_count("scan", "n_steps", n_steps.asnumpy().item(), 0)
    truncated = max(int(truncate_gradient), 0)
    if strict:
        _check_strict(Scan(fn, outputs, others, truncated, False), items)
    run = _Run(Scan(fn, outputs, others, truncated, traced), items, n_steps, bool(go_backwards))
    run.detach_every, run.checkpoint, run.name = int(detach_every), checkpoint, name
    outs, finals = run.in_graph() if traced else run.on_arrays()
    return outs, run.last_values(finals)


def _check_strict(scan: Scan, items: list[Sequence]) -> None:
    """Raises an error if the function reads more than its arguments; runs it once on variables to find out."""
    from . import trace

    with autograd.pause(train_mode=autograd.is_training()), trace.Abstract(), NameManager():
        states = [array_of_number(s) if rules.is_number(s) else s for s in scan.starts()[0]]
        likes = [_core.ControlSlot(item.path, item.array, is_slice=True) for item in items for _ in item.taps]
        first_other = len(likes)
        likes += [
            _core.ControlSlot(f"non_sequences[{i}]", value)
            for i, value in enumerate(scan.non_sequences)
            if rules.is_array(value)
        ]
        first_state = len(likes)
        likes += [_core.ControlSlot(f"state{i}", state) for i, state in enumerate(states)]
        with trace.Body("the body of scan", rules.line_of(scan.function), likes) as body:
            arrays = iter(body.slots[first_other:first_state])
            others = [next(arrays) if rules.is_array(value) else value for value in scan.non_sequences]
            step, _ = dataclasses.replace(scan, non_sequences=others).call(
                body.slots[:first_other], body.slots[first_state:]
            )
            body.close([*step.outs, *step.states], hoist=False)
        foreign = _core.control_foreign(body.handle)
    if foreign:
        rules.fail(
            errors.ValueError,
            "scan",
            "strict=True: the function reads values that are not its arguments",
            given=", ".join(foreign),
            fix="pass them in non_sequences, or leave strict out",
            function=scan.function,
        )


def _traced_value(value: Any) -> Symbol:
    return value if isinstance(value, Symbol) else _core.traced_constant(value)


def _checked_steps(n_steps: Any, items: list[Sequence]) -> Any:
    if n_steps is None:
        if not items:
            rules.fail(
                errors.ValueError,
                "scan",
                "the number of steps is not known",
                because="there are no sequences",
                fix="pass n_steps=, even if until(...) ends the loop earlier",
            )
        return None
    if isinstance(n_steps, (NDArray, Symbol)):
        spec = rules.spec_of(n_steps)
        if spec is not None and any(size != 1 for size in spec[0]):
            rules.fail(errors.ShapeError, "scan", "n_steps", expected="one element", given=rules.describe(spec))
        return n_steps
    return rules.check_count("scan", "n_steps", n_steps, 0)


class _Run:
    """The state of one use of scan."""

    detach_every = 0
    checkpoint: Any = None
    name: str | None = None

    def __init__(self, scan: Scan, items: list[Sequence], n_steps: Any, backwards: bool) -> None:
        self._scan = scan
        self._items = items
        self._n_steps = n_steps  # int, Symbol or None
        self._backwards = backwards

    def _views(self, cut: bool = True) -> list[Any]:
        """Returns, per tap of each sequence, the rows that the steps read, cut to the number of steps."""
        sizes = [item.size() for item in self._items]
        known = [size for size in sizes if size is not None]
        steps = self._n_steps if isinstance(self._n_steps, int) else None
        if not cut or (steps is None and len(set(known)) <= 1):
            return [view for item in self._items for view in item.views(0, 0)]
        for item in self._items:
            if isinstance(item.array, Symbol):
                with contextlib.suppress(errors.AttributeError):  # Symbols outside of traces have no shape
                    _ = item.array.shape  # records that the graph is only valid for these shapes
        steps = min(known) if steps is None else steps
        views: list[Any] = []
        for item, size in zip(self._items, sizes, strict=True):
            if size is not None and size < steps:
                self._fail_short(item, size, steps)
            if size is None:
                first, end = (-steps, None) if self._backwards and steps else (0, steps)
                views.extend(rows(view, first, end) for view in item.views(0, 0))
            else:
                rest = size - steps
                views.extend(item.views(rest, 0) if self._backwards else item.views(0, rest))
        return views

    def _fail_short(self, item: Sequence, size: int, steps: int) -> None:
        spec = rules.spec_of(item.array)
        assert spec is not None
        span = f" with taps {item.taps}" if item.before or item.after else ""
        rules.fail(
            errors.ShapeError,
            "scan",
            f"{item.path} has not enough rows for n_steps={steps}",
            expected=f"at least {steps + item.before + item.after} rows{span}",
            given=rules.describe(spec),
            because=f"its rows are enough for {size} steps",
            fix="leave n_steps out, or pass longer sequences",
        )

    def _foreach(self) -> ScanForeach:
        views = self._views()
        states, paths = self._scan.starts()
        return ScanForeach(
            body=self._scan.function, data=views, data_nest=nests.list_of(len(views)), states=states,
            state_nest=nests.list_of(len(states)), length=None if views else self._n_steps, reverse=self._backwards,
            with_index=False, truncate_gradient=self._scan.truncate_gradient, detach_every=self.detach_every,
            checkpoint=self.checkpoint, name=self.name, construct="scan", scan=self._scan, paths=paths,
        )  # fmt: skip

    def on_arrays(self) -> tuple[list[Any], list[Any]]:
        """Returns outputs and last states."""
        from . import arrays

        return arrays.foreach(self._foreach())

    def in_graph(self) -> tuple[list[Any], list[Any]]:
        """Returns outputs and last states. Repeats the trace if the function returned new updates or a condition."""
        while True:
            try:
                outs, states = self._while() if self._needs_condition() else self._counted()
            except Restart:
                continue
            shared = self._scan.shared
            if shared:
                self._check_outermost()
                outs = self._written(outs, states[-len(shared) :])
            return outs, states

    def _check_outermost(self) -> None:
        if place := _core.control_place():
            rules.fail(
                errors.TraceError,
                "scan",
                f"shared values are updated inside {place}",
                because="in a graph they are written once, when all loops have ended",
                fix="return the updates from the function of the outermost scan, or carry the values as outputs",
                function=self._scan.function,
            )

    def _written(self, outs: list[Any], values: list[Any]) -> list[Any]:
        """Returns the outputs, which depend on the writes of the last values of shared arrays and parameters."""
        scope = _tracing.current()
        for shared, value in zip(self._scan.shared, values, strict=True):
            value = symbol.identity(value)
            if isinstance(scope, _tracing.Scope) and scope.write(shared.target, value):
                continue
            if not outs:
                rules.fail(
                    errors.ValueError,
                    "scan",
                    "a scan of Symbols that only updates values has no output that could be computed",
                    fix="return an output from the function, or use the scan in a hybridized block",
                    function=self._scan.function,
                )
            outs = [_core.write_state(outs[0], value, shared.symbol), *outs[1:]]
        return outs

    def _needs_condition(self) -> bool:
        return self._scan.stops or isinstance(self._n_steps, Symbol)

    def _counted(self) -> tuple[list[Any], list[Any]]:
        from . import trace

        outs, states = trace.foreach(self._foreach())
        return ([turned_around(out) for out in outs] if self._backwards else outs), states

    def _while(self) -> tuple[list[Any], list[Any]]:
        from . import trace

        for option, value in (("truncate_gradient", self._scan.truncate_gradient), ("detach_every", self.detach_every)):
            if value > 0:
                rules.fail(
                    errors.UnsupportedError,
                    "scan",
                    f"{option} of a scan in a graph whose number of steps is known only when it runs",
                    because="the function returns until(...)" if self._scan.stops else "n_steps is a traced array",
                    fix=f"leave {option} out, or give n_steps as a number and return no until(...)",
                    function=self._scan.function,
                )
        views = self._views(cut=False)
        if self._backwards:
            views = [turned_around(view) for view in views]
        steps = self._steps()
        states, paths = self._scan.starts()
        counters = [symbol.zeros((1,), dtype="int64") for _ in range(2)]
        call = ScanWhile(
            cond=self._scan.function, func=self._scan.function, states=[*counters, *states],
            state_nest=nests.list_of(2 + len(states)), spread=True,
            max_iterations=self._n_steps if isinstance(self._n_steps, int) else None, exact=True, has_outputs=True,
            on_limit="stop", checkpoint=self.checkpoint, name=self.name, construct="scan", scan=self._scan,
            data=views, steps=steps, paths=paths,
        )  # fmt: skip
        call.free_sizes = [()] * len(call.states)
        outs, states, _ = trace.while_loop(call)
        return outs, states[2:]

    def _steps(self) -> Symbol:
        """Returns the maximum number of steps, which the loop reads at run time."""
        bounds = []
        if isinstance(self._n_steps, Symbol):
            bounds.append(symbol.reshape(symbol.cast(self._n_steps, dtype="int64"), shape=(1,)))
        elif self._n_steps is not None:
            return symbol.full((1,), self._n_steps, dtype="int64")
        for item in self._items:
            size = symbol.slice_axis(symbol.shape_array(item.array), axis=0, begin=0, end=1)
            bounds.append(size - (item.before + item.after))
        least = bounds[0]
        for bound in bounds[1:]:
            least = symbol.broadcast_minimum(least, bound)
        return least

    def last_values(self, states: list[Any]) -> list[Any]:
        """Returns the most recent state of each output."""
        last, place = [], 0
        for output in self._scan.outputs or []:
            place += output.depth
            if output.depth:
                last.append(states[place - 1])
        return last
