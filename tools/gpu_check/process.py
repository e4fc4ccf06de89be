"""Checks of the process: memory runs out, several threads, a fork, the exit code."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import hybridnet as mx
import numpy as np
from hybridnet.errors import HybridNetError, OutOfMemoryError

from .outcome import Options, Outcome

__all__ = ["check_exit", "check_fork", "check_out_of_memory", "check_threads"]

GPU = mx.gpu(0)


def check_out_of_memory(options: Options) -> Outcome:
    """A request that cannot be met is an error with sizes; memory in the pool is released for one that can."""
    outcome = Outcome()
    try:
        mx.nd.empty((1 << 44,), ctx=GPU)
        outcome.wrong.append("an array of 64 TiB could be made")
    except OutOfMemoryError as error:
        outcome.expect("bytes left" in str(error), f"the error gives no sizes: {error}")
    free, _ = mx.context.gpu_memory_info(0)
    half = mx.nd.empty((int(free * 0.6) // 4,), ctx=GPU)
    del half  # its memory is in the pool now
    other = mx.nd.empty((int(free * 0.7) // 4,), ctx=GPU)
    peak = mx.cuda.memory_statistics(GPU)["peak_in_use"]
    del other
    GPU.empty_cache()
    left = mx.cuda.memory_statistics(GPU)["free"]
    outcome.expect(left > free * 0.9, f"of {free} free bytes {left} are free again after empty_cache()")
    outcome.expect(
        float((mx.nd.ones((3,), ctx=GPU) + 1).sum().asscalar()) == 6, "the device computes wrongly afterwards"
    )
    outcome.line = f"named error, {peak / 2**30:.1f} GiB taken after the pool was released"
    outcome.rows = {"free": free, "peak_in_use": peak, "free_afterwards": left}
    return outcome


def check_threads(options: Options) -> Outcome:
    """Threads that compute side by side get their own results."""
    outcome = Outcome()
    count, rounds = options.size(8, 3), options.size(200, 10)

    def work(number: int) -> None:
        try:
            values = np.full((options.size(5000, 300),), number, "float32")
            total = mx.nd.array(values, ctx=GPU)
            for step in range(rounds):
                total = total * 1 + mx.nd.array(values, ctx=GPU)
                if step % 20 == 0:
                    total.wait_to_read()
            wanted = values * (rounds + 1)
            outcome.expect(np.array_equal(total.asnumpy(), wanted), f"thread {number} has another result")
        except HybridNetError as error:
            outcome.wrong.append(f"thread {number}: {error}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, count + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    outcome.line = f"{count} threads, {rounds} rounds each"
    return outcome


def check_fork(options: Options) -> Outcome:
    """A child that was forked after the first use gets an error that says so; the parent goes on."""
    outcome = Outcome()
    mx.nd.ones((2,), ctx=GPU).wait_to_read()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = f"no error, but {mx.nd.ones((2,), ctx=GPU).asnumpy()}"
        except HybridNetError as error:
            text = str(error)
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    said = os.read(reader, 1 << 16).decode()
    outcome.expect(status == 0, f"the child ended with status {status}")
    outcome.expect("fork" in said, f"the child's error does not name the fork: {said[:200]}")
    outcome.expect(
        (mx.nd.ones((2,), ctx=GPU) * 3).asnumpy().tolist() == [3, 3], "the parent computes wrongly afterwards"
    )
    outcome.line = "named error in the child, the parent goes on"
    return outcome


_PENDING = """
import hybridnet as mx
x = mx.nd.ones(({n}, {n}), ctx=mx.gpu(0))
for _ in range(20):
    x = mx.nd.dot(x, x) * 0 + 1
keep = [x, mx.nd.ones((3,), ctx=mx.gpu(0))]
"""
_PROGRAMS = {
    "with pending work": (_PENDING, 0),
    "after an exception": (_PENDING + "raise SystemExit(3)", 3),
    "in a thread": (_PENDING + "import threading; threading.Thread(target=lambda: keep.append(x + 1)).start()", 0),
    "without a use": ("import hybridnet as mx; mx.num_gpus()", 0),
}


def check_exit(options: Options) -> Outcome:
    """Programs that end with pending work, arrays or an exception have their own exit code and print nothing."""
    outcome = Outcome()
    for name, (text, wanted) in _PROGRAMS.items():
        program = text.replace("{n}", str(options.size(1024, 24)))
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False)
        outcome.expect(
            done.returncode == wanted, f"{name}: exit code {done.returncode}, not {wanted}: {done.stderr[-300:]}"
        )
        outcome.expect(not done.stderr.strip(), f"{name}: it printed {done.stderr[-300:]}")
    outcome.line = f"{len(_PROGRAMS)} programs end with their exit codes"
    return outcome
