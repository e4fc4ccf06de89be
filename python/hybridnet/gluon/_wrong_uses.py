"""Errors for parameters and methods that are used as if they were values: ``x * weight``, ``net.hybridize = True``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import HybridNetError
from ..errors import TypeError as HybridNetTypeError

__all__ = ["refuse_arithmetic", "set_method", "unregistered_fix"]

_READ = "call .data(), such as self.weight.data()"
_WRITE = "give all values: weight.set_data(mx.nd.zeros(weight.shape))"
_BINARY = ("add", "sub", "mul", "truediv", "matmul", "pow")
_FIXES = {
    **{name: _READ for operator in _BINARY for name in (operator, f"r{operator}")},
    "neg": _READ,
    "getitem": _READ,
    "setitem": _WRITE,
}


def refuse_arithmetic(cls: type) -> None:
    """Gives the class of parameters operators that raise an error with the fix: a parameter is no array."""
    for name, fix in _FIXES.items():
        setattr(cls, f"__{name}__", _refusal(fix))


def _refusal(fix: str) -> Callable[..., Any]:
    def refuse(self: Any, *_: Any) -> Any:
        raise HybridNetTypeError(
            f"Parameter {self.name!r}: used as an array, but it holds an array for each device", fix=fix
        )

    return refuse


def set_method(owner: str, name: str) -> HybridNetError:
    """Returns the error for a value that is set in place of a method, which would lose the method without effect."""
    fix = {
        "data": "call set_data(array), such as net.weight.set_data(array)",
        "grad": "write into the gradient: net.weight.grad()[:] = array",
        "hybridize": "call net.hybridize()",
    }.get(name, f"call {name}(...) instead of setting it")
    return HybridNetTypeError(f"{owner}.{name} is a method, and cannot be set to a value", fix=fix)


def unregistered_fix(parent: Any, child: Any) -> str | None:
    """Returns the fix for a child that its parent only has in a list, tuple or dict; None if it has it otherwise."""
    for name, value in parent.__dict__.items():
        held = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
        if name.startswith("_") or not any(item is child for item in held):
            continue
        layers = f"self.{name}.values()" if isinstance(value, dict) else f"self.{name}"
        register = f"register the layers of self.{name}, a {type(value).__name__}, which initialize() does not see"
        if isinstance(value, dict):
            return f"{register}: for layer in {layers}: self.register_child(layer)"
        return f"{register}: layers = nn.HybridSequential(), layers.add(*{layers}), then self.{name} = layers"
    return None
