"""The most used operators compared with PyTorch and NumPy, and calls of mx.np compared with calls of mx.nd.

    python benchmarks/operators.py [--only SUBSTRING] [--rounds 21] [--isa WORD] [--threads N] [--write]
    python benchmarks/operators.py --dispatch [--only SUBSTRING] [--rounds 15]

Operators are those of the first tier of the census (tests/fixtures/api): small inputs, for which the call itself takes
most of the time, and inputs of about a megabyte; forward, and forward and backward together. Each framework runs in a
separate process and they take turns; a figure is HybridNet / peer, minima over the rounds (disturbances only add time).
Cells above 1.5 are measured again, up to three times. If an operator returns new memory and PyTorch a view, PyTorch's
view is copied.
``--dispatch`` calls every function of mx.np and mx.npx that mx.nd also has, with the sample inputs declared by its
operator: minima over the rounds, shown as np / nd.
``--threads 1`` compares on one core, for a machine with other work to do: threads that meet at a barrier wait for the
disturbed one. ``--write`` keeps the tables in benchmarks/OPERATORS.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib.util
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as onp

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "sides"), str(HERE.parent / "python")]

from dispatch import dispatch, geometric_mean  # noqa: E402
from run import ISA_CAPS, Side, instruction_sets, machine, unit  # noqa: E402
from serve import Step, serve  # noqa: E402

ROUND_SECONDS = 0.004  # short, so that some rounds are not disturbed
LIMIT = 1.5
REPEATS = 3  # for cells above it
SIZES = ("small", "large")
MODES = ("forward", "both")
Call = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class In:
    """An input: its shapes at the two sizes and its contents.

    kind: normal; positive; index (integers below `below`); bytes; shape (no array: the shape itself); host (a
    NumPy array on every side).
    """

    small: tuple[int, ...] = (4, 4)
    large: tuple[int, ...] = (512, 512)
    kind: str = "normal"
    below: tuple[int, int] = (4, 512)

    def value(self, size: str, rng: onp.random.Generator) -> Any:
        shape = self.small if size == "small" else self.large
        if self.kind == "shape":
            return shape
        if self.kind == "index":
            return rng.integers(0, self.below[size == "large"], shape)
        if self.kind == "bytes":
            return rng.integers(0, 256, shape).astype("uint8")
        data = rng.standard_normal(shape, dtype="float32")
        return onp.abs(data) + onp.float32(0.1) if self.kind == "positive" else data


@dataclasses.dataclass(frozen=True)
class Row:
    """An operator: its inputs, and its calls in HybridNet, PyTorch and NumPy (None: they have no such function).

    ours is called with mx.nd, mx.np or mx.npx, depending on the name; theirs with torch; numpy with numpy.
    gradient: True if backward is timed, too.
    """

    name: str
    inputs: tuple[In, ...]
    ours: Call
    theirs: Call | None
    numpy: Call | None = None
    gradient: bool = True

    def arguments(self, size: str) -> list[Any]:
        rng = onp.random.default_rng(0)
        return [given.value(size, rng) for given in self.inputs]

    def differentiated(self) -> list[int]:
        return [i for i, given in enumerate(self.inputs) if given.kind in ("normal", "positive")]


X = In()
POSITIVE = In(kind="positive")
ROW = In((1, 4), (1, 512))
SHAPE = In(kind="shape")
HOST = In(kind="host")
STACK = In((2, 4, 4), (16, 128, 128))
IMAGES = In((1, 4, 8, 8), (4, 16, 64, 64))
KERNEL = In((4, 4, 3, 3), (16, 16, 3, 3))
CHANNELS = In((4,), (16,))
INDEX = In((4,), (512,), "index")
LENGTHS = In((4,), (64,), "index")
SEQUENCES = In((4, 4), (64, 64, 64))


def one(name: str, theirs: Call, numpy: Call | None = None, *inputs: In, gradient: bool = True) -> Row:
    """Returns the row of a function of arrays alone, which is called by its name."""
    _, _, function = name.partition(".")
    return Row(name, inputs or (X,), lambda F, *a: getattr(F, function)(*a), theirs, numpy, gradient)


def _same(function: str) -> Call:
    return lambda np, *a: getattr(np, function)(*a)


def both(name: str, theirs: Call, *inputs: In, gradient: bool = True) -> Row:
    """Returns the same row if NumPy's function has the same name."""
    return one(name, theirs, _same(name.partition(".")[2]), *inputs, gradient=gradient)


def mirrored(name: str, ours: Call, theirs: Call, *inputs: In, gradient: bool = True) -> Row:
    """Returns the row of an expression that mx.np and NumPy share."""
    return Row(name, inputs or (X,), ours, theirs, ours, gradient)


def masked(t: Any, x: Any, lengths: Any) -> Any:
    steps = t.arange(x.shape[0])[:, None] >= lengths
    return x.masked_fill(steps.reshape(steps.shape + (1,) * (x.ndim - 2)), 0)


