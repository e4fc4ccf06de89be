"""Predictions over HTTP, as an ASGI application: any ASGI server runs it, ``hybridnet serve`` runs it with uvicorn.

========  =====================  ======================================================================================
GET       /healthz               ``ok``
GET       /v1/model              names, shapes (null: the number of rows) and dtypes of inputs, names of outputs
POST      /v1/predict            JSON ``{"inputs": {name: nested lists}}`` gives ``{"outputs": {name: nested lists}}``;
                                 ``application/x-npy`` (the only input) and ``application/x-npz`` (by name) are answered
                                 in their own form
GET       /metrics               counts, latencies, rows of calls and the queue, in the text format of Prometheus
GET       /docs                  a page about the model: inputs, outputs, limits, and requests to copy
========  =====================  ======================================================================================

JSON has no NaN and no infinity. Requests and responses that contain them are refused, unless the application was
created with ``allow_nan``: it then accepts the words NaN, Infinity and -Infinity, and writes null. NumPy files may
contain them.

Errors are ``{"error": class, "text": text}``: 400 for invalid content, 404, 405, 413, 415, 503 if too many requests
wait. Requests that wait at the same time are combined into one call of the model, up to ``batch`` rows together; if
that call fails, each of them is run separately.
"""

from .._public_names import dir_of
from ._access_log import AccessLog
from ._app import PredictionApp, call_of
from ._content import Limits

__all__ = ["AccessLog", "Limits", "PredictionApp", "call_of"]

__dir__ = dir_of(__name__)
