"""Serves a model over HTTP: JSON or NumPy files as input and output. Needs uvicorn (pip install hybridnet[serve]).

Answers requests until SIGTERM or SIGINT; then it accepts no more requests and finishes the current ones. Requests that
wait at the same time share a call (--batch). There is no encryption and no authentication: use a proxy for those.
/docs is a page with requests to copy, /metrics has measurements for Prometheus. docs/serving.md explains both.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
from typing import Any

import numpy as np

from ..errors import ParamError, ShapeError, UnsupportedError
from ..serving import AccessLog, Limits, PredictionApp, call_of
from ..serving._content import Inputs
from ._model_paths import GRAPH_ENDING
from ._models import Model, add_model_arguments, open_model, random_value
from ._shapes import Specs, add_shape_argument, shapes_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the model, address and limits."""
    limits = Limits()
    add_model_arguments(parser, has_device=True)
    add_shape_argument(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; default 127.0.0.1")
    parser.add_argument("--port", type=int, default=8080, help="default 8080; 0: any free one, which is printed")
    parser.add_argument("--threads", type=int, default=1, help="calls of the model at one time; default 1")
    parser.add_argument(
        "--batch", type=int, default=limits.batch, help=f"rows of a shared call; default {limits.batch}"
    )
    parser.add_argument(
        "--batch-wait",
        type=int,
        default=limits.wait,
        metavar="MICROSECONDS",
        help="how long a request waits for others to share its call; default 0: only while calls run",
    )
    parser.add_argument("--max-rows", type=int, default=limits.rows, help=f"of a request; default {limits.rows}")
    parser.add_argument("--max-body", type=int, default=limits.body, help=f"bytes; default {limits.body}")
    parser.add_argument(
        "--allow-nan",
        action="store_true",
        help="read the words NaN, Infinity and -Infinity in JSON, write null for such outputs; else both are refused",
    )
    parser.add_argument(
        "--log",
        metavar="FILE|-|none",
        default="none",
        help="a line for each request, appended to a file or printed (-); SIGHUP opens the file again; default none",
    )
    parser.add_argument("--max-waiting", type=int, default=limits.waiting, help=f"requests; default {limits.waiting}")


def _check_rows(model: Model, call: Any, specs: Specs) -> None:
    """Raises ShapeError unless outputs have as many rows as inputs: otherwise requests cannot share a call."""
    for rows in (1, 3):
        inputs = [random_value((rows, *specs[name][0][1:]), specs[name][1], rows).asnumpy() for name in model.inputs]
        for name, output in zip(model.symbol.list_outputs(), call(inputs), strict=True):
            if output.ndim == 0 or len(output) != rows:
                raise ShapeError(
                    f"serve: output {name!r} for inputs of {rows} rows",
                    expected=f"{rows} rows",
                    given=f"shape {output.shape}",
                    because="the results are split among the requests by rows",
                    fix="export a model whose first axis is the batch, in all inputs and outputs",
                )


def make_app(options: argparse.Namespace) -> PredictionApp:
    """Creates the application from the options of the command."""
    for name in ("threads", "batch", "max_rows", "max_body", "max_waiting"):
        if getattr(options, name) < 1:
            raise ParamError(
                f"serve: --{name.replace('_', '-')}", expected="at least 1", given=str(getattr(options, name))
            )
    if options.batch_wait < 0:
        raise ParamError("serve: --batch-wait", expected="0 or more", given=str(options.batch_wait))
    if not 0 <= options.port <= 65535:
        raise ParamError(
            "serve: --port",
            expected="0 to 65535",
            given=str(options.port),
            fix="give --port 8080, or --port 0 for any free one",
        )
    model = open_model(options)
    if not model.inputs:
        raise ParamError(f"serve: '{model.path}' has no inputs")
    specs = shapes_of(model, options.shape, says_choice=False)
    for name, (shape, _) in specs.items():
        if not shape:
            raise ShapeError(f"serve: input {name!r}", expected="a first axis of rows", given="shape ()")
    block = model.block()
    block.hybridize(static_alloc=True)
    call = call_of(block, model.ctx)
    _check_rows(model, call, specs)
    limits = Limits(options.max_body, options.max_rows, options.batch, options.max_waiting, options.batch_wait)
    log = None if options.log == "none" else AccessLog(options.log)
    title = os.path.basename(model.path).removesuffix(GRAPH_ENDING)
    rows = _rows_of(model, specs, options)
    return PredictionApp(
        call, rows, model.symbol.list_outputs(), limits, options.threads, options.allow_nan, title, log
    )


def _rows_of(model: Model, specs: Specs, options: argparse.Namespace) -> Inputs:
    """Returns the shapes of rows; sizes that the file leaves free and --shape does not fix are names."""
    rows: dict[str, tuple[tuple[int | str, ...], np.dtype]] = {}
    is_free = not options.shape
    for name in model.inputs:
        shape, dtype = specs[name]
        spec = model.specs.get(name)
        rows[name] = (spec.shape[1:] if spec and is_free else shape[1:]), dtype
    return rows


def run(options: argparse.Namespace) -> int:
    """Serves until a signal arrives."""
    try:
        import uvicorn
    except ImportError:
        raise UnsupportedError("serve needs uvicorn", fix="pip install uvicorn httptools") from None
    app = make_app(options)
    config = uvicorn.Config(
        app,
        host=options.host,
        port=options.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        ws="none",
    )
    server = _server(config)
    signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn raises the signal again when it has finished
    log = app.log
    if log is not None:
        reopen = log.reopen
        signal.signal(signal.SIGHUP, lambda *_: reopen())
    with contextlib.suppress(KeyboardInterrupt):
        server.run()
    if log is not None:
        log.close()
    return 0 if server.started else 3


def _server(config: Any) -> Any:
    """Returns uvicorn's server, which prints its address as soon as it listens."""
    import uvicorn

    class Announcing(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            for server in self.servers if self.started else []:
                for socket in server.sockets:
                    host, port = socket.getsockname()[:2]
                    print(f"http://{host}:{port}", flush=True)

    return Announcing(config)
