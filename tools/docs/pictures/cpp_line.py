"""The line that the program in C++ fits, and its points, which Python draws again from the same seed."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import hybridnet as mx
from plot import COLORS, figure
from programs import compiled_cpp, output_of


def draw(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as made:
        printed = output_of(compiled_cpp("examples/cpp_superbuild/app/main.cc", Path(made))).strip()
    slope, start = (float(number) for number in re.findall(r"-?[\d.]+(?:e-?\d+)?", printed))
    mx.random.seed(1)
    x = mx.nd.random.uniform(-1, 1, shape=(64, 1))
    y = x * 3 - 0.5 + mx.nd.random.normal(scale=0.01, shape=(64, 1))
    apart = y - (slope * x + start)
    with figure(folder / "cpp_line.svg", columns=2, size=(3.3, 2.7)) as (left, right):
        left.plot(x.asnumpy(), y.asnumpy(), "o", markersize=4, alpha=0.7)
        left.plot([-1, 1], [start - slope, start + slope], color=COLORS[1])
        left.set(xlabel="x", ylabel="y", title=printed)
        right.plot(x.asnumpy(), apart.asnumpy(), "o", markersize=4, alpha=0.7)
        right.axhline(0, color=COLORS[1])
        right.set(xlabel="x", title="distance of the points")


if __name__ == "__main__":
    draw(Path())
