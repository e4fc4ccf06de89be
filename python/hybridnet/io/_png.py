"""PNG files, read and written without a library (https://www.w3.org/TR/png): 8-bit, not interlaced."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from ..errors import FormatError, UnsupportedError

__all__ = ["SIGNATURE", "decode_png", "encode_png"]

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Color type -> number of channels in the file.
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
# A header may claim any size; more pixels than this are refused before memory is allocated.
_MAX_PIXELS = 1 << 28


def _chunks(content: bytes) -> dict[bytes, bytes]:
    """Returns chunks by type; joins chunks of the same type."""
    found: dict[bytes, bytes] = {}
    position = len(SIGNATURE)
    while position + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, position)
        kind, end = content[position + 4 : position + 8], position + 8 + length
        if end + 4 > len(content):
            raise FormatError("PNG: the file ends inside a chunk")
        found[kind] = found.get(kind, b"") + content[position + 8 : end]
        position = end + 4
        if kind == b"IEND":
            return found
    raise FormatError("PNG: the file ends before its last chunk")


def _average(row: np.ndarray, above: np.ndarray, step: int) -> None:
    values, over = row.tolist(), above.tolist()
    for i in range(len(values)):
        left = values[i - step] if i >= step else 0
        values[i] = (values[i] + (left + over[i]) // 2) & 0xFF
    row[:] = values


def _paeth(row: np.ndarray, above: np.ndarray, step: int) -> None:
    values, over = row.tolist(), above.tolist()
    for i in range(len(values)):
        left, corner = (values[i - step], over[i - step]) if i >= step else (0, 0)
        up = over[i]
        a, b, c = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
        nearest = left if a <= b and a <= c else up if b <= c else corner
        values[i] = (values[i] + nearest) & 0xFF
    row[:] = values


def _unfilter(lines: np.ndarray, step: int) -> np.ndarray:
    """Reverses the filters of rows. lines: (height, 1 + bytes per row), the first byte is the filter type."""
    rows = lines[:, 1:].copy()
    above = np.zeros(rows.shape[1], np.uint8)
    for kind, row in zip(lines[:, 0].tolist(), rows, strict=True):
        if kind == 1:
            pixels = row.reshape(-1, step)
            pixels[:] = np.cumsum(pixels, axis=0, dtype=np.uint8)
        elif kind == 2:
            row += above
        elif kind == 3:
            _average(row, above, step)
        elif kind == 4:
            _paeth(row, above, step)
        elif kind != 0:
            raise FormatError(f"PNG: unknown filter {kind}")
        above = row
    return rows


def decode_png(content: bytes) -> np.ndarray:
    """Returns uint8 (height, width, channels): 1 gray, 2 gray and alpha, 3 color (or palette), 4 color and alpha.

    Raises FormatError for broken files, UnsupportedError for 1, 2, 4 and 16 bits and interlacing.
    """
    chunks = _chunks(content)
    if len(chunks.get(b"IHDR", b"")) != 13:
        raise FormatError("PNG: there is no header")
    width, height, bits, color, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    if color not in _CHANNELS or not 0 < width * height <= _MAX_PIXELS:
        raise FormatError(f"PNG: broken header: {width} x {height} pixels, color type {color}")
    if bits != 8 or interlaced:
        raise UnsupportedError(
            f"PNG files with {bits} bits{' and interlacing' if interlaced else ''} need another library",
            fix="pip install pillow",
        )
    channels = _CHANNELS[color]
    size = height * (1 + width * channels)
    try:
        data = zlib.decompressobj().decompress(chunks.get(b"IDAT", b""), size)
    except zlib.error as error:
        raise FormatError(f"PNG: broken data: {error}") from error
    if len(data) < size:
        raise FormatError(f"PNG: {size} bytes of pixels are needed, the file has {len(data)}")
    lines = np.frombuffer(data, np.uint8).reshape(height, 1 + width * channels)
    image = _unfilter(lines, channels).reshape(height, width, channels)
    if color != 3:
        return image
    palette = np.frombuffer(chunks.get(b"PLTE", b""), np.uint8)
    if palette.size % 3 or image.max(initial=0) * 3 >= palette.size:
        raise FormatError("PNG: a pixel's color is not in the palette")
    return palette.reshape(-1, 3)[image[:, :, 0]]


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def encode_png(image: np.ndarray, level: int = 6) -> bytes:
    """Encodes uint8 (height, width, 1, 2, 3 or 4 channels). level: from 0 (fast) to 9 (small)."""
    height, width, channels = image.shape
    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = np.zeros((height, 1 + width * channels), np.uint8)
    rows[:, 1:] = image.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    data = zlib.compress(rows.tobytes(), min(max(level, 0), 9))
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")
