"""Loops and branches that the GPU runs by itself: the bits of the host's loops, and no wait for conditions."""

from __future__ import annotations

import textwrap
import threading
from collections.abc import Callable, Sequence

import hybridnet as mx
import numpy as np
import pytest
import stand_in
from hybridnet import autograd, gluon
from hybridnet.errors import HybridNetError

GPU = mx.gpu(0)
RANDOM = np.random.default_rng(7)


@pytest.fixture(params=[0, 1], autouse=True)
def order(request: pytest.FixtureRequest) -> None:
    stand_in.seed(request.param)


def values(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


class Net(gluon.HybridBlock):
    """A block of one function."""

    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def hybrid_forward(self, F, *inputs: mx.nd.NDArray):
        return self.function(F, *inputs)


def hybridized(function: Callable) -> Net:
    net = Net(function)
    net.hybridize()
    return net


def arrays(outputs: mx.nd.NDArray | Sequence) -> list[mx.nd.NDArray]:
    return [outputs] if isinstance(outputs, mx.nd.NDArray) else [one for part in outputs for one in arrays(part)]


def counted(net: Net, inputs: Sequence[np.ndarray]) -> tuple[list[np.ndarray], dict[str, int]]:
    """The results on the GPU, and what the run added to the counters before a result was read."""
    given = [mx.nd.array(x, ctx=GPU, dtype=x.dtype) for x in inputs]
    mx.nd.waitall()
    before = stand_in.counters()
    outputs = arrays(net(*given))
    mx.nd.waitall()
    after = stand_in.counters()
    added = {name: after[name] - before[name] for name in after}
    return [one.asnumpy() for one in outputs], added


def check(function: Callable, runs: Sequence[Sequence[np.ndarray]], rounds: Sequence[int] | None = None) -> None:
    """The host runs the loop in the first run of each shape, the device in later ones, with the same bits."""
    on_gpu, on_cpu = hybridized(function), hybridized(function)
    of_host = []
    for inputs in runs:
        of_host.append(counted(hybridized(function), inputs))
        expected = [one.asnumpy() for one in arrays(on_cpu(*(mx.nd.array(x, dtype=x.dtype) for x in inputs)))]
        for mine, its in zip(of_host[-1][0], expected, strict=True):
            np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-5)
        assert of_host[-1][1]["rounds"] == 0
    for inputs in runs:
        counted(on_gpu, inputs)
    for number in [*range(len(runs)), *reversed(range(len(runs)))]:
        mine, added = counted(on_gpu, runs[number])
        for a, b in zip(mine, of_host[number][0], strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))
        assert added["bytes_out"] == 0, "the host has read a value of the device"
        if rounds is not None:
            assert added["rounds"] == rounds[number]
    assert stand_in.reports() == []


def scan(F, x: mx.nd.NDArray, h: mx.nd.NDArray, weight: mx.nd.NDArray):
    def step(row, state):
        new = F.tanh(F.dot(F.concat(row, state, dim=1), weight))
        return [new, new.sum(axis=1)], new

    return F.contrib.foreach(step, x, h)


def test_a_scan_runs_for_each_length() -> None:
    weight = values(6, 4)
    check(scan, [(values(n, 3, 2), values(3, 4), weight) for n in (9, 12, 9, 30)], [9, 12, 9, 30])


def test_an_lstm_by_foreach() -> None:
    def lstm(F, x: mx.nd.NDArray, h: mx.nd.NDArray, c: mx.nd.NDArray, w: mx.nd.NDArray, u: mx.nd.NDArray):
        def step(row, states):
            gates = F.dot(row, w) + F.dot(states[0], u)
            i, f, g, o = F.split(gates, num_outputs=4, axis=1)
            c = F.sigmoid(f) * states[1] + F.sigmoid(i) * F.tanh(g)
            h = F.sigmoid(o) * F.tanh(c)
            return h, [h, c]

        return F.contrib.foreach(step, x, [h, c])

    inputs = (values(10, 2, 3), values(2, 4), values(2, 4), values(3, 16), values(4, 16))
    check(lstm, [inputs, (values(10, 2, 3), *inputs[1:])], [10, 10])


def decode(F, start: mx.nd.NDArray, table: mx.nd.NDArray, end: mx.nd.NDArray):
    """Greedy: the best next token until the end token, of at most 12."""

    def step(token, state):
        state = F.tanh(F.take(table, token) * 0.7 + state)
        token = F.argmax(F.dot(state, table, transpose_b=True), axis=1)
        return token, [token, state]

    return F.contrib.while_loop(
        lambda token, state: (token != end).sum() > 0, step, [start, F.take(table, start) * 0], max_iterations=12
    )


