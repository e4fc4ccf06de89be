"""Random programs that write to arrays in place, through aliases and views, with NumPy as the reference.

A program is a list of statements over numbered arrays; array 0 is the argument. NumPy runs it on its own memory, where
views share buffers; values that are not views for the package's arrays are copied.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

SHAPE = (4, 3)
Statement = tuple[Any, ...]


class Program:
    """A list of statements, and the numbers of the arrays that are its results."""

    def __init__(self, seed: int, length: int = 12) -> None:
        self._random = random.Random(seed)
        self.statements: list[Statement] = [("scaled", 0, 1.0)]  # other tests write to the argument itself
        self._arrays: list[np.ndarray] = []
        while len(self.statements) < length:
            candidate = self._draw()
            try:
                self._run([*self.statements, candidate], self._example())
            except (ValueError, IndexError):
                continue  # shapes do not fit
            self.statements.append(candidate)
        self._arrays = self._run(self.statements, self._example())
        self.results = self._random.sample(range(1, len(self._arrays)), min(3, len(self._arrays) - 1))

    @staticmethod
    def _example() -> np.ndarray:
        return np.arange(12.0).reshape(SHAPE) / 7 - 0.6

    def _draw(self) -> Statement:
        choose = self._random
        count = len(self._run(self.statements, self._example()))
        a, b = choose.randrange(1, count), choose.randrange(1, count)
        begin = choose.randrange(0, 3)
        end = begin + choose.randrange(1, 3)
        number = choose.choice([0.5, -1.5, 2.0])
        return choose.choice(
            [
                ("scaled", a, number),
                ("sum", a, b),
                ("product", a, b),
                ("tanh", a),
                ("alias", a),
                ("rows", a, begin, end),
                ("row", a, begin),
                ("column", a, begin),
                ("columns", a, begin, end),
                ("reshaped", a, choose.choice([(-1,), (3, -1), (2, -1)])),
                ("reshaped by operator", a, (-1,)),
                ("add in place", a, b),
                ("multiply in place", a, b),
                ("add number in place", a, number),
                ("multiply number in place", a, number),
                ("write all", a, b),
                ("write number", a, number),
                ("write rows", a, begin, end, b),
                ("write rows number", a, begin, end, number),
                ("write column", a, begin, number),
                ("write every second", a, number),
                ("out", a, b),
                ("call", a, number),
            ]
        )

    def _run(self, statements: list[Statement], x: np.ndarray) -> list[np.ndarray]:
        arrays: list[Any] = [x]
        for statement in statements:
            made = _NUMPY[statement[0]](arrays, *statement[1:])
            if made is not None:
                if made.size == 0 or made.ndim == 0:
                    raise ValueError("nothing selected")
                arrays.append(made)
        return arrays

    def on_numpy(self, x: np.ndarray) -> list[np.ndarray]:
        arrays = self._run(self.statements, x)
        return [arrays[number].copy() for number in self.results]

    def on_arrays(self, F: Any, x: Any) -> list[Any]:
        arrays: list[Any] = [x]
        for statement in self.statements:
            made = _ARRAYS[statement[0]](F, arrays, *statement[1:])
            if made is not None:
                arrays.append(made)
        return [arrays[number] for number in self.results]

    def __str__(self) -> str:
        return "\n".join(map(str, self.statements)) + f"\nreturn {self.results}"


def _own(array: np.ndarray) -> np.ndarray:
    """Copies an array unless it is contiguous, because only contiguous parts are views in the package."""
    return array if array.flags.c_contiguous else array.copy()


def _none(_: Any) -> None:
    return None


def _write(target: np.ndarray, value: Any) -> None:
    if isinstance(value, np.ndarray) and value.shape != target.shape:
        raise ValueError("shapes differ")
    target[...] = value.copy() if isinstance(value, np.ndarray) else value


def _change(target: np.ndarray, value: Any) -> None:
    if value.shape != target.shape:
        raise ValueError("shapes differ")
    target[...] = value


def _equal(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if a.shape != b.shape:
        raise ValueError("shapes differ")
    return a, b


def _np_row(v: Any, a: int, i: int) -> Any:
    if v[a].ndim < 2:
        raise ValueError("one element")
    return v[a][i]


def _np_column(v: Any, a: int, i: int) -> Any:
    if v[a].ndim != 2:
        raise ValueError("no column")
    return v[a][:, i].copy() if v[a].shape[0] > 1 and v[a].shape[1] > 1 else _own(v[a][:, i])


_NUMPY: dict[str, Callable[..., Any]] = {
    "scaled": lambda v, a, n: v[a] * n,
    "sum": lambda v, a, b: np.add(*_equal(v[a], v[b])),
    "product": lambda v, a, b: np.multiply(*_equal(v[a], v[b])),
    "tanh": lambda v, a: np.tanh(v[a]),
    "alias": lambda v, a: v[a],
    "rows": lambda v, a, i, j: v[a][i:j],
    "row": _np_row,
    "column": _np_column,
    "columns": lambda v, a, i, j: _own(v[a][:, i:j]),
    "reshaped": lambda v, a, shape: v[a].reshape(shape),
    "reshaped by operator": lambda v, a, shape: v[a].reshape(shape).copy(),
    "add in place": lambda v, a, b: _change(v[a], np.add(*_equal(v[a], v[b]))),
    "multiply in place": lambda v, a, b: _change(v[a], np.multiply(*_equal(v[a], v[b]))),
    "add number in place": lambda v, a, n: _change(v[a], v[a] + n),
    "multiply number in place": lambda v, a, n: _change(v[a], v[a] * n),
    "write all": lambda v, a, b: _write(v[a], v[b]),
    "write number": lambda v, a, n: _write(v[a], n),
    "write rows": lambda v, a, i, j, b: _write(v[a][i:j], v[b]),
    "write rows number": lambda v, a, i, j, n: _write(v[a][i:j], n),
    "write column": lambda v, a, i, n: _write(v[a][..., i], n),
    "write every second": lambda v, a, n: _write(v[a][::2], n),
    "out": lambda v, a, b: _change(v[b], np.tanh(_equal(v[a], v[b])[0])),
    "call": lambda v, a, n: _change(v[a], v[a] + n),
}


def _set(target: Any, key: Any, value: Any) -> None:
    target[key] = value


def _add(target: Any, value: Any) -> None:
    target += value


def _multiply(target: Any, value: Any) -> None:
    target *= value


def _out(F: Any, source: Any, target: Any) -> None:
    F.tanh(source, out=target)


_ARRAYS: dict[str, Callable[..., Any]] = {
    "scaled": lambda F, v, a, n: v[a] * n,
    "sum": lambda F, v, a, b: v[a] + v[b],
    "product": lambda F, v, a, b: v[a] * v[b],
    "tanh": lambda F, v, a: F.tanh(v[a]),
    "alias": lambda F, v, a: v[a],
    "rows": lambda F, v, a, i, j: v[a][i:j],
    "row": lambda F, v, a, i: v[a][i],
    "column": lambda F, v, a, i: v[a][:, i],
    "columns": lambda F, v, a, i, j: v[a][:, i:j],
    "reshaped": lambda F, v, a, shape: v[a].reshape(shape),
    "reshaped by operator": lambda F, v, a, shape: F.reshape(v[a], shape=shape),
    "add in place": lambda F, v, a, b: _add(v[a], v[b]),
    "multiply in place": lambda F, v, a, b: _multiply(v[a], v[b]),
    "add number in place": lambda F, v, a, n: _add(v[a], n),
    "multiply number in place": lambda F, v, a, n: _multiply(v[a], n),
    "write all": lambda F, v, a, b: _set(v[a], slice(None), v[b]),
    "write number": lambda F, v, a, n: _set(v[a], slice(None), n),
    "write rows": lambda F, v, a, i, j, b: _set(v[a], slice(i, j), v[b]),
    "write rows number": lambda F, v, a, i, j, n: _set(v[a], slice(i, j), n),
    "write column": lambda F, v, a, i, n: _set(v[a], (Ellipsis, i), n),
    "write every second": lambda F, v, a, n: _set(v[a], slice(None, None, 2), n),
    "out": lambda F, v, a, b: _out(F, v[a], v[b]),
    "call": lambda F, v, a, n: _add(v[a], n),
}
