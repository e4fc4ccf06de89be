"""The page /docs of a server: the model, its limits, and requests that can be copied. It loads nothing else."""

from __future__ import annotations

import json
import math
import re
from html import escape
from typing import Any

import numpy as np

from ._content import Inputs, Limits

__all__ = ["docs_page"]

_MOST_SHOWN = 64  # numbers of an input in a request of JSON
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{border:1px solid #8888;padding:.2rem .7rem;text-align:left}"
    "pre{background:#8882;padding:.8rem;overflow-x:auto}:root{color-scheme:light dark}"
)
_PYTHON_NUMPY = """import io
import urllib.request

import numpy as np

inputs = {{{inputs}}}
body = io.BytesIO()
np.savez(body, **inputs)
request = urllib.request.Request("{address}/v1/predict", body.getvalue(), {{"content-type": "application/x-npz"}})
outputs = np.load(io.BytesIO(urllib.request.urlopen(request).read()))
for name in outputs:
    print(name, outputs[name].shape, outputs[name].dtype)
"""
_PYTHON_JSON = """import json
import urllib.request

body = json.dumps({body})
request = urllib.request.Request("{address}/v1/predict", body.encode(), {{"content-type": "application/json"}})
for name, values in json.load(urllib.request.urlopen(request))["outputs"].items():
    print(name, values)
"""
_CURL_JSON = """curl -X POST {address}/v1/predict -H 'content-type: application/json' \\
  -d '{body}'
"""
_CURL_NUMPY = """python3 -c 'import numpy as np; np.savez("inputs.npz", **{{{inputs}}})'
curl -X POST {address}/v1/predict -H 'content-type: application/x-npz' \\
  --data-binary @inputs.npz -o outputs.npz
"""


def docs_page(name: str, inputs: Inputs, outputs: list[str], limits: Limits, scope: dict[str, Any]) -> str:
    """Returns the page in HTML. scope: that of ASGI, whose address stands in the requests."""
    curl, python = _samples(inputs, _address(scope))
    shapes = [(key, dtype.name, _shape_text(row)) for key, (row, dtype) in inputs.items()]
    bounds = [
        ("rows of a request", f"1 to {limits.rows}"),
        ("bytes of a request", f"at most {limits.body}"),
        ("requests that wait", f"at most {limits.waiting}"),
        ("rows of a call that requests share", f"at most {limits.batch}"),
    ]
    links = " ".join(f'<a href="{path}">{path}</a>' for path in ("/v1/model", "/metrics", "/healthz"))
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{escape(name)}</title><style>{_STYLE}</style></head><body>",
            f"<h1>{escape(name)}</h1>",
            "<p><code>POST /v1/predict</code> takes JSON or NumPy files and answers in the same form.</p>",
            f"<h2>Inputs</h2>{_table(('name', 'dtype', 'shape'), shapes)}",
            _remark(inputs),
            f"<h2>Outputs</h2>{_table(('name',), [(output,) for output in outputs])}",
            f"<h2>Request with curl</h2><pre>{escape(curl, quote=False)}</pre>",
            f"<h2>Request with Python</h2><pre>{escape(python, quote=False)}</pre>",
            f"<h2>Limits</h2>{_table(('limit', 'value'), bounds)}",
            "<p>Errors are JSON: <code>{&quot;error&quot;: class, &quot;text&quot;: text}</code>, with status 400 (the"
            " content is wrong), 413 (too large), 415 (another type) or 503 (too many requests wait).</p>",
            f"<p>{links}</p></body></html>",
            "",
        ]
    )


def _remark(inputs: Inputs) -> str:
    names = {size for row, _ in inputs.values() for size in row if isinstance(size, str)}
    free = f" Each request also chooses {', '.join(sorted(map(escape, names)))}." if names else ""
    return f"<p><code>rows</code> is the number of examples of the request, the same for all inputs.{free}</p>"


def _shape_text(row: tuple[int | str, ...]) -> str:
    return f"({', '.join(['rows', *map(str, row)])}{'' if row else ','})"


def _table(head: tuple[str, ...], rows: list[Any]) -> str:
    lines = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr>{lines}</table>"


def _address(scope: dict[str, Any]) -> str:
    """Returns the address that the client used; its header is foreign text, so only letters of addresses pass."""
    host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
    return f"http://{host}" if re.fullmatch(r"[A-Za-z0-9.:\[\]_-]{1,255}", host) else "http://127.0.0.1:8080"


def _samples(inputs: Inputs, address: str) -> tuple[str, str]:
    """Returns requests of one row for curl and Python: small inputs as JSON, large ones as files of NumPy."""
    shapes = {name: (1, *(1 if isinstance(n, str) else n for n in row)) for name, (row, _) in inputs.items()}
    has_no_file_form = any(dtype.kind == "V" for _, dtype in inputs.values())  # files of NumPy have no bfloat16
    if has_no_file_form or sum(map(math.prod, shapes.values())) <= _MOST_SHOWN:
        body = {"inputs": {name: np.zeros(shape, "int8").tolist() for name, shape in shapes.items()}}
        # Names may contain quotes: the shell's are closed, escaped and opened again.
        curl = _CURL_JSON.format(address=address, body=json.dumps(body).replace("'", "'\\''"))
        return curl, _PYTHON_JSON.format(address=address, body=repr(body))
    values = ", ".join(
        f"{json.dumps(name)}: np.zeros({shapes[name]}, {json.dumps(dtype.name)})" for name, (_, dtype) in inputs.items()
    )
    curl = _CURL_NUMPY.format(address=address, inputs=values.replace("'", "'\\''"))
    return curl, _PYTHON_NUMPY.format(address=address, inputs=values)
