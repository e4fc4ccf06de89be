"""Vocabulary: the mapping between tokens and numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from ..._public_names import dir_of
from ...errors import ParamError

__all__ = ["TextError", "Vocabulary"]

UNKNOWN_IDX = 0


class TextError(ParamError, AssertionError):
    """Arguments do not match. Also an AssertionError, which MXNet raised here."""


class Vocabulary:
    """Numbered tokens, the most frequent first; 0 is the unknown token, followed by reserved ones.

    Parameters
    ----------
    counter : collections.Counter, optional
        Number of occurrences of each token.
    most_freq_count : int, optional
        Maximum number of tokens taken from counter.
    min_freq : int, default 1
        Less frequent tokens are left out.
    unknown_token : hashable, default '<unk>'
    reserved_tokens : list, optional
        Tokens that are always included.

    Raises TextError (a ValueError) for min_freq < 1 and reserved tokens that are repeated or equal the unknown one.
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
        """The number of each token."""
        return self._token_to_idx

    @property
    def idx_to_token(self) -> list[Any]:
        """The tokens in order of their numbers."""
        return self._idx_to_token

    @property
    def unknown_token(self) -> Any:
        """The token that represents all tokens outside of the vocabulary."""
        return self._unknown_token

    @property
    def reserved_tokens(self) -> list[Any] | None:
        """The tokens that are always included."""
        return self._reserved_tokens

    def to_indices(self, tokens: Any) -> Any:
        """Returns the number of a token, or the numbers of a list; unknown tokens have 0."""
        if isinstance(tokens, list):
            return [self._token_to_idx.get(token, UNKNOWN_IDX) for token in tokens]
        return self._token_to_idx.get(tokens, UNKNOWN_IDX)

    def to_tokens(self, indices: Any) -> Any:
        """Returns the token of a number, or the tokens of a list. Raises ParamError for unknown numbers."""
        numbers = indices if isinstance(indices, list) else [indices]
        for number in numbers:
            if not isinstance(number, int) or not 0 <= number < len(self):
                raise ParamError(
                    f"Vocabulary: Token index {number} in the provided `indices` is invalid, there are {len(self)}"
                )
        tokens = [self._idx_to_token[number] for number in numbers]
        return tokens if isinstance(indices, list) else tokens[0]


__dir__ = dir_of(__name__)
