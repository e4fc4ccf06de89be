"""Products by cuBLASLt against those of our own kernel: values, equal bits in each run, and times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import _core

from .outcome import Options, Outcome
from .speed import seconds_of

__all__ = ["check_products"]

GPU = mx.gpu(0)
NEVER = 1 << 62  # steps: no product is so large
# Differences relative to the largest magnitude: roundings of sums, and of a result in halves.
TOLERANCE = {"float32": 1e-5, "float64": 1e-13, "float16": 2e-3, "bfloat16": 2e-2}
TF32_TOLERANCE = 5e-3
OPERATORS = ("dot", "batch_dot", "FullyConnected", "_linalg_gemm", "_linalg_gemm2", "_npi_matmul")


def check_products(options: Options) -> Outcome:
    """Compares all dtypes, transpositions and alignments; the times on both sides are figures."""
    outcome = Outcome()
    library = mx.runtime.gpu_libraries()["cuBLASLt"]
    if not library[:1].isdigit():
        outcome.skipped = f"cuBLASLt: {library}"
        return outcome
    outcome.rows["library"] = library
    size = options.size(300, 20)
    worst = {dtype: max(_differences(dtype, size, outcome)) for dtype in TOLERANCE}
    outcome.rows["largest difference"] = {dtype: float(f"{value:.3g}") for dtype, value in worst.items()}
    _check_tf32(size, outcome)
    _check_samples(outcome)
    outcome.line = "; ".join(f"{dtype} within {value:.2g}" for dtype, value in worst.items())
    if not options.stand_in:
        outcome.rows["us by our kernel, by cuBLASLt"] = times = _times()
        ours, theirs = times["float32 of 1024"]
        outcome.line += f"; float32 of 1024: {ours:.3g} us by our kernel, {theirs:.3g} us by cuBLASLt"
    return outcome


@contextmanager
def _least_steps(steps: int) -> Iterator[None]:
    """Products of at least so many steps go to the library."""
    before = _core.set_least_library_steps(steps)
    try:
        yield
    finally:
        _core.set_least_library_steps(before)


def _differences(dtype: str, size: int, outcome: Outcome) -> Iterator[float]:
    random = np.random.default_rng(1)
    for transpose_a in (False, True):
        for transpose_b in (False, True):
            for start in (0, 1):  # an array, and a view at an odd address
                a, b = ((size, size + 5), (size + 5, size - 3))
                case = {"transpose_a": transpose_a, "transpose_b": transpose_b}
                left, right = (
                    _operand(random, (shape[1], shape[0]) if transposed else shape, start, dtype)
                    for shape, transposed in ((a, transpose_a), (b, transpose_b))
                )
                with _least_steps(0):
                    first, second = _product(left, right, case), _product(left, right, case)
                with _least_steps(NEVER):
                    expected = _product(left, right, case)
                name = f"{dtype} {case} start {start}"
                outcome.expect(first.tobytes() == second.tobytes(), f"a second run gives other bits: {name}")
                difference = _difference(first, expected)
                outcome.expect(difference <= TOLERANCE[dtype], f"cuBLASLt differs by {difference:.3g}: {name}")
                yield difference


def _operand(random: np.random.Generator, shape: tuple[int, int], start: int, dtype: str) -> mx.nd.NDArray:
    rows, columns = shape
    whole = random.standard_normal((rows + start, columns))
    return mx.nd.array(whole, ctx=GPU, dtype=dtype)[start:]


def _product(left: mx.nd.NDArray, right: mx.nd.NDArray, case: dict[str, Any]) -> np.ndarray:
    return mx.nd.dot(left, right, **case).astype("float64").asnumpy()


def _difference(found: np.ndarray, expected: np.ndarray) -> float:
    if not np.isfinite(found).all():
        return float("inf")
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def _check_tf32(size: int, outcome: Outcome) -> None:
    x = _operand(np.random.default_rng(2), (size, size), 0, "float32")
    with _least_steps(NEVER):
        expected = _product(x, x, {})
    before = mx.cuda.allow_tf32(True)
    try:
        with _least_steps(0):
            difference = _difference(_product(x, x, {}), expected)
    finally:
        mx.cuda.allow_tf32(before)
    outcome.rows["largest difference"]["TF32"] = float(f"{difference:.3g}")
    outcome.expect(difference <= TF32_TOLERANCE, f"TF32 differs by {difference:.3g}")


def _check_samples(outcome: Outcome) -> None:
    """Values and gradients of operators against the CPU, with all of their products by the library."""
    from .sample_worker import run_job

    with _least_steps(0):
        for name in OPERATORS:
            answer = run_job(name, "float32")
            outcome.expect(answer["kind"] != "WRONG", f"{name} by cuBLASLt: {answer['note']}")


def _times() -> dict[str, tuple[float, float]]:
    """Microseconds of a product on both sides: where they cross is where the library pays."""
    found = {}
    for dtype in ("float32", "float16"):
        for size in (64, 128, 256, 512, 1024, 2048):
            x = mx.nd.ones((size, size), ctx=GPU, dtype=dtype)
            pair = []
            for steps in (NEVER, 0):
                with _least_steps(steps):
                    seconds = seconds_of(lambda x=x: mx.nd.dot(x, x), 50 if size < 1000 else 10, 3)
                pair.append(float(f"{seconds * 1e6:.4g}"))
            found[f"{dtype} of {size}"] = (pair[0], pair[1])
    return found
