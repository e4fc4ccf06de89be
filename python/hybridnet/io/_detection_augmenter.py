"""The augmentation of ImageDetRecordIter between decoding and normalizing, in MXNet's order: resize, colors, mirror,
border, crop, final size.

Objects are an array (count, 5 or more): class, left, top, right, bottom as fractions of width and height, and more.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ParamError
from . import _pixels
from ._warping import shift_hls

__all__ = ["DETECTION_AUGMENTATIONS", "DetectionAugmenter"]

# Names of the settings, with the values that have no effect.
DETECTION_AUGMENTATIONS: dict[str, Any] = {
    "resize": -1,
    "rand_crop_prob": 0.0,
    "min_crop_scales": (0.0,),
    "max_crop_scales": (1.0,),
    "min_crop_aspect_ratios": (1.0,),
    "max_crop_aspect_ratios": (1.0,),
    "min_crop_overlaps": (0.0,),
    "max_crop_overlaps": (1.0,),
    "min_crop_sample_coverages": (0.0,),
    "max_crop_sample_coverages": (1.0,),
    "min_crop_object_coverages": (0.0,),
    "max_crop_object_coverages": (1.0,),
    "num_crop_sampler": 1,
    "crop_emit_mode": "center",
    "emit_overlap_thresh": 0.3,
    "max_crop_trials": (25,),
    "rand_pad_prob": 0.0,
    "max_pad_scale": 1.0,
    "max_random_hue": 0,
    "random_hue_prob": 0.0,
    "max_random_saturation": 0,
    "random_saturation_prob": 0.0,
    "max_random_illumination": 0,
    "random_illumination_prob": 0.0,
    "max_random_contrast": 0.0,
    "random_contrast_prob": 0.0,
    "rand_mirror_prob": 0.0,
    "fill_value": 127,
    "inter_method": 1,
    "resize_mode": "force",
}
_RANGES = (
    ("min_crop_scales", "max_crop_scales"),
    ("min_crop_aspect_ratios", "max_crop_aspect_ratios"),
    ("min_crop_overlaps", "max_crop_overlaps"),
    ("min_crop_sample_coverages", "max_crop_sample_coverages"),
    ("min_crop_object_coverages", "max_crop_object_coverages"),
)
_CHOICES = {"crop_emit_mode": ("center", "overlap"), "resize_mode": ("force", "shrink", "fit")}


def _areas(boxes: np.ndarray) -> np.ndarray:
    return np.maximum(0, boxes[:, 2] - boxes[:, 0]) * np.maximum(0, boxes[:, 3] - boxes[:, 1])


class _CropSampler:
    """Draws parts of the unit square until one satisfies the limits for the objects."""

    def __init__(self, ranges: list[tuple[float, float]], trials: int) -> None:
        self.scales, self.ratios, self.overlaps, self.sample_coverages, self.object_coverages = ranges
        self.trials = trials
        self.asks = any(wanted != (0, 1) for wanted in (self.overlaps, self.sample_coverages, self.object_coverages))

    def __call__(self, boxes: np.ndarray, shape: tuple[int, ...], draw: random.Random) -> np.ndarray | None:
        """Returns left, top, right, bottom; None if no draw fits. Aspect ratios are those of pixels."""
        height, width = shape[:2]
        for _ in range(self.trials):
            scale = draw.uniform(*self.scales)
            # Neither side may exceed that of the image.
            low, high = max(self.ratios[0], scale**2), min(self.ratios[1], 1 / scale**2 if scale else math.inf)
            if scale <= 0 or low > high:
                continue
            ratio = math.sqrt(draw.uniform(low, high) * height / width)
            w, h = scale * ratio, scale / ratio
            if w > 1 or h > 1:
                continue
            x, y = draw.uniform(0, 1 - w), draw.uniform(0, 1 - h)
            part = np.array([x, y, x + w, y + h])
            if self._fits(part, boxes):
                return part
        return None

    def _fits(self, part: np.ndarray, boxes: np.ndarray) -> bool:
        """Whether some object overlaps the part within the limits."""
        if not self.asks or not len(boxes):
            return True
        shared = _shared_areas(part, boxes)
        own, area = _areas(boxes), _areas(part[None])[0]
        measures = (
            (shared / np.maximum(own + area - shared, 1e-12), self.overlaps),
            (shared / max(area, 1e-12), self.sample_coverages),
            (shared / np.maximum(own, 1e-12), self.object_coverages),
        )
        good = np.ones(len(boxes), bool)
        for values, (low, high) in measures:
            if (low, high) != (0, 1):
                good &= (values >= low) & (values <= high)
        return bool(good.any())


def _shared_areas(part: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    return _areas(np.concatenate([np.maximum(boxes[:, :2], part[:2]), np.minimum(boxes[:, 2:], part[2:])], axis=1))


class DetectionAugmenter:
    """Augments an image of any size to the given size, together with its objects. One object serves several threads.

    Parameters
    ----------
    height, width : int
    settings : values for DETECTION_AUGMENTATIONS; see ImageDetRecordIter.

    Raises ParamError for settings that contradict each other.
    """

    def __init__(self, height: int, width: int, **settings: Any) -> None:
        self.height, self.width = height, width
        self._settings = chosen = {**DETECTION_AUGMENTATIONS, **settings}
        for name, words in _CHOICES.items():
            if chosen[name] not in words:
                raise ParamError(f"ImageDetRecordIter: {name}", expected=" or ".join(words), given=repr(chosen[name]))
        if chosen["inter_method"] not in (0, 1, 2, 3, 4, 9, 10):
            raise ParamError(
                "ImageDetRecordIter: inter_method must be 0 to 4, 9 or 10", given=str(chosen["inter_method"])
            )
        if chosen["max_pad_scale"] < 1:
            raise ParamError("ImageDetRecordIter: max_pad_scale must be at least 1", given=str(chosen["max_pad_scale"]))
        self._samplers = self._make_samplers()

    def _make_samplers(self) -> list[_CropSampler]:
        chosen = self._settings
        count = int(chosen["num_crop_sampler"])
        columns = [[self._each(low, count), self._each(high, count)] for low, high in _RANGES]
        trials = self._each("max_crop_trials", count)
        for (low, high), (lows, highs) in zip(_RANGES, columns, strict=True):
            if any(a > b for a, b in zip(lows, highs, strict=True)):
                raise ParamError(f"ImageDetRecordIter: {low} is above {high}", given=f"{lows} and {highs}")
        return [
            _CropSampler([(float(lows[i]), float(highs[i])) for lows, highs in columns], int(trials[i]))
            for i in range(count)
        ]

    def _each(self, name: str, count: int) -> list[Any]:
        value = self._settings[name]
        values = list(value) if isinstance(value, Sequence) else [value]
        if len(values) not in (1, count):
            raise ParamError(
                f"ImageDetRecordIter: {name}", expected=f"1 or {count} numbers (num_crop_sampler)", given=str(values)
            )
        return values if len(values) == count else values * count

    def __call__(
        self, image: np.ndarray, objects: np.ndarray, draw: random.Random
    ) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
        """Returns the image at the given size, its objects, and the height and width that the image occupies in it."""
        chosen = self._settings
        if chosen["resize"] > 0:
            image = _pixels.resize_short(image, chosen["resize"], self._method(draw))
        if image.shape[2] == 3:
            image = self._recolor(image, draw)
        if draw.random() < chosen["rand_mirror_prob"]:
            image, objects = image[:, ::-1], objects.copy()
            objects[:, [1, 3]] = 1 - objects[:, [3, 1]]
        if chosen["max_pad_scale"] > 1 and draw.random() < chosen["rand_pad_prob"]:
            image, objects = self._pad(image, objects, draw)
        if self._samplers and draw.random() < chosen["rand_crop_prob"]:
            image, objects = self._crop(image, objects, draw)
        image, size = self._fit(np.ascontiguousarray(image), draw)
        return image, objects, size

    def _method(self, draw: random.Random) -> int:
        method = self._settings["inter_method"]
        return draw.randrange(5) if method == 10 else method

    def _recolor(self, image: np.ndarray, draw: random.Random) -> np.ndarray:
        chosen = self._settings

        def drawn(name: str, probability: str) -> int:
            limit = int(chosen[name])
            return draw.randint(-limit, limit) if limit and draw.random() < chosen[probability] else 0

        hue = drawn("max_random_hue", "random_hue_prob")
        saturation = drawn("max_random_saturation", "random_saturation_prob")
        lightness = drawn("max_random_illumination", "random_illumination_prob")
        if hue or saturation or lightness:
            image = shift_hls(image, hue, lightness, saturation)
        limit = float(chosen["max_random_contrast"])
        if limit and draw.random() < chosen["random_contrast_prob"]:
            image = _pixels.adjust_brightness(image, 1 + draw.uniform(-limit, limit))
        return image

    def _pad(self, image: np.ndarray, objects: np.ndarray, draw: random.Random) -> tuple[np.ndarray, np.ndarray]:
        """Places the image at random on a larger one with the same proportions, filled with fill_value."""
        height, width = image.shape[:2]
        scale = draw.uniform(1, self._settings["max_pad_scale"])
        tall, wide = int(height * scale), int(width * scale)
        y, x = draw.randint(0, tall - height), draw.randint(0, wide - width)
        whole = np.full((tall, wide, image.shape[2]), self._settings["fill_value"], image.dtype)
        whole[y : y + height, x : x + width] = image
        moved = objects.copy()
        moved[:, [1, 3]] = (objects[:, [1, 3]] * width + x) / wide
        moved[:, [2, 4]] = (objects[:, [2, 4]] * height + y) / tall
        return whole, moved

    def _crop(self, image: np.ndarray, objects: np.ndarray, draw: random.Random) -> tuple[np.ndarray, np.ndarray]:
        """Crops a part that a sampler (tried in random order) finds and that keeps an object; else keeps the whole."""
        height, width = image.shape[:2]
        for sampler in draw.sample(self._samplers, len(self._samplers)):
            part = sampler(objects[:, 1:5], image.shape, draw)
            if part is None:
                continue
            left, top = int(part[0] * width), int(part[1] * height)
            w, h = max(1, int((part[2] - part[0]) * width)), max(1, int((part[3] - part[1]) * height))
            exact = np.array([left / width, top / height, (left + w) / width, (top + h) / height])
            kept = self._objects_in(objects, exact)
            if len(kept) or not len(objects):
                return image[top : top + h, left : left + w], kept
        return image, objects

    def _objects_in(self, objects: np.ndarray, part: np.ndarray) -> np.ndarray:
        boxes = objects[:, 1:5]
        if self._settings["crop_emit_mode"] == "center":
            middle = (boxes[:, :2] + boxes[:, 2:]) / 2
            good = ((middle >= part[:2]) & (middle <= part[2:])).all(axis=1)
        else:
            shares = _shared_areas(part, boxes) / np.maximum(_areas(boxes), 1e-12)
            good = shares > self._settings["emit_overlap_thresh"]
        moved = objects[good].copy()
        moved[:, 1:5] = ((moved[:, 1:5] - np.tile(part[:2], 2)) / np.tile(part[2:] - part[:2], 2)).clip(0, 1)
        return moved

    def _fit(self, image: np.ndarray, draw: random.Random) -> tuple[np.ndarray, tuple[int, int]]:
        """Resizes. force: ignoring proportions; shrink, fit: keeping proportions, with zeros at right and bottom."""
        height, width = image.shape[:2]
        if self._settings["resize_mode"] == "force":
            return _pixels.resize(image, self.width, self.height, self._method(draw)), (self.height, self.width)
        factor = min(self.height / height, self.width / width)
        if factor < 1 or self._settings["resize_mode"] == "fit":
            tall, wide = max(1, round(height * factor)), max(1, round(width * factor))
            image = _pixels.resize(image, min(wide, self.width), min(tall, self.height), self._method(draw))
        whole = np.zeros((self.height, self.width, image.shape[2]), image.dtype)
        whole[: image.shape[0], : image.shape[1]] = image
        return whole, (image.shape[0], image.shape[1])
