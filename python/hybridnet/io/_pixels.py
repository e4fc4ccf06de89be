"""Geometry and color of images as NumPy arrays (height, width, channels), on the host."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from .. import _core
from ..errors import ParamError, ShapeError

__all__ = [
    "adjust_brightness",
    "adjust_contrast",
    "adjust_hue",
    "adjust_saturation",
    "center_crop",
    "crop",
    "map_colors",
    "random_size_crop",
    "resize",
    "resize_short",
    "rotate",
]

_ELEMENTS = frozenset(("uint8", "int8", "int32", "int64", "float16", "float32", "float64"))  # for resizing only
# Weights of red, green and blue in luminance: ITU-R BT.601.
_LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)
_TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
_TO_RGB = np.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])


def check_image(image: np.ndarray) -> None:
    """Raises ShapeError unless image is height x width x channels with no empty side."""
    if image.ndim != 3 or 0 in image.shape:
        raise ShapeError("an image has shape (height, width, channels)", given=str(image.shape))


def _method(interpolation: int, old: tuple[int, int], new: tuple[int, int]) -> int:
    if interpolation == 9:  # selected by direction: area to shrink, cubic to enlarge, linear otherwise
        if new[0] > old[0] and new[1] > old[1]:
            return 2
        return 3 if new[0] < old[0] and new[1] < old[1] else 1
    if interpolation == 10:
        return random.randint(0, 4)
    if interpolation not in (0, 1, 2, 3, 4):
        raise ParamError(
            (
                "interpolation must be 0 (nearest), 1 (bilinear), 2 (bicubic), 3 (area), 4 (Lanczos), 9 "
                "(automatic) or 10 (random)"
            ),
            given=str(interpolation),
        )
    return interpolation


def _like(values: np.ndarray, image: np.ndarray) -> np.ndarray:
    """Converts float values to the image's element type: rounded and clipped for integers."""
    if image.dtype.kind in "iu":
        limits = np.iinfo(image.dtype)
        return np.rint(values).clip(limits.min, limits.max).astype(image.dtype)
    return values.astype(image.dtype)


def resize(image: np.ndarray, width: int, height: int, interpolation: int = 1) -> np.ndarray:
    """Resizes the image.

    Pixel centers are half-integers, as in OpenCV. Raises ParamError for an unknown method or a size < 1.
    """
    check_image(image)
    if width < 1 or height < 1:
        raise ParamError(f"an image cannot be resized to width {width}, height {height}")
    if image.shape[:2] == (height, width):
        return image
    method = _method(interpolation, image.shape[:2], (height, width))
    if image.dtype.name in _ELEMENTS:
        return _core.image_resize(image, width, height, method)
    return _like(_core.image_resize(image.astype(np.float64), width, height, method), image)


