"""Files of sections: a JSON header and named bytes, each with its length and SHA-256. Nothing in them is executed.

A file begins with a magic of 8 bytes, the length of the header (8 bytes, little endian) and the SHA-256 of the header;
the sections follow in the order of the header.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from .._files import read_bytes, replacing
from ..errors import FormatError

__all__ = ["read_sections", "write_sections"]

_DIGEST_BYTES = 32


def write_sections(
    path: str | os.PathLike[str],
    call: str,
    magic: bytes,
    header: dict[str, Any],
    sections: dict[str, bytes],
) -> str:
    """Replaces a file atomically; returns the SHA-256 of its header, which holds those of the sections.

    Raises FileError.
    """
    table = [
        {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in sections.items()
    ]
    text = json.dumps({"sections": table, **header}).encode()
    digest = hashlib.sha256(text)
    with replacing(path, call) as file:
        file.write(magic + len(text).to_bytes(8, "little") + digest.digest() + text)
        for content in sections.values():
            file.write(content)
    return digest.hexdigest()


def read_sections(
    path: str | os.PathLike[str],
    call: str,
    magic: bytes,
    writer: str,
    fix: str,
    digest: str | None = None,
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Returns header and sections, verified. writer: the function that writes such files, for errors.

    digest: the SHA-256 that the header must have. Raises FileError, FormatError with this fix.
    """
    content = read_bytes(path, call)

    def damaged(what: str) -> FormatError:
        return FormatError(f"{call}: '{os.fspath(path)}' {what}", fix=fix)

    if content[: len(magic)] != magic:
        raise damaged(f"is no file of {writer}")
    at = len(magic) + 8 + _DIGEST_BYTES
    begin = at + int.from_bytes(content[len(magic) : len(magic) + 8], "little")
    text = content[at:begin]
    if begin > len(content) or hashlib.sha256(text).digest() != content[at - _DIGEST_BYTES : at]:
        raise damaged(f"is damaged: its header does not fit its checksum (the file has {len(content)} bytes)")
    if digest is not None and hashlib.sha256(text).hexdigest() != digest:
        raise damaged("is not the file that was written here: its header has another checksum")
    try:
        header = json.loads(text)
        found: dict[str, bytes] = {}
        for section in header["sections"]:
            part = content[begin : begin + section["bytes"]]
            if len(part) != section["bytes"] or hashlib.sha256(part).hexdigest() != section["sha256"]:
                raise damaged(f"is damaged: its section {section['name']!r} does not fit its checksum")
            found[section["name"]] = part
            begin += section["bytes"]
    except FormatError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise damaged(f"has a header that {writer} does not write: {error!r}") from error
    if begin != len(content):
        raise damaged(f"is damaged: {len(content) - begin} bytes too many")
    return header, found
