"""Explicit memory: buffers of cells with error bounds, and handles that name some of the cells.

Each cell holds a value, a bound on the difference of another right implementation (0: same bits), and its derivatives
by the cells of the leaves. Views share cells, so that a write changes all of them, derivatives included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

SIGN_OF_ZERO = 1e-300  # an error bound that means: equal, but zeros may have either sign
NEGLIGIBLE = 1e-200
EPSILON = {np.dtype(t): float(np.finfo(t).eps) for t in ("float16", "float32", "float64")}
SMALLEST = {np.dtype(t): float(np.finfo(t).smallest_subnormal) for t in ("float16", "float32", "float64")}
LARGEST = {np.dtype(t): float(np.finfo(t).max) for t in ("float16", "float32", "float64")}


class Unclear(Exception):
    """Raised if an instruction cannot run, or its result is not determined well enough to be compared."""


@dataclass
class Value:
    """A value read from memory, or about to be written."""

    data: np.ndarray
    error: np.ndarray  # float64, of the same shape
    slope: np.ndarray | None = None  # (2, leaf cells, *shape): derivatives, and sums of the absolute terms

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype


@dataclass
class Buffer:
    """A piece of memory: cells in a row."""

    data: np.ndarray
    error: np.ndarray
    slope: np.ndarray | None
    is_leaf: bool = False


@dataclass
class Handle:
    """The cells of a buffer that a name stands for, in row-major order."""

    buffer: Buffer
    offset: int
    shape: tuple[int, ...]
    detached: bool = False  # no gradient passes

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype:
        return self.buffer.data.dtype

    @property
    def cells(self) -> slice:
        return slice(self.offset, self.offset + self.size)

    def read(self) -> Value:
        slope = self.buffer.slope
        if slope is not None and not self.detached:
            slope = slope[:, :, self.cells].reshape(*slope.shape[:2], *self.shape).copy()
        else:
            slope = None
        return Value(
            self.buffer.data[self.cells].reshape(self.shape).copy(),
            self.buffer.error[self.cells].reshape(self.shape).copy(),
            slope,
        )

    def write(self, value: Value, key: Any = ...) -> None:
        """Writes a value of this dtype into the cells that a key selects, broadcasting it."""
        cells = np.arange(self.offset, self.offset + self.size).reshape(self.shape)[key]
        cells = np.asarray(cells)
        self.buffer.data[cells] = value.data
        self.buffer.error[cells] = value.error
        if self.detached and self.buffer.is_leaf:  # a leaf stays a leaf with any values
            return
        if value.slope is None:
            if self.buffer.slope is not None:
                self.buffer.slope[:, :, cells] = 0
            return
        if self.buffer.slope is None:
            self.buffer.slope = np.zeros((*value.slope.shape[:2], self.buffer.data.size))
        self.buffer.slope[:, :, cells] = np.broadcast_to(
            with_rank(value.slope, cells.ndim), (*value.slope.shape[:2], *cells.shape)
        )

    def shares_with(self, other: Handle) -> bool:
        return self.buffer is other.buffer

    def seed(self, first: int, count: int) -> None:
        """Makes the cells leaves, with numbers from `first` of `count`."""
        self.buffer.is_leaf = True
        self.buffer.slope = np.zeros((2, count, self.buffer.data.size))
        for cell in range(self.size):
            self.buffer.slope[:, first + cell, self.offset + cell] = 1


def new(value: Value) -> Handle:
    """Copies a value to new memory and returns its handle."""
    slope = value.slope
    buffer = Buffer(
        value.data.reshape(-1).copy(),
        value.error.reshape(-1).copy(),
        None if slope is None else slope.reshape(*slope.shape[:2], value.data.size).copy(),
    )
    return Handle(buffer, 0, value.shape)


def constant(data: Any, dtype: Any = None) -> Value:
    """Returns a value without error."""
    array = np.array(data, dtype=dtype)
    return Value(array, np.zeros(array.shape))


def with_rank(slope: np.ndarray, rank: int) -> np.ndarray:
    """Reshapes a slope to a rank of the value, with leading axes of size 1."""
    shape = slope.shape[2:]
    if len(shape) >= rank:
        return slope.reshape(*slope.shape[:2], *shape[len(shape) - rank :]) if rank < len(shape) else slope
    return slope.reshape(*slope.shape[:2], *(1,) * (rank - len(shape)), *shape)


def certain(error: np.ndarray) -> np.ndarray:
    """Returns the errors, with 0 for those that concern only the signs of zeros."""
    return np.where(error <= NEGLIGIBLE, 0, error)


def rounded(wide: np.ndarray, dtype: np.dtype, error: np.ndarray, ulps: float) -> Value:
    """Rounds float64 results to a dtype; `error` is the error caused by the operands' errors.

    ulps: the error of the operation itself; 0 if every implementation rounds once, so that results that the dtype can
    hold are the same in all.
    """
    data = wide.astype(dtype)
    back = data.astype(np.float64)
    short = wide.astype(np.float32).astype(np.float64) if dtype == np.float64 else back
    exact = ((short == wide) | ~np.isfinite(wide)) & (error <= NEGLIGIBLE)
    if ulps:
        exact &= ~np.isfinite(wide) | (wide == 0)
    rounding = np.where(np.isfinite(back), (1 + ulps) * EPSILON[dtype] * np.abs(wide) + 2 * SMALLEST[dtype], 0)
    if ulps:  # functions may flush subnormal results to 0
        rounding = rounding + np.where(np.isfinite(back), float(np.finfo(dtype).tiny), 0)
    total = np.where(exact, error, error + rounding)
    return checked(Value(data, total))


def checked(value: Value) -> Value:
    """Returns the value, or raises Unclear if its error is too large to compare it."""
    finite = np.isfinite(value.data)
    if not np.all(np.isfinite(value.error)) or np.any(value.error[~finite] > 0):
        raise Unclear("not finite by an error")
    most = 0.06 if value.dtype == np.float16 else 1e-3
    if np.any(value.error > most * np.maximum(1, np.abs(np.where(finite, value.data, 0).astype(np.float64)))):
        raise Unclear("a large error")
    return value


def cast(value: Value, dtype: Any) -> Value:
    """Converts the value to another dtype like astype."""
    dtype = np.dtype(dtype)
    if dtype == value.dtype:
        return Value(value.data.copy(), value.error.copy(), value.slope)
    if dtype.kind == "f":
        if value.dtype.kind == "f":
            made = rounded(value.data.astype(np.float64), dtype, value.error, 0)
            return Value(made.data, made.error, value.slope)
        wide = value.data.astype(np.float64)
        data = value.data.astype(dtype)
        if np.any(np.abs(wide) > 2 / EPSILON[dtype]) or not np.all(np.isfinite(data)):
            raise Unclear("a large integer")
        return Value(data, np.zeros(value.shape))
    if dtype == np.bool_:
        if np.any(certain(value.error) > 0) or (value.dtype.kind == "f" and not np.all(np.isfinite(value.data))):
            raise Unclear("truth of a rounded number")
        return constant(value.data != 0)
    if value.dtype.kind == "f":
        error = certain(value.error)
        wide = value.data.astype(np.float64)
        low, high = (-1e9, 1e9) if dtype != np.uint8 else (-0.9, 255)
        if not np.all(np.isfinite(wide)) or np.any(wide < low) or np.any(wide > high):
            raise Unclear("a number that is not an integer of this dtype")
        if np.any((error > 0) & (np.abs(wide - np.round(wide)) <= 4 * error)):
            raise Unclear("a rounded number close to a whole one")
        return constant(np.trunc(wide), dtype)
    return constant(value.data.astype(dtype))
