"""``hybridnet serve``: answers, refusals, batched calls, and a shutdown that loses no request."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
import uvicorn
from hybridnet import gluon
from hybridnet._command_line import WRONG_INPUT, main
from hybridnet.serving import Limits, PredictionApp

JSON, NPY, NPZ = "application/json", "application/x-npy", "application/x-npz"


def _ask(app: PredictionApp, body: bytes, *words: str, declared: bytes | None = None) -> Any:
    """Returns (status, content type, body) of one request, without a server."""
    return asyncio.run(_asked(app, body, *words, declared=declared))


async def _asked(
    app: PredictionApp,
    body: bytes,
    kind: str = JSON,
    path: str = "/v1/predict",
    method: str = "POST",
    declared: bytes | None = None,
) -> Any:
    headers = [(b"content-type", kind.encode()), (b"content-length", declared or str(len(body)).encode())]
    scope = {"type": "http", "path": path, "method": method, "headers": headers}
    sent = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(event: dict[str, Any]) -> None:
        sent.append(event)

    await app(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"])[b"content-type"].decode(), sent[1]["body"]


def _app(call: Any = None, limits: Limits | None = None, threads: int = 1) -> PredictionApp:
    inputs = {"x": ((2,), np.dtype(np.float32)), "n": ((), np.dtype(np.int32))}
    return PredictionApp(
        call or (lambda arrays: [arrays[0] * arrays[1][:, None]]), inputs, ["product"], limits, threads
    )


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def test_json_is_answered_in_json() -> None:
    for body in ({"inputs": {"x": [[1, 2], [3, 4]], "n": [2, 3]}}, {"x": [[1, 2], [3, 4]], "n": [2, 3]}):
        status, kind, answer = _ask(_app(), _json(body))
        assert (status, kind) == (200, JSON)
        assert json.loads(answer) == {"outputs": {"product": [[2, 4], [9, 12]]}}


def test_files_of_numpy_are_answered_in_kind() -> None:
    x, n = np.float32([[1, 2]]), np.int32([5])
    status, kind, answer = _ask(_app(), _npz(x=x, n=n), NPZ)
    assert (status, kind) == (200, NPZ)
    np.testing.assert_array_equal(np.load(io.BytesIO(answer))["product"], [[5, 10]])
    one = PredictionApp(lambda arrays: [arrays[0] + 1], {"x": ((2,), np.dtype(np.float32))}, ["y"])
    file = io.BytesIO()
    np.save(file, x)
    status, kind, answer = _ask(one, file.getvalue(), NPY)
    assert (status, kind) == (200, NPY)
    np.testing.assert_array_equal(np.load(io.BytesIO(answer)), [[2, 3]])


def _one(values: list[float], allow_nan: bool) -> PredictionApp:
    """An app that answers every request with these values."""
    return PredictionApp(
        lambda arrays: [np.array(values, np.float32)[: len(arrays[0])]], {"x": ((), np.dtype(np.float32))}, ["y"],
        allow_nan=allow_nan,
    )  # fmt: skip


@pytest.mark.parametrize("body", [b'{"x": [1, NaN]}', b'{"x": [Infinity]}', b'{"x": [1, -Infinity]}'])
def test_nan_in_json_is_refused_unless_asked_for(body: bytes) -> None:
    status, _, answer = _ask(_one([1, 2], allow_nan=False), body)
    assert status == 400
    assert "no number of JSON" in json.loads(answer)["text"]
    assert "--allow-nan" in json.loads(answer)["text"]
    echo = PredictionApp(lambda a: [np.isfinite(a[0])], {"x": ((), np.dtype(np.float32))}, ["y"], allow_nan=True)
    status, _, answer = _ask(echo, body)
    assert (status, json.loads(answer)["outputs"]["y"][-1]) == (200, False)


@pytest.mark.parametrize("body", [b'{"x": [1e39]}', b'{"x": [1e400]}'])
def test_numbers_that_become_infinite_are_refused(body: bytes) -> None:
    status, _, answer = _ask(_one([1], allow_nan=False), body)
    assert status == 400
    assert "fit float32" in json.loads(answer)["text"]
    assert _ask(_one([1], allow_nan=True), body)[0] == 200


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_answers_that_json_cannot_say_are_refused_or_null(value: float) -> None:
    status, _, answer = _ask(_one([0, value], allow_nan=False), _json({"x": [1, 2]}))
    assert (status, json.loads(answer)["error"]) == (500, "NotFinite")
    assert _ask(_one([0, value], allow_nan=False), _json({"x": [1]}))[0] == 200  # a finite answer of the same model
    _, _, answer = _ask(_one([0, value], allow_nan=True), _json({"x": [1, 2]}))
    assert json.loads(answer) == {"outputs": {"y": [0, None]}}


def test_files_of_numpy_hold_nan_as_it_is() -> None:
    app = PredictionApp(lambda arrays: [arrays[0] + 1], {"x": ((2,), np.dtype(np.float32))}, ["y"])
    status, _, answer = _ask(app, _npz(x=np.float32([[np.nan, np.inf]])), NPZ)
    assert status == 200
    np.testing.assert_array_equal(np.load(io.BytesIO(answer))["y"], np.float32([[np.nan, np.inf]]))


@pytest.mark.parametrize(
    ("body", "kind", "status", "text"),
    [
        (b"{bad", JSON, 400, "no JSON"),
        (b"\xff\xfe", JSON, 400, "no JSON"),
        (b"[" * 100_000, JSON, 400, "no JSON"),
        (b"", JSON, 400, "no JSON"),
        (_json([1, 2]), JSON, 400, "expected 'x', 'n', got list"),
        (_json({"x": [[1, 2]]}), JSON, 400, "expected 'x', 'n', got 'x'"),
        (_json({"x": [[1, 2]], "n": [1], "m": 0}), JSON, 400, "got 'm', 'n', 'x'"),
        (_json({"x": [[1, 2], [3]], "n": [1, 2]}), JSON, 400, "input 'x'"),
        (_json({"x": [[1, 2]], "n": [1, 2]}), JSON, 400, "different numbers of rows"),
        (_json({"x": [[1, 2, 3]], "n": [1]}), JSON, 400, "expected shape (1 to 1024, 2), got (1, 3)"),
        (_json({"x": [], "n": []}), JSON, 400, "expected shape"),
        (_json({"x": 3, "n": 1}), JSON, 400, "expected shape"),
        (_json({"x": [["a", "b"]], "n": [1]}), JSON, 400, "expected float32"),
        (_json({"x": [[1, None]], "n": [1]}), JSON, 400, "expected float32"),
        (_json({"x": [[1, 2]], "n": [1.5]}), JSON, 400, "expected int32, got float64"),
        (_json({"x": [[1, 2]], "n": [2**40]}), JSON, 400, "does not fit int32"),
        (_json({"x": [[1, 2]], "n": [2**80]}), JSON, 400, "expected int32"),
        (_json({"x": [[1, 2]] * 1025, "n": [1] * 1025}), JSON, 400, "1 to 1024"),
        (b"no file", NPZ, 400, "no readable file of NumPy"),
        (_npz(x=np.float32([[1, 2]])), NPY, 400, "not of type"),
        (_npz(x=np.array([object()])), NPZ, 400, "no readable file of NumPy"),
        (_json({"x": [[1, 2]] * 999 + [["1", "2"]], "n": [1]}), JSON, 400, "expected float32, got text"),
        (_npz(x=np.zeros(1, "V8"), n=np.int32([1])), NPZ, 400, "expected float32"),
        (_npz(x=np.zeros(1, [("a", "f4"), ("b", "i4")]), n=np.int32([1])), NPZ, 400, "expected float32"),
        (b"a=1", "application/x-www-form-urlencoded", 415, "got 'application/x-www-form-urlencoded'"),
        (b"x" * 2_000_000, JSON, 413, "1000000"),
    ],
)  # fmt: skip
def test_wrong_requests_are_refused_with_a_text(body: bytes, kind: str, status: int, text: str) -> None:
    found, answered, answer = _ask(_app(limits=Limits(body=1_000_000)), body, kind)
    assert (found, answered) == (status, JSON)
    assert text in json.loads(answer)["text"]


BLOWN_UP = """
import json, resource, sys
sys.path.insert(0, sys.argv[1])
from command_line.test_serve import JSON, NPZ, _app, _ask, _packed
_ask(_app(), b"", JSON)
resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))
for body, kind in (
    (json.dumps({"x": [["l" * 1_000_000, "s"]] + [["s", "s"]] * 5000, "n": [1]}).encode(), JSON),
    (json.dumps({"x": [["l" * 1_000_000]] + [["s", "s"]] * 5000, "n": [1]}).encode(), JSON),
    (_packed(4 << 30), NPZ),
):
    status, _, answer = _ask(_app(), body, kind)
    print(status, json.loads(answer)["error"])
