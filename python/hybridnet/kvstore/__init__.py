"""Key-value stores: sums over devices, and optimizers that update the stored arrays."""

from .._public_names import dir_of
from ._local_store import TestStore
from .base import KVStoreBase, create
from .kvstore import KVStore

__all__ = ["KVStore", "KVStoreBase", "TestStore", "create"]

__dir__ = dir_of(__name__)
