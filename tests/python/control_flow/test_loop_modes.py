"""Independent iterations may run in parallel, with the same bits and the same errors."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
import threading

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core, autograd, errors, nd
from hybridnet.contrib.control_flow import cond, foreach, while_loop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from . import program_checks, random_programs
from .blocks import Block

MODES = ("inline", "ahead", "auto")


@contextlib.contextmanager
def loop_mode(mode: str):
    before = _core.set_loop_mode(mode)
    try:
        yield
    finally:
        _core.set_loop_mode(before)


def graph(function) -> Block:
    block = Block(function)
    block.hybridize()
    return block


def dot(a, b):
    return (mx.sym if isinstance(a, mx.sym.Symbol) else mx.nd).dot(a, b)


def dropout(x):
    return (mx.sym if isinstance(x, mx.sym.Symbol) else mx.nd).Dropout(x, p=0.5)


def doubled_until_large(row):
    return while_loop(lambda v: v.sum() < 300, lambda v: ([], v * 2), row.abs() + 0.01, 40)[1]


MAPS = {
    "sort": lambda x: foreach(lambda d, s: (d.sort(), s), x, [])[0],
    "reversed": lambda x: foreach(lambda d, s: (d.sort() - x[0], s), x, [], reverse=True)[0],
    "index": lambda x: foreach(lambda t, d, s: (d.sort() * t.astype("float32"), s), x, [], with_index=True)[0],
    "two outputs, one twice": lambda x: foreach(lambda d, s: ([d.sort(), d.sum(), d.sort()], s), x, [])[0],
    "while loop in each": lambda x: foreach(lambda d, s: (doubled_until_large(d), s), x, [])[0],
    "map in a map": lambda x: foreach(
        lambda d, s: (foreach(lambda e, t: (e.sort(), t), d.reshape((4, -1)), [])[0], s), x, []
    )[0],
    "branch in each": lambda x: foreach(
        lambda d, s: (cond(d.sum() > 0, lambda: d.sort(), lambda: d.exp()), s), x, []
    )[0],
    "products": lambda x: foreach(lambda d, s: (dot(d.reshape((8, 8)), d.reshape((8, 8))), s), x, [])[0],
    "draws": lambda x: foreach(lambda d, s: (dropout(d) + d.sort(), s), x, [])[0],
    "states": lambda x: foreach(lambda d, s: (d.sort() + s, s * 0.5 + d), x, x[0])[0],
}  # fmt: skip


def rows(count: int = 96) -> nd.NDArray:
    return nd.array(np.random.default_rng(3).normal(size=(count, 64)).astype("float32"))


def results(function, mode: str, count: int = 96) -> list[np.ndarray]:
    with loop_mode(mode):
        block, x = graph(function), rows(count)
        x.attach_grad()
        mx.random.seed(5)
        with autograd.record():
            outs = block(x)
            outs = outs if isinstance(outs, (list, tuple)) else [outs]
            loss = sum((out * out).sum() for out in outs)
        loss.backward()
        return [a.asnumpy() for a in [*outs, x.grad]]


@pytest.mark.parametrize("count", [1, 2, 96])
@pytest.mark.parametrize("name", MAPS)
def test_all_modes_give_the_same_bits(name, count):
    want = results(MAPS[name], "inline", count)
    assert all(np.isfinite(a).all() for a in want)
    for mode in MODES[1:]:
        for one, two in zip(want, results(MAPS[name], mode, count), strict=True):
            np.testing.assert_array_equal(two, one)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(random_programs.programs(), st.integers(0, 2**31))
def test_random_programs_give_the_same_bits(recwarn, tree, seed):
    graph = program_checks.hybridized(random_programs.Program(tree))
    values = random_programs.inputs(seed)
    found = []
    for mode in ("inline", "ahead"):
        with loop_mode(mode):
            out, _, gradients = program_checks.evaluate(graph, values)
        found.append([out, *gradients])
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(two, one)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("construct", ["foreach", "foreach with a state", "while_loop"])
def test_an_error_names_the_first_iteration_that_fails(construct, mode):
    functions = {
        "foreach": lambda x, i: foreach(lambda d, s: (x.take(d, mode="raise"), s), i, [])[0],
        "foreach with a state": lambda x, i: foreach(lambda d, s: (x.take(d, mode="raise") + s, s), i, x[:1])[0],
        "while_loop": lambda x, i: while_loop(
            lambda k, v: k < 60, lambda k, v: (x.take(i.take(k), mode="raise"), (k + 1, v)), (0, x), 60
        )[0],
    }
    indices = np.zeros(64, np.float32)
    indices[17:] = 99  # all later iterations fail, too
    with loop_mode(mode):
        block = graph(functions[construct])
        for _ in range(10):
            with pytest.raises(errors.IndexError, match=r"iteration 17\b.*take") as caught:
                block(rows(4), nd.array(indices)).wait_to_read()
            assert "test_loop_modes.py" in str(caught.value)
            nd.waitall()


def test_work_goes_on_after_an_error():
    with loop_mode("ahead"):
        block = graph(lambda x, i: foreach(lambda d, s: (x.take(d, mode="raise"), s), i, [])[0])
        with pytest.raises(errors.IndexError):
            block(rows(4), nd.array([0.0, 9.0] * 20)).wait_to_read()
        out = block(rows(4), nd.array([0.0, 1.0] * 20)).asnumpy()
    np.testing.assert_array_equal(out.reshape(40, 64), rows(4).asnumpy()[[0, 1] * 20])


def run(body: str, **environment: str) -> str:
    start = """
        import numpy as np
        import hybridnet as mx
        from hybridnet import _core, nd
        from hybridnet.contrib.control_flow import foreach, while_loop

        class Block(mx.gluon.HybridBlock):
            def __init__(self, function):
                super().__init__()
                self.function = function
            def forward(self, *args):
                return self.function(*args)

        def graph(function):
            block = Block(function)
            block.hybridize()
            return block
    """
    code = textwrap.dedent(start) + textwrap.dedent(body)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("mode", MODES)
def test_nested_loops_cannot_exhaust_the_workers(mode):
    """Four threads call four nested loops at once, with a single worker."""
    text = run(
        """
        import threading

        def level(depth, x):
            if depth == 0:
                return while_loop(lambda i, v: i < 5, lambda i, v: ([], (i + 1, v.sort() * 0.5 + 1)), (0, x), 5)[1][1]
            return foreach(lambda d, s: (level(depth - 1, d), s), x, [])[0]

        x = nd.array(np.random.rand(4, 5, 6, 7).astype("float32"))
        net = graph(lambda x: level(3, x))
        want = net(x).asnumpy()
        same = []

        def call():
            for _ in range(20):
                same.append((net(x).asnumpy() == want).all())

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(len(same), all(same))
        """,
        HYBRIDNET_LOOP_MODE=mode,
        HYBRIDNET_CPU_WORKER_NTHREADS="1",
    )
    assert text == "80 True"


def test_the_environment_chooses_the_mode():
    assert run("print(_core.set_loop_mode('auto'))", HYBRIDNET_LOOP_MODE="inline") == "inline"
    assert run("print(_core.set_loop_mode('auto'))") == "auto"
    limited = """
        net = graph(lambda x: foreach(lambda d, s: (d.sort(), s), x, [])[0])
        x = nd.array(np.random.rand(500, 64))
        print((net(x).asnumpy() == np.sort(x.asnumpy())).all())
    """
    assert run(limited, HYBRIDNET_LOOP_MODE="ahead", HYBRIDNET_LOOP_AHEAD="2") == "True"


def test_a_mode_that_is_none_is_refused():
    with pytest.raises(errors.ValueError, match="auto, inline or ahead"):
        _core.set_loop_mode("bulk")


@pytest.mark.parametrize("mode", MODES)
def test_the_calling_thread_does_not_wait_for_a_loop(mode):
    """A call returns before its loop of 300,000 iterations has ended."""
    with loop_mode(mode):
        block = graph(
            lambda x: while_loop(lambda i, v: i < 300_000, lambda i, v: ([], (i + 1, v * 0.9)), (0, x), 300_000)[1]
        )
        block.hybridize(exclude=["native_loops"])  # machine code would finish in a millisecond
        count, _ = block(nd.ones((8,)))
        nd.waitall()
        over = threading.Event()
        count, _ = block(nd.ones((8,)))
        watcher = threading.Thread(target=lambda: (count.wait_to_read(), over.set()))
        watcher.start()
        assert not over.is_set()
        watcher.join()
        assert count.asnumpy().reshape(()) == 300_000


# ------------------------------------------------------------------------------- loops that read rows but no state
def encoded(row):
    return foreach(lambda e, t: ([], (t * 0.5 + e).tanh()), row, row[0])[1]


def doubled(row):
    return while_loop(lambda v: v.sum() < 50, lambda v: ([], v * 1.5), row.abs() + 1, 20)[1]


def noisy(row):
    return foreach(lambda e, t: (dropout(e), t), row, [])[0].sum(axis=0)


ROW_LOOPS = {  # name: (function of rows, whether its inner loop may move in front of the outer)
    "foreach": (lambda x: foreach(lambda d, s: (encoded(d) * s, (s + encoded(d)).tanh()), x, x[0][0]), True),
    "while_loop": (lambda x: foreach(lambda d, s: (doubled(d).sum(axis=0) + s, s * 0.5), x, x[0][0]), True),
    "reversed": (lambda x: foreach(lambda d, s: (encoded(d) + s, s * encoded(d)), x, x[0][0], reverse=True), True),
    "output itself": (lambda x: foreach(lambda d, s: (encoded(d), s + d[0]), x, x[0][0]), True),
    "closure": (lambda x: foreach(lambda d, s: (encoded(d * x[1]) + s, s + d[0]), x, x[0][0]), True),
    "reads a state": (lambda x: foreach(lambda d, s: (encoded(d * s), s + d[0]), x, x[0][0]), False),
    "draws": (lambda x: foreach(lambda d, s: (noisy(d) + s, s + d[0]), x, x[0][0]), False),
    "reads no row": (lambda x: foreach(lambda d, s: (encoded(x[1]) + s, s + d[0]), x, x[0][0]), False),
}


def loops_without_states(block) -> int:
    forward = block._cached_op.graph_text().split("backward:")[0]
    return sum(line.startswith("%") and " = loop[" in line and " carry{" not in line for line in forward.splitlines())


@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("name", ROW_LOOPS)
def test_loops_of_rows_go_first_and_change_nothing(name, record):
    function, moves = ROW_LOOPS[name]
    found = []
    for passes in ("fast_run", "fast_run,-loops_of_rows_first"):
        block = Block(function)
        block.hybridize(passes=passes)
        x = nd.array(np.random.default_rng(1).normal(size=(6, 5, 4)))
        x.attach_grad()
        mx.random.seed(3)
        with autograd.record() if record else contextlib.nullcontext():
            outs, state = block(x)
            loss = (outs * outs).sum() + state.sum()
        if record:
            loss.backward()
        found.append([outs.asnumpy(), state.asnumpy(), x.grad.asnumpy()])
        assert loops_without_states(block) == int(moves and passes == "fast_run")
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


def test_inner_loops_with_large_results_stay_inside_in_prediction():
    function = ROW_LOOPS["while_loop"][0]
    for size, moves in ((8, 1), (1_200_000, 0)):
        block = graph(function)
        block(nd.ones((4, 1, size))).__getitem__(0).wait_to_read()
        assert loops_without_states(block) == moves
