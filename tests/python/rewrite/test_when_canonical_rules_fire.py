"""Each canonicalization rule of a table fires on its example and not on its counterexample.

`tests/cpp/passes/rules_test.cc` checks the same for every rule of the pipeline, and
`tests/python/rewrite/test_canonical_rules.py` compares values.
"""

from __future__ import annotations

import hybridnet as mx
import pytest
from hybridnet import rewrite as rw

from rewrite.graphs import graph_of, variables

X, Y = variables("x", "y")
SYM = mx.sym
ROW, BOTH = Y.slice_axis(0, 0, 1), SYM.concat(X, Y)
COLUMN = SYM.expand_dims(X.slice_axis(1, 0, 1).slice_axis(0, 0, 1), axis=0)
LARGE = SYM.random.uniform(shape=(2, 4, 3))


def repeated(value, shape):
    return SYM.broadcast_to(value, shape)


def along_1(value):
    return SYM.broadcast_axis(value, axis=1, size=4)


def cast(value, *dtypes):
    for dtype in dtypes:
        value = SYM.cast(value, dtype)
    return value


# rule, an expression that it rewrites, an expression that it must leave unchanged
TABLE = [
    ("fold_constants", X + SYM.zeros((2, 3)) * 2, X + SYM.random.uniform(shape=(2, 3))),
    ("neutral_scalar", SYM.tanh(X * 1), SYM.tanh(X * 2)),
    ("neutral_term", SYM.tanh(X + SYM.zeros_like(X)), SYM.tanh(X + SYM.ones_like(X))),
    ("absorb", X * 0, X * 1),
    ("cancel_factors", SYM.tanh(X * Y / Y), SYM.tanh(X * Y / X.abs())),
    ("join_factors", X / Y / 3 * 7, X / Y * 7),
    ("square_of_self", X * X, X * Y),
    ("reciprocal", 1 / X, 2 / X),
    ("opposite", X * -1, X * -2),
    ("small_power", X**3, X**5),
    ("root_power", X**0.5, X**0.25),
    ("join_casts", cast(X, "float64", "float16"), cast(X, "float16", "float32")),
    ("join_transposes", SYM.transpose(SYM.transpose(X)) + 1, SYM.transpose(X) + 1),
    ("join_reshapes", X.reshape((3, 2)).reshape((6, 1)), X.reshape((3, 2)).reshape((0, 1, -1))),
    ("shorten_views", SYM.squeeze(SYM.expand_dims(SYM.tanh(X), axis=0)) + 1, SYM.expand_dims(X, axis=0)),
    ("join_repeats", repeated(repeated(COLUMN, (2, 1, 1)), (2, 4, 3)), repeated(COLUMN, (2, 4, 3))),
    ("join_repeats", along_1(repeated(COLUMN, (2, 1, 1))), along_1(COLUMN)),
    ("join_repeats", SYM.broadcast_like(repeated(COLUMN, (2, 4, 1)), LARGE), SYM.broadcast_like(COLUMN, LARGE)),
    ("repeat_in_place", X + SYM.broadcast_to(ROW, (2, 3)), SYM.broadcast_to(ROW, (2, 3))),
    ("join_slices", X.slice_axis(1, 1, None).slice_axis(1, -1, None), X.slice_axis(1, 2, None).slice_axis(1, -2, None)),
    ("split_of_join", sum(SYM.split(BOTH, num_outputs=2)), sum(SYM.split(BOTH, num_outputs=3))),
    ("part_of_stack", SYM.stack(X, Y).slice_axis(0, 1, 2), SYM.stack(X, Y).slice_axis(0, 0, 2)),
    ("shape_of_source", SYM.shape_array(X.exp()), SYM.shape_array(SYM.transpose(X))),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "fires", "stays"), TABLE, ids=[row[0] for row in TABLE])
def test_a_rule_fires_where_it_says_and_nowhere_else(rule, fires, stays) -> None:
    words = f"{rule},fast_math"
    graph = graph_of(fires)
    assert rw.apply(graph, words, end=38).fired(rule) > 0
    graph = graph_of(stays)
    before = graph.fingerprint()
    assert not rw.apply(graph, words, end=38).changed
    assert graph.fingerprint() == before
