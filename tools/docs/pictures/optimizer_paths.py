"""Paths of optimizers: from one start through a narrow curved valley, Rosenbrock's function.

`Optimizer.update` takes a weight, its gradient and a state: no network and no Trainer are needed.
"""

from __future__ import annotations

from pathlib import Path

import hybridnet as mx
import numpy as np
from hybridnet import autograd
from plot import figure

OPTIMIZERS = {
    "sgd": {"learning_rate": 0.004},
    "nag": {"learning_rate": 0.001, "momentum": 0.9},
    "adam": {"learning_rate": 0.05},
    "rmsprop": {"learning_rate": 0.01},
}
STEPS = 400


def valley(point: mx.nd.NDArray) -> mx.nd.NDArray:
    x, y = point[0], point[1]
    return (1 - x) ** 2 + 20 * (y - x * x) ** 2


def path(name: str, options: dict[str, float]) -> np.ndarray:
    """Returns the points after each update."""
    optimizer = mx.optimizer.create(name, **options)
    point = mx.nd.array([-1.4, 1.6])
    point.attach_grad()
    state, points = optimizer.create_state(0, point), [point.asnumpy()]
    for _ in range(STEPS):
        with autograd.record():
            height = valley(point)
        height.backward()
        optimizer.update(0, point, point.grad, state)
        points.append(point.asnumpy())
    return np.array(points)


def draw(folder: Path) -> None:
    x, y = np.meshgrid(np.linspace(-1.8, 1.6, 120), np.linspace(-0.6, 2.4, 120))
    height = (1 - x) ** 2 + 20 * (y - x * x) ** 2
    with figure(folder / "optimizer_paths.svg", size=(5.8, 4.2)) as ax:
        ax.contour(x, y, height, levels=np.geomspace(0.05, 150, 14), cmap="Greys", linewidths=0.6)
        for name, options in OPTIMIZERS.items():
            points = path(name, options)
            ax.plot(
                points[:, 0],
                points[:, 1],
                linewidth=1.6,
                label=f"{name}, after {STEPS}: ({points[-1][0]:.2f}, {points[-1][1]:.2f})",
            )
        ax.plot([1], [1], "*", markersize=11, color="black")
        ax.legend(frameon=False, fontsize=9)


if __name__ == "__main__":
    draw(Path())
