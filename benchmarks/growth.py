"""The growth of time and memory with the size of the work: slopes, and plots if matplotlib is installed.

    python benchmarks/growth.py [--only PART,PART] [--limit 60] [--write]

Every point runs in a separate process: seconds per call (the minimum of several), seconds of the first call (trace,
rewrite, link, run), and the peak growth of the process in megabytes until then. A slope is the exponent b of y ~ x^b
between the largest points, where constant costs no longer hide it: 1 is linear. A series ends at the first point that
takes longer than --limit seconds. --write keeps the rows in GROWTH.md, and the plots in benchmarks/plots.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sections import Section, instruction_sets, keep, machine, peer_versions, stamp

HERE = Path(__file__).resolve().parent
COLUMNS = (
    "series", "sizes", "slope of a call", "of the first call", "of memory",
    "largest: a call", "first call", "memory", "measured",
)  # fmt: skip
HEAD = """# Growth

Written by `python benchmarks/growth.py --write`, which says how it is measured. A slope is the exponent b of y ~ x^b
between the largest sizes: 1 is linear. Plots lie in `plots/`."""
Call = Callable[[], Any]


def _array(*shape: int) -> Any:
    import hybridnet as mx

    return mx.nd.array(np.random.RandomState(0).standard_normal(shape).astype("float32"))


def _block(run: Callable[..., Any], *children: Any) -> Any:
    """A hybridized block that calls a function."""
    from hybridnet import gluon

    class Function(gluon.HybridBlock):
        def forward(self, *args: Any) -> Any:
            return run(*args)

    block = Function()
    for number, child in enumerate(children):
        setattr(block, f"child{number}", child)
    block.initialize()
    block.hybridize(static_alloc=True)
    return block


def _backward(net: Any, *inputs: Any) -> Call:
    from hybridnet import autograd

    def call() -> Any:
        with autograd.record():
            value = net(*inputs)
        value.backward()
        return value

    return call


def while_trips(trips: int) -> Call:
    """while_loop over 8 numbers"""
    import hybridnet as mx

    def run(i: Any, x: Any) -> Any:
        step = lambda i, x: ([], (i + 1, x * 0.999))  # noqa: E731
        return mx.nd.contrib.while_loop(lambda i, x: i < trips, step, (i, x), max_iterations=trips)[1][1]

    net = _block(run)
    inputs = mx.nd.zeros((1,)), mx.nd.ones((8,))
    return lambda: net(*inputs)


def _rows(trips: int) -> tuple[Any, Any, Any]:
    import hybridnet as mx

    dense = mx.gluon.nn.Dense(64, in_units=64, activation="tanh")
    net = _block(lambda x, s: mx.nd.contrib.foreach(lambda row, s: (dense(row + s),) * 2, x, s)[0], dense)
    return net, _array(trips, 8, 64), mx.nd.zeros((8, 64))


def foreach_trips(trips: int) -> Call:
    """foreach over rows of (8, 64) through a dense layer, forward"""
    net, *inputs = _rows(trips)
    return lambda: net(*inputs)


def foreach_trips_backward(trips: int) -> Call:
    """the same, forward and backward"""
    return _backward(*_rows(trips))


def _chain(nodes: int) -> tuple[Any, Any]:
    def run(x: Any) -> Any:
        for number in range(nodes // 2):  # neither merged nor fused into one node
            x = (x + 0.001 * (number + 1)).softmax(axis=1)
        return x

    return _block(run), _array(2, 8)


def graph_nodes(nodes: int) -> Call:
    """a chain of nodes over (2, 8), forward"""
    net, x = _chain(nodes)
    return lambda: net(x)


def graph_nodes_backward(nodes: int) -> Call:
    """the same, forward and backward"""
    net, x = _chain(nodes)
    x.attach_grad()
    return _backward(net, x)


def parameters(count: int) -> Call:
    """backward and Trainer.step (sgd with momentum) over arrays of 16 elements"""
    import hybridnet as mx

    held = [mx.gluon.Parameter(f"p{number}", shape=(16,)) for number in range(count)]
    for one in held:
        one.initialize()
    trainer = mx.gluon.Trainer({one.name: one for one in held}, "sgd", {"learning_rate": 0.1, "momentum": 0.9})

    def call() -> None:
        with mx.autograd.record():
            total = mx.nd.add_n(*(one.data() for one in held))
        total.backward()
        trainer.step(1)

    return call


def threads(count: int) -> Call:
    """ResNet-18 prediction of 4 images with so many cores"""
    from hybridnet.gluon.model_zoo import vision

    net = vision.resnet18_v1()
    net.initialize()
    net.hybridize(static_alloc=True)
    images = _array(4, 3, 224, 224)
    return lambda: net(images)


def batch(size: int) -> Call:
    """LeNet prediction"""
    from hybridnet.gluon import nn

    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(20, 5, activation="tanh"), nn.MaxPool2D(2, 2), nn.Conv2D(50, 5, activation="tanh"),
        nn.MaxPool2D(2, 2), nn.Dense(500, activation="tanh"), nn.Dense(10),
    )  # fmt: skip
    net.initialize()
    net.hybridize(static_alloc=True)
    images = _array(size, 1, 28, 28)
    return lambda: net(images)


def _attention(length: int) -> tuple[Any, ...]:
    import hybridnet as mx

    def run(q: Any, k: Any, v: Any) -> Any:
        scores = mx.nd.batch_dot(q, k, transpose_b=True) * 0.125
        return mx.nd.batch_dot(mx.nd.softmax(scores, axis=-1), v)

    return _block(run), *(_array(4, length, 64) for _ in range(3))


def attention_length(length: int) -> Call:
    """attention of 4 heads of 64, forward: its work is quadratic, its memory need not be"""
    net, *inputs = _attention(length)
    return lambda: net(*inputs)


def attention_length_backward(length: int) -> Call:
    """the same, forward and backward"""
    net, *inputs = _attention(length)
    for one in inputs:
        one.attach_grad()
    return _backward(net, *inputs)


def lstm_length(length: int) -> Call:
    """gluon.rnn.LSTM of 128, batch 8, forward and backward"""
    import hybridnet as mx

    net = mx.gluon.rnn.LSTM(128, input_size=128)
    net.initialize()
    net.hybridize(static_alloc=True)
    return _backward(net, _array(length, 8, 128))


@dataclasses.dataclass(frozen=True)
class Series:
    name: str
    make: Callable[[int], Call]
    sizes: tuple[int, ...]
    axis: str


def _powers(low: int, high: int, factor: int = 10) -> tuple[int, ...]:
    sizes = [low]
    while sizes[-1] * factor <= high:
        sizes.append(sizes[-1] * factor)
    return tuple(sizes)


_CORES = len(os.sched_getaffinity(0))
SERIES = {
    one.name: one
    for one in (
        Series("while_trips", while_trips, _powers(10, 1_000_000), "trips"),
        Series("foreach_trips", foreach_trips, _powers(10, 100_000), "trips"),
        Series("foreach_trips_backward", foreach_trips_backward, _powers(10, 100_000), "trips"),
        Series("graph_nodes", graph_nodes, _powers(100, 100_000), "nodes"),
        Series("graph_nodes_backward", graph_nodes_backward, _powers(100, 100_000), "nodes"),
        Series("parameters", parameters, _powers(10, 100_000), "arrays"),
        Series("threads", threads, tuple(range(1, _CORES + 1)), "cores"),
        Series("batch", batch, _powers(1, 1024, 4), "images"),
        Series("attention_length", attention_length, _powers(16, 8192, 2), "tokens"),
        Series("attention_length_backward", attention_length_backward, _powers(16, 8192, 2), "tokens"),
        Series("lstm_length", lstm_length, _powers(16, 8192, 2), "tokens"),
    )
}


def _status(field: str) -> float:
    """A field of /proc/self/status in megabytes."""
    text = Path("/proc/self/status").read_text("utf-8")
    return int(text.split(f"{field}:")[1].split()[0]) / 1024


def measure(name: str, size: int) -> dict[str, float]:
    """Measures one point, in this process."""
    import hybridnet as mx

    (mx.nd.ones((64, 64)) + 1).wait_to_read()
    before = _status("VmRSS")
    call = SERIES[name].make(size)
    mx.nd.waitall()
    begin = time.perf_counter()
    call()
    mx.nd.waitall()
    first = time.perf_counter() - begin
    best, spent, calls = math.inf, 0.0, 0
    while calls < 3 or (spent < 1 and calls < 1000):  # machine code of loops is generated in the meantime
        begin = time.perf_counter()
        call()
        mx.nd.waitall()
        taken = time.perf_counter() - begin
        best, spent, calls = min(best, taken), spent + taken, calls + 1
        if spent > 20:
            break
    return {"size": size, "call": best, "first": first, "memory": _status("VmHWM") - before}


def points(series: Series, limit: float) -> list[dict[str, float]]:
    found = []
    for size in series.sizes:
        env = dict(
            os.environ, PYTHONPATH=os.pathsep.join([str(HERE.parent / "python"), os.environ.get("PYTHONPATH", "")])
        )
        if series.name == "threads":
            env["HYBRIDNET_NUM_THREADS"] = str(size)
        begin = time.perf_counter()
        command = [sys.executable, __file__, "--point", series.name, str(size)]
        run = subprocess.run(command, env=env, capture_output=True, text=True)
        if run.returncode != 0:
            raise SystemExit(f"{series.name} {size}: {run.stderr.strip().splitlines()[-1]}")
        found.append(json.loads(run.stdout))
        if time.perf_counter() - begin > limit:
            break
    return found


def slope(found: list[dict[str, float]], field: str) -> float:
    """The exponent between the largest point and the point a decade, or else three points, before it."""
    last = found[-1]
    earlier = [one for one in found[:-1] if last["size"] / one["size"] >= 9.9] or found[:1]
    other = earlier[-1]
    if other is last or other[field] <= 0 or last[field] <= 0:
        return math.nan
    return math.log(last[field] / other[field]) / math.log(last["size"] / other["size"])


def title(series: Series) -> str:
    return f"{series.name}: {(series.make.__doc__ or '').split(':')[0]}"


def row(series: Series, found: list[dict[str, float]]) -> str:
    last = found[-1]
    sizes = f"{found[0]['size']:,} to {last['size']:,} {series.axis}"
    slopes = " | ".join(f"{slope(found, field):.2f}" for field in ("call", "first", "memory"))
    return (
        f"| {title(series)} | {sizes} | {slopes} | {last['call'] * 1e3:,.3g} ms | "
        f"{last['first'] * 1e3:,.3g} ms | {last['memory']:,.0f} MB | {stamp()} |"
    )


def plot(series: Series, found: list[dict[str, float]], folder: Path) -> None:
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(exist_ok=True)
    sizes = [one["size"] for one in found]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4))
    left.loglog(sizes, [one["call"] * 1e3 for one in found], "o-", label="a call")
    left.loglog(sizes, [one["first"] * 1e3 for one in found], "s--", label="the first call")
    left.set(xlabel=series.axis, ylabel="ms", title=series.name)
    left.legend()
    right.loglog(sizes, [max(one["memory"], 0.1) for one in found], "o-")
    right.set(xlabel=series.axis, ylabel="MB at the peak")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(folder / f"{series.name}.png", dpi=70)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="series whose name holds one of these (comma between)")
    parser.add_argument("--limit", type=float, default=60, help="seconds of a point after which a series ends")
    parser.add_argument("--write", action="store_true", help="keep benchmarks/GROWTH.md and the plots")
    parser.add_argument("--point", nargs=2, metavar=("SERIES", "SIZE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.point:
        print(json.dumps(measure(arguments.point[0], int(arguments.point[1]))))
        return
    print(f"| {' | '.join(COLUMNS)} |\n|" + "---|" * len(COLUMNS))
    order = tuple(title(series) for series in SERIES.values())
    where = f"{machine()}: {instruction_sets(dict(os.environ))}"
    for series in SERIES.values():
        if not any(part in series.name for part in arguments.only.split(",")):
            continue
        found = points(series, arguments.limit)
        line = row(series, found)
        print(line, flush=True)
        if arguments.write:
            plot(series, found, HERE / "plots")
            keep(HERE / "GROWTH.md", HEAD, Section(where, peer_versions(), COLUMNS, (line,), order))


if __name__ == "__main__":
    main()