def test_greedy_decoding_stops_at_the_end_token_or_at_the_limit() -> None:
    table = values(7, 5)
    runs = [
        (np.array([float(t)], "float32"), table, np.array([float(e)], "float32")) for t, e in ((1, 2), (3, 3), (0, -1))
    ]
    check(decode, runs)


def countdown(dtype: str, limit: int = 20) -> Callable:
    def function(F, x: mx.nd.NDArray, stop: mx.nd.NDArray):
        def step(x, n):
            return x * 2, [x + 1, n + 1]

        return F.contrib.while_loop(lambda x, n: x < stop, step, [x, F.zeros_like(x)], max_iterations=limit)

    return function


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "float16"])
def test_zero_some_and_all_iterations(dtype: str) -> None:
    runs = [(np.array([start], dtype), np.array([stop], dtype)) for start, stop in ((5, 5), (0, 3), (0, 100), (1, 2))]
    check(countdown(dtype), runs, [0, 3, 20, 1])


def test_a_condition_that_is_nan_holds() -> None:
    def function(F, x: mx.nd.NDArray, y: mx.nd.NDArray):
        step = lambda x, y: (x, [x + 1, F.where(x > 3, F.zeros_like(y), y)])  # noqa: E731
        return F.contrib.while_loop(lambda x, y: y, step, [x, y], max_iterations=9)

    runs = [(np.array([0.0], "float32"), np.array([y], "float32")) for y in (np.nan, 0.0, np.inf, -0.0)]
    check(function, runs, [5, 0, 5, 0])


def test_states_that_change_places_or_come_from_elsewhere() -> None:
    def function(F, x: mx.nd.NDArray, a: mx.nd.NDArray, b: mx.nd.NDArray, c: mx.nd.NDArray):
        def step(row, states):
            a, b, _, kept, _, new, before = states
            return a - b + before, [b, a, row, kept, c, F.tanh(new) + row, new]

        return F.contrib.foreach(step, x, [a, b, a * 0, b + 1, a * 2, c, c + 1])

    inputs = [values(n, 3) for n in (9, 10)]
    check(function, [(x, values(3), values(3), values(3)) for x in inputs], [9, 10])


def test_states_that_change_places_in_the_memory_of_results() -> None:
    def function(F, a: mx.nd.NDArray, b: mx.nd.NDArray, c: mx.nd.NDArray, stop: mx.nd.NDArray):
        step = lambda a, b, c, n: (a, [b, c, a, n + 1])  # noqa: E731
        start = [a * 2, b * 3, c * 4, F.zeros_like(stop)]
        _, states = F.contrib.while_loop(lambda *s: s[3] < stop, step, start, max_iterations=9)
        return [state + 0 for state in states]

    runs = [(*(values(3) for _ in range(3)), np.array([stop], "float32")) for stop in (1, 2, 3)]
    check(function, runs, [1, 2, 3])


def test_an_early_exit_by_cond_in_a_while_loop() -> None:
    def function(F, x: mx.nd.NDArray, limit: mx.nd.NDArray):
        def step(x, go):
            small = F.contrib.cond(x.sum() < limit, lambda: x * 1.5, lambda: x - 1)
            return small, [small, F.contrib.cond(small.max() > 9, lambda: go * 0, lambda: go)]

        return F.contrib.while_loop(lambda x, go: go, step, [x, F.ones_like(limit)], max_iterations=15)

    check(function, [(np.full(4, s, "float32"), np.array([m], "float32")) for s, m in ((1, 9), (2, 100), (20, 3))])


def test_loops_in_loops() -> None:
    def function(F, x: mx.nd.NDArray, stop: mx.nd.NDArray):
        def inner(x):
            return F.contrib.while_loop(lambda x: x.sum() < stop, lambda x: (x, x + 1), [x], max_iterations=6)

        def step(row, state):
            rows, (last,) = inner(row + state * 0.5)
            scanned, _ = F.contrib.foreach(lambda r, s: (r * s, s + 1), rows, state * 0 + 1)
            return [rows, scanned.sum(axis=0)], last * 0.25

        return F.contrib.foreach(step, x, x[0] * 0)

    check(function, [(values(9, 3), np.array([s], "float32")) for s in (2.0, -50.0, 40.0)])


def test_branches_alone_run_on_the_device() -> None:
    def function(F, x: mx.nd.NDArray, limit: mx.nd.NDArray):
        return F.contrib.cond(x.sum() > limit, lambda: [F.exp(x) + 1, x], lambda: [x, F.tanh(x) * 2])

    x = values(4, 3)
    check(function, [(x, np.array([s], "float32")) for s in (-100, 100, np.nan)], [1, 1, 1])


