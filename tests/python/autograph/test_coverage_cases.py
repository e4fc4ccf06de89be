"""Cases that TensorFlow's AutoGraph tests, and loops of published models: equal to imperative mode, or refused by code.

The programs are written for this file; docs/python-control-flow-coverage.md has the tables of what they show.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import nd
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
@case("while", a(5), a(0), a(2))
def while_sum(n):
    i, total = 0, 0
    while i < n:
        total += i
        i += 1
    return total, i, n


@case("while", a(5), a(0))
def while_one_variable(n):
    while n > 0:
        n = n - 1
    return n


@case("while", a(5), a(0), a(3))
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


@case("while", a(5), a(0))
def while_dict_with_key_in_a_variable(n):
    state, key = {"a": n}, "a"
    while n > 0:
        state[key] = state[key] + 1
        n = n - 1
    return state[key], n


@case("while", a(5), a(0))
def while_dict_with_literal_key(n):
    state = {"a": n * 2, "b": n}
    while n > 0:
        state["a"] += 1
        n = n - 1
    return state["a"], state["b"], n


@case("while", a(3), a(0))
def while_attribute_of_an_object(n):
    record = Record(n * 0 + 3)
    while n > 0:
        record.x = record.x + 1
        n = n - 1
    return record.x


@case("while", a(3), a(0))
def while_attribute_deep_in_objects(n):
    record = Record(Record({"z": Record(n)}))
    while n > 0:
        if n < 2:
            record.x.x["z"].x = record.x.x["z"].x + 1
        n = n - 1
    return n, record.x.x["z"].x


@case("while", a(0), a(3))
def while_attribute_first_set_in_the_loop(n):
    record = Record()
    while n < 5:
        if n == 0:
            record.y = n + 10
        else:
            record.y = n + 1
        n = n + 1
    return record.y


@case("while", a(0), a(3))
def while_key_first_set_in_the_loop(n):
    state = {}
    while n < 5:
        state["key"] = n + 1
        n = n + 1
    return state["key"]


@case("while", a(0), a(3))
def while_key_set_before_the_loop(n):
    state = {"key": n}
    while n < 5:
        state["key"] = n + 1
        n = n + 1
    return state["key"]


@case("while", a(3), a(0))
def while_object_of_one_iteration(n):
    while n > 0:
        record = Record(n)
        record.x = record.x - 1
        n = record.x
    return n


@case("while", a(3), a(0))
def while_dict_of_one_iteration(n):
    while n > 0:
        state = {"x": n}
        state["x"] = state["x"] - 1
        n = state["x"]
    return n


class Box(NamedTuple):
    items: list[Any]


@case("while", a(3), a(0))
def while_namedtuple_with_a_list(n):
    box = Box([n * 0])
    while n > 0:
        box = Box([n * 0 + 3])
        box.items[0] = box.items[0] + 1
        n = n - 1
    return box.items[0]


@case("while", a(3), a(0))
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


@case("while", a(3), a(0))
def while_number_of_another_class(n):
    total = Plus(0)
    while n > 0:
        n = n - 1
        total = total + n
    return total.value


@case("while", a(1, 2))
def while_number_of_another_class_in_plain_python(x):
    total, n = Plus(0), 3
    while n > 0:
        n -= 1
        total = total + n
    return x * total.value if x.sum() > 0 else x


@case("while", a(1, 2), a(-7, 2))
def while_over_python_numbers(x):
    i = 0
    while i < 3:
        x = x * 2 + i
        i += 1
    return x if x.sum() > 0 else -x


@case("while", a(4), a(9))
def while_condition_with_effects(n):
    steps = nd.zeros((1,))

    def bump():
        steps[:] = steps + 2
        return steps

    i = 0
    while bump() < n:
        i += 1
    return i, steps


@case("while", a(1.5, 0), a(20, 1))
def while_else(x):
    while x.sum() > 2:
        x = x / 2
    else:
        x = x + 1
    return x


@case("while", (a(8), a(1)), (a(8), a(0)), (a(1), a(1)))
def while_else_and_break(x, stop):
    while x > 2:
        x = x / 2
        if stop:
            break
    else:
        x = x + 1
    return x


# ------------------------------------------------------------------------------------------------------------------- if
@case("if", a(1), a(-1))
def if_other_names_on_each_path(n):
    first, second = nd.zeros((1,)), nd.zeros((1,))
    if n > 0:
        first = -n
    else:
        second = 2 * n
    return first, second


@case("if", a(1), a(-1))
def if_number_or_array(n):
    first = 0
    if n > 0:
        first = -n
    return first


@case("if", a(1), a(-1))
def if_one_name(n):
    if n > 0:
        n = -n
    return n * 3


@case("if", a(2), a(-3))
def if_constant_on_one_path(n):
    if n > 0:
        n = 3
    return n


@case("if", a(-3), a(2))
def if_raise(n):
    if n > 0:
        raise ValueError("positive")
    return n


@case("if", a(1), a(-1))
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


@case("if", a(0), a(1))
def if_name_made_on_both_paths(n):
    if n == 0:
        result = n - 1
    else:
        result = n + 1
    return result


@case("if", a(0, 1, 2, 3, 4), a(0, -1))
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


@case("if", a(0, 1, 2), a(0, -1))
def if_name_of_an_earlier_iteration(items):
    total = nd.array([10])
    for i in items:
        if i == 0:
            result = i - 1
        if i > 0:
            if result < 0:
                total = total + 1
    return total


@case("if", a(0, 1, 2), a(0, -1))
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


@case("if", a(1), a(-1))
def if_global(n):
    global COUNTER
    COUNTER = 3
    if n > 0:
        COUNTER = 4
    return n * COUNTER


@case("if", a(1), a(-1))
def if_nonlocal(n):
    count = n * 3

    def inner():
        nonlocal count
        if n > 0:
            count = n - 5

    inner()
    return count


@case("if", a(0), a(1))
def if_after_except(n):
    try:
        raise ValueError
    except ValueError:
        x = n * 0 + 1
    if n == 0:
        x = n - 1
    return x


@case("if", a(1), a(-1))
def if_attributes_of_an_object(n):
    record = Record(n)
    z = n * 0 + 5
    if n > 0:
        record.x = n * 7
        z = n * 13
    return record.x, z


# ------------------------------------------------------------------------------------------------------------------ for
@case("for", a(1, 3), np.zeros((0,), "float32"), a(2))
def for_two_sums(items):
    first, second = nd.zeros((1,)), nd.zeros((1,))
    for item in items:
        first = first + item
        second = second + item * item
    return first, second


@case("for", a(1, 3), a(4, 5, 6))
def for_start_from_a_number(items):
    total = 0
    for item in items:
        total += item
    return total


@case("for", a(1, 3), a(4, 5, 6))
def for_iterable_is_computed_once(items):
    calls = []

    def once(x):
        calls.append(1)
        return x * 2

    total = nd.zeros((1,))
    for item in once(items):
        total = total + item
    return total * len(calls)


@case("for", a(0, 1, 2))
def for_attribute_first_set_in_the_loop(items):
    record = Record()
    for i in items:
        if i == 0:
            record.y = i
        else:
            record.y = i + 1
    return record.y


@case("for", a(3, 3), a(1, 2, 3))
def for_tuples(items):
    total = nd.zeros((1,))
    for i, item in enumerate(items):
        total = total + item * i
    return total


@case("for", a(1, 2, 3), a(1))
def for_with_comprehension_in_the_body(items):
    total = nd.zeros((4,))
    for item in items:
        total = total + nd.array([k * k for k in range(4)]) * item
    return total


@case("for", a(1, 2), a(4))
def for_else(items):
    total = nd.zeros((1,))
    for item in items:
        total = total + item
    else:
        total = total + 100
    return total


@case("for", (a(1, 2, 3), a(2)), (a(1, 2, 3), a(7)))
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
@case("break", a(0), a(1), a(4), a(7))
def break_in_while(x):
    total = nd.zeros((1,))
    while x > 0:
        x = x - 1
        if x % 2 == 0:
            break
        total = total + x
    return total, x


@case("break", a(5, 4), a(5, 3, 9))
def break_in_for(items):
    total = nd.zeros((1,))
    for x in items:
        if x % 2 == 0:
            break
        total = total + x
    return total


@case("break", a(11), a(3), a(0))
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


@case("break", a(5), a(3), a(2), a(0))
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


@case("break", a(3), a(2), a(0))
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


@case("break", a(1), a(0))
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


@case("break", a(5, 4, 1), a(5, 3, 9))
def break_then_append(items):
    kept = []
    for x in items:
        if x % 2 == 0:
            break
        kept.append(x)
    return nd.stack(*kept)


@case("break", a(5, 4, 1), a(5, 3, 9))
def append_then_break(items):
    kept = []
    for x in items:
        kept.append(x)
        if x % 2 == 0:
            break
    return nd.stack(*kept)


# ------------------------------------------------------------------------------------------------------------- continue
@case("continue", a(0), a(1), a(4))
def continue_in_while(x):
    total = nd.zeros((1,))
    while x > 0:
        x = x - 1
        if x % 2 == 0:
            continue
        total = total + x
    return total


@case("continue", a(0), a(3), a(4))
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


@case("continue", a(1), a(2, 5), a(1, 2, 3))
def continue_in_for(items):
    total = nd.zeros((1,))
    for x in items:
        if x % 2 == 0:
            continue
        total = total + x
    return total


@case("continue", a(4), a(0))
def continue_in_with(x):
    total = nd.zeros((1,))
    while x > 0:
        x = x - 1
        with mx.autograd.pause():
            if x % 2 == 0:
                continue
        total = total + x
    return total


@case("continue", a(4), a(0))
def continue_in_with_of_another_library(x):
    total = nd.zeros((1,))
    while x > 0:
        x = x - 1
        with contextlib.suppress(KeyError):
            if x % 2 == 0:
                continue
        total = total + x
    return total


@case("continue", a(1), a(1, 2, 3))
def continue_in_except(items):
    total = nd.zeros((1,))
    for x in items:
        try:
            raise ValueError
        except ValueError:
            continue
        total = total + x
    return total


@case("continue", a(1, 2, 3), a(4, 5))
def continue_then_append(items):
    kept = []
    for x in items:
        if x % 2 == 0:
            continue
        kept.append(x)
    return nd.stack(*kept)


@case("continue", a(1, 2, 3), a(4, 5))
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
@case("return", a(2), a(-2))
def return_before_dead_code(x):
    if x > 0:
        return x * x
        return x + 1
    return x
    return x + 2


@case("return", a(2), a(-2))
def return_on_both_paths(x):
    if x > 0:
        return x
    else:
        return x * x


@case("return", a(2), a(-2))
def return_on_one_path_only(x):
    if x > 0:
        return x


@case("return", a(2), a(-2))
def return_then_default(x):
    if x > 0:
        return x
    return x * x


@case("return", a(2), a(-2))
def return_from_else(x):
    if x < 0:
        x = x * x
    else:
        return x
    return x + 1


@case("return", a(2), a(-2), a(5))
def return_nested(x):
    if x > 0:
        if x < 5:
            return x
        else:
            return x * x
    else:
        return x * x * x


@case("return", a(2), a(-2))
def return_in_with_in_if(x):
    if x > 0:
        with mx.autograd.pause():
            return x * x
    else:
        return x


@case("return", a(2), a(-2))
def return_in_if_in_with(x):
    with mx.name.Prefix("scope_"):
        if x > 0:
            return x * x
        else:
            return x


@case("return", a(2), a(-2))
def return_in_nested_function(x):
    def inner(y):
        if y > 0:
            return y * y
        else:
            return y

    return inner(x)


@case("return", a(2), a(-2))
def return_of_a_function_made_in_a_branch(x):
    if x > 0:

        def inner(y):
            return y * 3

        x = inner(x)
    return x


@case("return", a(2, 1), a(-1, 7))
def return_in_for(items):
    for x in items:
        if x > 1:
            return x
    return items[0] * 0 - 1


@case("return", a(2, 1))
def return_in_for_only(items):
    for x in items:
        if x > 1:
            return x


@case("return", a(0), a(2), a(4))
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


@case("return", a(1, 4))
def return_in_except(items):
    total = nd.zeros((1,))
    for x in items:
        try:
            total = total + x
        except ValueError:
            return total
    return total


# ---------------------------------------------------------------------------------------------------------- expressions
@case("expressions", a(0), a(3))
def conditional_expression(x):
    return 1 if x else 0


@case("expressions", a(-2), a(0), a(2))
def conditional_expression_nested(x):
    return x * x if x > 0 else x + 5 if x else x + 1


@case("expressions", (a(1), a(1)), (a(1), a(2)))
def equality(x, y):
    return x == y


@case("expressions", (a(1), a(0), a(0)), (a(1), a(0), a(1)), (a(0), a(0), a(0)))
def bool_operators(x, y, z):
    return (x or y) and (x or y or z) and not z


@case("expressions", (a(1), a(2), a(2), a(1)), (a(1), a(2), a(2), a(3)), (a(3), a(2), a(2), a(1)))
def chained_comparison(x, y, z, w):
    return x < y == z > w


@case("expressions", a(1), a(-1))
def bool_operators_of_python_and_arrays(x):
    flag = "a" in ("a", "b")
    if flag and x > 0:
        x = x * 2
    return x


@case("expressions", a(4, 1), a(5, 2))
def membership(x):
    return x * 2 if 4 in x else x


# ---------------------------------------------------------------------------------------------------------------- calls
def absolute(x):
    """Returns the absolute value of one number."""
    if x < 0:
        return -x
    return x


@case("calls", a(-4), a(2))
def call_in_an_argument(x):
    return absolute(absolute(x) - 3) + 3


@case("calls", a(-4), a(2))
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


@case("calls", a(-4), a(2), a(8))
def call_methods(x):
    worker = Worker(x)
    return worker.method() + Worker.method(worker) + types.MethodType(Worker.other, worker)(x)


@case("calls", a(-4), a(2))
def call_static_and_class_methods(x):
    return Worker.static(x), Worker.made(x).x


@case("calls", a(-4), a(2))
def call_property(x):
    return Worker(x).positive


@case("calls", a(-4), a(2))
def call_object(x):
    return Worker(x)(x * 0 + 1)


@case("calls", a(-4), a(2))
def call_method_kept_in_an_attribute(x):
    return Record(Worker(x).method).x()


@case("calls", a(-4), a(2))
def call_partial(x):
    def three(first, second, third):
        if first < 0:
            return -first, -second, -third
        return first, second, third

    return functools.partial(functools.partial(three, x), third=x + 3)(x + 1)


@case("calls", a(-4), a(2))
def call_lambda(x):
    flip = lambda value: -value if value < 0 else value  # noqa: E731
    return flip(x) + (lambda value: value if value > 1 else value * 7)(x)


@mx.autograph.convert
def converted_before(x):
    return x if x > 0 else -x


@case("calls", a(-4), a(2))
def call_of_a_converted_function(x):
    return converted_before(x)


@mx.autograph.skip
def skipped(x):
    return x if x > 0 else -x


@case("calls", a(-4), a(2))
def call_of_a_skipped_function_that_decides(x):
    return skipped(x)


@mx.autograph.skip
def skipped_product(x):
    return x * 4


@case("calls", a(-4), a(2))
def call_of_a_skipped_function(x):
    return skipped_product(x) if x > 0 else x


@case("calls", a(-4), a(2))
def call_of_numpy(x):
    sizes = np.broadcast(np.zeros((2, 1)), np.zeros((1, 3))).shape
    return x * sizes[1] if x > 0 else x


@case("calls", a(3, 4), a(-3, 1))
def call_of_a_library_that_decides(x):
    return functools.reduce(lambda p, q: p if p > q else q, [x[0], x[1]])


@case("calls", a(-4), a(2))
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


@case("calls", a(-4), a(2), a(8))
def call_of_a_decorated_function(x):
    return with_decorator(x)


class Base(mx.gluon.HybridBlock):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x


@case("calls", a(-4), a(2))
class CallOfSuper(Base):
    def forward(self, x):
        y = super().forward(x)
        return y + 1 if y.sum() > 3 else y


@case("calls", a(3), a(2))
def call_recursion_on_an_array(x):
    def down(value):
        return value if value < 1 else down(value - 1)

    return down(x)


@case("calls", a(3), a(-2))
def call_recursion_on_a_number(x):
    def power(value, k):
        return value if k == 0 else power(absolute(value) * value, k - 1)

    return power(x, 2)


# --------------------------------------------------------------------------------------------------------------- lists
@case("lists", a(1, 2, 3), a(5))
def list_append_and_stack(items):
    outs = [items[0] * 10]
    outs.append(items[0])
    for x in items:
        outs.append(x * 2)
    return nd.stack(*outs)


@case("lists", a(1, 2, 3), a(5, 1, 1))
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


@case("lists", a(1, 2, 3), a(5))
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


@case("lists", a(1, 2, 3), a(5))
def list_comprehension_with_condition(items):
    return nd.stack(*[x * x for x in items if x > 1])


@case("lists", a(1, 2), a(-5, 2))
def list_comprehension_of_python(x):
    parts = [x[k] * k for k in range(2) if k > 0]
    return parts[0] if x.sum() > 0 else x[0]


@case("lists", (a(1, 2, 3), a(1)), (a(5, 6, 7), a(0)))
def index_by_a_value(items, k):
    n = k.astype("int32")
    y = items[n]
    return y if y > 2 else y * 3


@case("lists", a(1, 2), a(-5, 2))
def list_or_other_list(x):
    values = [x, x * 2]
    if x.sum() > 0:
        values = []
    return values[1]


# ------------------------------------------------------------------------------------------------------------ variables
@case("variables", a(1), a(-1))
def augmented_assignment(x):
    x *= 10
    if x > 0:
        x += 5
    return x


@case("variables", a(1), a(-1))
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


@case("variables", a(1), a(-1))
def delete_items(x):
    values, record = [x, x * 2, x * 3], Record(x)
    del values[0], values[0:1], record.x
    return values[0] if x > 0 else x


@case("variables", a(1, 5), a(-1, 2))
def walrus(x):
    if (total := x.sum()) > 3:
        x = x * total
    return x + total


# ------------------------------------------------------------------------------------------------------------- builtins
@case("builtins", a(-1, 2, -3), a(4, 5, 6))
def builtin_abs_max_min_sum(x):
    return abs(x), max(x), min(x), sum(x), max(x[0], x[1], 1), min(x[0], x[2], 0)


@case("builtins", a(3), a(-2))
def builtin_float(x):
    return float(x) + 1 if x > 0 else x


@case("builtins", a(3), a(-2))
def builtin_int(x):
    return int(x) if x > 0 else 0


@case("builtins", np.ones((3, 1), "float32"), np.ones((5, 1), "float32") * -1)
def builtin_len(x):
    return x * len(x) if x.sum() > 0 else x


@case("builtins", a(3), a(-3), a(0))
def builtin_range(n):
    total = 0
    for k in range(n.astype("int32")):
        total += k
    return total


@case("builtins", a(3), a(-3), a(6))
def builtin_range_with_start_and_step(n):
    total, limit = 0, n.astype("int32")
    for k in range(1, limit):
        total += k
    for k in range(6, 0, -limit if n > 0 else -1):
        total += k * 10
    return total


@case("builtins", a(3, 2, 1), a(4, 9))
def builtin_enumerate_with_start(items):
    total = nd.zeros((1,))
    for k, x in enumerate(items, 5):
        total = total + k * x
    return total


@case("builtins", (a(3, 2, 1), a(1, 2)), (a(3, 2), a(1, 2, 3)))
def builtin_zip_of_other_lengths(first, second):
    total = nd.zeros((1,))
    for x, y in zip(first, second, strict=False):
        total = total + x * y
    return total


@case("builtins", a(4, 5, 6), a(-4))
def builtin_map(items):
    return nd.stack(*map(absolute, items))


@case("builtins", a(4, 5), a(-4, 3))
def builtin_map_over_a_list(items):
    return nd.stack(*map(absolute, [items[0], items[1]]))


@case("builtins", a(4, 5), a(-4, 3))
def builtin_filter_over_a_list(items):
    return nd.stack(*filter(lambda x: x > 0, [items[0] * 0 + 1, items[1]]))


@case("builtins", a(4, 5), a(-4, 3))
def builtin_next_over_a_list(items):
    rows = iter([items[0], items[1]])
    first, second = next(rows), next(rows)
    return first if first > 0 else second


@case("builtins", a(4, 5), a(-4, 3))
def builtin_next_over_an_array(items):
    rows = iter(items)
    first = next(rows)
    return first if first > 0 else next(rows)


@case("builtins", a(4, 5), a(-4, 3), a(0, 0))
def builtin_any_all(x):
    return x * 2 if any(x > 0) else x, x * 3 if all(x > 0) else x


@case("builtins", a(4, 5), a(9, 3))
def builtin_sorted_list(x):
    return nd.stack(*sorted([x[0], x[1]], key=lambda v: v))


@case("builtins", a(4, 5), a(-4, 3))
def generator_over_a_list(x):
    def rows():
        for k in range(2):
            yield x[k] if x[k] > 0 else x[k] * 0

    return sum(rows())


@case("builtins", a(4, 5), a(-4, 3))
def builtin_sum_of_a_generator_expression(x):
    return sum(absolute(v) for v in [x[0], x[1]])


# ----------------------------------------------------------------------------------------------------------- directives
@case("directives", a(1), a(60))
def directive_max_iterations(x):
    mx.autograph.max_iterations(8)
    while x < 50:
        x = x * 2
    return x


@case("directives", a(1, 2), a(30, 4))
def directive_shape_invariants(x):
    mx.autograph.shape_invariants(x=(None,))
    while x.sum() < 30:
        x = nd.concat(x, x, dim=0)
    return x


@case("directives", a(1, 2), a(30, 4))
def loop_that_changes_a_size(x):
    while x.sum() < 30:
        x = nd.concat(x, x, dim=0)
    return x


# ---------------------------------------------------------------------------------------------------------------- tests
@pytest.mark.parametrize("case", [case for case in CASES if not case.code], ids=str)
def test_equal_to_imperative_mode(case: Case) -> None:
    check_equal(case)


@pytest.mark.parametrize("case", [case for case in CASES if case.code], ids=str)
def test_refused_by_code(case: Case) -> None:
    block = case.block()
    block.hybridize(strict=True)
    with pytest.raises(mx.autograph.ConversionError) as refusal:
        flat(block(*case.arrays(0)))
    assert refusal.value.code == case.code
    assert "test_coverage_cases.py:" in str(refusal.value)


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
