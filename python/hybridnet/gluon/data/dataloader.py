"""DataLoader: batches of a dataset, made in the calling thread, in threads, or in worker processes."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from multiprocessing.pool import ThreadPool
from multiprocessing.reduction import ForkingPickler as ForkingPickler  # for libraries' worker functions
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import ndarray
from ..._described import count_text, described
from ..._habits import add_habits
from ..._keywords import ChecksKeywords
from ..._lazy_names import names_from
from ..._public_names import dir_of
from ...context import cpu_pinned
from ...errors import HybridNetError, ParamError
from ...random import numpy_random_state, set_numpy_random_state
from ...util import is_np_array, is_np_shape
from .._numpy_border import for_user
from . import sampler as _sampler
from ._moving import _as_in_context
from ._pool_iterator import _thread_worker_initializer, _worker_initializer
from .batchify import by_key, default_batchify
from .dataset import GATHERING

if TYPE_CHECKING:
    from ._worker_pool import WorkerPool

__all__ = ["DataLoader", "default_batchify_fn", "default_mp_batchify_fn"]


def _to_arrays(batch: Any) -> Any:
    if isinstance(batch, list):
        return [_to_arrays(part) for part in batch]
    if isinstance(batch, dict):
        return {key: _to_arrays(value) for key, value in batch.items()}
    if isinstance(batch, (str, bytes)):
        return batch
    return ndarray.array(batch, dtype=batch.dtype)


def default_batchify_fn(data: Sequence[Any]) -> Any:
    """Stacks samples: arrays and numbers become one NDArray, tuples a list of NDArrays, dicts a dict of NDArrays.

    Texts stay a list. Raises ParamError if shapes or keys differ.
    """
    if isinstance(data[0], ndarray.NDArray):
        if len({(sample.shape, sample.dtype) for sample in data}) == 1:
            return ndarray.stack(*data)
    elif isinstance(data[0], tuple):
        return [default_batchify_fn(part) for part in zip(*data, strict=False)]
    elif isinstance(data[0], Mapping):
        return {key: default_batchify_fn(values) for key, values in by_key(data).items()}
    return _to_arrays(default_batchify(data, np.empty))


def default_mp_batchify_fn(data: Sequence[Any]) -> Any:
    """Same as default_batchify_fn; worker processes put the arrays into shared memory."""
    return default_batchify_fn(data)


class DataLoader(ChecksKeywords):
    """Iterates over the batches of a dataset, any number of times.

    Parameters
    ----------
    dataset : Dataset, or anything with length and indices
    batch_size : int
    shuffle : bool, default False
        Whether each epoch has a new random order (from numpy.random).
    sampler : Sampler, optional
        Order of the samples, instead of shuffle.
    last_batch : {'keep', 'discard', 'rollover'}, default 'keep'
        See BatchSampler.
    batch_sampler : iterable of lists of indices, optional
        Replaces batch_size, shuffle, sampler and last_batch.
    batchify_fn : callable, optional
        Combines a list of samples into a batch, see gluon.data.batchify; default: default_batchify_fn, which stacks.
    num_workers : int, default 0
        Processes (or threads) that make batches ahead; 0: batches are made when they are read.
    pin_memory : bool, default False
        Whether the arrays of batches are on mx.cpu_pinned(pin_device_id), from which copies to devices are faster.
    pin_device_id : int, default 0
    prefetch : int, optional
        Batches made ahead, default 2 * num_workers.
    thread_pool : bool, default False
        Whether workers are threads, for datasets that spend their time outside of Python.
    timeout : float, default 120
        Seconds to wait for a batch of a worker.
    auto_reload : bool, default False
        Whether the next epoch is prefetched when one ends.

    Batches come in order. Worker processes start with the first epoch and are kept; they get one seed per batch, drawn
    from numpy.random, so random transforms do not depend on the number of workers.

    Raises ParamError for contradicting arguments; during iteration: the exceptions of the dataset, WorkerDied within
    seconds of a worker's death, DataLoaderTimeout.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = None,
        shuffle: bool = False,
        sampler: Any = None,
        last_batch: str | None = None,
        batch_sampler: Any = None,
        batchify_fn: Callable[[list[Any]], Any] | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        prefetch: int | None = None,
        thread_pool: bool = False,
        timeout: float = 120,
        auto_reload: bool = False,
    ) -> None:
        if timeout <= 0:
            raise ParamError(f"timeout must be positive, given {timeout}")
        self._dataset = dataset
        self._batch_sampler = self._make_batch_sampler(dataset, batch_size, shuffle, sampler, last_batch, batch_sampler)
        self._batchify_fn = batchify_fn or default_batchify_fn
        self._own_batchify = None if self._batchify_fn in (default_batchify_fn, default_mp_batchify_fn) else batchify_fn
        self._num_workers = max(num_workers, 0)
        self._prefetch = max(0, 2 * self._num_workers if prefetch is None else int(prefetch))
        self._thread_pool = thread_pool
        self._timeout = timeout
        self._pin_memory = pin_memory
        self._pin_device_id = pin_device_id
        self._pool: WorkerPool | None = None
        self._pool_owner = 0
        self._threads: Any = None
        self.auto_reload = auto_reload
        self._iter: Iterator[Any] | None = None
        self._round: dict[str, Any] | None = None  # start of the current epoch, and number of batches read
        self._resumed: dict[str, Any] | None = None  # the position from which the next epoch resumes
        if auto_reload:
            self.refresh()

    @staticmethod
    def _make_batch_sampler(
        dataset: Any, batch_size: int | None, shuffle: bool, sampler: Any, last_batch: str | None, batch_sampler: Any
    ) -> Any:
        if batch_sampler is not None:
            if batch_size is not None or shuffle or sampler is not None or last_batch is not None:
                raise ParamError(
                    "batch_size, shuffle, sampler and last_batch must not be specified if batch_sampler is specified."
                )
            return batch_sampler
        if batch_size is None:
            raise ParamError(
                "batch_size must be specified unless batch_sampler is specified", fix="pass batch_size=32, for example"
            )
        if sampler is not None and shuffle:
            raise ParamError("shuffle must not be specified if sampler is specified")
        if sampler is None:
            if not hasattr(dataset, "__len__"):
                raise ParamError(
                    "DataLoader: dataset",
                    expected="a dataset with a length and indices",
                    given=type(dataset).__name__,
                    fix="pass a list, an array or a Dataset; make a list of a generator: list(samples)",
                )
            order = _sampler.RandomSampler if shuffle else _sampler.SequentialSampler
            sampler = order(len(dataset))
        return _sampler.BatchSampler(sampler, batch_size, last_batch or "keep")

    def __repr__(self) -> str:
        arguments: dict[str, Any] = {
            "num_workers": self._num_workers,
            "thread_pool": self._thread_pool,
            "pin_memory": self._pin_memory,
        }
        used = {name: value for name, value in arguments.items() if value}
        if self._own_batchify is not None:
            used["batchify_fn"] = self._own_batchify
        dataset = repr(self._dataset)
        if len(dataset) > 200:
            dataset = f"{type(self._dataset).__name__} of {count_text(len(self._dataset), 'sample')}"
        text = described(self, dataset, repr(self._batch_sampler), **used)
        try:
            return f"{text}: {count_text(len(self), 'batch')}"
        except (TypeError, HybridNetError):  # a batch sampler without a length
            return text

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        if self._iter is None:
            self.refresh()
        round_, self._iter = self._iter, None
        if self._pin_memory:
            pinned = cpu_pinned(self._pin_device_id)
            round_ = (_as_in_context(batch, pinned) for batch in round_)  # type: ignore[union-attr]
        for batch in round_:  # type: ignore[union-attr]
            if self._round is not None:
                self._round["batches"] += 1
            yield for_user(batch)
        self._round = None
        if self._iter is None and self.auto_reload:
            self.refresh()

    def refresh(self) -> None:
        """Starts prefetching a new epoch."""
        if self._num_workers == 0:
            self._iter = self._iterate_here()
            return
        with self._begun_round() as done:
            if self._thread_pool:
                source: Any = self._submit_to_threads()
            else:
                source = _ProcessRound(self._workers(), self._timeout)
            self._iter = _Prefetched(source, self._batch_sampler, self._prefetch, done)

    def clean(self) -> None:
        """Discards a prefetched epoch."""
        self._iter = None
        self._round = None

    # -- checkpoints ------------------------------------------------------------------------------------------------

    def position(self) -> dict[str, Any]:
        """Returns the position as plain values for set_position(): the start of the epoch, and the batches read.

        Valid for samplers that draw their order from numpy.random when an epoch begins, like those of this package.
        """
        if self._round is not None:
            return dict(self._round)
        return {"numpy": None, "rollover": self._rollover(), "batches": 0}

    def set_position(self, position: dict[str, Any]) -> None:
        """Makes the next iteration continue after the batches that were read when position() was called."""
        self.clean()
        if position["numpy"] is None:
            self._set_rollover(position["rollover"])
        self._resumed = position if position["numpy"] is not None else None

    def _rollover(self) -> list[Any] | None:
        kept = getattr(self._batch_sampler, "_prev", None)
        return None if kept is None else [int(index) for index in kept]

    def _set_rollover(self, kept: list[Any] | None) -> None:
        if kept is not None:
            self._batch_sampler._prev = list(kept)

    @contextlib.contextmanager
    def _begun_round(self) -> Iterator[int]:
        """Begins an epoch, or restarts the one of set_position(); yields the number of batches to skip."""
        resumed, self._resumed = self._resumed, None
        if resumed is None:
            self._round = {"numpy": numpy_random_state(), "rollover": self._rollover(), "batches": 0}
            yield 0
            return
        self._round = dict(resumed)
        now = np.random.get_state()
        try:
            set_numpy_random_state(resumed["numpy"])
            self._set_rollover(resumed["rollover"])
            yield resumed["batches"]
        finally:
            np.random.set_state(now)

    # -- in this process --------------------------------------------------------------------------------------------

    def _make(self, indices: Sequence[Any]) -> Any:
        dataset = self._dataset
        if type(dataset) in GATHERING and self._own_batchify is None:
            batch = dataset._gather(indices)
            if batch is not None:
                return batch
        return self._batchify_fn([dataset[i] for i in indices])

    def _iterate_here(self) -> Iterator[Any]:
        with self._begun_round() as done:
            batches = iter(self._batch_sampler)
            for _ in itertools.islice(batches, done):
                pass
        for indices in batches:
            yield self._make(indices)

    # -- threads and processes --------------------------------------------------------------------------------------

    def _submit_to_threads(self) -> _ThreadRound:
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(self._num_workers, thread_name_prefix="hybridnet-dataloader")
        return _ThreadRound(self._threads, self._make, self._timeout)

    def _workers(self) -> WorkerPool:
        # A pool belongs to the process that created it: after a fork a new one is needed.
        if self._pool is None or not self._pool.alive or self._pool_owner != os.getpid():
            from ._worker_pool import WorkerPool

            self._pool = WorkerPool(self._num_workers, self._dataset, self._own_batchify)
            self._pool_owner = os.getpid()
        return self._pool

    @cached_property
    def _worker_pool(self) -> Any:
        """A pool for iterators that subclass _MultiWorkerIter; None without workers."""
        if self._num_workers == 0:
            return None
        modes = (is_np_shape(), is_np_array())
        self._worker_pool_owner = os.getpid()
        if self._thread_pool:
            return ThreadPool(self._num_workers, _thread_worker_initializer, modes)
        return multiprocessing.Pool(self._num_workers, _worker_initializer, (self._dataset, *modes))

    def __del__(self) -> None:
        derived = self.__dict__.get("_worker_pool")
        if derived is not None and self.__dict__.get("_worker_pool_owner") == os.getpid():
            derived.terminate()
        # Threads end by themselves with their executor; its shutdown would take locks, here in a finalizer.
        pool = getattr(self, "_pool", None)
        if pool is not None and self._pool_owner == os.getpid():
            pool.stop()


