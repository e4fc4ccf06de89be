"""Bodies of requests and answers: JSON and NumPy files, checked against the inputs of the model."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import FormatError, HybridNetError
from ..ndarray._foreign_files import numpy_arrays, write_numpy

__all__ = ["JSON", "Content", "Inputs", "Limits", "Refused", "content_type"]

JSON, _NPY, _NPZ = "application/json", "application/x-npy", "application/x-npz"

# Name -> (shape of one row, dtype). A name in place of a size: requests choose the size, equal ones for equal names.
Inputs = Mapping[str, tuple[tuple[int | str, ...], np.dtype]]


@dataclass(frozen=True)
class Limits:
    """The limits of a single request and of all requests together."""

    body: int = 16 << 20  # bytes
    rows: int = 1024  # limit of one request
    batch: int = 64  # rows of one call that several requests share; 1: no sharing
    waiting: int = 1024  # requests
    wait: int = 0  # microseconds that a non-full call waits for more requests; 0: only while calls run


class Refused(Exception):
    """Raised for a request that is answered with an error."""

    def __init__(self, status: int, kind: str, message: str, **parts: str) -> None:
        super().__init__(str(HybridNetError(message, **parts)))
        self.status, self.kind = status, kind


class Content:
    """Reads inputs from bodies and writes outputs into them.

    inputs: name -> (shape of one row, dtype), with a name in place of a size that requests choose; outputs: names.
    """

    def __init__(self, inputs: Inputs, outputs: list[str], limits: Limits, allow_nan: bool) -> None:
        self._inputs, self._outputs, self._limits, self._allow_nan = inputs, outputs, limits, allow_nan
        self._has_free = any(isinstance(size, str) for row, _ in inputs.values() for size in row)

    def read(self, kind: str, body: bytes) -> list[np.ndarray]:
        """Returns the checked inputs in order."""
        given = self._from_json(body) if kind == JSON else self._from_numpy(kind, body)
        if not isinstance(given, dict) or set(given) != set(self._inputs):
            names = (
                ", ".join(map(repr, sorted(map(str, given))))[:500] if isinstance(given, dict) else type(given).__name__
            )
            raise Refused(
                400, "ParamError", "inputs", expected=", ".join(map(repr, self._inputs)), given=names or "none"
            )
        arrays = [self._checked(name, given[name]) for name in self._inputs]
        if kind == JSON and not self._allow_nan:
            self._check_finite(arrays)
        rows = {len(array) for array in arrays}
        if len(rows) > 1:
            raise Refused(400, "ShapeError", f"inputs have different numbers of rows: {sorted(rows)}")
        if self._has_free:
            self._check_free(arrays)
        return arrays

    def _check_free(self, arrays: list[np.ndarray]) -> None:
        """Refuses arrays that have different sizes where the inputs name one size."""
        sizes: dict[str, tuple[int, str]] = {}
        for (name, (row, _)), array in zip(self._inputs.items(), arrays, strict=True):
            for free, size in zip(row, array.shape[1:], strict=True):
                if isinstance(free, str) and sizes.setdefault(free, (size, name))[0] != size:
                    other, owner = sizes[free]
                    text = f"input {name!r}: size {free}"
                    raise Refused(400, "ShapeError", text, expected=f"{other} as in input {owner!r}", given=str(size))

    def _from_json(self, body: bytes) -> Any:
        try:
            content = json.loads(body, parse_constant=None if self._allow_nan else _refuse_word)
        except (ValueError, RecursionError) as error:
            raise Refused(400, "FormatError", f"the body is no JSON: {error}") from None
        return content.get("inputs", content) if isinstance(content, dict) else content

    def _from_numpy(self, kind: str, body: bytes) -> Any:
        unpacked, limit = _unpacked_bytes(body), self._limits.body
        if unpacked > limit:
            raise Refused(413, "TooLarge", f"the arrays take {unpacked} bytes unpacked, {limit} are allowed")
        try:
            arrays = numpy_arrays(body, "body")
        except FormatError as error:
            raise Refused(400, "FormatError", str(error)) from None
        if isinstance(arrays, dict) != (kind == _NPZ):
            raise Refused(400, "FormatError", f"the body is not of type {kind}")
        return arrays if isinstance(arrays, dict) else dict.fromkeys(list(self._inputs)[:1], arrays)

    def _checked(self, name: str, value: Any) -> np.ndarray:
        row, dtype = self._inputs[name]
        if not isinstance(value, np.ndarray) and _has_text(value):
            raise Refused(400, "DTypeError", f"input {name!r}", expected=dtype.name, given="text")
        try:
            array = np.asarray(value)
        except (ValueError, OverflowError, RecursionError) as error:
            raise Refused(400, "ShapeError", f"input {name!r}: {error}") from None
        if array.size == 0 and array.dtype.kind == "f":
            array = array.astype(dtype)
        is_number = array.dtype.kind in "biuf" or array.dtype == dtype
        if not is_number or (array.dtype.kind == "f" and dtype.kind in "iu"):
            raise Refused(400, "DTypeError", f"input {name!r}", expected=dtype.name, given=array.dtype.name)
        limit = self._limits.rows
        if (
            (array.shape[1:] != row and not _fits(array.shape[1:], row))
            or array.ndim == 0
            or not 1 <= len(array) <= limit
        ):
            wanted = f"(1 to {limit}, {', '.join(map(str, row))})"
            raise Refused(400, "ShapeError", f"input {name!r}", expected=f"shape {wanted}", given=str(array.shape))
        if dtype.kind in "iu" and (array.min() < np.iinfo(dtype).min or array.max() > np.iinfo(dtype).max):
            raise Refused(400, "ValueError", f"input {name!r}: a value does not fit {dtype.name}")
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(array.astype(dtype, copy=False))

    def _check_finite(self, arrays: list[np.ndarray]) -> None:
        """Refuses JSON values beyond the range of the input's dtype: 1e300 would become infinite in float32."""
        for name, array in zip(self._inputs, arrays, strict=True):
            if not _are_finite(array):
                raise Refused(
                    400,
                    "ValueError",
                    f"input {name!r}",
                    expected=f"numbers that fit {array.dtype.name}",
                    given="one that is infinite there",
                )

    def write(self, kind: str, outputs: list[np.ndarray]) -> tuple[str, bytes]:
        """Returns the content type and body of an answer to a request of type kind."""
        if kind == JSON:
            for name, array in zip(self._outputs, outputs, strict=True):
                if not self._allow_nan and not _are_finite(array):
                    raise Refused(
                        500,
                        "NotFinite",
                        f"output {name!r} holds NaN or infinity, which JSON cannot represent",
                        fix=f"ask for {_NPZ}, or start the server with --allow-nan, which writes null",
                    )
            lists = {name: _finite(array) for name, array in zip(self._outputs, outputs, strict=True)}
            return JSON, json.dumps({"outputs": lists}).encode()
        alone = kind == _NPY and len(outputs) == 1
        file = io.BytesIO()
        write_numpy(file, outputs, None if alone else self._outputs)
        return _NPY if alone else _NPZ, file.getvalue()


