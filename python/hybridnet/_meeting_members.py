"""Members: the processes that have entered a meeting, and their places."""

from __future__ import annotations

import threading
import time

__all__ = ["Members"]


class Members:
    """The places 0 to size - 1 of a job; each is given once. Threads: any."""

    def __init__(self, size: int) -> None:
        self._free = set(range(size))
        self._present: set[int] = set()
        self._changed = threading.Condition()

    def enter(self, wanted: int) -> int | None:
        """Takes the wanted place, or the first free one if it is negative. None if it is taken or there is none."""
        with self._changed:
            if wanted < 0 and self._free:
                wanted = min(self._free)
            if wanted not in self._free:
                return None
            self._free.remove(wanted)
            self._present.add(wanted)
            self._changed.notify_all()
        return wanted

    def leave(self, place: int) -> None:
        """A process has ended. Its place stays taken."""
        with self._changed:
            self._present.discard(place)
            self._changed.notify_all()

    def wait_for_all(self, seconds: float) -> list[int]:
        """Waits until all have entered; returns the places that are still free."""
        end = time.monotonic() + seconds
        with self._changed:
            while self._free and time.monotonic() < end:
                self._changed.wait(timeout=max(0.0, end - time.monotonic()))
            return sorted(self._free)

    def wait_for_end(self) -> None:
        """Waits until no process is present."""
        with self._changed:
            while self._present:
                self._changed.wait(timeout=60.0)
