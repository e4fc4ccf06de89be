"""Calls of converted code: functions of the program are converted, builtins know traced values."""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _core
from .._control_flow import rules
from ..errors import ValueError as HybridNetValueError
from ..ndarray import NDArray
from ..symbol import Symbol
from ._branches import choose
from ._convert import Site
from ._errors import Place, refusal
from ._functions import converted
from ._iterables import (
    Enumerated,
    Reversed,
    TracedRange,
    Zipped,
    is_traced_iterable,
    length_of,
    number_of,
    size_of,
)
from ._journal import frames, is_container, is_fresh, note_change, note_contents, note_fresh, saved_contents
from ._numbers import TracedNumber, as_number, as_truth, kind_of
from ._operators import rows_count, shape_of, truth
from ._rows import Rows, expand, holds_rows, joined
from ._structure import is_array, is_traced
from ._variables import MUTATORS

__all__ = ["call", "fresh", "star"]

_STACKS = {"stack": True, "concat": False, "concatenate": False, "Concat": False}
_SUMS = frozenset(("add_n", "ElementWiseSum"))


def call(function: Any, place: tuple[int, int, str]) -> Any:
    """Returns what converted code calls in place of function."""
    kind = type(function)
    if kind is types.FunctionType:
        made = converted(function)
        return made if made is not function else _outside(function, place)
    if kind is types.MethodType:
        return _method(function, place)
    if kind is types.BuiltinMethodType:
        return _builtin(function, place)
    if kind is type and function in _TYPES:
        return functools.partial(_TYPES[function], place)
    if isinstance(function, type):
        return lambda *args, **kwargs: note_fresh(function(*[expand(a) for a in args], **kwargs))
    if kind is functools.partial:
        return functools.partial(call(function.func, place), *function.args, **function.keywords)
    method = vars(kind).get("__call__")
    if isinstance(method, types.FunctionType) and not hasattr(function, "_children"):
        made = converted(method)
        if made is not method:
            return types.MethodType(made, function)
    return _outside(function, place)


def _method(function: types.MethodType, place: tuple[int, int, str]) -> Any:
    owner = function.__self__
    if isinstance(owner, Symbol) and function.__name__ in ("asscalar", "item"):
        return lambda: _scalar(owner, place)
    made = converted(function.__func__)
    return types.MethodType(made, owner) if made is not function.__func__ else _outside(function, place)


def _builtin(function: Any, place: tuple[int, int, str]) -> Any:
    owner = getattr(function, "__self__", None)
    if is_container(owner):
        if function.__name__ in MUTATORS:
            if function.__name__ not in ("append", "extend", "appendleft"):
                expand(owner)
            note_contents(owner)
            return function
        expand(owner)
        return function
    if isinstance(owner, Symbol) and function.__name__ in ("asscalar", "item"):
        return lambda: _scalar(owner, place)
    override = _BUILTINS.get(function)
    return functools.partial(override, place) if override is not None else _outside(function, place)


def _outside(function: Any, place: tuple[int, int, str]) -> Any:
    """Wraps a function that is not converted: lists that loops filled are taken apart, or joined if it joins lists."""

    knows_numbers = str(getattr(function, "__module__", "")).startswith("hybridnet.autograph")

    @functools.wraps(function, assigned=("__name__",), updated=())
    def outside(*args: Any, **kwargs: Any) -> Any:
        name = getattr(function, "__name__", "")
        if name in _STACKS or name in _SUMS:
            made = _joined(name, args, kwargs)
            if made is not None:
                return made
        if any(type(a) is TracedNumber for a in args) and any(map(is_array, args)) and not knows_numbers:
            args = _numbers_as_arrays(args)
        if any(holds_rows(a) for a in args) or holds_rows(args):
            args = tuple([expand(a) for a in expand(args)])
        if not frames():
            return function(*args, **kwargs)
        saved = [(arg, saved_contents(arg)) for arg in args if is_container(arg)]
        result = function(*args, **kwargs)
        for container, before in saved:
            note_change(container, before)
        is_new = type(result) in (list, dict, set, deque) or hasattr(type(result), "__next__")
        return note_fresh(result) if is_new else result

    return outside


