"""checkpoint in a while_loop: at most 64 copies of its variables are kept, however many iterations it may run."""

from __future__ import annotations

import gc
import re
import warnings

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core, gluon, test_utils
from hybridnet.contrib import while_loop

from .blocks import Block, gradients

nd = mx.nd
CPU = (1, 0)


def equal(one, two, rtol=1e-9, atol=1e-12):
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def loop(trips, limit, checkpoint, outputs=True, **options):
    """A loop that computes v = (v w).sin() + x `trips` times, and outputs v w of every iteration."""

    def function(x, w):
        if not outputs:
            step = lambda i, v: (i + 1, (v * w).sin() + x)  # noqa: E731
            start = (x[:1] * 0, x)
            return while_loop(
                lambda i, v: i < trips, step, start, limit, has_outputs=False, checkpoint=checkpoint, **options
            )[1]
        step = lambda i, v: (v * w, (i + 1, (v * w).sin() + x))  # noqa: E731
        rows, (_, last) = while_loop(
            lambda i, v: i < trips, step, (x[:1] * 0, x), limit, checkpoint=checkpoint, **options
        )
        return rows.sum(axis=0) + last

    return function


ARRAYS = np.array([0.3, -0.2, 0.4]), np.array([0.5, 0.9, -0.7])


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("outputs", [True, False])
@pytest.mark.parametrize("checkpoint", ["sqrt", 1, 4, 1000])
@pytest.mark.parametrize("limit", [1, 6, 65, 100])
def test_gradients_stay(limit, checkpoint, outputs, order):
    """The loop runs no iteration, some, whole segments, as many as the limit, or is ended by the limit."""
    for trips in sorted({0, 1, 4, 5, limit // 2, limit - 1, limit, limit + 5}):
        want, _ = gradients(loop(trips, limit, None, outputs), ARRAYS, order)
        got, _ = gradients(loop(trips, limit, checkpoint, outputs), ARRAYS, order)
        equal(got, want)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("limit", [33, 3_000, 70_000, 1_000_000])
def test_gradients_are_those_of_differences(limit, order):
    """First and second order, for loops with one, two, three and four levels of segments."""
    function = loop(30, limit, "sqrt", outputs=False)
    found, _ = gradients(function, ARRAYS, order)
    for k in range(2):
        for i in range(3):
            values = []
            for step in (1e-5, -1e-5):
                arrays = [a.copy() for a in ARRAYS]
                arrays[k][i] += step
                values.append(float(gradients(function, arrays, order)[0][0].reshape(())))
            difference = (values[0] - values[1]) / 2e-5
            assert abs(difference - found[1 + k][i]) <= 1e-6 + 1e-5 * abs(found[1 + k][i])


@pytest.mark.parametrize("outputs", [True, False])
def test_many_iterations(outputs):
    """The iterations reach the second segment of every level but the outermost."""
    trips, limit = 30_000, 200_000
    want, _ = gradients(loop(trips, limit, None, outputs), ARRAYS)
    got, _ = gradients(loop(trips, limit, "sqrt", outputs), ARRAYS)
    equal(got, want, rtol=1e-7)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("limit", [None, "array"])
@pytest.mark.parametrize("outputs", [True, False])
def test_loops_whose_limit_is_known_at_run_time(outputs, limit, order):
    def function(trips, most, checkpoint):
        def run(x, w):
            bound = None if limit is None else (x[:1] * 0 + most).astype("int32")
            options = {"exact": True} if outputs else {}
            return loop(trips, bound, checkpoint, outputs, **options)(x, w)

        return run

    for trips, most in ((0, 9), (5, 9), (64, 64), (70, 100), (100, 70)):
        want, _ = gradients(function(trips, most, None), ARRAYS, order)
        got, _ = gradients(function(trips, most, "sqrt"), ARRAYS, order)
        equal(got, want, rtol=1e-8)


def test_an_iteration_evaluates_the_condition_once():
    def asked(checkpoint, trips, limit):
        def function(x):
            return while_loop(
                lambda i, v: (i * 1).cosh() < np.cosh(trips - 0.5) - (trips == 0),
                lambda i, v: (i + 1, v.sin()),
                (x[:1] * 0, x),
                limit,
                has_outputs=False,
                checkpoint=checkpoint,
            )[1]

        block = Block(function)
        block.hybridize(passes="fast_run,-fusion")
        x = nd.ones((3,), dtype="float64")
        x.attach_grad()
        with test_utils.exec_counts() as counts, mx.autograd.record():
            block(x).wait_to_read()
        return sum(count for (op, _), count in counts.items() if op == "cosh")

    for trips, limit in ((0, 40), (5, 40), (7, 49), (14, 49), (12, 12), (20, 12), (300, 2000)):
        assert asked("sqrt", trips, limit) == asked(None, trips, limit) == min(trips + 1, limit)


# ------------------------------------------------------------------------------------------------------------ memory
def kept_bytes(limit, checkpoint, size=50):
    step = lambda i, v: (i + 1, ((v * 2).sin() * v).tanh())  # noqa: E731

    def function(x):
        return while_loop(lambda i, v: i < 5, step, (x[:1] * 0, x), limit, has_outputs=False, checkpoint=checkpoint)[1]

    _, block = gradients(function, [np.ones(size)])
    return int(block._cached_op.summary().split("kept for backward ")[1].split(" bytes")[0])


@pytest.mark.parametrize("checkpoint", ["sqrt", 1, 50, lambda node: node.op == "sin"])
@pytest.mark.parametrize("limit", [100, 1_000, 10_000, 1_000_000, 10**9, 10**18])
def test_at_most_64_copies_of_the_variables_are_kept(limit, checkpoint):
    assert kept_bytes(limit, checkpoint) <= 64 * (50 * 8 + 3 * 64) + 1000


def peak_bytes(build, size):
    """Peak memory of a training step without its inputs: the minimum of three runs."""
    found = []
    for _ in range(3):
        nd.waitall()
        gc.collect()
        before = _core.memory_statistics(*CPU)["in_use"]
        _core.reset_peak_memory(*CPU)
        gradients(build(), [np.full(size, 0.3)])
        nd.waitall()
        found.append(_core.memory_statistics(*CPU)["peak_in_use"] - before)
        gc.collect()
    return min(found)


def deep_loop(trips, limit, checkpoint):
    def step(i, v):
        for _ in range(3):
            v = ((v * 2).sin() * v + (v * v).cos()).tanh()
        return i + 1, v

    def function(x):
        bound = (x[:1] * 0 + 10**7).astype("int32") if limit == "array" else limit
        return while_loop(
            lambda i, v: i < trips, step, (x[:1] * 0, x), bound, has_outputs=False, checkpoint=checkpoint
        )[1]

    return function


@pytest.mark.slow
def test_memory_of_training_does_not_depend_on_max_iterations():
    size = 1000
    few, many = (peak_bytes(lambda m=m: deep_loop(2_000, m, "sqrt"), size) for m in (10_000, 1_000_000))
    assert abs(many / few - 1) <= 0.1
    # 64 copies, a segment of 32 iterations with the values of each, and the working memory of one iteration.
    assert many < (64 + 32 * 30 + 200) * size * 8
    assert many < peak_bytes(lambda: deep_loop(300, 300, None), size)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [None, "array", 100_000])
def test_memory_of_training_does_not_grow_with_the_iterations_that_run(limit):
    size = 1000
    few, many = (peak_bytes(lambda n=n: deep_loop(n, limit, "sqrt"), size) for n in (4_200, 16_000))
    assert many <= 1.1 * few


@pytest.mark.slow
def test_memory_of_second_derivatives_is_bounded():
    def peak(limit, checkpoint):
        nd.waitall()
        gc.collect()
        before = _core.memory_statistics(*CPU)["in_use"]
        _core.reset_peak_memory(*CPU)
        gradients(deep_loop(100, limit, checkpoint), [np.full(1000, 0.3)], order=2)
        nd.waitall()
        return _core.memory_statistics(*CPU)["peak_in_use"] - before

    assert peak(1_000_000, "sqrt") < peak(1_000, None)


# ----------------------------------------------------------------------------------------------------- recomputation
@pytest.mark.parametrize("checkpoint", ["sqrt", 3, lambda node: False])
@pytest.mark.parametrize("limit", [9, 100])
def test_recomputation_draws_the_same_numbers(limit, checkpoint):
    drop = gluon.nn.Dropout(0.5)

    def function(x):
        return while_loop(
            lambda i, v: i < 7,
            lambda i, v: (drop(v), (i + 1, v)),
            (nd.zeros((1,)), x),
            limit,
            checkpoint=checkpoint,
        )[0]

    block = Block(function, drop)
    block.hybridize()
    x = nd.ones((200,))
    x.attach_grad()
    with mx.autograd.record():
        out = block(x)
    out.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), out.asnumpy().sum(axis=0))
    rows = out.asnumpy()
    assert 0.3 < (rows[:7] > 0).mean() < 0.7
    assert len({row.tobytes() for row in rows[:7]}) == 7
    assert (rows[7:] == 0).all()