def test_a_loop_with_random_numbers_is_the_hosts() -> None:
    def draws(F, x: mx.nd.NDArray):
        step = lambda row, state: (row + F.random.uniform(shape=(3,)), state + 1)  # noqa: E731
        return F.contrib.foreach(step, x, x[0])

    net = hybridized(draws)
    for _ in range(4):
        _, added = counted(net, [values(9, 3)])
        assert added["rounds"] == 0


def test_a_loop_in_a_loop_of_the_host_has_few_graphs() -> None:
    def function(F, x: mx.nd.NDArray, stop: mx.nd.NDArray):
        def step(row, state):
            grow = lambda s: (s, F.abs(s) * 1.5 + 0.1)  # noqa: E731
            _, (last,) = F.contrib.while_loop(lambda s: s.sum() < stop, grow, [row * state], max_iterations=20)
            return last + F.random.uniform(shape=(3,)), state

        return F.contrib.foreach(step, x, x[0])

    net = hybridized(function)
    inputs = [values(12, 3), np.array([9.0], "float32")]
    before = stand_in.counters()["live_graphs"]
    for _ in range(4):
        _, added = counted(net, inputs)
    assert added["rounds"] > 12
    assert added["bytes_out"] == 0
    assert stand_in.counters()["live_graphs"] - before <= 8  # two of the driver for each of ours


@pytest.mark.parametrize(("limit", "cases"), [(None, [(0, 1), (5, 1), (4096, 1), (4099, 2)]), (10**6, [(5, 1)])])
def test_a_loop_that_may_not_end_is_looked_at_now_and_then(limit: int | None, cases: list[tuple[int, int]]) -> None:
    def function(F, x: mx.nd.NDArray, stop: mx.nd.NDArray):
        step = lambda x, n: [F.sin(x) + 1, n + 1]  # noqa: E731
        start = [x, F.zeros_like(stop)]
        return F.contrib.while_loop(lambda _, n: n < stop, step, start, max_iterations=limit, has_outputs=False)

    net = hybridized(function)
    counted(net, [values(2), np.zeros(1, "float32")])
    for steps, looks in cases:
        inputs = [values(2), np.array([steps], "float32")]
        mine, added = counted(net, inputs)
        assert added["rounds"] == steps
        assert added["bytes_out"] == 32 * looks
        expected, _ = counted(hybridized(function), inputs)
        for a, b in zip(mine, expected, strict=True):
            np.testing.assert_array_equal(a, b)
    assert stand_in.reports() == []


def test_a_limit_that_ends_a_loop_is_reported() -> None:
    def function(F, x: mx.nd.NDArray, stop: mx.nd.NDArray):
        step = lambda x: (x, x + 1)  # noqa: E731
        return F.contrib.while_loop(lambda x: x < stop, step, [x], max_iterations=4, on_limit="raise")

    net = hybridized(function)
    for stop in (3.0, 4.0, 2.0):
        mine, added = counted(net, [np.zeros(1, "float32"), np.array([stop], "float32")])
        assert mine[1] == [stop]
    assert added["rounds"] == 2
    before = stand_in.counters()["rounds"]
    with pytest.raises(HybridNetError, match="still holds after max_iterations=4"):
        counted(net, [np.zeros(1, "float32"), np.array([5.0], "float32")])
    assert stand_in.counters()["rounds"] == before + 4