def _numbers_as_arrays(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Replaces numbers of the graph by arrays of the dtype of the first array, as operators do with numbers."""
    like = next((arg for arg in args if is_array(arg)), None)
    return tuple([_as_operand(arg, like) if type(arg) is TracedNumber else arg for arg in args])


def _as_operand(number: TracedNumber, like: Any) -> Any:
    if like is None:
        return number.array
    example = 1.5 if kind_of(number) not in (bool, int) else 1
    dtype = np.dtype((like + example).dtype).name if isinstance(like, Symbol) else np.dtype(like.dtype).name
    made = number.cast(dtype)
    return made.as_np_ndarray() if getattr(like, "_has_numpy_interface", False) else made


def _joined(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    items = args[0] if len(args) >= 1 and type(args[0]) in (list, tuple) else args
    if not holds_rows(items):
        return None
    if name in _SUMS:
        whole = joined(items, 0, True)
        return None if whole is None else whole.sum(axis=0)
    default = 1 if name in ("concat", "Concat") else 0
    axis = kwargs.get("axis", kwargs.get("dim", args[1] if items is not args and len(args) > 1 else default))
    known = {"axis", "dim", "num_args"}
    return None if set(kwargs) - known else joined(items, axis, _STACKS[name])


def _scalar(array: Symbol, place: tuple[int, int, str]) -> TracedNumber:
    spec = rules.spec_of(array)
    if spec is not None:
        size = 1
        for part in spec[0]:
            size *= part
        if size != 1:
            raise HybridNetValueError(
                "asscalar", expected="an array of one element", given=f"shape {tuple(spec[0])}", fix="return the array"
            )
    return as_number(array)


def fresh(value: Any) -> Any:
    """Records that converted code made a container."""
    return note_fresh(value) if frames() else value


def star(value: Any) -> Any:
    """Returns the arguments of f(*value)."""
    if isinstance(value, Symbol) and is_traced_iterable(value):
        from ._statements import _item

        length = length_of(value)
        if isinstance(length, int):
            _core.note_trace_read(1)
            return [_item(value, i) for i in range(length)]
    return value


# ------------------------------------------------------------------------------------------------------------ builtins
def _len(place: Any, value: Any) -> Any:
    if holds_rows(value):
        return _length_of_filled(value)
    if isinstance(value, Symbol):
        shape = shape_of(value)
        if len(shape) > 0:
            return shape[0]
    return len(value)


def _length_of_filled(items: Any) -> Any:
    """Returns the length of a list that a loop filled: a number of the graph if the loop may end early."""
    unknown = [item.leaves[0] for item in items if type(item) is Rows and item.count is None]
    if not unknown:
        return rows_count(items)
    total: Any = rows_count([item for item in items if type(item) is not Rows or item.count is not None])
    for rows in unknown:
        total = size_of(rows, 0) + total
    return total


def _range(place: Any, *bounds: Any) -> Any:
    if any(is_traced(bound) for bound in bounds):
        return TracedRange(*[number_of(b) if is_traced(b) else b for b in bounds])
    return range(*bounds)


def _enumerate(place: Any, items: Any, start: Any = 0) -> Any:
    return Enumerated(items, start) if is_traced_iterable(items) else enumerate(expand(items), start)


def _zip(place: Any, *parts: Any, **kwargs: Any) -> Any:
    if any(is_traced_iterable(part) for part in parts):
        parts = tuple([_core.traced_constant(part) if isinstance(part, NDArray) else part for part in parts])
    if parts and all(is_traced_iterable(part) for part in parts) and not any(isinstance(p, TracedRange) for p in parts):
        if kwargs.get("strict"):
            lengths = {length_of(part) for part in parts}
            if len(lengths) > 1:
                raise HybridNetValueError("zip() arguments have different lengths")
        return Zipped(parts)
    return zip(*[_rows_of(part) for part in parts], **kwargs)


def _rows_of(part: Any) -> Any:
    """Returns an iterator over the rows of a traced array; other iterables as they are."""
    if not is_traced_iterable(part):
        return expand(part)
    from ._statements import _item

    length = length_of(part)
    if not isinstance(length, int):
        return part
    _core.note_trace_read(1)
    return (_item(part, i) for i in range(length))


def _reversed(place: Any, items: Any) -> Any:
    return Reversed(items) if is_traced_iterable(items) else reversed(expand(items))


def _sum(place: Any, items: Any, start: Any = 0) -> Any:
    if not is_traced_iterable(items):
        return sum(expand(items), start)
    return _fold(place, items, start, lambda total, item: total + item, "sum()")


def _fold(place: Any, items: Any, start: Any, step: Callable[[Any, Any], Any], name: str) -> Any:
    """Returns step(... step(step(start, first item), second item) ...) over a traced iterable: a loop of the graph."""
    from ._statements import for_

    folded = start

    def body(item: Any) -> None:
        nonlocal folded
        folded = step(folded, item)

    def set_(values: tuple[Any, ...]) -> None:
        nonlocal folded
        (folded,) = values

    names = frozenset((name,))
    site = replace(_site(place, name), names=(name,), live=names, head=names, rebound=names)
    for_(items, body, None, lambda: (folded,), set_, site)
    return folded


def _extreme(
    place: Any, args: tuple[Any, ...], kwargs: dict[str, Any], builtin: Callable[..., Any], is_max: bool
) -> Any:
    name = "max()" if is_max else "min()"
    site = _site(place, name)

    def pick(best: Any, item: Any) -> Any:
        # The earlier item stays unless the later one is greater, so NaN is treated as in Python.
        test = item > best if is_max else item < best
        return choose(test, lambda: item, lambda: best, site) if is_traced(test) else (item if test else best)

    if len(args) == 1 and is_traced_iterable(args[0]) and not kwargs:
        return _fold(place, args[0], None, lambda best, item: item if best is None else pick(best, item), name)
    items = list(expand(args[0])) if len(args) == 1 and not is_array(args[0]) else list(args)
    if kwargs or not any(is_traced(item) for item in items):
        return builtin(*args, **kwargs)
    return functools.reduce(pick, items)


def _site(place: tuple[int, int, str], construct: str) -> Site:
    line, column, file = place
    return Site(Place(file, line, column, construct), (), frozenset())


def _max(place: Any, *args: Any, **kwargs: Any) -> Any:
    return _extreme(place, args, kwargs, max, True)


def _min(place: Any, *args: Any, **kwargs: Any) -> Any:
    return _extreme(place, args, kwargs, min, False)


def _any(place: Any, items: Any) -> Any:
    return _quantified(items, any, False)


def _all(place: Any, items: Any) -> Any:
    return _quantified(items, all, True)


def _quantified(items: Any, builtin: Callable[[Any], bool], neutral: bool) -> Any:
    if is_traced_iterable(items):
        items = list(_rows_of(items))
    if not isinstance(items, (list, tuple)):
        items = list(items)
    found: Any = neutral
    for item in items:
        if not is_traced(item):
            if truth(item) is not neutral:
                return not neutral
            continue
        value = as_truth(item)
        found = value if not is_traced(found) else (found & value if neutral else found | value)
    return found


def _print(place: Any, *args: Any, **kwargs: Any) -> None:
    if any(is_traced(arg) for arg in args) and not kwargs:
        from ._effects import debug_print

        debug_print(*args)
    else:
        print(*args, **kwargs)


def _sorted(place: Any, items: Any, **kwargs: Any) -> Any:
    return note_fresh(sorted(expand(items), **kwargs))


def _bool(place: Any, value: Any = False) -> Any:
    return as_truth(value) if is_traced(value) else truth(value)


def _float(place: Any, value: Any = 0.0) -> Any:
    if isinstance(value, Symbol):
        return TracedNumber(_scalar(value, place).cast(float), float)
    if type(value) is TracedNumber:
        return TracedNumber(value.cast(float), float)
    return float(value)


def _int(place: Any, value: Any = 0, *base: Any) -> Any:
    if type(value) is TracedNumber and value._kind in (int, bool):
        return TracedNumber(value.cast(int), int)
    if is_traced(value):
        line, column, file = place
        raise refusal(
            "HN108", "int() of a value that is known only when the graph runs", Place(file, line, column, "int"),
            because="int() raises an error for NaN and infinities, which a graph cannot",
            fix="convert the array: x.astype('int64'); range() and indices accept it",
        )  # fmt: skip
    return int(value, *base)


def _next(place: Any, iterator: Any, *default: Any) -> Any:
    if frames() and not is_fresh(iterator):
        line, column, file = place
        raise refusal(
            "HN108", "next() of an iterator that is made outside of this branch or loop of the graph",
            Place(file, line, column, "next"), because="it would advance once, while the graph is made",
            fix="call next() before the branch or loop",
        )  # fmt: skip
    return next(iterator, *default)


def _isinstance(place: Any, value: Any, classes: Any) -> bool:
    # A traced array is an array, and a traced number a number; Symbol.__class__ answers by the calling file.
    if isinstance(value, Symbol):
        return issubclass(value._array_class(), classes) or isinstance(value, classes)
    if type(value) is TracedNumber:
        kind = kind_of(value)
        return issubclass(kind if isinstance(kind, type) else kind.type, classes)
    return isinstance(value, classes)


def _list(place: Any, items: Any = ()) -> Any:
    return note_fresh(list(_rows_of(items)) if is_traced_iterable(items) else list(items))


def _tuple(place: Any, items: Any = ()) -> Any:
    return tuple(_rows_of(items)) if is_traced_iterable(items) else tuple(expand(items))


_BUILTINS: dict[Any, Callable[..., Any]] = {
    len: _len, sum: _sum, max: _max, min: _min, any: _any, all: _all, print: _print, sorted: _sorted, next: _next,
    isinstance: _isinstance,
}  # fmt: skip
_TYPES: dict[Any, Callable[..., Any]] = {
    range: _range, enumerate: _enumerate, zip: _zip, reversed: _reversed, bool: _bool, float: _float, int: _int,
    list: _list, tuple: _tuple,
}  # fmt: skip
