"""Kernels of users: mx.cuda.RawKernel and mx.rtc, their values, their order among operators, and their errors."""

from __future__ import annotations

import os

os.environ["HNSTANDIN_DEVICES"] = "2"  # read at the first use of a GPU

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
import stand_in
from hybridnet import autograd
from hybridnet.errors import DTypeError, GradientError, ParamError, TraceError
from hybridnet.errors import TypeError as HybridNetTypeError
from hybridnet.errors import ValueError as HybridNetValueError

GPU = mx.gpu(0)
VALUES = np.arange(1000, dtype="float32")
SCALE = r"""
#include <cstdint>
extern "C" __global__ void scale(const float* x, float* y, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}
"""
DTYPES = {
    "float32": "float",
    "float64": "double",
    "uint8": "uint8_t",
    "int8": "int8_t",
    "int32": "int",
    "int64": "int64_t",
}


def scale(x: mx.nd.NDArray, factor: float = 2.0, n: Any = None) -> mx.nd.NDArray:
    y = mx.nd.zeros(x.shape, ctx=x.context)
    mx.cuda.RawKernel(SCALE, "scale")((4,), (256,), (x, y, factor, x.size if n is None else n))
    return y


def on_gpu(values: np.ndarray = VALUES) -> mx.nd.NDArray:
    return mx.nd.array(values, dtype=values.dtype, ctx=GPU)


# ------------------------------------------------------------------------------------------------------------- values
def test_a_raw_kernel_computes_what_its_text_says() -> None:
    np.testing.assert_array_equal(scale(on_gpu()).asnumpy(), 2 * VALUES)


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_dtype_has_its_type_of_c(dtype: str) -> None:
    code = SCALE.replace("float*", f"{DTYPES[dtype]}*")
    values = np.arange(100).astype(dtype)
    results = []
    x, y = on_gpu(values), mx.nd.zeros((100,), dtype=dtype, ctx=GPU)
    mx.cuda.RawKernel(code, "scale")((1,), (128,), (x, y, np.float32(3), np.int32(100)))
    results.append(y.asnumpy())
    z = mx.nd.zeros((100,), dtype=dtype, ctx=GPU)
    kernel = mx.rtc.CudaModule(code).get_kernel("scale", f"const {DTYPES[dtype]} *x, {DTYPES[dtype]} *, float, int")
    kernel.launch([x, z, 3.0, 100], GPU, (1, 1, 1), (128, 1, 1))
    results.append(z.asnumpy())
    for result in results:
        np.testing.assert_array_equal(result, (3 * values.astype("float64")).astype(dtype))


def test_numbers_of_python_take_the_declared_types() -> None:
    code = """extern "C" __global__ void numbers(double* out, bool flag, unsigned char small, long large, double x) {
      out[0] = flag; out[1] = small; out[2] = (double)large; out[3] = x;
    }"""
    out = mx.nd.zeros((4,), dtype="float64", ctx=GPU)
    mx.cuda.RawKernel(code, "numbers")((1,), (1,), (out, True, 200, -(2**40), 1))
    assert out.asnumpy().tolist() == [1, 200, -(2**40), 1]


def test_numbers_for_undeclared_types_are_int64_and_float64() -> None:
    code = """typedef long long Count; typedef double Real;
    extern "C" __global__ void set(double* out, Count n, Real x) { out[0] = n + x; }"""
    out = mx.nd.zeros((1,), dtype="float64", ctx=GPU)
    mx.cuda.RawKernel(code, "set")((1,), (1,), (out, 3, 0.5))
    assert out.asscalar() == 3.5


def test_threads_of_a_block_share_memory() -> None:
    code = """extern "C" __global__ void reverse(const float* x, float* y) {
      __shared__ float tile[64];
      extern __shared__ float more[];
      tile[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
      more[threadIdx.x] = 1;
      __syncthreads();
      y[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x] + more[63 - threadIdx.x];
    }"""
    values = np.arange(256, dtype="float32")
    y = mx.nd.zeros((256,), ctx=GPU)
    for shared_bytes in (64 * 4, 100 << 10):
        mx.cuda.RawKernel(code, "reverse")((4,), (64,), (on_gpu(values), y), shared_mem=shared_bytes)
        np.testing.assert_array_equal(y.asnumpy(), values.reshape(4, 64)[:, ::-1].ravel() + 1)


