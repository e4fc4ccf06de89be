"""Random programs of nested loops, branches and closures, as trees that run on arrays and in graphs alike."""

from __future__ import annotations

import random
from typing import Any

import hybridnet as mx
from hybridnet.contrib import cond, foreach, while_loop

WIDTH = 2  # every value is a vector of so many numbers
MATRIX = mx.nd.array([[0.3, -0.8], [0.6, 0.2]], dtype="float64")

Tree = tuple[Any, ...]


def make(seed: int, depth: int) -> Tree:
    """A random program whose constructs nest up to depth."""
    return _expression(random.Random(seed), depth, 3)


def _expression(r: random.Random, depth: int, size: int) -> Tree:
    kinds = ["variable", "unary", "binary"] if size > 0 else ["variable"]
    if depth > 0:
        kinds += ["foreach", "while", "cond"] * 2
    kind = r.choice(kinds)
    sub = lambda d=depth, s=size - 1: _expression(r, d, max(s, 0))  # noqa: E731
    if kind == "variable":
        return kind, r.randrange(100)
    if kind == "unary":
        return kind, r.choice(["sin", "tanh", "half", "cut", "linear"]), sub()
    if kind == "binary":
        return kind, r.choice(["add", "mul", "sub"]), sub(), sub()
    if kind == "foreach":
        states = r.randint(0, 2)
        inner = [sub(depth - 1) for _ in range(states)]
        initial = [sub(0) for _ in range(states)]
        outs = [sub(depth - 1) for _ in range(r.randint(0 if states else 1, 2))]
        checkpoint = r.choice([None, None, None, "sqrt", 1, 2, keeps_every_other])
        unread = r.choice([0, 0, 0, 1])
        return kind, r.random() < 0.5, r.randint(1, 3), inner, initial, outs, r.randrange(100), checkpoint, unread
    if kind == "while":
        outs = [sub(depth - 1) for _ in range(r.randint(0, 1))]
        return (
            kind,
            r.randint(0, 4),
            r.choice([0.3, 1.1, 9.0]),
            sub(depth - 1),
            sub(0),
            outs,
            r.choice([None, None, "sqrt", keeps_every_other]),
        )
    return kind, sub(0), r.choice([-0.7, 0.123, 0.9]), sub(depth - 1), sub(depth - 1)


def keeps_every_other(node: Any) -> bool:
    """A policy for checkpoint=."""
    return len(node.name) % 2 == 0


def run(tree: Tree, env: list[Any], rows: Any) -> Any:
    """Value of the program: env are the vectors in sight, rows an array (3, WIDTH) to iterate over."""
    kind = tree[0]
    if kind == "variable":
        return env[tree[1] % len(env)]
    if kind == "unary":
        return _unary(tree[1], run(tree[2], env, rows))
    if kind == "binary":
        one, two = run(tree[2], env, rows), run(tree[3], env, rows)
        return {"add": one + two, "sub": one - two, "mul": one * two}[tree[1]]
    if kind == "foreach":
        return _foreach(tree, env, rows)
    return _while(tree, env, rows) if kind == "while" else _cond(tree, env, rows)


def _unary(name: str, value: Any) -> Any:
    if name == "cut":
        stop = mx.sym.BlockGrad if isinstance(value, mx.sym.Symbol) else mx.nd.BlockGrad
        return stop(value) * 0.5 + value
    if name == "linear":
        dot = mx.sym.dot if isinstance(value, mx.sym.Symbol) else mx.nd.dot
        return dot(value.reshape((1, WIDTH)), MATRIX).reshape((WIDTH,))
    return {"sin": value.sin, "tanh": value.tanh, "half": lambda: value * 0.5}[name]()


def _foreach(tree: Tree, env: list[Any], rows: Any) -> Any:
    _, reverse, length, inner, initial, outs, pick, checkpoint, unread = tree
    data = rows[:length]

    def body(row, states):
        inside = [*env, row, *states]
        return [run(o, inside, rows).sin() for o in outs], [run(s, inside, rows).tanh() for s in inner]

    stacked, states = foreach(body, data, [run(i, env, rows) for i in initial], reverse=reverse, checkpoint=checkpoint)
    result = env[pick % len(env)] * 0.1
    for part in stacked[unread:]:
        result = result + part.sum(axis=0)
    for k, state in enumerate(states[: len(states) - unread] if stacked[unread:] else states):
        result = result + state * (k + 0.5)
    return result


def _while(tree: Tree, env: list[Any], rows: Any) -> Any:
    _, limit, bound, inner, initial, outs, checkpoint = tree

    def body(value):
        inside = [*env, value]
        return [run(o, inside, rows).sin() for o in outs], [run(inner, inside, rows).tanh() + value * 0.9]

    stacked, (last,) = while_loop(
        lambda v: (v * v).sum() < bound,
        body,
        [run(initial, env, rows)],
        max_iterations=limit + 1,
        checkpoint=checkpoint,
    )
    for part in stacked:
        last = last + part.sum(axis=0) * 0.3
    return last


def _cond(tree: Tree, env: list[Any], rows: Any) -> Any:
    _, pred, threshold, then, other = tree
    test = run(pred, env, rows).sum() > threshold
    return cond(test, lambda: run(then, env, rows).sin(), lambda: run(other, env, rows) * 0.7)
