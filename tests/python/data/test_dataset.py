"""Datasets, samplers and functions that make batches."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.gluon import data
from hybridnet.gluon.data import batchify
from hybridnet.gluon.data.dataloader import default_batchify_fn


def test_array_dataset_pairs_arrays():
    images, labels = np.arange(12.0).reshape(4, 3), mx.nd.array([0, 1, 2, 3])
    dataset = data.ArrayDataset(images, labels)
    assert len(dataset) == 4
    image, label = dataset[2]
    np.testing.assert_array_equal(image, images[2])
    assert label == 2
    assert data.ArrayDataset([5, 6])[1] == 6
    with pytest.raises(ValueError, match=r"length 4 while array\[1\] has 3"):
        data.ArrayDataset(images, [1, 2, 3])
    with pytest.raises(ValueError, match="at least 1"):
        data.ArrayDataset()


def test_transforms_are_lazy_or_not():
    calls = []

    def double(x):
        calls.append(x)
        return 2 * x

    dataset = data.SimpleDataset([1, 2, 3]).transform(double)
    assert not calls
    assert [dataset[i] for i in range(3)] == [2, 4, 6]
    eager = data.SimpleDataset([1, 2]).transform(double, lazy=False)
    calls.clear()
    assert [eager[0], eager[1]] == [2, 4]
    assert not calls
    pairs = data.SimpleDataset([(1, "a"), (2, "b")])
    assert pairs.transform(lambda x, y: (y, x))[0] == ("a", 1)
    assert pairs.transform_first(lambda x: -x)[1] == (-2, "b")
    assert data.SimpleDataset([3]).transform_first(lambda x: -x)[0] == -3


def test_filter_take_shard_and_sample():
    dataset = data.SimpleDataset(list(range(10)))
    assert list(dataset.filter(lambda x: x % 3 == 0)) == [0, 3, 6, 9]
    assert len(dataset.take(4)) == 4
    assert len(dataset.take(None)) == len(dataset.take(40)) == 10
    shards = [list(dataset.shard(3, i)) for i in range(3)]
    assert shards == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert list(dataset.sample(data.SequentialSampler(3, start=2))) == [2, 3, 4]
    with pytest.raises(ValueError, match="3 out of 3"):
        dataset.shard(3, 3)
    with pytest.raises(ValueError, match="greater than 0"):
        dataset.shard(0, 0)
    with pytest.raises(TypeError, match="Invalid sampler type"):
        dataset.sample([1, 2])


def test_samplers(rng):
    assert list(data.SequentialSampler(3)) == [0, 1, 2]
    order = list(data.RandomSampler(50))
    assert sorted(order) == list(range(50))
    assert order != list(range(50))
    assert list(data.FilterSampler(lambda x: x > 1, [0, 5, 1, 7])) == [1, 3]
    interval = data.IntervalSampler(7, 3)
    assert list(interval) == [0, 3, 6, 1, 4, 2, 5]
    assert len(interval) == 7
    assert list(data.IntervalSampler(7, 3, rollover=False)) == [0, 3, 6]
    with pytest.raises(ValueError, match="between 1 and length"):
        data.IntervalSampler(3, 4)


@pytest.mark.parametrize(("length", "parts"), [(12, 3), (11, 3), (10, 3), (7, 1), (5, 5), (0, 2)])
@pytest.mark.parametrize("even", [True, False])
def test_a_split_sampler_yields_each_index_in_one_part(length, parts, even, rng):
    samplers = [data.SplitSampler(length, parts, part, even=even) for part in range(parts)]
    orders = [list(sampler) for sampler in samplers]
    assert [len(sampler) for sampler in samplers] == [len(order) for order in orders]
    ranges = [sorted(set(order)) for order in orders]
    assert [i for part in ranges for i in part] == list(range(length))  # contiguous, and nothing is dropped
    counts = [len(order) for order in orders]
    if even:
        assert set(counts) == {-(-length // parts)}
    else:
        assert max(counts) - min(counts) <= 1 and sum(counts) == length
    for order, part in zip(orders, ranges, strict=True):
        assert order == part or order[-1] == order[0] or len(order) == len(part)


def test_a_split_sampler_shuffles_by_default(rng):
    sampler = data.SplitSampler(201, 2, 1)
    first, second = list(sampler), list(sampler)
    assert first != second and sorted(first[:100]) == list(range(101, 201)) and first[100] == first[0]
    assert list(data.SplitSampler(5, 2, 0, shuffle=False)) == [0, 1, 2]
    assert list(data.SplitSampler(5, 2, 1, shuffle=False)) == [3, 4, 3]
    assert list(data.SplitSampler(5, 2, 1, even=False, shuffle=False)) == [3, 4]
    assert list(data.SplitSampler(3, shuffle=False)) == [0, 1, 2]
    np.random.seed(5)
    first = list(sampler)
    np.random.seed(5)
    assert list(sampler) == first
    loader = data.DataLoader(data.SimpleDataset(list(range(5))), 2, sampler=data.SplitSampler(5, 2, 1, shuffle=False))
    assert [batch.asnumpy().tolist() for batch in loader] == [[3, 4], [3]]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((10, 0), "num_parts: expected an integer, 1 or more, got 0"),
        ((10, 2.0), "num_parts.*got 2.0"),
        ((10, True), "num_parts.*got True"),
        ((10, 2, -1), "part_index: expected an integer, 0 or more, got -1"),
        ((10, 2, 2), "part_index: expected less than 2, the number of parts, got 2(.|\\n)*mx.group.size"),
        ((-1,), "length: expected an integer, 0 or more, got -1"),
        (("10",), "length.*got '10'"),
        ((2, 3), "length: expected at least 3, the number of parts, got 2(.|\\n)*even=False"),
        ((10, 2, 0, "yes"), "even: expected a bool, got 'yes'"),
        ((10, 2, 0, True, None), "shuffle: expected a bool, got None"),
    ],
)
def test_wrong_arguments_of_a_split_sampler_are_named(arguments, text):
    with pytest.raises(mx.errors.ParamError, match=text):
        data.SplitSampler(*arguments)
    assert list(data.SplitSampler(2, 3, 2, even=False)) == []


@pytest.mark.parametrize(
    ("last_batch", "rounds", "lengths"),
    [
        ("keep", [[[0, 1, 2], [3, 4, 5], [6]]] * 2, [3, 3]),
        ("discard", [[[0, 1, 2], [3, 4, 5]]] * 2, [2, 2]),
        ("rollover", [[[0, 1, 2], [3, 4, 5]], [[6, 0, 1], [2, 3, 4]]], [2, 2]),
    ],
)
def test_batch_sampler_ends(last_batch, rounds, lengths):
    sampler = data.BatchSampler(data.SequentialSampler(7), 3, last_batch)
    for expected, length in zip(rounds, lengths, strict=True):
        assert len(sampler) == length
        assert list(sampler) == expected
    with pytest.raises(ValueError, match="last_batch"):
        data.BatchSampler(data.SequentialSampler(7), 3, "other")
    with pytest.raises(ValueError, match="batch_size"):
        data.BatchSampler(data.SequentialSampler(7), 0)


def test_batches_are_stacked():
    out = default_batchify_fn([(np.ones(2, "float32"), 1), (np.zeros(2, "float32"), 2)])
    assert out[0].asnumpy().tolist() == [[1, 1], [0, 0]]
    assert out[1].asnumpy().tolist() == [1, 2]
    assert default_batchify_fn([mx.nd.ones((2,)), mx.nd.zeros((2,))]).shape == (2, 2)
    assert default_batchify_fn([np.float64(1), np.float64(2)]).dtype == np.float64


def test_stack_pad_append_and_group():
    stacked = batchify.Stack()([np.array([1, 2]), np.array([3, 4])])
    assert stacked.asnumpy().tolist() == [[1, 2], [3, 4]]
    samples = [np.array([1.0, 2, 3]), np.array([4.0])]
    padded, lengths = batchify.Pad(val=-1, ret_length=True)(samples)
    assert padded.asnumpy().tolist() == [[1, 2, 3], [4, -1, -1]]
    assert lengths.asnumpy().tolist() == [3, 1]
    assert batchify.Pad(val=0, dtype="float16")(samples).dtype == np.float16
    with pytest.warns(UserWarning, match="Padding value"):
        batchify.Pad()
    parts = batchify.Append()(samples)
    assert [part.shape for part in parts] == [(1, 3), (1, 1)]
    assert [part.shape for part in batchify.Append(expand=False)(samples)] == [(3,), (1,)]
    both = batchify.Group(batchify.Stack(), batchify.Pad(val=0))([(1, [1, 2]), (2, [3])])
    assert both[0].asnumpy().tolist() == [1, 2]
    assert both[1].asnumpy().tolist() == [[1, 2], [3, 0]]
    with pytest.raises(ValueError, match="2 parts but 1"):
        batchify.Group(batchify.Stack())([(1, 2)])
    assert batchify.AsList()((1, 2)) == [1, 2]


def test_padding_wants_samples_of_one_rank():
    samples = [np.zeros(2), np.zeros((2, 2))]
    with pytest.raises(ValueError, match="samples of one rank"):
        data.batchify.Pad(val=0)(samples)


def test_taking_less_than_nothing_is_refused():
    with pytest.raises(ValueError, match="count >= 0 or None, got -1"):
        data.SimpleDataset([1, 2]).take(-1)
