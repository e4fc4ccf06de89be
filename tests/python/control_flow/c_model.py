"""An exported model run through the C functions of the library, without the Python front end."""

from __future__ import annotations

import ctypes
import pathlib

import hybridnet
import numpy as np

LIBRARY = ctypes.CDLL(str(pathlib.Path(hybridnet.__file__).parent / "libhybridnet.so"))
LIBRARY.hn_last_error.restype = ctypes.c_char_p
DTYPES = {
    0: np.float32, 1: np.float64, 2: np.float16, 3: np.uint8, 4: np.int32, 6: np.int64, 7: np.bool_,
}  # fmt: skip
CODES = {np.dtype(dtype): code for code, dtype in DTYPES.items()}


def _call(name: str, *args: object) -> None:
    if getattr(LIBRARY, name)(*args) != 0:
        raise RuntimeError(LIBRARY.hn_last_error().decode())


def run(symbol_file: str, params_file: str, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Returns the outputs of the model for inputs given by name."""
    model, count, name = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_char_p()
    _call("hn_model_load", symbol_file.encode(), params_file.encode(), ctypes.byref(model))
    _call("hn_model_num_inputs", model, ctypes.byref(count))
    arrays = (ctypes.c_void_p * max(count.value, 1))()
    for i in range(count.value):
        _call("hn_model_input_name", model, ctypes.c_size_t(i), ctypes.byref(name))
        value = np.asarray(inputs[name.value.decode()], order="C")  # type: ignore[union-attr]
        shape = (ctypes.c_int64 * value.ndim)(*value.shape)
        slot = ctypes.c_void_p()
        _call(
            "hn_array_create",
            shape,
            value.ndim,
            CODES[value.dtype],
            value.ctypes.data_as(ctypes.c_void_p),
            ctypes.byref(slot),
        )
        arrays[i] = slot
    outputs_count = ctypes.c_size_t()
    _call("hn_model_num_outputs", model, ctypes.byref(outputs_count))
    outputs = (ctypes.c_void_p * outputs_count.value)()
    _call("hn_model_run", model, count, arrays, outputs_count, outputs)
    results = [_to_numpy(ctypes.c_void_p(handle)) for handle in outputs]
    for handle in [*list(arrays)[: count.value], *outputs]:
        _call("hn_array_free", ctypes.c_void_p(handle))
    _call("hn_model_free", model)
    return results


def _to_numpy(handle: ctypes.c_void_p) -> np.ndarray:
    ndim, dtype, shape = ctypes.c_int(), ctypes.c_int(), ctypes.POINTER(ctypes.c_int64)()
    _call("hn_array_ndim", handle, ctypes.byref(ndim))
    _call("hn_array_dtype", handle, ctypes.byref(dtype))
    _call("hn_array_shape", handle, ctypes.byref(shape))
    result = np.empty(shape[: ndim.value], DTYPES[dtype.value])
    _call("hn_array_copy_to", handle, result.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(result.nbytes))
    return result
