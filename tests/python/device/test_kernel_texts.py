"""The texts of elementwise kernels: NVRTC compiles each of them to IEEE instructions without spills; g++ compiles them
to the bits of the library's loops."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import hybridnet as mx
import numpy as np
import pytest
from kernel_texts import merged
from ptx import nvrtc
from ptx.headers import kernel_headers, write_for_gxx

pytestmark = pytest.mark.skipif(
    not hasattr(mx._core, "elementwise_kernel_texts"), reason="this build has no kernels for devices"
)
needs_nvrtc = pytest.mark.skipif(bool(nvrtc.available()), reason=nvrtc.available() or "NVRTC is there")

# Functions that call NVIDIA's library: 4 ulp are allowed, and its estimates. fmod corrects its estimates.
LIBRARY_FUNCTIONS = {
    *("Sin", "Cos", "Tan"),  # beyond 39000
    *("Erfinv", "Gamma", "Gammaln", "Polygamma", "Cbrt", "Rcbrt", "Arctan2", "Hypot", "Mod"),
}
LIBRARY_FUNCTIONS_OF_DOUBLE = {"Erf", "Gelu", "GeluGrad", "Power"}
KERNELS_OF_A_MODULE = 40


def function_of(text: str) -> tuple[str, str]:
    """The functor of a text, and the type in which it computes; empty for kernels without a functor."""
    found = re.search(r"Map<(\w+)[^,]*, [\w:]+, (\w+),", text)
    return (found[1], found[2]) if found else ("", "")


def is_exact(text: str) -> bool:
    functor, computed = function_of(text)
    return functor not in LIBRARY_FUNCTIONS and not (computed == "double" and functor in LIBRARY_FUNCTIONS_OF_DOUBLE)


def modules(texts: list[str]) -> Iterator[list[str]]:
    for first in range(0, len(texts), KERNELS_OF_A_MODULE):
        yield texts[first : first + KERNELS_OF_A_MODULE]


def chosen_texts() -> list[str]:
    """Each function of arrays of float32 and float64, and one of 24 of all other dtypes and forms."""
    texts = mx._core.elementwise_kernel_texts()
    plain = [t for t in texts if re.search(r"Map<[^,]+, (float|double), \1, \1,", t) and "HN_KERNEL(map," in t]
    rest = sorted(set(texts) - set(plain))
    return plain + rest[::24]


def kernels_with(pattern: str, ptx: str, texts: list[str]) -> list[str]:
    """The texts of a merged module whose PTX holds an instruction or a declaration."""
    parts = re.split(r"\.entry \w+_(\d+)\(", ptx)
    return [texts[int(number)] for number, body in zip(parts[1::2], parts[2::2]) if re.search(pattern, body)]


def check(texts: list[str], architecture: str) -> None:
    """Compiles texts; checks the instructions of the exact ones, and that no kernel spills registers."""
    headers = mx._core.kernel_headers()
    options = (*nvrtc.EXACT_OPTIONS, "--ptxas-options=-v")
    for exact in (True, False):
        for part in modules([text for text in texts if is_exact(text) == exact]):
            compiled = nvrtc.compile(merged(part), headers, architecture, options)
            if exact:  # nor local memory: arrays that are not in registers
                assert kernels_with(r"\.approx|\.ftz|\.local", compiled.ptx, part) == []
                assert ".approx" not in compiled.ptx
            spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", compiled.log)
            # Calls, as of the rare path of an exact division, save a register or two.
            assert max(int(bytes_) for pair in spills for bytes_ in pair) <= 16, compiled.log


@needs_nvrtc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_functions_compile_to_ieee_instructions_without_spills(architecture):
    check(chosen_texts(), architecture)


@needs_nvrtc
@pytest.mark.parametrize(("first", "architecture"), [(0, "sm_80"), (4, "sm_90")])
def test_forms_and_dtypes_compile_to_ieee_instructions_without_spills(first, architecture):
    """A quarter of all texts, an eighth for each architecture: all take minutes."""
    check(mx._core.elementwise_kernel_texts()[first::8], architecture)


@needs_nvrtc
def test_a_text_compiles_alone():
    text = next(t for t in mx._core.elementwise_kernel_texts() if function_of(t) == ("Exp", "float"))
    assert ".entry map(" in nvrtc.compile(text, mx._core.kernel_headers()).ptx


def test_the_library_has_the_headers_of_the_tree():
    for name, text in kernel_headers().items():
        assert mx._core.kernel_headers()[name] == text, name


# ---- bits

FUNCTIONS = {
    "Exp": mx.nd.exp,
    "Log": mx.nd.log,
    "Tanh": mx.nd.tanh,
    "Sigmoid": mx.nd.sigmoid,
    "Expm1": mx.nd.expm1,
    "Log1p": mx.nd.log1p,
    "Gelu": lambda x: mx.nd.LeakyReLU(x, act_type="gelu"),
    "Softrelu": lambda x: mx.nd.Activation(x, act_type="softrelu"),
    "Erf": mx.nd.erf,
}
HOST_TEXT = """
#include "kernels/functors/activations.h"
#include "kernels/functors/exponentials.h"
#include "kernels/functors/special.h"
using namespace hybridnet::kernels::HWY_NAMESPACE;
template <class F, class T>
void run(const T* in, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = F()(hwy::HWY_NAMESPACE::ScalableTag<T>(), in[i]);
}
"""
HOST_FLAGS = ("-std=c++17", "-O2", "-mavx2", "-mfma", "-ffp-contract=off", "-shared", "-fPIC")


def has_fma() -> bool:
    try:
        flags = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        return False
    return {"avx2", "fma"} <= flags


@pytest.fixture(scope="module")
def host_functions(tmp_path_factory):
    """The functors, compiled by g++ as kernels see them: with one lane."""
    if shutil.which("g++") is None or not has_fma():
        pytest.skip("needs g++ and a CPU with AVX2 and FMA")
    folder = tmp_path_factory.mktemp("one_lane")
    write_for_gxx(folder)
    entries = [
        f'extern "C" void {name}_{type}(const {type}* in, {type}* out, int64_t n) {{ run<{name}>(in, out, n); }}'
        for name in FUNCTIONS
        for type in ("float", "double")
    ]
    source, library = folder / "functions.cc", folder / "functions.so"
    source.write_text(HOST_TEXT + "\n".join(entries))
    subprocess.run(["g++", *HOST_FLAGS, f"-I{folder}", str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def inputs_of(dtype: str, rng: np.random.Generator) -> np.ndarray:
    """Special values and random bits."""
    bits = np.dtype(dtype).itemsize * 8
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.45, 88.7, -104.0, 709.8, -746.0, 20.0, -20.0]
    limits = np.finfo(dtype)
    special += [limits.max, limits.min, limits.tiny, -limits.tiny, limits.smallest_subnormal, limits.eps]
    random = rng.integers(0, 1 << bits, 20000, dtype=f"uint{bits}", endpoint=False).view(dtype)
    usual = rng.normal(scale=5, size=20000)
    return np.concatenate([np.array(special, dtype), random, usual.astype(dtype)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_lane_gives_the_bits_of_the_loops(name, dtype, host_functions, rng):
    data = inputs_of(dtype, rng)
    expected = FUNCTIONS[name](mx.nd.array(data, dtype=dtype)).asnumpy()
    result = np.empty_like(data)
    pointer = {"float32": "float", "float64": "double"}[dtype]
    function = getattr(host_functions, f"{name}_{pointer}")
    function(data.ctypes.data_as(ctypes.c_void_p), result.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(len(data)))
    numbers = ~(np.isnan(expected) & np.isnan(result))  # NaN have no bits that count
    integer = f"uint{np.dtype(dtype).itemsize * 8}"
    different = np.flatnonzero((expected.view(integer) != result.view(integer)) & numbers)
    assert different.size == 0, [(data[i], expected[i], result[i]) for i in different[:5]]
