"""The records of the profiler, and the formats of its output."""

from __future__ import annotations

import json
import threading

import hybridnet as mx
import pytest
from hybridnet import gluon, profiler, test_utils


@pytest.fixture
def profile(tmp_path):
    """The path of the trace; the profiler is off and empty before and after the test."""
    path = tmp_path / "profile.json"
    profiler.set_config(profile_all=True, filename=str(path), aggregate_stats=True)
    profiler.dumps(reset=True)
    yield path
    profiler.stop()
    profiler.dumps(reset=True)


def table() -> dict:
    return json.loads(profiler.dumps(format="json"))["Time"]


def test_operators_are_recorded_between_start_and_stop(profile):
    x = mx.nd.ones((4, 4))
    profiler.start()
    for _ in range(3):
        y = mx.nd.dot(x, x)
    y.wait_to_read()
    profiler.stop()
    mx.nd.exp(x).wait_to_read()
    rows = table()["operator"]
    assert rows["dot"]["Count"] == 3
    assert "exp" not in rows
    assert rows["dot"]["Min"] <= rows["dot"]["Avg"] <= rows["dot"]["Max"] <= rows["dot"]["Total"]


def test_work_of_workers_is_recorded(profile):
    x = mx.nd.ones((400, 400))
    profiler.start()
    for _ in range(5):
        x = mx.nd.dot(x, x) * 0
    profiler.stop()
    assert table()["operator"]["dot"]["Count"] == 5


def test_hybridized_graphs_and_their_operators(profile):
    net = gluon.nn.Dense(3, in_units=4, activation="tanh")
    net.initialize()
    net.hybridize()
    x = mx.nd.ones((2, 4))
    net(x).wait_to_read()
    profiler.start()
    net(x).wait_to_read()
    profiler.stop()
    rows = table()
    assert [row["Count"] for row in rows["graph"].values()] == [1]
    assert sum(row["Count"] for row in rows["operator"].values()) >= 1
    profiler.set_config(profile_symbolic=False)
    assert "graph" not in table()
    profiler.set_config(profile_all=True)


class Branch(gluon.HybridBlock):
    def forward(self, x):
        F = mx.sym.contrib if isinstance(x, mx.sym.Symbol) else mx.nd.contrib
        return F.foreach(
            lambda d, s: (F.cond(d.sum() > 0, lambda: d.sin() * s, lambda: d.cos() + s), s + 1), x, mx.nd.zeros((2,))
        )[0]


def test_exec_counts_show_which_nodes_ran(profile):
    net, x = Branch(prefix="net_"), mx.nd.array([[1, 2], [-1, 0], [3, 1], [0, 5]])
    net.hybridize(passes="fast_run,-fusion")
    x.attach_grad()
    with test_utils.exec_counts() as ran:
        assert not ran
        with mx.autograd.record():
            out = net(x)
        out.backward()
    assert ran["sin", "net_sin0"] == 3 and ran["cos", "net_cos0"] == 1
    assert ran["cos", "net_sin0_backward"] == 3 and ran["sin", "net_cos0_backward"] == 1
    assert ran["_cond", "net_cond0"] == 4
    with test_utils.exec_counts() as ran:
        mx.nd.sin(x)
    assert ran == {("sin", ""): 1}
    assert table() == {}  # the profiler was off and recorded nothing


def test_exec_counts_show_copies_that_are_no_operators(profile):
    class Handed(gluon.HybridBlock):
        def forward(self, x):
            rows, (last, first) = foreach_of(x)(lambda d, s: ([d, d], [s[1] + d, s[0]]), x, [x[0], x[0] * 2])
            return rows[0], rows[1], last, first, x

    def foreach_of(x):
        return (mx.sym if isinstance(x, mx.sym.Symbol) else mx.nd).contrib.foreach

    net, x = Handed(prefix="net_"), mx.nd.array([[1, 2], [-1, 0], [3, 1]])
    net.hybridize(passes="none")
    net(x)
    with test_utils.exec_counts() as ran:
        net(x)
    copies = {node: count for (op, node), count in ran.items() if op == "copy"}
    assert copies.pop("data") == 1  # the input that is an output
    assert copies.pop("data0") == 3  # the row of data that an iteration stacks
    assert copies.pop("net_foreach0") in (3, 4, 5)  # the row as the second output, and last states
    assert copies == {}
    with test_utils.exec_counts() as ran:
        Handed()(x)
    assert not [op for op, _ in ran if op == "copy"]


