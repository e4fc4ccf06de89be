"""Augmenters: callables that change an image, and the default list of them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from ..errors import ParamError, not_overridden
from ..io import _pixels
from ..ndarray import NDArray
from .image import (
    _get_interp_method,
    center_crop,
    color_normalize,
    imresize,
    random_crop,
    random_size_crop,
    resize_short,
)

__all__ = [
    "Augmenter",
    "BrightnessJitterAug",
    "CastAug",
    "CenterCropAug",
    "ColorJitterAug",
    "ColorNormalizeAug",
    "ContrastJitterAug",
    "CreateAugmenter",
    "ForceResizeAug",
    "HorizontalFlipAug",
    "HueJitterAug",
    "LightingAug",
    "RandomCropAug",
    "RandomGrayAug",
    "RandomOrderAug",
    "RandomSizedCropAug",
    "ResizeAug",
    "SaturationJitterAug",
    "SequentialAug",
]


class Augmenter:
    """Base of augmenters: ``image = augmenter(image)``. dumps writes the keyword arguments."""

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = {
            name: value.asnumpy().tolist()
            if isinstance(value, NDArray)
            else value.tolist()
            if isinstance(value, np.ndarray)
            else value
            for name, value in kwargs.items()
        }

    def dumps(self) -> Any:
        """Returns JSON text: name and arguments."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, src: NDArray) -> NDArray:
        raise not_overridden(self, "__call__()")


class SequentialAug(Augmenter):
    """Applies augmenters in sequence."""

    def __init__(self, ts: Sequence[Augmenter]) -> None:
        super().__init__()
        self.ts = list(ts)

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), [t.dumps() for t in self.ts]]

    def __call__(self, src: NDArray) -> NDArray:
        for t in self.ts:
            src = t(src)
        return src


class RandomOrderAug(SequentialAug):
    """Applies augmenters in random order."""

    def __call__(self, src: NDArray) -> NDArray:
        random.shuffle(self.ts)
        return super().__call__(src)


class ResizeAug(Augmenter):
    """Resizes the shorter side to size."""

    def __init__(self, size: int, interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size = size
        self.interp = interp

    def __call__(self, src: NDArray) -> NDArray:
        return resize_short(src, self.size, self.interp)


class ForceResizeAug(Augmenter):
    """Resizes to size (width, height), ignoring the proportions."""

    def __init__(self, size: Sequence[int], interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size = size
        self.interp = interp

    def __call__(self, src: NDArray) -> NDArray:
        sizes = (src.shape[0], src.shape[1], self.size[1], self.size[0])
        return imresize(src, self.size[0], self.size[1], interp=_get_interp_method(self.interp, sizes))


class RandomCropAug(Augmenter):
    """Crops a random part of size (width, height)."""

    def __init__(self, size: Sequence[int], interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size = size
        self.interp = interp

    def __call__(self, src: NDArray) -> NDArray:
        return random_crop(src, self.size, self.interp)[0]


class CenterCropAug(RandomCropAug):
    """Crops the center to size (width, height)."""

    def __call__(self, src: NDArray) -> NDArray:
        return center_crop(src, self.size, self.interp)[0]


class RandomSizedCropAug(Augmenter):
    """Crops a random part, by area and aspect ratio, and resizes it to size (width, height)."""

    def __init__(
        self, size: Sequence[int], area: Any, ratio: tuple[float, float], interp: int = 2, **kwargs: Any
    ) -> None:
        area = kwargs.pop("min_area", area)
        if kwargs:
            raise ParamError(f"RandomSizedCropAug: unexpected keyword argument '{next(iter(kwargs))}'")
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)
        self.size = size
        self.area = area
        self.ratio = ratio
        self.interp = interp

    def __call__(self, src: NDArray) -> NDArray:
        return random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


class _FactorAug(Augmenter):
    """Base of augmenters that pass a random factor 1 + [-limit, limit] to a function of images."""

    _function: Any = None
    _name = ""

    def __init__(self, limit: float) -> None:
        super().__init__(**{self._name: limit})
        setattr(self, self._name, limit)
        self._limit = limit

    def _factor(self) -> float:
        return 1.0 + random.uniform(-self._limit, self._limit)

    def __call__(self, src: NDArray) -> NDArray:
        image = type(self)._function(src.asnumpy(), self._factor())
        return nd.array(image, dtype=image.dtype)


class BrightnessJitterAug(_FactorAug):
    """Changes brightness at random."""

    _function = staticmethod(_pixels.adjust_brightness)
    _name = "brightness"

    def __init__(self, brightness: float) -> None:
        super().__init__(brightness)


class ContrastJitterAug(_FactorAug):
    """Changes contrast at random."""

    _function = staticmethod(_pixels.adjust_contrast)
    _name = "contrast"

    def __init__(self, contrast: float) -> None:
        super().__init__(contrast)


class SaturationJitterAug(_FactorAug):
    """Changes saturation at random."""

    _function = staticmethod(_pixels.adjust_saturation)
    _name = "saturation"

    def __init__(self, saturation: float) -> None:
        super().__init__(saturation)


class HueJitterAug(_FactorAug):
    """Rotates the hue at random by up to hue half circles."""

    _function = staticmethod(_pixels.adjust_hue)
    _name = "hue"

    def __init__(self, hue: float) -> None:
        super().__init__(hue)

    def _factor(self) -> float:
        return random.uniform(-self._limit, self._limit)


class ColorJitterAug(RandomOrderAug):
    """Changes brightness, contrast and saturation at random, in random order."""

    def __init__(self, brightness: float, contrast: float, saturation: float) -> None:
        kinds = ((BrightnessJitterAug, brightness), (ContrastJitterAug, contrast), (SaturationJitterAug, saturation))
        super().__init__([kind(limit) for kind, limit in kinds if limit > 0])


class LightingAug(Augmenter):
    """Adds noise along the principal components of colors. Source: Krizhevsky et al., 2012, section 4.1."""

    def __init__(self, alphastd: float, eigval: Any, eigvec: Any) -> None:
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)
        self.alphastd = alphastd
        self.eigval = np.asarray(eigval)
        self.eigvec = np.asarray(eigvec)

    def __call__(self, src: NDArray) -> NDArray:
        alpha = np.random.normal(0, self.alphastd, size=(3,))
        shift = (self.eigvec * alpha) @ self.eigval
        return src + nd.array(shift, dtype=src.dtype)


class ColorNormalizeAug(Augmenter):
    """Normalizes: (image - mean) / std."""

    def __init__(self, mean: Any, std: Any) -> None:
        super().__init__(mean=mean, std=std)
        self.mean = mean if mean is None or isinstance(mean, NDArray) else nd.array(mean)
        self.std = std if std is None or isinstance(std, NDArray) else nd.array(std)

    def __call__(self, src: NDArray) -> NDArray:
        return color_normalize(src, self.mean, self.std)


class RandomGrayAug(Augmenter):
    """Converts to gray with probability p."""

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = p
        self.mat = nd.array([[0.21, 0.21, 0.21], [0.72, 0.72, 0.72], [0.07, 0.07, 0.07]])

    def __call__(self, src: NDArray) -> NDArray:
        return nd.dot(src, self.mat) if random.random() < self.p else src


class HorizontalFlipAug(Augmenter):
    """Mirrors left and right with probability p."""

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: NDArray) -> NDArray:
        return nd.flip(src, axis=1) if random.random() < self.p else src


