"""Cases that TensorFlow's AutoGraph tests, and loops of published models: equal to imperative mode, or refused by code.

The programs are written for this file; docs/python-control-flow-coverage.md has the tables of what they show.
"""

# Cases are written as programs are, also where a linter knows a shorter form.
# ruff: noqa: PIE804, RET503, RET504, RET505, SIM102, SIM113

from __future__ import annotations

import contextlib
import functools
import re
import types
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import nd
from hybridnet.errors import TraceError
from hybridnet.gluon import nn, rnn

from .corpus_support import KINDS, Function, a, count_nodes, flat, graph_of


@dataclass
class Case:
    """A program, its inputs, and the nodes that it becomes (cond, foreach, while) or the code that refuses it."""

    group: str
    target: Any
    inputs: tuple[tuple[np.ndarray, ...], ...]
    nodes: tuple[int, int, int]
    code: str

    def block(self) -> mx.gluon.HybridBlock:
        """Returns a new block; its parameters have the same values every time."""
        if not isinstance(self.target, type):
            return Function(self.target)
        block = self.target()
        block.initialize()
        block(*self.arrays(0))  # layers take the sizes of their inputs from a first call
        for number, parameter in enumerate(block.collect_params().values()):
            size = int(np.prod(parameter.shape))
            parameter.set_data(nd.array(np.sin(np.arange(size) * 1.7 + number).reshape(parameter.shape)))
        return block

    def arrays(self, number: int) -> list[Any]:
        """Returns the arguments of one call."""
        return [nd.array(value, dtype=value.dtype) for value in self.inputs[number]]

    def __str__(self) -> str:
        return f"{self.group}-{self.target.__name__}".replace(" ", "_")


CASES: list[Case] = []


def case(
    group: str, *inputs: Any, cond: int = 0, foreach: int = 0, while_: int = 0, code: str = ""
) -> Callable[[Any], Any]:
    """Decorator: the function, or class of a block, is a case. inputs: tuples, or arrays for one argument."""

    def note(target: Any) -> Any:
        calls = tuple(call if isinstance(call, tuple) else (call,) for call in inputs)
        CASES.append(Case(group, target, calls, (cond, foreach, while_), code))
        return target

    return note


class Record:
    """An object of a program with attributes."""

    def __init__(self, x: Any = None) -> None:
        self.x = x


# ---------------------------------------------------------------------------------------------------------------- while
@case("while", a(5), a(0), a(2), while_=1)
def while_sum(n):
    i, total = 0, 0
    while i < n:
        total += i
        i += 1
    return total, i, n


@case("while", a(5), a(0), while_=1)
def while_one_variable(n):
    while n > 0:
        n = n - 1
    return n


@case("while", a(5), a(0), a(3), while_=2)
def while_nested_with_a_local(n):
    i, j, total = 0, 0, 0
    while i < n:
        while j < i:
            j += 3
        local = i + j
        total += local
        i += 1
        j = 0
    return total, i, j


@case("while", a(5), a(0), while_=1)
def while_dict_with_key_in_a_variable(n):
    state, key = {"a": n}, "a"
    while n > 0:
        state[key] = state[key] + 1
        n = n - 1
    return state[key], n


@case("while", a(5), a(0), while_=1)
def while_dict_with_literal_key(n):
    state = {"a": n * 2, "b": n}
    while n > 0:
        state["a"] += 1
        n = n - 1
    return state["a"], state["b"], n


@case("while", a(3), a(0), while_=1)
def while_attribute_of_an_object(n):
    record = Record(n * 0 + 3)
    while n > 0:
        record.x = record.x + 1
        n = n - 1
    return record.x


@case("while", a(3), a(0), cond=1, while_=1)
def while_attribute_deep_in_objects(n):
    record = Record(Record({"z": Record(n)}))
    while n > 0:
        if n < 2:
            record.x.x["z"].x = record.x.x["z"].x + 1
        n = n - 1
    return n, record.x.x["z"].x


@case("while", a(0), a(3), code="HN102")
def while_attribute_first_set_in_the_loop(n):
    record = Record()
    while n < 5:
        if n == 0:
            record.y = n + 10
        else:
            record.y = n + 1
        n = n + 1
    return record.y


@case("while", a(0), a(3), code="HN107")
def while_key_first_set_in_the_loop(n):
    state = {}
    while n < 5:
        state["key"] = n + 1
        n = n + 1
    return state["key"]


@case("while", a(0), a(3), while_=1)
def while_key_set_before_the_loop(n):
    state = {"key": n}
    while n < 5:
        state["key"] = n + 1
        n = n + 1
    return state["key"]


@case("while", a(3), a(0), while_=1)
def while_object_of_one_iteration(n):
    while n > 0:
        record = Record(n)
        record.x = record.x - 1
        n = record.x
    return n


@case("while", a(3), a(0), while_=1)
def while_dict_of_one_iteration(n):
    while n > 0:
        state = {"x": n}
        state["x"] = state["x"] - 1
        n = state["x"]
    return n


class Box(NamedTuple):
    items: list[Any]


@case("while", a(3), a(0), while_=1)
def while_namedtuple_with_a_list(n):
    box = Box([n * 0])
    while n > 0:
        box = Box([n * 0 + 3])
        box.items[0] = box.items[0] + 1
        n = n - 1
    return box.items[0]


@case("while", a(3), a(0), code="HN102")
def while_object_first_made_in_the_loop(n):
    while n > 0:
        record = Record([n])
        n = n - 1
    return record.x[0]


