"""Rates of the device: copies, products, launches. Each figure is the median of several rounds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import hybridnet as mx
import numpy as np
from hybridnet.gluon import nn

from .outcome import Options, Outcome

__all__ = ["measure", "seconds_of"]

GPU = mx.gpu(0)
ROUNDS = 5


def seconds_of(run: Callable[[], object], times: int, rounds: int = ROUNDS) -> float:
    """Returns the median seconds of one run: rounds of `times` runs, each with a wait for the device at the end."""
    run()
    mx.nd.waitall()
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(times):
            run()
        mx.nd.waitall()
        found.append((time.perf_counter() - start) / times)
    return statistics.median(found)


def measure(options: Options) -> Outcome:
    """Measures; no figure is wrong by itself."""
    outcome = Outcome()
    rows = outcome.rows
    _measure_copies(rows)
    _measure_products(rows)
    small = mx.nd.ones((16,), ctx=GPU)
    rows["small operator, us"] = seconds_of(lambda: small + 1, 2000) * 1e6
    rows["operator and wait, us"] = seconds_of(lambda: (small + 1).wait_to_read(), 200) * 1e6
    rows["hybridized chain of 50 small Dense, us"] = _chain_seconds() * 1e6
    rows = {name: float(f"{value:.4g}") for name, value in rows.items()}
    outcome.rows = rows
    shown = ("to the GPU, GB/s", "from the GPU, GB/s", "on the GPU, GB/s", "product float32, TFLOP/s")
    outcome.line = "; ".join(f"{name} {rows[name]:.3g}" for name in (*shown, "small operator, us"))
    return outcome


def _measure_copies(rows: dict[str, float]) -> None:
    values = np.ones(1 << 26, "float32")
    gigabytes = values.nbytes / 1e9
    there = mx.nd.array(values, ctx=GPU)
    other, host = mx.nd.zeros_like(there), mx.nd.array(values)
    rows["to the GPU, GB/s"] = gigabytes / seconds_of(lambda: host.copyto(there), 3)
    rows["from the GPU, GB/s"] = gigabytes / seconds_of(lambda: there.copyto(host), 3)
    rows["on the GPU, GB/s"] = 2 * gigabytes / seconds_of(lambda: there.copyto(other), 20)
    rows["x * 2, GB/s"] = (
        2 * gigabytes / seconds_of(lambda: mx.nd._internal._mul_scalar(there, scalar=2, out=other), 20)
    )
    rows["exp, GB/s"] = 2 * gigabytes / seconds_of(lambda: mx.nd.exp(there, out=other), 20)
    rows["sum, GB/s"] = gigabytes / seconds_of(there.sum, 20)
    rows["softmax of 4096, GB/s"] = 2 * gigabytes / seconds_of(lambda: mx.nd.softmax(there.reshape((-1, 4096))), 20)


def _measure_products(rows: dict[str, float]) -> None:
    for dtype in ("float32", "float16"):
        for n in (1024, 4096):
            a = mx.nd.ones((n, n), ctx=GPU, dtype=dtype)
            seconds = seconds_of(lambda a=a: mx.nd.dot(a, a), 3 if n > 2000 else 20, 3)
            name = f"product {dtype}" if n == 4096 else f"product {dtype} of {n}"
            rows[f"{name}, TFLOP/s"] = 2 * n**3 / seconds / 1e12


def _chain_seconds() -> float:
    net = nn.HybridSequential()
    net.add(*(nn.Dense(16, in_units=16) for _ in range(50)))
    net.initialize(ctx=GPU)
    net.hybridize(static_alloc=True, static_shape=True)
    x = mx.nd.ones((4, 16), ctx=GPU)
    return seconds_of(lambda: net(x), 20)
