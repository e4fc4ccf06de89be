"""Errors of Ray Train as a GroupError that names the process, its exception and the user's line."""

from __future__ import annotations

import builtins
import contextlib
import os
import re
from typing import Any

from .._user_line import is_own_file
from ..errors import GroupError

__all__ = ["failure_of", "note_line", "start_failure", "user_line"]

_FRAME = re.compile(r'^  File "(.+)", line (\d+), in ', re.MULTILINE)
_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_FACTS = {"node_ip": "machine", "pid": "pid", "log_file_path": ""}  # in Ray's description of a process
_INSTALLED = tuple(f"{os.sep}{folder}{os.sep}" for folder in ("site-packages", "dist-packages"))


def user_line(trace: str) -> str | None:
    """Returns FILE:LINE of the innermost frame of the user in the text of a traceback; None if there is none."""
    for file, line in reversed(_FRAME.findall(trace)):
        if not is_own_file(file) and not any(folder in file for folder in _INSTALLED):
            return f"{file}:{line}"
    return None


def note_line(error: BaseException, line: str | None) -> None:
    """Keeps the user's line on an exception: it reaches the driver without its traceback."""
    with contextlib.suppress(builtins.AttributeError, builtins.TypeError):  # a class with slots
        error.__dict__["hybridnet_line"] = line


def failure_of(error: Any, size: int, restarts: int) -> GroupError:
    """Returns the error to raise for a TrainingFailedError of Ray; its cause is the exception of the process."""
    failures: dict[int, Exception] | None = getattr(error, "worker_failures", None)
    if not failures:
        return start_failure(getattr(error, "controller_failure", error))
    rank, failure = min(failures.items(), key=lambda item: (_order(item[1]), item[0]))
    name = f"rank {rank} of {size}"
    if isinstance(failure, GroupError):
        return failure
    if _order(failure) == _DEAD:
        found = _death_of(name, str(failure), restarts)
    else:
        text = str(failure)
        found = GroupError(
            f"{name} raised {type(failure).__name__}" + (f": {text}" if text else ""),
            where=getattr(failure, "where", None) or getattr(failure, "hybridnet_line", None),
        )
    found.__cause__ = failure
    return found


_RAISED, _DEAD, _COLLATERAL = range(3)


def _order(failure: Exception) -> int:
    """An exception of the user explains deaths, and these explain the errors of the other processes."""
    if isinstance(failure, GroupError):
        return _COLLATERAL
    return _DEAD if type(failure).__name__.startswith("WorkerHealthCheck") else _RAISED


def _death_of(name: str, text: str, restarts: int) -> GroupError:
    """The error for a process that died. text: Ray's description of the process and of its end."""
    facts = {key: found[1] for key in _FACTS if (found := re.search(rf"\b{key}[=:] ?'?([^\s',]+)", text))}
    place = ", ".join(f"{title} {facts[key]}" for key, title in _FACTS.items() if key in facts and title)
    log = facts.get("log_file_path")
    return GroupError(
        f"{name} ({place}) has ended" if place else f"{name} has ended",
        because="its process was killed or has crashed, or its machine is gone",
        fix=(f"see its log {log}; " if log else "") + f"Trainer(max_restarts=) was {restarts}",
    )


def start_failure(cause: Any) -> GroupError:
    """Returns the error for processes that could not be started, or did not form a group."""
    inner = getattr(cause, "cause", None)  # a RayTaskError has it
    if isinstance(inner, GroupError):
        return inner
    lines = _COLORS.sub("", str(cause)).strip().splitlines()  # a remote traceback ends with its exception
    found = GroupError(
        "the processes of hybridnet.ray.Trainer could not be started", because=lines[-1] if lines else repr(cause)
    )
    found.__cause__ = cause
    return found
