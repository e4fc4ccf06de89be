"""Affine maps, borders and the HLS colour space for images as NumPy arrays, height x width x channels."""

from __future__ import annotations

import numpy as np

from .. import _core
from ._pixels import check_image

__all__ = ["add_border", "shift_hls", "warp"]


def add_border(image: np.ndarray, width: int, value: int) -> np.ndarray:
    """The image with that many pixels of one value at each side."""
    return np.pad(image, ((width, width), (width, width), (0, 0)), constant_values=value)


def warp(
    image: np.ndarray, matrix: np.ndarray, width: int, height: int, interpolation: int = 1, value: int = 255
) -> np.ndarray:
    """An image of bytes under an affine map: its pixel (x, y) goes to ``matrix @ (x, y, 1)``.

    matrix: (2, 3), invertible; interpolation: 0, 1, 2 or 4 as mx.image.imresize, 3 counts as 1; value: of what lies
    outside of the image. Positions are rounded to 1/32 of a pixel, as in OpenCV. A singular matrix gives that value
    everywhere.
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
    """An RGB image of bytes with numbers added to hue (0 to 180), lightness and saturation (0 to 255), clipped.

    In between, hue is in half degrees, lightness and saturation to 255: whole numbers, as OpenCV has them for bytes.
    """
    return _core.image_shift_hls(image, hue, lightness, saturation)
