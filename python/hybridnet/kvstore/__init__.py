"""Key-value stores: sums over devices, and optimizers that update what is stored."""

from .base import KVStoreBase, create
from .kvstore import KVStore
from .smallest_store import TestStore

__all__ = ["KVStore", "KVStoreBase", "TestStore", "create"]
