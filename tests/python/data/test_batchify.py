"""Batches of dicts, texts, named tuples and ragged samples, in every way a DataLoader makes them."""

from __future__ import annotations

import collections

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.gluon import data
from hybridnet.gluon.data import batchify

WAYS = {
    "here": {},
    "pinned": {"pin_memory": True},
    "threads": {"num_workers": 2, "thread_pool": True},
    "processes": {"num_workers": 2},
    "prefetching processes": {"num_workers": 1, "prefetch": 3, "pin_memory": True},
}
Point = collections.namedtuple("Point", "x y")

way = pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)


def lists(batch):
    """Returns the batch with lists instead of arrays."""
    if isinstance(batch, mx.nd.NDArray):
        return batch.asnumpy().tolist()
    if isinstance(batch, dict):
        return {key: lists(value) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [lists(part) for part in batch]
    return batch


@way
def test_dicts_become_a_dict_of_batches_and_texts_a_list(options):
    samples = [
        {"image": np.full((2,), i, "float32"), "name": f"s{i}", "size": (i, 2.0 * i), "raw": b"%d" % i}
        for i in range(4)
    ]
    first, second = data.DataLoader(samples, 2, **options)
    assert type(first) is dict and isinstance(first["image"], mx.nd.NDArray)
    assert lists(first) == {
        "image": [[0, 0], [1, 1]], "name": ["s0", "s1"], "size": [[0, 1], [0, 2]], "raw": [b"0", b"1"],
    }  # fmt: skip
    assert lists(second["size"]) == [[2, 3], [4, 6]] and second["name"] == ["s2", "s3"]
    assert first["image"].dtype == np.float32
    if options.get("pin_memory"):
        assert first["image"].context == mx.cpu_pinned(0)


@way
def test_texts_beside_labels_stay_a_list(options):
    (batch,) = data.DataLoader([("a", 1), ("b", 2)], 2, **options)
    assert lists(batch) == [["a", "b"], [1, 2]]


@way
def test_ragged_samples_are_padded_with_their_lengths(options):
    samples = [(np.arange(1, n + 1), n % 2) for n in (3, 1, 2, 4)]
    fn = batchify.Tuple(batchify.Pad(val=-1, ret_length=True), batchify.Stack())
    first, second = data.DataLoader(samples, 2, batchify_fn=fn, **options)
    (texts, lengths), labels = first
    assert lists(texts) == [[1, 2, 3], [1, -1, -1]] and lists(lengths) == [3, 1] and lists(labels) == [1, 1]
    assert texts.dtype == np.int64 and lengths.dtype == np.int32
    assert lists(second[0][0]) == [[1, 2, -1, -1], [1, 2, 3, 4]]


@way
def test_functions_by_key_make_dicts(options):
    samples = [{"text": [1] * n, "id": f"t{n}", "unused": object()} for n in (1, 3)]
    fn = batchify.Dict({"text": batchify.Pad(val=0), "id": batchify.List()})
    (batch,) = data.DataLoader(samples, 2, batchify_fn=fn, **options)
    assert lists(batch) == {"text": [[1, 0, 0], [1, 1, 1]], "id": ["t1", "t3"]}


@way
def test_functions_by_field_make_named_tuples(options):
    fn = batchify.NamedTuple(Point, {"x": batchify.Stack(), "y": batchify.AsList()})
    (batch,) = data.DataLoader([Point(1.0, "a"), Point(2.0, "b")], 2, batchify_fn=fn, **options)
    assert type(batch) is Point and lists(batch.x) == [1, 2] and batch.y == ["a", "b"]


def test_sizes_are_rounded_up_for_few_shapes():
    assert batchify.Pad(val=0, round_to=4)([[1] * 5, [2]]).shape == (2, 8)
    assert batchify.Pad(axis=1, pad_val=0, round_to=4)([np.ones((3, 5)), np.ones((2, 1))]).shape == (2, 3, 8)
    with pytest.raises(ValueError, match="integer >= 1, got 0"):
        batchify.Pad(val=0, round_to=0)


def test_dicts_of_arrays_are_numpy_arrays_after_set_np():
    mx.npx.set_np()
    try:
        (batch,) = data.DataLoader([{"x": np.ones(2)}, {"x": np.ones(2)}], 2)
        assert type(batch["x"]) is mx.np.ndarray
    finally:
        mx.npx.reset_np()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: list(data.DataLoader([{"a": 1}, {"b": 1}], 2)), r"sample 1 of the batch: .*\['a'\], got \['b'\]"),
        (lambda: batchify.Dict({"label": batchify.Stack()})([{"labels": 1}]), "no key 'label'(.|\n)*'labels'"),
        (lambda: batchify.Dict([batchify.Stack()]), r"Dict: expected a dict of functions"),
        (lambda: batchify.NamedTuple(Point, [batchify.Stack()]), "NamedTuple: expected a dict of functions"),
        (lambda: batchify.NamedTuple(Point, {"x": batchify.Stack()}), r"expected \['x', 'y'\], got \['x'\]"),
        (lambda: batchify.NamedTuple(tuple, []), "collections.namedtuple"),
        (lambda: batchify.NamedTuple(Point, [batchify.Stack()] * 2)([(1, 2)]), "expected Point, got tuple"),
    ],
)  # fmt: skip
def test_samples_that_do_not_fit_are_named(call, text):
    with pytest.raises(ValueError, match=text):
        call()
