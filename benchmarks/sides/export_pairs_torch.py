"""PyTorch's half of benchmarks/onnx_export.py: python export_pairs_torch.py FOLDER open|BATCH NETWORK...

Writes FOLDER/NETWORK.dynamo.onnx and FOLDER/NETWORK.script.onnx, one by each of PyTorch's exporters.
"""

from __future__ import annotations

import itertools
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
import torch_networks as networks
from torch import nn

Made = tuple[nn.Module, torch.Tensor]


def images(size: int) -> torch.Tensor:
    return networks.array(2, 3, size, size)


def norm(channels: int) -> list[nn.Module]:
    return [nn.BatchNorm2d(channels), nn.ReLU()]


def vgg() -> nn.Module:
    parts: list[nn.Module] = []
    before = 3
    for channels in (32, 64, 128):
        parts += [nn.Conv2d(before, channels, 3, padding=1), nn.ReLU()]
        parts += [nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        before = channels
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(128 * 64, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, 10))


class Inverted(nn.Module):
    def __init__(self, inputs: int, outputs: int, factor: int, stride: int) -> None:
        super().__init__()
        wide = inputs * factor
        self.adds = inputs == outputs and stride == 1
        self.body = nn.Sequential(
            networks.conv(inputs, wide, 1, 1), nn.BatchNorm2d(wide), nn.ReLU6(),
            networks.conv(wide, wide, 3, stride, wide), nn.BatchNorm2d(wide), nn.ReLU6(),
            networks.conv(wide, outputs, 1, 1), nn.BatchNorm2d(outputs),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x) + x if self.adds else self.body(x)


STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def mobilenet_v2() -> nn.Module:
    parts: list[nn.Module] = [networks.conv(3, 32, 3, 2), nn.BatchNorm2d(32), nn.ReLU6()]
    before = 32
    for factor, channels, count, stride in STAGES:
        for i in range(count):
            parts.append(Inverted(before, channels, factor, 1 if i else stride))
            before = channels
    parts += [networks.conv(before, 1280, 1, 1), nn.BatchNorm2d(1280), nn.ReLU6(), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*parts, networks.conv(1280, 1000, 1, 1), nn.Flatten())


class Dense(nn.Module):
    def __init__(self, inputs: int, growth: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *norm(inputs), networks.conv(inputs, 4 * growth, 1, 1), *norm(4 * growth),
            networks.conv(4 * growth, growth, 3, 1),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, self.body(x)], 1)


def densenet121() -> nn.Module:
    parts: list[nn.Module] = [networks.conv(3, 64, 7, 2), *norm(64), nn.MaxPool2d(3, 2, 1)]
    channels, counts = 64, (6, 12, 24, 16)
    for stage, count in enumerate(counts):
        for _ in range(count):
            parts.append(Dense(channels, 32))
            channels += 32
        if stage < len(counts) - 1:
            parts += [*norm(channels), networks.conv(channels, channels // 2, 1, 1), nn.AvgPool2d(2)]
            channels //= 2
    return nn.Sequential(*parts, *norm(channels), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def twice(inputs: int, outputs: int) -> nn.Module:
    convolutions = networks.conv(inputs, outputs, 3, 1), networks.conv(outputs, outputs, 3, 1)
    return nn.Sequential(*(layer for made in convolutions for layer in (made, *norm(outputs))))


class UNet(nn.Module):
    def __init__(self, width: int = 16, levels: int = 3) -> None:
        super().__init__()
        sizes = [width << level for level in range(levels + 1)]
        self.first, self.last = twice(3, width), nn.Conv2d(width, 2, 1)
        self.down = nn.ModuleList(twice(a, b) for a, b in itertools.pairwise(sizes))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in itertools.pairwise(sizes))
        self.joined = nn.ModuleList(twice(2 * a, a) for a in sizes[:-1])
        self.pool = nn.MaxPool2d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = [self.first(x)]
        for down in self.down:
            kept.append(down(self.pool(kept[-1])))
        x = kept.pop()
        for up, joined in reversed(list(zip(self.up, self.joined))):
            x = joined(torch.cat([up(x), kept.pop()], 1))
        return self.last(x)


class Sequence(nn.Module):
    """Two recurrent layers over (batch, steps, units), and a dense layer of the last step."""

    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.rnn, self.dense = kind(256, 256, num_layers=2, batch_first=True), nn.Linear(256, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dense(self.rnn(x)[0][:, -1])


NETWORKS: dict[str, Callable[[], Made]] = {
    "mlp": lambda: (networks.mlp(), networks.array(2, 784)),
    "vgg": lambda: (vgg(), images(64)),
    "resnet18": lambda: (networks.resnet18(), images(224)),
    "resnet50": lambda: (networks.resnet50(), images(224)),
    "mobilenet_v2": lambda: (mobilenet_v2(), images(224)),
    "densenet121": lambda: (densenet121(), images(224)),
    "unet": lambda: (UNet(), images(128)),
    "bert": lambda: (networks.Bert(layers=4), networks.integers(networks.VOCABULARY, 2, networks.LENGTH)),
    "lstm": lambda: (Sequence(nn.LSTM), networks.array(2, 35, 256)),
    "gru": lambda: (Sequence(nn.GRU), networks.array(2, 35, 256)),
}


def main() -> None:
    folder, size, *names = sys.argv[1:]
    warnings.simplefilter("ignore")
    for name in names:
        net, data = NETWORKS[name]()
        if size.isdigit():
            data = data[:1].expand(int(size), *data.shape[1:]).clone()
        axes = {0: "batch"} if size == "open" else None
        for dynamo in (True, False):
            path = str(Path(folder) / f"{name}.{'dynamo' if dynamo else 'script'}.onnx")
            shapes = {"dynamic_shapes" if dynamo else "dynamic_axes": (axes,) if dynamo else {"data": axes}}
            options = {"verbose": False, "external_data": False, **(shapes if axes else {})}
            try:
                torch.onnx.export(net.eval(), (data,), path, input_names=["data"], dynamo=dynamo, **options)
            except Exception:
                traceback.print_exc(limit=-1)


if __name__ == "__main__":
    main()
