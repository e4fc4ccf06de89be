"""Affine maps, borders and the HLS color space for images as NumPy arrays (height, width, channels)."""

from __future__ import annotations

import numpy as np

from .. import _core
from ._pixels import check_image

__all__ = ["add_border", "shift_hls", "warp"]


def add_border(image: np.ndarray, width: int, value: int) -> np.ndarray:
    """Adds a border of width pixels with one value on each side."""
    return np.pad(image, ((width, width), (width, width), (0, 0)), constant_values=value)


def warp(
    image: np.ndarray, matrix: np.ndarray, width: int, height: int, interpolation: int = 1, value: int = 255
) -> np.ndarray:
    """Applies an affine map to a uint8 image: its pixel (x, y) moves to ``matrix @ (x, y, 1)``.

    matrix: (2, 3); interpolation: 0, 1, 2 or 4 as in mx.image.imresize, 3 counts as 1; value: value of
    pixels outside of the image. Positions are rounded to 1/32 of a pixel, as in OpenCV. A singular matrix gives that
    value everywhere.
    """
    check_image(image)
    (a, b, right), (c, d, down) = matrix.tolist()
    determinant = a * d - b * c
    if abs(determinant) < 1e-12:
        return np.full((height, width, image.shape[2]), value, image.dtype)
    a, b, c, d = d / determinant, -b / determinant, -c / determinant, a / determinant
    source = a, b, -a * right - b * down, c, d, -c * right - d * down
    return _core.image_warp(image, source, width, height, interpolation, value)


def shift_hls(image: np.ndarray, hue: int, lightness: int, saturation: int) -> np.ndarray:
    """Adds numbers to hue (0 to 180), lightness and saturation (0 to 255) of a uint8 RGB image, clipped.

    Intermediate values are integers as in OpenCV for bytes: hue in units of 2 degrees, lightness and saturation up to
    255.
    """
    return _core.image_shift_hls(image, hue, lightness, saturation)
