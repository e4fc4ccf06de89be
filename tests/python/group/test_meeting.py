"""The meeting by TCP serves the processes of a job alone; no port stays open; differences are named."""

from __future__ import annotations

import hmac
import os
import pathlib
import random
import re
import secrets
import socket
import struct
import subprocess
import sys
import time

import pytest
from hybridnet._meeting_server import MeetingServer
from launched import HEAD, launch, needs_gloo

TOKEN = b"t" * 32


def request(operation: int, key: bytes, value: bytes = b"", timeout_ms: int = 100) -> bytes:
    head = struct.pack("=IBBHII32s", 0x314D4748, operation, len(key), 0, len(value), timeout_ms, b"n" * 32)
    return head + key + value


def ask(server: MeetingServer, body: bytes, token: bytes = TOKEN, code: bytes | None = None) -> bytes:
    """Sends a request; returns what comes back."""
    with socket.create_connection((server.address, server.port), timeout=8) as connection:
        hello = connection.recv(36, socket.MSG_WAITALL)
        number = hello[4:]
        sent = hmac.digest(token, b"client" + number + body, "sha256") if code is None else code
        connection.sendall(sent + body)
        connection.shutdown(socket.SHUT_WR)
        answer = bytearray()
        while part := connection.recv(1 << 16):
            answer += part
    return bytes(answer)


def value_of(answer: bytes) -> tuple[int, bytes]:
    code, body = answer[:32], answer[32:]
    assert hmac.compare_digest(code, hmac.digest(TOKEN, b"server" + b"n" * 32 + body, "sha256"))
    status, count = struct.unpack("=iI", body[:8])
    assert len(body) == 8 + count
    return status, body[8:]


@pytest.fixture
def server():
    served = MeetingServer(TOKEN)
    yield served
    served.close()


def test_each_key_keeps_its_first_value(server: MeetingServer) -> None:
    assert value_of(ask(server, request(2, b"k", timeout_ms=1))) == (1, b"")
    assert value_of(ask(server, request(1, b"k", b"one"))) == (0, b"")
    assert value_of(ask(server, request(1, b"k", b"two"))) == (2, b"")
    assert value_of(ask(server, request(1, b"k", b"one"))) == (0, b"")
    assert value_of(ask(server, request(2, b"k"))) == (0, b"one")
    assert server.refused == 0


def test_requests_without_the_token_and_repeated_ones_are_refused(server: MeetingServer) -> None:
    body = request(1, b"k", b"one")
    assert ask(server, body, token=b"u" * 32) == b""
    assert ask(server, body, code=b"\0" * 32) == b""
    recorded = hmac.digest(TOKEN, b"client" + b"\1" * 32 + body, "sha256")  # the code of an earlier connection
    assert ask(server, body, code=recorded) == b""
    assert server.refused == 3
    assert value_of(ask(server, request(2, b"k", timeout_ms=1))) == (1, b"")


def test_garbage_and_half_messages_are_refused(server: MeetingServer) -> None:
    choices = random.Random(5)
    whole = hmac.digest(TOKEN, b"x", "sha256") + request(1, b"k", b"v" * 100)
    for number in range(300):
        garbage = choices.randbytes(choices.choice([0, 1, 31, 32, 79, 80, 81, 200, 70_000]))
        if number % 3 == 0:
            garbage = whole[: choices.randrange(len(whole))]
        elif number % 3 == 1:
            changed = bytearray(whole)
            for _ in range(choices.randrange(1, 6)):
                changed[choices.randrange(len(changed))] = choices.randrange(256)
            garbage = bytes(changed)
        with socket.create_connection((server.address, server.port), timeout=8) as connection:
            connection.recv(36, socket.MSG_WAITALL)
            try:
                connection.sendall(garbage)
                connection.shutdown(socket.SHUT_WR)
                answer = connection.recv(100)
            except OSError:  # the server has closed already
                answer = b""
        assert answer == b""
    for _ in range(100):
        if server.refused == 300:
            break
        time.sleep(0.02)
    assert server.refused == 300
    assert value_of(ask(server, request(1, b"k", b"one"))) == (0, b"")


