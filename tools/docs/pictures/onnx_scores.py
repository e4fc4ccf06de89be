"""Scores of the net with two loops beside those of the net that comes back from its ONNX file, for four lengths."""

from __future__ import annotations

import tempfile
from pathlib import Path

import hybridnet as mx
import numpy as np
from hybridnet import nd
from onnx_roundtrip import Net, inputs
from plot import figure

WIDTH, LENGTHS = 16, (1, 3, 10, 40)


def draw(folder: Path) -> None:
    mx.random.seed(3)
    net = Net(WIDTH)
    net.initialize(mx.init.Xavier(magnitude=4))
    net.hybridize()
    net(*map(nd.array, inputs(2, 5, WIDTH, 0).values()))
    with tempfile.TemporaryDirectory() as made:
        path = str(Path(made) / "net.onnx")
        shapes = [("batch", "length", 3), ("batch", WIDTH)]
        mx.onnx.export_model(net, onnx_file_path=path, dynamic_input_shapes=shapes)
        back = mx.onnx.import_to_gluon(path)
    back.hybridize()
    own, returned = [], []
    for length in LENGTHS:
        arrays = [nd.array(array) for array in inputs(20, length, WIDTH, length).values()]
        own.append(net(*arrays)[0].asnumpy().ravel())
        returned.append(back(*arrays)[0].asnumpy().ravel())
    apart = max(np.abs(a - b).max() for a, b in zip(own, returned, strict=True))
    with figure(folder / "onnx_scores.svg", size=(4.8, 3.4)) as ax:
        for length, a, b in zip(LENGTHS, own, returned):
            ax.plot(a, b, "o", markersize=4, alpha=0.7, label=f"length {length}")
        ax.set(xlabel="score before the export", ylabel="score after the import")
        ax.set_title(f"largest difference: {apart:.1g}")
        ax.legend(frameon=False, fontsize=9)


if __name__ == "__main__":
    draw(Path())