@pytest.mark.parametrize("checkpoint", ["sqrt", 2])
def test_running_statistics_advance_once(checkpoint):
    found = []
    for option in (None, checkpoint):
        norm = gluon.nn.BatchNorm(in_channels=3)
        block = Block(
            lambda x, n=norm, o=option: while_loop(
                lambda i, v: i < 5, lambda i, v: (i + 1, n(v)), (nd.zeros((1,)), x), 30, has_outputs=False, checkpoint=o
            )[1],
            norm,
        )
        block.hybridize()
        x = nd.array(np.random.default_rng(1).normal(size=(8, 3)).astype("float32"))
        x.attach_grad()
        with mx.autograd.record():
            (block(x) ** 3).sum().backward()
        found.append((norm.running_mean.data().asnumpy(), norm.running_var.data().asnumpy(), x.grad.asnumpy()))
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("checkpoint", [None, "sqrt", 7, lambda node: False])
@pytest.mark.parametrize("limit", [10, 50, 100])
def test_a_reached_limit_warns_once_with_its_number(limit, checkpoint):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gradients(loop(1000, limit, checkpoint, outputs=False, on_limit="warn"), ARRAYS)
    assert [re.search(r"max_iterations=(\d+) ", str(w.message))[1] for w in caught] == [str(limit)]
    with pytest.raises(mx.errors.ValueError, match=f"max_iterations={limit} "):
        gradients(loop(1000, limit, checkpoint, outputs=False, on_limit="raise"), ARRAYS)


