"""Counts of n-grams: short runs of numbers in rows of numbers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from .._arithmetic import calculate, cut
from .._errors import refuse, wrong
from .._table import form
from .._values import Value
from .padding import padded


@form("TfIdfVectorizer")
def tf_idf_vectorizer(g: Any, node: Any, x: Value) -> Value:
    """How often each n-gram of a pool is found in a row; its items may have equal gaps, up to max_skip_count.

    Mode TF gives the counts, TFIDF counts times weights, IDF the weights of n-grams that are found.
    """
    grams, places = _pool(node), np.asarray(node.attr("ngram_indexes"), "int64")
    if sum(map(len, grams.values())) != places.size:
        raise wrong("ngram_indexes has not one index for each n-gram of the pool", node=node.proto)
    rows = g.cast(x if x.ndim == 2 else g.emit("expand_dims", [x], axis=0), "int64")
    counts = [found for size, pool in grams.items() if (found := _counts(g, node, rows, size, pool)) is not None]
    width = int(places.max()) + 1
    read = [number for size, pool in _numbered(grams).items() if _is_counted(node, size) for number in pool]
    if not counts:
        raise refuse("no n-gram of the pool has a length that is counted", node=node.proto)
    spread = np.zeros((len(read), width), "float32")
    spread[np.arange(len(read)), places[read]] = 1
    joined = counts[0] if len(counts) == 1 else g.emit("Concat", counts, num_args=len(counts), dim=1)
    made = g.emit("dot", [joined, g.constant(spread, f"{node.name}_places", trainable=False)])
    made = _weighted(g, node, made, places, width)
    return made if x.ndim == 2 else g.emit("_np_squeeze", [made], name=node.name, axis=0)


def _pool(node: Any) -> dict[int, np.ndarray]:
    """The n-grams of each length, as rows."""
    if not node.has("pool_int64s"):
        raise refuse("n-grams of strings are not supported", node=node.proto)
    pool = np.asarray(node.attr("pool_int64s"), "int64")
    ends = [*node.attr("ngram_counts"), pool.size]
    parts = itertools.pairwise(ends)
    return {size: pool[first:end].reshape(-1, size) for size, (first, end) in enumerate(parts, 1) if end > first}


def _numbered(grams: dict[int, np.ndarray]) -> dict[int, range]:
    """The numbers of the n-grams of each length in the pool."""
    made, first = {}, 0
    for size, pool in grams.items():
        made[size] = range(first, first + len(pool))
        first += len(pool)
    return made


def _is_counted(node: Any, size: int) -> bool:
    return bool(node.attr("min_gram_length") <= size <= node.attr("max_gram_length"))


def _counts(g: Any, node: Any, rows: Value, size: int, pool: np.ndarray) -> Value | None:
    """(rows, n-grams): how often they are found; None: those of this length are not counted."""
    if not _is_counted(node, size):
        return None
    steps = range(1, node.attr("max_skip_count") + 2) if size > 1 else (1,)
    # Elements behind the rows, which no n-gram holds, let all windows have the length of the rows.
    free = g.constant(int(pool.min()) - 1, "no_item", "int64", trainable=False)
    longer = padded(g, rows, [0, 0], [0, (size - 1) * steps[-1]], "constant", free, "") if size > 1 else rows
    length = g.dim(rows, 1)
    total: Any = 0
    for step in steps:
        found = None
        for index in range(size):
            items = cut(g, longer, 1, index * step, calculate(g, "+", length, index * step))
            wanted = g.constant(pool[:, index], f"{node.name}_items", trainable=False)
            same = g.emit("_npi_equal", [g.emit("expand_dims", [items], axis=2), wanted])
            found = same if found is None else g.emit("_npi_bitwise_and", [found, same])
        total = calculate(g, "+", g.emit("sum", [g.cast(found, "float32")], axis=(1,)), total)
    made: Value = total
    return made


def _weighted(g: Any, node: Any, counts: Value, places: np.ndarray, width: int) -> Value:
    mode, weights = node.attr("mode"), node.attr("weights")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise wrong(f"mode '{mode}' is none of TF, IDF and TFIDF", node=node.proto)
    if mode == "TF":
        return counts
    if mode == "IDF":
        counts = g.cast(g.emit("_npi_greater_scalar", [counts], scalar=0), "float32")
    if weights is None:
        return counts
    of_places = np.ones(width, "float32")
    of_places[: len(weights)] = weights[:width]
    of_grams = np.ones(width, "float32")
    of_grams[places[: len(weights)]] = weights[: len(places)]
    if not np.array_equal(of_places, of_grams):
        raise refuse(
            "weights for n-grams whose indices are not in the order of the pool",
            because="the standard and the programs that run it order the weights differently",
            fix="order the pool by ngram_indexes",
            node=node.proto,
        )
    return calculate(g, "*", counts, g.constant(of_places, f"{node.name}_weights", trainable=False))


__all__ = ["tf_idf_vectorizer"]
