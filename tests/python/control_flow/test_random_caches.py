"""Random loops that write parts of their states have the values of loops in which every write makes a copy, to the bit:
on arrays, hybridized, with memory kept between calls, with donated arguments, from files, with gradients recorded, and
from two threads at once. Arguments and parameters keep their values.
"""

from __future__ import annotations

import threading

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon

from . import cache_programs
from .blocks import Block
from .cache_programs import OnArrays, OnNumpy

SEEDS = range(240)
DTYPES = ["float32", "float32", "float64", "float16", "int32", "int64"]
SHAPES = [(4, 3), (5, 2), (2, 4), (3, 1)]


class Runs(gluon.HybridBlock):
    def __init__(self, program, parameter):
        super().__init__()
        self.program = program
        constant = mx.init.Constant(mx.nd.array(parameter, dtype=parameter.dtype))
        self.parameter = gluon.Parameter("cache", shape=parameter.shape, dtype=parameter.dtype, init=constant)
        self.initialize()

    def forward(self, a, b, rows):
        return cache_programs.run(OnArrays(), self.program, a, b, rows, self.parameter.data())


def case(seed, dtype=None, shape=None):
    random = np.random.RandomState(seed)
    dtype = dtype or DTYPES[seed % len(DTYPES)]
    shape = shape or SHAPES[seed % len(SHAPES)]
    program = cache_programs.make(seed)
    a, b, parameter = (random.randint(-9, 9, shape).astype(dtype) for _ in range(3))
    rows = random.randint(-9, 9, (cache_programs.STEPS, shape[1])).astype(dtype)
    want = cache_programs.run(OnNumpy(), program, a, b, rows, parameter)
    return program, [a, b, rows], parameter, want


def arrays(values):
    return [mx.nd.array(value, dtype=value.dtype) for value in values]


def check(found, want, context):
    found = found if isinstance(found, (list, tuple)) else [found]
    for number, (one, two) in enumerate(zip(found, want, strict=True)):
        np.testing.assert_array_equal(one.asnumpy(), two, err_msg=f"{context}, result {number}")


@pytest.fixture(autouse=True)
def quiet(recwarn):
    """Suppresses warnings about unused inputs, which random programs may have."""


MODES = {
    "hybridized": {}, "static": {"static_alloc": True}, "plain": {"passes": "none"}, "donated": {"donate": ["a", "b"]},
}  # fmt: skip


@pytest.mark.parametrize("first", range(SEEDS.start, SEEDS.stop, 24))
def test_every_way_to_run_a_loop_has_the_values_of_copies(first, tmp_path):
    for seed in range(first, first + 24):
        program, given, parameter, want = case(seed)
        block = Runs(program, parameter)
        check(block(*arrays(given)), want, f"seed {seed} on arrays")
        for mode, options in MODES.items():
            block.hybridize(strict=True, **options)
            for _ in range(2):
                own = arrays(given)
                check(block(*own), want, f"seed {seed} {mode}")
                for array, value in zip(own, given, strict=True):
                    if mode != "donated" or array is own[2]:
                        np.testing.assert_array_equal(array.asnumpy(), value, err_msg=f"seed {seed} {mode}")
            np.testing.assert_array_equal(block.parameter.data().asnumpy(), parameter, err_msg=f"seed {seed} {mode}")
        if seed % 4 == 0:
            block.hybridize(strict=True)
            block(*arrays(given))
            symbol, params = block.export(str(tmp_path / "model"))
            used = [k for k in range(3) if f"data{k}" in block._cached_op.symbol.list_inputs()]
            loaded = gluon.SymbolBlock.imports(symbol, [f"data{k}" for k in used], params)
            for _ in range(2):
                check(loaded(*arrays([given[k] for k in used])), want, f"seed {seed} from files")


@pytest.mark.parametrize("first", range(SEEDS.start, SEEDS.stop, 60))
def test_recorded_loops_have_the_gradients_of_loops_over_arrays(first):
    for seed in range(first, first + 60, 2):
        program, given, parameter, want = case(seed, "float64")
        found = []
        for hybridized in (False, True):
            block, own = Runs(program, parameter), arrays(given)
            block.hybridize(hybridized, strict=True)
            for array in own:
                array.attach_grad()
            with autograd.record():
                results = block(*own)
                results = results if isinstance(results, (list, tuple)) else [results]
                loss = sum(((k + 1) * result).sum() for k, result in enumerate(results))
            check(results, want, f"seed {seed} recorded")
            loss.backward()
            check(own, given, f"seed {seed} recorded")
            gradients = [array.grad.asnumpy() for array in own]
            if block.parameter.grad() is not None:
                gradients.append(block.parameter.grad().asnumpy())
            found.append(gradients)
        for one, two in zip(*found, strict=True):
            np.testing.assert_array_equal(one, two, err_msg=f"seed {seed}")


def test_caches_without_elements_stay_empty():
    count = 0
    with mx.util.np_shape(True):
        for seed in range(120):
            program = cache_programs.make(seed)
            if any(kind in repr(program) for kind in ("copy_1", "flat_write", "set_columns")):
                continue  # no place to write to
            count += 1
            given = [np.zeros(shape, "float32") for shape in ((4, 0), (4, 0), (cache_programs.STEPS, 0), (4, 0))]
            want = cache_programs.run(OnNumpy(), program, *given)
            block = Block(lambda *given, program=program: cache_programs.run(OnArrays(), program, *given))
            for hybridized in (False, True):
                block.hybridize(hybridized, strict=True)
                check(block(*arrays(given)), want, f"seed {seed}")
    assert count > 10


@pytest.mark.parametrize("options", [{}, {"static_alloc": True}, {"donate": ["a", "b"]}])
def test_two_threads_may_run_one_loop(options):
    for seed in range(0, 60, 6):
        program, given, parameter, _ = case(seed, "float32", (4, 3))
        block = Runs(program, parameter)
        block.hybridize(strict=True, **options)
        block(*arrays(given))
        others = [[value + k for value in given] for k in range(2)]
        wants = [cache_programs.run(OnNumpy(), program, *values, parameter) for values in others]
        failures = []

        def work(values, want, block=block, seed=seed, failures=failures):
            try:
                for _ in range(15):
                    check(block(*arrays(values)), want, f"seed {seed}")
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=pair) for pair in zip(others, wants, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures[0]


def test_the_programs_hold_every_kind_of_step():
    text = " ".join(repr(cache_programs.make(seed)) for seed in SEEDS)
    kinds = {*cache_programs.WRITES, *cache_programs.OTHERS, "branch", "inner", "inner_while"}
    assert all(f"'{kind}'" in text for kind in kinds)