def resize_short(image: np.ndarray, size: int, interpolation: int = 1) -> np.ndarray:
    """Resizes the shorter side of the image to size, keeping the proportions."""
    height, width = image.shape[:2]
    if height > width:
        return resize(image, size, size * height // width, interpolation)
    return resize(image, size * width // height, size, interpolation)


def crop(image: np.ndarray, x: int, y: int, width: int, height: int) -> np.ndarray:
    """Crops the rectangle with its corner at column x, row y. Raises ParamError if it exceeds the image."""
    check_image(image)
    if x < 0 or y < 0 or width < 1 or height < 1 or x + width > image.shape[1] or y + height > image.shape[0]:
        raise ParamError(
            f"crop of width {width}, height {height} at ({x}, {y}) leaves the image of width {image.shape[1]}, height "
            f"{image.shape[0]}"
        )
    return np.ascontiguousarray(image[y : y + height, x : x + width])


def center_crop(image: np.ndarray, width: int, height: int, interpolation: int = 1) -> np.ndarray:
    """Crops the center of the image, resized to width x height if the image is smaller."""
    check_image(image)
    old_height, old_width = image.shape[:2]
    new_width, new_height = width, height
    if old_height < new_height:
        new_width, new_height = new_width * old_height / new_height, old_height
    if old_width < new_width:
        new_width, new_height = old_width, new_height * old_width / new_width
    new_width, new_height = max(int(new_width), 1), max(int(new_height), 1)
    part = crop(image, (old_width - new_width) // 2, (old_height - new_height) // 2, new_width, new_height)
    return resize(part, width, height, interpolation)


def random_size_crop(
    image: np.ndarray,
    size: tuple[int, int],
    area: float | tuple[float, float],
    ratio: tuple[float, float],
    interpolation: int = 1,
) -> np.ndarray:
    """Crops a random part of the image, by area fraction and aspect ratio, and resizes it to size (width, height).

    Source: Szegedy et al., Going Deeper with Convolutions, arXiv 1409.4842. Uses the center if ten draws do not fit.
    """
    check_image(image)
    height, width = image.shape[:2]
    least, most = (area, 1.0) if isinstance(area, (int, float)) else area
    for _ in range(10):
        target = random.uniform(least, most) * height * width
        sides = np.exp(random.uniform(np.log(ratio[0]), np.log(ratio[1])))
        new_width, new_height = round((target * sides) ** 0.5), round((target / sides) ** 0.5)
        if 0 < new_width <= width and 0 < new_height <= height:
            x, y = random.randint(0, width - new_width), random.randint(0, height - new_height)
            return resize(crop(image, x, y, new_width, new_height), *size, interpolation)
    return center_crop(image, *size, interpolation)


def rotate(image: np.ndarray, degrees: float, zoom_in: bool = False, zoom_out: bool = False) -> np.ndarray:
    """Rotates (channels, height, width) counter-clockwise around the center, bilinear, zeros outside.

    zoom_in: until there are no zeros; zoom_out: until all corners are visible. Raises ParamError for both.
    """
    if zoom_in and zoom_out:
        raise ParamError("`zoom_in` and `zoom_out` cannot be both True")
    _, height, width = image.shape
    angle = np.deg2rad(degrees)
    cos, sin = np.cos(angle), np.sin(angle)
    scale = 1.0
    if zoom_in or zoom_out:
        wide = (abs(width * cos) + abs(height * sin)) / width
        tall = (abs(width * sin) + abs(height * cos)) / height
        scale = max(wide, tall) if zoom_out else 1 / max(wide, tall)
    y, x = np.meshgrid(np.arange(height) - (height - 1) / 2, np.arange(width) - (width - 1) / 2, indexing="ij")
    source_x = (x * cos - y * sin) * scale + (width - 1) / 2
    source_y = (x * sin + y * cos) * scale + (height - 1) / 2
    left, top = np.floor(source_x).astype(np.int64), np.floor(source_y).astype(np.int64)
    result = np.zeros(image.shape, np.float32)
    for dy in (0, 1):
        for dx in (0, 1):
            column, row = left + dx, top + dy
            weight = (1 - np.abs(source_x - column)) * (1 - np.abs(source_y - row))
            inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
            result += image[:, row.clip(0, height - 1), column.clip(0, width - 1)] * (weight * inside)
    return result.astype(image.dtype)


def adjust_brightness(image: np.ndarray, factor: float) -> np.ndarray:
    """Multiplies all values by factor."""
    return _scale(image, factor, 0.0)


def _scale(image: np.ndarray, factor: float, offset: float) -> np.ndarray:
    if image.dtype == np.uint8:
        return _core.image_scale(image, factor, offset)
    return _like(_core.image_scale_floats(image, factor, offset), image)


def map_colors(image: np.ndarray, matrix: np.ndarray, offset: Sequence[float] = (0.0, 0.0, 0.0)) -> np.ndarray:
    """Maps each pixel's (red, green, blue) to matrix @ pixel + offset. Raises ShapeError for other channels."""
    if image.shape[-1] != 3:
        raise ShapeError("colors are red, green and blue", given=f"shape {image.shape}")
    rows = matrix.ravel().tolist()
    if image.dtype == np.uint8:
        return _core.image_map_colors(image, rows, offset)
    return _like(_core.image_map_float_colors(image, rows, offset), image)


def adjust_contrast(image: np.ndarray, factor: float) -> np.ndarray:
    """Multiplies the distance from the mean luminance by factor."""
    channels = image.sum(axis=0, dtype=np.float64).sum(axis=0) / (image.shape[0] * image.shape[1])
    mean = channels @ _LUMINANCE if channels.size == 3 else channels.mean()
    return _scale(image, factor, float(mean) * (1 - factor))


def adjust_saturation(image: np.ndarray, factor: float) -> np.ndarray:
    """Multiplies the distance from each pixel's luminance by factor."""
    if image.shape[2] != 3:
        return _scale(image, 1.0, 0.0)
    return map_colors(image, np.eye(3) * factor + _LUMINANCE * (1 - factor))


def adjust_hue(image: np.ndarray, turn: float) -> np.ndarray:
    """Rotates colors by that fraction of a half circle, in the YIQ space."""
    u, w = np.cos(turn * np.pi), np.sin(turn * np.pi)
    return map_colors(image, _TO_RGB @ np.array([[1.0, 0.0, 0.0], [0.0, u, -w], [0.0, w, u]]) @ _TO_YIQ)
