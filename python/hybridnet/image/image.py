"""Reading, resizing, cropping and rotating images."""

from __future__ import annotations

import numbers
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from .._lazy_names import names_from
from .._public_names import dir_of
from ..errors import DTypeError, ParamError, ShapeError
from ..io import _image_files, _pixels
from ..ndarray import NDArray

__all__ = [
    "center_crop",
    "color_normalize",
    "copyMakeBorder",
    "fixed_crop",
    "imdecode",
    "imread",
    "imresize",
    "imrotate",
    "random_crop",
    "random_rotate",
    "random_size_crop",
    "resize_short",
    "scale_down",
]


def _given(image: np.ndarray, to_rgb: bool, out: NDArray | None) -> NDArray:
    if not to_rgb and image.shape[2] == 3:
        image = image[:, :, ::-1]
    if out is not None:
        out[:] = np.ascontiguousarray(image)
        return out
    return nd.array(image, dtype=image.dtype)


def imread(filename: str, flag: int = 1, to_rgb: bool = True, out: NDArray | None = None) -> NDArray:
    """Reads an image file as (height, width, channels) uint8.

    Parameters
    ----------
    filename : str
        Path. PNG and PNM are read directly, other formats with Pillow or OpenCV.
    flag : int, default 1
        1 color, 0 gray, -1 as stored.
    to_rgb : bool, default True
        Whether channels are in RGB order; else BGR, like OpenCV.
    out : NDArray, optional

    Raises FileError, FormatError, UnsupportedError.
    """
    return _given(_image_files.read_image(filename, flag), bool(to_rgb), out)


def imdecode(buf: Any, flag: int = 1, to_rgb: bool = True, out: NDArray | None = None) -> NDArray:
    """Decodes an encoded image: bytes, or an array of uint8. Arguments and errors: see imread."""
    if isinstance(buf, NDArray):
        buf = buf.asnumpy()
    if not isinstance(buf, (bytes, bytearray, memoryview, np.ndarray)):
        raise ParamError(
            "imdecode: buf must be of type bytes, bytearray or numpy.ndarray, if you would like to input type str, "
            f"please convert to bytes; got {type(buf).__name__}"
        )
    content = np.ascontiguousarray(buf).astype(np.uint8).tobytes() if isinstance(buf, np.ndarray) else bytes(buf)
    return _given(_image_files.decode_image(content, flag), bool(to_rgb), out)


def _numpy(src: Any) -> np.ndarray:
    return src.asnumpy() if isinstance(src, NDArray) else np.asarray(src)


def imresize(src: Any, w: int, h: int, interp: int = 1, out: NDArray | None = None) -> NDArray:
    """Resizes the image to width w and height h.

    interp: 0 nearest, 1 bilinear, 2 bicubic, 3 area, 4 Lanczos, 9 automatic, 10 random.
    """
    image = _pixels.resize(_numpy(src), int(w), int(h), interp)
    if out is not None:
        out[:] = image
        return out
    return nd.array(image, dtype=image.dtype)


def scale_down(src_size: Sequence[int], size: Sequence[int]) -> tuple[int, int]:
    """Shrinks size (width, height) proportionally until it fits into src_size."""
    w, h = size
    sw, sh = src_size
    if sh < h:
        w, h = float(w * sh) / h, sh
    if sw < w:
        w, h = sw, float(h * sw) / w
    return int(w), int(h)


def copyMakeBorder(
    src: Any,
    top: int,
    bot: int,
    left: int,
    right: int,
    type: int = 0,
    value: float = 0.0,
    values: Sequence[float] = (),
    out: NDArray | None = None,
) -> NDArray:
    """Adds a border to the image.

    type: 0 constant (value, or values per channel), 1 repeated edge, 2 reflected with the edge, 3 wrapped, 4 reflected
    without the edge. Raises ParamError for others.
    """
    image = _numpy(src)
    _pixels.check_image(image)
    if min(top, bot, left, right) < 0:
        raise ParamError("copyMakeBorder: borders must be at least 0", given=str((top, bot, left, right)))
    width = ((top, bot), (left, right), (0, 0))
    modes: dict[int, Any] = {1: "edge", 2: "symmetric", 3: "wrap", 4: "reflect"}
    if type in modes:
        bordered = np.pad(image, width, modes[type])
    elif type == 0:
        fill = np.asarray(values if len(values) else value)
        bordered = np.empty((image.shape[0] + top + bot, image.shape[1] + left + right, image.shape[2]), image.dtype)
        bordered[:] = fill
        bordered[top : top + image.shape[0], left : left + image.shape[1]] = image
    else:
        raise ParamError("copyMakeBorder: type must be 0 to 4", given=str(type))
    if out is not None:
        out[:] = bordered
        return out
    return nd.array(bordered, dtype=bordered.dtype)


def _get_interp_method(interp: int, sizes: Sequence[int] = ()) -> int:
    """Resolves method 9 (by direction of sizes: old height, old width, new height, new width) and 10 (random)."""
    if interp == 9:
        if not sizes:
            return 2
        old_height, old_width, new_height, new_width = sizes
        if new_height > old_height and new_width > old_width:
            return 2
        return 3 if new_height < old_height and new_width < old_width else 1
    if interp == 10:
        return random.randint(0, 4)
    if interp not in (0, 1, 2, 3, 4):
        raise ParamError(f"Unknown interp method {interp}")
    return interp


