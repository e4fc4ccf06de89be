"""Reading and writing whole files: errors that name the caller, and atomic replacement of files."""

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
    """Returns the content of a file. Raises FileError, which names owner, also for an invalid file name."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        raise _unreadable(owner, path, error) from error


def read_lines(path: str | os.PathLike[str], owner: str, encoding: str = "utf-8") -> Iterator[str]:
    """Yields the lines of a text file, with their line ends.

    Raises FileError like read_bytes, FormatError if the file is not text in that encoding.
    """
    number = 0
    try:
        with open(path, encoding=encoding) as file:
            for line in file:
                number += 1
                yield line
    except UnicodeError as error:
        raise FormatError(f"{owner}: '{os.fspath(path)}', behind line {number}: {error}") from error
    except (OSError, LookupError, ValueError) as error:  # LookupError: unknown encoding
        raise _unreadable(owner, path, error) from error


def read_text(path: str | os.PathLike[str], owner: str, encoding: str = "utf-8") -> str:
    """Returns the content of a text file. Raises the errors of read_lines."""
    return "".join(read_lines(path, owner, encoding))


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], owner: str) -> Iterator[IO[bytes]]:
    """Yields a file to write bytes to, which replaces path if the block ends without an error.

    Until then path is unchanged, even if the program is killed: the bytes go to a temporary file in the same folder,
    which is flushed to disk (fsync) before it is renamed. Devices and pipes are written to directly.
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
    """The permissions of the file that is replaced, else those that open() would set."""
    try:
        return os.stat(target).st_mode & 0o7777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _sync_folder(folder: str) -> None:
    """Flushes the new name to disk; not every file system supports this."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