def test_exec_counts_leave_a_running_profile_alone(profile):
    x = mx.nd.ones((2,))
    profiler.start()
    mx.nd.cos(x)
    with test_utils.exec_counts() as ran:
        mx.nd.sin(x)
    mx.nd.sin(x)
    profiler.stop()
    assert ran == {("sin", ""): 1}
    assert table()["operator"]["cos"]["Count"] == 1
    assert table()["operator"]["sin"]["Count"] == 2


def test_a_trace_names_nodes(profile):
    net = Branch(prefix="net_")
    net.hybridize(passes="fast_run,-fusion")
    profiler.start()
    net(mx.nd.ones((2, 2))).wait_to_read()
    profiler.dump()
    events = json.loads(profile.read_text())["traceEvents"]
    nodes = [e["args"]["node"] for e in events if e["name"] == "sin"]
    assert nodes == ["net_sin0", "net_sin0"]


def test_events_have_threads_shapes_and_blocks_and_compiling_is_one(profile):
    net = gluon.nn.Dense(3, in_units=4, activation="tanh")
    net.initialize()
    net.hybridize()
    x = mx.nd.ones((2, 4))
    profiler.start()
    net(x).wait_to_read()
    net(x).wait_to_read()
    mx.nd.dot(x, x.T).wait_to_read()
    profiler.dump()
    events = json.loads(profile.read_text())["traceEvents"]
    assert [e["name"] for e in events if e["cat"] == "compile"] == [net.name]
    layers = [e for e in events if e["args"].get("block") and e["cat"] == "operator"]
    assert len(layers) == 2
    assert layers[0]["args"]["inputs"] == "float32(2, 4), float32(3, 4), float32(3,)"
    products = [e for e in events if e["name"] == "dot"]
    assert [e["args"] for e in products] == [{"inputs": "float32(2, 4), float32(4, 2)"}]
    assert products[0]["tid"] == threading.get_native_id()


def test_dump_is_a_trace(profile):
    profiler.start()
    mx.nd.relu(mx.nd.ones((2,))).wait_to_read()
    domain = profiler.Domain("mine")
    with domain.new_task("work"):
        mx.nd.waitall()
    domain.new_counter("things", 3).increment(2)
    domain.new_marker("here").mark()
    profiler.dump()
    events = json.loads(profile.read_text())["traceEvents"]
    by_kind = {kind: [e for e in events if e["ph"] == kind] for kind in "XCi"}
    assert {"relu", "work"} <= {e["name"] for e in by_kind["X"]}
    assert [e["args"]["things"] for e in by_kind["C"]] == [3, 5]
    assert by_kind["i"][0]["name"] == "here"
    assert all(e["dur"] >= 0 for e in by_kind["X"])
    assert [e["ts"] for e in events] == sorted(e["ts"] for e in events)
    assert "relu" not in profiler.dumps()  # dump() clears the records


def test_pause_resume_and_scope(profile):
    x = mx.nd.ones((2,))
    profiler.start()
    profiler.pause()
    mx.nd.sin(x).wait_to_read()
    profiler.resume()
    with profiler.scope("block:"):
        mx.nd.cos(x).wait_to_read()
    profiler.stop()
    rows = table()
    assert "sin" not in rows["operator"]
    assert rows["operator"]["cos"]["Count"] == 1
    assert rows["scope"]["block:"]["Count"] == 1


