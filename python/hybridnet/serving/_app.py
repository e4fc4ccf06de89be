"""The ASGI application: paths, limits of bodies, and calls that requests share."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from .. import _core, ndarray
from ..context import Context, cpu
from ..errors import HybridNetError
from ._access_log import AccessLog
from ._content import JSON, Content, Inputs, Limits, Refused, content_type
from ._docs_page import docs_page
from ._metrics import CONTENT_TYPE, Metrics

__all__ = ["PredictionApp", "call_of"]

_LOG = logging.getLogger("hybridnet.serving")
_PREDICT = "/v1/predict"
_ROUTES = {"/healthz": "GET", "/v1/model": "GET", _PREDICT: "POST", "/metrics": "GET", "/docs": "GET"}
_HTML = "text/html; charset=utf-8"


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
        Name -> (shape of one row, dtype), in the order of call. A name in place of a size means that requests choose
        it; equal names are equal sizes. Requests of different sizes do not share calls.
    outputs : list of str
    limits : Limits, optional
    threads : int, default 1
        Number of concurrent calls.
    allow_nan : bool, default False
        Whether JSON requests may contain NaN, Infinity and -Infinity; responses contain null instead.
    name : str, default "model"
        The title of the page /docs.
    log : AccessLog, optional
        Gets a line for each request.
    """

    def __init__(
        self,
        call: Callable[[list[np.ndarray]], list[np.ndarray]],
        inputs: Inputs,
        outputs: list[str],
        limits: Limits | None = None,
        threads: int = 1,
        allow_nan: bool = False,
        name: str = "model",
        log: AccessLog | None = None,
    ) -> None:
        self._call, self._inputs, self._outputs, self._name, self.log = call, inputs, outputs, name, log
        self._limits = limits or Limits()
        self._content = Content(inputs, outputs, self._limits, allow_nan)
        self._has_free = any(isinstance(size, str) for row, _ in inputs.values() for size in row)
        self._metrics = Metrics(self._limits.batch)
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
            begin = time.monotonic_ns()
            status, kind, body = await self._answer(scope, receive)
            seconds = (time.monotonic_ns() - begin) * 1e-9
            path = scope["path"]
            self._metrics.note_request(path if path in _ROUTES else "other", status)
            if path == _PREDICT:
                self._metrics.note_prediction(seconds)
            headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
            if status == 413:  # the rest of the body was not read
                headers.append((b"connection", b"close"))
            if kind == _HTML:  # the page needs its own style only
                headers.append((b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"))
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})
            if self.log is not None:
                self.log.write(scope, status, len(body), seconds)

    async def _answer(self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]]) -> tuple[int, str, bytes]:
        """Returns status, content type and body, also for failures."""
        try:
            return await self._respond(scope, receive)
        except Refused as error:
            status, kind, text = error.status, error.kind, str(error)
        except HybridNetError as error:
            status, kind, text = 500, type(error).__name__, str(error)
        except Exception as error:  # its text may be confidential
            _LOG.exception("a request of %s failed", scope["path"])
            status, kind, text = 500, type(error).__name__, "the model failed; the log of the server says where"
        self._metrics.note_error(kind)
        return status, JSON, json.dumps({"error": kind, "text": text}).encode()

    async def _lifespan(self, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
        while True:
            event = (await receive())["type"]
            await send({"type": f"{event}.complete"})
            if event == "lifespan.shutdown":
                self._pool.shutdown(wait=True)
                return

    async def _respond(self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]]) -> tuple[int, str, bytes]:
        path, method = scope["path"], scope["method"]
        if path not in _ROUTES:
            raise Refused(404, "NotFound", f"there is no {path[:200]!r}; there are {', '.join(_ROUTES)}")
        if method != _ROUTES[path]:
            raise Refused(405, "MethodNotAllowed", f"{path} takes {_ROUTES[path]}, not {method[:20]}")
        if path == _PREDICT:
            kind = content_type(scope)
            inputs = self._content.read(kind, await self._body(scope, receive))
            outputs = await self._predict(inputs)
            return 200, *self._content.write(kind, outputs)
        if path == "/v1/model":
            return 200, JSON, json.dumps(self._description()).encode()
        if path == "/metrics":
            return 200, CONTENT_TYPE, self._metrics.text().encode()
        if path == "/docs":
            return 200, _HTML, docs_page(self._name, self._inputs, self._outputs, self._limits, scope).encode()
        return 200, "text/plain", b"ok"

    def _description(self) -> dict[str, Any]:
        inputs = {
            name: {"shape": [None, *(None if isinstance(n, str) else n for n in row)], "dtype": dtype.name}
            for name, (row, dtype) in self._inputs.items()
        }
        return {"inputs": inputs, "outputs": self._outputs}

    async def _body(self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]]) -> bytes:
        limit = self._limits.body
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not declared.isdigit() or len(declared) > 18 or int(declared) > limit:
            raise Refused(413, "TooLarge", f"the body has {declared.decode('latin-1')[:20]} bytes, {limit} are allowed")
        parts, size = [], 0
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                raise Refused(400, "Disconnected", "the connection was closed inside the body")
            parts.append(event.get("body", b""))
            size += len(parts[-1])
            if size > limit:
                raise Refused(413, "TooLarge", f"the body has more than {limit} bytes")
            if not event.get("more_body"):
                return b"".join(parts)

    # --- calls --------------------------------------------------------------------------------------------------------

    async def _predict(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        if self._queue.is_full():
            raise Refused(503, "Busy", f"{self._limits.waiting} requests wait already; try again later")
        request = _Request(inputs, len(inputs[0]) if inputs else 1, asyncio.get_running_loop().create_future())
        self._queue.push(request, request.rows, time.monotonic_ns())
        self._metrics.waiting += 1
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
            batch = self._queue.take()
            self._metrics.waiting -= len(batch)
            task = loop.create_task(self._run(batch))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _run(self, batch: list[_Request]) -> None:
        self._metrics.running += 1
        try:
            if self._has_free and len(batch) > 1:
                for _, part in groupby(sorted(batch, key=_row_shapes), _row_shapes):
                    await self._answer_batch(list(part))
            else:
                await self._answer_batch(batch)
        finally:
            self._metrics.running -= 1
            self._queue.end_call()
            self._start()

    async def _answer_batch(self, batch: list[_Request]) -> None:
        try:
            arrays = [
                np.concatenate(parts) if len(batch) > 1 else parts[0]
                for parts in zip(*(r.inputs for r in batch), strict=True)
            ]
            self._metrics.note_call(len(arrays[0]) if arrays else 1, len(batch))
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
            _LOG.warning(
                "a call that %d requests shared failed, and each of them runs by itself now, as those of later calls "
                "that fail will; this is said once. The call said: %s: %s", count, type(error).__name__, error
            )  # fmt: skip


def _row_shapes(request: _Request) -> list[tuple[int, ...]]:
    return [array.shape[1:] for array in request.inputs]


def call_of(block: Any, ctx: Context | None = None) -> Callable[[list[np.ndarray]], list[np.ndarray]]:
    """Wraps a hybridized block as a function of NumPy arrays; ctx: the block's device, by default the CPU."""
    ctx = cpu() if ctx is None else ctx

    def call(arrays: list[np.ndarray]) -> list[np.ndarray]:
        result = block(*(ndarray.array(array, dtype=array.dtype, ctx=ctx) for array in arrays))
        return [output.asnumpy() for output in (result if isinstance(result, (list, tuple)) else [result])]

    return call
