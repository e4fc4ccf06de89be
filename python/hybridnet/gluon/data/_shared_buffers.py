"""Shared memory that a worker process writes and the main process reads without copying.

A buffer is an anonymous file (memfd) of the worker; the main process opens it through /proc and maps it once. A buffer
is free again when the last array on it is gone in the main process, which reports it to the worker with its next task.
Buffers have no names in the file system, so none can be left over.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections import deque
from typing import NamedTuple

import numpy as np

from ...ndarray._dtypes import numpy_dtype

__all__ = ["BufferPool", "BufferReader", "SharedArray"]

_SMALLEST = 1 << 16


class SharedArray(NamedTuple):
    """An array in a buffer, in the form that is sent between processes.

    handle: the buffer's number, unique within the worker; descriptor: of its file in the worker; size: bytes of the
    buffer; nd: whether the array was an NDArray.
    """

    handle: int
    descriptor: int
    size: int
    shape: tuple[int, ...]
    dtype: str
    nd: bool


def _view(memory: mmap.mmap, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(memory, dtype=dtype, count=count).reshape(shape)


class BufferPool:
    """The worker's side: allocates and reuses buffers for arrays."""

    def __init__(self) -> None:
        self._memory: dict[int, mmap.mmap] = {}
        # Handles are not file descriptors: the system reuses a closed descriptor for the next buffer, and the main
        # process would confuse the two until it learns that the first one is closed.
        self._descriptors: dict[int, int] = {}
        self._next_handle = 0
        self._free: list[int] = []
        self.dropped: list[int] = []

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, np.ndarray]:
        """Returns a buffer's handle and an array on it."""
        needed = max(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize, 1)
        fitting = [handle for handle in self._free if len(self._memory[handle]) >= needed]
        if fitting:
            handle = min(fitting, key=lambda h: len(self._memory[h]))
            self._free.remove(handle)
        else:
            handle = self._create(needed)
        return handle, _view(self._memory[handle], shape, dtype)

    def _create(self, needed: int) -> int:
        if self._free:
            # Batches have grown: a smaller free buffer is closed to make room.
            smaller = self._free.pop()
            self._memory.pop(smaller)
            os.close(self._descriptors.pop(smaller))
            self.dropped.append(smaller)
        size = max(_SMALLEST, 1 << (needed - 1).bit_length() if needed < 1 << 22 else -(-needed // (1 << 20)) << 20)
        descriptor = os.memfd_create("hybridnet-batch")
        os.ftruncate(descriptor, size)
        handle = self._next_handle
        self._next_handle += 1
        self._descriptors[handle] = descriptor
        self._memory[handle] = mmap.mmap(descriptor, size)
        return handle

    def release(self, handles: list[int]) -> None:
        """Marks buffers as free that the main process no longer uses."""
        self._free.extend(handles)

    def describe(self, handle: int, array: np.ndarray, nd: bool) -> SharedArray:
        """Returns the message for an array that allocate returned."""
        size = len(self._memory[handle])
        return SharedArray(handle, self._descriptors[handle], size, array.shape, array.dtype.name, nd)


class BufferReader:
    """The main process's side of one worker's buffers."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._memory: dict[int, mmap.mmap] = {}
        self._finished: deque[int] = deque()

    def array(self, shared: SharedArray) -> np.ndarray:
        """Returns the array; its buffer is free once the array and all views of it are gone."""
        memory = self._memory.get(shared.handle)
        if memory is None:
            descriptor = os.open(f"/proc/{self._pid}/fd/{shared.descriptor}", os.O_RDWR)
            try:
                memory = self._memory[shared.handle] = mmap.mmap(descriptor, shared.size)
            finally:
                os.close(descriptor)
        # The finalizer is attached to the innermost array, which all views keep alive.
        count = int(np.prod(shared.shape, dtype=np.int64))
        flat = np.frombuffer(memory, dtype=numpy_dtype(shared.dtype), count=count)
        weakref.finalize(flat, self._finished.append, shared.handle).atexit = False
        return flat.reshape(shared.shape)

    def forget(self, handles: list[int]) -> None:
        """Drops buffers that the worker has closed."""
        for handle in handles:
            self._memory.pop(handle, None)

    def take_finished(self) -> list[int]:
        """Returns handles whose arrays have gone since the last call."""
        finished = []
        while self._finished:
            finished.append(self._finished.popleft())
        return finished
