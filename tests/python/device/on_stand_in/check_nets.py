"""Networks with layers, loops and branches run in every mode with the CPU's numbers, with CUDA graphs and without."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import hybridnet as mx
import nets
import numpy as np
import pytest
import stand_in
from hybridnet import autograd, gluon

GPU = mx.gpu(0)
GRAPHS = os.environ.get("HYBRIDNET_CUDA_GRAPHS") != "0"
MODES: dict[str, dict[str, Any] | None] = {
    "imperative": None,
    "hybridized": {},
    "static": {"static_alloc": True, "static_shape": True},
}


def assert_near(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for mine, its in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, its, rtol=2e-5, atol=2e-5 * max(1e-3, np.abs(its).max()))


def graph_launches() -> int:
    mx.nd.waitall()
    return stand_in.counters()["graph_launches"]


def check_runs(net: gluon.Block, case: nets.Case, expected: list[list[np.ndarray]], is_plan: bool) -> None:
    before = graph_launches()
    for _ in range(2):
        for inputs, wanted in zip(case.runs, expected, strict=True):
            assert_near(nets.outputs(net, inputs, GPU), wanted)
    assert (graph_launches() > before) == (is_plan and GRAPHS)


@pytest.mark.parametrize("name", nets.CASES)
def test_outputs_are_those_of_the_cpu_in_every_mode(name: str, tmp_path: pathlib.Path) -> None:
    case = nets.CASES[name]()
    net = case.net
    expected = [nets.outputs(net, inputs, mx.cpu()) for inputs in case.runs]
    net.collect_params().reset_ctx(GPU)
    for options in MODES.values():
        net.hybridize(options is not None, **options or {})
        check_runs(net, case, expected, options is not None)
    symbol, params = net.export(str(tmp_path / "net"))
    names = ["data"] if len(case.runs[0]) == 1 else [f"data{i}" for i in range(len(case.runs[0]))]
    check_runs(gluon.SymbolBlock.imports(symbol, names, params, ctx=GPU), case, expected, True)


def loss_of_labels(case: nets.Case) -> Callable:
    label = np.arange(len(case.runs[0][0])) % 10
    return lambda out: gluon.loss.SoftmaxCrossEntropyLoss()(out, mx.nd.array(label, ctx=out.context)).mean()


LOSSES: dict[str, Callable[[nets.Case], Callable]] = {
    "mlp": loss_of_labels,
    "lenet": loss_of_labels,
    "language_model": lambda case: lambda scores, *states: (scores * scores).mean() + states[-1].sum(),
    "early_exit": lambda case: lambda cheap, deep: loss_of_labels(case)(cheap) + loss_of_labels(case)(deep),
}


def trained(name: str, ctx: mx.Context, options: dict[str, Any] | None) -> list[float]:
    """The losses of four steps."""
    case = nets.CASES[name]()
    case.net.collect_params().reset_ctx(ctx)
    case.net.hybridize(options is not None, **options or {})
    loss_of = LOSSES[name](case)
    trainer = gluon.Trainer(case.net.collect_params(), "adam", {"learning_rate": 0.01})
    losses = []
    for inputs in [case.runs[0]] * 4:
        with autograd.record():
            out = case.net(*(mx.nd.array(x, ctx=ctx) for x in inputs))
            loss = loss_of(*(out if isinstance(out, (list, tuple)) else [out]))
        loss.backward()
        trainer.step(1)
        losses.append(float(loss.asscalar()))
    return losses


@pytest.mark.parametrize("name", LOSSES)
def test_training_has_the_losses_of_the_cpu_in_every_mode(name: str) -> None:
    expected = trained(name, mx.cpu(), None)
    assert expected[-1] < expected[0]
    for mode, options in MODES.items():
        np.testing.assert_allclose(trained(name, GPU, options), expected, rtol=1e-4, err_msg=mode)


@pytest.mark.skipif(not GRAPHS, reason="CUDA graphs are off in this process already, which the test starts")
def test_all_of_it_holds_without_cuda_graphs() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", __file__],
        env={**os.environ, "HYBRIDNET_CUDA_GRAPHS": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]


class Shifted(gluon.HybridBlock):
    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return x + F.ones((3,))


def test_arrays_that_a_block_makes_are_on_the_device_of_its_input() -> None:
    for hybridize in (False, True):
        net = Shifted()
        net.hybridize(hybridize)
        for ctx, other in ((GPU, mx.cpu()), (mx.cpu(), GPU)):
            x = mx.nd.zeros((3,), ctx=ctx)
            assert net(x).context == ctx
            with other:
                assert net(x).context == ctx
                assert mx.nd.ones((1,)).context == other
