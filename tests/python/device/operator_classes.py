"""How near gpu(0) is to the CPU, for every public operator: all its samples, in a process of its own."""

from __future__ import annotations

import multiprocessing
import pathlib
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "tools"))

import hybridnet as mx
import numpy as np
import operator_sweep
from gpu_check.compare import Difference, compare
from operator_sweep import OPS, Run

MOST_ULPS = 4  # docs/gpu.md: functions; more is the rounding of sums


@dataclass
class Measured:
    """runs: operator_sweep.kind_of(). differences: by dtype, of values and of gradients (None without gradients).

    texts: of the kernels that ran. library: a library can compute its products. fallbacks: warnings about operators in
    it that ran on the CPU.
    """

    name: str
    runs: str
    differences: dict[str, tuple[dict | None, dict | None]] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    library: bool = False
    fallbacks: list[str] = field(default_factory=list)


def public_names() -> list[str]:
    """The operators that users can call."""
    return sorted(name for name, op in OPS.items() if not op["internal"])


def _worst(pairs: Iterator[tuple[np.ndarray, np.ndarray]]) -> Difference:
    worst = Difference()
    for got, want in pairs:
        found = compare(got, want)
        if found.kind == "exact" and got.tobytes() != want.tobytes():
            found = Difference("exact", 0.0, 0, "signs of zeros, or NaN")
        worst = max(worst, found, key=lambda each: (each.ulps < 0, each.ulps > MOST_ULPS, each.relative, each.ulps))
    return worst


def _values(name: str, uses: list, dtype: str) -> Difference:
    modes = (False, True) if OPS[name]["train_sensitive"] else (False,)
    return _worst(
        pair
        for use in uses
        for train in modes
        for pair in zip(Run(use, mx.gpu(0), dtype).values(train), Run(use, mx.cpu(), dtype).values(train), strict=True)
    )


def _gradients(name: str, uses: list, dtype: str) -> Difference | None:
    uses = [use for use in uses if operator_sweep.has_gradient(use, dtype)]
    if not uses:
        return None
    return _worst(
        pair
        for use in uses
        for pair in zip(Run(use, mx.gpu(0), dtype).gradients(), Run(use, mx.cpu(), dtype).gradients(), strict=True)
    )


def _uses_a_library(uses_by_dtype: dict[str, list]) -> bool:
    """Runs the samples with a library for products of every size."""
    import stand_in

    before = mx._core.set_least_library_steps(0)
    products = stand_in.counters()["products"]
    for dtype, uses in uses_by_dtype.items():
        for use in uses:
            Run(use, mx.gpu(0), dtype).values(True)
            if operator_sweep.has_gradient(use, dtype):
                Run(use, mx.gpu(0), dtype).gradients()
    mx._core.set_least_library_steps(before)
    return stand_in.counters()["products"] > products


def measure(name: str) -> dict[str, Any]:
    """The Measured of an operator as a dictionary. Its samples run in this process, in which no other operator did."""
    found = Measured(name, operator_sweep.kind_of(name))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        uses = operator_sweep.uses_by_dtype(name)
        for dtype, samples in uses.items():
            values, gradients = _values(name, samples, dtype), _gradients(name, samples, dtype)
            found.differences[dtype] = (asdict(values), gradients and asdict(gradients))
    found.texts = sorted(mx._core.used_kernel_texts())
    found.fallbacks = sorted({str(each.message) for each in said if each.category.__name__ == "GpuFallbackWarning"})
    found.library = _uses_a_library(uses)
    return asdict(found)


def measure_all(names: list[str], processes: int) -> Iterator[dict[str, Any]]:
    """Measures operators, in a new process each, so that its kernels are those of the operator."""
    with multiprocessing.get_context("fork").Pool(processes, maxtasksperchild=1) as pool:
        yield from pool.imap(measure, names, chunksize=1)
