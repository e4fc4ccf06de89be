"""Waits end: at exit, beside threads that never stop, across forks, and for tasks that need the GIL."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

LIMIT = 200  # seconds; each takes about one on a quiet machine

# A block whose plan is long enough to be queued and issues a warning, which needs the GIL.
WARNING_LOOP = """
    import os, threading, time, warnings
    import hybridnet as mx
    warnings.simplefilter("ignore")

    class Loop(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            def body(v):
                return None, F.dot(v, v) * 0 + 1
            return F.contrib.while_loop(lambda v: v.max() > 0, body, [x], max_iterations=30, on_limit="warn")[1][0]

    loop = Loop()
    loop.hybridize()
    ones = mx.nd.ones((400, 400))
    loop(ones).wait_to_read()
"""


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=LIMIT, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_object_that_computes_when_the_interpreter_ends() -> None:
    """The workers have ended by then, so the waiting thread computes."""
    text = run(
        """
        import hybridnet as mx

        class Late:
            def __init__(self):
                self.a = mx.nd.ones((1500, 1500))

            def __del__(self):
                b = mx.nd.dot(self.a, self.a)
                b.wait_to_read()
                c = mx.nd.dot(b, self.a)
                mx.nd.waitall()
                print("waited")
                d = mx.nd.dot(c, self.a)  # no wait reads this one

        late = Late()
        """
    )
    assert text == "waited"


def test_the_process_ends_while_daemon_threads_go_on_computing() -> None:
    run(
        """
        import threading, time
        import hybridnet as mx

        a = mx.nd.ones((600, 600))

        def go():
            while True:
                mx.nd.dot(a, a).wait_to_read()

        for _ in range(3):
            threading.Thread(target=go, daemon=True).start()
        time.sleep(0.5)
        """
    )


def test_waitall_and_fork_end_while_other_threads_push_all_the_time() -> None:
    text = run(
        """
        import os, threading, time
        import hybridnet as mx

        a = mx.nd.ones((300, 300))
        stop = False

        def go():
            while not stop:
                b = mx.nd.dot(a, a)
                for _ in range(3):
                    b = mx.nd.dot(b * 0, a)
                b.wait_to_read()

        threads = [threading.Thread(target=go) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(50):
            own = mx.nd.dot(a, a)
            mx.nd.waitall()
        for _ in range(5):
            child = os.fork()
            if child == 0:
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        stop = True
        for thread in threads:
            thread.join()
        print(own[0, 0].asscalar())
        """
    )
    assert text == "300.0"


def test_a_fork_waits_for_a_task_that_needs_the_gil() -> None:
    text = run(
        WARNING_LOOP
        + """
    for _ in range(5):
        y = loop(ones)
        child = os.fork()
        if child == 0:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    print(y[0, 0].asscalar())
    """
    )
    assert text == "1.0"


def test_a_serial_engine_whose_variable_another_thread_has_while_that_needs_the_gil() -> None:
    text = run(
        WARNING_LOOP
        + """
    def go():
        for _ in range(10):
            loop(ones)

    threads = [threading.Thread(target=go) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(1000):
        ones[:] = 1
        time.sleep(1e-4)
    for thread in threads:
        thread.join()
    print(loop(ones)[0, 0].asscalar())
    """,
        HYBRIDNET_ENGINE_TYPE="NaiveEngine",
    )
    assert text == "1.0"
