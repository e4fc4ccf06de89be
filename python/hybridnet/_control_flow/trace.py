"""Tracing of foreach, while_loop and cond: functions run once on abstract arrays and become one node."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from .. import _core, _tracing, autograd, symbol
from ..name import NameManager
from ..ndarray import NDArray
from ..symbol import Symbol
from ..util import is_np_shape
from . import nests, rules
from .arrays import array_of_number, read_limit, scalar_shape, settle_numbers
from .calls import BodyNode, Cond, Foreach, Step, WhileLoop


class Abstract(_tracing.Scope):
    """Runs a body on abstract arrays outside any block, only to infer shapes."""

    def __init__(self) -> None:
        self._refusals = _tracing.Refusals()
        self._variables: dict[Any, Symbol] = {}

    def variable(self, parameter: Any) -> Symbol:
        if parameter not in self._variables:
            self._variables[parameter] = parameter._make_traced(f"{parameter.name}_{len(self._variables)}")
        return self._variables[parameter]

    def parameters(self) -> list[Any]:
        """Returns the parameters that the body uses. Those with shapes found by the trace are initialized."""
        for parameter, variable in self._variables.items():
            if parameter._data is None and parameter._deferred_init:
                parameter._take_traced_shape(variable)
                parameter._finish_deferred_init()
        return list(self._variables)

    def __enter__(self) -> Abstract:
        self._before = _core.set_trace_state(True, "")
        super().__enter__()
        self._refusals.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        super().__exit__(*details)
        _core.set_trace_state(*self._before)
        self._refusals.__exit__(*details)


def _slice_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[1:] if len(shape) > 1 or is_np_shape() else (1,)


def abstract_step(call: Foreach | WhileLoop, states: list[Any]) -> tuple[Step, list[NDArray], list[Any]]:
    """Runs one iteration on abstract arrays; returns its result, the states as arrays, and the body's parameters."""

    def run(arrays: list[Any]) -> Step:
        slots = [_core.traced_variable(f"state{i}", *(rules.spec_of(a) or (None, None))) for i, a in enumerate(arrays)]
        if isinstance(call, WhileLoop):
            return call.step(slots)
        slices = [
            _core.traced_variable(f"data{i}", _slice_shape(a.shape), np.dtype(a.dtype)) for i, a in enumerate(call.data)
        ]
        index = _core.traced_variable("index", scalar_shape(), np.dtype(np.int64))
        return call.step(index if call.with_index else None, slices, slots)

    with autograd.pause(train_mode=autograd.is_training()), Abstract() as scope, NameManager():
        arrays, step = settle_numbers(call, states, run)
        dtypes = [rules.spec_of(array) for array in arrays]
    for i, (state, spec) in enumerate(zip(states, dtypes, strict=True)):
        if rules.is_number(state):
            arrays[i] = array_of_number(state, None if spec is None else spec[1])
    return step, arrays, scope.parameters()


def _line(call):
    return rules.line_of(call.function) or rules.caller_line()


class Body:
    """A body while its function runs: nodes that are made inside belong to it.

    `slots` holds the variables that stand for the values which `likes` are like, or for slices of these.
    """

    def __init__(self, description: str, line: str, likes: Sequence[_core.ControlSlot] = ()) -> None:
        self._refusals = _tracing.Refusals()
        self._id, self._variables = _core.control_open(description, line, likes, is_np_shape())
        self.slots = [rules.in_interface(slot.like, variable) for slot, variable in zip(likes, self._variables)]
        self.handle: Any = None

    def stand_for(self, values: Sequence[Symbol]) -> None:
        """Makes the last slots replace values from outside: if the body reads these values, it reads the slots."""
        if values:
            self._variables[-len(values) :] = values

    def close(self, results: list[Any], hoist: bool = True) -> None:
        self.handle = _core.control_close(self._id, results, self._variables, hoist)

    def __enter__(self) -> Body:
        self._refusals.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        if self.handle is None:
            _core.control_abandon(self._id)
        self._refusals.__exit__(*details)


def _symbol(value: Any) -> Symbol:
    return value if isinstance(value, Symbol) else _core.traced_constant(value)


def _start(given: Any, array: Any) -> Symbol:
    """Returns the initial value of a state. A number becomes a node, so that rewrites can compare initial values."""
    if not rules.is_number(given) or float(given) != given:
        return _symbol(array)
    return symbol.full(array.shape, given, dtype=array.dtype)


