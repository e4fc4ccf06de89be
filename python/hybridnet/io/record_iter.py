"""ImageRecordIter: batches of images from RecordIO files, decoded and augmented in threads."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from .. import ndarray, recordio
from ..errors import FormatError, ParamError, UnsupportedError
from . import pixels
from .batches import DataBatch, DataDesc, DataIter
from .image_files import decode_image

__all__ = ["ImageRecordIter", "ImageRecordUInt8Iter"]

# Augmentations of MXNet that are not done, and the values that ask for none.
_NEUTRAL = {
    "max_rotate_angle": 0,
    "max_aspect_ratio": 0.0,
    "max_shear_ratio": 0.0,
    "max_random_scale": 1.0,
    "min_random_scale": 1.0,
    "max_crop_size": -1,
    "min_crop_size": -1,
    "rotate": -1,
    "random_h": 0,
    "random_s": 0,
    "random_l": 0,
    "max_random_contrast": 0.0,
    "max_random_illumination": 0.0,
    "mean_img": "",
}


def _record_positions(path: str, index: str | None) -> list[int]:
    """Where the records of a file begin: from the index, else by reading through."""
    if index and os.path.exists(index):
        with recordio.MXIndexedRecordIO(index, path, "r") as indexed:
            return [indexed.idx[key] for key in indexed.keys]
    positions = []
    with recordio.MXRecordIO(path, "r") as reader:
        while True:
            positions.append(reader._file.tell())
            if reader.read() is None:
                return positions[:-1]


class ImageRecordIter(DataIter):
    """Batches of the images of a RecordIO file that im2rec made: float32 (N, C, H, W), red first, and labels.

    Parameters
    ----------
    path_imgrec : str
    data_shape : (channels, height, width)
    batch_size : int
    path_imgidx : str, optional
        Index; without one the file is read through once.
    label_width : int, default 1
        Labels per image.
    shuffle : bool, default False
        Whether each round has a new order.
    seed : int, default 0
        Of order and augmentation.
    resize : int, default -1
        Length of the shorter side before cropping; -1: as it is.
    rand_crop, rand_mirror : bool, default False
        Whether a random part (else the middle) is cut out, whether half of the images are mirrored.
    mean_r, mean_g, mean_b, std_r, std_g, std_b, scale : float
        ``(value - mean) / std * scale``.
    round_batch : bool, default True
        Whether an incomplete last batch is filled up from the beginning (and getpad tells); else it is filled with its
        own images again, and getpad tells.
    part_index, num_parts : int
        Reads one of num_parts parts of the file.
    preprocess_threads : int, default 4
    inter_method : int, default 1
        See mx.image.imresize.
    dtype : default 'float32'

    Raises FileError, FormatError for files, UnsupportedError for augmentations that are not done here.
    """

    def __init__(
        self,
        path_imgrec: str = "",
        data_shape: Sequence[int] = (),
        batch_size: int = 1,
        path_imgidx: str = "",
        label_width: int = 1,
        shuffle: bool = False,
        seed: int = 0,
        resize: int = -1,
        rand_crop: bool = False,
        rand_mirror: bool = False,
        mirror: bool = False,
        mean_r: float = 0.0,
        mean_g: float = 0.0,
        mean_b: float = 0.0,
        std_r: float = 1.0,
        std_g: float = 1.0,
        std_b: float = 1.0,
        scale: float = 1.0,
        round_batch: bool = True,
        part_index: int = 0,
        num_parts: int = 1,
        preprocess_threads: int = 4,
        inter_method: int = 1,
        dtype: Any = "float32",
        data_name: str = "data",
        label_name: str = "softmax_label",
        **kwargs: Any,
    ) -> None:
        super().__init__(batch_size)
        for name, neutral in _NEUTRAL.items():
            if kwargs.get(name, neutral) != neutral:
                raise UnsupportedError(
                    f"ImageRecordIter: {name}={kwargs[name]} is not supported.\n"
                    "  Fix: use gluon.data.vision.transforms with ImageRecordDataset."
                )
        if len(data_shape) != 3 or data_shape[0] not in (1, 3):
            raise ParamError(f"ImageRecordIter: data_shape must be (1 or 3, height, width), got {tuple(data_shape)}")
        if not 0 <= part_index < num_parts:
            raise ParamError(f"ImageRecordIter: part_index must be in [0, {num_parts}), got {part_index}")
        if batch_size < 1:
            raise ParamError(f"ImageRecordIter: batch_size must be at least 1, got {batch_size}")
        self._path = path_imgrec
        self._shape = tuple(int(size) for size in data_shape)
        self._label_width = label_width
        self._shuffle = shuffle
        self._random = random.Random(seed)
        self._resize = resize
        self._rand_crop = rand_crop
        self._rand_mirror = rand_mirror
        self._mirror = mirror
        channels = self._shape[0]
        self._mean = np.array([mean_r, mean_g, mean_b][:channels], np.float32)
        self._scale = np.float32(scale) / np.array([std_r, std_g, std_b][:channels], np.float32)
        self._round_batch = round_batch
        self._interpolation = inter_method
        self._dtype = np.dtype(dtype)
        positions = _record_positions(path_imgrec, path_imgidx)
        part = len(positions) // num_parts
        self._positions = positions[part_index * part : (part_index + 1) * part] if num_parts > 1 else positions
        if not self._positions:
            raise FormatError(f"ImageRecordIter: '{path_imgrec}' holds no records for part {part_index} of {num_parts}")
        self.provide_data = [DataDesc(data_name, (batch_size, *self._shape), self._dtype)]
        labels = (batch_size,) if label_width == 1 else (batch_size, label_width)
        self.provide_label = [DataDesc(label_name, labels)]
        self._reader = recordio.MXRecordIO(path_imgrec, "r")
        self._threads = ThreadPoolExecutor(max(1, preprocess_threads), thread_name_prefix="hybridnet-images")
        self._batch: Any = None  # a DataBatch behind iter_next()
        self._coming: list[Future[Any]] = []
        self.reset()

    def __del__(self) -> None:
        threads = getattr(self, "_threads", None)
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)

    def reset(self) -> None:
        """Starts a new round."""
        self._order = list(self._positions)
        if self._shuffle:
            self._random.shuffle(self._order)
        self._cursor = 0
        self._pad = 0
        self._ask()

    def _ask(self) -> None:
        """Has the next batch decoded."""
        self._coming = []
        chosen = self._order[self._cursor : self._cursor + self.batch_size]
        if not chosen:
            return
        self._cursor += len(chosen)
        self._next_pad = self.batch_size - len(chosen)
        source = self._order if self._round_batch else chosen
        while len(chosen) < self.batch_size:
            chosen = [*chosen, *source[: self.batch_size - len(chosen)]]
        for position in chosen:
            # Read here, in order: the file has one position. Decoding is what takes time.
            self._reader._file.seek(position)
            record = self._reader.read()
            self._coming.append(self._threads.submit(self._make, record, self._random.random(), self._random.random()))

    def _make(self, record: Any, where: float, flip: float) -> tuple[np.ndarray, np.ndarray]:
        header, content = recordio.unpack(record)
        label = np.atleast_1d(np.asarray(header.label, np.float32))
        if label.size < self._label_width:
            raise FormatError(
                f"ImageRecordIter: '{self._path}': {label.size} labels, label_width is {self._label_width}"
            )
        channels, height, width = self._shape
        image = decode_image(content, 1 if channels == 3 else 0)
        if self._resize > 0:
            image = pixels.resize_short(image, self._resize, self._interpolation)
        image = self._crop(image, width, height, where)
        if self._mirror or (self._rand_mirror and flip < 0.5):
            image = image[:, ::-1]
        values = (image.astype(np.float32) - self._mean) * self._scale
        return values.transpose(2, 0, 1), label[: self._label_width]

    def _crop(self, image: np.ndarray, width: int, height: int, where: float) -> np.ndarray:
        if not self._rand_crop or image.shape[0] < height or image.shape[1] < width:
            return pixels.center_crop(image, width, height, self._interpolation)
        places = (image.shape[0] - height + 1) * (image.shape[1] - width + 1)
        y, x = divmod(int(where * places), image.shape[1] - width + 1)
        return pixels.crop(image, x, y, width, height)

    def iter_next(self) -> bool:
        """Moves to the next batch; False behind the last one. Raises what decoding raised."""
        if not self._coming:
            return False
        made = [future.result() for future in self._coming]
        pad = self._next_pad
        data = np.stack([image for image, _ in made]).astype(self._dtype)
        label = np.stack([label for _, label in made])
        self._ask()
        self._batch = DataBatch(
            [ndarray.array(data, dtype=self._dtype)],
            [ndarray.array(label[:, 0] if self._label_width == 1 else label)],
            pad=pad,
        )
        return True

    def next(self) -> DataBatch:
        """The next batch. Raises StopIteration behind the last one, and what decoding raised."""
        if not self.iter_next():
            raise StopIteration
        return self._batch

    def getdata(self) -> Any:
        """Images of the current batch: one array."""
        return self._batch.data[0]

    def getlabel(self) -> Any:
        """Labels of the current batch: one array."""
        return self._batch.label[0]

    def getpad(self) -> int:
        """Images that only fill the current batch up."""
        return self._batch.pad


class ImageRecordUInt8Iter(ImageRecordIter):
    """ImageRecordIter whose images are uint8, without mean and scale."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, dtype="uint8", **kwargs)  # type: ignore[misc]  # args end before dtype
