"""Values that nothing reads behind a loop or a branch have no gradient, not a gradient of zeros: 0 * inf would be NaN.

Hybridized loops are compared with loops on arrays, where unread values have no gradient anyway. States grow to infinity
in the last iterations only, in which nothing reads them.
"""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon, nd

foreach, while_loop, cond = nd.contrib.foreach, nd.contrib.while_loop, nd.contrib.cond


class Net(gluon.HybridBlock):
    """A block that calls a function of arrays and returns all its results."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arrays):
        return self.function(*arrays)


def gradients(function: Any, arrays: list[np.ndarray], hybrid: bool, second: bool = False, **how: Any) -> list:
    net = Net(function)
    if hybrid:
        net.hybridize(**how)
    inputs = [mx.nd.array(a) for a in arrays]
    for x in inputs:
        x.attach_grad()
    with autograd.record():
        loss = net(*inputs)
        loss = (loss[0] if isinstance(loss, list | tuple) else loss).sum()
        if second:
            grads = autograd.grad(loss, inputs, create_graph=True, retain_graph=True)
            loss = sum((g * g).sum() for g in grads)
    loss.backward()
    return [x.grad.asnumpy() for x in inputs]


def agree(function: Any, arrays: list[np.ndarray], second: bool = False, finite: bool = True, **how: Any) -> None:
    want = gradients(function, arrays, False, second)
    got = gradients(function, arrays, True, second, **how)
    for a, b in zip(got, want, strict=True):
        assert not finite or np.isfinite(b).all()
        np.testing.assert_allclose(a, b, rtol=1e-4)


# exp applied three times to 1.5 is 2.4e38, and a fourth time infinite in float32: only the last state is infinite.
ROWS = np.array([2.0, -1.0, 0.5, 3.0], dtype="float32")
START = np.array([1.5], dtype="float32")


def grows(d, h):
    return d * h, h.exp()


def two_states(d, h):
    """The gradient of the first state needs that of the second state of the previous iteration."""
    return d * h[0], [h[1] * 1.0, h[1].exp()]


def state_by_state(d, h):
    return d * h[0], [h[1] * 2.0, h[2].exp(), h[2].exp()]


def with_row_of_state(d, h):
    """Only the state passes a gradient to the data."""
    return h * 1.0, (h * d).exp()


def inner_loop(d, h):
    rows, last = foreach(lambda a, s: (a * s, s.exp()), d.reshape((1, 1)), h)
    return rows.reshape((1,)), last


def inner_branch(d, h):
    return d * h, cond(h.sum() > 0, lambda: h.exp(), lambda: h * 2)


LOOPS = {
    "issue": lambda x, s: foreach(grows, x, s)[0][:2].sum(),
    "all_rows": lambda x, s: foreach(grows, x, s)[0],
    "two_states": lambda x, s: foreach(two_states, x, [s, s])[0],
    "three_states": lambda x, s: foreach(state_by_state, x, [s, s, s * 0.5])[0],
    "data_of_state": lambda x, s: foreach(with_row_of_state, x * 0 + 1, s)[0],
    "inner_loop": lambda x, s: foreach(inner_loop, x, s)[0],
    "inner_branch": lambda x, s: foreach(inner_branch, x, s)[0],
    "behind_another": lambda x, s: foreach(grows, foreach(lambda d, h: (d * 1, h), x, s)[0], s)[0],
    "while": lambda x, s: while_loop(
        lambda i, h: i < 4, lambda i, h: (h * 2, (i + 1, h.exp())), (nd.zeros((1,)), s), max_iterations=6
    )[0],
    "while_data": lambda x, s: while_loop(
        lambda i, h: i < 4, lambda i, h: (h * x[:1], (i + 1, h.exp())), (nd.zeros((1,)), s), max_iterations=4
    )[0],
    "log": lambda x, s: foreach(lambda d, h: (d * h, (h - 1.5 + (d < 3)).log()), nd.ones((2,)) * x[3:], s)[0],
}


@pytest.mark.parametrize("name", LOOPS)
def test_an_unread_last_state_has_no_part_in_gradients(name: str) -> None:
    agree(LOOPS[name], [ROWS, START], finite=False)


@pytest.mark.parametrize("name", LOOPS)
def test_second_derivatives_agree_where_all_is_finite(name: str) -> None:
    agree(LOOPS[name], [ROWS, START * 0.1], second=True, finite=False)


@pytest.mark.parametrize("checkpoint", ["sqrt", 1, 2, 3])
def test_nor_does_it_in_loops_that_are_computed_again(checkpoint: Any) -> None:
    agree(lambda x, s: foreach(grows, x, s, checkpoint=checkpoint)[0], [ROWS, START - 0.2])


@pytest.mark.parametrize("detach_every", [1, 2])
def test_states_that_are_cut_off_pass_none(detach_every: int) -> None:
    agree(lambda x, s: foreach(grows, x, s, detach_every=detach_every)[0], [ROWS, START - 0.2])


@pytest.mark.parametrize("how", [{}, {"static_alloc": True}, {"passes": "none"}, {"passes": "fast_compile"}])
def test_unread_values_have_no_gradient_with_any_passes(how: dict[str, Any]) -> None:
    agree(LOOPS["issue"], [ROWS, START], **how)
    agree(LOOPS["three_states"], [ROWS, START], **how)


def test_states_that_are_read_keep_their_gradients() -> None:
    x = np.array([0.5, -0.25, 1.0, 0.75], dtype="float32")

    def both(x, s):
        rows, last = foreach(lambda d, h: (h * 2, (h * d).sin()), x, s)
        return rows.sum() + last.sum()

    def last_of_first(x, s):
        rows, last = foreach(two_states, x, [s * 0.1, s * 0.1])
        return rows.sum() + last[0].sum()

    for function in (both, last_of_first, lambda x, s: foreach(lambda d, h: (h * d, h.sin()), x, s)[1]):
        for second in (False, True):
            agree(function, [x, START], second)


def test_zeros_that_do_arrive_still_count() -> None:
    """A gradient of zeros is a gradient: here 0 * inf is NaN on arrays as well."""

    def function(x, s):
        rows, last = foreach(grows, x, s)
        return rows[:2].sum() + (last * 0).sum()

    for hybrid in (False, True):
        assert np.isnan(gradients(function, [ROWS, START], hybrid)[1]).all()


def test_unread_outputs_of_branches_have_none() -> None:
    def branch(x, s):
        return cond(s.sum() > 0, lambda: [x * s, (s * 100).exp()], lambda: [x, s])[0]

    agree(branch, [ROWS, START])


def test_gradients_of_inner_loops_without_rows_are_those_of_the_loop_over_arrays():
    def function(x, a, rows):
        def inner(i, d, s):
            t = mx.nd.contrib.index_copy(s[0], mx.nd.array([0], dtype="int64"), (d + s[1][1]).reshape((1, 3)))
            return [], [t, a]

        def outer(i, d, s):
            return [], [mx.contrib.foreach(inner, rows, [a, s[1]], with_index=True)[1][0], a]

        return mx.contrib.foreach(outer, x, [a, a], with_index=True)[1][0]

    for count in (0, 2):
        found = []
        for hybridized in (False, True):
            block = Net(function)
            block.hybridize(hybridized)
            arrays = [mx.nd.ones(shape) for shape in ((3, 3), (4, 3), (count, 3))]
            for array in arrays:
                array.attach_grad()
            with mx.autograd.record():
                loss = block(*arrays).sum()
            loss.backward()
            found.append([array.grad.asnumpy() for array in arrays])
        for one, two in zip(*found, strict=True):
            np.testing.assert_allclose(two, one, rtol=1e-6)