def _starts(call: Foreach | WhileLoop, states: list[Any]) -> list[Symbol]:
    return [_start(given, array) for given, array in zip(call.states, states, strict=True)]


def _in_interfaces(parts: list[Symbol], like: Sequence[Any]) -> list[Symbol]:
    """Returns the outputs of a node; the first ones have the interfaces of the values that the body returned."""
    return [rules.in_interface(value, part) for value, part in zip_longest(like, parts)]


def _checkpoint(call: Foreach | WhileLoop, body: Body) -> str:
    """Returns the node's checkpoint parameter. A policy is called once per node of the body; its results are marks."""
    if not callable(call.checkpoint):
        return "" if call.checkpoint is None else str(call.checkpoint)
    answers = []
    for op, name, attrs, specs in _core.control_nodes(body.handle):
        shapes = tuple(None if spec is None else spec[0] for spec in specs)
        dtypes = tuple(None if spec is None else np.dtype(spec[1]) for spec in specs)
        answers.append(rules.answer_of(call.construct, call.checkpoint, BodyNode(op, name, attrs, shapes, dtypes)))
    _core.control_keep(body.handle, answers)
    return "policy"


def _row_numbers(size: int | None, data: list[Symbol]) -> Symbol:
    """Returns 0, 1, ... for each row of data, with the number of rows at run time; without data, size of them."""
    if not data:
        assert size is not None  # leading_size has checked it
        return symbol.arange(size, dtype="int64")
    spec = rules.spec_of(data[0])
    rows = data[0]
    if spec is not None and len(spec[0]) > 1:
        others = len(spec[0]) - 1
        rows = symbol.slice(rows, begin=(None, *[0] * others), end=(None, *[1] * others))
    return symbol.contrib.arange_like(symbol.cast(rows, dtype="int64"), axis=0)


# ------------------------------------------------------------------------------------------------------------- foreach
def foreach(call: Foreach) -> tuple[Any, Any]:
    """Creates the node of a loop over data."""
    data = [_symbol(a) for a in call.data]
    size = rules.leading_size(call.construct, data, call.data_nest.paths("data"), call.length)
    if call.with_index:
        data = [_row_numbers(size, data), *data]
    body: Any = None

    def run(states: list[Any]) -> Step:
        nonlocal body
        likes = [_core.ControlSlot(f"data{i}", a, is_slice=True) for i, a in enumerate(data)]
        likes += [_core.ControlSlot(f"state{i}", a) for i, a in enumerate(states)]
        with Body(f"the body of {call.construct}", _line(call), likes) as body:
            slices, slots = body.slots[: len(data)], body.slots[len(data) :]
            index = slices.pop(0) if call.with_index else None
            step = call.step(index, slices, slots)
            body.stand_for(call.stand_ins)
            body.close([*step.outs, *step.states])
        return step

    states, step = settle_numbers(call, call.states, run)
    loop = _core.LoopSpec(
        "_foreach",
        reverse=call.reverse,
        scalar_slices=is_np_shape(),
        length=None if data else size,
        truncate_gradient=call.truncate_gradient,
        detach_every=call.detach_every,
        checkpoint=_checkpoint(call, body),
    )
    made = _core.control_foreach(body.handle, data, _starts(call, states), loop, call.name)
    parts = _in_interfaces(made, [*step.outs, *step.states])
    count = len(step.outs)
    return nests.restore(step.out_nest, parts[:count]), nests.restore(call.state_nest, parts[count:])


