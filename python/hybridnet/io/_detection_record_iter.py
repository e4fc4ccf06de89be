"""ImageDetRecordIter: batches of images with objects from RecordIO files."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from .. import recordio
from ..errors import FormatError, ParamError, unknown_name
from ._batches import DataDesc
from ._detection_augmenter import DETECTION_AUGMENTATIONS, DetectionAugmenter
from ._record_iter import ImageRecordIter

__all__ = ["ImageDetRecordIter"]

_SIZES = 4  # numbers before an image's labels: channels, height, width, number of labels


class ImageDetRecordIter(ImageRecordIter):
    """Yields batches of images with objects from a RecordIO file: float32 (N, C, H, W), RGB order, and labels.

    A record's labels are a header and objects: length of the header, length of an object, further header numbers; then
    for each object class, left, top, right, bottom as fractions of width and height, and further numbers. A row of the
    labels (N, 4 + label_pad_width) is channels, height, width of the image, the number of its labels, the labels, and
    label_pad_value up to the end.

    Parameters
    ----------
    path_imgrec, data_shape, batch_size, path_imglist, shuffle, seed, resize, mean_r, mean_g, mean_b, mean_img, std_r, \
    std_g, std_b, scale, round_batch, part_index, num_parts, preprocess_threads, inter_method, dtype
        See ImageRecordIter; std 0 is 1.
    label_width : int, default -1
        The number of labels of every image; -1: images differ.
    label_pad_width : int, default 0
        Maximum length of labels; 0 and -1: the maximum of the file, which is read completely.
    label_pad_value : float, default -1
    rand_mirror_prob : float, default 0
    rand_pad_prob, max_pad_scale, fill_value
        With this probability the image is placed on an area up to max_pad_scale times as long, filled with one value.
    rand_crop_prob, num_crop_sampler, min_crop_scales, max_crop_scales, min_crop_aspect_ratios, \
    max_crop_aspect_ratios, min_crop_overlaps, max_crop_overlaps, min_crop_sample_coverages, \
    max_crop_sample_coverages, min_crop_object_coverages, max_crop_object_coverages, max_crop_trials
        With this probability a part is cropped by one of several samplers, each with its own limits (a single number
        applies to all): side of the part, aspect ratio, and for some object the ratio of its intersection with the part
        to their union, to the part, to the object.
    crop_emit_mode : 'center' or 'overlap', default 'center'
        Objects are dropped if their center is outside of the part, or if less than emit_overlap_thresh of them is
        inside.
    max_random_hue, max_random_saturation, max_random_illumination, max_random_contrast
        Maximum changes, each with the probability random_hue_prob and so on.
    resize_mode : 'force', 'shrink' or 'fit', default 'force'
        force: resize to data_shape ignoring proportions; shrink: only reduce, fit: resize to the largest size within
        data_shape; both pad with zeros at the right and the bottom.

    Raises FileError, FormatError for files, ParamError for arguments that are unknown or contradict each other.
    """

    _augmentations = DETECTION_AUGMENTATIONS

    def __init__(
        self,
        path_imgrec: str = "",
        data_shape: Any = (),
        batch_size: int = 1,
        label_width: int = -1,
        label_pad_width: int = 0,
        label_pad_value: float = -1,
        **kwargs: Any,
    ) -> None:
        for name in ("rand_crop", "rand_mirror", "mirror"):
            if name in kwargs:
                raise unknown_name("ImageDetRecordIter", "keyword", name, DETECTION_AUGMENTATIONS, ParamError)
        kwargs.update({name: kwargs.get(name) or 1.0 for name in ("std_r", "std_g", "std_b")})
        self._labels_per_image = label_width
        self._pad_width = int(label_pad_width)
        self._pad_value = float(label_pad_value)
        super().__init__(path_imgrec, data_shape, batch_size, **kwargs)

    def _make_augmenter(self, settings: dict[str, Any]) -> DetectionAugmenter:
        return DetectionAugmenter(*self._shape[1:], **settings)

    def _label_desc(self, name: str) -> DataDesc:
        if self._pad_width <= 0:
            self._pad_width = max(self._count_labels(position) for position in self._positions)
        self._label_width = _SIZES + self._pad_width
        return DataDesc(name, (self.batch_size, self._label_width))

    def _count_labels(self, position: int) -> int:
        self._reader._file.seek(position)
        return self._given_labels(recordio.unpack(self._reader.read() or b"")[0]).size

    def _sample(self, image: np.ndarray, label: np.ndarray, draw: random.Random) -> tuple[np.ndarray, np.ndarray]:
        header, objects = self._parts(label)
        image, objects, (height, width) = self._augment(image, objects, draw)
        values = np.concatenate([header, objects.reshape(-1)])
        if values.size > self._pad_width:
            raise ParamError(
                "ImageDetRecordIter: label_pad_width", expected=f"at least {values.size}", given=str(self._pad_width)
            )
        row = np.full(self._label_width, self._pad_value, np.float32)
        row[:_SIZES] = image.shape[2], height, width, values.size
        row[_SIZES : _SIZES + values.size] = values
        return image, row

    def _parts(self, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns header and objects of an image's labels."""
        header, each = (int(label[0]), int(label[1])) if label.size >= 2 else (0, 0)
        if header < 2 or each < 5 or label.size < header or (label.size - header) % each:
            raise FormatError(
                f"ImageDetRecordIter: labels in '{self._path}'",
                expected="length of header (at least 2), length of an object (at least 5), the header's rest, objects",
                given=str(label.tolist()[:10]),
            )
        if self._labels_per_image > 0 and label.size != self._labels_per_image:
            raise FormatError(
                f"ImageDetRecordIter: labels in '{self._path}'",
                expected=f"{self._labels_per_image} (label_width)",
                given=str(label.size),
            )
        return label[:header], label[header:].reshape(-1, each)
