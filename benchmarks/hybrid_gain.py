"""The gain of hybridize(): 40 networks run imperatively and hybridized, in prediction and in training.

    python benchmarks/hybrid_gain.py [NAME...] [--rounds 9] [--memory] [--write]

Each network is written like a user's, without optimizations for graphs. The two ways take turns in one process; a
figure is the median over the rounds of the ratio of their times, with the quartiles: 1.00 [0.97, 1.04]. --memory
instead measures, in a separate process for each, the memory that the network adds to the process's own memory at its
peak (resident, without pages of files) after it has run. --write keeps the rows in benchmarks/HYBRID_GAIN.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon, nd
from hybridnet.gluon import nn, rnn
from hybridnet.gluon.model_zoo import vision
from sections import Section, instruction_sets, keep, machine, peer_versions, stamp

Made = tuple[Any, tuple[Any, ...]]  # a network and its inputs
SECONDS_PER_ROUND = 0.15
HERE = Path(__file__).resolve().parent
COLUMNS = ("network", "prediction", "training", "measured")
MEMORY_COLUMNS = ("network", "memory of prediction", "of training", "measured")
HEAD = """# What hybridize() gains

Written by `python benchmarks/hybrid_gain.py --write` and the same with `--memory`. Hybridized / imperative: below 1 the
hybridized network is faster, or smaller. Of times the median over the rounds, with the quartiles."""


def _data(*shape: int) -> Any:
    return nd.array(np.random.RandomState(0).randn(*shape).astype("float32"))


def _mlp(width: int, depth: int = 3, batch: int = 32) -> Callable[[], Made]:
    def make() -> Made:
        net = nn.HybridSequential()
        net.add(*[nn.Dense(width, activation="relu") for _ in range(depth)], nn.Dense(10))
        return net, (_data(batch, width),)

    return make


def _zoo(name: str, size: int = 64, batch: int = 2) -> Callable[[], Made]:
    return lambda: (vision.get_model(name, classes=10), (_data(batch, 3, size, size),))


def _recurrent(layer: Callable[..., Any], **options: Any) -> Callable[[], Made]:
    return lambda: (layer(64, input_size=64, **options), (_data(20, 8, 64),))


class Cells(gluon.HybridBlock):
    """A recurrent cell over the leading axis, by foreach or unrolled."""

    def __init__(self, cell: Any, units: int, states: int, unroll: bool) -> None:
        super().__init__()
        self._units, self._states, self._unroll = units, states, unroll
        with self.name_scope():
            self.cell = cell

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        if self._unroll:
            return self.cell.unroll(20, x, layout="TNC", merge_outputs=True)[0]
        begin = F.zeros_like(F.slice_axis(x, axis=0, begin=0, end=1)).reshape((-3, 0))
        return F.contrib.foreach(self.cell, x, [begin] * self._states)[0]


class Transformer(gluon.HybridBlock):
    """One layer of an encoder, with attention written as products and a softmax."""

    def __init__(self, units: int, heads: int, dropout: float) -> None:
        super().__init__()
        self._heads, self._size = heads, units // heads
        with self.name_scope():
            self.query, self.key, self.value, self.out = (nn.Dense(units, flatten=False) for _ in range(4))
            self.up, self.down = nn.Dense(4 * units, flatten=False), nn.Dense(units, flatten=False)
            self.norm1, self.norm2 = nn.LayerNorm(), nn.LayerNorm()
            self.gelu, self.drop = nn.GELU(), nn.Dropout(dropout)

    def _split(self, x: Any) -> Any:  # (batch, length, units) to (batch heads, length, size)
        return x.reshape((0, 0, self._heads, -1)).transpose((0, 2, 1, 3)).reshape((-3, 0, 0))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        query, key, value = self._split(self.query(x)), self._split(self.key(x)), self._split(self.value(x))
        weights = F.softmax(F.batch_dot(query, key, transpose_b=True) / self._size**0.5)
        context = F.batch_dot(self.drop(weights), value)
        context = context.reshape((-4, -1, self._heads, 0, 0)).transpose((0, 2, 1, 3)).reshape((0, 0, -3))
        x = self.norm1(x + self.drop(self.out(context)))
        return self.norm2(x + self.drop(self.down(self.gelu(self.up(x)))))


class UNet(gluon.HybridBlock):
    """Two levels down and up, with skip connections."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.first, self.second, self.bottom = self._double(16), self._double(32), self._double(64)
            self.up2, self.up1 = nn.Conv2DTranspose(32, 2, 2), nn.Conv2DTranspose(16, 2, 2)
            self.third, self.fourth = self._double(32), self._double(16)
            self.pool, self.out = nn.MaxPool2D(2), nn.Conv2D(4, 1)

    @staticmethod
    def _double(channels: int) -> Any:
        block = nn.HybridSequential()
        for _ in range(2):
            block.add(nn.Conv2D(channels, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"))
        return block

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        first = self.first(x)
        second = self.second(self.pool(first))
        x = self.up2(self.bottom(self.pool(second)))
        x = self.up1(self.third(F.concat(x, second, dim=1)))
        return self.out(self.fourth(F.concat(x, first, dim=1)))


class Detector(gluon.HybridBlock):
    """Class scores and boxes at three scales."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.stages, self.scores, self.boxes = (nn.HybridSequential() for _ in range(3))
            for channels in (16, 32, 64):
                stage = nn.HybridSequential()
                stage.add(nn.Conv2D(channels, 3, 2, 1), nn.BatchNorm(), nn.Activation("relu"))
                self.stages.add(stage)
                self.scores.add(nn.Conv2D(4 * 6, 3, padding=1))
                self.boxes.add(nn.Conv2D(4 * 4, 3, padding=1))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        rows = []
        for stage, scores, boxes in zip(self.stages, self.scores, self.boxes, strict=True):
            x = stage(x)
            rows.append(F.flatten(scores(x).transpose((0, 2, 3, 1))))
            rows.append(F.flatten(boxes(x).transpose((0, 2, 3, 1))))
        return F.concat(*rows, dim=1)


class Points(gluon.HybridBlock):
    """PointNet: the same layers for every point, and the maximum over the points."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.layers = nn.HybridSequential()
            for channels in (64, 64, 128, 512):
                self.layers.add(nn.Conv1D(channels, 1), nn.BatchNorm(), nn.Activation("relu"))
            self.out = nn.Dense(10)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.out(F.max(self.layers(x), axis=2))


def _generator() -> Made:
    net = nn.HybridSequential()
    net.add(nn.Dense(64 * 16), nn.HybridLambda(lambda F, x: x.reshape((0, 64, 4, 4))))
    for channels in (32, 16):
        net.add(nn.Conv2DTranspose(channels, 4, 2, 1), nn.BatchNorm(), nn.Activation("relu"))
    net.add(nn.Conv2DTranspose(3, 4, 2, 1), nn.Activation("tanh"))
    return net, (_data(8, 32),)


def _discriminator() -> Made:
    net = nn.HybridSequential()
    for channels in (16, 32, 64):
        net.add(nn.Conv2D(channels, 4, 2, 1), nn.BatchNorm(), nn.LeakyReLU(0.2))
    net.add(nn.Dense(1))
    return net, (_data(8, 3, 32, 32),)


def _embedding() -> Made:
    net = nn.HybridSequential()
    net.add(nn.Embedding(1000, 64), nn.HybridLambda(lambda F, x: F.mean(x, axis=1)), nn.Dense(64, "relu"), nn.Dense(5))
    return net, (nd.array(np.random.RandomState(0).randint(0, 1000, (32, 40))),)


def _text_convolution() -> Made:
    net = nn.HybridSequential()
    net.add(nn.Embedding(1000, 64), nn.HybridLambda(lambda F, x: x.transpose((0, 2, 1))))
    net.add(nn.Conv1D(64, 3, activation="relu"), nn.GlobalMaxPool1D(), nn.Dense(5))
    return net, (nd.array(np.random.RandomState(0).randint(0, 1000, (32, 40))),)


def _autoencoder() -> Made:
    net = nn.HybridSequential()
    net.add(*[nn.Dense(n, activation="tanh") for n in (256, 64, 16, 64, 256)], nn.Dense(784, activation="sigmoid"))
    return net, (_data(64, 784),)


def _lenet() -> Made:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(20, 5, activation="tanh"), nn.MaxPool2D(2, 2), nn.Conv2D(50, 5, activation="tanh"))
    net.add(nn.MaxPool2D(2, 2), nn.Dense(500, activation="tanh"), nn.Dense(10))
    return net, (_data(64, 1, 28, 28),)


NETWORKS: dict[str, Callable[[], Made]] = {
    **{f"mlp {width}": _mlp(width) for width in (8, 32, 128, 256, 512, 1024)},
    "mlp 2048, one row": _mlp(2048, 2, 1),
    "mlp 4096": _mlp(4096, 2, 16),
    "mlp 64, 20 layers": _mlp(64, 20),
    "lenet": _lenet,
    "resnet18_v1": _zoo("resnet18_v1"),
    "resnet18_v2": _zoo("resnet18_v2"),
    "resnet50_v1": _zoo("resnet50_v1"),
    "resnet50_v2": _zoo("resnet50_v2"),
    "vgg11": _zoo("vgg11"),
    "vgg11_bn": _zoo("vgg11_bn"),
    "alexnet": _zoo("alexnet", 96),
    "densenet121": _zoo("densenet121", 224, 1),
    "squeezenet1.0": _zoo("squeezenet1.0", 224, 1),
    "squeezenet1.1": _zoo("squeezenet1.1", 224, 1),
    "inceptionv3": _zoo("inceptionv3", 299, 1),
    "mobilenet0.5": _zoo("mobilenet0.5"),
    "mobilenet1.0": _zoo("mobilenet1.0"),
    "mobilenetv2_0.5": _zoo("mobilenetv2_0.5"),
    "mobilenetv2_1.0": _zoo("mobilenetv2_1.0"),
    "rnn": _recurrent(rnn.RNN),
    "lstm": _recurrent(rnn.LSTM),
    "lstm, 2 layers, bidirectional": _recurrent(rnn.LSTM, num_layers=2, bidirectional=True),
    "gru": _recurrent(rnn.GRU),
    "lstm cell by foreach": lambda: (Cells(rnn.LSTMCell(64, input_size=64), 64, 2, False), (_data(20, 8, 64),)),
    "gru cell by foreach": lambda: (Cells(rnn.GRUCell(64, input_size=64), 64, 1, False), (_data(20, 8, 64),)),
    "lstm cell unrolled": lambda: (Cells(rnn.LSTMCell(64, input_size=64), 64, 2, True), (_data(20, 8, 64),)),
    "transformer 64": lambda: (Transformer(64, 4, 0.1), (_data(8, 32, 64),)),
    "transformer 256": lambda: (Transformer(256, 8, 0.1), (_data(4, 64, 256),)),
    "unet": lambda: (UNet(), (_data(1, 3, 64, 64),)),
    "generator": _generator,
    "discriminator": _discriminator,
    "detector": lambda: (Detector(), (_data(2, 3, 64, 64),)),
    "points": lambda: (Points(), (_data(4, 3, 256),)),
    "embedding": _embedding,
    "text convolution": _text_convolution,
    "autoencoder": _autoencoder,
}


def runner(name: str, hybrid: bool, train: bool) -> Callable[[], None]:
    """Returns a function that runs the network once, and waits for the outputs."""
    mx.random.seed(1)
    net, inputs = NETWORKS[name]()
    net.initialize(mx.init.Xavier())
    net(*inputs)
    if hybrid:
        net.hybridize()
    params = [param for param in net.collect_params().values() if param.grad_req != "null"]

    def predict() -> None:
        net(*inputs).wait_to_read()

    def step() -> None:
        with autograd.record():
            loss = net(*inputs).square().mean()
        loss.backward()
        for param in params:
            param.grad().wait_to_read()

    run = step if train else predict
    for _ in range(3):
        run()
    return run


def ratio(name: str, train: bool, rounds: int) -> tuple[float, float, float]:
    """The time of the hybridized network relative to the imperative one: median, and the quartiles."""
    sides = [runner(name, hybrid, train) for hybrid in (False, True)]
    begin = time.perf_counter()
    sides[0]()
    calls = max(1, int(SECONDS_PER_ROUND / (time.perf_counter() - begin)))
    ratios = []
    for number in range(rounds):
        best = [0.0, 0.0]
        for side in (0, 1) if number % 2 else (1, 0):
            begin = time.perf_counter()
            for _ in range(calls):
                sides[side]()
            best[side] = time.perf_counter() - begin
        ratios.append(best[1] / best[0])
    low, median, high = statistics.quantiles(ratios, n=4)
    return median, low, high


def _status(field: str) -> float:
    text = Path("/proc/self/status").read_text()
    return int(text.split(f"{field}:")[1].split()[0]) / 1024


def peak_memory(name: str, hybrid: bool, train: bool) -> float:
    """The peak of private memory, in megabytes, that the network adds to this process until it has run: without pages
    of files, such as those of the library's code, which processes share and the system may reclaim at any time."""
    nd.dot(nd.ones((256, 256)), nd.ones((256, 256))).wait_to_read()  # allocations that the library makes once
    mx.nd.waitall()
    mx.cpu().empty_cache()
    before = _status("RssAnon")
    run = runner(name, hybrid, train)
    mx.nd.waitall()
    mx.cpu().empty_cache()
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    for _ in range(3):
        run()
    return _status("VmHWM") - _status("RssFile") - before


def _memory_cell(name: str, train: bool) -> str:
    command = [sys.executable, __file__, "--memory-of", name, "train" if train else "predict"]
    plain, hybrid = (float(subprocess.check_output([*command, way])) for way in ("plain", "hybrid"))
    return f"{hybrid / plain:.2f} ({hybrid:.1f} of {plain:.1f} MiB)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(NETWORKS)}")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--memory", action="store_true", help="the peak of memory in place of time")
    parser.add_argument("--write", action="store_true", help="keep the rows in benchmarks/HYBRID_GAIN.md")
    parser.add_argument("--memory-of", nargs=3, metavar=("NAME", "MODE", "WAY"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        name, mode, way = arguments.memory_of
        print(peak_memory(name, way == "hybrid", mode == "train"))
        return
    if unknown := set(arguments.names) - set(NETWORKS):
        parser.error(f"unknown networks: {', '.join(sorted(unknown))}")
    columns = MEMORY_COLUMNS if arguments.memory else COLUMNS
    print(f"| {' | '.join(columns)} |\n|" + "---|" * len(columns))
    slower, measured = [], stamp()
    title = f"{machine()}: {instruction_sets(dict(os.environ))}, {'memory' if arguments.memory else 'time'}"
    for name in arguments.names or NETWORKS:
        cells = []
        for train in (False, True):
            if arguments.memory:
                cells.append(_memory_cell(name, train))
                continue
            median, low, high = ratio(name, train, arguments.rounds)
            cells.append(f"{median:.2f} [{low:.2f}, {high:.2f}]")
            if low > 1:
                slower.append(f"{name}, {'training' if train else 'prediction'}: {median:.2f}")
        line = f"| {' | '.join([name, *cells, measured])} |"
        print(line, flush=True)
        if arguments.write:
            keep(HERE / "HYBRID_GAIN.md", HEAD, Section(title, peer_versions(), columns, (line,), tuple(NETWORKS)))
    if not arguments.memory:
        print("\nslower when hybridized: " + ("; ".join(slower) or "none"))


if __name__ == "__main__":
    main()
