"""The picture of a plan's memory."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import hybridnet as mx
import pytest
from hybridnet._drawing._plan_memory import plans_in
from hybridnet.gluon import nn

TEXT = """net, training: data float32(2, 16)
forward: 3 instructions, arena 1.5 KiB for 2 values, about 1.1 us of work
  i0 = data  float32(2, 16)
  [0] exp <pointwise> (i0) -> t0@0 float32(2, 128)  'exp0' of 'net.0' /home/me/model.py:5
  [1] _foreach (t0) -> t1@1024 float32(2, 64)  'foreach0'
    do:
        2 instructions, arena 64 bytes for 1 value, about 10 ns of work
          [0] sin (i0) -> t0@0 float32(16,)  'sin0' of 'net' /home/me/model.py:9
          [1] cos (t0) -> o0 float32(16,)  'cos0' of 'net' /home/me/model.py:9
          arena:
            t0  0 to 64  instructions 0 to 1
  [2] sum (t1) -> o0 float32(1,)  'sum0'
  output 0 = o0  float32(1,)
  arena:
    t0  0 to 1024  instructions 0 to 1
    t1  1024 to 1536  instructions 1 to 2  shares memory with t7
"""
SPACE = "{http://www.w3.org/2000/svg}"


def titles(picture) -> list[str]:
    return [title.text for title in ET.fromstring(str(picture)).iter(f"{SPACE}title")]


def test_values_lifetimes_and_makers_are_read_from_the_text():
    forward, body = plans_in(TEXT)
    assert (forward.title, forward.instructions, body.title) == ("forward", 3, "forward, do")
    assert [(c.name, c.begin, c.end, c.first, c.last) for c in forward.cells] == [
        ("t0", 0, 1024, 0, 1),
        ("t1", 1024, 1536, 1, 2),
    ]
    assert forward.cells[0].maker == "exp 'exp0' of 'net.0' /home/me/model.py:5"
    assert forward.live_bytes() == [1024, 1536, 512]
    assert [cell.maker.split()[0] for cell in body.cells] == ["sin"]


def test_the_picture_names_the_instruction_with_the_most_memory():
    picture = mx.viz.plot_memory(TEXT)
    assert titles(picture) == [
        "t0: 1.0 KiB at 0, instructions 0 to 1, by exp 'exp0' of 'net.0' /home/me/model.py:5",
        "t1: 512 bytes at 1024, instructions 1 to 2, by _foreach 'foreach0'",
        "t0: 64 bytes at 0, instructions 0 to 1, by sin 'sin0' of 'net' /home/me/model.py:9",
    ]
    assert "most live memory: instruction 1, _foreach" in str(picture)
    assert "characters of SVG" in repr(picture)


def network():
    net = nn.HybridSequential()
    net.add(nn.Dense(64, activation="tanh"), nn.Dense(32, activation="relu"), nn.Dense(4))
    net.initialize()
    net.hybridize()
    return net


def test_a_training_call_has_a_panel_for_forward_and_backward(tmp_path):
    net, x = network(), mx.nd.ones((8, 16))
    with mx.autograd.record():
        out = net(x)
    out.backward()
    file = tmp_path / "memory.svg"
    picture = mx.viz.plot_memory(net, str(file))
    assert file.read_text(encoding="utf-8") == str(picture)
    plans = plans_in(net.plan_text())
    assert {"forward", "backward"} <= {plan.title for plan in plans}
    assert len(titles(picture)) == sum(len(plan.cells) for plan in plans) > 0
    listed = re.findall(r"^ *t\d+  \d+ to \d+  instructions", net.plan_text(), re.MULTILINE)
    assert sum(len(plan.cells) for plan in plans) == len(listed)


def test_functions_and_executors_have_pictures_too():
    executor = mx.sym.exp(mx.sym.sin(mx.sym.var("x")).sum()).simple_bind(mx.cpu(), x=(4, 4))
    executor.forward()
    assert "svg" in str(mx.viz.plot_memory(executor))


def test_bodies_of_loops_are_plans_of_their_own():
    class Loop(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x, weight=None):
            return F.contrib.foreach(lambda row, s: (F.dot(row, s), F.dot(s, s) * 0.5), x, F.ones((8, 8)))[0]

    net = Loop()
    net.hybridize(passes="fast_run,-loop")
    net(mx.nd.ones((3, 4, 8)))
    assert len(plans_in(net.plan_text())) >= 2
    mx.viz.plot_memory(net)


def test_wrong_sources_are_named(tmp_path):
    with pytest.raises(TypeError, match="got NDArray"):
        mx.viz.plot_memory(mx.nd.ones((1,)))
    with pytest.raises(ValueError, match="no plan yet"):
        mx.viz.plot_memory("")
    with pytest.raises(mx.MXNetError, match="has no graph yet"):
        mx.viz.plot_memory(network())
    with pytest.raises(ValueError, match=r"\.svg"):
        mx.viz.plot_memory(TEXT, str(tmp_path / "memory.png"))
