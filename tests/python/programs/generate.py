"""Generates random programs step by step beside the reference, so that every instruction can run and be compared."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from . import operators
from .instructions import (
    NEIGHBORS,
    SIGNS,
    VIEWS,
    Alias,
    Assign,
    Call,
    CallInto,
    ChangeItem,
    CopyTo,
    ForRows,
    Helper,
    Index,
    InPlace,
    Instruction,
    MaskAssign,
    MaskIndex,
    Neighbor,
    NeighborWrite,
    SetData,
    State,
    View,
)
from .memory import LARGEST, SMALLEST, Unclear, Value
from .operators import OPERATORS, other_shapes
from .program import Array, Head, Program, Session

SHAPES = ((2, 3), (3, 2), (4,), (3,), (2,), (2, 2), (1, 3), (2, 1), (2, 2, 2), (3, 1), (1,), (4, 2))
FLOATS = ("float32", "float32", "float32", "float64", "float16")
WHOLE = ("int32", "int64", "uint8")
SPECIAL = (math.nan, math.inf, -math.inf, -0.0, 0.0, 1.0, -1.0, 2.0, 0.5)


class Generator:
    """Draws one program."""

    def __init__(self, seed: str) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.count = 0
        self.read_only: set[str] = set()  # arrays of other libraries that must not be written to
        self.pure = False
        self.symbolic = False  # the block is traced with Symbols, which lack some methods

    # ---------------------------------------------------------------------------------------------------------- values
    def numbers(self, shape: tuple[int, ...], dtype: str, special: bool) -> np.ndarray:
        rng, size = self.rng, math.prod(shape)
        kind = np.dtype(dtype)
        if kind.kind == "f":
            drawn = [rng.choice((-1, 1)) * rng.randint(1, 12) / 4 for _ in range(size)]
            if rng.random() < 0.1:
                drawn = [number if rng.random() < 0.6 else 0.0 for number in drawn]
            if special:
                pool = [*SPECIAL, SMALLEST[kind], -SMALLEST[kind] * 3, LARGEST[kind], -LARGEST[kind]]
                drawn = [rng.choice(pool) if rng.random() < 0.4 else number for number in drawn]
        elif dtype == "bool":
            drawn = [rng.random() < 0.5 for _ in range(size)]
        elif rng.random() < 0.25:  # close to the limits of the dtype: sums and products wrap around
            ends = np.iinfo(kind)
            drawn = [rng.choice((ends.max, ends.min, ends.max - 1, rng.randint(0, 9))) for _ in range(size)]
        else:
            drawn = [rng.randint(0 if dtype == "uint8" else -6, 9) for _ in range(size)]
        return np.array(drawn, dtype=kind).reshape(shape)

    def shape(self) -> tuple[int, ...]:
        rng = self.rng
        if rng.random() < 0.05:
            return rng.choice(((0,), (0, 3), (2, 0)))
        if self.is_np and rng.random() < 0.05:
            return ()
        return rng.choice(SHAPES)

    def name(self) -> str:
        self.count += 1
        return f"t{self.count}"

    # -------------------------------------------------------------------------------------------------------- programs
    def program(self) -> Program:
        rng = self.rng
        self.is_np = rng.random() < 0.4
        special = rng.random() < 0.12
        images = rng.random() < 0.12
        layers = not images and rng.random() < 0.08  # products large enough for packed copies of weights
        record = not layers and rng.random() < 0.6
        base = rng.choice(FLOATS)
        mixed = rng.random() < 0.4
        main = rng.choice(SHAPES)
        rounds = 2 if layers else rng.choice((1, 2, 2))
        inputs, parameters = [], []
        for number in range(rng.randint(1, 3)):
            shape = main if rng.random() < 0.5 else self.shape()
            dtype = base if not mixed or rng.random() < 0.5 else rng.choice((*FLOATS, *WHOLE, *(["bool"] * self.is_np)))
            if images and number == 0:
                base = rng.choice(("float32", "float32", "float64"))
                shape, dtype = rng.choice(((1, 2, 4, 4), (2, 1, 4, 4), (1, 1, 5, 4))), base
            if layers and number == 0:
                base = dtype = "float32"
                shape = (8, 32)
            values = [self.numbers(shape, dtype, special) for _ in range(rounds)]
            is_float = np.dtype(dtype).kind == "f"
            inputs.append(Array(f"a{number}", dtype, values, is_float and rng.random() < 0.7))
        for number in range(1 if layers else rng.choice((0, 1, 1, 2))):
            shape = main if rng.random() < 0.4 else self.shape()
            shape = shape or (1,)
            first = inputs[0].values[0].shape
            if len(first) == 2 and rng.random() < 0.4 and first[1]:
                shape = (rng.randint(1, 3), first[1])
            if images and number == 0:
                shape = (2, first[1], *rng.choice(((3, 3), (2, 2), (1, 1))))
            if layers:
                shape = (rng.choice((16, 24)), 32)
            if 0 in shape:
                shape = (2,)
            dtype = base if rng.random() < 0.85 else rng.choice(("float32", "float64"))
            parameters.append(Array(f"w{number}", dtype, [self.numbers(shape, dtype, False)], rng.random() < 0.8))
        program = Program(
            self.seed, self.is_np, rng.choice(("hybrid_forward", "forward")), inputs, parameters,
            shared=bool(parameters) and rng.random() < 0.25, record=record, train=rng.random() < 0.6,
            grad_req="add" if rng.random() < 0.2 else "write", retain=rng.random() < 0.2, special=special,
            imperative_only=rng.random() < 0.12,
        )  # fmt: skip
        if special or not any(a.gradient for a in [*inputs, *parameters]):
            for array in [*inputs, *parameters]:
                array.gradient = False
        self.fill(program, layers)
        return program

    def fill(self, program: Program, layers: bool) -> None:
        rng = self.rng
        session = Session(program)
        self.pure = rng.random() < 0.25  # a block without writes
        self.symbolic = program.style == "hybrid_forward" and not program.imperative_only
        with np.errstate(all="ignore"):
            session.begin(0)
            for _ in range(rng.choice((0, 0, 1, 2))):
                self.step(program.before, session.caller, self.caller_choices(program, before=True))
            session.seed()
            names = [array.name for array in program.inputs]
            program.arguments = names[:]
            made = [name for name in session.caller.names if name.startswith("t") and not self.foreign(program, name)]
            if made and rng.random() < 0.7:
                program.arguments.append(rng.choice(made))
            elif rng.random() < 0.07:
                program.arguments.append(rng.choice(names))
            body = session.enter()
            if layers:
                params = {"num_hidden": program.parameters[0].values[0].shape[0], "flatten": True, "no_bias": True}
                first = Call(self.name(), "FullyConnected", ("x0", "w0"), params)
                self.step(program.body, body, [(1, lambda state: first)])
            for _ in range(rng.choice((3, 5, 8, 12, 16, 20))):
                self.step(program.body, body, self.body_choices(program))
            program.outputs = self.outputs(program, body)
            session.leave(body, 0)
            for _ in range(rng.choice((0, 0, 1, 2))):
                self.step(program.between, session.caller, self.caller_choices(program, before=False, session=session))
            self.heads(program, session)
            if (program.rounds > 1 and rng.random() < 0.6) or layers:
                alone = self.written_alone(program, session)
                for _ in range(rng.choice((1, 2))):
                    self.step(program.last, session.caller, self.parameter_choices(program, alone))

    def foreign(self, program: Program, name: str) -> bool:
        return any(isinstance(i, Neighbor) and i.target == name and i.form != "back" for i in program.before)

    def outputs(self, program: Program, body: State) -> list[str]:
        rng = self.rng
        made = [name for name in body.names if name.startswith("t")]
        if not made:
            self.step(program.body, body, [(1, lambda s: Call(self.name(), "infix_mul", ("x0", 1), {}))])
            made = [name for name in body.names if name.startswith("t")]
        if not made:
            return ["x0"]
        recent = made[-6:]
        chosen = [recent[-1]] + [rng.choice(recent) for _ in range(rng.choice((0, 0, 1, 2)))]
        if rng.random() < 0.06:
            chosen.append("x0")
        return chosen

    def heads(self, program: Program, session: Session) -> None:
        rng = self.rng
        if not program.record or program.special:
            return
        for number, slope in enumerate(session.slopes):
            if slope is None or session.outputs[number].dtype.kind != "f" or (number and rng.random() < 0.4):
                continue
            shape = session.outputs[number].shape
            if rng.random() < 0.25:
                program.heads.append(Head(number))
                continue
            dtype = str(session.outputs[number].dtype)
            if rng.random() < 0.4:
                dtype = rng.choice(("float16", "float32", "float64", "int32"))
            drawn = [rng.randint(-2, 2) for _ in range(math.prod(shape))]
            program.heads.append(Head(number, dtype, np.array(drawn, dtype=dtype).reshape(shape)))
        if not any(head.values is not None for head in program.heads):
            program.retain = False

    # ----------------------------------------------------------------------------------------------------------- steps
    def step(self, into: list[Instruction], state: State, choices: list[tuple[float, Callable[[State], Any]]]) -> bool:
        """Draws instructions until one can run, runs it and adds it."""
        if not choices:
            return False
        weights = [weight for weight, _ in choices]
        for _ in range(30):
            (_, draw), *_ = self.rng.choices(choices, weights)
            instruction = draw(state)
            if instruction is None:
                continue
            try:
                instruction.run(state)
            except Unclear:
                continue
            into.append(instruction)
            return True
        return False

    def body_choices(self, program: Program) -> list[tuple[float, Callable[[State], Any]]]:
        if self.pure:
            return [(9.0, self.call), (1.0, self.alias), (2.0, self.view), (2.0, self.index)]
        choices = [
            (9.0, self.call), (2.0, self.call_into), (4.0, self.in_place), (1.0, self.alias), (2.0, self.view),
            (3.0, self.index), (3.0, self.assign), (1.0, self.change_item), (0.4, self.for_rows), (0.7, self.helper),
        ]  # fmt: skip
        if not self.symbolic:
            choices.append((0.5, self.copy_to))
        if program.is_np:
            choices += [(0.3, self.mask_index), (0.7, self.mask_assign)]
        if program.imperative_only and not program.record:
            choices += [(1.5, self.neighbor), (2.0, self.neighbor_write)]
        return choices  # type: ignore[return-value]

    def caller_choices(
        self, program: Program, before: bool, session: Session | None = None
    ) -> list[tuple[float, Callable[[State], Any]]]:
        gradient = {array.name for array in [*program.inputs, *program.parameters] if array.gradient}
        if before:
            # Views of leaves made outside of record() are not leaves, and their gradients are undefined.
            def keep(draw: Callable[[State], Any]) -> Callable[[State], Any]:
                def wrapped(state: State) -> Any:
                    instruction = draw(state)
                    source = getattr(instruction, "source", getattr(instruction, "name", None))
                    leaves = [state.names[name].buffer for name in gradient] if program.record else []
                    if source in state.names and any(state.names[source].buffer is leaf for leaf in leaves):
                        return instruction if isinstance(instruction, (Neighbor, NeighborWrite)) else None
                    return instruction

                return wrapped

            return [
                (2.0, keep(self.view)), (2.0, keep(self.index)), (1.0, keep(self.in_place)), (1.0, self.neighbor),
                (1.0, self.neighbor_write),
            ]  # fmt: skip
        assert session is not None
        alone = self.written_alone(program, session)

        def writable(draw: Callable[[State], Any]) -> Callable[[State], Any]:
            def wrapped(state: State) -> Any:
                instruction = draw(state)
                name = getattr(instruction, "name", None)
                return instruction if name in alone else None

            return wrapped

        return [
            # Gradients see writes of other libraries after a recorded call, because the library is not notified.
            (2.0, writable(self.in_place)), (2.0, writable(self.assign)),
            (0.0 if program.record else 1.0, writable(self.neighbor_write)),
            (0.5, self.neighbor),
        ]  # fmt: skip

    def written_alone(self, program: Program, session: Session) -> set[str]:
        """The names whose memory hybridized blocks need not share with their outputs."""
        names = session.caller.names
        outputs = [f"y{k}" for k in range(len(session.outputs))]
        heads = set(outputs) if program.record else set()
        alone = set()
        for name, handle in names.items():
            sharing = [o for o in outputs if o != name and names[o].buffer is handle.buffer]
            if not sharing and name not in heads:
                inputs = name in outputs and any(
                    names[n].buffer is handle.buffer for n in names if n != name and not n.startswith("y")
                )
                if not inputs:
                    alone.add(name)
        return alone

    def parameter_choices(self, program: Program, alone: set[str]) -> list[tuple[float, Callable[[State], Any]]]:
        names = [array.name for array in program.parameters if array.name in alone]
        if not names:
            return []
        rng = self.rng

        def set_data(state: State) -> Any:
            name = rng.choice(names)
            handle = state.handle(name)
            return SetData(name, self.numbers(handle.shape, str(handle.dtype), False).tolist())

        def in_place(state: State) -> Any:
            return InPlace(rng.choice(names), rng.choice(("add", "mul")), rng.choice((2, -1, 0.5)))

        def assign(state: State) -> Any:
            return Assign(rng.choice(names), rng.choice((slice(None), 0)), rng.choice((2, -1, 0.5)))

        def neighbor(state: State) -> Any:
            self.count += 1
            return Neighbor(f"n{self.count}", rng.choice(names), rng.choice(("torch", "torch for write", "back")))

        def neighbor_write(state: State) -> Any:
            buffers = [state.names[name].buffer for name in names]
            fitting = {name for name, handle in state.names.items() if any(handle.buffer is b for b in buffers)}
            return self.neighbor_write(state, fitting)

        return [(1.0, set_data), (1.0, in_place), (1.0, assign), (0.7, neighbor), (1.0, neighbor_write)]

    # ---------------------------------------------------------------------------------------------------- instructions
    def pick(self, state: State, test: Callable[[Any], bool] = lambda handle: True) -> str | None:
        """Picks a name whose handle passes the test; later names more often."""
        names = [name for name, handle in state.names.items() if test(handle) and not name.startswith("n")]
        if not names:
            return None
        return names[max(self.rng.randrange(len(names)), self.rng.randrange(len(names)))]

    def number(self, handle: Any = None) -> float | int:
        whole = handle is not None and handle.dtype.kind != "f"
        if whole:
            return self.rng.choice((0, 1, 2, 3, 1))
        return self.rng.choice((2, -1, 0.5, 1, -0.25, 3, 0, 1.5))

    def operands(self, state: State, operator: operators.Operator) -> list[Any] | None:
        first = self.pick(state)
        if first is None:
            return None
        chosen: list[Any] = [first]
        handle = state.names[first]
        while len(chosen) < operator.arity:
            if len(chosen) >= operator.arity - operator.numbers and self.rng.random() < 0.35:
                chosen.append(self.number(handle))
                continue
            shape, dtype = handle.shape, handle.dtype

            def fits(other: Any, shape: Any = shape, dtype: Any = dtype) -> bool:
                if not self.is_np and other.dtype != dtype:
                    return False
                if operator.name in ("dot", "FullyConnected", "Convolution", "concat"):
                    return True
                try:
                    np.broadcast_shapes(shape, other.shape)
                except ValueError:
                    return False
                return True

            name = self.pick(state, fits)
            if name is None:
                return None
            chosen.append(name)
        if operator.numbers == 2 and self.rng.random() < 0.3:
            chosen.reverse()
        return chosen

    def operator(self, out: bool = False) -> operators.Operator:
        fitting = [
            operator
            for operator in OPERATORS.values()
            if (operator.np if self.is_np else operator.nd) and (operator.takes_out or not out)
        ]
        (chosen,) = self.rng.choices(fitting, [operator.weight for operator in fitting])
        return chosen

    def drawn(self, state: State, operator: operators.Operator) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        operands = self.operands(state, operator)
        if operands is None or (not isinstance(operands[0], str) and operator.numbers < 2):
            return None
        values = [state.read(operand) for operand in operands]
        if not any(isinstance(value, Value) for value in values):
            return None
        probe = values if isinstance(values[0], Value) else values[::-1]
        params = operator.draw(self.rng, probe, self.is_np)
        return None if params is None else (tuple(operands), params)

    def call(self, state: State) -> Any:
        operator = self.operator()
        drawn = self.drawn(state, operator)
        return drawn and Call(self.name(), operator.name, *drawn)

    def call_into(self, state: State) -> Any:
        operator = self.operator(out=True)
        drawn = self.drawn(state, operator)
        if not drawn:
            return None
        operands, params = drawn
        try:
            value = operators.result(operator, [state.read(o) for o in operands], state.is_np, params)
        except Unclear:
            return None
        name = self.pick(state, lambda handle: handle.shape == value.shape and handle.dtype == value.dtype)
        if name is None:
            return None
        return CallInto(operator.name, operands, params, name)

    def in_place(self, state: State) -> Any:
        name = self.pick(state, lambda handle: handle.dtype != np.bool_)
        if name is None:
            return None
        handle = state.names[name]
        operand: Any = self.number(handle)
        if self.rng.random() < 0.6:
            operand = self.pick(state, lambda other: _broadcasts(other.shape, handle.shape))
        sign = self.rng.choice(("add", "add", "mul", "mul", "sub", "div", "power"))
        if sign == "power":
            operand = self.rng.choice((2, 3))
        return None if operand is None else InPlace(name, sign, operand)

    def alias(self, state: State) -> Any:
        name = self.pick(state)
        return name and Alias(self.name(), name)

    def view(self, state: State) -> Any:
        name = self.pick(state, lambda handle: handle.size > 0)
        if name is None:
            return None
        if self.rng.random() < 0.5:
            shape = other_shapes(self.rng, state.names[name].shape)
            return shape and View(self.name(), name, "reshape", shape)
        return View(self.name(), name, self.rng.choice(list(VIEWS)))

    def key(self, shape: tuple[int, ...]) -> Any:
        rng = self.rng
        rows = shape[0] if shape else 0
        kind = rng.random()
        if not shape or kind < 0.12:
            return rng.choice((..., slice(None))) if shape else ...
        if kind < 0.35 and rows:
            return rng.randrange(-rows, rows)
        if kind < 0.6:
            begin = rng.randint(0, max(rows - 1, 0))
            end = rng.choice((None, rng.randint(begin, rows)))
            return slice(rng.choice((begin, begin or None)), end)
        if kind < 0.7:
            return slice(None, None, rng.choice((-1, 2, 1)))
        if kind < 0.8 and rows and not self.symbolic:
            return [rng.randrange(rows) for _ in range(rng.randint(1, 3))]
        items: list[Any] = []
        for size in shape[: rng.randint(1, len(shape))]:
            if size and rng.random() < 0.5:
                items.append(rng.randrange(size))
            else:
                begin = rng.randint(0, max(size - 1, 0))
                items.append(rng.choice((slice(None), slice(begin, rng.randint(begin, size)), slice(None, None, -1))))
        return tuple(items)

    def index(self, state: State) -> Any:
        name = self.pick(state)
        if name is None:
            return None
        key = self.key(state.names[name].shape)
        if not isinstance(key, tuple) and self.rng.random() < 0.05:
            key = (None, key) if key is not ... else key
        return Index(self.name(), name, key)

    def assign(self, state: State) -> Any:
        name = self.pick(state)
        if name is None:
            return None
        handle = state.names[name]
        key = self.key(handle.shape)
        operand: Any = self.number(handle)
        if self.rng.random() < 0.6:
            try:
                region = np.zeros(handle.shape)[key].shape
            except (IndexError, ValueError):
                return None
            operand = self.pick(state, lambda other: _broadcasts(other.shape, region))
        return None if operand is None else Assign(name, key, operand)

    def change_item(self, state: State) -> Any:
        name = self.pick(state, lambda handle: handle.dtype != np.bool_)
        if name is None:
            return None
        handle = state.names[name]
        key = self.key(handle.shape)
        operand: Any = self.number(handle)
        if self.rng.random() < 0.4:
            operand = self.pick(state, lambda other: other.size == 1 or _broadcasts(other.shape, handle.shape))
        return None if operand is None else ChangeItem(name, key, self.rng.choice(("add", "mul", "sub")), operand)

    def copy_to(self, state: State) -> Any:
        name = self.pick(state)
        if name is None:
            return None
        shape = state.names[name].shape
        source = self.pick(state, lambda other: other.shape == shape)
        return source and CopyTo(source, name)

    def for_rows(self, state: State) -> Any:
        name = self.pick(state, lambda handle: bool(handle.shape) and handle.dtype != np.bool_)
        if name is None:
            return None
        handle = state.names[name]
        operand: Any = self.number(handle)
        if self.rng.random() < 0.4:
            operand = self.pick(state, lambda other: _broadcasts(other.shape, handle.shape[1:]))
        return None if operand is None else ForRows(name, self.rng.choice(list(SIGNS)[:3]), operand)

    def helper(self, state: State) -> Any:
        arguments = [self.pick(state) for _ in range(self.rng.randint(1, 2))]
        if None in arguments:
            return None
        parameters = tuple(f"p{k}" for k in range(len(arguments)))
        inner = State({}, state.is_np, state.recording)
        number = self.count + 1
        choices = [
            (3.0, self.in_place), (2.0, self.assign), (2.0, self.view), (2.0, self.index), (2.0, self.call),
            (1.0, self.call_into),
        ]  # fmt: skip
        try:
            with state.attempt():
                for parameter, argument in zip(parameters, arguments, strict=True):
                    inner.names[parameter] = state.names[argument]  # type: ignore[index]
                body: list[Instruction] = []
                for _ in range(self.rng.randint(1, 4)):
                    self.step(body, inner, choices)
                returned = self.pick(inner)
                raise Unclear("tried; now for good")
        except Unclear:
            pass
        if not body or returned is None:
            return None
        return Helper(self.name(), f"help{number}", parameters, body, returned, tuple(arguments))  # type: ignore[arg-type]

    def mask_index(self, state: State) -> Any:
        mask = self.pick(state, lambda handle: handle.dtype == np.bool_ and bool(handle.shape))
        if mask is None:
            return None
        shape = state.names[mask].shape
        name = self.pick(state, lambda other: other.shape == shape)
        return name and MaskIndex(self.name(), name, mask)

    def mask_assign(self, state: State) -> Any:
        mask = self.pick(state, lambda handle: handle.dtype == np.bool_ and bool(handle.shape))
        if mask is None:
            return None
        shape = state.names[mask].shape
        name = self.pick(state, lambda other: other.shape == shape)
        return name and MaskAssign(name, mask, self.number(state.names[name]))

    def neighbor(self, state: State) -> Any:
        name = self.pick(state, lambda handle: handle.size > 0)
        self.count += 1
        form = self.rng.choice(list(NEIGHBORS))
        if form == "numpy":
            self.read_only.add(f"n{self.count}")
        return name and Neighbor(f"n{self.count}", name, form)

    def neighbor_write(self, state: State, alone: set[str] | None = None) -> Any:
        names = [name for name in state.names if name.startswith("n") and name not in self.read_only]
        if alone is not None:
            names = [name for name in names if name in alone]
        if not names:
            return None
        name = self.rng.choice(names)
        handle = state.names[name]
        return NeighborWrite(name, self.rng.choice((slice(None), 0)), self.number(handle))


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


def make(seed: int, number: int) -> tuple[Program, Any] | None:
    """Returns a program with the results of the reference, or None if even its second round cannot be compared."""
    program = Generator(f"{seed}/{number}").program()
    return complete(program)


def complete(program: Program) -> tuple[Program, Any] | None:
    try:
        return program, Session(program).run()
    except Unclear:
        pass
    for array in program.inputs:
        array.values = array.values[:1]
    program.last = []
    try:
        return program, Session(program).run()
    except Unclear:
        return None
