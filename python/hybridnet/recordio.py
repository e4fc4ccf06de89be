"""RecordIO: files with a sequence of records and an optional index (MXNet's ``.rec`` and ``.idx``).

A record consists of a magic number, a length whose top three bits mark it as whole (0) or the first (1), a middle (2)
or the last (3) part of one, the bytes, and zeros up to a multiple of 4. Records are split where they contain the magic
number at a multiple of 4, so that a reader can find the next record from any position.
"""

from __future__ import annotations

import multiprocessing
import numbers
import os
import struct
from collections import namedtuple
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ._files import read_lines
from ._public_names import dir_of
from .errors import FileError, FormatError, HybridNetError, ParamError

__all__ = ["IRHeader", "MXIndexedRecordIO", "MXRecordIO", "pack", "pack_img", "unpack", "unpack_img"]

_MAGIC = struct.pack("<I", 0xCED7230A)
_LENGTH_BITS = 29


def _cut(data: bytes) -> list[bytes]:
    """Splits data at the magic numbers at multiples of 4, and drops these numbers."""
    parts, begin, position = [], 0, data.find(_MAGIC)
    while position >= 0:
        if position % 4 == 0:
            parts.append(data[begin:position])
            begin = position + 4
        position = data.find(_MAGIC, position + (4 if position % 4 == 0 else 1))
    return [*parts, data[begin:]]


RecordT = TypeVar("RecordT", bound="MXRecordIO")


