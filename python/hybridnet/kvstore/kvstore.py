"""KVStore: arrays by key, in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import ndarray
from .. import optimizer as opt
from .._files import read_bytes, replacing
from .._public_names import dir_of
from ..errors import ParamError, ShapeError, UnsupportedError
from ..ndarray import NDArray, sparse
from ._compression import GradientCompression
from .base import KVStoreBase

__all__ = ["KVStore"]


def _pairs(key: Any, value: Any) -> list[tuple[Any, list[NDArray]]]:
    """Returns (key, arrays) pairs from one key with an array or a list of them, or from lists of both."""
    if isinstance(key, (list, tuple)):
        if not isinstance(value, (list, tuple)) or len(key) != len(value):
            raise ParamError("KVStore: a list of keys needs an equally long list of values")
        return [pair for k, v in zip(key, value, strict=True) for pair in _pairs(k, v)]
    if not isinstance(key, (int, str)):
        raise ParamError("KVStore: keys are int or str", given=type(key).__name__)
    arrays = list(value) if isinstance(value, (list, tuple)) else [value]
    for array in arrays:
        if not isinstance(array, NDArray):
            raise ParamError(f"KVStore: key {key!r}: values are NDArrays", given=type(array).__name__)
    return [(key, arrays)]


def _flat(nested: Any) -> list[Any]:
    return [leaf for item in nested for leaf in (_flat(item) if isinstance(item, (list, tuple)) else [item])]


def _total(arrays: list[NDArray]) -> NDArray:
    """Returns the sum on the first array's context; the array itself if it is the only one."""
    if len(arrays) == 1:
        return arrays[0]
    return ndarray.add_n(*(array.as_in_context(arrays[0].context) for array in arrays))