def test_grids_and_blocks_have_three_axes() -> None:
    code = """extern "C" __global__ void number(int* out) {
      const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
      const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
      const int i = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
      out[i] = i;
    }"""
    out = mx.nd.zeros((720,), dtype="int32", ctx=GPU)
    mx.cuda.RawKernel(code, "number")((2, 3, 4), (5, 3, 2), (out,))
    np.testing.assert_array_equal(out.asnumpy(), np.arange(720))


def test_options_and_exports_reach_the_compiler() -> None:
    code = """template <class T> __global__ void fill(T* out, T value) { out[threadIdx.x] = value * FACTOR; }"""
    module = mx.rtc.CudaModule(code, options=("-DFACTOR=3",), exports=["fill<float>", "fill<int>"])
    for type_name, dtype in (("float", "float32"), ("int", "int32")):
        out = mx.nd.zeros((8,), dtype=dtype, ctx=GPU)
        kernel = module.get_kernel(f"fill<{type_name}>", f"{type_name}* out, {type_name} value")
        kernel.launch((out, 5), GPU, (1, 1, 1), (8, 1, 1))
        np.testing.assert_array_equal(out.asnumpy(), np.full((8,), 15, dtype))


@pytest.mark.parametrize("grid", [(0,), (1,)])
def test_arrays_without_elements_are_passed(grid: tuple[int, ...]) -> None:
    x, y = mx.nd.zeros((0, 3), ctx=GPU), mx.nd.zeros((0, 3), ctx=GPU)
    mx.cuda.RawKernel(SCALE, "scale")(grid, (32,), (x, y, 2.0, 0))
    assert y.asnumpy().shape == (0, 3)


def test_views_are_written_in_place() -> None:
    base = on_gpu()
    part = base[100:200]
    mx.cuda.RawKernel(SCALE, "scale")((1,), (128,), (base[300:400], part, 10.0, 100))
    expected = VALUES.copy()
    expected[100:200] = 10 * VALUES[300:400]
    np.testing.assert_array_equal(base.asnumpy(), expected)
    np.testing.assert_array_equal(part.asnumpy(), expected[100:200])


def test_arrays_of_the_numpy_interface_are_taken() -> None:
    x = mx.np.array(VALUES, ctx=GPU)
    y = mx.np.zeros_like(x)
    mx.cuda.RawKernel(SCALE, "scale")((4,), (256,), (x, y, 2.0, 1000))
    np.testing.assert_array_equal(y.asnumpy(), 2 * VALUES)


def test_one_kernel_serves_two_devices() -> None:
    for ctx in (mx.gpu(0), mx.gpu(1)):
        result = scale(mx.nd.array(VALUES, ctx=ctx))
        assert result.context == ctx
        np.testing.assert_array_equal(result.asnumpy(), 2 * VALUES)


# -------------------------------------------------------------------------------------------------------------- order
def test_a_kernel_runs_between_the_operators_around_it() -> None:
    kernel = mx.cuda.RawKernel(SCALE, "scale")
    for number in range(60):
        stand_in.seed(number)
        x = mx.nd.array(VALUES, ctx=mx.cpu()).as_in_context(GPU) + 1  # a copy and an operator come before
        y = mx.nd.zeros((1000,), ctx=GPU)
        kernel((4,), (256,), (x, y, 2.0, 1000))
        x[:] = -1  # must wait until the kernel has read
        z = y * 3  # must wait until the kernel has written
        kernel((4,), (256,), (z, y, 1.0, 1000))
        np.testing.assert_array_equal(z.asnumpy(), 6 * (VALUES + 1))
        np.testing.assert_array_equal(y.asnumpy(), 6 * (VALUES + 1))


def test_an_argument_that_is_read_and_written_is_written() -> None:
    code = SCALE.replace("const float* x", "float* x")
    for number in range(20):
        stand_in.seed(number)
        x = on_gpu()
        mx.cuda.RawKernel(code, "scale")((4,), (256,), (x, x, 2.0, 1000))
        mx.cuda.RawKernel(code, "scale")((4,), (256,), (x, x, 2.0, 1000))
        np.testing.assert_array_equal(x.asnumpy(), 4 * VALUES)


