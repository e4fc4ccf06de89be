"""Random nodes. Parameters are numbers (then shape says how many) or Symbols (then each element has its own draw)."""

from __future__ import annotations

from typing import Any

from .. import _core
from ..base import _Null
from ..errors import ValueError as HybridNetValueError
from ..ops.namespace import lazy_functions
from . import _internal

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

_lazy, __dir__ = lazy_functions(globals(), "random", symbolic=True)


def __getattr__(name: str) -> Any:
    return _lazy(name)


def _draw(random: str, sampler: str, params: dict[str, Any], shape: Any, dtype: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [isinstance(value, (_core.NDArrayBase, _core.SymbolBase)) for value in params.values()]
    kwargs.pop("ctx", None)
    kwargs.pop("out", None)
    if all(tensors):
        return getattr(_internal, sampler)(*params.values(), shape=shape, dtype=dtype, **kwargs)
    if any(tensors):
        raise HybridNetValueError(f"{random[1:]}: distribution parameters must be all numbers or all Symbols")
    return getattr(_internal, random)(**params, shape=shape, dtype=dtype, **kwargs)


def uniform(low: Any = 0, high: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Any:
    """Uniform in [low, high)."""
    return _draw("_random_uniform", "_sample_uniform", {"low": low, "high": high}, shape, dtype, kwargs)


def normal(loc: Any = 0, scale: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Any:
    """Normal with mean loc and standard deviation scale."""
    return _draw("_random_normal", "_sample_normal", {"loc": loc, "scale": scale}, shape, dtype, kwargs)


def randn(*shape: int, **kwargs: Any) -> Any:
    """Normal with mean loc=0 and standard deviation scale=1, of the given sizes."""
    loc, scale, dtype = kwargs.pop("loc", 0), kwargs.pop("scale", 1), kwargs.pop("dtype", _Null)
    return normal(loc, scale, shape, dtype, **kwargs)


def poisson(lam: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Any:
    """Poisson with rate lam."""
    return _draw("_random_poisson", "_sample_poisson", {"lam": lam}, shape, dtype, kwargs)


def exponential(scale: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Any:
    """Exponential with mean scale."""
    return _draw("_random_exponential", "_sample_exponential", {"lam": 1.0 / scale}, shape, dtype, kwargs)


def gamma(alpha: Any = 1, beta: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Any:
    """Gamma with shape alpha and scale beta."""
    return _draw("_random_gamma", "_sample_gamma", {"alpha": alpha, "beta": beta}, shape, dtype, kwargs)


def negative_binomial(k: Any = 1, p: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Any:
    """Failures before k successes of probability p."""
    return _draw("_random_negative_binomial", "_sample_negative_binomial", {"k": k, "p": p}, shape, dtype, kwargs)


def generalized_negative_binomial(
    mu: Any = 1, alpha: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any
) -> Any:
    """Poisson whose rate is Gamma distributed, with mean mu and dispersion alpha."""
    name = "generalized_negative_binomial"
    return _draw(f"_random_{name}", f"_sample_{name}", {"mu": mu, "alpha": alpha}, shape, dtype, kwargs)


def multinomial(data: Any, shape: Any = _Null, get_prob: bool = False, dtype: Any = "int32", **kwargs: Any) -> Any:
    """Class indices drawn with the probabilities in the last axis of data."""
    return _internal._sample_multinomial(data, shape=shape, get_prob=get_prob, dtype=dtype, **kwargs)


def randint(low: int, high: int, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Any:
    """Integers in [low, high), int32 if dtype is not given."""
    return _draw("_random_randint", "_random_randint", {"low": low, "high": high}, shape, dtype, kwargs)


def shuffle(data: Any, **kwargs: Any) -> Any:
    """The rows of data in random order."""
    return _internal._shuffle(data, **kwargs)
