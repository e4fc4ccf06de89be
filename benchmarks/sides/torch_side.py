"""PyTorch's half of the benchmarks; mirrors hybridnet_side.py case by case.

ResNets are written out: there is no torchvision.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
import torch_control_flow as control_flow
from serve import Step, serve
from torch import nn

RNG = np.random.default_rng(0)


def array(*shape: int) -> torch.Tensor:
    return torch.from_numpy(RNG.standard_normal(shape, dtype="float32"))


def labels(count: int, classes: int) -> torch.Tensor:
    return torch.from_numpy(RNG.integers(0, classes, count))


def add_4x4() -> Step:
    a, b = array(4, 4), array(4, 4)

    def step(repeat: int) -> None:
        for _ in range(repeat):
            a + b

    return step


def record_backward_5() -> Step:
    x, w = array(4, 4).requires_grad_(), array(4, 4)
    ones = torch.ones(4, 4)

    def step(repeat: int) -> None:
        for _ in range(repeat):
            x.grad = None
            y = torch.tanh(x * w + w)
            z = torch.relu(y) * x
            z.backward(ones)

    return step


def train_step(net: nn.Module, data: torch.Tensor, label: torch.Tensor) -> Step:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def step(repeat: int) -> None:
        for _ in range(repeat):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(net(data), label).backward()
            optimizer.step()

    return step


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def mlp_step() -> Step:
    return train_step(mlp(), array(128, 784), labels(128, 10))


def lenet() -> Step:
    net = nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.Tanh(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.Tanh(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(800, 500), nn.Tanh(), nn.Linear(500, 10),
    )  # fmt: skip
    last = torch.channels_last
    return train_step(net.to(memory_format=last), array(64, 1, 28, 28).to(memory_format=last), labels(64, 10))


def conv(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


class Basic(nn.Module):
    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            conv(inputs, width, 3, stride),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            conv(width, width, 3, 1),
            nn.BatchNorm2d(width),
        )
        self.shortcut = shortcut(inputs, width, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            conv(inputs, width, 1, stride), nn.BatchNorm2d(width), nn.ReLU(),
            conv(width, width, 3, 1), nn.BatchNorm2d(width), nn.ReLU(),
            conv(width, 4 * width, 1, 1), nn.BatchNorm2d(4 * width),
        )  # fmt: skip
        self.shortcut = shortcut(inputs, 4 * width, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    if inputs == outputs and stride == 1:
        return nn.Identity()
    return nn.Sequential(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))


def resnet(block: type[nn.Module], layers: list[int]) -> nn.Module:
    parts: list[nn.Module] = [conv(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, count in enumerate(layers):
        for i in range(count):
            width = 64 << stage
            parts.append(block(channels, width, 2 if stage and not i else 1))
            channels = width * block.expansion
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def resnet18_train() -> Step:
    last = torch.channels_last
    net = resnet(Basic, [2, 2, 2, 2]).to(memory_format=last)
    return train_step(net, array(8, 3, 224, 224).to(memory_format=last), labels(8, 1000))


def resnet50_infer(batch: int) -> Step:
    net = resnet(Bottleneck, [3, 4, 6, 3]).eval()
    data = array(batch, 3, 224, 224)

    def step(repeat: int) -> None:
        with torch.inference_mode():
            for _ in range(repeat):
                net(data)

    return step


def expression_16m() -> Step:
    x, a, b = (array(1 << 24) for _ in range(3))

    def step(repeat: int) -> None:
        with torch.inference_mode():
            for _ in range(repeat):
                torch.tanh(a * x + b) * torch.sigmoid(x) + x

    return step


def linear_16m() -> Step:
    x, y, z, a, b = (array(1 << 24) for _ in range(5))

    def step(repeat: int) -> None:
        with torch.inference_mode():
            for _ in range(repeat):
                a * x + b * y + z

    return step


def loader(workers: int) -> Step:
    data = array(1024, 3, 64, 64)
    dataset = torch.utils.data.TensorDataset(data, torch.arange(1024).float())
    batches = torch.utils.data.DataLoader(dataset, batch_size=32, num_workers=workers, persistent_workers=workers > 0)

    def step(repeat: int) -> None:
        for _ in range(repeat):
            for _batch in batches:
                pass

    return step


if __name__ == "__main__":
    serve(
        torch.__version__,
        {
            "add_4x4": add_4x4,
            "record_backward_5": record_backward_5,
            "mlp_imperative": mlp_step,
            "mlp_hybrid": mlp_step,
            "lenet_hybrid": lenet,
            "resnet18_train": resnet18_train,
            "resnet50_infer_1": lambda: resnet50_infer(1),
            "resnet50_infer_16": lambda: resnet50_infer(16),
            "expression_16m": expression_16m,
            "linear_16m": linear_16m,
            "loader_0": lambda: loader(0),
            "loader_2": lambda: loader(2),
            **control_flow.CASES,
        },
    )
