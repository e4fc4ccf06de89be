"""Quantization layer by layer: how far the scores move if one layer multiplies 8-bit integers, or all do.

`quantize_net` takes the range of each value from 256 training images. With `quantized_dtype="auto"` values that are
never negative, such as those after a relu, get 255 steps instead of 127. Each bar is the mean distance of the scores
from those in float32, divided by their standard deviation.
"""

from __future__ import annotations

from pathlib import Path

import hybridnet as mx
import numpy as np
from hybridnet import gluon
from hybridnet.contrib import quantization
from hybridnet.gluon import nn
from plot import COLORS, figure
from sklearn.datasets import load_digits

BATCH, EPOCHS = 50, 6
LAYERS = ["conv0", "conv1", "dense0", "dense1"]
TYPES = {"int8": "int8", "auto": "auto: unsigned where possible"}


def trained(images: mx.nd.NDArray, labels: mx.nd.NDArray) -> nn.HybridSequential:
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(16, 3, padding=1, activation="relu"), nn.Conv2D(32, 3, padding=1, activation="relu"))
        net.add(nn.MaxPool2D(), nn.Dense(64, activation="relu"), nn.Dense(10))
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 3e-3})
    step = mx.jit.train_step(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer)
    for _ in range(EPOCHS):
        for first in range(0, len(images), BATCH):
            step(images[first : first + BATCH], labels[first : first + BATCH])
    net.hybridize()
    net(images[:BATCH])
    return net


def scores_of(net: gluon.HybridBlock, layers: list[str], dtype: str, images: mx.nd.NDArray) -> np.ndarray:
    """Returns the scores of images if these layers compute in integers; the ranges come from the first 256 images."""
    made = quantization.quantize_net(
        net, calib_data=[images[:256]], calib_mode="naive", quantized_dtype=dtype,
        exclude_layers=[f"net_{layer}_fwd" for layer in LAYERS if layer not in layers],
    )  # fmt: skip
    return made(images[1400:]).asnumpy()


def draw(folder: Path) -> None:
    mx.random.seed(1)
    pixels, labels = load_digits(return_X_y=True)
    images = mx.nd.array(pixels.reshape(-1, 1, 8, 8) / 16)
    net = trained(images[:1400], mx.nd.array(labels[:1400]))
    in_floats = net(images[1400:]).asnumpy()
    scores, choices = [in_floats], [*([layer] for layer in LAYERS), LAYERS]
    with figure(folder / "quantization.svg", size=(5.6, 3.3)) as ax:
        for place, (dtype, label) in enumerate(TYPES.items()):
            found = [scores_of(net, layers, dtype, images) for layers in choices]
            scores.append(found[-1])
            moved = [100 * np.abs(one - in_floats).mean() / in_floats.std() for one in found]
            bars = ax.bar(np.arange(5) + 0.4 * place - 0.2, moved, 0.38, color=COLORS[place], label=label)
            ax.bar_label(bars, fmt="%.2f", fontsize=9)
        right = [100 * (one.argmax(axis=1) == labels[1400:]).mean() for one in scores]
        ax.set_xticks(range(5), [*LAYERS, "all"])
        ax.grid(axis="x", visible=False)
        ax.margins(y=0.15)
        ax.set(xlabel="layers in 8 bits", ylabel="distance of the scores, %")
        ax.set_title("right answers: float32 {:.1f} %, int8 {:.1f} %, auto {:.1f} %".format(*right), fontsize=10)
        ax.legend(frameon=False, fontsize=9)


if __name__ == "__main__":
    draw(Path())
