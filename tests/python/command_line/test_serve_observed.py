"""/metrics, the access log and the page /docs of a server, whose requests work as they are."""

from __future__ import annotations

import asyncio
import html
import http.client
import json
import logging
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet._command_line import WRONG_INPUT, main
from hybridnet.serving import AccessLog, Limits, PredictionApp

from .test_serve import JSON, _app, _ask, _asked, _json, _npz

NPZ = "application/x-npz"


def _get(app: PredictionApp, path: str) -> tuple[int, str, str]:
    status, kind, body = _ask(app, b"", JSON, path, "GET")
    return status, kind, body.decode()


def _samples(text: str) -> dict[str, float]:
    """Parses the text format of Prometheus: name with labels -> value. Fails on anything else."""
    found, declared = {}, set()
    for line in text.splitlines():
        if line.startswith("# "):
            word, name, _ = line[2:].split(" ", 2)
            assert word in ("HELP", "TYPE")
            declared.add(name)
            continue
        match = re.fullmatch(r'([a-z_]+)(\{[a-z]+="[^"\n]*"(?:,[a-z]+="[^"\n]*")*\})? (\S+)', line)
        assert match, line
        assert match[1] in declared or re.sub("_(bucket|sum|count)$", "", match[1]) in declared, line
        assert match[1] + (match[2] or "") not in found, line
        found[match[1] + (match[2] or "")] = float(match[3])
    return found


def test_metrics_count_requests_errors_rows_and_times() -> None:
    app = _app(limits=Limits(batch=8))
    for rows in (1, 3, 3):
        assert _ask(app, _json({"x": [[1, 2]] * rows, "n": [1] * rows}))[0] == 200
    assert _ask(app, b"{bad")[0] == 400
    assert _ask(app, b"", JSON, "/healthz", "GET")[0] == 200
    for path in ("/a", "/b"):
        assert _ask(app, b"", JSON, path, "GET")[0] == 404
    status, kind, text = _get(app, "/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    found = _samples(text)
    assert found['hybridnet_requests_total{path="/v1/predict",status="200"}'] == 3
    assert found['hybridnet_requests_total{path="/v1/predict",status="400"}'] == 1
    assert found['hybridnet_requests_total{path="other",status="404"}'] == 2  # clients add no names
    assert found['hybridnet_errors_total{class="FormatError"}'] == 1
    assert found['hybridnet_errors_total{class="NotFound"}'] == 2
    assert found['hybridnet_batch_rows_bucket{le="1"}'] == 1
    assert found['hybridnet_batch_rows_bucket{le="2"}'] == 1
    assert found['hybridnet_batch_rows_bucket{le="4"}'] == 3
    assert found['hybridnet_batch_rows_bucket{le="+Inf"}'] == found["hybridnet_batch_rows_count"] == 3
    assert found["hybridnet_batch_rows_sum"] == 7
    assert found['hybridnet_request_seconds_bucket{le="+Inf"}'] == found["hybridnet_request_seconds_count"] == 4
    assert 0 < found["hybridnet_request_seconds_sum"] < 60
    assert found["hybridnet_queue_length"] == found["hybridnet_running_calls"] == 0
    assert found["process_resident_memory_bytes"] > 1e6
    assert found["process_start_time_seconds"] > 1.7e9
    assert f'hybridnet_build_info{{version="{mx.__version__}"' in text


def test_metrics_show_the_queue_and_shared_calls_while_a_call_runs() -> None:
    seen: list[dict[str, float]] = []

    async def all_of_them() -> None:
        def call(arrays: list[np.ndarray]) -> list[np.ndarray]:
            if not seen:
                answer = asyncio.run_coroutine_threadsafe(_asked(app, b"", JSON, "/metrics", "GET"), loop)
                seen.append(_samples(answer.result(30)[2].decode()))
            return [arrays[0]]

        app = _app(call, Limits(batch=8))
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(_asked(app, _json({"x": [[i, 1]], "n": [1]})) for i in range(5)))
        seen.append(_samples((await _asked(app, b"", JSON, "/metrics", "GET"))[2].decode()))

    asyncio.run(all_of_them())
    assert (seen[0]["hybridnet_running_calls"], seen[0]["hybridnet_queue_length"]) == (1, 4)
    assert (seen[1]["hybridnet_running_calls"], seen[1]["hybridnet_queue_length"]) == (0, 0)
    assert seen[1]["hybridnet_shared_calls_total"] == 1


