"""Products by cuBLASLt against those of our own kernel: values, equal bits in each run, and times."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import hybridnet as mx
import numpy as np

from .by_library import check_samples, check_tf32, compare, microseconds
from .outcome import Options, Outcome

__all__ = ["check_products"]

GPU = mx.gpu(0)
# Differences relative to the largest magnitude: roundings of sums, and of a result in halves.
TOLERANCE = {"float32": 1e-5, "float64": 1e-13, "float16": 2e-3, "bfloat16": 2e-2}
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
    x = _operand(np.random.default_rng(2), (size, size), 0, "float32")
    check_tf32(lambda: _product(x, x, {}), outcome)
    check_samples("cuBLASLt", OPERATORS, outcome)
    outcome.line = "; ".join(f"{dtype} within {value:.2g}" for dtype, value in worst.items())
    if not options.stand_in:
        outcome.rows["us by our kernel, by cuBLASLt"] = times = _times()
        ours, theirs = times["float32 of 1024"]
        outcome.line += f"; float32 of 1024: {ours:.3g} us by our kernel, {theirs:.3g} us by cuBLASLt"
    return outcome


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
                product = functools.partial(_product, left, right, case)
                yield from compare("cuBLASLt", f"{dtype} {case} start {start}", product, TOLERANCE[dtype], outcome)


def _operand(random: np.random.Generator, shape: tuple[int, int], start: int, dtype: str) -> mx.nd.NDArray:
    rows, columns = shape
    whole = random.standard_normal((rows + start, columns))
    return mx.nd.array(whole, ctx=GPU, dtype=dtype)[start:]


def _product(left: mx.nd.NDArray, right: mx.nd.NDArray, case: dict[str, Any]) -> dict[str, np.ndarray]:
    return {"output": mx.nd.dot(left, right, **case).astype("float64").asnumpy()}


def _times() -> dict[str, tuple[float, float]]:
    found = {}
    for dtype in ("float32", "float16"):
        for size in (64, 128, 256, 512, 1024, 2048):
            x = mx.nd.ones((size, size), ctx=GPU, dtype=dtype)
            found[f"{dtype} of {size}"] = microseconds(lambda x=x: mx.nd.dot(x, x), 50 if size < 1000 else 10)
    return found
