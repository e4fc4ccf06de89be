"""Networks of PyTorch that its exporters write: results for two batch sizes, and the gradients of their parameters.

Gradients are compared element by element: all parameters get different values, so an element of an imported parameter
is known by its value, wherever the exporter has put it (it transposes matrices, and orders the gates of cells anew).
"""

from __future__ import annotations

import io
import warnings
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd

torch = pytest.importorskip("torch", reason="PyTorch is not installed, whose exports are tested")
onnx = pytest.importorskip("onnx")

from pytorch_networks import NETWORKS, Calling, Network  # noqa: E402

RELATIVE = 1e-4
BATCHES = (2, 5)


def cases(exporter: str) -> list[Any]:
    return [
        pytest.param(name, id=name, marks=[pytest.mark.slow] if net.slow else [])
        for name, net in NETWORKS.items()
        if exporter in net.exporters
    ]


def with_different_values(module: Any, seed: int = 0) -> Any:
    """The module in evaluation mode; each element of its parameters has a value of its own."""
    parameters = list(module.parameters())
    count = sum(parameter.numel() for parameter in parameters)
    values = torch.linspace(-0.6, 0.6, count + 2, dtype=torch.float64)[1:-1]
    values = values[torch.randperm(count, generator=torch.Generator().manual_seed(seed))]
    with torch.no_grad():
        for parameter, part in zip(parameters, values.split([p.numel() for p in parameters]), strict=True):
            parameter.copy_(part.reshape(parameter.shape))
        for name, state in module.named_buffers():
            if state.is_floating_point():
                torch.nn.init.uniform_(state, 0.5, 1.5) if name.endswith("var") else torch.nn.init.uniform_(state)
    return module.eval()