LINE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (\S+) (\S+) (\S+) (\d+) (\d+) (\d+\.\d{3})"


def _lines(path: pathlib.Path) -> list[tuple[str, ...]]:
    matches = [re.fullmatch(LINE, line) for line in path.read_text("utf-8").splitlines()]
    assert all(matches)
    return [match.groups() for match in matches if match]


def _logged_app(log: AccessLog) -> PredictionApp:
    return PredictionApp(lambda arrays: [arrays[0]], {"x": ((), np.dtype(np.float32))}, ["y"], log=log)


def test_the_log_has_one_line_per_request(tmp_path) -> None:
    path = tmp_path / "access.log"
    path.write_text("2026-01-01T00:00:00.000Z - GET /old 200 1 0.100\n")
    app = _logged_app(AccessLog(str(path)))
    _, _, body = _ask(app, _json({"x": [1, 2]}))
    _ask(app, b"{bad")
    _ask(app, b"", JSON, "/a b\n/c\u00e9" + "d" * 500, "GET")
    lines = _lines(path)
    assert [line[1:4] for line in lines[:3]] == [
        ("GET", "/old", "200"), ("POST", "/v1/predict", "200"), ("POST", "/v1/predict", "400")
    ]  # fmt: skip
    assert lines[1][4] == str(len(body))
    assert lines[3][2].startswith("/a%20b%0A/c%C3%A9ddd") and len(lines[3][2]) < 250
    assert len(lines) == 4


def test_a_rotated_log_is_opened_again(tmp_path) -> None:
    path = tmp_path / "access.log"
    log = AccessLog(str(path))
    app = _logged_app(log)
    _ask(app, _json({"x": [1]}))
    path.rename(tmp_path / "access.log.1")
    _ask(app, _json({"x": [1]}))
    log.reopen()
    _ask(app, _json({"x": [1]}))
    assert (len(_lines(tmp_path / "access.log.1")), len(_lines(path))) == (2, 1)


def test_a_minus_logs_to_standard_output_and_leaves_it_open(capsys) -> None:
    log = AccessLog("-")
    log.reopen()
    _ask(_logged_app(log), _json({"x": [1]}))
    log.close()
    print("open")
    line, rest = capsys.readouterr().out.splitlines()
    assert re.fullmatch(LINE, line) and rest == "open"


def test_a_log_that_cannot_be_written_fails_no_request(tmp_path, caplog) -> None:
    log = AccessLog(str(tmp_path / "access.log"))
    app = _logged_app(log)
    log.close()
    for _ in range(3):
        assert _ask(app, _json({"x": [1]}))[0] == 200
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "lines of the access log are lost" in caplog.text


def test_a_log_in_a_missing_folder_is_refused_at_the_start(tmp_path, capsys) -> None:
    prefix = _served(tmp_path)
    assert main(["serve", prefix, "--port", "0", "--log", str(tmp_path / "none" / "a.log")]) == WRONG_INPUT
    shown = capsys.readouterr().err
    assert "access log: cannot write" in shown and "Fix: give --log a file, or -" in shown


def _page(app: PredictionApp) -> str:
    status, kind, text = _get(app, "/docs")
    assert (status, kind) == (200, "text/html; charset=utf-8")
    return text


def test_the_page_loads_nothing_else_and_escapes_names() -> None:
    evil = "<script>alert('1')</script>\"&"
    app = PredictionApp(lambda arrays: arrays, {evil: ((2,), np.dtype(np.float32))}, [evil], name=evil)
    text = _page(app)
    assert "<script" not in text
    assert html.escape(evil) in text
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//|@import|url\(""", text)


def test_the_page_names_inputs_outputs_and_limits() -> None:
    inputs: Any = {"ids": (("free1",), np.dtype(np.int32)), "age": ((), np.dtype(np.float32))}
    text = _page(PredictionApp(lambda arrays: arrays, inputs, ["y"], Limits(rows=77, body=12345), name="my model"))
    cells = re.findall("<td>(.*?)</td>", text)
    assert cells[:6] == ["ids", "int32", "(rows, free1)", "age", "float32", "(rows,)"]
    assert {"y", "1 to 77", "at most 12345"} <= set(cells)
    assert "<h1>my model</h1>" in text and "chooses free1" in text


