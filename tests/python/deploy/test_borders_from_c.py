"""Arrays that cross c_api.h: head gradients of any dtype, arrays for results, writable memory."""

from __future__ import annotations

import ctypes
import pathlib
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.gluon import nn

from .test_operators_from_c import CODES, LIBRARY, Handle, bytes_of, check, to_handle

NONE = (ctypes.c_char_p * 0)()
FLOAT64, FLOAT32 = (CODES[np.dtype(name)] for name in ("float64", "float32"))


def sizes(*counts: int) -> list[ctypes.c_size_t]:
    return [ctypes.c_size_t(count) for count in counts]


def invoke(name: str, *inputs: Handle) -> Handle:
    given, result, room = (Handle * len(inputs))(*inputs), Handle(), ctypes.c_size_t(1)
    no_attributes, count = sizes(0, len(inputs))
    check(
        LIBRARY.hn_invoke(
            name.encode(), no_attributes, NONE, NONE, count, given, ctypes.byref(room), ctypes.byref(result)
        )
    )
    return result


def values_of(handle: Handle) -> np.ndarray:
    shape, code, content = bytes_of(handle)
    dtype = next(dtype for dtype, known in CODES.items() if known == code)
    return np.frombuffer(content, dtype).reshape(shape)


def array(values: Any, dtype: Any = "float32") -> Handle:
    return to_handle(np.array(values, dtype))


def load(folder: pathlib.Path, net: Any, *inputs: Any) -> Handle:
    net.initialize(mx.init.Normal(0.1))
    net.hybridize()
    net(*inputs)
    net.export(str(folder / "net"))
    model = Handle()
    paths = [str(folder / f"net-{end}").encode() for end in ("symbol.json", "0000.params")]
    check(LIBRARY.hn_model_load(*paths, ctypes.byref(model)))
    return model


def run_model(model: Handle, x: Handle) -> Handle:
    result = Handle()
    one = ctypes.c_size_t(1)
    check(LIBRARY.hn_model_run(model, one, (Handle * 1)(x), one, ctypes.byref(result)))
    return result


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("through", ["operators", "model"])
def test_head_gradients_are_cast(through: str, dtype: str, tmp_path: pathlib.Path) -> None:
    x, gradient = array([[1.0, 2.0, 3.0]]), Handle()
    model = load(tmp_path, nn.HybridLambda(lambda F, x: x * x), mx.nd.ones((1, 3))) if through == "model" else None
    check(LIBRARY.hn_array_attach_grad(x, b"write"))
    check(LIBRARY.hn_autograd_set_recording(1, None))
    y = run_model(model, x) if model else invoke("elemwise_mul", x, x)
    check(LIBRARY.hn_autograd_set_recording(0, None))
    head = array([[1, 0, 3]], dtype)
    check(LIBRARY.hn_autograd_backward(ctypes.c_size_t(1), (Handle * 1)(y), (Handle * 1)(head), 0, 1))
    check(LIBRARY.hn_array_grad(x, ctypes.byref(gradient)))
    np.testing.assert_allclose(values_of(gradient), 2 * values_of(x) * values_of(head).astype("float64"))


@pytest.mark.parametrize(
    "shape, dtype", [((7,), "float32"), ((2, 2), "float64"), ((2, 2, 1), "float32"), ((1, 2), "float32")]
)
def test_arrays_for_results_must_fit(shape: tuple[int, ...], dtype: str) -> None:
    a, b = array(np.ones((1, 2, 3))), array(np.ones((1, 3, 2)))
    out = to_handle(np.full(shape, 5, dtype))
    no_attributes, two, one = sizes(0, 2, 1)
    status = LIBRARY.hn_invoke_into(
        b"batch_dot", no_attributes, NONE, NONE, two, (Handle * 2)(a, b), one, (Handle * 1)(out)
    )
    assert status == -1
    message = LIBRARY.hn_last_error().decode()
    assert "batch_dot" in message
    assert "out" in message
    assert (values_of(out) == 5).all()


# -- memory that callers may write -------------------------------------------------------------------------------------


def by_pointer(handle: Handle) -> int:
    address = ctypes.c_void_p()
    check(LIBRARY.hn_array_data(handle, ctypes.byref(address)))
    return address.value or 0


def by_dlpack(handle: Handle) -> int:
    managed = ctypes.POINTER(ctypes.c_void_p)()
    check(LIBRARY.hn_array_to_dlpack(handle, ctypes.byref(managed)))
    return managed[0] or 0  # the first member of DLTensor is the data pointer


def _normalized() -> Any:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(32, 3, in_channels=32, use_bias=False), nn.BatchNorm(in_channels=32), nn.Activation("relu"))
    return net


NETS = {
    "dense": (lambda: nn.Dense(256, in_units=256, use_bias=False), (8, 256)),
    "convolution": (lambda: nn.Conv2D(32, 3, in_channels=32, use_bias=False), (1, 32, 14, 14)),
    "batch norm": (_normalized, (1, 32, 14, 14)),
}


@pytest.mark.parametrize("route", [by_pointer, by_dlpack])
@pytest.mark.parametrize("way", ["run", "session"])
@pytest.mark.parametrize("name", NETS)
def test_parameters_that_are_written_from_outside(
    name: str, way: str, route: Any, tmp_path: pathlib.Path, rng: np.random.Generator
) -> None:
    build, shape = NETS[name]
    net, data = build(), rng.normal(size=shape).astype("float32")
    model, x, parameter = load(tmp_path, net, mx.nd.array(data)), to_handle(data), Handle()
    session, one = Handle(), ctypes.c_size_t(1)
    if way == "session":
        check(LIBRARY.hn_session_create(model, one, (Handle * 1)(x), ctypes.c_size_t(0), None, ctypes.byref(session)))

    def run() -> np.ndarray:
        if way == "run":
            return values_of(run_model(model, x))
        output = Handle()
        check(LIBRARY.hn_session_run(session))
        check(LIBRARY.hn_session_output(session, ctypes.c_size_t(0), ctypes.byref(output)))
        return values_of(output)

    for _ in range(3):
        run()
    number = ctypes.c_size_t(0)  # index of the weight
    check(LIBRARY.hn_model_parameter(model, number, ctypes.byref(parameter)))
    name_of = ctypes.c_char_p()
    check(LIBRARY.hn_model_parameter_name(model, number, ctypes.byref(name_of)))
    mine = next(p for p in net.collect_params().values() if p.name == (name_of.value or b"").decode())
    address = route(parameter)
    for _ in range(2):
        values = rng.uniform(-0.5, 0.5, mine.shape).astype("float32")
        ctypes.memmove(address, values.ctypes.data, values.nbytes)
        mine.set_data(mx.nd.array(values))
        wanted = net(mx.nd.array(data)).asnumpy()
        np.testing.assert_allclose(run(), wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())
