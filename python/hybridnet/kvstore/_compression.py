"""GradientCompression: gradients in one or two bits for each value, with the rest kept for the next ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _core, ndarray
from ..context import cpu
from ..errors import ParamError
from ..errors import TypeError as HybridNetTypeError
from ..ndarray import NDArray

__all__ = ["GradientCompression"]

_BITS = {"1bit": 1, "2bit": 2}


class GradientCompression:
    """The values of MXNet's gradient compression, for float32 arrays.

    '2bit' sends threshold, -threshold or 0 for each value, '1bit' sends 1 for values above the threshold and else -1.
    What a code leaves out is added to the next gradient of the same key. A gradient with a NaN or an infinity makes the
    whole sum NaN and is not kept; MXNet sends a finite code for it.
    """

    def __init__(self, bits: int, threshold: float) -> None:
        self._bits, self._threshold = bits, threshold
        self._residuals: dict[Any, NDArray] = {}

    @staticmethod
    def from_params(params: Mapping[str, Any]) -> GradientCompression | None:
        """Reads {'type': '2bit', 'threshold': 0.5}; None for the type 'none'. Raises TypeError, ParamError."""
        if not isinstance(params, Mapping):
            raise HybridNetTypeError(
                "compression_params", expected="a dict as {'type': '2bit', 'threshold': 0.5}", given=repr(params)
            )
        kind = params.get("type", "none")
        if kind in ("none", None):
            return None
        if kind not in _BITS:
            raise ParamError("compression_params: type", expected="'1bit', '2bit' or 'none'", given=repr(kind))
        if unknown := [name for name in params if name not in ("type", "threshold")]:
            raise ParamError("compression_params", expected="type and threshold", given=", ".join(map(repr, unknown)))
        try:
            threshold = float(params.get("threshold", 0.5))
        except (TypeError, ValueError):
            threshold = math.nan
        lowest = 0.0 if kind == "2bit" else -math.inf
        if not (math.isfinite(threshold) and threshold > lowest):
            expected = "a positive number" if kind == "2bit" else "a number"
            raise ParamError("compression_params: threshold", expected=expected, given=repr(params.get("threshold")))
        return GradientCompression(_BITS[kind], threshold)

    def _residual(self, key: Any, array: NDArray) -> NDArray:
        found = self._residuals.get(key)
        if found is None or found.shape != array.shape:
            found = self._residuals[key] = ndarray.zeros(array.shape, ctx=cpu(), dtype=array.dtype)
        return found

    def coded(self, key: Any, array: NDArray) -> NDArray:
        """Returns the values that the codes of an array stand for, on its context. Raises DTypeError."""
        on_cpu = array.as_in_context(cpu())
        values = ndarray.empty(array.shape, ctx=cpu(), dtype=array.dtype)
        _core.code_values(on_cpu, self._residual(key, on_cpu), values, self._bits, self._threshold)
        return values.as_in_context(array.context)

    def sum_into(
        self, keys: Sequence[Any], arrays: Sequence[NDArray], out: Sequence[NDArray], name: str, priority: int = 0
    ) -> None:
        """Overwrites out by the sums of the coded arrays over all processes, in one message. Raises DTypeError."""
        sent = [array.as_in_context(cpu()) for array in arrays]
        sums = [place if place.context.device_type == "cpu" else ndarray.zeros(place.shape) for place in out]
        residuals = [self._residual(key, array) for key, array in zip(keys, sent, strict=True)]
        _core.group_sum_compressed(sent, residuals, sums, self._bits, self._threshold, name, priority)
        for place, total in zip(out, sums, strict=True):
            if place is not total:
                place[:] = total.as_in_context(place.context)
