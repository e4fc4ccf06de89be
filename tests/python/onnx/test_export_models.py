"""Networks go to ONNX files that ONNX Runtime runs with our results, and come back with equal values and gradients."""

from __future__ import annotations

import json
import logging
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon, nd
from hybridnet.contrib import quantization
from hybridnet.errors import TypeError as HybridNetTypeError
from hybridnet.errors import UnsupportedError
from hybridnet.errors import ValueError as HybridNetValueError
from hybridnet.gluon import nn, rnn
from hybridnet.onnx import export_model, import_to_gluon
from hybridnet.onnx._check import run_file
from onnx_models import onnx, runtime_saturates

runtime = pytest.importorskip("onnxruntime")

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "fixtures"
CASES = {path.parent.name: json.loads(path.read_text()) for path in sorted(FIXTURES.glob("*/case.json"))}
MODELS = [name for name, case in CASES.items() if case["kind"] == "model"]
NEWEST = onnx.defs.onnx_opset_version()
OPTIONS = runtime.SessionOptions()
OPTIONS.log_severity_level = 4
OPTIONS.intra_op_num_threads = 1
logging.getLogger("hybridnet.onnx").setLevel(logging.ERROR)


# ------------------------------------------------------------------------------------------------------------- helpers
def results(made: Any) -> list[np.ndarray]:
    return [x.asnumpy() for x in _flat(made)]


def _flat(made: Any) -> list[Any]:
    return [x for part in made for x in _flat(part)] if isinstance(made, (list, tuple)) else [made]


def assert_near(got: Sequence[np.ndarray], wanted: Sequence[np.ndarray], tolerance: float) -> None:
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        scale = float(np.abs(other.astype("float64")).max(initial=1e-3))
        np.testing.assert_allclose(
            one.astype("float64"), other.astype("float64"), rtol=tolerance, atol=tolerance * scale
        )


def checked(path: Any) -> Any:
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    return model