@pytest.mark.parametrize("trips", [0, 7, 49])
def test_a_limit_that_is_not_reached_does_not_warn(trips):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradients(loop(trips, 49, "sqrt", outputs=False, on_limit="raise"), ARRAYS)


def test_the_number_of_iterations():
    def function(x):
        return while_loop(
            lambda i, v: i < 300,
            lambda i, v: (i + 1, v.sin()),
            (x[:1] * 0, x),
            3000,
            has_outputs=False,
            return_count=True,
            checkpoint="sqrt",
        )

    block = Block(function)
    block.hybridize()
    x = nd.ones((3,))
    x.attach_grad()
    with mx.autograd.record():
        (_, last), count = block(x)
    last.backward()
    assert count.dtype == np.int64
    assert int(count.asnumpy().reshape(())) == 300


def test_saved_models_keep_their_checkpoints(tmp_path):
    block = Block(lambda x: deep_loop(40, 500, "sqrt")(x))
    block.hybridize()
    start = nd.full((50,), 0.3)
    block(start)
    block.export(str(tmp_path / "net"))
    loaded = gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"))
    loaded.hybridize()
    found = []
    for net in (block, loaded):
        x = start.copy()
        x.attach_grad()
        with mx.autograd.record():
            net(x).sum().backward()
        kept = int(net._cached_op.summary().split("kept for backward ")[1].split(" bytes")[0])
        found.append((kept, x.grad.asnumpy()))
    assert found[0][0] == found[1][0] < 30 * 50 * 4
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_loops_in_loops():
    """A loop with checkpoints in the body of another loop and in a branch of a cond."""

    def function(inner, outer):
        def run(x, w):
            def body(i, v):
                _, v = while_loop(
                    lambda j, u: j < i + 30,
                    lambda j, u: (j + 1, (u * w).sin() + x),
                    (x[:1] * 0, v),
                    70,
                    has_outputs=False,
                    checkpoint=inner,
                )
                return v, (i + 1, v * w)

            rows, (_, last) = while_loop(lambda i, v: i < 9, body, (x[:1] * 0, x), 12, checkpoint=outer)
            chosen = mx.contrib.cond(x.sum() < 9, lambda: loop(20, 40, inner)(x, w), lambda: x)
            return rows.sum(axis=0) + last + chosen

        return run

    for order in (1, 2):
        want, _ = gradients(function(None, None), ARRAYS, order)
        for inner, outer in ((None, "sqrt"), ("sqrt", None), ("sqrt", 2)):
            equal(gradients(function(inner, outer), ARRAYS, order)[0], want)
