"""Functions that combine a list of samples into a batch: stack, pad, by part, by key, or leave as a list."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ... import ndarray
from ..._public_names import dir_of
from ..._user_line import warn
from ...errors import ParamError, suggestion
from ...ndarray._dtypes import numpy_dtype
from ...ndarray._lost_values import lost_value

__all__ = [
    "Append",
    "AsList",
    "Dict",
    "Group",
    "List",
    "NamedTuple",
    "Pad",
    "Stack",
    "Tuple",
    "default_batchify",
    "stack_arrays",
]


def _numpy(sample: Any) -> np.ndarray:
    return sample.asnumpy() if isinstance(sample, ndarray.NDArray) else np.asarray(sample)


def _arrays(samples: Sequence[Any], owner: str) -> list[np.ndarray]:
    """Returns the samples as arrays of numbers. Raises ParamError for others, and if there is none."""
    if len(samples) == 0:
        raise ParamError(f"{owner}: samples", expected="at least one sample", given="none")
    return [_array(sample, number, owner) for number, sample in enumerate(samples)]


def _array(sample: Any, number: int, owner: str) -> np.ndarray:
    try:
        array = _numpy(sample)
        if array.dtype.kind in _NUMBERS:
            return array
    except ValueError:  # nested lists of different lengths
        pass
    raise ParamError(
        f"{owner}: sample {number} of the batch",
        expected="a number, an array, or a list of numbers of one shape",
        given=_short(sample),
        fix="convert it to numbers, or pass a batchify_fn with gluon.data.batchify.AsList() for it",
    )


def _short(sample: Any) -> str:
    text = repr(sample)
    return text if len(text) <= 60 else f"a value of type {type(sample).__name__}"


_NUMBERS = "biufcV"  # kinds of dtypes; V: bfloat16
# Results of promotion that arrays do not have here, such as int16 of int8 and uint8.
_WIDER = {"int16": "int32", "uint16": "int32", "uint32": "int64"}


def _common_dtype(arrays: Sequence[np.ndarray]) -> np.dtype:
    """Returns the dtype of the arrays or, if they differ, one that holds the values of all."""
    first = arrays[0].dtype
    if all(array.dtype == first for array in arrays):
        return first
    dtypes = list({array.dtype: None for array in arrays})
    try:
        common = np.result_type(*dtypes)
    except TypeError:  # bfloat16 with float16 or integers
        common = np.result_type(np.float32, *(dtype for dtype in dtypes if dtype.kind != "V"))
    return np.dtype(_WIDER.get(common.name, common))


def _stacked_values(samples: Sequence[Any]) -> np.ndarray | None:
    """Returns numbers, or lists of them, as one array; None if their batch has to be made sample by sample."""
    try:
        values = np.asarray(samples)
    except ValueError:  # shapes differ
        return None
    return values if values.dtype.kind in _NUMBERS and values.dtype.name not in _WIDER else None


def stack_arrays(samples: Sequence[Any], allocate: Callable[[tuple[int, ...], np.dtype], np.ndarray]) -> np.ndarray:
    """Stacks samples of one shape into a NumPy array with a new first axis, in memory from allocate(shape, dtype).

    Samples of different dtypes are converted to a dtype that holds the values of all. Raises ParamError if shapes
    differ, and for samples that are not numbers.
    """
    if len(samples) > 0 and not isinstance(samples[0], (ndarray.NDArray, np.ndarray)):
        values = _stacked_values(samples)
        if values is not None:
            out = allocate(values.shape, values.dtype)
            out[...] = values
            return out
    arrays = _arrays(samples, "Stack")
    if any(array.shape != arrays[0].shape for array in arrays):
        shapes = sorted({array.shape for array in arrays})
        raise ParamError(
            f"samples of one batch have different shapes: {shapes[:4]}",
            fix="crop or resize them, or pass a batchify_fn such as gluon.data.batchify.Pad()",
        )
    out = allocate((len(arrays), *arrays[0].shape), _common_dtype(arrays))
    np.stack(arrays, out=out)
    return out


def default_batchify(samples: Sequence[Any], allocate: Callable[[tuple[int, ...], np.dtype], np.ndarray]) -> Any:
    """Stacks arrays and numbers; texts and bytes stay a list. Arrays of the batch are NumPy arrays.

    Tuples become a list with a batch per part, dicts a dict with a batch per key. Raises ParamError if keys differ.
    """
    first = samples[0]
    if isinstance(first, tuple):
        return [default_batchify(part, allocate) for part in zip(*samples, strict=False)]
    if isinstance(first, Mapping):
        return {key: default_batchify(values, allocate) for key, values in by_key(samples).items()}
    if isinstance(first, (str, bytes)):
        return list(samples)
    return stack_arrays(samples, allocate)


def by_key(samples: Sequence[Mapping[Any, Any]]) -> dict[Any, list[Any]]:
    """Returns the values of dict samples per key. Raises ParamError if the samples have different keys."""
    keys = samples[0].keys()
    for number, sample in enumerate(samples):
        if sample.keys() != keys:
            raise ParamError(
                f"batchify: keys of sample {number} of the batch",
                expected=f"those of the first sample, {sorted(map(str, keys))}",
                given=str(sorted(map(str, sample.keys()))),
                fix="return the same keys for every sample, with a value such as 0 for missing ones",
            )
    return {key: [sample[key] for sample in samples] for key in keys}


class Stack:
    """Stacks samples of one shape along a new first axis.

    Samples of different dtypes are converted to a dtype that holds the values of all. Raises ParamError if shapes
    differ, and for samples that are not numbers.
    """

    def __init__(self, use_shared_mem: bool = False) -> None:
        self._use_shared_mem = use_shared_mem

    def __call__(self, data: Sequence[Any]) -> Any:
        values = stack_arrays(data, np.empty)
        return ndarray.array(values, dtype=values.dtype)


class Pad:
    """Stacks samples of different sizes, padding them to the largest.

    Parameters
    ----------
    axis : int, default 0
        Axis of round_to and ret_length; every axis is padded to the largest size.
    val : float, optional
        Padding value, default 0 (with a warning, because 0 may be a valid value).
    dtype : optional
        Element type of the batch; default: that of the samples or, if they differ, one that holds the values of all.
    ret_length : bool, default False
        Whether to return (batch, sizes along axis) instead of the batch alone. The sizes are an int32 array (N,).
    round_to : int, optional
        The size along axis is rounded up to a multiple of it, so that hybridized nets see fewer shapes.
    pad_val : float, optional
        GluonNLP's name of val.

    Called with the samples; raises ParamError if the list is empty, samples are numbers without an axis, ranks differ,
    the samples have no such axis, and for values of the samples, or a padding value, that the dtype cannot hold.
    """

    def __init__(
        self,
        axis: int = 0,
        val: float | None = None,
        dtype: Any = None,
        ret_length: bool = False,
        use_shared_mem: bool = False,
        round_to: int | None = None,
        pad_val: float | None = None,
    ) -> None:
        val = pad_val if val is None else val
        if round_to is not None and round_to < 1:
            raise ParamError("Pad: round_to", expected="an integer >= 1", given=repr(round_to))
        if val is None:
            warn(
                "Padding value is not given and will be set automatically to 0 in data.batchify.Pad().",
            )
        self._axis = _axis_number(axis)
        self._val = _number(0 if val is None else val)
        self._dtype = dtype
        self._ret_length = ret_length
        self._use_shared_mem = use_shared_mem
        self._round_to = round_to

    def __call__(self, data: Sequence[Any]) -> Any:
        arrays = _arrays(data, "Pad")
        self._check_axes(arrays)
        largest = [max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=False)]
        if self._round_to is not None:
            largest[self._axis] = -(-largest[self._axis] // self._round_to) * self._round_to
        dtype = _common_dtype(arrays) if self._dtype is None else self._checked_dtype(arrays)
        batch = np.full((len(arrays), *largest), self._padding_value(dtype), dtype=dtype)
        for row, array in zip(batch, arrays, strict=False):
            row[tuple(slice(size) for size in array.shape)] = array
        out = ndarray.array(batch, dtype=dtype)
        if not self._ret_length:
            return out
        lengths = np.array([array.shape[self._axis] for array in arrays], dtype=np.int32)
        return out, ndarray.array(lengths, dtype=np.int32)

    def _check_axes(self, arrays: Sequence[np.ndarray]) -> None:
        ranks = {array.ndim for array in arrays}
        if len(ranks) != 1:
            raise ParamError(
                "Pad", expected="samples of one rank", given=f"shapes {[array.shape for array in arrays][:4]}"
            )
        (rank,) = ranks
        if rank == 0:
            raise ParamError(
                "Pad: samples",
                expected="arrays or lists, which have an axis to pad",
                given="numbers",
                fix="use Stack(), which makes a vector of numbers",
            )
        if not -rank <= self._axis < rank:
            raise ParamError(
                "Pad: axis",
                expected=f"{-rank} to {rank - 1} for samples with {rank} {'axis' if rank == 1 else 'axes'}",
                given=str(self._axis),
                because="axes are counted in a sample, not in the batch",
                fix="pass axis=0",
            )

    def _checked_dtype(self, arrays: Sequence[np.ndarray]) -> np.dtype:
        """Returns the dtype that the caller chose. Raises ParamError if it cannot hold the samples."""
        dtype = numpy_dtype(self._dtype)
        for number, array in enumerate(arrays):
            lost = lost_value(array, dtype)
            if lost is not None:
                raise ParamError(
                    f"Pad: dtype={dtype.name!r}",
                    expected="a dtype that holds the samples",
                    given=f"the value {lost} in sample {number} of the batch",
                    fix=f"leave dtype out or pass dtype={_common_dtype(arrays).name!r}, or round and clip the samples",
                )
        return dtype

    def _padding_value(self, dtype: np.dtype) -> np.ndarray:
        """Returns the padding value in the dtype of the batch. Raises ParamError if it cannot hold the value."""
        if lost_value(self._val, dtype) is not None:
            raise ParamError(
                "Pad: val",
                expected=f"a value that the batch's dtype {dtype.name} holds",
                given=str(self._val),
                fix="pass dtype='float32', or another val such as 0",
            )
        return self._val.astype(dtype)


def _number(value: Any) -> np.ndarray:
    """Returns a padding value as an array without axes. Raises ParamError unless it is a number."""
    array = _numpy(value)
    if array.size != 1 or array.dtype.kind not in "biufV":
        raise ParamError("Pad: val", expected="a number", given=_short(value), fix="pass val=0, for example")
    return array.reshape(())


def _axis_number(axis: Any) -> int:
    try:
        return operator.index(axis)
    except TypeError:
        raise ParamError("Pad: axis", expected="an integer", given=repr(axis), fix="leave it out") from None


class Append:
    """Returns a list of arrays, one per sample; with expand each has an additional first axis of size 1."""

    def __init__(self, expand: bool = True, batch_axis: int = 0, use_shared_mem: bool = False) -> None:
        self._expand = expand
        self._batch_axis = batch_axis

    def __call__(self, data: Sequence[Any]) -> list[Any]:
        batch = []
        for sample in data:
            array = sample if isinstance(sample, ndarray.NDArray) else None
            if array is None:
                values = np.asarray(sample)
                array = ndarray.array(values, dtype=values.dtype)
            batch.append(ndarray.expand_dims(array, axis=self._batch_axis) if self._expand else array)
        return batch


class AsList:
    """Returns the samples as a list, unchanged."""

    def __call__(self, data: Sequence[Any]) -> list[Any]:
        return list(data)


List = AsList


class Group:
    """Applies one function per part of tuple samples: ``Group(Stack(), Pad(val=0))``. ParamError on a wrong count."""

    def __init__(self, fn: Any, *args: Callable[[Sequence[Any]], Any]) -> None:
        self._fn = tuple(fn) if isinstance(fn, (list, tuple)) else (fn, *args)

    def __call__(self, data: Sequence[Any]) -> tuple[Any, ...]:
        if len(data[0]) != len(self._fn):
            raise ParamError(f"samples have {len(data[0])} parts but {len(self._fn)} batchify functions are given")
        return tuple(fn([sample[i] for sample in data]) for i, fn in enumerate(self._fn))


Tuple = Group


def _check_functions(owner: str, functions: Any) -> dict[str, Callable[[Sequence[Any]], Any]]:
    if not isinstance(functions, Mapping) or not all(callable(fn) for fn in functions.values()):
        raise ParamError(
            owner,
            expected="a dict of functions that combine samples",
            given=repr(functions),
            fix=f"write {owner}({{'data': Stack(), 'length': Stack()}})",
        )
    return dict(functions)


class Dict:
    """Applies one function per key of dict samples; returns a dict: ``Dict({"text": Pad(val=0), "label": Stack()})``.

    Keys of the samples that are not listed are left out. Raises ParamError if a sample lacks a key.
    """

    def __init__(self, fn_dict: Mapping[Any, Callable[[Sequence[Any]], Any]]) -> None:
        self._fn_dict = _check_functions("Dict", fn_dict)

    def __call__(self, data: Sequence[Mapping[Any, Any]]) -> dict[Any, Any]:
        for sample in data:
            for key in self._fn_dict:
                if key not in sample:
                    raise ParamError(f"Dict: a sample has no key {key!r}", fix=suggestion(str(key), map(str, sample)))
        return {key: fn([sample[key] for sample in data]) for key, fn in self._fn_dict.items()}


class NamedTuple:
    """Applies one function per field of samples of a named tuple; returns such a tuple.

    container: the class of the samples. fn_info: a dict of functions by field, or a list in the order of the fields.
    Raises ParamError unless each field has a function, and if a sample is not a container.
    """

    def __init__(self, container: Any, fn_info: Any) -> None:
        fields = getattr(container, "_fields", None)
        if fields is None:
            raise ParamError(
                "NamedTuple: container", expected="a class of collections.namedtuple", given=repr(container)
            )
        if isinstance(fn_info, (list, tuple)) and len(fn_info) == len(fields):
            fn_info = dict(zip(fields, fn_info, strict=True))
        functions = _check_functions("NamedTuple", fn_info)
        if set(functions) != set(fields):
            raise ParamError(
                "NamedTuple: fields of the functions", expected=str(list(fields)), given=str(list(functions))
            )
        self._container = container
        self._functions = [functions[field] for field in fields]

    def __call__(self, data: Sequence[Any]) -> Any:
        for sample in data:
            if not isinstance(sample, self._container):
                raise ParamError("NamedTuple: samples", expected=self._container.__name__, given=type(sample).__name__)
        return self._container(*(fn([sample[i] for sample in data]) for i, fn in enumerate(self._functions)))


__dir__ = dir_of(__name__)
