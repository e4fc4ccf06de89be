"""Errors for calls in the habits of other libraries: too many arguments, layers for a container, wrong inputs."""

from __future__ import annotations

import builtins
import inspect
from functools import cache
from typing import Any

from .._user_line import is_own_file
from ..errors import HybridNetError, ParamError
from ..errors import TypeError as HybridNetTypeError

__all__ = ["NotConstructed", "check_arguments", "layers_in_constructor", "no_children", "no_layer", "wrong_call"]

_REQUIRED = inspect.Parameter.empty


@cache
def _parameters(cls: type) -> tuple[inspect.Parameter, ...] | None:
    """Returns the positional parameters of a constructor of the package; None if it belongs to the program."""
    function = inspect.unwrap(cls.__init__)  # type: ignore[misc]
    code = getattr(function, "__code__", None)
    if code is None or not is_own_file(code.co_filename):
        return None
    parameters = list(inspect.signature(function).parameters.values())[1:]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    return tuple(p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)


def check_arguments(cls: type, args: tuple[Any, ...]) -> None:
    """Raises ParamError if the constructor of a layer of the package has too many arguments.

    A missing argument is left to Python: pickle and copy call ``__new__`` without any.
    """
    parameters = _parameters(cls)
    if parameters is None:
        return
    if len(args) > len(parameters):
        raise ParamError(
            f"{cls.__name__}: too many arguments",
            expected=f"at most {len(parameters)}",
            given=str(len(args)),
            fix=f"call {cls.__name__}({_shown(parameters)})",
        )


def _shown(parameters: tuple[inspect.Parameter, ...]) -> str:
    """Returns the first arguments of a constructor as text: ``units, activation=None, use_bias=True, ...``."""
    shown = [p.name if p.default is _REQUIRED else f"{p.name}={p.default!r}" for p in parameters]
    count = max(sum(p.default is _REQUIRED for p in parameters), 3)
    return ", ".join(shown[:count] + ["..."] * (len(shown) > count))


def layers_in_constructor(cls: type, count: int) -> HybridNetError:
    """Returns the error for ``Sequential(layer, layer)`` and ``Sequential([layer, layer])``."""
    return ParamError(
        f"{cls.__name__}: a constructor without layers is expected",
        given=f"{count} of them" if count != 1 else "one",
        because="its arguments are prefix and params; layers are added afterwards",
        fix=f"net = nn.{cls.__name__}(), then net.add(layer, layer)",
    )


def no_layer(value: Any, owner: str) -> HybridNetError:
    """Returns the error for a child that is no Block; owner: name of the class that should take it."""
    if isinstance(value, type):
        given, fix = f"the class {value.__name__}", f"add an instance: net.add(nn.{value.__name__}(...))"
    elif isinstance(value, (list, tuple)):
        given, fix = f"a {type(value).__name__}", "give the layers one by one: net.add(*layers)"
    elif isinstance(value, str):
        given, fix = repr(value), f"add a layer, such as net.add(nn.Activation({value!r}))"
    elif callable(value):
        given, fix = "a function", "wrap it: net.add(nn.HybridLambda(lambda F, x: ...))"
    else:
        given, fix = type(value).__name__, "add a layer, such as net.add(nn.Dense(10))"
    return HybridNetTypeError(f"{owner}: a child", expected="a Block", given=given, fix=fix)


class NotConstructed:
    """An attribute of the class Block that stands for one of the instance, until the constructor of Block has run."""

    def __get__(self, block: Any, cls: type) -> Any:
        if block is None:
            return self
        raise HybridNetTypeError(
            f"{cls.__name__}: used before the constructor of Block has run",
            fix=f"begin {cls.__name__}.__init__ with super().__init__()",
        )


def no_children(block: Any) -> HybridNetError:
    """Returns the error for an index or a loop over a block that is no container."""
    names = list(block._children)
    fix = f"name a child, such as net.{names[0]}" if names and names[0].isidentifier() else "use the layer itself"
    return HybridNetTypeError(
        f"{type(block).__name__}: a block without indices",
        because="only Sequential and HybridSequential are lists of layers",
        fix=fix,
    )


def wrong_call(block: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> HybridNetError | None:
    """Returns the error for a call of a block with too many or too few inputs; None if their number is right.

    F and the parameters of hybrid_forward are not inputs.
    """
    function = block.forward if getattr(block, "_plain_forward", True) else block.hybrid_forward
    parameters = list(inspect.signature(function).parameters.values())
    if function.__name__ == "hybrid_forward":
        parameters = [p for p in parameters[1:] if p.name not in block._reg_params]
    try:
        inspect.Signature(parameters).bind(*args, **keywords)
    except builtins.TypeError:
        pass
    else:
        return None
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is _REQUIRED]
    given = "1 input" if len(args) == 1 else f"{len(args)} inputs"
    name = type(block).__name__
    return ParamError(
        f"{name}: inputs",
        expected=f"({', '.join(names)})",
        given=given + (f" and {', '.join(keywords)}=" if keywords else ""),
        because=f"{name}.{function.__name__} has these",
        fix=f"call the block as net({', '.join(names)})",
        block=getattr(block, "name", None),
    )
