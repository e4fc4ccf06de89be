"""The instructions of random programs: their Python source and their effect on memory."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import operators
from .memory import EPSILON, Handle, Unclear, Value, cast, constant, new

Name = str
Operand = Name | float | int


@dataclass
class State:
    """The meaning of names at a point of a program."""

    names: dict[Name, Handle]
    is_np: bool
    recording: bool = False
    written: list[Any] = field(default_factory=list)  # written buffers, in order

    def handle(self, name: Name) -> Handle:
        if name not in self.names:
            raise Unclear(f"there is no {name}")
        return self.names[name]

    def read(self, operand: Operand) -> Any:
        if not isinstance(operand, str):
            return operand
        value = self.handle(operand).read()
        if not self.recording:
            value.slope = None
        return value

    def write(self, handle: Handle, value: Value, key: Any = ...) -> None:
        if handle.detached and value.slope is not None:
            raise Unclear("a gradient written where none passes")
        handle.write(value, key)
        self.written.append(handle.buffer)

    def bind(self, name: Name, value: Value) -> None:
        self.names[name] = new(value)

    @contextlib.contextmanager
    def attempt(self) -> Iterator[None]:
        """Restores names and buffers if an instruction raises Unclear."""
        names = dict(self.names)
        buffers = {id(handle.buffer): handle.buffer for handle in names.values()}
        saved = [
            (b, b.data.copy(), b.error.copy(), None if b.slope is None else b.slope.copy()) for b in buffers.values()
        ]
        try:
            yield
        except Unclear:
            for buffer, data, error, slope in saved:
                buffer.data, buffer.error, buffer.slope = data, error, slope
            self.names.clear()
            self.names.update(names)
            raise


def number_text(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)


def operand_text(operand: Operand) -> str:
    return operand if isinstance(operand, str) else number_text(operand)


# ---------------------------------------------------------------------------------------------------------------- keys
def key_text(key: Any) -> str:
    items = key if isinstance(key, tuple) else (key,)
    return ", ".join(map(_item_text, items)) + ("," if len(items) == 1 and isinstance(key, tuple) else "")


def _item_text(item: Any) -> str:
    if isinstance(item, slice):
        parts = [item.start, item.stop] + ([item.step] if item.step is not None else [])
        return ":".join("" if part is None else str(part) for part in parts)
    return "..." if item is Ellipsis else repr(item)


def selected(shape: tuple[int, ...], key: Any) -> np.ndarray:
    """The cells that a key selects, counted in row-major order."""
    try:
        return np.asarray(np.arange(math.prod(shape)).reshape(shape)[key])
    except (IndexError, ValueError) as problem:
        raise Unclear(f"an index: {problem}") from problem


def is_basic(key: Any) -> bool:
    return not any(isinstance(item, list) for item in (key if isinstance(key, tuple) else (key,)))


def visible_shape(shape: tuple[int, ...], is_np: bool) -> tuple[int, ...]:
    return shape if is_np or shape else (1,)


# -------------------------------------------------------------------------------------------------------- instructions
class Instruction:
    """One or more lines of a program. run() raises Unclear, before it changes anything, if it cannot run."""

    def run(self, state: State) -> None:
        raise NotImplementedError

    def lines(self, is_np: bool) -> list[str]:
        raise NotImplementedError

    @property
    def kind(self) -> str:
        return type(self).__name__


@dataclass
class Call(Instruction):
    """target = operator(operands)"""

    target: Name
    operator: str
    operands: tuple[Operand, ...]
    params: dict[str, Any]

    def run(self, state: State) -> None:
        operator = operators.OPERATORS[self.operator]
        value = operators.result(operator, [state.read(o) for o in self.operands], state.is_np, self.params)
        state.bind(self.target, value)

    def lines(self, is_np: bool) -> list[str]:
        operator = operators.OPERATORS[self.operator]
        return [
            f"{self.target} = {operators.source(operator, [*map(operand_text, self.operands)], is_np, self.params)}"
        ]


@dataclass
class CallInto(Instruction):
    """operator(operands, out=...)"""

    operator: str
    operands: tuple[Operand, ...]
    params: dict[str, Any]
    out: Name

    def run(self, state: State) -> None:
        operator = operators.OPERATORS[self.operator]
        value = operators.result(operator, [state.read(o) for o in self.operands], state.is_np, self.params)
        out = state.handle(self.out)
        if value.shape != out.shape or value.dtype != out.dtype:
            raise Unclear("out= of another kind")
        state.write(out, value)

    def lines(self, is_np: bool) -> list[str]:
        operator = operators.OPERATORS[self.operator]
        return [operators.source(operator, [*map(operand_text, self.operands)], is_np, self.params, out=self.out)]


SIGNS = {"add": "+=", "sub": "-=", "mul": "*=", "div": "/=", "power": "**="}


def _changed(state: State, sign: str, before: Value, operand: Operand) -> Value:
    run = operators.ARITHMETIC[sign][3]
    given = state.read(operand)
    try:
        after = run([before, given], state.is_np)
    except ValueError as problem:
        raise Unclear(f"shapes that do not fit: {problem}") from problem
    if after.shape != before.shape or before.dtype == np.bool_:
        raise Unclear("an in-place form that grows")
    if after.dtype == before.dtype:
        return after
    if after.dtype.kind != before.dtype.kind or not isinstance(given, Value):
        raise Unclear("an in-place form of another kind")
    made = cast(after, before.dtype)
    if made.dtype.kind == "f":
        most = np.max(np.abs(given.data.astype(np.float64)), initial=0) * np.max(np.abs(before.data), initial=1)
        if not np.array_equal(given.data.astype(before.dtype).astype(np.float64), given.data.astype(np.float64)):
            made.error = made.error + 2 * EPSILON[made.dtype] * float(most)
    return made


@dataclass
class InPlace(Instruction):
    """target += operand, and the like."""

    name: Name
    sign: str
    operand: Operand

    def run(self, state: State) -> None:
        handle = state.handle(self.name)
        state.write(handle, _changed(state, self.sign, state.read(self.name), self.operand))

    def lines(self, is_np: bool) -> list[str]:
        return [f"{self.name} {SIGNS[self.sign]} {operand_text(self.operand)}"]


@dataclass
class Alias(Instruction):
    """target = source"""

    target: Name
    source: Name

    def run(self, state: State) -> None:
        state.names[self.target] = state.handle(self.source)

    def lines(self, is_np: bool) -> list[str]:
        return [f"{self.target} = {self.source}"]


VIEWS = {  # method -> (source, function of the old shape that returns the new one)
    "detach": ("{}.detach()", lambda shape: shape),
    "flatten_inplace": ("{}.flatten(inplace=True)", lambda shape: (shape[0], math.prod(shape[1:]))),
    "expand_inplace": ("{}.expand_dims(0, inplace=True)", lambda shape: (1, *shape)),
    "squeeze_inplace": ("{}.squeeze(inplace=True)", lambda shape: tuple(s for s in shape if s != 1) or (1,)),
    "minus_one": ("{}.reshape((-1,))", lambda shape: (math.prod(shape),)),
    "same_dtype": ("{0}.astype({0}.dtype, copy=False)", lambda shape: shape),
    "everything": ("{}[:]", lambda shape: shape),
    "same_context": ("{}.as_in_context({0}.context)", lambda shape: shape),
}
CLASSIC = ("flatten_inplace", "expand_inplace", "squeeze_inplace")  # views in mx.nd only


@dataclass
class View(Instruction):
    """target = a view of source by a method."""

    target: Name
    source: Name
    method: str  # a key of VIEWS, or "reshape"
    shape: tuple[int, ...] = ()

    def run(self, state: State) -> None:
        source = state.handle(self.source)
        if self.method == "reshape":
            shape = self.shape
        else:
            if (self.method in CLASSIC and state.is_np) or not source.shape or not source.size:
                raise Unclear("no such view")
            shape = VIEWS[self.method][1](source.shape)
        if math.prod(shape) != source.size:
            raise Unclear("another size")
        detached = source.detached or self.method == "detach"
        state.names[self.target] = Handle(source.buffer, source.offset, tuple(shape), detached)

    def lines(self, is_np: bool) -> list[str]:
        if self.method == "reshape":
            return [f"{self.target} = {self.source}.reshape({self.shape!r})"]
        text = VIEWS[self.method][0]
        if self.method == "same_context":
            return [f"{self.target} = {self.source}.as_in_context({self.source}.context)"]
        return [f"{self.target} = {text.format(self.source)}"]


@dataclass
class Index(Instruction):
    """target = source[key]: a view if the elements are contiguous, else a copy."""

    target: Name
    source: Name
    key: Any

    def run(self, state: State) -> None:
        source = state.handle(self.source)
        cells = selected(source.shape, self.key)
        shape = visible_shape(cells.shape, state.is_np)
        row = cells.reshape(-1)
        if row.size and is_basic(self.key) and np.array_equal(row, np.arange(row[0], row[0] + row.size)):
            state.names[self.target] = Handle(source.buffer, source.offset + int(row[0]), shape, source.detached)
            return
        value = state.read(self.source)
        slope = value.slope
        if slope is not None:
            slope = slope.reshape(*slope.shape[:2], value.data.size)[:, :, row].reshape(*slope.shape[:2], *shape)
        state.bind(
            self.target,
            Value(value.data.reshape(-1)[row].reshape(shape), value.error.reshape(-1)[row].reshape(shape), slope),
        )

    def lines(self, is_np: bool) -> list[str]:
        return [f"{self.target} = {self.source}[{key_text(self.key)}]"]


@dataclass
class MaskIndex(Instruction):
    """target = source[mask], in mx.np."""

    target: Name
    source: Name
    mask: Name

    def run(self, state: State) -> None:
        value, mask = state.read(self.source), state.read(self.mask)
        if mask.dtype != np.bool_ or mask.shape != value.shape or not value.data.ndim:
            raise Unclear("no mask")
        row = np.flatnonzero(mask.data)
        slope = value.slope
        if slope is not None:
            slope = slope.reshape(*slope.shape[:2], value.data.size)[:, :, row]
        state.bind(self.target, Value(value.data.reshape(-1)[row], value.error.reshape(-1)[row], slope))

    def lines(self, is_np: bool) -> list[str]:
        return [f"{self.target} = {self.source}[{self.mask}]"]


def _fitting(value: Any, handle: Handle, shape: tuple[int, ...]) -> Value:
    if not isinstance(value, Value):
        truth = handle.dtype == np.bool_
        if handle.dtype.kind != "f" and (isinstance(value, float) or (truth and value not in (0, 1))):
            raise Unclear("a fraction among integers")
        if handle.dtype == np.uint8 and not 0 <= value < 256:
            raise Unclear("a negative byte")
        return constant(value, handle.dtype)
    made = cast(value, handle.dtype)
    given = made.shape
    while len(given) > len(shape) and given[0] == 1:
        given = given[1:]
    try:
        fits = np.broadcast_shapes(given, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise Unclear("a value of another shape")
    slope = made.slope
    if slope is not None:
        slope = slope.reshape(*slope.shape[:2], *given)
        if made.dtype.kind != "f":
            slope = None
    return Value(made.data.reshape(given), made.error.reshape(given), slope)


@dataclass
class Assign(Instruction):
    """name[key] = operand"""

    name: Name
    key: Any
    operand: Operand

    def run(self, state: State) -> None:
        handle = state.handle(self.name)
        cells = selected(handle.shape, self.key)
        value = _fitting(state.read(self.operand), handle, cells.shape or (() if state.is_np else (1,)))
        if not cells.shape and value.data.ndim:
            value = Value(
                value.data.reshape(()), value.error.reshape(()),
                None if value.slope is None else value.slope.reshape(value.slope.shape[:2]),
            )  # fmt: skip
        state.write(handle, value, self.key)

    def lines(self, is_np: bool) -> list[str]:
        return [f"{self.name}[{key_text(self.key)}] = {operand_text(self.operand)}"]


@dataclass
class MaskAssign(Instruction):
    """name[mask] = number, in mx.np."""

    name: Name
    mask: Name
    number: float | int

    def run(self, state: State) -> None:
        handle, mask = state.handle(self.name), state.read(self.mask)
        if mask.dtype != np.bool_ or mask.shape != handle.shape or not mask.data.ndim:
            raise Unclear("no mask")
        state.write(handle, _fitting(self.number, handle, ()), mask.data)

    def lines(self, is_np: bool) -> list[str]:
        return [f"{self.name}[{self.mask}] = {number_text(self.number)}"]


@dataclass
class ChangeItem(Instruction):
    """name[key] += operand, which reads, computes, and assigns."""

    name: Name
    key: Any
    sign: str
    operand: Operand

    def run(self, state: State) -> None:
        handle = state.handle(self.name)
        cells = selected(handle.shape, self.key)
        if not cells.size:
            raise Unclear("nothing to change")
        if not is_basic(self.key) and len(set(cells.reshape(-1).tolist())) < cells.size:
            raise Unclear("elements that occur twice")
        inner = State({**state.names}, state.is_np, state.recording)
        Index("item", self.name, self.key).run(inner)
        inner.names["item"] = new(inner.read("item"))
        after = _changed(state, self.sign, inner.read("item"), self.operand)
        inner.names["item"].write(after)
        value = inner.read("item")
        if value.shape != cells.shape:
            value = Value(
                value.data.reshape(cells.shape), value.error.reshape(cells.shape),
                None if value.slope is None else value.slope.reshape(*value.slope.shape[:2], *cells.shape),
            )  # fmt: skip
        state.write(handle, value, self.key)

    def lines(self, is_np: bool) -> list[str]:
        return [f"{self.name}[{key_text(self.key)}] {SIGNS[self.sign]} {operand_text(self.operand)}"]


@dataclass
class CopyTo(Instruction):
    """source.copyto(name)"""

    source: Name
    name: Name

    def run(self, state: State) -> None:
        handle, value = state.handle(self.name), state.read(self.source)
        if value.shape != handle.shape or state.handle(self.source) is handle:
            raise Unclear("another shape")
        state.write(handle, _fitting(value, handle, handle.shape))

    def lines(self, is_np: bool) -> list[str]:
        return [f"{self.source}.copyto({self.name})"]


@dataclass
class ForRows(Instruction):
    """for row in name: row += operand"""

    name: Name
    sign: str
    operand: Operand

    def run(self, state: State) -> None:
        handle = state.handle(self.name)
        if not handle.shape or not handle.size or handle.shape[0] > 6:
            raise Unclear("no rows")
        with state.attempt():
            for number in range(handle.shape[0]):
                Index("row", self.name, number).run(state)
                InPlace("row", self.sign, self.operand).run(state)
        del state.names["row"]

    def lines(self, is_np: bool) -> list[str]:
        return [f"for row in {self.name}:", f"    row {SIGNS[self.sign]} {operand_text(self.operand)}"]


@dataclass
class Helper(Instruction):
    """target = helper(arguments): the function may write into its arguments and returns one of its names."""

    target: Name
    function: str
    parameters: tuple[Name, ...]
    body: list[Instruction]
    returned: Name
    arguments: tuple[Name, ...]

    def run(self, state: State) -> None:
        with state.attempt():
            inner = State({}, state.is_np, state.recording, state.written)
            for parameter, argument in zip(self.parameters, self.arguments, strict=True):
                inner.names[parameter] = state.handle(argument)
            for instruction in self.body:
                instruction.run(inner)
            state.names[self.target] = inner.handle(self.returned)

    def lines(self, is_np: bool) -> list[str]:
        inside = [f"    {line}" for instruction in self.body for line in instruction.lines(is_np)]
        return [
            f"def {self.function}({', '.join(self.parameters)}):",
            *inside,
            f"    return {self.returned}",
            f"{self.target} = {self.function}({', '.join(self.arguments)})",
        ]


NEIGHBORS = {
    "torch": "torch.from_dlpack({})",
    "numpy": "onp.from_dlpack({})",
    "torch for write": "torch.utils.dlpack.from_dlpack({}.to_dlpack_for_write())",
    "back": "mx.nd.from_dlpack({}.to_dlpack_for_write()){as_np}",
}


@dataclass
class Neighbor(Instruction):
    """target = an array of another library over the same memory, by DLPack."""

    target: Name
    source: Name
    form: str

    def run(self, state: State) -> None:
        source = state.handle(self.source)
        if not source.size or not source.shape:
            raise Unclear("nothing to share")
        if source.dtype == np.bool_:
            raise Unclear("truth in other libraries")
        state.names[self.target] = Handle(source.buffer, source.offset, source.shape, True)

    def lines(self, is_np: bool) -> list[str]:
        text = NEIGHBORS[self.form].format(self.source, as_np=".as_np_ndarray()" if is_np else "")
        return [f"{self.target} = {text}"]


@dataclass
class NeighborWrite(Instruction):
    """name[key] = number by another library, after the library's own work is done."""

    name: Name
    key: Any
    number: float | int

    def run(self, state: State) -> None:
        handle = state.handle(self.name)
        selected(handle.shape, self.key)
        state.write(handle, _fitting(self.number, handle, ()), self.key)

    def lines(self, is_np: bool) -> list[str]:
        return ["mx.nd.waitall()", f"{self.name}[{key_text(self.key)}] = {number_text(self.number)}"]


@dataclass
class SetData(Instruction):
    """net.w0.set_data(...)"""

    name: Name  # name of a parameter
    numbers: list[Any]

    def run(self, state: State) -> None:
        handle = state.handle(self.name)
        state.write(handle, constant(np.reshape(np.array(self.numbers, dtype=handle.dtype), handle.shape)))

    def lines(self, is_np: bool) -> list[str]:
        module = "mx.np" if is_np else "mx.nd"
        return [f"net.{self.name}.set_data({module}.array({self.numbers!r}, dtype=net.{self.name}.dtype))"]
