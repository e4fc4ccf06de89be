"""Random programs of nested loops, branches and closures, as trees that run on arrays and in graphs alike."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet.contrib import cond, foreach, while_loop
from hypothesis import strategies as st

WIDTH = 2  # every value is a vector of this length
ROWS = 3
DEEPEST = 4
MATRIX = mx.nd.array([[0.3, -0.8], [0.6, 0.2]], dtype="float64")  # captured as a constant


@dataclass(frozen=True)
class Variable:
    """A visible value: an argument, a parameter, a slice or state of any enclosing loop."""

    pick: int


@dataclass(frozen=True)
class Unary:
    op: str
    value: Tree


@dataclass(frozen=True)
class Binary:
    op: str
    left: Tree
    right: Tree


@dataclass(frozen=True)
class Foreach:
    length: int
    reverse: bool
    with_index: bool
    data: str  # "rows", "pair" (a dict of two arrays) or "scaled" (computed from a visible value)
    states: tuple[Tree, ...]  # the next states
    initial: tuple[Tree, ...]
    outs: tuple[Tree, ...]
    pick: int
    checkpoint: Any
    cut: tuple[tuple[str, int], ...]  # option (truncate_gradient or detach_every) and its value
    unread: int  # number of unread outputs and states
    last: int  # number of last rows of the outputs that are read; 0: all


@dataclass(frozen=True)
class While:
    limit: int
    bound: float
    counted: bool  # a counter is a second variable, and the number of iterations is read
    state: Tree
    initial: Tree
    outs: tuple[Tree, ...]
    checkpoint: Any


@dataclass(frozen=True)
class Cond:
    number: int  # number of this cond in the program: part of the names of its operators
    pred: Tree
    threshold: float
    dtype: str | None  # dtype of the predicate
    then: Tree
    other: Tree
    handed: bool  # the branches get a value as an argument, not by closure
    twice: bool  # the branches return two values


Tree = Variable | Unary | Binary | Foreach | While | Cond


# ---------------------------------------------------------------------------------------------------------- generation
def programs(deepest: int = DEEPEST) -> st.SearchStrategy[Tree]:
    """Strategy for programs whose constructs nest up to `deepest`; failing programs shrink."""
    return st.builds(make, st.randoms(use_true_random=False), st.integers(1, deepest))


def make(r: random.Random, depth: int) -> Tree:
    """A random program with constructs nested up to depth."""
    return _expression(r, depth, 3, itertools.count(), True)


def _expression(r: random.Random, depth: int, size: int, numbers: Iterator[int], construct: bool = False) -> Tree:
    kinds = ["variable"] if not construct else []
    if size > 0 and not construct:
        kinds += ["unary", "binary"]
    if depth > 0:
        kinds += ["foreach", "while", "cond"] * 2
    kind = r.choice(kinds)

    def sub(at: int = depth, construct: bool = False) -> Tree:
        return _expression(r, at, max(size - 1, 0), numbers, construct and at > 0)

    if kind == "variable":
        return Variable(r.randrange(100))
    if kind == "unary":
        return Unary(r.choice(["sin", "tanh", "half", "cut", "linear"]), sub())
    if kind == "binary":
        return Binary(r.choice(["add", "mul", "sub"]), sub(), sub())
    deeper = r.random() < 0.6  # at least one part is a construct
    if kind == "foreach":
        return _make_foreach(r, depth, sub, deeper)
    if kind == "while":
        outs = tuple(sub(depth - 1) for _ in range(r.randint(0, 1)))
        return While(
            r.randint(0, 4), r.choice([0.3, 1.1, 9.0]), r.random() < 0.5, sub(depth - 1, deeper), sub(0), outs,
            r.choice([None, None, "sqrt", keeps_every_other]),
        )  # fmt: skip
    return Cond(
        next(numbers), sub(0), r.choice([-0.7, 0.123, 0.9]), r.choice([None, "int8", "float64"]),
        sub(depth - 1, deeper), sub(depth - 1), r.random() < 0.3, r.random() < 0.3,
    )  # fmt: skip


def keeps_every_other(node: Any) -> bool:
    """A policy for checkpoint=."""
    return len(node.name) % 2 == 0


def _make_foreach(r: random.Random, depth: int, sub: Any, deeper: bool) -> Foreach:
    states = r.randint(0, 2)
    inner = tuple(sub(depth - 1) for _ in range(states))
    outs = tuple(sub(depth - 1, deeper and i == 0) for i in range(r.randint(0 if states else 1, 2)))
    return Foreach(
        r.randint(1, ROWS), r.random() < 0.5, r.random() < 0.3, r.choice(["rows", "rows", "pair", "scaled"]), inner,
        tuple(sub(0) for _ in range(states)), outs, r.randrange(100),
        r.choice([None, None, None, "sqrt", 1, 2, keeps_every_other]),
        r.choice([(), (), (), (), (("truncate_gradient", 1),), (("detach_every", 2),)]), r.choice([0, 0, 0, 1]),
        r.choice([0, 0, 0, 1, 2]),
    )  # fmt: skip


def parts(tree: Tree) -> Iterator[Tree]:
    """Yields all nodes of a program."""
    yield tree
    for child in _children(tree):
        yield from parts(child)


def _children(tree: Tree) -> list[Tree]:
    found: list[Tree] = []
    for field in dataclasses.fields(tree):
        value = getattr(tree, field.name)
        items = value if isinstance(value, tuple) else (value,)
        found += [item for item in items if isinstance(item, Tree)]
    return found


def depth_of(tree: Tree) -> int:
    """Returns how deep loops and branches nest. Initial states and predicates count as outside of their construct."""
    outside: tuple[Tree, ...] = ()
    if isinstance(tree, (Foreach, While)):
        outside = tree.initial if isinstance(tree, Foreach) else (tree.initial,)
    if isinstance(tree, Cond):
        outside = (tree.pred,)
    own = int(isinstance(tree, (Foreach, While, Cond)))
    inside = list(_children(tree))
    for part in outside:
        inside.remove(part)
    return max([own + depth_of(c) for c in inside] + [depth_of(c) for c in outside] + [own])


def constructs(tree: Tree) -> Counter[str]:
    """Counts the occurrences of each construct and option."""
    found: Counter[str] = Counter()
    for part in parts(tree):
        if not isinstance(part, (Foreach, While, Cond)):
            continue
        found[type(part).__name__] += 1
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            if (
                field.name in ("reverse", "with_index", "counted", "handed", "twice", "unread", "last", "checkpoint")
                and value
            ):
                found[f"{type(part).__name__} {field.name}"] += 1
        if callable(getattr(part, "checkpoint", None)):
            found[f"{type(part).__name__} checkpoint by a policy"] += 1
        if isinstance(part, Foreach) and part.cut:
            found[f"Foreach {part.cut[0][0]}"] += 1
    return found


def smooth(tree: Tree) -> Tree:
    """Returns the program without the parts that cut gradients, because differences do not see the cut."""
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(tree):
        value = getattr(tree, field.name)
        if isinstance(value, Tree):
            changes[field.name] = smooth(value)
        elif isinstance(value, tuple) and any(isinstance(item, Tree) for item in value):
            changes[field.name] = tuple(smooth(item) for item in value)
    if isinstance(tree, Unary) and tree.op == "cut":
        changes["op"] = "sin"
    if isinstance(tree, Foreach):
        changes["cut"] = ()
    return dataclasses.replace(tree, **changes)


# ----------------------------------------------------------------------------------------------------------- execution
class Program(mx.gluon.HybridBlock):
    """A random program as a block of three arguments: rows (ROWS, WIDTH) to iterate over, and two vectors.

    On arrays it records its `decisions`, and in `runs` the runs of each branch by name; in a graph the operator at the
    end of each branch has that name.
    """

    def __init__(self, tree: Tree, weight: np.ndarray | None = None) -> None:
        super().__init__()
        self.tree = tree
        self.weight = mx.gluon.Parameter("weight", shape=(WIDTH,), dtype="float64")
        self.weight.initialize()
        self.weight.set_data(mx.nd.array([0.4, -0.9] if weight is None else weight, dtype="float64"))
        self.decisions: list[float] = []
        self.runs: Counter[str] = Counter()

    def forward(self, rows: Any, a: Any, b: Any) -> Any:
        weight = self.weight.var() if isinstance(a, mx.sym.Symbol) else self.weight.data()
        return self._run(self.tree, [a, b, weight], rows)

    def _run(self, tree: Tree, env: list[Any], rows: Any) -> Any:
        if isinstance(tree, Variable):
            return env[tree.pick % len(env)]
        if isinstance(tree, Unary):
            return _unary(tree.op, self._run(tree.value, env, rows))
        if isinstance(tree, Binary):
            one, two = self._run(tree.left, env, rows), self._run(tree.right, env, rows)
            return {"add": one + two, "sub": one - two, "mul": one * two}[tree.op]
        if isinstance(tree, Foreach):
            return self._foreach(tree, env, rows)
        return self._while(tree, env, rows) if isinstance(tree, While) else self._cond(tree, env, rows)

    def _foreach(self, tree: Foreach, env: list[Any], rows: Any) -> Any:
        data = rows[: tree.length]
        if tree.data == "scaled":
            data = _operators(data).broadcast_mul(data, env[tree.pick % len(env)].reshape((1, WIDTH)))

        def body(*args: Any) -> Any:
            *index, items, states = args
            slices = [items["forward"] * 1, items["back"]] if tree.data == "pair" else [items]
            slices += [index[0].astype("float64") * slices[0]] if index else []
            inside = [*env, *slices, *states]
            outs = [self._run(out, inside, rows).sin() for out in tree.outs]
            return outs, [self._run(state, inside, rows).tanh() for state in tree.states]

        stacked, states = foreach(
            body,
            {"forward": data, "back": data.flip(axis=0)} if tree.data == "pair" else data,
            [self._run(start, env, rows) for start in tree.initial],
            reverse=tree.reverse,
            with_index=tree.with_index,
            checkpoint=tree.checkpoint,
            **dict(tree.cut),
        )
        result = env[tree.pick % len(env)] * 0.1
        for part in stacked[tree.unread :]:
            result = result + part[-min(tree.last, tree.length) :].sum(axis=0)
        for k, state in enumerate(states[: len(states) - tree.unread] if stacked[tree.unread :] else states):
            result = result + state * (k + 0.5)
        return result

    def _while(self, tree: While, env: list[Any], rows: Any) -> Any:
        def goes_on(*values: Any) -> Any:
            return (values[-1] * values[-1]).sum() < tree.bound

        def body(*values: Any) -> Any:
            inside = [*env, values[-1]]
            state = self._run(tree.state, inside, rows).tanh() + values[-1] * 0.9
            outs = [self._run(out, inside, rows).sin() for out in tree.outs]
            return outs, [*(value + 1 for value in values[:-1]), state]

        start = self._run(tree.initial, env, rows)
        stacked, final, *count = while_loop(
            goes_on, body, [0, start] if tree.counted else [start], max_iterations=tree.limit + 1,
            checkpoint=tree.checkpoint, return_count=tree.counted,
        )  # fmt: skip
        last = final[-1]
        if count:
            self._note(count[0])
            last = last + (count[0].astype("float64") + final[0].astype("float64")) * 0.01
        for part in stacked:
            last = last + part.sum(axis=0) * 0.3
        return last

    def _cond(self, tree: Cond, env: list[Any], rows: Any) -> Any:
        test = self._run(tree.pred, env, rows).sum() > tree.threshold
        self._note(test)
        if tree.dtype:
            test = test.astype(tree.dtype)

        # The last operators of the branches differ, also in gradients: shared work may run in front of the cond.
        def branch(part: Tree, name: str, mark: str, last: Any) -> Any:
            def run(*handed: Any) -> Any:
                value = self._run(part, [*env, *handed], rows)
                if not isinstance(value, mx.sym.Symbol):
                    self.runs[name] += 1
                value = last(getattr(_operators(value), mark)(value, name=name))
                return [value, value * 0.2] if tree.twice else value

            return run

        out = cond(
            test,
            branch(tree.then, f"branch{tree.number}_then", "arctan", lambda value: value.sin()),
            branch(tree.other, f"branch{tree.number}_else", "sigmoid", lambda value: value * 0.7),
            inputs=[env[-1] * 2] if tree.handed else (),
        )
        return out[0] - out[1] if tree.twice else out

    def _note(self, decision: Any) -> None:
        if not isinstance(decision, mx.sym.Symbol):
            self.decisions.append(float(decision.asnumpy().reshape(())))


def _operators(value: Any) -> Any:
    return mx.sym if isinstance(value, mx.sym.Symbol) else mx.nd


def _unary(name: str, value: Any) -> Any:
    if name == "cut":
        return _operators(value).BlockGrad(value) * 0.5 + value
    if name == "linear":
        return _operators(value).dot(value.reshape((1, WIDTH)), MATRIX).reshape((WIDTH,))
    return {"sin": value.sin, "tanh": value.tanh, "half": lambda: value * 0.5}[name]()


def inputs(seed: int) -> list[np.ndarray]:
    """Arguments of a program."""
    r = np.random.default_rng(seed)
    return [r.normal(size=shape) for shape in ((ROWS, WIDTH), (WIDTH,), (WIDTH,))]