def test_a_kernel_is_the_forward_of_a_function_with_a_gradient() -> None:
    class Doubles(autograd.Function):
        def forward(self, x: mx.nd.NDArray) -> mx.nd.NDArray:
            return scale(x)

        def backward(self, gradient: mx.nd.NDArray) -> mx.nd.NDArray:
            return scale(gradient)

    x = on_gpu()
    x.attach_grad()
    with autograd.record():
        y = (Doubles()(x) * 3).sum()
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), np.full((1000,), 6, "float32"))


def test_an_error_of_the_driver_comes_with_a_named_error() -> None:
    x, y = on_gpu(), mx.nd.zeros((1000,), ctx=GPU)
    mx.nd.waitall()
    kernel = mx.cuda.RawKernel(SCALE, "scale")
    kernel.compile(GPU)
    stand_in.fail("cuLaunchKernel:1")
    try:
        with pytest.raises(mx.MXNetError, match="kernel 'scale'"):
            kernel((4,), (256,), (x, y, 2.0, 1000))
            y.asnumpy()
    finally:
        stand_in.fail("")
    np.testing.assert_array_equal(scale(x).asnumpy(), 2 * VALUES)


# ------------------------------------------------------------------------------------------------------------- errors
def call(
    *args: Any, code: str = SCALE, name: str = "scale", grid: Any = (4,), block: Any = (256,), **more: Any
) -> None:
    mx.cuda.RawKernel(code, name)(grid, block, args, **more)


def launch(*args: Any, ctx: Any = GPU, signature: str = "const float *x, float *y, float a, int n") -> None:
    mx.rtc.CudaModule(SCALE).get_kernel("scale", signature).launch(args, ctx, (4, 1, 1), (256, 1, 1))


@pytest.mark.parametrize("use", [call, launch])
def test_wrong_arguments_are_named(use: Any) -> None:
    x, y = on_gpu(), on_gpu()
    with pytest.raises(HybridNetValueError, match=r"kernel 'scale': expected 4 arguments, got 3(.|\n)*float\s*\*\s*x"):
        use(x, y, 2.0)
    with pytest.raises(DTypeError, match=r"argument 2: expected an array of dtype float32(.|\n)*got float64"):
        use(x, y.astype("float64"), 2.0, 1000)
    with pytest.raises(
        HybridNetValueError, match=r"argument 1: expected an array on gpu\(0\), got an array on cpu\(0\)"
    ):
        use(x.as_in_context(mx.cpu()), y, 2.0, 1000)
    with pytest.raises(
        HybridNetValueError, match=r"argument 2: expected an array on gpu\(0\), got an array on gpu\(1\)"
    ):
        use(x, y.as_in_context(mx.gpu(1)), 2.0, 1000)
    with pytest.raises(HybridNetTypeError, match=r"argument 1: expected an NDArray(.|\n)*ndarray(.|\n)*mx.nd.array"):
        use(VALUES, y, 2.0, 1000)
    with pytest.raises(HybridNetTypeError, match=r"argument 3: expected a number for 'float \w+', got an NDArray"):
        use(x, y, y, 1000)
    with pytest.raises(HybridNetTypeError, match=r"argument 1: expected an NDArray"):
        use(1, y, 2.0, 1000)
    with pytest.raises(DTypeError, match=r"argument 4(.|\n)*int32(.|\n)*2.5"):
        use(x, y, 2.0, 2.5)
    with pytest.raises(HybridNetValueError, match=r"argument 4(.|\n)*int32"):
        use(x, y, 2.0, 2**31)
    with pytest.raises(DTypeError, match=r"argument 3(.|\n)*float32(.|\n)*float64"):
        use(x, y, np.float64(2), 1000)


def test_sparse_arrays_are_an_error() -> None:
    with pytest.raises(HybridNetValueError, match=r"expected a dense array(.|\n)*tostype"):
        call(mx.nd.zeros((4, 3)).tostype("csr"), on_gpu(), 2.0, 12)


def test_arguments_that_the_text_does_not_show_are_checked_by_size() -> None:
    code = """typedef int Count; extern "C" __global__ void fill(float* out, Count n) { out[0] = n; }"""
    kernel, out = mx.cuda.RawKernel(code, "fill"), mx.nd.zeros((1,), ctx=GPU)
    with pytest.raises(HybridNetValueError, match=r"argument 2: expected 4 bytes(.|\n)*8 bytes(.|\n)*numpy.float32"):
        kernel((1,), (1,), (out, 7))
    kernel((1,), (1,), (out, np.int32(7)))
    assert out.asscalar() == 7


