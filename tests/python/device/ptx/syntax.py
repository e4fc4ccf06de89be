"""The parts of a PTX module: the data that parse.py makes and writer.py reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .errors import PtxError

# C++ names of PTX types. Registers hold raw bits, which an instruction interprets (PTX itself keeps floats in .b32).
CPP_TYPES = {
    "pred": "bool",
    "f16": "ptx::F16",
    "bf16": "ptx::BF16",
    "f32": "float",
    "f64": "double",
    **{f"{kind}{bits}": f"uint{bits}_t" for kind in "ub" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
}


def bits_of(type_name: str) -> int:
    """Bits of a type: 32 for "f32". Predicates have 1."""
    return 1 if type_name == "pred" else int(type_name.lstrip("busf"))


def raw_type(type_name: str) -> str:
    """The C++ type of a register or of memory of this type."""
    return "bool" if type_name == "pred" else f"uint{bits_of(type_name)}_t"


@dataclass(frozen=True)
class Variable:
    """A register, a parameter or an array. space: reg, param, entry_param, shared, local, global, const."""

    name: str
    cpp_name: str
    space: str
    type_name: str
    count: int = 1  # elements of an array
    alignment: int = 1
    values: tuple[str, ...] = ()  # initial values, as C++
    offset: int = 0  # offset of an entry's parameter or of a shared array

    @property
    def size(self) -> int:
        return self.count * max(bits_of(self.type_name), 8) // 8


@dataclass(frozen=True)
class Immediate:
    text: str  # the spelling of PTX: -1, 0xFF, 0f3F800000, 0d3FF0000000000000, 1.5


@dataclass(frozen=True)
class Special:
    name: str  # %tid.x


@dataclass(frozen=True)
class Address:
    base: Variable | Immediate
    offset: int


@dataclass(frozen=True)
class Negated:
    predicate: Variable


@dataclass(frozen=True)
class Pair:
    first: Operand  # %p1|%p2
    second: Operand


@dataclass(frozen=True)
class Sink:
    """`_`: a result that is never read."""


@dataclass(frozen=True)
class Label:
    name: str


@dataclass(frozen=True)
class Callee:
    name: str


Operand = "Variable | Immediate | Special | Address | Negated | Pair | Sink | Label | Callee | tuple"


@dataclass
class Instruction:
    opcode: str  # with modifiers: ld.global.v2.f32
    operands: list[Operand]
    line: int
    text: str
    guard: Variable | Negated | None = None
    modifiers: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.name, *self.modifiers = self.opcode.split(".")

    def error(self, reason: str) -> PtxError:
        return PtxError(self.opcode, self.line, self.text, reason)


@dataclass(frozen=True)
class Target:
    """A label as a statement."""

    name: str


@dataclass(frozen=True)
class BranchTargets:
    """`name: .branchtargets a, b;`: the table of brx.idx."""

    name: str
    labels: tuple[str, ...]


@dataclass
class Function:
    name: str
    is_entry: bool
    parameters: list[Variable]
    results: list[Variable]
    registers: list[Variable] = field(default_factory=list)
    arrays: list[Variable] = field(default_factory=list)  # local memory and parameters of calls
    statements: list[Instruction | Target | BranchTargets] = field(default_factory=list)
    shared_bytes: int = 0
    defined: bool = False
    line: int = 0

    def instructions(self) -> Iterator[Instruction]:
        return (statement for statement in self.statements if isinstance(statement, Instruction))


@dataclass
class Module:
    arrays: list[Variable] = field(default_factory=list)
    functions: dict[str, Function] = field(default_factory=dict)

    def entries(self) -> list[Function]:
        return [function for function in self.functions.values() if function.is_entry]
