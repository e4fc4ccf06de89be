"""The memory of a long training process does not grow; a process that is interrupted or forks ends cleanly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from process.interrupts import interrupted, start

TRAIN = """
    import numpy as np
    import hybridnet as mx
    from hybridnet import autograd, gluon
    from hybridnet.gluon import nn

    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * 4096

    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.Dense(4))
    net.initialize()
    if {hybridize}:
        net.hybridize(static_alloc=True)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam")
    data = mx.nd.array(np.random.rand(8, 12))
    label = mx.nd.array(np.arange(8) % 4)

    def steps(count):
        for _ in range(count):
            with autograd.record():
                loss = loss_of(net(data), label)
            loss.backward()
            trainer.step(8)
        loss.wait_to_read()
        mx.nd.waitall()
"""


def run(body: str, timeout: float = 300, **fields) -> subprocess.CompletedProcess:
    code = textwrap.dedent(TRAIN).format(**fields) + textwrap.dedent(body)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("hybridize", [False, True], ids=["imperative", "hybridized"])
def test_memory_after_many_steps_equals_memory_after_few(hybridize: bool) -> None:
    done = run(
        """
        steps(1000)
        before = resident()
        steps({more})
        print(resident() - before)
        """.replace("{more}", "99000" if hybridize else "20000"),
        hybridize=hybridize,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 1 << 20


def test_an_interrupt_in_the_middle_of_a_step_ends_the_process_cleanly() -> None:
    code = textwrap.dedent(TRAIN).format(hybridize=True) + textwrap.dedent(
        """
        steps(10)
        print("running", flush=True)
        try:
            while True:
                steps(100)
        except KeyboardInterrupt:
            mx.nd.waitall()
            print("interrupted", flush=True)
        """
    )
    process = start(code)
    assert process.stdout
    assert process.stdout.readline() == "running\n"
    time.sleep(0.2)  # the process is in the loop now, but any moment must work
    out, err = interrupted(process)
    assert process.returncode == 0, err
    assert out == "interrupted\n"


def test_an_uncaught_interrupt_ends_the_process_with_its_traceback() -> None:
    code = textwrap.dedent(TRAIN).format(hybridize=False) + 'print("running", flush=True)\nsteps(10**9)\n'
    process = start(code)
    assert process.stdout
    assert process.stdout.readline() == "running\n"
    time.sleep(0.2)
    _, err = interrupted(process)
    assert process.returncode in (1, -signal.SIGINT, 128 + signal.SIGINT)
    assert "KeyboardInterrupt" in err


def test_a_forked_child_computes_and_so_does_its_parent() -> None:
    done = run(
        """
        import os
        steps(5)
        big = mx.nd.ones((512, 512))
        work = mx.nd.dot(big, big)
        child = os.fork()
        if child == 0:
            steps(5)
            ok = float(mx.nd.dot(big, big)[0, 0].asscalar()) == 512.0
            os._exit(0 if ok else 3)
        _, status = os.waitpid(child, 0)
        steps(5)
        print(os.waitstatus_to_exitcode(status), float(work[1, 1].asscalar()))
        """,
        hybridize=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0", "512.0"]


def test_work_left_pending_at_exit_does_no_harm() -> None:
    done = run(
        """
        big = mx.nd.ones((1500, 1500))
        for _ in range(5):
            big = mx.nd.dot(big, big) * 0.001
        """,
        hybridize=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_serial_engine_is_chosen_by_the_environment() -> None:
    code = "import hybridnet as mx; a = mx.nd.ones((2, 2)) + 1; print(a.sum().asscalar(), mx.engine.type_name())"
    for variable in ("HYBRIDNET_ENGINE_TYPE", "MXNET_ENGINE_TYPE"):
        env = {k: v for k, v in os.environ.items() if not k.endswith("_ENGINE_TYPE")} | {variable: "NaiveEngine"}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
        assert done.stdout.split() == ["8.0", "NaiveEngine"], done.stderr
