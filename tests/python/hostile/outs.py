"""Calls operators with unusual ``out=`` arrays: ``python -m hostile.outs [--minutes 30] [--seed 0]``.

Every case is a sample of the registry whose results go into arrays of random shapes, dtypes, storages and places:
views beside, over and partly over inputs and each other, foreign memory, too many and too few. A case is right if the
call gives the values of the call without ``out=``, or an error of the library, and no memory around the arrays changes.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import _core

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops"))

from sweep import OPS, Use, numpy_dtype

DTYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "bool")
MARGIN = 16  # elements before and behind every array
FITTING = ("fits", "view", "foreign")  # the call must succeed
KINDS = (*FITTING, "over an input", "partly over an input", "over a result", "shape", "dtype", "sparse")


@cache
def function(op: str) -> Any:
    return _core.op_function(op, op, "hybridnet.ndarray", symbolic=False)


@cache
def uses() -> list[Use]:
    # `_lazy` operators expect the row indices of a sparse array, without duplicates; their samples have some.
    names = sorted(name for name in OPS if not name.startswith("_lazy_"))
    return [Use(name, index) for name in names for index in range(len(OPS[name]["samples"]))]


def run(use: Use, arrays: list[Any], **kwargs: Any) -> list[Any]:
    if use.described["variadic"]:
        out = function(use.op)(*arrays, **use.attrs, **kwargs)
    else:
        out = function(use.op)(**dict(zip(use.use["inputs"], arrays, strict=True)), **use.attrs, **kwargs)
    return list(out) if isinstance(out, (list, tuple)) else [out]


def shaped(view: Any, shape: tuple[int, ...]) -> Any:
    """Reshapes without the special meaning of sizes below 1 in ``reshape``."""
    return _core.reshaped(view, shape)


class Room:
    """An array in memory with a margin on both sides whose bytes must not change."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, values: np.ndarray | None = None, foreign: bool = False):
        self.size = int(np.prod(shape, dtype=np.int64))
        content = np.zeros(self.size + 2 * MARGIN, np.uint8).astype(dtype)
        content[:MARGIN] = content[-MARGIN:] = 1
        content[MARGIN:-MARGIN] = 1 if values is None else values.reshape(-1)
        self.kept = content if foreign else None
        self.base = mx.nd.from_numpy(content) if foreign else mx.nd.array(content, dtype=content.dtype)
        self.shape = shape
        self.array = self.at(0)

    def at(self, shift: int) -> Any:
        return shaped(self.base[MARGIN + shift : MARGIN + shift + self.size], self.shape)

    def is_whole(self, low: int = 0, high: int = 0) -> bool:
        """True if the margins are unchanged, except for `low` and `high` elements next to the array."""
        content = self.base.asnumpy()
        before, behind = content[: MARGIN + min(low, 0)], content[MARGIN + self.size + max(high, 0) :]
        return bool((before == 1).all() and (behind == 1).all())


@dataclass
class Case:
    """A drawn case and its outcome."""

    use: Use
    dtype: str
    kinds: list[str] = field(default_factory=list)
    outcome: str = ""

    def __str__(self) -> str:
        return f"{self.use} {self.dtype} out={self.kinds}: {self.outcome}"


def same(got: Any, wanted: Any) -> bool:
    return got.shape == wanted.shape and got.asnumpy().tobytes() == wanted.asnumpy().tobytes()


def close(got: Any, wanted: Any) -> bool:
    """Compares results that were cast, or whose last bits depend on their position in memory."""
    a, b = (x.asnumpy().astype(np.float64) for x in (got, wanted))
    return a.shape == b.shape and np.allclose(a, b, rtol=2e-2, atol=1e-3, equal_nan=True)