status, _, answer = _ask(_app(), b"1", JSON, declared=b"9" * 5000)
print(status, json.loads(answer)["error"])
"""


def _packed(size: int) -> bytes:
    """A small .npz archive whose array unpacks to `size` bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w", force_zip64=True) as x:
        header = {"descr": "<f4", "fortran_order": False, "shape": (size // 4,)}
        np.lib.format.write_array_header_1_0(x, header)
        for _ in range(size >> 24):
            x.write(bytes(1 << 24))
    return file.getvalue()


def test_a_small_request_does_not_take_a_large_memory() -> None:
    """Each request would take gigabytes: elements as long as the longest text, an archive that unpacks to gigabytes."""
    done = subprocess.run(
        [sys.executable, "-c", BLOWN_UP, str(pathlib.Path(__file__).resolve().parents[1])],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["400 DTypeError", "400 ShapeError", "413 TooLarge", "413 TooLarge"]


@pytest.mark.parametrize(
    ("path", "method", "status"), [("/none", "GET", 404), ("/v1/predict", "GET", 405), ("/v1/model", "POST", 405)]
)
def test_wrong_paths_and_methods_are_refused(path: str, method: str, status: int) -> None:
    assert _ask(_app(), b"", JSON, path, method)[0] == status


def test_the_model_is_described() -> None:
    _, _, answer = _ask(_app(), b"", JSON, "/v1/model", "GET")
    assert json.loads(answer) == {
        "inputs": {"x": {"shape": [None, 2], "dtype": "float32"}, "n": {"shape": [None], "dtype": "int32"}},
        "outputs": ["product"],
    }


def test_requests_that_wait_share_a_call_and_get_their_own_rows() -> None:
    calls = []

    def call(arrays: list[np.ndarray]) -> list[np.ndarray]:
        calls.append(len(arrays[0]))
        time.sleep(0.05)
        return [arrays[0] * arrays[1][:, None]]

    app = _app(call, Limits(batch=8))

    async def all_of_them() -> list[Any]:
        bodies = [_json({"x": [[i, 1]] * (1 + i % 3), "n": [i] * (1 + i % 3)}) for i in range(20)]
        return await asyncio.gather(*(_asked(app, body, JSON) for body in bodies))

    for i, (status, _, answer) in enumerate(asyncio.run(all_of_them())):
        assert status == 200
        assert json.loads(answer)["outputs"]["product"] == [[i * i, i]] * (1 + i % 3)
    assert sum(calls) == sum(1 + i % 3 for i in range(20))
    assert len(calls) < 10
    assert max(calls) <= 8


def test_requests_wait_for_others_no_longer_than_said() -> None:
    calls = []

    def call(arrays: list[np.ndarray]) -> list[np.ndarray]:
        calls.append(len(arrays[0]))
        return [arrays[0]]

    async def spaced(app: PredictionApp, count: int) -> None:
        async def late(i: int) -> Any:
            await asyncio.sleep(i * 0.01)
            return await _asked(app, _json({"x": [[i, 1]], "n": [1]}), JSON)

        for i, (status, _, answer) in enumerate(await asyncio.gather(*map(late, range(count)))):
            assert (status, json.loads(answer)["outputs"]["product"]) == (200, [[i, 1]])

    asyncio.run(spaced(_app(call, Limits(batch=3, wait=5_000_000)), 6))
    assert calls == [3, 3]  # full batches do not wait
    calls.clear()
    begin = time.monotonic()
    asyncio.run(spaced(_app(call, Limits(batch=3, wait=100_000)), 2))
    assert calls == [2]
    assert 0.1 <= time.monotonic() - begin < 2


def test_a_request_that_the_model_refuses_fails_alone_also_in_a_shared_call(caplog: pytest.LogCaptureFixture) -> None:
    def call(arrays: list[np.ndarray]) -> list[np.ndarray]:
        if (arrays[1] == 0).any():
            raise mx.MXNetError("the model said no")
        return [arrays[0] * arrays[1][:, None]]

    async def all_of_them() -> list[Any]:
        app = _app(call, Limits(batch=8, wait=50_000))
        return await asyncio.gather(*(_asked(app, _json({"x": [[i, 1]], "n": [i]}), JSON) for i in range(8)))

    answers = asyncio.run(all_of_them())
    assert [record.getMessage() for record in caplog.records if "8 requests shared failed" in record.getMessage()]
    assert "the model said no" in caplog.text
    assert [status for status, _, _ in answers] == [500] + [200] * 7
    assert json.loads(answers[0][2])["text"] == "the model said no"
    for i, (_, _, answer) in enumerate(answers[1:], 1):
        assert json.loads(answer)["outputs"]["product"] == [[i * i, i]]


def test_shared_calls_that_fail_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def call(arrays: list[np.ndarray]) -> list[np.ndarray]:
        raise mx.MXNetError("the model said no")

    async def all_of_them() -> list[Any]:
        app = _app(call, Limits(batch=2, wait=50_000))
        return await asyncio.gather(*(_asked(app, _json({"x": [[i, 1]], "n": [i]}), JSON) for i in range(8)))

    assert [status for status, _, _ in asyncio.run(all_of_them())] == [500] * 8
    assert caplog.text.count("requests shared failed") == 1


def test_a_failing_call_fails_its_requests_alone() -> None:
    def call(arrays: list[np.ndarray]) -> list[np.ndarray]:
        if arrays[1][0] == 0:
            raise mx.MXNetError("the model said no")
        return [arrays[0]]

    app = _app(call)
    status, _, answer = _ask(app, _json({"x": [[1, 2]], "n": [0]}))
    assert (status, json.loads(answer)["text"]) == (500, "the model said no")
    assert _ask(app, _json({"x": [[1, 2]], "n": [1]}))[0] == 200


def test_foreign_errors_of_a_model_are_logged_and_not_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def call(arrays: list[np.ndarray]) -> list[np.ndarray]:
        raise ZeroDivisionError("secret")

    status, kind, answer = _ask(_app(call), _json({"x": [[1, 2]], "n": [1]}))
    assert (status, kind) == (500, JSON)
    assert json.loads(answer)["error"] == "ZeroDivisionError"
    assert b"secret" not in answer
    assert "secret" in caplog.text


def test_too_many_waiting_requests_are_refused_for_now() -> None:
    def call(arrays: list[np.ndarray]) -> list[np.ndarray]:
        time.sleep(0.1)
        return [arrays[0]]

    app = _app(call, Limits(batch=1, waiting=2))

    async def many() -> list[int]:
        body = _json({"x": [[1, 2]], "n": [1]})
        return [status for status, _, _ in await asyncio.gather(*(_asked(app, body, JSON) for _ in range(6)))]

    assert sorted(asyncio.run(many())) == [200, 200, 200, 503, 503, 503]


# --- the server -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    net = gluon.nn.Dense(3, in_units=4, prefix="served_")
    net.initialize(mx.init.Normal(1))
    net.hybridize()
    net(mx.nd.ones((1, 4)))
    prefix = str(tmp_path_factory.mktemp("serve") / "m")
    net.export(prefix)
    return prefix


@pytest.fixture
def server(model: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    child = subprocess.Popen(
        [sys.executable, "-m", "hybridnet", "serve", model, "--shape", "1,4", "--port", "0"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    port = int(child.stdout.readline().rpartition(":")[2])
    yield child, port
    child.kill()
    child.wait()
    child.stdout.close()


def _post(port: int, body: bytes) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", "/v1/predict", body, {"content-type": JSON})
    response = connection.getresponse()
    answer = response.status, json.loads(response.read())
    connection.close()
    return answer


def test_many_clients_get_the_outputs_of_the_model_and_sigterm_ends_it(server: Any, model: str) -> None:
    child, port = server
    block = gluon.SymbolBlock.imports(model + "-symbol.json", ["data"], model + "-0000.params")
    failures: list[Any] = []

    def client(number: int) -> None:
        x = np.random.RandomState(number).randn(1 + number % 3, 4).astype(np.float32)
        expected = block(mx.nd.array(x)).asnumpy()
        for _ in range(20):
            status, answer = _post(port, _json({"inputs": {"data": x.tolist()}}))
            found = np.array(next(iter(answer["outputs"].values())), np.float32) if status == 200 else answer
            if status != 200 or not np.allclose(found, expected, rtol=1e-5, atol=1e-6):
                failures.append((number, status, answer))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    child.send_signal(signal.SIGTERM)
    assert child.wait(30) == 0


def test_requests_under_way_are_finished_when_the_server_ends() -> None:
    begun = threading.Event()

    def slow(arrays: list[np.ndarray]) -> list[np.ndarray]:
        begun.set()
        time.sleep(0.6)
        return [arrays[0]]

    app = PredictionApp(slow, {"x": ((), np.dtype(np.float32))}, ["y"])
    runner = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical"))
    thread = threading.Thread(target=runner.run)
    thread.start()
    while not runner.started:
        time.sleep(0.01)
    port = runner.servers[0].sockets[0].getsockname()[1]
    answers: list[Any] = []
    client = threading.Thread(target=lambda: answers.append(_post(port, _json({"x": [7]}))))
    client.start()
    assert begun.wait(10)
    runner.should_exit = True
    client.join()
    thread.join(20)
    assert answers == [(200, {"outputs": {"y": [7]}})]
    assert not thread.is_alive()


def test_a_model_without_rows_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    mx.sym.sum(mx.sym.var("x")).save(str(tmp_path / "s-symbol.json"))
    assert main(["serve", str(tmp_path / "s"), "--shape", "x=1,4", "--port", "0"]) == WRONG_INPUT
    assert "expected 3 rows" in capsys.readouterr().err
    assert main(["serve", str(tmp_path / "s"), "--shape", "x=1,4", "--batch", "0"]) == WRONG_INPUT
    assert "--batch" in capsys.readouterr().err
