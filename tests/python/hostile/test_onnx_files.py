"""Damaged ONNX files give results or errors of the library, and random graphs the results of onnxruntime."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import hybridnet as mx
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
helper, TensorProto = onnx.helper, onnx.TensorProto

TESTS = pathlib.Path(__file__).resolve().parents[1]


def _prove(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "onnx_prove", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        capture_output=True,
        text=True,
        timeout=250,
    )


def test_damaged_models_are_imported_or_refused_in_bounded_memory() -> None:
    done = _prove("files", "--count", "200", "--seed", "11")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_random_graphs_give_the_results_of_onnxruntime() -> None:
    pytest.importorskip("onnxruntime")
    done = _prove("graphs", "--count", "200", "--seed", "12")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


# ------------------------------------------------------------------------------------------------- data in other files
def _write(folder: pathlib.Path, location: str, **numbers: str) -> pathlib.Path:
    """Writes a model that adds a weight of 4 floats, which are in another file, to its input."""
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **numbers}.items():
        weight.external_data.add(key=key, value=value)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [given], [made], [weight])
    path = folder / "m.onnx"
    path.write_bytes(helper.make_model(graph, ir_version=10).SerializeToString())
    return path


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A model's folder with a file of 6 floats; a file beside the folder must stay unread."""
    (tmp_path / "secret.bin").write_bytes(np.full(4, 7, np.float32).tobytes())
    inner = tmp_path / "model"
    (inner / "deep").mkdir(parents=True)
    for path in (inner / "w.bin", inner / "deep" / "w.bin"):
        path.write_bytes(np.arange(6, dtype=np.float32).tobytes())
    return inner


@pytest.mark.parametrize(
    ("location", "numbers", "first"),
    [
        ("w.bin", {"length": "16"}, 0),
        ("w.bin", {"offset": "8"}, 2),
        ("w.bin", {"offset": "4", "length": "16"}, 1),
        ("deep/w.bin", {"length": "16"}, 0),
        ("./w.bin", {"length": "16"}, 0),
    ],
)
def test_data_in_the_folder_of_the_model_are_read(
    location: str, numbers: dict[str, str], first: int, folder: pathlib.Path
) -> None:
    net = mx.onnx.import_to_gluon(_write(folder, location, **numbers))
    assert net(mx.nd.zeros((4,))).asnumpy().tolist() == [first, first + 1, first + 2, first + 3]