def test_the_page_has_only_addresses_of_letters_from_the_client() -> None:
    async def page(host: bytes) -> str:
        sent = []

        async def send(event: dict[str, Any]) -> None:
            sent.append(event)

        scope = {"type": "http", "path": "/docs", "method": "GET", "headers": [(b"host", host)]}
        await _app()(scope, None, send)  # type: ignore[arg-type]  # nothing is received
        return sent[1]["body"].decode()

    assert "http://example.org:81/v1/predict" in asyncio.run(page(b"example.org:81"))
    for host in (b"a'; rm -rf ~ #", b"<b>", b"", b"a" * 300):
        assert "http://127.0.0.1:8080/v1/predict" in asyncio.run(page(host))


# --- the server -------------------------------------------------------------------------------------------------------


def _served(folder: pathlib.Path, pixels: int = 2) -> str:
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Flatten(), gluon.nn.Dense(3))
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, pixels, pixels)))
    net.export(str(folder / "it's"))
    return str(folder / "it's")


@pytest.fixture(params=[2, 12], ids=["small", "large"])
def server(request: Any, tmp_path: pathlib.Path) -> Iterator[tuple[subprocess.Popen[str], int, pathlib.Path]]:
    prefix = _served(tmp_path, request.param)
    child = subprocess.Popen(
        [
            *(sys.executable, "-m", "hybridnet", "serve", f"{prefix}-0000.params"),
            *("--port", "0", "--log", str(tmp_path / "access.log")),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    yield child, int(child.stdout.readline().rpartition(":")[2]), tmp_path
    child.kill()
    child.wait()
    child.stdout.close()


def test_requests_of_the_page_work_as_they_are(server) -> None:
    child, port, folder = server
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/docs")
    text = connection.getresponse().read().decode()
    connection.close()
    curl, python = (html.unescape(code) for code in re.findall("<pre>(.*?)</pre>", text, re.DOTALL))
    done = subprocess.run([sys.executable, "-c", python], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "_output" in done.stdout, done.stderr
    if shutil.which("curl"):
        program = curl.replace("python3 -c", f"{sys.executable} -c")
        done = subprocess.run(["sh", "-c", program], cwd=folder, capture_output=True, text=True, timeout=60)
        answered = (folder / "outputs.npz").exists() or "outputs" in json.loads(done.stdout)
        assert done.returncode == 0 and answered, done.stderr
    child.send_signal(signal.SIGHUP)  # the log is opened again, the server goes on
    deadline = time.monotonic() + 30
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/healthz")
    assert connection.getresponse().read() == b"ok"
    connection.close()
    child.send_signal(signal.SIGTERM)
    assert child.wait(max(1, deadline - time.monotonic())) == 0
    paths = [line[2] for line in _lines(folder / "access.log")]
    assert paths[0] == "/docs" and paths[-1] == "/healthz" and set(paths[1:-1]) == {"/v1/predict"}


def test_sizes_that_the_file_leaves_free_are_chosen_by_requests() -> None:
    calls = []

    def call(arrays: list[np.ndarray]) -> list[np.ndarray]:
        calls.append(arrays[0].shape)
        return [arrays[0].sum(1)]

    inputs: Any = {"x": (("free1",), np.dtype(np.float32)), "m": (("free1",), np.dtype(np.float32))}

    async def all_of_them(app: PredictionApp) -> list[Any]:
        sizes = [2, 3, 2, 3, 2]
        bodies = [_json({"x": [[1] * size], "m": [[1] * size]}) for size in sizes]
        return await asyncio.gather(*(_asked(app, body) for body in bodies))

    app = PredictionApp(call, inputs, ["y"], Limits(batch=8, wait=50_000))
    answers = asyncio.run(all_of_them(app))
    assert [json.loads(body)["outputs"]["y"] for _, _, body in answers] == [[2], [3], [2], [3], [2]]
    assert sorted(calls) == [(2, 3), (3, 2)]  # requests of equal sizes share a call
    status, _, body = _ask(app, _npz(x=np.ones((1, 2), "f4"), m=np.ones((1, 3), "f4")), NPZ)
    assert status == 400
    assert "size free1: expected 2 as in input 'x', got 3" in json.loads(body)["text"]
    assert _ask(app, _json({"x": [[]], "m": [[]]}))[0] == 400
    _, _, body = _ask(app, b"", JSON, "/v1/model", "GET")
    assert json.loads(body)["inputs"]["x"]["shape"] == [None, None]
