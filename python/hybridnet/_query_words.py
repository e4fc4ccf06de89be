"""Query texts for rewrites. Every hybridize() builds one, but few programs need the package hybridnet.rewrite."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .errors import TypeError as HybridNetTypeError

__all__ = ["joined_query", "listed_words"]


def listed_words(words: Iterable[str]) -> list[str]:
    """Returns the words of a list. Raises TypeError for a string."""
    if isinstance(words, str):
        raise HybridNetTypeError("a query takes lists of words", given=repr(words), fix=f"write [{words!r}]")
    return list(words)


def joined_query(
    passes: Any, include: Iterable[str] = (), exclude: Iterable[str] = (), require: Iterable[str] = ()
) -> str:
    """Joins several keywords into the text of one query."""
    words = [str(passes)] if str(passes) else []
    words += listed_words(include)
    words += [f"-{word}" for word in listed_words(exclude)]
    words += [f"&{word}" for word in listed_words(require)]
    return ",".join(words)
