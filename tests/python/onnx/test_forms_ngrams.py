"""Counts of n-grams."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import pytest
from hybridnet.errors import UnsupportedError

pytest.importorskip("onnx")

from onnx_models import assert_as_onnxruntime, model, node

# Four single numbers, three pairs, and two triples.
POOL = [2, 3, 5, 4, 5, 6, 7, 8, 6, 7, 1, 2, 3, 3, 2, 1]
ROWS = {"x": ("int64", ["N", "C"])}


def counts(lengths: tuple[int, int], skip: int, mode: str, **attributes: Any) -> Any:
    given = {"weights": [index + 0.5 for index in range(9)], "ngram_indexes": list(range(9)), **attributes}
    made = node(
        "TfIdfVectorizer",
        "x",
        min_gram_length=lengths[0],
        max_gram_length=lengths[1],
        max_skip_count=skip,
        mode=mode,
        ngram_counts=[0, 4, 10],
        pool_int64s=POOL,
        **given,
    )
    return model([made], ROWS)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize(("lengths", "skip"), [((1, 1), 0), ((1, 2), 3), ((2, 2), 2), ((1, 3), 1), ((3, 3), 2)])
def test_counts_are_those_of_onnxruntime_for_all_sizes(lengths, skip, mode, rng):
    proto = counts(lengths, skip, mode)
    assert_as_onnxruntime(proto, *[[rng.integers(1, 9, shape)] for shape in ((4, 30), (2, 9), (1, 2))])


def test_indices_place_the_counts(rng):
    proto = counts((1, 2), 1, "TF", ngram_indexes=[8, 1, 0, 3, 2, 7, 6, 5, 4])
    assert_as_onnxruntime(proto, [rng.integers(1, 9, (4, 30))])


def test_weights_whose_order_is_not_clear_are_refused():
    with pytest.raises(UnsupportedError, match="order of the pool"):
        mx.onnx.import_to_gluon(counts((1, 2), 1, "IDF", ngram_indexes=[8, 1, 0, 3, 2, 7, 6, 5, 4]))


def test_strings_are_refused():
    made = node(
        "TfIdfVectorizer",
        "x",
        min_gram_length=1,
        max_gram_length=1,
        max_skip_count=0,
        mode="TF",
        ngram_counts=[0],
        ngram_indexes=[0],
        pool_strings=["a"],
    )
    with pytest.raises(UnsupportedError, match=r"TfIdfVectorizer.*strings"):
        mx.onnx.import_to_gluon(model([made], ROWS))
