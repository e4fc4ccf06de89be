"""States of metrics and handlers as JSON values that are restored to the bit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ....metric import EvalMetric

__all__ = ["handler_states", "metric_states", "restore_handlers", "restore_metrics"]


def _encoded(value: Any) -> Any:
    """Returns a JSON value for numbers, texts, arrays, and lists, dicts and objects of these; None for others."""
    if isinstance(value, (np.generic, np.ndarray)):
        return {"dtype": value.dtype.str, "shape": list(value.shape), "values": np.asarray(value).ravel().tolist()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return {"list": [_encoded(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[key, _encoded(item)] for key, item in value.items()]}
    if hasattr(value, "__dict__") and type(value).__module__.startswith("hybridnet.metric"):
        return {"attributes": _encoded_attributes(value)}
    return None


def _encoded_attributes(owner: Any) -> dict[str, Any]:
    return {name: _encoded(value) for name, value in vars(owner).items() if not name.startswith("__")}


def _decoded(value: Any, current: Any) -> Any:
    """The inverse of _encoded; current: the attribute that the value replaces."""
    if not isinstance(value, dict):
        return value
    if "dtype" in value:
        array = np.array(value["values"], np.dtype(value["dtype"])).reshape(value["shape"])
        return array if value["shape"] else array[()]
    if "list" in value:
        return [_decoded(item, None) for item in value["list"]]
    if "dict" in value:
        return {key: _decoded(item, None) for key, item in value["dict"]}
    _set_attributes(current, value["attributes"])
    return current


def _set_attributes(owner: Any, values: dict[str, Any]) -> None:
    for name, value in values.items():
        current = getattr(owner, name, None)
        if value is not None or current is None:
            setattr(owner, name, _decoded(value, current))


# Attributes of a metric that are its settings, not its counts.
_SETTINGS = {"name", "output_names", "label_names", "_has_global_stats", "_kwargs"}


def metric_states(metrics: Iterable[EvalMetric]) -> list[dict[str, Any]]:
    """Returns the counts of each metric."""
    return [
        {name: value for name, value in _encoded_attributes(metric).items() if name not in _SETTINGS}
        for metric in metrics
    ]


def restore_metrics(metrics: Iterable[EvalMetric], states: list[dict[str, Any]]) -> None:
    """Sets the counts that metric_states() returned for the same list of metrics."""
    for metric, state in zip(metrics, states, strict=False):
        _set_attributes(metric, state)


def _keyed(handlers: Iterable[Any]) -> Iterable[tuple[str, Any]]:
    """Yields each handler with a key: its class, and its number among the handlers of this class."""
    counts: dict[str, int] = {}
    for handler in handlers:
        name = type(handler).__name__
        counts[name] = counts.get(name, -1) + 1
        yield f"{name} {counts[name]}", handler


def handler_states(handlers: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """Returns the attributes in ``state_names`` of each handler."""
    return {
        key: {name: _encoded(getattr(handler, name)) for name in handler.state_names if hasattr(handler, name)}
        for key, handler in _keyed(handlers)
        if getattr(handler, "state_names", ())
    }


def restore_handlers(handlers: Iterable[Any], states: dict[str, dict[str, Any]]) -> None:
    """Sets the attributes that handler_states() returned; handlers that had no state then are unchanged."""
    for key, handler in _keyed(handlers):
        _set_attributes(handler, states.get(key, {}))
