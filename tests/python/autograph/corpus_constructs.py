"""Programs with one construct of Python each, over traced arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import hybridnet as mx
from hybridnet import gluon, nd

from .corpus_support import Programs, a

PROGRAMS = Programs()
program = PROGRAMS.add


# ------------------------------------------------------------------------------------------------------------ decisions
@program((a(1, 2),), (a(-1, -2, -3),), (a(9, 9),), (a(0, 0),), cond=3)
def if_elif_else(x):
    s = x.sum()
    if s > 10:
        y = x * 2
    elif s > 0:
        y = x - 1
        y = y * y
    elif s < 0:
        y = -x
    else:
        y = x + 7
    return y + 1


@program((a(1, 2),), (a(-3, 5),), (a(-3, -5, 1),), (a(4, -2, -1),), (a(-3, 1),), cond=3)
def ternaries(x):
    scale = 2 if x[0] > 0 else 5
    y = x * scale if x.sum() > 0 else (x - 1 if x[1] < -3 else x + scale)
    return y * 10


@program((a(1, 2),), (a(-3, 5),), (a(-3, -5),), (a(6, -5, 1),), (a(0, 7, 0),), cond=6)
def and_or_not(x):
    first, second = x[0], x[1]
    y = x
    if first > 0 and second > 0:
        y = y + 1
    if first > 3 or not second < 0:
        y = y * 3
    if not (first == 0 or second < -1):
        y = y - 2
    return y


@program((a(1, 2), a(0)), (a(0, 2), a(0)), (a(0, 5), a(3)), (a(2, 4), a(3)), (a(0, 0), a(3)), cond=2)
def values_of_and_or(x, limit):
    first = x[0] or x[1]  # the first operand if it is not zero
    both = first and limit
    return first * 10 + both


@program((a(1, 2),), (a(-3, 5, 9),), (a(-3, -5),), (a(3, 3),), (a(60, 1),), (a(-10, 1),), (a(3, 9),), cond=5)
def chained_comparisons(x):
    y = x
    if 0 < x.sum() <= 4:
        y = x * 3
    if -9 < x[0] < x[1] < 8:
        y = y + 100
    return y


def first_share(x):
    mx.check(x.max() > 0, "the largest number must be positive")
    return x[0] / x.max()


@program((a(1, 2),), (a(0, 0, 0),), (a(8, -2),), (a(-1, -2),), cond=4)
def short_circuit(x):
    # A second operand that runs although the first one decides makes the check fail.
    y = x * 2 if x.max() > 0 and first_share(x) > 0.7 else x - 1
    return y * 3 if x.max() <= 0 or first_share(x) < 0.9 else y + 10


# ---------------------------------------------------------------------------------------------------------------- loops
@program((a(3, 5),), (a(1, 2, 0.5),), (a(40, 40),), while_=1)
def while_loop(x):
    steps = 0
    while x.sum() < 50:
        x = x * 2
        steps += 1
    return x + steps


@program(
    (a(1, 2, 3), a(4, 5, 6)), (a(1, 2, 3, 4, 5), a(7, 8, -9, 10, -11)), (a(2), a(-3)), foreach=1, cond=1
)  # fmt: skip
def for_zip(x, y):
    total = nd.zeros((1,))
    for u, v in zip(x, y):
        if v > 0:
            total = total * 0.5 + u * v
        else:
            total = total - v
    return total


@program((a(1, 2, 3),), (a(5, 1, 7),), (a(0, -1, 4),), foreach=1, cond=1)
def zip_with_a_constant(x):
    # The rows of the array of this program are rows for the loop, too.
    weights = nd.array([2.0, 1.0, 3.0])
    total = x[0] * 0
    for v, w in zip(x, weights):
        if v > w:
            total = total + v * w
    return total


@program((a(1, 2, 3),), (a(-3, 5, 1, 7, 2),), (a(4),), foreach=3)
def enumerate_reversed(x):
    total = nd.zeros((1,))
    for i, v in enumerate(x, 1):
        total = total * 2 + v * i
    for v in reversed(x):
        total = total * 0.5 + v
    for i, v in enumerate(reversed(x)):
        total = total - v * v * i
    return total


@program((a(1, 2),), (a(3, 5),), (a(0, 1, 0),), (a(0, -2),), while_=2)
def range_of_traced(x):
    n = x.sum().astype("int32")
    y = x
    for i in range(n):
        y = y + i * x
    for i in range(2, n + 3, 2):
        y = y * 0.5 + i
    return y


@program(
    (a(1, 1, 1),), (a(1, 2, 3, 4),), (a(-3, 5, 1),), (a(1, -1, 2, 0.5, 9, 3),), while_=1, cond=2,
)  # fmt: skip
def break_continue(x):
    total = nd.zeros((1,))
    last = 0
    for i, v in enumerate(x):
        if v > 2:
            break
        if v < 0:
            continue
        total = total + v
        last = i
    return total + last * 10


@program((a(2, 3),), (a(0.5, 0.1, 0.2),), (a(5, 2),), (a(-4, 1),), (a(30, 1),), while_=1, cond=5)
def while_true(x):
    # Python knows that the first iteration runs: its decisions are in front of the loop, too.
    n = 0
    while True:
        n += 1
        x = x + 1
        if x.max() > 6:
            break
        if x.sum() > 8:
            x = x * 1.5
            continue
        x = x + 0.25
    return x * n


@program(
    (a(1, 2, 3), a(3)),
    (a(-3, 5, 1, 2), a(4)),
    (a(0, 0, 0), a(9)),
    (a(1, 0.5), a(0.25)),
    while_=2,
    cond=3,
    per_length="the placeholder of a returned value has the shape of the first input",
)
def early_return(x, key):
    for u in x:
        for v in x:
            if u * v == key:
                return u + v * 100
        key = key - u
    return key * 7


@program((a(1, 2, 3),), (a(-3, 5, 1),), (a(0, 0, 0, 0),), (a(20, 20),), while_=2, cond=5)
def loop_else(x):
    for v in x:
        if v > 2:
            break
        x = x + 1
    else:
        x = x * 10
    n = 0
    while x.sum() < 40:
        x = x * 3 + 1
        n += 1
        if x[0] > 25:
            break
    else:
        x = x - 1000
    return x + n


# ---------------------------------------------------------------------------------------------------- containers, state
@program((a(1, 2, 3),), (a(-3, 5, 1, 4, 2),), (a(7),), foreach=1, cond=1)
def list_accumulation(x):
    state = nd.zeros((1,))
    states, pairs = [], []
    for v in x:
        state = state * 0.5 + v if v > 0 else state - v
        states.append(state)
        pairs.append((state * 2, v))
    return nd.stack(*states), nd.concat(*states, dim=0), states[-1], pairs[-1][0] * 100 + pairs[-1][1]


@program((a(1, 2, 3),), (a(-3, 5, 1, 4, 2),), (a(7),), foreach=1, cond=1, per_length="a list has a length of Python")
def list_of_a_loop_in_python(x):
    state, pairs = x[0] * 0, []
    for v in x:
        state = state * 0.5 + v if v > 0 else state - v
        pairs.append((state * 2, v))
    return nd.stack(*[p + q for p, q in pairs]), x * len(pairs)


@program((a(1, 2, 3),), (a(-3, 5),), (a(0, 0, 0, 0),), (a(30, 1),), while_=1, cond=1)
def tuples_and_dicts(x):
    state = {"low": x, "high": (x * 2, x + 1)}
    while state["low"].sum() < 20:
        one, two = state["high"]
        state["low"] = state["low"] + 1
        if one.sum() > 9:
            state["high"] = (two - one * 0.5, one * 0.25)
        else:
            state["high"] = (one + 1, two)
    return state["low"] + state["high"][0] * state["high"][1]


class Point(NamedTuple):
    position: Any
    speed: Any


@dataclass
class Bounds:
    low: Any
    high: Any
    hits: int = 0


@program((a(1, 2),), (a(-3, 5, 1),), (a(4, -4),), (a(0.5, 9, 9),), foreach=1, cond=1)
def namedtuple_and_dataclass(x):
    point = Point(nd.zeros((1,)), nd.ones((1,)))
    bounds = Bounds(nd.full((1,), 100.0), nd.full((1,), -100.0))
    for force in x:
        point = Point(point.position + point.speed, point.speed + force)
        bounds.low = nd.minimum(bounds.low, point.position)
        if point.position > bounds.high:
            bounds = Bounds(bounds.low, point.position, bounds.hits + 1)
    return point, bounds.low, bounds.high, bounds.hits * x


@program((a(1, 2, 1),), (a(-3, 6, 1),), (a(0, 0, 0),), (a(9, -4, 2),), while_=1, cond=2)
def writes_and_aliases(x):
    buffer = nd.zeros((3,))
    alias = buffer
    for i in range(x.sum().astype("int32")):
        buffer[i % 3] = buffer[i % 3] + i + 1
        if x[0] > 5:
            alias[:] = alias * 1.25
    if x[1] > 2:
        buffer += x
    return alias * 10 + buffer


@program((a(1, 2, 3),), (a(-3, 5),), (a(1,),), foreach=1, cond=1)  # fmt: skip
def augmented_assignments(x):
    total, scale, count = nd.ones((1,)), nd.full((1,), 8.0), 3
    table = [nd.zeros((1,)), nd.ones((1,))]
    for v in x:
        total += v
        total -= 0.5
        scale *= 1.5
        scale /= 2
        count //= 2
        if v > 0:
            table[1] += v * count
            count += 5
        table[0] -= v
    return total, scale, table[0] + table[1] * count


# ------------------------------------------------------------------------------------------------------------ functions
@program((a(1, 2),), (a(-3, 5, 2),), (a(-1, -2),), (a(9, 9),), (a(3, 3),), foreach=1, cond=3)
def nested_functions_and_lambdas(x):
    scale = x.sum()

    def clip(v, limit=4):
        if v > limit:
            return v * 0 + limit
        return v * scale

    choose = lambda v: v + 1 if v < 0 else v - 1  # noqa: E731
    total = nd.zeros((1,))
    for v in x:
        total = total + choose(v) * 2
        if scale > 5:
            total = total + clip(v)
    return total


class Gate(gluon.HybridBlock):
    def __init__(self, size):
        super().__init__()
        self.dense = gluon.nn.Dense(size, flatten=False, in_units=size)

    def forward(self, x):
        y = self.dense(x)
        if y.sum() > 0:
            return y.relu()
        return x - y


@program(
    (a([1, 2], [3, 4]),), (a([-1, -2], [3, -4], [5, 6]),), (a([-5, 0.5]),), (a([2, 0], [0, 0]),), foreach=1, cond=5
)  # fmt: skip
class MethodsAndChildBlocks(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.gates = gluon.nn.HybridSequential()
        self.gates.add(Gate(2), Gate(2))
        self.out = gluon.nn.Dense(1, flatten=False, in_units=2)

    def step(self, v, state):
        if (v * state).sum() < 1:
            state = state * 0.5 + v
        return self._limited(state)

    @staticmethod
    def _limited(state):
        return state / 2 if state.max() > 2 else state

    def forward(self, x):
        state = x[0] * 0
        for v in x:
            state = self.step(v, state)
        return self.out(self.gates(state.reshape((1, 2)))) + (state.sum() if state[0] > 0 else 0)


@program((a(1, 2, 3),), (a(-3, 5),), (a(4, -1, 2, 2),), cond=3)
def comprehensions(x):
    scales = {name: k + 1 for k, name in enumerate("abc")}
    parts = [x * k if x.sum() > 4 else x - k for name, k in scales.items() if name != "b"]
    offset = sum(scales[name] for name in ("a", "c"))
    y = parts[0] + parts[1] * offset
    return y if y.min() > -20 else y * 0.5


@program((a(1, 2),), (a(-30, 5, 2),), (a(-4, -2),), (a(30, 8),), cond=6)
def recursion(x):
    def halve(v, depth):
        if depth == 0:
            return v + 1
        if v.sum() > 10:
            return halve(v / 2, depth - 1)
        return halve(v * v - depth, depth - 1) if depth > 1 else v

    return halve(x, 2) + halve(x + 5, 2)


@program((a(1, 2),), (a(-3, 1, 1),), (a(0, 0),), (a(-0.6, 0.9),), cond=3)
def match_on_python_values(x):
    y = x
    for layer in ({"kind": "scale", "by": 3}, ("shift", 2), "square", ["clip", 1, 40]):
        match layer:
            case {"kind": "scale", "by": factor}:
                y = y * factor if y.sum() > 0 else y
            case ("shift", by) if by > 1:
                if y.sum() >= 0:
                    y = y + by
                else:
                    y = y - by
            case str(name):
                y = y * y if name == "square" else y
            case [_, low, high]:
                if y.max() > 30:
                    y = y.clip(low, high)
    return y


@program((a(1, 2),), (a(-3, 5, 2),), (a(3, 4),), (a(30, 4),), while_=1, cond=1)
def walrus(x):
    if (s := x.sum()) > 6:
        x = x * s
    n = 0
    while (total := (x * x).sum()) < 400:
        x = x * 1.5 + 1
        n = n + 1
    return x + total * n + s


# --------------------------------------------------------------------------------------------------------------- idioms
@program(
    (a([1, 2], [3, 4]),), (a([-1, -2], [-3, 1], [5, 0]),), (a([0.25, 0.5]),), (a([8, -9]),), cond=5,
    per_length="the length decides in Python",
)  # fmt: skip
def idioms(x):
    rows, columns = x.shape
    parts = [x[0, 0], x[0, 1], x[rows - 1, columns - 1]]
    largest, smallest = max(parts[0], parts[1]), min(parts[2], 1.5)
    total = sum(parts) + abs(parts[0])
    level = float(x.max()) + x[0, 0].asscalar() * 2
    if len(x) > 2:
        level = level - 1
    if max(level, 0) > 2:
        total = total * level
    return total + largest * 100 + smallest * 1000 + (7 if any(part < 0 for part in parts) else 0)


@program((a(1, 2),), (a(-3, 5, 2),), (a(0.01, 0.02),), foreach=1, cond=1)
def range_as_a_loop(x):
    y = x
    for i in mx.range(100):
        y = y * 0.99 + i * 0.001
        if y.sum() > 4:
            y = y * 0.5
    return y


@program((a(1, 2),), (a(3, 5, 7),), (a(0.5, 0.25),), foreach=1, cond=1)
def checks(x):
    total = nd.zeros((1,))
    for v in x:
        mx.check(v > 0, "only positive numbers have a root")
        assert v < 100, "too large"
        total = total + v.sqrt()
        if total > 3:
            total = total - 2
    return total


@program((a(1, 2),), (a(3, 5),), (a(0.5, 0.25, 9),), (a(70, 1),), while_=1)
def max_iterations(x):
    sums = []
    mx.autograph.max_iterations(20)
    while x.sum() < 60:
        x = x * 1.5 + 1
        sums.append(x.sum())
    return nd.stack(x.sum(), *sums).sum(), x


@program((a(1, 2),), (a(3, 5),), (a(0.5, 0.25),), (a(70, 1),), while_=1, cond=1)
def shape_invariants(x):
    cache = x.reshape((1, 2))
    last = x
    mx.autograph.shape_invariants(cache=(None, 2))
    while cache.sum() < 60:
        last = last * 1.5 + cache.mean()
        if last[0] > 3:
            last = last + 1
        cache = nd.concat(cache, last.reshape((1, 2)), dim=0)
    return cache, last


@program((a(1, 2),), (a(3, 5),), (a(0.5, 0.25),), (a(70, 1),), while_=1)
def size_of_a_cache(x):
    cache = x.reshape((1, 2))
    mx.autograph.shape_invariants(cache=(None, 2))
    while cache.sum() < 60:
        cache = nd.concat(cache, cache[-1:] * 1.5, dim=0)
    return cache, cache.shape[0] * x, len(cache) + x


@program((a([1, 2], [3, 4]),), (a([-1, -2], [-3, 1], [5, 0]),), (a([8, -9]),), (a([1, 0]),), while_=1, cond=2)
class HybridForward(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.weight = self.params.get("weight", shape=(2,))

    def hybrid_forward(self, F, x, weight):
        state = F.zeros((2,))
        for row in x:
            state = F.tanh(state + row * weight)
            if F.sum(state) < 0:
                break
        if F.max(state) > 0.9:
            state = state * 2
        return state


@program(
    (a([1, 2], [3, 4]),), (a([-1, -2], [-3, 1], [5, 0]),), (a([8, -9]),), (a([0.1, 0]),), numpy=True, foreach=1,
    cond=2, while_=1,
)  # fmt: skip
def numpy_interface(x):
    state = mx.np.zeros(2)
    rows = []
    for row in x:
        state = mx.np.where(row > 0, state + row, state * 0.5)
        if state.sum() > 5:
            state = state - state.mean()
        rows.append(state)
    n = 0
    while mx.np.abs(state).max() > 1:
        state = state / 2
        n += 1
    y = mx.np.stack(rows)
    return (y * 10 if state[0] >= 0 else y) + n


@program(
    (a(1, 2, dtype="float64"), a(4, 7, dtype="int64")), (a(3, 5, dtype="float64"), a(9, 27, 12, dtype="int64")),
    (a(1e-9, 0, dtype="float64"), a(1, dtype="int64")), (a(6, 6, dtype="float64"), a(30, 3, dtype="int64")),
    gradient=False, foreach=1, while_=2, cond=1,
)  # fmt: skip
def dtypes(x, numbers):
    total = nd.zeros((1,), dtype="int64")
    for number in numbers:
        while number > 1:  # the steps of Collatz
            if number % 2 == 0:
                number = number // 2
            else:
                number = 3 * number + 1
            total = total + 1
    y = x
    while y.sum() < 10:
        y = y * 1.1 + 1e-3
    return y, total, (numbers * 3 + 1) // 2


# ---------------------------------------------------------------------------- programs that the package does not handle
BUGS = Programs()


@BUGS.add((a(1, 2),), (a(0, 0, 0),), (a(8, -2),), (a(9, 9),), cond=2)
def rows_of_a_mask(x):
    """Raises ShapeError: the shapes of a branch that is not taken are checked, in an explicit cond, too."""
    rows = nd.contrib.boolean_mask(x, x > 0)
    return x * 2 if x.max() > 0 and rows[0] > 4 else x - 1


@program((a(3, 1, 2, 9, 2),), (a(0, 2, 5),), (a(2, 3, 4, 1, 2, 3),), cond=2, while_=1)
def conditional_append(x):
    words, count = [nd.zeros((1,))], 0
    for v in x:
        if v > 4:
            break
        if v > 1:
            words.append(v * 2)
        count += 1
    return nd.concat(*words, dim=0), len(words) * nd.ones((1,)), count * nd.ones((1,))


@program((a(3, 1, float("nan"), 9, 2),), (a(float("nan"), 2, 5),), (a(2, 3, 4, 1, 2, 3),), foreach=2, cond=3)
def largest_and_smallest(x):
    """max() and min() keep the earlier item unless a later one compares greater, also for NaN."""
    if x[0] > 2:
        x = x * 2
    return max(x), min(x)
