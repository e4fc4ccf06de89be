"""Values of a graph that is imported: what is known about a tensor, and the Symbol that computes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["MOST_SIZES", "Fixed", "Value", "sizes_of"]

# Tensors of more integers are data, not sizes.
MOST_SIZES = 64

Shape = tuple[int, ...]


class Fixed(NamedTuple):
    """The elements of an input in place of its shape: the graph is built for these alone."""

    array: np.ndarray


class Value:
    """One tensor of the ONNX graph.

    Attributes
    ----------
    name : str
        Its name in the file, or one that is derived from it.
    shapes : tuple of tuple of int
        Its shape for each of the importer's trial sizes. An axis with one size in all trials has that size always.
    dtype : str
        Its dtype in HybridNet.
    const : numpy.ndarray or None
        The elements, if they are known while the file is imported.
    sizes : numpy.ndarray of object or None
        The elements as numbers and Sizes, for small tensors of numbers that follow from shapes.
    element : str or None
        The ONNX element type if HybridNet holds it in a wider one; see _element_types.py.
    """

    __slots__ = ("_make", "_symbol", "const", "dtype", "element", "name", "shapes", "sizes")

    def __init__(
        self,
        name: str,
        shapes: tuple[Shape, ...],
        dtype: str,
        *,
        symbol: Any = None,
        make: Callable[[], Any] | None = None,
        const: np.ndarray | None = None,
        sizes: np.ndarray | None = None,
    ) -> None:
        self.name, self.shapes, self.dtype = name, shapes, dtype
        self._symbol, self._make = symbol, make
        self.const = const
        self.sizes = sizes
        self.element: str | None = None
        if sizes is None and const is not None and const.ndim <= 1 and const.size <= MOST_SIZES and const.dtype != bool:
            self.sizes = np.array([item.item() for item in const.reshape(-1)], dtype=object).reshape(const.shape)

    def __repr__(self) -> str:
        return f"<Value {self.name}: {self.dtype}{list(self.shapes)}>"

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shapes[0])

    @property
    def is_const(self) -> bool:
        """Whether the elements are known while the file is imported."""
        return self.const is not None

    @property
    def has_symbol(self) -> bool:
        """Whether a node reads it, or it is a node's result."""
        return self._symbol is not None

    @property
    def symbol(self) -> Any:
        """The Symbol of the tensor; nodes that compute sizes are made when it is first asked for."""
        if self._symbol is None:
            assert self._make is not None
            self._symbol = self._make()
        return self._symbol

    def fixed(self, axis: int) -> int | None:
        """The size of an axis, None if it depends on the sizes of the inputs."""
        sizes = {shape[axis] for shape in self.shapes}
        return sizes.pop() if len(sizes) == 1 else None

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape, with None for sizes that depend on those of the inputs."""
        return tuple(self.fixed(axis) for axis in range(self.ndim))

    def spec(self, trial: int) -> tuple[Shape, str]:
        """Shape and dtype for a trial."""
        return self.shapes[trial], self.dtype


def sizes_of(value: Value) -> np.ndarray | None:
    """The elements as an array of numbers and Sizes: of tensors of sizes, and of small constants of any rank."""
    if value.sizes is not None or value.const is None or value.const.size > MOST_SIZES:
        return value.sizes
    return np.array([item.item() for item in value.const.reshape(-1)], dtype=object).reshape(value.const.shape)
