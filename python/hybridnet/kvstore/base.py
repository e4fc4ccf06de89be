"""The interface of key-value stores, their registry, and create."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._public_names import dir_of
from ..errors import ParamError, UnsupportedError, not_overridden
from ..errors import TypeError as HybridNetTypeError

__all__ = ["KVStoreBase", "create"]

_LOCAL = ("local", "device", "nccl", "local_update_cpu", "local_allreduce_cpu", "local_allreduce_device")


# Sums over the processes of mx.group; all names mean the same.
DIST = ("dist_sync", "dist_sync_device", "dist_device_sync", "dist")
PRIORITY = "p3"  # the same sums, in an order of their own
ASYNC = ("dist_async", "dist_async_device")  # an update for the gradients of each process


class KVStoreBase:
    """Interface of stores for Trainer and Module. User-defined stores derive from it and are registered::

    @mx.kvstore.KVStoreBase.register
    class MyStore(mx.kvstore.KVStoreBase): ...

    store = mx.kv.create("mystore")
    """

    OPTIMIZER = "optimizer"
    kv_registry: dict[str, type[KVStoreBase]] = {}

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Copies the root's value to all arrays of out."""
        raise not_overridden(self, "broadcast()")

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Sums the arrays of value, over devices and processes, into all arrays of out (default: value)."""
        raise not_overridden(self, "pushpull()")

    def set_optimizer(self, optimizer: Any) -> None:
        """Sets the optimizer that updates the stored arrays."""
        raise not_overridden(self, "set_optimizer()")

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Whether the store has a capability: 'optimizer'."""
        raise UnsupportedError("a store must override is_capable()")

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Writes the optimizer's states."""
        raise not_overridden(self, "save_optimizer_states()")

    def load_optimizer_states(self, fname: str) -> None:
        """Reads the optimizer's states."""
        raise not_overridden(self, "load_optimizer_states()")

    @property
    def type(self) -> str:
        """The name that the store was created with."""
        raise not_overridden(self, "type()")

    @property
    def rank(self) -> int:
        """The number of this process."""
        raise not_overridden(self, "rank()")

    @property
    def num_workers(self) -> int:
        """The number of processes."""
        raise not_overridden(self, "num_workers()")

    @staticmethod
    def register(klass: Any) -> Any:
        """Class decorator that registers a store under its lower-case name."""
        KVStoreBase.kv_registry[klass.__name__.lower()] = klass
        return klass


def create(name: str = "local") -> KVStoreBase:
    """Creates a store by name.

    'local', 'device' and 'nccl' are equivalent in one process; 'dist_sync', 'dist_sync_device' and 'dist_device_sync'
    sum over the processes of mx.group, and 'p3' too, the first parameters first; 'dist_async' updates by the gradients
    of one process after the other, later than they are pushed. Other names are those of registered stores.

    Raises TypeError unless name is text, ParamError for unknown names.
    """
    if not isinstance(name, str):
        raise HybridNetTypeError("kvstore.create: name must be a string", given=type(name).__name__)
    lower = name.lower()
    if lower in KVStoreBase.kv_registry:
        return KVStoreBase.kv_registry[lower]()
    if lower in _LOCAL:
        from .kvstore import KVStore

        return KVStore(lower)
    if lower in DIST:
        from ._dist_store import DistKVStore

        return DistKVStore(lower)
    if lower == PRIORITY:
        from ._priority_store import PriorityKVStore

        return PriorityKVStore(lower)
    if lower in ASYNC:
        from ._async_store import AsyncKVStore

        return AsyncKVStore(lower)
    if lower.startswith(("dist", "horovod", "byteps")):
        raise UnsupportedError(
            f"kvstore '{name}' does not exist",
            fix="use 'dist_sync', or the functions of hybridnet.horovod and hybridnet.byteps",
        )
    known: Sequence[str] = (*_LOCAL, *DIST, *ASYNC, PRIORITY, *KVStoreBase.kv_registry)
    raise ParamError(f"kvstore.create: unknown store '{name}', known: {', '.join(known)}")


__dir__ = dir_of(__name__)
