"""Datasets: objects with a length and indexed samples."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import ndarray
from ..._described import count_text, described, name_of_callable
from ..._habits import add_habits
from ..._lazy_names import names_from
from ..._public_names import dir_of
from ...errors import HybridNetError, ParamError, not_overridden
from ...errors import TypeError as HybridNetTypeError
from .sampler import FilterSampler, Sampler, SequentialSampler

__all__ = ["ArrayDataset", "Dataset", "RecordFileDataset", "SimpleDataset"]


class Dataset:
    """Base of datasets. Subclasses define ``__getitem__`` and ``__len__``."""

    def __getitem__(self, idx: int) -> Any:
        raise not_overridden(self, "__getitem__()")

    def __len__(self) -> int:
        raise not_overridden(self, "__len__()")

    def __repr__(self) -> str:
        return described(self, *self._parts())

    def _parts(self) -> list[str]:
        """Returns the texts for the parentheses of repr: the number of samples, if it is known."""
        try:
            return [count_text(len(self), "sample")]
        except HybridNetError:
            return []

    def filter(self, fn: Callable[[Any], bool]) -> Dataset:
        """Returns the samples for which fn(sample) is true; fn runs on all samples immediately."""
        return _SampledDataset(self, FilterSampler(fn, self))

    def shard(self, num_shards: int, index: int) -> Dataset:
        """Returns part number index of num_shards contiguous parts whose lengths differ by at most one.

        Raises ParamError unless 0 <= index < num_shards.
        """
        if num_shards <= 0:
            raise ParamError("Number of shards must be greater than 0", given=str(num_shards))
        if not 0 <= index < num_shards:
            raise ParamError(f"Shard index of out bound: {index} out of {num_shards}")
        each, rest = divmod(len(self), num_shards)
        start = each * index + min(index, rest)
        return _SampledDataset(self, SequentialSampler(each + (index < rest), start))

    def take(self, count: int | None) -> Dataset:
        """Returns the first count samples; all for None or a larger count. Raises ParamError if count < 0."""
        if count is not None and count < 0:
            raise ParamError("Dataset.take", expected="a count >= 0 or None", given=str(count))
        length = len(self)
        return _SampledDataset(self, SequentialSampler(length if count is None else min(count, length)))

    def sample(self, sampler: Sampler) -> Dataset:
        """Returns the samples at the sampler's indices, in its order. Raises TypeError unless it is a Sampler."""
        if not isinstance(sampler, Sampler):
            raise HybridNetTypeError(f"Invalid sampler type: {type(sampler)}. Expected gluon.data.Sampler instead.")
        return _SampledDataset(self, sampler)

    def transform(self, fn: Callable[..., Any], lazy: bool = True) -> Dataset:
        """Applies fn to each sample (to its parts, if it is a tuple); lazy: when the sample is read."""
        transformed = _LazyTransformDataset(self, fn)
        return transformed if lazy else SimpleDataset([transformed[i] for i in range(len(transformed))])

    def transform_first(self, fn: Callable[[Any], Any], lazy: bool = True) -> Dataset:
        """Applies fn to the first part of each sample, such as the image of (image, label)."""
        return self.transform(_TransformFirstClosure(fn), lazy)


add_habits(Dataset, "dataset")


