"""Operators and writes of converted code: plain Python unless an operand is traced."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any

from .. import _core, symbol
from ..base import no_values
from ..ndarray import NDArray
from ..symbol import Symbol
from ._branches import choose
from ._convert import Site
from ._errors import Place, refusal
from ._functions import converted
from ._iterables import as_index, has_traced_number, row, size_of
from ._journal import frames, is_container, is_fresh, note_attribute, note_contents
from ._numbers import TracedNumber, as_truth, classic, is_number, number_shape
from ._rows import FilledNow, Rows, expand, holds_rows
from ._structure import is_array, is_traced

__all__ = [
    "and_", "assert_", "augmented", "augmented_attribute", "augmented_item", "chain", "context", "delete_attribute",
    "delete_item",
    "get_item", "if_exp", "in_", "not_", "not_in", "note_block", "or_", "set_attribute", "set_item", "shape_of",
    "truth",
]  # fmt: skip

_INPLACE = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul, "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv, "Mod": operator.imod, "Pow": operator.ipow, "MatMult": operator.imatmul,
    "BitAnd": operator.iand, "BitOr": operator.ior, "BitXor": operator.ixor, "LShift": operator.ilshift,
    "RShift": operator.irshift,
}  # fmt: skip
_COMPARISONS = {
    "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt,
    "GtE": operator.ge, "Is": operator.is_, "IsNot": operator.is_not,
    "In": lambda a, b: a in b, "NotIn": lambda a, b: a not in b,
}  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- truth
def truth(value: Any) -> bool:
    """Whether a value that is not traced is true."""
    if holds_rows(value):
        return rows_count(value) > 0
    return bool(value)


def rows_count(value: Any) -> int:
    """Returns the number of items of a list that a loop filled."""
    total = 0
    for item in value:
        if type(item) is FilledNow:
            item.refuse()
        total += item.known_count("its length is used") if type(item) is Rows else 1
    if any(type(item) is Rows for item in value):
        _core.note_trace_read(1)  # the graph fits this number only
    return total


def not_(value: Any) -> Any:
    """Returns not value."""
    if not is_traced(value):
        return not truth(value)
    return TracedNumber(as_truth(value).array == 0, bool)


def if_exp(test: Any, one: Callable[[], Any], two: Callable[[], Any], site: Site) -> Any:
    """Returns one() if test else two()."""
    if not is_traced(test):
        return one() if truth(test) else two()
    return choose(test, one, two, site)


def and_(first: Any, second: Callable[[], Any], as_truth: bool, site: Site) -> Any:
    """Returns first and second(). as_truth: only the truth of the result matters."""
    if not is_traced(first):
        return second() if truth(first) else first
    if as_truth:
        return choose(first, lambda: _truth_of(second()), lambda: False, site)
    return choose(first, second, lambda: first, site)


def or_(first: Any, second: Callable[[], Any], as_truth: bool, site: Site) -> Any:
    """Returns first or second()."""
    if not is_traced(first):
        return first if truth(first) else second()
    if as_truth:
        return choose(first, lambda: True, lambda: _truth_of(second()), site)
    return choose(first, lambda: first, second, site)


def _truth_of(value: Any) -> Any:
    return as_truth(value) if is_traced(value) else truth(value)


def chain(names: tuple[str, ...], operands: tuple[Any, ...], as_truth: bool, site: Site) -> Any:
    """Returns a < b() < c(): later operands are evaluated only if the earlier comparisons hold."""

    def compare(left: Any, position: int) -> Any:
        right = operands[position + 1]()
        result = _compared(names[position], left, right)
        if position + 1 == len(names):
            return _truth_of(result) if as_truth else result
        return and_(result, lambda: compare(right, position + 1), as_truth, site)

    return compare(operands[0], 0)


def _compared(name: str, left: Any, right: Any) -> Any:
    if name == "In":
        return in_(left, right, None)
    if name == "NotIn":
        return not_in(left, right, None)
    return _COMPARISONS[name](left, right)


def in_(value: Any, container: Any, site: Site | None) -> Any:
    """Returns value in container."""
    if isinstance(container, Symbol):
        found = symbol.max(symbol.cast(classic(container) == classic(value), dtype="int32"))
        return as_truth(found)
    if not is_traced(value):
        return value in expand(container)
    if not isinstance(container, (list, tuple, set, frozenset, dict, range)):
        return value in container
    any_equal: Any = False
    for item in expand(container):
        equal = _truth_of(value == item) if is_number(item) or is_array(item) or is_traced(item) else False
        if is_traced(equal):
            any_equal = equal if any_equal is False else any_equal | equal
    return any_equal


def not_in(value: Any, container: Any, site: Site | None) -> Any:
    """Returns value not in container."""
    return not_(in_(value, container, site))


def assert_(test: Any, message: Callable[[], Any], where: str) -> None:
    """Implements assert."""
    if is_traced(test):
        from ._effects import check

        check(test, message())
    elif not truth(test):
        raise AssertionError(*([] if (text := message()) is None else [text]))


# -------------------------------------------------------------------------------------------------------------- writes
def get_item(container: Any, index: Any) -> Any:
    """Returns container[index]."""
    if is_array(container) and has_traced_number(index):
        return row(container, index)
    if holds_rows(container):
        if isinstance(index, int) and index == -1 and type(container[-1]) is Rows:
            return container[-1].last()
        container = expand(container)
    if type(index) is TracedNumber and isinstance(container, (list, tuple)):
        return _chosen_item(container, index)
    if type(index) is TracedNumber and isinstance(container, dict):
        raise no_values(index.array, "Using the value as a key of a dict", "branch with if and elif")
    return container[as_index(index)] if is_array(container) else container[index]


def shape_of(value: Any) -> Any:
    """Returns value.shape; sizes that are known only when the graph runs are numbers of the graph."""
    specs = _core.symbol_specs(value) if isinstance(value, Symbol) and value.num_outputs == 1 else None
    if not specs or specs[0][0] is None or all(size >= 0 for size in specs[0][0]):
        return value.shape
    return tuple([size if size >= 0 else size_of(value, axis) for axis, size in enumerate(specs[0][0])])


def _chosen_item(container: Any, index: TracedNumber) -> Any:
    """Returns an item of a list of arrays of one shape, at a position that the graph computes."""
    from .._control_flow import rules

    specs = {rules.spec_of(item) if isinstance(item, Symbol) else None for item in container}
    if len(specs) == 1 and None not in specs:
        return row(symbol.stack(*map(classic, container), axis=0), index)
    if container and all(is_number(item) for item in container):
        kinds = [type(item) for item in container]
        if all(kind is kinds[0] for kind in kinds) and kinds[0] in (int, float):
            from .. import ndarray

            dtype = "int64" if kinds[0] is int else "float64"
            table = _core.traced_constant(ndarray.array(container, dtype=dtype))
            return TracedNumber(symbol.reshape(row(table, index), shape=number_shape()), kinds[0])
    return container[index]


def set_item(container: Any, index: Any, value: Any) -> None:
    """Implements container[index] = value."""
    if is_container(container):
        expand(container)
        note_contents(container)
        container[index] = value
    elif is_array(container):
        value = value.array if type(value) is TracedNumber else value
        if has_traced_number(index):
            view, rest = row(container, index, to_write=True)
            view[rest] = value
        else:
            container[as_index(index)] = value
    elif (method := _special(container, "__setitem__")) is not None:
        method(index, value)
    else:
        container[index] = value


def delete_item(container: Any, index: Any) -> None:
    """Implements del container[index]."""
    if is_container(container):
        expand(container)
        note_contents(container)
    del container[index]


def delete_attribute(owner: Any, name: str) -> None:
    """Implements del owner.name."""
    set_attribute(owner, name, None)
    delattr(owner, name)


def _special(owner: Any, name: str) -> Any:
    """Returns a special method that the program defines, converted; None if it defines none."""
    method = getattr(type(owner), name, None)
    if not isinstance(method, types.FunctionType):
        return None
    made = converted(method)
    return None if made is method else types.MethodType(made, owner)


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """Implements owner.name = value."""
    if frames() and isinstance(owner, (type, types.ModuleType)):
        raise refusal(
            "HN106",
            f"attribute {name!r} of the {type(owner).__name__} {owner.__name__} is assigned in a branch or loop of the "
            "graph",
            because="a graph cannot assign attributes of Python objects",
            fix="carry the value in a local variable and return it",
        )
    if frames() and not is_fresh(owner):
        note_attribute(owner, name)
    setattr(owner, name, value)


def augmented(name: str, target: Any, value: Any) -> Any:
    """Returns the result of target += value, and so on."""
    if is_container(target):
        expand(target)
        note_contents(target)
    if is_array(target) and type(value) is TracedNumber:
        value = _operand_like(target, value)
    if (method := _special(target, _INPLACE[name].__name__.join(("__", "__")))) is not None:
        result = method(value)
        if result is not NotImplemented:
            return result
    return _INPLACE[name](target, value)


def _operand_like(target: Any, value: TracedNumber) -> Any:
    from ._numbers import rule_of

    return rule_of(target, symbol.cast(value.cast(value._kind), dtype=str(_dtype_name(target))))


def _dtype_name(array: Any) -> str:
    import numpy as np

    return np.dtype(array.dtype).name


def augmented_item(name: str, container: Any, index: Any, value: Any) -> None:
    """Implements container[index] += value."""
    set_item(container, index, augmented(name, get_item(container, index), value))


def augmented_attribute(name: str, owner: Any, attribute: str, value: Any) -> None:
    """Implements owner.attribute += value."""
    before = getattr(owner, attribute)
    after = augmented(name, before, value)
    if after is before and isinstance(before, (NDArray, Symbol)):
        setattr(owner, attribute, after)  # written in place
    else:
        set_attribute(owner, attribute, after)


# ----------------------------------------------------------------------------------------------- unsupported constructs
_FIXES = {
    "try": "move the try statement out of the branch or loop",
    "raise": "check the condition with mx.check(condition, message)",
}
_BECAUSE = {
    "try": "the branch or loop is part of the graph, in which an error ends the whole run",
    "raise": "this branch or loop is traced whether its condition holds or not, so the error would always be raised",
}


def note_block(construct: str, place: tuple[int, int, str]) -> None:
    """Refuses a statement inside a branch or loop of the graph."""
    if frames():
        line, column, file = place
        raise refusal(
            "HN108", f"{construct} is not supported inside a branch or loop of the graph",
            Place(file, line, column, construct), because=_BECAUSE[construct], fix=_FIXES[construct],
        )  # fmt: skip


def context(manager: Any, place: tuple[int, int, str]) -> Any:
    """Returns the context manager of a with statement; inside a branch or loop of the graph, only our own ones."""
    if frames() and not type(manager).__module__.startswith("hybridnet"):
        line, column, file = place
        raise refusal(
            "HN108", "with is not supported inside a branch or loop of the graph", Place(file, line, column, "with"),
            because=f"a {type(manager).__name__} acts once, while the graph is made, and not in each iteration",
            fix="move the with statement out of the branch or loop",
        )  # fmt: skip
    return manager
