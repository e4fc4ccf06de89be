"""Image datasets. Local files are used in place; missing ones are downloaded, or the error names the folder."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from typing import Any

import numpy as np

from .... import ndarray
from ...._lazy_names import names_from
from ...._public_names import dir_of
from ...._user_line import warn
from ....base import data_dir
from ....errors import FileError, FormatError
from ....io._idx_files import read_idx
from ....io._image_files import decode_image, read_image
from ..._numpy_border import for_user
from ...utils import _get_repo_file_url, check_sha1, download
from .. import dataset

__all__ = ["CIFAR10", "CIFAR100", "MNIST", "FashionMNIST", "ImageFolderDataset", "ImageRecordDataset"]


def _default_root(name: str) -> str:
    return os.path.join(data_dir(), "datasets", name)


class MNIST(dataset._DownloadedDataset):
    """Handwritten digits: 60000 training and 10000 test images (28, 28, 1) uint8 with int32 labels 0 to 9.

    Files are the four ``*-ubyte.gz`` of http://yann.lecun.com/exdb/mnist, or the same unpacked.

    Parameters
    ----------
    root : str, default $HYBRIDNET_HOME/datasets/mnist
        Folder of the files, also for downloads.
    train : bool, default True
    transform : callable (image, label), optional

    Raises FileError with the folder if files are missing and cannot be downloaded, FormatError if one is broken.
    """

    _namespace = "mnist"
    _files = {
        (True, "images"): ("train-images-idx3-ubyte.gz", "6c95f4b05d2bf285e1bfb0e7960c31bd3b3f8a7d"),
        (True, "labels"): ("train-labels-idx1-ubyte.gz", "2a80914081dc54586dbdf242f9805a6b8d2a15fc"),
        (False, "images"): ("t10k-images-idx3-ubyte.gz", "c3a25af1f52dad7f726cce8cacb138654b760d48"),
        (False, "labels"): ("t10k-labels-idx1-ubyte.gz", "763e7fa3757d93b0cdec073cef058b2004252c17"),
    }

    def __init__(
        self, root: str | None = None, train: bool = True, transform: Callable[[Any, Any], Any] | None = None
    ) -> None:
        self._train = train
        super().__init__(root or _default_root(self._namespace), transform)

    def _path(self, name: str, sha1: str) -> str:
        for candidate in (name, name[: -len(".gz")]):
            path = os.path.join(self._root, candidate)
            if os.path.exists(path):
                return path
        url = _get_repo_file_url(f"gluon/dataset/{self._namespace}", name)
        try:
            return download(url, path=os.path.join(self._root, name), sha1_hash=sha1, retries=0)
        except OSError as error:
            raise FileError(
                f"{type(self).__name__}: '{name}' is missing and cannot be fetched ({error})",
                fix=f"put {name} into {self._root}, or pass root= the folder that has it",
            ) from error

    def _get_data(self) -> None:
        labels = read_idx(self._path(*self._files[self._train, "labels"]), 8)
        path = self._path(*self._files[self._train, "images"])
        images = read_idx(path, 16)
        if images.size != labels.size * 784:
            raise FormatError(f"'{path}' holds {images.size} bytes, {labels.size} images of 784 were expected")
        self._data = for_user(ndarray.array(images.reshape(-1, 28, 28, 1), dtype=np.uint8))
        self._label = labels.astype(np.int32)


class FashionMNIST(MNIST):
    """Clothing in MNIST's format: https://github.com/zalandoresearch/fashion-mnist. Arguments: see MNIST."""

    _namespace = "fashion-mnist"
    _files = {
        (True, "images"): ("train-images-idx3-ubyte.gz", "0cf37b0d40ed5169c6b3aba31069a9770ac9043d"),
        (True, "labels"): ("train-labels-idx1-ubyte.gz", "236021d52f1e40852b06a4c3008d8de8aef1e40b"),
        (False, "images"): ("t10k-images-idx3-ubyte.gz", "626ed6a7c06dd17c0eec72fa3be1740f146a2863"),
        (False, "labels"): ("t10k-labels-idx1-ubyte.gz", "17f9ab60e7257a1620f4ad76bbbaf857c3920701"),
    }


