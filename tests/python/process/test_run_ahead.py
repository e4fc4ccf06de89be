"""A program that reads no results does not queue all of its work: pushes wait (docs/environment-variables.md)."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.slow

START = """
    import threading
    import numpy as np
    import hybridnet as mx
    from hybridnet import _core, autograd, gluon, nd

    def peak(run):
        nd.waitall()
        _core.reset_peak_memory(1, 0)
        run()
        nd.waitall()
        return _core.memory_statistics(1, 0)["peak_in_use"]
"""


def run(body: str, timeout: float = 120, **environment: str) -> str:
    code = textwrap.dedent(START) + textwrap.dedent(body)
    env = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout, check=False, env=env
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


LOOP = """
    class Steps(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.weight = self.params.get("weight", shape=(256, 256))

        def hybrid_forward(self, F, x, weight):
            out = F.contrib.foreach(lambda row, s: (F.tanh(F.dot(row, weight) + s), s + 1), x, F.zeros_like(x[0]))[0]
            return out.mean()

    net = Steps()
    net.initialize()
    net.hybridize()
    data = nd.array(np.random.rand(32, 128, 256))  # 4 MB; several times that is kept for the gradient

    def steps(waits):
        for _ in range(40):
            with autograd.record():
                loss = net(data)
            loss.backward()
            if waits:
                nd.waitall()

    steps(True)
"""


def test_an_unsynchronized_training_loop_holds_at_most_twice_the_memory() -> None:
    """The test has one worker; several would run independent forward passes in parallel, each with its own memory."""
    body = "    print(peak(lambda: steps(True)), peak(lambda: steps(False)), _core.run_ahead_waits())"
    synchronized, ahead, waits = map(int, run(LOOP + body, HYBRIDNET_CPU_WORKER_NTHREADS="1").split())
    assert waits > 0
    assert ahead <= 2 * synchronized


def test_without_limits_the_same_loop_queues_all_steps() -> None:
    text = run(LOOP + "    steps(False); nd.waitall(); print(_core.run_ahead_waits())", HYBRIDNET_RUN_AHEAD_MS="-1")
    assert text == "0"


def test_imperative_operators_wait_as_well() -> None:
    text = run(
        """
        x = nd.ones((1024, 1024))
        nd.waitall()

        def many():
            y = x
            for _ in range(100):
                y = nd.dot(x, x)
            y.wait_to_read()

        print(peak(many) >> 20, _core.run_ahead_waits())
        """
    )
    megabytes, waits = map(int, text.split())
    assert waits > 0
    assert megabytes <= 6 * 4  # 400 if all results took memory at once


def test_data_made_ahead_of_a_slow_step_does_not_pile_up() -> None:
    text = run(
        """
        weight = nd.ones((2048, 2048))

        def many():
            for _ in range(80):
                batch = nd.array(np.ones((512, 2048), np.float32))  # 4 MB
                for _ in range(2):
                    batch = nd.dot(batch, weight)

        print(peak(many) >> 20)
        """,
        HYBRIDNET_RUN_AHEAD_MS="20",
    )
    assert int(text) <= 120  # 320 if all data were kept


def test_other_python_threads_run_while_a_push_waits() -> None:
    text = run(
        """
        x = nd.ones((1024, 1024))
        over = threading.Event()
        counted = 0

        def count():
            global counted
            while not over.is_set():
                counted += 1

        thread = threading.Thread(target=count)
        thread.start()
        for _ in range(60):
            nd.dot(x, x)
        seen = counted
        over.set()
        thread.join()
        nd.waitall()
        print(int(seen > 0), int(_core.run_ahead_waits() > 0))
        """,
        HYBRIDNET_RUN_AHEAD_MS="10",
    )
    assert text == "1 1"


def test_tasks_that_need_the_gil_do_not_lock_out_a_waiting_push() -> None:
    """A worker drops the last reference to NumPy's memory, for which it needs the GIL."""
    text = run(
        """
        for _ in range(100):
            y = nd.dot(nd.from_numpy(np.ones((512, 512), np.float32)), nd.ones((512, 512)))
        nd.waitall()
        print(y.asnumpy()[0, 0], int(_core.run_ahead_waits() > 0))
        """,
        HYBRIDNET_RUN_AHEAD_MS="2",
    )
    assert text == "512.0 1"


def test_an_error_surfaces_at_the_wait_for_a_result_not_at_a_push_that_waits() -> None:
    text = run(
        """
        x = nd.ones((1024, 1024))
        blocker = nd.dot(x, x)
        bad = nd.linalg.potrf(blocker - 2 * nd.eye(1024) * 1e6)
        for _ in range(60):
            nd.dot(x, x)
        try:
            bad.wait_to_read()
        except mx.errors.HybridNetError as error:
            print("caught", "potrf" in str(error), _core.run_ahead_waits() > 0)
        """,
        HYBRIDNET_RUN_AHEAD_MS="10",
    )
    assert text == "caught True True"


def test_a_fork_while_pushes_wait_leaves_both_sides_working() -> None:
    text = run(
        """
        import os
        x = nd.ones((1024, 1024))

        def push():
            for _ in range(100):
                nd.dot(x, x)

        thread = threading.Thread(target=push)
        thread.start()
        while _core.run_ahead_waits() == 0:
            nd.dot(x, x)
        child = os.fork()
        if child == 0:
            for _ in range(20):
                y = nd.dot(x, x)
            os._exit(0 if y[0, 0].asscalar() == 1024 else 1)
        thread.join()
        nd.waitall()
        print(os.waitpid(child, 0)[1])
        """,
        HYBRIDNET_RUN_AHEAD_MS="10",
    )
    assert text == "0"


@pytest.mark.parametrize("value", ["-2", "many"])
def test_a_limit_that_is_none_is_refused_at_import(value: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import hybridnet"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "HYBRIDNET_RUN_AHEAD_MS": value},
    )
    assert done.returncode != 0
    assert "HYBRIDNET_RUN_AHEAD_MS" in done.stderr
