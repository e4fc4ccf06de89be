"""``mx.npx.random``: random arrays that NumPy does not have, and the seed."""

from __future__ import annotations

from typing import Any

from .._public_names import dir_of
from ..errors import ValueError as HybridNetValueError
from ..ndarray._dtypes import dtype_name
from ..numpy.random import Size, _drawn, _place, _shape
from ..random import seed as _seed

__all__ = ["bernoulli", "normal_n", "seed", "uniform_n"]


def seed(seed: int, ctx: Any = "all") -> None:
    """See :func:`mx.random.seed`."""
    _seed(seed, ctx)


def bernoulli(
    prob: Any = None, logit: Any = None, size: Size = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Draws 1 with a probability that is given directly or by its logit, else 0; float32 if dtype is None.

    size: shape of the result, to which an array of probabilities broadcasts; None: the array's shape.
    """
    if (prob is None) == (logit is None):
        raise HybridNetValueError(
            "npx.random.bernoulli", expected="one of prob and logit", given="both" if prob is not None else "neither"
        )
    is_logit = prob is None
    parameter = logit if is_logit else prob
    absent = {"prob" if is_logit else "logit": None}
    settings = {"size": _shape(size), "ctx": _place(ctx), "dtype": dtype_name(dtype), "is_logit": is_logit}
    return _drawn("_npi_bernoulli", {"logit" if is_logit else "prob": parameter}, **absent, **settings, out=out)


def uniform_n(low: Any = 0.0, high: Any = 1.0, batch_shape: Size = None, dtype: Any = None, ctx: Any = None) -> Any:
    """Draws batch_shape uniform numbers for every element of the parameters; the parameters' shape comes last."""
    return _per_element("_npi_uniform_n", {"low": low, "high": high}, batch_shape, dtype, ctx)


def normal_n(loc: Any = 0.0, scale: Any = 1.0, batch_shape: Size = None, dtype: Any = None, ctx: Any = None) -> Any:
    """Draws batch_shape normal numbers for every element of the parameters; the parameters' shape comes last."""
    return _per_element("_npi_normal_n", {"loc": loc, "scale": scale}, batch_shape, dtype, ctx)


def _per_element(operator: str, parameters: dict[str, Any], batch_shape: Size, dtype: Any, ctx: Any) -> Any:
    return _drawn(operator, parameters, size=_shape(batch_shape), ctx=_place(ctx), dtype=dtype_name(dtype))


__dir__ = dir_of(__name__)
