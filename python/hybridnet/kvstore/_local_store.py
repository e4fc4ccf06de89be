"""TestStore: a store without push and pull, for tests of code that must work with any store."""

from __future__ import annotations

from typing import Any

from .. import ndarray
from ..errors import ParamError
from ..ndarray import NDArray
from .base import KVStoreBase

__all__ = ["TestStore"]


def _list(value: Any) -> list[NDArray]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


@KVStoreBase.register
class TestStore(KVStoreBase):
    """Sums over the devices of one process and stores nothing; ``mx.kv.create('teststore')``."""

    __test__ = False  # pytest must not collect it because of its name

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Copies value into all arrays of out."""
        for target in _list(out):
            target[:] = _list(value)[0].as_in_context(target.context)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Sums the arrays of value into all arrays of out (default: value)."""
        arrays = _list(value)
        total = ndarray.add_n(*(array.as_in_context(arrays[0].context) for array in arrays))
        for target in arrays if out is None else _list(out):
            target[:] = total.as_in_context(target.context)

    @staticmethod
    def is_capable(capability: str) -> bool:
        """False for 'optimizer': there are no stored arrays to update. Raises ValueError for others."""
        if capability.lower() == KVStoreBase.OPTIMIZER:
            return False
        raise ParamError(f"Unknown capability: {capability}")

    @property
    def type(self) -> str:
        """The name 'teststore'."""
        return "teststore"

    @property
    def rank(self) -> int:
        """The number of this process: always 0."""
        return 0

    @property
    def num_workers(self) -> int:
        """The number of processes: always 1."""
        return 1
