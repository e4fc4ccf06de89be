"""Functions that Ray runs in its processes: the meeting of a group, and the frame around the user's function.

This module does not import Ray, and its functions are sent by name.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

from .. import group, ndarray
from .._meeting_server import MeetingServer
from .._user_line import in_one_line
from ..errors import GroupError
from ._failures import note_line, user_line

__all__ = ["Seat", "close_meeting", "in_group", "join", "serve_meeting"]

_server: MeetingServer | None = None


@dataclass(frozen=True)
class Seat:
    """The place of a process in its group, and the way to the others."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    meeting: str
    address: str
    virtual_shards: int
    name: str
    timeout: float


def serve_meeting(token: bytes, address: str) -> int:
    """Serves the meeting of a group at a free port, which it returns."""
    global _server
    _server = MeetingServer(token, address)
    return int(_server.port)


def close_meeting() -> None:
    """Closes the port of the meeting: all processes are connected."""
    if _server is not None:
        _server.close()


def join(seat: Seat, token: bytes) -> None:
    """Joins the group; returns when all processes have come."""
    os.environ["HYBRIDNET_GROUP_LOCAL_RANK"] = str(seat.local_rank)
    os.environ["HYBRIDNET_GROUP_LOCAL_SIZE"] = str(seat.local_size)
    with tempfile.NamedTemporaryFile(prefix="hybridnet-group-") as file:  # mode 0600
        file.write(token)
        file.flush()
        group.init(
            seat.rank,
            seat.size,
            seat.meeting,
            token_file=file.name,
            virtual_shards=seat.virtual_shards,
            address=seat.address,
            name=seat.name,
            timeout=seat.timeout,
        )


@contextlib.contextmanager
def in_group() -> Iterator[None]:
    """Surrounds the user's function: an exception ends the group at once, and the others read what it was."""
    try:
        yield
        ndarray.waitall()  # raises what operators and sums have not reported yet
    except GroupError:  # the group is closed
        raise
    except BaseException as error:
        text = in_one_line(error)
        where = user_line(traceback.format_exc())
        group.leave(f"{text}, at {where}" if where else text)
        if not _can_be_sent(error):
            error = RuntimeError(text)
        note_line(error, where)
        raise error


def _can_be_sent(error: BaseException) -> bool:
    """Whether Ray can send an exception; its classes may need other arguments than those that it keeps."""
    from ray import cloudpickle

    try:
        pickle.loads(cloudpickle.dumps(error))
    except Exception:
        return False
    return True
