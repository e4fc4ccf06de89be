"""Exported models name the dtypes and shapes of their inputs, so that commands need no --shape."""

from __future__ import annotations

import json
import pathlib

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet._command_line import WRONG_INPUT, main
from hybridnet._command_line._models import read_model
from hybridnet._command_line._shapes import shapes_of
from hybridnet.gluon._free_sizes import free_sizes
from hybridnet.gluon._input_specs import InputSpec, read_inputs, write_inputs


def _exported(net: gluon.HybridBlock, folder: pathlib.Path, *inputs: mx.nd.NDArray) -> str:
    net.initialize()
    net.hybridize()
    net(*inputs)
    net.export(str(folder / "m"))
    return str(folder / "m")


def _recorded(net: gluon.HybridBlock, folder: pathlib.Path, *inputs: mx.nd.NDArray) -> dict[str, InputSpec]:
    return read_inputs(_exported(net, folder, *inputs) + "-symbol.json")


def test_the_batch_of_a_classifier_is_free_and_its_pixels_are_fixed(tmp_path) -> None:
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(4, 3, padding=1), gluon.nn.MaxPool2D(), gluon.nn.Flatten(), gluon.nn.Dense(3))
    assert _recorded(net, tmp_path, mx.nd.ones((2, 1, 28, 28))) == {
        "data": InputSpec("float32", ("free0", 1, 28, 28), (2, 1, 28, 28))
    }


def test_pixels_are_free_before_global_pooling(tmp_path) -> None:
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(4, 3), gluon.nn.GlobalAvgPool2D(), gluon.nn.Dense(3))
    assert _recorded(net, tmp_path, mx.nd.ones((2, 3, 28, 28)))["data"].shape == ("free0", 3, "free1", "free2")


class _Pair(gluon.HybridBlock):
    """Ids and a mask of the same batch and length."""

    def __init__(self) -> None:
        super().__init__()
        self.table = gluon.nn.Embedding(10, 4)

    def hybrid_forward(self, F, ids, mask):
        return F.sum(F.broadcast_mul(self.table(ids), F.expand_dims(mask, 2)), axis=1)


def test_sizes_that_change_together_have_one_name(tmp_path) -> None:
    ids = mx.nd.array(np.zeros((2, 5)), dtype="int32")
    specs = _recorded(_Pair(), tmp_path, ids, mx.nd.ones((2, 5)))
    assert [spec.dtype for spec in specs.values()] == ["int32", "float32"]
    assert [spec.shape for spec in specs.values()] == [("free0", "free1"), ("free0", "free1")]


def test_equal_sizes_by_accident_stay_apart() -> None:
    x, y = mx.sym.var("x"), mx.sym.var("y")
    graph = mx.sym.dot(x, mx.sym.var("w")) + y
    found = free_sizes(graph, {"w": (4, 4)}, {"x": (4, 4), "y": (4, 4)})
    assert found == {"x": ("free0", 4), "y": ("free0", 4)}


def test_sizes_that_a_broadcast_of_one_joins_have_one_name() -> None:
    graph = mx.sym.broadcast_add(mx.sym.var("x"), mx.sym.var("y"))
    found = free_sizes(graph, {}, {"x": (1, 3), "y": (1, 3)})
    assert found["x"][0] == found["y"][0]


def test_states_of_a_loop_share_the_batch_of_its_data() -> None:
    step = lambda row, state: (row + state, row + state)  # noqa: E731
    outputs, _ = mx.sym.contrib.foreach(step, mx.sym.var("x"), mx.sym.var("s"))
    assert free_sizes(outputs, {}, {"x": (5, 2, 3), "s": (2, 3)}) == {
        "x": ("free0", "free1", "free2"), "s": ("free1", "free2")
    }  # fmt: skip


def test_a_model_with_many_inputs_is_described_in_bounded_time() -> None:
    variables = [mx.sym.var(f"x{i}") for i in range(60)]
    found = free_sizes(mx.sym.add_n(*variables), {}, {f"x{i}": (2, 3) for i in range(60)})
    assert set(found) == {f"x{i}" for i in range(60)}
    assert all(len(shape) == 2 for shape in found.values())


class _ReadsShape(gluon.HybridBlock):
    def forward(self, x):
        return x.reshape((x.shape[0], -1)) * 2


