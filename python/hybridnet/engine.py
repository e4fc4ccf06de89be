"""Engine settings: bulk size, and the type of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from . import _core
from ._public_names import dir_of

__all__ = ["bulk", "set_bulk_size", "type_name"]


def set_bulk_size(size: int) -> int:
    """Sets the maximum number of operations that are pushed as one (0: no bundling); returns the previous value."""
    return _core.set_bulk_size(int(size))


@contextmanager
def bulk(size: int) -> Iterator[None]:
    """Returns a scope in which up to size operations may be pushed as one: ``with engine.bulk(size):``."""
    before = set_bulk_size(size)
    try:
        yield
    finally:
        set_bulk_size(before)


def type_name() -> str:
    """Returns the engine type: ``ThreadedEnginePerDevice``, or ``NaiveEngine`` (serial, for debugging).

    Chosen by the environment variable ``HYBRIDNET_ENGINE_TYPE`` (or ``MXNET_ENGINE_TYPE``) before the import.
    """
    return _core.engine_type()


__dir__ = dir_of(__name__)
