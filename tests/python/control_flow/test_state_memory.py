"""Memory of states: a loop passes unchanged states on by pointer, and reuses the memory of initial values with no other
reader."""

from __future__ import annotations

import random
import re

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, nd
from hybridnet.contrib import foreach, scan, while_loop

from .blocks import Block, flat, gradients, operators

WIDTH = 1000
STATE = 4 * WIDTH
SMALL = 512  # bytes of counters and conditions


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def run(function, arrays, train=False):
    """Returns the results (in training also the gradients) of a hybridized function of arrays, and the block."""
    block = Block(function)
    block.hybridize()
    given = [nd.array(a) for a in arrays]
    if not train:
        results = flat(block(*given))
    else:
        for a in given:
            a.attach_grad()
        with autograd.record():
            results = flat(block(*given))
        autograd.backward(results)
        results = results + [a.grad for a in given]
    values = [a.asnumpy() for a in results]
    for a, before in zip(given, arrays, strict=True):
        np.testing.assert_array_equal(a.asnumpy(), before)
    return values, block


def arenas(block) -> list[int]:
    return [int(size) for size in re.findall(r"arena (\d+) bytes", block._cached_op.summary())]


def copies_in_bodies(block) -> int:
    """Counts the copy instructions in loop bodies of all plans of the block."""
    return len(re.findall(r"^ {8,}\[\d+\] copy ", block._cached_op.plan_text(), re.MULTILINE))


# ------------------------------------------------------------------------------------------------------- by pointer
def tapped(taps, step):
    def function(x, h):
        return scan(step, x, {"initial": h, "taps": taps})

    return function


def by_hand(x, h, taps, step):
    history = list(h)
    for row in x:
        history.append(step(row, *[history[tap] for tap in taps]))
    return np.stack(history[len(h) :])


TAPPED = {
    "linear": ([-20], lambda r, a: r + 0.5 * a),
    "product": ([-20, -1], lambda r, a, b: r + 0.1 * a * b),
    "three": ([-7, -3, -2], lambda r, a, b, c: 0.3 * r * a + 0.2 * b * c),
}


@pytest.mark.parametrize("steps", [1, 2, 7, 20, 21, 50])
@pytest.mark.parametrize("name", TAPPED)
@pytest.mark.parametrize("rows", ["all", "last"])
def test_taps_read_earlier_rows_without_a_copy(name, steps, rows):
    taps, step = TAPPED[name]
    x, h = normal(steps, WIDTH, seed=1), normal(-min(taps), WIDTH, seed=2)
    function = tapped(taps, step) if rows == "all" else lambda *a: tapped(taps, step)(*a)[-1]
    want = by_hand(x, h, taps, step)
    (got,), block = run(function, [x, h])
    np.testing.assert_allclose(got.reshape(-1, WIDTH), want if rows == "all" else want[-1:], rtol=1e-4, atol=1e-5)
    assert copies_in_bodies(block) == 0


@pytest.mark.parametrize("steps", [2, 7, 25])
@pytest.mark.parametrize("name", TAPPED)
def test_taps_pass_without_a_copy_in_training(name, steps):
    """A body copies only rows that the gradient reads by older taps, because the loop keeps these."""
    taps, step = TAPPED[name]
    x, h = normal(steps, WIDTH, seed=1), normal(-min(taps), WIDTH, seed=2)
    _, block = run(tapped(taps, step), [x, h], train=True)
    assert copies_in_bodies(block) <= {"linear": 0, "product": 0, "three": 2}[name]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", TAPPED)
def test_gradients_through_taps_are_those_of_the_loop_on_arrays(name, order):
    taps, step = TAPPED[name]
    arrays = normal(9, 3, seed=1), normal(-min(taps), 3, seed=2)
    got, _ = gradients(tapped(taps, step), arrays, order)
    want = on_arrays(tapped(taps, step), arrays, order)
    for one, two in zip(got, want, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)


def on_arrays(function, arrays, order):
    given = [nd.array(a, dtype="float64") for a in arrays]
    for a in given:
        a.attach_grad()
    with autograd.record():
        loss = (function(*given) ** 2).sum()
        if order == 2:
            loss = sum((g * g).sum() for g in autograd.grad(loss, given, create_graph=True, retain_graph=True))
    loss.backward()
    return [loss.asnumpy()] + [a.grad.asnumpy() for a in given]


def test_a_state_that_is_the_row_before_or_a_captured_value_is_not_copied():
    def function(x, h):
        def step(row, states):
            before, fixed, last = states
            return before + last, (row, h, (row * fixed).sort())

        return foreach(step, x, [h, h * 2, h * 3])

    x, h = normal(5, WIDTH, seed=1), normal(WIDTH, seed=2)
    got, block = run(function, [x, h])
    before, fixed, last, outs = h, 2 * h, 3 * h, []
    for row in x:
        outs.append(before + last)
        before, fixed, last = row, h, np.sort(row * fixed)
    for one, two in zip(got, [np.stack(outs), before, fixed, last], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)
    assert copies_in_bodies(block) == 0