def run_runtime(model: Any, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    session = runtime.InferenceSession(model.SerializeToString(), OPTIONS)
    names = [value.name for value in model.graph.input]
    return run_file(session, dict(zip(names, values, strict=True)))


def open_axes(model: Any) -> list[dict[int, str]]:
    return [
        {axis: size.dim_param for axis, size in enumerate(value.type.tensor_type.shape.dim) if size.dim_param}
        for value in model.graph.input
    ]


def longer(value: np.ndarray, axes: dict[int, str], more: int) -> np.ndarray:
    """An input whose open axes have more elements: the first ones again."""
    for axis in axes:
        size = value.shape[axis]
        value = np.take(value, np.arange(size + more) % size, axis=axis)
    return value


def arrays(values: Sequence[np.ndarray]) -> list[Any]:
    return [nd.array(value, dtype=value.dtype) for value in values]


def check_files(
    net: Callable[..., Any], path: Any, values: Sequence[np.ndarray], *, train: bool = True, tolerance: float = 1e-6
) -> Any:
    """The file agrees with the network at two sizes of its open axes, in ONNX Runtime and after its import, which can
    be trained."""
    model = checked(path)
    back = import_to_gluon(path)
    for more in (0, 3) if any(open_axes(model)) else (0,):
        inputs = [longer(value, axes, more) for value, axes in zip(values, open_axes(model), strict=True)]
        wanted = results(net(*arrays(inputs)))
        assert_near(run_runtime(model, inputs), wanted, 1e-4)
        assert_near(results(back(*arrays(inputs))), wanted, tolerance)
    if train:
        check_training(back, values)
    return model


def check_training(block: Any, values: Sequence[np.ndarray]) -> None:
    """One step of SGD changes parameters of a block and keeps them finite."""
    parameters = [p for p in block.collect_params().values() if p.grad_req != "null"]
    assert parameters
    before = [p.data().asnumpy() for p in parameters]
    trainer = gluon.Trainer(block.collect_params(), "sgd", {"learning_rate": 0.01})
    with autograd.record():
        made = [x for x in _flat(block(*arrays(values))) if np.dtype(x.dtype).kind == "f"]
        loss = sum((x * x).sum() for x in made)
    loss.backward()
    trainer.step(1)
    after = [p.data().asnumpy() for p in parameters]
    assert any((a != b).any() for a, b in zip(before, after, strict=True))
    assert all(np.isfinite(a.astype("float64")).all() for a in after)


def export_block(net: Any, path: Any, *values: np.ndarray, **options: Any) -> Any:
    """Calls the block, and exports it."""
    net.hybridize()
    net(*arrays(values))
    export_model(net, onnx_file_path=path, check=False, **options)
    return checked(path)


def initialized(net: Any) -> Any:
    net.initialize(mx.init.Normal(0.3))
    return net


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


def operators(model: Any) -> list[str]:
    found = []
    pending = [model.graph]
    while pending:
        for node in pending.pop().node:
            found.append(node.op_type)
            pending += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    return found


# ------------------------------------------------------------------------------------------------------------ fixtures
@pytest.mark.parametrize("name", MODELS)
def test_models_of_mxnet_keep_their_results(name: str, tmp_path) -> None:
    case = CASES[name]
    folder = FIXTURES / name
    names = [given["name"] for given in case["inputs"]]
    stored = np.load(folder / "inputs.npz")
    run = case["runs"][0] if isinstance(case["runs"], list) else next(iter(case["runs"]))
    values = [stored[f"{run}/{given}"] for given in names]
    path = tmp_path / "model.onnx"
    shapes = {given: value.shape for given, value in zip(names, values, strict=True)}
    dtypes = {given: value.dtype for given, value in zip(names, values, strict=True)}
    export_model(str(folder / case["symbol"]), str(folder / case["params"]), shapes, dtypes, path, check=False)
    net = gluon.SymbolBlock.imports(str(folder / case["symbol"]), names, str(folder / case["params"]))
    in_file = [value.name for value in checked(path).graph.input]
    assert set(in_file) == set(names)
    order = [names.index(given) for given in in_file]
    check_files(
        lambda *given: net(*[given[order.index(i)] for i in range(len(names))]),
        path,
        [values[i] for i in order],
        train=False,
    )


# ---------------------------------------------------------------------------------------------------------- model zoo
LIGHT = {"mobilenet0.25": 64, "mobilenetv2_0.25": 64, "resnet18_v1": 32, "resnet18_v2": 32}
HEAVY = {
    "alexnet": 224,
    "squeezenet1.1": 224,
    "densenet121": 224,
    "inceptionv3": 299,
    "resnet50_v1": 64,
    "resnet50_v2": 64,
    "vgg11_bn": 64,
}


def check_vision(name: str, size: int, path: Any, rng: np.random.Generator) -> None:
    net = gluon.model_zoo.vision.get_model(name, classes=10)
    net.initialize(mx.init.Xavier())
    x = floats(rng, 2, 3, size, size)
    model = export_block(net, path, x)
    assert open_axes(model) == [{0: "batch"}]
    check_files(net, path, [x], tolerance=1e-5)


@pytest.mark.parametrize("name", LIGHT)
def test_networks_for_images(name: str, tmp_path, rng) -> None:
    check_vision(name, LIGHT[name], tmp_path / "model.onnx", rng)


@pytest.mark.slow
@pytest.mark.parametrize("name", HEAVY)
def test_large_networks_for_images(name: str, tmp_path, rng) -> None:
    check_vision(name, HEAVY[name], tmp_path / "model.onnx", rng)


# ---------------------------------------------------------------------------------------------------- recurrent layers
LAYERS: dict[str, Callable[..., Any]] = {
    "lstm": rnn.LSTM,
    "gru": rnn.GRU,
    "relu": lambda *args, **options: rnn.RNN(*args, activation="relu", **options),
    "tanh": lambda *args, **options: rnn.RNN(*args, activation="tanh", **options),
}


@pytest.mark.parametrize("states", [False, True], ids=["zeros", "states"])
@pytest.mark.parametrize("bidirectional", [False, True], ids=["forward", "both"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("layout", ["NTC", "TNC"])
@pytest.mark.parametrize("kind", LAYERS)
def test_recurrent_layers(kind, layout, layers, bidirectional, states, tmp_path, rng) -> None:
    layer = initialized(LAYERS[kind](4, layers, layout=layout, bidirectional=bidirectional, input_size=3))
    net = layer if states else nn.HybridSequential()  # a layer that is called without states makes them itself
    if not states:
        net.add(layer)
    values = [floats(rng, 2, 5, 3)]
    batch = 2 if layout == "NTC" else 5
    if states:
        shape = (layers * (2 if bidirectional else 1), batch, 4)
        values += [floats(rng, *shape) for _ in range(2 if kind == "lstm" else 1)]
    net.hybridize()
    given = arrays(values)
    call = (lambda x, *rest: net(x, list(rest))) if states else net
    call(*given)
    path = tmp_path / "model.onnx"
    export_model(net, onnx_file_path=path, check=False)
    model = check_files(call, path, values)
    names = operators(model)
    expected = {"lstm": "LSTM", "gru": "GRU"}.get(kind, "RNN")
    assert names.count(expected) == layers


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_recurrent_layers_of_open_steps_and_batches(kind: str, tmp_path, rng) -> None:
    net = nn.HybridSequential()
    net.add(LAYERS[kind](4, 2, layout="NTC", bidirectional=True, input_size=3))
    initialized(net)
    x = floats(rng, 2, 5, 3)
    model = export_block(net, tmp_path / "model.onnx", x, dynamic_input_shapes=[("batch", "steps", 3)])
    assert open_axes(model) == [{0: "batch", 1: "steps"}]
    check_files(net, tmp_path / "model.onnx", [x])


# ---------------------------------------------------------------------------------------------------------- transformer
class EncoderLayer(gluon.HybridBlock):
    """Attention of heads and a network of two layers, each behind a LayerNorm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self._heads, self._width = heads, width
        with self.name_scope():
            self.before, self.between = nn.LayerNorm(in_channels=width), nn.LayerNorm(in_channels=width)
            self.projections = nn.Dense(3 * width, flatten=False, in_units=width)
            self.out = nn.Dense(width, flatten=False, in_units=width)
            self.wide = nn.Dense(4 * width, flatten=False, in_units=width)
            self.narrow = nn.Dense(width, flatten=False, in_units=4 * width)
            self.dropout = nn.Dropout(0.1)

    def _split(self, F: Any, x: Any) -> Any:
        x = F.reshape(x, (0, 0, self._heads, -1))
        return F.reshape(F.transpose(x, axes=(0, 2, 1, 3)), (-3, 0, 0))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        q, k, v = (self._split(F, part) for part in F.split(self.projections(self.before(x)), 3, axis=2))
        weights = F.softmax(F.batch_dot(q, k, transpose_b=True) / (self._width // self._heads) ** 0.5)
        mixed = F.reshape(F.batch_dot(weights, v), (-4, -1, self._heads, 0, 0))
        mixed = F.reshape(F.transpose(mixed, axes=(0, 2, 1, 3)), (0, 0, -3))
        x = x + self.dropout(self.out(mixed))
        return x + self.narrow(F.LeakyReLU(self.wide(self.between(x)), act_type="gelu"))


class Encoder(gluon.HybridBlock):
    def __init__(self, words: int = 50, width: int = 16, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        with self.name_scope():
            self.embedding = nn.Embedding(words, width)
            self.layers = nn.HybridSequential()
            for _ in range(layers):
                self.layers.add(EncoderLayer(width, heads))

    def hybrid_forward(self, F: Any, words: Any) -> Any:
        return self.layers(self.embedding(words))


@pytest.mark.parametrize("opset", [13, 15, 17, 18, 20, NEWEST])
def test_a_transformer_in_every_opset(opset: int, tmp_path, rng) -> None:
    net = initialized(Encoder())
    words = rng.integers(0, 50, (2, 7)).astype("float32")
    path = tmp_path / "model.onnx"
    model = export_block(net, path, words, opset_version=opset, dynamic_input_shapes=[("batch", "length")])
    assert model.opset_import[0].version == opset
    assert open_axes(model) == [{0: "batch", 1: "length"}]
    assert ("LayerNormalization" in operators(model)) == (opset >= 17)
    check_files(net, path, [words], tolerance=2e-6)


# --------------------------------------------------------------------------------------------------- loops and branches
class Loops(gluon.HybridBlock):
    """A function of F, inputs and a parameter w, which bodies of loops read from outside."""

    def __init__(self, function: Callable[..., Any], *shape: int) -> None:
        super().__init__()
        self._function = function
        with self.name_scope():
            self.w = self.params.get("w", shape=shape)

    def hybrid_forward(self, F: Any, *inputs: Any, w: Any) -> Any:
        return self._function(F, *inputs, w)


def _recurrence(F: Any, rows: Any, state: Any, w: Any) -> Any:
    def step(row: Any, state: Any) -> Any:
        state = F.tanh(F.dot(state, w) + row)
        return state * 2, state

    return F.contrib.foreach(step, rows, state)


def _halving(F: Any, x: Any, w: Any) -> Any:
    def body(count: Any, value: Any) -> Any:
        value = F.tanh(F.dot(value, w)) * 0.5
        return value, (count + 1, value)

    made, (count, last) = F.contrib.while_loop(
        lambda count, value: F.sum(F.abs(value)) > 0.5, body, (F.zeros((1,)), x), max_iterations=8
    )
    return made, count, last


def _choice(F: Any, x: Any, w: Any) -> Any:
    return F.contrib.cond(F.sum(x) > 0, lambda: F.dot(x, w), lambda: F.tanh(F.dot(x, w)) - F.mean(x))


CONTROL: dict[str, tuple[Callable[..., Any], str, list[tuple[int, ...]]]] = {
    "foreach": (_recurrence, "Scan", [(5, 2, 4), (2, 4)]),
    "while_loop": (_halving, "Loop", [(2, 4)]),
    "cond": (_choice, "If", [(2, 4)]),
}


@pytest.mark.parametrize("opset", [13, 18, 20])
@pytest.mark.parametrize("name", CONTROL)
def test_loops_and_branches_with_captures(name: str, opset: int, tmp_path, rng) -> None:
    function, operator, shapes = CONTROL[name]
    net = initialized(Loops(function, 4, 4))
    values = [floats(rng, *shape) for shape in shapes]
    path = tmp_path / "model.onnx"
    model = export_block(net, path, *values, opset_version=opset)
    assert operator in operators(model)
    check_files(net, path, values, train=name != "while_loop")
    if name == "cond":
        check_files(net, path, [-np.abs(values[0])])
        check_files(net, path, [np.abs(values[0])])


# --------------------------------------------------------------------------------------------------------------- layers
def test_embedding_batch_norm_and_dropout(tmp_path, rng) -> None:
    net = nn.HybridSequential()
    net.add(nn.Embedding(20, 6), nn.BatchNorm(axis=2), nn.Dropout(0.5), nn.Dense(4, activation="relu"), nn.Dense(3))
    initialized(net)
    words = rng.integers(0, 20, (3, 5)).astype("float32")
    for _ in range(2):
        with autograd.record():  # running means that are not zero
            net(nd.array(words))
    model = export_block(net, tmp_path / "model.onnx", words)
    assert not {"Dropout", "Identity"} & set(operators(model))
    check_files(net, tmp_path / "model.onnx", [words])


@pytest.mark.parametrize("kind", ["int8", "uint8", "auto"])
def test_a_quantized_network_keeps_its_results(kind: str, tmp_path, rng) -> None:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, padding=1, activation="relu", in_channels=3), nn.MaxPool2D(2))
    net.add(nn.Conv2D(8, 3, in_channels=8), nn.Activation("relu"), nn.Flatten(), nn.Dense(5))
    initialized(net)
    x = np.abs(floats(rng, 4, 3, 10, 10))
    net.hybridize()
    net(nd.array(x))
    small = quantization.quantize_net(net, quantized_dtype=kind, calib_mode="naive", calib_data=[nd.array(x)])
    path = tmp_path / "model.onnx"
    export_block(small, path, x)
    # A product that lies on the border of two steps may fall to either side.
    model, back = checked(path), import_to_gluon(path)
    wanted = results(small(nd.array(x)))
    step = float(np.abs(wanted[0]).max()) / 127
    others = [results(back(nd.array(x)))]
    if not runtime_saturates():
        others.append(run_runtime(model, [x]))
    for made in others:
        assert made[0].shape == wanted[0].shape
        assert np.abs(made[0] - wanted[0]).max() <= step
        assert np.abs(made[0] - wanted[0]).mean() <= step / 20


@pytest.mark.parametrize("mode", ["weights", "dynamic"])
def test_a_network_with_weights_of_bytes_keeps_its_results(mode, tmp_path, rng) -> None:
    net = nn.HybridSequential()
    net.add(nn.Embedding(50, 16), nn.Dense(24, flatten=False, activation="relu"), nn.Dense(5, use_bias=False))
    initialized(net)
    words = rng.integers(0, 50, (3, 4)).astype("float32")
    net(nd.array(words))
    small = quantization.quantize_net(net, data_shapes=[(3, 4)], mode=mode)
    model = export_block(small, tmp_path / "model.onnx", words)
    assert "DequantizeLinear" in operators(model)
    check_files(small, tmp_path / "model.onnx", [words])


def test_rows_that_are_not_finite_give_nan_in_the_file_as_in_the_network(tmp_path, rng) -> None:
    net = initialized(nn.Dense(5, in_units=6))
    x = floats(rng, 4, 6)
    small = quantization.quantize_net(net, data_shapes=[(4, 6)], mode="dynamic")
    model = export_block(small, tmp_path / "model.onnx", x)
    x[1, 2], x[2, 5], x[3, 0] = np.nan, np.inf, -np.inf
    for out in (small(nd.array(x)).asnumpy(), run_runtime(model, [x])[0]):
        np.testing.assert_array_equal(np.isnan(out).all(axis=1), [False, True, True, True])
        assert np.isfinite(out[0]).all()


@pytest.mark.parametrize("dtype", ["float16", "float64", "bfloat16"])
def test_networks_of_other_float_types(dtype: str, tmp_path, rng) -> None:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, in_channels=2), nn.BatchNorm(in_channels=4), nn.Activation("relu"), nn.GlobalAvgPool2D())
    net.add(nn.Dense(3, in_units=4))
    initialized(net)
    net.cast(dtype)
    net.hybridize()
    x = nd.array(floats(rng, 2, 2, 6, 6), dtype=dtype)
    wanted = net(x).astype("float64").asnumpy()
    path = tmp_path / "model.onnx"
    export_model(net, onnx_file_path=path, check=False)
    (got,) = run_runtime(checked(path), [x.asnumpy()])
    tolerance = {"float16": 1e-2, "bfloat16": 6e-2, "float64": 1e-6}[dtype]
    np.testing.assert_allclose(got.astype("float64"), wanted, rtol=tolerance, atol=tolerance)
    back = import_to_gluon(path)(x)
    assert back.dtype == x.dtype
    np.testing.assert_allclose(back.astype("float64").asnumpy(), wanted, rtol=tolerance, atol=tolerance)


# -------------------------------------------------------------------------------------------------------------- options
def small_net() -> Any:
    net = nn.HybridSequential()
    net.add(nn.Dense(5, activation="relu", in_units=4), nn.Dense(3, in_units=5))
    return initialized(net)


def symbol_and_params(rng: np.random.Generator) -> tuple[Any, dict[str, Any]]:
    data = mx.sym.var("data")
    hidden = mx.sym.Activation(mx.sym.FullyConnected(data, num_hidden=5, name="fc1"), act_type="relu", name="act")
    out = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(hidden, num_hidden=3, name="fc2"), name="softmax")
    shapes = {"fc1_weight": (5, 4), "fc1_bias": (5,), "fc2_weight": (3, 5), "fc2_bias": (3,)}
    return out, {f"arg:{name}": nd.array(rng.normal(size=shape)) for name, shape in shapes.items()}


def test_the_positional_arguments_of_mxnet(tmp_path, rng) -> None:
    symbol, params = symbol_and_params(rng)
    x = floats(rng, 2, 4)
    wanted = None
    calls = [
        (mx.contrib.onnx.export_model, (symbol, params, [(2, 4)], np.float32, str(tmp_path / "a.onnx"), False)),
        (mx.onnx.export_model, (symbol, params, [(2, 4)], np.float32, str(tmp_path / "b.onnx"), False, True)),
        (mx.onnx.export_model, (symbol, params, [(2, 4)], [np.float32], str(tmp_path / "c.onnx"), False, True,
                                [(None, 4)], True)),
        (mx.onnx.export_model, (symbol, params, None, np.float32, str(tmp_path / "d.onnx"), False, False, None, True,
                                np.float32, [(2, 4)])),
    ]  # fmt: skip
    for function, arguments in calls:
        path = function(*arguments)
        assert path == arguments[4]
        (made,) = run_runtime(checked(path), [x])
        wanted = made if wanted is None else wanted
        np.testing.assert_array_equal(made, wanted)


def test_the_names_of_mxnet_contrib(tmp_path, rng) -> None:
    symbol, params = symbol_and_params(rng)
    path = str(tmp_path / "model.onnx")
    made = mx.contrib.onnx.export_model(
        sym=symbol, params=params, input_shape=[(2, 4)], input_type=np.float32, onnx_file_path=path, verbose=True
    )
    assert made == path
    assert [value.name for value in checked(path).graph.input] == ["data"]


def test_symbols_and_parameters_come_from_files(tmp_path, rng) -> None:
    symbol, params = symbol_and_params(rng)
    symbol.save(str(tmp_path / "net-symbol.json"))
    nd.save(str(tmp_path / "net-0000.params"), params)
    path = tmp_path / "model.onnx"
    export_model(tmp_path / "net-symbol.json", tmp_path / "net-0000.params", [(2, 4)], onnx_file_path=path)
    assert checked(path).graph.name == "net"


def test_the_size_of_the_batch_is_open_unless_it_is_fixed(tmp_path, rng) -> None:
    net, x = small_net(), floats(rng, 2, 4)
    assert open_axes(export_block(net, tmp_path / "a.onnx", x)) == [{0: "batch"}]
    assert open_axes(export_block(net, tmp_path / "b.onnx", x, dynamic=False)) == [{}]
    named = export_block(net, tmp_path / "c.onnx", x, dynamic_input_shapes={"data": ("rows", 4)})
    assert open_axes(named) == [{0: "rows"}]


def test_inputs_of_other_sizes_do_not_share_the_batch(tmp_path, rng) -> None:
    net = initialized(Loops(lambda F, x, y, w: F.broadcast_add(F.dot(x, w), y), 4, 4))
    values = [floats(rng, 3, 4), floats(rng, 1, 4)]
    model = export_block(net, tmp_path / "model.onnx", *values)
    assert open_axes(model) == [{0: "batch"}, {}]
    check_files(net, tmp_path / "model.onnx", values)


def test_a_size_that_changes_the_graph_stays_fixed(tmp_path, rng) -> None:
    """With one row, squeeze drops the axis: a file for other numbers of rows would keep it."""
    x = mx.sym.var("x").as_np_ndarray()
    path = tmp_path / "model.onnx"
    export_model(mx.sym.np.squeeze(x) * 2, {}, [(1, 3)], onnx_file_path=path, check=False)
    model = checked(path)
    assert open_axes(model) == [{}]
    assert run_runtime(model, [floats(rng, 1, 3)])[0].shape == (3,)


def test_weights_in_a_second_file(tmp_path, rng) -> None:
    net, x = small_net(), floats(rng, 2, 4)
    net.add(nn.Dense(300, in_units=3))
    net[-1].initialize()
    path = tmp_path / "model.onnx"
    export_block(net, path, x, external_data=True)
    assert (tmp_path / "model.onnx.data").stat().st_size >= 3600
    assert path.stat().st_size < 4000
    session = runtime.InferenceSession(str(path), OPTIONS)
    assert_near(session.run(None, {"data": x}), results(net(nd.array(x))), 1e-4)
    assert_near(results(import_to_gluon(path)(nd.array(x))), results(net(nd.array(x))), 1e-6)


def test_blocks_of_equal_structure_are_functions(tmp_path, rng) -> None:
    net = initialized(Encoder(layers=3))
    words = rng.integers(0, 50, (2, 7)).astype("float32")
    path = tmp_path / "model.onnx"
    plain = export_block(net, tmp_path / "plain.onnx", words)
    model = export_block(net, path, words, functions=True)
    assert operators(model).count(model.functions[0].name) == 3
    assert [len(function.node) for function in model.functions] == [39]
    assert len(model.graph.node) == len(plain.graph.node) - 3 * 38
    check_files(net, path, [words], tolerance=2e-6)


def test_a_network_without_equal_blocks_has_no_functions(tmp_path, rng) -> None:
    model = export_block(small_net(), tmp_path / "model.onnx", floats(rng, 2, 4), functions=True)
    assert not model.functions


@pytest.mark.parametrize("name", ["resnet18_v1", "mobilenetv2_0.25"])
def test_functions_of_networks_for_images(name: str, tmp_path, rng) -> None:
    net = gluon.model_zoo.vision.get_model(name, classes=10)
    net.initialize(mx.init.Xavier())
    x = floats(rng, 2, 3, LIGHT[name], LIGHT[name])
    model = export_block(net, tmp_path / "model.onnx", x, functions=True)
    assert model.functions
    check_files(net, tmp_path / "model.onnx", [x], tolerance=1e-5)


def test_the_file_has_the_shapes_of_all_values_if_asked(tmp_path, rng) -> None:
    net, x = small_net(), floats(rng, 2, 4)
    assert not export_block(net, tmp_path / "a.onnx", x).graph.value_info
    model = export_block(net, tmp_path / "b.onnx", x, run_shape_inference=True)
    known = {value.name for value in model.graph.value_info}
    made = {name for node in model.graph.node for name in node.output} - {value.name for value in model.graph.output}
    assert made <= known


def test_the_check_compares_with_onnxruntime(tmp_path, rng, monkeypatch) -> None:
    net, x = small_net(), floats(rng, 2, 4)
    net.hybridize()
    net(nd.array(x))
    export_model(net, onnx_file_path=tmp_path / "model.onnx", check=True)
    from hybridnet.onnx import _check

    monkeypatch.setattr(_check, "run_file", lambda session, inputs: [np.zeros((len(inputs["data"]), 3), "float32")])
    with pytest.raises(HybridNetValueError, match=r"output '.*' of the exported file .* differs(.|\n)*check=False"):
        export_model(net, onnx_file_path=tmp_path / "model.onnx", check=True)


def test_the_text_of_verbose_lists_the_nodes(tmp_path, rng, caplog) -> None:
    with caplog.at_level(logging.INFO, logger="hybridnet.onnx"):
        export_block(small_net(), tmp_path / "model.onnx", floats(rng, 2, 4), verbose=True)
    assert "open sizes: batch; nodes: 2 Gemm, 1 Relu" in caplog.text


# ---------------------------------------------------------------------------------------------------- no needless nodes
def test_a_residual_network_has_no_needless_nodes(tmp_path, rng) -> None:
    """The file has one node for each operator of the network."""
    net = gluon.model_zoo.vision.get_model("resnet18_v1", classes=10)
    net.initialize(mx.init.Xavier())
    names = operators(export_block(net, tmp_path / "model.onnx", floats(rng, 2, 3, 32, 32)))
    assert {name: names.count(name) for name in sorted(set(names))} == {
        "Add": 8, "BatchNormalization": 20, "Conv": 20, "Gemm": 1, "GlobalAveragePool": 1, "MaxPool": 1,
        "Relu": 17, "Reshape": 1,
    }  # fmt: skip


def test_a_transformer_has_no_needless_nodes(tmp_path, rng) -> None:
    """PyTorch 2 writes 95 nodes for the same layers of a fixed batch, and 179 of an open one, constants not counted."""
    words = rng.integers(0, 50, (2, 7)).astype("int32")
    names = operators(export_block(initialized(Encoder()), tmp_path / "model.onnx", words))
    assert not {"Identity", "Cast", "Expand", "Shape"} & set(names), names
    assert len(names) == 80


# --------------------------------------------------------------------------------------------------------------- errors
WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "an old opset": ({"opset_version": 12}, HybridNetValueError, r"opset_version is \d+: expected 13 to \d+"),
    "an opset of the future": (
        {"opset_version": 999},
        HybridNetValueError,
        r"opset_version is \d+: expected 13 to \d+",
    ),
    "an opset that is text": ({"opset_version": "18"}, HybridNetTypeError, "opset_version is '18': expected an int"),
    "no symbol": ({"sym": 3}, HybridNetTypeError, "a Symbol, a path or a HybridBlock"),
    "too many shapes": ({"in_shapes": [(2, 4), (2, 4), (1,)]}, HybridNetValueError, "in_shapes has 3 items: expected"),
    "a shape of an unknown input": ({"in_shapes": {"dat": (2, 4)}}, HybridNetValueError, "in_shapes names 'dat'"),
    "a shape that is no tuple": ({"in_shapes": 4}, HybridNetTypeError, "in_shapes holds .*: expected"),
    "a size that is a float": ({"in_shapes": [(2.5, 4)]}, HybridNetTypeError, "in_shapes holds .*: expected"),
    "a negative size": ({"in_shapes": [(-1, 4)]}, HybridNetValueError, "in_shapes holds .*: expected"),
    "too many types": ({"in_types": ["float32"] * 3}, HybridNetValueError, "in_types has 3 items: expected"),
    "an unknown type": ({"in_types": "float33"}, TypeError, "float33"),
    "open shapes of another rank": ({"dynamic_input_shapes": [(None, 4, 1)]}, HybridNetValueError, "has 3 axes"),
    "open shapes of an unknown input": ({"dynamic_input_shapes": {"x": (None, 4)}}, HybridNetValueError, "names 'x'"),
    "parameters that are a number": ({"params": 3}, HybridNetTypeError, "params is of type int: expected"),
    "no such file": ({"sym": "/nowhere/net-symbol.json"}, OSError, "/nowhere/net-symbol.json"),
    "no such folder": ({"onnx_file_path": "/nowhere/model.onnx"}, OSError, "/nowhere/model.onnx"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_have_errors_that_name_them(name: str, tmp_path, rng) -> None:
    changed, kind, text = WRONG[name]
    symbol, params = symbol_and_params(rng)
    arguments = {"sym": symbol, "params": params, "in_shapes": [(2, 4)], "onnx_file_path": tmp_path / "m", **changed}
    with pytest.raises(mx.base.MXNetError, match=text) as caught:
        export_model(**arguments, check=False)
    assert isinstance(caught.value, kind)


def test_a_block_that_was_never_called_needs_shapes(tmp_path) -> None:
    net = small_net()
    with pytest.raises(HybridNetValueError, match=r"has no graph(.|\n)*in_shapes"):
        export_model(net, onnx_file_path=tmp_path / "model.onnx")
    export_model(net, in_shapes=[(2, 4)], onnx_file_path=tmp_path / "model.onnx")
    assert open_axes(checked(tmp_path / "model.onnx")) == [{0: "batch"}]


def test_an_operator_without_a_form_is_named_with_its_block(tmp_path, rng) -> None:
    net = initialized(Loops(lambda F, x, w: F.np.linalg.svd(F.dot(x, w).as_np_ndarray())[1], 4, 4))
    with pytest.raises(UnsupportedError, match=r"operator '_npi_svd' \(node '.*', block '.*'\)"):
        export_block(net, tmp_path / "model.onnx", floats(rng, 2, 4))


def test_a_parameter_that_is_missing_is_named(tmp_path, rng) -> None:
    """Without its array, it is an input of the file whose shape nothing tells."""
    symbol, params = symbol_and_params(rng)
    del params["arg:fc2_weight"]
    with pytest.raises(mx.base.MXNetError, match="fc2_weight"):
        export_model(symbol, params, [(2, 4)], onnx_file_path=tmp_path / "model.onnx")
