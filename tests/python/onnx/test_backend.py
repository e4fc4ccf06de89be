"""HybridNet as a backend of the package onnx: prepare, run, run_model and run_node."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import hybridnet as mx  # noqa: E402
import hybridnet.onnx._programs as programs  # noqa: E402
import hybridnet.onnx.backend as backend  # noqa: E402
from hybridnet.errors import DTypeError, HybridNetError, ShapeError, UnsupportedError  # noqa: E402
from hybridnet.errors import ValueError as HybridNetValueError  # noqa: E402
from onnx_models import helper, model, node  # noqa: E402

FLOAT, INT = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def layer(rng: Any) -> tuple[Any, np.ndarray]:
    weight = rng.normal(size=(3, 4)).astype("float32")
    return model(
        [node("MatMul", "x w", "m"), node("Relu", "m")], {"x": ("float32", ["N", 3])}, "y", {"w": weight}
    ), weight


def difference() -> Any:
    """Two inputs, whose order matters."""
    return model([node("Sub", "a b")], {"a": ("float32", ["N"]), "b": ("float32", ["N"])})


def of_types(nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, Any]) -> Any:
    """A model with the given types."""
    values = [[helper.make_value_info(*item) for item in types.items()] for types in (inputs, outputs)]
    graph = helper.make_graph(nodes, "graph", *values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def tensor(kind: int = FLOAT, shape: Any = None) -> Any:
    return helper.make_tensor_type_proto(kind, shape)


def sequence() -> Any:
    return helper.make_sequence_type_proto(tensor())


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collects the graphs that are imported."""
    made: list[Any] = []
    build = programs.import_graph

    def counted(*args: Any) -> Any:
        made.append(build(*args))
        return made[-1]

    monkeypatch.setattr(programs, "import_graph", counted)
    return made


# ---------------------------------------------------------------------------------------------------------------- runs
def test_one_prepared_model_serves_all_batch_sizes(rng, imports):
    proto, weight = layer(rng)
    prepared = backend.prepare(proto)
    for size in (1, 5, 2, 64):
        x = rng.normal(size=(size, 3)).astype("float32")
        (y,) = prepared.run([x])
        assert y.dtype == np.float32
        np.testing.assert_allclose(y, np.maximum(x @ weight, 0), rtol=1e-5, atol=1e-6)
    assert len(imports) == 1


def test_inputs_are_a_sequence_a_dict_or_one_array(rng):
    a, b = (rng.normal(size=4).astype("float32") for _ in range(2))
    prepared = backend.prepare(difference())
    for inputs in ([a, b], (a, b), {"b": b, "a": a}, [mx.nd.array(a), mx.nd.array(b)], [list(a), b]):
        np.testing.assert_allclose(prepared.run(inputs)[0], a - b, rtol=1e-6)
    proto, weight = layer(rng)
    x = rng.normal(size=(2, 3)).astype("float32")
    np.testing.assert_allclose(backend.prepare(proto).run(x).y, np.maximum(x @ weight, 0), rtol=1e-5, atol=1e-6)


def test_outputs_have_the_names_and_the_dtypes_of_the_file():
    proto = of_types(
        [node("Identity", "x", "small"), node("Shape", "x", "sizes")],
        {"x": tensor(onnx.TensorProto.UINT16, [None, 2])},
        {"small": tensor(onnx.TensorProto.UINT16, [None, 2]), "sizes": tensor(INT, [2])},
    )
    made = backend.run_model(proto, [np.array([[1, 65535]], "uint16")])
    assert made.small.dtype == np.uint16
    np.testing.assert_array_equal(made.small, [[1, 65535]])
    np.testing.assert_array_equal(made.sizes, [1, 2])


def test_dropout_is_off(rng):
    proto = model([node("Dropout", "x")], {"x": ("float32", [100])})
    x = np.ones(100, "float32")
    with mx.autograd.train_mode():
        np.testing.assert_array_equal(backend.run_model(proto, [x])[0], x)


