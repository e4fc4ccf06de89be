"""Data sets of examples and tests, in the folders of MXNet's functions with these names.

Existing files are used; missing ones are downloaded, or an error names the file and its place.
"""

from __future__ import annotations

import bz2
import gzip
import os
import shutil
import zipfile
from typing import Any

import numpy as np

from .. import io
from ..gluon.data.vision import MNIST
from ._environment import download

__all__ = ["get_bz2_data", "get_cifar10", "get_mnist", "get_mnist_iterator", "get_mnist_ubyte", "get_zip_data"]

_FOLDER = "data"
_CIFAR10_URL = "http://data.mxnet.io/mxnet/data/cifar10.zip"


def get_mnist() -> dict[str, np.ndarray]:
    """Handwritten digits: 'train_data', 'test_data' float32 (N, 1, 28, 28) in [0, 1]; 'train_label', 'test_label' int8.

    Searches the files in the working folder, in ``data`` and in the folder of ``gluon.data.vision.MNIST``. Raises
    FileError if they are in none and cannot be downloaded.
    """
    found = {}
    for part, train in (("train", True), ("test", False)):
        digits = _mnist(train)
        images, labels = digits._data, digits._label
        found[f"{part}_data"] = images.asnumpy().transpose(0, 3, 1, 2).astype(np.float32) / 255
        found[f"{part}_label"] = labels.astype(np.int8)
    return found


def _mnist(train: bool) -> MNIST:
    name = MNIST._files[train, "labels"][0]
    for folder in (".", _FOLDER):
        if any(os.path.exists(os.path.join(folder, file)) for file in (name, name[: -len(".gz")])):
            return MNIST(root=folder, train=train)
    return MNIST(train=train)


def get_mnist_ubyte() -> None:
    """Writes the four unpacked files of MNIST, such as train-images-idx3-ubyte, into the folder ``data``."""
    os.makedirs(_FOLDER, exist_ok=True)
    for (train, _), (name, sha1) in MNIST._files.items():
        target = os.path.join(_FOLDER, name[: -len(".gz")])
        if os.path.exists(target):
            continue
        source = _mnist(train)._path(name, sha1)
        opened: Any = gzip.open if source.endswith(".gz") else open
        with opened(source, "rb") as packed, open(target, "wb") as file:
            shutil.copyfileobj(packed, file)


def get_mnist_iterator(batch_size: int, input_shape: Any, num_parts: int = 1, part_index: int = 0) -> tuple[Any, Any]:
    """Returns iterators over the training (shuffled) and the test digits, see :func:`get_mnist_ubyte`.

    input_shape: (1, 28, 28) for images, (784,) for vectors. num_parts, part_index: the part of this reader.
    """
    get_mnist_ubyte()

    def iterator(part: str, shuffle: bool) -> Any:
        return io.MNISTIter(
            image=os.path.join(_FOLDER, f"{part}-images-idx3-ubyte"),
            label=os.path.join(_FOLDER, f"{part}-labels-idx1-ubyte"),
            input_shape=input_shape,
            batch_size=batch_size,
            shuffle=shuffle,
            flat=len(input_shape) != 3,
            num_parts=num_parts,
            part_index=part_index,
        )

    return iterator("train", True), iterator("t10k", False)


def get_cifar10() -> None:
    """Writes train.rec, test.rec, train.lst and test.lst of CIFAR-10 into ``data/cifar``."""
    files = [os.path.join(_FOLDER, "cifar", f"{part}.{kind}") for part in ("train", "test") for kind in ("rec", "lst")]
    if not all(os.path.exists(file) for file in files):
        _unpack_zip(download(_CIFAR10_URL, dirname=_FOLDER), _FOLDER)


def get_zip_data(data_dir: str, url: str, data_origin_name: str) -> None:
    """Downloads url and unpacks it into data_dir, unless data_dir has its file data_origin_name."""
    path = os.path.join(data_dir, data_origin_name)
    if not os.path.exists(path):
        download(url, fname=data_origin_name, dirname=data_dir)
        _unpack_zip(path, data_dir)


def get_bz2_data(data_dir: str, data_name: str, url: str, data_origin_name: str) -> None:
    """Downloads url and unpacks it to data_dir/data_name, unless that exists; removes the archive."""
    path, packed = os.path.join(data_dir, data_name), os.path.join(data_dir, data_origin_name)
    if os.path.exists(path):
        return
    download(url, fname=data_origin_name, dirname=data_dir)
    with bz2.open(packed) as source, open(path, "wb") as file:
        shutil.copyfileobj(source, file)
    os.remove(packed)


def _unpack_zip(path: str, folder: str) -> None:
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
