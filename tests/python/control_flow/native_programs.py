"""Random small loops that must give the same bits as machine code and in the interpreter.

HYBRIDNET_JIT=now PYTHONPATH=python:tests/python python -m control_flow.native_programs --programs 200
"""

from __future__ import annotations

import argparse
import random
from typing import Any

import hybridnet as mx
import numpy as np

UNARY = ("negative", "abs", "relu", "square", "tanh", "exp", "sqrt", "floor", "sign", "sigmoid", "rint")
OF_INTEGERS = ("negative", "abs", "relu", "square", "sign")
BINARY = (
    "broadcast_add", "broadcast_sub", "broadcast_mul", "broadcast_div", "broadcast_maximum", "broadcast_minimum",
    "broadcast_lesser", "broadcast_greater_equal", "broadcast_equal", "broadcast_not_equal", "broadcast_logical_and",
    "broadcast_power", "broadcast_mod",
)  # fmt: skip
SHAPES = ((), (1,), (3,), (2, 3), (2, 1))
DTYPES = ("float32", "float64", "int32", "int64")


class Program(mx.gluon.HybridBlock):
    """A loop over a few states of one dtype; the seed determines its operations."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        draw = random.Random(seed)
        self.seed = seed
        self.dtype = draw.choice(DTYPES)
        self.shapes = [draw.choice(SHAPES) for _ in range(draw.randint(1, 3))]
        self.fixed = draw.choice(SHAPES)
        self.kind = draw.choice(("while", "foreach"))
        self.trips = draw.choice((0, 1, 2, 7, 33))

    def inputs(self) -> list[Any]:
        rng = np.random.default_rng(self.seed)
        shapes = [(self.trips, 3), self.fixed, *self.shapes]
        scale = 1 if self.dtype.startswith("f") else 4
        return [mx.nd.array(rng.normal(size=shape) * scale, dtype=self.dtype) for shape in shapes]

    def value(self, F: Any, draw: random.Random, values: list[Any]) -> Any:
        kind = draw.random()
        if kind < 0.35:
            names = UNARY if self.dtype.startswith("f") else OF_INTEGERS
            return getattr(F, draw.choice(names))(draw.choice(values))
        if kind < 0.65:
            number = draw.choice((0.5, 3.0, -2.0, 1e-3)) if self.dtype.startswith("f") else draw.choice((1, -2, 3))
            one = draw.choice(values)
            return draw.choice((lambda: one + number, lambda: one * number, lambda: number - one, lambda: one > number,
                                lambda: F.maximum(one, number), lambda: one == number))()  # fmt: skip
        return getattr(F, draw.choice(BINARY))(draw.choice(values), draw.choice(values))

    def step(self, F: Any, row: Any, fixed: Any, states: list[Any]) -> tuple[list[Any], list[Any]]:
        draw = random.Random(self.seed + 1)
        values = [value for value in (row, fixed, *states) if value is not None]
        for _ in range(draw.randint(1, 8)):
            values.append(self.value(F, draw, values))
        following = []
        for number, (state, shape) in enumerate(zip(states, self.shapes, strict=True)):
            kind = draw.random()
            if kind < 0.15:
                following.append(state)
            elif kind < 0.3 and self.shapes[number - 1] == shape:
                following.append(states[number - 1])
            else:
                change = draw.choice(values)
                axes = len(shape)
                if axes == 0 or shape == (1,):
                    change = F.sum(change).reshape(shape) if draw.random() < 0.1 else states[number - 1] * 0 + state
                    following.append(state + 1 if self.shapes[number - 1] != shape else change + 1)
                else:
                    following.append(F.broadcast_add(state, F.broadcast_minimum(state, state * 0 + 1)))
        return [values[-1]], following

    def hybrid_forward(self, F: Any, rows: Any, fixed: Any, *states: Any) -> Any:
        if self.kind == "foreach":
            outs, last = F.contrib.foreach(
                lambda row, states: self.step(F, row, fixed, states), rows, list(states), reverse=self.seed % 2 == 0
            )
            return [*outs, *last]
        count = F.zeros((1,), dtype=self.dtype)
        outs, last = F.contrib.while_loop(
            lambda count, *states: count < self.trips,
            lambda count, *states: (lambda made: (made[0], [count + 1, *made[1]]))(
                self.step(F, None, fixed, list(states))
            ),
            [count, *states], max_iterations=40,
        )  # fmt: skip
        return [*outs, *last]


def check(seed: int) -> bool:
    """Returns whether the program ran as machine code; raises if its bits differ from the interpreter's."""
    with mx.util.np_shape(True):
        program = Program(seed)
        inputs = program.inputs()
        results = []
        native = False
        for exclude in ([], ["native_loops"]):
            program.hybridize(exclude=exclude)
            results.append([value.asnumpy() for value in program(*inputs)])
            text = program.plan_text()
            native = native or "<machine code>" in text
            assert not exclude or "machine code" not in text
        for one, other in zip(*results, strict=True):
            assert one.dtype == other.dtype and one.shape == other.shape
            assert one.tobytes() == other.tobytes() or np.array_equal(one, other, equal_nan=True), (
                seed, program.dtype, program.kind, one, other,
            )  # fmt: skip
    return native


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--programs", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    native = sum(check(seed) for seed in range(args.first, args.first + args.programs))
    print(f"{args.programs} programs, {native} of them as machine code: the same bits")


if __name__ == "__main__":
    main()
