"""The options n_steps, until, go_backwards, truncate_gradient and detach_every of a scan give known numbers."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.contrib import scan, until

from .scans import Function, check_same, normal, run

BOTH = pytest.mark.parametrize("hybridized", [False, True])


@BOTH
@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, 129),
        ({"truncate_gradient": 1}, 16), ({"truncate_gradient": 2}, 40), ({"truncate_gradient": 3}, 68),
        ({"detach_every": 1}, 31), ({"detach_every": 2}, 41), ({"detach_every": 3}, 57),
    ],
)  # fmt: skip
def test_gradient_of_powers(options, wanted, hybridized):
    """h' = w h from h = 1 with w = 2, five steps: the gradient of the sum of all h by w."""
    block = Function(
        lambda w: scan(lambda h, w: w * h, outputs_info=w * 0 + 1, non_sequences=w, n_steps=5, **options),
        hybridized=hybridized,
    )
    w = mx.nd.array([2.0])
    w.attach_grad()
    with mx.autograd.record():
        rows = block(w)
    rows.backward()
    assert rows.asnumpy().ravel().tolist() == [2, 4, 8, 16, 32]
    assert w.grad.asscalar() == wanted


@BOTH
def test_n_steps(hybridized):
    for steps in (0, 1, 4):
        block = Function(lambda x, n=steps: scan(lambda a, s: s + a, x, 0, n_steps=n), hybridized=hybridized)
        assert run(block, [np.arange(1.0, 6.0)])[0].ravel().tolist() == [1, 3, 6, 10][:steps]


@BOTH
def test_until_is_checked_after_a_step(hybridized):
    """The step whose condition holds is kept; a condition that holds at once leaves one step."""
    block = Function(
        lambda h, limit: scan(lambda h: (2 * h, until(2 * h > limit)), outputs_info=h, n_steps=50),
        hybridized=hybridized,
    )
    for limit, wanted in ((10, [2, 4, 8, 16]), (0, [2]), (4, [2, 4, 8])):
        assert run(block, [np.ones(1), np.array([float(limit)])])[0].ravel().tolist() == wanted


@BOTH
def test_go_backwards_with_taps(hybridized):
    """Sequences are read from their end; previous outputs are the outputs of earlier steps."""
    block = Function(
        lambda x: scan(lambda a, s: 2 * s + a, {"input": x, "taps": [-1]}, x[0] * 0, go_backwards=True),
        hybridized=hybridized,
    )
    assert run(block, [np.array([0.0, 1, 2, 3, 9])])[0].ravel().tolist() == [3, 8, 17, 34]


def test_gradients_with_a_condition():
    def function(x, h):
        return scan(lambda a, h: ((a + h).sin(), until((a + h).sum() > 1.5)), x, h, go_backwards=True)

    check_same(function, normal(9, 2), normal(2, seed=1))
