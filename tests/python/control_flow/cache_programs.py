"""Random loops over caches: bodies that write parts of their states, read them before and after, swap them, return them
twice or unchanged, look at them under another shape, and hold branches and loops that do the same.

A program is a tree that does not depend on the arrays. It runs on NumPy, where every write makes a copy, and on arrays
or in graphs of the library. All values are small integers, so that results are equal to the bit in every dtype.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet.contrib import cond, foreach, while_loop

LIMIT = 40  # values are clipped here: their sums are exact in float16 and bfloat16, too
STEPS = 4


@dataclass(frozen=True)
class Step:
    """One operation: kind, the numbers of the values that it reads, and constants."""

    kind: str
    reads: tuple[int, ...]
    numbers: tuple[int, ...] = ()
    parts: tuple[Any, ...] = ()  # bodies


@dataclass(frozen=True)
class Body:
    """Steps over `given` values; each makes one more value. Then the values that are returned."""

    given: int
    steps: tuple[Step, ...]
    returned: tuple[int, ...]
    outputs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Program:
    loop: str  # "foreach", "reverse" or "while"
    starts: tuple[str, ...]  # the origin of each state's first value
    body: Body
    count: int  # iterations of a while loop
    reads_state: bool  # whether the condition reads the last state
    after: tuple[str, ...]  # values that are read after the loop: "a", "b", "parameter"


# ------------------------------------------------------------------------------------------------------------- making
WRITES = [
    "copy_0", "copy_1", "assign", "assign_number", "set_rows", "set_columns", "flat_write", "copy_1", "copy_0",
]  # fmt: skip
OTHERS = ["add", "negate", "largest", "take", "where", "sum", "turn"]


def _steps(r: random.Random, given: int, depth: int, count: int) -> tuple[Step, ...]:
    made: list[Step] = []
    for _ in range(count):
        known = given + len(made)
        # Mostly the newest values and the states: chains of writes.
        reads = tuple(r.choice([known - 1, r.randrange(known), r.randrange(given)]) for _ in range(3))
        numbers = tuple(r.randrange(8) for _ in range(3))
        choice = r.random()
        if depth > 0 and choice < 0.2:
            kind, parts = r.choice(["branch", "inner", "inner_while"]), ()
            if kind == "branch":
                parts = tuple(_body(r, 3, depth - 1, r.randint(0, 2), 1) for _ in range(2))
            else:
                parts = (_body(r, 3, depth - 1, r.randint(1, 3), 2),)
            made.append(Step(kind, reads, numbers, parts))
        else:
            made.append(Step(r.choice(WRITES if choice < 0.7 else OTHERS), reads, numbers))
    return tuple(made)


def _body(r: random.Random, given: int, depth: int, count: int, returned: int, outputs: int = 0) -> Body:
    steps = _steps(r, given, depth, count)
    known = given + len(steps)
    pick = lambda: r.choice([known - 1, max(known - 2, 0), r.randrange(known), r.randrange(given)])  # noqa: E731
    return Body(given, steps, tuple(pick() for _ in range(returned)), tuple(pick() for _ in range(outputs)))


def make(seed: int) -> Program:
    r = random.Random(seed)
    states = r.randint(1, 3)
    loop = r.choice(["foreach", "reverse", "while", "while"])
    outputs = r.randint(0, 2)
    return Program(
        loop,
        tuple(r.choice(["a", "b", "a", "parameter", "a + 1", "b", "zeros", "view"]) for _ in range(states)),
        _body(r, states + 2, 2 if r.random() < 0.5 else 0, r.randint(1, 5), states, outputs),
        r.randint(1 if outputs else 0, STEPS),
        r.random() < 0.3,
        tuple(name for name in ("a", "b", "parameter") if r.random() < 0.4),
    )


# ------------------------------------------------------------------------------------------------------------ running
class OnNumpy:
    """The operations as NumPy has them, each with a result of its own."""

    def index(self, i: Any, by: int, size: int) -> Any:
        return (i + by) % size

    def clip(self, x: Any) -> Any:
        return np.minimum(np.maximum(x, np.asarray(-LIMIT, x.dtype)), np.asarray(LIMIT, x.dtype))

    def part(self, x: Any, axis: int, at: int) -> Any:
        return np.take(x, [at % x.shape[axis]], axis)

    def copy_at(self, x: Any, index: Any, part: Any, axis: int) -> Any:
        made = x.copy()
        np.moveaxis(made, axis, 0)[index] = np.moveaxis(part, axis, 0)
        return made

    def assign(self, x: Any, part: Any, begin: int) -> Any:
        made = x.copy()
        made[begin : begin + 1] = part
        return made

    def assign_number(self, x: Any, number: int, begin: int) -> Any:
        made = x.copy()
        made[begin : begin + 2] = number
        return made

    def set_rows(self, x: Any, index: Any, row: Any) -> Any:
        made = x + np.asarray(1, x.dtype)
        made[index] = row
        return made

    def set_columns(self, x: Any, index: Any, column: Any) -> Any:
        made = x + np.asarray(1, x.dtype)
        made[:, index] = column
        return made

    def largest(self, x: Any, y: Any) -> Any:
        return np.maximum(x, y)

    def take(self, x: Any, places: Any) -> Any:
        return x[places]

    def where(self, i: Any, x: Any, y: Any) -> Any:
        return x.copy() if i[0] % 2 == 0 else y.copy()

    def sum(self, x: Any) -> Any:
        total = x.sum(axis=0, keepdims=True).astype(x.dtype)
        return self.clip(total)

    def zeros(self, x: Any) -> Any:
        return np.zeros_like(x)

    def row(self, x: Any) -> Any:
        return x[None]

    def flattened(self, x: Any) -> Any:
        return x.reshape((x.size, 1))

    def reshaped(self, x: Any, like: Any) -> Any:
        return x.reshape(like.shape)

    def branch(self, i: Any, then: Any, other: Any) -> Any:
        return then() if i[0] % 2 == 0 else other()

    def foreach(self, body: Any, rows: Any, states: list[Any], reverse: bool = False) -> tuple[list[Any], list[Any]]:
        outs: list[list[Any]] = []
        order = range(len(rows))
        for t in reversed(order) if reverse else order:
            out, states = body(np.array([t], dtype="int64"), rows[t], states)
            outs.append(out)
        if reverse:
            outs.reverse()
        return [np.stack(column) for column in zip(*outs, strict=True)], states

    def loop(self, body: Any, count: int, states: list[Any], rows: Any, reads: bool) -> tuple[list[Any], list[Any]]:
        outs: list[list[Any]] = []
        for t in range(count):
            out, states = body(np.array([t], dtype="int64"), rows[t], states)
            outs.append(out)
        stacked = []
        for column in zip(*outs, strict=True):
            whole = np.zeros((STEPS, *column[0].shape), column[0].dtype)
            whole[:count] = column
            stacked.append(whole)
        return stacked, states


class OnArrays:
    """The operations of the library, on arrays or traced."""

    def index(self, i: Any, by: int, size: int) -> Any:
        return (i + by) % size

    def clip(self, x: Any) -> Any:
        return mx.nd.clip(x, -LIMIT, LIMIT)

    def part(self, x: Any, axis: int, at: int) -> Any:
        at %= x.shape[axis]
        return mx.nd.slice_axis(x, axis=axis, begin=at, end=at + 1)

    def copy_at(self, x: Any, index: Any, part: Any, axis: int) -> Any:
        return mx.nd.contrib.index_copy(x, index, part, axis=axis - 2)  # the last axes of two

    def assign(self, x: Any, part: Any, begin: int) -> Any:
        return mx.nd._internal._slice_assign(x, part, begin=(begin,), end=(begin + 1,))

    def assign_number(self, x: Any, number: int, begin: int) -> Any:
        return mx.nd._internal._slice_assign_scalar(x, scalar=number, begin=(begin,), end=(begin + 2,))

    def set_rows(self, x: Any, index: Any, row: Any) -> Any:
        made = x + 1
        made[index] = row
        return made

    def set_columns(self, x: Any, index: Any, column: Any) -> Any:
        made = x + 1
        made[:, index] = column
        return made

    def largest(self, x: Any, y: Any) -> Any:
        return mx.nd.maximum(x, y)

    def take(self, x: Any, places: Any) -> Any:
        return mx.nd.take(x, mx.nd.array(places, dtype="int64"))

    def where(self, i: Any, x: Any, y: Any) -> Any:
        even = mx.nd.broadcast_like((i % 2 == 0).reshape((1, 1)), x)
        return mx.nd.where(even.astype(x.dtype), x, y)

    def sum(self, x: Any) -> Any:
        return self.clip(x.sum(axis=0, keepdims=True))

    def zeros(self, x: Any) -> Any:
        return mx.nd.zeros_like(x)

    def row(self, x: Any) -> Any:
        return mx.nd.expand_dims(x, axis=0)

    def flattened(self, x: Any) -> Any:
        return mx.nd.expand_dims(mx.nd.reshape(x, shape=(-1,)), axis=1)

    def reshaped(self, x: Any, like: Any) -> Any:
        return mx.nd.reshape_like(x, like)

    def branch(self, i: Any, then: Any, other: Any) -> Any:
        return cond((i % 2 == 0).reshape((1,)), then, other)

    def foreach(self, body: Any, rows: Any, states: list[Any], reverse: bool = False) -> tuple[list[Any], list[Any]]:
        outs, states = foreach(
            lambda i, row, states: body(i.astype("int64").reshape((1,)), row, states),
            rows, states, reverse=reverse, with_index=True,
        )  # fmt: skip
        return outs, states

    def loop(self, body: Any, count: int, states: list[Any], rows: Any, reads: bool) -> tuple[list[Any], list[Any]]:
        def step(i: Any, *states: Any) -> Any:
            outs, states = body(i, mx.nd.take(rows, i)[0], list(states))
            return outs, (i + 1, *states)

        def holds(i: Any, *states: Any) -> Any:
            test = i < count
            return test * (states[-1].astype("float64").sum() > -1e9).astype(test.dtype) if reads else test

        outs, states = while_loop(holds, step, (mx.nd.zeros((1,), dtype="int64"), *states), STEPS)
        return (list(outs) if isinstance(outs, (list, tuple)) else [outs]), list(states[1:])


def _run_step(on: Any, step: Step, values: list[Any], i: Any) -> Any:
    x, y, z = (values[n] for n in step.reads)
    p, q, _ = step.numbers
    kind, height = step.kind, x.shape[0]
    if kind in ("copy_0", "copy_1"):
        axis = int(kind[-1])
        return on.copy_at(x, on.index(i, p, x.shape[axis]), on.part(y, axis, q), axis)
    if kind == "assign":
        return on.assign(x, on.part(y, 0, q), p % height)
    if kind == "assign_number":
        return on.assign_number(x, q, p % (height - 1))
    if kind == "set_rows":
        return on.set_rows(on.clip(x), on.index(i, p, height), on.part(y, 0, q))
    if kind == "set_columns":
        return on.set_columns(on.clip(x), on.index(i, p, x.shape[1]), on.part(y, 1, q))
    if kind == "flat_write":
        size = x.shape[0] * x.shape[1]
        flat, other = x.reshape((size, 1)), y.reshape((size, 1))
        return on.copy_at(flat, on.index(i, p, size), on.part(other, 0, q), 0).reshape(x.shape)
    if kind == "turn":
        return on.reshaped(on.flattened(x), x)
    if kind in ("branch", "inner", "inner_while"):
        return _run_nested(on, step, (x, y, z), i)
    simple = {
        "add": lambda: on.clip(x + y), "negate": lambda: -x, "largest": lambda: on.largest(x, y),
        "take": lambda: on.take(x, [(p + k) % height for k in range(height)]), "where": lambda: on.where(i, x, y),
        "sum": lambda: on.copy_at(y, on.index(i, q, height), on.sum(x), 0),
    }  # fmt: skip
    return simple[kind]()


def _run_nested(on: Any, step: Step, values: tuple[Any, ...], i: Any) -> Any:
    x, y, z = values
    if step.kind == "branch":
        then, other = step.parts
        return on.branch(
            i, lambda: run_body(on, then, [x, y, z], i)[0][0], lambda: run_body(on, other, [x, y, z], i)[0][0]
        )
    inner = lambda k, row, states: ([], run_body(on, step.parts[0], [*states, z], k)[0])  # noqa: E731
    if step.kind == "inner":
        return on.foreach(inner, z, [x, y])[1][step.numbers[0] % 2]
    return on.loop(inner, 1 + step.numbers[1] % 2, [x, y], z, False)[1][step.numbers[0] % 2]


def run_body(on: Any, body: Body, given: list[Any], i: Any) -> tuple[list[Any], list[Any]]:
    """Returns the next states and the outputs of a body."""
    values = list(given)
    for step in body.steps:
        values.append(_run_step(on, step, values, i))
    return [values[n] for n in body.returned], [values[n] for n in body.outputs]


def run(on: Any, program: Program, a: Any, b: Any, rows: Any, parameter: Any) -> list[Any]:
    """Returns the states after the loop, its outputs, and values that are read after it."""
    named = {"a": a, "b": b, "parameter": parameter}
    makers = {
        "a + 1": lambda: on.clip(a + 1),
        "zeros": lambda: on.zeros(a),
        "view": lambda: on.reshaped(on.flattened(b), b),
    }
    starts = [named[name] if name in named else makers[name]() for name in program.starts]

    def body(i: Any, row: Any, states: list[Any]) -> tuple[list[Any], list[Any]]:
        written = on.copy_at(a, on.index(i, 0, a.shape[0]), on.row(row), 0)
        states, outs = run_body(on, program.body, [*states, b, written], i)
        return outs, states

    if program.loop == "while":
        outs, states = on.loop(body, program.count, starts, rows, program.reads_state)
    else:
        outs, states = on.foreach(body, rows, starts, program.loop == "reverse")
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    states = list(states) if isinstance(states, (list, tuple)) else [states]
    return [*states, *outs, *[on.clip(named[name] + named[name]) for name in program.after]]