def batch_norm(t: Any, x: Any, gamma: Any, beta: Any) -> Any:
    return t.nn.functional.batch_norm(x, None, None, gamma, beta, training=True)


def with_statistics(norm: str) -> Call:
    """A batch normalization that updates running statistics, which are not inputs of the row."""
    kept: dict[tuple[int, ...], Any] = {}

    def call(F: Any, x: Any, gamma: Any, beta: Any) -> Any:
        mean, var = kept.setdefault(gamma.shape, (F.zeros(gamma.shape), F.ones(gamma.shape)))
        if norm == "SyncBatchNorm":
            return F.contrib.SyncBatchNorm(x, gamma, beta, mean, var, fix_gamma=False, key="benchmark")
        return F.BatchNorm(x, gamma, beta, mean, var, fix_gamma=False)

    return call


ND = [
    Row("nd.array", (HOST,), lambda F, x: F.array(x), lambda t, x: t.tensor(x), gradient=False),
    Row("nd.concat", (X, X), lambda F, x, y: F.concat(x, y, dim=1), lambda t, x, y: t.cat((x, y), 1)),
    Row("nd.concatenate", (X, X), lambda F, x, y: F.concatenate([x, y]), lambda t, x, y: t.cat((x, y))),
    one("nd.zeros", lambda t, s: t.zeros(s), None, SHAPE, gradient=False),
    one("nd.ones", lambda t, s: t.ones(s), None, SHAPE, gradient=False),
    Row("nd.full", (SHAPE,), lambda F, s: F.full(s, 2.5), lambda t, s: t.full(s, 2.5), gradient=False),
    Row("nd.eye", (SHAPE,), lambda F, s: F.eye(s[0]), lambda t, s: t.eye(s[0]), gradient=False),
    Row("nd.arange", (SHAPE,), lambda F, s: F.arange(s[0] * s[1]), lambda t, s: t.arange(float(s[0] * s[1])),
        gradient=False),
    one("nd.zeros_like", lambda t, x: t.zeros_like(x), gradient=False),
    one("nd.ones_like", lambda t, x: t.ones_like(x), gradient=False),
    Row("nd.contrib.arange_like", (X,), lambda F, x: F.contrib.arange_like(x),
        lambda t, x: t.arange(float(x.numel())).view(x.shape), gradient=False),
    Row("nd.random.uniform", (SHAPE,), lambda F, s: F.random.uniform(shape=s), lambda t, s: t.rand(s), gradient=False),
    Row("nd.random.normal", (SHAPE,), lambda F, s: F.random.normal(shape=s), lambda t, s: t.randn(s), gradient=False),
    Row("nd.random.randn", (SHAPE,), lambda F, s: F.random.randn(*s), lambda t, s: t.randn(s), gradient=False),
    Row("nd.slice_axis", (X,), lambda F, x: F.slice_axis(x, axis=1, begin=1, end=3),
        lambda t, x: x[:, 1:3].clone()),
    Row("nd.slice", (X,), lambda F, x: F.slice(x, begin=(1, 1), end=(-1, -1)), lambda t, x: x[1:-1, 1:-1].clone()),
    Row("nd.slice_like", (X, In((2, 3), (256, 300))), lambda F, x, y: F.slice_like(x, y),
        lambda t, x, y: x[: y.shape[0], : y.shape[1]].clone(), gradient=False),
    one("nd.where", lambda t, c, x, y: t.where(c != 0, x, y), None, In(kind="index", below=(2, 2)), X, X),
    one("nd.broadcast_mul", lambda t, x, y: x * y, None, X, ROW),
    one("nd.broadcast_add", lambda t, x, y: x + y, None, X, ROW),
    one("nd.broadcast_sub", lambda t, x, y: x - y, None, X, ROW),
    one("nd.broadcast_div", lambda t, x, y: x / y, None, X, In((1, 4), (1, 512), "positive")),
    one("nd.elemwise_add", lambda t, x, y: x + y, None, X, X),
    one("nd.maximum", lambda t, x, y: t.maximum(x, y), None, X, X),
    one("nd.power", lambda t, x, y: t.pow(x, y), None, POSITIVE, X),
    one("nd.add_n", lambda t, x, y, z: x + y + z, None, X, X, X),
    Row("nd.broadcast_like", (ROW, X), lambda F, x, y: F.broadcast_like(x, y),
        lambda t, x, y: x.expand_as(y).clone(), gradient=False),
    Row("nd.broadcast_to", (ROW,), lambda F, x: F.broadcast_to(x, (x.shape[1],) * 2),
        lambda t, x: x.expand(x.shape[1], -1).clone()),
    Row("nd.reshape", (X,), lambda F, x: F.reshape(x, (-1, 2)), lambda t, x: x.reshape(-1, 2).clone()),
    Row("nd.reshape_like", (X, In((2, 8), (256, 1024))), lambda F, x, y: F.reshape_like(x, y),
        lambda t, x, y: x.reshape(y.shape).clone(), gradient=False),
    one("nd.flatten", lambda t, x: x.flatten(1).clone(), None, STACK),
    Row("nd.expand_dims", (X,), lambda F, x: F.expand_dims(x, 1), lambda t, x: x.unsqueeze(1).clone()),
    one("nd.squeeze", lambda t, x: x.squeeze().clone(), None, In((4, 1, 4), (512, 1, 512))),
    one("nd.transpose", lambda t, x: x.t().contiguous()),
    Row("nd.swapaxes", (STACK,), lambda F, x: F.swapaxes(x, 0, 2), lambda t, x: x.swapaxes(0, 2).contiguous()),
    Row("nd.stack", (X, X), lambda F, x, y: F.stack(x, y), lambda t, x, y: t.stack((x, y))),
    Row("nd.split", (X,), lambda F, x: F.split(x, 2), lambda t, x: [p.clone() for p in t.chunk(x, 2, 1)]),
    Row("nd.tile", (X,), lambda F, x: F.tile(x, (2, 2)), lambda t, x: t.tile(x, (2, 2))),
    Row("nd.repeat", (X,), lambda F, x: F.repeat(x, 2, axis=1), lambda t, x: t.repeat_interleave(x, 2, 1)),
    Row("nd.flip", (X,), lambda F, x: F.flip(x, axis=1), lambda t, x: t.flip(x, (1,))),
    Row("nd.pad", (IMAGES,), lambda F, x: F.pad(x, "constant", (0, 0, 0, 0, 1, 1, 1, 1)),
        lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1))),
    Row("nd.cast", (X,), lambda F, x: F.cast(x, "float64"), lambda t, x: x.to(t.float64)),
    Row("nd.stop_gradient", (X,), lambda F, x: F.stop_gradient(x), lambda t, x: x.detach().clone(), gradient=False),
    one("nd.log", lambda t, x: t.log(x), None, POSITIVE),
    one("nd.exp", lambda t, x: t.exp(x)),
    one("nd.sqrt", lambda t, x: t.sqrt(x), None, POSITIVE),
    one("nd.abs", lambda t, x: t.abs(x)),
    one("nd.square", lambda t, x: t.square(x)),
    one("nd.tanh", lambda t, x: t.tanh(x)),
    one("nd.floor", lambda t, x: t.floor(x)),
    one("nd.relu", lambda t, x: t.relu(x)),
    one("nd.sigmoid", lambda t, x: t.sigmoid(x)),
    one("nd.softsign", lambda t, x: t.nn.functional.softsign(x)),
    Row("nd.clip", (X,), lambda F, x: F.clip(x, -1, 1), lambda t, x: t.clamp(x, -1, 1)),
    Row("nd.Activation", (X,), lambda F, x: F.Activation(x, "relu"), lambda t, x: t.relu(x)),
    Row("nd.LeakyReLU", (X,), lambda F, x: F.LeakyReLU(x, slope=0.1),
        lambda t, x: t.nn.functional.leaky_relu(x, 0.1)),
    Row("nd.Dropout", (X,), lambda F, x: F.Dropout(x, p=0.5, mode="always"),
        lambda t, x: t.nn.functional.dropout(x, 0.5, True)),
    one("nd.sum", lambda t, x: x.sum()),
    one("nd.mean", lambda t, x: x.mean()),
    one("nd.max", lambda t, x: x.max()),
    one("nd.norm", lambda t, x: t.linalg.vector_norm(x)),
    Row("nd.L2Normalization", (X,), lambda F, x: F.L2Normalization(x), lambda t, x: t.nn.functional.normalize(x)),
    Row("nd.softmax", (X,), lambda F, x: F.softmax(x), lambda t, x: t.softmax(x, -1)),
    Row("nd.log_softmax", (X,), lambda F, x: F.log_softmax(x), lambda t, x: t.log_softmax(x, -1)),
    Row("nd.argmax", (X,), lambda F, x: F.argmax(x, axis=1), lambda t, x: t.argmax(x, 1), gradient=False),
    one("nd.argsort", lambda t, x: t.argsort(x), gradient=False),
    Row("nd.topk", (X,), lambda F, x: F.topk(x, k=2), lambda t, x: t.topk(x, 2)[1], gradient=False),
    one("nd.take", lambda t, x, i: t.index_select(x, 0, i), None, X, INDEX),
    Row("nd.Embedding", (In((64,), (4096,), "index", (16, 4096)), In((16, 4), (4096, 64))),
        lambda F, i, w: F.Embedding(i, w, input_dim=w.shape[0], output_dim=w.shape[1]),
        lambda t, i, w: t.nn.functional.embedding(i, w)),
    one("nd.gather_nd", lambda t, x, i: x[i[0], i[1]], None, X, In((2, 8), (2, 65536), "index")),
    one("nd.pick", lambda t, x, i: t.gather(x, 1, i[:, None]).squeeze(1), None, X, INDEX),
    Row("nd.one_hot", (In((4,), (4096,), "index", (4, 64)),), lambda F, i: F.one_hot(i, 64),
        lambda t, i: t.nn.functional.one_hot(i, 64).float(), gradient=False),
    Row("nd.SequenceMask", (SEQUENCES, LENGTHS), lambda F, x, n: F.SequenceMask(x, n, use_sequence_length=True),
        masked),
    one("nd.dot", lambda t, x, y: x @ y, None, X, X),
    one("nd.batch_dot", lambda t, x, y: t.bmm(x, y), None, STACK, STACK),
    one("nd.linalg_gemm2", lambda t, x, y: t.matmul(x, y), None, X, X),
    Row("nd.linalg.gemm2", (STACK, STACK), lambda F, x, y: F.linalg.gemm2(x, y), lambda t, x, y: t.matmul(x, y)),
    Row("nd.FullyConnected", (X, X, In((4,), (512,))),
        lambda F, x, w, b: F.FullyConnected(x, w, b, num_hidden=w.shape[0]),
        lambda t, x, w, b: t.nn.functional.linear(x, w, b)),
    Row("nd.Convolution", (IMAGES, KERNEL, CHANNELS),
        lambda F, x, w, b: F.Convolution(x, w, b, kernel=(3, 3), pad=(1, 1), num_filter=w.shape[0]),
        lambda t, x, w, b: t.nn.functional.conv2d(x, w, b, padding=1)),
    Row("nd.Deconvolution", (IMAGES, KERNEL),
        lambda F, x, w: F.Deconvolution(x, w, kernel=(3, 3), pad=(1, 1), num_filter=w.shape[1]),
        lambda t, x, w: t.nn.functional.conv_transpose2d(x, w, padding=1)),
    Row("nd.Pooling", (IMAGES,), lambda F, x: F.Pooling(x, kernel=(2, 2), stride=(2, 2)),
        lambda t, x: t.nn.functional.max_pool2d(x, 2)),
    Row("nd.contrib.AdaptiveAvgPooling2D", (IMAGES,), lambda F, x: F.contrib.AdaptiveAvgPooling2D(x, output_size=4),
        lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, 4)),
    Row("nd.contrib.BilinearResize2D", (IMAGES,),
        lambda F, x: F.contrib.BilinearResize2D(x, height=x.shape[2] * 2, width=x.shape[3] * 2),
        lambda t, x: t.nn.functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)),
    Row("nd.contrib.SyncBatchNorm", (IMAGES, CHANNELS, CHANNELS), with_statistics("SyncBatchNorm"), batch_norm),
    Row("nd.BatchNorm", (IMAGES, CHANNELS, CHANNELS), with_statistics("BatchNorm"), batch_norm),
    one("nd.LayerNorm", lambda t, x, g, b: t.nn.functional.layer_norm(x, x.shape[-1:], g, b), None, X,
        In((4,), (512,)), In((4,), (512,))),
    one("nd.InstanceNorm", lambda t, x, g, b: t.nn.functional.instance_norm(x, None, None, g, b), None, IMAGES,
        CHANNELS, CHANNELS),
    Row("nd.image.to_tensor", (In((8, 8, 3), (512, 512, 3), "bytes"),), lambda F, x: F.image.to_tensor(x),
        lambda t, x: x.permute(2, 0, 1).to(t.float32, memory_format=t.contiguous_format).div_(255), gradient=False),
    Row("nd.image.normalize", (In((3, 8, 8), (3, 300, 300)),),
        lambda F, x: F.image.normalize(x, mean=(0.5, 0.4, 0.3), std=(0.2, 0.2, 0.3)),
        lambda t, x: (x - t.tensor((0.5, 0.4, 0.3))[:, None, None]) / t.tensor((0.2, 0.2, 0.3))[:, None, None]),
]  # fmt: skip

