"""Initializers and depth: the spread of the values after each of 20 dense layers, before any training.

With weights that are too small the values vanish, with weights that are too large they explode. Xavier's rule keeps
them for tanh, the rule of He and others (MSRAPrelu) for relu.
"""

from __future__ import annotations

from pathlib import Path

import hybridnet as mx
from hybridnet.gluon import nn
from plot import figure

WIDTH, DEPTH = 128, 20
RULES = {
    "Normal(0.01)": mx.init.Normal(0.01),
    "Normal(0.2)": mx.init.Normal(0.2),
    "Xavier()": mx.init.Xavier(),
    "MSRAPrelu()": mx.init.MSRAPrelu(slope=0.0),
}


def spreads(rule: mx.init.Initializer, activation: str) -> list[float]:
    """Returns the standard deviation of the values after each layer."""
    mx.random.seed(3)
    x, found = mx.nd.random.normal(shape=(256, WIDTH)), []
    for _ in range(DEPTH):
        layer = nn.Dense(WIDTH, activation=activation, in_units=WIDTH)
        layer.initialize(rule)
        x = layer(x)
        found.append(float(((x - x.mean()) ** 2).mean().sqrt().asscalar()))
    return found


def draw(folder: Path) -> None:
    with figure(folder / "initializers.svg", columns=2) as axes:
        for ax, activation in zip(axes, ("tanh", "relu")):
            for name, rule in RULES.items():
                ax.plot(range(1, DEPTH + 1), [max(s, 1e-12) for s in spreads(rule, activation)], label=name)
            ax.set(title=activation, xlabel="layer", yscale="log", ylim=(1e-6, 1e6))
        axes[0].set_ylabel("standard deviation of the values")
        axes[1].legend(frameon=False, fontsize=9)


if __name__ == "__main__":
    draw(Path())
