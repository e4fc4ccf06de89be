"""A step of SGD on the way back, export_model and import_to_gluon, is the step of the network itself.

Exports transpose matrices and order the gates of cells anew. So parameters are compared element by element: nearly all
have different values, and an element is known by the value that it had before the step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hybridnet import autograd, gluon, nd
from hybridnet.contrib import quantization
from hybridnet.gluon import nn
from hybridnet.onnx import export_model, import_to_gluon

pytest.importorskip("onnxruntime")

from onnx_models import model, node, onnx
from test_export_models import CASES, CONTROL, FIXTURES, MODELS, Loops, _flat, arrays, floats, initialized

RATE = 0.05
TOLERANCE = 1e-5


def with_different_values(net: Any, rng: np.random.Generator) -> None:
    """Moves the parameters a little, so that few of their elements are equal."""
    for parameter in net.collect_params().values():
        value = parameter.data()
        if parameter.grad_req != "null" and np.dtype(value.dtype).kind == "f":
            parameter.set_data(value + nd.array(rng.uniform(1e-3, 2e-3, value.shape), dtype=value.dtype))


def step(net: Any, values: Sequence[np.ndarray], train: bool) -> tuple[dict[float, float], list[np.ndarray]]:
    """Takes a step of a loss over all outputs. Returns how much the elements of each value changed together, and the
    gradients of the inputs."""
    trained = {name: p for name, p in net.collect_params().items() if p.grad_req != "null"}
    before = {name: p.data().asnumpy() for name, p in trained.items()}
    trainer = gluon.Trainer(trained, "sgd", {"learning_rate": RATE}) if trained else None
    given = arrays(values)
    inputs = [x for x in given if np.dtype(x.dtype).kind == "f"]
    for x in inputs:
        x.attach_grad()
    with autograd.record(train_mode=train):
        made = [x for x in _flat(net(*given)) if np.dtype(x.dtype).kind == "f"]
        loss = sum((x * x).mean() for x in made)
    loss.backward()
    if trainer is not None:
        trainer.step(1, ignore_stale_grad=True)
    changes: dict[float, float] = defaultdict(float)
    for name, parameter in trained.items():
        change = parameter.data().asnumpy() - before[name]
        for value, difference in zip(before[name].ravel().tolist(), change.ravel().tolist(), strict=True):
            changes[value] += difference
    return changes, [x.grad.asnumpy() for x in inputs]


def assert_close(made: Any, wanted: Any, rounding: float = 0) -> None:
    wanted = np.asarray(wanted, "float64")
    scale = float(np.abs(wanted).max(initial=1e-3))
    np.testing.assert_allclose(np.asarray(made, "float64"), wanted, rtol=TOLERANCE, atol=TOLERANCE * scale + rounding)


def check_step(net: Any, path: Any, values: dict[str, np.ndarray], train: bool = True) -> None:
    """values: inputs by name, in the order of the network's."""
    net.hybridize()
    net(*arrays(list(values.values())))
    export_model(net, onnx_file_path=path, check=False)
    back = import_to_gluon(path)
    order = [given.name for given in onnx.load(path).graph.input]
    in_order = [values[name] for name in order]
    changes, gradients = step(net, list(values.values()), train)
    changes_back, gradients_back = step(back, in_order, train)
    changed = {value for value, change in changes.items() if change}
    missing = changed - set(changes_back)
    assert not missing, f"{len(missing)} of {len(changed)} elements are in no imported parameter"
    found = [value for value in changes if value in changes_back]
    rounding = 1e-7 * max(map(abs, found), default=0)  # the changes are differences of rounded parameters
    assert_close([changes_back[value] for value in found], [changes[value] for value in found], rounding)
    floating = [name for name, value in values.items() if value.dtype.kind == "f"]
    by_name = dict(zip([name for name in order if name in floating], gradients_back, strict=True))
    for name, gradient in zip(floating, gradients, strict=True):
        assert_close(by_name[name], gradient)
    for one, other in zip(_flat(back(*arrays(in_order))), _flat(net(*arrays(list(values.values())))), strict=True):
        assert_close(one.asnumpy(), other.asnumpy())


# ONNX has no form for these gradients: that of SoftmaxOutput does not depend on the loss, BlockGrad has none. BatchNorm
# of an axis other than 1 becomes a product and a sum, whose factors are other parameters.
OTHERS = {"legacy_json_v08", "multi_output", "batchnorm_variants"}


