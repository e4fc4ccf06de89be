"""Compiled training steps (mx.jit.train_step) compared with the hybridized loop: losses, time and memory in one run.

Both ways take turns; times are minima over the rounds. Memory is measured in a separate process. "Arrays" is the peak
of the memory allocated from the library's storage: parameters, gradients, states of the optimizer, and all other memory
of a step. "Process" is the peak of resident memory, minus the memory of the process before the net is made; it includes
code that a step runs for the first time: about 15 MB. Losses are those of the first steps of two runs from the same
seeds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Step = Callable[[], Any]
LOSS_STEPS = 20


def _lenet(mx: Any) -> tuple[Any, Any, Any, Any]:
    from hybridnet.gluon import nn

    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(20, 5, activation="tanh"),
        nn.MaxPool2D(2, 2),
        nn.Conv2D(50, 5, activation="tanh"),
        nn.MaxPool2D(2, 2),
        nn.Dense(500, activation="tanh"),
        nn.Dense(10),
    )
    return net, mx.gluon.loss.SoftmaxCrossEntropyLoss(), _normal(mx, 64, 1, 28, 28), _labels(mx, 10, 64)


def _resnet18(mx: Any) -> tuple[Any, Any, Any, Any]:
    from hybridnet.gluon.model_zoo import vision

    net = vision.resnet18_v1(thumbnail=True, classes=10)
    return net, mx.gluon.loss.SoftmaxCrossEntropyLoss(), _normal(mx, 8, 3, 32, 32), _labels(mx, 10, 8)


def _resnet18_224(mx: Any) -> tuple[Any, Any, Any, Any]:
    from hybridnet.gluon.model_zoo import vision

    return (
        vision.resnet18_v1(),
        mx.gluon.loss.SoftmaxCrossEntropyLoss(),
        _normal(mx, 8, 3, 224, 224),
        _labels(mx, 1000, 8),
    )


def _transformer(mx: Any) -> tuple[Any, Any, Any, Any]:
    from hybridnet import gluon
    from hybridnet.gluon import nn

    class Layer(gluon.HybridBlock):
        def __init__(self, units: int, hidden: int, heads: int) -> None:
            super().__init__()
            self.heads = heads
            with self.name_scope():
                self.qkv = nn.Dense(3 * units, flatten=False, in_units=units)
                self.out = nn.Dense(units, flatten=False, in_units=units)
                self.up = nn.Dense(hidden, flatten=False, in_units=units)
                self.gelu = nn.GELU()
                self.down = nn.Dense(units, flatten=False, in_units=hidden)
                self.norm1, self.norm2 = nn.LayerNorm(in_channels=units), nn.LayerNorm(in_channels=units)
                self.drop = nn.Dropout(0.1)

        def hybrid_forward(self, F: Any, x: Any) -> Any:  # x: (length, batch, units)
            qkv = self.qkv(x)
            scores = F.contrib.interleaved_matmul_selfatt_qk(qkv, heads=self.heads)
            context = F.contrib.interleaved_matmul_selfatt_valatt(qkv, self.drop(F.softmax(scores)), heads=self.heads)
            x = self.norm1(x + self.drop(self.out(context)))
            return self.norm2(x + self.drop(self.down(self.drop(self.gelu(self.up(x))))))

    net = nn.HybridSequential()
    net.add(Layer(256, 1024, 4), Layer(256, 1024, 4), nn.Dense(1000, flatten=False, in_units=256))
    return net, mx.gluon.loss.SoftmaxCrossEntropyLoss(), _normal(mx, 128, 8, 256), _labels(mx, 1000, 128, 8)


def _lstm(mx: Any) -> tuple[Any, Any, Any, Any]:
    from hybridnet import gluon
    from hybridnet.gluon import nn, rnn

    class Recurrent(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope():
                self.cell = rnn.LSTMCell(256, input_size=256)
                self.out = nn.Dense(100, flatten=False, in_units=256)

        def hybrid_forward(self, F: Any, x: Any) -> Any:  # x: (length, batch, 256)
            begin = [F.zeros_like(F.slice_axis(x, axis=0, begin=0, end=1)).reshape((-3, 0)) for _ in range(2)]
            out, _ = F.contrib.foreach(self.cell, x, begin)
            return self.out(out)

    return Recurrent(), mx.gluon.loss.SoftmaxCrossEntropyLoss(), _normal(mx, 50, 32, 256), _labels(mx, 100, 50, 32)


CASES = {
    "lenet": _lenet,
    "resnet18": _resnet18,
    "resnet18_224": _resnet18_224,
    "transformer": _transformer,
    "lstm_foreach": _lstm,
}


def _normal(mx: Any, *shape: int) -> Any:
    return mx.nd.array(np.random.RandomState(0).randn(*shape).astype("float32"))


def _labels(mx: Any, classes: int, *shape: int) -> Any:
    return mx.nd.array(np.random.RandomState(1).randint(0, classes, shape).astype("float32"))


def make(case: str, compiled: bool) -> Step:
    """Returns one training step of a case, a function that returns the losses."""
    import hybridnet as mx

    mx.random.seed(1)
    net, loss, data, label = CASES[case](mx)
    net.initialize(mx.init.Xavier())
    net(data).wait_to_read()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01, "momentum": 0.9})
    size = data.shape[0]
    mx.random.seed(2)
    if compiled:
        step = mx.jit.train_step(net, loss, trainer)
        return lambda: step(data, label, batch_size=size)
    net.hybridize(static_alloc=True)
    loss.hybridize(static_alloc=True)

    def loop() -> Any:
        with mx.autograd.record():
            value = loss(net(data), label)
        value.backward()
        trainer.step(size)
        return value

    return loop


def compare_times(case: str, seconds: float) -> tuple[float, float, float]:
    """The milliseconds of the loop and of the step, and the difference of their losses."""
    import hybridnet as mx

    steps, losses = [], []
    for compiled in (False, True):  # one run after the other: they share the process's seeds
        steps.append(make(case, compiled))
        losses.append([steps[-1]().asnumpy() for _ in range(LOSS_STEPS)])
        mx.nd.waitall()
    apart = max(float(np.abs(a - b).max()) for a, b in zip(*losses, strict=True))
    best = [float("inf")] * 2
    end = time.perf_counter() + seconds
    rounds = 0
    while time.perf_counter() < end or rounds < 10:
        rounds += 1
        for i in (0, 1) if rounds % 2 else (1, 0):
            begin = time.perf_counter()
            steps[i]()
            mx.nd.waitall()
            best[i] = min(best[i], time.perf_counter() - begin)
    return best[0] * 1e3, best[1] * 1e3, apart


def _status(field: str) -> float:
    """A field of /proc/self/status in megabytes."""
    text = Path("/proc/self/status").read_text()
    return int(text.split(f"{field}:")[1].split()[0]) / 1024


def grown_memory(case: str, compiled: bool) -> tuple[float, float]:
    """The peaks, in megabytes, after the first calls: of arrays, and of the growth of this process."""
    import hybridnet as mx
    from hybridnet import _core
    from hybridnet.gluon import model_zoo  # noqa: F401  # code is not part of the figure

    (mx.nd.ones((64, 64)) + 1).wait_to_read()
    before = _status("VmRSS")
    step = make(case, compiled)
    step()
    mx.nd.waitall()
    mx.cpu().empty_cache()
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    _core.reset_peak_memory(1, 0)
    for _ in range(5):
        step()
        mx.nd.waitall()
    return _core.memory_statistics(1, 0)["peak_in_use"] / 2**20, _status("VmHWM") - before


def _memory_apart(case: str, mode: str) -> list[float]:
    """Calls grown_memory() in a separate process."""
    printed = subprocess.check_output([sys.executable, __file__, "--memory-of", case, mode])
    return [float(part) for part in printed.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=[*CASES], help=f"of {', '.join(CASES)}")
    parser.add_argument("--seconds", type=float, default=20, help="per case, for times")
    parser.add_argument("--memory-of", nargs=2, metavar=("CASE", "MODE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        print(*grown_memory(arguments.memory_of[0], arguments.memory_of[1] == "step"))
        return
    print(
        "| case | loop ms | step ms | ratio | arrays: loop MB | step MB | ratio | process: loop MB | step MB | ratio "
        "| losses differ by |"
    )
    print("|" + " --- |" * 11)
    for case in arguments.cases:
        loop, step, apart = compare_times(case, arguments.seconds)
        pairs = zip(_memory_apart(case, "loop"), _memory_apart(case, "step"), strict=True)
        memory = " ".join(f"{a:.1f} | {b:.1f} | {b / a:.3f} |" for a, b in pairs)
        print(f"| {case} | {loop:.2f} | {step:.2f} | {step / loop:.3f} | {memory} {apart:.2g} |", flush=True)


if __name__ == "__main__":
    main()
