"""if, while and for of converted code: plain Python until a condition or an iterable is traced."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from .. import _core, _tracing
from ..errors import TraceError
from ..errors import TypeError as HybridNetTypeError
from ._branches import stage_if
from ._cells import State, plain_range
from ._convert import Site
from ._errors import refusal
from ._iterables import (
    Enumerated,
    LoopRange,
    Reversed,
    TracedRange,
    Zipped,
    is_traced_iterable,
    item_of,
    length_of,
)
from ._loops import NeedsFirstIteration, stage_for, stage_while
from ._operators import truth
from ._rows import Rows, expand
from ._structure import UNDEFINED, is_traced, take_apart

__all__ = ["for_", "if_", "items_of", "value_of", "while_"]

_MOST_STEPS = 64
_MOST_PEELED = 3
_Get = Callable[[], tuple[Any, ...]] | None
_Set = Callable[[Any], None] | None
_Options = dict[str, Any] | None  # max_iterations, shape_invariants


def value_of(read: Callable[[], Any]) -> Any:
    """Returns the value of a name, UNDEFINED if it has none."""
    try:
        return read()
    except NameError:
        return UNDEFINED


def if_(test: Any, then: Callable[[], Any], other: Callable[[], Any], get: _Get, set_: _Set, site: Site) -> None:
    """Implements an if statement."""
    if not is_traced(test):
        if truth(test):
            then()
        else:
            other()
    else:
        stage_if(test, then, other, get, set_, site)


def while_(
    test: Callable[[], Any], body: Callable[[], Any], get: _Get, set_: _Set, site: Site, options: _Options = None
) -> None:
    """Implements a while statement: iterations run as plain Python until the condition is traced."""
    steps = 0
    while True:
        value = test()
        if is_traced(value):
            try:
                return stage_while(test, body, State(site, get, set_, options))
            except NeedsFirstIteration as need:
                _tracing.note_refusal(need.error)
                raise need.error from None
        if not truth(value):
            return None
        body()
        steps += 1
        _warn_of_steps(steps, get, site)


def for_(
    items: Any,
    body: Callable[[Any], Any],
    test: Callable[[], Any] | None,
    get: _Get,
    set_: _Set,
    site: Site,
    options: _Options = None,
) -> None:
    """Implements a for statement. test: false after a break or return."""
    if is_traced_iterable(items):
        _for_traced(items, body, test, get, set_, site, options)
    elif is_traced(items):
        raise HybridNetTypeError(f"'{type(items).__name__}' object is not iterable")
    else:
        _for_plain(expand(items), body, test, get, set_, site, options)


def _for_traced(
    items: Any, body: Callable[[Any], Any], test: Any, get: _Get, set_: _Set, site: Site, options: _Options
) -> None:
    if isinstance(items, TracedRange):
        try:
            return stage_while(
                test, body, State(site, get, set_, options), counter=(items.start, items.stop, items.step)
            )
        except NeedsFirstIteration as need:
            _tracing.note_refusal(need.error)
            raise need.error from None
    for _ in range(_MOST_PEELED + 1):
        length = length_of(items)
        if test is not None and not is_traced(first := test()) and not truth(first):
            return None
        try:
            if test is None:
                return stage_for(items, body, State(site, get, set_, options))
            return stage_while(test, body, State(site, get, set_, options), items=items)
        except NeedsFirstIteration as need:
            if not isinstance(length, int) or (test is not None and is_traced(test())):
                _tracing.note_refusal(need.error)
                raise need.error from None
            if length == 0:
                _core.note_trace_read(1)
                return None
            error = need.error
        body(_item(items, 0))
        items = _rest(items)
    _tracing.note_refusal(error)
    raise error


def _item(items: Any, position: int) -> Any:
    """Returns the item at a position, as Python would."""
    from ._iterables import arrays_of

    if isinstance(items, Reversed):
        return _item(items.items, -1 - position)
    if isinstance(items, Enumerated):
        return (items.start + position, _item(items.items, position))
    if isinstance(items, Zipped):
        return tuple([_item(part, position) for part in items.parts])
    return item_of(items, iter([array[position] for array in arrays_of(items)]), position)


def _rest(items: Any) -> Any:
    """Returns the items without the first."""
    if isinstance(items, Reversed):
        return Reversed(_without(items.items, last=True))
    return _without(items, last=False)


def _without(items: Any, last: bool) -> Any:
    cut = slice(None, -1) if last else slice(1, None)
    if isinstance(items, Enumerated):
        return Enumerated(_without(items.items, last), items.start if last else items.start + 1)
    if isinstance(items, Zipped):
        return Zipped(tuple([_without(part, last) for part in items.parts]))
    if isinstance(items, LoopRange):
        made = LoopRange(0)
        made.range = items.range[cut]
        return made
    if type(items) is list:
        rows = items[0]
        count = None if rows.count is None else rows.count - 1
        return [Rows(rows.structure, [leaf[cut] for leaf in rows.leaves], count, rows.place)]
    return items[cut]


def _for_plain(
    items: Iterable[Any],
    body: Callable[[Any], Any],
    test: Any,
    get: _Get,
    set_: _Set,
    site: Site,
    options: _Options,
) -> None:
    if isinstance(items, range) and test is not None and len(items) > 1:
        if site in _tracing.eager_loops():
            counter = (items.start, items.stop, items.step)
            return stage_while(test, body, State(site, get, set_, options), counter=counter)
        with plain_range(site):
            return _each_in_python(items, body, test, get, set_, site, options)
    return _each_in_python(items, body, test, get, set_, site, options)


def _each_in_python(
    items: Iterable[Any],
    body: Callable[[Any], Any],
    test: Any,
    get: _Get,
    set_: _Set,
    site: Site,
    options: _Options,
) -> None:
    iterator = iter(items)
    for steps, item in enumerate(iterator):
        if test is not None:
            value = test()
            if is_traced(value):
                return _rest_of_plain(items, item, iterator, body, test, get, set_, site, options, steps)
            if not truth(value):
                return None
        body(item)
        _warn_of_steps(steps + 1, get, site)
    return None


def _rest_of_plain(
    items: Any,
    item: Any,
    rest: Any,
    body: Callable[[Any], Any],
    test: Any,
    get: _Get,
    set_: _Set,
    site: Site,
    options: _Options,
    steps: int,
) -> None:
    """Runs the iterations after a break or return whose condition is traced."""
    if isinstance(items, range) and len(items) - steps > 1:
        try:
            with _tracing.Refusals(tells_outer=False):
                return stage_while(test, body, State(site, get, set_, options), counter=(item, items.stop, items.step))
        except NeedsFirstIteration as need:
            error: TraceError = need.error
        except TraceError as refused:  # the body uses the number in Python: a copy of the body per iteration
            error = refused
        if len(items) - steps > _MOST_STEPS:
            _tracing.note_refusal(error)
            raise error
    while True:
        value = test()
        if is_traced(value):
            stage_if(value, functools.partial(body, item), lambda: None, get, set_, site)
        elif truth(value):
            body(item)
        else:
            return None
        steps += 1
        _warn_of_steps(steps, get, site)
        try:
            item = next(rest)
        except StopIteration:
            return None


def _warn_of_steps(steps: int, get: _Get, site: Site) -> None:
    if steps != _MOST_STEPS + 1 or get is None:
        return
    leaves: list[Any] = []
    take_apart(get(), leaves)
    if any(is_traced(leaf) for leaf in leaves):
        warnings.warn_explicit(
            f"This {site.place.construct} loop of plain Python runs more than {_MOST_STEPS} times while the graph is "
            "made: the graph has nodes for each iteration. Iterate over an array, or over mx.range(...), for one loop "
            "of the graph.",
            UserWarning,
            site.place.file,
            site.place.line,
        )


def items_of(iterable: Any, site: Site) -> Any:
    """Returns the iterable of a comprehension. One over rows of a traced array has its length fixed in the graph."""
    if isinstance(iterable, (list, tuple)):
        return expand(iterable)
    if not is_traced_iterable(iterable):
        return iterable
    length = None if isinstance(iterable, TracedRange) else length_of(iterable)
    if not isinstance(length, int):
        raise refusal(
            "HN108", "a comprehension iterates over items whose number is known only when the graph runs", site.place,
            because="its result is a list of Python, whose length the graph fixes",
            fix="use a for loop that appends to a list",
        )  # fmt: skip
    _core.note_trace_read(1)
    if length > _MOST_STEPS:
        warnings.warn_explicit(
            f"A comprehension over {length} rows becomes nodes for each row. Use a for loop for one loop of the graph.",
            UserWarning, site.place.file, site.place.line,
        )  # fmt: skip
    return [_item(iterable, i) for i in range(length)]
