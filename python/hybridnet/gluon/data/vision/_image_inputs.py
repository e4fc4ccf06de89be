"""Images that transforms accept: NDArrays, NumPy arrays and PIL images; checks of the order of their axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import ndarray
from ...._user_line import warn
from ....errors import DTypeError, ShapeError
from ....errors import TypeError as HybridNetTypeError
from ....symbol import Symbol

__all__ = ["as_array", "check_channels_first", "check_channels_last", "warn_of_small_values"]

_MOST_CHANNELS = 4  # red, green, blue, alpha


def as_array(image: Any, transform: str, gray_axis: int = -1) -> Any:
    """Returns an image as an NDArray; NDArrays and Symbols as they are.

    Gray NumPy and PIL images (H, W) get an axis of one channel at gray_axis. Raises TypeError for other objects.
    """
    if isinstance(image, (ndarray.NDArray, Symbol)):
        return image
    if hasattr(image, "convert") and hasattr(image, "mode"):
        values = _of_pil(image)
    elif isinstance(image, (np.ndarray, list, tuple)) or hasattr(image, "__array__"):
        values = np.asarray(image)
    else:
        name = isinstance(image, (str, bytes)) or hasattr(image, "__fspath__")
        raise HybridNetTypeError(
            f"{transform}: an image",
            expected="an NDArray, a NumPy array or a PIL image",
            given=type(image).__name__,
            fix="read the file by mx.image.imread(path)" if name else "pass an array (height, width, channels)",
        )
    if values.ndim == 2:
        values = np.expand_dims(values, gray_axis)
    return ndarray.array(values, dtype=values.dtype)


def _of_pil(image: Any) -> np.ndarray:
    """Returns the pixels of a PIL image, (H, W) or (H, W, channels); palettes become colors, bits become bytes."""
    mode = {"P": "RGB", "1": "L"}.get(image.mode)
    return np.asarray(image if mode is None else image.convert(mode))


def check_channels_last(shape: tuple[int, ...], transform: str) -> None:
    """Raises ShapeError unless the shape can be that of images (H, W, C) or (N, H, W, C)."""
    expected = "shape (height, width, channels), or a batch of such images"
    if len(shape) not in (3, 4):
        gray = len(shape) == 2
        fix = "add the axis of channels: image.expand_dims(2)" if gray else "pass one image, or a batch of four axes"
        raise ShapeError(f"{transform}: an image", expected=expected, given=str(shape), fix=fix)
    if shape[-1] > _MOST_CHANNELS and shape[-3] in (1, 3):
        axes = (1, 2, 0) if len(shape) == 3 else (0, 2, 3, 1)
        raise ShapeError(
            f"{transform}: an image",
            expected=expected,
            given=str(shape),
            because="the channels are first, as behind ToTensor",
            fix=f"put {transform} before ToTensor, or call image.transpose({axes})",
        )


def check_channels_first(image: ndarray.NDArray, transform: str, channels: int) -> None:
    """Raises DTypeError or ShapeError unless an array holds floating images (C, H, W) or (N, C, H, W).

    channels: number of channels that the transform has values for, 1: any.
    """
    shape, dtype = image.shape, np.dtype(image.dtype)
    before = f"put ToTensor() before {transform}"
    if dtype.kind not in "fV":  # V: bfloat16
        raise DTypeError(f"{transform}: an image", expected="floating numbers", given=dtype.name, fix=before)
    expected = "shape (channels, height, width), or a batch of such images"
    if len(shape) not in (3, 4):
        raise ShapeError(f"{transform}: an image", expected=expected, given=str(shape), fix=before)
    if channels > 1 and shape[-3] != channels:
        last = shape[-1] == channels
        fix = f"{before}, which moves the channels" if last else f"give {shape[-3]} numbers as mean and std, or one"
        given = f"{shape} for {channels} means and deviations"
        raise ShapeError(f"{transform}: an image", expected=expected, given=given, fix=fix)


def warn_of_small_values(image: ndarray.NDArray) -> None:
    """Warns if the floating values of an image, which ToTensor divides by 255, are in 0..1 already."""
    if np.dtype(image.dtype).kind == "f" and image.size and 0 < float(image.max().asscalar()) <= 1:
        warn(
            "ToTensor divides by 255, but the floating values of this image are at most 1: they become nearly 0. Pass "
            "the image as uint8, or move the channels only: image.transpose((2, 0, 1))"
        )