class Plus:
    """A number that arrays know nothing about."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __add__(self, other: Any) -> Plus:
        return Plus(self.value + other)


@case("while", a(3), a(0), code="HN103")
def while_number_of_another_class(n):
    total = Plus(0)
    while n > 0:
        n = n - 1
        total = total + n
    return total.value


@case("while", a(1, 2), cond=1)
def while_number_of_another_class_in_plain_python(x):
    total, n = Plus(0), 3
    while n > 0:
        n -= 1
        total = total + n
    return x * total.value if x.sum() > 0 else x


@case("while", a(1, 2), a(-7, 2), cond=1)
def while_over_python_numbers(x):
    i = 0
    while i < 3:
        x = x * 2 + i
        i += 1
    return x if x.sum() > 0 else -x


@case("while", a(4), a(9), code="HN108")
def while_condition_with_effects(n):
    steps = nd.zeros((1,))

    def bump():
        steps[:] = steps + 2
        return steps

    i = 0
    while bump() < n:
        i += 1
    return i, steps


@case("while", a(1.5, 0), a(20, 1), while_=1)
def while_else(x):
    while x.sum() > 2:
        x = x / 2
    else:
        x = x + 1
    return x


@case("while", (a(8), a(1)), (a(8), a(0)), (a(1), a(1)), cond=3, while_=1)
def while_else_and_break(x, stop):
    while x > 2:
        x = x / 2
        if stop:
            break
    else:
        x = x + 1
    return x


# ------------------------------------------------------------------------------------------------------------------- if
@case("if", a(1), a(-1), cond=1)
def if_other_names_on_each_path(n):
    first, second = nd.zeros((1,)), nd.zeros((1,))
    if n > 0:
        first = -n
    else:
        second = 2 * n
    return first, second


@case("if", a(1), a(-1), cond=1)
def if_number_or_array(n):
    first = 0
    if n > 0:
        first = -n
    return first


@case("if", a(1), a(-1), cond=1)
def if_one_name(n):
    if n > 0:
        n = -n
    return n * 3


@case("if", a(2), a(-3), cond=1)
def if_constant_on_one_path(n):
    if n > 0:
        n = 3
    return n


@case("if", a(-3), a(2), code="HN108")
def if_raise(n):
    if n > 0:
        raise ValueError("positive")
    return n


@case("if", a(1), a(-1), cond=1)
def if_local_name(n):
    if n > 0:
        local = 4
        n = n * local + 1
    return n


@case("if", a(1), a(-1))
def if_without_results(n):
    if n > 0:
        local = 4  # noqa: F841
    return n


@case("if", a(0), a(1), cond=1)
def if_name_made_on_both_paths(n):
    if n == 0:
        result = n - 1
    else:
        result = n + 1
    return result


@case("if", a(0, 1, 2, 3, 4), a(0, -1), cond=2, foreach=1)
def if_name_made_in_a_loop(items):
    total = nd.array([10])
    for i in items:
        if i == 0:
            result = i - 1
        else:
            result = i + 1
        if result > 0:
            total = total + 1
    return total


@case("if", a(0, 1, 2), a(0, -1), code="HN101")
def if_name_of_an_earlier_iteration(items):
    total = nd.array([10])
    for i in items:
        if i == 0:
            result = i - 1
        if i > 0:
            if result < 0:
                total = total + 1
    return total


@case("if", a(0, 1, 2), a(0, -1), cond=3, foreach=1)
def if_name_of_an_earlier_iteration_with_a_start(items):
    total, result = nd.array([10]), nd.zeros((1,))
    for i in items:
        if i == 0:
            result = i - 1
        if i > 0:
            if result < 0:
                total = total + 1
    return total


COUNTER = 0


@case("if", a(1), a(-1), code="HN108")
def if_global(n):
    global COUNTER
    COUNTER = 3
    if n > 0:
        COUNTER = 4
    return n * COUNTER


@case("if", a(1), a(-1), cond=1)
def if_nonlocal(n):
    count = n * 3

    def inner():
        nonlocal count
        if n > 0:
            count = n - 5

    inner()
    return count


@case("if", a(0), a(1), cond=1)
def if_after_except(n):
    try:
        raise ValueError
    except ValueError:
        x = n * 0 + 1
    if n == 0:
        x = n - 1
    return x


@case("if", a(1), a(-1), cond=1)
def if_attributes_of_an_object(n):
    record = Record(n)
    z = n * 0 + 5
    if n > 0:
        record.x = n * 7
        z = n * 13
    return record.x, z


# ------------------------------------------------------------------------------------------------------------------ for
@case("for", a(1, 3), np.zeros((0,), "float32"), a(2), foreach=1)
def for_two_sums(items):
    first, second = nd.zeros((1,)), nd.zeros((1,))
    for item in items:
        first = first + item
        second = second + item * item
    return first, second


@case("for", a(1, 3), a(4, 5, 6), foreach=1)
def for_start_from_a_number(items):
    total = 0
    for item in items:
        total += item
    return total


@case("for", a(1, 3), a(4, 5, 6), foreach=1)
def for_iterable_is_computed_once(items):
    calls = []

    def once(x):
        calls.append(1)
        return x * 2

    total = nd.zeros((1,))
    for item in once(items):
        total = total + item
    return total * len(calls)


@case("for", a(0, 1, 2), cond=2, foreach=1)
def for_attribute_first_set_in_the_loop(items):
    record = Record()
    for i in items:
        if i == 0:
            record.y = i
        else:
            record.y = i + 1
    return record.y


@case("for", a(3, 3), a(1, 2, 3), foreach=1)
def for_tuples(items):
    total = nd.zeros((1,))
    for i, item in enumerate(items):
        total = total + item * i
    return total


@case("for", a(1, 2, 3), a(1), foreach=1)
def for_with_comprehension_in_the_body(items):
    total = nd.zeros((4,))
    for item in items:
        total = total + nd.array([k * k for k in range(4)]) * item
    return total


@case("for", a(1, 2), a(4), foreach=1)
def for_else(items):
    total = nd.zeros((1,))
    for item in items:
        total = total + item
    else:
        total = total + 100
    return total


@case("for", (a(1, 2, 3), a(2)), (a(1, 2, 3), a(7)), cond=2, while_=1)
def for_else_and_break(items, last):
    total = nd.zeros((1,))
    for item in items:
        total = total + item
        if item == last:
            break
    else:
        total = total + 100
    return total


# ---------------------------------------------------------------------------------------------------------------- break
@case("break", a(0), a(1), a(4), a(7), cond=2, while_=1)
def break_in_while(x):
    total = nd.zeros((1,))
    while x > 0:
        x = x - 1
        if x % 2 == 0:
            break
        total = total + x
    return total, x


@case("break", a(5, 4), a(5, 3, 9), cond=1, while_=1)
def break_in_for(items):
    total = nd.zeros((1,))
    for x in items:
        if x % 2 == 0:
            break
        total = total + x
    return total


@case("break", a(11), a(3), a(0), cond=4, while_=1)
def break_in_nested_ifs(x):
    u, w = nd.zeros((1,)), nd.zeros((1,))
    while x > 0:
        x = x - 1
        if x % 2 == 0:
            if x % 3 != 0:
                u = u + x
            else:
                w = w + x
                break
        u = u * 2
    return u, w, x


@case("break", a(5), a(3), a(2), a(0), cond=4, while_=2)
def break_in_nested_loops(x):
    v, u = nd.zeros((1,)), nd.zeros((1,))
    while x > 0:
        x = x - 1
        y = x
        while y > 0:
            y = y - 1
            if y % 2 == 0:
                break
            u = u + y
        if x == 0:
            break
        v = v + x
    return v, u


@case("break", a(3), a(2), a(0), cond=4, while_=2)
def break_in_else_of_a_loop(x):
    v, u = nd.zeros((1,)), nd.zeros((1,))
    while x > 0:
        x = x - 1
        y = x
        while y > 1:
            break
        else:
            u = u + y + 1
            break
        v = v + x
    return v, u


@case("break", a(1), a(0), cond=5, while_=1)
def break_twice_in_while_true(flag):
    last = nd.zeros((1,))
    while True:
        if flag > 0:
            last = last + 1
        else:
            break
        if last > 2:
            break
    return last


@case("break", a(5, 4, 1), a(5, 3, 9), cond=1, while_=1)
def break_then_append(items):
    kept = []
    for x in items:
        if x % 2 == 0:
            break
        kept.append(x)
    return nd.stack(*kept)


@case("break", a(5, 4, 1), a(5, 3, 9), cond=1, while_=1)
def append_then_break(items):
    kept = []
    for x in items:
        kept.append(x)
        if x % 2 == 0:
            break
    return nd.stack(*kept)


# ------------------------------------------------------------------------------------------------------------- continue
@case("continue", a(0), a(1), a(4), cond=1, while_=1)
def continue_in_while(x):
    total = nd.zeros((1,))
    while x > 0:
        x = x - 1
        if x % 2 == 0:
            continue
        total = total + x
    return total


@case("continue", a(0), a(3), a(4), cond=2, while_=1)
def continue_twice(x):
    total = nd.zeros((1,))
    while x > 0:
        x = x - 1
        if x > 2:
            continue
        if x > 1:
            total = total + 10
            continue
        total = total + x
    return total


@case("continue", a(1), a(2, 5), a(1, 2, 3), cond=1, foreach=1)
def continue_in_for(items):
    total = nd.zeros((1,))
    for x in items:
        if x % 2 == 0:
            continue
        total = total + x
    return total


@case("continue", a(4), a(0), cond=2, while_=1)
def continue_in_with(x):
    total = nd.zeros((1,))
    while x > 0:
        x = x - 1
        with mx.autograd.pause():
            if x % 2 == 0:
                continue
        total = total + x
    return total


@case("continue", a(4), a(0), code="HN108")
def continue_in_with_of_another_library(x):
    total = nd.zeros((1,))
    while x > 0:
        x = x - 1
        with contextlib.suppress(KeyError):
            if x % 2 == 0:
                continue
        total = total + x
    return total


@case("continue", a(1), a(1, 2, 3), code="HN108")
def continue_in_except(items):
    total = nd.zeros((1,))
    for x in items:
        try:
            raise ValueError
        except ValueError:
            continue
        total = total + x
    return total


@case("continue", a(1, 2, 3), a(4, 5), cond=1, foreach=1)
def continue_then_append(items):
    kept = []
    for x in items:
        if x % 2 == 0:
            continue
        kept.append(x)
    return nd.stack(*kept)


@case("continue", a(1, 2, 3), a(4, 5), cond=1, foreach=1)
def continue_after_calls_that_append(items):
    seen = []

    def track(value):
        seen.append(value)
        return value

    total = nd.zeros((1,))
    for x in items:
        if track(x) > 1:
            continue
        total = total + x
    return total, nd.stack(*seen)


# --------------------------------------------------------------------------------------------------------------- return
@case("return", a(2), a(-2), cond=1)
def return_before_dead_code(x):
    if x > 0:
        return x * x
        return x + 1
    return x
    return x + 2


@case("return", a(2), a(-2), cond=1)
def return_on_both_paths(x):
    if x > 0:
        return x
    else:
        return x * x


@case("return", a(2), a(-2), code="HN105")
def return_on_one_path_only(x):
    if x > 0:
        return x


@case("return", a(2), a(-2), cond=1)
def return_then_default(x):
    if x > 0:
        return x
    return x * x


@case("return", a(2), a(-2), cond=1)
def return_from_else(x):
    if x < 0:
        x = x * x
    else:
        return x
    return x + 1


@case("return", a(2), a(-2), a(5), cond=2)
def return_nested(x):
    if x > 0:
        if x < 5:
            return x
        else:
            return x * x
    else:
        return x * x * x


@case("return", a(2), a(-2), cond=1)
def return_in_with_in_if(x):
    if x > 0:
        with mx.autograd.pause():
            return x * x
    else:
        return x


@case("return", a(2), a(-2), cond=1)
def return_in_if_in_with(x):
    with mx.name.Prefix("scope_"):
        if x > 0:
            return x * x
        else:
            return x


@case("return", a(2), a(-2), cond=1)
def return_in_nested_function(x):
    def inner(y):
        if y > 0:
            return y * y
        else:
            return y

    return inner(x)


@case("return", a(2), a(-2), cond=1)
def return_of_a_function_made_in_a_branch(x):
    if x > 0:

        def inner(y):
            return y * 3

        x = inner(x)
    return x


@case("return", a(2, 1), a(-1, 7), cond=2, while_=1)
def return_in_for(items):
    for x in items:
        if x > 1:
            return x
    return items[0] * 0 - 1


@case("return", a(2, 1), code="HN105")
def return_in_for_only(items):
    for x in items:
        if x > 1:
            return x


@case("return", a(0), a(2), a(4), cond=3, while_=1)
def return_in_while(n):
    i, total = 0, 0
    while i < n:
        i += 1
        total += i
        if total > 4:
            return total
    return -1


@case("return", a(4), a(5))
def return_nothing_on_both_paths(x):
    def inner(y):
        if y > 4:
            return
        return

    inner(x)
    return x


@case("return", a(1, 4), code="HN108")
def return_in_except(items):
    total = nd.zeros((1,))
    for x in items:
        try:
            total = total + x
        except ValueError:
            return total
    return total


# ---------------------------------------------------------------------------------------------------------- expressions
@case("expressions", a(0), a(3), cond=1)
def conditional_expression(x):
    return 1 if x else 0


@case("expressions", a(-2), a(0), a(2), cond=2)
def conditional_expression_nested(x):
    return x * x if x > 0 else x + 5 if x else x + 1


@case("expressions", (a(1), a(1)), (a(1), a(2)))
def equality(x, y):
    return x == y


@case("expressions", (a(1), a(0), a(0)), (a(1), a(0), a(1)), (a(0), a(0), a(0)), cond=5)
def bool_operators(x, y, z):
    return (x or y) and (x or y or z) and not z


@case("expressions", (a(1), a(2), a(2), a(1)), (a(1), a(2), a(2), a(3)), (a(3), a(2), a(2), a(1)), cond=2)
def chained_comparison(x, y, z, w):
    return x < y == z > w


@case("expressions", a(1), a(-1), cond=1)
def bool_operators_of_python_and_arrays(x):
    flag = "a" in ("a", "b")
    if flag and x > 0:
        x = x * 2
    return x


@case("expressions", a(4, 1), a(5, 2), cond=1)
def membership(x):
    return x * 2 if 4 in x else x


# ---------------------------------------------------------------------------------------------------------------- calls
def absolute(x):
    """Returns the absolute value of one number."""
    if x < 0:
        return -x
    return x


@case("calls", a(-4), a(2), cond=2)
def call_in_an_argument(x):
    return absolute(absolute(x) - 3) + 3


@case("calls", a(-4), a(2), cond=2)
def call_with_keywords_and_stars(x):
    def scaled(value, *factors, shift, **more):
        for factor in factors:
            value = absolute(value) * factor
        return value + shift + more["last"]

    return scaled(x, *[2, 3], shift=1, **{"last": x})


class Worker:
    """A class with the kinds of methods that programs have."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def method(self):
        return absolute(self.x) if self.x < 3 else self.other(self.x)

    def other(self, value):
        while value > 3:
            value = value - 1
        return value

    @staticmethod
    def static(value):
        return -value if value > 0 else value

    @classmethod
    def made(cls, value):
        return cls(value if value > 0 else value * 2)

    @property
    def positive(self):
        return self.x if self.x > 0 else self.x * 0

    def __call__(self, value):
        return value if value > self.x else self.x


