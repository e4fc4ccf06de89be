"""HybridNet's half of benchmarks/onnx_export.py: python export_pairs_hybridnet.py FOLDER open|BATCH NETWORK...

Writes FOLDER/NETWORK.ours.onnx.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hybridnet as mx
import hybridnet_networks as networks
from hybridnet import gluon
from hybridnet.gluon import nn, rnn
from hybridnet.gluon.model_zoo import vision

Made = tuple[gluon.HybridBlock, mx.nd.NDArray]


def images(size: int) -> mx.nd.NDArray:
    return networks.array(2, 3, size, size)


def vgg() -> gluon.HybridBlock:
    net = nn.HybridSequential()
    for channels in (32, 64, 128):
        net.add(*(nn.Conv2D(channels, 3, padding=1, activation="relu") for _ in range(2)), nn.MaxPool2D(2))
    net.add(nn.Dense(256, activation="relu"), nn.Dropout(0.5), nn.Dense(10))
    return net


def twice(channels: int) -> gluon.HybridBlock:
    net = nn.HybridSequential()
    for _ in range(2):
        net.add(nn.Conv2D(channels, 3, padding=1, use_bias=False), nn.BatchNorm(), nn.Activation("relu"))
    return net


class UNet(gluon.HybridBlock):
    def __init__(self, width: int = 16, levels: int = 3) -> None:
        super().__init__()
        with self.name_scope():
            self.first, self.last, self.pool = twice(width), nn.Conv2D(2, 1), nn.MaxPool2D(2)
            self.down, self.up, self.joined = (nn.HybridSequential() for _ in range(3))
            self.down.add(*(twice(width << level) for level in range(1, levels + 1)))
            self.up.add(*(nn.Conv2DTranspose(width << level, 2, 2) for level in range(levels)))
            self.joined.add(*(twice(width << level) for level in range(levels)))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        kept = [self.first(x)]
        for down in self.down:
            kept.append(down(self.pool(kept[-1])))
        x = kept.pop()
        for level in reversed(range(len(self.up))):
            x = self.joined[level](F.concat(self.up[level](x), kept.pop(), dim=1))
        return self.last(x)


class Sequence(gluon.HybridBlock):
    """Two recurrent layers over (batch, steps, units), and a dense layer of the last step."""

    def __init__(self, kind: type[rnn.HybridRecurrentCell]) -> None:
        super().__init__()
        with self.name_scope():
            self.rnn, self.dense = kind(256, num_layers=2, layout="NTC", input_size=256), nn.Dense(10)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.dense(F.slice_axis(self.rnn(x), axis=1, begin=-1, end=None).reshape((0, -1)))


NETWORKS: dict[str, Callable[[], Made]] = {
    "mlp": lambda: (networks.mlp(), networks.array(2, 784)),
    "vgg": lambda: (vgg(), images(64)),
    "resnet18": lambda: (vision.resnet18_v1(), images(224)),
    "resnet50": lambda: (vision.resnet50_v1(), images(224)),
    "mobilenet_v2": lambda: (vision.mobilenet_v2_1_0(), images(224)),
    "densenet121": lambda: (vision.densenet121(), images(224)),
    "unet": lambda: (UNet(), images(128)),
    "bert": lambda: (networks.Bert(layers=4), networks.integers(networks.VOCABULARY, 2, networks.LENGTH)),
    "lstm": lambda: (Sequence(rnn.LSTM), networks.array(2, 35, 256)),
    "gru": lambda: (Sequence(rnn.GRU), networks.array(2, 35, 256)),
}


def main() -> None:
    folder, size, *names = sys.argv[1:]
    for name in names:
        net, data = NETWORKS[name]()
        if size.isdigit():
            data = mx.nd.concat(*[data[:1]] * int(size), dim=0)
        if name == "bert":
            data = data.astype("int64")  # like PyTorch's
        net.initialize(mx.init.Xavier())
        net.hybridize()
        net(data)
        path = str(Path(folder) / f"{name}.ours.onnx")
        mx.onnx.export_model(net, onnx_file_path=path, check=False, dynamic=size == "open")


if __name__ == "__main__":
    main()
