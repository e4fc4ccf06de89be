"""``hybridnet serve`` as a process: many connections, malformed requests, and SIGTERM under load."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import hybridnet as mx
import pytest
from hybridnet import gluon

CONNECTIONS = 50
BODY = json.dumps({"inputs": {"data": [[[[0.5] * 8] * 8]]}}).encode()
HEAD = b"POST /v1/predict HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
REQUEST = HEAD + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
GET = b"GET /healthz HTTP/1.1\r\n"

# Malformed requests, and the status of the answer.
MALFORMED = [
    (b"\0\1\2\3\r\n\r\n", 400),
    (bytes.fromhex("160301020001000001fc0303"), 400),  # TLS
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    (b"GET\r\n\r\n", 400),
    (b"GET  HTTP/1.1\r\nhost: x\r\n\r\n", 400),
    (b"GET /\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n", 400),
    (b"GET /healthz HTTP/9.9\r\nhost: x\r\n\r\n", 400),
    (b"FROB /v1/predict HTTP/1.1\r\nhost: x\r\n\r\n", 400),
    (b"CONNECT a:1 HTTP/1.1\r\nhost: x\r\n\r\n", 400),
    (GET + b"ho st x\r\n\r\n", 400),
    (HEAD + b"content-length: -5\r\n\r\n", 400),
    (HEAD + b"content-length: many\r\n\r\n", 400),
    (HEAD + b"content-length: 5\r\ncontent-length: 6\r\n\r\n123456", 400),
    (HEAD + b"content-length: 99999999999999999999999\r\n\r\n", 400),
    (HEAD + b"content-length: 9999999999\r\n\r\n", 413),
    (HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n", 400),
    (HEAD + b"transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n", 400),
    (HEAD + b"content-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\x00", 400),
    (HEAD + b"content-length: 4\r\n\r\nnull", 400),
    (HEAD + b"content-length: 3\r\n\r\nNaN", 400),
]
GONE = [b"", b"\r\n" * 50, HEAD, HEAD + b"content-length: 100\r\n\r\n{"]  # clients that leave mid-request


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> str:
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(16, 3, padding=1, activation="relu"), gluon.nn.MaxPool2D(), gluon.nn.Dense(10))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(mx.nd.ones((1, 1, 8, 8)))
    name = str(tmp_path_factory.mktemp("load") / "digits")
    net.export(name)
    return name


@pytest.fixture
def server(prefix: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    child = subprocess.Popen(
        [sys.executable, "-m", "hybridnet", "serve", prefix, "--shape", "1,1,8,8", "--port", "0"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    yield child, int(child.stdout.readline().rpartition(":")[2])
    child.kill()
    child.wait()
    child.stdout.close()


async def _answer(reader: asyncio.StreamReader) -> bytes:
    """Reads the status line and body of one answer; b"" if the server has closed the connection instead."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionResetError) as error:
        partial = getattr(error, "partial", b"")
        assert partial == b"", f"half an answer: {partial!r}"
        return b""
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
    return head.partition(b"\r\n")[0] + b" " + await reader.readexactly(int(length.partition(b":")[2]))


async def _load(port: int, seconds: float, child: subprocess.Popen[str] | None = None) -> list[bytes]:
    """Returns all answers to CONNECTIONS clients without pauses between requests. `child` gets SIGTERM half-way."""
    answers: list[bytes] = []
    end, told = time.monotonic() + seconds, asyncio.Event()

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < end:
            writer.write(REQUEST)
            answer = await _answer(reader)
            if answer == b"" and told.is_set():  # the server ended before it read the request
                break
            answers.append(answer)
        writer.close()

    async def tell() -> None:
        if child is not None:
            await asyncio.sleep(seconds / 2)
            told.set()
            child.send_signal(signal.SIGTERM)

    await asyncio.gather(tell(), *(client() for _ in range(CONNECTIONS)))
    return answers


def test_fifty_connections_get_right_answers_all_the_time(server: tuple[subprocess.Popen[str], int]) -> None:
    _, port = server
    begin = time.monotonic()
    answers = asyncio.run(_load(port, 2))
    assert len(answers) / (time.monotonic() - begin) > 200  # thousands on an idle machine
    texts = {answer.partition(b"{")[0] for answer in answers}
    assert texts == {b"HTTP/1.1 200 OK "}
    rows = [next(iter(json.loads(answer[16:])["outputs"].values())) for answer in set(answers)]
    for row in rows:  # batches of other sizes may sum in another order
        assert row == [pytest.approx(rows[0][0], rel=1e-4, abs=1e-6)]


def test_sigterm_answers_pending_requests(server: tuple[subprocess.Popen[str], int]) -> None:
    child, port = server
    answers = asyncio.run(_load(port, 3, child))
    assert child.wait(30) == 0
    assert len(answers) > CONNECTIONS
    assert {answer.partition(b"{")[0] for answer in answers} == {b"HTTP/1.1 200 OK "}


def test_malformed_requests_get_an_error_text_and_do_no_harm(
    server: tuple[subprocess.Popen[str], int],
) -> None:
    _, port = server
    for content, status in [*MALFORMED, *((gone, None) for gone in GONE)]:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as file:
                head, _, text = file.read().partition(b"\r\n\r\n")
        assert head.split(b" ")[1:2] == ([] if status is None else [b"%d" % status]), content
        assert (text == b"") == (status is None), content
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(REQUEST)
        assert connection.recv(64).startswith(b"HTTP/1.1 200 OK")
