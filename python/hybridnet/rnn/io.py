"""Encoding of sentences as numbers, and batches of sentences of similar length."""

from __future__ import annotations

import bisect
import logging
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ndarray
from .._public_names import dir_of
from ..errors import ParamError
from ..io import DataBatch, DataDesc, DataIter

__all__ = ["BucketSentenceIter", "encode_sentences"]


def encode_sentences(
    sentences: Sequence[Sequence[str]],
    vocab: dict[str, int] | None = None,
    invalid_label: int = -1,
    invalid_key: str = "\n",
    start_label: int = 0,
    unknown_token: str | None = None,
) -> tuple[list[list[int]], dict[str, int]]:
    """Encodes tokens as numbers.

    Parameters
    ----------
    sentences : list of lists of str
    vocab : dict, optional
        Numbers of tokens; default: a new one, from start_label up.
    invalid_label, invalid_key : number and text of the invalid token in a new vocab
    unknown_token : str, optional
        Replaces tokens missing in vocab, and is added to it.

    Returns (encoded sentences, vocab). Raises ParamError for an unknown token without unknown_token.
    """
    new = vocab is None
    known = {invalid_key: invalid_label} if vocab is None else vocab
    following = start_label
    result = []
    for sentence in sentences:
        coded = []
        for word in sentence:
            if word not in known:
                if not new and not unknown_token:
                    raise ParamError(f"encode_sentences: Unknown token {word}", fix="give unknown_token")
                word = unknown_token or word
                if word not in known:
                    following += following == invalid_label
                    known[word] = following
                    following += 1
            coded.append(known[word])
        result.append(coded)
    return result, known


class BucketSentenceIter(DataIter):
    """Yields batches of sentences, padded to their bucket's length, for BucketingModule. Labels are the next tokens.

    Parameters
    ----------
    sentences : list of lists of int
    batch_size : int
    buckets : list of int, optional
        Lengths; default: lengths with at least batch_size sentences.
    invalid_label : int, default -1
        Padding number.
    dtype : default 'float32'
    data_name, label_name : str
    layout : 'NT' or 'TN'

    Sentences longer than the longest bucket are skipped. Raises ParamError for another layout and without buckets.
    """

    def __init__(
        self,
        sentences: Sequence[Sequence[int]],
        batch_size: int,
        buckets: list[int] | None = None,
        invalid_label: int = -1,
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: Any = "float32",
        layout: str = "NT",
    ) -> None:
        super().__init__(batch_size)
        if layout not in ("NT", "TN"):
            raise ParamError(f"Invalid layout {layout}: Must be NT (batch major) or TN (time major)")
        if not buckets:
            counts = np.bincount([len(sentence) for sentence in sentences])
            buckets = [length for length, count in enumerate(counts) if count >= batch_size]
        self.data_name, self.label_name = data_name, label_name
        self.dtype = dtype
        self.invalid_label = invalid_label
        self.layout = layout
        self.major_axis = layout.find("N")
        self._fill(sentences, sorted(buckets))
        self.default_bucket_key = max(self.buckets)
        shape = (batch_size, self.default_bucket_key)[:: 1 if layout == "NT" else -1]
        self.provide_data = [DataDesc(data_name, shape, layout=layout)]
        self.provide_label = [DataDesc(label_name, shape, layout=layout)]
        self.idx = [
            (i, j) for i, bucket in enumerate(self.data) for j in range(0, len(bucket) - batch_size + 1, batch_size)
        ]
        self.reset()

    def _fill(self, sentences: Sequence[Sequence[int]], buckets: list[int]) -> None:
        held: list[list[np.ndarray]] = [[] for _ in buckets]
        discarded = 0
        for sentence in sentences:
            place = bisect.bisect_left(buckets, len(sentence))
            if place == len(buckets):
                discarded += 1
                continue
            padded = np.full((buckets[place],), self.invalid_label, dtype=self.dtype)
            padded[: len(sentence)] = sentence
            held[place].append(padded)
        if discarded:
            logging.warning("discarded %d sentences longer than the largest bucket.", discarded)
        self.buckets = [bucket for bucket, rows in zip(buckets, held, strict=True) if rows]
        self.data = [np.asarray(rows, dtype=self.dtype) for rows in held if rows]
        if not self.data:
            raise ParamError("BucketSentenceIter: no bucket has a sentence", fix="give buckets or a smaller batch_size")

    def reset(self) -> None:
        """Starts a new epoch, in a new random order."""
        self.curr_idx = 0
        random.shuffle(self.idx)
        self.nddata, self.ndlabel = [], []
        for rows in self.data:
            np.random.shuffle(rows)
            label = np.full_like(rows, self.invalid_label)
            label[:, :-1] = rows[:, 1:]
            self.nddata.append(ndarray.array(rows, dtype=self.dtype))
            self.ndlabel.append(ndarray.array(label, dtype=self.dtype))

    def next(self) -> DataBatch:
        """Returns the next batch; its bucket_key is the length. Raises StopIteration after the last one."""
        if self.curr_idx == len(self.idx):
            raise StopIteration
        i, j = self.idx[self.curr_idx]
        self.curr_idx += 1
        data, label = (arrays[i][j : j + self.batch_size] for arrays in (self.nddata, self.ndlabel))
        if self.major_axis == 1:
            data, label = data.T, label.T
        return DataBatch(
            [data],
            [label],
            pad=0,
            bucket_key=self.buckets[i],
            provide_data=[DataDesc(self.data_name, data.shape, layout=self.layout)],
            provide_label=[DataDesc(self.label_name, label.shape, layout=self.layout)],
        )


__dir__ = dir_of(__name__)