@case("calls", a(-4), a(2), a(8), cond=4, while_=3)
def call_methods(x):
    worker = Worker(x)
    return worker.method() + Worker.method(worker) + types.MethodType(Worker.other, worker)(x)


@case("calls", a(-4), a(2), cond=2)
def call_static_and_class_methods(x):
    return Worker.static(x), Worker.made(x).x


@case("calls", a(-4), a(2), code="HN100")
def call_property(x):
    return Worker(x).positive


@case("calls", a(-4), a(2), cond=1)
def call_object(x):
    return Worker(x)(x * 0 + 1)


@case("calls", a(-4), a(2), cond=2, while_=1)
def call_method_kept_in_an_attribute(x):
    return Record(Worker(x).method).x()


@case("calls", a(-4), a(2), cond=1)
def call_partial(x):
    def three(first, second, third):
        if first < 0:
            return -first, -second, -third
        return first, second, third

    return functools.partial(functools.partial(three, x), third=x + 3)(x + 1)


@case("calls", a(-4), a(2), cond=2)
def call_lambda(x):
    flip = lambda value: -value if value < 0 else value  # noqa: E731
    return flip(x) + (lambda value: value if value > 1 else value * 7)(x)


@mx.autograph.convert
def converted_before(x):
    return x if x > 0 else -x


@case("calls", a(-4), a(2), cond=1)
def call_of_a_converted_function(x):
    return converted_before(x)


@mx.autograph.skip
def skipped(x):
    return x if x > 0 else -x


@case("calls", a(-4), a(2), code="HN100")
def call_of_a_skipped_function_that_decides(x):
    return skipped(x)


@mx.autograph.skip
def skipped_product(x):
    return x * 4


@case("calls", a(-4), a(2), cond=1)
def call_of_a_skipped_function(x):
    return skipped_product(x) if x > 0 else x


@case("calls", a(-4), a(2), cond=1)
def call_of_numpy(x):
    sizes = np.broadcast(np.zeros((2, 1)), np.zeros((1, 3))).shape
    return x * sizes[1] if x > 0 else x


@case("calls", a(3, 4), a(-3, 1), cond=1)
def call_of_a_library_that_decides(x):
    return functools.reduce(lambda p, q: p if p > q else q, [x[0], x[1]])


@case("calls", a(-4), a(2), code="HN100")
def call_of_source_text(x):
    scope = {}
    exec("def f(x):\n    return x if x > 0 else -x", scope)
    return scope["f"](x)


def decorated(function):
    @functools.wraps(function)
    def wrapper(x):
        if x > 3:
            x = x - 1
        return function(x)

    return wrapper


@decorated
def with_decorator(x):
    return x * 2 if x > 0 else x


@case("calls", a(-4), a(2), a(8), cond=2)
def call_of_a_decorated_function(x):
    return with_decorator(x)


class Base(mx.gluon.HybridBlock):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x


@case("calls", a(-4), a(2), cond=2)
class CallOfSuper(Base):
    def forward(self, x):
        y = super().forward(x)
        return y + 1 if y.sum() > 3 else y


@case("calls", a(3), a(2), code="HN108")
def call_recursion_on_an_array(x):
    def down(value):
        return value if value < 1 else down(value - 1)

    return down(x)