def test_objects_of_the_program(profile):
    domain = profiler.Domain("mine")
    task, frame, event = domain.new_task("t"), domain.new_frame("f"), profiler.Event("e")
    counter = domain.new_counter("c")
    profiler.start()
    for span in (task, frame, event):
        span.start()
        span.stop()
        span.stop()  # the span is not running
    counter += 5
    counter -= 2
    assert str(task), str(counter) == ("t", "c")
    profiler.stop()
    task.start()
    task.stop()
    rows = table()
    assert rows["mine"]["t"]["Count"] == rows["mine"]["f"]["Count"] == rows["event"]["e"]["Count"] == 1


def test_the_table(profile):
    profiler.start()
    for _ in range(2):
        mx.nd.exp(mx.nd.ones((2,))).wait_to_read()
    profiler.stop()
    text = profiler.dumps(sort_by="count", ascending=True)
    assert "Profile Statistics" in text
    line = next(line for line in text.splitlines() if line.startswith("exp "))
    assert line.split()[1] == "2"
    assert "exp" in profiler.dumps(reset=True)
    assert "exp" not in profiler.dumps()


@mx.operator.register("profiled_square")
class SquareProp(mx.operator.CustomOpProp):
    class Square(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * in_data[0])

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], mx.nd.exp(in_data[0]))

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return self.Square()


def test_custom_operators_are_recorded_with_the_operators_that_they_call(profile):
    x = mx.nd.ones((3,))
    x.attach_grad()
    mx.nd.Custom(x, op_type="profiled_square")  # not recorded, because the profiler is not running yet
    profiler.start()
    with mx.autograd.record():
        y = mx.nd.Custom(x, op_type="profiled_square")
    y.backward()
    mx.nd.exp(x).wait_to_read()
    profiler.stop()
    times = json.loads(profiler.dumps(format="json"))["Time"]
    custom = times["Custom Operator"]
    assert custom["profiled_square::pure_python"]["Count"] == 1
    assert custom["_backward_profiled_square::pure_python"]["Count"] == 1
    assert any(name.startswith("profiled_square::") and name.endswith("mul") for name in custom)
    assert "_backward_profiled_square::exp" in custom
    assert times["operator"]["exp"]["Count"] == 1


@pytest.mark.parametrize("sort_by", ["total", "avg", "min", "max", "count"])
@pytest.mark.parametrize("ascending", [True, False])
def test_times_and_memory_are_sorted_alike(profile, sort_by, ascending):
    profiler.start()
    kept = [mx.nd.exp(mx.nd.ones((2**n,))) for n in range(12)]
    mx.nd.waitall()
    del kept
    profiler.stop()
    found = json.loads(profiler.dumps(format="json", sort_by=sort_by, ascending=ascending))
    for table in (found["Time"]["operator"], found["Memory"]["cpu"]):
        values = [row[sort_by.capitalize()] for row in table.values()]
        assert values == sorted(values, reverse=not ascending)
        assert len(values) > 1


def test_memory_is_reported_too(profile):
    x = mx.nd.ones((256, 256))
    x.wait_to_read()
    rows = json.loads(profiler.dumps(format="json"))["Memory"]["cpu"]
    assert rows["at most in use"]["Total"] >= rows["in use"]["Total"] >= 256


def test_bad_settings_are_named(profile, tmp_path):
    with pytest.raises(ValueError, match="colour"):
        profiler.set_config(colour="red")
    with pytest.raises(ValueError, match="walk"):
        profiler.set_state("walk")
    with pytest.raises(ValueError, match="xml"):
        profiler.dumps(format="xml")
    with pytest.raises(ValueError, match="name"):
        profiler.dumps(sort_by="name")
    with pytest.raises(ValueError, match="planet"):
        profiler.Domain("d").new_marker("m").mark("planet")
    profiler.set_config(filename=str(tmp_path / "no" / "such.json"))
    with pytest.raises(OSError, match=r"such\.json"):
        profiler.dump()