def test_a_state_of_another_dtype_is_converted():
    def function(x):
        F = operators(x)
        first = F.Cast(x[0], dtype="int32")
        return foreach(lambda row, s: (s[1], [F.Cast(row, dtype="int32"), s[0]]), x, [first, first])[0]

    x = np.arange(12, dtype="float32").reshape(4, 3)
    np.testing.assert_array_equal(run(function, [x])[0][0], x[[0, 0, 0, 1]])


class RandomStates:
    """A random loop: the next value of a state is a previous state, a row, a captured value, or a computed value."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.kind = draw.choice(("foreach", "reverse", "while", "nested"))
        self.trips = draw.choice((0, 1, 1, 2, 3, 4, 5, 8))
        count = draw.randint(1, 6)
        self.next = [draw.choice(("state", "state", "state", "made", "made", "row", "fixed")) for _ in range(count)]
        self.source = [draw.randrange(count) for _ in range(count)]
        self.made = [(draw.randrange(count), draw.randrange(count)) for _ in range(count)]
        if draw.random() < 0.4:  # a chain of taps, or a cycle
            self.next, self.source = ["state"] * count, [(i + 1) % count for i in range(count)]
            self.next[-1] = draw.choice(("made", "state"))
        if draw.random() < 0.3 and count > 1:  # two states with one next value
            self.next[0] = self.next[-1] = "made"
            self.made[0] = self.made[-1]
        self.first = [draw.choice(("made", "made", "made", "input", "twice")) for _ in range(count)]
        self.outs = [draw.choice(("state", "made")) for _ in range(draw.randint(0, 2))]
        self.out_of = [draw.randrange(count) for _ in self.outs]
        self.read_later = [draw.random() < 0.2 for _ in range(count)]

    def firsts(self, h, sort):
        twice = sort(h * 5)
        first = {"made": lambda i: sort(h * (i + 2)), "input": lambda i: h, "twice": lambda i: twice}
        return [first[kind](i) for i, kind in enumerate(self.first)]

    def made_value(self, i, row, states, sort):
        a, b = self.made[i]
        return sort(states[a] * 0.5 + states[b] * 0.25 + row)

    def step(self, row, fixed, states, sort):
        value = {
            "state": lambda i: states[self.source[i]],
            "made": lambda i: self.made_value(i, row, states, sort),
            "row": lambda i: row,
            "fixed": lambda i: fixed,
        }
        outs = [states[i] if kind == "state" else self.made_value(i, row, states, sort)
                for kind, i in zip(self.outs, self.out_of, strict=True)]  # fmt: skip
        return outs, [value[kind](i) for i, kind in enumerate(self.next)]

    def function(self, x, h):
        def sort(v):
            return v.sort()

        def body(row, states):
            return self.step(row, h, list(states), sort)

        firsts = self.firsts(h, sort)
        if self.kind == "nested":
            finals = foreach(lambda row, s: ([], foreach(body, x, list(s))[1]), x[:2], firsts)[1]
            outs = []
        elif self.kind == "while":
            outs, finals = while_loop(
                lambda i, *s: i < self.trips,
                lambda i, *s: (lambda o, n: (o, [i + 1, *n]))(*body(x[0], s)),
                [operators(h).zeros((1,)), *firsts], 10,
            )  # fmt: skip
            outs, finals = [out[:1] for out in flat(outs)], finals[1:]
        else:
            outs, finals = foreach(body, x, firsts, reverse=self.kind == "reverse")
        later = [first + 1 for first, read in zip(firsts, self.read_later, strict=True) if read]
        return [*flat(outs), *flat(finals), *later]

    def plain(self, x, h):
        firsts = self.firsts(h, np.sort)
        states, outs = list(firsts), []
        rows = x[::-1] if self.kind == "reverse" else np.stack([x[0]] * self.trips) if self.trips else x[:0]
        if self.kind in ("foreach", "nested"):
            rows = np.concatenate([x, x]) if self.kind == "nested" else x
        for row in rows:
            out, states = self.step(row, h, states, np.sort)
            outs.append(out)
        stacked = [np.stack(one) for one in zip(*outs, strict=True)]
        if self.kind == "reverse":
            stacked = [one[::-1] for one in stacked]
        if self.kind == "while":
            zeros = [np.zeros((1, *h.shape), "float32") for _ in self.outs]
            stacked = [one[:1] for one in stacked] if self.trips else zeros
        if self.kind == "nested":
            stacked = []
        later = [first + 1 for first, read in zip(firsts, self.read_later, strict=True) if read]
        return [*stacked, *states, *later]


@pytest.mark.parametrize("start", range(0, 400, 50))
def test_states_in_any_order_have_the_values_of_plain_python(start):
    for seed in range(start, start + 50):
        program = RandomStates(seed)
        rows = max(program.trips, 1) if program.kind == "while" else max(program.trips, 2)
        x, h = normal(rows, 70, seed=seed), normal(70, seed=seed + 1)
        got, _ = run(program.function, [x, h])
        for one, two in zip(got, program.plain(x, h), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5, err_msg=f"program {seed}")


@pytest.mark.parametrize("start", range(0, 100, 25))
def test_states_in_any_order_have_the_gradients_of_the_loop_on_arrays(start):
    for seed in range(start, start + 25):
        program = RandomStates(seed)
        rows = max(program.trips, 1) if program.kind == "while" else max(program.trips, 2)
        arrays = normal(rows, 7, seed=seed), normal(7, seed=seed + 1)

        def function(x, h, program=program):
            results = program.function(x, h)
            return sum((result * result).sum() for result in results)

        want = on_arrays(function, arrays, 1)
        for one, two in zip(gradients(function, arrays)[0], want, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-11, err_msg=f"program {seed}")


# -------------------------------------------------------------------------------------------------- first states
def first(h):
    return (h * 2).sort()


def loop_of(kind, x, start):
    """Runs five steps with one state and returns its last value."""
    if kind == "foreach":
        return foreach(lambda row, s: ([], (row * 0.1 + s).sort()), x, start)[1]
    if kind == "scan":
        return scan(lambda row, s: (row * 0.1 + s).sort(), x, start)[-1]
    return while_loop(
        lambda i, s: i < 5, lambda i, s: ([], (i + 1, (x[0] * 0.1 + s).sort())), (start[:1] * 0, start), 5
    )[1][1]


def plain_loop(kind, x, start):
    for row in x if kind != "while_loop" else [x[0]] * 5:
        start = np.sort(row * np.float32(0.1) + start)
    return start


KINDS = pytest.mark.parametrize("kind", ["foreach", "scan", "while_loop"])
X, H = normal(5, WIDTH, seed=1), normal(WIDTH, seed=2)


@KINDS
@pytest.mark.parametrize("behind", [False, True])
def test_a_loop_takes_over_the_memory_of_a_first_state_that_dies_there(kind, behind):
    def function(x, h):
        last = loop_of(kind, x, first(h))
        return last.sort(is_ascend=False) if behind else last

    (got,), block = run(function, [X, H])
    want = plain_loop(kind, X, np.sort(2 * H))
    np.testing.assert_allclose(got, want[::-1] if behind else want, rtol=1e-5, atol=1e-6)
    (arena,) = arenas(block)
    assert arena <= (2 if kind == "while_loop" else 1) * STATE + (STATE if behind else 0) + SMALL


@pytest.mark.parametrize("kind", ["foreach", "while_loop"])
def test_a_loop_takes_over_the_memory_of_a_first_state_in_training(kind):
    def last(x, h):
        def step(s):
            return s + x[0]

        if kind == "foreach":
            return foreach(lambda row, s: ([], (row * 0.1 + s).sort()), x, first(h))[1]
        counter = h[:1] * 0
        return while_loop(lambda i, s: i < 5, lambda i, s: ([], (i + 1, step(s).sort())), (counter, first(h)), 5)[1][1]

    (got, *grads), block = run(last, [X, H], train=True)
    want = [v.asnumpy() for v in imperative(last)]
    for one, two in zip([got, *grads], want, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-5)
    forward = arenas(block)[0]
    assert forward <= (2 if kind == "while_loop" else 1) * STATE + SMALL


def imperative(function):
    given = [nd.array(a) for a in (X, H)]
    for a in given:
        a.attach_grad()
    with autograd.record():
        out = function(*given)
    out.backward()
    return [out, *[a.grad for a in given]]


@KINDS
def test_a_loop_within_a_loop_takes_over_the_memory_of_a_first_state_of_the_body(kind):
    def function(x, h):
        return foreach(lambda row, s: ([], loop_of(kind, x, (row + s).sort())), x, h)[1]

    (got,), block = run(function, [X, H])
    want = H
    for row in X:
        want = plain_loop(kind, X, np.sort(row + want))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    # The outer state may lie in the result alone: the arena of the whole graph is then empty, and has another unit.
    bodies = re.findall(r"instructions?, arena ([\d.]+) KiB", block._cached_op.plan_text())[-2:]
    assert len(bodies) == 2
    assert max(float(size) for size in bodies) * 1024 <= STATE + SMALL


def read_again(kind, x, h):
    start = first(h)
    return [loop_of(kind, x, start), start + 1]


def returned(kind, x, h):
    start = first(h)
    return [loop_of(kind, x, start), start]


def view_read_again(kind, x, h):
    start = first(h)
    return [loop_of(kind, x, start.reshape((2, -1)).reshape((-1,))), start.reshape((4, -1)) + 1]


def captured(kind, x, h):
    start = first(h)
    row = x + start.reshape((1, -1))
    return [loop_of(kind, row, start), start * 3]


def two_states(kind, x, h):
    start = first(h)
    if kind == "while_loop":
        finals = while_loop(
            lambda i, s, t: i < 5, lambda i, s, t: ([], (i + 1, (x[0] * 0.1 + s).sort(), (t * s).sort())),
            (start[:1] * 0, start, start), 5,
        )[1][1:]  # fmt: skip
    else:
        finals = foreach(lambda row, s: ([], [(row * 0.1 + s[0]).sort(), (s[1] * s[0]).sort()]), x, [start, start])[1]
    return list(finals)


def state_and_value(kind, x, h):
    start = first(h)
    return [foreach(lambda row, s: ([], (row * start + s).sort()), x, start)[1]]


def two_loops(kind, x, h):
    start = first(h)
    return [loop_of(kind, x, start), loop_of(kind, x + 1, start)]


ALIASES = [read_again, returned, view_read_again, captured, two_states, state_and_value, two_loops]


@KINDS
@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("program", ALIASES, ids=lambda program: program.__name__)
def test_a_first_state_that_anything_else_reads_stays(kind, program, train):
    def function(x, h):
        return program(kind, x, h)

    got, block = run(function, [X, H], train)
    given = [nd.array(a) for a in (X, H)]
    if train:
        for a in given:
            a.attach_grad()
        with autograd.record():
            results = function(*given)
        autograd.backward(results)
        results = results + [a.grad for a in given]
    else:
        results = function(*given)
    for one, two in zip(got, results, strict=True):
        np.testing.assert_allclose(one, two.asnumpy(), rtol=1e-4, atol=1e-4)
    again = [a.asnumpy() for a in flat(block(*[nd.array(a) for a in (X, H)]))]
    for one, two in zip(again, got, strict=False):
        np.testing.assert_allclose(one, two, rtol=1e-6)


@KINDS
def test_inputs_constants_and_parameters_that_are_first_states_stay(kind):
    class Starts(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.start = self.params.get("start", shape=(WIDTH,), init="ones")

        def forward(self, x, h):
            fixed = operators(x).ones((WIDTH,)) * 3
            return [loop_of(kind, x, start) for start in (h, fixed, self.start.data())]

    block = Starts()
    block.initialize()
    block.hybridize()
    x, h = nd.array(X), nd.array(H)
    ones = np.ones(WIDTH, "float32")
    want = [plain_loop(kind, X, start) for start in (H, 3 * ones, ones)]
    for _ in range(3):
        for one, two in zip(block(x, h), want, strict=True):
            np.testing.assert_allclose(one.asnumpy(), two, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(h.asnumpy(), H)
        np.testing.assert_array_equal(block.start.data().asnumpy(), ones)


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5])
def test_donated_first_states_give_the_values_of_states_that_stay(steps):
    x, h, g = (mx.sym.var(name, shape=shape) for name, shape in (("x", (steps, 50)), ("h", (50,)), ("g", (50,))))
    _, (a, b) = mx.sym.contrib.foreach(lambda row, s: ([], [s[1], (s[0] + row).sort()]), x, [h, g])
    given = [normal(steps, 50, seed=3), normal(50, seed=4), normal(50, seed=5)]
    plain = mx.function([x, h, g], [a, b])
    donating = mx.function([x, mx.In(h, donate=True), mx.In(g, donate=True)], [a, b])
    want = [v.asnumpy() for v in plain(*[nd.array(v) for v in given])]
    for _ in range(2):
        for one, two in zip(donating(*[nd.array(v) for v in given]), want, strict=True):
            np.testing.assert_array_equal(one.asnumpy(), two)


def test_a_loop_that_fails_leaves_the_parameter_that_its_state_begins_with():
    class Fails(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            if in_data[0].asnumpy()[0] > 3:
                raise ValueError("too large")
            self.assign(out_data[0], req[0], in_data[0] + 1)

    @mx.operator.register("fails_above_three")
    class FailsProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Fails()

    class Counts(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.count = self.params.get("count", shape=(50,), init="zeros", grad_req="null")

        def forward(self, x):
            def step(row):
                F = operators(row)
                return row, {self.count: F.Custom(self.count.data(), op_type="fails_above_three")}

            return scan(step, x)

    block = Counts()
    block.initialize()
    block.hybridize()
    block(nd.ones((3, 2))).wait_to_read()
    assert set(block.count.data().asnumpy()) == {3}
    with pytest.raises(ValueError, match="too large"):
        block(nd.ones((3, 2))).wait_to_read()
    assert set(block.count.data().asnumpy()) == {3}
