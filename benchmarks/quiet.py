"""Detection of other load on the machine during a measurement: figures of a busy machine are useless."""

from __future__ import annotations

import os
import time
from pathlib import Path

__all__ = ["Watch"]

TICKS = os.sysconf("SC_CLK_TCK")
MOST_CORES = 0.1  # used by other processes: a measurement above this counts as disturbed


def _busy_ticks() -> int:
    """The busy ticks of all cores, including the time that the host took away."""
    user, nice, system, _idle, _waiting, *interrupts = Path("/proc/stat").read_text("utf-8").split("\n")[0].split()[1:9]
    return sum(map(int, (user, nice, system, *interrupts)))


def _own_ticks() -> int:
    """The ticks of this session's processes, and of their children that have ended."""
    session, ticks = os.getsid(0), 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text("utf-8").rpartition(")")[2].split()
        except OSError:  # the process has ended
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks


class Watch:
    """Measures the processor time that processes of other sessions use from this object's creation on."""

    def __init__(self) -> None:
        self._busy, self._own, self._begin = _busy_ticks(), _own_ticks(), time.monotonic()

    def foreign_cores(self) -> float:
        """The number of cores that other sessions kept busy, on average."""
        foreign = (_busy_ticks() - self._busy) - (_own_ticks() - self._own)
        return max(0.0, foreign / TICKS / max(time.monotonic() - self._begin, 1e-9))

    def remark(self) -> str:
        """A remark for a figure, such as "disturbed: others took 0.8 cores", or an empty string."""
        taken = self.foreign_cores()
        return f"disturbed: others took {taken:.1f} cores" if taken > MOST_CORES else ""
