"""Accuracy on images not seen while the net of an ONNX file is tuned."""

from __future__ import annotations

import tempfile
from pathlib import Path

import hybridnet as mx
from hybridnet import nd
from plot import figure
from tune_onnx import digits, train, with_new_head, write_with_onnx

EPOCHS, STEP = 12, 2


def draw(folder: Path) -> None:
    mx.random.seed(1)
    images, labels, test_images, test_labels = digits()
    with tempfile.TemporaryDirectory() as made:
        path = str(Path(made) / "given.onnx")
        write_with_onnx(path)
        net = with_new_head(path, 10)
    reached = []
    for epoch in range(0, EPOCHS + 1, STEP):
        train(net, images, labels, STEP if epoch else 0)
        answers = net(nd.array(test_images)).argmax(axis=1).asnumpy()
        reached.append(100 * (answers == test_labels).mean())
    with figure(folder / "onnx_tuning.svg", size=(4.8, 3.0)) as ax:
        ax.plot(range(0, EPOCHS + 1, STEP), reached, marker="o")
        ax.axhline(10, color="#90a4ae", linestyle="--", linewidth=1)
        ax.set(xlabel="epoch of the tuning", ylabel="right answers, %", ylim=(0, 103))
        ax.set_title(f"a file's convolutions with a new head; {len(test_images)} images")


if __name__ == "__main__":
    draw(Path())