def _fits(shape: tuple[int, ...], row: tuple[int | str, ...]) -> bool:
    """Whether a shape has the sizes of a row, with any positive size where that has a name."""
    return len(shape) == len(row) and all(
        own >= 1 if isinstance(size, str) else own == size for own, size in zip(shape, row, strict=True)
    )


def content_type(scope: dict[str, Any]) -> str:
    """Returns the type of a request's body. Raises Refused for types that are not read."""
    value = next((value for name, value in scope["headers"] if name == b"content-type"), JSON.encode())
    kind = value.decode("latin-1").partition(";")[0].strip().lower()
    if kind not in (JSON, _NPY, _NPZ):
        raise Refused(
            415, "UnsupportedMediaType", "content-type", expected=f"{JSON}, {_NPY} or {_NPZ}", given=repr(kind[:100])
        )
    return kind


def _unpacked_bytes(body: bytes) -> int:
    """Returns the declared unpacked size of an archive, an upper limit for reading. 0: it is not an archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            return sum(member.file_size for member in archive.infolist())
    except Exception:  # its reader will report the error
        return 0


def _has_text(value: Any) -> bool:
    """Whether regular nested lists contain text. NumPy would give every element the size of the longest text."""
    try:
        return str in set(map(type, np.array(value, dtype=object).ravel().tolist()))
    except ValueError:
        return False  # ragged: not an array either


def _refuse_word(word: str) -> float:
    raise Refused(
        400,
        "ValueError",
        f"the body holds {word}, which is no number of JSON",
        fix=f"send {_NPZ}, which may hold it, or start the server with --allow-nan",
    )


def _are_finite(array: np.ndarray) -> bool:
    if array.dtype.kind not in "fV":
        return True
    return bool(np.isfinite(array.astype(np.float32) if array.dtype.itemsize == 2 else array).all())


def _finite(array: np.ndarray) -> Any:
    """Returns nested lists, with null for values that JSON does not have."""
    if array.dtype.kind not in "fV":
        return array.tolist()
    wide = array.astype(np.float32) if array.dtype.itemsize == 2 else array
    whole = np.isfinite(wide)
    if whole.all():
        return wide.tolist()
    mixed = wide.astype(object)
    mixed[~whole] = None
    return mixed.tolist()
