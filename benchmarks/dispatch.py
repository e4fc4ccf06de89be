"""The time of calls of mx.np compared with mx.nd; run by benchmarks/operators.py --dispatch.

Every function of mx.np and mx.npx that mx.nd also has is called with the sample inputs declared by its operator, in
turns with its counterpart: minima over the rounds, shown as np / nd.
"""

from __future__ import annotations

import ast
import dataclasses
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as onp
from run import unit

ROUND_SECONDS = 0.002
Call = Callable[..., Any]

# Functions of mx.np whose counterpart in mx.nd has another name, and keywords with another name.
TWINS = {"concatenate": "concat", "matmul": "dot", "absolute": "abs", "less": "lesser", "less_equal": "lesser_equal"}
KEYWORDS = {
    "concatenate": {"axis": "dim"}, "concat": {"axis": "dim"},
    "swapaxes": {"axis1": "dim1", "axis2": "dim2"}, "reshape": {"newshape": "shape"},
    "full": {"fill_value": "val"}, "flip": {"m": "data"},
}  # fmt: skip
# Keywords that np needs for the same operation.
EXPLICIT = {"take": {"axis": 0}}
# The reasons for calls that take a tenth longer than their counterparts.
REASONS = {
    "np.unravel_index": "two arrays, where mx.nd gives one",
}
COMPOSED = "what it stands for is looked up"
# Fields of operators that have another name in the public function.
PUBLIC = {"swapaxes": {"dim1": "axis1", "dim2": "axis2"}, "full": {"value": "fill_value"}}


def plain(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def described(*names: str | None) -> dict[str, Any] | None:
    """The description of the operator with the first name that exists, or None."""
    from hybridnet import _core, errors

    for name in filter(None, names):
        try:
            return _core.describe_op(name)
        except errors.HybridNetError:
            continue
    return None


@dataclasses.dataclass
class Pair:
    """A call of mx.np and the same call of mx.nd."""

    name: str
    twin: str
    np: Callable[[], Any]
    nd: Callable[[], Any]


def drawn(sample: dict[str, Any], make: Call) -> list[Any]:
    rng, low = onp.random.default_rng(0), max(sample["low"], 0.5)
    values = [rng.uniform(low, sample["high"], shape) for shape in sample["shapes"]]
    return [make((onp.round(v) if sample["integer_valued"] else v).astype("float32")) for v in values]


def called(function: Any, variadic: bool, inputs: list[Any], keywords: dict[str, Any]) -> Callable[[], Any]:
    if variadic:
        return lambda: function(inputs, **keywords)
    return lambda: function(*inputs, **keywords)


def pair_of(name: str, twin: str, ours: Any, theirs: Any, op: dict[str, Any]) -> Pair | str:
    """The calls for the first sample that both accept, or the reason why there is none."""
    import hybridnet as mx

    problem = "its operator has no sample"
    own = name.partition(".")[2]
    for sample in op["samples"]:
        keywords = {k: plain(v) for k, v in sample["attrs"].items() if k != op["count_param"]}
        public = {sys.intern(PUBLIC.get(own, {}).get(k, k)): v for k, v in keywords.items()}  # like names in programs
        public |= EXPLICIT.get(own, {})
        classic = {sys.intern(KEYWORDS.get(own, {}).get(k, k)): v for k, v in public.items()}
        try:
            pair = Pair(
                name,
                twin,
                called(ours, op["variadic"], drawn(sample, mx.np.array), public),
                called(theirs, op["variadic"], drawn(sample, mx.nd.array), classic),
            )
            pair.np(), pair.nd()
        except Exception as error:  # one of the two has another signature
            problem = str(error).partition("\n")[0]
        else:
            return pair
    return problem


def functions(space: Any) -> Iterator[tuple[str, Any]]:
    for name in sorted(dir(space)):
        function = getattr(space, name)
        if not name.startswith("_") and callable(function) and not isinstance(function, type):
            yield name, function


def pairs(only: str) -> Iterator[tuple[str, Pair | str]]:
    import hybridnet as mx

    def key(name: str) -> str:
        return name.lower().replace("_", "")

    exact = {name: (name, function) for name, function in functions(mx.nd)}
    classic = {key(name): found for name, found in reversed(exact.items())} | exact
    for prefix, space in (("np", mx.np), ("npx", mx.npx)):
        for name, function in functions(space):
            twin = classic.get(TWINS.get(name, name)) or classic.get(key(TWINS.get(name, name)))
            if twin is None or only not in f"{prefix}.{name}":
                continue
            own = [getattr(function, "op_name", None), *(f"{p}_{name}" for p in ("_npi", "_np", "_npx"))]
            op = described(*own, getattr(twin[1], "op_name", None))
            full = f"{prefix}.{name}"
            yield full, pair_of(full, twin[0], function, twin[1], op) if op else "no operator stands behind it"


def seconds(call: Callable[[], Any], repeat: int) -> float:
    start = time.perf_counter()
    for _ in range(repeat):
        call()
    return (time.perf_counter() - start) / repeat


def geometric_mean(values: list[float]) -> float | None:
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


def dispatch(only: str, rounds: int) -> list[str]:
    """One line per function that both have, the most expensive first; then the functions without a common call."""
    found, skipped = [], []
    for name, pair in pairs(only):
        if isinstance(pair, str):
            skipped.append(f"- {name}: {pair}")
            continue
        repeat = max(3, int(ROUND_SECONDS / max(seconds(pair.nd, 3), 1e-7)))
        turns = [(seconds(pair.np, repeat), seconds(pair.nd, repeat)) for _ in range(rounds)]
        ours, theirs = (min(turn[i] for turn in turns) for i in (0, 1))
        reason = REASONS.get(name, COMPOSED) if ours > 1.1 * theirs else ""
        cells = [name, pair.twin, unit(ours), unit(theirs), f"{ours / theirs:.2f}", reason]
        found.append((ours / theirs, f"| {' | '.join(cells)} |"))
    found.sort(key=lambda row: -row[0])
    mean = geometric_mean([value for value, _ in found])
    lines = [
        "| mx.np | mx.nd | np | nd | np / nd | why above 1.1 |",
        "|---|---|---|---|---|---|",
        *(line for _, line in found),
    ]
    lines += [f"| geometric mean of {len(found)} | | | | {mean or 0:.2f} | |", "", "Not called alike:", "", *skipped]
    print("\n".join(lines))
    return lines
