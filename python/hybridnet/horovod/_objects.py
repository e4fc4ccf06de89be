"""Objects between processes, as JSON: pickles can run code, so they are never sent."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from .. import ndarray
from ..errors import UnsupportedError
from ._calls import allgather, broadcast_
from ._processes import ProcessSet, check_process_set, global_process_set, rank, size

_REFUSAL = b"\0"  # begins the message of a process that has no JSON; no JSON text does


def _problem(value: Any, place: str = "the object") -> str | None:
    """Returns the reason why JSON would not return an equal value of the same type; None if it would."""
    if value is None or type(value) in (bool, int, str):
        return None
    if type(value) is float:
        return None if math.isfinite(value) else f"{place} is {value}"
    if type(value) is list:
        items = [(item, f"{place}[{i}]") for i, item in enumerate(value)]
    elif type(value) is dict:
        for key in value:
            if type(key) is not str:
                return f"{place} has the key {key!r}"
        items = [(item, f"{place}[{key!r}]") for key, item in value.items()]
    else:
        return f"{place} is a {type(value).__name__}"
    return next((found for item, inner in items if (found := _problem(item, inner))), None)


def _encoded(value: Any) -> np.ndarray[Any, Any]:
    try:
        problem = _problem(value)
        text = json.dumps(value).encode() if problem is None else _REFUSAL + problem.encode()
    except RecursionError:
        text = _REFUSAL + b"the object is nested too deeply"
    return np.frombuffer(text, np.uint8)


def _decoded(call: str, data: np.ndarray[Any, Any], owner: int) -> Any:
    text = data.tobytes()
    if text.startswith(_REFUSAL):
        raise UnsupportedError(
            f"{call}: the object of rank {owner}",
            expected="a value of JSON: None, bool, int, finite float, str, list, or dict with str keys",
            because=f"{text[1:].decode()}, and pickles are not sent, because they can run code",
            fix="convert tuples by list(), numbers by float() or int(); send arrays by hvd.broadcast or hvd.allgather",
        )
    return json.loads(text)


def broadcast_object(
    obj: Any, root_rank: int = 0, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    """Returns a copy of the object of the process root_rank, a value of JSON; the objects of the others are ignored.

    Raises UnsupportedError in all processes if it is no value of JSON; ValueError for root_rank.
    """
    check_process_set("hvd.broadcast_object", process_set)
    name = name or "broadcast_object"
    data = _encoded(obj if rank() == root_rank else None)
    length = ndarray.array([data.size], dtype="int64")
    count = int(broadcast_(length, root_rank, f"length of {name}").asnumpy()[0])
    values = data if rank() == root_rank else np.zeros(count, np.uint8)
    sent = broadcast_(ndarray.array(values, dtype="uint8"), root_rank, name)
    return _decoded("hvd.broadcast_object", sent.asnumpy(), root_rank)


def allgather_object(obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set) -> list[Any]:
    """Returns copies of the objects of all processes, values of JSON, in the order of ranks.

    Raises UnsupportedError in all processes if one of them is no value of JSON.
    """
    check_process_set("hvd.allgather_object", process_set)
    name = name or "allgather_object"
    data = _encoded(obj)
    lengths = allgather(ndarray.array([data.size], dtype="int64"), f"lengths of {name}").asnumpy()
    joined = allgather(ndarray.array(data, dtype="uint8"), name).asnumpy()
    parts = np.split(joined, np.cumsum(lengths)[:-1])
    return [_decoded("hvd.allgather_object", parts[other], other) for other in range(size())]
