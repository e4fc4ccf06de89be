"""The functions of ``nd.random`` and ``sym.random``: one definition for arrays and Symbols."""

from __future__ import annotations

from functools import cache
from typing import Any

from .. import _core
from ..base import _Null
from ..context import current_context
from ..errors import ValueError as HybridNetValueError
from ._namespace import function

__all__ = ["RandomFunctions"]


@cache
def _operator(name: str, symbolic: bool) -> Any:
    return function("_internal", name, f"hybridnet.{'symbol' if symbolic else 'ndarray'}.random", symbolic=symbolic)


def _given(**options: Any) -> dict[str, Any]:
    """Returns the options that are not None."""
    return {name: value for name, value in options.items() if value is not None and value is not _Null}


class RandomFunctions:
    """Random functions that return NDArrays or graph nodes; both modules expose the methods of one instance.

    Parameters of a distribution are all numbers (then shape is the shape of the result, default one number) or all
    NDArrays or Symbols (then each element has its own draws of the given shape). dtype: float32 by default; ctx: device
    of a new NDArray, default the current context; out: the NDArray to fill. A graph ignores ctx and out: it runs where
    it is bound. data=x instead of shape draws an array with the shape and dtype of x (unless dtype is given), even if a
    graph does not know them yet. Every function raises ValueError if parameters are of both kinds, ParamError if one is
    out of the distribution's range.
    """

    def __init__(self, symbolic: bool) -> None:
        self._symbolic = symbolic

    def _run(self, operator: str, *inputs: Any, **params: Any) -> Any:
        return _operator(operator, self._symbolic)(*inputs, **params)

    def _draw(
        self, distribution: str, params: dict[str, Any], options: dict[str, Any], ctx: Any, kwargs: dict[str, Any]
    ) -> Any:
        like = kwargs.pop("data", None)
        if like is not None:
            dtype = options.pop("dtype", None)
            if options or distribution == "randint":
                raise HybridNetValueError(
                    f"random.{distribution}",
                    given=f"data and {', '.join(options) or 'integers'}",
                    fix="give data, whose shape the result has, or shape",
                )
            drawn = self._run(f"_random_{distribution}_like", like, **params, **kwargs)
            return drawn if dtype is None else drawn.astype(dtype)
        tensors = [isinstance(value, (_core.NDArrayBase, _core.SymbolBase)) for value in params.values()]
        if self._symbolic:
            options.pop("out", None)
        if all(tensors):
            return self._run(f"_sample_{distribution}", *params.values(), **options, **kwargs)
        if any(tensors):
            given = ", ".join(f"{name}: {type(value).__name__}" for name, value in params.items())
            kind = "Symbols" if self._symbolic else "arrays"
            raise HybridNetValueError(
                f"random.{distribution}",
                expected=f"parameters that are all numbers or all {kind}",
                given=given,
                fix="make arrays of the numbers, for example low.zeros_like() + 1",
            )
        if not self._symbolic:
            out = options.get("out")
            options.setdefault("shape", (1,) if out is None else out.shape)
            if out is not None:
                options.setdefault("dtype", out.dtype)
            kwargs["ctx"] = str(ctx or current_context())
        return self._run(f"_random_{distribution}", **params, **options, **kwargs)

    def uniform(
        self,
        low: Any = 0,
        high: Any = 1,
        shape: Any = _Null,
        dtype: Any = _Null,
        ctx: Any = None,
        out: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Draws from the uniform distribution on [low, high)."""
        options = _given(shape=shape, dtype=dtype, out=out)
        return self._draw("uniform", {"low": low, "high": high}, options, ctx, kwargs)

    def normal(
        self,
        loc: Any = 0,
        scale: Any = 1,
        shape: Any = _Null,
        dtype: Any = _Null,
        ctx: Any = None,
        out: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Draws from the normal distribution with mean loc and standard deviation scale >= 0."""
        options = _given(shape=shape, dtype=dtype, out=out)
        return self._draw("normal", {"loc": loc, "scale": scale}, options, ctx, kwargs)

    def randn(self, *shape: int, **kwargs: Any) -> Any:
        """Draws normal numbers in the given shape with mean loc=0, standard deviation scale=1; also dtype, ctx, out."""
        return self.normal(kwargs.pop("loc", 0), kwargs.pop("scale", 1), shape or _Null, **kwargs)

    def poisson(
        self, lam: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Any = None, out: Any = None, **kwargs: Any
    ) -> Any:
        """Draws from the Poisson distribution with rate lam >= 0."""
        return self._draw("poisson", {"lam": lam}, _given(shape=shape, dtype=dtype, out=out), ctx, kwargs)

    def exponential(
        self, scale: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Any = None, out: Any = None, **kwargs: Any
    ) -> Any:
        """Draws from the exponential distribution with mean scale > 0."""
        options = _given(shape=shape, dtype=dtype, out=out)
        return self._draw("exponential", {"lam": 1.0 / scale}, options, ctx, kwargs)

    def gamma(
        self,
        alpha: Any = 1,
        beta: Any = 1,
        shape: Any = _Null,
        dtype: Any = _Null,
        ctx: Any = None,
        out: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Draws from the gamma distribution with shape alpha > 0 and scale beta > 0."""
        options = _given(shape=shape, dtype=dtype, out=out)
        return self._draw("gamma", {"alpha": alpha, "beta": beta}, options, ctx, kwargs)

    def negative_binomial(
        self,
        k: Any = 1,
        p: Any = 1,
        shape: Any = _Null,
        dtype: Any = _Null,
        ctx: Any = None,
        out: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Draws the number of failures before k successes of probability p."""
        options = _given(shape=shape, dtype=dtype, out=out)
        return self._draw("negative_binomial", {"k": k, "p": p}, options, ctx, kwargs)

    def generalized_negative_binomial(
        self,
        mu: Any = 1,
        alpha: Any = 1,
        shape: Any = _Null,
        dtype: Any = _Null,
        ctx: Any = None,
        out: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Draws from a Poisson distribution with gamma distributed rate, with mean mu and dispersion alpha."""
        options = _given(shape=shape, dtype=dtype, out=out)
        return self._draw("generalized_negative_binomial", {"mu": mu, "alpha": alpha}, options, ctx, kwargs)

    def randint(
        self,
        low: int,
        high: int,
        shape: Any = _Null,
        dtype: Any = _Null,
        ctx: Any = None,
        out: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Draws integers in [low, high), int32 by default."""
        options = _given(shape=shape, dtype=dtype, out=out)
        return self._draw("randint", {"low": low, "high": high}, options, ctx, kwargs)

    def multinomial(
        self,
        data: Any,
        shape: Any = _Null,
        get_prob: bool = False,
        out: Any = None,
        dtype: Any = "int32",
        **kwargs: Any,
    ) -> Any:
        """Draws class indices with the probabilities in the last axis of data: (..., classes) to (..., *shape).

        get_prob: also returns the logarithms of their probabilities, which gradients pass through.
        """
        options = _given(shape=shape, dtype=dtype, out=None if self._symbolic else out)
        return self._run("_sample_multinomial", data, get_prob=get_prob, **options, **kwargs)

    def shuffle(self, data: Any, **kwargs: Any) -> Any:
        """Returns the rows (slices of the first axis) of data in random order."""
        return self._run("_shuffle", data, **kwargs)
