"""Random programs of views and writes that run on arrays and, as a reference, on NumPy with explicit memory.

The reference carries a tangent beside each value, in memory of the same layout: a view is a view of
both, and a write writes both. So it knows the derivative of the result along one direction without a tape.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ROWS, COLUMNS = 3, 4


@dataclass
class Dual:
    """An array of the reference: its values, and their derivatives in memory of the same layout."""

    value: np.ndarray
    tangent: np.ndarray
    detached: bool = False
    of_leaf: bool = False  # writing to it is an error

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    def tangents(self) -> np.ndarray:
        return np.zeros_like(self.tangent) if self.detached else self.tangent

    def view(self, f: Callable[[np.ndarray], np.ndarray]) -> Dual:
        return Dual(f(self.value), f(self.tangent), self.detached, self.of_leaf)

    def copy_of(self, f: Callable[[np.ndarray], np.ndarray]) -> Dual:
        return Dual(f(self.value).copy(), f(self.tangents()).copy())

    def write(self, key: Any, value: np.ndarray, tangent: np.ndarray | float) -> None:
        self.value[key] = value
        self.tangent[key] = tangent


def times(a: Dual, b: Dual) -> tuple[np.ndarray, np.ndarray]:
    return a.value * b.value, a.tangents() * b.value + a.value * b.tangents()


@dataclass
class Program:
    """A list of statements; each runs on the arrays of both sides and adds a line of text."""

    rng: np.random.Generator
    arrays: list[Any]
    duals: list[Dual]
    nd: Any
    np_interface: bool = False
    lines: list[str] = field(default_factory=list)

    def pick(self, shape: tuple[int, ...] | None = None, writable: bool = False) -> int | None:
        fitting = [
            i
            for i, dual in enumerate(self.duals)
            if (shape is None or dual.shape == shape) and not (writable and dual.of_leaf)
        ]
        return int(self.rng.choice(fitting)) if fitting else None

    def add(self, line: str, array: Any, dual: Dual) -> None:
        self.lines.append(f"a{len(self.arrays)} = {line}")
        self.arrays.append(array)
        self.duals.append(dual)

    def step(self) -> None:
        kinds = [self.view, self.view, self.product, self.sine, self.in_place, self.in_place, self.assign, self.assign]
        kinds += [self.into, self.copying_slice, self.scattered, self.detached, self.zeros]
        kinds[int(self.rng.integers(len(kinds)))]()

    # ------------------------------------------------------------------------------------------------------- reading
    def view(self) -> None:
        i = self.pick()
        a, d = self.arrays[i], self.duals[i]
        kind = int(self.rng.integers(4))
        if kind == 0 and d.shape[0] > 1:
            begin = int(self.rng.integers(d.shape[0] - 1))
            end = int(self.rng.integers(begin + 1, d.shape[0])) + 1
            self.add(f"a{i}[{begin}:{end}]", a[begin:end], d.view(lambda m: m[begin:end]))
        elif kind == 1 and len(d.shape) > 1:
            row = int(self.rng.integers(d.shape[0]))
            self.add(f"a{i}[{row}]", a[row], d.view(lambda m: m[row]))
        elif kind == 2:
            size = d.value.size
            shape = [(size,), (1, size), (size // 2, 2) if size % 2 == 0 else (size, 1)][int(self.rng.integers(3))]
            self.add(f"a{i}.reshape({shape})", a.reshape(shape), d.view(lambda m: m.reshape(shape)))
        else:
            self.add(f"a{i}[:]", a[:], d.view(lambda m: m[:]))

    def copying_slice(self) -> None:
        i = self.pick()
        a, d = self.arrays[i], self.duals[i]
        self.add(f"a{i}[..., ::2] + 0", a[..., ::2] + 0, d.copy_of(lambda m: m[..., ::2]))

    def product(self) -> None:
        i = self.pick()
        j = self.pick(self.duals[i].shape)
        self.add(f"a{i} * a{j}", self.arrays[i] * self.arrays[j], Dual(*times(self.duals[i], self.duals[j])))

    def sine(self) -> None:
        i = self.pick()
        d = self.duals[i]
        self.add(f"sin(a{i})", self.nd.sin(self.arrays[i]), Dual(np.sin(d.value), np.cos(d.value) * d.tangents()))

    def detached(self) -> None:
        i = self.pick()
        d = self.duals[i]
        self.add(f"a{i}.detach()", self.arrays[i].detach(), Dual(d.value, d.tangent, True, d.of_leaf))

    def zeros(self) -> None:
        shape = (ROWS, COLUMNS)
        self.add(f"zeros({shape})", self.nd.zeros(shape, dtype="float64"), Dual(np.zeros(shape), np.zeros(shape)))

    # ------------------------------------------------------------------------------------------------------- writing
    def target(self, shape: tuple[int, ...] | None = None) -> int | None:
        i = self.pick(shape, writable=True)
        return None if i is None or self.duals[i].detached else i

    def in_place(self) -> None:
        i = self.target()
        if i is None:
            return
        a, d = self.arrays[i], self.duals[i]
        kind = int(self.rng.integers(4))
        if kind == 0:
            a *= 1.5
            d.write(..., d.value * 1.5, d.tangent * 1.5)
            self.lines.append(f"a{i} *= 1.5")
        elif kind == 1:
            a **= 2
            d.write(..., d.value**2, 2 * d.value * d.tangent)
            self.lines.append(f"a{i} **= 2")
        else:
            j = self.pick(d.shape)
            b, e = self.arrays[j], self.duals[j]
            if kind == 2:
                a += b
                d.write(..., d.value + e.value, d.tangent + e.tangents())
            else:
                a *= b
                d.write(..., *times(d, e))
            self.lines.append(f"a{i} {'+*'[kind - 2]}= a{j}")

    def into(self) -> None:
        i = self.target()
        if i is None:
            return
        j = self.pick(self.duals[i].shape)
        e = self.duals[j]
        self.nd.sin(self.arrays[j], out=self.arrays[i])
        self.duals[i].write(..., np.sin(e.value), np.cos(e.value) * e.tangents())
        self.lines.append(f"sin(a{j}, out=a{i})")

    def assign(self) -> None:
        i = self.pick(writable=True)
        if i is None:
            return
        a, d = self.arrays[i], self.duals[i]
        keys: list[Any] = [slice(None), slice(0, max(d.shape[0] - 1, 1)), int(self.rng.integers(d.shape[0]))]
        keys.append((..., slice(None, None, 2)))
        key = keys[int(self.rng.integers(len(keys)))]
        part = d.value[key]
        j = self.pick(part.shape) if part.ndim and not d.detached else None
        if j is None or self.rng.random() < 0.3:
            a[key] = 0.25
            d.write(key, 0.25, 0.0)
            self.lines.append(f"a{i}[{key}] = 0.25")
        else:
            e = self.duals[j]
            value, tangent = e.value.copy(), e.tangents().copy()
            a[key] = self.arrays[j]
            d.write(key, value, tangent)
            self.lines.append(f"a{i}[{key}] = a{j}")

    def scattered(self) -> None:
        i = self.target()
        if i is None:
            return
        a, d = self.arrays[i], self.duals[i]
        chosen = self.rng.permutation(d.shape[0])[: max(d.shape[0] // 2, 1)]
        a[chosen] = 0.5
        d.write(chosen, 0.5, 0.0)
        self.lines.append(f"a{i}[{chosen}] = 0.5")
