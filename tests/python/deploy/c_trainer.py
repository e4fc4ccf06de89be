"""Trainers of c_api.h called by ctypes, and gluon.Trainer with the same parameters and gradients."""

from __future__ import annotations

import ctypes
import pathlib
from collections.abc import Mapping
from typing import Any

import hybridnet as mx
import numpy as np

from .test_operators_from_c import LIBRARY, Handle, bytes_of, check, to_handle

SHAPES = {"net_weight": (4, 3), "a_bias": (5,), "deep_gamma": (2, 3), "b_table": (6, 2)}


def texts(values: Mapping[str, Any]) -> tuple[Any, ...]:
    keys = (ctypes.c_char_p * len(values))(*(key.encode() for key in values))
    items = (ctypes.c_char_p * len(values))(*(str(value).encode() for value in values.values()))
    return ctypes.c_size_t(len(values)), keys, items


def refusal(status: int) -> str:
    assert status == -1
    LIBRARY.hn_last_error_kind.restype = ctypes.c_char_p
    return f"{LIBRARY.hn_last_error_kind().decode()}: {LIBRARY.hn_last_error().decode()}"


class CTrainer:
    """A trainer of the C API with its own copies of the parameters."""

    def __init__(self, values: Mapping[str, np.ndarray], optimizer: str, settings: Mapping[str, Any]) -> None:
        self.arrays = {name: to_handle(value) for name, value in values.items()}
        names = (ctypes.c_char_p * len(values))(*(name.encode() for name in values))
        arrays = (Handle * len(values))(*self.arrays.values())
        self.handle = Handle()
        check(
            LIBRARY.hn_trainer_create(
                ctypes.c_size_t(len(values)), names, arrays, optimizer.encode(), *texts(settings),
                ctypes.byref(self.handle),
            )
        )  # fmt: skip

    def backward(self, grads: Mapping[str, np.ndarray]) -> None:
        """Makes `grads` the gradients of the parameters: backward of sum(parameter * grad)."""
        heads, used = (Handle * len(grads))(), []
        check(LIBRARY.hn_autograd_set_recording(1, None))
        for place, (name, grad) in enumerate(grads.items()):
            used.append(to_handle(grad))
            inputs, count = (Handle * 2)(self.arrays[name], used[-1]), ctypes.c_size_t(1)
            result = ctypes.cast(ctypes.byref(heads, place * ctypes.sizeof(Handle)), ctypes.POINTER(Handle))
            check(
                LIBRARY.hn_invoke(b"elemwise_mul", *texts({}), ctypes.c_size_t(2), inputs, ctypes.byref(count), result)
            )
        check(LIBRARY.hn_autograd_set_recording(0, None))
        check(LIBRARY.hn_autograd_backward(ctypes.c_size_t(len(heads)), heads, None, 0, 1))
        for handle in [*heads, *used]:
            check(LIBRARY.hn_array_free(Handle(handle) if isinstance(handle, int) else handle))

    def step(self, batch_size: float, ignore_stale: bool = False) -> int:
        return LIBRARY.hn_trainer_step(self.handle, ctypes.c_double(batch_size), int(ignore_stale))

    def values(self) -> dict[str, bytes]:
        return {name: bytes_of(handle)[2] for name, handle in self.arrays.items()}

    @property
    def rate(self) -> float:
        rate = ctypes.c_double()
        check(LIBRARY.hn_trainer_learning_rate(self.handle, ctypes.byref(rate)))
        return rate.value

    def save(self, path: pathlib.Path) -> None:
        check(LIBRARY.hn_trainer_save_states(self.handle, str(path).encode()))

    def load(self, path: pathlib.Path) -> int:
        return LIBRARY.hn_trainer_load_states(self.handle, str(path).encode())

    def close(self) -> None:
        check(LIBRARY.hn_trainer_free(self.handle))
        for handle in self.arrays.values():
            check(LIBRARY.hn_array_free(handle))


class PythonTrainer:
    """The interface of CTrainer on a gluon.Trainer."""

    def __init__(self, values: Mapping[str, np.ndarray], optimizer: str, settings: Mapping[str, Any]) -> None:
        self.params = {}
        for name, value in values.items():
            param = mx.gluon.Parameter(name, shape=value.shape, dtype=value.dtype)
            param.initialize()
            param.set_data(mx.nd.array(value, dtype=value.dtype))
            self.params[name] = param
        self.trainer = mx.gluon.Trainer(self.params, optimizer, dict(settings))

    def backward(self, grads: Mapping[str, np.ndarray]) -> None:
        with mx.autograd.record():
            heads = [self.params[name].data() * mx.nd.array(g, dtype=g.dtype) for name, g in grads.items()]
        mx.autograd.backward(heads)

    def step(self, batch_size: float, ignore_stale: bool = False) -> None:
        self.trainer.step(batch_size, ignore_stale)

    def values(self) -> dict[str, bytes]:
        return {name: param.data().asnumpy().tobytes() for name, param in self.params.items()}


def draws(rng: np.random.Generator, dtype: str = "float32", shapes: Mapping[str, Any] = SHAPES) -> dict[str, Any]:
    return {name: rng.normal(size=shape).astype(dtype) for name, shape in shapes.items()}
