"""PyTorch's networks: training steps and inference. ResNet and MobileNet are defined here: there is no torchvision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from serve import Step
from torch import nn

RNG = np.random.default_rng(0)
VOCABULARY, LENGTH = 30522, 128


def array(*shape: int) -> torch.Tensor:
    return torch.from_numpy(RNG.standard_normal(shape, dtype="float32"))


def integers(high: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(RNG.integers(0, high, shape))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def lenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.Tanh(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.Tanh(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(800, 500), nn.Tanh(), nn.Linear(500, 10),
    )  # fmt: skip


def conv(inputs: int, outputs: int, kernel: int, stride: int, groups: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)


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


def resnet18() -> nn.Module:
    return resnet(Basic, [2, 2, 2, 2])


def resnet50() -> nn.Module:
    return resnet(Bottleneck, [3, 4, 6, 3])


def mobilenet() -> nn.Module:
    parts: list[nn.Module] = [conv(3, 32, 3, 2), nn.BatchNorm2d(32), nn.ReLU()]
    channels = 32
    for outputs, stride in [
        (64, 1),
        (128, 2),
        (128, 1),
        (256, 2),
        (256, 1),
        (512, 2),
        *[(512, 1)] * 5,
        (1024, 2),
        (1024, 1),
    ]:
        parts += [conv(channels, channels, 3, stride, channels), nn.BatchNorm2d(channels), nn.ReLU()]
        parts += [conv(channels, outputs, 1, 1), nn.BatchNorm2d(outputs), nn.ReLU()]
        channels = outputs
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


class Layer(nn.Module):
    """One layer of an encoder, norms after the sums, over x (batch, length, units)."""

    def __init__(self, units: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query, self.key, self.value, self.out = (nn.Linear(units, units) for _ in range(4))
        self.up, self.down = nn.Linear(units, 4 * units), nn.Linear(4 * units, units)
        self.norm1, self.norm2 = nn.LayerNorm(units), nn.LayerNorm(units)
        self.drop = nn.Dropout(dropout)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (self.split(dense(x)) for dense in (self.query, self.key, self.value))
        dropout = self.dropout if self.training else 0.0
        context = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout)
        x = self.norm1(x + self.drop(self.out(context.transpose(1, 2).flatten(2))))
        return self.norm2(x + self.drop(self.down(F.gelu(self.up(x)))))


class Bert(nn.Module):
    """BERT-base: tokens (batch, length) to the hidden states of the last layer."""

    def __init__(self, units: int = 768, layers: int = 12, heads: int = 12) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, units), nn.Embedding(512, units)
        self.norm = nn.LayerNorm(units)
        self.layers = nn.Sequential(*(Layer(units, heads, 0.1) for _ in range(layers)))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1])
        return self.layers(self.norm(self.words(tokens) + self.places(places)))


def transformer(dropout: float) -> nn.Module:
    return nn.Sequential(Layer(256, 4, dropout), Layer(256, 4, dropout), nn.Linear(256, 1000))


class Recurrent(nn.Module):
    """Layers of LSTM as one operator, over data (T, N, units)."""

    def __init__(self, units: int, layers: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(units, units, num_layers=layers)

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        return self.lstm(data)[0]


def last(data: torch.Tensor) -> torch.Tensor:
    return data.to(memory_format=torch.channels_last)


def train(net: nn.Module, data: torch.Tensor, label: torch.Tensor) -> Step:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, fused=True)

    def step(repeat: int) -> None:
        for _ in range(repeat):
            optimizer.zero_grad()
            F.cross_entropy(net(data).flatten(0, -2), label.flatten()).backward()
            optimizer.step()

    return step


def infer(net: nn.Module, data: torch.Tensor) -> Step:
    net.eval()

    @torch.inference_mode()
    def step(repeat: int) -> None:
        for _ in range(repeat):
            net(data)

    return step


def frozen(net: nn.Module, data: torch.Tensor) -> Step:
    """Treats weights as constants of the compiled program, packed once: the recommended deployment on a CPU."""
    net.eval()
    net.requires_grad_(False)
    compiled = torch.compile(net, options={"freezing": True})

    @torch.no_grad()
    def step(repeat: int) -> None:
        for _ in range(repeat):
            compiled(data)

    return step


def halved(make: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    return lambda: make().bfloat16()


INFERENCE: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "resnet50_infer_1": (resnet50, lambda: array(1, 3, 224, 224)),
    "resnet50_infer_16": (resnet50, lambda: array(16, 3, 224, 224)),
    "mobilenet_infer_1": (mobilenet, lambda: array(1, 3, 224, 224)),
    "bert_infer": (Bert, lambda: integers(VOCABULARY, 1, LENGTH)),
    "resnet50_bfloat16": (halved(resnet50), lambda: array(1, 3, 224, 224).bfloat16()),
    "mobilenet_bfloat16": (halved(mobilenet), lambda: array(1, 3, 224, 224).bfloat16()),
    "bert_bfloat16": (halved(Bert), lambda: integers(VOCABULARY, 1, LENGTH)),
}
TRAINING: dict[str, Callable[[], tuple[nn.Module, torch.Tensor, torch.Tensor]]] = {
    "mlp_train": lambda: (mlp(), array(128, 784), integers(10, 128)),
    "lenet_train": lambda: (lenet(), array(64, 1, 28, 28), integers(10, 64)),
    "resnet18_train": lambda: (resnet18(), array(8, 3, 224, 224), integers(1000, 8)),
    "transformer_train": lambda: (transformer(0.0), array(8, 128, 256), integers(1000, 8, 128)),
    "transformer_dropout_train": lambda: (transformer(0.1), array(8, 128, 256), integers(1000, 8, 128)),
    "bert_train": lambda: (Bert(), integers(VOCABULARY, 8, LENGTH), integers(768, 8, LENGTH)),
    "lstm_train": lambda: (Recurrent(256, 2), array(35, 32, 256), integers(256, 35, 32)),
}


def train_case(name: str, compiled: bool, channels_last: bool) -> Step:
    net, data, label = TRAINING[name]()
    if channels_last:
        net, data = net.to(memory_format=torch.channels_last), last(data)
    return train(torch.compile(net) if compiled else net, data, label)


def infer_case(name: str, compiled: bool, channels_last: bool) -> Step:
    make, inputs = INFERENCE[name]
    net, data = make(), inputs()
    if channels_last:
        net, data = net.to(memory_format=torch.channels_last), last(data)
    return infer(torch.compile(net) if compiled else net, data)


def frozen_case(name: str) -> Step:
    make, inputs = INFERENCE[name]
    net, data = make(), inputs()
    return frozen(net.to(memory_format=torch.channels_last), last(data)) if data.dim() == 4 else frozen(net, data)


def variants(name: str) -> dict[str, Callable[[], Step]]:
    """The ways to run a network, by "NAME/VARIANT"; not every way makes sense for each network."""
    case = train_case if name in TRAINING else infer_case
    return {
        f"{name}/eager": lambda: case(name, False, False),
        f"{name}/compiled": lambda: case(name, True, False),
        f"{name}/channels_last": lambda: case(name, False, True),
        f"{name}/compiled_last": lambda: case(name, True, True),
        f"{name}/frozen": lambda: frozen_case(name),
    }


CASES = {key: step for name in (*TRAINING, *INFERENCE) for key, step in variants(name).items()}
