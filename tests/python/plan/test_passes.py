"""Choosing, reading and checking the rewrites of a hybridized network."""

from __future__ import annotations

import subprocess
import sys
import warnings

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core, gluon, nd
from hybridnet.gluon import nn


def dense_net() -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="tanh"), nn.Dense(4))
    net.initialize()
    return net


class Loop(gluon.HybridBlock):
    """A recurrent step over the rows of data, with a product that rewrites can move out of the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Dense(4, in_units=4, flatten=False)

    def hybrid_forward(self, F, data):
        def step(row, states):
            state = F.tanh(self.layer(row) * 1 + states[0])
            return state, [state]

        rows, states = F.contrib.foreach(step, data, [F.zeros_like(data[0])])
        return rows.sum() + states[0].sum()


def test_a_word_that_no_rewrite_knows_names_the_nearest() -> None:
    with pytest.raises(mx.base.MXNetError, match=r"did you mean 'winograd'\?"):
        dense_net().hybridize(passes="fast_run,-winogrd")
    with pytest.raises(ValueError, match=r"graph-passes\.md"):
        dense_net().hybridize(passes="nothing_like_it_at_all")


def test_the_environment_is_checked_too() -> None:
    program = "import hybridnet as mx; n = mx.gluon.nn.Dense(2); n.initialize(); n.hybridize(); n(mx.nd.ones((1, 2)))"
    done = subprocess.run(
        [sys.executable, "-c", program], env={"HYBRIDNET_PASSES": "fast_runn", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "HYBRIDNET_PASSES" in done.stderr
    assert "did you mean 'fast_run'?" in done.stderr


@pytest.mark.parametrize("make", [nn.Sequential, nn.HybridSequential])
def test_an_unknown_keyword_of_hybridize_names_the_nearest(make) -> None:
    with pytest.raises(TypeError, match=r"(?s)hybridize: unknown keyword 'static_aloc'.*did you mean 'static_alloc'\?"):
        make().hybridize(static_aloc=True)
    make().hybridize(active=True, static_alloc=True, static_shape=True, partition_if_dynamic=True)


def test_the_report_is_readable(rng) -> None:
    net = nn.HybridSequential()
    for _ in range(30):
        net.add(nn.Dense(4, in_units=4, activation="relu"))
    net.initialize()
    net.hybridize()
    net(nd.array(rng.normal(size=(2, 4))))
    report = net.pass_report()
    assert max(map(len, report.splitlines())) < 200
    assert "and 58 more inputs" in report
    assert "fuse_activation" in report
    assert "rules did not fire" in report
    assert "cond_sink" not in report


def test_the_report_shows_rewrites_in_bodies(rng) -> None:
    net = Loop()
    net.initialize()
    net.hybridize()
    net(nd.array(rng.normal(size=(5, 2, 4))))
    assert "in the body of '" in net.pass_report()


def test_a_plan_shows_implementations_blocks_and_lines(rng) -> None:
    net = dense_net()
    with pytest.raises(RuntimeError, match="before plan_text"):
        net.plan_text()
    net.hybridize()
    net(nd.array(rng.normal(size=(2, 16))))
    text = net.plan_text()
    lines = [line for line in text.splitlines() if line.startswith("  [")]
    assert len(lines) == 2
    assert "_fused_fully_connected <" in lines[0]
    assert f"'{net.name}" in lines[0]
    assert "(i0, i1, i2) -> t0@0 float32(2, 8)" in lines[0]
    assert "(t0, i3, i4) -> o0 float32(2, 4)" in lines[1]


def test_a_plan_shows_the_bodies_of_loops_indented(rng) -> None:
    net = Loop()
    net.initialize()
    net.hybridize()
    data = nd.array(rng.normal(size=(5, 2, 4)))
    data.attach_grad()
    with mx.autograd.record():
        net(data)
    text = net.plan_text()
    assert "forward: " in text
    assert "backward: " in text
    assert "\n    body:\n        " in text
    assert "pointwise[" in text


def test_no_rewrite_changes_a_result_beyond_rounding(rng) -> None:
    net, data = Loop(), nd.array(rng.normal(size=(5, 2, 4)))
    net.initialize()
    before = [value.data().asnumpy() for value in net.collect_params().values()]
    assert mx.test_utils.bisect_passes(net, data) is None
    assert mx.test_utils.bisect_passes(net, data, train=True) is None
    after = [value.data().asnumpy() for value in net.collect_params().values()]
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)


def test_bisecting_names_the_rewrite_that_changes_bits(rng) -> None:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, in_channels=4, use_bias=False), nn.BatchNorm(in_channels=8))
    net.initialize(mx.init.Normal(1))
    net[1].running_var.set_data(nd.array(rng.uniform(0.5, 2, 8)))
    data = nd.array(rng.normal(size=(2, 4, 9, 9)))
    net.hybridize(passes="fast_run,-layout")
    assert mx.test_utils.bisect_passes(net, data, rtol=0, atol=0) == "conv_bn_fold"
    assert mx.test_utils.bisect_passes(net, data) is None


def test_bisecting_needs_a_network() -> None:
    with pytest.raises(TypeError, match="a HybridBlock"):
        mx.test_utils.bisect_passes(nn.Sequential(), nd.ones((2,)))


@pytest.mark.parametrize("train", [False, True])
def test_the_debug_profile_finds_every_rewrite_of_a_network_right(rng, train, capfd) -> None:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, in_channels=4), nn.BatchNorm(in_channels=8), nn.Activation("relu"), nn.Dense(4))
    loop = Loop()
    for block, shape in ((net, (2, 4, 9, 9)), (loop, (5, 2, 4))):
        block.initialize()
        data = nd.array(rng.normal(size=shape))
        want = block(data).asnumpy()
        block.hybridize(passes="debug")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            data.attach_grad()
            with mx.autograd.record(train_mode=train):
                got = block(data)
            got.backward()
        if not train:
            np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-4, atol=1e-4)
        assert "warning" not in block.pass_report()
    assert "failed" not in capfd.readouterr().err


def test_the_pipeline_describes_each_of_its_rewrites() -> None:
    rows = _core.pipeline_rows()
    stages = [stage["name"] for stage in _core.pipeline_stages()]
    assert sorted((row["stage"] for row in rows), key=stages.index) == [row["stage"] for row in rows]
    assert all(row["what"] for row in rows)
    assert len({(row["name"], row["stage"]) for row in rows}) == len(rows)
    assert [row["stage"] for row in rows if row["name"] == "merge"] == ["clean", "clean_joint", "specialize"]
    assert not any("_joint" in row["name"] for row in rows)


def test_a_maximum_over_points_stays_in_the_order_of_the_layers(rng) -> None:
    class Points(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv1D(16, 1, in_channels=3, activation="relu")
            self.second = nn.Conv1D(32, 1, in_channels=16)

        def hybrid_forward(self, F, x):
            return F.max(self.second(self.first(x)), axis=2)

    net = Points()
    net.initialize(mx.init.Normal(1))
    data = nd.array(rng.normal(size=(4, 3, 50)))
    results = []
    for passes in ("fast_run", "fast_run,-channels_last"):
        net.hybridize(passes=passes)
        data.attach_grad()
        with mx.autograd.record():
            out = net(data)
        out.backward()
        results.append([out.asnumpy(), data.grad.asnumpy(), net.first.weight.grad().asnumpy()])
        if passes == "fast_run":
            text = net._cached_op.graph_text() if net._cached_op else ""
            assert "_to_plain(" not in text.split("backward:")[0]
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