NP = [
    Row("np.array", (HOST,), lambda np, x: np.array(x), lambda t, x: t.tensor(x), lambda np, x: np.array(x),
        gradient=False),
    both("np.zeros", lambda t, s: t.zeros(s), SHAPE, gradient=False),
    both("np.ones", lambda t, s: t.ones(s), SHAPE, gradient=False),
    mirrored("np.arange", lambda np, s: np.arange(s[0] * s[1], dtype="float32"),
             lambda t, s: t.arange(float(s[0] * s[1])), SHAPE, gradient=False),
    mirrored("np.linspace", lambda np, s: np.linspace(0, 1, s[0] * s[1]), lambda t, s: t.linspace(0, 1, s[0] * s[1]),
             SHAPE, gradient=False),
    mirrored("np.random.normal", lambda np, s: np.random.normal(size=s), lambda t, s: t.randn(s), SHAPE,
             gradient=False),
    mirrored("np.random.uniform", lambda np, s: np.random.uniform(size=s), lambda t, s: t.rand(s), SHAPE,
             gradient=False),
    mirrored("np.random.randn", lambda np, s: np.random.randn(*s), lambda t, s: t.randn(s), SHAPE, gradient=False),
    mirrored("np.ndarray.__mul__", lambda np, x, y: x * y, lambda t, x, y: x * y, X, X),
    mirrored("np.ndarray.__add__", lambda np, x, y: x + y, lambda t, x, y: x + y, X, X),
    mirrored("np.ndarray.__sub__", lambda np, x, y: x - y, lambda t, x, y: x - y, X, X),
    mirrored("np.ndarray.__truediv__", lambda np, x, y: x / y, lambda t, x, y: x / y, X, POSITIVE),
    mirrored("np.ndarray.__pow__", lambda np, x: x**2, lambda t, x: x**2),
    mirrored("np.ndarray.__neg__", lambda np, x: -x, lambda t, x: -x),
    mirrored("np.ndarray.__eq__", lambda np, x, y: x == y, lambda t, x, y: x == y, X, X, gradient=False),
    mirrored("np.ndarray.__lt__", lambda np, x, y: x < y, lambda t, x, y: x < y, X, X, gradient=False),
    mirrored("np.ndarray.__ge__", lambda np, x: x >= 0, lambda t, x: x >= 0, gradient=False),
    mirrored("np.ndarray.__iadd__", lambda np, x, y: x.__iadd__(y), lambda t, x, y: x.__iadd__(y), X, X,
             gradient=False),
    mirrored("np.ndarray.__isub__", lambda np, x, y: x.__isub__(y), lambda t, x, y: x.__isub__(y), X, X,
             gradient=False),
    mirrored("np.ndarray.__getitem__", lambda np, x: x[1:3], lambda t, x: x[1:3]),
    mirrored("np.ndarray.__setitem__", lambda np, x, y: x.__setitem__(slice(1, 3), y),
             lambda t, x, y: x.__setitem__(slice(1, 3), y), X, ROW, gradient=False),
    mirrored("np.ndarray.reshape", lambda np, x: x.reshape(-1, 2), lambda t, x: x.reshape(-1, 2)),
    Row("np.ndarray.swapaxes", (STACK,), lambda np, x: x.swapaxes(0, 2), lambda t, x: x.swapaxes(0, 2).contiguous(),
        lambda np, x: x.swapaxes(0, 2).copy()),
    Row("np.ndarray.T", (X,), lambda np, x: x.T, lambda t, x: x.t().contiguous(), lambda np, x: x.T.copy()),
    mirrored("np.ndarray.sum", lambda np, x: x.sum(), lambda t, x: x.sum()),
    mirrored("np.ndarray.mean", lambda np, x: x.mean(), lambda t, x: x.mean()),
    mirrored("np.ndarray.astype", lambda np, x: x.astype("float64"), lambda t, x: x.to(t.float64)),
    Row("np.ndarray.asnumpy", (X,), lambda np, x: x.asnumpy(), lambda t, x: x.numpy().copy(), gradient=False),
    Row("np.ndarray.tolist", (X,), lambda np, x: x.tolist(), lambda t, x: x.tolist(), lambda np, x: x.tolist(),
        gradient=False),
    Row("np.ndarray.copyto", (X, X), lambda np, x, y: x.copyto(y), lambda t, x, y: y.copy_(x),
        lambda np, x, y: np.copyto(y, x), gradient=False),
    both("np.dot", lambda t, x, y: x @ y, X, X),
    Row("np.expand_dims", (X,), lambda np, x: np.expand_dims(x, 1), lambda t, x: x.unsqueeze(1).clone(),
        lambda np, x: np.expand_dims(x, 1).copy()),
    Row("np.squeeze", (In((4, 1, 4), (512, 1, 512)),), lambda np, x: np.squeeze(x), lambda t, x: x.squeeze().clone(),
        lambda np, x: np.squeeze(x).copy()),
    mirrored("np.concatenate", lambda np, x, y: np.concatenate([x, y]), lambda t, x, y: t.cat((x, y)), X, X),
    mirrored("np.stack", lambda np, x, y: np.stack([x, y]), lambda t, x, y: t.stack((x, y)), X, X),
    both("np.sqrt", lambda t, x: t.sqrt(x), POSITIVE),
    both("np.exp", lambda t, x: t.exp(x)),
    both("np.log", lambda t, x: t.log(x), POSITIVE),
    both("np.sin", lambda t, x: t.sin(x)),
    both("np.cos", lambda t, x: t.cos(x)),
    both("np.abs", lambda t, x: t.abs(x)),
    both("np.square", lambda t, x: t.square(x)),
    both("np.tanh", lambda t, x: t.tanh(x)),
    both("np.sum", lambda t, x: x.sum()),
    both("np.mean", lambda t, x: x.mean()),
    mirrored("np.argmax", lambda np, x: np.argmax(x, 1), lambda t, x: t.argmax(x, 1), gradient=False),
    one("npx.relu", lambda t, x: t.relu(x), lambda np, x: np.maximum(x, 0)),
    one("npx.sigmoid", lambda t, x: t.sigmoid(x), lambda np, x: 1 / (1 + np.exp(-x))),
    Row("npx.softmax", (X,), lambda npx, x: npx.softmax(x), lambda t, x: t.softmax(x, -1)),
    one("npx.batch_dot", lambda t, x, y: t.bmm(x, y), lambda np, x, y: x @ y, STACK, STACK),
    Row("npx.sequence_mask", (SEQUENCES, LENGTHS),
        lambda npx, x, n: npx.sequence_mask(x, n, use_sequence_length=True), masked),
]  # fmt: skip

