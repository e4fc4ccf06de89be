"""The files of checkpoints in parts: folders of generations, each with one part per process and a manifest.

    FOLDER/000007-step-1200/part-00000-of-00004 ... part-00003-of-00004
    FOLDER/000007-step-1200/manifest.json

A part is a file of sections (_sections_file.py). The manifest is written when all parts are on disk, so a generation
without it was not finished. It holds the SHA-256 of the header of each part, which holds those of the values.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from typing import Any, NamedTuple

from .._files import _sync_folder, read_text, replacing
from ..errors import FileError, FormatError

__all__ = [
    "PART_MAGIC",
    "Generation",
    "generations",
    "new_generation",
    "part_name",
    "read_manifest",
    "remove_others",
    "write_manifest",
]

PART_MAGIC = b"HNPART01"
_FORMAT, _VERSION = "hybridnet checkpoint", 1
_NAME = re.compile(r"(\d{6,})-step-(\d+)")


class Generation(NamedTuple):
    """One checkpoint of a folder."""

    number: int
    path: str
    is_finished: bool


def part_name(rank: int, processes: int) -> str:
    """Returns the name of the part of a process."""
    return f"part-{rank:05d}-of-{processes:05d}"


def _manifest(path: str) -> str:
    return os.path.join(path, "manifest.json")


def generations(folder: str) -> list[Generation]:
    """Returns the checkpoints of a folder, the oldest first; none if it does not exist. Raises FileError."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise FileError(f"checkpoints: cannot read '{folder}': {getattr(error, 'strerror', None) or error}") from error
    found = []
    for name in names:
        if match := _NAME.fullmatch(name):
            path = os.path.join(folder, name)
            found.append(Generation(int(match[1]), path, os.path.exists(_manifest(path))))
    return sorted(found)


def new_generation(folder: str, step: int, call: str) -> str:
    """Makes the folder of the next checkpoint. Raises FileError."""
    existing = generations(folder)
    number = existing[-1].number + 1 if existing else 1
    path = os.path.join(folder, f"{number:06d}-step-{step}")
    try:
        os.makedirs(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(f"{call}: cannot make the folder '{path}': {reason}") from error
    _sync_folder(folder)
    return path


def remove_others(folder: str, newest: str, keep: int) -> None:
    """Removes all but the last `keep` finished checkpoints, and those that were never finished."""
    existing = generations(folder)
    kept = {one.path for one in [one for one in existing if one.is_finished][-keep:]} | {newest}
    for one in existing:
        if one.path not in kept:
            with contextlib.suppress(OSError):  # a folder without manifest is none of the finished ones
                os.unlink(_manifest(one.path))
            shutil.rmtree(one.path, ignore_errors=True)


def write_manifest(path: str, call: str, content: dict[str, Any]) -> None:
    """Writes the manifest of a generation whose parts are on disk. Raises FileError."""
    body = {"format": _FORMAT, "version": _VERSION, **content}
    text = json.dumps({"sha256": _sum(body), "manifest": body}, indent=1)
    with replacing(_manifest(path), call) as file:
        file.write(text.encode())


def _sum(body: Any) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _fix(path: str) -> str:
    return f"copy the checkpoint again; or remove '{path}', then the one before it is loaded"


def read_manifest(path: str, call: str) -> dict[str, Any]:
    """Returns a manifest, verified. Raises FileError, FormatError."""
    name = _manifest(path)

    def damaged(what: str) -> FormatError:
        return FormatError(f"{call}: '{name}' {what}", fix=_fix(path))

    try:
        found = json.loads(read_text(name, call))
        body = found["manifest"]
        if body["format"] != _FORMAT or found["sha256"] != _sum(body):
            raise damaged("is damaged: it does not fit its checksum")
        if body["version"] > _VERSION:
            raise FormatError(
                f"{call}: '{name}' has version {body['version']} of the format",
                expected=f"at most {_VERSION}",
                because=f"HybridNet {body['library']} wrote it",
                fix="load it with that version or a later one",
            )
        if body["processes"] != len(body["parts"]) or not body["parts"]:
            raise damaged("lists another number of parts than there were processes")
        body["has_trainer"], body["has_loader"], body["extra"], body["step"] + 0
        for part in body["parts"]:
            part["bytes"] + 0, part["header_sha256"] + ""
        return dict(body)
    except FormatError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise damaged(f"is no manifest of a checkpoint: {error!r}") from error
