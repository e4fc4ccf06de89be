"""Samplers: iteration orders over samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..._described import changed_arguments, described
from ..._keywords import ChecksKeywords, as_bool
from ..._public_names import dir_of
from ...errors import ParamError, not_overridden

__all__ = [
    "BatchSampler",
    "FilterSampler",
    "IntervalSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SplitSampler",
]


class Sampler(ChecksKeywords):
    """Base of samplers. Subclasses define ``__iter__`` and ``__len__``."""

    def __repr__(self) -> str:
        return described(self, **changed_arguments(self))

    def __iter__(self) -> Iterator[Any]:
        raise not_overridden(self, "__iter__()")

    def __len__(self) -> int:
        raise not_overridden(self, "__len__()")


class SequentialSampler(Sampler):
    """Yields start, start + 1, ..., start + length - 1."""

    def __init__(self, length: int, start: int = 0) -> None:
        self._length = length
        self._start = start

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._start, self._start + self._length))

    def __len__(self) -> int:
        return self._length


class RandomSampler(Sampler):
    """Yields 0 to length - 1 in a new random order each time, from numpy.random."""

    def __init__(self, length: int) -> None:
        self._length = length

    def __iter__(self) -> Iterator[int]:
        return iter(np.random.permutation(self._length).tolist())

    def __len__(self) -> int:
        return self._length


class SplitSampler(Sampler):
    """Yields the indices of one of num_parts contiguous parts of 0 to length - 1, in a new random order each time::

        sampler = SplitSampler(len(dataset), mx.group.size(), mx.group.rank())
        for batch in DataLoader(dataset, batch_size, sampler=sampler): ...

    Each index is in one part. If length is no multiple of num_parts, the first length % num_parts parts are one longer.

    Parameters
    ----------
    length : int
        Number of samples, at least num_parts; with even=False at least 0.
    num_parts : int, default 1
    part_index : int, default 0
    even : bool, default True
        Whether all parts yield the same number of indices, so that all processes make equally many steps: a shorter
        part ends with its first index again. Nothing is dropped. False: parts differ by at most one index.
    shuffle : bool, default True
        Whether the order is random, from numpy.random; False: ascending.

    Raises ParamError for other values.
    """

    def __init__(
        self, length: int, num_parts: int = 1, part_index: int = 0, even: bool = True, shuffle: bool = True
    ) -> None:
        self._even, self._shuffle = as_bool("SplitSampler: even", even), as_bool("SplitSampler: shuffle", shuffle)
        for name, value, least in (("num_parts", num_parts, 1), ("part_index", part_index, 0), ("length", length, 0)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise ParamError(f"SplitSampler: {name}", expected=f"an integer, {least} or more", given=repr(value))
        if part_index >= num_parts:
            raise ParamError(
                "SplitSampler: part_index",
                expected=f"less than {num_parts}, the number of parts",
                given=repr(part_index),
                fix="pass SplitSampler(length, num_parts, part_index): with processes, mx.group.size() and rank()",
            )
        if self._even and 0 < length < num_parts:
            raise ParamError(
                "SplitSampler: length",
                expected=f"at least {num_parts}, the number of parts",
                given=repr(length),
                because="a part without samples has none to repeat",
                fix="use fewer parts, or pass even=False",
            )
        self._length, self._num_parts, self._part_index = int(length), int(num_parts), int(part_index)
        each, longer = divmod(self._length, self._num_parts)
        self._start = each * self._part_index + min(self._part_index, longer)
        self._stop = self._start + each + (self._part_index < longer)
        self._repeats = longer > 0 and self._part_index >= longer and self._even

    def __iter__(self) -> Iterator[int]:
        count = self._stop - self._start
        order = np.random.permutation(count) if self._shuffle else np.arange(count)
        indices = (self._start + order).tolist()
        return iter(indices + indices[:1] if self._repeats else indices)

    def __len__(self) -> int:
        return self._stop - self._start + self._repeats


class FilterSampler(Sampler):
    """Yields the indices of the samples for which fn(sample) is true."""

    def __init__(self, fn: Callable[[Any], bool], dataset: Any) -> None:
        self._fn = fn
        self._dataset = dataset
        self._indices = [i for i in range(len(dataset)) if fn(dataset[i])]

    def __repr__(self) -> str:
        return described(self, f"{len(self._indices):,} of {len(self._dataset):,}", fn=self._fn)

    def __iter__(self) -> Iterator[int]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)


class BatchSampler(Sampler):
    """Groups the indices of a sampler into lists of batch_size.

    last_batch: treatment of an incomplete last group: 'keep' yields it, 'discard' drops it, 'rollover' puts it at the
    start of the next epoch. Raises ParamError for other values or batch_size < 1.
    """

    def __init__(self, sampler: Sampler, batch_size: int, last_batch: str = "keep") -> None:
        if last_batch not in ("keep", "discard", "rollover"):
            raise ParamError(f"last_batch must be one of 'keep', 'discard', or 'rollover', but got {last_batch}")
        if not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
            raise ParamError(
                "batch_size must be at least 1", given=repr(batch_size), fix="pass an integer, such as batch_size=32"
            )
        self._sampler = sampler
        self._batch_size = batch_size
        self._last_batch = last_batch
        self._prev: list[Any] = []

    def __repr__(self) -> str:
        return described(self, repr(self._sampler), batch_size=self._batch_size, last_batch=self._last_batch)

    def __iter__(self) -> Iterator[list[Any]]:
        batch, self._prev = self._prev, []
        for index in self._sampler:
            batch.append(index)
            if len(batch) == self._batch_size:
                yield batch
                batch = []
        if batch and self._last_batch == "keep":
            yield batch
        elif batch and self._last_batch == "rollover":
            self._prev = batch

    def __len__(self) -> int:
        total = len(self._sampler)
        if self._last_batch == "keep":
            return (total + self._batch_size - 1) // self._batch_size
        if self._last_batch == "discard":
            return total // self._batch_size
        return (len(self._prev) + total) // self._batch_size


class IntervalSampler(Sampler):
    """Yields 0, interval, 2 * interval, ...; with rollover then 1, 1 + interval, ... until all length indices are done.

    Raises ParamError unless 1 <= interval <= length.
    """

    def __init__(self, length: int, interval: int, rollover: bool = True) -> None:
        if not 1 <= interval <= length:
            raise ParamError(f"Interval {interval} must be between 1 and length {length}")
        self._length = length
        self._interval = interval
        self._rollover = rollover

    def __iter__(self) -> Iterator[int]:
        for start in range(self._interval if self._rollover else 1):
            yield from range(start, self._length, self._interval)

    def __len__(self) -> int:
        return self._length if self._rollover else (self._length + self._interval - 1) // self._interval


__dir__ = dir_of(__name__)
