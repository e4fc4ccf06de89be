"""Seeds, and the random functions of ``mx.nd.random`` under ``mx.random``."""

from __future__ import annotations

from typing import Any

from . import _core
from .ndarray.random import (
    exponential,
    gamma,
    generalized_negative_binomial,
    multinomial,
    negative_binomial,
    normal,
    poisson,
    randint,
    randn,
    shuffle,
    uniform,
)

__all__ = [
    "exponential",
    "gamma",
    "generalized_negative_binomial",
    "multinomial",
    "negative_binomial",
    "normal",
    "poisson",
    "randint",
    "randn",
    "seed",
    "shuffle",
    "uniform",
]


def seed(seed_state: int, ctx: Any = "all") -> None:
    """Starts the random numbers of every device anew: the same seed gives the same bits, whatever the thread count."""
    _core.seed(int(seed_state) & 0xFFFFFFFFFFFFFFFF)
