"""Random chains of elementwise operators that must give the same bits as machine code and in the interpreter.

HYBRIDNET_JIT=now PYTHONPATH=python:tests/python python -m plan.chain_programs --programs 200
"""

from __future__ import annotations

import argparse
import random
from typing import Any

import hybridnet as mx
import numpy as np
from control_flow.native_programs import BINARY, DTYPES, OF_INTEGERS, UNARY

SHAPES = ((70, 90), (70, 90), (70, 90), (90,), (70, 1), (1,), (1, 1))  # 6,300 elements: full tiles and a partial one
LARGE = (2100, 2100)  # results are written past the caches


class Chain(mx.gluon.HybridBlock):
    """Elementwise operators over broadcast arrays of one dtype; the seed determines the operators."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        draw = random.Random(seed)
        self.seed = seed
        self.dtype = draw.choice((*DTYPES, "float32", "float16"))
        self.whole = LARGE if seed % 20 == 0 else SHAPES[0]
        self.shapes = [self.whole, *(draw.choice(SHAPES) for _ in range(draw.randint(0, 3)) if self.whole != LARGE)]

    def inputs(self) -> list[Any]:
        rng = np.random.default_rng(self.seed)
        arrays = [rng.normal(size=shape) * (1 if "float" in self.dtype else 4) for shape in self.shapes]
        if "float" in self.dtype:
            arrays[0].flat[:7] = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-40, 3e38]
        with np.errstate(over="ignore"):
            return [mx.nd.array(array.astype(self.dtype), dtype=self.dtype) for array in arrays]

    def value(self, F: Any, draw: random.Random, values: list[Any]) -> Any:
        floats = "float" in self.dtype
        kind, one = draw.random(), draw.choice(values[-3:])
        if kind < 0.35:
            return getattr(F, draw.choice(UNARY if floats else OF_INTEGERS))(one)
        if kind < 0.65:
            number = draw.choice((0.5, 3.0, -2.0, 1e-3)) if floats else draw.choice((1, -2, 3))
            return draw.choice((lambda: one + number, lambda: one * number, lambda: number - one, lambda: one > number,
                                lambda: F.maximum(one, number), lambda: one == number))()  # fmt: skip
        return getattr(F, draw.choice(BINARY))(one, draw.choice(values))

    def hybrid_forward(self, F: Any, whole: Any, *others: Any) -> Any:
        draw = random.Random(self.seed + 1)
        # A result may reuse the memory of this value, because it has no other reader.
        values = [F.reverse(whole, axis=0), *others]
        if draw.random() < 0.3:
            values[0] = whole
        first = len(values)
        for _ in range(draw.randint(2, 14)):
            values.append(self.value(F, draw, values))
        # All values have the shape of the whole, so that all can be in one chain.
        results = draw.sample(values[first:], draw.randint(1, min(3, len(values) - first)))
        return [F.broadcast_add(values[0], result) if draw.random() < 0.5 else result for result in results]


def check(seed: int) -> bool:
    """Returns whether a chain ran as machine code; raises if its bits differ from the interpreter's."""
    chain = Chain(seed)
    inputs = chain.inputs()
    results = []
    native = False
    for exclude in ([], ["native_chains"]):
        chain.hybridize(exclude=exclude)
        results.append([value.asnumpy() for value in chain(*inputs)])
        text = chain.plan_text()
        native = native or "<machine code>" in text
        assert not exclude or "machine code" not in text
    for one, other in zip(*results, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        alike = (one == other) & (np.signbit(one) == np.signbit(other)) | (np.isnan(one) & np.isnan(other))
        assert alike.all(), (seed, chain.dtype, chain.shapes, one[~alike], other[~alike])
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
