"""Steps of optimizers, and gradients: the operators of ai.onnx.preview.training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._arithmetic import calculate
from .._errors import refuse
from .._table import form

_DOMAIN = "ai.onnx.preview.training"


class Terms:
    """Tensors in formulas: ``+ - * /`` with others and with numbers."""

    def __init__(self, g: Any, value: Any) -> None:
        self.g, self.value = g, value

    def _with(self, operator: str, other: Any, is_first: bool = False) -> Terms:
        other = other.value if isinstance(other, Terms) else other
        pair = (other, self.value) if is_first else (self.value, other)
        return Terms(self.g, calculate(self.g, operator, *pair))

    def __add__(self, other: Any) -> Terms:
        return self._with("+", other)

    def __sub__(self, other: Any) -> Terms:
        return self._with("-", other)

    def __rsub__(self, other: Any) -> Terms:
        return self._with("-", other, is_first=True)

    def __mul__(self, other: Any) -> Terms:
        return self._with("*", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Terms:
        return self._with("/", other)

    def root(self) -> Terms:
        """Square roots."""
        return Terms(self.g, self.g.emit("sqrt", [self.value]))

    def power_of(self, base: float) -> Terms:
        """base to the power of the elements."""
        return Terms(self.g, self.g.emit("_rpower_scalar", [self.value], scalar=base))

    def if_positive(self, count: Terms, otherwise: Any) -> Terms:
        """The elements where a count is above 0."""
        is_later = self.g.emit("_npi_greater_scalar", [count.value], scalar=0)
        if isinstance(otherwise, Terms):
            return Terms(self.g, self.g.emit("_npi_where", [is_later, self.value, otherwise.value]))
        return Terms(self.g, self.g.emit("_npi_where_rscalar", [is_later, self.value], scalar=otherwise))


Update = Callable[..., tuple[Terms, ...]]


def _step(onnx_name: str, num_states: int) -> Callable[[Update], Update]:
    """Registers an optimizer: update(node, rate, count, x, gradient with weight decay, *states) -> (x, *states)."""

    def register(update: Update) -> Update:
        @form(onnx_name, domain=_DOMAIN)
        def make(g: Any, node: Any, rate: Any, count: Any, *tensors: Any) -> tuple[Any, ...]:
            number = len(tensors) // (num_states + 2)
            made = []
            for index in range(number):
                x, gradient, *states = (Terms(g, value) for value in tensors[index::number])
                decay = node.attr("norm_coefficient", 0.0)
                gradient = decay * x + gradient if decay else gradient
                now = Terms(g, g.cast(count, x.value.dtype))
                made.append(update(node, Terms(g, g.cast(rate, x.value.dtype)), now, x, gradient, *states))
            return tuple(results[part].value for part in range(num_states + 1) for results in made)

        return update

    return register


@_step("Adagrad", 1)
def adagrad(node: Any, rate: Terms, count: Terms, x: Terms, gradient: Terms, squares: Terms) -> tuple[Terms, ...]:
    rate = rate / (count * node.attr("decay_factor", 0.0) + 1)
    squares = squares + gradient * gradient
    return x - rate * gradient / (squares.root() + node.attr("epsilon", 1e-6)), squares


@_step("Adam", 2)
def adam(
    node: Any, rate: Terms, count: Terms, x: Terms, gradient: Terms, mean: Terms, squares: Terms
) -> tuple[Terms, ...]:
    alpha, beta = node.attr("alpha", 0.9), node.attr("beta", 0.999)
    mean = alpha * mean + (1 - alpha) * gradient
    squares = beta * squares + (1 - beta) * gradient * gradient
    corrected = rate * (1 - count.power_of(beta)).root() / (1 - count.power_of(alpha))
    rate = corrected.if_positive(count, rate)
    moved = x - rate * mean / (squares.root() + node.attr("epsilon", 1e-6))
    return (1 - node.attr("norm_coefficient_post", 0.0)) * moved, mean, squares


@_step("Momentum", 1)
def momentum(node: Any, rate: Terms, count: Terms, x: Terms, gradient: Terms, velocity: Terms) -> tuple[Terms, ...]:
    alpha = node.attr("alpha")
    beta = (count * 0.0 + node.attr("beta")).if_positive(count, 1.0)
    velocity = alpha * velocity + beta * gradient
    direction = gradient + alpha * velocity if node.attr("mode") == "nesterov" else velocity
    return x - rate * direction, velocity


@form("Gradient", domain=_DOMAIN)
def gradient(g: Any, node: Any, *values: Any) -> Any:
    """Gradients of the sum of y's elements. The inputs are the tensors that xs and zs name."""
    names = [*node.attr("xs"), *node.attr("zs", [])]
    if any(g.lookup(name) is not value for name, value in zip(names, values, strict=True)):
        raise refuse("an input of Gradient is not the tensor that its xs or zs names", node=node.proto)
    y = g.lookup(node.attr("y"))
    variables = values[: len(node.attr("xs"))]
    if any(x.symbol.list_inputs() != [x.symbol.name] for x in variables):
        raise refuse(
            "a gradient is asked for a tensor that the graph computes",
            because="gradients inside a graph are those of its inputs and parameters",
            node=node.proto,
        )
    return g.emit("_gradient", [y, *variables], name=node.name, num_losses=1, num_args=1 + len(variables))
