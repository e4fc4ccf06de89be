"""ImageIter: batches of images from record files, list files or lists, with Python augmenters."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from .. import recordio
from .._files import read_bytes, read_lines
from ..errors import FormatError, HybridNetError, ParamError
from ..io import DataBatch, DataIter
from ._augment import CreateAugmenter
from .image import imdecode

__all__ = ["ImageIter"]


def _read_list(path: str) -> dict[Any, tuple[np.ndarray, str]]:
    """Reads lines ``key<tab>label...<tab>file`` of a list file."""
    found: dict[Any, tuple[np.ndarray, str]] = {}
    for number, line in enumerate(read_lines(path, "ImageIter"), 1):
        fields = line.strip().split("\t")
        try:
            found[int(fields[0])] = (np.array([float(f) for f in fields[1:-1]]), fields[-1])
        except (ValueError, IndexError) as error:
            raise FormatError(f"ImageIter: '{path}', line {number}: {error}") from error
    return found


def _from_list(items: Sequence[Any]) -> dict[Any, tuple[np.ndarray, str]]:
    """Converts [label, ..., file] items; keys are '1', '2', ..."""
    found = {}
    for number, item in enumerate(items, 1):
        label = item[:-1] if len(item) > 2 else item[0]
        found[str(number)] = (np.atleast_1d(np.asarray(label, dtype=np.float64)), item[-1])
    return found


class ImageIter(DataIter):
    """Yields batches of images (N, C, H, W) float32 and labels.

    Parameters
    ----------
    batch_size : int
    data_shape : (3, height, width)
    label_width : int, default 1
    path_imgrec, path_imgidx : str, optional
        Record file and its index (needed to shuffle and to read parts).
    path_imglist : str, optional
        File with lines ``key<tab>label<tab>file``.
    path_root : str, optional
        Folder of the image files.
    imglist : list, optional
        [label, file] or [label, label, ..., file] items.
    shuffle : bool, default False
    part_index, num_parts : int
        Reads part number part_index of num_parts parts.
    aug_list : list of Augmenter, optional
        Default: CreateAugmenter(data_shape, **kwargs).
    dtype : str, default 'float32'
        Element type of the labels.
    last_batch_handle : {'pad', 'discard', 'roll_over'}

    Images that cannot be decoded are skipped, with a line in the log. Raises ParamError for wrong arguments, FileError
    and FormatError for files.
    """

    def __init__(
        self,
        batch_size: int,
        data_shape: Sequence[int],
        label_width: int = 1,
        path_imgrec: str | None = None,
        path_imglist: str | None = None,
        path_root: str | None = None,
        path_imgidx: str | None = None,
        shuffle: bool = False,
        part_index: int = 0,
        num_parts: int = 1,
        aug_list: Sequence[Any] | None = None,
        imglist: Sequence[Any] | None = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: str = "float32",
        last_batch_handle: str = "pad",
        **kwargs: Any,
    ) -> None:
        super().__init__(batch_size)
        if not (path_imgrec or path_imglist or isinstance(imglist, list)):
            raise ParamError("ImageIter: one of path_imgrec, path_imglist and imglist is needed")
        if last_batch_handle not in ("pad", "discard", "roll_over"):
            raise ParamError(
                "ImageIter: last_batch_handle must be 'pad', 'discard' or 'roll_over'", given=repr(last_batch_handle)
            )
        self.check_data_shape(data_shape)
        self.data_shape = tuple(data_shape)
        self.path_root = path_root
        self.label_width = label_width
        self.shuffle = shuffle
        self.dtype = dtype
        self.last_batch_handle = last_batch_handle
        self.imglist = _read_list(path_imglist) if path_imglist else _from_list(imglist) if imglist else None
        self._source = path_imglist or path_imgrec or "imglist"
        self.imgrec: Any = None
        self.seq: list[Any] | None = list(self.imglist) if self.imglist is not None else None
        if path_imgrec:
            self._open_records(path_imgrec, path_imgidx)
        if (shuffle or num_parts > 1) and self.seq is None:
            raise ParamError("ImageIter: shuffling and reading parts of a record file needs path_imgidx")
        if num_parts > 1:
            if not 0 <= part_index < num_parts:
                raise ParamError(f"ImageIter: part_index must be in [0, {num_parts})", given=str(part_index))
            part = len(self.seq) // num_parts  # type: ignore[arg-type]
            self.seq = self.seq[part_index * part : (part_index + 1) * part]  # type: ignore[index]
        self.num_image = None if self.seq is None else len(self.seq)
        self.auglist: list[Any] = list(aug_list) if aug_list is not None else CreateAugmenter(data_shape, **kwargs)
        self.provide_data = [(data_name, (batch_size, *self.data_shape))]
        labels = (batch_size, label_width) if label_width > 1 else (batch_size,)
        self.provide_label = [(label_name, labels)]
        self.cur = 0
        # Samples of an incomplete batch, used at the start of the next epoch.
        self._rest: list[tuple[np.ndarray, np.ndarray]] = []
        self.reset()

    def _open_records(self, path: str, index: str | None) -> None:
        if index:
            self.imgrec = recordio.MXIndexedRecordIO(index, path, "r")
            if self.imglist is None:
                self.seq = list(self.imgrec.keys)
        else:
            self.imgrec = recordio.MXRecordIO(path, "r")
            self.seq = None

    @staticmethod
    def check_data_shape(data_shape: Sequence[int]) -> None:
        """Raises ParamError unless data_shape is (3, height, width)."""
        if len(data_shape) != 3:
            raise ParamError("data_shape should have length 3, with dimensions CxHxW")
        if data_shape[0] != 3:
            raise ParamError("This iterator expects inputs to have 3 channels.")

    def reset(self) -> None:
        """Starts a new epoch."""
        if self.seq is not None and self.shuffle:
            random.shuffle(self.seq)
        if self.imgrec is not None and self.seq is None:
            self.imgrec.reset()
        self.cur = 0

    def hard_reset(self) -> None:
        """Starts a new epoch and discards samples that would roll over."""
        self._rest = []
        self.reset()

    def next_sample(self) -> tuple[Any, bytes]:
        """Returns (label, encoded image) of the next sample. Raises StopIteration after the last one."""
        if self.seq is None:
            record = self.imgrec.read()
            if record is None:
                raise StopIteration
            header, content = recordio.unpack(record)
            return header.label, content
        if self.cur >= len(self.seq):
            raise StopIteration
        key = self.seq[self.cur]
        self.cur += 1
        if self.imgrec is not None:
            header, content = recordio.unpack(self.imgrec.read_idx(key))
            return (header.label if self.imglist is None else self.imglist[key][0]), content
        label, name = self.imglist[key]  # type: ignore[index]
        return label, self.read_image(name)

    def read_image(self, fname: str) -> bytes:
        """Returns the content of a file below path_root. Raises FileError."""
        return read_bytes(os.path.join(self.path_root or "", fname), "ImageIter")

    def imdecode(self, s: bytes) -> nd.NDArray:
        """Decodes the image in s."""
        return imdecode(s)

    def augmentation_transform(self, data: nd.NDArray) -> nd.NDArray:
        """Applies all augmenters to the image."""
        for augmenter in self.auglist:
            data = augmenter(data)
        return data

    def postprocess_data(self, datum: nd.NDArray) -> nd.NDArray:
        """Transposes (H, W, C) to (C, H, W)."""
        return nd.transpose(datum, axes=(2, 0, 1))

    def _one(self) -> tuple[np.ndarray, np.ndarray]:
        while True:
            label, content = self.next_sample()
            try:
                image, label = self._made(label, content)
            except FormatError as error:
                logging.debug("Invalid image, skipping: %s", error)
                continue
            self._check_label(label)
            data = self.postprocess_data(image).asnumpy()
            if data.shape != self.data_shape:
                raise HybridNetError(
                    f"ImageIter: an image has shape {data.shape} after the augmenters, data_shape is {self.data_shape}"
                )
            return data, label

    def _made(self, label: Any, content: bytes) -> tuple[nd.NDArray, np.ndarray]:
        """Returns the augmented image and its label. Raises FormatError for a sample to skip."""
        image = self.augmentation_transform(self.imdecode(content))
        return image, np.atleast_1d(np.asarray(label, dtype=self.dtype))

    def _check_label(self, label: np.ndarray) -> None:
        """Raises FormatError, with the place in the file, for a label with too few numbers."""
        if label.size < self.label_width:
            place = "a record" if self.seq is None else f"sample {self.seq[self.cur - 1]!r}"
            raise FormatError(
                f"ImageIter: {self._source}: the label of {place}",
                expected=f"{self.label_width} numbers (label_width)",
                given=str(label.size),
            )

    def _label_batch(self, labels: list[np.ndarray]) -> nd.NDArray:
        values = np.stack([label[: self.label_width] for label in labels])
        return nd.array(values[:, 0] if self.label_width == 1 else values, dtype=self.dtype)

    def _fill(self, samples: list[tuple[np.ndarray, np.ndarray]]) -> None:
        while len(samples) < self.batch_size:
            try:
                samples.append(self._one())
            except StopIteration:
                return

    def next(self) -> DataBatch:
        """Returns the next batch. Raises StopIteration after the last one."""
        samples, self._rest = self._rest, []
        left_over = len(samples)
        self._fill(samples)
        pad = self.batch_size - len(samples)
        if pad == self.batch_size or (pad and self.last_batch_handle == "discard"):
            raise StopIteration
        if pad and self.last_batch_handle == "roll_over":
            self._rest = samples
            raise StopIteration
        if pad:
            own = len(samples)
            self.reset()
            self._fill(samples)
            # Samples taken from the beginning do not start a new epoch.
            self.cur = len(self.seq) if self.seq is not None else self.cur
            while len(samples) < self.batch_size:
                samples.append(samples[len(samples) % own])
            if self.seq is None:
                while self.imgrec.read() is not None:
                    pass
        data = nd.array(np.stack([image for image, _ in samples]))
        label = self._label_batch([label for _, label in samples])
        # If samples of the last epoch come first, MXNet counts the new ones as padding.
        return DataBatch([data], [label], pad=self.batch_size - left_over if left_over else pad)
