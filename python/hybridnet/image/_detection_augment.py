"""Augmenters for images with boxes: callables that change an image and its objects, and the default list of them.

Objects are a numpy.ndarray (count, 5 or more): class, left, top, right, bottom as fractions of width and height, and
further numbers per object. Augmenters return a new array if they change it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from .._user_line import warn
from ..errors import ParamError, not_overridden
from ..errors import TypeError as HybridNetTypeError
from ..ndarray import NDArray
from ._augment import Augmenter, ForceResizeAug, ResizeAug, color_augmenters
from .image import copyMakeBorder, fixed_crop

__all__ = [
    "CreateDetAugmenter",
    "CreateMultiRandCropAugmenter",
    "DetAugmenter",
    "DetBorrowAug",
    "DetHorizontalFlipAug",
    "DetRandomCropAug",
    "DetRandomPadAug",
    "DetRandomSelectAug",
]

Sample = tuple[NDArray, np.ndarray]
Range = tuple[float, float]

_LEAST_PIXELS = 2  # smaller objects, parts and borders are ignored


class DetAugmenter(Augmenter):
    """Base of augmenters: ``image, objects = augmenter(image, objects)``. dumps writes the keyword arguments."""

    def __call__(self, src: NDArray, label: np.ndarray) -> Sample:  # type: ignore[override]  # also takes objects
        raise not_overridden(self, "__call__()")


class DetBorrowAug(DetAugmenter):
    """Wraps an image augmenter that does not move boxes. Raises TypeError unless it is an Augmenter."""

    def __init__(self, augmenter: Augmenter) -> None:
        if not isinstance(augmenter, Augmenter) or isinstance(augmenter, DetAugmenter):
            raise HybridNetTypeError("DetBorrowAug", expected="an Augmenter of images", given=type(augmenter).__name__)
        super().__init__(augmenter=augmenter.dumps())
        self.augmenter = augmenter

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), self.augmenter.dumps()]

    def __call__(self, src: NDArray, label: np.ndarray) -> Sample:  # type: ignore[override]
        return self.augmenter(src), label


class DetRandomSelectAug(DetAugmenter):
    """Applies one of several augmenters, or none with probability skip_prob. TypeError if one is no DetAugmenter."""

    def __init__(self, aug_list: DetAugmenter | Sequence[DetAugmenter], skip_prob: float = 0) -> None:
        super().__init__(skip_prob=skip_prob)
        augmenters = list(aug_list) if isinstance(aug_list, (list, tuple)) else [aug_list]
        for augmenter in augmenters:
            if not isinstance(augmenter, DetAugmenter):
                raise HybridNetTypeError("DetRandomSelectAug", expected="DetAugmenters", given=type(augmenter).__name__)
        self.aug_list: list[Any] = augmenters
        self.skip_prob = skip_prob if augmenters else 1

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), [augmenter.dumps() for augmenter in self.aug_list]]

    def __call__(self, src: NDArray, label: np.ndarray) -> Sample:  # type: ignore[override]
        if random.random() < self.skip_prob:
            return src, label
        return random.choice(self.aug_list)(src, label)


class DetHorizontalFlipAug(DetAugmenter):
    """Mirrors left and right with probability p."""

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: NDArray, label: np.ndarray) -> Sample:  # type: ignore[override]
        if random.random() >= self.p:
            return src, label
        flipped = label.copy()
        flipped[:, 1], flipped[:, 3] = 1 - label[:, 3], 1 - label[:, 1]
        return nd.flip(src, axis=1), flipped


def _as_range(value: float | Sequence[float]) -> Range:
    low, high = value if isinstance(value, (tuple, list)) else (value, value)
    return float(low), float(high)


def _areas(boxes: np.ndarray) -> np.ndarray:
    return np.maximum(0, boxes[:, 2] - boxes[:, 0]) * np.maximum(0, boxes[:, 3] - boxes[:, 1])


class _RegionAug(DetAugmenter):
    """Base: a region of random area (relative to the image) and aspect ratio (width / height), in or around it."""

    def __init__(
        self, aspect_ratio_range: Any, area_range: Any, max_attempts: int, least: float, **kwargs: Any
    ) -> None:
        self.aspect_ratio_range = _as_range(aspect_ratio_range)
        self.area_range = _as_range(area_range)
        self.max_attempts = max_attempts
        kwargs.update(aspect_ratio_range=self.aspect_ratio_range, area_range=self.area_range, max_attempts=max_attempts)
        super().__init__(**kwargs)
        self.enabled = True
        for name, (low, high), good in (
            ("area_range", self.area_range, self.area_range[1] > least),
            ("aspect_ratio_range", self.aspect_ratio_range, self.aspect_ratio_range[0] > 0),
        ):
            if not good or low > high:
                warn(f"{type(self).__name__} does nothing: {name} is ({low}, {high})")
                self.enabled = False

    def _limits(self, height: int, width: int) -> tuple[float, float]:
        return self.area_range[0] * height * width, self.area_range[1] * height * width

    def _place(self, height: int, width: int) -> tuple[int, int, int, int] | None:
        """Returns left, top, width and height of a region in pixels, or None if this draw is invalid."""
        raise not_overridden(self, "_place()")

    def _places(self, height: int, width: int) -> Any:
        if not self.enabled or height <= 0 or width <= 0:
            return
        for _ in range(self.max_attempts):
            place = self._place(height, width)
            if place is not None:
                yield place


class DetRandomCropAug(_RegionAug):
    """Crops a random part of the image, with the objects in it.

    Parameters
    ----------
    min_object_covered : float, default 0.1
        Minimum fraction of each touched object that must be inside the part.
    aspect_ratio_range, area_range : (minimum, maximum)
        Aspect ratio (width / height) and area of the part relative to the image.
    min_eject_coverage : float, default 0.3
        Objects with a smaller remaining fraction are dropped.
    max_attempts : int, default 50
        Number of draws, after which the image stays whole.
    """

    def __init__(
        self,
        min_object_covered: float = 0.1,
        aspect_ratio_range: Any = (0.75, 1.33),
        area_range: Any = (0.05, 1.0),
        min_eject_coverage: float = 0.3,
        max_attempts: int = 50,
    ) -> None:
        self.min_object_covered = min_object_covered
        self.min_eject_coverage = min_eject_coverage
        super().__init__(
            aspect_ratio_range,
            area_range,
            max_attempts,
            0.0,
            min_object_covered=min_object_covered,
            min_eject_coverage=min_eject_coverage,
        )

    def __call__(self, src: NDArray, label: np.ndarray) -> Sample:  # type: ignore[override]
        height, width = src.shape[:2]
        for x, y, w, h in self._places(height, width):
            box = np.array([x / width, y / height, (x + w) / width, (y + h) / height])
            if self._covers(label, box, height * width):
                kept = self._objects_in(label, box)
                if len(kept):
                    return fixed_crop(src, x, y, w, h, None), kept
        return src, label

    def _place(self, height: int, width: int) -> tuple[int, int, int, int] | None:
        least, most = self._limits(height, width)
        ratio = random.uniform(*self.aspect_ratio_range)
        tallest = round(math.sqrt(most / ratio))
        if round(tallest * ratio) > width:
            tallest = int((width + 0.4999999) / ratio)
        tallest = min(tallest, height)
        h = random.randint(min(round(math.sqrt(least / ratio)), tallest), tallest)
        w = round(h * ratio)
        if w * h < least:
            h += 1
        elif w * h > most:
            h -= 1
        w = round(h * ratio)
        if not (least <= w * h <= most and w <= width and h <= height) or w * h < _LEAST_PIXELS:
            return None
        return random.randint(0, width - w), random.randint(0, height - h), w, h

    def _covers(self, label: np.ndarray, box: np.ndarray, pixels: int) -> bool:
        boxes = label[:, 1:5]
        boxes = boxes[_areas(boxes) * pixels > _LEAST_PIXELS]
        if not len(boxes):
            return False
        inside = np.concatenate([np.maximum(boxes[:, :2], box[:2]), np.minimum(boxes[:, 2:], box[2:])], axis=1)
        shares = _areas(inside) / _areas(boxes)
        shares = shares[shares > 0]
        return bool(len(shares)) and bool(shares.min() > self.min_object_covered)

    def _objects_in(self, label: np.ndarray, box: np.ndarray) -> np.ndarray:
        size = np.tile(box[2:] - box[:2], 2)
        moved = label.copy()
        moved[:, 1:5] = ((label[:, 1:5] - np.tile(box[:2], 2)) / size).clip(0, 1)
        before = _areas(label[:, 1:5])
        left = _areas(moved[:, 1:5]) * size[0] * size[1] / np.where(before == 0, 1, before)
        good = (moved[:, 3] > moved[:, 1]) & (moved[:, 4] > moved[:, 2]) & (left > self.min_eject_coverage)
        return moved[good]


class DetRandomPadAug(_RegionAug):
    """Places the image at random on a larger area of one color.

    Parameters
    ----------
    aspect_ratio_range, area_range : (minimum, maximum)
        Aspect ratio (width / height) and area of the result relative to the image.
    max_attempts : int, default 50
        Number of draws, after which the image stays unchanged.
    pad_val : float or one per channel
    """

    def __init__(
        self,
        aspect_ratio_range: Any = (0.75, 1.33),
        area_range: Any = (1.0, 3.0),
        max_attempts: int = 50,
        pad_val: Any = (128, 128, 128),
    ) -> None:
        self.pad_val = pad_val if isinstance(pad_val, (list, tuple)) else (pad_val,) * 3
        super().__init__(aspect_ratio_range, area_range, max_attempts, 1.0, pad_val=self.pad_val)

    def __call__(self, src: NDArray, label: np.ndarray) -> Sample:  # type: ignore[override]
        height, width = src.shape[:2]
        for x, y, w, h in self._places(height, width):
            moved = label.copy()
            moved[:, (1, 3)] = (label[:, (1, 3)] * width + x) / w
            moved[:, (2, 4)] = (label[:, (2, 4)] * height + y) / h
            return copyMakeBorder(src, y, h - y - height, x, w - x - width, 0, values=self.pad_val), moved
        return src, label

    def _place(self, height: int, width: int) -> tuple[int, int, int, int] | None:
        least, most = self._limits(height, width)
        ratio = random.uniform(*self.aspect_ratio_range)
        lowest, tallest = round(math.sqrt(least / ratio)), round(math.sqrt(most / ratio))
        if round(lowest * ratio) < width:
            lowest = int((width + 0.499999) / ratio)
        h = random.randint(min(max(lowest, height), tallest), tallest)
        w = round(h * ratio)
        if h - height < _LEAST_PIXELS or w - width < _LEAST_PIXELS:
            return None
        return random.randint(0, w - width), random.randint(0, h - height), w, h


def CreateMultiRandCropAugmenter(
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: Any = (0.05, 1.0),
    min_eject_coverage: Any = 0.3,
    max_attempts: Any = 50,
    skip_prob: float = 0,
) -> DetRandomSelectAug:
    """Returns a random choice of several DetRandomCropAug: any argument may be a list with one value for each.

    Raises ParamError if lists have different lengths.
    """
    columns = [
        value if isinstance(value, list) else [value]
        for value in (min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts)
    ]
    count = max(len(column) for column in columns)
    if any(len(column) not in (1, count) for column in columns):
        lengths = ", ".join(str(len(column)) for column in columns)
        raise ParamError("CreateMultiRandCropAugmenter: lists must have the same length", given=str(lengths))
    rows = zip(*(column * (count // len(column)) for column in columns), strict=True)
    return DetRandomSelectAug([DetRandomCropAug(*row) for row in rows], skip_prob)


def CreateDetAugmenter(
    data_shape: Sequence[int],
    resize: int = 0,
    rand_crop: float = 0,
    rand_pad: float = 0,
    rand_gray: float = 0,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    pca_noise: float = 0,
    hue: float = 0,
    inter_method: int = 2,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: Any = (0.05, 3.0),
    min_eject_coverage: Any = 0.3,
    max_attempts: Any = 50,
    pad_val: Any = (127, 127, 127),
) -> list[DetAugmenter]:
    """Returns the default augmenters.

    Parameters
    ----------
    data_shape : (channels, height, width)
    resize : int, default 0
        Length of the shorter side at the beginning; 0: unchanged.
    rand_crop, rand_pad, rand_gray : float
        Probabilities.
    rand_mirror : bool, default False
        Mirrors with probability 1/2.
    mean, std : True (ImageNet's) or array of 1 or 3 values
    brightness, contrast, saturation, pca_noise, hue : float
        Strength of random changes.
    inter_method : int, default 2
    min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts, pad_val
        See CreateMultiRandCropAugmenter and DetRandomPadAug, whose area is at most the maximum of area_range.

    Raises ParamError for wrong mean and std.
    """
    augmenters: list[DetAugmenter] = []
    if resize > 0:
        augmenters.append(DetBorrowAug(ResizeAug(resize, inter_method)))
    if rand_crop > 0:
        crops = (min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts)
        augmenters.append(CreateMultiRandCropAugmenter(*crops, skip_prob=1 - rand_crop))
    if rand_mirror:
        augmenters.append(DetHorizontalFlipAug(0.5))
    if rand_pad > 0:
        most = max(_as_range(value)[1] for value in (area_range if isinstance(area_range, list) else [area_range]))
        ratios = aspect_ratio_range[0] if isinstance(aspect_ratio_range, list) else aspect_ratio_range
        attempts = max_attempts[0] if isinstance(max_attempts, list) else max_attempts
        augmenters.append(DetRandomSelectAug(DetRandomPadAug(ratios, (1.0, most), attempts, pad_val), 1 - rand_pad))
    force = ForceResizeAug((data_shape[2], data_shape[1]), inter_method)
    colors = color_augmenters(mean, std, brightness, contrast, saturation, hue, pca_noise, rand_gray)
    return [*augmenters, *(DetBorrowAug(augmenter) for augmenter in (force, *colors))]
