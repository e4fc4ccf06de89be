"""Outputs that rewriting has found equal are arrays of their own, as without rewriting."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet.contrib import foreach

nd = mx.nd


class Block(gluon.HybridBlock):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def same_array(x):
    y = x * 2
    return y, y


def copy(x):
    y = x * 2
    return y, y.copy()


def view(x):
    y = x * 2
    return y, y.reshape((3, 1))


CASES = {
    "computed twice": lambda x: (x * 2, x * 2),
    "copied": copy,
    "multiplied by one": lambda x: (x * 2, (x * 2) * 1),
    "reshaped apart": lambda x: (x * 2, (x * 2).reshape((3, 1))),
    "states of a loop": lambda x: foreach(lambda d, h: ([], [h[0] * 2, h[1] * 2]), x.reshape((1, 3)), [x, x])[1],
    "handed out twice": same_array,
    "a view": view,
}


def written(function, hybridized):
    """The second output after writing to the first, and the other way round."""
    found = []
    for first in (0, 1):
        block = Block(function)
        block.hybridize(hybridized)
        outputs = block(nd.ones((3,)))
        outputs[first][:] = 7
        found.append(outputs[1 - first].asnumpy().ravel())
    return found


@pytest.mark.parametrize("name", CASES)
def test_writing_to_one_output_changes_the_other_as_without_a_graph(name):
    np.testing.assert_array_equal(written(CASES[name], True), written(CASES[name], False))


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_equal_outputs_add_up(name):
    found = []
    for hybridized in (False, True):
        block = Block(CASES[name])
        block.hybridize(hybridized)
        x = nd.ones((3,))
        x.attach_grad()
        with mx.autograd.record():
            one, two = block(x)
            loss = (one * one).sum() + 3 * (two * two).sum()
        loss.backward()
        found.append(x.grad.asnumpy())
    np.testing.assert_array_equal(found[1], found[0])