@pytest.mark.parametrize("name", [name for name in MODELS if name not in OTHERS])
def test_a_model_of_mxnet_takes_its_own_step(name: str, tmp_path, rng) -> None:
    case, folder = CASES[name], FIXTURES / name
    names = [given["name"] for given in case["inputs"]]
    run = next(iter(case["runs"]))
    with np.load(folder / "inputs.npz") as stored:
        values = {given: stored[f"{run}/{given}"] for given in names}
    if name == "ops_scalar":
        values = {given: value + np.float32(1e-3) for given, value in values.items()}  # away from steps and kinks
    net = gluon.SymbolBlock.imports(str(folder / case["symbol"]), names, str(folder / case["params"]))
    with_different_values(net, rng)
    check_step(net, tmp_path / "model.onnx", values, train="Dropout" not in case["ops"])


@pytest.mark.parametrize("name", CONTROL)
def test_loops_and_branches_take_their_own_step(name: str, tmp_path, rng) -> None:
    function, _, shapes = CONTROL[name]
    net = initialized(Loops(function, 4, 4))
    values = {f"data{index}" if len(shapes) > 1 else "data": floats(rng, *shape) for index, shape in enumerate(shapes)}
    check_step(net, tmp_path / "model.onnx", values)


class Tied(gluon.HybridBlock):
    """The table of words is the matrix of the last layer, too; the first state is a constant."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.table = self.params.get("table", shape=(11, 4))
            self.inner = self.params.get("inner", shape=(4, 4))

    def hybrid_forward(self, F: Any, words: Any, table: Any, inner: Any) -> Any:
        x = F.Embedding(words, table, input_dim=11, output_dim=4)
        state = F.dot(F.arange(12).reshape((3, 4)) * 0.1, inner)
        for _ in range(2):
            state = F.tanh(F.dot(state, inner))
        x = F.broadcast_add(x, F.expand_dims(state, axis=0))
        return F.dot(x, F.transpose(table))


def test_weights_with_two_uses_stay_one_parameter(tmp_path, rng) -> None:
    net = initialized(Tied())
    check_step(net, tmp_path / "model.onnx", {"data": rng.integers(0, 11, (2, 3)).astype("int32")})
    trained = import_to_gluon(tmp_path / "model.onnx").collect_params().values()
    assert sorted(p.shape for p in trained if p.grad_req != "null") == [(4, 4), (11, 4)]


def test_a_matrix_that_a_product_and_a_lookup_read_is_one_parameter(rng) -> None:
    matrix = rng.normal(size=(4, 6)).astype("float32")
    nodes = [node("Gather", "w i", "h", axis=1), node("Transpose", "h", "t", perm=[1, 0]), node("MatMul", "t w")]
    block = import_to_gluon(model(nodes, {"i": ("int64", ["rows"])}, constants={"w": matrix}))
    (parameter,) = block.collect_params().values()
    with autograd.record():
        made = block(nd.array([2, 0, 5], dtype="int64"))
    made.backward()
    picked = matrix[:, [2, 0, 5]]
    wanted = np.repeat(picked.sum(1)[:, None], 6, 1)
    wanted[:, [2, 0, 5]] += matrix.sum(1)[:, None]
    np.testing.assert_allclose(made.asnumpy(), picked.T @ matrix, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(parameter.grad().asnumpy(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_a_quantized_network_trains_its_float_layers_alone(kind: str, tmp_path, rng) -> None:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, activation="relu", in_channels=3), nn.Flatten(), nn.Dense(6), nn.Dense(3, in_units=6))
    initialized(net)
    x = np.abs(floats(rng, 4, 3, 6, 6))
    net.hybridize()
    net(nd.array(x))
    small = quantization.quantize_net(
        net, quantized_dtype=kind, calib_mode="naive", calib_data=[nd.array(x)], exclude_layers=[f"{net[3].name}_fwd"]
    )
    for parameter in small.collect_params().values():
        if parameter.name.startswith(net[3].name):
            parameter.grad_req = "write"
    check_step(small, tmp_path / "model.onnx", {"data": x})
    trained = import_to_gluon(tmp_path / "model.onnx").collect_params().values()
    assert sorted(p.shape for p in trained if p.grad_req != "null") == [(3,), (3, 6)]


def test_a_network_of_bytes_alone_has_nothing_to_train(tmp_path, rng) -> None:
    net = initialized(nn.Dense(3, in_units=6))
    x = nd.array(floats(rng, 4, 6))
    net.hybridize()
    net(x)
    small = quantization.quantize_net(net, calib_mode="naive", calib_data=[x])
    small(x)
    export_model(small, onnx_file_path=tmp_path / "model.onnx", check=False)
    for block in (small, import_to_gluon(tmp_path / "model.onnx")):
        assert all(p.grad_req == "null" for p in block.collect_params().values())
        _, (gradient,) = step(block, [x.asnumpy()], True)
        assert not gradient.any()
