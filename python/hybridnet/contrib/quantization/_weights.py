"""Quantization without calibration: layers of floats that read weights of 8 bits, and may round their data."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from ... import _core, ndarray
from ...errors import ValueError as HybridNetValueError
from ...ndarray import NDArray
from ...symbol import Symbol

Parameters = dict[str, NDArray]

WEIGHT_MODES = ("weights", "dynamic")

_ROWS_AT_ONCE = 4096  # bounds the memory of intermediate floats


def check_weight_settings(where: str, mode: str, **settings: Any) -> None:
    """Raises ValueError for arguments of quantize_net that the modes of weights have no use for."""
    neutral: dict[str, Collection[Any]] = {
        "quantized_dtype": ("auto", "int8"),
        "quantize_mode": ("full",),
        "calib_mode": ("none",),
        "num_calib_examples": (None,),
        "LayerOutputCollector": (None,),
    }
    for name, given in settings.items():
        if given not in neutral[name]:
            raise HybridNetValueError(
                f"{where}: {name}",
                expected=" or ".join(repr(value) for value in neutral[name]),
                given=repr(given),
                because=f"mode={mode!r} needs no ranges of data, so that nothing is calibrated",
                fix=f"leave {name} out, or use mode='layers'",
            )


def quantized_rows(where: str, name: str, value: NDArray) -> tuple[NDArray, NDArray]:
    """Returns int8 with the shape (rows, columns) of value, and the step of each row: float32 (rows,).

    The step of a row is its largest absolute value / 127. Raises ValueError for NaN and infinities.
    """
    floats = value.asnumpy()
    made = np.empty(floats.shape, "int8")
    steps = np.empty(floats.shape[:1], "float32")
    for first in range(0, len(floats), _ROWS_AT_ONCE):
        rows = floats[first : first + _ROWS_AT_ONCE]
        reach = np.abs(rows).max(axis=1, initial=0.0)
        if not np.isfinite(reach).all():
            raise HybridNetValueError(
                f"{where}: parameter {name!r}",
                expected="finite values",
                given=f"NaN or infinity in row {first + int(np.argmin(np.isfinite(reach)))}",
                fix="train again, or load a file without them",
            )
        step = (reach / np.float32(127)).astype("float32")
        whole = np.where(step == 0, np.float32(1), step)[:, None]
        made[first : first + len(rows)] = np.clip(np.rint(rows / whole), -127, 127)
        steps[first : first + len(rows)] = step
    return ndarray.array(made, dtype="int8"), ndarray.array(steps)


def quantize_weights(
    where: str,
    mode: str,
    symbol: Symbol,
    parameters: Parameters,
    excluded_names: set[str],
    excluded_operators: set[str],
) -> tuple[Symbol, Parameters]:
    """Returns the graph whose dense layers and embeddings read bytes, and its parameters.

    A weight w is stored as w_quantize (int8) and w_quantize_scale (float32, one step per row). The float w stays where
    other operators read it.
    """
    matrices = {name for name, value in parameters.items() if value.ndim == 2 and np.dtype(value.dtype) == np.float32}
    qsym, weights = _core.quantize_weights(
        symbol=symbol,
        excluded_nodes=excluded_names,
        excluded_ops=excluded_operators,
        parameters=matrices,
        rounds_data=mode == "dynamic",
    )
    made = {name: parameters[name] for name in qsym.list_inputs() if name in parameters}
    for name in weights:
        made[f"{name}_quantize"], made[f"{name}_quantize_scale"] = quantized_rows(where, name, parameters[name])
    return qsym, made
