"""Launches that the tests' driver has recorded (tests/cuda/recording.h), repeated by another compilation."""

from __future__ import annotations

import ctypes
import mmap
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))

import ml_dtypes
import numpy as np
from gpu_check.compare import compare
from ptx import PtxProgram

__all__ = ["Apart", "Launch", "launches_of", "repeat"]

_PAGE = mmap.PAGESIZE
_FIXED_WHERE_FREE = 0x100000  # MAP_FIXED_NOREPLACE
_POISON = 0xFF  # in new memory of the driver


class Contents(NamedTuple):
    """An allocation that a launch has touched. after is empty if it was only read."""

    address: int
    before: bytes
    after: bytes


class Launch(NamedTuple):
    """One launch. sizes: blocks, then threads, along three axes."""

    text: str
    entry: str
    sizes: tuple[int, ...]
    arguments: bytes
    memory: tuple[Contents, ...]


class Apart(NamedTuple):
    """How far two results of a launch are apart: values of its element type that differ, and the most ulp."""

    values: int = 0
    ulps: int = 0


def launches_of(file: Path) -> Iterator[Launch]:
    """Reads a file of the driver."""
    data, at = file.read_bytes(), 0

    def number() -> int:
        nonlocal at
        at += 8
        return struct.unpack_from("<Q", data, at - 8)[0]

    def block() -> bytes:
        nonlocal at
        size = number()
        at += size
        return data[at - size : at]

    while at < len(data):
        text, entry = block().decode(), block().decode()
        sizes, arguments = tuple(number() for _ in range(6)), block()
        memory = tuple(Contents(number(), block(), block()) for _ in range(number()))
        yield Launch(text, entry, sizes, arguments, memory)


def repeat(launch: Launch, program: PtxProgram, entry: str) -> Apart:
    """Runs a launch by another program, at the same addresses, and compares the memory afterwards.

    NaN is equal to NaN: its payload is not promised. Raises: KernelFault; OSError if an address is in use here.
    """
    pages = [_Pages(contents) for contents in launch.memory]
    try:
        arguments = ctypes.create_string_buffer(launch.arguments, program.parameter_bytes(entry))
        program.launch(entry, arguments, launch.sizes[:3], launch.sizes[3:])
        element = np.float64 if re.search(r"\bdouble[,>]", launch.text) else np.float32
        apart = [_apart(each.bytes(), each.contents.after or each.contents.before, element) for each in pages]
        return Apart(sum(each.values for each in apart), max((each.ulps for each in apart), default=0))
    finally:
        for each in pages:
            each.close()


class _Pages:
    """Memory at the address of an allocation, with its contents."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self._begin = contents.address // _PAGE * _PAGE
        end = contents.address + len(contents.before)
        self._size = -(-(end - self._begin) // _PAGE) * _PAGE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED_WHERE_FREE
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        found = _libc().mmap(self._begin, self._size, protection, flags, -1, 0)
        if found != self._begin:
            raise OSError(ctypes.get_errno(), f"address {self._begin:#x} is in use")
        ctypes.memset(self._begin, _POISON, self._size)
        ctypes.memmove(contents.address, contents.before, len(contents.before))

    def bytes(self) -> bytes:
        return ctypes.string_at(self.contents.address, len(self.contents.before))

    def close(self) -> None:
        _libc().munmap(self._begin, self._size)


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc


def _apart(found: bytes, expected: bytes, element: type) -> Apart:
    """Words are equal if they are NaN on both sides, in any floating type of their size."""
    if found == expected:
        return Apart()
    differ = np.frombuffer(found, "u1") != np.frombuffer(expected, "u1")
    for dtype in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16):
        a, b = (_as(each, dtype) for each in (found, expected))
        with np.errstate(invalid="ignore"):  # a signaling NaN
            differ[: a.nbytes] &= ~np.repeat(np.isnan(a) & np.isnan(b), a.itemsize)
    if not differ.any():
        return Apart()
    a, b = (_as(each, element) for each in (found, expected))
    words = np.add.reduceat(differ, range(0, differ.size, a.itemsize)) > 0
    distance = compare(a[words[: a.size]], b[words[: a.size]]).ulps
    return Apart(int(words.sum()), distance)


def _as(memory: bytes, dtype: type) -> np.ndarray:
    """The memory as values; without the bytes after the last whole one."""
    size = np.dtype(dtype).itemsize
    return np.frombuffer(memory[: len(memory) // size * size], dtype)