class KVStore(KVStoreBase):
    """Arrays by key: ``init`` once, ``push`` sums, ``pull`` reads. Created by ``mx.kv.create('local')``.

    With an optimizer or updater, pushed arrays are gradients that update the stored arrays.
    """

    def __init__(self, name: str = "local") -> None:
        self._name = name
        self._stored: dict[Any, NDArray] = {}
        self._key_type: type | None = None
        self._updater: Callable[..., None] | None = None
        self._optimizer_updater: opt.Updater | None = None
        self._compression: GradientCompression | None = None

    def _pairs(self, key: Any, value: Any) -> list[tuple[Any, list[NDArray]]]:
        pairs = _pairs(key, value)
        for k, _ in pairs:
            kind = str if isinstance(k, str) else int
            self._key_type = self._key_type or kind
            if kind is not self._key_type:
                raise ParamError(
                    "KVStore",
                    expected=f"keys of type {self._key_type.__name__}",
                    given=repr(k),
                    because="keys do not mix",
                )
        return pairs

    # -- values -----------------------------------------------------------------------------------------------------

    def init(self, key: Any, value: Any) -> None:
        """Stores initial values: a key with an array, or lists of both. Raises ParamError if a key exists."""
        for k, arrays in self._pairs(key, value):
            if k in self._stored:
                raise ParamError(f"KVStore.init: key {k!r} was initialized already")
            self._stored[k] = arrays[0].copy()

    def _at(self, key: Any) -> NDArray:
        if key not in self._stored:
            known = ", ".join(map(repr, list(self._stored)[:8])) or "none"
            raise ParamError(f"KVStore: key {key!r} was not initialized", because=f"known keys: {known}", fix="init it")
        return self._stored[key]

    def _sums(
        self, pairs: Sequence[tuple[Any, list[NDArray]]], priority: int = 0, out: Sequence[NDArray] | None = None
    ) -> list[NDArray]:
        """The sum of the arrays of each key. out: the arrays that are written next, in the order of keys.

        The sum is an array of its own, or the given one; not if another key's out may share its memory.
        """
        totals = [self._total_of(k, arrays) for k, arrays in pairs]
        if out is None or len(pairs) == 1:
            return totals
        return [total if total is place else total.copy() for total, place in zip(totals, out, strict=True)]

    def _total_of(self, key: Any, arrays: list[NDArray]) -> NDArray:
        """The sum of the arrays of a key within this process."""
        if self._compression is None:
            return _total(arrays)
        return _total([self._compression.coded((key, place), array) for place, array in enumerate(arrays)])

    def _check_shapes(self, key: Any, arrays: list[NDArray]) -> None:
        stored = self._at(key)
        for array in arrays:
            if array.shape != stored.shape:
                raise ShapeError(f"KVStore.push: key {key!r}", expected=f"shape {stored.shape}", given=str(array.shape))

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Sums the arrays of each key; the sum goes to the updater, or replaces the stored array.

        Raises ParamError for unknown keys, ShapeError if shapes differ.
        """
        pairs = self._pairs(key, value)
        for k, arrays in pairs:
            self._check_shapes(k, arrays)
        for (k, _), total in zip(pairs, self._sums(pairs, priority), strict=True):
            stored = self._stored[k]
            merged = total.as_in_context(stored.context)
            if self._updater is not None:
                self._updater(k, merged, stored)
            else:
                stored[:] = merged

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Copies stored arrays into the arrays of out; those in sparse storage are skipped if ignore_sparse.

        Raises ParamError for unknown keys and without out.
        """
        if out is None:
            raise ParamError("KVStore.pull: out is missing: the arrays to copy into")
        for k, arrays in self._pairs(key, out):
            stored = self._at(k)
            for array in arrays:
                if ignore_sparse and array.stype != "default":
                    continue
                array[:] = stored.as_in_context(array.context)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Pushes all keys, then pulls all into out (default: value). Without an updater, keys need no init."""
        out = value if out is None else out
        if self._updater is not None:
            self.push(key, value, priority)
            self.pull(key, out, priority)
            return
        pairs, targets_of = self._pairs(key, value), [arrays for _, arrays in self._pairs(key, out)]
        sums = self._sums(pairs, priority, [targets[0] for targets in targets_of])  # before any array is written
        for (k, _), merged, targets in zip(pairs, sums, targets_of, strict=True):
            if k in self._stored:
                self._stored[k][:] = merged.as_in_context(self._stored[k].context)
            for target in targets:
                if target is not merged:
                    target[:] = merged.as_in_context(target.context)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Stores value and copies it into the arrays of out."""
        for (k, arrays), (_, targets) in zip(self._pairs(key, value), self._pairs(key, out), strict=True):
            self._stored[k] = arrays[0].copy()
            self.pull(k, targets, priority)

    def row_sparse_pull(self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None) -> None:
        """Copies the stored rows row_ids into out, which is row_sparse; in a dense out, other rows become 0.

        row_ids: one array for all, one per array of out, or for lists of keys one such list per key.
        Raises ParamError without out or row_ids.
        """
        if out is None or row_ids is None:
            raise ParamError("KVStore.row_sparse_pull: out and row_ids are needed")
        targets = [(self._at(k), array) for k, arrays in self._pairs(key, out) for array in arrays]
        ids = _flat(row_ids) if isinstance(row_ids, (list, tuple)) else [row_ids] * len(targets)
        if len(ids) != len(targets):
            raise ParamError(f"KVStore.row_sparse_pull: {len(targets)} arrays of out have {len(ids)} row_ids")
        for (stored, array), rows in zip(targets, ids, strict=True):
            array[:] = sparse.retain_rows(stored, rows).as_in_context(array.context)

    # -- updating ---------------------------------------------------------------------------------------------------

    def set_optimizer(self, optimizer: opt.Optimizer) -> None:
        """Sets the optimizer: pushed values are gradients that update the stored arrays."""
        self._optimizer_updater = opt.get_updater(optimizer)
        self._set_updater(self._optimizer_updater)

    def set_updater(self, updater: Callable[[Any, NDArray, NDArray], None]) -> None:
        """Sets updater(key, pushed sum, stored array), which changes the stored array in place."""
        self._updater = updater

    _set_updater = set_updater

    @staticmethod
    def is_capable(capability: str) -> bool:
        """True for 'optimizer'. Raises ParamError for unknown capabilities."""
        if capability.lower() == KVStoreBase.OPTIMIZER:
            return True
        raise ParamError(f"Unknown capability: {capability}")

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Sets how pushed float32 arrays are compressed: {'type': '2bit' or '1bit', 'threshold': 0.5}, or 'none'.

        'device' codes the array of each context, stores of several processes their sum in each process
        (docs/distributed.md). Raises ParamError for wrong parameters, UnsupportedError for other stores.
        """
        compression = GradientCompression.from_params(compression_params)
        if compression is not None and not self._can_compress():
            raise UnsupportedError(
                "Gradient compression is not supported for this type of kvstore",
                because="within one process nothing is sent",
                fix="leave compression_params out",
            )
        self._compression = compression

    def _can_compress(self) -> bool:
        return "device" in self._name  # MXNet's rule

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Writes the optimizer's states; with dump_optimizer also its settings. Raises ParamError without optimizer."""
        if self._optimizer_updater is None:
            raise ParamError("Cannot save states for distributed training: there is no optimizer; call set_optimizer")
        states = self._optimizer_updater.get_states(dump_optimizer)
        with replacing(fname, "KVStore.save_optimizer_states") as file:
            file.write(states)

    def load_optimizer_states(self, fname: str) -> None:
        """Reads states of save_optimizer_states. Raises FileError, FormatError, ParamError without optimizer."""
        if self._optimizer_updater is None:
            raise ParamError("KVStore.load_optimizer_states: there is no optimizer; call set_optimizer first")
        self._optimizer_updater.set_states(read_bytes(fname, "KVStore.load_optimizer_states"))

    # -- processes --------------------------------------------------------------------------------------------------

    @property
    def type(self) -> str:
        """The name that the store was created with."""
        return self._name

    @property
    def rank(self) -> int:
        """The number of this process: always 0."""
        return 0

    @property
    def num_workers(self) -> int:
        """The number of processes: always 1."""
        return 1

    def barrier(self) -> None:
        """Does nothing: there are no other processes to wait for."""

    _barrier = barrier


__dir__ = dir_of(__name__)