@case("calls", a(3), a(-2), cond=2)
def call_recursion_on_a_number(x):
    def power(value, k):
        return value if k == 0 else power(absolute(value) * value, k - 1)

    return power(x, 2)


# --------------------------------------------------------------------------------------------------------------- lists
@case("lists", a(1, 2, 3), a(5), foreach=1)
def list_append_and_stack(items):
    outs = [items[0] * 10]
    outs.append(items[0])
    for x in items:
        outs.append(x * 2)
    return nd.stack(*outs)


@case("lists", a(1, 2, 3), a(5, 1, 1), code="HN107")
def list_pop_of_python(items):
    values = [items[0], [items[1], items[2]]]
    last = values.pop().pop()
    return last if last > 2 else values.pop()


@case("lists", a(1, 2, 3), a(5))
def list_pop_in_a_loop(items):
    values = [items[0]]
    for x in items:
        values.append(x)
        values.pop()
    return values[0]


@case("lists", a(1, 2, 3), a(5), code="HN104")
def list_read_in_its_loop(items):
    values = [items[0]]
    for x in items:
        values.append(x + values[-1])
    return nd.stack(*values)


@case("lists", a(1, 2, 3), a(5))
def list_comprehension(items):
    return nd.stack(*[x * x for x in items])


@case("lists", np.ones((2, 3), "float32"), np.ones((1, 2), "float32"))
def list_comprehension_nested(rows):
    return nd.stack(*[x * x for row in rows for x in row])


@case("lists", a(1, 2, 3), a(5), code="HN100")
def list_comprehension_with_condition(items):
    return nd.stack(*[x * x for x in items if x > 1])


@case("lists", a(1, 2), a(-5, 2), cond=1)
def list_comprehension_of_python(x):
    parts = [x[k] * k for k in range(2) if k > 0]
    return parts[0] if x.sum() > 0 else x[0]


@case("lists", (a(1, 2, 3), a(1)), (a(5, 6, 7), a(0)), cond=1)
def index_by_a_value(items, k):
    n = k.astype("int32")
    y = items[n]
    return y if y > 2 else y * 3


@case("lists", a(1, 2), a(-5, 2), code="HN103")
def list_or_other_list(x):
    values = [x, x * 2]
    if x.sum() > 0:
        values = []
    return values[1]


# ------------------------------------------------------------------------------------------------------------ variables
@case("variables", a(1), a(-1), cond=1)
def augmented_assignment(x):
    x *= 10
    if x > 0:
        x += 5
    return x


@case("variables", a(1), a(-1), code="HN101")
def delete_then_read(x):
    y = x * 2
    if x > 0:
        del y
    return y


@case("variables", a(1), a(-1))
def delete_then_assign(x):
    y = x * 2
    if x > 0:
        y = y + x
    del y
    y = x
    return y


@case("variables", a(1), a(-1), cond=1)
def delete_items(x):
    values, record = [x, x * 2, x * 3], Record(x)
    del values[0], values[0:1], record.x
    return values[0] if x > 0 else x


@case("variables", a(1, 5), a(-1, 2), cond=1)
def walrus(x):
    if (total := x.sum()) > 3:
        x = x * total
    return x + total


# ------------------------------------------------------------------------------------------------------------- builtins
@case("builtins", a(-1, 2, -3), a(4, 5, 6), cond=6, foreach=3)
def builtin_abs_max_min_sum(x):
    return abs(x), max(x), min(x), sum(x), max(x[0], x[1], 1), min(x[0], x[2], 0)


@case("builtins", a(3), a(-2), cond=1)
def builtin_float(x):
    return float(x) + 1 if x > 0 else x


@case("builtins", a(3), a(-2), code="HN108")
def builtin_int(x):
    return int(x) if x > 0 else 0


@case("builtins", np.ones((3, 1), "float32"), np.ones((5, 1), "float32") * -1, cond=1)
def builtin_len(x):
    return x * len(x) if x.sum() > 0 else x


@case("builtins", a(3), a(-3), a(0), while_=1)
def builtin_range(n):
    total = 0
    for k in range(n.astype("int32")):
        total += k
    return total


@case("builtins", a(3), a(-3), a(6), cond=1, while_=2)
def builtin_range_with_start_and_step(n):
    total, limit = 0, n.astype("int32")
    for k in range(1, limit):
        total += k
    for k in range(6, 0, -limit if n > 0 else -1):
        total += k * 10
    return total


@case("builtins", a(3, 2, 1), a(4, 9), foreach=1)
def builtin_enumerate_with_start(items):
    total = nd.zeros((1,))
    for k, x in enumerate(items, 5):
        total = total + k * x
    return total


@case("builtins", (a(3, 2, 1), a(1, 2)), (a(3, 2), a(1, 2, 3)), foreach=1)
def builtin_zip_of_other_lengths(first, second):
    total = nd.zeros((1,))
    for x, y in zip(first, second, strict=False):
        total = total + x * y
    return total


@case("builtins", a(4, 5, 6), a(-4), code="HN100")
def builtin_map(items):
    return nd.stack(*map(absolute, items))


@case("builtins", a(4, 5), a(-4, 3), code="HN100")
def builtin_map_over_a_list(items):
    return nd.stack(*map(absolute, [items[0], items[1]]))


@case("builtins", a(4, 5), a(-4, 3), code="HN100")
def builtin_filter_over_a_list(items):
    return nd.stack(*filter(lambda x: x > 0, [items[0] * 0 + 1, items[1]]))


@case("builtins", a(4, 5), a(-4, 3), cond=1)
def builtin_next_over_a_list(items):
    rows = iter([items[0], items[1]])
    first, second = next(rows), next(rows)
    return first if first > 0 else second


@case("builtins", a(4, 5), a(-4, 3), code="HN100")
def builtin_next_over_an_array(items):
    rows = iter(items)
    first = next(rows)
    return first if first > 0 else next(rows)


@case("builtins", a(4, 5), a(-4, 3), a(0, 0), cond=2)
def builtin_any_all(x):
    return x * 2 if any(x > 0) else x, x * 3 if all(x > 0) else x


@case("builtins", a(4, 5), a(9, 3), code="HN100")
def builtin_sorted_list(x):
    return nd.stack(*sorted([x[0], x[1]], key=lambda v: v))


@case("builtins", a(4, 5), a(-4, 3), code="HN100")
def generator_over_a_list(x):
    def rows():
        for k in range(2):
            yield x[k] if x[k] > 0 else x[k] * 0

    return sum(rows())


@case("builtins", a(4, 5), a(-4, 3), cond=2)
def builtin_sum_of_a_generator_expression(x):
    return sum(absolute(v) for v in [x[0], x[1]])


# ----------------------------------------------------------------------------------------------------------- directives
@case("directives", a(1), a(60), while_=1)
def directive_max_iterations(x):
    mx.autograph.max_iterations(8)
    while x < 50:
        x = x * 2
    return x


@case("directives", a(1, 2), a(30, 4), while_=1)
def directive_shape_invariants(x):
    mx.autograph.shape_invariants(x=(None,))
    while x.sum() < 30:
        x = nd.concat(x, x, dim=0)
    return x


@case("directives", a(1, 2), a(30, 4), code="HN103")
def loop_that_changes_a_size(x):
    while x.sum() < 30:
        x = nd.concat(x, x, dim=0)
    return x


# ------------------------------------------------------------------------------------------------------------------ d2l
def random_like(*shape: int) -> np.ndarray:
    """Returns fixed float32 numbers of mixed signs."""
    return np.cos(np.arange(int(np.prod(shape))) * 2.3 + 0.5).reshape(shape).astype("float32")


class Weights(mx.gluon.HybridBlock):
    """A block with parameters made by name and shape."""

    shapes: dict[str, tuple[int, ...]] = {}

    def __init__(self) -> None:
        super().__init__()
        for name, shape in self.shapes.items():
            setattr(self, name, self.params.get(name, shape=shape))


TOKENS = (a([0, 2, 1], [3, 3, 0]), random_like(2, 5))
LONGER = (a([0, 2, 1, 1, 0], [3, 3, 0, 2, 1]), random_like(2, 5))


