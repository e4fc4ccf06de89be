"""A PTX module as one C++ text.

An entry whose threads do not meet becomes a function, with registers as variables. One whose threads meet becomes a
struct: registers are members, and run() goes on behind the place at which the thread stopped (ptx_block.h).
"""

from __future__ import annotations

from collections.abc import Iterator

from . import opcodes_arithmetic, opcodes_memory
from .opcodes import translate
from .opcodes_control import STOPS, function_name
from .parse import parse
from .syntax import Address, BranchTargets, Function, Instruction, Module, Negated, Pair, Target, Variable, raw_type

assert opcodes_arithmetic and opcodes_memory  # importing them fills the table

_HEADERS = ("ptx_words.h",)


def write_cpp(ptx: str, allow_approximate: bool = False) -> tuple[str, Module]:
    """The C++ text, with a function ``run_<entry>(parameters, geometry)`` for each entry, and the module.

    Raises: PtxError with the opcode and the line for what the translation does not know.
    """
    module = parse(ptx)
    lines = [f'#include "{header}"' for header in _HEADERS]
    lines += [_array(array, is_static=True) for array in module.arrays]
    defined = [function for function in module.functions.values() if function.defined]
    lines += [f"{_signature(function)};" for function in defined if not function.is_entry]
    for function in defined:
        lines += _FunctionWriter(module, function, allow_approximate).lines()
    return "\n".join(lines) + "\n", module


def _signature(function: Function) -> str:
    parameters = [f"unsigned char* {result.cpp_name}" for result in function.results]
    parameters += [f"unsigned char* {parameter.cpp_name}" for parameter in function.parameters]
    return f"static void {function_name(function.name)}({', '.join(['ptx::Thread& thread', *parameters])})"


def _array(array: Variable, is_static: bool = False) -> str:
    """Memory: an array of the module, or of a function."""
    cpp_type = raw_type(array.type_name)
    if array.space == "param":  # calls pass its address as that of bytes
        size = f"{max(array.count, 1)} * sizeof({cpp_type})"
        return f"alignas({array.alignment}) unsigned char {array.cpp_name}[{size}]{{}};"
    values = f" = {{{', '.join(f'{cpp_type}({value})' for value in array.values)}}}" if array.values else "{}"
    prefix = "static " if is_static else ""
    return f"alignas({array.alignment}) {prefix}{cpp_type} {array.cpp_name}[{max(array.count, 1)}]{values};"


class _FunctionWriter:
    """Writes one function. It is the Scope of opcodes.py."""

    def __init__(self, module: Module, function: Function, allow_approximate: bool) -> None:
        self._module = module
        self.function = function
        self.allow_approximate = allow_approximate
        self._stops = 0

    def new_stop(self) -> int:
        self._stops += 1
        return self._stops

    def callee(self, name: str) -> Function | None:
        return self._module.functions.get(name)

    def branch_targets(self, name: str) -> tuple[str, ...] | None:
        tables = (each for each in self.function.statements if isinstance(each, BranchTargets))
        return next((table.labels for table in tables if table.name == name), None)

    def lines(self) -> Iterator[str]:
        if not self.function.is_entry:
            yield f"{_signature(self.function)} {{"
            yield from self._variables()
            yield from self._body()
            yield "}"
        elif any(instruction.name in STOPS for instruction in self.function.instructions()):
            yield from self._cooperative_entry()
        else:
            yield from self._plain_entry()

    def _plain_entry(self) -> Iterator[str]:
        name = self.function.name
        yield f"static void thread_{name}(ptx::Thread& thread) {{"
        yield from self._variables()
        yield from self._body()
        yield "}"
        yield from self._run(f"ptx::for_each_thread(geometry, {{shared}}, param, thread_{name});")

    def _cooperative_entry(self) -> Iterator[str]:
        name = self.function.name
        body = list(self._body())
        yield f"struct Body_{name} {{"
        yield from self._variables()
        yield "int resume = 0;"
        yield "void run(ptx::Thread& thread) {"
        cases = " ".join(f"case {stop}: goto resume_{stop};" for stop in range(1, self._stops + 1))
        yield f"switch (resume) {{ {cases} }}"
        yield from body
        yield "}"
        yield "};"
        yield from self._run(f"ptx::run_blocks<Body_{name}>(geometry, {{shared}}, param);")

    def _run(self, call: str) -> Iterator[str]:
        name = self.function.name
        yield f'extern "C" const char* run_{name}(const unsigned char* param, const uint32_t* geometry) {{'
        yield f"return ptx::guarded([=] {{ {call.format(shared=f'{self.function.shared_bytes}u')} }});"
        yield "}"

    def _variables(self) -> Iterator[str]:
        used = self._used_registers()
        for register in self.function.registers:
            if register.cpp_name in used:
                yield f"{raw_type(register.type_name)} {register.cpp_name} = 0;"
        for array in self.function.arrays:
            yield _array(array)
        yield "bool carry = false;"

    def _used_registers(self) -> frozenset[str]:
        """NVRTC declares more registers than it uses."""
        return frozenset(_registers_in([*self.function.instructions()]))

    def _body(self) -> Iterator[str]:
        for statement in self.function.statements:
            if isinstance(statement, Target):
                yield f"{statement.name}:;"
            elif isinstance(statement, Instruction):
                yield self._instruction(statement)
        yield "thread.stop = ptx::Stop::kDone;" if self.function.is_entry else ";"

    def _instruction(self, instruction: Instruction) -> str:
        statement = translate(instruction, self)
        guard = instruction.guard
        if guard is None:
            return statement
        condition = f"!{guard.predicate.cpp_name}" if isinstance(guard, Negated) else guard.cpp_name
        return f"if ({condition}) {{ {statement} }}"


def _registers_in(instructions: list[Instruction]) -> Iterator[str]:
    for instruction in instructions:
        pending: list[object] = [instruction.guard, *instruction.operands]
        while pending:
            operand = pending.pop()
            if isinstance(operand, Variable):
                yield operand.cpp_name
            elif isinstance(operand, tuple):
                pending.extend(operand)
            elif isinstance(operand, Negated):
                pending.append(operand.predicate)
            elif isinstance(operand, Pair):
                pending += [operand.first, operand.second]
            elif isinstance(operand, Address):
                pending.append(operand.base)
