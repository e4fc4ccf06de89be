"""The translation of PTX (the package ptx) does what the ISA says: rounding, NaN, saturation, shifts, waiting threads.

Expected values come from exact fractions and from NumPy, never from the translation. test_ptx_bits.py runs kernels.
"""

from __future__ import annotations

import ctypes
import math
from fractions import Fraction

import numpy as np
import pytest
from ptx import KernelFault, PtxError, PtxProgram, unavailable, write_cpp

pytestmark = pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "-")

REGISTERS = {16: "%h", 32: "%r", 64: "%d"}
FORMATS = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127), "f64": (53, -1022, 1023)}
FLOATS = {"f32": np.float32, "f64": np.float64}
NAN32 = 0x7FFFFFFF


class Arguments(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("a", "b", "c", "out")]


def entry_text(name: str, body: str, in_bits: int, out_bits: int) -> str:
    """An entry that loads a, b and c of its thread, runs a body, and stores d."""
    inputs = {each: f"{REGISTERS[in_bits]}{index + 1}" for index, each in enumerate("abc")}
    result = f"{REGISTERS[out_bits]}9"
    for word, register in {**inputs, "d": result}.items():
        body = body.replace(f"${word}", register)
    loads = "\n".join(
        f"ld.param.u64 %x2, [p+{8 * i}]; mad.wide.u32 %x3, %t1, {in_bits // 8}, %x2; "
        f"ld.global.b{in_bits} {register}, [%x3];"
        for i, register in enumerate(inputs.values())
    )
    return f"""
.visible .entry {name}(.param .align 8 .b8 p[32])
{{
  .reg .b16 %h<10>; .reg .b32 %r<10>; .reg .b64 %d<10>; .reg .b64 %x<9>; .reg .b32 %t<9>; .reg .pred %p<9>;
  mov.u32 %t1, %tid.x;
  {loads}
  {body}
  ld.param.u64 %x2, [p+24]; mad.wide.u32 %x3, %t1, {out_bits // 8}, %x2; st.global.b{out_bits} [%x3], {result};
  ret;
}}
"""


HEADER = ".version 9.0\n.target sm_80\n.address_size 64\n"


def run(body: str, inputs: list[np.ndarray], out_bits: int) -> np.ndarray:
    """The bits that a body gives for rows of inputs."""
    columns = [np.ascontiguousarray(each) for each in (inputs * 3)[: max(3, len(inputs))]]
    columns[: len(inputs)] = [np.ascontiguousarray(each) for each in inputs]
    text = HEADER + entry_text("k", body, 8 * columns[0].itemsize, out_bits)
    out = np.zeros(columns[0].size, f"u{out_bits // 8}")
    pointers = [each.ctypes.data for each in columns[:3]]
    PtxProgram(text).launch("k", Arguments(*pointers, out.ctypes.data), (1,), (columns[0].size,))
    return out


def rounded(exact: Fraction, form: str, mode: str) -> int:
    """The bits of a positive or negative fraction in a format: the definition of IEEE 754, in exact arithmetic."""
    precision, least, most = FORMATS[form]
    width = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}[form]
    negative, magnitude = exact < 0, abs(exact)
    exponent = least
    if magnitude:
        exponent = max(least, math.floor(math.log2(magnitude.numerator) - math.log2(magnitude.denominator)) - 1)
        while Fraction(2) ** (exponent + 1) <= magnitude:
            exponent += 1
    units = magnitude / Fraction(2) ** (exponent - precision + 1)
    whole = round_whole(units, mode, negative)
    bits = ((exponent - least) << (precision - 1)) + whole
    infinity = (most - least + 2) << (precision - 1)
    if bits >= infinity:
        away = mode == "rn" or mode == ("rm" if negative else "rp")
        bits = infinity if away else infinity - 1
    return bits | (int(negative) << (width - 1))


def round_whole(units: Fraction, mode: str, negative: bool) -> int:
    down = math.floor(units)
    if mode == "rn":
        return round(units)  # ties to even
    up_wanted = mode == ("rm" if negative else "rp")
    return down + 1 if up_wanted and units != down else down


def floats_of(form: str, rng: np.random.Generator, count: int = 100) -> np.ndarray:
    dtype = FLOATS[form]
    bits = rng.integers(0, 256, count * np.dtype(dtype).itemsize, dtype=np.uint8).view(dtype)
    mixed = np.concatenate([bits, (rng.normal(size=count) * 3).astype(dtype)])
    return mixed[np.isfinite(mixed)]


