"""Errors for unknown keywords, which name the class or function and the nearest known keyword."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np

from ._user_line import is_own_file
from .errors import HybridNetError, ParamError, unknown_name

__all__ = [
    "ChecksKeywords", "as_bool", "check_hybridize_keywords", "check_keywords", "no_keyword", "precision_text",
    "remat_text", "unknown_keyword",
]  # fmt: skip

# backend_opts and partition_if_dynamic belong to MXNet's subgraph backends: accepted without effect.
_HYBRIDIZE = (
    "active", "backend", "backend_opts", "clear", "partition_if_dynamic", "static_alloc", "static_shape",
    "inline_limit", "forward_bulk_size", "backward_bulk_size", "passes", "include", "exclude", "require", "strict",
    "remat", "precision", "donate",
)  # fmt: skip


@cache
def _signature(cls: type) -> inspect.Signature:
    return inspect.signature(cls.__init__)  # type: ignore[misc]


def _takes_any(cls: type) -> bool:
    return any(p.kind is p.VAR_KEYWORD for p in _signature(cls).parameters.values())


@cache
def _known(cls: type) -> tuple[str, ...]:
    """Returns the keywords of a class and, as far as constructors pass others on, of its bases."""
    names: dict[str, None] = {}
    for base in cls.__mro__:
        if "__init__" not in vars(base) or base is object:
            continue
        parameters = list(_signature(base).parameters.values())[1:]
        names.update((p.name, None) for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
        if not _takes_any(base):
            break
    return tuple(names)


@cache
def _takes_only_known(cls: type) -> bool:
    """Whether every constructor that passes keywords on is the package's, and the last one takes none but its own."""
    for base in cls.__mro__:
        if "__init__" not in vars(base):
            continue
        code = getattr(inspect.unwrap(base.__init__), "__code__", None)  # type: ignore[misc]
        if code is None or not is_own_file(code.co_filename):  # a program's constructor may use up any keyword
            return False
        if not _takes_any(base):
            return True
    return False


def unknown_keyword(cls: type, keywords: Iterable[str]) -> HybridNetError:
    """Returns the error for keywords that no constructor of cls takes."""
    known = _known(cls)
    word = next((name for name in keywords if name not in known), None) or next(iter(keywords))
    bases = [base.__name__ for base in cls.__mro__[1:]]
    return unknown_name(cls.__name__, "keyword", word, [name for name in known if name != word], ParamError, bases)


def no_keyword(function: Callable[..., Any], unknown: Iterable[str]) -> HybridNetError:
    """Returns the error for unknown keywords of a function, which takes them as ``**unknown: NoReturn`` for this error.

    A type checker still refuses every keyword: no value has this type.
    """
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    known = [p.name for p in inspect.signature(function).parameters.values() if p.kind in named and p.name != "self"]
    return unknown_name(function.__name__, "keyword", next(iter(unknown)), known, ParamError)


def check_hybridize_keywords(keywords: Iterable[str]) -> None:
    """Raises ParamError if hybridize() does not know one of the keywords."""
    for word in keywords:
        if word not in _HYBRIDIZE:
            raise unknown_name("hybridize", "keyword", word, _HYBRIDIZE, ParamError)


def check_keywords(cls: type, args: tuple[object, ...], keywords: dict[str, object]) -> None:
    """Raises ParamError if the constructor of cls fails with these arguments because of an unknown keyword.

    A program's constructor that accepts any keyword and has all required arguments passes: it may pass the keyword on.
    """
    if all(name in _known(cls) for name in keywords):
        return
    if _takes_only_known(cls):
        raise unknown_keyword(cls, keywords)
    try:
        _signature(cls).bind(None, *args, **keywords)
    except TypeError:
        raise unknown_keyword(cls, keywords) from None


class ChecksKeywords:
    """Base of classes whose constructor raises ParamError with the fix for an unknown keyword, instead of TypeError."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            check_keywords(cls, args, kwargs)
        return super().__new__(cls)


def as_bool(name: str, value: object) -> bool:
    """Returns the value of a keyword that is a bool, 0 or 1. Raises ParamError for other values, such as text."""
    if isinstance(value, (bool, int, np.bool_)):
        return bool(value)
    raise ParamError(name, expected="a bool", given=f"{value!r} of {type(value).__name__}")


def remat_text(remat: str | int) -> str:
    """Returns the value of a keyword `remat` for CachedOp. Raises ParamError unless it is 'auto', 'none' or bytes."""
    from . import _core

    if isinstance(remat, bool) or not isinstance(remat, (str, int)):
        raise ParamError(
            "remat",
            expected="'auto', 'none' or a number of bytes, 0 or more",
            given=f"{remat!r} of {type(remat).__name__}",
        )
    _core.check_remat(str(remat))
    return str(remat)


def precision_text(precision: Any) -> str:
    """Returns the value of a keyword `precision` for CachedOp: a name, or a dtype. Raises ParamError for others."""
    name = precision if isinstance(precision, str) else getattr(precision, "__name__", str(precision))
    if name not in ("float32", "bfloat16", "float16"):
        raise ParamError("precision", expected="'float32', 'bfloat16' or 'float16'", given=repr(precision))
    return name