@case("d2l", TOKENS, LONGER, foreach=1)
class RnnScratch(Weights):
    shapes = {"w_x": (4, 5), "w_h": (5, 5), "b": (5,), "w_q": (5, 4)}

    def forward(self, tokens, state):
        w_x, w_h, b, w_q = (getattr(self, name).data() for name in self.shapes)
        outputs = []
        for step in nd.one_hot(tokens.T, 4):
            state = nd.tanh(nd.dot(step, w_x) + nd.dot(state, w_h) + b)
            outputs.append(nd.dot(state, w_q))
        return nd.concat(*outputs, dim=0), state


@case("d2l", TOKENS, LONGER, foreach=1)
class GruScratch(Weights):
    shapes = {"w_z": (9, 5), "w_r": (9, 5), "w_n": (9, 5), "w_q": (5, 4)}

    def forward(self, tokens, state):
        w_z, w_r, w_n, w_q = (getattr(self, name).data() for name in self.shapes)
        outputs = []
        for step in nd.one_hot(tokens.T, 4):
            both = nd.concat(step, state, dim=1)
            z, r = nd.sigmoid(nd.dot(both, w_z)), nd.sigmoid(nd.dot(both, w_r))
            new = nd.tanh(nd.dot(nd.concat(step, r * state, dim=1), w_n))
            state = z * state + (1 - z) * new
            outputs.append(nd.dot(state, w_q))
        return nd.concat(*outputs, dim=0), (state,)


@case("d2l", TOKENS, LONGER, foreach=1)
class LstmScratch(Weights):
    shapes = {"w": (9, 20), "b": (20,), "w_q": (5, 4)}

    def forward(self, tokens, start):
        w, b, w_q = (getattr(self, name).data() for name in self.shapes)
        hidden, cell = state = (start, start * 0)
        outputs = []
        for step in nd.one_hot(tokens.T, 4):
            hidden, cell = state
            i, f, o, g = nd.split(nd.dot(nd.concat(step, hidden, dim=1), w) + b, num_outputs=4, axis=1)
            cell = nd.sigmoid(f) * cell + nd.sigmoid(i) * nd.tanh(g)
            hidden = nd.sigmoid(o) * nd.tanh(cell)
            state = (hidden, cell)
            outputs.append(nd.dot(hidden, w_q))
        return nd.concat(*outputs, dim=0), state


@case("d2l", (random_like(3, 2, 4),), (random_like(6, 2, 4),), foreach=1)
class StateNoneAndLayers(mx.gluon.HybridBlock):
    """States are None at the start, and every step goes through a list of cells (deep-rnn, rnn-scratch)."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.HybridSequential()
        for _ in range(2):
            self.cells.add(rnn.GRUCell(4, input_size=4))

    def forward(self, steps):
        states, outputs = None, []
        for step in steps:
            if states is None:
                states = [nd.zeros((2, 4)) for _ in range(2)]
            new = []
            for cell, state in zip(self.cells._children.values(), states, strict=True):
                step, (state,) = cell(step, [state])
                new.append(state)
            states = new
            outputs.append(step)
        return nd.stack(*outputs), states


@case("d2l", (random_like(3, 2, 4),), (random_like(6, 2, 4),), foreach=2)
class BidirectionalScratch(mx.gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = rnn.RNNCell(3, input_size=4), rnn.RNNCell(3, input_size=4)

    def forward(self, steps):
        left, right = [], []
        state = [nd.zeros((2, 3))]
        for step in steps:
            out, state = self.left(step, state)
            left.append(out)
        state = [nd.zeros((2, 3))]
        for step in reversed(steps):
            out, state = self.right(step, state)
            right.append(out)
        return nd.concat(nd.stack(*left), nd.flip(nd.stack(*right), axis=0), dim=2)


class StepModel(mx.gluon.HybridBlock):
    """One step of a language model: a token of shape (batch,) and a state to logits and a state."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(6, 4)
        self.cell = rnn.GRUCell(5, input_size=4)
        self.dense = nn.Dense(6, in_units=5)

    def step(self, token, state):
        out, (state,) = self.cell(self.embedding(token), [state])
        return self.dense(out * 3), state


@case("d2l", (random_like(1, 5),), (random_like(1, 5) * -3,), code="HN108")
class PredictWithInt(StepModel):
    """The prediction loop of rnn-scratch: a list of Python numbers, int() of each new token."""

    def forward(self, state):
        outputs = [0]
        for token in (2, 1):
            _, state = self.step(nd.array([outputs[-1]]), state)
            outputs.append(token)
        for _ in range(4):
            logits, state = self.step(nd.array([outputs[-1]]), state)
            outputs.append(int(logits.argmax(axis=1).asscalar()))
        return nd.array(outputs)


@case("d2l", (a(0, 2, 1),), (a(3, 3, 1, 4, 2),), foreach=1)
class PredictWithArrays(StepModel):
    """The same prediction: the token is carried, the new tokens are in a list of their own."""

    def forward(self, prefix):
        state, token = nd.zeros((1, 5)), prefix[0:1]
        for row in prefix[1:]:
            _, state = self.step(token, state)
            token = row.reshape((1,))
        outputs = []
        for _ in range(4):
            logits, state = self.step(token, state)
            token = logits.argmax(axis=1)
            outputs.append(token)
        return nd.concat(prefix, *outputs, dim=0)


@case("d2l", (a(0, 2), random_like(2, 5)), (a(3, 3), random_like(2, 5) * 2))
class PredictSteps(StepModel):
    """predict_step of seq2seq: a range of steps, the input is the last item of the outputs."""

    def forward(self, token, state):
        outputs = [token]
        for _ in range(4):
            logits, state = self.step(outputs[-1], state)
            outputs.append(logits.argmax(axis=1))
        return nd.stack(*outputs[1:], axis=1), state


@case("d2l", (a(0, 2), random_like(2, 5)), (a(3, 3), random_like(2, 5) * 2), foreach=1)
class PredictStepsInOneLoop(StepModel):
    """The same with mx.range: one loop of the graph."""

    def forward(self, token, state):
        outputs = []
        for _ in mx.range(4):
            logits, state = self.step(token, state)
            token = logits.argmax(axis=1)
            outputs.append(token)
        return nd.stack(*outputs, axis=1), state


@case("d2l", (a(0), random_like(1, 5)), (a(3), random_like(1, 5) * 2), (a(4), -random_like(1, 5)), cond=1, while_=1)
class PredictUntilEnd(StepModel):
    """Prediction that stops at the end token: break, then append."""

    def forward(self, token, state):
        outputs = [token]
        for _ in mx.range(7):
            logits, state = self.step(token, state)
            token = logits.argmax(axis=1)
            if token == 2:
                break
            outputs.append(token)
        return nd.concat(*outputs, dim=0)


@case("d2l", (random_like(8),), (random_like(8) * 3,))
class MultistepPredictions(mx.gluon.HybridBlock):
    """sequence.md: predictions are written into an array and read as the next inputs."""

    steps = range(4, 8)

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(1, in_units=3)

    def forward(self, x):
        values = nd.concat(x[:4], nd.zeros((4,)), dim=0)
        for i in self.steps:
            values[i] = self.dense(values[i - 3 : i].reshape((1, 3))).reshape((1,))
        return values


@case("d2l", (random_like(8),), code="HN100")
class MultistepPredictionsInOneLoop(MultistepPredictions):
    steps = mx.range(4, 8)