# ---------------------------------------------------------------------------------------------------------- while_loop
class _WhileBodies:
    """Condition and body of a while_loop, traced for states of certain dtypes.

    If a condition writes to its own states, such as running statistics, it becomes part of the body: the body evaluates
    it for the next iteration and carries the result as an additional variable. So all writes are in the body.
    """

    def __init__(self, call: WhileLoop, states: list[Any], free: list[list[int]]) -> None:
        self._call, self._free, self._states = call, free, states
        self.answer: Any = None  # the condition before the first iteration, if carried by the loop
        self.condition = self._trace_condition()
        if _core.control_writes_states(self.condition.handle) and call.max_iterations != 0:
            self.answer = self._evaluate(_starts(call, states))
            with Body("the condition of while_loop", rules.line_of(call.cond), self._likes()) as self.condition:
                self.condition.close([self.condition.slots[0]])
        self.step = self._trace_body()

    def _evaluate(self, states: list[Any]) -> Any:
        test = self._call.test(states)
        if rules.is_number(test):
            test = array_of_number(test)
        rules.check_pred(self._call.construct, test, self._call.cond)
        return test

    def _likes(self) -> list[_core.ControlSlot]:
        first = [] if self.answer is None else [_core.ControlSlot("answer", self.answer)]
        likes = zip(self._states, self._free, strict=True)
        return first + [_core.ControlSlot(f"var{i}", s, free_axes=axes) for i, (s, axes) in enumerate(likes)]

    def _trace_condition(self) -> Body:
        with Body("the condition of while_loop", rules.line_of(self._call.cond), self._likes()) as condition:
            condition.close([self._evaluate(condition.slots)])
        return condition

    def _trace_body(self) -> Step:
        description, line = f"the body of {self._call.construct}", rules.line_of(self._call.func)
        with Body(description, line, self._likes()) as self.body:
            slots = self.body.slots
            step = self._call.step(slots if self.answer is None else slots[1:])
            answers = [] if self.answer is None else [self._evaluate(step.states)]
            self.body.stand_for(self._call.stand_ins)
            self.body.close([*step.outs, *answers, *step.states])
        return step

    def node(self, states: list[Any]) -> list[Symbol]:
        """Returns the loop's outputs, last variables and number of iterations."""
        call = self._call
        carried = 0 if self.answer is None else 1
        limit = call.max_iterations
        loop = _core.LoopSpec(
            "_while_loop",
            scalar_slices=is_np_shape(),
            checkpoint=_checkpoint(call, self.body),
            exact=call.exact and bool(self.step.outs),
            on_limit=call.on_limit,
            free_axes=tuple(n for i, axes in enumerate(self._free) for axis in axes for n in (i + carried, axis)),
            max_iterations=limit if isinstance(limit, int) else None,
        )
        variables = [self.answer] * carried + _starts(call, states)
        limit = limit if isinstance(limit, Symbol) else None
        made = _core.control_while_loop(self.condition.handle, self.body.handle, variables, limit, loop, call.name)
        parts = _in_interfaces(made, [*self.step.outs, *[None] * carried, *self.step.states])
        count = len(self.step.outs)
        return parts[:count] + parts[count + carried :]


def while_loop(call: WhileLoop) -> tuple[Any, Any, Any]:
    """Creates the node of a loop with a condition."""
    if isinstance(call.max_iterations, NDArray):
        call.max_iterations = read_limit(call)
    free = [[axis for axis, size in enumerate(sizes) if size is None] for sizes in call.free_sizes]
    bodies: Any = None

    def run(states: list[Any]) -> Step:
        nonlocal bodies
        bodies = _WhileBodies(call, states, free)
        return bodies.step

    states, step = settle_numbers(call, call.states, run)
    parts = bodies.node(states)
    count = len(step.outs)
    outs = nests.restore(step.out_nest, parts[:count])
    return outs, nests.restore(call.state_nest, parts[count:-1]), parts[-1]


# ---------------------------------------------------------------------------------------------------------------- cond
def may_differ(one: Any, two: Any) -> bool:
    """Whether the shapes of two values differ, or may differ in sizes known only after a run."""
    specs = rules.spec_of(one), rules.spec_of(two)
    if None not in specs:
        return specs[0] != specs[1]
    return any(rules.has_open_sizes(value) for value in (one, two))


def cond(call: Cond) -> Any:
    """Creates the node of a branch."""
    branches = []
    for taken, function, what in ((True, call.then_func, "then branch"), (False, call.else_func, "else branch")):
        with Body(f"the {what} of cond", rules.line_of(function)) as body:
            outs, nest = call.branch(taken)
            body.close(outs, hoist=False)
        branches.append((body.handle, outs, nest))
    (then_body, then_outs, nest), (else_body, else_outs, else_nest) = branches
    call.check_branches(then_outs, nest, else_outs, else_nest)
    if not then_outs:
        return nests.restore(nest, [])
    dynamic = any(may_differ(one, two) for one, two in zip(then_outs, else_outs, strict=True))
    made = _core.control_cond(_symbol(call.pred), then_body, else_body, dynamic, call.strict_shape, call.name)
    return nests.restore(nest, _in_interfaces(made, then_outs))
