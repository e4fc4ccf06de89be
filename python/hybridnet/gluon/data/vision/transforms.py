"""Image transforms, as blocks. Images are NDArrays (height, width, channels); ToTensor moves the channels first."""

from __future__ import annotations

import numbers
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .... import ndarray
from ...._lazy_names import refusing
from ...._public_names import dir_of
from ....errors import DTypeError, ParamError, not_overridden
from ....io import _pixels
from ..._hybrid_block import HybridBlock
from ...block import Block
from ...nn import HybridSequential, Sequential
from ._image_inputs import as_array, check_channels_first, check_channels_last, warn_of_small_values

__all__ = [
    "Cast",
    "CenterCrop",
    "Compose",
    "CropResize",
    "HybridCompose",
    "Normalize",
    "RandomApply",
    "RandomBrightness",
    "RandomColorJitter",
    "RandomContrast",
    "RandomCrop",
    "RandomFlipLeftRight",
    "RandomFlipTopBottom",
    "RandomHue",
    "RandomLighting",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSaturation",
    "Resize",
    "Rotate",
    "ToTensor",
]


class _OnImages(Block):
    """Base of transforms: they accept NumPy arrays and PIL images in place of NDArrays."""

    _gray_axis = -1  # the axis of one channel that gray images get

    def __call__(self, x: Any, *args: Any) -> Any:
        """Checks the image and applies the transform."""
        if not isinstance(x, ndarray.NDArray):
            x = as_array(x, type(self).__name__, self._gray_axis)
        if isinstance(x, ndarray.NDArray):
            self._check(x)
        return super().__call__(x, *args)

    def _check(self, image: ndarray.NDArray) -> None:
        """Raises an error with the fix if the image has the wrong order of axes or element type."""


class _Transforms(_OnImages):
    """Base of transforms that apply others, of which the first checks the image."""

    def _check(self, image: ndarray.NDArray) -> None:
        first = next(iter(self._children.values()), None)
        if isinstance(first, _OnImages):
            first._check(image)


class _HybridGroup(_Transforms, HybridSequential):
    """Adjacent HybridBlocks of a Compose, hybridized."""


class Compose(_Transforms, Sequential):
    """Applies transforms in sequence; adjacent HybridBlocks are hybridized together."""

    def __init__(self, transforms: Sequence[Block]) -> None:
        super().__init__()
        hybrid: list[HybridBlock] = []
        for transform in [*transforms, None]:
            if isinstance(transform, HybridBlock):
                hybrid.append(transform)
                continue
            if len(hybrid) == 1:
                self.add(hybrid[0])
            elif hybrid:
                group = _HybridGroup()
                group.add(*hybrid)
                group.hybridize()
                self.add(group)
            hybrid = []
            if transform is not None:
                self.add(transform)


class HybridCompose(_Transforms, HybridSequential):
    """Applies HybridBlock transforms in sequence, hybridized. Raises ParamError if one is not a HybridBlock."""

    def __init__(self, transforms: Sequence[HybridBlock]) -> None:
        super().__init__()
        for transform in transforms:
            if not isinstance(transform, HybridBlock):
                raise ParamError(f"{type(transform)} is not a HybridBlock, try use `Compose` instead")
            self.add(transform)
        self.hybridize()


class Cast(_OnImages, HybridBlock):
    """Converts to another element type."""

    def __init__(self, dtype: Any = "float32") -> None:
        super().__init__()
        self._dtype = dtype

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.cast(x, dtype=self._dtype)


class ToTensor(_OnImages, HybridBlock):
    """Converts (H, W, C) or (N, H, W, C) in 0..255 to float32 (C, H, W) or (N, C, H, W) in 0..1.

    Raises ShapeError for images with the channels first; warns if values are floating and in 0..1 already.
    """

    def _check(self, image: ndarray.NDArray) -> None:
        check_channels_last(image.shape, "ToTensor")
        warn_of_small_values(image)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.to_tensor(x)


