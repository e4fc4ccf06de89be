"""Times by block and by line, and the flame graph."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import hybridnet as mx
import pytest
from hybridnet import gluon, profiler
from hybridnet._profile_tables import own_times
from hybridnet.gluon import nn


@pytest.fixture
def profile(tmp_path):
    """The path of the trace; the profiler is off and empty before and after the test."""
    path = tmp_path / "profile.json"
    profiler.set_config(profile_all=True, filename=str(path))
    profiler.dumps(reset=True)
    yield path
    profiler.stop()
    profiler.set_config(profile_lines=False, filename="profile.json")
    profiler.dumps(reset=True)


def rows(by: str) -> dict:
    return json.loads(profiler.dumps(format="json", by=by))["Time"][by]


class Net(gluon.HybridBlock):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.body = nn.HybridSequential()
        self.body.add(nn.Dense(4, in_units=3), nn.Dense(2, in_units=4))

    def forward(self, x):
        return mx.nd.sin(self.body(x)) if isinstance(x, mx.nd.NDArray) else x


class Looping(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return F.contrib.foreach(lambda row, s: (F.sin(row), s), x, F.zeros((1,)))[0]  # loop


def test_time_inside_of_an_event_counts_once():
    def event(name, begin, end, thread=1):
        return (name, "operator", begin, end, thread, "", "", "")

    events = [event("inner", 20, 50), event("loop", 10, 100), event("other", 20, 60, 2), event("last", 100, 110)]
    events.append(("net", "graph", 0, 200, 1, "", "", ""))
    assert {e[0]: own for e, own in own_times(events)} == {"loop": 60, "inner": 30, "other": 40, "last": 10}


@pytest.mark.parametrize("hybridize", [True, False])
def test_blocks_have_the_time_of_their_parts(profile, hybridize):
    net = Net(prefix="net_")
    net.initialize()
    if hybridize:
        net.hybridize(passes="fast_run,-fusion")
    profiler.set_config(profile_lines=not hybridize)
    x = mx.nd.ones((2, 3))
    net(x).wait_to_read()
    profiler.start()
    net(x).wait_to_read()
    profiler.stop()
    found = rows("block")
    assert {"net", "net.body", "net.body.0", "net.body.1"} <= set(found)
    assert found["net"]["Total"] >= found["net.body"]["Total"] >= found["net.body.0"]["Total"] > 0
    assert found["net.body"]["Own"] == 0
    parts = [found[name]["Total"] for name in ("net.body.0", "net.body.1")]
    assert found["net.body"]["Total"] == pytest.approx(sum(parts))


def test_lines_of_graphs_come_from_their_plans(profile):
    net = Looping(prefix="lines_")
    net.hybridize(passes="fast_run,-fusion,-loop")
    x = mx.nd.ones((5, 2))
    x.attach_grad()

    def step():
        with mx.autograd.record():
            out = net(x)
        out.backward()

    step()
    profiler.start()
    step()
    profiler.stop()
    found = rows("line")
    lines = [name for name in found if name.startswith(f"{__file__}:")]
    assert len(lines) >= 1
    assert max(found, key=lambda name: found[name]["Total"]) in lines


def test_lines_of_imperative_operators_are_recorded_on_demand(profile):
    profiler.set_config(profile_lines=True)
    x = mx.nd.ones((200, 200))
    x.attach_grad()
    profiler.start()
    with mx.autograd.record():
        y = mx.nd.dot(x, x)
        z = y.sum()
    z.backward()
    profiler.stop()
    mx.nd.exp(x).wait_to_read()
    code = Path(__file__).read_text(encoding="utf-8").splitlines()
    found = {code[int(name.rpartition(":")[2]) - 1].strip() for name in rows("line") if name.startswith(__file__)}
    assert {"y = mx.nd.dot(x, x)", "z = y.sum()", "z.backward()"} <= found
    text = profiler.dumps(by="line")
    assert "100.0%" not in text and "Own (ms)" in text
    assert type(mx.nd.exp) is type(mx.nd.dot)


def test_tables_are_sorted_and_shares_add_up_to_the_whole(profile):
    net = Net(prefix="net_")
    net.initialize()
    net.hybridize()
    x = mx.nd.ones((2, 3))
    profiler.start()
    net(x).wait_to_read()
    mx.nd.dot(x, x.T).wait_to_read()
    profiler.stop()
    lines = profiler.dumps(by="block").splitlines()
    table = [line for line in lines if line.endswith("%")]
    own = [float(line.split()[-1].rstrip("%")) for line in table]
    assert sum(own) == pytest.approx(100, abs=0.5)
    totals = [float(line.rsplit(maxsplit=4)[1]) for line in table]
    assert totals == sorted(totals, reverse=True)
    assert any(line.startswith("(outside of blocks)") for line in table)
    assert "net" not in profiler.dumps(by="block", reset=True).splitlines()[0]
    assert profiler.dumps(by="block").count("%") == 0


@pytest.mark.parametrize("by", ["block", "line"])
def test_the_flame_graph_is_a_valid_picture_with_boxes_as_wide_as_their_share(profile, by, tmp_path):
    net = Net(prefix="net_")
    net.initialize()
    net.hybridize()
    x = mx.nd.ones((2, 3))
    net(x).wait_to_read()
    profiler.start()
    net(x).wait_to_read()
    profiler.stop()
    picture = profiler.flame_graph(str(tmp_path / "flame.svg"), by=by)
    text = (tmp_path / "flame.svg").read_text(encoding="utf-8")
    assert text == str(picture) == picture._repr_svg_()
    root = ET.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    boxes = {g.find(f"{space}title").text: float(g.find(f"{space}rect").get("width")) for g in root.iter(f"{space}g")}
    for title, width in boxes.items():
        assert width == pytest.approx(11.8 * float(title.rpartition(" ")[2].rstrip("%")), abs=1.5)
    if by == "block":
        assert any(title.startswith("net: ") and title.endswith("100.0%") for title in boxes)


def test_wrong_settings_are_named(profile, tmp_path):
    with pytest.raises(ValueError, match="'layer'"):
        profiler.dumps(by="layer")
    with pytest.raises(ValueError, match="'operator'"):
        profiler.flame_graph(by="operator")
    with pytest.raises(ValueError, match=r"\.svg"):
        profiler.flame_graph(str(tmp_path / "flame.png"))
    with pytest.raises(OSError, match=r"such.*flame\.svg"):
        profiler.flame_graph(str(tmp_path / "no" / "such" / "flame.svg"))


def test_the_first_dump_tells_how_to_open_the_file(profile, capsys, monkeypatch):
    monkeypatch.setattr(profiler, "_hints", set())
    profiler.dump()
    assert "ui.perfetto.dev" in capsys.readouterr().out
    profiler.dump()
    assert capsys.readouterr().out == ""
