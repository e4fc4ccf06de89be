"""Opcodes that move: registers, memory, addresses, integer atomics."""

from __future__ import annotations

from .opcodes import FLOATS, INTEGERS, RAW, Parts, Scope, opcode
from .parse import immediate_bits
from .syntax import CPP_TYPES, Address, Immediate, Operand, Variable, bits_of, raw_type

_MEMORY_TYPES = (*INTEGERS, *RAW, *FLOATS, "u8", "s8", "b8", "f16", "bf16")
_SPACES = ("param", "shared", "shared::cta", "global", "const", "local")
# Words about caches and about order between blocks, which change no value here.
_HINTS = (
    *("volatile", "weak", "relaxed", "acquire", "release", "acq_rel", "cta", "gpu", "sys", "nc"),
    *("ca", "cg", "cs", "lu", "cv", "wb", "wt", "L2::64B", "L2::128B", "L2::256B"),
    *(f"{level}::{what}" for level in ("L1", "L2") for what in ("evict_first", "evict_last", "evict_normal")),
    *("L1::no_allocate", "L1::evict_unchanged"),
)


@opcode("mov")
def _mov(parts: Parts, scope: Scope) -> str:
    type_name = parts.type((*RAW, *INTEGERS, *FLOATS, "pred"))
    result, value = parts.operands(2)
    if isinstance(value, tuple):
        return parts.write(result, _packed(parts, value, type_name))
    if isinstance(result, tuple):
        return _unpack(parts, result, value, type_name)
    return parts.write(result, parts.read(value, type_name))


def _packed(parts: Parts, values: tuple[Operand, ...], type_name: str) -> str:
    """{a, b} as one number: a is the low part."""
    bits = bits_of(type_name) // len(values)
    words = [f"uint64_t(uint{bits}_t({parts.read(value, f'b{bits}')})) << {i * bits}" for i, value in enumerate(values)]
    return " | ".join(words)


def _unpack(parts: Parts, results: tuple[Operand, ...], value: Operand, type_name: str) -> str:
    bits = bits_of(type_name) // len(results)
    words = [parts.write(each, f"uint{bits}_t(packed >> {i * bits})") for i, each in enumerate(results)]
    return f"{{ const uint64_t packed = {parts.read(value, type_name)}; {' '.join(words)} }}"


@opcode("cvta")
def _cvta(parts: Parts, scope: Scope) -> str:
    parts.type(("u64",))
    from_generic = parts.flag("to")
    space = parts.choice(_SPACES)
    result, value = parts.operands(2)
    if not space.startswith("shared"):
        return parts.write(result, parts.read(value))
    sign = "-" if from_generic else "+"
    return parts.write(result, f"{parts.read(value)} {sign} ptx::address(thread.shared)")


def place(parts: Parts, operand: Operand, space: str, size: int) -> str:
    """An address as a pointer. `size` bytes are accessed there, and the address must be a multiple of it."""
    if not isinstance(operand, Address):
        raise parts.instruction.error("expected an address in brackets")
    base = operand.base
    if isinstance(base, Variable) and base.space == "entry_param":
        return f"thread.param + {base.offset + operand.offset}"
    if isinstance(base, Variable) and base.space == "param":
        return f"{base.cpp_name} + {operand.offset}"
    if space.startswith("shared") or (isinstance(base, Variable) and base.space == "shared"):
        # Addresses of shared memory have 32 bits: they wrap as such.
        offset = f"uint32_t({parts.read(base, 'u32')} + {immediate_bits(str(operand.offset), 'u32')})"
        return f"ptx::at_shared(thread, {offset}, {size}, {parts.line})"
    start = parts.read(base) if isinstance(base, Variable | Immediate) else ""
    return f"ptx::at(thread, {start} + {immediate_bits(str(operand.offset))}, {size}, {parts.line})"


def _access(parts: Parts) -> tuple[str, str, int]:
    """The type, the space and the number of elements of ld or st."""
    type_name = parts.type(_MEMORY_TYPES)
    parts.flag(*_HINTS)
    space = parts.choice(_SPACES, "generic")
    count = int(parts.choice(("v2", "v4", "v1"), "v1")[1])
    return type_name, space, count


def _memory_type(type_name: str) -> str:
    return CPP_TYPES[type_name] if type_name.startswith("s") else raw_type(type_name)


@opcode("ld", "ldu")
def _ld(parts: Parts, scope: Scope) -> str:
    type_name, space, count = _access(parts)
    result, address = parts.operands(2)
    results = result if isinstance(result, tuple) else (result,)
    if len(results) != count:
        raise parts.instruction.error(f"expected {count} results")
    size = bits_of(type_name) // 8
    cpp_type = _memory_type(type_name)
    where = place(parts, address, space, size * count)
    loads = [parts.write(each, f"ptx::load<{cpp_type}>(from + {i * size})") for i, each in enumerate(results)]
    return f"{{ const unsigned char* const from = {where}; {' '.join(loads)} }}"


@opcode("st")
def _st(parts: Parts, scope: Scope) -> str:
    type_name, space, count = _access(parts)
    address, value = parts.operands(2)
    values = value if isinstance(value, tuple) else (value,)
    if len(values) != count:
        raise parts.instruction.error(f"expected {count} values")
    size = bits_of(type_name) // 8
    cpp_type = raw_type(type_name)
    where = place(parts, address, space, size * count)
    stores = [
        f"ptx::store<{cpp_type}>(to + {i * size}, {cpp_type}({parts.read(each, type_name)}));"
        for i, each in enumerate(values)
    ]
    return f"{{ unsigned char* const to = {where}; {' '.join(stores)} }}"


_ATOMICS = {  # operation: the new value out of `old`, b and c
    "add": "old + b",
    "min": "old < b ? old : b",
    "max": "old < b ? b : old",
    "and": "old & b",
    "or": "old | b",
    "xor": "old ^ b",
    "exch": "b",
    "cas": "old == b ? c : old",
    "inc": "old >= b ? 0 : old + 1",
    "dec": "old == 0 || old > b ? b : old - 1",
}


@opcode("atom", "red")
def _atom(parts: Parts, scope: Scope) -> str:
    if parts.modifiers and parts.modifiers[-1] in (*FLOATS, "f16", "bf16", "f16x2", "bf16x2"):
        raise parts.instruction.error("sums of floats by atomics depend on the order of threads")
    type_name = parts.type((*INTEGERS, *RAW))
    parts.flag(*_HINTS)
    space = parts.choice(("global", "shared", "shared::cta"), "generic")
    operation = parts.choice(_ATOMICS)
    inputs = list(parts.operands((2 if parts.name == "red" else 3) + (operation == "cas")))
    result = None if parts.name == "red" else inputs.pop(0)
    address, *values = inputs
    cpp_type = CPP_TYPES[type_name]
    where = place(parts, address, space, bits_of(type_name) // 8)
    names = [f"const {cpp_type} {name} = {parts.read(each, type_name)};" for name, each in zip("bc", values)]
    apply = f"ptx::exchange<{cpp_type}>({where}, [&]({cpp_type} old) {{ return {_ATOMICS[operation]}; }})"
    return f"{{ {' '.join(names)} {f'{apply};' if result is None else parts.write(result, apply)} }}"


@opcode("membar", "fence")
def _fence(parts: Parts, scope: Scope) -> str:
    """Threads run one after another here, so that memory is in order."""
    parts.flag("gl", "cta", "sys", "gpu", "sc", "acq_rel")
    parts.operands(0)
    return ";"