class Normalize(_OnImages, HybridBlock):
    """Normalizes float (C, H, W) or (N, C, H, W): ``(x - mean) / std``; mean and std: a number or one per channel.

    Raises DTypeError for integers, ShapeError for another number of channels.
    """

    _gray_axis = 0

    def __init__(self, mean: float | Sequence[float] = 0.0, std: float | Sequence[float] = 1.0) -> None:
        super().__init__()
        self._mean = (float(mean),) if isinstance(mean, (int, float, numbers.Real)) else tuple(float(v) for v in mean)
        self._std = (float(std),) if isinstance(std, (int, float, numbers.Real)) else tuple(float(v) for v in std)

    def _check(self, image: ndarray.NDArray) -> None:
        check_channels_first(image, "Normalize", max(len(self._mean), len(self._std)))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.normalize(x, mean=self._mean, std=self._std)


class _HostTransform(_OnImages):
    """Base of transforms on NumPy arrays: single images or batches (N, H, W, C)."""

    def _check(self, image: ndarray.NDArray) -> None:
        check_channels_last(image.shape, type(self).__name__)

    def _apply(self, image: np.ndarray) -> np.ndarray:
        """Transforms one image (H, W, C)."""
        raise not_overridden(self, "_apply(image)")

    def forward(self, x: Any) -> Any:
        values = x.asnumpy()
        if values.ndim == 4:
            out = np.stack([self._apply(image) for image in values])
        else:
            out = self._apply(values)
        return ndarray.array(out, dtype=out.dtype)


def _pair(size: int | Sequence[int]) -> tuple[int, int]:
    """Returns (width, height). Raises ParamError unless size is an int or two."""
    sizes = [size, size] if isinstance(size, (int, numbers.Integral)) else list(size)
    if len(sizes) != 2:
        raise ParamError("size must be an int or (width, height)", given=repr(size))
    return int(sizes[0]), int(sizes[1])


class Resize(_HostTransform):
    """Resizes images.

    Parameters
    ----------
    size : int or (width, height)
        An int: a square; with keep_ratio: the length of the shorter side.
    keep_ratio : bool, default False
    interpolation : int, default 1
        0 nearest, 1 bilinear, 2 bicubic, 3 area, 4 Lanczos, 9 automatic, 10 random.
    """

    def __init__(self, size: int | Sequence[int], keep_ratio: bool = False, interpolation: int = 1) -> None:
        super().__init__()
        _pair(size)
        self._keep = keep_ratio
        self._size = size
        self._interpolation = interpolation

    def _apply(self, image: np.ndarray) -> np.ndarray:
        if min(_pair(self._size)) < 1:
            raise ParamError("Resize: size must be positive", given=str(self._size))
        if self._keep and isinstance(self._size, numbers.Integral):
            return _pixels.resize_short(image, int(self._size), self._interpolation)
        return _pixels.resize(image, *_pair(self._size), self._interpolation)


class CenterCrop(_HostTransform):
    """Crops the center of the given size (an int or (width, height)); resizes if the image is smaller."""

    def __init__(self, size: int | Sequence[int], interpolation: int = 1) -> None:
        super().__init__()
        self._size = _pair(size)
        self._interpolation = interpolation

    def _apply(self, image: np.ndarray) -> np.ndarray:
        return _pixels.center_crop(image, *self._size, self._interpolation)


class CropResize(_HostTransform):
    """Crops a fixed rectangle with its corner at column x, row y, and resizes it to size if given."""

    def __init__(
        self,
        x: int,
        y: int,
        width: int,
        height: int,
        size: int | Sequence[int] | None = None,
        interpolation: int | None = None,
    ) -> None:
        super().__init__()
        self._rectangle = (x, y, width, height)
        self._size = size
        self._interpolation = 1 if interpolation is None else interpolation

    def _apply(self, image: np.ndarray) -> np.ndarray:
        part = _pixels.crop(image, *self._rectangle)
        return part if self._size is None else _pixels.resize(part, *_pair(self._size), self._interpolation)


