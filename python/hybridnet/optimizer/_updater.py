"""Updater: an optimizer together with its states, for trainers and key-value stores.

States are written as data, never as code: a magic, the length of a JSON header, the header (structure of the states,
shapes, element types, names of the parameters, and the optimizer's plain settings), then the values in sequence.
src/optimizer/state_file.cc reads and writes the same format for C, C++ and Java.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import lr_scheduler, ndarray
from ..errors import FormatError, HybridNetError
from ..errors import TypeError as HybridNetTypeError
from ..ndarray._dtypes import numpy_dtype
from .optimizer import Optimizer

if TYPE_CHECKING:
    from ..ndarray import NDArray

__all__ = ["Updater", "get_updater"]

_T = TypeVar("_T")

_MAGIC = b"HNSTATE1"
_MOST_CHANGES = 1_000_000_000  # limit of learning rate changes between two steps
_SCALARS = (bool, int, float, str, type(None))


def _describe(state: Any, values: list[bytes]) -> Any:
    """Returns the structure of a state as JSON values; appends the arrays' bytes to values."""
    if isinstance(state, (tuple, list)):
        return {"tuple": [_describe(item, values) for item in state]}
    if isinstance(state, ndarray.NDArray):
        array = state.asnumpy()
        values.append(array.tobytes())
        return {"shape": list(array.shape), "dtype": array.dtype.name}
    if isinstance(state, _SCALARS):
        return {"value": state}
    raise HybridNetTypeError(
        "optimizer states must be arrays, numbers, None or tuples of these", given=type(state).__name__
    )


