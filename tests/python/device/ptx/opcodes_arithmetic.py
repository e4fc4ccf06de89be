"""Opcodes that compute: arithmetic, comparisons, conversions, bits."""

from __future__ import annotations

from .opcodes import FLOATS, INTEGERS, RAW, ROUNDINGS, SIGNED, Parts, Scope, call, opcode
from .syntax import CPP_TYPES, Pair, bits_of

_SIMPLE = {  # opcode: its types, the number of inputs
    "abs": ((*SIGNED, *FLOATS), 1),
    "neg": ((*SIGNED, *FLOATS), 1),
    "rem": (INTEGERS, 2),
    "sad": (INTEGERS, 3),
    "clz": (("b32", "b64"), 1),
    "brev": (("b32", "b64"), 1),
    "copysign": (FLOATS, 2),
}


@opcode(*_SIMPLE)
def _simple(parts: Parts, scope: Scope) -> str:
    types, count = _SIMPLE[parts.name]
    type_name = parts.type(types)
    return call(parts, parts.name, [CPP_TYPES[type_name]], type_name, count)


@opcode("popc")
def _popc(parts: Parts, scope: Scope) -> str:
    type_name = parts.type(("b32", "b64"))
    result, value = parts.operands(2)
    return parts.write(result, f"ptx::popc({parts.read(value, type_name)})")


@opcode("add", "sub")
def _add(parts: Parts, scope: Scope) -> str:
    type_name = parts.type((*INTEGERS, *FLOATS))
    if type_name in INTEGERS and parts.flag("cc"):
        return _carry(parts, type_name, "false")
    saturates = _saturates(parts, (*FLOATS, "s32"), type_name)
    rounding = parts.rounding() if type_name in FLOATS else "ptx::Round::kNearest"
    return call(parts, parts.name, [CPP_TYPES[type_name], rounding, saturates], type_name, 2)


@opcode("addc", "subc")
def _addc(parts: Parts, scope: Scope) -> str:
    type_name = parts.type(("u32", "s32", "u64", "s64"))
    parts.flag("cc")
    return _carry(parts, type_name, "carry")


def _carry(parts: Parts, type_name: str, carry_in: str) -> str:
    """add.cc, addc, sub.cc, subc. Those without .cc leave a carry that is never read."""
    result, a, b = parts.operands(3)
    function = "add_carry" if parts.name.startswith("add") else "sub_borrow"
    inputs = f"{parts.read(a, type_name)}, {parts.read(b, type_name)}, {carry_in}, &carry"
    return parts.write(result, f"ptx::{function}<{CPP_TYPES[type_name]}>({inputs})")


def _saturates(parts: Parts, allowed: tuple[str, ...], type_name: str) -> str:
    return str(type_name in allowed and parts.flag("sat")).lower()


@opcode("mul")
def _mul(parts: Parts, scope: Scope) -> str:
    type_name = parts.type((*INTEGERS, *FLOATS))
    if type_name in FLOATS:
        saturates = _saturates(parts, FLOATS, type_name)
        return call(parts, "mul", [CPP_TYPES[type_name], parts.rounding(), saturates], type_name, 2)
    half = parts.choice(("lo", "hi", "wide"))
    return call(parts, f"mul_{half}", [CPP_TYPES[type_name]], type_name, 2)


@opcode("fma", "mad")
def _fma(parts: Parts, scope: Scope) -> str:
    type_name = parts.type((*INTEGERS, *FLOATS) if parts.name == "mad" else FLOATS)
    if type_name in INTEGERS:
        return _integer_mad(parts, type_name, "false")
    saturates = _saturates(parts, FLOATS, type_name)
    return call(parts, "fma", [CPP_TYPES[type_name], parts.rounding(), saturates], type_name, 3)


@opcode("madc")
def _madc(parts: Parts, scope: Scope) -> str:
    return _integer_mad(parts, parts.type(("u32", "s32", "u64", "s64")), "carry")


