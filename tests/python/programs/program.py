"""Random programs: arrays, a block and its caller, and the reference that computes the expected results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .instructions import Instruction, State
from .memory import EPSILON, Handle, Unclear, Value, constant, new


@dataclass
class Array:
    """An array of the caller, or a parameter, with its values in each round of calls."""

    name: str
    dtype: str
    values: list[np.ndarray]  # one per round; a single one for parameters
    gradient: bool = False


@dataclass
class Head:
    """The head gradient of an output; dtype None: ones, which backward() makes itself."""

    output: int
    dtype: str | None = None
    values: np.ndarray | None = None


@dataclass
class Program:
    """The instructions of the caller in each round, and the block that it calls.

    Each round makes new arrays; parameters persist. `before` runs before the call, outside of record(); `between` after
    the call and before backward(); `last` at the end of round 0, before the block is called again.
    """

    seed: str
    is_np: bool
    style: str  # "hybrid_forward" or "forward"
    inputs: list[Array]
    parameters: list[Array]
    shared: bool = False  # the block has two names for its first parameter
    record: bool = False
    train: bool = True
    grad_req: str = "write"
    retain: bool = False
    special: bool = False
    before: list[Instruction] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)  # names of the arguments of the call
    body: list[Instruction] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    between: list[Instruction] = field(default_factory=list)
    heads: list[Head] = field(default_factory=list)
    last: list[Instruction] = field(default_factory=list)
    imperative_only: bool = False

    @property
    def rounds(self) -> int:
        return len(self.inputs[0].values)

    @property
    def parameter_names(self) -> list[str]:
        """The names of the parameters in the body."""
        names = [parameter.name for parameter in self.parameters]
        return [*names, "ws"] if self.shared else names

    def lists(self) -> list[list[Instruction]]:
        return [self.before, self.body, self.between, self.last]


@dataclass
class Gradient:
    """An expected gradient and its error bound."""

    data: np.ndarray
    error: np.ndarray


Expected = list[tuple[str, Any]]  # (label, Value or Gradient)


class Session:
    """The reference: runs a program on explicit memory, step by step."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.found: Expected = []
        self.parameters = {p.name: new(constant(p.values[0], p.dtype)) for p in program.parameters}
        self.added: dict[str, Gradient] = {}
        self.caller: State = State({}, program.is_np)
        self.outputs: list[Handle] = []
        self.coarseness = 0.0

    # ------------------------------------------------------------------------------------------------ parts of a round
    def begin(self, number: int) -> None:
        program = self.program
        self.caller = State(dict(self.parameters), program.is_np)
        for array in program.inputs:
            self.caller.names[array.name] = new(constant(array.values[number], array.dtype))
        for handle in self.parameters.values():
            handle.buffer.slope, handle.buffer.is_leaf = None, False

    def seed(self) -> None:
        """Makes leaves of the arrays that have a gradient."""
        leaves = self.leaves()
        total = sum(self.caller.names[name].size for name in leaves)
        first = 0
        for name in leaves:
            handle = self.caller.names[name]
            handle.seed(first, total)
            first += handle.size

    def leaves(self) -> list[str]:
        program = self.program
        return [a.name for a in [*program.inputs, *program.parameters] if a.gradient] if program.record else []

    def enter(self) -> State:
        """Returns the state of the body: names x0, x1, ... for arguments, and the names of the parameters."""
        program = self.program
        body = State({}, program.is_np, recording=program.record)
        for number, argument in enumerate(program.arguments):
            body.names[f"x{number}"] = self.caller.handle(argument)
        for parameter in program.parameters:
            body.names[parameter.name] = self.parameters[parameter.name]
        if program.shared:
            body.names["ws"] = self.parameters[program.parameters[0].name]
        return body

    def leave(self, body: State, number: int) -> None:
        self.outputs = [body.handle(name) for name in self.program.outputs]
        self.slopes = [handle.read().slope for handle in self.outputs]
        for k, handle in enumerate(self.outputs):
            self.caller.names[f"y{k}"] = handle
            self.note(f"round {number}: y{k}", handle)
        for name in self.visible():
            self.note(f"round {number}: {name} after the call", self.caller.names[name])

    def visible(self) -> list[str]:
        return [array.name for array in [*self.program.inputs, *self.program.parameters]]

    def note(self, label: str, handle: Handle) -> None:
        value = handle.read()
        self.found.append((label, value))

    def backward(self, number: int) -> None:
        program = self.program
        if not program.heads:
            return
        times = 2 if program.retain else 1
        for time in range(times):
            gradients = self._gradients(time + 1)
            for name, gradient in gradients.items():
                if program.grad_req == "add" and name in self.added:
                    old = self.added[name]
                    gradient = Gradient(old.data + gradient.data, old.error + gradient.error)
                self.added[name] = gradient
                self.found.append((f"round {number}: gradient of {name}, backward {time + 1}", gradient))
        if program.grad_req == "add":
            for array in program.inputs:  # new arrays in each round
                self.added.pop(array.name, None)

    def _gradients(self, factor: float) -> dict[str, Gradient]:
        program = self.program
        leaves = self.leaves()
        total = sum(self.caller.names[name].size for name in leaves)
        gradient, absolute = np.zeros(total), np.zeros(total)
        for head in program.heads:
            slope = self.slopes[head.output]
            if slope is None:
                raise Unclear("an output without a gradient")
            values = np.ones(slope.shape[2:]) if head.values is None else head.values * factor
            if np.shape(values) != slope.shape[2:]:
                raise Unclear("an output whose size differs from round to round")
            inner = tuple(range(1, slope.ndim - 1))
            gradient += (slope[0] * values).sum(axis=inner)
            absolute += (slope[1] * np.abs(values)).sum(axis=inner)
        if not np.all(absolute < 1e6):
            raise Unclear("a large gradient")
        error = absolute * (self.coarseness * 64) + 1e-30
        found, first = {}, 0
        for name in leaves:
            handle = self.caller.names[name]
            part = slice(first, first + handle.size)
            found[name] = Gradient(gradient[part].reshape(handle.shape), error[part].reshape(handle.shape))
            first += handle.size
        return found

    def finish(self, number: int) -> None:
        for name, handle in self.caller.names.items():
            self.note(f"round {number}: {name} at the end", handle)

    # ----------------------------------------------------------------------------------------------- the whole program
    def run(self) -> Expected:
        program = self.program
        self.coarseness = coarseness(program)
        with np.errstate(all="ignore"):
            for number in range(program.rounds):
                self.begin(number)
                for instruction in program.before:
                    instruction.run(self.caller)
                self.seed()
                body = self.enter()
                for instruction in program.body:
                    instruction.run(body)
                    self.grow(body)
                self.leave(body, number)
                for instruction in program.between:
                    instruction.run(self.caller)
                self.backward(number)
                if number == 0:
                    for instruction in program.last:
                        instruction.run(self.caller)
                self.finish(number)
        return self.found

    def grow(self, body: State) -> None:
        """Records the largest relative error so far, which bounds the relative errors of derivatives."""
        for handle in body.names.values():
            buffer = handle.buffer
            if buffer.data.dtype.kind == "f" and buffer.error.size:
                size = np.abs(buffer.data.astype(np.float64))
                size = np.where(np.isfinite(size), np.maximum(size, 0.1), 1)
                self.coarseness = max(self.coarseness, float(np.max(buffer.error / size)))


def coarseness(program: Program) -> float:
    """The largest epsilon of the program's floating dtypes."""
    names = {array.dtype for array in [*program.inputs, *program.parameters]}
    for instruction in [i for part in program.lists() for i in part]:
        text = repr(instruction)
        names |= {name for name in ("float16", "float32") if name in text}
    return max([EPSILON[np.dtype(name)] for name in names if np.dtype(name).kind == "f"], default=1e-7)


def values_of(found: Expected) -> dict[str, Value | Gradient]:
    return dict(found)
