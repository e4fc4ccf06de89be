"""Kernels of users on a machine without a GPU: what needs no GPU works, and the rest says why there is none."""

from __future__ import annotations

from collections.abc import Callable

import hybridnet as mx
import pytest
from hybridnet.cuda._kernel_text import parameter_from, parameters_of
from hybridnet.errors import UnsupportedError

CODE = """extern "C" __global__ void __launch_bounds__(256) f(const float* __restrict__ x, /* in, out */ float *y,
                                                               unsigned int n, std::int64_t) {}"""


@pytest.mark.skipif(mx.num_gpus() > 0, reason="the machine has a GPU")
@pytest.mark.parametrize(
    "use",
    [
        lambda: mx.rtc.CudaModule(CODE),
        lambda: mx.cuda.RawKernel(CODE, "f").compile(),
        lambda: mx.cuda.RawKernel(CODE, "f")((1,), (1,), (mx.nd.ones((1,)), mx.nd.ones((1,)), 1, 1)),
    ],
)
def test_a_missing_gpu_is_named_with_the_reason(use: Callable[[], object]) -> None:
    with pytest.raises(UnsupportedError, match=r"no device gpu\(0\)(.|\n)*Because: (.|\n)*Fix: "):
        use()


def test_declarations_are_read_from_the_text() -> None:
    found = parameters_of(CODE, "f")
    assert found is not None
    assert [(p.name, p.dtype, p.is_array, p.is_const) for p in found] == [
        ("x", "float32", True, True),
        ("y", "float32", True, False),
        ("n", "uint32", False, False),
        ("", "int64", False, False),
    ]
    assert parameters_of(CODE, "g") is None
    assert parameters_of("__global__ void f() {}", "f") == []


@pytest.mark.parametrize(
    ("text", "dtype", "is_const"),
    [
        ("float const * x", "float32", True),
        ("double x[]", "float64", False),
        ("char* const x", "int8", False),
        ("const float4* x", None, True),
        ("const float** x", None, False),
    ],
)
def test_arrays_are_const_only_if_their_elements_are(text: str, dtype: str | None, is_const: bool) -> None:
    found = parameter_from(text)
    assert (found.dtype, found.is_array, found.is_const) == (dtype, True, is_const)
