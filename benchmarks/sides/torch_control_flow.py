"""PyTorch's loops and branches: Python ones, as PyTorch users write them."""

from __future__ import annotations

import torch
from serve import Step
from torch import nn

HIDDEN, BATCH, LENGTH = 256, 32, 35


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.of_input = nn.ModuleList(nn.Linear(HIDDEN, 4 * HIDDEN) for _ in range(2))
        self.of_state = nn.ModuleList(nn.Linear(HIDDEN, 4 * HIDDEN) for _ in range(2))

    def forward(self, data: torch.Tensor, states: list[torch.Tensor]) -> torch.Tensor:
        states, outputs = list(states), []
        for x in data:
            for layer in range(2):
                h, c = states[2 * layer], states[2 * layer + 1]
                i, f, g, o = (self.of_input[layer](x) + self.of_state[layer](h)).chunk(4, 1)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                x = torch.sigmoid(o) * torch.tanh(c)
                states[2 * layer], states[2 * layer + 1] = x, c
            outputs.append(x)
        return torch.stack(outputs)


def arguments() -> tuple[torch.Tensor, list[torch.Tensor]]:
    return torch.randn(LENGTH, BATCH, HIDDEN), [torch.zeros(BATCH, HIDDEN) for _ in range(4)]


def lstm_foreach() -> Step:
    net, args = Lstm(), arguments()

    @torch.no_grad()
    def step(repeat: int) -> None:
        for _ in range(repeat):
            net(*args)

    return step


def lstm_foreach_train() -> Step:
    net, args = Lstm(), arguments()

    def step(repeat: int) -> None:
        for _ in range(repeat):
            net.zero_grad(set_to_none=True)
            net(*args).sum().backward()

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
    "lstm_foreach": lstm_foreach,
    "lstm_foreach_train": lstm_foreach_train,
    "while_1000": while_1000,
    "cond_call": cond_call,
}
