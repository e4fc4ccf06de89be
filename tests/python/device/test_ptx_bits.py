"""A kernel text computes the same bits compiled by NVRTC as compiled by g++ (DEVICES.md 1.2 and 7).

The texts of elementwise kernels, reductions, row kernels and products are compiled twice: by NVRTC to PTX, which is
translated to C++ (the package ptx), and by g++ as the stand-in driver does. NaN is equal to NaN: its payload is not
promised.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from ptx import HostProgram, PtxProgram, nvrtc, unavailable
from ptx.arguments import struct_of
from ptx.functors import entry_of, functors_of, map_text
from ptx.headers import kernel_headers

DTYPES = {"float": np.float32, "double": np.float64, "int32_t": np.int32, "int64_t": np.int64}
# Functors of libm, which has other bits on a GPU (docs/numerics.md).
LIBM = {
    "float": {"Erfinv", "Gamma", "Gammaln", "Polygamma", "Cbrt", "Rcbrt", "Power", "Hypot", "Arctan2"},
    "double": {"Erfinv", "Gamma", "Gammaln", "Polygamma", "Cbrt", "Rcbrt", "Power", "Hypot", "Arctan2"}
    | {"PowerOfFloats", "Erf", "Gelu", "GeluGrad"},  # the first is for float32; the others call erf of float64
}
# fmod and the way of tan for large numbers contain .approx instructions; fmod corrects the estimate to an exact result.
APPROXIMATE_INSIDE = {"Mod", "Tan"}
# Beyond this limit sin, cos and tan are libm's.
MOST_ANGLE = 39000


@pytest.fixture(autouse=True)
def _compilers() -> None:
    reason = nvrtc.available() or unavailable()
    if reason:
        pytest.skip(reason)


class Both:
    """One text, compiled both ways."""

    def __init__(self, text: str, allow_approximate: bool = False) -> None:
        self.ptx = PtxProgram(nvrtc.compile(text, kernel_headers()).ptx, allow_approximate)
        self.host = HostProgram(text)

    def check(self, entry, make_arguments, outputs, blocks, threads=(256,)) -> None:
        """Runs an entry both ways; make_arguments takes the outputs. Every element of them must agree."""
        results = []
        for program in (self.ptx, self.host):
            out = [np.full_like(output, 77) for output in outputs]
            program.launch(entry, make_arguments(*[each.ctypes.data for each in out]), blocks, threads)
            results.append(out)
        for by_ptx, by_host in zip(*results):
            assert_same_bits(entry, by_ptx, by_host)


def assert_same_bits(entry: str, by_ptx: np.ndarray, by_host: np.ndarray) -> None:
    differ = by_ptx.view(f"u{by_ptx.itemsize}") != by_host.view(f"u{by_ptx.itemsize}")
    if by_ptx.dtype.kind == "f":
        differ &= ~(np.isnan(by_ptx) & np.isnan(by_host))
    first = np.flatnonzero(differ)[:5]
    assert first.size == 0, f"{entry}: {differ.sum()} differ; at {first}: PTX {by_ptx[first]}, g++ {by_host[first]}"


def special_values(dtype: type) -> np.ndarray:
    if np.dtype(dtype).kind == "i":
        limits = np.iinfo(dtype)
        return np.array([0, 1, -1, 2, -2, 7, limits.min, limits.min + 1, limits.max, limits.max - 1], dtype)
    limits = np.finfo(dtype)
    small = [0, limits.smallest_subnormal, limits.tiny, limits.eps]
    positive = [*small, 0.5, 1, 1.5, 2, 88.7, 104, 710, 39000, limits.max]
    return np.array([*positive, *[-x for x in positive], np.inf, -np.inf, np.nan], dtype)


def inputs_of(dtype: type, arity: int, random: int, rng: np.random.Generator) -> list[np.ndarray]:
    """All combinations of special values, random bit patterns, and numbers of ordinary size."""
    special = np.array(list(itertools.product(special_values(dtype), repeat=min(arity, 2))), dtype).T
    size = np.dtype(dtype).itemsize
    columns = []
    for index in range(arity):
        bits = rng.integers(0, 256, random * size, dtype=np.uint8).view(dtype)
        ordinary = (rng.normal(size=random) * 4).astype(dtype)
        columns.append(np.ascontiguousarray(np.concatenate([special[index % len(special)], bits, ordinary])))
    return columns


def check_map(header, functors, elements, random: int, rng: np.random.Generator, allow_approximate=False) -> None:
    both = Both(map_text(header, functors, elements), allow_approximate)
    MapArguments = struct_of("map_arguments.h", "MapArguments")
    for functor, element in itertools.product(functors, elements):
        inputs = inputs_of(DTYPES[element], functor.arity, random, rng)
        if functor.name in ("Sin", "Cos", "Tan"):
            inputs = [np.where(np.abs(each) < MOST_ANGLE, each, each.dtype.type(1)) for each in inputs]
        n = inputs[0].size

        def arguments(out, inputs=inputs, n=n):
            pointers = [each.ctypes.data for each in inputs]
            scalars = (0.25, 1.5, 2.0, 0.5)
            return MapArguments(tuple(pointers), out, n, (1, 1, 1, 1), scalars)

        both.check(entry_of(functor, element), arguments, [np.empty(n, DTYPES[element])], (2,))


def named(header: str, *names: str):
    functors = [functor for functor in functors_of(header) if functor.name in names]
    assert len(functors) == len(names), f"{header}.h has no longer all of {names}"
    return functors


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("exponentials", ("Exp", "Log1p", "Tanh")),
        ("arithmetic", ("Add", "Div", "Maximum")),
        ("simple", ("Floor", "Round", "Rsqrt", "Sign", "Clip")),
    ],
)
def test_elementwise_functions_have_the_same_bits(header, names, rng):
    check_map(header, named(header, *names), ("float", "double"), 20000, rng)


def test_integer_division_has_the_same_bits(rng):
    check_map("arithmetic", named("arithmetic", "Div", "Mod", "Mul"), ("int32_t", "int64_t"), 20000, rng)


def test_the_remainder_is_exact_although_it_begins_with_an_estimate(rng):
    check_map("arithmetic", named("arithmetic", "Mod"), ("float", "double"), 20000, rng, allow_approximate=True)


REDUCE = """
#include "kernels/device/reduce.cuh"
HN_BLOCK_KERNEL(rows, hybridnet::device::ReduceArguments) {
  HN_SHARED(double, room, 256);
  hybridnet::device::reduce_rows<hybridnet::device::SumStep, float, float>(a, room);
}
HN_KERNEL(columns, hybridnet::device::ReduceArguments) {
  hybridnet::device::reduce_columns<hybridnet::device::SumStep, float, float, true>(a);
}
"""


def test_sums_of_rows_and_columns_have_the_same_bits(rng):
    both = Both(REDUCE)
    ReduceArguments = struct_of("reduce_arguments.h", "ReduceArguments")
    x = (rng.normal(size=(24, 500)) * 1000).astype(np.float32)
    x[3, 7], x[4, 8] = np.inf, np.nan

    def arguments(out, outer, reduced, inner, part_rows):
        layout = {"outer": outer, "reduced": reduced, "inner": inner, "parts": 1, "part_rows": part_rows, "group": 1}
        return ReduceArguments(**{"in": x.ctypes.data}, out=out, divisor=reduced, **layout)

    both.check("rows", lambda out: arguments(out, 24, 500, 1, 1024), [np.empty(24, np.float32)], (2,))
    both.check("columns", lambda out: arguments(out, 1, 24, 500, 24), [np.empty(500, np.float32)], (1,))


SOFTMAX = """
#include "kernels/device/softmax.cuh"
HN_BLOCK_KERNEL(softmax, hybridnet::device::SoftmaxArguments) {
  HN_SHARED(double, room, 256);
  hybridnet::device::softmax<float, 32>(a, room);
}
"""


@pytest.mark.parametrize("log", [0, 1])
def test_softmax_has_the_same_bits(log, rng):
    SoftmaxArguments = struct_of("norm_arguments.h", "SoftmaxArguments")
    x = (rng.normal(size=(21, 77)) * 10).astype(np.float32)
    x[2, 5], x[3], x[4, 6] = -np.inf, -np.inf, np.nan
    both = Both(SOFTMAX)

    def arguments(out):
        return SoftmaxArguments(x=x.ctypes.data, out=out, rows=21, length=77, inner=1, scale=0.7, log=log)

    both.check("softmax", arguments, [np.empty_like(x)], (2,))


PRODUCT = """
#include "kernels/device/product.cuh"
HN_BLOCK_KERNEL(product, hybridnet::device::ProductArguments) {
  HN_SHARED(float, room, hybridnet::device::kProductRoom);
  hybridnet::device::product<float>(a, room);
}
"""


def test_a_product_of_matrices_has_the_same_bits(rng):
    ProductArguments = struct_of("product_arguments.h", "ProductArguments")
    m, n, k = 100, 70, 45
    a, b = rng.normal(size=(m, k)).astype(np.float32), rng.normal(size=(k, n)).astype(np.float32)

    def arguments(c):
        strides = {"a_row": k, "a_column": 1, "b_row": n, "b_column": 1, "c_row": n}
        tiles = {"tiles_down": 2, "tiles_across": 2, "batch": 1}
        sizes = {"m": m, "n": n, "k": k, "alpha": 1.0, "beta": 0.5}
        return ProductArguments(a=a.ctypes.data, b=b.ctypes.data, c=c, **strides, **tiles, **sizes)

    Both(PRODUCT).check("product", arguments, [np.empty((m, n), np.float32)], (4,))


FLOAT = ["exponentials", "arithmetic", "simple", "comparisons", "activations", "special", "trigonometry"]
DOUBLE = ["exponentials", "arithmetic", "special", "trigonometry"]  # the others have the same operations in both


@pytest.mark.parametrize(
    ("header", "element"), [*((header, "float") for header in FLOAT), *((header, "double") for header in DOUBLE)]
)
def test_every_function_has_the_same_bits(header, element, rng):
    functors = [functor for functor in functors_of(header) if functor.name not in LIBM[element]]
    exact = [functor for functor in functors if functor.name not in APPROXIMATE_INSIDE]
    check_map(header, exact, (element,), 100000, rng)
    others = [functor for functor in functors if functor.name in APPROXIMATE_INSIDE]
    if others:
        check_map(header, others, (element,), 100000, rng, allow_approximate=True)


def test_every_function_of_integers_has_the_same_bits(rng):
    check_map("integers", functors_of("integers"), ("int32_t", "int64_t"), 50000, rng)
    check_map("arithmetic", functors_of("arithmetic"), ("int32_t", "int64_t"), 50000, rng)
