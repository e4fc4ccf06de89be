"""Layers with post-operations, and NaN, infinities, signed zeros and huge numbers in all their inputs.

test_special_values.py compares the lists of post-operations and of operators that take them with the registry, and
fails if one is added there only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import _core, autograd, gluon, nd
from hybridnet.gluon import nn

SPECIAL = (np.nan, np.inf, -np.inf, 1e30, -3e38, -0.0, 1e-41)

# act_type of the fused operators -> the same function of separate operators.
POST_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "none": lambda F, y: y,
    "relu": lambda F, y: F.relu(y),
    "sigmoid": lambda F, y: F.sigmoid(y),
    "tanh": lambda F, y: F.Activation(y, act_type="tanh"),
    "softrelu": lambda F, y: F.Activation(y, act_type="softrelu"),
    "gelu": lambda F, y: F.LeakyReLU(y, act_type="gelu"),
    "gelu_tanh": lambda F, y: 0.5 * y * (1 + F.tanh(0.7978845608028654 * (y + 0.044715 * y * y * y))),
    "silu": lambda F, y: y * F.sigmoid(y),
    "clip": lambda F, y: F.clip(y, a_min=0, a_max=6),
    "elu": lambda F, y: F.LeakyReLU(y, act_type="elu", slope=0.7),
    "leaky": lambda F, y: F.LeakyReLU(y, act_type="leaky", slope=0.2),
}

# Functions behind a layer that are not post-operations of its kernel.
OTHER_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "selu": lambda F, y: F.LeakyReLU(y, act_type="selu"),
    "softsign": lambda F, y: F.Activation(y, act_type="softsign"),
    "hard_sigmoid": lambda F, y: F.hard_sigmoid(y),
    "maximum": lambda F, y: F.maximum(y, 0.5) * 2,
    "minimum": lambda F, y: F.minimum(y, 0.5) * 2,
    "chain": lambda F, y: F.clip(F.relu(y) * 3 - 1, a_min=-1, a_max=5) + F.abs(y),
}

# Name -> (layer, shape of its data, operator). Sizes choose the kernel: rows, one pixel, depthwise, Winograd.
LAYERS: dict[str, tuple[Callable[[], gluon.HybridBlock], tuple[int, ...], str]] = {
    "dense of a row": (lambda: nn.Dense(48, in_units=64), (1, 64), "FullyConnected"),
    "dense of few rows": (lambda: nn.Dense(50, in_units=70), (8, 70), "FullyConnected"),
    "dense of many rows": (lambda: nn.Dense(128, in_units=96), (300, 96), "FullyConnected"),
    "dense of few columns": (lambda: nn.Dense(10, in_units=513), (64, 513), "FullyConnected"),
    "convolution": (lambda: nn.Conv2D(20, 3, padding=1, in_channels=6), (8, 6, 9, 11), "Convolution"),
    "3x3": (lambda: nn.Conv2D(32, 3, padding=1, in_channels=32), (8, 32, 14, 14), "Convolution"),
    "1x1 of few pixels": (lambda: nn.Conv2D(32, 1, in_channels=64), (8, 64, 5, 5), "Convolution"),
    "1x1 of many pixels": (lambda: nn.Conv2D(64, 1, in_channels=32), (8, 32, 20, 20), "Convolution"),
    "depthwise": (lambda: nn.Conv2D(32, 3, padding=1, groups=32, in_channels=32), (8, 32, 9, 9), "Convolution"),
    "groups": (lambda: nn.Conv2D(32, 3, padding=1, groups=4, in_channels=32), (8, 32, 9, 9), "Convolution"),
    "strides": (lambda: nn.Conv2D(16, 3, strides=2, dilation=2, in_channels=3), (8, 3, 21, 21), "Convolution"),
    "1 axis": (lambda: nn.Conv1D(16, 3, in_channels=8), (8, 8, 20), "Convolution"),
    "3 axes": (lambda: nn.Conv3D(8, 3, in_channels=4, padding=1), (8, 4, 4, 5, 6), "Convolution"),
    "transposed": (lambda: nn.Conv2DTranspose(8, 3, strides=2, in_channels=4), (8, 4, 5, 5), "Deconvolution"),
}  # fmt: skip


def fused_operators() -> Iterator[tuple[str, list[str]]]:
    """Yields the operators that take a post-operation, with the post-operations that they take."""
    for name, _, _ in _core.op_names():
        fields = {field["name"]: field for field in _core.describe_op(name)["fields"]}
        if "act_type" in fields and "act_alpha" in fields:
            yield name, fields["act_type"]["choices"]


class Followed(gluon.HybridBlock):
    """Computes after(layer(x) + addend), optionally with BatchNorm behind the layer."""

    def __init__(self, layer: gluon.HybridBlock, after: Callable[[Any, Any], Any], norm: bool = False) -> None:
        super().__init__()
        self._after = after
        with self.name_scope():
            self.layer = layer
            self.norm = nn.BatchNorm() if norm else None

    def hybrid_forward(self, F: Any, x: Any, addend: Any = None) -> Any:
        y = self.layer(x)
        if self.norm is not None:
            y = self.norm(y)
        return self._after(F, y if addend is None else y + addend)


def put_special(array: np.ndarray, rng: np.random.Generator, values: tuple[float, ...] = SPECIAL) -> np.ndarray:
    """Puts one special value into each row of the first axis until all values are used; the last row has none."""
    rows = max(len(array) - 1, 1)
    result = array.copy()
    flat = result.reshape(len(array), -1)
    for i, value in enumerate(values[:rows]):
        flat[i, rng.integers(flat.shape[1])] = value
    return result


def difference(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-3) -> str:
    """Describes how two results differ, row by row; empty if they agree.

    NaN and infinities must be in the same places, zeros must have the same sign, and finite values must be equal within
    the rounding of the largest value of their row, because other rows may hold larger ones.
    """
    found, expected = (np.asarray(a, "float64").reshape(len(a), -1) if a.ndim else a for a in (found, expected))
    kinds = [np.isnan, lambda a: a == np.inf, lambda a: a == -np.inf]
    for name, kind in zip(("NaN", "infinity", "-infinity"), kinds, strict=True):
        wrong = kind(found) != kind(expected)
        if wrong.any():
            at = tuple(np.argwhere(wrong)[0])
            return f"{name} in {wrong.sum()} places only once, first {at}: {found[at]} for {expected[at]}"
    finite = np.isfinite(expected)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.where(finite, np.abs(np.where(finite, found, 0) - np.where(finite, expected, 0)), 0)
        scale = np.maximum(np.abs(np.where(finite, expected, 0)).max(axis=-1, keepdims=True), 1)
        wrong = apart > tolerance * (np.abs(np.where(finite, expected, 0)) + 0.2 * scale)
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        return f"{wrong.sum()} values differ, first {at}: {found[at]} for {expected[at]}"
    wrong = (expected == 0) & (found == 0) & (np.signbit(expected) != np.signbit(found))
    return f"{wrong.sum()} zeros have another sign, first {np.argwhere(wrong)[0]}" if wrong.any() else ""


def run(net: gluon.HybridBlock, inputs: list[nd.NDArray], mode: str) -> list[np.ndarray]:
    """Returns results of a prediction (`predict`), or results and gradients of a recorded call (`record`, `train`)."""
    inputs = [x.copy() for x in inputs]
    if mode == "predict":
        return [net(*inputs).asnumpy()]
    for x in inputs:
        x.attach_grad()
    with autograd.record(train_mode=mode == "train"):
        y = net(*inputs)
    y.backward()
    parameters = [p for p in net.collect_params().values() if p.grad_req != "null"]
    return [y.asnumpy(), *(x.grad.asnumpy() for x in inputs), *(p.grad().asnumpy() for p in parameters)]


def differences(
    net: gluon.HybridBlock, inputs: list[nd.NDArray], modes: tuple[str, ...], seed: int = 0, parameters: bool = True,
    values: tuple[float, ...] = SPECIAL, tolerance: float = 1e-3,
) -> list[str]:  # fmt: skip
    """Describes how hybridized calls differ from imperative ones, with special values in each input and parameter."""
    rng = np.random.default_rng(seed)
    net(*inputs)  # initializes deferred parameters
    held = list(net.collect_params().values())
    for p in held:
        if p.name.endswith(("bias", "beta", "running_mean")):
            p.set_data(nd.array(rng.normal(size=p.shape)).astype(p.dtype))
    clean = [p.data().copy() for p in held]
    cases = [("", inputs, clean)]
    for i, x in enumerate(inputs):
        special = nd.array(put_special(x.asnumpy(), rng, values), dtype=x.dtype)
        cases.append((f"input {i}", [*inputs[:i], special, *inputs[i + 1 :]], clean))
    for i, p in enumerate(held if parameters else []):
        if p.name.endswith(("gamma", "running_var", "running_mean")):
            continue  # BatchNorm in the weights: an infinite scale makes NaN of a sum of products (docs/numerics.md)
        special = nd.array(put_special(clean[i].asnumpy(), rng, values), dtype=p.dtype)
        cases.append((p.name, inputs, [*clean[:i], special, *clean[i + 1 :]]))
    results: list[list[list[np.ndarray]]] = []
    for active in (False, True):
        net.hybridize(active=active)
        results.append([])
        for _, arrays, state in cases:
            for mode in modes:
                for p, value in zip(held, state, strict=True):
                    p.set_data(value)
                results[-1].append(run(net, arrays, mode))
    names = [(case, mode) for case, _, _ in cases for mode in modes]
    found = []
    for (case, mode), plain, hybrid in zip(names, *results, strict=True):
        for k, (expected, given) in enumerate(zip(plain, hybrid, strict=True)):
            if text := difference(given, expected, tolerance):
                found.append(f"{mode}, special values in {case or 'nothing'}, result {k}: {text}")
    return found


def make(name: str, after: Callable[[Any, Any], Any], addend: bool, norm: bool, dtype: str = "float32") -> Any:
    """Returns a layer with the functions that follow it, and its inputs."""
    layer, shape, _ = LAYERS[name]
    mx.random.seed(3)
    rng = np.random.default_rng(5)
    net = Followed(layer(), after, norm)
    net.initialize(mx.init.Normal(0.2))
    if dtype != "float32":
        net.cast(dtype)
    inputs = [nd.array(rng.normal(size=shape), dtype=dtype)]
    if addend:
        inputs.append(nd.array(rng.normal(size=net.layer(inputs[0]).shape), dtype=dtype))
    return net, inputs
