"""Work that all processes of ``mx.group`` do together: what fails in one of them is an error in all."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from .. import errors, group
from ..errors import HybridNetError
from ..ndarray import array

__all__ = ["gather_bytes", "in_all_processes"]

_T = TypeVar("_T")


def gather_bytes(data: bytes, name: str) -> list[bytes]:
    """Returns the data of all processes, in the order of their ranks. name: for errors of the group."""
    if group.size() == 1:
        return [data]
    lengths = group.gather(array([len(data)], dtype="int64"), f"lengths of {name}").asnumpy()[:, 0].tolist()
    if max(lengths) == 0:
        return [b""] * len(lengths)
    own = np.zeros(max(lengths), np.uint8)
    own[: len(data)] = np.frombuffer(data, np.uint8)
    everything = group.gather(array(own, dtype="uint8"), name).asnumpy()
    return [row[:length].tobytes() for row, length in zip(everything, lengths, strict=True)]


def in_all_processes(call: str, work: Callable[[], _T]) -> _T:
    """Returns work(), which all processes run; raises in all of them if it raises in one.

    work must not call the group. call: the caller's name, for errors.
    """
    failure: Exception | None = None
    result: _T | None = None
    try:
        result = work()
    except Exception as error:
        failure = error
    outcomes = gather_bytes(b"" if failure is None else _text_of(failure), f"outcomes of {call}")
    if failure is not None:
        raise failure
    for rank, outcome in enumerate(outcomes):
        if outcome:
            raise _error_of(call, rank, outcome)
    return result  # type: ignore[return-value]


def _text_of(error: Exception) -> bytes:
    message = str(error).partition("\n")[0].removesuffix(".")
    parts = {name: getattr(error, name, None) for name in ("because", "fix")}
    return json.dumps({"class": type(error).__name__, "message": message, **parts}).encode()


def _error_of(call: str, rank: int, outcome: bytes) -> HybridNetError:
    """The error of another process, of the same class where that is one of the package."""
    told = json.loads(outcome)
    kind = getattr(errors, told["class"], None)
    if not (isinstance(kind, type) and issubclass(kind, HybridNetError)):
        kind = HybridNetError
    return kind(
        f"{call}: rank {rank} of {group.size()} failed: {told['message']}", because=told["because"], fix=told["fix"]
    )
