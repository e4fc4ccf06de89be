"""ImageDetIter: batches of images with boxes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from ..errors import FormatError, ParamError
from ..errors import ValueError as HybridNetValueError
from ._augment import _MEAN, _STD
from ._detection_augment import CreateDetAugmenter
from ._image_iter import ImageIter

__all__ = ["ImageDetIter"]

_BOX = 5  # class and four sides


class ImageDetIter(ImageIter):
    """Yields batches of images (N, C, H, W) float32 and objects (N, maximum number of objects, width of an object).

    A label is a row of numbers: the length of the head (2 or more), the width of an object (5 or more), the rest of the
    head, then class, left, top, right, bottom (fractions of width and height) and the rest of each object. Rows that
    pad an image's objects are -1.

    Parameters
    ----------
    batch_size, data_shape, path_imgrec, path_imglist, path_root, path_imgidx, shuffle, part_index, num_parts : see \\
    ImageIter, also for imglist, data_name, label_name and last_batch_handle
    aug_list : list of DetAugmenter, optional
        Default: CreateDetAugmenter(data_shape, **kwargs).

    All labels are read once at the beginning. Images without a valid object are skipped, with a line in the log.
    Raises ParamError for wrong arguments, FileError and FormatError for files.
    """

    def __init__(
        self,
        batch_size: int,
        data_shape: Sequence[int],
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
        label_name: str = "label",
        last_batch_handle: str = "pad",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            batch_size,
            data_shape,
            path_imgrec=path_imgrec,
            path_imglist=path_imglist,
            path_root=path_root,
            path_imgidx=path_imgidx,
            shuffle=shuffle,
            part_index=part_index,
            num_parts=num_parts,
            aug_list=[],
            imglist=imglist,
            data_name=data_name,
            label_name=label_name,
            last_batch_handle=last_batch_handle,
        )
        self.auglist = list(aug_list) if aug_list is not None else CreateDetAugmenter(data_shape, **kwargs)
        self.label_shape = self._estimate_label_shape()
        self.provide_label = [(label_name, (batch_size, *self.label_shape))]

    # -- labels -----------------------------------------------------------------------------------------------------

    def _labels(self) -> Iterator[Any]:
        """Yields all labels of an epoch; files of a list are not opened."""
        if self.imgrec is None:
            for key in self.seq or ():
                yield self.imglist[key][0]  # type: ignore[index]
            return
        self.reset()
        while True:
            try:
                yield self.next_sample()[0]
            except StopIteration:
                return

    def _estimate_label_shape(self) -> tuple[int, int]:
        """Returns the maximum number of objects in an image, and numbers per object."""
        counts, widths = [], []
        for label in self._labels():
            try:
                objects = self._parse_label(label)
            except FormatError:  # skipped later
                continue
            counts.append(len(objects))
            widths.append(objects.shape[1])
        self.reset()
        if not counts:
            raise FormatError("ImageDetIter: there is no image with a valid object")
        if min(widths) != max(widths):
            raise FormatError(f"ImageDetIter: objects have from {min(widths)} to {max(widths)} numbers")
        return max(counts), widths[0]

    @staticmethod
    def _parse_label(label: Any) -> np.ndarray:
        """Returns the valid objects of a label. Raises FormatError if there are none."""
        row = np.asarray(label.asnumpy() if isinstance(label, nd.NDArray) else label, np.float32).ravel()
        if row.size < 2 + _BOX:
            raise FormatError(f"ImageDetIter: a label has at least {2 + _BOX} numbers", given=str(row.size))
        if not np.isfinite(row[:2]).all():
            raise FormatError(
                "ImageDetIter: a label begins with its head's size and the width of objects", given=str(row[:2])
            )
        head, width = int(row[0]), int(row[1])
        if head < 2 or width < _BOX or row.size <= head or (row.size - head) % width:
            raise FormatError(
                f"ImageDetIter: a label of {row.size} numbers says that its head has {head} and objects have {width}"
            )
        objects = row[head:].reshape(-1, width)
        valid = objects[(objects[:, 0] >= 0) & (objects[:, 3] > objects[:, 1]) & (objects[:, 4] > objects[:, 2])]
        if not len(valid):
            raise FormatError("ImageDetIter: a label has no object of positive size")
        return valid

    def check_label_shape(self, label_shape: Sequence[int]) -> None:
        """Raises ValueError unless label_shape is (at least the number of objects, numbers per object)."""
        if len(label_shape) != 2:
            raise HybridNetValueError("label_shape should have length 2", given=str(tuple(label_shape)))
        if label_shape[0] < self.label_shape[0]:
            raise HybridNetValueError(
                f"Attempts to reduce label count from {self.label_shape[0]} to {label_shape[0]}, not allowed."
            )
        if label_shape[1] != self.label_shape[1]:
            raise HybridNetValueError(
                f"label_shape object width inconsistent: {self.label_shape[1]} vs {label_shape[1]}."
            )

    def reshape(self, data_shape: Sequence[int] | None = None, label_shape: Sequence[int] | None = None) -> None:
        """Sets another image size of batches (which augmenters must produce) or more space for objects."""
        if data_shape is not None:
            self.check_data_shape(data_shape)
            self.data_shape = tuple(data_shape)
            self.provide_data = [(self.provide_data[0][0], (self.batch_size, *self.data_shape))]
        if label_shape is not None:
            self.check_label_shape(label_shape)
            self.label_shape = (label_shape[0], label_shape[1])
            self.provide_label = [(self.provide_label[0][0], (self.batch_size, *self.label_shape))]

    def sync_label_shape(self, it: ImageDetIter, verbose: bool = False) -> ImageDetIter:
        """Sets both iterators to the larger number of objects; returns the other one. Raises ParamError for others."""
        if not isinstance(it, ImageDetIter):
            raise ParamError("sync_label_shape", expected="an ImageDetIter", given=type(it).__name__)
        most = max(self.label_shape[0], it.label_shape[0])
        if verbose and self.label_shape != it.label_shape:
            logging.info("Resized label_shape to (%d, %d).", most, self.label_shape[1])
        for one in (self, it):
            one.reshape(label_shape=(most, self.label_shape[1]))
        return it

    # -- batches ----------------------------------------------------------------------------------------------------

    def augmentation_transform(self, data: Any, label: Any) -> tuple[Any, np.ndarray]:  # type: ignore[override]
        """Applies all augmenters to image and objects."""
        for augmenter in self.auglist:
            data, label = augmenter(data, label)
        return data, label

    def _made(self, label: Any, content: bytes) -> tuple[Any, np.ndarray]:
        objects = self._parse_label(label)
        image, objects = self.augmentation_transform(self.imdecode(content), objects)
        filled = np.full(self.label_shape, -1, np.float32)
        filled[: len(objects)] = objects
        return image, filled

    def _label_batch(self, labels: list[np.ndarray]) -> nd.NDArray:
        return nd.array(np.stack(labels))

    def draw_next(
        self,
        color: tuple[float, float, float] | None = None,
        thickness: int = 2,
        mean: Any = None,
        std: Any = None,
        clip: bool = True,
        waitKey: int | None = None,
        window_name: str = "draw_next",
        id2labels: dict[int, str] | None = None,
    ) -> Iterator[np.ndarray]:
        """Yields BGR images (height, width, 3) with their boxes drawn, one by one; needs OpenCV.

        Parameters
        ----------
        color : (red, green, blue), optional
            Random by default.
        mean, std : True (ImageNet's) or numpy.ndarray, optional
            Mean and divisor that the augmenters used.
        waitKey : int, optional
            Shows each image in a window for that many milliseconds.
        id2labels : dict of class to text, optional
        """
        import cv2

        deviation = np.array(_STD if std is True else 1 if std is None else std)
        middle = np.array(_MEAN if mean is True else 0 if mean is None else mean)
        while True:
            try:
                label, content = self.next_sample()
            except StopIteration:
                return
            try:
                data, objects = self.augmentation_transform(self.imdecode(content), self._parse_label(label))
            except FormatError as error:
                logging.debug("Invalid image, skipping: %s", error)
                continue
            image = data.asnumpy() * deviation + middle
            image = np.ascontiguousarray((image.clip(0, 255) if clip else image).astype(np.uint8)[:, :, ::-1])
            sides = np.tile([image.shape[1], image.shape[0]], 2)
            for one in objects:
                left, top, right, bottom = (int(side) for side in one[1:5] * sides)
                tint = np.random.rand(3) * 255 if color is None else color[::-1]
                cv2.rectangle(image, (left, top), (right, bottom), tuple(float(c) for c in tint), thickness)
                text = (id2labels or {}).get(int(one[0]))
                if text is not None:
                    font = (cv2.FONT_HERSHEY_SIMPLEX, 0.5)
                    cv2.putText(image, text, (left + 5, top + 17), *font, (255, 255, 255), 2)
            if waitKey is not None:
                cv2.imshow(window_name, image)
                cv2.waitKey(waitKey)
            yield image
