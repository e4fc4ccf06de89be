"""Data iterators: arrays, files, wrappers."""

from __future__ import annotations

import gzip
import struct

import hybridnet as mx
import numpy as np
import pytest


def rounds(it, count=1):
    """Returns the batches of each epoch as (data, label, pad)."""
    result = []
    for _ in range(count):
        result.append(
            [(b.data[0].asnumpy().tolist(), b.label[0].asnumpy().tolist() if b.label else None, b.pad) for b in it]
        )
        it.reset()
    return result


def test_batches_are_padded_from_the_beginning():
    it = mx.io.NDArrayIter(np.arange(5.0), np.arange(5.0) * 10, batch_size=2)
    expected = [([0, 1], [0, 10], 0), ([2, 3], [20, 30], 0), ([4, 0], [40, 0], 1)]
    assert rounds(it, 2) == [expected, expected]
    assert it.provide_data[0].name == "data"
    assert it.provide_data[0].shape == (2,)
    assert it.provide_label[0].name == "softmax_label"


def test_a_batch_larger_than_the_data_repeats_it():
    it = mx.io.NDArrayIter(np.arange(3.0), batch_size=8)
    assert rounds(it) == [[([0, 1, 2, 0, 1, 2, 0, 1], None, 5)]]


def test_incomplete_batches_are_discarded():
    it = mx.io.NDArrayIter(np.arange(5.0), batch_size=2, last_batch_handle="discard")
    assert [data for data, _, _ in rounds(it)[0]] == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="batch_size 6 needs to be smaller"):
        mx.io.NDArrayIter(np.arange(5.0), batch_size=6, last_batch_handle="discard")


def test_incomplete_batches_roll_over():
    it = mx.io.NDArrayIter(np.arange(5.0), np.arange(5.0), batch_size=2, last_batch_handle="roll_over")
    data = [[batch for batch, _, _ in one] for one in rounds(it, 3)]
    assert data == [[[0, 1], [2, 3]], [[4, 0], [1, 2], [3, 4]], [[0, 1], [2, 3]]]
    it.hard_reset()
    assert rounds(it)[0][0][0] == [0, 1]


def test_shuffling_keeps_labels_beside_their_data(rng):
    it = mx.io.NDArrayIter(np.arange(20.0), np.arange(20.0) * 10, batch_size=5, shuffle=True)
    orders = []
    for batches in rounds(it, 2):
        data = [v for batch, _, _ in batches for v in batch]
        label = [v for _, batch, _ in batches for v in batch]
        assert sorted(data) == list(range(20))
        assert label == [10 * v for v in data]
        orders.append(data)
    assert orders[0] != orders[1]


def test_named_and_listed_arrays():
    it = mx.io.NDArrayIter({"b": np.zeros((4, 2)), "a": mx.nd.ones((4, 3))}, {"y": mx.nd.zeros(4, dtype="int32")}, 2)
    assert [desc.name for desc in it.provide_data] == ["a", "b"]
    batch = next(it)
    assert [array.shape for array in batch.data] == [(2, 3), (2, 2)]
    assert batch.label[0].dtype == np.int32
    assert str(batch) == "DataBatch: data shapes: [(2, 3), (2, 2)] label shapes: [(2,)]"
    listed = mx.io.NDArrayIter([np.zeros((4, 2)), np.ones((4, 3))], batch_size=2)
    assert [desc.name for desc in listed.provide_data] == ["_0_data", "_1_data"]
    assert listed.provide_data[0].dtype == np.float32


def test_numpy_arrays_of_any_dtype_become_float32():
    """NumPy makes integer labels, but networks are float32."""
    it = mx.io.NDArrayIter(np.zeros((4, 2), "uint8"), np.arange(4), 2)
    assert it.provide_data[0].dtype == np.float32
    assert [batch.label[0].dtype for batch in it] == [np.float32, np.float32]