class MXRecordIO:
    """Reads or writes a RecordIO file, record by record.

    Parameters
    ----------
    uri : str
        Path of the file.
    flag : {'r', 'w'}

    Raises FileError if the file cannot be opened, ParamError for another flag. A reader that was opened before a fork
    reopens the file in the child; a writer refuses to write there.
    """

    def __init__(self, uri: str, flag: str) -> None:
        self.uri = os.fspath(uri)
        self.flag = flag
        self.pid: int | None = None
        self.is_open = False
        self._file: Any = None
        self.open()

    def open(self) -> None:
        """Opens the file at its beginning."""
        if self.flag not in ("r", "w"):
            raise ParamError(f"Invalid flag {self.flag}: expected 'r' or 'w'")
        self.writable = self.flag == "w"
        try:
            self._file = open(self.uri, self.flag + "b")  # noqa: SIM115 - close() does it
        except OSError as error:
            raise FileError(f"RecordIO: cannot open '{self.uri}': {error.strerror}") from error
        self.pid = multiprocessing.current_process().pid
        self.is_open = True

    def close(self) -> None:
        """Closes the file; does nothing if it is closed."""
        if getattr(self, "is_open", False):
            self._file.close()
            self.is_open = False
            self.pid = None

    def __del__(self) -> None:
        self.close()

    def __enter__(self: RecordT) -> RecordT:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        if self.is_open and self.writable:
            self._file.flush()
        state = dict(self.__dict__)
        state["_file"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        if state["is_open"]:
            self.is_open = False
            if self.writable:
                raise HybridNetError("RecordIO: a writer cannot be copied to another process")
            self.open()

    def _check_pid(self, allow_reset: bool = False) -> None:
        # The file position is shared with the parent process.
        if self.pid != multiprocessing.current_process().pid:
            if not allow_reset:
                raise HybridNetError("Forbidden operation in multiple processes")
            self.reset()

    def reset(self) -> None:
        """Resets to the beginning: a reader to the first record, a writer to an empty file."""
        self.close()
        self.open()

    def write(self, buf: bytes) -> None:
        """Appends a record. Raises ParamError for a reader or a record of 512 MB and more."""
        if not self.writable:
            raise ParamError(f"RecordIO: '{self.uri}' is open for reading")
        self._check_pid()
        if len(buf) >= 1 << _LENGTH_BITS:
            raise ParamError(f"RecordIO: a record has less than {1 << _LENGTH_BITS} bytes", given=str(len(buf)))
        parts = _cut(bytes(buf))
        for i, part in enumerate(parts):
            kind = 0 if len(parts) == 1 else 1 if i == 0 else 3 if i == len(parts) - 1 else 2
            self._file.write(_MAGIC + struct.pack("<I", kind << _LENGTH_BITS | len(part)))
            self._file.write(part + b"\0" * (-len(part) % 4))

    def _part(self) -> tuple[int, bytes] | None:
        head = self._file.read(8)
        if not head:
            return None
        if len(head) < 8 or head[:4] != _MAGIC:
            raise FormatError(f"RecordIO: '{self.uri}': no record starts at byte {self._file.tell() - len(head)}")
        (word,) = struct.unpack("<I", head[4:])
        length = word & ((1 << _LENGTH_BITS) - 1)
        data = self._file.read(length + -length % 4)
        if len(data) < length:
            raise FormatError(f"RecordIO: '{self.uri}' ends inside a record")
        return word >> _LENGTH_BITS, data[:length]

    def read(self) -> bytes | None:
        """Returns the next record; None at the end. Raises FormatError for a broken file, ParamError for a writer."""
        if self.writable:
            raise ParamError(f"RecordIO: '{self.uri}' is open for writing")
        self._check_pid(allow_reset=True)
        first = self._part()
        if first is None:
            return None
        kind, data = first
        if kind == 0:
            return data
        parts = [data]
        while kind in (1, 2):
            following = self._part()
            if following is None or following[0] not in (2, 3):
                raise FormatError(f"RecordIO: '{self.uri}': the rest of a record is missing")
            kind, data = following
            parts.append(data)
        if len(parts) == 1:
            raise FormatError(f"RecordIO: '{self.uri}': a record starts with its end")
        return _MAGIC.join(parts)


class MXIndexedRecordIO(MXRecordIO):
    """RecordIO with an index file: lines ``key<tab>position``.

    Parameters
    ----------
    idx_path, uri : str
        Paths of index and records.
    flag : {'r', 'w'}
    key_type : callable, default int
    """

    def __init__(self, idx_path: str, uri: str, flag: str, key_type: Callable[[Any], Any] = int) -> None:
        self.idx_path = os.fspath(idx_path)
        self.idx: dict[Any, int] = {}
        self.keys: list[Any] = []
        self.key_type = key_type
        self.fidx: Any = None
        super().__init__(uri, flag)

    def open(self) -> None:
        """Opens both files."""
        super().open()
        self.idx = {}
        self.keys = []
        try:
            if self.writable:
                self.fidx = open(self.idx_path, "w")  # noqa: SIM115 - close() does it
            else:
                self._read_index()
        except OSError as error:
            super().close()
            raise FileError(f"RecordIO: cannot open index '{self.idx_path}': {error.strerror}") from error
        except HybridNetError:
            super().close()
            raise

    def _read_index(self) -> None:
        size = os.fstat(self._file.fileno()).st_size
        for number, line in enumerate(read_lines(self.idx_path, "RecordIO: index"), 1):
            fields = line.strip().split("\t")
            try:
                key, position = self.key_type(fields[0]), int(fields[1])
            except (ValueError, IndexError) as error:
                raise FormatError(f"RecordIO: index '{self.idx_path}', line {number}: {error}") from error
            if not 0 <= position < size:
                raise FormatError(
                    f"RecordIO: index '{self.idx_path}', line {number}",
                    expected=f"a position from 0 to {size - 1}, the size of '{self.uri}'",
                    given=str(position),
                    fix="make the index again, from this file of records",
                )
            self.idx[key] = position
            self.keys.append(key)

    def close(self) -> None:
        """Closes both files."""
        if getattr(self, "is_open", False):
            super().close()
            if self.fidx is not None:
                self.fidx.close()

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state["fidx"] = None
        return state

    def seek(self, idx: Any) -> None:
        """Moves to the record with that key. Raises KeyError if there is none."""
        if self.writable:
            raise ParamError(f"RecordIO: '{self.uri}' is open for writing")
        self._check_pid(allow_reset=True)
        self._file.seek(self.idx[idx])

    def tell(self) -> int:
        """Returns the position at which the next record will be written."""
        self._check_pid()
        return self._file.tell()

    def read_idx(self, idx: Any) -> bytes | None:
        """Returns the record with that key. Raises KeyError if there is none."""
        self.seek(idx)
        return self.read()

    def write_idx(self, idx: Any, buf: bytes) -> None:
        """Appends a record under a key."""
        key, position = self.key_type(idx), self.tell()
        self.write(buf)
        self.fidx.write(f"{key}\t{position}\n")
        self.idx[key] = position
        self.keys.append(key)


# The header of an image: flag is the number of labels unless there is exactly one; id and id2 are free.
IRHeader = namedtuple("HEADER", ["flag", "label", "id", "id2"])  # type: ignore[name-match]  # MXNet's repr shows this name
_IR_FORMAT = "IfQQ"
_IR_SIZE = struct.calcsize(_IR_FORMAT)


def pack(header: Any, s: bytes) -> bytes:
    """Returns a record of a header (flag, label or labels, id, id2) and bytes."""
    header = IRHeader(*header)
    if isinstance(header.label, numbers.Number):
        header = header._replace(flag=0)
    else:
        label = np.asarray(header.label, dtype=np.float32)
        header = header._replace(flag=label.size, label=0)
        s = label.tobytes() + s
    return struct.pack(_IR_FORMAT, *header) + s


def unpack(s: bytes) -> tuple[IRHeader, bytes]:
    """Returns (header, bytes) of a record that pack made. Raises FormatError if s is too short."""
    if len(s) < _IR_SIZE:
        raise FormatError(f"RecordIO: a packed record has at least {_IR_SIZE} bytes", given=str(len(s)))
    header = IRHeader(*struct.unpack(_IR_FORMAT, s[:_IR_SIZE]))
    s = s[_IR_SIZE:]
    if header.flag > 0:
        if len(s) < header.flag * 4:
            raise FormatError(f"RecordIO: {header.flag} labels do not fit {len(s)} bytes")
        header = header._replace(label=np.frombuffer(s, np.float32, header.flag))
        s = s[header.flag * 4 :]
    return header, s


def unpack_img(s: bytes, iscolor: int = -1) -> tuple[IRHeader, np.ndarray]:
    """Returns (header, image) of a record of pack_img: (height, width, 3) in BGR order like OpenCV, or (height, width).

    iscolor: 1 color, 0 gray, -1 as stored.
    """
    from .io._image_files import decode_image

    header, content = unpack(s)
    image = decode_image(content, iscolor)
    return header, image[:, :, 0] if image.shape[2] == 1 else image[:, :, ::-1]


def pack_img(header: Any, img: Any, quality: int = 95, img_fmt: str = ".jpg") -> bytes:
    """Returns a record of a header and an image: uint8 (height, width, 3) in BGR order like OpenCV, or (height, width).

    img_fmt: '.jpg' (quality 1 to 100; needs Pillow or OpenCV) or '.png' (compression 0 to 9).
    """
    from .io._image_files import encode_image

    image = img.asnumpy() if hasattr(img, "asnumpy") else np.asarray(img)
    if image.ndim == 3 and image.shape[2] == 3:
        image = image[:, :, ::-1]
    return pack(header, encode_image(image, img_fmt, quality))


__dir__ = dir_of(__name__)
