"""The bindings refuse objects that are not arrays, or not the expected ones, and never read their memory."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core


@pytest.mark.parametrize(
    "call",
    [
        lambda a: _core.save_to_buffer([a, None], ["a", "b"], False),
        lambda a: _core.take_over(a, None),
        lambda a: _core.binary(0, 1, 2),
        lambda a: _core.binary(0, a, 2, out=3),
        lambda a: _core.empty(None, np.float32, 1, 0),
        lambda a: _core.empty((2,), None, 1, 0),
        lambda a: _core.CachedOp(mx.sym.var("x") + 1)(a, out=[None]),
        lambda a: _core.symbol_infer(mx.sym.var("x"), {"x": 3}, False),
    ],
    ids=["save", "take_over", "binary", "out", "shape", "dtype", "results", "specs"],
)
def test_objects_that_are_not_arrays_are_refused_by_the_bindings(call) -> None:
    with pytest.raises(TypeError, match="expected"):
        call(mx.nd.ones((2,)))


def test_shared_memory_must_be_contiguous_and_of_the_dtype() -> None:
    for source, dtype in [(np.ones((4, 4))[:, ::2], np.float64), (np.ones((2,)), np.float32)]:
        with pytest.raises(ValueError, match="C-contiguous"):
            _core.from_numpy_shared(source, dtype)
