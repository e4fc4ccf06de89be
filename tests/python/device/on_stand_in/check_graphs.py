"""Plans that repeat their launches run as CUDA graphs: with the values of single launches, whatever changes between."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import hybridnet as mx
import numpy as np
import pytest
import stand_in
from hybridnet import autograd, gluon
from hybridnet.errors import HybridNetError
from hybridnet.gluon import nn

GPU = mx.gpu(0)
RANDOM = np.random.default_rng(5)


@pytest.fixture(params=[0, 1, 2], autouse=True)
def order(request: pytest.FixtureRequest) -> None:
    stand_in.seed(request.param)


def values(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype("float32")


def mlp() -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(nn.Dense(8, in_units=6, activation="tanh"), nn.LayerNorm(in_channels=8), nn.Dense(8, in_units=8))
    net.add(nn.Dense(5, in_units=8, activation="sigmoid"), nn.Dense(3, in_units=5))
    return net


def pairs(one: gluon.Block, other: gluon.Block) -> zip:
    return zip(one.collect_params().values(), other.collect_params().values(), strict=True)


def twins(make: Callable[[], gluon.Block], **options: bool) -> tuple[gluon.Block, gluon.Block]:
    """The same network on the CPU, imperative, and on the GPU, hybridized."""
    on_cpu, on_gpu = make(), make()
    on_cpu.initialize(mx.init.Xavier(), ctx=mx.cpu())
    on_gpu.initialize(ctx=GPU)
    for mine, its in pairs(on_gpu, on_cpu):
        mine.set_data(its.data())
    on_gpu.hybridize(**options)
    return on_cpu, on_gpu


def graph_launches() -> int:
    mx.nd.waitall()
    return stand_in.counters()["graph_launches"]


@pytest.mark.parametrize("static", [False, True])
def test_repeated_runs_are_graphs_with_the_values_of_each_input(static: bool) -> None:
    on_cpu, on_gpu = twins(mlp, static_alloc=static, static_shape=static)
    kept = []
    for _ in range(8):
        x = values(4, 6)
        kept.append((on_gpu(mx.nd.array(x, ctx=GPU)), on_cpu(mx.nd.array(x))))
    assert graph_launches() >= (4 if static else 1)  # each result has memory of its own: with few kernels most change
    for mine, expected in kept:
        np.testing.assert_allclose(mine.asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6)


def test_a_run_sets_only_the_nodes_whose_arguments_changed() -> None:
    _, on_gpu = twins(mlp)
    x = mx.nd.array(values(4, 6), ctx=GPU)
    for _ in range(6):
        on_gpu(x).wait_to_read()
    before = stand_in.counters()
    for _ in range(10):
        on_gpu(x).wait_to_read()
    after = stand_in.counters()
    graphs = after["graph_launches"] - before["graph_launches"]
    assert graphs == 10
    assert after["nodes_set"] - before["nodes_set"] <= 2 * graphs


def test_sizes_that_alternate_have_graphs_of_their_own() -> None:
    on_cpu, on_gpu = twins(mlp)
    for step in range(24):
        x = values((4, 1, 7)[step % 3], 6)
        np.testing.assert_allclose(
            on_gpu(mx.nd.array(x, ctx=GPU)).asnumpy(), on_cpu(mx.nd.array(x)).asnumpy(), rtol=1e-5, atol=1e-6
        )
    assert graph_launches() >= 12


def train(net: gluon.Block, context: mx.Context, steps: int) -> list[float]:
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    random = np.random.default_rng(0)
    losses = []
    for _ in range(steps):
        x, y = random.standard_normal((2, 4, 6)).astype("float32"), random.standard_normal((4, 3)).astype("float32")
        with autograd.record():
            out = net(mx.nd.array(x[0], ctx=context))
            loss = ((out - mx.nd.array(y, ctx=context)) ** 2).mean()
        loss.backward()
        trainer.step(1)
        losses.append(float(loss.asscalar()))
    return losses


def test_training_follows_the_cpu() -> None:
    on_cpu, on_gpu = twins(mlp)
    expected = train(on_cpu, mx.cpu(), 10)
    np.testing.assert_allclose(train(on_gpu, GPU, 10), expected, rtol=1e-4)
    assert graph_launches() >= 10


def test_states_that_a_run_writes_are_those_of_the_cpu() -> None:
    def make() -> nn.HybridSequential:
        net = nn.HybridSequential()
        net.add(nn.Conv2D(4, 3, in_channels=2), nn.BatchNorm(in_channels=4), nn.Activation("relu"))
        net.add(nn.Conv2D(3, 2, in_channels=4), nn.BatchNorm(in_channels=3))
        return net

    on_cpu, on_gpu = twins(make)
    for _ in range(6):
        x = values(2, 2, 6, 6)
        with autograd.record():
            on_cpu(mx.nd.array(x))
            on_gpu(mx.nd.array(x, ctx=GPU))
    assert graph_launches() >= 3
    for mine, its in pairs(on_gpu, on_cpu):
        np.testing.assert_allclose(mine.data().asnumpy(), its.data().asnumpy(), rtol=1e-4, atol=1e-5)


class Steps(gluon.HybridBlock):
    """A recurrent network by foreach, then a loop whose length is a value."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Dense(4, in_units=8, activation="tanh")

    def hybrid_forward(self, F, x: mx.nd.NDArray, start: mx.nd.NDArray, limit: mx.nd.NDArray):
        def step(row, state):
            new = self.cell(F.concat(row, state, dim=1))
            return new, new

        rows, state = F.contrib.foreach(step, x, start)

        def grow(total, state):
            state = F.tanh(state * 1.5 + 0.1)
            return state.sum(), [total + F.abs(state).sum(), state]

        _, (total, state) = F.contrib.while_loop(
            lambda total, _: total < limit, grow, [F.zeros_like(limit), state], max_iterations=40
        )
        return rows, total, state