# Names of the first tier that are not timed here, and the reasons.
WITHOUT_COUNTERPART = {
    "nd.waitall, npx.waitall": "waits; every figure holds it",
    "nd.load": "reads a file",
    "nd.sparse.csr_matrix": "benchmarks/sparse.py has sparse arrays",
    "nd.contrib.ROIAlign, nd.contrib.box_nms": "PyTorch has them in torchvision only",
    "nd.var": "makes a Symbol",
    "npx.set_np": "a switch",
    "np.ndarray.shape, .size, .ctx, .grad": "attributes",
    "np.ndarray.as_in_ctx, .as_nd_ndarray, .attach_grad, .backward": "compute nothing by themselves",
    "np.int32, np.float32, np.pi": "no functions",
}

# The reasons for operators with a cell above 1.5.
_PYTHON = "small: a function of Python, which takes numbers, lists and arrays"
_RANDOM = "small: a function of Python, which takes numbers and arrays as parameters"
_SUMS = "large: float32 is added up in float64 (not profiled)"
_MATH = "large: not profiled; presumably the checks for infinities, NaN and limits of the range"
_JOINED = (
    "large, backward: a worker copies gradients into their buffers, where PyTorch's are views of the head gradient"
)
_VIEW = "a view made by Python"
REASONS = {
    "nd.array": _PYTHON,
    "nd.zeros": _PYTHON,
    "nd.ones": _PYTHON,
    "nd.full": _PYTHON,
    "nd.eye": _PYTHON,
    "nd.arange": _PYTHON,
    "np.array": _PYTHON,
    "np.zeros": _PYTHON,
    "np.ones": _PYTHON,
    "np.arange": _PYTHON,
    "np.linspace": _PYTHON,
    "nd.random.uniform": _RANDOM,
    "nd.random.normal": _RANDOM,
    "nd.random.randn": _RANDOM,
    "np.random.uniform": _RANDOM,
    "np.random.normal": _RANDOM,
    "np.random.randn": _RANDOM,
    "nd.sum": _SUMS,
    "nd.mean": _SUMS,
    "nd.norm": _SUMS,
    "np.sum": _SUMS,
    "np.mean": _SUMS,
    "np.ndarray.sum": _SUMS,
    "np.ndarray.mean": _SUMS,
    "nd.exp": _MATH,
    "nd.log": _MATH,
    "nd.tanh": _MATH,
    "np.exp": _MATH,
    "np.log": _MATH,
    "np.tanh": _MATH,
    "nd.concat": _JOINED,
    "nd.concatenate": _JOINED,
    "nd.stack": _JOINED,
    "np.concatenate": _JOINED,
    "np.stack": _JOINED,
    "np.ndarray.__getitem__": _VIEW,
    "np.ndarray.__setitem__": _VIEW,
    "np.ndarray.reshape": f"{_VIEW}; backward: the gradient is copied into its buffer",
    "nd.pick": "large, backward: not profiled; presumably the worker that makes the gradient is woken for little work",
    "nd.slice": _JOINED,
    "nd.slice_axis": _JOINED,
    "np.expand_dims": _JOINED,
    "np.squeeze": _JOINED,
    "np.argmax": "large: slower than NumPy's for a reason not looked for yet; far below PyTorch's",
    "np.ndarray.__ge__": "large: slower than NumPy's for a reason not looked for yet; far below PyTorch's",
}
# The reason for calls of less than a microsecond, compared with NumPy, which computes at once.
SMALL_BESIDE_NUMPY = "small: an operator is found, ordered by the engine and may be recorded; NumPy computes at once"