class SimpleDataset(Dataset):
    """Wraps a list, or any object with length and indices, as a Dataset."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: int) -> Any:
        return self._data[idx]


class _LazyTransformDataset(Dataset):
    def __init__(self, data: Dataset, fn: Callable[..., Any]) -> None:
        self._data = data
        self._fn = fn

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: int) -> Any:
        item = self._data[idx]
        return self._fn(*item) if isinstance(item, tuple) else self._fn(item)

    def __repr__(self) -> str:
        first = isinstance(self._fn, _TransformFirstClosure)
        function = name_of_callable(self._fn._fn if isinstance(self._fn, _TransformFirstClosure) else self._fn)
        return f"{self._data!r}.{'transform_first' if first else 'transform'}({' '.join(function.split())})"


class _TransformFirstClosure:
    """A class instead of a closure, so that it can be pickled."""

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self._fn = fn

    def __call__(self, x: Any, *args: Any) -> Any:
        return (self._fn(x), *args) if args else self._fn(x)


class _SampledDataset(Dataset):
    def __init__(self, dataset: Dataset, sampler: Sampler) -> None:
        self._dataset = dataset
        self._sampler = sampler
        self._indices = list(sampler)

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, idx: int) -> Any:
        return self._dataset[self._indices[idx]]

    def __repr__(self) -> str:
        return f"{self._dataset!r}.sample({self._sampler!r})"


class ArrayDataset(Dataset):
    """Combines arrays of equal length: sample i is (a[i], b[i], ...), or a[i] for a single array.

    args: NDArrays, NumPy arrays, lists. Raises ParamError if there is none or lengths differ.
    """

    def __init__(self, *args: Any) -> None:
        if not args:
            raise ParamError("Needs at least 1 arrays")
        self._length = len(args[0])
        self._data: list[Any] = []
        for i, data in enumerate(args):
            if len(data) != self._length:
                raise ParamError(
                    f"All arrays must have the same length; array[0] has length {self._length} while array[{i}] has "
                    f"{len(data)}.",
                    fix="pass as many labels as samples, and the samples along the first axis",
                )
            # A vector (labels) gives numbers instead of arrays of one element.
            if isinstance(data, ndarray.NDArray) and len(data.shape) == 1:
                data = data.asnumpy()
            self._data.append(data)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, idx: int) -> Any:
        if len(self._data) == 1:
            return self._data[0][idx]
        return tuple(data[idx] for data in self._data)

    def _parts(self) -> list[str]:
        texts = []
        for data in self._data:
            spec = f" {np.dtype(data.dtype)}{tuple(data.shape)}" if hasattr(data, "dtype") else ""
            texts.append(f"{type(data).__name__}{spec}")
        return [f"{super()._parts()[0]}: {', '.join(texts)}"]

    def _gather(self, indices: Sequence[int]) -> Any | None:
        """Returns the batch of these samples as default_batchify_fn makes it; None unless all are NDArray or NumPy."""
        if not all(isinstance(data, (np.ndarray, ndarray.NDArray)) for data in self._data):
            return None
        rows = np.asarray(indices)
        if rows.dtype.kind not in "iu":
            return None
        columns = []
        for data in self._data:
            if isinstance(data, np.ndarray):
                if data.dtype.kind not in "biuf":
                    return None
                batch = data[rows]
                columns.append(ndarray.array(batch, dtype=batch.dtype))
            else:
                columns.append(
                    ndarray.take(data.as_nd_ndarray(), ndarray.array(rows, dtype="int64"), axis=0, mode="clip")
                )
        return columns[0] if len(columns) == 1 else columns


# Classes whose _gather() makes the same batch as the samples one by one, but faster. Not their subclasses, which may
# have another __getitem__.
GATHERING: set[type] = {ArrayDataset}


class RecordFileDataset(Dataset):
    """Raw records of a RecordIO file with its index file (``.idx``)."""

    def __init__(self, filename: str) -> None:
        from ... import recordio

        self.idx_file = os.path.splitext(filename)[0] + ".idx"
        self.filename = filename
        self._record = recordio.MXIndexedRecordIO(self.idx_file, self.filename, "r")

    def _parts(self) -> list[str]:
        return [repr(self.filename), *super()._parts()]

    def __len__(self) -> int:
        return len(self._record.keys)

    def __getitem__(self, idx: int) -> Any:
        return self._record.read_idx(self._record.keys[idx])


class _DownloadedDataset(Dataset):
    """Base of datasets in a folder of files: images and labels are read at once."""

    def __init__(self, root: str, transform: Callable[[Any, Any], Any] | None) -> None:
        self._transform = transform
        self._data: Any = None
        self._label: Any = None
        self._root = os.path.expanduser(root)
        os.makedirs(self._root, exist_ok=True)
        self._get_data()

    def _parts(self) -> list[str]:
        return [*super()._parts(), f"root={self._root!r}"]

    def __len__(self) -> int:
        return len(self._label)

    def __getitem__(self, idx: int) -> Any:
        if self._transform is not None:
            return self._transform(self._data[idx], self._label[idx])
        return self._data[idx], self._label[idx]

    def _get_data(self) -> None:
        raise not_overridden(self, "_get_data()")


# MXNet programs reach these modules through this one.
__getattr__, __dir__ = names_from(__name__, modules={"recordio": "...recordio"})
__dir__ = dir_of(__name__, __dir__)
