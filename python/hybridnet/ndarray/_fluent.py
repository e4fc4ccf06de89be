"""Operators that are also methods: ``x.sum(axis=1)`` is ``nd.sum(x, axis=1)``. One table for NDArray and Symbol."""

from __future__ import annotations

from typing import Any

from ..ops._namespace import function, public_names

__all__ = ["FLUENT", "add_fluent_methods"]

FLUENT = [
    "abs",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "argmax",
    "argmax_channel",
    "argmin",
    "argsort",
    "broadcast_axes",
    "broadcast_like",
    "broadcast_to",
    "cbrt",
    "ceil",
    "clip",
    "cos",
    "cosh",
    "degrees",
    "depth_to_space",
    "diag",
    "exp",
    "expand_dims",
    "expm1",
    "fix",
    "flatten",
    "flip",
    "floor",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_softmax",
    "max",
    "mean",
    "min",
    "nanprod",
    "nansum",
    "norm",
    "one_hot",
    "ones_like",
    "pad",
    "pick",
    "prod",
    "radians",
    "rcbrt",
    "reciprocal",
    "relu",
    "repeat",
    "reshape_like",
    "rint",
    "round",
    "rsqrt",
    "shape_array",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "size_array",
    "slice",
    "slice_axis",
    "slice_like",
    "softmax",
    "softmin",
    "sort",
    "space_to_depth",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "sum",
    "swapaxes",
    "take",
    "tan",
    "tanh",
    "tile",
    "topk",
    "transpose",
    "trunc",
    "zeros_like",
]


class _FluentMethod:
    """Placeholder for an operator's method until its first use, so that importing creates no operator objects."""

    def __init__(self, name: str, module: str, symbolic: bool) -> None:
        self.name = name
        self.module = module
        self.symbolic = symbolic

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner = owner

    def __get__(self, instance: Any, owner: type) -> Any:
        made = function("", self.name, self.module, symbolic=self.symbolic)
        setattr(self.owner, self.name, made)
        return made if instance is None else made.__get__(instance, owner)


def add_fluent_methods(cls: type, module: str, *, symbolic: bool) -> None:
    """Adds to cls a method for each operator of the table that it does not define itself."""
    for name in FLUENT:
        if name not in cls.__dict__:
            method = _FluentMethod(name, module, symbolic)
            method.__set_name__(cls, name)
            setattr(cls, name, method)


def missing_operators() -> list[str]:
    """Returns the names in the table that the registry does not know."""
    return [name for name in FLUENT if name not in public_names()]