# -------------------------------------------------------------------------------------------------------------- sides
def cases(make: Callable[[Row, str, str], Step], rows: list[Row]) -> dict[str, Callable[[], Step]]:
    return {
        f"{row.name}/{size}/{mode}": lambda row=row, size=size, mode=mode: make(row, size, mode)  # type: ignore[misc]
        for row in rows
        for size in SIZES
        for mode in MODES
    }


def as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (list, tuple)) else [result]


def our_step(row: Row, size: str, mode: str) -> Step:
    import hybridnet as mx
    from hybridnet import autograd

    prefix = row.name.partition(".")[0]
    functions = {"nd": mx.nd, "np": mx.np, "npx": mx.npx}[prefix]
    make = mx.nd.array if prefix == "nd" else mx.np.array

    def to_ours(given: In, value: Any) -> Any:
        if given.kind in ("shape", "host"):
            return value
        return make(value, dtype="int32" if given.kind == "index" else value.dtype)

    arguments = [to_ours(given, value) for given, value in zip(row.inputs, row.arguments(size), strict=True)]

    def forward(repeat: int) -> None:
        with autograd.train_mode():
            for _ in range(repeat):
                row.ours(functions, *arguments)
        mx.nd.waitall()

    if mode == "forward":
        return forward
    for i in row.differentiated():
        arguments[i].attach_grad()
    heads = [y.ones_like() if prefix == "nd" else mx.np.ones_like(y) for y in as_list(row.ours(functions, *arguments))]

    def forward_and_backward(repeat: int) -> None:
        for _ in range(repeat):
            with autograd.record():
                results = as_list(row.ours(functions, *arguments))
            autograd.backward(results, heads)
        mx.nd.waitall()

    return forward_and_backward


