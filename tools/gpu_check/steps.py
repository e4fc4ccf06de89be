"""The table of steps, in the order in which they run: the first faults explain the later ones."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from .outcome import Options, Outcome

__all__ = ["STEPS", "Step", "find"]


@dataclass(frozen=True)
class Step:
    """name, the function that runs it (module:function), its limit in seconds, and if it measures times."""

    name: str
    place: str
    seconds: float
    measures: bool = False
    listed: bool = True  # False: part of another step

    def function(self) -> Callable[[Options], Outcome]:
        module, _, name = self.place.partition(":")
        return getattr(importlib.import_module(f"{__package__}.{module}"), name)


STEPS = (
    Step("machine", "machine:describe", 40),
    Step("memory", "memory:check_memory", 40),
    Step("order", "memory:check_order", 40),
    Step("out of memory", "process:check_out_of_memory", 40),
    Step("threads", "process:check_threads", 30),
    Step("fork", "process:check_fork", 30),
    Step("exit", "process:check_exit", 60),
    Step("sharing", "sharing:check_sharing", 30),
    Step("training", "training:check_training", 90),
    Step("graphs", "graphs:check_graphs", 50),
    Step("products", "products:check_products", 24),
    Step("convolutions", "convolutions:check_convolutions", 30),
    Step("speed", "speed:measure", 50, measures=True),
    Step("networks", "networks:measure", 120, measures=True),
    Step("samples", "samples:check_samples", 240),
    Step("memcheck", "sanitizer:memcheck", 70),
    Step("racecheck", "sanitizer:racecheck", 70),
    Step("kernels", "kernels:run_each", 60, listed=False),
)


def find(name: str) -> Step:
    """Returns the step with a name."""
    return next(step for step in STEPS if step.name == name)