def test_the_layout_says_where_samples_are():
    it = mx.io.NDArrayIter(np.arange(12.0).reshape(2, 6), batch_size=4, layout="TN")
    assert [batch.data[0].shape for batch in it] == [(2, 4), (2, 4)]
    assert it.provide_data[0].shape == (2, 4)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"data": np.zeros(4), "last_batch_handle": "drop"}, "last_batch_handle"),
        ({"data": np.zeros(4), "batch_size": 0}, "batch_size"),
        ({"data": np.zeros(4), "label": np.zeros(3)}, "same number of samples.*'data' 4.*'softmax_label' 3"),
        ({"data": []}, "empty"),
        ({"data": "text"}, "must be NDArray"),
        ({"data": {"a": object()}}, "'a'"),
        ({"data": np.zeros(4), "layout": "TC"}, "layout"),
    ],
)
def test_wrong_arguments_are_named(arguments, text):
    with pytest.raises((ValueError, TypeError), match=text):
        mx.io.NDArrayIter(**arguments)


def test_descriptions():
    desc = mx.io.DataDesc("data", (2, 3), layout="TNC")
    assert mx.io.DataDesc.get_batch_axis(desc.layout) == 1
    assert mx.io.DataDesc.get_batch_axis(None) == 0
    assert desc == ("data", (2, 3))
    listed = mx.io.DataDesc.get_list([("a", (1,)), ("b", (2,))], [("a", "int32"), ("b", "float16")])
    assert [d.dtype for d in listed] == ["int32", "float16"]
    with pytest.raises(TypeError, match="list of NDArrays"):
        mx.io.DataBatch(mx.nd.ones((1,)))


def test_resizing_goes_on_at_the_end():
    inner = mx.io.NDArrayIter(np.arange(4.0), batch_size=2)
    it = mx.io.ResizeIter(inner, 3)
    assert [batch.data[0].asnumpy().tolist() for batch in it] == [[0, 1], [2, 3], [0, 1]]
    it.reset()
    assert len(list(it)) == 3
    assert it.provide_data == inner.provide_data


def test_prefetching_joins_iterators_and_renames():
    first = mx.io.NDArrayIter(np.arange(4.0), np.arange(4.0), batch_size=2)
    second = mx.io.NDArrayIter(np.arange(4.0) + 10, batch_size=2)
    it = mx.io.PrefetchingIter([first, second], rename_data=[{"data": "a"}, {"data": "b"}])
    assert [desc.name for desc in it.provide_data] == ["a", "b"]
    for _ in range(2):
        batches = [[array.asnumpy().tolist() for array in batch.data] for batch in it]
        assert batches == [[[0, 1], [10, 11]], [[2, 3], [12, 13]]]
        it.reset()


def test_prefetching_passes_errors_on():
    class Failing(mx.io.DataIter):
        provide_data = [mx.io.DataDesc("data", (2,))]
        provide_label = []

        def next(self):
            raise LookupError("no batch")

    with pytest.raises(LookupError, match="no batch"):
        next(mx.io.PrefetchingIter(Failing()))
    uneven = [mx.io.NDArrayIter(np.zeros(n), batch_size=2) for n in (4, 2)]
    with pytest.raises(ValueError, match="mismatches"):
        list(mx.io.PrefetchingIter(uneven))


def test_csv_files(tmp_path):
    table, labels = tmp_path / "data.csv", tmp_path / "label.csv"
    table.write_text("1,2,3,4\n5,6,7,8\n9,10,11,12\n")
    labels.write_text("0\n1\n2\n")
    it = mx.io.CSVIter(str(table), (2, 2), label_csv=str(labels), batch_size=2)
    batches = list(it)
    assert batches[0].data[0].asnumpy().tolist() == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    assert batches[1].label[0].asnumpy().tolist() == [2, 0]
    assert batches[1].pad == 1
    assert len(list(mx.io.CSVIter(str(table), (4,), batch_size=2, round_batch=False))) == 1
    with pytest.raises(ValueError, match="4 values"):
        mx.io.CSVIter(str(table), (3,))
    with pytest.raises(OSError, match="nowhere"):
        mx.io.CSVIter(str(tmp_path / "nowhere"), (3,))
    table.write_text("1,x\n")
    with pytest.raises(mx.errors.FormatError, match="no table"):
        mx.io.CSVIter(str(table), (2,))


