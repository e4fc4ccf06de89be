"""Values of a graph that is exported: tensors of the ONNX graph, and sizes that depend on the shapes of inputs.

A graph is built for several sizes of its open axes, called trials. An axis with one size in all trials is fixed; the
size of another one is an :class:`Open`, an expression over sizes of tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._export_errors import does_not_follow

__all__ = ["Dim", "Element", "Number", "Open", "Spec", "Tensor", "as_int", "merged", "product"]

Shape = tuple[int, ...]


class Dim:
    """The size of an axis of a tensor, as a leaf of an expression."""

    __slots__ = ("axis", "tensor")

    def __init__(self, tensor: Tensor, axis: int) -> None:
        self.tensor, self.axis = tensor, axis


class Element:
    """A number of a tensor, as a leaf of an expression: it is known when the model runs."""

    __slots__ = ("index", "tensor")

    def __init__(self, tensor: Tensor, index: int) -> None:
        self.tensor, self.index = tensor, index


class Unexplained:
    """A size that is known for each trial only; its expression is searched for when it is used."""

    __slots__ = ()


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "max": max,
    "min": min,
}


class Open:
    """A size that depends on the shapes of inputs.

    Attributes
    ----------
    trials : tuple of int
        The size for each trial.
    form : Dim, Element, Unexplained, or (operator, operand, operand)
        The expression; operands are ints and Opens.
    """

    __slots__ = ("form", "trials")

    def __init__(self, trials: Sequence[int], form: Any = None) -> None:
        self.trials = tuple(trials)
        self.form = Unexplained() if form is None else form

    def __repr__(self) -> str:
        return "Open" + repr(self.trials)

    def __bool__(self) -> bool:
        raise does_not_follow("a decision of the export", self)

    __index__ = __int__ = __float__ = __bool__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Open) and other.trials == self.trials

    def __hash__(self) -> int:
        return hash(self.trials)

    def _with(self, operator: str, other: Number, swap: bool = False) -> Number:
        a, b = (other, self) if swap else (self, other)
        left, right = (x.trials if isinstance(x, Open) else (x,) * len(self.trials) for x in (a, b))
        trials = tuple(_OPERATORS[operator](x, y) for x, y in zip(left, right, strict=True))
        if len(set(trials)) == 1:
            return trials[0]
        if trials == self.trials:
            return self
        return Open(trials, (operator, a, b))

    def __add__(self, other: Number) -> Number:
        return self._with("+", other)

    def __radd__(self, other: Number) -> Number:
        return self._with("+", other, swap=True)

    def __sub__(self, other: Number) -> Number:
        return self._with("-", other)

    def __rsub__(self, other: Number) -> Number:
        return self._with("-", other, swap=True)

    def __mul__(self, other: Number) -> Number:
        return self._with("*", other)

    def __rmul__(self, other: Number) -> Number:
        return self._with("*", other, swap=True)

    def __floordiv__(self, other: Number) -> Number:
        return self._with("//", other)

    def __rfloordiv__(self, other: Number) -> Number:
        return self._with("//", other, swap=True)

    def __mod__(self, other: Number) -> Number:
        return self._with("%", other)

    def maximum(self, other: Number) -> Number:
        """The larger one."""
        return self._with("max", other)

    def minimum(self, other: Number) -> Number:
        """The smaller one."""
        return self._with("min", other)


Number = int | Open


def merged(values: Sequence[Any]) -> Any:
    """One parameter from its values in all trials: numbers that differ become Open, also inside tuples."""
    first = values[0]
    if all(type(value) is type(first) and value == first for value in values[1:]):
        return first
    if all(isinstance(value, (tuple, list)) and len(value) == len(first) for value in values):
        return tuple(merged(items) for items in zip(*values, strict=True))
    if all(isinstance(value, (int, float)) and value == math.trunc(value) for value in values):
        return Open([int(value) for value in values])
    raise does_not_follow("a parameter", values)


def product(numbers: Sequence[Number]) -> Number:
    """The product of sizes."""
    result: Number = 1
    for number in numbers:
        result = result * number
    return result


def as_int(number: Any, name: str) -> int:
    """A parameter that must not depend on sizes."""
    if isinstance(number, Open):
        raise does_not_follow(name, number)
    return int(number)


class Spec:
    """The shape of a value for each trial, and its dtype."""

    __slots__ = ("dtype", "shapes")

    def __init__(self, shapes: Sequence[Shape], dtype: str) -> None:
        self.shapes, self.dtype = tuple(tuple(int(size) for size in shape) for shape in shapes), dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shapes[0])

    def fixed(self, axis: int) -> int | None:
        """The size of an axis; None if it depends on the sizes of the inputs."""
        sizes = {shape[axis] for shape in self.shapes}
        return sizes.pop() if len(sizes) == 1 else None

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The sizes, with None for those that depend on the sizes of the inputs."""
        return tuple(self.fixed(axis) for axis in range(self.ndim))

    @property
    def is_fixed(self) -> bool:
        """Whether no size depends on those of the inputs."""
        return len(set(self.shapes)) == 1

    @property
    def numbers(self) -> list[Number]:
        """The sizes as numbers, without the tensor that they are read from."""
        return [merged(sizes) for sizes in zip(*self.shapes, strict=True)]

    @property
    def has_elements(self) -> bool:
        """Whether no trial has a size of zero."""
        return not any(0 in shape for shape in self.shapes)


class Tensor:
    """A tensor of the ONNX graph.

    Attributes
    ----------
    name : str
        Its name in the file; nodes get their final names when the graph is complete.
    dtype : str
        Its dtype in the file.
    spec : Spec or None
        Its shapes, where a form knows them.
    const : numpy.ndarray or None
        The elements, if they are a constant of the graph (parameters are not).
    parameter : numpy.ndarray or None
        The elements of a parameter.
    depth : int
        The number of graphs around the one that makes it.
    source : object
        What a form notes for the forms that read the tensor.
    """

    __slots__ = ("const", "depth", "dtype", "name", "parameter", "source", "spec")

    def __init__(
        self, name: str, dtype: str, spec: Spec | None = None, *, const: np.ndarray | None = None, depth: int = 0
    ) -> None:
        self.name, self.dtype, self.spec, self.const, self.depth = name, dtype, spec, const, depth
        self.parameter: np.ndarray | None = None
        self.source: Any = None

    def __repr__(self) -> str:
        return f"<Tensor {self.name}: {self.dtype}{list(self.spec.shape) if self.spec else ''}>"

    @property
    def known(self) -> np.ndarray | None:
        """The elements of a constant or a parameter."""
        return self.const if self.const is not None else self.parameter

    def _known(self) -> Spec:
        assert self.spec is not None, f"the shape of '{self.name}' was not noted"
        return self.spec

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shape for each trial."""
        return self._known().shapes

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._known().ndim

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The sizes, with None for those that depend on the sizes of the inputs."""
        return self._known().shape

    def dim(self, axis: int) -> Number:
        """The size of an axis: an int, or an Open that reads it from this tensor."""
        spec = self._known()
        axis = axis % spec.ndim
        fixed = spec.fixed(axis)
        return fixed if fixed is not None else Open([shape[axis] for shape in spec.shapes], Dim(self, axis))

    @property
    def dims(self) -> list[Number]:
        """The sizes of all axes."""
        return [self.dim(axis) for axis in range(self.ndim)]
