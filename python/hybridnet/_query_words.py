"""The texts of queries for rewrites. Every hybridize() makes one; few programs need the package hybridnet.rewrite."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .errors import TypeError as HybridNetTypeError

__all__ = ["joined_query", "listed_words"]


def listed_words(words: Iterable[str]) -> list[str]:
    """The words of a list. Raises TypeError for a text."""
    if isinstance(words, str):
        raise HybridNetTypeError("a query takes lists of words", given=repr(words), fix=f"write [{words!r}]")
    return list(words)


def joined_query(
    passes: Any, include: Iterable[str] = (), exclude: Iterable[str] = (), require: Iterable[str] = ()
) -> str:
    """The text of a query that several keywords give together."""
    words = [str(passes)] if str(passes) else []
    words += listed_words(include)
    words += [f"-{word}" for word in listed_words(exclude)]
    words += [f"&{word}" for word in listed_words(require)]
    return ",".join(words)
