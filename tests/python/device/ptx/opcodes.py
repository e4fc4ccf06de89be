"""The table of opcodes: a function for each, from an instruction to C++ statements.

A function takes the modifiers that it knows off the instruction; one that is left over is an error. So an instruction
is translated only if every part of it is understood. opcodes_memory.py and opcodes_control.py hold the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from .parse import immediate_bits
from .syntax import Address, Function, Immediate, Instruction, Negated, Operand, Sink, Special, Variable

FLOATS = ("f32", "f64")
UNSIGNED = ("u16", "u32", "u64")
SIGNED = ("s16", "s32", "s64")
RAW = ("b16", "b32", "b64")
INTEGERS = (*UNSIGNED, *SIGNED)
ROUNDINGS = {"rn": "kNearest", "rz": "kZero", "rm": "kDown", "rp": "kUp"}


class Scope(Protocol):
    """Properties of the function around an opcode that the opcode may read (writer.py)."""

    function: Function
    allow_approximate: bool

    def new_stop(self) -> int: ...  # a number for a place at which threads wait
    def callee(self, name: str) -> Function | None: ...
    def branch_targets(self, name: str) -> tuple[str, ...] | None: ...


Translate = Callable[["Parts", Scope], str]
OPCODES: dict[str, Translate] = {}


def opcode(*names: str) -> Callable[[Translate], Translate]:
    """Puts a function into the table."""

    def add(translate: Translate) -> Translate:
        OPCODES.update(dict.fromkeys(names, translate))
        return translate

    return add


def translate(instruction: Instruction, scope: Scope) -> str:
    """Raises PtxError for an opcode, a modifier, a type or a number of operands that the table does not have."""
    if instruction.name not in OPCODES:
        raise instruction.error("an unknown opcode")
    parts = Parts(instruction)
    if not scope.allow_approximate and {"approx", "ftz", "full"} & set(instruction.modifiers):
        raise instruction.error("an approximate or flushing operation, which exact kernels must not contain")
    statement = OPCODES[instruction.name](parts, scope)
    if parts.modifiers:
        raise instruction.error(f"an unknown modifier '.{parts.modifiers[0]}'")
    return statement


class Parts:
    """An instruction from which a function takes modifiers and operands."""

    def __init__(self, instruction: Instruction) -> None:
        self.instruction = instruction
        self.name = instruction.name
        self.line = instruction.line
        self.modifiers = list(instruction.modifiers)

    def flag(self, *names: str) -> bool:
        """Takes modifiers away; true if one of them was there."""
        found = [modifier for modifier in self.modifiers if modifier in names]
        self.modifiers = [modifier for modifier in self.modifiers if modifier not in names]
        return bool(found)

    def choice(self, names: Iterable[str], default: str | None = None) -> str:
        """Takes the one modifier that is among names."""
        for modifier in self.modifiers:
            if modifier in names:
                self.modifiers.remove(modifier)
                return modifier
        if default is None:
            raise self.instruction.error(f"expected one of the modifiers {', '.join(names)}")
        return default

    def type(self, allowed: Iterable[str]) -> str:
        """Takes the last modifier, which must be one of these types."""
        if not self.modifiers or self.modifiers[-1] not in allowed:
            raise self.instruction.error(f"expected a type out of {', '.join(allowed)}")
        return self.modifiers.pop()

    def rounding(self) -> str:
        return f"ptx::Round::{ROUNDINGS[self.choice(ROUNDINGS, 'rn')]}"

    def operands(self, count: int) -> list[Operand]:
        if len(self.instruction.operands) != count:
            raise self.instruction.error(f"expected {count} operands")
        return self.instruction.operands

    def read(self, operand: Operand, type_name: str = "u64") -> str:
        """An operand as a C++ expression of raw bits."""
        if isinstance(operand, Immediate):
            literal = immediate_bits(operand.text, "b32" if type_name == "pred" else type_name)
            return f"({literal} != 0)" if type_name == "pred" else literal
        if isinstance(operand, Negated):
            return f"!{operand.predicate.cpp_name}"
        if isinstance(operand, Special):
            return self._special(operand.name)
        if isinstance(operand, Address):
            return f"({self.read(operand.base)} + {immediate_bits(str(operand.offset))})"
        if isinstance(operand, Variable):
            return self._variable(operand)
        raise self.instruction.error("an operand of this kind is not expected")

    def write(self, operand: Operand, expression: str) -> str:
        """An assignment as a C++ statement."""
        if isinstance(operand, Sink):
            return f"(void)({expression});"
        if isinstance(operand, Variable) and operand.space == "reg":
            return f"{operand.cpp_name} = {expression};"
        raise self.instruction.error("the result must be a register")

    def _variable(self, variable: Variable) -> str:
        if variable.space == "reg":
            return variable.cpp_name
        if variable.space == "shared":
            return f"{variable.offset}u"
        if variable.space == "entry_param":
            return f"ptx::address(thread.param + {variable.offset})"
        return f"ptx::address({variable.cpp_name})"

    def _special(self, name: str) -> str:
        register, _, axis = name[1:].partition(".")
        if register in ("tid", "ntid", "ctaid", "nctaid") and axis in ("x", "y", "z"):
            return f"thread.{register}[{'xyz'.index(axis)}]"
        others = {
            "laneid": "thread.lane",
            "warpid": "thread.warp",
            "lanemask_eq": "(1u << thread.lane)",
            "lanemask_lt": "((1u << thread.lane) - 1)",
            "lanemask_le": "((2u << thread.lane) - 1)",
            "lanemask_gt": "~((2u << thread.lane) - 1)",
            "lanemask_ge": "~((1u << thread.lane) - 1)",
        }
        if name[1:] not in others:
            raise self.instruction.error(f"an unknown special register '{name}'")
        return others[name[1:]]


def call(parts: Parts, function: str, template: Iterable[str], type_name: str, count: int) -> str:
    """`d = ptx::function<template>(a, b, ...);` with `count` operands behind the result."""
    result, *inputs = parts.operands(count + 1)
    arguments = ", ".join(parts.read(operand, type_name) for operand in inputs)
    return parts.write(result, f"ptx::{function}<{', '.join(template)}>({arguments})")
