"""Draws of the Gibbs sampler, which is one scan with random numbers and a counter in it, and the echoes of a pulse."""

from __future__ import annotations

from pathlib import Path

import hybridnet as mx
import numpy as np
from plot import figure
from scan_programs import GibbsSampler, echo


def draw(folder: Path) -> None:
    mx.random.seed(0)
    sampler = GibbsSampler(60)
    sampler.initialize()
    sampler.hybridize(strict=True)
    x, y = (rows.asnumpy() for rows in sampler(mx.nd.array([0.8]), mx.nd.array(np.linspace(-6, 6, 40))))
    pulse = np.zeros(120)
    pulse[0] = 1
    sound = echo(mx.nd.array(pulse), mx.nd.zeros((20,))).asnumpy().ravel()
    with figure(folder / "gibbs_sampler.svg", columns=2) as (left, right):
        left.plot(x[10:].ravel(), y[10:].ravel(), ".", markersize=2, alpha=0.4, rasterized=True)
        left.plot(x[:8, 0], y[:8, 0], marker="o", markersize=3, linewidth=1, color="#e65100")
        left.set(xlabel="x", ylabel="y", title="draws, and the start of one chain")
        right.stem(sound, markerfmt=".", basefmt=" ")
        right.set(xlabel="sample", title="echoes 3 and 20 samples back")


if __name__ == "__main__":
    draw(Path())
