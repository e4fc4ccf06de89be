"""Reading and writing whole files: errors that say who wanted the file, and files that are never half written."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from .errors import FileError, FormatError

__all__ = ["read_bytes", "read_lines", "read_text", "replacing"]


def _unreadable(owner: str, path: Any, error: Exception) -> FileError:
    reason = getattr(error, "strerror", None) or str(error)
    return FileError(f"{owner}: cannot read '{os.fspath(path)}': {reason}")


def read_bytes(path: str | os.PathLike[str], owner: str) -> bytes:
    """The content of a file. Raises FileError, which names owner, also for a name that no file can have."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        raise _unreadable(owner, path, error) from error


def read_lines(path: str | os.PathLike[str], owner: str, encoding: str = "utf-8") -> Iterator[str]:
    """The lines of a text file, one after the other, with their ends.

    Raises FileError as read_bytes, FormatError where the file is no text of that encoding.
    """
    number = 0
    try:
        with open(path, encoding=encoding) as file:
            for line in file:
                number += 1
                yield line
    except UnicodeError as error:
        raise FormatError(f"{owner}: '{os.fspath(path)}', behind line {number}: {error}") from error
    except (OSError, LookupError, ValueError) as error:  # LookupError: no such encoding
        raise _unreadable(owner, path, error) from error


def read_text(path: str | os.PathLike[str], owner: str, encoding: str = "utf-8") -> str:
    """The content of a text file. Raises as read_lines."""
    return "".join(read_lines(path, owner, encoding))


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], owner: str) -> Iterator[IO[bytes]]:
    """A file to write bytes to, which takes the place of path when the block ends well.

    Until then path stays what it was, also where the program is killed: the bytes go to a file beside it, which is
    given to the disk (fsync) before it is renamed. Devices and pipes are written to as they are.
    Raises FileError, which names owner.
    """
    target = os.path.realpath(os.fspath(path))
    if os.path.exists(target) and not os.path.isfile(target) and not os.path.isdir(target):
        try:
            with open(target, "wb") as file:
                yield file
        except OSError as error:
            raise _unwritable(owner, path, error) from error
        return
    try:
        descriptor, part = tempfile.mkstemp(
            prefix=os.path.basename(target)[:100] + ".", suffix=".part", dir=os.path.dirname(target)
        )
    except (OSError, ValueError) as error:
        raise _unwritable(owner, path, error) from error
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(part, _permissions(target))
        os.replace(part, target)
        _sync_folder(os.path.dirname(target))
    except OSError as error:
        _remove(part)
        raise _unwritable(owner, path, error) from error
    except BaseException:
        _remove(part)
        raise


def _unwritable(owner: str, path: Any, error: Exception) -> FileError:
    return FileError(f"{owner}: cannot write '{os.fspath(path)}': {getattr(error, 'strerror', None) or error}")


def _remove(part: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(part)


def _permissions(target: str) -> int:
    """Those of the file that is replaced, else what open() would give."""
    try:
        return os.stat(target).st_mode & 0o7777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _sync_folder(folder: str) -> None:
    """The new name is on the disk, too; not every file system can do that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
