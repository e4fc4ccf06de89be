"""Vocabulary: numbers of tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from ...errors import ParamError

__all__ = ["TextError", "Vocabulary"]

UNKNOWN_IDX = 0


class TextError(ParamError, AssertionError):
    """Arguments do not fit. Also an AssertionError, which MXNet raised here."""


class Vocabulary:
    """Tokens by number, the most frequent first; 0 is the unknown token, then come reserved ones.

    Parameters
    ----------
    counter : collections.Counter, optional
        How often tokens occur.
    most_freq_count : int, optional
        At most that many tokens of counter.
    min_freq : int, default 1
        Tokens that occur less are left out.
    unknown_token : hashable, default '<unk>'
    reserved_tokens : list, optional
        Tokens that are there in any case.

    Raises TextError (a ValueError) for min_freq < 1 and reserved tokens that repeat or are the unknown one.
    """

    def __init__(
        self,
        counter: Counter[Any] | None = None,
        most_freq_count: int | None = None,
        min_freq: int = 1,
        unknown_token: Hashable = "<unk>",
        reserved_tokens: Sequence[Hashable] | None = None,
    ) -> None:
        if min_freq < 1:
            raise TextError("Vocabulary: `min_freq` must be set to a positive value", given=str(min_freq))
        reserved = list(reserved_tokens or ())
        if len({unknown_token, *reserved}) != len(reserved) + 1:
            raise TextError("Vocabulary: `reserved_tokens` must not repeat and not contain the `unknown_token`")
        self._unknown_token = unknown_token
        self._reserved_tokens = reserved or None
        self._idx_to_token: list[Any] = [unknown_token, *reserved]
        if counter is not None:
            self._idx_to_token += self._frequent(counter, most_freq_count, min_freq)
        self._token_to_idx = {token: i for i, token in enumerate(self._idx_to_token)}

    def _frequent(self, counter: Counter[Any], most_freq_count: int | None, min_freq: int) -> list[Any]:
        present = set(self._idx_to_token)
        ordered = sorted(sorted(counter.items(), key=lambda item: item[0]), key=lambda item: item[1], reverse=True)
        tokens = [token for token, count in ordered if count >= min_freq and token not in present]
        return tokens if most_freq_count is None else tokens[:most_freq_count]

    def __len__(self) -> int:
        return len(self._idx_to_token)

    @property
    def token_to_idx(self) -> dict[Any, int]:
        """Number of each token."""
        return self._token_to_idx

    @property
    def idx_to_token(self) -> list[Any]:
        """Tokens by number."""
        return self._idx_to_token

    @property
    def unknown_token(self) -> Any:
        """The token that stands for all others."""
        return self._unknown_token

    @property
    def reserved_tokens(self) -> list[Any] | None:
        """Tokens that are there in any case."""
        return self._reserved_tokens

    def to_indices(self, tokens: Any) -> Any:
        """Number of a token, or list of numbers of a list; unknown ones are 0."""
        if isinstance(tokens, list):
            return [self._token_to_idx.get(token, UNKNOWN_IDX) for token in tokens]
        return self._token_to_idx.get(tokens, UNKNOWN_IDX)

    def to_tokens(self, indices: Any) -> Any:
        """Token of a number, or list of tokens of a list. Raises ParamError for unknown numbers."""
        numbers = indices if isinstance(indices, list) else [indices]
        for number in numbers:
            if not isinstance(number, int) or not 0 <= number < len(self):
                raise ParamError(
                    f"Vocabulary: Token index {number} in the provided `indices` is invalid, there are {len(self)}"
                )
        tokens = [self._idx_to_token[number] for number in numbers]
        return tokens if isinstance(indices, list) else tokens[0]
