"""The memory that functions of mx.np take while they run is proportional to their results."""

from __future__ import annotations

from collections.abc import Callable

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core

CPU = (1, 0)


def taken_at_the_peak(run: Callable[[], mx.np.ndarray]) -> int:
    mx.nd.waitall()
    _core.reset_peak_memory(*CPU)
    before = _core.memory_statistics(*CPU)["in_use"]
    result = run()
    result.wait_to_read()
    return _core.memory_statistics(*CPU)["peak_in_use"] - before


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float16"])
def test_indices_take_little_more_than_two_results(dtype: str) -> None:
    sizes = (1000, 30, 20)
    result = len(sizes) * 1000 * 30 * 20 * np.dtype(dtype).itemsize
    assert taken_at_the_peak(lambda: mx.np.indices(sizes, dtype=dtype)) <= 3 * result + 200_000  # blocks are rounded up


def test_wrong_sizes_are_refused_before_any_grid_is_made() -> None:
    def refused() -> mx.np.ndarray:
        with pytest.raises(ValueError, match="not negative"):
            mx.np.indices((100_000_000, -1))
        return mx.np.zeros(())

    assert taken_at_the_peak(refused) <= 1_000_000
