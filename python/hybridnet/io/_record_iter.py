"""ImageRecordIter: batches of images from RecordIO files, decoded and augmented in threads."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from .. import _core, ndarray, recordio
from .._files import read_lines
from ..errors import FormatError, ParamError, unknown_name
from ._batches import DataBatch, DataDesc, DataIter
from ._image_files import decode_image
from ._record_augmenter import AUGMENTATIONS, RecordAugmenter

__all__ = ["ImageRecordIter", "ImageRecordUInt8Iter"]

# MXNet's arguments without effect here: prefetching, order and devices work differently.
_WITHOUT_EFFECT = frozenset(
    (
        *("prefetch_buffer", "verbose", "ctx", "device_id", "shuffle_chunk_size", "shuffle_chunk_seed", "aug_seq"),
        *("mean_a", "std_a", "name", "label_pad_width", "label_pad_value"),
    )
)


def _record_positions(path: str, index: str | None) -> list[int]:
    """Returns the record positions of a file: from the index, else by reading the file."""
    if index and os.path.exists(index):
        with recordio.MXIndexedRecordIO(index, path, "r") as indexed:
            return [indexed.idx[key] for key in indexed.keys]
    positions = []
    with recordio.MXRecordIO(path, "r") as reader:
        while True:
            positions.append(reader._file.tell())
            if reader.read() is None:
                return positions[:-1]


def _listed_labels(path: str) -> dict[int, np.ndarray] | None:
    """Returns labels by image number, from a list file with columns number, labels and name."""
    if not path:
        return None
    rows = [line.split("\t") for line in read_lines(path, "ImageRecordIter") if line.strip()]
    try:
        return {int(row[0]): np.array(row[1:-1], np.float32) for row in rows}
    except (ValueError, IndexError) as error:
        raise FormatError(f"ImageRecordIter: '{path}' is no list of numbers, labels and names: {error}") from error


def _check_names(iterator: str, given: dict[str, Any], augmentations: dict[str, Any]) -> None:
    for name in given:
        if name not in augmentations and name not in _WITHOUT_EFFECT:
            raise unknown_name(iterator, "keyword", name, [*augmentations, *_WITHOUT_EFFECT], ParamError)


class ImageRecordIter(DataIter):
    """Yields batches of images from a RecordIO file of im2rec: float32 (N, C, H, W), RGB order, and labels.

    Parameters
    ----------
    path_imgrec : str
    data_shape : (channels, height, width)
    batch_size : int
    path_imgidx : str, optional
        Index; without one the whole file is read once.
    label_width : int, default 1
        Number of labels per image.
    shuffle : bool, default False
        Whether each epoch has a new order.
    seed : int, default 0
        Seed of order and augmentation.
    resize : int, default -1
        Length of the shorter side before cropping; -1: unchanged.
    rand_crop, rand_mirror : bool, default False
        Whether a random part (else the center) is cropped; whether images are mirrored with probability 1/2.
    mean_r, mean_g, mean_b, std_r, std_g, std_b, scale : float
        Normalization: ``(value - mean) / std * scale``.
    mean_img : str, optional
        File of nd.save with an image "mean_img" (C, H, W) that is subtracted instead of mean_r, mean_g and mean_b. If
        it does not exist, it is created from all images.
    round_batch : bool, default True
        Whether an incomplete last batch is filled from the beginning (getpad returns the number); else its own images
        are repeated.
    part_index, num_parts : int
        Reads part number part_index of num_parts parts of the file.
    preprocess_threads : int, default 4
    inter_method : int, default 1
        See mx.image.imresize; 10 draws a method per use.
    dtype : default 'float32'
    path_imglist : str, optional
        List file of im2rec with labels that replace those in the records.
    seed_aug : int, optional
        Seed of the augmentation only.
    max_random_contrast, max_random_illumination : float, default 0
        Maps values to ``(value - mean) * a + b`` with a from 1 - contrast to 1 + contrast, b from -illumination to
        illumination.
    max_rotate_angle, rotate, rotate_list, max_shear_ratio, max_random_scale, min_random_scale, max_aspect_ratio, \
    min_aspect_ratio, max_img_size, min_img_size : float
        Random rotations (degrees), shears, sizes and aspect ratios (width / height), before cropping. Aspect ratios are
        from 1 - max_aspect_ratio to 1 + max_aspect_ratio unless min_aspect_ratio is given.
    pad, fill_value : int, default 0 and 255
        Number of pixels added around the image before cropping, and their value.
    random_resized_crop : bool, default False
        Whether a part is cropped with an area fraction from min_random_area to max_random_area and random aspect ratio.
    max_crop_size, min_crop_size : int, default -1
        Side of the square that is cropped and resized.
    brightness, contrast, saturation, pca_noise : float, default 0
    random_h, random_s, random_l : int, default 0
        Maximum value added to hue (0 to 180), saturation and lightness (0 to 255).

    Raises FileError, FormatError for files, ParamError for arguments that are unknown or contradict each other.
    """

    _augmentations = AUGMENTATIONS

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
        mean_image = kwargs.pop("mean_img", "")
        own = self._augmentations  # for detection, the augmenter changes contrast and lightness
        self._contrast = 0.0 if "max_random_contrast" in own else float(kwargs.pop("max_random_contrast", 0.0))
        self._illumination = 0.0 if "max_random_contrast" in own else float(kwargs.pop("max_random_illumination", 0.0))
        self._labels = _listed_labels(kwargs.pop("path_imglist", ""))
        augmentation = random.Random(kwargs.pop("seed_aug", None) or seed)
        _check_names(type(self).__name__, kwargs, own)
        if len(data_shape) != 3 or data_shape[0] not in (1, 3):
            raise ParamError(
                "ImageRecordIter: data_shape must be (1 or 3, height, width)", given=str(tuple(data_shape))
            )
        if not 0 <= part_index < num_parts:
            raise ParamError(f"ImageRecordIter: part_index must be in [0, {num_parts})", given=str(part_index))
        if batch_size < 1:
            raise ParamError("ImageRecordIter: batch_size must be at least 1", given=str(batch_size))
        self._path = path_imgrec
        self._shape = tuple(int(size) for size in data_shape)
        self._label_width = label_width
        self._shuffle = shuffle
        self._random = random.Random(seed)
        self._draw = augmentation
        settings = {name: kwargs[name] for name in own if name in kwargs}
        if "rand_crop" in own:
            settings["rand_crop"] = rand_crop
        self._augment = self._make_augmenter({**settings, "resize": resize, "inter_method": inter_method})
        self._rand_mirror = rand_mirror
        self._mirror = mirror
        channels = self._shape[0]
        self._mean: np.ndarray = np.array([mean_r, mean_g, mean_b][:channels], np.float32)
        self._scale = np.float32(scale) / np.array([std_r, std_g, std_b][:channels], np.float32)
        self._round_batch = round_batch
        self._dtype = np.dtype(dtype)
        positions = _record_positions(path_imgrec, path_imgidx)
        part = len(positions) // num_parts
        self._positions = positions[part_index * part : (part_index + 1) * part] if num_parts > 1 else positions
        if not self._positions:
            raise FormatError(f"ImageRecordIter: '{path_imgrec}' holds no records for part {part_index} of {num_parts}")
        self._reader = recordio.MXRecordIO(path_imgrec, "r")
        self.provide_data = [DataDesc(data_name, (batch_size, *self._shape), self._dtype)]
        self.provide_label = [self._label_desc(label_name)]
        self._threads = ThreadPoolExecutor(max(1, preprocess_threads), thread_name_prefix="hybridnet-images")
        self._batch: Any = None  # the current DataBatch, after iter_next()
        self._coming: list[Future[np.ndarray]] = []  # labels of the next batch; its images are written to _data
        if mean_image:
            self._mean = self._mean_image(mean_image)
        self.reset()

    # -- overridden by iterators with other labels --------------------------------------------------------------------

    def _make_augmenter(self, settings: dict[str, Any]) -> Any:
        return RecordAugmenter(*self._shape[1:], **settings)

    def _label_desc(self, name: str) -> DataDesc:
        return DataDesc(name, (self.batch_size,) if self._label_width == 1 else (self.batch_size, self._label_width))

    def _sample(self, image: np.ndarray, label: np.ndarray, draw: random.Random) -> tuple[np.ndarray, np.ndarray]:
        """Returns the image (H, W, C) at its final size and its row of labels."""
        if label.size < self._label_width:
            raise FormatError(
                f"ImageRecordIter: '{self._path}': {label.size} labels, label_width is {self._label_width}"
            )
        image = self._augment(image, draw)
        if self._mirror or (self._rand_mirror and draw.random() < 0.5):
            image = image[:, ::-1]
        return image, label[: self._label_width]

    # ------------------------------------------------------------------------------------------------------------------

    def _mean_image(self, path: str) -> np.ndarray:
        """Returns the image (H, W, C) in a file of nd.save; without the file, computes the mean image and writes it."""
        if not os.path.exists(path):
            ndarray.save(path, {"mean_img": ndarray.array(self._mean_of_images().transpose(2, 0, 1))})
        loaded = ndarray.load(path)
        image = (loaded.get("mean_img") if isinstance(loaded, dict) else None) if loaded else None
        if image is None or image.shape != self._shape:
            raise FormatError(
                f"ImageRecordIter: mean_img '{path}'",
                expected=f"an array 'mean_img' of shape {self._shape}",
                given="no such array" if image is None else f"shape {image.shape}",
                fix="remove the file to have it made from the images",
            )
        return image.asnumpy().transpose(1, 2, 0)

    def _mean_of_images(self) -> np.ndarray:
        """Returns the mean of the cropped and resized images, without the later random changes."""
        self._mean = np.zeros(self._shape[0], np.float32)
        settings = self._contrast, self._illumination, self._scale, self._rand_mirror
        self._contrast, self._illumination, self._scale, self._rand_mirror = 0.0, 0.0, np.ones_like(self._scale), False
        total, image = np.zeros(self._shape, np.float64), np.empty(self._shape, np.float32)
        for position in self._positions:
            self._reader._file.seek(position)
            self._make(self._reader.read(), 0, image)
            total += image
        self._contrast, self._illumination, self._scale, self._rand_mirror = settings
        return (total / len(self._positions)).astype(np.float32).transpose(1, 2, 0)

    def __del__(self) -> None:
        threads = getattr(self, "_threads", None)
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)

    def reset(self) -> None:
        """Starts a new epoch."""
        self._order = list(self._positions)
        if self._shuffle:
            self._random.shuffle(self._order)
        self._cursor = 0
        self._pad = 0
        self._request()

    def _request(self) -> None:
        """Starts decoding the next batch."""
        self._coming = []
        chosen = self._order[self._cursor : self._cursor + self.batch_size]
        if not chosen:
            return
        self._cursor += len(chosen)
        self._next_pad = self.batch_size - len(chosen)
        source = self._order if self._round_batch else chosen
        while len(chosen) < self.batch_size:
            chosen = [*chosen, *source[: self.batch_size - len(chosen)]]
        self._data = np.empty((self.batch_size, *self._shape), np.float32)
        for position, image in zip(chosen, self._data, strict=True):
            # Read here, in order, because the file has a single position. Decoding takes most of the time.
            self._reader._file.seek(position)
            record = self._reader.read()
            self._coming.append(self._threads.submit(self._make, record, self._draw.getrandbits(64), image))

    def _given_labels(self, header: Any) -> np.ndarray:
        """Returns the labels of a record, or those in the list for its image."""
        given = header.label if self._labels is None else self._labels.get(header.id)
        if given is None:
            raise FormatError(f"{type(self).__name__}: the list has no labels for image {header.id} of '{self._path}'")
        return np.atleast_1d(np.asarray(given, np.float32))

    def _make(self, record: Any, seed: int, out: np.ndarray) -> np.ndarray:
        """Writes the image of a record to out; returns its labels."""
        draw = random.Random(seed)
        header, content = recordio.unpack(record)
        image, label = self._sample(
            decode_image(content, 1 if self._shape[0] == 3 else 0), self._given_labels(header), draw
        )
        contrast, illumination = 1.0, 0.0
        if self._contrast or self._illumination:
            contrast += draw.uniform(-self._contrast, self._contrast)
            illumination = draw.uniform(-self._illumination, self._illumination)
        _core.image_to_planes(image, self._mean, contrast, illumination, self._scale, out)
        return label

    def iter_next(self) -> bool:
        """Moves to the next batch; returns False after the last one. Raises errors of decoding."""
        if not self._coming:
            return False
        label = np.stack([future.result() for future in self._coming])
        pad, data = self._next_pad, self._data.astype(self._dtype, copy=False)
        self._request()
        self._batch = DataBatch(
            [ndarray.array(data, dtype=self._dtype)],
            [ndarray.array(label[:, 0] if self._label_width == 1 else label)],
            pad=pad,
        )
        return True

    def next(self) -> DataBatch:
        """Returns the next batch. Raises StopIteration after the last one, and errors of decoding."""
        if not self.iter_next():
            raise StopIteration
        return self._batch

    def getdata(self) -> Any:
        """Returns the images of the current batch as one array."""
        return self._batch.data[0]

    def getlabel(self) -> Any:
        """Returns the labels of the current batch as one array."""
        return self._batch.label[0]

    def getpad(self) -> int:
        """Returns the number of padding images in the current batch."""
        return self._batch.pad


class ImageRecordUInt8Iter(ImageRecordIter):
    """ImageRecordIter with uint8 images, without mean and scale."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, dtype="uint8", **kwargs)  # type: ignore[misc]  # args end before dtype
