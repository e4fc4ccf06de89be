"""IDX files, the format of MNIST: a header of big-endian integers, then bytes."""

from __future__ import annotations

import gzip

import numpy as np

from ..errors import FileError, FormatError

__all__ = ["read_idx"]


def read_idx(path: str, header: int) -> np.ndarray:
    """The bytes behind the header of an IDX file, plain or ``.gz``. Raises FileError, FormatError."""
    opener = gzip.open if path.endswith(".gz") else open
    try:
        with opener(path, "rb") as file:
            content = file.read()
    except FileNotFoundError as error:
        raise FileError(f"there is no file '{path}'") from error
    except (OSError, EOFError) as error:
        raise FormatError(f"cannot read '{path}': {error}") from error
    if len(content) < header:
        raise FormatError(f"'{path}' is too short for an IDX file: {len(content)} bytes")
    return np.frombuffer(content, dtype=np.uint8, offset=header)