@case("d2l", (random_like(8),), (random_like(8) * 3,), foreach=1)
class MultistepPredictionsWithTake(mx.gluon.HybridBlock):
    """The same; a window that starts at a number of the graph is read by take."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(1, in_units=3)

    def forward(self, x):
        values = nd.concat(x[:4], nd.zeros((4,)), dim=0)
        window = nd.arange(3)
        for i in mx.range(4, 8):
            values[i] = self.dense(values.take(window + (i - 3)).reshape((1, 3))).reshape((1,))
        return values


def masked_softmax(scores, lengths):
    if lengths is None:
        return nd.softmax(scores)
    shape = scores.shape
    lengths = lengths.repeat(shape[1]) if lengths.ndim == 1 else lengths.reshape((-1,))
    flat_scores = nd.SequenceMask(
        scores.reshape((-1, shape[-1])), lengths, use_sequence_length=True, value=-1e6, axis=1
    )
    return nd.softmax(flat_scores).reshape(shape)


@case("d2l", (random_like(2, 2, 4), a(2, 3)), (random_like(2, 2, 4), a([1, 3], [2, 4])))
def attention_mask(scores, lengths):
    return masked_softmax(scores, lengths), masked_softmax(scores, None)


class Attention(mx.gluon.HybridBlock):
    keeps_weights = False

    def forward(self, query, keys, lengths):
        weights = masked_softmax(nd.batch_dot(query, keys, transpose_b=True) / 2, lengths)
        if self.keeps_weights:
            self.weights = weights
        return nd.batch_dot(weights, keys)


class AttentionDecoder(mx.gluon.HybridBlock):
    """bahdanau-attention: attention at each step; outputs and weights in lists."""

    attention_type = Attention

    def __init__(self) -> None:
        super().__init__()
        self.attention = self.attention_type()
        self.cell = rnn.GRUCell(4, input_size=8)

    def forward(self, steps, encoded, lengths):
        hidden, outputs, contexts = encoded[:, -1], [], []
        for step in steps:
            context = self.attention(hidden.expand_dims(1), encoded, lengths)[:, 0]
            out, (hidden,) = self.cell(nd.concat(context, step, dim=1), [hidden])
            outputs.append(out)
            contexts.append(context)
        return nd.stack(*outputs, axis=1), nd.stack(*contexts), hidden


DECODING = (random_like(3, 2, 4), random_like(2, 5, 4), a(2, 4))
LONG_DECODING = (random_like(6, 2, 4), random_like(2, 3, 4), a(1, 3))


@case("d2l", DECODING, LONG_DECODING, foreach=1)
class BahdanauDecoder(AttentionDecoder):
    pass


class AttentionWithWeights(Attention):
    keeps_weights = True


@case("d2l", DECODING, code="HN106")
class BahdanauDecoderThatKeepsWeights(AttentionDecoder):
    attention_type = AttentionWithWeights


@case("d2l", (random_like(3, 2, 4),), (random_like(5, 2, 4),), code="HN107")
class TransformerCacheFromNone(mx.gluon.HybridBlock):
    """transformer: the decoder concatenates each step to a cache that is None at first."""

    def forward(self, steps):
        cache, outputs = [None], []
        for step in steps:
            step = step.expand_dims(1)
            cache[0] = step if cache[0] is None else nd.concat(cache[0], step, dim=1)
            weights = nd.softmax(nd.batch_dot(step, cache[0], transpose_b=True))
            outputs.append(nd.batch_dot(weights, cache[0])[:, 0])
        return nd.stack(*outputs)


@case("d2l", (random_like(3, 2, 4),), (random_like(5, 2, 4),), foreach=1)
class TransformerCacheInABuffer(mx.gluon.HybridBlock):
    """The same in a buffer of a fixed capacity."""

    def forward(self, steps):
        cache, length, outputs = nd.zeros((8, 2, 4)), 0, []
        for step in steps:
            cache[length] = step
            length += 1
            keys = cache.swapaxes(0, 1)
            scores = nd.batch_dot(step.expand_dims(1), keys, transpose_b=True)
            weights = nd.softmax(
                nd.where(nd.arange(8).reshape((1, 1, 8)).broadcast_like(scores) < length, scores, scores * 0 - 1e6)
            )
            outputs.append(nd.batch_dot(weights, keys)[:, 0])
        return nd.stack(*outputs)


# ------------------------------------------------------------------------------------------------------------- GluonNLP
class Beam(StepModel):
    """One update of a beam search with 3 beams and 6 words; the end token is 2."""

    def update(self, samples, scores, alive, token, state, end, write):
        logits, state = self.step(token, state)
        logits = nd.log_softmax(logits) + end * nd.one_hot(nd.array([2]), 6)  # end: how probable the end token is
        candidates = scores.reshape((3, 1)) + logits * alive.reshape((3, 1))
        finished = (1 - alive).reshape((3, 1)) * nd.array([[0, -1e9, -1e9, -1e9, -1e9, -1e9]])
        scores, index = nd.topk((candidates + finished).reshape((1, -1)), k=3, ret_typ="both")
        index = index.reshape((3,))
        beam, token = nd.floor(index / 6), index % 6
        samples = write(samples.take(beam), token)
        alive = alive.take(beam) * (token != 2)
        return samples, scores.reshape((3,)), alive, token, state.take(beam)


BEAM_INPUTS = ((a(0), random_like(1, 5), a(0)), (a(4), random_like(1, 5) * 3, a(50)), (a(5), -random_like(1, 5), a(2)))


def start_of_beams(token, state):
    return nd.array([0, -1e9, -1e9]), nd.ones((3,)), token.repeat(3), state.repeat(3, axis=0)


@case("gluonnlp", *BEAM_INPUTS, cond=10)
class BeamSearchThatGrows(Beam):
    """BeamSearchSampler: samples grow by concat, an early return leaves the loop."""

    def forward(self, token, state, end):
        scores, alive, token, state = start_of_beams(token, state)
        samples = token.reshape((3, 1))
        for _ in range(5):
            samples, scores, alive, token, state = self.update(
                samples, scores, alive, token, state, end, lambda old, new: nd.concat(old, new.reshape((3, 1)), dim=1)
            )
            if alive.sum() == 0:
                return samples, scores
        return nd.concat(samples, nd.full((3, 1), 2), dim=1), scores


@case("gluonnlp", *BEAM_INPUTS, cond=1, while_=1)
class BeamSearchInABuffer(Beam):
    """The same with samples of a fixed capacity and their length."""

    def forward(self, token, state, end):
        scores, alive, token, state = start_of_beams(token, state)
        samples, length = nd.concat(token.reshape((3, 1)), nd.full((3, 6), -1), dim=1), 1
        for _ in mx.range(5):

            def write(old, new, at=length):
                old = old.copy()
                old[:, at] = new
                return old

            samples, scores, alive, token, state = self.update(samples, scores, alive, token, state, end, write)
            length += 1
            if alive.sum() == 0:
                break
        return samples, scores, length


@case("gluonnlp", *BEAM_INPUTS, cond=1, while_=1)
class BeamSearchWhile(Beam):
    """HybridBeamSearchSampler without while_loop: the condition is on the beams that are alive, samples grow."""

    def forward(self, token, state, end):
        scores, alive, token, state = start_of_beams(token, state)
        samples, i = token.reshape((3, 1)), 0
        mx.autograph.shape_invariants(samples=(3, None))
        while alive.sum() > 0 and i < 5:
            samples, scores, alive, token, state = self.update(
                samples, scores, alive, token, state, end, lambda old, new: nd.concat(old, new.reshape((3, 1)), dim=1)
            )
            i += 1
        return samples, scores


@case(
    "gluonnlp", (a(0), random_like(1, 5)), (a(4), random_like(1, 5) * 3), (a(5), -random_like(1, 5)), cond=1, while_=1
)
class SequenceSamplerLoop(StepModel):
    """SequenceSampler: lengths and scores of sequences that are alive; argmax in place of a draw."""

    def forward(self, token, state):
        token, state = token.repeat(2), nd.concat(state, -state, dim=0)
        alive, length, scores = nd.ones((2,)), nd.ones((2,)), nd.zeros((2,))
        samples = []
        for _ in mx.range(6):
            logits, state = self.step(token, state)
            token = nd.where(alive, logits.argmax(axis=1), nd.full((2,), -1))
            scores = scores + nd.where(alive, nd.log_softmax(logits).max(axis=1), nd.zeros((2,)))
            length = length + alive
            samples.append(token)
            alive = alive * (token != 2)
            token = nd.relu(token)
            if alive.sum() == 0:
                break
        return nd.stack(*samples, axis=1), scores, length


class AttentionCell(mx.gluon.HybridBlock):
    """An attention cell whose mask is optional; the weights of heads in a Python loop."""

    def hybrid_forward(self, F, query, key, mask=None):
        heads = []
        for k in range(2):
            scores = F.batch_dot(query * (k + 1), key, transpose_b=True)
            if mask is not None:
                scores = F.where(mask, scores, F.ones_like(scores) * -1e18)
            weights = F.softmax(scores, axis=-1)
            heads.append(F.batch_dot(weights if mask is None else weights * mask, key))
        return F.concat(*heads, dim=-1)


@case("gluonnlp", (random_like(2, 3, 4), random_like(2, 5, 4), a(*(random_like(2, 3, 5) > 0))))
class AttentionCells(mx.gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.cell = AttentionCell()

    def forward(self, query, key, mask):
        return self.cell(query, key, mask), self.cell(query, key)


@case("gluonnlp", (random_like(2, 3, 4),), (random_like(2, 5, 4),), foreach=1)
class DecodeSequence(mx.gluon.HybridBlock):
    """decode_seq of the GNMT decoder: layers in a step, residual connections, lists of outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = [rnn.LSTMCell(4, input_size=8 if k == 0 else 4) for k in range(3)]
        for k, cell in enumerate(self.cells):
            setattr(self, f"cell{k}", cell)

    def one_step(self, step, states):
        states, attended = states
        new = []
        out, state = self.cells[0](nd.concat(step, attended, dim=1), states[0])
        new.append(state)
        for k in range(1, len(self.cells)):
            inputs = out
            out, state = self.cells[k](inputs, states[k])
            new.append(state)
            if k > 1:
                out = out + inputs
        return out, [new, nd.tanh(out)]

    def forward(self, inputs):
        states = [[[nd.zeros((2, 4)), nd.zeros((2, 4))] for _ in self.cells], nd.zeros((2, 4))]
        outputs = []
        for step in inputs.swapaxes(0, 1):
            out, states = self.one_step(step, states)
            outputs.append(out)
        return nd.stack(*outputs, axis=1), states[1]


