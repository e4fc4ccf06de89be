"""MeetingServer: the table at which the processes of a group find each other, by TCP.

The messages are those of src/group/tcp_meeting.cc: the server sends a random number; a client answers with the HMAC of
it and of its request; the server answers with the HMAC of the client's random number and of its reply. So a message
cannot be repeated later, and a client without the token neither learns nor changes anything. Each connection carries
one request. A request to enter (_meeting_client.py) keeps its connection, whose end tells that the process has ended.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import struct
import threading
import time

from ._meeting_members import Members

__all__ = ["CODE_BYTES", "DONE", "ENTER", "HELLO_BYTES", "MAGIC", "REPLY", "REQUEST", "MeetingServer", "keep_alive"]

MAGIC = 0x314D4748
REQUEST = struct.Struct(
    "=IBBHII32s"
)  # magic, operation, bytes of the key, 0, bytes of the value, timeout in ms, number
REPLY = struct.Struct("=iI")  # status, bytes of the value
CODE_BYTES, _NUMBER_BYTES = 32, 32
HELLO_BYTES = 4 + _NUMBER_BYTES
_MAX_VALUE, _MAX_KEY = 1 << 16, 200
_MAX_KEYS, _MAX_CONNECTIONS = 100_000, 1024
_REQUEST_SECONDS = 5.0  # in which a client must prove that it knows the token
_PUT, _GET, ENTER = 1, 2, 3
DONE, _TOO_LATE, _OTHER_VALUE = 0, 1, 2
_VALUE_BYTES = {_PUT: _MAX_VALUE, _GET: 0, ENTER: 4}  # at most
_PLACE = struct.Struct("=i")  # the wanted and the given place; -1: any


class _Refused(Exception):
    """A connection that is no client of this job."""


class MeetingServer:
    """Serves a table of small values until close(). Each key keeps its first value.

    Parameters
    ----------
    token : bytes
        The secret of the job, at least 32 bytes.
    address : str, default '127.0.0.1'
    port : int, default 0
        0: a free port.
    members : int, default 0
        Number of processes that may enter and get a place; ``members`` knows which are there.

    ``address`` and ``port`` tell where it listens; ``refused`` counts the connections without a valid request. Raises
    OSError if the address cannot be used.
    """

    def __init__(self, token: bytes, address: str = "127.0.0.1", port: int = 0, members: int = 0) -> None:
        self.members = Members(members)
        self._token = token
        self._table: dict[bytes, bytes] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._open = threading.Semaphore(_MAX_CONNECTIONS)
        self.refused = 0
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.create_server((address, port), family=family, backlog=_MAX_CONNECTIONS)
        self.address, self.port = self._socket.getsockname()[:2]
        self._thread = threading.Thread(target=self._accept, name="meeting", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops serving."""
        self._closed = True
        with self._changed:
            self._changed.notify_all()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes accept()
        self._socket.close()
        self._thread.join(timeout=1.0)

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                if self._closed:
                    return
                time.sleep(0.05)  # too many open files, for now
                continue
            if not self._open.acquire(blocking=False):
                self._count_refused()
                connection.close()
                continue
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _count_refused(self) -> None:
        with self._changed:
            self.refused += 1

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                self._answer(connection)
            except (_Refused, OSError):
                self._count_refused()
            finally:
                self._open.release()

    def _answer(self, connection: socket.socket) -> None:
        end = time.monotonic() + _REQUEST_SECONDS
        number = secrets.token_bytes(_NUMBER_BYTES)
        connection.settimeout(_REQUEST_SECONDS)
        connection.sendall(struct.pack("=I", MAGIC) + number)
        code = _read(connection, CODE_BYTES, end)
        head = _read(connection, REQUEST.size, end)
        magic, operation, key_bytes, padding, value_bytes, timeout_ms, asked = REQUEST.unpack(head)
        if (
            (magic, padding) != (MAGIC, 0)
            or operation not in _VALUE_BYTES
            or not 0 < key_bytes <= _MAX_KEY
            or value_bytes > _VALUE_BYTES[operation]
        ):
            raise _Refused
        rest = _read(connection, key_bytes + value_bytes, end)
        if not hmac.compare_digest(code, self._code(b"client", number, head + rest)):
            raise _Refused
        key, value = rest[:key_bytes], rest[key_bytes:]
        if operation == ENTER:
            self._keep_member(connection, asked, value)
            return
        status, answer = self._put(key, value) if operation == _PUT else self._get(key, timeout_ms / 1000)
        self._reply(connection, asked, status, answer)

    def _reply(self, connection: socket.socket, asked: bytes, status: int, answer: bytes) -> None:
        body = REPLY.pack(status, len(answer)) + answer
        connection.settimeout(_REQUEST_SECONDS)
        connection.sendall(self._code(b"server", asked, body) + body)

    def _keep_member(self, connection: socket.socket, asked: bytes, value: bytes) -> None:
        """Gives a process its place, and waits until its connection ends."""
        if len(value) != _PLACE.size:
            raise _Refused
        place = self.members.enter(_PLACE.unpack(value)[0])
        if place is None:
            self._reply(connection, asked, _OTHER_VALUE, b"")
            return
        try:
            self._reply(connection, asked, DONE, _PLACE.pack(place))
            connection.settimeout(None)
            keep_alive(connection)
            with contextlib.suppress(OSError):
                while connection.recv(64):
                    pass
        finally:
            self.members.leave(place)

    def _code(self, side: bytes, number: bytes, body: bytes) -> bytes:
        return hmac.digest(self._token, side + number + body, "sha256")

    def _put(self, key: bytes, value: bytes) -> tuple[int, bytes]:
        with self._changed:
            if key not in self._table and len(self._table) >= _MAX_KEYS:
                return _OTHER_VALUE, b""
            kept = self._table.setdefault(key, value)
            self._changed.notify_all()
        return (DONE if kept == value else _OTHER_VALUE), b""

    def _get(self, key: bytes, seconds: float) -> tuple[int, bytes]:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or key in self._table, timeout=seconds)
            if key in self._table:
                return DONE, self._table[key]
        return _TOO_LATE, b""


def keep_alive(connection: socket.socket) -> None:
    """Lets a connection end within a minute or two after the other machine has failed or cannot be reached."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 6)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _read(connection: socket.socket, count: int, end: float) -> bytes:
    """Reads so many bytes; raises _Refused if they do not come in time."""
    parts = bytearray()
    while len(parts) < count:
        left = end - time.monotonic()
        if left <= 0:
            raise _Refused
        connection.settimeout(left)
        part = connection.recv(count - len(parts))
        if not part:
            raise _Refused
        parts += part
    return bytes(parts)