class CastAug(Augmenter):
    """Converts to another element type."""

    def __init__(self, typ: str = "float32") -> None:
        super().__init__(type=typ)
        self.typ = typ

    def __call__(self, src: NDArray) -> NDArray:
        return src.astype(self.typ)


# Statistics of ImageNet: mean and deviation per channel, principal components of colors (Krizhevsky et al., 2012).
_MEAN, _STD = (123.68, 116.28, 103.53), (58.395, 57.12, 57.375)
_EIGVAL = (55.46, 4.794, 1.148)
_EIGVEC = ((-0.5675, 0.7192, 0.4009), (-0.5808, -0.0045, -0.8140), (-0.5836, -0.6948, 0.4203))


def _per_channel(what: str, value: Any, default: Sequence[float]) -> Any:
    if value is True:
        return nd.array(default)
    if value is not None and (not isinstance(value, (np.ndarray, NDArray)) or value.shape[0] not in (1, 3)):
        raise ParamError(f"CreateAugmenter: {what} must be True or an array of 1 or 3 values", given=repr(value))
    return value


def color_augmenters(
    mean: Any,
    std: Any,
    brightness: float,
    contrast: float,
    saturation: float,
    hue: float,
    pca_noise: float,
    rand_gray: float,
) -> list[Augmenter]:
    """Returns the color steps of CreateAugmenter and CreateDetAugmenter: to float, random changes, normalization."""
    augmenters: list[Augmenter] = [CastAug()]
    if brightness or contrast or saturation:
        augmenters.append(ColorJitterAug(brightness, contrast, saturation))
    if hue:
        augmenters.append(HueJitterAug(hue))
    if pca_noise > 0:
        augmenters.append(LightingAug(pca_noise, np.array(_EIGVAL), np.array(_EIGVEC)))
    if rand_gray > 0:
        augmenters.append(RandomGrayAug(rand_gray))
    mean, std = _per_channel("mean", mean, _MEAN), _per_channel("std", std, _STD)
    if mean is not None or std is not None:
        augmenters.append(ColorNormalizeAug(mean, std))
    return augmenters


def CreateAugmenter(
    data_shape: Sequence[int],
    resize: int = 0,
    rand_crop: bool = False,
    rand_resize: bool = False,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    hue: float = 0,
    pca_noise: float = 0,
    rand_gray: float = 0,
    inter_method: int = 2,
) -> list[Augmenter]:
    """Returns the default augmenters.

    Parameters
    ----------
    data_shape : (channels, height, width)
    resize : int, default 0
        Length of the shorter side before cropping; 0: unchanged.
    rand_crop, rand_resize, rand_mirror : bool
        Crops a random part, of random size (needs rand_crop), mirrors with probability 1/2.
    mean, std : True (ImageNet's) or array of 1 or 3 values
    brightness, contrast, saturation, hue, pca_noise : float
        Strength of random changes.
    rand_gray : float
        Probability of conversion to gray.
    inter_method : int, default 2

    Raises ParamError for rand_resize without rand_crop, and for wrong mean and std.
    """
    augmenters: list[Augmenter] = []
    if resize > 0:
        augmenters.append(ResizeAug(resize, inter_method))
    size = (data_shape[2], data_shape[1])
    if rand_resize:
        if not rand_crop:
            raise ParamError("CreateAugmenter: rand_resize needs rand_crop=True")
        augmenters.append(RandomSizedCropAug(size, 0.08, (3.0 / 4.0, 4.0 / 3.0), inter_method))
    else:
        augmenters.append((RandomCropAug if rand_crop else CenterCropAug)(size, inter_method))
    if rand_mirror:
        augmenters.append(HorizontalFlipAug(0.5))
    return augmenters + color_augmenters(mean, std, brightness, contrast, saturation, hue, pca_noise, rand_gray)
