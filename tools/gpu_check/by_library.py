"""Parts of the checks of libraries: both sides of a computation, TF32, samples against the CPU, and times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import hybridnet as mx
import numpy as np
from hybridnet import _core

from .outcome import Outcome
from .speed import seconds_of

__all__ = ["NEVER", "check_samples", "check_tf32", "compare", "difference_of", "least_steps", "microseconds"]

NEVER = 1 << 62  # steps: nothing is so large
TF32_TOLERANCE = 5e-3
Results = Mapping[str, np.ndarray]  # arrays of float64 by name


@contextmanager
def least_steps(steps: int) -> Iterator[None]:
    """Products and convolutions of at least so many steps go to their library."""
    before = _core.set_least_library_steps(steps)
    try:
        yield
    finally:
        _core.set_least_library_steps(before)


def difference_of(found: np.ndarray, expected: np.ndarray) -> float:
    """Returns the largest difference, relative to the largest magnitude."""
    if not np.isfinite(found).all():
        return float("inf")
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def compare(
    library: str, name: str, compute: Callable[[], Results], tolerance: float, outcome: Outcome
) -> Iterator[float]:
    """Expects equal bits in two runs by the library, and our kernel's values; yields the differences."""
    with least_steps(0):
        first, second = compute(), compute()
    with least_steps(NEVER):
        expected = compute()
    for part, value in expected.items():
        where = f"{name}, {part}"
        outcome.expect(first[part].tobytes() == second[part].tobytes(), f"a second run gives other bits: {where}")
        difference = difference_of(first[part], value)
        outcome.expect(difference <= tolerance, f"{library} differs by {difference:.3g}: {where}")
        yield difference


def check_tf32(compute: Callable[[], Results], outcome: Outcome) -> None:
    """Compares float32 with TF32 by the library with our kernel."""
    with least_steps(NEVER):
        expected = compute()
    before = mx.cuda.allow_tf32(True)
    try:
        with least_steps(0):
            found = compute()
    finally:
        mx.cuda.allow_tf32(before)
    difference = max(difference_of(found[name], value) for name, value in expected.items())
    outcome.rows["largest difference"]["TF32"] = float(f"{difference:.3g}")
    outcome.expect(difference <= TF32_TOLERANCE, f"TF32 differs by {difference:.3g}")


def check_samples(library: str, operators: Iterable[str], outcome: Outcome) -> None:
    """Values and gradients of operators against the CPU, with all that the library computes of them by the library."""
    from .sample_worker import run_job

    with least_steps(0):
        for name in operators:
            answer = run_job(name, "float32")
            outcome.expect(answer["kind"] != "WRONG", f"{name} by {library}: {answer['note']}")


def microseconds(call: Callable[[], object], repeat: int) -> tuple[float, float]:
    """Returns the times of a call by our kernel and by the library: where they cross is where the library pays."""
    pair = []
    for steps in (NEVER, 0):
        with least_steps(steps):
            pair.append(float(f"{seconds_of(call, repeat, 3) * 1e6:.4g}"))
    return pair[0], pair[1]
