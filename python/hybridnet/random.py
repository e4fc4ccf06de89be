"""Seeds, and the functions of ``mx.nd.random`` as ``mx.random``."""

from __future__ import annotations

import random as _python_random
from typing import Any

import numpy as np

from . import _core
from ._lazy_names import refusing
from ._public_names import dir_of
from .errors import FormatError, UnsupportedError
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
    "get_state",
    "multinomial",
    "negative_binomial",
    "normal",
    "poisson",
    "randint",
    "randn",
    "seed",
    "set_state",
    "shuffle",
    "uniform",
]


def seed(seed_state: int, ctx: Any = "all") -> None:
    """Seeds the random numbers of every device: the same seed gives the same bits, independent of the thread count."""
    _core.seed(int(seed_state) & 0xFFFFFFFFFFFFFFFF)


def get_state() -> dict[str, Any]:
    """Returns the states of the generators that training uses: this package's, numpy.random and random.

    The result holds plain values, for set_state() and JSON. Raises UnsupportedError unless numpy.random uses MT19937.
    """
    version, words, gauss = _python_random.getstate()
    return {
        "hybridnet": list(_core.rng_state()),
        "numpy": numpy_random_state(),
        "python": [version, list(words), gauss],
    }


def set_state(state: dict[str, Any]) -> None:
    """Restores a state that get_state() returned: the same draws follow. Raises FormatError for anything else."""
    try:
        seed_value, draw = (int(number) for number in state["hybridnet"])
        version, words, gauss = state["python"]
        set_numpy_random_state(state["numpy"])
        _python_random.setstate((version, tuple(words), gauss))
        _core.set_rng_state(seed_value, draw)
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"random.set_state: this is no state of get_state(): {error}") from error


def numpy_random_state() -> dict[str, Any]:
    """Returns the state of numpy.random as plain values. Raises UnsupportedError unless it uses MT19937."""
    state = np.random.get_state(legacy=False)
    assert isinstance(state, dict)
    if state["bit_generator"] != "MT19937":
        raise UnsupportedError("the state of numpy.random", expected="MT19937", given=str(state["bit_generator"]))
    key = [int(word) for word in state["state"]["key"]]
    return {"key": key, "pos": int(state["state"]["pos"]), "gauss": [int(state["has_gauss"]), float(state["gauss"])]}


def set_numpy_random_state(state: dict[str, Any]) -> None:
    """Restores a state that numpy_random_state() returned. Raises FormatError for anything else."""
    try:
        has_gauss, gauss = state["gauss"]
        key = np.asarray(state["key"], np.uint32)
        np.random.set_state(("MT19937", key, int(state["pos"]), int(has_gauss), float(gauss)))
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"this is no state of numpy.random: {error}") from error


__getattr__, __dir__ = refusing(__name__), dir_of(__name__)
