"""contrib.scan computes known sequences, and every namespace has the function."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.contrib import scan, until

from .scans import Function, run

CHECKS = {
    "taps [-2, -1] from [0, 1], a + b": (
        lambda start: scan(lambda a, b: a + b, outputs_info={"initial": start, "taps": [-2, -1]}, n_steps=6),
        [0.0, 1.0],
        [1, 2, 3, 5, 8, 13],
    ),
    "backwards over [0, 1, 2, 3], s' = 2 s + x": (
        lambda x: scan(lambda a, s: 2 * s + a, x, 0, go_backwards=True),
        [0.0, 1, 2, 3],
        [3, 8, 17, 34],
    ),
    "taps [0, 2] of 0..5, 10 a + b": (
        lambda x: scan(lambda a, b: 10 * a + b, {"input": x, "taps": [0, 2]}),
        [0.0, 1, 2, 3, 4, 5],
        [2, 13, 24, 35],
    ),
    "h' = 2 h until h' > 10 from 1": (
        lambda start: scan(lambda h: (2 * h, until(2 * h > 10)), outputs_info=start, n_steps=1024),
        [1.0],
        [2, 4, 8, 16],
    ),
}


@pytest.mark.parametrize("hybridized", [False, True])
@pytest.mark.parametrize("name", CHECKS)
def test_numbers(name, hybridized):
    function, given, wanted = CHECKS[name]
    (rows,) = run(Function(function, hybridized=hybridized), [np.array(given)])
    assert rows.ravel().tolist() == wanted


def test_all_views_of_it_are_in_every_namespace():
    for space in (mx.contrib, mx.nd.contrib, mx.sym.contrib):
        assert space.scan is scan
