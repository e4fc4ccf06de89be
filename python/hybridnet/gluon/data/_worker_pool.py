"""Worker processes that make batches, and the pool that distributes tasks.

Each worker has a pipe for tasks and one for results. Arrays travel through shared buffers, everything else through the
pipe. The pool waits for results and for worker exits at once, so a killed worker is noticed immediately.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import random
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import ndarray
from ...errors import HybridNetError
from ...random import seed as _seed_arrays
from ._shared_buffers import BufferPool, BufferReader, SharedArray
from .batchify import default_batchify

__all__ = ["DataLoaderTimeout", "WorkerDied", "WorkerPool"]

# Running pools are kept alive here. Otherwise, a garbage collection of a loader in a cycle could destroy its pool's
# processes and pipes, in any order, before the loader's finalizer stops the pool.
_RUNNING: set[WorkerPool] = set()

# Interval, in seconds, in which an idle worker checks that its parent is alive.
_PARENT_CHECK = 2.0


class WorkerDied(HybridNetError):
    """A worker process ended unexpectedly."""


class DataLoaderTimeout(HybridNetError, TimeoutError):
    """A batch took longer than the timeout of the DataLoader."""


class _RemoteTraceback(Exception):
    """The traceback text from the worker, attached as the cause of the exception raised here."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


def _seed(value: int) -> None:
    """Sets one seed per batch: random augmentation is the same for any number of workers."""
    random.seed(value)
    np.random.seed(value & 0xFFFFFFFF)
    _seed_arrays(value & 0x7FFFFFFF)


class _Worker:
    """The loop inside the worker process."""

    def __init__(self, dataset: Any, batchify: Callable[[list[Any]], Any] | None) -> None:
        self._dataset = dataset
        self._batchify = batchify
        self._buffers = BufferPool()

    def make(self, indices: Sequence[Any]) -> Any:
        """Makes the batch, with arrays replaced by SharedArrays."""
        samples = [self._dataset[i] for i in indices]
        if self._batchify is not None:
            return self._share(self._batchify(samples))
        handles: dict[int, int] = {}

        def allocate(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
            handle, array = self._buffers.allocate(shape, np.dtype(dtype))
            handles[id(array)] = handle
            return array

        return self._describe(default_batchify(samples, allocate), handles)

    def _describe(self, batch: Any, handles: dict[int, int]) -> Any:
        if isinstance(batch, list):
            return [self._describe(part, handles) for part in batch]
        if isinstance(batch, dict):
            return {key: self._describe(value, handles) for key, value in batch.items()}
        if not isinstance(batch, np.ndarray):
            return batch
        return self._buffers.describe(handles[id(batch)], batch, True)

    def _share(self, batch: Any) -> Any:
        if isinstance(batch, ndarray.NDArray):
            return self._share_array(batch.asnumpy(), True)
        if isinstance(batch, np.ndarray) and batch.dtype.kind in "biufcV" and not batch.dtype.hasobject:
            return self._share_array(batch, False)
        if isinstance(batch, tuple) and hasattr(batch, "_fields"):
            return type(batch)(*map(self._share, batch))
        if isinstance(batch, (list, tuple)):
            return type(batch)(map(self._share, batch))
        if isinstance(batch, dict):
            return {key: self._share(value) for key, value in batch.items()}
        return batch

    def _share_array(self, array: np.ndarray, nd: bool) -> SharedArray:
        handle, shared = self._buffers.allocate(array.shape, array.dtype)
        shared[...] = array
        return self._buffers.describe(handle, shared, nd)

    def serve(self, tasks: Any, results: Any, parent: int) -> None:
        """Runs tasks until the pool stops it or the parent process is gone."""
        while True:
            while not tasks.poll(_PARENT_CHECK):
                if os.getppid() != parent:
                    return
            task = tasks.recv()
            if task is None:
                return
            ticket, indices, seed, released = task
            self._buffers.release(released)
            try:
                _seed(seed)
                answer = (ticket, True, self.make(indices), self._take_dropped())
            except Exception as error:
                answer = (ticket, False, _portable(error), self._take_dropped())
            self._send(results, answer)

    def _take_dropped(self) -> list[int]:
        dropped, self._buffers.dropped = self._buffers.dropped, []
        return dropped

    def _send(self, results: Any, answer: Any) -> None:
        text = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
        if len(text) > 1 << 14:
            # Long results go through a buffer, so that writing to the pipe never blocks.
            handle, array = self._buffers.allocate((len(text),), np.dtype(np.uint8))
            array[:] = np.frombuffer(text, np.uint8)
            text = pickle.dumps(self._buffers.describe(handle, array, False))
        results.send_bytes(text)


def _portable(error: Exception) -> tuple[bytes | None, str]:
    """Returns the exception pickled, or None if it cannot be, and its traceback as text."""
    text = traceback.format_exc()
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)
    except Exception:
        return None, text
    return pickled, text


