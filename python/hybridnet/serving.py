"""Predictions over HTTP, as an ASGI application: any ASGI server runs it, ``hybridnet serve`` runs it with uvicorn.

========  =====================  ======================================================================================
GET       /healthz               ``ok``
GET       /v1/model              names, shapes (null: the number of rows) and dtypes of inputs, names of outputs
POST      /v1/predict            JSON ``{"inputs": {name: nested lists}}`` gives ``{"outputs": {name: nested lists}}``;
                                 ``application/x-npy`` (the only input) and ``application/x-npz`` (by name) are answered
                                 in their own form
========  =====================  ======================================================================================

JSON has no NaN and no infinity. Requests and responses that contain them are refused, unless the application was
created with ``allow_nan``: it then accepts the words NaN, Infinity and -Infinity, and writes null. NumPy files may
contain them.

Errors are ``{"error": class, "text": text}``: 400 for invalid content, 404, 405, 413, 415, 503 if too many requests
wait. Requests that wait at the same time are combined into one call of the model, up to ``batch`` rows together; if
that call fails, each of them is run separately.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import time
import zipfile
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core, ndarray
from .errors import FormatError, HybridNetError
from .ndarray._foreign_files import numpy_arrays, write_numpy

__all__ = ["Limits", "PredictionApp", "call_of"]

_JSON, _NPY, _NPZ = "application/json", "application/x-npy", "application/x-npz"


@dataclass(frozen=True)
class Limits:
    """The limits of a single request and of all requests together."""

    body: int = 16 << 20  # bytes
    rows: int = 1024  # limit of one request
    batch: int = 64  # rows of one call that several requests share; 1: no sharing
    waiting: int = 1024  # requests
    wait: int = 0  # microseconds that a non-full call waits for more requests; 0: only while calls run


class _Refused(Exception):
    """Raised for a request that is answered with an error."""

    def __init__(self, status: int, kind: str, message: str, **parts: str) -> None:
        super().__init__(str(HybridNetError(message, **parts)))
        self.status, self.kind = status, kind


@dataclass
class _Request:
    inputs: list[np.ndarray]
    rows: int
    done: asyncio.Future[list[np.ndarray]]


class PredictionApp:
    """A model behind HTTP.

    Parameters
    ----------
    call : callable
        Takes a list of arrays, returns a list of arrays with as many rows as the inputs; called in threads.
    inputs : dict
        Name -> (shape of one row, dtype), in the order of call.
    outputs : list of str
    limits : Limits, optional
    threads : int, default 1
        Number of concurrent calls.
    allow_nan : bool, default False
        Whether JSON requests may contain NaN, Infinity and -Infinity; responses contain null instead.
    """

    def __init__(
        self,
        call: Callable[[list[np.ndarray]], list[np.ndarray]],
        inputs: dict[str, tuple[tuple[int, ...], np.dtype]],
        outputs: list[str],
        limits: Limits | None = None,
        threads: int = 1,
        allow_nan: bool = False,
    ) -> None:
        self._call, self._inputs, self._outputs, self._allow_nan = call, inputs, outputs, allow_nan
        self._limits = limits or Limits()
        self._pool = ThreadPoolExecutor(threads, "hybridnet-serve")
        most_ns = min(self._limits.wait * 1000, 1 << 62)
        self._queue = _core.RequestQueue(self._limits.batch, most_ns, self._limits.waiting, threads)
        self._has_told = False  # whether a failed shared call was logged
        self._timer: asyncio.TimerHandle | None = None  # runs until the oldest request has waited long enough
        self._running: set[asyncio.Task[None]] = set()

    async def __call__(
        self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        """Handles the request of one connection, as an ASGI application."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            try:
                status, kind, body = await self._answer(scope, receive)
            except _Refused as error:
                status, kind, body = error.status, _JSON, _error(error.kind, str(error))
            except HybridNetError as error:
                status, kind, body = 500, _JSON, _error(type(error).__name__, str(error))
            except Exception as error:  # its text may be confidential
                logging.getLogger(__name__).exception("a request of %s failed", scope["path"])
                text = "the model failed; the log of the server says where"
                status, kind, body = 500, _JSON, _error(type(error).__name__, text)
            headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
            if status == 413:  # the rest of the body was not read
                headers.append((b"connection", b"close"))
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    async def _lifespan(self, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
        while True:
            event = (await receive())["type"]
            await send({"type": f"{event}.complete"})
            if event == "lifespan.shutdown":
                self._pool.shutdown(wait=True)
                return

    async def _answer(self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]]) -> tuple[int, str, bytes]:
        routes: dict[str, str] = {"/healthz": "GET", "/v1/model": "GET", "/v1/predict": "POST"}
        path, method = scope["path"], scope["method"]
        if path not in routes:
            raise _Refused(404, "NotFound", f"there is no {path[:200]!r}; there are {', '.join(routes)}")
        if method != routes[path]:
            raise _Refused(405, "MethodNotAllowed", f"{path} takes {routes[path]}, not {method[:20]}")
        if path == "/healthz":
            return 200, "text/plain", b"ok"
        if path == "/v1/model":
            return 200, _JSON, json.dumps(self._description()).encode()
        kind = _content_type(scope)
        inputs = self._read(kind, await self._body(scope, receive))
        outputs = await self._predict(inputs)
        return 200, *self._write(kind, outputs)

    def _description(self) -> dict[str, Any]:
        inputs = {name: {"shape": [None, *row], "dtype": dtype.name} for name, (row, dtype) in self._inputs.items()}
        return {"inputs": inputs, "outputs": self._outputs}

    async def _body(self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]]) -> bytes:
        limit = self._limits.body
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not declared.isdigit() or len(declared) > 18 or int(declared) > limit:
            raise _Refused(
                413, "TooLarge", f"the body has {declared.decode('latin-1')[:20]} bytes, {limit} are allowed"
            )
        parts, size = [], 0
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                raise _Refused(400, "Disconnected", "the connection was closed inside the body")
            parts.append(event.get("body", b""))
            size += len(parts[-1])
            if size > limit:
                raise _Refused(413, "TooLarge", f"the body has more than {limit} bytes")
            if not event.get("more_body"):
                return b"".join(parts)

    # --- content ------------------------------------------------------------------------------------------------------

    def _read(self, kind: str, body: bytes) -> list[np.ndarray]:
        """Returns the checked inputs in order."""
        given = self._from_json(body) if kind == _JSON else self._from_numpy(kind, body)
        if not isinstance(given, dict) or set(given) != set(self._inputs):
            names = (
                ", ".join(map(repr, sorted(map(str, given))))[:500] if isinstance(given, dict) else type(given).__name__
            )
            raise _Refused(
                400, "ParamError", "inputs", expected=", ".join(map(repr, self._inputs)), given=names or "none"
            )
        arrays = [self._checked(name, given[name]) for name in self._inputs]
        if kind == _JSON and not self._allow_nan:
            self._check_finite(arrays)
        rows = {len(array) for array in arrays}
        if len(rows) > 1:
            raise _Refused(400, "ShapeError", f"inputs have different numbers of rows: {sorted(rows)}")
        return arrays

    def _from_json(self, body: bytes) -> Any:
        try:
            content = json.loads(body, parse_constant=None if self._allow_nan else _refuse_word)
        except (ValueError, RecursionError) as error:
            raise _Refused(400, "FormatError", f"the body is no JSON: {error}") from None
        return content.get("inputs", content) if isinstance(content, dict) else content

    def _from_numpy(self, kind: str, body: bytes) -> Any:
        unpacked, limit = _unpacked_bytes(body), self._limits.body
        if unpacked > limit:
            raise _Refused(413, "TooLarge", f"the arrays take {unpacked} bytes unpacked, {limit} are allowed")
        try:
            arrays = numpy_arrays(body, "body")
        except FormatError as error:
            raise _Refused(400, "FormatError", str(error)) from None
        if isinstance(arrays, dict) != (kind == _NPZ):
            raise _Refused(400, "FormatError", f"the body is not of type {kind}")
        return arrays if isinstance(arrays, dict) else dict.fromkeys(list(self._inputs)[:1], arrays)

    def _checked(self, name: str, value: Any) -> np.ndarray:
        row, dtype = self._inputs[name]
        if not isinstance(value, np.ndarray) and _has_text(value):
            raise _Refused(400, "DTypeError", f"input {name!r}", expected=dtype.name, given="text")
        try:
            array = np.asarray(value)
        except (ValueError, OverflowError, RecursionError) as error:
            raise _Refused(400, "ShapeError", f"input {name!r}: {error}") from None
        if array.size == 0 and array.dtype.kind == "f":
            array = array.astype(dtype)
        is_number = array.dtype.kind in "biuf" or array.dtype == dtype
        if not is_number or (array.dtype.kind == "f" and dtype.kind in "iu"):
            raise _Refused(400, "DTypeError", f"input {name!r}", expected=dtype.name, given=array.dtype.name)
        limit = self._limits.rows
        if array.shape[1:] != row or array.ndim == 0 or not 1 <= len(array) <= limit:
            wanted = f"(1 to {limit}, {', '.join(map(str, row))})"
            raise _Refused(400, "ShapeError", f"input {name!r}", expected=f"shape {wanted}", given=str(array.shape))
        if dtype.kind in "iu" and (array.min() < np.iinfo(dtype).min or array.max() > np.iinfo(dtype).max):
            raise _Refused(400, "ValueError", f"input {name!r}: a value does not fit {dtype.name}")
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(array.astype(dtype, copy=False))

    def _check_finite(self, arrays: list[np.ndarray]) -> None:
        """Refuses JSON values beyond the range of the input's dtype: 1e300 would become infinite in float32."""
        for name, array in zip(self._inputs, arrays, strict=True):
            if not _are_finite(array):
                raise _Refused(
                    400,
                    "ValueError",
                    f"input {name!r}",
                    expected=f"numbers that fit {array.dtype.name}",
                    given="one that is infinite there",
                )

    def _write(self, kind: str, outputs: list[np.ndarray]) -> tuple[str, bytes]:
        if kind == _JSON:
            for name, array in zip(self._outputs, outputs, strict=True):
                if not self._allow_nan and not _are_finite(array):
                    raise _Refused(
                        500,
                        "NotFinite",
                        f"output {name!r} holds NaN or infinity, which JSON cannot represent",
                        fix=f"ask for {_NPZ}, or start the server with --allow-nan, which writes null",
                    )
            lists = {name: _finite(array) for name, array in zip(self._outputs, outputs, strict=True)}
            return _JSON, json.dumps({"outputs": lists}).encode()
        alone = kind == _NPY and len(outputs) == 1
        file = io.BytesIO()
        write_numpy(file, outputs, None if alone else self._outputs)
        return _NPY if alone else _NPZ, file.getvalue()

    # --- calls --------------------------------------------------------------------------------------------------------

    async def _predict(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        if self._queue.is_full():
            raise _Refused(503, "Busy", f"{self._limits.waiting} requests wait already; try again later")
        request = _Request(inputs, len(inputs[0]) if inputs else 1, asyncio.get_running_loop().create_future())
        self._queue.push(request, request.rows, time.monotonic_ns())
        self._start()
        return await request.done

    def _start(self) -> None:
        """Assigns waiting requests to free threads."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while (start := self._queue.next_start()) is not None:
            left = start - time.monotonic_ns()
            if left > 0:
                self._timer = loop.call_later(left * 1e-9, self._start)
                return
            task = loop.create_task(self._run(self._queue.take()))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _run(self, batch: list[_Request]) -> None:
        try:
            await self._answer_batch(batch)
        finally:
            self._queue.end_call()
            self._start()

    async def _answer_batch(self, batch: list[_Request]) -> None:
        try:
            arrays = [
                np.concatenate(parts) if len(batch) > 1 else parts[0]
                for parts in zip(*(r.inputs for r in batch), strict=True)
            ]
            outputs = await asyncio.get_running_loop().run_in_executor(self._pool, self._call, arrays)
            begin = 0
            for request in batch:
                if not request.done.done():
                    request.done.set_result([output[begin : begin + request.rows] for output in outputs])
                begin += request.rows
        except Exception as error:
            if len(batch) > 1:  # separate runs show which request fails
                self._tell_failure(len(batch), error)
                for request in batch:
                    await self._answer_batch([request])
            elif not batch[0].done.done():
                batch[0].done.set_exception(error)

    def _tell_failure(self, count: int, error: Exception) -> None:
        """Logs only the first failed shared call, so that failing requests cannot flood the log."""
        if not self._has_told:
            self._has_told = True
            logging.getLogger(__name__).warning(
                "a call that %d requests shared failed, and each of them runs by itself now, as those of later calls "
                "that fail will; this is said once. The call said: %s: %s", count, type(error).__name__, error
            )  # fmt: skip


def _content_type(scope: dict[str, Any]) -> str:
    value = next((value for name, value in scope["headers"] if name == b"content-type"), _JSON.encode())
    kind = value.decode("latin-1").partition(";")[0].strip().lower()
    if kind not in (_JSON, _NPY, _NPZ):
        raise _Refused(
            415, "UnsupportedMediaType", "content-type", expected=f"{_JSON}, {_NPY} or {_NPZ}", given=repr(kind[:100])
        )
    return kind


def _unpacked_bytes(body: bytes) -> int:
    """Returns the declared unpacked size of an archive, an upper limit for reading. 0: it is not an archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            return sum(member.file_size for member in archive.infolist())
    except Exception:  # its reader will report the error
        return 0


def _has_text(value: Any) -> bool:
    """Whether regular nested lists contain text. NumPy would give every element the size of the longest text."""
    try:
        return str in set(map(type, np.array(value, dtype=object).ravel().tolist()))
    except ValueError:
        return False  # ragged: not an array either


def _refuse_word(word: str) -> float:
    raise _Refused(
        400,
        "ValueError",
        f"the body holds {word}, which is no number of JSON",
        fix=f"send {_NPZ}, which may hold it, or start the server with --allow-nan",
    )


def _are_finite(array: np.ndarray) -> bool:
    if array.dtype.kind not in "fV":
        return True
    return bool(np.isfinite(array.astype(np.float32) if array.dtype.itemsize == 2 else array).all())


def _finite(array: np.ndarray) -> Any:
    """Returns nested lists, with null for values that JSON does not have."""
    if array.dtype.kind not in "fV":
        return array.tolist()
    wide = array.astype(np.float32) if array.dtype.itemsize == 2 else array
    whole = np.isfinite(wide)
    if whole.all():
        return wide.tolist()
    mixed = wide.astype(object)
    mixed[~whole] = None
    return mixed.tolist()


def _error(kind: str, text: str) -> bytes:
    return json.dumps({"error": kind, "text": text}).encode()


def call_of(block: Any) -> Callable[[list[np.ndarray]], list[np.ndarray]]:
    """Wraps a hybridized block as a function of NumPy arrays."""

    def call(arrays: list[np.ndarray]) -> list[np.ndarray]:
        result = block(*(ndarray.array(array, dtype=array.dtype) for array in arrays))
        return [output.asnumpy() for output in (result if isinstance(result, (list, tuple)) else [result])]

    return call
