"""Importing ONNX files: symbols, blocks, metadata, files for other languages, and errors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import hybridnet as mx  # noqa: E402
from hybridnet.errors import FileError, UnsupportedError  # noqa: E402
from hybridnet.errors import ValueError as HybridNetValueError  # noqa: E402
from hybridnet.onnx import _table  # noqa: E402
from onnx_models import assert_as_onnxruntime, expected, helper, model, node, run  # noqa: E402

IMAGES = {"x": ("float32", ["N", 3, 8, 8])}


def network(rng: Any) -> Any:
    """A convolution, BatchNorm, and a layer: parameters of several kinds."""
    return model(
        [
            node("Conv", "x kernel bias", "c", kernel_shape=[3, 3]),
            node("BatchNormalization", "c scale shift mean variance", "b"),
            node("Relu", "b", "r"),
            node("GlobalAveragePool", "r", "p"),
            node("Flatten", "p", "f"),
            node("Gemm", "f w v", transB=1),
        ],
        IMAGES,
        "y",
        {
            "kernel": rng.normal(size=(4, 3, 3, 3)).astype("float32"),
            "bias": rng.normal(size=4).astype("float32"),
            "scale": rng.uniform(0.5, 1, 4).astype("float32"),
            "shift": rng.normal(size=4).astype("float32"),
            "mean": rng.normal(size=4).astype("float32"),
            "variance": rng.uniform(0.5, 1, 4).astype("float32"),
            "w": rng.normal(size=(2, 4)).astype("float32"),
            "v": rng.normal(size=2).astype("float32"),
        },
    )


def images(rng: Any, count: int = 2) -> np.ndarray:
    return rng.normal(size=(count, 3, 8, 8)).astype("float32")


# ------------------------------------------------------------------------------------------------ symbols and blocks
def test_import_model_splits_parameters_and_states(rng):
    symbol, args, aux = mx.onnx.import_model(network(rng))
    assert set(aux) == {"mean", "variance"}
    assert set(args) == {"kernel", "bias", "scale", "shift", "w", "v"}
    assert set(symbol.list_arguments()) == {"x", *args}
    assert set(symbol.list_auxiliary_states()) == set(aux)


def test_the_symbol_gives_the_results_of_onnxruntime(rng):
    proto = network(rng)
    symbol, args, aux = mx.onnx.import_model(proto)
    x = images(rng)
    executor = symbol.bind(mx.cpu(), {"x": mx.nd.array(x), **args}, grad_req="null", aux_states=aux)
    (y,) = executor.forward(is_train=False)
    np.testing.assert_allclose(y.asnumpy(), expected(proto, [x])[0], rtol=1e-4, atol=1e-5)


def test_a_step_of_a_trainer_changes_weights_and_lowers_the_loss(rng):
    net = mx.onnx.import_to_gluon(network(rng))
    before = {name: parameter.data().asnumpy() for name, parameter in net.collect_params().items()}
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
    x, wanted = mx.nd.array(images(rng, 8)), mx.nd.array(rng.normal(size=(8, 2)).astype("float32"))
    losses = []
    for _ in range(10):
        with mx.autograd.record():
            loss = ((net(x) - wanted) ** 2).mean()
        loss.backward()
        trainer.step(1)
        losses.append(loss.asscalar())
    assert losses[-1] < losses[0]
    for name in ("kernel", "scale", "shift", "w", "v", "mean", "variance"):
        assert not np.array_equal(net.collect_params()[name].data().asnumpy(), before[name]), name


def test_integer_constants_are_not_trained(rng):
    places = np.array([2, 0])
    net = mx.onnx.import_to_gluon(
        model([node("Gather", "x i", axis=1)], {"x": ("float32", ["N", 3])}, "y", {"i": places})
    )
    assert all(parameter.grad_req == "null" for parameter in net.collect_params().values())


def test_initializers_that_are_inputs_too_are_parameters(rng):
    proto = model([node("Mul", "x w")], {"x": ("float32", ["N"]), "w": ("float32", [1])}, "y", {"w": np.float32([3])})
    symbol, args, _ = mx.onnx.import_model(proto)
    assert set(symbol.list_arguments()) - set(args) == {"x"}
    np.testing.assert_array_equal(run(mx.onnx.import_to_gluon(proto), [np.float32([1, 2])])[0], [3, 6])
    assert mx.onnx.get_model_metadata(proto)["input_tensor_data"] == [("x", (0,))]


def test_functions_of_the_file_are_inlined_with_their_attributes(rng):
    leaky = helper.make_function(
        "own",
        "Leaky",
        ["x"],
        ["y"],
        [helper.make_node("LeakyRelu", ["x"], ["y"])],
        [helper.make_opsetid("", 21)],
        ["slope"],
    )
    reference = leaky.node[0].attribute.add()
    reference.name, reference.ref_attr_name, reference.type = "alpha", "slope", onnx.AttributeProto.FLOAT
    proto = model(
        [node("Leaky", "x", "h", domain="own", slope=0.5), node("Leaky", "h", domain="own", slope=0.25)],
        {"x": ("float32", ["N"])},
        domains={"own": 1},
    )
    proto.functions.append(leaky)
    assert_as_onnxruntime(proto, [np.float32([-8, 4])], [np.float32([-8])])
    assert run(mx.onnx.import_to_gluon(proto), [np.float32([-8, 4])])[0].tolist() == [-1, 4]


def test_sequences_are_imported_for_given_shapes(rng):
    items = helper.make_sequence_type_proto(helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None))
    graph = helper.make_graph(
        [node("SequenceErase", "x", "kept"), node("ConcatFromSequence", "kept", "y", axis=0)],
        "graph",
        [helper.make_value_info("x", items)],
        [helper.make_empty_tensor_value_info("y"), helper.make_value_info("kept", items)],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    net = mx.onnx.import_to_gluon(proto, input_shapes={"x": [(None, 2), (3, 2), (1, 2)]})
    arrays = [rng.normal(size=(size, 2)).astype("float32") for size in (5, 3, 1)]
    joined, *kept = run(net, arrays)
    np.testing.assert_array_equal(joined, np.concatenate(arrays[:2]))
    assert [value.shape for value in kept] == [(5, 2), (3, 2)]
    with pytest.raises(UnsupportedError, match="input 'x' is a sequence"):
        mx.onnx.import_to_gluon(proto)
    with pytest.raises(HybridNetValueError, match="one shape for each item"):
        mx.onnx.import_to_gluon(proto, input_shapes={"x": (3, 2)})


# ------------------------------------------------------------------------------------------------------------- files
def test_external_data_are_read_from_the_folder_of_the_model(tmp_path, rng, monkeypatch):
    proto = network(rng)
    wanted = expected(proto, [x := images(rng)])[0]
    folder = tmp_path / "models"
    folder.mkdir()
    onnx.save(proto, folder / "net.onnx", save_as_external_data=True, location="net.data", size_threshold=0)
    assert (folder / "net.data").stat().st_size > 0
    monkeypatch.chdir(tmp_path)
    for path in (folder / "net.onnx", "models/net.onnx"):
        np.testing.assert_allclose(run(mx.onnx.import_to_gluon(path), [x])[0], wanted, rtol=1e-4, atol=1e-5)
    (folder / "net.data").unlink()
    with pytest.raises((FileError, HybridNetValueError), match=r"net\.data"):
        mx.onnx.import_to_gluon(folder / "net.onnx")


def test_metadata_are_names_and_shapes_with_0_for_open_sizes(tmp_path, rng):
    path = tmp_path / "net.onnx"
    proto = network(rng)
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["N", 2]))
    onnx.save(proto, path)
    assert mx.onnx.get_model_metadata(path) == {
        "input_tensor_data": [("x", (0, 3, 8, 8))],
        "output_tensor_data": [("y", (0, 2))],
    }


def test_converted_files_give_the_results_of_onnxruntime(tmp_path, rng):
    proto = network(rng)
    paths = mx.onnx.convert(proto, str(tmp_path / "net"))
    assert paths == (str(tmp_path / "net-symbol.json"), str(tmp_path / "net-0000.params"))
    net = mx.gluon.SymbolBlock.imports(paths[0], ["x"], paths[1])
    x = images(rng, 3)
    np.testing.assert_allclose(run(net, [x])[0], expected(proto, [x])[0], rtol=1e-4, atol=1e-5)


COMPARED = [
    [node("Greater", "x z", "c"), node("Where", "c x z")],
    [node("Less", "x z", "c"), node("Not", "c", "n"), node("Xor", "c n", "e"), node("Cast", "e", to=1)],
    [node("Gelu", "x", approximate="tanh")],
    [node("HardSwish", "x")],
    [node("PRelu", "x z")],
    [node("Round", "x")],
    [node("QuantizeLinear", "x s", "q"), node("DequantizeLinear", "q s")],
]


@pytest.mark.parametrize("nodes", COMPARED, ids=lambda nodes: nodes[0].op_type)
def test_files_of_operators_without_a_public_name_can_be_loaded(nodes, tmp_path, rng):
    constants = {"z": rng.normal(size=3).astype("float32"), "s": np.float32(0.25)}
    proto = model(nodes, {"x": ("float32", ["N", 3])}, "y", constants)
    paths = mx.onnx.convert(proto, str(tmp_path / "net"))
    net = mx.gluon.SymbolBlock.imports(paths[0], ["x"], paths[1])
    x = rng.normal(size=(5, 3)).astype("float32")
    np.testing.assert_allclose(run(net, [x])[0], expected(proto, [x])[0], rtol=1e-5, atol=1e-6)


# ------------------------------------------------------------------------------------------------------------ errors
FUNCTIONS = [mx.onnx.import_model, mx.onnx.import_to_gluon, mx.onnx.get_model_metadata]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_files_that_cannot_be_read_are_errors_with_their_path(function, tmp_path):
    missing, text = tmp_path / "missing.onnx", tmp_path / "text.onnx"
    text.write_text("a text and no model")
    with pytest.raises(FileError, match=r"missing\.onnx"):
        function(missing)
    with pytest.raises(FileError, match=r"text\.onnx.* is not an ONNX model"):
        function(text)
    with pytest.raises(FileError, match="bytes"):
        function(b"no model")
    with pytest.raises(FileError, match="graph"):
        function(b"")


def test_an_unknown_operator_is_named_with_its_node_opset_and_the_fix():
    proto = model([node("Unheard", "x", name="layer7", domain="own")], {"x": ("float32", [2])}, domains={"own": 3})
    with pytest.raises(UnsupportedError) as caught:
        mx.onnx.import_model(proto)
    for part in ("own.Unheard", "'layer7'", "'y'", "opset 3", "Fix:", "hybridnet.onnx.form"):
        assert part in str(caught.value)


def test_shapes_for_names_that_no_input_has_are_an_error(rng):
    with pytest.raises(HybridNetValueError, match=r"\['data'\].*\['x'\]"):
        mx.onnx.import_model(network(rng), input_shapes={"data": (1, 3, 8, 8)})


def test_strings_are_refused(rng):
    proto = model([node("Identity", "x")], {"x": ("float32", [2])})
    proto.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.STRING
    with pytest.raises(UnsupportedError, match="string"):
        mx.onnx.import_model(proto)


# ------------------------------------------------------------------------------------------------- forms of users
@pytest.fixture
def forms() -> Iterator[None]:
    before = dict(_table._OF_USERS)
    yield
    _table._OF_USERS.clear()
    _table._OF_USERS.update(before)


def test_a_form_of_a_user_makes_an_operator_of_their_domain(forms, rng):
    @mx.onnx.form("Scale", domain="own")
    def scale(g: Any, node: Any, x: Any) -> Any:
        return g.emit("_mul_scalar", [x], scalar=node.attr("factor"), name=node.name)

    proto = model([node("Scale", "x", domain="own", factor=3.0)], {"x": ("float32", ["N"])}, domains={"own": 1})
    assert run(mx.onnx.import_to_gluon(proto), [np.float32([1, 2])])[0].tolist() == [3, 6]


def test_a_form_of_a_user_takes_the_place_of_the_own_one_and_of_one_before(forms):
    proto = model([node("Neg", "x")], {"x": ("float32", ["N"])})
    for factor in (2.0, 5.0):

        @mx.onnx.form("Neg")
        def neg(g: Any, node: Any, x: Any, factor: float = factor) -> Any:
            return g.emit("_mul_scalar", [x], scalar=factor)

        assert run(mx.onnx.import_to_gluon(proto), [np.float32([1, 2])])[0].tolist() == [factor, 2 * factor]


def python(program: str, folder: Path) -> str:
    """The output of a new interpreter."""
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_form_that_is_registered_before_any_import_works(tmp_path):
    onnx.save(model([node("Neg", "x", "h"), node("Relu", "h")], {"x": ("float32", ["N"])}), tmp_path / "model.onnx")
    program = """
import hybridnet as mx

@mx.onnx.form("Neg")
def neg(g, node, x):
    return g.emit("_mul_scalar", [x], scalar=7.0)

print(mx.onnx.import_to_gluon("model.onnx")(mx.nd.array([1, -2])).asnumpy().tolist())
"""
    assert python(program, tmp_path) == "[7.0, 0.0]\n"


def test_importing_the_library_does_not_import_onnx(tmp_path):
    program = "import sys, hybridnet as mx; mx.onnx.form; print('onnx' in sys.modules, 'onnxruntime' in sys.modules)"
    assert python(program, tmp_path) == "False False\n"


@pytest.mark.parametrize(
    "use",
    [
        "mx.onnx.import_model('model.onnx')",
        "mx.onnx.import_to_gluon('model.onnx')",
        "mx.onnx.get_model_metadata('model.onnx')",
        "mx.onnx.convert('model.onnx', 'net')",
        "import hybridnet.onnx.backend",
    ],
)
def test_without_the_package_the_error_says_how_to_install_it(use, tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"")
    program = f"""
import sys
sys.modules["onnx"] = None
import hybridnet as mx
try:
    {use}
except ImportError as error:
    print(error)
"""
    assert "pip install hybridnet[onnx]" in python(program, tmp_path)
