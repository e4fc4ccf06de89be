"""Whether the machine did nothing else while something was measured: figures of a busy machine are worth nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

__all__ = ["Watch"]

TICKS = os.sysconf("SC_CLK_TCK")
MOST_CORES = 0.1  # of others at which a measurement counts as disturbed


def _busy_ticks() -> int:
    """Of all cores, time that the host took away included."""
    user, nice, system, _idle, _waiting, *interrupts = Path("/proc/stat").read_text("utf-8").split("\n")[0].split()[1:9]
    return sum(map(int, (user, nice, system, *interrupts)))


def _own_ticks() -> int:
    """Of the processes of this session, with those of their children that have ended."""
    session, ticks = os.getsid(0), 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text("utf-8").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks


class Watch:
    """What processes of other sessions take from its making on."""

    def __init__(self) -> None:
        self._busy, self._own, self._begin = _busy_ticks(), _own_ticks(), time.monotonic()

    def foreign_cores(self) -> float:
        """Cores that others kept busy, on average."""
        foreign = (_busy_ticks() - self._busy) - (_own_ticks() - self._own)
        return max(0.0, foreign / TICKS / max(time.monotonic() - self._begin, 1e-9))

    def remark(self) -> str:
        """Empty, or what to write beside a figure: "disturbed: others took 0.8 cores"."""
        taken = self.foreign_cores()
        return f"disturbed: others took {taken:.1f} cores" if taken > MOST_CORES else ""