def _integer_mad(parts: Parts, type_name: str, carry_in: str) -> str:
    half = parts.choice(("lo", "hi", "wide"))
    sets_carry = parts.flag("cc")
    result, a, b, c = parts.operands(4)
    wide = f"{type_name[0]}{2 * bits_of(type_name)}" if half == "wide" else type_name
    product = f"ptx::mul_{half}<{CPP_TYPES[type_name]}>({parts.read(a, type_name)}, {parts.read(b, type_name)})"
    addend = parts.read(c, wide)
    if sets_carry or carry_in == "carry":
        return parts.write(result, f"ptx::add_carry<{CPP_TYPES[wide]}>({product}, {addend}, {carry_in}, &carry)")
    return parts.write(result, f"{product} + {addend}")


@opcode("div")
def _div(parts: Parts, scope: Scope) -> str:
    type_name = parts.type((*INTEGERS, *FLOATS))
    if type_name in INTEGERS:
        return call(parts, "div_integer", [CPP_TYPES[type_name]], type_name, 2)
    if parts.flag("approx", "full"):
        return _approximate(parts, type_name, 2)
    parts_rounding = _required_rounding(parts)
    return call(parts, "divide", [CPP_TYPES[type_name], parts_rounding], type_name, 2)


@opcode("rcp", "sqrt")
def _rcp(parts: Parts, scope: Scope) -> str:
    type_name = parts.type(FLOATS)
    if parts.flag("approx"):
        return _approximate(parts, type_name, 1)
    return call(parts, parts.name, [CPP_TYPES[type_name], _required_rounding(parts)], type_name, 1)


def _required_rounding(parts: Parts) -> str:
    """The rounding of an instruction that is exact only if it names one."""
    return f"ptx::Round::{ROUNDINGS[parts.choice(ROUNDINGS)]}"


@opcode("ex2", "lg2", "sin", "cos", "tanh", "rsqrt")
def _function(parts: Parts, scope: Scope) -> str:
    type_name = parts.type(FLOATS if parts.name == "rsqrt" else ("f32",))
    if not parts.flag("approx"):
        raise parts.instruction.error("expected .approx")
    if not scope.allow_approximate:
        raise parts.instruction.error("an approximate operation")
    return _approximate(parts, type_name, 1)


def _approximate(parts: Parts, type_name: str, count: int) -> str:
    flushes = str(parts.flag("ftz")).lower()
    if type_name == "f32":
        return call(parts, f"{parts.name}_approx", [flushes], type_name, count)
    if parts.name not in ("rcp", "rsqrt"):
        raise parts.instruction.error("no such approximation of f64")
    result, value = parts.operands(2)
    return parts.write(result, f"ptx::{parts.name}_approx_f64({parts.read(value, type_name)})")


@opcode("min", "max")
def _min(parts: Parts, scope: Scope) -> str:
    type_name = parts.type((*INTEGERS, *FLOATS))
    keeps_nan = str(type_name == "f32" and parts.flag("NaN")).lower()
    return call(parts, parts.name, [CPP_TYPES[type_name], keeps_nan], type_name, 2)


# Comparisons