@pytest.mark.parametrize("form", ["f32", "f64"])
def test_arithmetic_rounds_as_the_modifier_says(form, rng):
    exact = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b}
    a = floats_of(form, rng)
    b, bits = rng.permutation(a), 8 * a.itemsize
    for name, function in exact.items():
        mode = {"add": "rm", "sub": "rp", "mul": "rz", "div": "rn"}[name]
        got = run(f"{name}.{mode}.{form} $d, $a, $b;", [a, b], bits)
        want = [rounded(function(Fraction(float(x)), Fraction(float(y))), form, mode) for x, y in zip(a, b)]
        assert [int(each) for each in got] == want, name


@pytest.mark.parametrize("form", ["f32", "f64"])
def test_fma_rounds_once(form, rng):
    a = floats_of(form, rng)
    b, c = rng.permutation(a), rng.permutation(a)
    got = run(f"fma.rn.{form} $d, $a, $b, $c;", [a, b, c], 8 * a.itemsize)
    values = ([Fraction(float(x)) for x in row] for row in zip(a, b, c))
    assert [int(each) for each in got] == [rounded(x * y + z, form, "rn") for x, y, z in values]


@pytest.mark.parametrize(
    ("target", "source", "mode"),
    [("f32", "f64", "rn"), ("f32", "f64", "rz"), ("f16", "f32", "rn"), ("bf16", "f32", "rn"), ("f16", "f64", "rn")],
)
def test_conversions_between_floats_round_once(target, source, mode, rng):
    limits = np.array([65504, 65519, 65520, 2**-14, 2**-24, 2**-25, 3 * 2**-26, 1 + 2**-11, 3e38], FLOATS[source])
    a = np.concatenate([limits, -limits, floats_of(source, rng)])
    bits = 32 if target == "f32" else 16
    got = run(f"cvt.{mode}.{target}.{source} $d, $a;", [a], bits)
    assert [int(x) for x in got] == [rounded(Fraction(float(x)), target, mode) | sign_of(x, bits) for x in a]


def sign_of(x: float, bits: int) -> int:
    return int(np.signbit(x)) << (bits - 1)


def test_every_half_widens_to_its_value():
    halves = np.arange(1 << 16, dtype=np.uint16)[:: 64 + 1]
    got = run("cvt.f32.f16 $d, $a;", [halves], 32).view(np.float32)
    np.testing.assert_array_equal(got, halves.view(np.float16).astype(np.float32))
    got = run("cvt.f32.bf16 $d, $a;", [halves], 32)
    assert all(int(x) == int(h) << 16 or np.isnan(x.view(np.float32)) for x, h in zip(got, halves))


