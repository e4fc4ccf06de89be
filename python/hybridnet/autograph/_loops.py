"""Loops whose number of iterations, or whose rows, are known only when the graph runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _core, _tracing, symbol
from .._control_flow import trace
from .._control_flow.calls import Foreach, WhileLoop
from .._control_flow.nests import ARRAY, Nest, list_of
from ..errors import TraceError
from ..symbol import Symbol
from ._branches import predicate
from ._cells import (
    Again,
    NeedsFilledList,
    State,
    carried_memories,
    traced_loop,
)
from ._errors import refusal
from ._iterables import arrays_of, item_of, length_of, row, same_length, size_of
from ._journal import Frame
from ._loop_body import LoopBody, NeedsFirstIteration, Start, nodes_with_gradient, pause_of_program
from ._numbers import TracedNumber, as_truth, literal
from ._structure import is_array

__all__ = ["NeedsFirstIteration", "stage_for", "stage_while"]

_ROW = "a row of an array over which a loop iterates is written to"


class _ByPosition(BaseException):
    """The loop must take its rows by position, because it writes to the array over which it iterates."""


# ------------------------------------------------------------------------------------------------------------- attempts
def _attempts(state: State, attempt: Callable[[], Any]) -> Any:
    """Calls attempt until the plan suffices."""
    with traced_loop():
        return _until_settled(state, attempt)


def _until_settled(state: State, attempt: Callable[[], Any]) -> Any:
    while True:
        try:
            with _tracing.Refusals(tells_outer=False):
                return attempt()
        except Again:
            state.set_names(state.before)
            if state.plan.attempts > 60:
                raise refusal(
                    "HN103", "the types of the variables of this loop do not settle", state.site.place
                ) from None
        except NeedsFilledList as need:
            state.set_names(state.before)
            if id(need.container) in state.plan.filled:
                raise
            state.plan.filled.add(id(need.container))
            state.plan.containers[id(need.container)] = need.container
            state.plan.again()
        except NeedsFirstIteration as need:
            state.set_names(state.before)
            _core.refused_memory()
            raise need from None
        except TraceError as error:
            state.set_names(state.before)
            if _ROW in str(error):
                raise _ByPosition from None
            if not state.retry_for_memory(error):
                _tracing.note_refusal(error)
                raise


def stage_for(items: Any, body: Callable[[Any], Any], state: State) -> None:
    """Makes a _foreach node of a loop over rows of arrays. Raises NeedsFirstIteration."""
    if state.options.get("shape_invariants"):
        return stage_while(None, body, state, items=items)
    loop = LoopBody(state)
    length = length_of(items)
    from ._iterables import Reversed

    flipped = isinstance(items, Reversed)
    with_index = _wants_index(items)

    def attempt() -> None:
        start = loop.start()
        arrays = arrays_of(items)
        owners = {_core.memory_root(array)[1] for array in arrays if isinstance(array, Symbol)}
        if any(_core.memory_root(memory)[1] in owners for memory in state.plan.memories):
            raise _ByPosition
        data = same_length(arrays, length)
        memories = [_core.traced_value(memory) for memory in state.plan.memories]
        states = [*start.arrays, *memories]
        count = len(start.arrays)

        def step(*arguments: Any) -> tuple[list[Any], list[Any]]:
            *index, rows, slots = arguments
            number = TracedNumber(index[0], int) if index else None
            loop.rows = [(_core.memory_root(part)[1], array) for part, array in zip(rows, arrays, strict=True)]
            for part in rows:
                _core.leave_sharing_undecided(part, f"{_ROW}: it shares memory with another one")
            item = item_of(items, iter(rows), number)
            return loop.run(start, slots[:count], slots[count:], lambda: body(item))

        call = Foreach(
            step, data, list_of(len(data)), states, list_of(len(states)), length if not data else None,
            flipped, with_index, 0, 0, None, None,
        )  # fmt: skip
        with nodes_with_gradient(loop):
            outs, finals = trace.foreach(call)
        loop.finish(start, outs, finals, length if isinstance(length, int) else None, flipped)

    try:
        _attempts(state, attempt)
    except _ByPosition:
        # The body writes to the array, so that later rows have other values.
        stage_while(None, body, State(state.site, state._get, state._set, state.options), items=items)


def _wants_index(items: Any) -> bool:
    from ._iterables import Enumerated, LoopRange, Reversed, Zipped

    if isinstance(items, Zipped):
        return any(_wants_index(part) for part in items.parts)
    if isinstance(items, Reversed):
        return _wants_index(items.items)
    return isinstance(items, (Enumerated, LoopRange))


def stage_while(
    test: Callable[[], Any] | None,
    body: Callable[..., Any],
    state: State,
    items: Any = None,
    counter: Any = None,
) -> None:
    """Makes a _while_loop node.

    items: an iterable whose items the body takes, as body(item), until it ends or the test is false. counter: (first
    value, last value, step) of a traced range instead.
    """
    loop = LoopBody(state)
    options = state.options

    def attempt() -> None:
        start = loop.start()
        memories = [_core.traced_value(memory) for memory in state.plan.memories]
        count = len(start.arrays)
        first = [] if items is None and counter is None else [_counter_start(counter)]
        states = [*first, *start.arrays, *memories]

        def condition(*slots: Any) -> Any:
            own = slots[len(first) :]
            with Frame() as frame, pause_of_program(loop.paused):
                try:
                    with carried_memories(state.plan.memories, own[count:]):
                        loop.enter(start, own[:count])
                        known = {*frame.contents, *frame.attributes}
                        value = _array_of_test(_both(_in_range(slots, items, counter), test), state)
                        _check_test(state, frame, known, own[count:])
                        return value
                finally:
                    frame.undo()
                    state.set_names(state.before)

        def step(*slots: Any) -> tuple[list[Any], list[Any]]:
            own = slots[len(first) :]

            def run() -> None:
                # A test may bind names that the body reads: while (y := f(x)) > 0.
                if test is not None and state.site.test_binds:
                    test()
                if first:
                    body(_item_at(TracedNumber(slots[0], int), items, counter))
                else:
                    body()

            outs, new = loop.run(start, own[:count], own[count:], run)
            following = []
            if first:
                number: Any = TracedNumber(slots[0], int)
                following = [(number + (1 if counter is None else counter[2])).cast(int)]
            return outs, [*following, *new]

        call = WhileLoop(
            condition, step, states, Nest("list", (ARRAY,) * len(states)), True, options.get("max_iterations"),
            True, True, "stop", None,
        )  # fmt: skip
        call.free_sizes = _free_sizes(start, len(first), len(states), options.get("shape_invariants") or {})
        if not states:
            _find_state(loop, start, body)
        with nodes_with_gradient(loop):
            outs, finals, _ = trace.while_loop(call)
        loop.finish(start, outs, list(finals)[len(first) :], None, False)
        if test is not None and state.site.test_binds:
            test()  # names that the last test binds

    _attempts(state, attempt)


def _find_state(loop: LoopBody, start: Start, body: Callable[..., Any]) -> None:
    """Runs the body of a loop once to find what it changes. Raises Again, or ConversionError if it changes nothing."""
    state = loop.state
    if loop.carry_numbers(start):
        raise state.plan.again()
    with trace.Body(f"the body of {state.site.place.construct}", str(state.site.place)):
        loop.run(start, [], [], body)
    raise refusal(
        "HN102",
        "this loop changes no array, so its condition stays the same",
        state.site.place,
        fix="change a variable of the condition in the loop",
    )


def _check_test(state: State, frame: Frame, known: set[Any], slots: Sequence[Any]) -> None:
    """Refuses a test that writes to arrays, containers or attributes from outside."""
    values = [_core.traced_value(memory) for memory in state.plan.memories]
    written = any(value.name != slot.name for value, slot in zip(values, slots, strict=True))
    if written or {*frame.contents, *frame.attributes} - known:
        raise refusal(
            "HN108",
            "the condition of this loop writes to an array, a container or an attribute",
            state.site.place,
            because="the graph evaluates the condition apart from the body",
            fix="compute the condition at the end of the body, and loop while a variable holds it",
        )


def _free_sizes(start: Start, skipped: int, total: int, invariants: dict[str, Any]) -> list[Any]:
    sizes: list[Any] = [()] * total
    for position, (i, _) in enumerate(start.places):
        given = invariants.get(start.cells[i].key)
        if given is not None:
            sizes[position + skipped] = tuple(given)
    return sizes


def _counter_start(counter: Any) -> Any:
    first: Any = 0 if counter is None else counter[0]
    return first.cast(int) if type(first) is TracedNumber else literal(first, "int64").as_nd_ndarray()


def _in_range(slots: Sequence[Any], items: Any, counter: Any) -> Any:
    if counter is not None:
        value: Any = TracedNumber(slots[0], int)
        _, stop, step = counter
        if type(step) is TracedNumber:
            return ((step > 0) & (value < stop)) | ((step < 0) & (value > stop))
        return value < stop if step > 0 else value > stop
    if items is None:
        return None
    index: Any = TracedNumber(slots[0], int)
    return index < _size(items)


def _size(items: Any) -> Any:
    """Returns the number of items, computed when the graph runs: it fits arrays of any length."""
    arrays = arrays_of(items)
    if not arrays:
        return length_of(items)
    sizes = [size_of(array, 0) for array in arrays]
    if isinstance(length := _shortest_range(items), int):
        sizes.append(TracedNumber(literal(length, "int64"), int))
    least = sizes[0]
    for size in sizes[1:]:
        least = TracedNumber(symbol.broadcast_minimum(least.cast(int), size.cast(int)), int)
    return least


def _shortest_range(items: Any) -> int | None:
    """Returns the length of the shortest range among zipped items."""
    from ._iterables import Enumerated, LoopRange, Zipped

    if isinstance(items, Enumerated):
        return _shortest_range(items.items)
    if isinstance(items, LoopRange):
        return len(items)
    lengths = [_shortest_range(part) for part in items.parts] if isinstance(items, Zipped) else []
    return min((length for length in lengths if length is not None), default=None)


def _item_at(index: TracedNumber, items: Any, counter: Any) -> Any:
    if counter is not None:
        return index
    from ._iterables import Reversed

    position = _size(items) - 1 - index if isinstance(items, Reversed) else index
    return item_of(items, iter([row(array, position) for array in arrays_of(items)]), index)


def _both(inside: Any, test: Callable[[], Any] | None) -> Any:
    """Whether both tests hold; the second one is not evaluated after the last item."""
    if test is None:
        return inside
    return test() if inside is None else inside & _truth(test())


def _truth(value: Any) -> Any:
    if type(value) is TracedNumber or is_array(value):
        return as_truth(value)
    return TracedNumber(literal(bool(value), "bool"), bool)


def _array_of_test(value: Any, state: State) -> Any:
    if type(value) is TracedNumber or is_array(value):
        return predicate(value, state.site)
    return literal(bool(value), "int64").as_nd_ndarray()