class RandomCrop(_HostTransform):
    """Crops a random part of size (an int or (width, height)), after padding the image with pad zeros.

    Images that are smaller are enlarged first.
    """

    def __init__(self, size: int | Sequence[int], pad: int | None = None, interpolation: int = 1) -> None:
        super().__init__()
        self._size = _pair(size)
        self._pad = pad or 0
        self._interpolation = interpolation

    def _apply(self, image: np.ndarray) -> np.ndarray:
        _pixels.check_image(image)
        image = np.pad(image, ((self._pad, self._pad), (self._pad, self._pad), (0, 0)))
        width, height = self._size
        if image.shape[1] < width or image.shape[0] < height:
            image = _pixels.resize(image, max(width, image.shape[1]), max(height, image.shape[0]), self._interpolation)
        x, y = random.randint(0, image.shape[1] - width), random.randint(0, image.shape[0] - height)
        return _pixels.crop(image, x, y, width, height)


class RandomResizedCrop(_HostTransform):
    """Crops a random part, by fraction of the area (scale) and aspect ratio, and resizes it to size."""

    def __init__(
        self,
        size: int | Sequence[int],
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: int = 1,
    ) -> None:
        super().__init__()
        self._args = (_pair(size), scale, ratio, interpolation)

    def _apply(self, image: np.ndarray) -> np.ndarray:
        return _pixels.random_size_crop(image, *self._args)


