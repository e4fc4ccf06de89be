"""Memory: allocation, copies, a launch; and the order of copies and kernels on the device's three streams."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
from hybridnet import autograd

from .outcome import Options, Outcome

__all__ = ["check_memory", "check_order"]

GPU = mx.gpu(0)
DTYPES = ("float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool")


def check_memory(options: Options) -> Outcome:
    """Values of every dtype and of many sizes come back; views write in place; freed memory is used again."""
    outcome = Outcome()
    rng = np.random.default_rng(0)
    sizes = (0, 1, 2, 127, 1000, 4097, options.size(1 << 24, 1 << 16) + 3)
    for dtype in DTYPES:
        for size in sizes:
            values = (rng.random(size) * 100).astype(dtype)
            with mx.util.np_shape(True):
                array = mx.np.array(values, ctx=GPU, dtype=dtype)
                back, copied = array.asnumpy(), array.copy().asnumpy()
            outcome.expect(back.tobytes() == values.tobytes(), f"{size} values of {dtype} do not come back")
            outcome.expect(copied.tobytes() == values.tobytes(), f"a copy of {size} values of {dtype} differs")
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.4e38], "float32")
    outcome.expect(mx.nd.array(special, ctx=GPU).asnumpy().tobytes() == special.tobytes(), "special values change")
    _check_views(outcome)
    used = _check_reuse(options, outcome)
    outcome.rows = {"sizes": list(sizes), "dtypes": list(DTYPES), "driver_allocations_of_100_arrays": used}
    outcome.line = f"{len(DTYPES)} dtypes, up to {sizes[-1]} values, {used} driver allocations for 100 arrays"
    return outcome


def _check_views(outcome: Outcome) -> None:
    values = np.arange(24, dtype="float32").reshape(2, 3, 4)
    array = mx.nd.array(values, ctx=GPU)
    array[1][:] = 7
    array.reshape((6, 4))[0] = -1
    array[:, 1:3] += 5
    values[1] = 7
    values.reshape(6, 4)[0] = -1
    values[:, 1:3] += 5
    outcome.expect(np.array_equal(array.asnumpy(), values), "writes to views differ from NumPy's")


def _check_reuse(options: Options, outcome: Outcome) -> int:
    before = mx.cuda.memory_statistics(GPU)["system_allocations"]
    for _ in range(100):
        array = mx.nd.ones((options.size(1 << 20, 1 << 12),), ctx=GPU) + 1
    outcome.expect(float(array[0].asscalar()) == 2, "1 + 1 is not 2")
    used = mx.cuda.memory_statistics(GPU)["system_allocations"] - before
    outcome.expect(used <= 20, f"100 arrays of one size, one after the other, took {used} allocations of the driver")
    return used


def check_order(options: Options) -> Outcome:
    """Copies in, kernels and copies out overlap, in memory that is used again: results stay those of the CPU."""
    outcome = Outcome()
    rng = np.random.default_rng(1)
    repeats = options.size(400, 8)
    widths = [options.size(1 << shift, 1 << min(shift, 10)) for shift in (4, 10, 16, 20)]
    for repeat in range(repeats):
        batch = rng.integers(-8, 8, (3, widths[repeat % len(widths)])).astype("float32")
        found = _step(GPU, batch)
        expected = _step(mx.cpu(), batch)
        if not all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True)):
            outcome.wrong.append(f"round {repeat}, {batch.shape}: results differ from the CPU's")
            break
    outcome.line = f"{repeats} rounds of copies, kernels and reused memory"
    outcome.rows = {"rounds": repeats, "widths": widths}
    return outcome


def _step(ctx: mx.Context, batch: np.ndarray) -> tuple[np.ndarray, ...]:
    """Work on all streams of the device, with numbers whose sums are exact in any order."""
    data = mx.nd.array(batch).as_in_context(ctx)
    scratch = mx.nd.array(batch, ctx=ctx) * 2
    data.attach_grad()
    with autograd.record():
        out = data * scratch + data
        loss = (out * 2).sum()
    del scratch
    loss.backward()
    other = mx.nd.array(batch[::-1].copy(), ctx=ctx)  # takes freed memory while the kernels before may still run
    later = data.grad.as_in_context(mx.cpu())
    return (out + other.max()).asnumpy(), later.asnumpy(), (other - 1).asnumpy()