@case("gluonnlp", (random_like(3, 2, 4), a(2, 3)), (random_like(5, 2, 4), a(5, 1)), foreach=4)
class BidirectionalLanguageModel(mx.gluon.HybridBlock):
    """BiLMEncoder: per layer a loop over the steps in each direction, valid lengths choose the states."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("left0", "left1", "right0", "right1"):
            setattr(self, name, rnn.RNNCell(4, input_size=4))

    def one_way(self, cell, steps, lengths):
        state, outputs, position = nd.zeros((2, 4)), [], 0
        for step in steps:
            out, (new,) = cell(step, [state])
            alive = (lengths > position).reshape((2, 1)).broadcast_like(new)
            state = nd.where(alive, new, state)
            outputs.append(out * alive)
            position += 1
        return nd.stack(*outputs)

    def forward(self, steps, lengths):
        left, right = steps, nd.SequenceReverse(steps, lengths, use_sequence_length=True)
        for k in range(2):
            left = self.one_way(getattr(self, f"left{k}"), left, lengths) + (left if k > 0 else 0)
            right = self.one_way(getattr(self, f"right{k}"), right, lengths) + (right if k > 0 else 0)
        return nd.concat(left, nd.SequenceReverse(right, lengths, use_sequence_length=True), dim=2)


# -------------------------------------------------------------------------------------------------------------- GluonTS
def lagged(values, lags):
    parts = []
    for lag in lags:
        parts.append(nd.slice_axis(values, axis=1, begin=-lag - 1, end=-lag if lag > 0 else None))
    return nd.concat(*parts, dim=1)


class Forecaster(mx.gluon.HybridBlock):
    """DeepAR's parts: a cell, and a distribution chosen by name; its mean takes the place of a draw."""

    kind = "gaussian"

    def __init__(self) -> None:
        super().__init__()
        self.cell = rnn.LSTMCell(4, input_size=3)
        self.dense = nn.Dense(2, in_units=4)

    def sample(self, out, scale):
        mean, spread = nd.split(self.dense(out), num_outputs=2, axis=1)
        if self.kind == "gaussian":
            return mean * scale
        elif self.kind == "student":
            return mean * scale * nd.Activation(spread, act_type="softrelu")
        raise ValueError(self.kind)


@case("gluonts", (random_like(2, 6), random_like(2, 4)), (random_like(2, 6) * 3, random_like(2, 4)))
class SamplingDecoder(Forecaster):
    """sampling_decoder: a range of steps, the history grows by concat."""

    def forward(self, past, features):
        scale = nd.abs(past).mean(axis=1, keepdims=True)
        states, future = [nd.zeros((2, 4)), nd.zeros((2, 4))], []
        for k in range(4):
            inputs = nd.concat(lagged(past, [0, 2]) / scale, features.slice_axis(axis=1, begin=k, end=k + 1), dim=1)
            out, states = self.cell(inputs, states)
            new = self.sample(out, scale)
            past = nd.concat(past, new, dim=1)
            future.append(new)
        return nd.concat(*future, dim=1)


@case("gluonts", (random_like(2, 6), random_like(2, 4)), (random_like(2, 6) * 3, random_like(2, 9)), foreach=1)
class SamplingDecoderInOneLoop(Forecaster):
    """The same as one loop: a window of the history of fixed length, the loop is over the features."""

    kind = "student"

    def forward(self, past, features):
        scale = nd.abs(past).mean(axis=1, keepdims=True)
        states, future = [nd.zeros((2, 4)), nd.zeros((2, 4))], []
        for feature in features.T:
            inputs = nd.concat(lagged(past, [0, 2]) / scale, feature.reshape((2, 1)), dim=1)
            out, states = self.cell(inputs, states)
            new = self.sample(out, scale)
            past = nd.concat(past[:, 1:], new, dim=1)
            future.append(new)
        return nd.concat(*future, dim=1)


@case("gluonts", (random_like(2, 5), a([1, 0, 1, 0, 1], [1, 1, 0, 0, 1]), a([1, 0, 0, 0, 0], [0, 0, 0, 0, 0])))
class ImputationUnroll(Forecaster):
    """imputation_rnn_unroll: unobserved values are replaced before later steps read them; padding resets states."""

    def switch(self, default, *cases):
        for chosen, value in reversed(cases):
            default = nd.where(chosen, value, default)
        return default

    def forward(self, target, observed, padded):
        begin = [nd.zeros((2, 4)), nd.zeros((2, 4))]
        states, values, outputs, steps = begin, target, [], 5
        for i in range(steps):
            pad = padded.slice_axis(axis=1, begin=i, end=i + 1)
            states = [nd.where(pad.repeat(4, axis=1), b, s) for b, s in zip(begin, states, strict=True)]
            column = values.slice_axis(axis=1, begin=i, end=i + 1)
            out, states = self.cell(nd.concat(column, lagged(values, [1, 2]), dim=1), states)
            sample = self.sample(out, 1)
            seen = observed.slice_axis(axis=1, begin=i, end=i + 1)
            new = self.switch(sample, (seen, column), (pad, nd.zeros_like(sample)))
            before, after = values.slice_axis(axis=1, begin=0, end=i), values.slice_axis(axis=1, begin=i + 1, end=None)
            if i == 0:
                values = nd.concat(new, after, dim=1)
            elif i < steps - 1:
                values = nd.concat(before, new, after, dim=1)
            else:
                values = nd.concat(before, new, dim=1)
            outputs.append(out)
        return nd.stack(*outputs, axis=1), values


@case("gluonts", (random_like(5, 2, 1), a(1, 0, 1, 1, 0)), (random_like(3, 2, 1), a(0, 1, 0)), cond=1, foreach=1)
def kalman_filter(targets, observed):
    """The filter of LDS over the steps themselves; a missing observation keeps the prior."""
    mean, cov, log_probs = nd.zeros((2, 1)), nd.ones((2, 1)), []
    for target, seen in zip(targets, observed, strict=True):
        residual, total = target - mean, cov + 0.5
        gain = cov / total
        log_probs.append(-0.5 * (nd.log(total) + residual**2 / total))
        filtered = (mean + gain * residual, (1 - gain) * cov)
        mean, cov = filtered if seen > 0 else (mean, cov)
        mean, cov = mean * 0.9, cov * 0.81 + 0.1
    return nd.concat(*log_probs, dim=1), mean, cov


