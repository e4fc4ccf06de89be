"""Random arrays: the functions of RandomFunctions for NDArrays."""

from __future__ import annotations

from typing import Any

from .._public_names import dir_of
from ..ops._namespace import lazy_functions
from ..ops._random import RandomFunctions

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
    "shuffle",
    "uniform",
]

_lazy, __dir__ = lazy_functions(globals(), "random", symbolic=False)
_functions = RandomFunctions(symbolic=False)
exponential = _functions.exponential
gamma = _functions.gamma
generalized_negative_binomial = _functions.generalized_negative_binomial
multinomial = _functions.multinomial
negative_binomial = _functions.negative_binomial
normal = _functions.normal
poisson = _functions.poisson
randint = _functions.randint
randn = _functions.randn
shuffle = _functions.shuffle
uniform = _functions.uniform


def __getattr__(name: str) -> Any:
    return _lazy(name)


__dir__ = dir_of(__name__, __dir__)
