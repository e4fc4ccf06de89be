"""Datasets of pandas data frames and of NumPy's files."""

from __future__ import annotations

import os
import pickle

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.gluon import data

WORKERS = pytest.mark.parametrize("workers", [0, 2])


def batches(dataset, workers=0, **options):
    return list(data.DataLoader(dataset, 2, num_workers=workers, **options))


# --- files of NumPy ---------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    images, labels = np.arange(24, dtype="float32").reshape(4, 2, 3), np.array([3, 1, 2, 0])
    np.save(tmp_path / "images.npy", images)
    np.save(tmp_path / "labels.npy", labels)
    np.savez(tmp_path / "both.npz", images=images, labels=labels, other=np.zeros(7))
    np.savez_compressed(tmp_path / "small.npz", images=images, labels=labels)
    return tmp_path


@WORKERS
@pytest.mark.parametrize("form", ["npy", "npz", "compressed"])
def test_samples_of_files_are_those_of_the_arrays(files, form, workers):
    dataset = {
        "npy": lambda: data.NumpyFileDataset(files / "images.npy", files / "labels.npy"),
        "npz": lambda: data.NumpyFileDataset(files / "both.npz", keys=["images", "labels"]),
        "compressed": lambda: data.NumpyFileDataset(files / "small.npz"),
    }[form]()
    assert len(dataset) == 4 and dataset.keys == ["images", "labels"]
    first, second = batches(dataset, workers)
    assert first[0].dtype == np.float32 and first[0].asnumpy().tolist() == np.arange(12).reshape(2, 2, 3).tolist()
    assert second[1].asnumpy().tolist() == [2, 0]
    image, label = dataset[3]
    assert image.tolist() == [[18, 19, 20], [21, 22, 23]] and label == 0


def test_files_are_mapped_and_read_on_first_use(files):
    dataset = data.NumpyFileDataset(files / "both.npz", keys=["images"])
    (array,) = dataset._arrays
    assert array._values is None
    assert isinstance(dataset[0].base, np.memmap) or isinstance(dataset[0].base.base, np.memmap)
    assert array._values is not None
    copy = pickle.loads(pickle.dumps(dataset))
    assert copy._arrays[0]._values is None and copy[1].tolist() == dataset[1].tolist()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["uint8", "float64", ">i4", "bool"])