def _worker_main(dataset: Any, batchify: Any, tasks: Any, results: Any, parent: int) -> None:
    # Ctrl-C is handled by the main process, which stops its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        _Worker(dataset, batchify).serve(tasks, results, parent)


class _Handle:
    """The pool's record of one worker."""

    def __init__(self, process: Any, tasks: Any, results: Any) -> None:
        self.process = process
        self.tasks = tasks
        self.results = results
        self.reader = BufferReader(process.pid)
        self.outstanding = 0


class WorkerPool:
    """num_workers processes; results come in any order and are kept until get() takes them."""

    def __init__(self, num_workers: int, dataset: Any, batchify: Callable[[list[Any]], Any] | None) -> None:
        # Workers inherit the dataset by fork: nothing has to be pickled.
        context = multiprocessing.get_context("fork")
        self._lock = threading.Lock()
        self._answers: dict[int, Any] = {}
        self._waiting: deque[tuple[int, Any, int]] = deque()
        self._abandoned: set[int] = set()
        # Tickets abandoned by a finalizer, which may run at any allocation of a thread that holds the lock.
        self._given_up: deque[int] = deque()
        self._next_ticket = 0
        self._workers: list[_Handle] = []
        ndarray.waitall()
        for _ in range(num_workers):
            self._workers.append(self._start(context, dataset, batchify))
        _RUNNING.add(self)

    @staticmethod
    def _start(context: Any, dataset: Any, batchify: Any) -> _Handle:
        task_reader, task_writer = context.Pipe(duplex=False)
        result_reader, result_writer = context.Pipe(duplex=False)
        process = context.Process(
            target=_worker_main, args=(dataset, batchify, task_reader, result_writer, os.getpid()), daemon=True
        )
        process.start()
        task_reader.close()
        result_writer.close()
        return _Handle(process, task_writer, result_reader)

    def submit(self, indices: Sequence[Any], seed: int) -> int:
        """Requests a batch; returns a ticket for get()."""
        with self._lock:
            self._drop_given_up()
            ticket = self._next_ticket
            self._next_ticket += 1
            self._waiting.append((ticket, indices, seed))
            self._feed()
        return ticket

    def _feed(self) -> None:
        """Sends waiting tasks to the least busy workers, at most two to each."""
        while self._waiting:
            worker = min(self._workers, key=lambda w: w.outstanding)
            if worker.outstanding >= 2:
                return
            task = self._waiting.popleft()
            worker.outstanding += 1
            try:
                worker.tasks.send((*task, worker.reader.take_finished()))
            except (BrokenPipeError, ConnectionResetError):
                self._complain(worker)

    def get(self, ticket: int, timeout: float) -> Any:
        """Returns the batch of a ticket.

        Raises the worker's exception, WorkerDied, or DataLoaderTimeout after timeout seconds.
        """
        limit = time.monotonic() + timeout
        while True:
            with self._lock:
                self._drop_given_up()
                if ticket in self._answers:
                    good, payload = self._answers.pop(ticket)
                    break
                self._receive(limit, timeout)
        if good:
            return payload
        pickled, text = payload
        error = pickle.loads(pickled) if pickled is not None else RuntimeError("a DataLoader worker failed")
        try:
            raise error from _RemoteTraceback(text)
        finally:
            # This frame and the error's traceback would reference each other, and keep the epoch alive until a
            # collection.
            del error

    def _receive(self, limit: float, timeout: float) -> None:
        pipes = {worker.results: worker for worker in self._workers}
        sentinels = {worker.process.sentinel: worker for worker in self._workers}
        ready = multiprocessing.connection.wait([*pipes, *sentinels], max(0.0, limit - time.monotonic()))
        if not ready:
            raise DataLoaderTimeout(
                f"Worker timed out after {timeout} seconds",
                because="the dataset or its transform is slow, or waits for something",
                fix="pass a larger timeout= to DataLoader, or try num_workers=0 to see where it waits",
            )
        for item in ready:
            # Reads a worker's results before reporting its death.
            if item in pipes:
                self._take_answer(pipes[item])
        if not any(item in pipes for item in ready):
            self._complain(sentinels[ready[0]])
        self._feed()

    def _take_answer(self, worker: _Handle) -> None:
        try:
            answer = pickle.loads(worker.results.recv_bytes())
        except (EOFError, ConnectionResetError):
            self._complain(worker)
        if isinstance(answer, SharedArray):
            answer = pickle.loads(worker.reader.array(answer).tobytes())
        ticket, good, payload, dropped = answer
        worker.outstanding -= 1
        worker.reader.forget(dropped)
        if ticket in self._abandoned:
            self._abandoned.discard(ticket)
            if good:
                _restore(payload, worker.reader)  # dropped at once, which frees its buffers
            return
        self._answers[ticket] = (good, _restore(payload, worker.reader) if good else payload)

    def _complain(self, worker: _Handle) -> None:
        worker.process.join(5)
        code = worker.process.exitcode
        number, pid = self._workers.index(worker), worker.process.pid
        self.stop()
        reason = "it called exit or crashed while starting"
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
            reason = f"signal {name} ended it" + (" (often the kernel, when memory runs out)" if code == -9 else "")
        raise WorkerDied(
            f"DataLoader worker {number} (pid {pid}) died with exit code {code}",
            because=f"{reason}",
            fix=(
                "run with num_workers=0 to see the failure in this process; lower batch_size or num_workers if "
                "memory is short"
            ),
        )

    def abandon(self, tickets: Sequence[int]) -> None:
        """Marks tickets whose results are no longer needed. Safe in finalizers: it never waits."""
        self._given_up.extend(tickets)
        if self._lock.acquire(blocking=False):
            try:
                self._drop_given_up()
            finally:
                self._lock.release()

    def _drop_given_up(self) -> None:
        """Drops abandoned tickets: waiting ones, finished ones, and later those in progress."""
        while self._given_up:
            ticket = self._given_up.popleft()
            if ticket in self._answers:
                del self._answers[ticket]
                continue
            waiting = [task for task in self._waiting if task[0] == ticket]
            if waiting:
                self._waiting.remove(waiting[0])
            else:
                self._abandoned.add(ticket)

    @property
    def alive(self) -> bool:
        """Whether the workers are running."""
        return bool(self._workers)

    def stop(self) -> None:
        """Ends all workers."""
        _RUNNING.discard(self)
        workers, self._workers = self._workers, []
        for worker in workers:
            with contextlib.suppress(OSError, ValueError):
                worker.tasks.send(None)
        for worker in workers:
            worker.process.join(0.2)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join(1)
            worker.tasks.close()
            worker.results.close()


def _restore(batch: Any, reader: BufferReader) -> Any:
    """Replaces SharedArrays in the batch by arrays on their buffers."""
    if isinstance(batch, SharedArray):
        array = reader.array(batch)
        return ndarray.from_numpy(array, zero_copy=True) if batch.nd else array
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(_restore(part, reader) for part in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(_restore(part, reader) for part in batch)
    if isinstance(batch, dict):
        return {key: _restore(value, reader) for key, value in batch.items()}
    return batch