def torch_step(row: Row, size: str, mode: str) -> Step:
    import torch

    theirs = row.theirs
    assert theirs is not None
    arguments = [
        value if given.kind in ("shape", "host") else torch.from_numpy(value)
        for given, value in zip(row.inputs, row.arguments(size), strict=True)
    ]

    def forward(repeat: int) -> None:
        for _ in range(repeat):
            theirs(torch, *arguments)

    if mode == "forward":
        return forward
    leaves = [arguments[i].requires_grad_() for i in row.differentiated()]
    heads = [torch.ones_like(y) for y in as_list(theirs(torch, *arguments))]

    def forward_and_backward(repeat: int) -> None:
        for _ in range(repeat):
            for leaf in leaves:
                leaf.grad = None
            torch.autograd.backward(as_list(theirs(torch, *arguments)), heads)

    return forward_and_backward


def numpy_step(row: Row, size: str, mode: str) -> Step:
    call, arguments = row.numpy, row.arguments(size)
    assert call is not None

    def forward(repeat: int) -> None:
        for _ in range(repeat):
            call(onp, *arguments)

    return forward


def serve_side(name: str) -> None:
    if name == "hybridnet":
        import hybridnet

        serve(hybridnet.__version__, cases(our_step, ND + NP))
    elif name == "torch":
        import torch

        serve(torch.__version__, cases(torch_step, ND + NP))
    else:
        serve(onp.__version__, cases(numpy_step, NP))