_COMPARISONS = {
    **{name: (f"k{name.capitalize()}", "false") for name in ("eq", "ne", "lt", "le", "gt", "ge", "num", "nan")},
    **{f"{name}u": (f"k{name.capitalize()}", "true") for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "lo": ("kLt", "false"),
    "ls": ("kLe", "false"),
    "hi": ("kGt", "false"),
    "hs": ("kGe", "false"),
}
_COMBINE = {"and": "&&", "or": "||", "xor": "!="}


def _comparison(parts: Parts, a: object, b: object, type_name: str) -> str:
    how = parts.choice(_COMPARISONS)
    if type_name not in FLOATS and (how in ("num", "nan") or _COMPARISONS[how][1] == "true"):
        raise parts.instruction.error(f"integers have no comparison '{how}'")
    if type_name in RAW and how not in ("eq", "ne"):
        raise parts.instruction.error(f"the type {type_name} has no order")
    compare, unordered = _COMPARISONS[how]
    template = f"{CPP_TYPES[type_name]}, ptx::Compare::{compare}, {unordered}"
    return f"ptx::compare<{template}>({parts.read(a, type_name)}, {parts.read(b, type_name)})"


@opcode("setp")
def _setp(parts: Parts, scope: Scope) -> str:
    type_name = parts.type((*INTEGERS, *FLOATS, *RAW))
    combine = _COMBINE.get(parts.choice((*_COMBINE, "none"), "none"))
    result, a, b, *more = parts.operands(4 if combine else 3)
    comparison = _comparison(parts, a, b, type_name)
    first, second = (result.first, result.second) if isinstance(result, Pair) else (result, None)
    tail = f" {combine} {parts.read(more[0], 'pred')}" if combine else ""
    if second is None:
        return parts.write(first, f"{comparison}{tail}")
    # Both results come from the inputs as they were.
    both = f"const bool holds = {comparison}, yes = holds{tail}, no = !holds{tail};"
    return f"{{ {both} {parts.write(first, 'yes')} {parts.write(second, 'no')} }}"


@opcode("set")
def _set(parts: Parts, scope: Scope) -> str:
    type_name = parts.type((*INTEGERS, *FLOATS, *RAW))
    result_type = parts.type(("u32", "s32", "f32"))
    combine = _COMBINE.get(parts.choice((*_COMBINE, "none"), "none"))
    result, a, b, *more = parts.operands(4 if combine else 3)
    tail = f" {combine} {parts.read(more[0], 'pred')}" if combine else ""
    true_bits = "0x3f800000u" if result_type == "f32" else "0xffffffffu"
    return parts.write(result, f"({_comparison(parts, a, b, type_name)}{tail}) ? {true_bits} : 0u")


@opcode("selp")
def _selp(parts: Parts, scope: Scope) -> str:
    type_name = parts.type((*INTEGERS, *FLOATS, *RAW))
    result, a, b, predicate = parts.operands(4)
    choice = f"{parts.read(predicate, 'pred')} ? {parts.read(a, type_name)} : {parts.read(b, type_name)}"
    return parts.write(result, choice)


@opcode("slct")
def _slct(parts: Parts, scope: Scope) -> str:
    selector_type = parts.type(("s32", "f32"))
    type_name = parts.type((*INTEGERS, *FLOATS, *RAW))
    result, a, b, selector = parts.operands(4)
    test = f"ptx::value<{CPP_TYPES[selector_type]}>({parts.read(selector, selector_type)}) >= 0"
    return parts.write(result, f"{test} ? {parts.read(a, type_name)} : {parts.read(b, type_name)}")


_CLASSES = {
    "finite": "kFinite",
    "infinite": "kInfinite",
    "number": "kNumber",
    "notanumber": "kNotANumber",
    "normal": "kNormal",
    "subnormal": "kSubnormal",
}


@opcode("testp")
def _testp(parts: Parts, scope: Scope) -> str:
    type_name = parts.type(FLOATS)
    kind = _CLASSES[parts.choice(_CLASSES)]
    return call(parts, "testp", [CPP_TYPES[type_name], f"ptx::Class::{kind}"], type_name, 1)


# Conversions

_TO_INTEGER = {"rni": "kNearest", "rzi": "kZero", "rmi": "kDown", "rpi": "kUp"}
_CVT_TYPES = (*INTEGERS, "u8", "s8", "f16", "bf16", *FLOATS, "b8", *RAW)


@opcode("cvt")
def _cvt(parts: Parts, scope: Scope) -> str:
    source = parts.type(_CVT_TYPES)
    if parts.modifiers and parts.modifiers[-1] in ("f16x2", "bf16x2"):
        half = CPP_TYPES[parts.modifiers.pop()[:-2]]
        if source != "f32":
            raise parts.instruction.error("pairs are converted from f32 only")
        return call(parts, "cvt_pair", [half, parts.rounding()], source, 2)
    result_type = parts.type(_CVT_TYPES)
    to_integer = _TO_INTEGER.get(parts.choice((*_TO_INTEGER, "none"), "none"), "kNone")
    rounding = parts.rounding()
    saturates = str(parts.flag("sat")).lower()
    if "f" in source and "f" not in result_type and to_integer == "kNone":
        raise parts.instruction.error("a float becomes an integer only by .rni, .rzi, .rmi or .rpi")
    types = [CPP_TYPES[result_type], CPP_TYPES[source], f"ptx::ToInteger::{to_integer}", rounding, saturates]
    return call(parts, "cvt", types, source, 1)


# Bits

_LOGIC = {"and": ("&", "&&"), "or": ("|", "||"), "xor": ("^", "!=")}


@opcode(*_LOGIC)
def _logic(parts: Parts, scope: Scope) -> str:
    type_name = parts.type((*RAW, "pred"))
    result, a, b = parts.operands(3)
    sign = _LOGIC[parts.name][type_name == "pred"]
    return parts.write(result, f"{parts.read(a, type_name)} {sign} {parts.read(b, type_name)}")


@opcode("not", "cnot")
def _not(parts: Parts, scope: Scope) -> str:
    type_name = parts.type((*RAW, "pred") if parts.name == "not" else RAW)
    result, a = parts.operands(2)
    if parts.name == "cnot":
        return parts.write(result, f"{parts.read(a, type_name)} == 0 ? 1 : 0")
    return parts.write(result, f"{'!' if type_name == 'pred' else '~'}{parts.read(a, type_name)}")


@opcode("shl", "shr")
def _shift(parts: Parts, scope: Scope) -> str:
    type_name = parts.type(RAW if parts.name == "shl" else (*RAW, *INTEGERS))
    result, a, amount = parts.operands(3)
    shifted = f"{parts.read(a, type_name)}, {parts.read(amount, 'u32')}"
    return parts.write(result, f"ptx::{parts.name}<{CPP_TYPES[type_name]}>({shifted})")


@opcode("shf")
def _shf(parts: Parts, scope: Scope) -> str:
    type_name = parts.type(("b32",))
    is_left = str(parts.choice(("l", "r")) == "l").lower()
    clamps = str(parts.choice(("wrap", "clamp")) == "clamp").lower()
    return call(parts, "shf", [is_left, clamps], type_name, 3)


@opcode("bfe")
def _bfe(parts: Parts, scope: Scope) -> str:
    type_name = parts.type(("u32", "s32", "u64", "s64"))
    result, a, start, length = parts.operands(4)
    inputs = f"{parts.read(a, type_name)}, {parts.read(start, 'u32')}, {parts.read(length, 'u32')}"
    return parts.write(result, f"ptx::bfe<{CPP_TYPES[type_name]}>({inputs})")


@opcode("bfi")
def _bfi(parts: Parts, scope: Scope) -> str:
    type_name = parts.type(("b32", "b64"))
    result, field, into, start, length = parts.operands(5)
    values = f"{parts.read(field, type_name)}, {parts.read(into, type_name)}"
    inputs = f"{values}, {parts.read(start, 'u32')}, {parts.read(length, 'u32')}"
    return parts.write(result, f"ptx::bfi<{CPP_TYPES[type_name]}>({inputs})")


@opcode("bfind")
def _bfind(parts: Parts, scope: Scope) -> str:
    type_name = parts.type(("u32", "s32", "u64", "s64"))
    shifts = str(parts.flag("shiftamt")).lower()
    return call(parts, "bfind", [CPP_TYPES[type_name], shifts], type_name, 1)


@opcode("prmt", "lop3")
def _prmt(parts: Parts, scope: Scope) -> str:
    type_name = parts.type(("b32",))
    result, *inputs = parts.operands(4 if parts.name == "prmt" else 5)
    arguments = ", ".join(parts.read(operand, type_name) for operand in inputs)
    return parts.write(result, f"ptx::{parts.name}({arguments})")


@opcode("dp4a")
def _dp4a(parts: Parts, scope: Scope) -> str:
    b_type = parts.type(("u32", "s32"))
    a_type = parts.type(("u32", "s32"))
    bytes_of = {"u32": "uint8_t", "s32": "int8_t"}
    return call(parts, "dp4a", [bytes_of[a_type], bytes_of[b_type]], "b32", 3)