@case("gluonts", (np.eye(3, dtype="float32"),))
def jitter_with_exceptions(matrix):
    """jitter_cholesky: the diagonal grows until a factorization raises no error."""
    jitter, tries = nd.zeros((1,)), 0
    while tries <= 4:
        try:
            factor = nd.linalg.potrf(matrix + nd.eye(3) * jitter)
            assert nd.abs(factor.sum()) < 1e6
            return factor
        except Exception:
            jitter = jitter * 10 + 1e-3
        finally:
            tries += 1
    return matrix


@case("gluonts", (np.eye(3, dtype="float32"),), (np.eye(3, dtype="float32") - 1.004 / 3,), cond=1, while_=1)
def jitter_with_a_condition(matrix):
    """The same without exceptions: the smallest eigenvalue decides."""
    jitter, tries = nd.zeros((1,)), 0
    while tries <= 6 and nd.linalg.syevd(matrix + nd.eye(3) * jitter)[1].min() <= 1e-4:
        jitter = jitter * 10 + 1e-3
        tries += 1
    return nd.linalg.potrf(matrix + nd.eye(3) * jitter)


@case("gluonts", (a(0.5, 0.2), a(1, 1)), (a(1.5, 0.1), a(4, 2)), (a(1.5, 0.1), a(0, 0)), cond=2, while_=1)
def point_process(rates, end):
    """DeepTPP's loop: events until all times are past the end; the first step differs by a flag."""
    times, state, intervals = nd.zeros((2,)), rates, []
    first = True
    while nd.sum(times < end) > 0:
        if first:
            step = state + 0.25
            first = False
        else:
            step = nd.sqrt(state) * 0.5
        intervals.append(step)
        times = times + step
        state = nd.tanh(state + step)
    stacked = nd.stack(*intervals, axis=1) if end.sum() > 0 else nd.zeros((2, 1))
    return times, stacked.sum(axis=1)


@case("gluonts", (random_like(2, 3),), (random_like(2, 3) * 2,), cond=1)
class InvertibleResidual(mx.gluon.HybridBlock):
    """iresnet: a fixed number of iterations, results kept in attributes for the inverse."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(3, in_units=3, activation="tanh")
        self.cached = None

    def forward(self, x):
        y = x
        for _ in range(6):
            y = x - 0.2 * self.dense(y)
        self.cached = (x, y)
        return y if x.sum() > 0 else -y


@case("gluonts", (random_like(2, 3),), (random_like(2, 3) * 2,))
class DecoderCacheInAttributes(mx.gluon.HybridBlock):
    """The transformer decoder keeps its cache in an attribute between the steps of a range."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = None

    def step(self, x):
        self.cache = x.expand_dims(1) if self.cache is None else nd.concat(self.cache, x.expand_dims(1), dim=1)
        return nd.tanh(self.cache.sum(axis=1))

    def forward(self, x):
        outputs = []
        for _ in range(4):
            x = self.step(x)
            outputs.append(x)
        self.cache = None
        return nd.stack(*outputs, axis=1)


@case("gluonts", (random_like(2, 3),), code="HN106")
class DecoderCacheInAttributesInOneLoop(DecoderCacheInAttributes):
    def forward(self, x):
        outputs = []
        for _ in mx.range(4):
            x = self.step(x)
            outputs.append(x)
        self.cache = None
        return nd.stack(*outputs, axis=1)


# ---------------------------------------------------------------------------------------------------------------- tests
@pytest.mark.parametrize("case", [case for case in CASES if not case.code], ids=str)
def test_equal_to_imperative_mode(case: Case) -> None:
    check_equal(case)


def gradients(block: mx.gluon.HybridBlock, case: Case, number: int) -> list[np.ndarray]:
    """Returns the gradients of the sum of squares of all results, of inputs and parameters."""
    inputs = case.arrays(number)
    for array in inputs:
        array.attach_grad()
    with mx.autograd.record():
        loss = sum((array * 0).sum() for array in inputs)  # so that each input has a gradient
        for output in leaves(block(*inputs)):
            if isinstance(output, nd.NDArray) and output.dtype == np.float32:
                loss = loss + (output * output).sum()
    loss.backward()
    parameters = block.collect_params().values()
    return [array.grad.asnumpy() for array in inputs] + [parameter.grad().asnumpy() for parameter in parameters]


def leaves(outputs: Any) -> list[Any]:
    """Returns the arrays and numbers of a result, in order."""
    return [leaf for part in outputs for leaf in leaves(part)] if isinstance(outputs, (list, tuple)) else [outputs]


MODELS = [case for case in CASES if case.group in ("d2l", "gluonnlp", "gluonts") and not case.code]


@pytest.mark.parametrize("case", MODELS, ids=str)
def test_gradients_of_models(case: Case) -> None:
    plain, block = case.block(), case.block()
    block.hybridize(strict=True)
    for number in range(len(case.inputs)):
        expected, found = gradients(plain, case, number), gradients(block, case, number)
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", [case for case in CASES if case.code], ids=str)
def test_refused_by_code(case: Case) -> None:
    block = case.block()
    block.hybridize(strict=True)
    with pytest.raises(TraceError) as refusal:
        flat(block(*case.arrays(0)))
    assert refusal.value.code == case.code
    assert re.search(r"\n +\d+ \| .*\n +\| *\^", str(refusal.value))  # the line of the program, and a caret


def check_equal(case: Case) -> None:
    """Checks values of all inputs and the nodes of the graph, in both orders of the inputs."""
    plain, block = case.block(), case.block()
    block.hybridize(strict=True)
    numbers = range(len(case.inputs))
    expected = [flat(plain(*case.arrays(number))) for number in numbers]
    for number in (*numbers, *reversed(numbers)):
        found = flat(block(*case.arrays(number)))
        assert len(found) == len(expected[number])
        for got, want in zip(found, expected[number], strict=True):
            if want.shape:
                assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-5, atol=1e-6)
        assert tuple(count_nodes(graph_of(block))[kind] for kind in KINDS) == case.nodes


def test_tables_have_the_numbers_of_the_cases() -> None:
    """A row of a table is: group, number that is converted, number that is refused and its codes, and text."""
    page = Path(__file__).parents[3] / "docs" / "python-control-flow-coverage.md"
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+)(?:: ([^|]*))? \|", page.read_text(), re.MULTILINE)
    found = {group: (int(count), int(refused), codes) for group, count, refused, codes in rows}
    for group in dict.fromkeys(case.group for case in CASES):
        cases = [case for case in CASES if case.group == group]
        codes = Counter(case.code for case in cases if case.code)
        text = ", ".join(f"{code} ({codes[code]})" if codes[code] > 1 else code for code in sorted(codes))
        assert found[group] == (len(cases) - codes.total(), codes.total(), text), group


def test_errors_of_operators_are_not_caught_by_the_graph() -> None:
    """An except of plain Python sees the errors of the trace; a matrix that cannot be factored is an error of a run."""
    block = Function(jitter_with_exceptions)
    block.hybridize(strict=True)
    block(nd.eye(3)).wait_to_read()
    with pytest.raises(ValueError, match="positive definite"):
        block(nd.eye(3) - 1.004 / 3).asnumpy()


def test_check_fails_at_run_time() -> None:
    def checked(x):
        assert x > 0, "must be positive"
        return x * 2

    block = Function(checked)
    block.hybridize(strict=True)
    assert block(nd.array([2])).asscalar() == 4
    with pytest.raises(ValueError, match="must be positive"):
        block(nd.array([-2])).asnumpy()


def test_print_runs_at_each_call(capfd: pytest.CaptureFixture[str]) -> None:
    def shown(x):
        if x > 0:
            print("value", x, [1, 2])
        return x

    block = Function(shown)
    block.hybridize(strict=True)
    for value in (2, -1, 3):
        block(nd.array([value])).wait_to_read()
    assert capfd.readouterr().out.count("value") == 2


def test_names_and_texts_of_functions_are_kept() -> None:
    assert converted_before.__name__ == "converted_before"
    assert "Returns the absolute value" in mx.autograph.to_code(absolute)
