"""Activation functions and their derivatives, which `autograd` computes for all points in one backward pass.

Each function is a layer or an operator that is called on 400 points. `y.backward()` adds up the gradients of the
outputs; the functions work elementwise, so the gradient at a point is the derivative there.
"""

from __future__ import annotations

from pathlib import Path

import hybridnet as mx
import numpy as np
from hybridnet import autograd
from hybridnet.gluon import nn
from plot import figure

LAYERS = {
    "relu": nn.Activation("relu"),
    "LeakyReLU(0.1)": nn.LeakyReLU(0.1),
    "ELU": nn.ELU(),
    "GELU": nn.GELU(),
    "Swish": nn.Swish(),
    "tanh": nn.Activation("tanh"),
}


def draw(folder: Path) -> None:
    points = mx.nd.array(np.linspace(-4, 4, 400))
    points.attach_grad()
    with figure(folder / "activations.svg", columns=3, rows=2, size=(2.9, 2.2)) as axes:
        for ax, (name, layer) in zip(axes.ravel(), LAYERS.items()):
            layer.initialize()
            with autograd.record():
                y = layer(points)
            y.backward()
            ax.plot(points.asnumpy(), y.asnumpy(), label="value")
            ax.plot(points.asnumpy(), points.grad.asnumpy(), "--", label="derivative")
            ax.set(title=name, ylim=(-1.5, 3))
        axes[0, 0].legend(frameon=False, fontsize=9)


if __name__ == "__main__":
    draw(Path())