def resize_short(src: Any, size: int, interp: int = 2) -> NDArray:
    """Resizes the shorter side of the image to size, keeping the proportions."""
    h, w, _ = src.shape
    new_h, new_w = (size * h // w, size) if h > w else (size, size * w // h)
    return imresize(src, new_w, new_h, interp=_get_interp_method(interp, (h, w, new_h, new_w)))


def fixed_crop(
    src: Any, x0: int, y0: int, w: int, h: int, size: Sequence[int] | None = None, interp: int = 2
) -> NDArray:
    """Crops the rectangle at column x0, row y0; resizes it to size (width, height) if given. ParamError if outside."""
    part = _pixels.crop(_numpy(src), int(x0), int(y0), int(w), int(h))
    if size is not None and (w, h) != tuple(size):
        return imresize(part, size[0], size[1], interp=_get_interp_method(interp, (h, w, size[1], size[0])))
    return nd.array(part, dtype=part.dtype)


def random_crop(src: Any, size: Sequence[int], interp: int = 2) -> tuple[NDArray, tuple[int, int, int, int]]:
    """Crops a random part of size (width, height), upscaling smaller images. Returns it and (x, y, w, h)."""
    h, w, _ = src.shape
    new_w, new_h = scale_down((w, h), size)
    x0, y0 = random.randint(0, w - new_w), random.randint(0, h - new_h)
    return fixed_crop(src, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)


def center_crop(src: Any, size: Sequence[int], interp: int = 2) -> tuple[NDArray, tuple[int, int, int, int]]:
    """Crops the center to size (width, height), upscaling smaller images. Returns it and (x, y, w, h)."""
    h, w, _ = src.shape
    new_w, new_h = scale_down((w, h), size)
    x0, y0 = (w - new_w) // 2, (h - new_h) // 2
    return fixed_crop(src, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)


def random_size_crop(
    src: Any,
    size: Sequence[int],
    area: float | tuple[float, float],
    ratio: tuple[float, float],
    interp: int = 2,
    **kwargs: Any,
) -> tuple[NDArray, tuple[int, int, int, int]]:
    """Crops a random part, by area fraction and aspect ratio, and resizes it to size. Returns it and (x, y, w, h)."""
    area = kwargs.pop("min_area", area)
    if kwargs:
        raise ParamError(f"random_size_crop: unexpected keyword argument '{next(iter(kwargs))}'")
    h, w, _ = src.shape
    bounds: Any = (area, 1.0) if isinstance(area, numbers.Number) else area
    least, most = bounds
    for _ in range(10):
        target = random.uniform(least, most) * h * w
        sides = np.exp(random.uniform(np.log(ratio[0]), np.log(ratio[1])))
        new_w, new_h = round(np.sqrt(target * sides)), round(np.sqrt(target / sides))
        if 0 < new_w <= w and 0 < new_h <= h:
            x0, y0 = random.randint(0, w - new_w), random.randint(0, h - new_h)
            return fixed_crop(src, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)
    return center_crop(src, size, interp)


def color_normalize(src: NDArray, mean: Any, std: Any = None) -> NDArray:
    """Subtracts mean, divides by std if given; in place, like MXNet. src: float."""
    if mean is not None:
        src -= mean
    if std is not None:
        src /= std
    return src


def imrotate(src: NDArray, rotation_degrees: Any, zoom_in: bool = False, zoom_out: bool = False) -> NDArray:
    """Rotates float32 images (C, H, W) or (N, C, H, W) around their centers; zeros outside.

    Parameters
    ----------
    rotation_degrees : float, or NDArray (N,)
    zoom_in, zoom_out : bool, default False
        Zoom in until there are no zeros; zoom out until all corners are visible.

    Raises DTypeError, ShapeError, ParamError for both zooms.
    """
    if zoom_in and zoom_out:
        raise ParamError("`zoom_in` and `zoom_out` cannot be both True")
    if src.dtype != np.float32:
        raise DTypeError("imrotate: only `float32` images are supported by this function", given=str(src.dtype))
    if src.ndim == 3:
        if not isinstance(rotation_degrees, numbers.Number):
            raise DTypeError("imrotate: when a single image is passed the rotation angle is required to be a scalar.")
    elif src.ndim != 4:
        raise ShapeError("imrotate: only 3D and 4D are supported by this function", given=str(src.shape))
    images = src.asnumpy()[None] if src.ndim == 3 else src.asnumpy()
    angles = (
        [float(rotation_degrees)] * len(images)  # type: ignore[arg-type]  # float() raises for complex numbers
        if isinstance(rotation_degrees, numbers.Number)
        else _numpy(rotation_degrees).tolist()
    )
    if len(angles) != len(images):
        raise ShapeError("The number of images must be equal to the number of rotation angles")
    rotated = [_pixels.rotate(image, angle, zoom_in, zoom_out) for image, angle in zip(images, angles, strict=True)]
    return nd.array(rotated[0] if src.ndim == 3 else np.stack(rotated))


def random_rotate(
    src: NDArray, angle_limits: tuple[float, float], zoom_in: bool = False, zoom_out: bool = False
) -> NDArray:
    """Rotates with imrotate by random angles between the limits, in degrees."""
    if src.ndim == 3:
        return imrotate(src, float(np.random.uniform(*angle_limits)), zoom_in, zoom_out)
    return imrotate(src, nd.array(np.random.uniform(*angle_limits, size=src.shape[0])), zoom_in, zoom_out)


# MXNet also has these in this file.
__getattr__, __dir__ = names_from(
    __name__,
    {
        "_augment": (
            "Augmenter BrightnessJitterAug CastAug CenterCropAug ColorJitterAug ColorNormalizeAug "
            "ContrastJitterAug CreateAugmenter ForceResizeAug HorizontalFlipAug HueJitterAug "
            "LightingAug RandomCropAug RandomGrayAug RandomOrderAug RandomSizedCropAug ResizeAug "
            "SaturationJitterAug SequentialAug"
        ),
        "_image_iter": "ImageIter",
    },
    {"io": "..io", "recordio": "..recordio"},
)
__dir__ = dir_of(__name__, __dir__)
