"""The engine: how many operations travel as one, and which engine runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from . import _core

__all__ = ["bulk", "set_bulk_size", "type_name"]


def set_bulk_size(size: int) -> int:
    """Sets how many operations may be pushed as one (0 switches bundling off); returns what it was."""
    return _core.set_bulk_size(int(size))


@contextmanager
def bulk(size: int) -> Iterator[None]:
    """Within ``with engine.bulk(size)``, up to size operations may be pushed as one."""
    before = set_bulk_size(size)
    try:
        yield
    finally:
        set_bulk_size(before)


def type_name() -> str:
    """The engine in use: ``ThreadedEnginePerDevice``, or ``NaiveEngine`` (the serial twin, for debugging).

    Chosen by the environment variable ``HYBRIDNET_ENGINE_TYPE`` (or ``MXNET_ENGINE_TYPE``) before the import.
    """
    return _core.engine_type()