def test_two_threads_run_one_prepared_model(rng):
    proto, weight = layer(rng)
    prepared = backend.prepare(proto)
    failures: list[Any] = []

    def work(seed: int) -> None:
        draw = np.random.default_rng(seed)
        try:
            for _ in range(50):
                x = draw.normal(size=(int(draw.integers(1, 9)), 3)).astype("float32")
                np.testing.assert_allclose(prepared.run([x])[0], np.maximum(x @ weight, 0), rtol=1e-5, atol=1e-5)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# -------------------------------------------------------------------------------------------------------- wrong inputs
@pytest.mark.parametrize(
    ("inputs", "error", "text"),
    [
        ([np.zeros(2, "float32")], HybridNetValueError, "1 inputs for a model with 2: a, b"),
        ({"a": np.zeros(2, "float32"), "c": np.zeros(2, "float32")}, HybridNetValueError, "'c'"),
        ([np.zeros(2, "float32"), np.zeros((2, 2), "float32")], ShapeError, "input 'b'"),
        ([np.zeros(2, "complex64"), np.zeros(2, "float32")], DTypeError, "input 'a'"),
        ([np.zeros(2, "float32"), "text"], HybridNetValueError, "input 'b'"),
        ([np.zeros(2, "float32"), [[1.0], [1.0, 2.0]]], HybridNetValueError, "input 'b'"),
        ([np.zeros(2, "float32"), None], HybridNetValueError, "input 'b'"),
    ],
)
def test_wrong_inputs_are_refused_by_name(inputs, error, text):
    prepared = backend.prepare(difference())
    with pytest.raises(error, match=text) as caught:
        prepared.run(inputs)
    assert "\n" in str(caught.value)  # a reason, a fix or a place


def test_numbers_are_not_cut_to_the_dtype_of_the_file():
    prepared = backend.prepare(model([node("Abs", "x")], {"x": ("int8", [2])}))
    np.testing.assert_array_equal(prepared.run([np.array([-3, 4], "int64")])[0], [3, 4])
    with pytest.raises(DTypeError, match="input 'x'"):
        prepared.run([np.array([0.5, 1.0], "float32")])
    with pytest.raises(HybridNetValueError, match="input 'x' holds numbers outside of int8"):
        prepared.run([np.array([300, 0], "int64")])


def test_a_fixed_size_is_checked_and_the_fix_names_input_shapes(rng):
    prepared = backend.prepare(model([node("Relu", "x")], {"x": ("float32", ["N", 3])}))
    with pytest.raises(ShapeError, match=r"input_shapes=\{'x': \(2, 4\)\}"):
        prepared.run([np.zeros((2, 4), "float32")])


# ----------------------------------------------------------------------------------- sequences and values that decide
def test_a_sequence_of_any_length_is_an_input_and_an_output(rng, imports):
    proto = of_types(
        [node("SequenceInsert", "items x", "more"), node("ConcatFromSequence", "more", "joined", axis=0)],
        {"items": sequence(), "x": tensor(FLOAT, ["N"])},
        {"more": sequence(), "joined": tensor(FLOAT, [None])},
    )
    prepared = backend.prepare(proto)
    x = rng.normal(size=2).astype("float32")
    for count in (0, 1, 3, 1):
        items = [rng.normal(size=size + 1).astype("float32") for size in range(count)]
        made = prepared.run([items, x])
        assert isinstance(made.more, list)
        for value, expected in zip(made.more, [*items, x], strict=True):
            np.testing.assert_array_equal(value, expected)
        np.testing.assert_array_equal(made.joined, np.concatenate([*items, x]))
    assert len(imports) == 3
    with pytest.raises(HybridNetValueError, match="input 'items' is ndarray, not a sequence"):
        prepared.run([x, x])
    with pytest.raises(UnsupportedError, match="no block for all inputs"):
        _ = prepared.block


