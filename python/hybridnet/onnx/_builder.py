"""Builds the Symbols of an imported graph: operators with constants, sizes and values of arrays as parameters."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _core
from ..ndarray import array as nd_array
from ..ndarray._dtypes import numpy_dtype
from ..symbol import var
from ._errors import refuse
from ._sizes import Dim, Item, Number, Size, is_number, text_of
from ._values import MOST_SIZES, Value

__all__ = ["Builder", "Runtime", "TrialsDoNotFit", "is_known"]

# Constants are computed while a file is imported if the result has at most this many elements, or fewer than its input.
MOST_FOLDED = 1 << 22
# Parts of a weight, such as the gates of a cell, may be parameters of their own.
_PARTS = frozenset(["slice", "slice_axis", "SliceChannel"])
# Sizes that come from the data of arrays (numbers of nonzero elements) are tried with these numbers.
DATA_SIZES = ((11, 13, 17, 19, 23, 29, 31, 37), (331, 337, 347, 349, 353, 359, 367, 373))


class TrialsDoNotFit(Exception):
    """The trial sizes break a rule of the graph: others must be tried. trial: the number of the first one that does."""

    def __init__(self, message: str, trial: int = 0) -> None:
        super().__init__(message)
        self.trial = trial


@dataclass(frozen=True)
class Runtime:
    """A parameter that is known when the graph runs: the elements of a value, or one of them."""

    value: Value
    index: int | None = None


Param = Any  # a number, a Size, a Runtime, a tuple of these, or a plain parameter (str, bool, None)


def is_known(param: Param) -> bool:
    """Whether a parameter is a number that is known while the file is imported."""
    return not isinstance(param, (Size, Runtime))


@functools.cache
def _function(op: str, symbolic: bool) -> Callable[..., Any]:
    return _core.op_function(op, op, "hybridnet.onnx", symbolic=symbolic)


@functools.cache
def _draws(op: str) -> bool:
    """Whether an operator returns other elements for the same inputs: it draws random numbers."""
    return bool(_core.describe_op(op)["random"])


@functools.cache
def _fields(op: str) -> frozenset[str]:
    return frozenset(field["name"] for field in _core.describe_op(op)["fields"])


@dataclass
class Builder:
    """Makes nodes for an importer. `params` collects the initializers that became parameters."""

    num_trials: int
    params: dict[str, np.ndarray] = field(default_factory=dict)
    frozen: set[str] = field(default_factory=set)  # names of params that training must leave alone
    states: set[str] = field(default_factory=set)  # names of params that are auxiliary states
    # Products with a constant matrix that only one node reads, with their factors: if that node adds a row, both become
    # one FullyConnected.
    products: dict[Value, tuple[Value, Value]] = field(default_factory=dict)
    _used_names: set[str] = field(default_factory=set)
    _frozen_constants: set[Value] = field(default_factory=set)
    # Weights that several nodes read: what is computed from them stays in the graph, so that each is one parameter.
    shared_weights: set[Value] = field(default_factory=set)
    _derived: dict[tuple[Value, str], Value] = field(default_factory=dict)
    _shared: dict[str, Value] = field(default_factory=dict)
    _data_sizes: int = 0
    _sizes_of: dict[Value, tuple[int, ...]] = field(default_factory=dict)

    # ------------------------------------------------------------------------------------------------------ values
    def unique(self, name: str) -> str:
        """A name for a node or parameter that no other one has."""
        name = name or "node"
        made, number = name, 0
        while made in self._used_names:
            number += 1
            made = f"{name}_{number}"
        self._used_names.add(made)
        return made

    def constant(self, array: Any, name: str = "constant", dtype: str | None = None, trainable: bool = True) -> Value:
        """A value whose elements are known. trainable: whether training may change it, if it is floating."""
        array = np.asarray(array) if dtype is None else np.asarray(array).astype(numpy_dtype(dtype))
        value = Value(name, (array.shape,) * self.num_trials, str(array.dtype), const=array)
        value._make = lambda: self._parameter(value, trainable)
        if not trainable:
            self._frozen_constants.add(value)
        return value

    def _of_constants(self, array: Any, name: str, values: Sequence[Value]) -> Value:
        """A constant that is computed from others; training may change it if it may change one of them."""
        return self.constant(array, name, trainable=any(value not in self._frozen_constants for value in values))

    def _parameter(self, value: Value, trainable: bool) -> Any:
        assert value.const is not None
        if value.const.size == 0:
            return self._without_elements(value)
        name = self.unique(value.name)
        shape = value.const.shape or (1,)  # parameters of blocks have axes
        self.params[name] = value.const.reshape(shape)
        if value.const.dtype.kind not in "fV" or not trainable:
            self.frozen.add(name)
        made = var(name, shape=shape, dtype=value.dtype)
        return made if value.const.ndim else _function("_np_reshape", True)(made, newshape=())

    def _without_elements(self, value: Value) -> Any:
        """An empty constant, as an empty slice of a larger parameter: parameters hold at least one element."""
        assert value.const is not None
        shape = value.const.shape
        symbol = self.constant(np.zeros([max(size, 1) for size in shape], value.const.dtype), value.name).symbol
        for axis, size in enumerate(shape):
            if size == 0:
                symbol = _function("slice_axis", True)(symbol, axis=axis, begin=0, end=0)
        return symbol

    def state(self, value: Value) -> Value:
        """An auxiliary state with the elements of a constant, such as the running mean of BatchNorm.

        It is a parameter of its own, as other nodes may read the constant as a weight.
        """
        if not value.is_const:
            return value
        key = (value, "state")
        if key not in self._derived:
            self._derived[key] = made = self.constant(value.const, value.name)
            self.states.add(made.symbol.name)
        return self._derived[key]

    def derived(self, value: Value, kind: str, make: Callable[[np.ndarray], np.ndarray]) -> Value:
        """A constant that is computed from another, once for each kind: its readers share one parameter."""
        assert value.const is not None
        key = (value, kind)
        if key not in self._derived:
            self._derived[key] = self._of_constants(make(value.const), f"{value.name}_{kind}", [value])
        return self._derived[key]

    def transposed(self, matrix: Value) -> Value:
        """A constant matrix transposed. If others may read it as it is, one of both is the parameter."""
        is_new = (matrix, "transposed") not in self._derived
        if is_new and matrix in self.shared_weights and matrix.has_symbol:
            made: Value = self.emit("transpose", [matrix], axes=(1, 0))
            return made
        made = self.derived(matrix, "transposed", lambda array: np.ascontiguousarray(array.T))
        if is_new and matrix in self.shared_weights:
            matrix._make = lambda: _function("transpose", True)(made.symbol, axes=(1, 0))
        return made

    def shared(self, name: str, array: np.ndarray) -> Value:
        """A constant that many nodes read, and that training leaves alone; one for each name."""
        if name not in self._shared:
            self._shared[name] = self.constant(array, name, trainable=False)
        return self._shared[name]

    def data_size(self, source: Value | None = None) -> tuple[int, ...]:
        """Trial sizes for an axis whose size follows from data: the same ones for the same source of the size."""
        if source is not None and source in self._sizes_of:
            return self._sizes_of[source]
        around, index = divmod(self._data_sizes, len(DATA_SIZES[0]))
        self._data_sizes += 1
        small, large = (sizes[index] + 50 * around for sizes in DATA_SIZES)
        made = tuple(small if trial == 0 else large for trial in range(self.num_trials))
        if source is not None:
            self._sizes_of[source] = made
        return made

    # ------------------------------------------------------------------------------------------------------- sizes
    def dim(self, value: Value, axis: int) -> Number:
        """The size of an axis: a number, or a Size that follows from the shapes of inputs."""
        axis = axis % value.ndim if value.ndim else axis
        fixed = value.fixed(axis)
        if fixed is not None:
            return fixed
        trials = tuple(shape[axis] for shape in value.shapes)
        # Sizes of other values may be equal in all trials, and differ later: halves that round up or down, for example.
        return Size(trials, (Dim(value, axis),))

    def dims(self, value: Value) -> list[Number]:
        """The sizes of all axes."""
        return [self.dim(value, axis) for axis in range(value.ndim)]

    def sized(self, name: str, sizes: Any, dtype: str, make: Callable[[], Any]) -> Value:
        """A small tensor of numbers and Sizes; make() returns its Symbol if a node needs the tensor itself."""
        sizes = np.asarray(sizes, dtype=object)
        if all(is_number(item) for item in sizes.reshape(-1)):
            numbers = np.array([*sizes.reshape(-1)], dtype=numpy_dtype(dtype)).reshape(sizes.shape)
            return self.constant(numbers, name, trainable=False)
        return Value(name, (sizes.shape,) * self.num_trials, dtype, make=make, sizes=sizes)

    def numbers(self, value: Value) -> list[Number] | Runtime:
        """The elements of a tensor as parameters of operators: numbers and Sizes if they are known, else Runtime."""
        if value.sizes is not None:
            return list(value.sizes.reshape(-1))
        if value.is_const and value.const is not None:
            return [item.item() for item in value.const.reshape(-1)]
        return Runtime(value)

    def items(self, value: Value) -> list[Param]:
        """The elements of a tensor of known size, one parameter each."""
        numbers = self.numbers(value)
        if not isinstance(numbers, Runtime):
            return list(numbers)
        count = value.fixed(0) if value.ndim else 1
        if count is None or count > MOST_SIZES:
            raise refuse(f"the number of elements of '{value.name}' is not known while the file is imported")
        return [Runtime(value, index) for index in range(count)]

    def item(self, value: Value) -> Param:
        """The only element of a tensor as a parameter."""
        return self.items(value)[0]

    # ------------------------------------------------------------------------------------------------------- nodes
    def emit(
        self,
        op: str,
        inputs: Sequence[Value],
        *,
        name: str = "",
        outputs: int = 1,
        view: bool = False,
        shapes: Any = None,
        dtype: Any = None,
        **attrs: Param,
    ) -> Any:
        """Adds a node; returns its output, or a tuple of its visible outputs if there are several.

        Parameters are numbers, strings, Sizes and Runtimes, or tuples of these. A Size makes it a node of
        ``_with_sizes`` (``_view_with_sizes`` if `view` is true); a Runtime one of ``_with_values``, at which the graph
        is cut: `shapes` (one per trial) and `dtype` then describe the output, as for operators whose shapes depend on
        data. If there are several outputs, both are lists with one item per output.
        """
        kinds = {kind for value in attrs.values() for kind in _kinds(value)}
        if isinstance(dtype, str) and ((Runtime not in kinds and shapes is None) or "dtype" in _fields(op)):
            attrs["dtype"] = dtype
        if Runtime in kinds or Item in kinds:
            if Runtime not in kinds and shapes is None:
                return self._emit_by_items(op, inputs, name, outputs, attrs)
            return self._emit_by_values(op, inputs, name, outputs, shapes, dtype, attrs)
        if Size in kinds:
            return self._emit_by_sizes(op, inputs, name, outputs, view, attrs)
        if inputs and all(value.is_const for value in inputs) and not _draws(op):
            folded = self._folded(op, inputs, name, attrs)
            if folded is not None:
                return folded
        if shapes is not None:
            symbol = _function(op, True)(*[v.symbol for v in inputs], name=self.unique(name or op), **attrs)
            return self._described(symbol, name or op, outputs, shapes, dtype or inputs[0].dtype)
        return self._node(op, inputs, name or op, attrs)

    @staticmethod
    def _described(symbol: Any, name: str, outputs: int, shapes: Any, dtype: Any) -> Any:
        """The outputs of a node whose shapes inference does not find."""
        if outputs == 1:
            return Value(name, tuple(shapes), dtype, symbol=symbol)
        return tuple(
            Value(f"{name}{index or ''}", tuple(shapes[index]), dtype[index], symbol=symbol[index])
            for index in range(outputs)
        )

    def _node(self, op: str, inputs: Sequence[Value], name: str, attrs: dict[str, Param]) -> Any:
        specs = self._infer(op, inputs, attrs)
        symbol = _function(op, True)(*[value.symbol for value in inputs], name=self.unique(name), **attrs)
        made = [
            Value(f"{name}{index or ''}", tuple(trial[index][0] for trial in specs), specs[0][index][1], symbol=part)
            for index, part in enumerate([symbol] if symbol.num_outputs == 1 else symbol)
        ]
        return made[0] if len(made) == 1 else tuple(made)

    def _infer(self, op: str, inputs: Sequence[Value], attrs: dict[str, Param]) -> list[list[tuple[Any, str]]]:
        return [self._infer_trial(op, inputs, attrs, trial) for trial in range(self.num_trials)]

    def _infer_trial(
        self, op: str, inputs: Sequence[Value], attrs: dict[str, Param], trial: int
    ) -> list[tuple[Any, str]]:
        try:
            found: list[tuple[Any, str]] = _core.infer_use(op, attrs, [value.spec(trial) for value in inputs])
        except Exception as error:
            if _varies(inputs):
                raise TrialsDoNotFit(str(error), trial) from error
            raise
        if any(shape is None or any(size < 0 for size in shape) or dtype is None for shape, dtype in found):
            raise refuse(f"operator '{op}': the shapes of its outputs do not follow from those of its inputs")
        return found

    def _folded(self, op: str, inputs: Sequence[Value], name: str, attrs: dict[str, Param]) -> Any:
        if sum(value.const.size for value in inputs if value.const is not None) > MOST_FOLDED:
            return None
        if not _makes_few(op, inputs, attrs):
            return None
        if op not in _PARTS and self.shared_weights.intersection(inputs):
            return None
        arrays = [nd_array(value.const, dtype=value.dtype) for value in inputs]
        results = _function(op, False)(*arrays, **attrs)
        results = results if isinstance(results, (list, tuple)) else [results]
        if any(result.size > MOST_FOLDED for result in results):
            return None
        made = tuple(self._of_constants(result.asnumpy(), name or inputs[0].name, inputs) for result in results)
        return made[0] if len(made) == 1 else made

    def _emit_by_sizes(
        self, op: str, inputs: Sequence[Value], name: str, outputs: int, view: bool, attrs: dict[str, Param]
    ) -> Any:
        read = list(inputs)
        text = self._template(attrs, read)
        return self._node(
            "_view_with_sizes" if view else "_with_sizes",
            read,
            name or op,
            {"op": op, "attrs": text, "num_data": len(inputs), "num_outputs": outputs},
        )

    def _emit_by_items(self, op: str, inputs: Sequence[Value], name: str, outputs: int, attrs: dict[str, Param]) -> Any:
        """A node of ``_with_values`` whose shapes follow from the trials of its parameters."""
        found = [self._infer_trial(op, inputs, _of_trial(attrs, trial), trial) for trial in range(self.num_trials)]
        specs = [(tuple(trial[index][0] for trial in found), found[0][index][1]) for index in range(len(found[0]))]
        shapes, dtype = specs[0] if outputs == 1 else tuple(zip(*specs, strict=True))
        return self._emit_by_values(op, inputs, name, outputs, shapes, dtype, attrs)

    def _emit_by_values(
        self,
        op: str,
        inputs: Sequence[Value],
        name: str,
        outputs: int,
        shapes: Any,
        dtype: Any,
        attrs: dict[str, Param],
    ) -> Any:
        read = list(inputs)
        text = self._template(attrs, read)
        if shapes is None:
            raise refuse(f"operator '{op}': a parameter is computed from data, which is not supported here")
        symbol = _function("_with_values", True)(
            *[value.symbol for value in read],
            name=self.unique(name or op),
            op=op,
            attrs=text,
            num_data=len(inputs),
            num_outputs=outputs,
        )
        return self._described(symbol, name or op, outputs, shapes, dtype or inputs[0].dtype)

    def _template(self, attrs: dict[str, Param], read: list[Value]) -> str:
        def number_of(value: Value) -> int:
            for index, known in enumerate(read):
                if known is value:
                    return index
            read.append(value)
            return len(read) - 1

        def text(item: Param) -> str:
            if isinstance(item, Size):
                tokens = [
                    f"#{number_of(token.value)}.{token.axis}"
                    if isinstance(token, Dim)
                    else f"@{number_of(token.value)}.{token.index}"
                    if isinstance(token, Item)
                    else token
                    for token in item.expression
                ]
                return "{" + " ".join(tokens) + "}"
            if isinstance(item, Runtime):
                place = "" if item.index is None else f".{item.index}"
                return "{" + f"@{number_of(item.value)}{place}" + "}"
            if isinstance(item, (tuple, list)):
                return "(" + "".join(f"{text(part)}," for part in item) + ")"
            if isinstance(item, (int, float)) and not isinstance(item, bool):
                return text_of(item)
            return str(item)

        def whole(item: Param) -> str:  # the elements of a Runtime are the tuple
            inner = isinstance(item, Runtime) and item.index is None
            return f"({text(item)})" if inner else text(item)

        return ";".join(f"{key}={whole(value)}" for key, value in attrs.items())

    # ------------------------------------------------------------------------------------------------ common steps
    def reshape(self, value: Value, sizes: Sequence[Param] | Runtime, name: str = "") -> Value:
        """Another shape with the same elements; one size may be -1."""
        if isinstance(sizes, Runtime):
            count = sizes.value.fixed(0)
            if count is None:
                raise refuse(f"the rank of the reshaped '{value.name}' is not known while the file is imported")
            shapes = tuple(zip(*(self.data_size() for _ in range(count)), strict=True)) or ((),) * self.num_trials
            return self.emit("_np_reshape", [value], name=name, newshape=sizes, shapes=shapes)
        sizes = list(sizes)
        if value.const is not None and all(is_number(size) for size in sizes) and value not in self.shared_weights:
            return self._of_constants(np.reshape(value.const, [int(size) for size in sizes]), value.name, [value])
        own = self.dims(value) if value.ndim else []
        unknown = [axis for axis, size in enumerate(sizes) if isinstance(size, Size)]
        zero = any(is_number(size) and size == 0 for size in sizes)
        if not unknown and not zero and -1 not in sizes and not _varies([value]):
            return self.emit("_np_reshape", [value], name=name, newshape=tuple(int(size) for size in sizes))
        if not zero and 0 not in value.shapes[0]:
            codes = [
                0 if axis < len(own) and _same(size, own[axis]) and isinstance(size, Size) else size
                for axis, size in enumerate(sizes)
            ]
            left = [axis for axis, size in enumerate(codes) if isinstance(size, Size)]
            if len(left) == 1 and -1 not in codes:
                codes[left[0]] = -1
                left = []
            if not left and codes:
                return self.emit("Reshape", [value], name=name, shape=tuple(int(size) for size in codes))
        return self.emit("_np_reshape", [value], name=name, view=True, newshape=tuple(sizes))

    def broadcast_to(self, value: Value, sizes: Sequence[Param], name: str = "") -> Value:
        """Repeats along axes of size 1, and along new axes in front, by NumPy's rule."""
        own = [1] * (len(sizes) - value.ndim) + self.dims(value)
        if value.ndim < len(sizes):
            value = self.reshape(value, own)
        repeated = [axis for axis, size in enumerate(sizes) if not _same(size, own[axis])]
        if not repeated:
            return value
        if all(is_number(own[axis]) and own[axis] == 1 for axis in repeated):  # takes a size of 0 as it is
            counts = tuple(sizes[axis] for axis in repeated)
            return self.emit("broadcast_axis", [value], name=name, axis=tuple(repeated), size=counts)
        return self.emit("broadcast_to", [value], name=name, shape=tuple(sizes))

    def cast(self, value: Value, dtype: str, name: str = "") -> Value:
        """The same values in another dtype."""
        if value.dtype == dtype:
            return value
        return self.emit("Cast", [value], name=name, dtype=dtype)

    def arithmetic(self, name: str, ops: tuple[str, str, str], a: Value, b: Value) -> Value:
        """An operator of two tensors by NumPy's broadcasting: with the form for a number where one tensor is a constant
        of one element. ops: for two tensors, a tensor and a number, a number and a tensor."""
        number = _only_number(b)
        if number is not None and not a.is_const and b.ndim <= a.ndim:
            return self.emit(ops[1], [a], name=name, scalar=number)
        number = _only_number(a)
        if number is not None and not b.is_const and a.ndim <= b.ndim:
            return self.emit(ops[2], [b], name=name, scalar=number)
        return self.emit(ops[0], [a, b], name=name)

    def shape_of(self, value: Value) -> Value:
        """The shape as a tensor, int64."""
        name = f"{value.name}_shape"
        return self.sized(name, self.dims(value), "int64", lambda: self.emit("shape_array", [value], name=name).symbol)