# ------------------------------------------------------------------------------------------------------------ measuring
Times = dict[str, list[float]]  # by side


def measure(sides: dict[str, Side], row: Row, size: str, mode: str, rounds: int) -> Times:
    """Seconds per call, one number per round; sides that do not have the operator or fail are left out."""
    case, repeats = f"{row.name}/{size}/{mode}", {}
    for name, side in sides.items():
        if (name == "numpy" and (row.numpy is None or mode != "forward")) or (name == "torch" and row.theirs is None):
            continue
        for repeat in (1, 3, 10):
            reply = side.ask(case=case, repeat=repeat)
        if "error" in reply:
            print(f"  {case}, {name}: {reply['error']}", file=sys.stderr)
        else:
            repeats[name] = max(1, int(ROUND_SECONDS / max(reply["seconds"], 1e-8)))
    times: Times = {name: [] for name in repeats}
    for _ in range(rounds):
        for name, repeat in repeats.items():
            times[name].append(sides[name].ask(case=case, repeat=repeat)["seconds"])
    return times


def ratio(times: Times, peer: str) -> float | None:
    if not times.get("hybridnet") or not times.get(peer):
        return None
    return min(times["hybridnet"]) / min(times[peer])


@dataclasses.dataclass
class Cell:
    """One operator at one size in one mode."""

    ours: float | None
    torch: float | None
    numpy: float | None

    @classmethod
    def of(cls, times: Times) -> Cell:
        ours = min(times["hybridnet"]) if times.get("hybridnet") else None
        return cls(ours, ratio(times, "torch"), ratio(times, "numpy"))

    def is_high(self) -> bool:
        return any(value is not None and value > LIMIT for value in (self.torch, self.numpy))


def measure_row(sides: dict[str, Side], row: Row, rounds: int) -> dict[tuple[str, str], Cell]:
    found = {}
    for mode in MODES if row.gradient else ("forward",):
        for size in SIZES:
            times = measure(sides, row, size, mode, rounds)
            for _ in range(REPEATS):
                if not Cell.of(times).is_high():
                    break
                for name, more in measure(sides, row, size, mode, rounds).items():
                    times.setdefault(name, []).extend(more)
            found[size, mode] = Cell.of(times)
    return found


