"""Iterators on a ``multiprocessing`` pool, with MXNet's names, for libraries that subclass them.

A subclass overrides ``_push_next`` to send other arguments to its own worker function. HybridNet's DataLoader has
faster workers (``_worker_pool.py``); it creates a pool for these classes when ``_worker_pool`` is read.
"""

from __future__ import annotations

import io
import multiprocessing
import pickle
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.pool import ThreadPool
from multiprocessing.reduction import ForkingPickler
from typing import Any

from ...context import cpu_pinned
from ...util import set_np, set_np_shape
from ._moving import _as_in_context
from ._worker_pool import DataLoaderTimeout

__all__ = ["_MultiWorkerIter", "_thread_worker_fn", "_thread_worker_initializer", "_worker_fn", "_worker_initializer"]

# The dataset of this worker process, sent once when the process starts.
_worker_dataset: Any = None


def _thread_worker_initializer(active_shape: bool, active_array: bool) -> None:
    """Sets in a worker thread the np_shape and np_array modes of the pool's creator thread."""
    if active_array:
        set_np(shape=active_shape, array=True)
    else:
        set_np_shape(active_shape)


def _worker_initializer(dataset: Any, active_shape: bool, active_array: bool) -> None:
    """Sets in a worker process its dataset and the modes of the pool's creator thread."""
    global _worker_dataset
    _worker_dataset = dataset
    _thread_worker_initializer(active_shape, active_array)


def _worker_fn(samples: Sequence[Any], batchify_fn: Callable[[list[Any]], Any], dataset: Any = None) -> bytes:
    """Returns the batch of these sample indices, pickled. Uses the worker's own dataset, not the argument."""
    batch = batchify_fn([_worker_dataset[i] for i in samples])
    buffer = io.BytesIO()
    ForkingPickler(buffer, pickle.HIGHEST_PROTOCOL).dump(batch)
    return buffer.getvalue()


def _thread_worker_fn(samples: Sequence[Any], batchify_fn: Callable[[list[Any]], Any], dataset: Any) -> Any:
    """Returns the batch of these sample indices."""
    return batchify_fn([dataset[i] for i in samples])


class _MultiWorkerIter:
    """Yields batches in order, requested ahead from a pool.

    worker_pool: has ``apply_async``. worker_fn is called with (indices, batchify_fn, dataset). dataset: for a pool of
    threads; None means that results are pickled. prefetch: number of batches requested ahead.

    Raises DataLoaderTimeout if a batch takes longer than timeout seconds, and the exceptions of workers; both end the
    pool.
    """

    def __init__(
        self,
        worker_pool: Any,
        batchify_fn: Callable[[list[Any]], Any],
        batch_sampler: Any,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        worker_fn: Callable[..., Any] = _worker_fn,
        prefetch: int = 0,
        dataset: Any = None,
        data_loader: Any = None,
        timeout: float = 120,
    ) -> None:
        self._worker_pool = worker_pool
        self._batchify_fn = batchify_fn
        self._batch_sampler = batch_sampler
        self._worker_fn = worker_fn
        self._dataset = dataset
        self._data_loader = data_loader  # keeps the loader alive, which owns the pool
        self._pin_memory, self._pin_device_id = pin_memory, pin_device_id
        self._timeout = timeout
        self._data_buffer: dict[int, Any] = {}
        self._sent_idx = self._rcvd_idx = 0
        self._iter = iter(batch_sampler)
        for _ in range(prefetch):
            self._push_next()

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def _push_next(self) -> None:
        """Requests one more batch; does nothing after the last one."""
        indices = next(self._iter, None)
        if indices is None:
            return
        arguments = (indices, self._batchify_fn, self._dataset)
        self._data_buffer[self._sent_idx] = self._worker_pool.apply_async(self._worker_fn, arguments)
        self._sent_idx += 1

    def __next__(self) -> Any:
        self._push_next()
        if self._rcvd_idx == self._sent_idx:
            raise StopIteration
        batch = self._receive(self._data_buffer.pop(self._rcvd_idx))
        self._rcvd_idx += 1
        return _as_in_context(batch, cpu_pinned(self._pin_device_id)) if self._pin_memory else batch

    def _receive(self, requested: Any) -> Any:
        try:
            answer = requested.get(self._timeout)
        except multiprocessing.TimeoutError:
            self._worker_pool.terminate()
            reason = "the dataset or its transform is slow"
            if not isinstance(self._worker_pool, ThreadPool):
                reason += ", or a worker process died"
            fix = "pass a larger timeout= to DataLoader, or try num_workers=0 to see where it waits"
            raise DataLoaderTimeout(
                f"Worker timed out after {self._timeout} seconds", because=reason, fix=fix
            ) from None
        except Exception:
            self._worker_pool.terminate()
            raise
        return pickle.loads(answer) if self._dataset is None else answer

    next = __next__

    def __iter__(self) -> Iterator[Any]:
        return self
