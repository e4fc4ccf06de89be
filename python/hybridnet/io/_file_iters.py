"""Iterators over files: comma-separated values, LibSVM text, MNIST images."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._files import read_lines
from ..errors import FileError, FormatError, ShapeError
from ..ndarray import NDArray
from ..ndarray import array as array_of
from ..ndarray.sparse import CSRNDArray, csr_matrix
from ._array_iter import NDArrayIter
from ._idx_files import read_idx

__all__ = ["CSVIter", "LibSVMIter", "MNISTIter"]


def _read_table(path: str, shape: Sequence[int], dtype: Any, iterator: str) -> np.ndarray:
    """Reads rows of numbers as an array (rows, *shape)."""
    try:
        table = np.loadtxt(path, delimiter=",", dtype=dtype, ndmin=2)
    except OSError as error:
        raise FileError(f"{iterator}: cannot read '{path}': {error}") from error
    except ValueError as error:
        raise FormatError(f"{iterator}: '{path}' is no table of numbers: {error}") from error
    if table.shape[1] != math.prod(shape):
        raise ShapeError(
            f"{iterator}: rows of '{path}' have {table.shape[1]} values, shape {tuple(shape)} needs {math.prod(shape)}"
        )
    return table.reshape(-1, *shape)


class _FileIter(NDArrayIter):
    """Base of iterators with one array and one label per batch; getdata and getlabel return no lists, like MXNet's."""

    def getdata(self) -> NDArray:  # type: ignore[override]
        """Returns the array of the current batch."""
        return self._arrays()[0]

    def getlabel(self) -> NDArray:  # type: ignore[override]
        """Returns the labels of the current batch."""
        return self._labels()[0]


class CSVIter(_FileIter):
    """Yields batches of the rows of a file of comma-separated numbers.

    Parameters
    ----------
    data_csv : str
    data_shape : tuple of int
        Shape of one sample, whose size is the number of values per row.
    label_csv : str, optional
        Default: labels are 0.
    label_shape : tuple of int, default (1,)
    batch_size : int
    round_batch : bool, default True
        Whether an incomplete last batch is filled from the beginning (getpad returns the number); else it is skipped.
    dtype : default 'float32'

    Raises FileError, FormatError for files, ShapeError if rows have another length.
    """

    def __init__(
        self,
        data_csv: str,
        data_shape: Sequence[int],
        label_csv: str | None = None,
        label_shape: Sequence[int] = (1,),
        batch_size: int = 1,
        round_batch: bool = True,
        dtype: Any = "float32",
        data_name: str = "data",
        label_name: str = "softmax_label",
        **_: Any,
    ) -> None:
        dtype = np.dtype(dtype or "float32")
        data = _read_table(data_csv, data_shape, dtype, "CSVIter")
        label = (
            np.zeros((len(data), *label_shape), dtype)
            if label_csv is None or label_csv == "NULL"
            else _read_table(label_csv, label_shape, dtype, "CSVIter")
        )
        if tuple(label_shape) == (1,):
            label = label.reshape(-1)
        super().__init__(
            {data_name: array_of(data, dtype=dtype)},  # NDArrays: NDArrayIter makes float32 of other arrays
            {label_name: array_of(label, dtype=dtype)},
            batch_size,
            last_batch_handle="pad" if round_batch else "discard",
            data_name=data_name,
            label_name=label_name,
        )