def test_loops_whose_lengths_change_have_the_values_of_the_cpu() -> None:
    on_cpu, on_gpu = twins(Steps)
    for step in range(12):
        inputs = [values(3 + step % 2, 2, 4), values(2, 4), np.array([5.0 * (1 + step % 4)], "float32")]
        mine = on_gpu(*(mx.nd.array(x, ctx=GPU) for x in inputs))
        expected = on_cpu(*(mx.nd.array(x) for x in inputs))
        for a, b in zip(mine, expected, strict=True):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-4, atol=1e-5)
    assert graph_launches() > 0


class Early(gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.small, self.large = mlp(), mlp()

    def hybrid_forward(self, F, x: mx.nd.NDArray):
        near = self.small(x)
        return F.contrib.cond(near.sum() > 0, lambda: near, lambda: self.large(x))


def test_branches_that_alternate_have_the_values_of_the_cpu() -> None:
    on_cpu, on_gpu = twins(Early)
    taken = set()
    for number in range(16):
        x = values(4, 6) * 3
        on_cpu.small[-1].bias.set_data(mx.nd.full((3,), 10.0 * (-1) ** number))
        on_gpu.small[-1].bias.set_data(mx.nd.full((3,), 10.0 * (-1) ** number))
        expected = on_cpu(mx.nd.array(x)).asnumpy()
        taken.add(bool(on_cpu.small(mx.nd.array(x)).sum().asscalar() > 0))
        np.testing.assert_allclose(on_gpu(mx.nd.array(x, ctx=GPU)).asnumpy(), expected, rtol=1e-5, atol=1e-6)
    assert taken == {False, True}


def test_each_run_draws_anew() -> None:
    class Noise(gluon.HybridBlock):
        def hybrid_forward(self, F, x: mx.nd.NDArray):
            return x + F.random.normal(shape=(50,)) + F.random.uniform(shape=(50,)) * F.tanh(F.exp(x))

    net = Noise()
    net.hybridize()
    drawn, expected = [], []
    for device, into in ((GPU, drawn), (mx.cpu(), expected)):
        mx.random.seed(3)
        zeros = mx.nd.zeros((50,), ctx=device)
        into.extend(net(zeros).asnumpy() for _ in range(6))
    assert len({one.tobytes() for one in drawn}) == 6
    np.testing.assert_allclose(drawn, expected, rtol=1e-5, atol=1e-6)


def test_threads_that_share_a_network_get_their_own_values() -> None:
    on_cpu, on_gpu = twins(mlp)
    inputs = [values(4, 6) for _ in range(3)]
    expected = [on_cpu(mx.nd.array(x)).asnumpy() for x in inputs]
    wrong: list[str] = []

    def run(number: int) -> None:
        for _ in range(10):
            out = on_gpu(mx.nd.array(inputs[number], ctx=GPU)).asnumpy()
            if not np.allclose(out, expected[number], rtol=1e-5, atol=1e-6):
                wrong.append(f"thread {number}: {out}")

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def live_graphs() -> int:
    mx.nd.waitall()
    gc.collect()
    return stand_in.counters()["live_graphs"]


def test_graphs_are_freed_with_their_network() -> None:
    before = live_graphs()
    _, on_gpu = twins(mlp)
    for _ in range(5):
        on_gpu(mx.nd.array(values(4, 6), ctx=GPU)).wait_to_read()
    assert live_graphs() > before
    del on_gpu, _
    assert live_graphs() == before


def test_a_failing_call_of_the_driver_is_an_error_or_no_graph() -> None:
    on_cpu, _ = twins(mlp)
    x = values(4, 6)
    expected = on_cpu(mx.nd.array(x)).asnumpy()
    data = mx.nd.array(x, ctx=GPU)
    weights = [parameter.data() for parameter in on_cpu.collect_params().values()]

    def copy() -> gluon.Block:
        net = mlp()
        net.initialize(ctx=GPU)
        for parameter, weight in zip(net.collect_params().values(), weights, strict=True):
            parameter.set_data(weight)
        net.hybridize()
        return net

    for what in ("cuGraphCreate", "cuGraphAddKernelNode_v2", "cuGraphInstantiateWithFlags", "cuGraphLaunch"):
        for position in (1, 3):
            on_gpu = copy()
            for _ in range(3):
                stand_in.fail(f"{what}:{position}")
                np.testing.assert_allclose(on_gpu(data).asnumpy(), expected, rtol=1e-5, atol=1e-6)
            stand_in.fail("")
    on_gpu = copy()
    for position in range(1, 30):
        stand_in.fail(f"any:{position}")
        try:
            np.testing.assert_allclose(on_gpu(data).asnumpy(), expected, rtol=1e-5, atol=1e-6)
        except HybridNetError as error:
            assert "CUDA" in str(error) or "bytes left" in str(error), str(error)
        finally:
            stand_in.fail("")
        np.testing.assert_allclose(on_gpu(data).asnumpy(), expected, rtol=1e-5, atol=1e-6)