def shown(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def reason(row: Row, cells: dict[tuple[str, str], Cell]) -> str:
    """The reason why a cell of the row is above the limit; "?" if it is not known."""
    high = {place for place, cell in cells.items() if cell.is_high()}
    small = cells["small", "forward"]
    beside_numpy = small.is_high() and (small.torch or 0) <= LIMIT
    if beside_numpy:
        high.discard(("small", "forward"))
    known = [REASONS.get(row.name, "?")] if high else []
    return "; ".join([*known, *([SMALL_BESIDE_NUMPY] if beside_numpy else [])])


def table_row(row: Row, cells: dict[tuple[str, str], Cell]) -> str:
    parts = [row.name]
    for mode in MODES:
        for size in SIZES:
            cell = cells.get((size, mode))
            parts += ["", ""] if cell is None or cell.ours is None else [unit(cell.ours), shown(cell.torch)]
    if row in NP:
        parts += [shown(cells[size, "forward"].numpy) for size in SIZES]
    parts.append(reason(row, cells))
    return "| " + " | ".join(parts) + " |"


def means_row(found: list[dict[tuple[str, str], Cell]], with_numpy: bool) -> str:
    def mean(size: str, mode: str, peer: str) -> str:
        values = [getattr(cells[size, mode], peer) for cells in found if (size, mode) in cells]
        return shown(geometric_mean([value for value in values if value]))

    parts = ["geometric mean"]
    for mode in MODES:
        for size in SIZES:
            parts += ["", mean(size, mode, "torch")]
    if with_numpy:
        parts += [mean(size, "forward", "numpy") for size in SIZES]
    return "| " + " | ".join([*parts, ""]) + " |"


def headings(with_numpy: bool) -> list[str]:
    columns = ["operator"]
    for mode in ("forward", "forward + backward"):
        for size in SIZES:
            columns += [f"{size}, {mode}", "/ PyTorch"]
    columns += ["small / NumPy", "large / NumPy"] if with_numpy else []
    columns.append("why above 1.5")
    return ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]


def compare(only: str, rounds: int) -> list[str]:
    """The tables of nd and np, printed row by row."""
    names = ["hybridnet", *(["torch"] if importlib.util.find_spec("torch") else []), "numpy"]
    sides = {name: Side("../operators.py", arguments=("--side", name)) for name in names}
    versions = {name: side.ask(case="version", repeat=0)["version"] for name, side in sides.items()}
    lines = [", ".join(f"{name} {version}" for name, version in versions.items())]

    def show(*more: str) -> None:
        lines.extend(more)
        print("\n".join(more), flush=True)

    every: list[float] = []
    for title, rows in (("mx.nd", ND), ("mx.np and mx.npx", NP)):
        chosen = [row for row in rows if only in row.name]
        if not chosen:
            continue
        show("", f"## {title}", "", *headings(rows is NP))
        found = []
        for row in chosen:
            found.append(measure_row(sides, row, rounds))
            every += [cell.torch for cell in found[-1].values() if cell.torch]
            show(table_row(row, found[-1]))
        show(means_row(found, rows is NP))
    show("", f"Geometric mean of all {len(every)} ratios to PyTorch: {shown(geometric_mean(every))}.")
    show("", "Not timed:", "", *(f"- {names}: {why}" for names, why in WITHOUT_COUNTERPART.items()))
    for side in sides.values():
        side.close()
    return lines


def written(lines: list[str], isa: str, capped: str | None, threads: int | None) -> None:
    """Writes the tables next to this file."""
    command = "python benchmarks/operators.py --write" + (f" --isa {capped}" if capped else "")
    command += f" --threads {threads}" if threads else ""
    stamp = f"{datetime.date.today()}, {machine()}, instruction sets {isa}, "
    (HERE / (f"OPERATORS_{capped}.md" if capped else "OPERATORS.md")).write_text(
        f"# Operators side by side\n\nWritten by `{command}`; how it is measured stands in operators.py. "
        "Ratios are HybridNet / peer, minima over the rounds; cells\nabove 1.5 were measured up to three times more, "
        f"both sides alike, which lets fewer of them stand.\n\n{stamp}" + "\n".join(lines) + "\n",
        encoding="utf-8",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="the operators whose name holds this")
    parser.add_argument("--rounds", type=int, help="21; with --dispatch 15")
    parser.add_argument("--isa", choices=ISA_CAPS, help="the widest instruction sets to use")
    parser.add_argument("--threads", type=int, help="threads of each framework; all cores if not given")
    parser.add_argument("--write", action="store_true", help="keep the tables in benchmarks/OPERATORS.md")
    parser.add_argument("--dispatch", action="store_true", help="functions of mx.np beside their twins of mx.nd, alone")
    parser.add_argument("--side", choices=("hybridnet", "torch", "numpy"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        serve_side(args.side)
        return
    if args.isa:
        os.environ.update(ISA_CAPS[args.isa])
    if args.threads:
        os.environ["OMP_NUM_THREADS"] = str(args.threads)
    if args.dispatch:
        dispatch(args.only, args.rounds or 15)
    else:
        isa = instruction_sets()
        print(isa)
        lines = compare(args.only, args.rounds or 21)
        if args.write:
            lines += ["", "## Calls of mx.np beside those of mx.nd", "", *dispatch(args.only, 15)]
            written(lines, isa, args.isa, args.threads)


if __name__ == "__main__":
    main()