class _Reader:
    """Reads arrays from the bytes after the header, checking every length."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = 0

    def restore(self, description: Any) -> Any:
        if "tuple" in description:
            return tuple(self.restore(item) for item in description["tuple"])
        if "value" in description:
            return description["value"]
        shape, dtype = tuple(description["shape"]), numpy_dtype(description["dtype"])
        if not all(isinstance(size, int) and size >= 0 for size in shape):
            raise FormatError(f"optimizer states: broken shape {shape}")
        end = self._position + math.prod(shape) * dtype.itemsize
        if end > len(self._data):
            raise FormatError(f"optimizer states end after {len(self._data)} bytes, {end} are needed")
        array = np.frombuffer(self._data[self._position : end], dtype).reshape(shape)
        self._position = end
        return ndarray.array(array, dtype=array.dtype)


def _plain(value: Any) -> bool:
    if isinstance(value, _SCALARS):
        return True
    if isinstance(value, list):
        return all(map(_plain, value))
    return isinstance(value, dict) and all(_plain(k) and _plain(v) for k, v in value.items())


def _encode(value: Any) -> Any:
    """Encodes dicts as lists of pairs, because JSON converts keys to text, and numbers outside of JSON as text."""
    if isinstance(value, dict):
        return {"pairs": [[key, _encode(item)] for key, item in value.items()]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        return float(value["number"]) if "number" in value else {key: _decode(i) for key, i in value["pairs"]}
    return value


def _settings(instance: Any) -> dict[str, Any]:
    """Returns the attributes of an object that are plain values."""
    return {name: _encode(value) for name, value in vars(instance).items() if _plain(value)}


def _describe_optimizer(optimizer: Optimizer) -> dict[str, Any]:
    scheduler = optimizer.lr_scheduler
    return {
        "class": type(optimizer).__name__,
        "settings": _settings(optimizer),
        "scheduler": None
        if scheduler is None
        else {"class": type(scheduler).__name__, "settings": _settings(scheduler)},
    }


def _restore_scheduler(current: Any, description: dict[str, Any] | None) -> Any:
    if description is None:
        return None
    if current is None or type(current).__name__ != description["class"]:
        klass = getattr(lr_scheduler, description["class"], None)
        if klass is None or not issubclass(klass, lr_scheduler.LRScheduler):
            raise FormatError(
                f"the states were saved with learning-rate scheduler {description['class']}",
                fix="create the optimizer with such a scheduler before loading",
            )
        current = klass.__new__(klass)
    current.__dict__.update({name: _decode(value) for name, value in description["settings"].items()})
    return current


def _renumbering(saved: Any, own: dict[str, Any]) -> dict[Any, Any] | None:
    """Maps indices in a file to ours by the names of the parameters; None: they are equal, or unknown.

    Raises FormatError for states of other parameters.
    """
    if saved is None or not own:
        return None
    found = {index: own[name] for index, name in saved if name in own}
    if len(found) == len(own):
        return found
    if len(saved) != len(own):
        raise FormatError(
            f"optimizer states: they belong to {len(saved)} parameters, and the trainer has {len(own)}; "
            f"{len(found)} names are equal",
            fix="make the trainer over the same parameters",
        )
    return None


def _moved(table: dict[Any, Any], places: dict[Any, Any]) -> dict[Any, Any]:
    return {places[index]: value for index, value in table.items() if index in places}


def _restore_optimizer(
    current: Optimizer, description: dict[str, Any], moved: dict[Any, Any] | None = None
) -> Optimizer:
    name = description["class"]
    if type(current).__name__ != name:
        klass = Optimizer.opt_registry.get(name.lower())
        if klass is None:
            raise FormatError(f"the states were saved with optimizer {name}, which is not registered")
        current = klass()
    settings = {key: _decode(value) for key, value in description["settings"].items()}
    counts = settings.get("_all_index_update_counts", {})
    if not isinstance(counts, dict) or not all(isinstance(each, dict) for each in counts.values()):
        raise FormatError("optimizer states: the numbers of updates are no tables")
    if moved is not None:
        settings["_all_index_update_counts"] = {device: _moved(each, moved) for device, each in counts.items()}
    current.__dict__.update(settings)
    current._index_update_count = current._all_index_update_counts.setdefault(0, {})
    current.lr_scheduler = _restore_scheduler(current.lr_scheduler, description["scheduler"])
    if isinstance(current.lr_scheduler, lr_scheduler.FactorScheduler):
        _check_distance(current.lr_scheduler, current.num_update)
    return current


def _check_distance(schedule: lr_scheduler.FactorScheduler, num_update: int) -> None:
    """Raises FormatError if the next rate would take minutes to compute: valid files store the changes so far."""
    if num_update - schedule.count > _MOST_CHANGES * schedule.step:
        raise FormatError(
            f"optimizer states: the schedule is at update {schedule.count}, more than {_MOST_CHANGES} changes behind "
            f"update {num_update}"
        )


class Updater:
    """Calls an optimizer and keeps the state of each weight by its index.

    Example: ``updater = get_updater(optimizer.create("sgd", momentum=0.9)); updater(0, grad, weight)``
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.states: dict[Any, Any] = {}
        self.states_synced: dict[Any, bool] = {}
        self.aggregate_updates = optimizer.aggregate_num > 0

    def __call__(self, index: Any, grad: Any, weight: Any) -> None:
        """Updates one weight, or lists of weights, in place."""
        if not isinstance(index, (list, tuple)):
            index, grad, weight = [index], [grad], [weight]
        if not weight:
            return
        # Optimizers are written with mx.nd; arrays of mx.np share their memory with the converted ones.
        grad, weight = [g.as_nd_ndarray() for g in grad], [w.as_nd_ndarray() for w in weight]
        self.optimizer._set_current_context(weight[0].context.device_id)
        states = [self._state(i, w) for i, w in zip(index, weight, strict=False)]
        items = list(zip(index, weight, grad, states, strict=False))
        if self.aggregate_updates:
            for members in self.groups_of(items, [item[1].dtype for item in items]):
                self.optimizer.update_multi_precision(*(list(column) for column in zip(*members, strict=False)))
        else:
            for item in items:
                self.optimizer.update_multi_precision(*item)

    def _state(self, index: Any, weight: NDArray) -> Any:
        if index not in self.states:
            self.states[index] = self.optimizer.create_state_multi_precision(index, weight)
            self.states_synced[index] = True
        elif not self.states_synced.get(index, True):
            self.states[index] = self.sync_state_context(self.states[index], weight.context)
            self.states_synced[index] = True
        return self.states[index]

    def groups_of(self, items: Sequence[_T], dtypes: Sequence[Any]) -> Iterator[list[_T]]:
        """Yields items, one for each weight, in the groups in which they are updated: together by dtype, or alone."""
        if not self.aggregate_updates:
            yield from ([item] for item in items)
            return
        groups: dict[Any, list[_T]] = {}
        for item, dtype in zip(items, dtypes, strict=True):
            groups.setdefault(dtype, []).append(item)
        most = self.optimizer.aggregate_num
        for members in groups.values():
            for begin in range(0, len(members), most):
                yield members[begin : begin + most]

    def sync_state_context(self, state: Any, context: Any) -> Any:
        """Returns the state with its arrays on context."""
        if isinstance(state, ndarray.NDArray):
            return state.as_in_context(context)
        if isinstance(state, (tuple, list)):
            return type(state)(self.sync_state_context(item, context) for item in state)
        return state

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """Returns all states as bytes; with dump_optimizer, also the optimizer's counts and settings."""
        return self.bytes_of(self.states, dump_optimizer)

    def bytes_of(self, states: Mapping[Any, Any], dump_optimizer: bool) -> bytes:
        """Returns some states as bytes."""
        values: list[bytes] = []
        header: dict[str, Any] = {"states": [[index, _describe(s, values)] for index, s in states.items()]}
        names = self._parameter_names()
        if names:
            header["parameters"] = [[index, name] for name, index in names.items()]
        if dump_optimizer:
            header["optimizer"] = _describe_optimizer(self.optimizer)
        text = json.dumps(header).encode()
        return b"".join([_MAGIC, len(text).to_bytes(8, "little"), text, *values])

    def _parameter_names(self) -> dict[str, Any]:
        """Returns the indices of the parameters by name, if a Trainer has set them."""
        return {param.name: index for index, param in self.optimizer.param_dict.items()}

    def set_states(self, states: bytes) -> None:
        """Restores states that get_states returned. Raises FormatError for anything else."""
        if states[: len(_MAGIC)] != _MAGIC:
            raise FormatError(
                "these are no optimizer states",
                because=(
                    "they do not start with the mark of this format; MXNet wrote pickles, which are not read because "
                    "they can run code"
                ),
                fix="start the optimizer afresh, or convert the states where MXNet is installed",
            )
        begin = len(_MAGIC) + 8
        end = begin + int.from_bytes(states[len(_MAGIC) : begin], "little")
        if end > len(states):
            raise FormatError(f"optimizer states end after {len(states)} bytes, {end} are needed")
        try:
            header = json.loads(states[begin:end])
            reader = _Reader(memoryview(states)[end:])
            restored = {index: reader.restore(description) for index, description in header["states"]}
            moved = _renumbering(header.get("parameters"), self._parameter_names())
            if moved is not None:
                restored = _moved(restored, moved)
            saved = header.get("optimizer")
            if saved is not None:
                self.optimizer = _restore_optimizer(self.optimizer, saved, moved)
        except HybridNetError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise FormatError(f"optimizer states: broken header ({error!r})") from error
        self.states = restored
        self.states_synced = dict.fromkeys(restored, False)
        self.aggregate_updates = self.optimizer.aggregate_num > 0


def get_updater(optimizer: Optimizer) -> Updater:
    """Returns an Updater for optimizer."""
    return Updater(optimizer)
