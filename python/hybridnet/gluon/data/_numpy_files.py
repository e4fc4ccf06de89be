"""NumpyFileDataset: samples in .npy and .npz files, mapped into memory instead of read."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from ...errors import FileError, FormatError, ParamError, suggestion
from .dataset import GATHERING, ArrayDataset

__all__ = ["NumpyFileDataset"]


class _StoredArray:
    """An array in a file: its shape and type are known, its values are mapped on first use, in each process."""

    def __init__(self, path: str, member: str | None, file: IO[bytes], begin: int | None) -> None:
        """file is at the header of the array; begin is its position in the file, None if it is compressed."""
        self.path = path
        self.member = member
        major, _ = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        self.shape, self.fortran, self.dtype = read(file)
        self.offset = None if begin is None else begin + file.tell()
        self._values: np.ndarray | None = None

    def __str__(self) -> str:
        return f"'{self.path}'" + (f", array {self.member!r}" if self.member else "")

    def check(self) -> None:
        """Raises FormatError unless it is an array of samples."""
        if self.dtype.hasobject:
            raise FormatError(
                f"NumpyFileDataset: {self} holds Python objects",
                because="reading them would run code of the file",
                fix="save arrays of one type, with the same shape for all samples",
            )
        if self.dtype.names is not None:
            raise FormatError(
                f"NumpyFileDataset: {self} holds records with the fields {list(self.dtype.names)}",
                fix="save an array per field, with numpy.savez",
            )
        if not self.shape:
            raise FormatError(f"NumpyFileDataset: {self} holds a single value", expected="an array of samples")

    def values(self) -> np.ndarray:
        """Returns the array, mapped if the file permits it."""
        if self._values is None:
            self._values = self._read()
        return self._values

    def _read(self) -> np.ndarray:
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype)
        try:
            if self.offset is not None:
                order: Any = "F" if self.fortran else "C"
                mapped = np.memmap(self.path, self.dtype, "r", self.offset, self.shape, order)
                # Operators compute in the byte order of the machine; arrays in another one are read as a whole.
                return np.asarray(mapped, self.dtype.newbyteorder("="))
            with np.load(self.path, allow_pickle=False) as archive:
                return np.asarray(archive[self.member], self.dtype.newbyteorder("="))
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise FormatError(
                f"NumpyFileDataset: cannot read {self}: {error}", because="the file is cut off or has changed"
            ) from error

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_values": None}  # a process that receives the dataset maps the file itself


def _member_begin(file: IO[bytes], info: zipfile.ZipInfo) -> int:
    """Returns the position of a member's bytes, which follow its local header of 30 bytes, name and extra field."""
    file.seek(info.header_offset)
    header = file.read(30)
    return info.header_offset + 30 + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")


def _archive(path: str) -> dict[str | None, _StoredArray]:
    arrays: dict[str | None, _StoredArray] = {}
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            stored = info.compress_type == zipfile.ZIP_STORED
            with archive.open(info) as member:
                arrays[name] = _StoredArray(path, name, member, _member_begin(file, info) if stored else None)
    return arrays


def _open(path: str) -> dict[str | None, _StoredArray]:
    """Returns the arrays of a file by name; the name is None in a .npy file."""
    try:
        if zipfile.is_zipfile(path):
            return _archive(path)
        with open(path, "rb") as file:
            return {None: _StoredArray(path, None, file, 0)}
    except OSError as error:
        raise FileError(f"NumpyFileDataset: cannot read '{path}': {error.strerror or error}") from error
    except (ValueError, zipfile.BadZipFile) as error:
        raise FormatError(
            f"NumpyFileDataset: '{path}' is not a file of NumPy: {error}",
            fix="write it with numpy.save (.npy) or numpy.savez (.npz)",
        ) from error


def _chosen(path: str, arrays: dict[str | None, _StoredArray], keys: Sequence[str] | None) -> list[_StoredArray]:
    if keys is None or None in arrays:
        return list(arrays.values())
    for key in keys:
        if key not in arrays:
            raise ParamError(
                f"NumpyFileDataset, keys: '{path}' has no array {key!r}", fix=suggestion(key, map(str, arrays))
            )
    return [arrays[key] for key in keys]


def _refuse_keys(keys: Sequence[str], arrays: Sequence[_StoredArray]) -> None:
    """Raises ParamError for keys if no file is an archive; an empty list of keys chooses nothing from archives."""
    if arrays:
        raise ParamError(
            "NumpyFileDataset: keys",
            expected="names of arrays in .npz files",
            given=f"{list(keys)} for {arrays[0]}",
            because="a .npy file holds one array without a name",
            fix="leave keys out",
        )


class NumpyFileDataset(ArrayDataset):
    """Samples in files of numpy.save (.npy) and numpy.savez (.npz): sample i is (a[i], b[i], ...), or a[i].

    The files are mapped into memory: making the dataset reads headers only, samples are read when they are needed (in
    worker processes of a DataLoader, by the workers), and processes share the pages. Arrays of numpy.savez_compressed
    cannot be mapped: the first sample reads them as a whole.

    Parameters
    ----------
    *paths : str
        Each file contributes its arrays, in this order.
    keys : str or list of str, optional
        Names of the arrays of .npz files, in the order of the samples' parts; default: all in the order of the file.
    as_dict : bool, default False
        Whether samples are dicts: the names in .npz files, for .npy files their names without the ending.

    Raises FileError if a file cannot be read; FormatError if it is not a file of NumPy or holds objects; ParamError for
    unknown keys, keys without a .npz file, and arrays of different lengths.
    """

    def __init__(self, *paths: str | os.PathLike[str], keys: Any = None, as_dict: bool = False) -> None:
        if not paths:
            raise ParamError("NumpyFileDataset: paths", expected="at least one .npy or .npz file")
        wanted = [keys] if isinstance(keys, str) else keys
        self._arrays: list[_StoredArray] = []
        # Values are mapped later, and in other processes: the program may have changed its folder.
        for path in [os.path.abspath(os.fspath(path)) for path in paths]:
            self._arrays += _chosen(path, _open(path), wanted)
        if wanted is not None and all(array.member is None for array in self._arrays):
            _refuse_keys(wanted, self._arrays)
        for array in self._arrays:
            array.check()
        self._check_lengths()
        self._as_dict = as_dict
        self._length = len(self._arrays[0])
        self.keys = [array.member or os.path.splitext(os.path.basename(array.path))[0] for array in self._arrays]
        if as_dict and len(set(self.keys)) < len(self.keys):
            raise ParamError("NumpyFileDataset: names of arrays", expected="different names", given=str(self.keys))

    def _check_lengths(self) -> None:
        lengths = [len(array) for array in self._arrays]
        if len(set(lengths)) != 1:
            listed = ", ".join(f"{len(array)} in {array}" for array in self._arrays)
            raise ParamError(
                "NumpyFileDataset: numbers of samples",
                expected="the same number in all arrays",
                given=listed or "no arrays",
                fix="name the arrays that belong together with keys=[...]",
            )

    @property
    def _data(self) -> list[np.ndarray]:  # type: ignore[override]  # mapped on first use
        return [array.values() for array in self._arrays]

    def __getitem__(self, idx: int) -> Any:
        if self._as_dict:
            return {key: values[idx] for key, values in zip(self.keys, self._data, strict=True)}
        return super().__getitem__(idx)

    def _gather(self, indices: Sequence[int]) -> Any | None:
        return None if self._as_dict else super()._gather(indices)


GATHERING.add(NumpyFileDataset)