def test_no_size_is_free_if_forward_read_a_shape(tmp_path) -> None:
    with pytest.warns(UserWarning, match="shape of an array is read"):
        spec = _recorded(_ReadsShape(), tmp_path, mx.nd.ones((2, 3, 4)))["data"]
    assert spec.shape == (2, 3, 4)
    assert not spec.has_free


def test_mxnet_reads_no_sizes_of_inputs_in_the_file(tmp_path) -> None:
    """MXNet's executors fix sizes by __shape__ and __dtype__ of variables; other attributes of a graph are ignored."""
    path = _exported(gluon.nn.Dense(3), tmp_path, mx.nd.ones((2, 4))) + "-symbol.json"
    graph = json.loads(pathlib.Path(path).read_text("utf-8"))
    (data,) = [node for node in graph["nodes"] if node["name"] == "data"]
    assert "attrs" not in data or not {"__shape__", "__dtype__"} & set(data["attrs"])
    kind, text = graph["attrs"]["hybridnet_inputs"]
    assert kind == "str"
    assert json.loads(text)["data"]["shape"] == ["free0", 4]
    assert mx.sym.load(path).infer_shape(data=(7, 4))[1] == [(7, 3)]


def test_checksums_cover_the_inputs(tmp_path) -> None:
    net = gluon.nn.Dense(3)
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((2, 4)))
    path, params = net.export(str(tmp_path / "m"), checksum=True)
    assert read_inputs(path)["data"].shape == ("free0", 4)
    gluon.SymbolBlock.imports(path, ["data"], params, verify=True)
    write_inputs(path, {"data": InputSpec("float32", (2, 4), (2, 4))})
    with pytest.raises(mx.MXNetError, match="not the file that was exported"):
        gluon.SymbolBlock.imports(path, ["data"], params, verify=True)


@pytest.mark.parametrize("command", [["verify"], ["bench", "--seconds", "0.1"], ["inspect"], ["inspect", "--nodes"]])
def test_commands_need_no_shape_and_say_which_they_chose(command, capsys, tmp_path) -> None:
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(4, 3), gluon.nn.GlobalAvgPool2D(), gluon.nn.Dense(3))
    prefix = _exported(net, tmp_path, mx.nd.ones((2, 3, 28, 28)))
    assert main([command[0], prefix, *command[1:]]) == 0
    shown = capsys.readouterr()
    assert "float32(1, 3, 28, 28)" in shown.out
    assert "note: input data is float32(free0, 3, free1, free2); free sizes: free0 = 1, free1 = 28" in shown.err
    assert "--shape data=2,3,28,28" in shown.err


def test_sizes_that_shape_gives_hold_for_other_inputs(tmp_path) -> None:
    ids = mx.nd.array(np.zeros((2, 5)), dtype="int32")
    model = read_model([_exported(_Pair(), tmp_path, ids, mx.nd.ones((2, 5)))])
    assert shapes_of(model, ["data0=3,7"]) == {
        "data0": ((3, 7), np.dtype("int32")), "data1": ((3, 7), np.dtype("float32"))
    }  # fmt: skip
    assert shapes_of(model, ["data0=3,7:int64"])["data0"][1] == np.int64


