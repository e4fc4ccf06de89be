"""Functions of mx.test_utils for data sets that are already on the machine."""

from __future__ import annotations

import bz2
import gzip
import struct
import zipfile

import hybridnet as mx
import numpy as np
import pytest


def write_digits(folder, counts=(6, 4)):
    """Writes MNIST's four files with a few random images; returns images and labels by part."""
    folder.mkdir(exist_ok=True)
    written = {}
    for part, count in zip(("train", "t10k"), counts, strict=True):
        images = np.random.default_rng(count).integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = np.arange(count, dtype=np.uint8)
        with gzip.open(folder / f"{part}-images-idx3-ubyte.gz", "wb") as file:
            file.write(struct.pack(">IIII", 2051, count, 28, 28) + images.tobytes())
        with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz", "wb") as file:
            file.write(struct.pack(">II", 2049, count) + labels.tobytes())
        written[part] = images, labels
    return written


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("place", [".", "data"])
def test_digits_are_read_from_the_working_folder(folder, place):
    written = write_digits(folder / place)
    found = mx.test_utils.get_mnist()
    for name, part in (("train", "train"), ("test", "t10k")):
        images, labels = written[part]
        assert found[f"{name}_data"].dtype == np.float32
        np.testing.assert_array_equal(found[f"{name}_data"][:, 0], images.astype("f") / 255)
        assert found[f"{name}_label"].dtype == np.int8
        np.testing.assert_array_equal(found[f"{name}_label"], labels)


def test_digits_are_unpacked_once_and_iterated(folder):
    written = write_digits(folder)
    train, test = mx.test_utils.get_mnist_iterator(2, (1, 28, 28))
    assert (folder / "data" / "train-images-idx3-ubyte").stat().st_size == 16 + 6 * 784
    labels = np.concatenate([batch.label[0].asnumpy() for batch in train])
    assert sorted(labels) == [0, 1, 2, 3, 4, 5]
    first = next(iter(test)).data[0]
    assert first.shape == (2, 1, 28, 28)
    np.testing.assert_allclose(first.asnumpy()[0, 0], written["t10k"][0][0] / 256)
    flat = mx.test_utils.get_mnist_iterator(2, (784,))[1]
    assert next(iter(flat)).data[0].shape == (2, 784)


def test_archives_are_unpacked_into_their_folders(folder):
    (folder / "source").mkdir()
    with zipfile.ZipFile(folder / "source" / "some.zip", "w") as archive:
        archive.writestr("inside.txt", "text")
    (folder / "source" / "rows.bz2").write_bytes(bz2.compress(b"1 2 3\n"))
    mx.test_utils.get_zip_data("zips", (folder / "source" / "some.zip").as_uri(), "some.zip")
    assert (folder / "zips" / "inside.txt").read_text() == "text"
    for _ in range(2):
        mx.test_utils.get_bz2_data("packed", "rows", (folder / "source" / "rows.bz2").as_uri(), "rows.bz2")
    assert (folder / "packed" / "rows").read_bytes() == b"1 2 3\n"
    assert not (folder / "packed" / "rows.bz2").exists()


def test_complete_photographs_are_left_alone(folder):
    (folder / "data" / "cifar").mkdir(parents=True)
    for part in ("train", "test"):
        for kind in ("rec", "lst"):
            (folder / "data" / "cifar" / f"{part}.{kind}").write_bytes(b"")
    mx.test_utils.get_cifar10()
    assert sorted(path.name for path in (folder / "data").iterdir()) == ["cifar"]
