"""Joins the group of the workers that MXNet's launchers start: they set DMLC_ROLE, DMLC_NUM_WORKER and others.

These launchers start the program in three roles. The scheduler serves the meeting of the workers at
DMLC_PS_ROOT_URI:DMLC_PS_ROOT_PORT until all of them have ended; servers have nothing to do and end; workers get their
rank from DMLC_WORKER_ID or from the meeting. The variables HYBRIDNET_GROUP_* of the own launcher come first.
"""

from __future__ import annotations

import errno
import os
import pathlib
import socket
import sys
from dataclasses import dataclass

from . import _core
from ._meeting_client import enter_meeting
from ._meeting_server import MeetingServer
from .errors import GroupError, ParamError

__all__ = ["end_other_roles", "join"]

_ROLES = ("worker", "server", "scheduler")
_TOKEN_FIX = (
    "write 32 random bytes to a file (head -c 32 /dev/urandom > token; chmod 600 token), put it on every machine, and "
    "set HYBRIDNET_GROUP_TOKEN_FILE to its path in all processes"
)
_life_sign: socket.socket | None = None  # open as long as this worker runs


def _number(name: str, low: int, high: int) -> int:
    text = os.environ.get(name, "")
    if not (text.isdecimal() and low <= int(text) <= high):
        raise ParamError(f"the variable {name}", expected=f"a number from {low} to {high}", given=repr(text))
    return int(text)


@dataclass(frozen=True)
class _Job:
    """The job that the variables describe."""

    role: str
    workers: int

    @property
    def address(self) -> str:
        """The host name or address of the scheduler."""
        address = os.environ.get("DMLC_PS_ROOT_URI", "")
        if not address:
            raise ParamError(
                f"this process is one of {self.workers} workers, and does not know where to meet the others",
                because="DMLC_NUM_WORKER is set, DMLC_PS_ROOT_URI is not",
                fix="set DMLC_PS_ROOT_URI and DMLC_PS_ROOT_PORT, or start the workers alone, by "
                f"`python -m hybridnet.launch -n {self.workers} train.py`",
            )
        return address.strip("[]")

    @property
    def port(self) -> int:
        """The port of the scheduler."""
        return _number("DMLC_PS_ROOT_PORT", 1, 65535)

    @property
    def seconds(self) -> int:
        """How long a process waits for the others."""
        return _number("HYBRIDNET_GROUP_TIMEOUT", 1, 1_000_000) if os.environ.get("HYBRIDNET_GROUP_TIMEOUT") else 60

    def token(self) -> tuple[str, bytes]:
        """The path and the content of the file with the secret of the job."""
        path = os.environ.get("HYBRIDNET_GROUP_TOKEN_FILE", "")
        if not path:
            raise ParamError(
                "the processes of this job have no common secret",
                because="HYBRIDNET_GROUP_TOKEN_FILE is not set; they meet by TCP, where others may connect, too",
                fix=_TOKEN_FIX,
            )
        _core.group_check_token(path)
        return path, pathlib.Path(path).read_bytes()


def _job() -> _Job | None:
    """The job of MXNet's launchers to which this process belongs; None without one."""
    if "HYBRIDNET_GROUP_SIZE" in os.environ or _core.group_is_joined():
        return None
    role, has_others = os.environ.get("DMLC_ROLE"), bool(os.environ.get("DMLC_NUM_WORKER"))
    if not role and not has_others:
        return None
    role = role or "worker"
    if role not in _ROLES:
        raise ParamError("the variable DMLC_ROLE", expected=", ".join(_ROLES), given=repr(role))
    return _Job(role, _number("DMLC_NUM_WORKER", 1, 65536) if has_others or role == "scheduler" else 1)


def end_other_roles() -> None:
    """Does the work of a scheduler or of a server and ends the process by SystemExit; returns in workers.

    Raises GroupError in a scheduler whose workers do not come, ParamError for wrong variables.
    """
    job = _job()
    if job is None or job.role == "worker":
        return
    if job.role == "scheduler" and job.workers > 1:
        _serve(job)
    else:
        _say(job, "ends: there are no servers, each worker updates its parameters")
    sys.exit(0)


def _say(job: _Job, text: str) -> None:
    print(f"hybridnet: this process (DMLC_ROLE={job.role}) {text}", file=sys.stderr, flush=True)


def _listen(job: _Job, token: bytes) -> MeetingServer:
    try:
        return MeetingServer(token, job.address, job.port, job.workers)
    except OSError as error:
        # The address of a service or of a router leads to this machine and is none of its own.
        if error.errno == errno.EADDRNOTAVAIL:
            return MeetingServer(token, "::" if ":" in job.address else "0.0.0.0", job.port, job.workers)
        raise GroupError(
            f"the scheduler cannot listen at {job.address}:{job.port}",
            because=error.strerror or str(error),
            fix="set DMLC_PS_ROOT_URI to an address of this machine and DMLC_PS_ROOT_PORT to a free port",
        ) from None


def _serve(job: _Job) -> None:
    server = _listen(job, job.token()[1])
    try:
        _say(job, f"serves the meeting of {job.workers} workers at {job.address}:{job.port}")
        if missing := server.members.wait_for_all(job.seconds):
            raise GroupError(
                f"{len(missing)} of {job.workers} workers did not come to the meeting at {job.address}:{job.port} "
                f"within {job.seconds} s",
                because=f"{server.refused} connections without a valid request were refused",
                fix="see the logs of the workers; if starting takes longer, raise HYBRIDNET_GROUP_TIMEOUT",
            )
        server.members.wait_for_end()
    finally:
        server.close()


def join() -> None:
    """Joins the group that DMLC_* describe, if this process is a worker of one and is in no group yet.

    Ends other roles as end_other_roles() does. Raises ParamError for missing or wrong variables, GroupError if the
    scheduler or a worker does not come.
    """
    global _life_sign
    end_other_roles()
    job = _job()
    if job is None or job.workers == 1:
        return
    address, port, (path, token) = job.address, job.port, job.token()
    wanted = _number("DMLC_WORKER_ID", 0, job.workers - 1) if os.environ.get("DMLC_WORKER_ID") else -1
    rank, _life_sign = enter_meeting(token, address, port, wanted, job.seconds)
    environ = os.environ.get
    own = environ("HYBRIDNET_GROUP_ADDRESS") or environ("DMLC_NODE_HOST") or str(_life_sign.getsockname()[0])
    shards = _number("HYBRIDNET_GROUP_SHARDS", 0, 65536) if environ("HYBRIDNET_GROUP_SHARDS") else 0
    host = f"[{address}]" if ":" in address else address
    _core.group_join(
        rank, job.workers, shards, f"tcp://{host}:{port}", path, own, environ("HYBRIDNET_GROUP_ENGINE") or "gloo",
        environ("HYBRIDNET_GROUP_NAME") or "0", float(job.seconds),
    )  # fmt: skip
