"""IDX files, the format of MNIST: a header of big-endian integers, then bytes."""

from __future__ import annotations

import gzip
import zlib

import numpy as np

from .._files import read_bytes
from ..errors import FormatError

__all__ = ["read_idx"]


def read_idx(path: str, header: int) -> np.ndarray:
    """Reads the bytes after the header of an IDX file, plain or ``.gz``. Raises FileError, FormatError."""
    content = read_bytes(path, "IDX file")
    if path.endswith(".gz"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise FormatError(f"IDX file: '{path}' cannot be unpacked: {error}") from error
    if len(content) < header:
        raise FormatError(f"'{path}' is too short for an IDX file: {len(content)} bytes")
    return np.frombuffer(content, dtype=np.uint8, offset=header)