class _Steps(gluon.HybridBlock):
    """A convolution over the first axis, which needs three steps."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = gluon.nn.Conv1D(4, 3)

    def hybrid_forward(self, F, x):
        return self.conv(F.transpose(x, axes=(1, 2, 0)))


def test_a_free_size_that_cannot_be_one_has_the_size_of_the_export(tmp_path) -> None:
    model = read_model([_exported(_Steps(), tmp_path, mx.nd.ones((6, 2, 5)))])
    assert model.specs["data"].shape == ("free0", "free1", 5)
    assert shapes_of(model, [])["data"][0] == (6, 2, 5)


def test_unknown_sizes_of_files_of_mxnet_are_one(capsys, tmp_path) -> None:
    graph = mx.sym.FullyConnected(mx.sym.var("data", shape=(0, 4)), num_hidden=3, name="fc")
    graph.save(str(tmp_path / "m-symbol.json"))
    arrays = {"arg:fc_weight": mx.nd.ones((3, 4)), "arg:fc_bias": mx.nd.zeros((3,))}
    mx.nd.save(str(tmp_path / "m-0000.params"), arrays)
    assert main(["verify", str(tmp_path / "m")]) == 0
    assert "has the shape (?, 4) in the file; unknown sizes are 1" in capsys.readouterr().err


def test_run_converts_numbers_of_another_width(capsys, tmp_path) -> None:
    prefix = _exported(gluon.nn.Dense(3), tmp_path, mx.nd.ones((2, 4)))
    np.save(tmp_path / "x.npy", np.ones((5, 4)))  # float64, NumPy's default
    assert main(["run", prefix, "--input", str(tmp_path / "x.npy")]) == 0
    assert "note: input data is converted from float64 to float32" in capsys.readouterr().err
    np.save(tmp_path / "x.npy", np.ones((5, 3), "float32"))
    assert main(["run", prefix, "--input", str(tmp_path / "x.npy")]) == WRONG_INPUT
    assert "expected shape float32(free0, 4), got (5, 3)" in capsys.readouterr().err
    np.save(tmp_path / "x.npy", np.ones((5, 4), "complex64"))
    assert main(["run", prefix, "--input", str(tmp_path / "x.npy")]) == WRONG_INPUT


def test_run_refuses_values_that_the_recorded_dtype_cannot_hold(capsys, tmp_path) -> None:
    prefix = _exported(gluon.nn.Embedding(5, 2), tmp_path, mx.nd.array([1, 2], dtype="int32"))
    np.save(tmp_path / "x.npy", np.array([2**32 + 3]))
    assert main(["run", prefix, "--input", f"data={tmp_path / 'x.npy'}"]) == WRONG_INPUT
    shown = capsys.readouterr().err
    assert "values that int32" in shown and "int64 with the value 4294967299" in shown and "Fix: " in shown
    np.save(tmp_path / "x.npy", np.array([3]))
    assert main(["run", prefix, "--input", f"data={tmp_path / 'x.npy'}"]) == 0
    np.save(tmp_path / "x.npy", np.array([1.5]))
    assert main(["run", prefix, "--input", f"data={tmp_path / 'x.npy'}"]) == WRONG_INPUT


def test_run_says_that_it_rounds_integers(capsys, tmp_path) -> None:
    prefix = _exported(gluon.nn.Dense(3), tmp_path, mx.nd.ones((2, 1)))
    np.save(tmp_path / "x.npy", np.array([[2**24 + 1]]))
    assert main(["run", prefix, "--input", str(tmp_path / "x.npy")]) == 0
    assert "from int64 to float32, which rounds integers such as 16777217" in capsys.readouterr().err
    np.save(tmp_path / "x.npy", np.array([[1e300]]))
    assert main(["run", prefix, "--input", str(tmp_path / "x.npy")]) == WRONG_INPUT
    assert "values that float32" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content",
    [
        ["int", 3],
        ["str", "[1]"],
        ["str", "no json"],
        ["str", '{"data": {"dtype": "float32", "shape": [1]}}'],
        ["str", '{"data": {"dtype": "float32", "shape": [1], "example": [2]}}'],
        ["str", '{"data": {"dtype": "float32", "shape": [-1], "example": [-1]}}'],
        ["str", '{"data": {"dtype": "float32", "shape": ["n"], "example": [1.5]}}'],
        ["str", '{"data": {"dtype": "float32", "shape": ["n"], "example": [1, 2]}}'],
        "text",
        [],
    ],
)
def test_a_damaged_description_is_an_error_that_names_file_and_fix(content, capsys, tmp_path) -> None:
    prefix = _exported(gluon.nn.Dense(3), tmp_path, mx.nd.ones((2, 4)))
    path = pathlib.Path(prefix + "-symbol.json")
    graph = json.loads(path.read_text("utf-8"))
    graph["attrs"]["hybridnet_inputs"] = content
    path.write_text(json.dumps(graph), "utf-8")
    assert main(["inspect", prefix]) == WRONG_INPUT
    shown = capsys.readouterr().err
    assert "'hybridnet_inputs'" in shown and str(path) in shown and "Fix: export the model again" in shown
    assert gluon.SymbolBlock.imports(str(path), ["data"], prefix + "-0000.params")(mx.nd.ones((1, 4))).shape == (1, 3)


def test_files_without_a_description_are_read_as_before(tmp_path) -> None:
    mx.sym.relu(mx.sym.var("x")).save(str(tmp_path / "s-symbol.json"))
    assert read_inputs(str(tmp_path / "s-symbol.json")) == {}
