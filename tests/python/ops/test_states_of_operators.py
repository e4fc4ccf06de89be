"""Operators that replace inputs, such as an optimizer's states, in blocks: later lines and calls see the new values."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core
from sweep import OPS, Use, assert_agrees

# The statistics of normalization keep the value of the call's beginning, as auxiliary states do in graphs.
WRITERS = sorted(
    name
    for name in OPS
    if OPS[name]["samples"]
    and not OPS[name]["random"]
    and not any(item["auxiliary"] for item in OPS[name]["inputs"])
    and any(i >= 0 for i in Use(name, 0).use["writebacks"])
    and not name.startswith("_lazy_")
)


class Updating(mx.gluon.HybridBlock):
    """Calls an operator over copies of its arguments, then reads, changes and reads the states again."""

    def __init__(self, use: Use, states: list[int], copies: bool) -> None:
        super().__init__()
        self._use, self._states, self._copies = use, states, copies

    def forward(self, *inputs: Any) -> list[Any]:
        arrays = [x * 1 if self._copies and i in self._states else x for i, x in enumerate(inputs)]
        function = _core.op_function(self._use.op, self._use.op, "hybridnet.ndarray", symbolic=False)
        if self._use.described["variadic"]:
            made = function(*arrays, **self._use.attrs)
        else:
            made = function(**dict(zip(self._use.use["inputs"], arrays, strict=True)), **self._use.attrs)
        several = self._use.use["num_visible"] > 1
        results = [result * 1 for result in made] if several else [made * 1]  # those of reset_arrays are its inputs
        after = [arrays[i] * 1 for i in self._states]
        for i in self._states:
            arrays[i] += 3
        return [*results, *after, *[arrays[i] * 2 for i in self._states]]


@pytest.mark.parametrize("copies", [False, True], ids=["arguments", "values"])
@pytest.mark.parametrize("name", WRITERS)
def test_later_lines_see_the_states_that_an_operator_wrote(name: str, copies: bool) -> None:
    for index in range(len(OPS[name]["samples"])):
        use = Use(name, index)
        states = sorted({i for i in use.use["writebacks"] if i >= 0})
        dtype = use.gradient_dtype()
        values = use.inputs(dtype)
        found = []
        for hybridize in (False, True):
            net = Updating(use, states, copies)
            if hybridize:
                net.hybridize()
            arrays = [mx.nd.array(value, dtype=value.dtype) for value in values]
            calls = [[y.asnumpy() for y in net(*arrays)] for _ in range(2)]
            found.append([*calls[0], *calls[1], *[array.asnumpy() for array in arrays]])
        for number, (wanted, got) in enumerate(zip(*found, strict=True)):
            assert_agrees(got, wanted, dtype, f"{use}: value {number}")


def test_there_are_operators_of_both_kinds() -> None:
    assert {"sgd_mom_update", "adam_update", "multi_sgd_mom_update", "multi_mp_sgd_update"} <= set(WRITERS)


def test_a_momentum_is_updated_by_its_formula() -> None:
    class Step(mx.gluon.HybridBlock):
        def forward(self, w: Any, g: Any, m: Any) -> Any:
            mx.nd.multi_sgd_mom_update(w, g, m, lrs=(1.0,), wds=(0.0,), momentum=0.5, num_weights=1, out=w)
            return m * 1, w * 1

    net = Step()
    net.hybridize()
    w, g, m = mx.nd.ones(2), mx.nd.array([1.0, 2.0]), mx.nd.array([1.0, 2.0])
    momentum, weight = net(w, g, m)
    np.testing.assert_array_equal(momentum.asnumpy(), [0.5 - 1, 1 - 2])
    np.testing.assert_array_equal(weight.asnumpy(), [0.5, 0])
    np.testing.assert_array_equal(m.asnumpy(), [-0.5, -1])
