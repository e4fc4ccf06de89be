"""PyTorch's loops and branches: Python ones, as PyTorch users write them."""

from __future__ import annotations

import torch
from serve import Step
from torch import nn

HIDDEN, BATCH, LENGTH = 256, 32, 35


class Cells(nn.Module):
    """Two layers, a Python loop over data (T, N, HIDDEN)."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList(nn.LSTMCell(HIDDEN, HIDDEN) for _ in range(2))

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        zeros = torch.zeros(BATCH, HIDDEN)
        states, outputs = [(zeros, zeros), (zeros, zeros)], []
        for x in data:
            for layer, cell in enumerate(self.cells):
                states[layer] = cell(x, states[layer])
                x = states[layer][0]
            outputs.append(x)
        return torch.stack(outputs)


class Fused(nn.Module):
    """The same as one operator of PyTorch's."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(HIDDEN, HIDDEN, num_layers=2)

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        return self.lstm(data)[0]


def forward(net: nn.Module) -> Step:
    data = torch.randn(LENGTH, BATCH, HIDDEN)

    @torch.inference_mode()
    def step(repeat: int) -> None:
        for _ in range(repeat):
            net(data)

    return step


def forward_backward(net: nn.Module) -> Step:
    data = torch.randn(LENGTH, BATCH, HIDDEN)

    def step(repeat: int) -> None:
        for _ in range(repeat):
            net.zero_grad(set_to_none=True)
            net(data).sum().backward()

    return step


def while_1000() -> Step:
    @torch.no_grad()
    def step(repeat: int) -> None:
        for _ in range(repeat):
            i, x = torch.zeros(1), torch.ones(8)
            while i < 1000:
                i, x = i + 1, x * 0.999

    return step


def cond_call() -> Step:
    x = torch.ones(8)

    @torch.no_grad()
    def step(repeat: int) -> None:
        for _ in range(repeat):
            _ = x * 2 if x.sum() > 0 else x * 3

    return step


CASES = {
    "lstm_foreach": lambda: forward(Cells()),
    "lstm_fused": lambda: forward(Fused()),
    "lstm_compiled": lambda: forward(torch.compile(Cells())),
    "lstm_foreach_train": lambda: forward_backward(Cells()),
    "lstm_fused_train": lambda: forward_backward(Fused()),
    "lstm_compiled_train": lambda: forward_backward(torch.compile(Cells())),
    "while_1000": while_1000,
    "cond_call": cond_call,
}
