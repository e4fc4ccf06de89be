"""Image files as NumPy arrays: with Pillow or OpenCV if installed; PNG and PNM also without."""

from __future__ import annotations

import functools
import io
import os
import struct
from typing import Any

import numpy as np

from .._files import read_bytes
from ..errors import FormatError, UnsupportedError
from ._pixels import _LUMINANCE
from ._png import SIGNATURE, decode_png, encode_png

__all__ = ["decode_image", "encode_image", "read_image"]


def _with_channels(image: np.ndarray, flag: int) -> np.ndarray:
    """Converts channels. flag 1: three; 0: one; -1: unchanged, without alpha."""
    if image.ndim == 2:
        image = image[:, :, None]
    if image.shape[2] in (2, 4):
        image = image[:, :, :-1]
    if flag == 1 and image.shape[2] == 1:
        image = np.repeat(image, 3, axis=2)
    elif flag == 0 and image.shape[2] == 3:
        image = np.rint(image @ _LUMINANCE).clip(0, 255).astype(np.uint8)[:, :, None]
    return np.ascontiguousarray(image)


def _decode_pnm(content: bytes) -> np.ndarray:
    """Decodes binary PGM (P5) and PPM (P6) with 8 bits."""
    fields: list[bytes] = []
    position = 0
    while len(fields) < 4:
        line_end = content.find(b"\n", position)
        if line_end < 0:
            raise FormatError("PNM: the file ends inside its header")
        line = content[position:line_end].split(b"#")[0]
        fields.extend(line.split())
        position = line_end + 1
    try:
        width, height, largest = (int(field) for field in fields[1:4])
    except ValueError as error:
        raise FormatError(f"PNM: broken header: {error}") from error
    channels = 3 if fields[0] == b"P6" else 1
    size = width * height * channels
    if largest != 255 or width < 1 or height < 1 or len(content) - position < size:
        raise FormatError(f"PNM: {width} x {height} pixels up to {largest} do not fit {len(content)} bytes")
    return np.frombuffer(content, np.uint8, size, position).reshape(height, width, channels)


@functools.cache  # the search for a missing package takes longer than decoding a small image
def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        return None
    return Image


@functools.cache
def _opencv() -> Any:
    try:
        import cv2
    except ImportError:
        return None
    return cv2


def decode_image(content: bytes, flag: int = 1) -> np.ndarray:
    """Decodes an image to uint8 (height, width, channels) in RGB order.

    flag: 1 color, 0 gray, -1 as stored (without alpha). Raises FormatError for broken content, UnsupportedError for
    formats that need Pillow or OpenCV if neither is installed.
    """
    content = bytes(content)
    if not content:
        raise FormatError("cannot decode an image: its buffer is empty")
    if (image := _pillow()) is not None:
        try:
            with image.open(io.BytesIO(content)) as opened:
                mode = {1: "RGB", 0: "L"}.get(flag)
                return _with_channels(np.asarray(opened.convert(mode) if mode else opened), flag)
        except (OSError, ValueError, SyntaxError, TypeError, struct.error, image.DecompressionBombError) as error:
            raise FormatError(f"cannot decode an image: {error}") from error
    if content.startswith(SIGNATURE):
        return _with_channels(decode_png(content), flag)
    if content[:2] in (b"P5", b"P6"):
        return _with_channels(_decode_pnm(content), flag)
    if (cv2 := _opencv()) is not None:
        try:
            decoded = cv2.imdecode(np.frombuffer(content, np.uint8), {1: 1, 0: 0}.get(flag, -1))
        except cv2.error as error:
            raise FormatError(f"cannot decode an image: {error}") from error
        if decoded is None:
            raise FormatError("cannot decode an image: OpenCV does not know its format")
        return _with_channels(decoded[:, :, :3][:, :, ::-1] if decoded.ndim == 3 else decoded, flag)
    if content[:3] == b"\xff\xd8\xff":
        raise UnsupportedError("JPEG files need another library", fix="pip install pillow")
    raise FormatError(f"cannot decode an image: it starts with {content[:8]!r}, which is neither PNG, PNM nor JPEG")


def read_image(path: str | os.PathLike[str], flag: int = 1) -> np.ndarray:
    """Decodes a file with decode_image. Also raises FileError."""
    content = read_bytes(path, "image file")
    try:
        return decode_image(content, flag)
    except FormatError as error:
        raise FormatError(f"image file '{os.fspath(path)}': {error}") from error


def encode_image(image: np.ndarray, extension: str = ".jpg", quality: int = 95) -> bytes:
    """Encodes an image: uint8 (height, width) or (height, width, channels) in RGB order.

    extension: '.png', or '.jpg' if Pillow or OpenCV is installed; quality: of JPEG 1 to 100, of PNG the compression 0
    to 9. Raises UnsupportedError for others.
    """
    image = np.asarray(image, np.uint8)
    image = image[:, :, None] if image.ndim == 2 else image
    kind = extension.lower()
    if kind == ".png":
        return encode_png(image, quality)
    if kind in (".jpg", ".jpeg"):
        if (pillow := _pillow()) is not None:
            out = io.BytesIO()
            pillow.fromarray(image[:, :, 0] if image.shape[2] == 1 else image).save(out, "JPEG", quality=quality)
            return out.getvalue()
        if (cv2 := _opencv()) is not None:
            good, buffer = cv2.imencode(kind, image[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
            if good:
                return buffer.tobytes()
        raise UnsupportedError("writing JPEG files needs another library", fix="pip install pillow, or use '.png'")
    raise UnsupportedError(f"images are written as '.jpg' and '.png', not as '{extension}'")
