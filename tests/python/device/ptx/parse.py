"""PTX to syntax.Module: declarations, scopes and operands. Opcodes are judged later, by opcodes.py."""

from __future__ import annotations

import re
import struct

from .errors import PtxError
from .syntax import (
    CPP_TYPES,
    Address,
    BranchTargets,
    Callee,
    Function,
    Immediate,
    Instruction,
    Label,
    Module,
    Negated,
    Operand,
    Pair,
    Sink,
    Special,
    Target,
    Variable,
    bits_of,
)
from .tokens import Cursor, Token

_LINKING = {".visible", ".weak", ".extern", ".common"}
_LIMITS = {".maxntid": 3, ".reqntid": 3, ".minnctapersm": 1, ".maxnctapersm": 1, ".maxnreg": 1, ".noreturn": 0}
_BRANCHES = {"bra", "brx"}


def parse(ptx: str) -> Module:
    """Raises PtxError with the word and the line for text that is not understood."""
    return _Parser(ptx).module()


class _Parser:
    def __init__(self, ptx: str) -> None:
        self._cursor = Cursor(ptx)
        self._scopes: list[dict[str, Variable]] = [{}]
        self._names: dict[str, int] = {}  # C++ names in use: a name of an inner scope gets a number
        self._module = Module()
        self._shared: list[Variable] = []  # shared arrays outside of functions
        self._function: Function | None = None

    def module(self) -> Module:
        while self._cursor.next.kind != "end":
            self._top_level()
        return self._module

    def _top_level(self) -> None:
        token = self._cursor.take()
        if token.text in (".version", ".address_size"):
            self._cursor.take()
        elif token.text == ".target":
            self._cursor.take()
            while self._cursor.skip(","):
                self._cursor.take()
        elif token.text in _LINKING:
            pass  # every name is visible here; a function without a body fails when it is called
        elif token.text in (".entry", ".func"):
            self._read_function(is_entry=token.text == ".entry", line=token.line)
        elif token.text in (".global", ".const", ".shared"):
            self._read_array(token.text[1:])
        else:
            raise self._cursor.error(token, "an unknown directive")

    # Functions

    def _read_function(self, is_entry: bool, line: int) -> None:
        self._scopes.append({})
        self._names.clear()
        results = self._read_parameters("param") if self._cursor.next.text == "(" else []
        name = self._cursor.take().text
        space = "entry_param" if is_entry else "param"
        parameters = self._read_parameters(space) if self._cursor.next.text == "(" else []
        while self._cursor.next.text in _LIMITS:
            for index in range(_LIMITS[self._cursor.take().text]):
                if index == 0 or self._cursor.skip(","):
                    self._cursor.take()
        function = Function(name, is_entry, parameters, results, line=line)
        if not self._cursor.skip(";"):
            self._read_body(function)
        known = self._module.functions.get(name)
        if known is None or not known.defined:
            self._module.functions[name] = function
        self._scopes.pop()

    def _read_parameters(self, space: str) -> list[Variable]:
        self._cursor.take("(")
        parameters: list[Variable] = []
        end = 0
        while not self._cursor.skip(")"):
            self._cursor.take(".param")
            parameter = self._declare_array(space, end)
            end = parameter.offset + parameter.size
            parameters.append(parameter)
            self._cursor.skip(",")
        return parameters

    def _read_body(self, function: Function) -> None:
        self._function = function
        function.defined = True
        function.shared_bytes = max((array.offset + array.size for array in self._shared), default=0)
        self._cursor.take("{")
        self._scopes.append({})
        depth = 1
        while depth:
            token = self._cursor.next
            if token.text == "{":
                self._scopes.append({})
                depth += 1
                self._cursor.take()
            elif token.text == "}":
                self._scopes.pop()
                depth -= 1
                self._cursor.take()
            else:
                self._read_statement(function)
        self._function = None

    def _read_statement(self, function: Function) -> None:
        token = self._cursor.next
        if token.text == ".reg":
            self._read_registers(function)
        elif token.text in (".local", ".shared", ".param"):
            self._cursor.take()
            self._read_array(token.text[1:])
        elif token.text == ".pragma":
            while self._cursor.take().text != ";":
                pass
        elif self._cursor.follows(":"):
            self._read_label(function)
        elif token.kind == "word" and token.text.startswith("."):
            raise self._cursor.error(token, "an unknown directive")
        else:
            function.statements.append(self._read_instruction())

    def _read_label(self, function: Function) -> None:
        name = self._cursor.take().text
        self._cursor.take(":")
        if not self._cursor.skip(".branchtargets"):
            function.statements.append(Target(cpp_name(name)))
            return
        labels = [cpp_name(self._cursor.take().text)]
        while self._cursor.skip(","):
            labels.append(cpp_name(self._cursor.take().text))
        self._cursor.take(";")
        function.statements.append(BranchTargets(cpp_name(name), tuple(labels)))

    # Declarations

    def _read_registers(self, function: Function) -> None:
        self._cursor.take(".reg")
        type_name = self._type()
        while True:
            name = self._cursor.take().text
            names = [name]
            if self._cursor.skip("<"):
                names = [f"{name}{index}" for index in range(int(self._cursor.take().text))]
                self._cursor.take(">")
            for each in names:
                register = Variable(each, self._unique(each), "reg", type_name)
                self._scopes[-1][each] = register
                function.registers.append(register)
            if not self._cursor.skip(","):
                break
        self._cursor.take(";")

    def _read_array(self, space: str) -> None:
        """An array or a scalar of memory, with its initial values if it has some."""
        shared_end = self._function.shared_bytes if self._function else self._shared_end()
        array = self._declare_array(space, shared_end if space == "shared" else 0)
        self._cursor.take(";")
        if space == "shared":
            if self._function:
                self._function.shared_bytes = array.offset + array.size
            else:
                self._shared.append(array)
        elif self._function:
            self._function.arrays.append(array)
        else:
            self._module.arrays.append(array)

    def _shared_end(self) -> int:
        return max((array.offset + array.size for array in self._shared), default=0)

    def _declare_array(self, space: str, end: int) -> Variable:
        alignment = int(self._cursor.take().text) if self._cursor.skip(".align") else 0
        type_name = self._type()
        while self._cursor.next.text in (".ptr", ".global", ".const", ".align"):  # hints about a pointer
            if self._cursor.take().text == ".align":
                self._cursor.take()
        token = self._cursor.take()
        count = 1
        while self._cursor.skip("["):
            count *= 0 if self._cursor.next.text == "]" else int(self._cursor.take().text)
            self._cursor.take("]")
        values = self._read_values(type_name) if self._cursor.skip("=") else ()
        alignment = max(alignment, bits_of(type_name) // 8)
        offset = -(-end // alignment) * alignment
        name = self._unique(token.text) if token.text.startswith("%") or self._function else cpp_name(token.text)
        array = Variable(token.text, name, space, type_name, count, alignment, values, offset)
        self._scopes[-1][token.text] = array
        return array

    def _read_values(self, type_name: str) -> tuple[str, ...]:
        """Numbers and addresses, with the braces of several dimensions left out."""
        if not self._cursor.skip("{"):
            return (self._value(type_name),)
        values: list[str] = []
        while not self._cursor.skip("}"):
            values.extend(self._read_values(type_name) if self._cursor.next.text == "{" else [self._value(type_name)])
            self._cursor.skip(",")
        return tuple(values)

    def _value(self, type_name: str) -> str:
        token = self._cursor.take()
        if token.kind == "number" or token.text == "-":
            text = token.text if token.kind == "number" else "-" + self._cursor.take().text
            return immediate_bits(text, type_name)
        if token.text == "generic":
            self._cursor.take("(")
            value = self._value(type_name)
            self._cursor.take(")")
        else:
            value = f"ptx::address({self._find(token).cpp_name})"
        return f"{value} + {self._cursor.take().text}" if self._cursor.skip("+") else value

    def _type(self) -> str:
        token = self._cursor.take()
        if token.text[1:] not in CPP_TYPES:
            raise self._cursor.error(token, "an unknown type")
        return token.text[1:]

    def _unique(self, name: str) -> str:
        base = cpp_name(name)
        number = self._names[base] = self._names.get(base, 0) + 1
        return base if number == 1 else f"{base}_{number}"

    # Instructions

    def _read_instruction(self) -> Instruction:
        guard: Operand | None = None
        line = self._cursor.next.line
        if self._cursor.skip("@"):
            guard = self._operand()
        token = self._cursor.take()
        if token.kind != "word":
            raise self._cursor.error(token, "expected an instruction")
        is_call = token.text.split(".")[0] == "call"
        read = self._callee_or_operand if is_call else self._operand
        if token.text.split(".")[0] in _BRANCHES:
            read = self._label_or_register
        operands: list[Operand] = []
        while not self._cursor.skip(";"):
            operands.append(read())
            if self._cursor.next.text != ";":
                self._cursor.take(",")
        assert guard is None or isinstance(guard, Variable | Negated)
        return Instruction(token.text, operands, line, self._cursor.line_text(line), guard)

    def _label_or_register(self) -> Operand:
        token = self._cursor.take()
        return self._find(token) if token.text.startswith("%") else Label(cpp_name(token.text))

    def _callee_or_operand(self) -> Operand:
        """An operand of call: a list of parameters in brackets, or a name of a function."""
        if not self._cursor.skip("("):
            token = self._cursor.take()
            if token.text.startswith("%"):
                raise self._cursor.error(token, "calls through a pointer are not translated")
            return Callee(token.text)
        parameters: list[Operand] = []
        while not self._cursor.skip(")"):
            parameters.append(self._operand())
            self._cursor.skip(",")
        return tuple(parameters)

    def _operand(self) -> Operand:
        if self._cursor.skip("!"):
            predicate = self._simple_operand()
            assert isinstance(predicate, Variable)
            return Negated(predicate)
        if self._cursor.skip("{"):
            parts: list[Operand] = []
            while not self._cursor.skip("}"):
                parts.append(self._simple_operand())
                self._cursor.skip(",")
            return tuple(parts)
        if self._cursor.skip("["):
            address = self._address()
            self._cursor.take("]")
            return address
        operand = self._simple_operand()
        if self._cursor.skip("+"):  # the address of an element: name+8
            assert isinstance(operand, Variable)
            return Address(operand, int(self._cursor.take().text, 0))
        return Pair(operand, self._simple_operand()) if self._cursor.skip("|") else operand

    def _address(self) -> Address:
        base = self._simple_operand()
        assert isinstance(base, Variable | Immediate)
        offset = 0
        if self._cursor.skip("+"):
            sign = -1 if self._cursor.skip("-") else 1
            offset = sign * int(self._cursor.take().text, 0)
        elif self._cursor.skip("-"):
            offset = -int(self._cursor.take().text, 0)
        return Address(base, offset)

    def _simple_operand(self) -> Operand:
        token = self._cursor.take()
        if token.text == "-":
            return Immediate("-" + self._cursor.take().text)
        if token.kind == "number":
            return Immediate(token.text)
        if token.text == "_":
            return Sink()
        if token.text == "WARP_SZ":
            return Immediate("32")
        return self._find(token)

    def _find(self, token: Token) -> Operand:
        for scope in reversed(self._scopes):
            if token.text in scope:
                return scope[token.text]
        if token.text.startswith("%"):
            return Special(token.text)
        raise PtxError(token.text, token.line, self._cursor.line_text(token.line), "an unknown name")


def cpp_name(name: str) -> str:
    """A C++ identifier; %r1 and r1 stay different."""
    name = name.replace("%", "v_").replace("$", "_")
    return re.sub(r"\W", "_", name)


def immediate_bits(text: str, type_name: str = "u64") -> str:
    """A number of PTX as a C++ literal of the bits that the type has; floating numbers as their bits."""
    return f"0x{_immediate_value(text, type_name) & ((1 << bits_of(type_name)) - 1):x}ull"


def _immediate_value(text: str, type_name: str) -> int:
    negative = text.startswith("-")
    digits = text.lstrip("-")
    if digits[:2].lower() in ("0f", "0d"):
        sign = 1 << (31 if digits[1] in "fF" else 63)
        return int(digits[2:], 16) ^ (sign if negative else 0)
    if "." in digits:
        return int.from_bytes(struct.pack("<f" if type_name == "f32" else "<d", float(text)), "little")
    digits = digits.rstrip("U")
    value = int(digits, 8 if re.fullmatch(r"0[0-7]+", digits) else 0)
    return -value if negative else value
