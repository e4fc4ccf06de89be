"""PyTorch's programs, in the style of its documentation; mirrors hybridnet_side.py case by case."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch_control_flow as control_flow
import torch_networks as networks
from serve import Step, serve
from torch_networks import array


def repeated(run: Callable[[], object]) -> Step:
    """Returns a step of calls without gradients, like in prediction."""

    @torch.inference_mode()
    def step(repeat: int) -> None:
        for _ in range(repeat):
            run()

    return step


def eager(run: Callable[..., object], *inputs: torch.Tensor) -> Step:
    """Returns a step of calls, like in a script."""

    def step(repeat: int) -> None:
        for _ in range(repeat):
            run(*inputs)

    return step


def record_backward() -> Step:
    x, w = array(4, 4).requires_grad_(), array(4, 4)
    ones = torch.ones(4, 4)

    def step(repeat: int) -> None:
        for _ in range(repeat):
            x.grad = None
            y = torch.tanh(x * w + w)
            z = torch.relu(y) * x
            z.backward(ones)

    return step


def expression(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.tanh(a * x + b) * torch.sigmoid(x) + x


def linear(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a * x + b * y + z


def on_16m(function: Callable[..., torch.Tensor], count: int) -> Step:
    inputs = [array(1 << 24) for _ in range(count)]
    return repeated(lambda: function(*inputs))


def copies_of_16m(count: int) -> Step:
    source, target = array(count << 24), torch.empty(count << 24)
    return repeated(lambda: target.copy_(source))


def adam_300(**options: bool) -> Step:
    params = [torch.nn.Parameter(array(*shape)) for shape in [(64, 64), (64,)] * 150]
    optimizer = torch.optim.Adam(params, lr=1e-3, **options)

    def step(repeat: int) -> float:
        spent = 0.0
        for _ in range(repeat):
            optimizer.zero_grad()
            torch.stack([param.sum() for param in params]).sum().backward()
            start = time.perf_counter()
            optimizer.step()
            spent += time.perf_counter() - start
        return spent

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


CASES = {
    "add_scalar/eager": lambda: eager(lambda x: x + 1, array(4, 4)),
    "multiply_add/eager": lambda: eager(lambda a, b, c: a * b + c, *(array(4, 4) for _ in range(3))),
    "dot_32/eager": lambda: eager(torch.mm, array(32, 32), array(32, 32)),
    "record_backward/eager": record_backward,
    "expression_16m/eager": lambda: on_16m(expression, 3),
    "expression_16m/compiled": lambda: on_16m(torch.compile(expression), 3),
    "expression_16m/copy_2": lambda: copies_of_16m(2),
    "linear_16m/eager": lambda: on_16m(linear, 5),
    "linear_16m/compiled": lambda: on_16m(torch.compile(linear), 5),
    "linear_16m/copy_3": lambda: copies_of_16m(3),
    "adam_300/foreach": lambda: adam_300(foreach=True),
    "adam_300/fused": lambda: adam_300(fused=True),
    "loader_0/eager": lambda: loader(0),
    "loader_2/eager": lambda: loader(2),
    **networks.CASES,
    **control_flow.CASES,
}

if __name__ == "__main__":
    serve(torch.__version__, CASES)