@pytest.mark.parametrize(("mode", "whole"), [("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil)])
@pytest.mark.parametrize(("source", "target"), [("f32", "s32"), ("f32", "u8"), ("f64", "s64"), ("f64", "u32")])
def test_a_float_becomes_an_integer_with_saturation(mode, whole, source, target, rng):
    special = [0.5, 1.5, -0.5, 254.5, 255.5, 2**31, 2**63, -(2**63), 1e30, np.inf, -np.inf, np.nan]
    a = np.concatenate([np.array(special, FLOATS[source]), floats_of(source, rng)])
    width, signed = int(target[1:]), target[0] == "s"
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    nan = 0 if source == "f32" and width < 64 else 1 << (width - 1)
    clipped = np.clip(a.astype(np.float64), -1e30, 1e30)  # so that infinities are integers
    want = [nan if np.isnan(x) else min(max(int(whole(x)), low), high) for x in clipped]
    out_bits = max(width, 32)
    got = run(f"cvt.{mode}.{target}.{source} $d, $a;", [a], out_bits)
    assert [int(x) for x in got] == [x % (1 << out_bits) for x in want]


def test_nan_of_float32_has_the_bits_of_a_gpu():
    a = np.array([np.inf, 0, np.nan], np.float32)
    b = np.array([-np.inf, 0, 1], np.float32)
    assert run("add.rn.f32 $d, $a, $b;", [a, b], 32).tolist() == [NAN32, 0, NAN32]
    assert run("div.rn.f32 $d, $a, $b;", [a, b], 32).tolist() == [NAN32, NAN32, NAN32]
    assert run("sqrt.rn.f32 $d, $b;", [a, b], 32).tolist() == [NAN32, 0, 0x3F800000]


def test_min_and_max_skip_nan_and_order_zeros():
    a = np.array([np.nan, 1, np.nan, -0.0, 0.0, 3], np.float32)
    b = np.array([2, np.nan, np.nan, 0.0, -0.0, -4], np.float32)
    bits = [int(x) for x in np.array([2, 1, 0, -0.0, -0.0, -4], np.float32).view("u4")]
    assert run("min.f32 $d, $a, $b;", [a, b], 32).tolist() == [*bits[:2], NAN32, *bits[3:]]
    bits = [int(x) for x in np.array([2, 1, 0, 0.0, 0.0, 3], np.float32).view("u4")]
    assert run("max.f32 $d, $a, $b;", [a, b], 32).tolist() == [*bits[:2], NAN32, *bits[3:]]
    assert run("max.NaN.f32 $d, $a, $b;", [a, b], 32).tolist()[:3] == [NAN32] * 3


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_are_false_for_nan_and_the_unordered_ones_true(name):
    import operator

    a = np.array([1, 2, 3, np.nan, 1, -0.0], np.float64)
    b = np.array([2, 2, 1, 1, np.nan, 0.0], np.float64)
    holds = [getattr(operator, name)(x, y) for x, y in zip(a, b)]
    nan = np.isnan(a) | np.isnan(b)
    body = "setp.{}.f64 %p1, $a, $b; selp.u32 $d, 1, 0, %p1;"
    assert run(body.format(name), [a, b], 32).tolist() == [int(x and not n) for x, n in zip(holds, nan)]
    assert run(body.format(f"{name}u"), [a, b], 32).tolist() == [int(x or n) for x, n in zip(holds, nan)]


INTEGER_BODIES = {
    "mul.hi.u32 $d, $a, $b;": lambda a, b: a * b >> 32,
    "mul.hi.s32 $d, $a, $b;": lambda a, b: signed(a) * signed(b) >> 32,
    "div.s32 $d, $a, $b;": lambda a, b: quotient(signed(a), signed(b)),
    "rem.u32 $d, $a, $b;": lambda a, b: a % b if b else a,
    "shl.b32 $d, $a, $b;": lambda a, b: a << b if b < 32 else 0,
    "shr.s32 $d, $a, $b;": lambda a, b: signed(a) >> min(b, 31),
    "shf.l.wrap.b32 $d, $a, $b, 40;": lambda a, b: (b << 32 | a) >> 24,
    "shf.r.clamp.b32 $d, $a, $b, 40;": lambda a, b: b,
    "bfe.u32 $d, $a, 28, 8;": lambda a, b: a >> 28,
    "bfe.s32 $d, $a, 4, 8;": lambda a, b: ((a >> 4 & 255) ^ 128) - 128,
    "bfi.b32 $d, $a, $b, 8, 12;": lambda a, b: b & ~(4095 << 8) | (a & 4095) << 8,
    "prmt.b32 $d, $a, $b, 0x9750;": lambda a, b: a & 255 | b & 0xFF00 | b >> 24 << 16 | (a >> 15 & 1) * 0xFF000000,
    "lop3.b32 $d, $a, $b, $c, 0xCA;": lambda a, b: a & b | ~a & a,
    "popc.b32 $d, $a;": lambda a, b: bin(a).count("1"),
    "clz.b32 $d, $a;": lambda a, b: 32 - a.bit_length(),
    "brev.b32 $d, $a;": lambda a, b: int(f"{a:032b}"[::-1], 2),
    "bfind.u32 $d, $a;": lambda a, b: a.bit_length() - 1,
    "add.sat.s32 $d, $a, $b;": lambda a, b: max(min(signed(a) + signed(b), 2**31 - 1), -(2**31)),
    "abs.s32 $d, $a;": lambda a, b: abs(signed(a)),
    "cvt.s32.s8 $d, $a;": lambda a, b: ((a & 255) ^ 128) - 128,
    "cvt.sat.u8.s32 $d, $a;": lambda a, b: max(min(signed(a), 255), 0),
    "add.cc.u32 %t2, $a, $b; addc.u32 $d, 0, 0;": lambda a, b: a + b >> 32,
    "sub.cc.u32 %t2, $a, $b; subc.u32 $d, 0, 0;": lambda a, b: -int(a < b),
    "mad.lo.cc.u32 %t2, $a, $b, $a; madc.hi.u32 $d, $a, $b, 0;": lambda a, b: a * b + a >> 32,
    "mov.b64 %x4, {$a, $b}; mov.b64 {%t2, $d}, %x4;": lambda a, b: b,
    "{ .reg .b32 %t1; mov.u32 %t1, 5; add.u32 $d, $a, %t1; }": lambda a, b: a + 5,
}


def signed(x: int) -> int:
    return (x ^ 0x80000000) - 0x80000000


def quotient(a: int, b: int) -> int:
    """Toward zero; all bits for a division by zero."""
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def test_integers_and_bits(rng):
    special = [0, 1, 2, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x8000]
    a = np.array([x for x in special for _ in special] + rng.integers(0, 1 << 32, 100).tolist(), np.uint32)
    b = np.array(special * len(special) + rng.integers(0, 1 << 32, 100).tolist(), np.uint32)
    names = {body: f"k{index}" for index, body in enumerate(INTEGER_BODIES)}
    program = PtxProgram(HEADER + "".join(entry_text(name, body, 32, 32) for body, name in names.items()))
    for body, expected in INTEGER_BODIES.items():
        out = np.zeros_like(a)
        arguments = Arguments(a.ctypes.data, b.ctypes.data, a.ctypes.data, out.ctypes.data)
        program.launch(names[body], arguments, (1,), (a.size,))
        assert out.tolist() == [expected(int(x), int(y)) % (1 << 32) for x, y in zip(a, b)], body


@pytest.mark.parametrize(
    ("body", "opcode", "reason"),
    [
        ("frobnicate.f32 $d, $a;", "frobnicate.f32", "unknown opcode"),
        ("add.weird.s32 $d, $a, $b;", "add.weird.s32", "unknown modifier"),
        ("add.f16 $d, $a, $b;", "add.f16", "type"),
        ("add.s32 $d, $a;", "add.s32", "2 operands|3 operands"),
        ("ex2.approx.f32 $d, $a;", "ex2.approx.f32", "approximate"),
        ("add.ftz.f32 $d, $a, $b;", "add.ftz.f32", "flushing"),
        ("atom.global.add.f32 $d, [%x3], $a;", "atom.global.add.f32", "order of threads"),
        ("mov.u32 $d, %clock;", "mov.u32", "special register"),
    ],
)
def test_an_unknown_instruction_fails_with_its_opcode_and_line(body, opcode, reason):
    text = HEADER + entry_text("k", body, 32, 32)
    with pytest.raises(PtxError, match=reason) as caught:
        write_cpp(text)
    assert caught.value.opcode == opcode
    assert opcode in text.split("\n")[caught.value.line - 1]


def run_block(body: str, threads: int) -> np.ndarray:
    a = np.arange(threads, dtype=np.uint32)
    out = np.zeros_like(a)
    text = HEADER + entry_text("k", body, 32, 32).replace(".reg .b16", ".shared .align 4 .b8 room[256]; .reg .b16", 1)
    PtxProgram(text).launch("k", Arguments(*[a.ctypes.data] * 3, out.ctypes.data), (1,), (threads,))
    return out


def test_threads_read_what_others_wrote_before_a_barrier():
    body = """mov.u32 %t2, room; mad.lo.u32 %t3, %t1, 4, %t2; st.shared.u32 [%t3], $a; bar.sync 0;
              sub.u32 %t4, 63, %t1; mad.lo.u32 %t3, %t4, 4, %t2; ld.shared.u32 $d, [%t3];"""
    assert run_block(body, 64).tolist() == list(range(63, -1, -1))


def test_lanes_exchange_values_and_votes():
    lanes = np.arange(64)
    assert run_block("shfl.sync.bfly.b32 $d|%p1, $a, 5, 31, -1;", 64).tolist() == (lanes ^ 5).tolist()
    down = run_block("shfl.sync.down.b32 $d, $a, 3, 0x181f, -1;", 32)  # segments of 8 lanes
    assert down.tolist() == [x + 3 if x % 8 < 5 else x for x in range(32)]
    ballot = run_block("and.b32 %t2, $a, 1; setp.eq.u32 %p1, %t2, 1; vote.sync.ballot.b32 $d, %p1, -1;", 32)
    assert set(ballot.tolist()) == {0xAAAAAAAA}
    assert set(run_block("redux.sync.add.u32 $d, $a, -1;", 32).tolist()) == {31 * 16}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("ld.global.u32 $d, [%x3+2];", "not aligned"),
        ("mov.u32 %t2, room; ld.shared.u32 $d, [%t2+256];", "outside of shared memory"),
        ("setp.lt.u32 %p1, $a, 16; @%p1 bar.warp.sync -1; @!%p1 bar.sync 0; mov.u32 $d, 0;", "forever"),
        ("shfl.sync.down.b32 $d, $a, 8, 31, 0xff;", "does not take part"),
    ],
)
def test_a_kernel_that_fails_on_a_gpu_fails_here(body, message):
    with pytest.raises(KernelFault, match=message):
        run_block(body, 8 if "0xff" in body else 32)
