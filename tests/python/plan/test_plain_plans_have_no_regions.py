"""The plan of a network without lazy operators has no regions; a branch is a region of its instruction."""

from __future__ import annotations

import hybridnet as mx
from hybridnet.gluon import nn


def test_the_plan_of_a_plain_net_has_no_regions():
    net, x = nn.HybridSequential(), mx.sym.var("x")
    net.add(
        nn.Dense(4, in_units=3, activation="relu"),
        nn.BatchNorm(in_channels=4),
        nn.Dropout(0.5),
        nn.Dense(2, in_units=4),
    )
    net.initialize()
    f = mx.function([x], net(x))
    f(mx.nd.ones((5, 3)))
    text = f.plan_text()
    assert "segment" not in text
    assert "body" not in text
    assert "branch" not in text
    numbers = [line.split("]")[0].strip(" [") for line in text.splitlines() if line.strip().startswith("[")]
    assert numbers == [str(number) for number in range(len(numbers))]  # a flat list: no instruction has a region
    assert len(numbers) > 0


def test_a_branch_is_a_region_of_its_instruction():
    x = mx.sym.var("x")
    f = mx.function([x], mx.sym.contrib.cond(mx.sym.sum(x) > 0, lambda: mx.sym.exp(x), lambda: x - 1))
    f(mx.nd.ones((5, 3)))
    numbers = [line for line in f.plan_text().splitlines() if line.strip().startswith("[0]")]
    assert len(numbers) > 1  # instruction numbers of the plan and of its branches