def test_lengths_are_checked_before_anything_is_read(server: MeetingServer) -> None:
    for key_bytes, value_bytes in ((0, 1), (201, 1), (1, (1 << 16) + 1), (1, (1 << 32) - 1)):
        head = struct.pack("=IBBHII32s", 0x314D4748, 1, key_bytes, 0, value_bytes, 100, b"n" * 32)
        with socket.create_connection((server.address, server.port), timeout=8) as connection:
            connection.recv(36, socket.MSG_WAITALL)
            connection.sendall(b"c" * 32 + head)
            assert connection.recv(10) == b""


def test_silent_connections_do_not_keep_others_out(server: MeetingServer) -> None:
    silent = [socket.create_connection((server.address, server.port)) for _ in range(50)]
    assert value_of(ask(server, request(1, b"k", b"one"))) == (0, b"")
    for connection in silent:
        connection.close()


# Two processes, started by hand, that meet by TCP at process 0. Prints the listening sockets of the process.
MET = """
assert group.sum(mx.nd.ones((3,))).asnumpy().tolist() == [size] * 3
open_files = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
inodes = {os.readlink(path) for path in open_files if os.path.lexists(path)}
for line in open("/proc/net/tcp").read().splitlines()[1:]:
    words = line.split()
    if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
        print("listens", words[1])
group.barrier()
print("fine")
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@needs_gloo
def test_processes_meet_by_tcp_without_a_launcher(tmp_path: pathlib.Path) -> None:
    token, program = tmp_path / "token", tmp_path / "program.py"
    token.write_bytes(secrets.token_bytes(32))
    token.chmod(0o600)
    program.write_text(HEAD + MET)
    place = f"tcp://127.0.0.1:{free_port()}"
    started = [
        subprocess.Popen(
            [sys.executable, str(program)],
            env={
                **os.environ,
                "HYBRIDNET_GROUP_RANK": str(rank),
                "HYBRIDNET_GROUP_SIZE": "3",
                "HYBRIDNET_GROUP_STORE": place,
                "HYBRIDNET_GROUP_TOKEN_FILE": str(token),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in (2, 1, 0)
    ]
    texts = [process.communicate(timeout=60)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], texts
    assert all("fine" in text for text in texts)
    # Process 0 serves the meeting, on 127.0.0.1; the others listen nowhere.
    listening = [re.findall(r"listens (\w+):", text) for text in texts]
    assert listening == [[], [], ["0100007F"]]


@needs_gloo
def test_processes_of_the_launcher_listen_nowhere(tmp_path: pathlib.Path) -> None:
    done = launch(3, MET, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == 3
    assert "listens" not in done.stdout


@needs_gloo
def test_a_token_that_others_may_read_is_refused(tmp_path: pathlib.Path) -> None:
    import hybridnet as mx

    token = tmp_path / "token"
    token.write_bytes(b"t" * 40)
    token.chmod(0o644)
    with pytest.raises(mx.errors.FileError, match="may be read by others"):
        mx.group.init(0, 2, f"folder:{tmp_path}", token_file=str(token))
    token.chmod(0o600)
    token.write_bytes(b"short")
    with pytest.raises(mx.errors.ValueError, match="at least 32 bytes"):
        mx.group.init(0, 2, f"folder:{tmp_path}", token_file=str(token))
    with pytest.raises(mx.errors.FileError):
        mx.group.init(0, 2, f"folder:{tmp_path}", token_file=str(tmp_path / "none"))
    with pytest.raises(mx.errors.ValueError, match="tcp://HOST:PORT"):
        mx.group.init(0, 2, "tcp://nowhere")
    with pytest.raises(mx.errors.ValueError, match="needs a token"):
        mx.group.init(0, 2, "tcp://127.0.0.1:1")


@needs_gloo
def test_a_folder_that_others_may_write_is_refused(tmp_path: pathlib.Path) -> None:
    import hybridnet as mx

    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(mx.errors.GroupError, match="another user owns it or may use it"):
        mx.group.init(0, 2, f"folder:{shared}", timeout=1)
    with pytest.raises(mx.errors.GroupError, match="rank 1 of 2 did not come"):
        mx.group.init(0, 2, f"folder:{tmp_path}", timeout=0.2)
