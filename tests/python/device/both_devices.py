"""One call of an operator on the CPU and on gpu(0): outputs, and inputs that it has replaced."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import operator_sweep


def call(name: str, arrays: list[np.ndarray], ctx: mx.Context, attrs: dict[str, Any]) -> list[np.ndarray]:
    operator = getattr(mx.nd, name, None) or getattr(mx.nd._internal, name)
    inputs = [mx.nd.array(value, dtype=value.dtype, ctx=ctx) for value in arrays]
    outputs = operator(*inputs, **attrs)
    outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    assert all(output.context == ctx for output in outputs)
    return [array.asnumpy() for array in (*outputs, *inputs)]


def difference(name: str, arrays: list[np.ndarray], **attrs: Any) -> float:
    """0.0 if all bits are equal, else the largest difference relative to the largest magnitude of an array."""
    expected, found = (call(name, arrays, ctx, attrs) for ctx in (mx.cpu(), mx.gpu(0)))
    return max(operator_sweep.difference(got, want) for got, want in zip(found, expected, strict=True))