add_habits(DataLoader, "loader")


class _ThreadRound:
    """One epoch of batches made by threads."""

    def __init__(self, threads: Any, make: Callable[[Sequence[Any]], Any], timeout: float) -> None:
        self._threads = threads
        self._make = make
        self._timeout = timeout

    def submit(self, indices: Sequence[Any]) -> Any:
        return self._threads.submit(self._make, indices)

    def skip(self) -> None:
        pass

    def get(self, ticket: Any) -> Any:
        from concurrent.futures import TimeoutError as FutureTimeout

        from ._worker_pool import DataLoaderTimeout

        try:
            return ticket.result(self._timeout)
        except FutureTimeout:
            if ticket.done():
                raise
            raise DataLoaderTimeout(f"Worker timed out after {self._timeout} seconds.") from None

    def abandon(self, tickets: Sequence[Any]) -> None:
        for ticket in tickets:
            ticket.cancel()


class _ProcessRound:
    """One epoch of batches made by worker processes."""

    def __init__(self, pool: WorkerPool, timeout: float) -> None:
        self._pool = pool
        self._timeout = timeout
        self._seeds = np.random.RandomState(np.random.randint(1 << 31))

    def submit(self, indices: Sequence[Any]) -> int:
        return self._pool.submit(indices, int(self._seeds.randint(1 << 31)))

    def skip(self) -> None:
        self._seeds.randint(1 << 31)

    def get(self, ticket: int) -> Any:
        return self._pool.get(ticket, self._timeout)

    def abandon(self, tickets: Sequence[int]) -> None:
        if self._pool.alive:
            self._pool.abandon(tickets)


class _Prefetched:
    """One epoch: requests `prefetch` batches ahead and returns them in order."""

    def __init__(self, source: Any, batch_sampler: Any, prefetch: int, done: int = 0) -> None:
        self._source = source
        self._length = len(batch_sampler)
        self._batches = iter(batch_sampler)
        for _ in itertools.islice(self._batches, done):
            source.skip()
        self._tickets: deque[Any] = deque()
        for _ in range(prefetch):
            self._request()

    def _request(self) -> None:
        indices = next(self._batches, None)
        if indices is not None:
            self._tickets.append(self._source.submit(indices))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._request()
        if not self._tickets:
            raise StopIteration
        return self._source.get(self._tickets.popleft())

    next = __next__

    def __del__(self) -> None:
        tickets = getattr(self, "_tickets", None)
        if tickets:
            self._source.abandon(list(tickets))


# Libraries look for these names here.
__getattr__, __dir__ = names_from(
    __name__,
    {"_pool_iterator": "_MultiWorkerIter _thread_worker_fn _worker_fn"},
    {"context": "...context", "nd": "...ndarray"},
)
__dir__ = dir_of(__name__, __dir__)