def test_an_optional_input_may_be_absent(rng):
    proto = of_types(
        [node("OptionalHasElement", "x", "there"), node("Identity", "other", "y")],
        {"x": helper.make_optional_type_proto(tensor()), "other": tensor(FLOAT, ["N"])},
        {"there": tensor(onnx.TensorProto.BOOL, []), "y": tensor(FLOAT, ["N"])},
    )
    prepared = backend.prepare(proto)
    value = np.ones(2, "float32")
    assert not prepared.run([None, value]).there
    assert prepared.run([value, value]).there


def test_a_number_that_decides_about_sequences_is_compiled_for_each_value(rng):
    proto = of_types(
        [node("SplitToSequence", "x sizes", "parts"), node("SequenceLength", "parts", "n")],
        {"x": tensor(FLOAT, ["N"]), "sizes": tensor(INT, [None])},
        {"parts": sequence(), "n": tensor(INT, [])},
    )
    prepared = backend.prepare(proto)
    x = rng.normal(size=6).astype("float32")
    for sizes in ([1, 5], [2, 2, 2], [1, 5]):
        made = prepared.run([x, np.array(sizes)])
        assert made.n == len(sizes)
        for value, expected in zip(made.parts, np.split(x, np.cumsum(sizes)[:-1]), strict=True):
            np.testing.assert_array_equal(value, expected)


def test_an_unknown_operator_is_an_error_of_prepare_also_for_models_with_numbers():
    proto = model([node("Unheard", "x n")], {"x": ("float32", [2]), "n": ("int64", [1])})
    with pytest.raises(UnsupportedError, match="Unheard"):
        backend.prepare(proto)


# ----------------------------------------------------------------------------------------------- functions of the API
def test_run_node_runs_one_node(rng):
    x = rng.normal(size=(2, 3)).astype("float32")
    np.testing.assert_allclose(backend.run_node(node("Softmax", "x", axis=1), [x])[0].sum(axis=1), 1, rtol=1e-5)
    clip = node("Clip", "x _ high")
    np.testing.assert_array_equal(backend.run_node(clip, [x, np.float32(0.5)])[0], np.minimum(x, 0.5))
    np.testing.assert_array_equal(backend.run_node(clip, {"high": np.float32(0.5), "x": x})[0], np.minimum(x, 0.5))
    squeeze = node("Squeeze", "x", axes=[0])  # an attribute before opset 13
    np.testing.assert_array_equal(backend.run_node(squeeze, [x[None]], opset_version=11)[0], x)


def test_run_node_names_missing_inputs(rng):
    with pytest.raises(HybridNetValueError, match=r"1 inputs are given for a, b"):
        backend.run_node(node("Add", "a b"), [np.zeros(2, "float32")])


def test_files_and_bytes_are_models(tmp_path, rng):
    proto, weight = layer(rng)
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    x = rng.normal(size=(2, 3)).astype("float32")
    for form in (path, str(path), path.read_bytes()):
        made = backend.run_model(form, [x])[0]
        np.testing.assert_allclose(made, np.maximum(x @ weight, 0), rtol=1e-5, atol=1e-6)


def test_devices_are_those_of_the_machine(rng):
    assert backend.supports_device("CPU")
    assert backend.supports_device("CPU:0")
    assert backend.supports_device("CUDA:0") == (mx.num_gpus() > 0)
    for name in ("CUDA:99", "TPU", "CUDA:first", ""):
        assert not backend.supports_device(name)
        with pytest.raises(HybridNetError, match=r"device"):
            backend.prepare(layer(rng)[0], name)


def test_is_compatible_tells_whether_a_model_can_be_prepared(rng):
    assert backend.is_compatible(layer(rng)[0])
    assert not backend.is_compatible(layer(rng)[0], "TPU")
    assert not backend.is_compatible(model([node("Unheard", "x")], {"x": ("float32", [2])}))
    assert not backend.is_compatible(b"no model")
