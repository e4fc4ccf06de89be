"""The programs of the corpus give the values and gradients of imperative mode, as graphs of the expected nodes."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest

from .corpus import BUGS, PROGRAMS
from .corpus_support import Program, count_nodes, flat, graph_of

MODES: dict[str, dict[str, bool]] = {"hybridized": {}, "static_alloc": {"static_alloc": True}}
EXACT = [program for program in PROGRAMS if not program.random]
DIFFERENTIABLE = [program for program in PROGRAMS if program.gradient]


def assert_same(found: Any, expected: Any, program: Program) -> None:
    """Checks shapes, dtypes and values; numbers of Python may be arrays of one element."""
    found, expected = flat(found), flat(expected)
    assert len(found) == len(expected)
    for got, want in zip(found, expected, strict=True):
        if want.shape:
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
        tolerance = {"rtol": 0, "atol": 0.15} if program.random else {"rtol": 1e-6, "atol": 1e-7}
        np.testing.assert_allclose(got.reshape(want.shape), want, **tolerance)


def results(program: Program, block: mx.gluon.HybridBlock) -> list[Any]:
    """Returns the results of a block for all inputs."""
    return [block(*program.arrays(values)) for values in program.inputs]


def check(program: Program, mode: str) -> None:
    """Checks values and nodes of the graph for all inputs, in an order that mixes lengths and branches."""
    with program.interface():
        expected = results(program, program.block())
        block = program.block()
        block.hybridize(strict=True, **MODES[mode])
        for order in (range(len(expected)), reversed(range(len(expected)))):
            for i in order:
                found = block(*program.arrays(program.inputs[i]))
                assert_same(found, expected[i], program)
                assert count_nodes(graph_of(block)) == program.counts()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_values_and_nodes(program: Program, mode: str) -> None:
    check(program, mode)


@pytest.mark.parametrize("program", BUGS, ids=str)
def test_programs_that_do_not_work_yet(program: Program, request: pytest.FixtureRequest) -> None:
    request.applymarker(pytest.mark.xfail(strict=True, reason=program.target.__doc__ or ""))
    check(program, "hybridized")


def _loss(outputs: Any) -> Any:
    """Returns the sum of the squares of the elements of all arrays, each with another weight."""
    if isinstance(outputs, (list, tuple)):
        parts = [_loss(output) * (i + 1) for i, output in enumerate(outputs)]
        return sum(parts[1:], parts[0])
    is_array = hasattr(outputs, "asnumpy") and np.dtype(outputs.dtype).kind == "f"
    return (outputs * outputs).sum() if is_array else 0


def gradients(program: Program, block: mx.gluon.HybridBlock) -> list[list[np.ndarray]]:
    """Returns the gradients of inputs and parameters for each input."""
    parameters = list(block.collect_params().values())
    made = []
    for values in program.inputs:
        arrays = program.arrays(values)
        for array in arrays:
            array.attach_grad()
        for parameter in parameters:
            parameter.zero_grad()  # a branch that does not run leaves the gradients as they are
        with mx.autograd.record():
            # The second part has all inputs in it, also those that the taken branches do not read.
            loss = _loss(block(*arrays)) + sum((array * 0).sum() for array in arrays)
        loss.backward()
        made.append([array.grad.asnumpy() for array in arrays] + [p.grad().asnumpy() for p in parameters])
    return made


@pytest.mark.parametrize("program", DIFFERENTIABLE, ids=str)
def test_gradients(program: Program) -> None:
    with program.interface():
        expected = gradients(program, program.block())
        assert any(gradient.any() for found in expected for gradient in found)
        for options in MODES.values():
            block = program.block()
            block.hybridize(strict=True, **options)
            for found, wanted in zip(gradients(program, block), expected, strict=True):
                for got, want in zip(found, wanted, strict=True):
                    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_there_are_enough_programs() -> None:
    names = [program.name for program in PROGRAMS + BUGS]
    assert len(set(names)) == len(names) >= 60
    assert all(len(program.inputs) >= 2 for program in PROGRAMS)
    used = [sum(program.counts()[kind] > 0 for program in PROGRAMS) for kind in PROGRAMS[0].counts()]
    assert min(used) >= 20, used


@pytest.mark.parametrize("program", [p for p in PROGRAMS if not p.per_length], ids=str)
def test_the_inputs_have_several_lengths_or_values(program: Program) -> None:
    kinds = {tuple((value.shape, value.tobytes()) for value in values) for values in program.inputs}
    assert len(kinds) == len(program.inputs)
