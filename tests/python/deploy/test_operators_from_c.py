"""Every operator called through the C ABI with attributes as text gives the bits of Python, in gradients too."""

from __future__ import annotations

import ctypes
import pathlib
import sys

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core, libinfo

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "ops"))
from sweep import DTYPE_CODES, FLOATS, Use, uses

LIBRARY = ctypes.CDLL(libinfo.find_lib_path()[0])
LIBRARY.hn_last_error.restype = ctypes.c_char_p
Handle = ctypes.c_void_p
CODES = {np.dtype(name): code for name, code in DTYPE_CODES.items() if name != "bfloat16"}
CLASSIC_SHAPES = {"broadcast_to"}  # their samples use 0 in a shape for an unchanged size
ROOM = 16


def check(status: int) -> None:
    assert status == 0, LIBRARY.hn_last_error().decode()


def to_handle(value: np.ndarray) -> Handle:
    value, handle = np.ascontiguousarray(value).reshape(value.shape), Handle()
    shape = (ctypes.c_int64 * value.ndim)(*value.shape)
    data = value.ctypes.data_as(ctypes.c_void_p)
    check(LIBRARY.hn_array_create(shape, value.ndim, CODES[value.dtype], data, ctypes.byref(handle)))
    return handle


def bytes_of(handle: Handle) -> tuple[tuple[int, ...], int, bytes]:
    """Returns shape, dtype code and values."""
    ndim, dtype, shape = ctypes.c_int(), ctypes.c_int(), ctypes.POINTER(ctypes.c_int64)()
    check(LIBRARY.hn_array_ndim(handle, ctypes.byref(ndim)))
    check(LIBRARY.hn_array_dtype(handle, ctypes.byref(dtype)))
    check(LIBRARY.hn_array_shape(handle, ctypes.byref(shape)))
    sizes = tuple(shape[: ndim.value])
    item = next(dtype_.itemsize for dtype_, code in CODES.items() if code == dtype.value)
    target = ctypes.create_string_buffer(max(int(np.prod(sizes)), 1) * item)
    size = int(np.prod(sizes)) * item
    check(LIBRARY.hn_array_copy_to(handle, target, ctypes.c_size_t(size)))
    return sizes, dtype.value, target.raw[:size]


def call(use: Use, inputs: list[Handle]) -> list[Handle]:
    keys = (ctypes.c_char_p * len(use.attrs))(*(key.encode() for key in use.attrs))
    values = (ctypes.c_char_p * len(use.attrs))(*(str(value).encode() for value in use.attrs.values()))
    given, results, count = (Handle * len(inputs))(*inputs), (Handle * ROOM)(), ctypes.c_size_t(ROOM)
    sizes = (ctypes.c_size_t(len(use.attrs)), ctypes.c_size_t(len(inputs)))
    name = use.op.encode()
    check(LIBRARY.hn_invoke(name, sizes[0], keys, values, sizes[1], given, ctypes.byref(count), results))
    return [Handle(results[i]) for i in range(count.value)]


def call_in_python(use: Use, arrays: list[mx.nd.NDArray]) -> list[mx.nd.NDArray]:
    run = _core.op_function(use.op, use.op, "hybridnet.ndarray")
    if use.described["variadic"]:
        out = run(*arrays, **use.attrs)
    else:
        out = run(**dict(zip(use.use["inputs"], arrays, strict=True)), **use.attrs)
    return list(out) if isinstance(out, (list, tuple)) else [out]


def expected_bytes(array: mx.nd.NDArray) -> tuple[tuple[int, ...], int, bytes]:
    value = array.asnumpy()
    return value.shape, CODES[value.dtype], value.tobytes()


def dtype_of(use: Use) -> str:
    return "float32" if "float32" in use.described["dtypes"] else use.described["dtypes"][0]


USES = [use for use in uses(lambda op: not op["internal"] and not op["subgraphs"]) if "bfloat16" not in str(use.sample)]


@pytest.mark.parametrize("use", USES, ids=str)
def test_operators_give_the_bits_of_python(use: Use) -> None:
    if not use.runs_in(dtype_of(use)):
        pytest.skip("the sample has no values in the operator's first dtype")
    values = use.inputs(dtype_of(use))
    with mx.util.np_shape(use.op not in CLASSIC_SHAPES):
        mx.random.seed(5)
        arrays = [mx.nd.array(v, dtype=v.dtype) for v in values]
        expected = [expected_bytes(out) for out in call_in_python(use, arrays)]
        check(LIBRARY.hn_seed(ctypes.c_uint64(5)))
        handles = [to_handle(value) for value in values]
        results = call(use, handles)
        assert [bytes_of(handle) for handle in results] == expected
        # Update operators change states in place.
        assert [bytes_of(handle) for handle in handles] == [expected_bytes(array) for array in arrays]
        for handle in handles + results:
            check(LIBRARY.hn_array_free(handle))


@pytest.mark.parametrize(
    "use", [use for use in USES if use.described["differentiable"] and not use.described["random"]], ids=str
)
def test_gradients_have_the_bits_of_python(use: Use) -> None:
    dtype = dtype_of(use)
    if dtype not in FLOATS or not use.runs_in(dtype):
        pytest.skip("the sample has no floating values")
    values, wanted = use.inputs(dtype), use.differentiated()
    with mx.util.np_shape(use.op not in CLASSIC_SHAPES):
        arrays = [mx.nd.array(v, dtype=v.dtype) for v in values]
        for i in wanted:
            arrays[i].attach_grad()
        with mx.autograd.record():
            outputs = call_in_python(use, arrays)
        heads = [i for i, out in enumerate(outputs) if _core.needs_gradient(out)]
        if heads:
            mx.autograd.backward([outputs[i] for i in heads])
        expected = [expected_bytes(arrays[i].grad) for i in wanted]

        handles = [to_handle(value) for value in values]
        for i in wanted:
            check(LIBRARY.hn_array_attach_grad(handles[i], b"write"))
        before = (ctypes.c_int(), ctypes.c_int())
        check(LIBRARY.hn_autograd_set_recording(1, ctypes.byref(before[0])))
        check(LIBRARY.hn_autograd_set_training(1, ctypes.byref(before[1])))
        try:
            results = call(use, handles)
        finally:
            LIBRARY.hn_autograd_set_recording(before[0], None)
            LIBRARY.hn_autograd_set_training(before[1], None)
        if not heads:  # nothing was recorded, so backward of all results is an error
            of = (Handle * len(results))(*results)
            assert LIBRARY.hn_autograd_backward(ctypes.c_size_t(len(results)), of, None, 0, 1) == -1
            assert LIBRARY.hn_last_error()
            return
        of = (Handle * len(heads))(*(results[i] for i in heads))
        check(LIBRARY.hn_autograd_backward(ctypes.c_size_t(len(heads)), of, None, 0, 1))
        gradients = []
        for i in wanted:
            gradient = Handle()
            check(LIBRARY.hn_array_grad(handles[i], ctypes.byref(gradient)))
            gradients.append(gradient)
        assert [bytes_of(handle) for handle in gradients] == expected
        for handle in handles + results + gradients:
            check(LIBRARY.hn_array_free(handle))