def exported(net: Network, module: Any, exporter: str) -> Any:
    """The model that an exporter of PyTorch writes."""
    inputs = net.inputs(BATCHES[0] + 1)
    file = io.BytesIO()
    names = [f"input{index}" for index in range(len(inputs))]
    axes = [axis for value in inputs for axis in [value.shape.index(BATCHES[0] + 1)]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if exporter == "old":
            open_axes = {name: {axis: "batch"} for name, axis in zip(names, axes, strict=True)}
            torch.onnx.export(
                module, inputs, file, input_names=names, dynamic_axes=open_axes, dynamo=False, opset_version=17
            )
            return onnx.load_model_from_string(file.getvalue())
        shapes = None
        if net.has_open_batch:
            batch = torch.export.Dim("batch", min=1, max=64)
            shapes = tuple({axis: batch} for axis in axes)
            shapes = (shapes,) if isinstance(module, Calling) else shapes
        program = torch.onnx.export(
            module, inputs, input_names=names, dynamic_shapes=shapes, dynamo=True, verbose=False
        )
        return program.model_proto


def outputs_of(module: Any, inputs: Sequence[Any]) -> list[Any]:
    made = module(*inputs)
    return list(made) if isinstance(made, tuple) else [made]


def arrays_of(inputs: Sequence[Any]) -> list[Any]:
    return [mx.nd.array(value.numpy(), dtype=str(value.dtype).removeprefix("torch.")) for value in inputs]


def imported_outputs(block: Any, inputs: Sequence[Any]) -> list[Any]:
    made = block(*arrays_of(inputs))
    return list(made) if isinstance(made, (list, tuple)) else [made]


def by_value(parameters: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[float, float]:
    """The sum of the gradients of all elements with a value. parameters: values and gradients by name."""
    sums: dict[float, float] = defaultdict(float)
    for values, gradients in parameters.values():
        for value, gradient in zip(values.ravel().tolist(), gradients.ravel().tolist(), strict=True):
            sums[value] += gradient
    return sums


def gradients_of_torch(module: Any, inputs: Sequence[Any], weights: Sequence[np.ndarray]) -> dict[str, Any]:
    loss = sum(
        (output * torch.from_numpy(weight)).sum()
        for output, weight in zip(outputs_of(module, inputs), weights, strict=True)
    )
    loss.backward()
    return {
        name: (parameter.detach().numpy(), parameter.grad.numpy())
        for name, parameter in module.named_parameters()
        if parameter.grad is not None
    }


def gradients_of_import(block: Any, inputs: Sequence[Any], weights: Sequence[np.ndarray]) -> dict[str, Any]:
    with autograd.record(train_mode=False):
        outputs = imported_outputs(block, inputs)
        loss = sum(
            (output * mx.nd.array(weight, dtype=output.dtype)).sum()
            for output, weight in zip(outputs, weights, strict=True)
        )
    loss.backward()
    return {
        name: (parameter.data().asnumpy(), parameter.grad().asnumpy())
        for name, parameter in block.collect_params().items()
        if parameter.grad_req != "null"
    }


def assert_results_agree(net: Network, module: Any, block: Any) -> None:
    for batch in BATCHES if net.has_open_batch else [BATCHES[0] + 1]:
        inputs = net.inputs(batch)
        with torch.no_grad():
            wanted = outputs_of(module, inputs)
        for made, value in zip(imported_outputs(block, inputs), wanted, strict=True):
            value = value.numpy()
            assert made.dtype == value.dtype
            scale = float(np.abs(value).max(initial=0))
            np.testing.assert_allclose(made.asnumpy(), value, rtol=RELATIVE, atol=RELATIVE * scale * 0.1, strict=True)


def assert_gradients_agree(net: Network, module: Any, block: Any) -> None:
    inputs = net.inputs(BATCHES[0] + 1)
    with torch.no_grad():
        shapes = [(tuple(output.shape), output.numpy().dtype) for output in outputs_of(module, inputs)]
    draw = np.random.default_rng(3)
    weights = [draw.uniform(0.5, 1.5, shape).astype(dtype) for shape, dtype in shapes]
    wanted = gradients_of_torch(module, inputs, weights)
    made = by_value(gradients_of_import(block, inputs, weights))
    compared = {name: item for name, item in wanted.items() if not name.startswith(net.folded or ("-",))}
    assert compared
    largest = max(float(np.abs(gradients).max(initial=0)) for _, gradients in compared.values())
    for name, (values, gradients) in compared.items():
        places = values.ravel().tolist()
        missing = sum(value not in made for value in places)
        assert not missing, f"{missing} of {len(places)} elements of '{name}' are in no imported parameter"
        found = np.array([made[value] for value in places], gradients.dtype).reshape(gradients.shape)
        np.testing.assert_allclose(found, gradients, rtol=1e-3, atol=1e-5 * largest, err_msg=name)


def check(name: str, exporter: str) -> None:
    torch.manual_seed(0)
    net = NETWORKS[name]
    module = with_different_values(net.make())
    block = mx.onnx.import_to_gluon(exported(net, module, exporter))
    assert_results_agree(net, module, block)
    block.hybridize()
    assert_results_agree(net, module, block)
    if net.trains:
        assert_gradients_agree(net, module, block)


@pytest.mark.parametrize("name", cases("new"))
def test_that_a_network_of_the_new_exporter_agrees_and_trains(name: str) -> None:
    pytest.importorskip("onnxscript", reason="onnxscript is not installed, which PyTorch's exporter needs")
    check(name, "new")


@pytest.mark.parametrize("name", cases("old"))
def test_that_a_network_of_the_old_exporter_agrees_and_trains(name: str) -> None:
    check(name, "old")


@pytest.mark.parametrize("exporter", ["new", "old"])
@pytest.mark.parametrize("name", ["GRU", "LayerNorm and GroupNorm", "multi-head attention"])
def test_that_training_an_imported_network_takes_the_steps_of_torch(name: str, exporter: str) -> None:
    if exporter == "new":
        pytest.importorskip("onnxscript", reason="onnxscript is not installed, which PyTorch's exporter needs")
    torch.manual_seed(1)
    net = NETWORKS[name]
    module = with_different_values(net.make())
    block = mx.onnx.import_to_gluon(exported(net, module, exporter))
    inputs = net.inputs(4)
    theirs = torch.optim.SGD(module.parameters(), lr=0.05)
    ours = mx.gluon.Trainer(block.collect_params(), "sgd", {"learning_rate": 0.05})
    for _ in range(3):
        theirs.zero_grad()
        (wanted,) = outputs_of(module, inputs)
        wanted.square().mean().backward()
        theirs.step()
        with autograd.record(train_mode=False):
            (made,) = imported_outputs(block, inputs)
            loss = (made * made).mean()
        loss.backward()
        ours.step(1)
        np.testing.assert_allclose(made.asnumpy(), wanted.detach().numpy(), rtol=RELATIVE, atol=1e-5)
