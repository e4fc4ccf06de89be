"""Counting tokens."""

from __future__ import annotations

import re
from collections import Counter

from ..._public_names import dir_of

__all__ = ["count_tokens_from_str"]


def count_tokens_from_str(
    source_str: str,
    token_delim: str = " ",
    seq_delim: str = "\n",
    to_lower: bool = False,
    counter_to_update: Counter[str] | None = None,
) -> Counter[str]:
    """Counts the tokens in a text.

    Parameters
    ----------
    source_str : str
    token_delim, seq_delim : str
        Regular expressions that separate tokens and sequences.
    to_lower : bool, default False
        Whether tokens are converted to lower case.
    counter_to_update : Counter, optional
        Counter to add to; default: a new one.
    """
    counter: Counter[str] = Counter() if counter_to_update is None else counter_to_update
    tokens = [token for token in re.split(f"{token_delim}|{seq_delim}", source_str) if token]
    counter.update(token.lower() for token in tokens) if to_lower else counter.update(tokens)
    return counter


__dir__ = dir_of(__name__)