class Attack:
    """Runs one case: the same call with and without ``out=``."""

    def __init__(self, draw: random.Random, use: Use) -> None:
        self.draw = draw
        self.case = Case(use, draw.choice(use.described["dtypes"] or ["float32"]))
        self.rooms: list[Room] = []

    def has_values(self) -> bool:
        try:
            self.case.use.inputs(self.case.dtype)
        except ValueError:
            return False
        return self.case.use.runs_in(self.case.dtype)

    def make_inputs(self) -> list[Any]:
        values = self.case.use.inputs(self.case.dtype)
        self.rooms = [Room(value.shape, value.dtype, value) for value in values]
        return [room.array for room in self.rooms]

    def run(self) -> Case:
        case, seed = self.case, self.draw.randrange(1 << 30)
        mx.random.seed(seed)
        if not self.has_values():
            case.outcome = "no values of the dtype"
            return case
        try:
            plain = self.make_inputs()
            wanted = run(case.use, plain)
            mx.nd.waitall()
        except mx.MXNetError:
            case.outcome = "refused without out"
            return case
        after = [array.asnumpy() for array in plain]
        inputs = self.make_inputs()
        outs, rooms = self.draw_outs(inputs, wanted)
        mx.random.seed(seed)
        record = self.draw.random() < 0.2
        try:
            with mx.autograd.record(train_mode=False) if record else mx.autograd.pause():
                run(case.use, inputs, out=outs[0] if len(outs) == 1 and self.draw.random() < 0.5 else outs)
            mx.nd.waitall()
        except mx.MXNetError as error:
            case.outcome = self.judge_refusal(str(error))
            if not case.outcome:
                case.outcome = "refused" if self.margins_stay(rooms) else "WRITTEN BESIDE, then refused"
            return case
        case.outcome = self.judge(wanted, outs, rooms, after)
        return case

    # -- output arrays ----------------------------------------------------------------------------------------------

    def draw_outs(self, inputs: list[Any], wanted: list[Any]) -> tuple[list[Any], list[Room]]:
        count = len(wanted)
        if self.draw.random() < 0.1:
            count = self.draw.randint(1, len(wanted) + 2)
        fits = self.draw.random() < 0.3  # otherwise a wrong output next to it soon fails the call
        outs, rooms = [], []
        for index in range(count):
            like = wanted[min(index, len(wanted) - 1)]
            kind = self.draw.choice(FITTING if fits or (index and self.draw.random() < 0.5) else KINDS)
            kind = "missing" if index >= len(wanted) else kind
            out, room, kind = self.draw_out(kind, like, outs)
            self.case.kinds.append(kind)
            outs.append(out)
            rooms.append(room)
        return outs, rooms

    def draw_out(self, kind: str, like: Any, outs: list[Any]) -> tuple[Any, Room, str]:
        shape, dtype = like.shape, like.asnumpy().dtype
        if kind == "shape":
            changed = list(shape)
            if changed and self.draw.random() < 0.6:
                changed[self.draw.randrange(len(changed))] += self.draw.choice([-1, 1, 7])
            else:
                changed.insert(self.draw.randint(0, len(changed)), self.draw.choice([1, 2]))
            shape = tuple(max(size, 0) for size in changed)
        if kind == "dtype":
            dtype = numpy_dtype(self.draw.choice(DTYPES))
        if kind == "sparse":
            if len(shape) == 2 and dtype == np.float32:
                out = mx.nd.sparse.zeros(self.draw.choice(["csr", "row_sparse"]), shape)
                return out, Room((1,), np.float32), kind
            kind = "fits"
        if kind in ("over an input", "partly over an input"):
            fitting = [r for r in self.rooms if r.size >= like.size and r.base.dtype == like.dtype and like.size]
            if fitting:
                room = self.draw.choice(fitting)
                low = MARGIN + (self.draw.randint(-MARGIN, room.size) if kind != "over an input" else 0)
                low = min(low, room.size + 2 * MARGIN - like.size)
                return shaped(room.base[low : low + like.size], shape), room, kind
            kind = "fits"
        if kind == "over a result":
            before = [
                o for o in outs if o.size == like.size and o.dtype == like.dtype and o.stype == "default" and o.size
            ]
            if before:
                chosen = self.draw.choice(before)
                return self.draw.choice([chosen, chosen.reshape(shape)]), Room((1,), np.float32), kind
            kind = "fits"
        room = Room(shape, dtype, foreign=kind == "foreign")
        return (room.array if kind != "fits" else mx.nd.array(room.array.asnumpy(), dtype=dtype)), room, kind

    # -- judgment --------------------------------------------------------------------------------------------------

    def judge_refusal(self, message: str) -> str:
        fits = all(kind in FITTING for kind in self.case.kinds)
        return f"REFUSED what fits: {message.splitlines()[0]}" if fits else ""

    def margins_stay(self, rooms: list[Room]) -> bool:
        return all(room.is_whole() for room in [*self.rooms, *rooms])

    def judge(self, wanted: list[Any], outs: list[Any], rooms: list[Room], after: list[np.ndarray]) -> str:
        compare = close if self.is_inexact() else same
        draws = self.case.use.described["random"]  # another dtype draws other numbers
        for kind, out, value in zip(self.case.kinds, outs, wanted, strict=False):
            if draws and kind == "dtype":
                continue
            if kind == "shape" and out.shape != value.shape:
                return f"ACCEPTED {out.shape} for {value.shape}"
            given = out.tostype("default") if kind == "sparse" else out
            cast = value.astype(given.dtype)
            if kind == "sparse":
                cast = cast + 0  # zeros are not stored, nor their signs
            if given.shape != value.shape or not (close if given.dtype != value.dtype else compare)(given, cast):
                return f"OTHER VALUES of {kind}"
        if not all(room.is_whole() for room, kind in zip(rooms, self.case.kinds, strict=True) if "input" not in kind):
            return "WRITTEN BESIDE a result"
        over = [kind for kind in self.case.kinds if "input" in kind]
        for room, value in zip(self.rooms, after, strict=True):
            if not over and (not room.is_whole() or room.array.asnumpy().tobytes() != value.tobytes()):
                return "INPUT CHANGED"
        return "right"

    def is_inexact(self) -> bool:
        return self.case.use.described["dtypes"] != [] and self.case.dtype in (
            "float16",
            "bfloat16",
            "float32",
            "float64",
        )


def attack(seed: int, minutes: float, count: int | None = None) -> tuple[Counter, list[str]]:
    """Returns the counts of outcomes, and descriptions of the failures."""
    outcomes: Counter = Counter()
    found: list[str] = []
    end, number = time.monotonic() + 60 * minutes, 0
    while (time.monotonic() < end) if count is None else number < count:
        draw = random.Random(f"{seed} {number}")
        case = Attack(draw, draw.choice(uses())).run()
        outcomes[case.outcome if case.outcome[:4].islower() else "FOUND"] += 1
        if not case.outcome[:4].islower():
            found.append(f"{number}: {case}")
        number += 1
    return outcomes, found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hostile.outs", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--count", type=int, help="so many cases instead")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with mx.util.np_shape(True):
        outcomes, found = attack(options.seed, options.minutes, options.count)
    print(f"{sum(outcomes.values())} cases: {dict(outcomes)}")
    print("\n".join(found[:50]))
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main())