def test_arrays_of_every_order_and_type_are_read(tmp_path, order, dtype):
    values = np.asarray(np.arange(6).reshape(3, 2) % 2, dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", values)
    np.savez(tmp_path / "a.npz", a=values)
    for name in ("a.npy", "a.npz"):
        dataset = data.NumpyFileDataset(tmp_path / name)
        np.testing.assert_array_equal(np.stack([dataset[i] for i in range(3)]), values)
        np.testing.assert_array_equal(np.concatenate([b.asnumpy() for b in batches(dataset)]), values)


@WORKERS
def test_samples_of_files_can_be_dicts(files, workers):
    dataset = data.NumpyFileDataset(files / "images.npy", files / "labels.npy", as_dict=True)
    batch = batches(dataset, workers)[0]
    assert list(batch) == ["images", "labels"] and batch["labels"].asnumpy().tolist() == [3, 1]


def test_files_may_be_transformed_and_empty(tmp_path, files):
    dataset = data.NumpyFileDataset(files / "images.npy", files / "labels.npy").transform_first(lambda x: x.sum())
    assert batches(dataset)[0][0].asnumpy().tolist() == [15, 51]
    np.save(tmp_path / "empty.npy", np.zeros((0, 3)))
    assert batches(data.NumpyFileDataset(tmp_path / "empty.npy")) == []


def test_files_that_do_not_fit_are_named(files, tmp_path):
    with pytest.raises(mx.errors.FileError, match=r"cannot read '.*none\.npy': No such file"):
        data.NumpyFileDataset(files / "none.npy")
    with pytest.raises(ValueError, match=r"4 in '.*array 'images', 4 in .*, 7 in (.|\n)*keys="):
        data.NumpyFileDataset(files / "both.npz")
    with pytest.raises(ValueError, match=r"no array 'image'(.|\n)*did you mean 'images'"):
        data.NumpyFileDataset(files / "both.npz", keys="image")
    (tmp_path / "text.npy").write_text("not an array, but a long enough text")
    with pytest.raises(mx.errors.FormatError, match=r"is not a file of NumPy(.|\n)*numpy\.save"):
        data.NumpyFileDataset(tmp_path / "text.npy")
    np.save(tmp_path / "objects.npy", np.array([{}, "a"], dtype=object))
    with pytest.raises(mx.errors.FormatError, match="holds Python objects"):
        data.NumpyFileDataset(tmp_path / "objects.npy")
    np.save(tmp_path / "one.npy", np.float32(3))
    with pytest.raises(mx.errors.FormatError, match="holds a single value"):
        data.NumpyFileDataset(tmp_path / "one.npy")
    with pytest.raises(ValueError, match="at least one"):
        data.NumpyFileDataset()
    os.truncate(files / "images.npy", 150)
    with pytest.raises(mx.errors.FormatError, match="cut off"):
        data.NumpyFileDataset(files / "images.npy")[0]


def test_keys_need_an_archive(files):
    with pytest.raises(mx.errors.ParamError, match=r"keys: .*\['x'\] for '.*images\.npy'(.|\n)*Fix: leave keys out"):
        data.NumpyFileDataset(files / "images.npy", keys=["x"])
    both = data.NumpyFileDataset(files / "images.npy", files / "both.npz", keys="labels")
    assert both.keys == ["images", "labels"]


@pytest.mark.parametrize("name", ["images.npy", "small.npz"])
def test_files_are_found_after_a_change_of_the_folder(files, name, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(files)
    dataset = data.NumpyFileDataset(name)
    monkeypatch.chdir(tmp_path_factory.mktemp("other"))
    first = dataset[0][0] if isinstance(dataset[0], tuple) else dataset[0]
    assert first.tolist() == [[0, 1, 2], [3, 4, 5]]


# --- data frames ------------------------------------------------------------------------------------------------------


@pytest.fixture
def frame():
    pandas = pytest.importorskip("pandas", reason="reads data frames of pandas")
    return pandas.DataFrame(
        {"age": [3, 1, 2], "weight": [0.5, 1.5, 2.5], "kind": ["dog", "cat", "dog"], "sold": [True, False, True]},
        index=[7, 9, 8],
    )


@WORKERS
def test_rows_become_vectors_and_classes_numbers(frame, workers):
    dataset = data.DataFrameDataset(frame, label="kind")
    assert dataset.columns == ["age", "weight", "sold"] and dataset.classes == ["cat", "dog"]
    vectors, labels = batches(dataset, workers)[0]
    assert vectors.dtype == np.float32 and vectors.asnumpy().tolist() == [[3, 0.5, 1], [1, 1.5, 0]]
    assert labels.dtype == np.int32 and labels.asnumpy().tolist() == [1, 0]


def test_columns_and_labels_are_chosen(frame):
    dataset = data.from_pandas(frame, label="age", columns=["weight"], dtype="float64")
    assert dataset[2][0].tolist() == [2.5] and dataset[2][0].dtype == np.float64
    assert dataset[2][1] == 2 and dataset.classes is None
    assert data.DataFrameDataset(frame, columns="age")[0].tolist() == [3]
    assert data.DataFrameDataset(frame, columns=["age"], label=["weight", "sold"])[1][1].tolist() == [1.5, 0]
    frame["kind"] = frame["kind"].astype("category").cat.set_categories(["dog", "cow", "cat"])
    dataset = data.DataFrameDataset(frame, label="kind")
    assert dataset.classes == ["dog", "cow", "cat"] and dataset[1][1] == 2


@WORKERS
def test_rows_can_be_dicts_with_texts(frame, workers):
    first, second = batches(data.DataFrameDataset(frame, as_dict=True, label="kind"), workers)
    assert list(first) == ["age", "weight", "sold", "kind"]
    assert first["kind"] == ["dog", "cat"] and first["age"].asnumpy().tolist() == [3, 1] and second["kind"] == ["dog"]


def test_frames_that_do_not_fit_are_named(frame):
    with pytest.raises(ValueError, match=r"columns of numbers, got 'kind' of dtype (.|\n)*columns=\["):
        data.DataFrameDataset(frame)
    with pytest.raises(ValueError, match=r"label: the frame has no column 'kinds'(.|\n)*did you mean 'kind'"):
        data.DataFrameDataset(frame, label="kinds")
    frame.loc[7, "weight"] = np.nan
    with pytest.raises(ValueError, match=r"1 in column 'weight'(.|\n)*dropna"):
        data.DataFrameDataset(frame, label="kind")
    assert np.isnan(data.DataFrameDataset(frame, label="kind", allow_missing=True)[0][0][1])
    with pytest.raises(ValueError, match="no column besides the label"):
        data.DataFrameDataset(frame[["kind"]], label="kind")


def test_other_tables_are_refused():
    with pytest.raises(TypeError, match=r"a pandas\.DataFrame, got list(.|\n)*ArrayDataset"):
        data.DataFrameDataset([[1, 2]])


def test_integers_that_float32_rounds_are_warned_of(frame, recwarn):
    frame["age"] += 2**24
    with pytest.warns(UserWarning, match=r"column 'age' .* float32 rounds, such as 16777219(.|\n)*dtype='int64'"):
        data.DataFrameDataset(frame, columns=["age", "weight"])
    with pytest.warns(UserWarning, match="column 'age'"):
        data.DataFrameDataset(frame, columns="weight", label=["age", "weight"])
    recwarn.clear()
    assert data.DataFrameDataset(frame, columns="age", dtype="int64")[1].tolist() == [2**24 + 1]
    assert data.DataFrameDataset(frame, columns="weight", label="age")[1][1] == 2**24 + 1
    assert data.DataFrameDataset(frame, as_dict=True)[1]["age"] == 2**24 + 1
    frame["age"] = frame["age"] // 2 * 2  # even numbers up to 2**25 are exact
    data.DataFrameDataset(frame, columns="age")
    assert not recwarn.list


def test_values_that_the_dtype_cannot_hold_are_refused(frame):
    with pytest.raises(mx.errors.ParamError, match=r"column 'weight': .*int64 holds, got 0\.5(.|\n)*float64"):
        data.DataFrameDataset(frame, columns=["age", "weight"], dtype="int64")
    frame["weight"] = [1e300, 1, 2]
    with pytest.raises(mx.errors.ParamError, match=r"column 'weight': .*float32 holds, got 1e\+300"):
        data.DataFrameDataset(frame, columns=["age", "weight"])
    frame["age"] = frame["age"].astype("Int64").mask(frame["age"] == 1)
    assert np.isnan(data.DataFrameDataset(frame, columns="age", allow_missing=True)[1][0])
    with pytest.raises(mx.errors.ParamError, match=r"column 'age': .*int64 holds, got nan"):
        data.DataFrameDataset(frame, columns="age", allow_missing=True, dtype="int64")