class CIFAR10(dataset._DownloadedDataset):
    """Small photographs: 50000 training and 10000 test images (32, 32, 3) uint8 with int32 labels 0 to 9.

    Files are those of cifar-10-binary.tar.gz (https://www.cs.toronto.edu/~kriz/cifar.html), unpacked or not.
    Arguments and errors: see MNIST.
    """

    _namespace = "cifar10"
    _archive = ("cifar-10-binary.tar.gz", "fab780a1e191a7eda0f345501ccd62d20f7ed891")
    _files = {True: [f"data_batch_{i}.bin" for i in range(1, 6)], False: ["test_batch.bin"]}
    _label_bytes = 1
    _label_column = 0

    def __init__(
        self, root: str | None = None, train: bool = True, transform: Callable[[Any, Any], Any] | None = None
    ) -> None:
        self._train = train
        super().__init__(root or _default_root(self._namespace), transform)

    def _find(self, name: str) -> str | None:
        for folder in ("", "cifar-10-batches-bin", "cifar-100-binary"):
            path = os.path.join(self._root, folder, name)
            if os.path.exists(path):
                return path
        return None

    def _unpack(self) -> None:
        name, sha1 = self._archive
        path = os.path.join(self._root, name)
        url = _get_repo_file_url(f"gluon/dataset/{self._namespace}", name)
        try:
            if not (os.path.exists(path) and check_sha1(path, sha1)):
                download(url, path=path, sha1_hash=sha1, retries=0)
        except OSError as error:
            raise FileError(
                f"{type(self).__name__}: the files are missing and cannot be fetched ({error})",
                fix=(
                    f"put {name}, or the .bin files it holds, into {self._root}, or pass root= the folder that has them"
                ),
            ) from error
        wanted = {*self._files[True], *self._files[False]}
        with tarfile.open(path) as archive:
            for member in archive.getmembers():
                # Extracts only known files, by their base name: an archive must not write anywhere else.
                base = os.path.basename(member.name)
                if member.isfile() and base in wanted:
                    source = archive.extractfile(member)
                    with open(os.path.join(self._root, base), "wb") as out:
                        out.write(source.read())  # type: ignore[union-attr]

    def _read_batch(self, path: str) -> tuple[np.ndarray, np.ndarray]:
        content = np.fromfile(path, dtype=np.uint8)
        row = 3072 + self._label_bytes
        if content.size % row:
            raise FormatError(f"'{path}' holds {content.size} bytes, which is no multiple of {row}")
        rows = content.reshape(-1, row)
        images = rows[:, self._label_bytes :].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        return images, rows[:, self._label_column].astype(np.int32)

    def _get_data(self) -> None:
        names = self._files[self._train]
        if any(self._find(name) is None for name in names):
            self._unpack()
        missing = [name for name in names if self._find(name) is None]
        if missing:
            raise FormatError(f"{type(self).__name__}: the archive in {self._root} lacks {', '.join(missing)}")
        images, labels = zip(*(self._read_batch(self._find(name)) for name in names), strict=False)  # type: ignore[arg-type]
        self._data = for_user(ndarray.array(np.concatenate(images), dtype=np.uint8))
        self._label = np.concatenate(labels)


class CIFAR100(CIFAR10):
    """CIFAR-10's counterpart with 100 classes; fine_label=False selects the 20 superclasses."""

    _namespace = "cifar100"
    _archive = ("cifar-100-binary.tar.gz", "a0bb982c76b83111308126cc779a992fa506b90b")
    _files = {True: ["train.bin"], False: ["test.bin"]}
    _label_bytes = 2

    def __init__(
        self,
        root: str | None = None,
        fine_label: bool = False,
        train: bool = True,
        transform: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        self._label_column = int(fine_label)
        super().__init__(root, train, transform)


class ImageRecordDataset(dataset.RecordFileDataset):
    """Images and labels of a RecordIO file made by im2rec. transform: callable (image, label)."""

    def __init__(self, filename: str, flag: int = 1, transform: Callable[[Any, Any], Any] | None = None) -> None:
        super().__init__(filename)
        self._flag = flag
        self._transform = transform

    def __getitem__(self, idx: int) -> Any:
        from .... import recordio

        header, content = recordio.unpack(super().__getitem__(idx))
        image = for_user(ndarray.array(decode_image(content, self._flag), dtype=np.uint8))
        if self._transform is not None:
            return self._transform(image, header.label)
        return image, header.label


class ImageFolderDataset(dataset.Dataset):
    """Images in one folder per class: ``root/cat/0001.jpg``; classes are numbered in order of their names.

    Parameters
    ----------
    root : str
    flag : int, default 1
        1 colour, 0 gray.
    transform : callable (image, label), optional

    Raises FileError if root does not exist.
    """

    def __init__(self, root: str, flag: int = 1, transform: Callable[[Any, Any], Any] | None = None) -> None:
        self._root = os.path.expanduser(root)
        self._flag = flag
        self._transform = transform
        self._exts = [".jpg", ".jpeg", ".png"]
        if not os.path.isdir(self._root):
            raise FileError(f"ImageFolderDataset: folder '{self._root}' does not exist")
        self._list_images(self._root)

    def _parts(self) -> list[str]:
        return [repr(self._root), *super()._parts(), f"{len(self.synsets)} classes"]

    def _list_images(self, root: str) -> None:
        self.synsets: list[str] = []
        self.items: list[tuple[str, int]] = []
        for folder in sorted(os.listdir(root)):
            path = os.path.join(root, folder)
            if not os.path.isdir(path):
                warn(f"Ignoring {path}, which is not a directory.")
                continue
            label = len(self.synsets)
            self.synsets.append(folder)
            for name in sorted(os.listdir(path)):
                ext = os.path.splitext(name)[1]
                if ext.lower() not in self._exts:
                    warn(f"Ignoring {name} of type {ext}. Only support {', '.join(self._exts)}")
                    continue
                self.items.append((os.path.join(path, name), label))

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, idx: int) -> Any:
        path, label = self.items[idx]
        image = for_user(ndarray.array(read_image(path, self._flag), dtype=np.uint8))
        return self._transform(image, label) if self._transform is not None else (image, label)


# MXNet programs reach these modules through this one.
__getattr__, __dir__ = names_from(__name__, modules={"image": "....image", "recordio": "....recordio"})
__dir__ = dir_of(__name__, __dir__)
