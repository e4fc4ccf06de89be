"""Enters a meeting by TCP (_meeting_server.py): gets a place in the job, and keeps the connection as a sign of life."""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import struct
import time

from ._meeting_server import CODE_BYTES, DONE, ENTER, HELLO_BYTES, MAGIC, REPLY, REQUEST, keep_alive
from .errors import GroupError

__all__ = ["enter_meeting"]

_PAUSE_SECONDS = 0.1
_ANSWER_SECONDS = 10.0


class _RefusedError(Exception):
    """The server does not accept this process."""


def enter_meeting(token: bytes, address: str, port: int, wanted: int, seconds: float) -> tuple[int, socket.socket]:
    """Returns the place of this process, wanted or any (-1), and the connection, which must stay open while it runs.

    Waits for the server. Raises GroupError if it does not answer within the seconds, or refuses.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            connection = socket.create_connection((address, port), timeout=max(0.1, min(2.0, end - time.monotonic())))
        except OSError as error:
            if time.monotonic() + _PAUSE_SECONDS >= end:
                raise GroupError(
                    f"the meeting at {address}:{port} did not answer within {seconds:.0f} s",
                    because=str(error),
                    fix="see whether the scheduler runs, and whether its address can be reached",
                ) from None
            time.sleep(_PAUSE_SECONDS)
            continue
        try:
            place = _ask(connection, token, wanted)
        except (_RefusedError, OSError, struct.error) as error:
            connection.close()
            raise GroupError(
                f"the meeting at {address}:{port} refused this process",
                because=str(error) or type(error).__name__,
                fix="give all processes of the job the same HYBRIDNET_GROUP_TOKEN_FILE and DMLC_NUM_WORKER, and each "
                "worker its own DMLC_WORKER_ID or none; start all of them anew after a failure",
            ) from None
        connection.settimeout(None)
        keep_alive(connection)
        os.register_at_fork(after_in_child=connection.close)  # a child that outlives this process is no member
        return place, connection


def _ask(connection: socket.socket, token: bytes, wanted: int) -> int:
    connection.settimeout(_ANSWER_SECONDS)
    hello = _read(connection, HELLO_BYTES)
    if struct.unpack_from("=I", hello)[0] != MAGIC:
        raise _RefusedError("another program answers there")
    number, value, key = secrets.token_bytes(32), struct.pack("=i", wanted), b"member"
    body = REQUEST.pack(MAGIC, ENTER, len(key), 0, len(value), 0, number) + key + value
    connection.sendall(hmac.digest(token, b"client" + hello[4:] + body, "sha256") + body)
    code, head = _read(connection, CODE_BYTES), _read(connection, REPLY.size)
    status, count = REPLY.unpack(head)
    answer = _read(connection, count) if 0 <= count <= 4 else b""
    if not hmac.compare_digest(code, hmac.digest(token, b"server" + number + head + answer, "sha256")):
        raise _RefusedError("it does not know the token of this job")
    if status != DONE:
        raise _RefusedError(f"the number {wanted} is taken or too large" if wanted >= 0 else "all numbers are taken")
    place: int = struct.unpack("=i", answer)[0]
    return place


def _read(connection: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = connection.recv(count - len(parts))
        if not part:
            raise _RefusedError("it closed the connection: this process has another token, or it is no meeting")
        parts += part
    return bytes(parts)