def test_data_in_the_folder_are_read_by_a_relative_path(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(folder, "w.bin", length="16")
    monkeypatch.chdir(folder)
    assert mx.onnx.import_to_gluon("m.onnx")(mx.nd.zeros((4,))).asnumpy().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("location", ["../secret.bin", "deep/../../secret.bin", "link.bin", "linked/secret.bin"])
def test_data_outside_of_the_folder_are_refused(location: str, folder: pathlib.Path) -> None:
    (folder / "link.bin").symlink_to(folder.parent / "secret.bin")
    (folder / "linked").symlink_to(folder.parent)
    with pytest.raises(mx.errors.ValueError, match=r"tensor 'w' is in '.*', outside of the model's folder"):
        mx.onnx.import_model(_write(folder, location))


def test_absolute_places_are_refused_inside_the_folder_too(folder: pathlib.Path) -> None:
    for path in (folder.parent / "secret.bin", folder / "w.bin"):
        with pytest.raises(mx.errors.ValueError, match="outside of the model's folder"):
            mx.onnx.import_model(_write(folder, str(path), length="16"))


@pytest.mark.parametrize("location", ["", ".", "deep", "none.bin", "\0"])
def test_places_that_are_no_files_are_named(location: str, folder: pathlib.Path) -> None:
    with pytest.raises(mx.errors.ValueError, match="tensor 'w' is in"):
        mx.onnx.import_model(_write(folder, location))


@pytest.mark.parametrize(
    "numbers",
    [
        {"offset": "12"},
        {"offset": "1000"},
        {"length": "12"},
        {"length": "24"},
        {"offset": "16", "length": "16"},
        {"offset": "-4", "length": "16"},
        {"length": "9" * 30},
        {"offset": "x", "length": "16"},
        {"offset": "1e1", "length": "16"},
    ],
)
def test_places_beyond_the_file_and_wrong_lengths_are_refused(numbers: dict[str, str], folder: pathlib.Path) -> None:
    with pytest.raises(mx.errors.ValueError, match=r"tensor 'w'.*(needs 16 bytes|no number of bytes)"):
        mx.onnx.import_model(_write(folder, "w.bin", **numbers))


def test_models_in_memory_do_not_read_the_current_folder(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = _write(folder, "w.bin", length="16").read_bytes()
    monkeypatch.chdir(folder)
    with pytest.raises(mx.errors.ValueError, match="a model in memory has no folder"):
        mx.onnx.import_model(content)


# ---------------------------------------------------------------------------------------------------- sizes and nesting
def _model(nodes: list[object], constants: dict[str, np.ndarray], functions: list[object] | None = None) -> object:
    arrays = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    graph = helper.make_graph(nodes, "g", [given], [helper.make_empty_tensor_value_info("y")], arrays)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=functions or [], ir_version=10)


@pytest.mark.parametrize(
    ("dims", "raw"), [([2], 4), ([2], 12), ([1 << 40], 8), ([-2], 8), ([1 << 62, 4], 8), ([0, 1 << 62], 0)]
)
def test_tensors_whose_data_do_not_fit_their_shapes_are_named(dims: list[int], raw: int) -> None:
    model = _model([helper.make_node("Add", ["x", "w"], ["y"])], {})
    model.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=dims, raw_data=b"\0" * raw)
    with pytest.raises(mx.errors.ValueError, match="tensor 'w'"):
        mx.onnx.import_model(model)


def test_sparse_tensors_do_not_grow_without_bounds() -> None:
    model = _model([helper.make_node("Add", ["x", "w"], ["y"])], {})
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    places = helper.make_tensor("places", TensorProto.INT64, [1], [0])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [1 << 34]))
    with pytest.raises(mx.errors.ValueError, match=r"sparse tensor 'w'.*has 1 numbers"):
        mx.onnx.import_model(model)


def _function(name: str, calls: list[str]) -> object:
    names = ["a", *[f"m{number}" for number in range(len(calls) - 1)], "b"]
    body = [
        helper.make_node(call, [names[number]], [names[number + 1]], domain="own") for number, call in enumerate(calls)
    ]
    body = body or [helper.make_node("Relu", ["a"], ["b"])]
    return helper.make_function("own", name, ["a"], ["b"], body, [helper.make_opsetid("", 18)])


@pytest.mark.parametrize(
    ("calls", "text"),
    [
        ({"F": ["F"]}, "function 'F' of the file calls itself"),
        ({"F": ["G"], "G": ["F"]}, "function 'F' of the file calls itself"),
        ({**{f"F{k}" if k else "F": [f"F{k + 1}"] * 2 for k in range(40)}, "F40": []}, "make .* nodes"),
        ({**{f"F{k}" if k else "F": [f"F{k + 1}"] for k in range(2000)}, "F2000": []}, "more than 60 levels"),
    ],
    ids=["itself", "each other", "doubling", "deep"],
)
def test_functions_without_end_are_refused_at_once(calls: dict[str, list[str]], text: str) -> None:
    functions = [_function(name, called) for name, called in calls.items()]
    model = _model([helper.make_node("F", ["x"], ["y"], domain="own")], {}, functions)
    with pytest.raises(mx.errors.HybridNetError, match=text):
        mx.onnx.import_model(model)


def test_functions_that_call_functions_are_built() -> None:
    functions = [_function("F", ["G", "G"]), _function("G", [])]
    model = _model([helper.make_node("F", ["x"], ["y"], domain="own")], {}, functions)
    assert mx.onnx.import_to_gluon(model)(mx.nd.array([-1, 2])).asnumpy().tolist() == [0, 2]