class RandomFlipLeftRight(_HostTransform):
    """Mirrors left and right with probability p."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self._p = p

    def _apply(self, image: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(image[:, ::-1]) if random.random() < self._p else image


class RandomFlipTopBottom(_HostTransform):
    """Mirrors top and bottom with probability p."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self._p = p

    def _apply(self, image: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(image[::-1]) if random.random() < self._p else image


class _RandomFactor(_HostTransform):
    """Base of colour changes by a factor drawn from [max(0, 1 - amount), 1 + amount]."""

    _change: Callable[[np.ndarray, float], np.ndarray]

    def __init__(self, amount: float) -> None:
        super().__init__()
        if amount < 0:
            raise ParamError(type(self).__name__, expected="a number >= 0", given=str(amount))
        self._amount = amount

    def _apply(self, image: np.ndarray) -> np.ndarray:
        _pixels.check_image(image)
        factor = random.uniform(max(0.0, 1 - self._amount), 1 + self._amount)
        return type(self)._change(image, factor)


class RandomBrightness(_RandomFactor):
    """Multiplies brightness by a random factor from [max(0, 1 - brightness), 1 + brightness]."""

    _change = staticmethod(_pixels.adjust_brightness)

    def __init__(self, brightness: float) -> None:
        super().__init__(brightness)


class RandomContrast(_RandomFactor):
    """Multiplies contrast by a random factor from [max(0, 1 - contrast), 1 + contrast]."""

    _change = staticmethod(_pixels.adjust_contrast)

    def __init__(self, contrast: float) -> None:
        super().__init__(contrast)


class RandomSaturation(_RandomFactor):
    """Multiplies saturation by a random factor from [max(0, 1 - saturation), 1 + saturation]."""

    _change = staticmethod(_pixels.adjust_saturation)

    def __init__(self, saturation: float) -> None:
        super().__init__(saturation)


class RandomHue(_HostTransform):
    """Rotates the hue by a random fraction of a half circle from [-hue, hue]."""

    def __init__(self, hue: float) -> None:
        super().__init__()
        self._hue = hue

    def _apply(self, image: np.ndarray) -> np.ndarray:
        _pixels.check_image(image)
        return _pixels.adjust_hue(image, random.uniform(-self._hue, self._hue))


class RandomColorJitter(_HostTransform):
    """Changes brightness, contrast, saturation and hue at random, in random order."""

    def __init__(self, brightness: float = 0, contrast: float = 0, saturation: float = 0, hue: float = 0) -> None:
        super().__init__()
        kinds = (
            (RandomBrightness, brightness),
            (RandomContrast, contrast),
            (RandomSaturation, saturation),
            (RandomHue, hue),
        )
        self._changes = [kind(amount)._apply for kind, amount in kinds if amount > 0]

    def _apply(self, image: np.ndarray) -> np.ndarray:
        for change in random.sample(self._changes, len(self._changes)):
            image = change(image)
        return image


class RandomLighting(_HostTransform):
    """Adds noise along the principal components of ImageNet's colours, with standard deviation alpha.

    Source: Krizhevsky et al., ImageNet Classification with Deep Convolutional Neural Networks, 2012, section 4.1.
    """

    _VALUES = np.array([55.46, 4.794, 1.148])
    _VECTORS = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self._alpha = alpha

    def _apply(self, image: np.ndarray) -> np.ndarray:
        _pixels.check_image(image)
        noise = self._VECTORS @ (np.random.normal(0, self._alpha, 3) * self._VALUES)
        return _pixels._like(image.astype(np.float32) + noise.astype(np.float32), image)


def _rotated(x: Any, degrees: float, zoom_in: bool, zoom_out: bool) -> Any:
    if np.dtype(x.dtype) != np.float32:
        raise DTypeError(
            "This transformation only supports float32. Consider calling it after ToTensor",
            given=np.dtype(x.dtype).name,
            fix="put ToTensor() before it",
        )
    values = x.asnumpy()
    images = values if values.ndim == 4 else values[None]
    out = np.stack([_pixels.rotate(image, degrees, zoom_in, zoom_out) for image in images])
    return ndarray.array(out if values.ndim == 4 else out[0])


class Rotate(_OnImages):
    """Rotates float32 (C, H, W) or (N, C, H, W) counter-clockwise by degrees. zoom_in, zoom_out: see pixels.rotate.

    Raises DTypeError for other element types.
    """

    _gray_axis = 0

    def __init__(self, rotation_degrees: float, zoom_in: bool = False, zoom_out: bool = False) -> None:
        super().__init__()
        self._args = (rotation_degrees, zoom_in, zoom_out)

    def forward(self, x: Any) -> Any:
        return _rotated(x, *self._args)


class RandomRotation(_OnImages):
    """Rotates by an angle from angle_limits (degrees) with probability rotate_with_proba. Otherwise like Rotate.

    Raises ParamError for unordered limits or a probability outside [0, 1].
    """

    _gray_axis = 0

    def __init__(
        self,
        angle_limits: tuple[float, float],
        zoom_in: bool = False,
        zoom_out: bool = False,
        rotate_with_proba: float = 1.0,
    ) -> None:
        super().__init__()
        lower, upper = angle_limits
        if lower >= upper:
            raise ParamError("`angle_limits` must be an ordered tuple")
        if not 0 <= rotate_with_proba <= 1:
            raise ParamError("Probability of rotating the image should be between 0 and 1")
        self._limits = (lower, upper)
        self._args = (zoom_in, zoom_out)
        self._rotate_with_proba = rotate_with_proba

    def forward(self, x: Any) -> Any:
        if random.random() > self._rotate_with_proba:
            return x
        return _rotated(x, random.uniform(*self._limits), *self._args)


class RandomApply(_OnImages, Sequential):
    """Applies transforms (a block or function, or a list of blocks) with probability p."""

    def __init__(self, transforms: Callable[[Any], Any] | Sequence[Block], p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms if callable(transforms) else Compose(transforms)
        self.p = p

    def forward(self, x: Any) -> Any:
        return x if self.p < random.random() else self.transforms(x)


__getattr__, __dir__ = refusing(__name__), dir_of(__name__)
