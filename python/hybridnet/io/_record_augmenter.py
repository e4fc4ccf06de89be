"""The augmentation of ImageRecordIter between decoding and normalizing, in MXNet's order: resize, rotate and shear,
pad, crop, colors.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ParamError
from . import _pixels
from ._warping import add_border, shift_hls, warp

__all__ = ["AUGMENTATIONS", "RecordAugmenter"]

# Names of the settings, with the values that have no effect.
AUGMENTATIONS: dict[str, Any] = {
    "resize": -1,
    "rand_crop": False,
    "random_resized_crop": False,
    "max_rotate_angle": 0,
    "max_aspect_ratio": 0.0,
    "min_aspect_ratio": None,
    "max_shear_ratio": 0.0,
    "max_crop_size": -1,
    "min_crop_size": -1,
    "max_random_scale": 1.0,
    "min_random_scale": 1.0,
    "max_random_area": 1.0,
    "min_random_area": 1.0,
    "max_img_size": 1e10,
    "min_img_size": 0.0,
    "brightness": 0.0,
    "contrast": 0.0,
    "saturation": 0.0,
    "pca_noise": 0.0,
    "random_h": 0,
    "random_s": 0,
    "random_l": 0,
    "rotate": -1,
    "rotate_list": (),
    "fill_value": 255,
    "inter_method": 1,
    "pad": 0,
}

# Principal components of ImageNet's colors times their standard deviations, rows red, green, blue: Krizhevsky et al.,
# ImageNet classification with deep convolutional networks, section 4.1.
_COMPONENTS = np.array(
    [
        [55.46 * -0.5675, 4.794 * 0.7192, 1.148 * 0.4009],
        [55.46 * -0.5808, 4.794 * -0.0045, 1.148 * -0.8140],
        [55.46 * -0.5836, 4.794 * -0.6948, 1.148 * 0.4203],
    ]
)
_ATTEMPTS = 10  # limit of draws of a random part within the image, with the given area and proportions


class RecordAugmenter:
    """Augments an image of any size to the given size. One object serves several threads.

    Parameters
    ----------
    height, width : int
    settings : values for AUGMENTATIONS; see ImageRecordIter.

    Raises ParamError for settings that contradict each other.
    """

    def __init__(self, height: int, width: int, **settings: Any) -> None:
        self.height, self.width = height, width
        # Command lines pass numbers as strings, and MXNet accepts them.
        chosen = {name: _number(value) for name, value in {**AUGMENTATIONS, **settings}.items()}
        self._settings = chosen
        if chosen["min_aspect_ratio"] is None:
            self._ratios = (1 - chosen["max_aspect_ratio"], 1 + chosen["max_aspect_ratio"])
        else:
            self._ratios = (chosen["min_aspect_ratio"], chosen["max_aspect_ratio"])
        self._angles = _angles(chosen["rotate_list"])
        self._check()
        self._warps = bool(
            chosen["max_rotate_angle"] > 0
            or chosen["max_shear_ratio"] > 0
            or chosen["rotate"] > 0
            or self._angles
            or chosen["max_random_scale"] != 1
            or chosen["min_random_scale"] != 1
            or (not chosen["random_resized_crop"] and self._ratios != (1, 1))
            or chosen["max_img_size"] != 1e10
            or chosen["min_img_size"] != 0
        )

    def _check(self) -> None:
        chosen = self._settings
        if chosen["random_resized_crop"]:
            for name in ("rand_crop", "max_random_scale", "min_random_scale", "max_crop_size", "min_crop_size"):
                if chosen[name] != AUGMENTATIONS[name]:
                    raise ParamError(f"ImageRecordIter: random_resized_crop conflicts with {name}={chosen[name]}")
            if self._ratios[0] <= 0:
                raise ParamError(
                    "ImageRecordIter: proportions must be positive", given=f"a minimum of {self._ratios[0]}"
                )
        for low, high in (("min_random_area", "max_random_area"), ("min_crop_size", "max_crop_size")):
            if chosen[low] > chosen[high]:
                raise ParamError(f"ImageRecordIter: {low}={chosen[low]} is above {high}={chosen[high]}")
        if chosen["pad"] < 0:
            raise ParamError("ImageRecordIter: pad must not be negative", given=str(chosen["pad"]))
        if chosen["inter_method"] not in (0, 1, 2, 3, 4, 9, 10):
            raise ParamError("ImageRecordIter: inter_method must be 0 to 4, 9 or 10", given=str(chosen["inter_method"]))

    def __call__(self, image: np.ndarray, draw: random.Random) -> np.ndarray:
        """Returns the image at the given size; draw is the source of random numbers."""
        chosen = self._settings
        if chosen["resize"] > 0:
            image = _pixels.resize_short(image, chosen["resize"], self._method(draw))
        if self._warps:
            image = self._warp(image, draw)
        if chosen["pad"]:
            image = add_border(image, chosen["pad"], chosen["fill_value"])
        image = self._cut(image, draw)
        if image.shape[2] == 3:
            image = self._recolor(image, draw)
        return image

    def _method(self, draw: random.Random) -> int:
        method = self._settings["inter_method"]
        return draw.randrange(5) if method == 10 else method

    def _resize(self, image: np.ndarray, width: int, height: int, draw: random.Random) -> np.ndarray:
        return _pixels.resize(image, width, height, self._method(draw))

    # -- geometry ---------------------------------------------------------------------------------------------------

    def _warp(self, image: np.ndarray, draw: random.Random) -> np.ndarray:
        """Applies shear, rotation, scale and aspect ratio as one map that keeps the center."""
        chosen = self._settings
        shear = draw.uniform(-chosen["max_shear_ratio"], chosen["max_shear_ratio"])
        angle = draw.randint(-int(chosen["max_rotate_angle"]), int(chosen["max_rotate_angle"]))
        if chosen["rotate"] > 0:
            angle = chosen["rotate"]
        if self._angles:
            angle = draw.choice(self._angles)
        scale = ratio = 1.0
        if not chosen["random_resized_crop"]:
            scale = draw.uniform(chosen["min_random_scale"], chosen["max_random_scale"])
            ratio = draw.uniform(*self._ratios)
        a, b = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        tall = 2 * scale / (1 + ratio)
        wide = ratio * tall
        height, width = image.shape[:2]
        least, most = chosen["min_img_size"], chosen["max_img_size"]
        new_width, new_height = (max(least, min(most, scale * size)) for size in (width, height))
        matrix = np.array([[tall * a - shear * b * wide, tall * b + shear * a * wide, 0], [-b * wide, a * wide, 0]])
        matrix[:, 2] = (np.array([new_width, new_height]) - matrix[:, :2] @ [width, height]) / 2
        size = max(int(new_width), 1), max(int(new_height), 1)
        method = _pixels._method(self._method(draw), (height, width), (size[1], size[0]))
        return warp(image, matrix, *size, method, int(chosen["fill_value"]))

    def _cut(self, image: np.ndarray, draw: random.Random) -> np.ndarray:
        chosen = self._settings
        if chosen["random_resized_crop"]:
            part = self._part_of_area(image, draw)
            if part is not None:
                return self._resize(part, self.width, self.height, draw)
        elif chosen["max_crop_size"] != -1 or chosen["min_crop_size"] != -1:
            size = draw.randint(int(chosen["min_crop_size"]), int(chosen["max_crop_size"]))
            if size > min(image.shape[:2]) or size < 1:
                raise ParamError(
                    f"ImageRecordIter: a part of {size} x {size} does not fit an image of {image.shape[1]} x "
                    f"{image.shape[0]}"
                )
            return self._resize(self._square(image, size, size, draw), self.width, self.height, draw)
        if image.shape[0] < self.height:
            width = int(self.height / image.shape[0] * image.shape[1])
            image = self._resize(image, max(width, 1), self.height, draw)
        if image.shape[1] < self.width:
            height = int(self.width / image.shape[1] * image.shape[0])
            image = self._resize(image, self.width, max(height, self.height), draw)
        return self._square(image, self.width, self.height, draw)

    def _square(self, image: np.ndarray, width: int, height: int, draw: random.Random) -> np.ndarray:
        """Crops to that size: at a random position with rand_crop, else the center."""
        y, x = image.shape[0] - height, image.shape[1] - width
        if self._settings["rand_crop"]:
            return _pixels.crop(image, draw.randint(0, x), draw.randint(0, y), width, height)
        return _pixels.crop(image, x // 2, y // 2, width, height)

    def _part_of_area(self, image: np.ndarray, draw: random.Random) -> np.ndarray | None:
        """Crops a part of random area and aspect ratio; None if no draw fits."""
        chosen = self._settings
        areas = chosen["min_random_area"], chosen["max_random_area"]
        if areas == (1, 1) and self._ratios == (1, 1):
            return None
        for _ in range(_ATTEMPTS):
            area = image.shape[0] * image.shape[1] * draw.uniform(*areas)
            ratio = draw.uniform(*self._ratios)
            height, width = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
            if draw.random() > 0.5:
                height, width = width, height
            if 1 <= height <= image.shape[0] and 1 <= width <= image.shape[1]:
                x, y = draw.randint(0, image.shape[1] - width), draw.randint(0, image.shape[0] - height)
                return _pixels.crop(image, x, y, width, height)
        return None

    # -- colors ----------------------------------------------------------------------------------------------------

    def _recolor(self, image: np.ndarray, draw: random.Random) -> np.ndarray:
        chosen = self._settings
        jitters = [
            (adjust, strength)
            for adjust, strength in (
                (_pixels.adjust_brightness, chosen["brightness"]),
                (_pixels.adjust_contrast, chosen["contrast"]),
                (_pixels.adjust_saturation, chosen["saturation"]),
            )
            if strength > 0
        ]
        draw.shuffle(jitters)
        for adjust, strength in jitters:
            image = adjust(image, 1 + draw.uniform(-strength, strength))
        reaches = chosen["random_h"], chosen["random_l"], chosen["random_s"]
        if any(reaches):
            image = shift_hls(image, *(_toward_the_middle(reach, draw) for reach in reaches))
        if chosen["pca_noise"] > 0:
            strengths = [draw.gauss(0, chosen["pca_noise"]) for _ in range(3)]
            image = _pixels.map_colors(image, np.eye(3), (_COMPONENTS @ strengths).tolist())
        return image


def _toward_the_middle(reach: float, draw: random.Random) -> int:
    """Returns an integer from -reach to reach; extreme values are rare."""
    share = (draw.random() + 4 * draw.random()) / 5
    return int(share * reach * 2 - reach)


def _number(value: Any) -> Any:
    if not isinstance(value, str) or "," in value:
        return value
    try:
        return float(value) if "." in value or "e" in value else int(value)
    except ValueError:
        return {"True": True, "False": False, "None": None}.get(value, value)


def _angles(given: str | Sequence[int] | int) -> list[int]:
    if isinstance(given, str):
        given = [int(item) for item in given.split(",") if item.strip()]
    return [given] if isinstance(given, int) else list(given)