def gradients(net: Net, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The result, a number, and its gradients."""
    given = [mx.nd.array(x, ctx=GPU) for x in inputs]
    for one in given:
        one.attach_grad()
    with autograd.record():
        out = net(*given)
    out.backward()
    return [out.asnumpy(), *(one.grad.asnumpy() for one in given)]


def check_gradients(function: Callable, runs: Sequence[Sequence[np.ndarray]]) -> list[int]:
    """Returns the rounds of each run."""
    net = hybridized(function)
    rounds = []
    for inputs in runs:
        expected = gradients(hybridized(function), inputs)
        before = stand_in.counters()["rounds"]
        for mine, its in zip(gradients(net, inputs), expected, strict=True):
            np.testing.assert_array_equal(mine, its)
        rounds.append(stand_in.counters()["rounds"] - before)
    mx.nd.waitall()
    assert stand_in.reports() == []
    return rounds


def test_gradients_have_the_bits_of_the_host() -> None:
    def loss(F, x: mx.nd.NDArray, h: mx.nd.NDArray, stop: mx.nd.NDArray, weight: mx.nd.NDArray):
        rows, state = F.contrib.foreach(lambda r, s: (F.tanh(F.dot(r + s, weight)), r * s), x, h)
        grow = lambda s: (s, F.sin(s) * 1.5 + 0.1)  # noqa: E731
        more, (last,) = F.contrib.while_loop(lambda s: s.sum() < stop, grow, [state[0] + rows[1]], max_iterations=9)
        return rows.sum() + F.contrib.cond(last.sum() > 0, lambda: more.sum(), lambda: (last * last).sum())

    stops = [np.array([stop], "float32") for stop in (3.0, 100.0, -100.0)]
    rounds = check_gradients(loss, [(values(10, 3, 4), values(3, 4), stop, values(4, 4)) for stop in stops])
    assert rounds == [0, 2 * (10 + 9 + 1), 2 * (10 + 1)]  # forward and backward: the scan, the loop, the branch


def test_gradients_of_branches_in_loops_keep_the_values_of_the_branch_that_ran() -> None:
    def loss(F, x: mx.nd.NDArray, h: mx.nd.NDArray):
        def step(row, state):
            new = F.contrib.cond(row.sum() > 0, lambda: F.tanh(state * row) * row, lambda: F.sin(state + row) * state)
            return new * row, new

        def again(state, n):
            new = F.contrib.cond(state.sum() > 0, lambda: F.tanh(state) - n, lambda: F.exp(state * 0.1) * state)
            return new, [new, n + 1]

        rows, state = F.contrib.foreach(step, x, h)
        more, _ = F.contrib.while_loop(lambda _, n: n < 6, again, [state, F.zeros((1,))], max_iterations=9)
        return (rows * rows).sum() + more.sum()

    rounds = check_gradients(loss, [(values(12, 4), values(4)) for _ in range(4)])
    assert rounds == [0, *[4 * (12 + 6)] * 3]  # forward and backward, each with a branch in each iteration


def test_threads_get_their_own_values() -> None:
    net = hybridized(countdown("float32"))
    wrong: list[str] = []

    def run(number: int) -> None:
        for _ in range(8):
            given = [mx.nd.array([x], ctx=GPU) for x in (0.0, float(number))]
            steps = net(*given)[1][1].asnumpy()[0]
            if steps != number:
                wrong.append(f"{steps} steps instead of {number}")

    threads = [threading.Thread(target=run, args=(number,)) for number in (2, 5, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    "what",
    [
        *("cuGraphCreate", "cuGraphConditionalHandleCreate", "cuGraphAddNode_v2", "cuGraphAddKernelNode_v2"),
        *("cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams_v2", "cuGraphLaunch", "cuModuleLoadDataEx"),
    ],
)
def test_a_call_that_fails_leaves_the_loop_to_the_host(what: str) -> None:
    def function(F, x: mx.nd.NDArray, stop: mx.nd.NDArray):
        step = lambda x: (x, F.contrib.cond(x > 2, lambda: x + 1, lambda: x * 2))  # noqa: E731
        return F.contrib.while_loop(lambda x: x < stop, step, [x], max_iterations=12)

    inputs = [np.array([1.0], "float32"), np.array([7.0], "float32")]
    expected, _ = counted(hybridized(function), inputs)
    for position in (1, 2, 4):
        net = hybridized(function)
        for _ in range(2):
            counted(net, inputs)
        for _ in range(3):
            stand_in.fail(f"{what}:{position}")
            mine, _ = counted(net, inputs)
            stand_in.fail("")
            for a, b in zip(mine, expected, strict=True):
                np.testing.assert_array_equal(a, b)


def test_any_failing_call_is_an_error_or_the_right_value() -> None:
    net = hybridized(countdown("float32"))
    inputs = [np.array([0.0], "float32"), np.array([4.0], "float32")]
    expected, _ = counted(net, inputs)
    for position in range(1, 26):
        stand_in.fail(f"any:{position}")
        try:
            mine, _ = counted(net, inputs)
            np.testing.assert_array_equal(mine[0], expected[0])
        except HybridNetError as error:
            assert "CUDA" in str(error) or "bytes left" in str(error), str(error)
        finally:
            stand_in.fail("")
        mine, _ = counted(net, inputs)
        np.testing.assert_array_equal(mine[0], expected[0])


@pytest.mark.parametrize("setting", [{"HNSTANDIN_VERSION": "12020"}, {"HYBRIDNET_CUDA_GRAPHS": "0"}])
def test_without_conditional_nodes_the_host_runs_the_loop(setting: dict[str, str]) -> None:
    program = """
        import hybridnet as mx, stand_in
        class Net(mx.gluon.HybridBlock):
            def hybrid_forward(self, F, x):
                return F.contrib.while_loop(lambda x: x < 5, lambda x: (x, x + 1), [x], max_iterations=9)[1]
        net = Net()
        net.hybridize()
        for _ in range(3):
            print(float(net(mx.nd.zeros((1,), ctx=mx.gpu(0)))[0].asscalar()), stand_in.counters()["rounds"])
    """
    done = stand_in.run(textwrap.dedent(program), **setting)
    assert done.stdout.split() == ["5.0", "0"] * 3