def _read_libsvm(path: str, size: int) -> tuple[np.ndarray, CSRNDArray]:
    """Reads labels and rows of ``label index:value ...`` lines; indices start at 0."""
    labels: list[list[float]] = []
    columns, values, starts = array("q"), array("f"), array("q", [0])
    for number, line in enumerate(read_lines(path, "LibSVMIter"), 1):
        items = line.split()
        if not items:
            continue
        pairs = [item.split(":") for item in items if ":" in item]
        try:
            labels.append([float(item) for item in items if ":" not in item])
            columns.extend([int(index) for index, _ in pairs])
            values.extend([float(value) for _, value in pairs])
        except (ValueError, OverflowError) as error:
            raise FormatError(f"LibSVMIter: '{path}', line {number}: {error}") from error
        row = columns[starts[-1] :]
        if row and not 0 <= min(row) <= max(row) < size:
            raise FormatError(
                f"LibSVMIter: '{path}', line {number}",
                expected=f"indices from 0 to {size - 1}",
                given=f"{min(row)} to {max(row)}",
            )
        starts.append(len(columns))
    if not labels:
        raise FormatError(f"LibSVMIter: '{path}' has no lines")
    if len({len(label) for label in labels}) > 1:
        raise FormatError(f"LibSVMIter: lines of '{path}' have different numbers of labels")
    parts = (np.array(values, np.float32), np.array(columns, np.int64), np.array(starts, np.int64))
    return np.array(labels, np.float32), csr_matrix(parts, shape=(len(labels), size))


class LibSVMIter(_FileIter):
    """Yields batches of a LibSVM file; data are CSRNDArrays.

    Parameters
    ----------
    data_libsvm : str
    data_shape : tuple of int
        Number of features.
    label_libsvm : str, optional
        File with the labels; default: those in data_libsvm.
    label_shape : tuple of int, default (1,)
    batch_size : int
    round_batch : bool, default True
        See CSVIter.
    """

    def __init__(
        self,
        data_libsvm: str,
        data_shape: Sequence[int],
        label_libsvm: str | None = None,
        label_shape: Sequence[int] = (1,),
        batch_size: int = 1,
        round_batch: bool = True,
        data_name: str = "data",
        label_name: str = "softmax_label",
        **_: Any,
    ) -> None:
        size = math.prod((data_shape,) if isinstance(data_shape, int) else data_shape)
        label, data = _read_libsvm(data_libsvm, size)
        if label_libsvm is not None and label_libsvm != "NULL":
            width = math.prod(label_shape)
            own, sparse = _read_libsvm(label_libsvm, width)
            label = sparse.asnumpy() if own.shape[1] == 0 or width > 1 else own
        if label.ndim == 2 and label.shape[1] == 1:
            label = label.reshape(-1)
        super().__init__(
            {data_name: data}, {label_name: label}, batch_size, last_batch_handle="pad" if round_batch else "discard"
        )


class MNISTIter(_FileIter):
    """Yields batches of MNIST's files: float32 images in [0, 1), (N, 1, 28, 28) or, with flat, (N, 784), and labels.

    Parameters
    ----------
    image, label : str
        Paths of the ``-ubyte`` files, plain or ``.gz``.
    batch_size : int, default 128
    shuffle : bool, default True
        Whether samples are in random order (by seed).
    flat : bool, default False
    seed : int, default 0
    silent, input_flat : accepted

    An incomplete last batch is skipped. Raises FileError, FormatError for files.
    """

    def __init__(
        self,
        image: str = "./train-images-idx3-ubyte",
        label: str = "./train-labels-idx1-ubyte",
        batch_size: int = 128,
        shuffle: bool = True,
        flat: bool = False,
        seed: int = 0,
        silent: bool = False,
        data_name: str = "data",
        label_name: str = "softmax_label",
        **_: Any,
    ) -> None:
        labels = read_idx(label, 8)
        pixels = read_idx(image, 16)
        if pixels.size != labels.size * 784:
            raise FormatError(
                f"MNISTIter: '{image}' holds {pixels.size} bytes, {labels.size} images of 784 were expected"
            )
        images = pixels.reshape((-1, 784) if flat else (-1, 1, 28, 28)).astype(np.float32) / 256
        targets = labels.astype(np.float32)
        if shuffle:
            order = np.random.RandomState(seed).permutation(len(targets))
            images, targets = images[order], targets[order]
        super().__init__({data_name: images}, {label_name: targets}, batch_size, last_batch_handle="discard")
