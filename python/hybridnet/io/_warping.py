"""Affine maps, borders and the HLS colour space for images as NumPy arrays, height x width x channels."""

from __future__ import annotations

import numpy as np

from ._pixels import _KERNELS, _like, check_image

__all__ = ["add_border", "shift_hls", "warp"]


def add_border(image: np.ndarray, width: int, value: int) -> np.ndarray:
    """The image with that many pixels of one value at each side."""
    return np.pad(image, ((width, width), (width, width), (0, 0)), constant_values=value)


def warp(
    image: np.ndarray, matrix: np.ndarray, width: int, height: int, interpolation: int = 1, value: int = 255
) -> np.ndarray:
    """The image under an affine map: its pixel (x, y) goes to ``matrix @ (x, y, 1)``.

    matrix: (2, 3), invertible; interpolation: 0, 1, 2 or 4 as mx.image.imresize, 3 counts as 1; value: of what lies
    outside of the image. A singular matrix gives that value everywhere.
    """
    check_image(image)
    linear = matrix[:, :2].astype(np.float64)
    if abs(np.linalg.det(linear)) < 1e-12:
        return np.full((height, width, image.shape[2]), value, image.dtype)
    inverse = np.linalg.inv(linear)
    targets = np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1) - matrix[:, 2]
    source = targets @ inverse.T
    kernel, reach = _KERNELS[1 if interpolation in (0, 3) else interpolation]
    if interpolation == 0:
        source = np.rint(source)
    corner = np.floor(source).astype(np.int64)
    result = np.zeros((height, width, image.shape[2]))
    total = np.zeros((height, width, 1))
    for dy in range(1 - reach, reach + 1):
        for dx in range(1 - reach, reach + 1):
            x, y = corner[..., 0] + dx, corner[..., 1] + dy
            weight = (kernel(source[..., 0] - x) * kernel(source[..., 1] - y))[..., None]
            inside = (x >= 0) & (x < image.shape[1]) & (y >= 0) & (y < image.shape[0])
            seen = image[y.clip(0, image.shape[0] - 1), x.clip(0, image.shape[1] - 1)]
            result += weight * np.where(inside[..., None], seen, value)
            total += weight
    return _like(result / total, image)


def _to_hls(image: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hue in half degrees, lightness and saturation to 255: whole numbers, as OpenCV has them for bytes."""
    values = image.astype(np.float64) / 255
    red, green, blue = values[..., 0], values[..., 1], values[..., 2]
    high, low = values.max(axis=2), values.min(axis=2)
    spread = high - low
    safe = np.where(spread == 0, 1.0, spread)
    lightness = (high + low) / 2
    full = np.where(lightness < 0.5, high + low, 2 - high - low)
    saturation = np.where(spread == 0, 0.0, spread / np.where(full == 0, 1.0, full))
    sector = np.where(
        high == red,
        (green - blue) / safe,
        np.where(high == green, 2 + (blue - red) / safe, 4 + (red - green) / safe),
    )
    hue = np.where(spread == 0, 0.0, sector * 30 % 180)
    return np.rint(hue), np.rint(lightness * 255), np.rint(saturation * 255)


def _from_hls(hue: np.ndarray, lightness: np.ndarray, saturation: np.ndarray) -> np.ndarray:
    light, sat = lightness / 255, saturation / 255
    reach = sat * np.minimum(light, 1 - light)
    channels = []
    for offset in (0, 8, 4):  # red, green, blue: positions on the circle of 12 steps
        k = (offset + hue / 15) % 12
        channels.append(light - reach * np.clip(np.minimum(k - 3, 9 - k), -1, 1))
    return np.stack(channels, axis=2) * 255


def shift_hls(image: np.ndarray, hue: int, lightness: int, saturation: int) -> np.ndarray:
    """An RGB image of bytes with numbers added to hue (0 to 180), lightness and saturation (0 to 255), clipped."""
    h, light, s = _to_hls(image)
    shifted = _from_hls((h + hue).clip(0, 180), (light + lightness).clip(0, 255), (s + saturation).clip(0, 255))
    return _like(shifted, image)
