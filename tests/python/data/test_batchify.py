"""Batches of dicts, texts, named tuples and ragged samples, in every way a DataLoader makes them."""

from __future__ import annotations

import collections

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.gluon import data
from hybridnet.gluon.data import batchify
from hybridnet.ndarray._dtypes import numpy_dtype as dtype_of
from hybridnet.ndarray._lost_values import lost_value

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


MIXED = [
    ([[1, 2], [3.5, 1.0]], "float64"),
    ([np.array([1, 2], "int8"), np.array([300, 1], "int32")], "int32"),
    ([np.array([True, False]), np.array([7, 1])], "int64"),
    ([np.array([-1, 2], "int8"), np.array([255, 1], "uint8")], "int32"),  # NumPy's int16 is no dtype of arrays here
    ([mx.nd.array([1, 2], dtype="bfloat16"), mx.nd.array([3.5, 1], dtype="float16")], "float32"),
]


@pytest.mark.parametrize(("samples", "dtype"), MIXED)
@pytest.mark.parametrize("fn", [batchify.Stack(), batchify.Pad(val=0), None], ids=["stack", "pad", "default"])
@pytest.mark.parametrize("workers", [0, 1])
def test_samples_of_different_dtypes_keep_their_values(samples, dtype, fn, workers):
    (batch,) = data.DataLoader(samples, 2, batchify_fn=fn, num_workers=workers, thread_pool=True)
    assert np.dtype(batch.dtype).name == dtype
    assert lists(batch) == [np.asarray(lists(sample)).tolist() for sample in samples]


def test_worker_processes_keep_the_values_of_different_dtypes():
    (batch,) = data.DataLoader([np.array([1], "int8"), np.array([300.5])], 2, num_workers=1)
    assert batch.dtype == np.float64 and lists(batch) == [[1], [300.5]]


def test_a_dtype_that_holds_the_samples_is_kept():
    assert batchify.Pad(val=0, dtype="int32")([[1.0, 2.0], [3.0]]).dtype == np.int32
    assert batchify.Pad(val=0, dtype="float16")([[1, 2], [0.1]]).dtype == np.float16
    assert lists(batchify.Pad(val=np.float32(-1))([np.array([2.0], "float32"), np.zeros(0, "float32")])) == [[2], [-1]]
    assert np.isnan(batchify.Pad(val=float("nan"))([[1.0, 2.0], [3.0]]).asnumpy()[1, 1])


@pytest.mark.parametrize(
    ("value", "source", "dtype", "exact", "is_lost"),
    [
        (-1, "int8", "uint8", False, True), (255, "uint8", "int64", False, False), (2, "uint8", "bool", False, True),
        (2**63, "uint64", "int64", False, True), (True, "bool", "int8", False, False), (1, "float32", "bool", 0, False),
        (2**63, "float64", "int64", False, True), (-(2**63), "float64", "int64", False, False),
        (np.inf, "float32", "int32", False, True), (np.inf, "float32", "float16", False, False),
        (70000, "int32", "float16", False, True), (257, "int32", "bfloat16", True, True),
        (256, "int32", "bfloat16", True, False), (2**63 - 1, "int64", "float64", True, True),
        (2**63 - 1, "int64", "float64", False, False), (2**60 + 1, "int64", "float32", True, True),
        (-(2**63), "int64", "float32", True, False), (3.5, "bfloat16", "int8", False, True),
    ],
)  # fmt: skip
def test_limits_of_dtypes_are_exact(value, source, dtype, exact, is_lost):
    lost = lost_value(np.array([0, value], dtype_of(source)), dtype_of(dtype), exact)
    assert (lost is not None) == is_lost and (lost is None or lost == np.array(value, dtype_of(source)))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: batchify.Pad(val=0.5)([np.array([1], "uint8")]), r"Pad: val: .*uint8 holds, got 0\.5(.|\n)*Fix: pass"),
        (lambda: batchify.Pad(val=float("nan"))([[1], [2]]), r"Pad: val: .*int64 holds, got nan(.|\n)*Fix"),
        (lambda: batchify.Pad(val=-1)([np.array([1], "uint8")]), r"Pad: val: .*uint8 holds, got -1(.|\n)*Fix"),
        (lambda: batchify.Pad(val="x"), r"Pad: val: expected a number, got 'x'(.|\n)*Fix"),
        (lambda: batchify.Pad(val=0, axis=5)([[1], [2]]), r"Pad: axis: expected -1 to 0 .* got 5(.|\n)*axis=0"),
        (lambda: batchify.Pad(val=0, axis=1.5), r"Pad: axis: expected an integer, got 1\.5"),
        (lambda: batchify.Pad(val=0)([1, 2]), r"Pad: samples: .*got numbers(.|\n)*Fix: use Stack\(\)"),
        (lambda: batchify.Pad(val=0)([]), "at least one sample"),
        (lambda: batchify.Stack()([]), "at least one sample"),
        (lambda: batchify.Pad(val=0)([[1], [[2], [3, 4]]]), "sample 1 of the batch: .*list of numbers of one shape"),
        (lambda: batchify.Stack()([1, "a"]), r"sample 1 of the batch: .*got 'a'(.|\n)*AsList\(\)"),
        (lambda: batchify.Stack()([[1, 2], [3]]), r"different shapes: \[\(1,\), \(2,\)\]"),
        (lambda: batchify.Pad(val=0, dtype="int32")([[1], [1.5]]), r"value 1\.5 in sample 1 (.|\n)*dtype='float64'"),
        (lambda: batchify.Pad(val=0, dtype="int8")([[300]]), "value 300 in sample 0"),
        (lambda: batchify.Pad(val=0, dtype="int64")([[2.0**63]]), r"value 9\.22"),
        (lambda: batchify.Pad(val=0, dtype="float16")([[1e6]]), "value 1000000"),
    ],
)  # fmt: skip
def test_values_that_a_batch_cannot_hold_are_refused(call, text):
    with pytest.raises(mx.errors.ParamError, match=text):
        call()
