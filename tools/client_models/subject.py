"""The interface of models that ``client_libraries.py`` runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import mxnet as mx
import numpy as np

LEARNING_RATE = 1e-5


class Subject(Protocol):
    """A model with everything that is needed to run it."""

    def forward(self) -> list[np.ndarray]:
        """Returns predictions, computed imperatively."""

    def hybridize(self) -> None:
        """Turns the model into a graph for all later calls."""

    def train(self) -> None:
        """Runs one training step. Raises AssertionError if no parameter gets a gradient, or one is not finite."""


def arrays_in(result: Any) -> Iterator[Any]:
    """The arrays of a block's result, at any depth of lists and tuples."""
    if isinstance(result, list | tuple):
        for part in result:
            yield from arrays_in(part)
    elif isinstance(result, dict):
        yield from arrays_in(list(result.values()))
    elif result is not None and hasattr(result, "asnumpy"):
        yield result


def random(*shape: int, low: float = -1.0, high: float = 1.0) -> Any:
    """An array of float32 of this shape, the same in every run."""
    return mx.nd.array(np.random.RandomState(len(shape)).uniform(low, high, size=shape))


def whole(*shape: int, below: int) -> Any:
    """A float32 array of integers from 0 to ``below`` - 1."""
    return mx.nd.array(np.random.RandomState(len(shape)).randint(0, below, size=shape))


class BlockSubject:
    """A Gluon block that is called with arrays.

    ``training`` contains its arguments in training, if they differ; ``loss`` computes the number to minimize from the
    block's result, by default the mean square of all real outputs.
    """

    def __init__(
        self,
        block: Any,
        *arguments: Any,
        training: tuple[Any, ...] | None = None,
        loss: Callable[[Any], Any] | None = None,
        initialize: bool = True,
    ) -> None:
        self.block = block
        self.arguments = arguments
        self.training = training or arguments
        self.loss = loss or _mean_square
        if initialize:
            block.initialize(mx.init.Xavier())
        # Sparse parameters can be read only after a trainer was made for them.
        self.trainer = mx.gluon.Trainer(block.collect_params(), "sgd", {"learning_rate": LEARNING_RATE})

    def forward(self) -> list[np.ndarray]:
        return [array.asnumpy() for array in arrays_in(self.block(*_copied(self.arguments)))]

    def hybridize(self) -> None:
        self.block.hybridize()

    def train(self) -> None:
        self.hybridize()  # drops graphs that were traced outside of training, since models depend on the mode
        with mx.autograd.record():
            loss = self.loss(self.block(*_copied(self.training)))
        loss.backward()
        check_gradients(self.block.collect_params())
        self.trainer.step(1, ignore_stale_grad=True)
        mx.nd.waitall()


def _copied(arguments: Any) -> Any:
    """The same arrays in new lists: some models write new states into the lists of their arguments."""
    if isinstance(arguments, list | tuple):
        return type(arguments)(_copied(part) for part in arguments)
    return arguments


def _mean_square(result: Any) -> Any:
    real = [array for array in arrays_in(result) if np.dtype(array.dtype).kind == "f"]
    return sum((array * array).mean() for array in real)


def check_gradients(parameters: Any) -> None:
    """Raises AssertionError unless all gradients are finite and one of them is not 0."""
    sizes = {}
    for name, parameter in parameters.items():
        if parameter.grad_req != "null" and parameter._data is not None:
            gradient = parameter.list_grad()[0]
            sizes[name] = float(np.abs(gradient.asnumpy()).max(initial=0.0))
    broken = [name for name, size in sizes.items() if not np.isfinite(size)]
    assert not broken, f"gradients that are not finite: {broken[:3]}"
    assert any(sizes.values()), "no parameter has a gradient"
