"""Measures a model on random inputs: latency, calls per second, memory.

Each thread calls the model again as soon as its last call has ended. The first calls, which compile, are excluded.
"""

from __future__ import annotations

import argparse
import resource
import threading
import time
from typing import Any

import numpy as np

from ..context import Context, gpu_memory_info
from ..errors import ParamError
from ._models import add_model_arguments, open_model, random_value
from ._output import answer, bytes_text, progress
from ._shapes import add_shape_argument, form, shapes_of

_PERCENTILES = (50, 90, 99, 99.9)
_TICKS = 20  # updates of the progress bar while the callers run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the model, shapes, threads and time."""
    add_model_arguments(parser, has_device=True)
    add_shape_argument(parser)
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="callers at one time; default 1")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long; default 3")
    parser.add_argument("--warmup", type=int, default=5, metavar="N", help="calls before; default 5")


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _used_on(ctx: Context) -> int:
    """Returns the bytes of the GPU that are in use; 0 for the CPU."""
    if ctx.device_type != "gpu":
        return 0
    free, total = gpu_memory_info(ctx.device_id)
    return total - free


def _call(block: Any, inputs: list[Any]) -> None:
    result = block(*inputs)
    for output in result if isinstance(result, (list, tuple)) else [result]:
        output.wait_to_read()


def run(options: argparse.Namespace) -> int:
    """Measures and prints the results."""
    for name in ("threads", "seconds", "warmup"):
        if getattr(options, name) <= 0 and name != "warmup":
            raise ParamError(f"bench: --{name}", expected="more than 0", given=str(getattr(options, name)))
    before = _resident()
    model = open_model(options)
    used_before = _used_on(model.ctx)
    block = model.block()
    block.hybridize(static_alloc=True, static_shape=True)
    specs = shapes_of(model, options.shape)
    inputs = [random_value(*specs[name], i).as_in_context(model.ctx) for i, name in enumerate(model.inputs)]
    begin = time.perf_counter()
    _call(block, inputs)
    first = time.perf_counter() - begin
    for _ in range(options.warmup):
        _call(block, inputs)
    latencies: list[list[int]] = [[] for _ in range(options.threads)]
    failures: list[BaseException] = []
    start = threading.Barrier(options.threads + 1)

    def caller(mine: list[int]) -> None:
        try:
            start.wait()
            end = time.perf_counter_ns() + int(options.seconds * 1e9)
            now = time.perf_counter_ns()
            while now < end:
                _call(block, inputs)
                then, now = now, time.perf_counter_ns()
                mine.append(now - then)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=caller, args=(mine,)) for mine in latencies]
    for thread in threads:
        thread.start()
    start.wait()
    begin = time.perf_counter()
    for _ in progress(options, range(_TICKS), "bench"):
        time.sleep(options.seconds / _TICKS)
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - begin
    if failures:
        raise failures[0]
    all_ms = np.concatenate([np.array(mine) for mine in latencies]) / 1e6
    rows = model.inputs and specs[model.inputs[0]][0]
    forms = {name: form(*specs[name]) for name in model.inputs}
    facts = {
        "inputs": forms,
        "device": str(model.ctx),
        "calls": len(all_ms),
        "calls per second": len(all_ms) / wall,
        "rows per second": len(all_ms) / wall * (rows[0] if rows else 1),
        "threads": options.threads,
        "first call ms": first * 1e3,
        "latency ms": {f"p{p:g}": float(np.percentile(all_ms, p)) for p in _PERCENTILES}
        | {"mean": float(all_ms.mean()), "max": float(all_ms.max())},
        "memory of the model bytes": _resident() - before,
        "peak memory of the process bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    on_device = _used_on(model.ctx) - used_before
    if model.ctx.device_type == "gpu":
        facts["memory on the device bytes"] = on_device
    latency = facts["latency ms"]
    assert isinstance(latency, dict)
    lines = [
        ("inputs", ", ".join(f"{name} {text}" for name, text in forms.items())),
        ("calls", f"{len(all_ms)} in {wall:.2f} s, {options.threads} thread{'s' if options.threads > 1 else ''}"),
        ("calls per second", f"{facts['calls per second']:.4g}"),
        ("first call", f"{first * 1e3:.4g} ms"),
        *((name, f"{value:.4g} ms") for name, value in latency.items()),
        ("memory of the model", bytes_text(_resident() - before)),
        ("peak memory of the process", bytes_text(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)),
    ]
    if model.ctx.device_type == "gpu":
        lines[1:1] = [("device", str(model.ctx)), ("memory on the device", bytes_text(on_device))]
    answer(options, facts, "\n".join([model.path, *(f"  {name.ljust(27)} {value}" for name, value in lines)]))
    return 0
