"""WikiText: text for language models, from files on this machine."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np

from .... import ndarray
from ...._files import read_text
from ...._public_names import dir_of
from ....base import data_dir
from ....contrib import text
from ....errors import FileError, ParamError
from ...data import Dataset

__all__ = ["WikiText103", "WikiText2"]

_EOS = "<eos>"
_FILES = {"train": "wiki.train.tokens", "validation": "wiki.valid.tokens", "test": "wiki.test.tokens"}


class _WikiText(Dataset):
    """Base of the WikiText datasets. Arguments: see WikiText2."""

    _folder = ""

    def __init__(
        self,
        root: str | None = None,
        segment: str = "train",
        vocab: text.vocab.Vocabulary | None = None,
        seq_len: int = 35,
    ) -> None:
        if segment not in _FILES:
            raise ParamError(f"{type(self).__name__}: segment must be one of {', '.join(_FILES)}", given=repr(segment))
        root = os.path.join(data_dir(), "datasets", self._folder) if root is None else root
        content = self._read(os.path.join(os.path.expanduser(root), _FILES[segment]))
        self._counter: Counter[str] = text.utils.count_tokens_from_str(content)
        self._vocab = text.vocab.Vocabulary(self._counter, reserved_tokens=[_EOS]) if vocab is None else vocab
        tokens = [token for line in content.splitlines() if line.strip() for token in (*line.split(), _EOS)]
        numbers = np.array(self._vocab.to_indices(tokens), np.int32)
        count = max(len(numbers) - 1, 0) // seq_len
        self._data, self._label = (
            ndarray.array(numbers[shift : shift + count * seq_len].reshape(count, seq_len), dtype="int32")
            for shift in (0, 1)
        )

    def _read(self, path: str) -> str:
        try:
            return read_text(path, type(self).__name__)
        except FileError as error:
            raise FileError(
                str(error), because="texts are not part of this package", fix="put the file there, or give root"
            ) from error

    @property
    def vocabulary(self) -> text.vocab.Vocabulary:
        """The vocabulary: the numbers of the tokens."""
        return self._vocab

    @property
    def frequencies(self) -> Counter[str]:
        """The number of occurrences of each token."""
        return self._counter

    def __getitem__(self, idx: int) -> tuple[Any, Any]:
        return self._data[idx], self._label[idx]

    def __len__(self) -> int:
        return self._label.shape[0]


class WikiText2(_WikiText):
    """WikiText-2: sequences of seq_len token numbers, with the targets one token later.

    Parameters
    ----------
    root : str, default $HYBRIDNET_HOME/datasets/wikitext-2
        Folder of the files ``wiki.*.tokens``.
    segment : {'train', 'validation', 'test'}
    vocab : Vocabulary, optional
        Default: built from the segment's tokens and '<eos>', which ends each line.
    seq_len : int, default 35

    Source: Merity et al., arXiv 1609.07843. Raises FileError if the file is missing.
    """

    _folder = "wikitext-2"


class WikiText103(_WikiText):
    """WikiText-103. Arguments: see WikiText2."""

    _folder = "wikitext-103"


__dir__ = dir_of(__name__)
