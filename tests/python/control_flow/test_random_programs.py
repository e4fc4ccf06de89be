"""Random programs give the same on arrays, hybridized and loaded from files, with the same gradients."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from . import c_model
from . import random_programs as programs

EXAMPLES = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SEEDS = st.integers(0, 2**31)
DEPTHS = st.integers(1, 4)


class Program(mx.gluon.HybridBlock):
    """A random program as a block."""

    def __init__(self, tree) -> None:
        super().__init__()
        self.tree = tree

    def forward(self, rows, a, b):
        return programs.run(self.tree, [a, b], rows)


def inputs(seed: int) -> list[np.ndarray]:
    r = np.random.default_rng(seed)
    return [r.normal(size=shape) for shape in ((3, programs.WIDTH), (programs.WIDTH,), (programs.WIDTH,))]


def evaluate(block, values, order: int = 1):
    """Result, and gradients of its weighted sum: of first order, or of the squares of the first ones."""
    arrays = [mx.nd.array(v, dtype="float64") for v in values]
    for array in arrays:
        array.attach_grad()
    with mx.autograd.record():
        out = block(*arrays)
        loss = (out * mx.nd.array([0.7, -1.3], dtype="float64")).sum()
        if order == 2:
            first = mx.autograd.grad(loss, arrays, create_graph=True, retain_graph=True)
            loss = sum((g * g).sum() for g in first)
    loss.backward()
    return out.asnumpy(), float(loss.asnumpy().reshape(())), [a.grad.asnumpy() for a in arrays]


def agree(one, two, rtol=1e-9, atol=1e-11) -> None:
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


@pytest.fixture(autouse=True)
def quiet(recwarn):
    """Inputs that a random program does not use are no mistake here."""


@EXAMPLES
@given(SEEDS, DEPTHS)
def test_arrays_graphs_and_files_agree(tmp_path, seed, depth):
    block, values = Program(programs.make(seed, depth)), inputs(seed)
    arrays = [mx.nd.array(v, dtype="float64") for v in values]
    eager = block(*arrays).asnumpy()
    block.hybridize()
    np.testing.assert_allclose(block(*arrays).asnumpy(), eager, rtol=1e-10, atol=1e-12)
    symbol_file, params_file = block.export(str(tmp_path / "program"))
    names = block._cached_graph[1].list_arguments()
    given_names = [n for n in ("data0", "data1", "data2") if n in names]
    loaded = mx.gluon.SymbolBlock.imports(symbol_file, given_names, params_file)
    if given_names:
        out = loaded(*(arrays[int(n[-1])] for n in given_names))
        np.testing.assert_allclose(out.asnumpy(), eager, rtol=1e-10, atol=1e-12)
        (out,) = c_model.run(symbol_file, params_file, {f"data{i}": v for i, v in enumerate(values)})
        np.testing.assert_allclose(out, eager, rtol=1e-10, atol=1e-12)


@EXAMPLES
@given(SEEDS, DEPTHS, st.integers(1, 2))
def test_gradients_agree(seed, depth, order):
    tree, values = programs.make(seed, depth), inputs(seed)
    eager, hybrid = Program(tree), Program(tree)
    hybrid.hybridize()
    want, got = evaluate(eager, values, order), evaluate(hybrid, values, order)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-10, atol=1e-12)
    agree(got[2], want[2])


@settings(EXAMPLES, max_examples=15)
@pytest.mark.parametrize("passes", ["none", "fast_compile", "fast_run,-loop", "fast_run,-lazy", "fast_run,-cse"])
@given(SEEDS, DEPTHS, st.integers(1, 2))
def test_every_choice_of_rewrites_gives_the_same(passes, seed, depth, order):
    tree, values = programs.make(seed, depth), inputs(seed)
    eager, hybrid = Program(tree), Program(tree)
    hybrid.hybridize(passes=passes)
    want, got = evaluate(eager, values, order), evaluate(hybrid, values, order)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-10, atol=1e-12)
    agree(got[2], want[2])


@settings(EXAMPLES, max_examples=15)
@given(SEEDS, st.integers(1, 3), st.integers(1, 2))
def test_gradients_are_those_of_differences(seed, depth, order):
    block, values = Program(_smooth(programs.make(seed, depth))), inputs(seed)
    block.hybridize()
    _, _, gradients = evaluate(block, values, order)
    step = 1e-5
    for position, value in enumerate(values):
        for index in np.ndindex(value.shape):
            losses = []
            for sign in (1, -1):
                moved = [v.copy() for v in values]
                moved[position][index] += sign * step
                losses.append(evaluate(block, moved, order)[1])
            difference = (losses[0] - losses[1]) / (2 * step)
            gradient = gradients[position][index]
            assert abs(difference - gradient) <= 1e-6 + 1e-5 * abs(gradient)


def _smooth(tree):
    """Without stop_gradient, whose differences are not its gradient."""
    if isinstance(tree, tuple):
        return tuple("sin" if part == "cut" else _smooth(part) for part in tree)
    return [_smooth(part) for part in tree] if isinstance(tree, list) else tree
