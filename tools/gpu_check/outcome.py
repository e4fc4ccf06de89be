"""The result of a step."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Options", "Outcome"]


@dataclass
class Outcome:
    """line: for the terminal. wrong: a line for each fault. rows: figures and facts for the report. skipped: the reason
    why the step could not run, which is no fault."""

    line: str = ""
    wrong: list[str] = field(default_factory=list)
    rows: dict[str, Any] = field(default_factory=dict)
    skipped: str = ""

    def expect(self, holds: bool, otherwise: str) -> None:
        """Notes a fault unless the condition holds."""
        if not holds:
            self.wrong.append(otherwise)


@dataclass(frozen=True)
class Options:
    """How large the steps are. stand_in: on the tests' driver, with small sizes and without measurements.

    seconds: the step should end by itself within this time. operators: at most so many operators with samples; 0: all.
    """

    stand_in: bool = False
    seconds: float = 60.0
    operators: int = 0

    def size(self, full: int, small: int) -> int:
        """Returns the size for a GPU, or for the stand-in."""
        return small if self.stand_in else full

    @property
    def workers(self) -> int:
        """Processes that may use the GPU side by side."""
        cores = len(os.sched_getaffinity(0))
        return max(1, min(8, cores // 2)) if not self.stand_in else min(2, cores)