def test_text_that_does_not_compile_is_shown_with_its_line() -> None:
    code = SCALE.replace("factor * x[i]", "missing(x[i])")
    for use in (lambda: call(on_gpu(), on_gpu(), 2.0, 1, code=code), lambda: mx.rtc.CudaModule(code)):
        with pytest.raises(HybridNetValueError, match=r"does not compile(.|\n)*line 5: if \(i < n\)(.|\n)*missing"):
            use()


def test_unknown_names_list_the_kernels_of_the_text() -> None:
    with pytest.raises(HybridNetValueError, match=r"no kernel 'other'(.|\n)*declares scale"):
        call(on_gpu(), name="other")
    with pytest.raises(HybridNetValueError, match=r"no kernel 'other'(.|\n)*declares scale"):
        mx.rtc.CudaModule(SCALE).get_kernel("other", "float *x")
    with pytest.raises(HybridNetValueError, match=r'no kernel(.|\n)*extern "C"'):
        call(on_gpu(), code="__global__ void f(float* x) {}", name="f")
    with pytest.raises(HybridNetValueError, match="declares no kernel"):
        mx.cuda.RawKernel("int x;", "f").compile(GPU)


@pytest.mark.parametrize("signature", ["vector *x", "float **x", "float x[]", "const"])
def test_signatures_of_other_forms_are_an_error(signature: str) -> None:
    with pytest.raises(HybridNetValueError, match=r"signature: expected(.|\n)*int64_t"):
        mx.rtc.CudaModule(SCALE).get_kernel("scale", signature)


def test_sizes_that_no_gpu_has_are_an_error() -> None:
    arguments = (on_gpu(), on_gpu(), 2.0, 1000)
    for sizes in ({"block": (1025,)}, {"block": (0,)}, {"block": (32, 33)}, {"block": (1, 1, 65)}):
        with pytest.raises(ParamError, match="block"):
            call(*arguments, **sizes)
    for grid in ((1, 65536), (-1,), (1.5,), 4, (), (1, 1, 1, 1)):
        with pytest.raises(ParamError, match="grid"):
            call(*arguments, grid=grid)
    with pytest.raises(ParamError, match="shared_mem"):
        call(*arguments, shared_mem=-1)


def test_contexts_of_the_cpu_are_an_error() -> None:
    with pytest.raises(HybridNetValueError, match=r"CudaKernel.launch: ctx: expected a GPU, got cpu\(0\)"):
        launch(on_gpu(), on_gpu(), 2.0, 1000, ctx=mx.cpu())
    cpu = mx.nd.array(VALUES)
    with pytest.raises(HybridNetValueError, match=r"argument 1: expected an array on gpu\(0\)"):
        call(cpu, cpu, 2.0, 1000)


def test_gradients_that_a_kernel_would_lose_are_an_error() -> None:
    x, y = on_gpu(), on_gpu()
    x.attach_grad()
    with autograd.record():
        with pytest.raises(GradientError, match=r"argument 1(.|\n)*mx.autograd.Function"):
            call(x, y, 2.0, 1000)
        with pytest.raises(GradientError):
            call(y, x, 2.0, 1000)
        call(x.detach(), y, 2.0, 1000)
    np.testing.assert_array_equal(y.asnumpy(), 2 * VALUES)


def test_a_hybridized_block_that_calls_a_kernel_runs_imperatively_and_warns() -> None:
    class Calls(mx.gluon.HybridBlock):
        def forward(self, x: mx.nd.NDArray) -> mx.nd.NDArray:
            return scale(x)

    net = Calls()
    net.hybridize()
    with pytest.warns(UserWarning, match=r"kernel 'scale': argument 1(.|\n)*traced"):
        np.testing.assert_array_equal(net(on_gpu()).asnumpy(), 2 * VALUES)


def test_a_block_of_hybrid_forward_that_calls_a_kernel_is_an_error() -> None:
    class Calls(mx.gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: mx.nd.NDArray) -> mx.nd.NDArray:
            mx.cuda.RawKernel(SCALE, "scale")((4,), (256,), (x, x, 2.0, 1000))
            return x

    net = Calls()
    net.hybridize()
    with pytest.raises(TraceError, match=r"kernel 'scale': argument 1(.|\n)*do not hybridize"):
        net(on_gpu())