@pytest.mark.parametrize("dtype, value", [("int32", 200000001), ("int64", 2147483649), ("float32", 1)])
def test_csv_files_keep_every_digit_of_their_dtype(tmp_path, dtype, value):
    table = tmp_path / "data.csv"
    table.write_text(f"{value},{value}\n" * 3)
    (data,) = next(mx.io.CSVIter(str(table), (2,), batch_size=3, dtype=dtype)).data
    assert data.dtype == np.dtype(dtype)
    assert (data.asnumpy() == value).all()


def test_libsvm_files(tmp_path):
    file = tmp_path / "data.svm"
    file.write_text("1 0:0.5 2:1.5\n0 1:2\n")
    it = mx.io.LibSVMIter(str(file), (3,), batch_size=2)
    batch = next(it)
    assert batch.data[0].asnumpy().tolist() == [[0.5, 0, 1.5], [0, 2, 0]]
    assert batch.data[0].stype == "csr"
    assert batch.label[0].asnumpy().tolist() == [1, 0]
    file.write_text("1 7:0.5\n")
    with pytest.raises(mx.errors.FormatError, match="line 1"):
        mx.io.LibSVMIter(str(file), (3,))


def test_mnist_files(tmp_path, rng):
    images = rng.integers(0, 256, size=(7, 28, 28)).astype(np.uint8)
    labels = rng.integers(0, 10, size=7).astype(np.uint8)
    image, label = tmp_path / "images.gz", tmp_path / "labels"
    image.write_bytes(gzip.compress(struct.pack(">IIII", 2051, 7, 28, 28) + images.tobytes()))
    label.write_bytes(struct.pack(">II", 2049, 7) + labels.tobytes())
    it = mx.io.MNISTIter(str(image), str(label), batch_size=3, shuffle=False)
    batches = list(it)
    assert len(batches) == 2
    np.testing.assert_allclose(batches[1].data[0].asnumpy()[:, 0], images[3:6] / 256, rtol=1e-6)
    assert batches[0].label[0].asnumpy().tolist() == labels[:3].tolist()
    flat = mx.io.MNISTIter(str(image), str(label), batch_size=7, flat=True, seed=3)
    assert next(flat).data[0].shape == (7, 784)
    with pytest.raises(OSError, match="nowhere"):
        mx.io.MNISTIter(str(tmp_path / "nowhere"), str(label))


def test_iterators_over_files_give_arrays_themselves(tmp_path):
    table = tmp_path / "data.csv"
    table.write_text("1,2\n3,4\n")
    it = mx.io.CSVIter(str(table), (2,), batch_size=2)
    assert it.iter_next()
    assert it.getdata().shape == (2, 2) and it.getlabel().shape == (2,)
    it.reset()
    assert it.next().data[0].shape == (2, 2)


def test_libsvm_batches_cost_only_their_stored_values(tmp_path):
    file = tmp_path / "wide.libsvm"
    file.write_text("1 0:1 99999999:2\n0 5:3\n1\n")
    it = mx.io.LibSVMIter(str(file), (100_000_000,), batch_size=2)
    batches = list(it)
    assert [batch.data[0].shape for batch in batches] == [(2, 100_000_000)] * 2
    assert batches[0].data[0].indices.asnumpy().tolist() == [0, 99_999_999, 5]
    assert batches[1].data[0].indices.asnumpy().tolist() == [0, 99_999_999] and batches[1].pad == 1


def test_array_iterators_keep_csr():
    values = np.array([[0, 1], [2, 0], [0, 0], [3, 4], [0, 5]], "float32")
    it = mx.io.NDArrayIter(mx.nd.array(values).tostype("csr"), np.arange(5), batch_size=2, last_batch_handle="pad")
    rows = []
    for batch in it:
        assert batch.data[0].stype == "csr"
        rows.append(batch.data[0].asnumpy())
    np.testing.assert_array_equal(np.concatenate(rows), values[[0, 1, 2, 3, 4, 0]])
