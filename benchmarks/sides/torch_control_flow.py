"""PyTorch's recurrent layers, loops and branches: Python control flow, like in programs of PyTorch users."""

from __future__ import annotations

import torch
from serve import Step
from torch import nn
from torch_networks import Recurrent

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


def fused() -> nn.Module:
    return Recurrent(HIDDEN, 2)


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
            net.zero_grad()
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
    "lstm_foreach/cells": lambda: forward(Cells()),
    "lstm_foreach/compiled_cells": lambda: forward(torch.compile(Cells())),
    "lstm_foreach/fused": lambda: forward(fused()),
    "lstm_foreach_train/cells": lambda: forward_backward(Cells()),
    "lstm_foreach_train/compiled_cells": lambda: forward_backward(torch.compile(Cells())),
    "lstm_foreach_train/fused": lambda: forward_backward(fused()),
    "lstm_fused/fused": lambda: forward(fused()),
    "lstm_fused_train/fused": lambda: forward_backward(fused()),
    "while_1000/eager": while_1000,
    "cond_call/eager": cond_call,
}