def _makes_few(op: str, inputs: Sequence[Value], attrs: dict[str, Param]) -> bool:
    """Whether results are small enough for constants, before memory is requested: a few bytes may ask for much."""
    try:
        found = _core.infer_use(op, attrs, [value.spec(0) for value in inputs])
    except Exception:
        return True  # the call raises the error
    return all(shape is None or math.prod(max(size, 0) for size in shape) <= MOST_FOLDED for shape, _ in found)


def _only_number(value: Value) -> float | int | None:
    if value.const is None or value.const.size != 1 or value.const.dtype == bool:
        return None
    number: float | int = value.const.reshape(-1)[0].item()
    is_exact = isinstance(number, float) or int(float(number)) == number  # parameters are float64
    return number if is_exact else None


def _kinds(value: Param) -> set[type]:
    if isinstance(value, (tuple, list)):
        return {kind for item in value for kind in _kinds(item)}
    if isinstance(value, Size) and value.reads_data:
        return {Item}
    return {type(value)} & {Size, Runtime}


def _of_trial(attrs: dict[str, Param], trial: int) -> dict[str, Param]:
    """The parameters with the numbers of a trial in place of Sizes."""

    def number(item: Param) -> Param:
        if isinstance(item, (tuple, list)):
            return tuple(number(part) for part in item)
        if not isinstance(item, Size):
            return item
        size = item.trials[trial]
        return int(size) if math.isfinite(size) and size == int(size) else size

    return {key: number(value) for key, value in attrs.items()}


def _same(a: Number, b: Number) -> bool:
    if isinstance(a, Size) and isinstance(b, Size):
        return a.trials == b.trials
    return is_number(a) and is_number(b) and a == b


def _varies(values: Sequence[Value]) -> bool:
    return any(len(set(value.shapes)) > 1 for value in values)
