"""Random programs give the same results on arrays, hybridized and from files in C++, with the same gradients.

This is a small sample of the thousands of programs that prove.py runs.
"""

from __future__ import annotations

import random
from collections import Counter

import hybridnet as mx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from . import compare_models, program_checks, prove, random_programs
from .random_programs import Cond, Foreach, Unary, Variable, While

EXAMPLES = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
PROGRAMS = random_programs.programs()
SEEDS = st.integers(0, 2**31)
ORDERS = st.integers(1, 2)


@pytest.fixture(autouse=True)
def quiet(recwarn):
    """Suppresses warnings about unused inputs, which random programs may have."""


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    return compare_models.build(tmp_path_factory.mktemp("program"))


class TestSample:
    """Fixed programs, all checks."""

    COUNT = 60

    @pytest.fixture(scope="class")
    @classmethod
    def proved(cls, tmp_path_factory):
        return prove.prove(cls.COUNT, 1, 20, tmp_path_factory.mktemp("proof"))

    def test_nothing_fails(self, proved):
        found, failures = proved
        assert not failures, failures[0]
        assert found[f"C++: {self.COUNT} models, 0 failed, largest difference 0"] == 1

    def test_all_checks_compare_values(self, proved):
        found, _ = proved
        values = 3 * random_programs.WIDTH + random_programs.ROWS * random_programs.WIDTH
        for order in (1, 2):
            outcomes = {k: n for k, n in found.items() if k.startswith(f"gradients of order {order}, graph = diff")}
            assert sum(n for k, n in outcomes.items() if k.count(":") == 1) == self.COUNT * values
        assert found["branches: forward"] > 20 and found["branches: backward"] > 20
        assert all(found[f"depth {depth}"] > 0 for depth in range(1, random_programs.DEEPEST + 1))
        for construct in ("Foreach", "While", "Cond"):
            assert found[f"construct {construct}"] >= self.COUNT


@EXAMPLES
@given(PROGRAMS, SEEDS)
def test_arrays_graphs_and_files_agree(comparison, tmp_path_factory, tree, seed):
    folder = tmp_path_factory.mktemp("model")
    program_checks.same_in_graphs(tree, seed, folder, "program")
    good, text = compare_models.run(comparison, folder)
    assert good, text


@EXAMPLES
@given(PROGRAMS, SEEDS, ORDERS)
def test_gradients_agree(tree, seed, order):
    program_checks.same_gradients(tree, seed, order)


@settings(EXAMPLES, max_examples=15)
@pytest.mark.parametrize("passes", ["none", "fast_compile", "fast_run,-loop", "fast_run,-lazy", "fast_run,-cse"])
@given(PROGRAMS, SEEDS, ORDERS)
def test_every_choice_of_rewrites_gives_the_same(passes, tree, seed, order):
    program_checks.same_gradients(tree, seed, order, passes)


@settings(EXAMPLES, max_examples=15)
@given(PROGRAMS, SEEDS, ORDERS)
def test_gradients_are_those_of_differences(tree, seed, order):
    program_checks.gradients_of_differences(tree, seed, order)


@EXAMPLES
@given(PROGRAMS, SEEDS)
def test_branches_not_taken_never_run(tree, seed):
    program_checks.branches_not_taken_never_run(tree, seed)


class TestTheChecksThemselves:
    """Each check fails for a wrong program; a check that cannot fail proves nothing."""

    BRANCH = Cond(0, Variable(0), -100.0, None, Unary("sin", Variable(0)), Variable(1), False, False)

    def test_a_branch_that_runs_without_being_taken(self, monkeypatch):
        program_checks.branches_not_taken_never_run(self.BRANCH, 0)
        real = random_programs.cond

        def eager_in_graphs(pred, then, other, inputs):
            return then() + 0 * other() if isinstance(pred, mx.sym.Symbol) else real(pred, then, other, inputs)

        monkeypatch.setattr(random_programs, "cond", eager_in_graphs)
        with pytest.raises(AssertionError, match="its branch is not taken"):
            program_checks.branches_not_taken_never_run(self.BRANCH, 0)

    def test_a_gradient_that_is_cut(self, monkeypatch):
        tree = Unary("cut", Variable(0))
        program_checks.gradients_of_differences(tree, 0, 1)
        monkeypatch.setattr(program_checks, "smooth", lambda tree: tree)
        with pytest.raises(AssertionError, match="gradient of order 1"):
            program_checks.gradients_of_differences(tree, 0, 1)

    def test_a_file_with_another_result(self, comparison, tmp_path):
        program_checks.same_in_graphs(self.BRANCH, 0, tmp_path, "good")
        program_checks.same_in_graphs(self.BRANCH, 0, tmp_path, "wrong")
        assert compare_models.run(comparison, tmp_path) == (True, "2 models, 0 failed, largest difference 0\n")
        case = mx.nd.load(str(tmp_path / "wrong-case.params"))
        mx.nd.save(str(tmp_path / "wrong-case.params"), {**case, "output:0": case["output:0"] * (1 + 2e-16)})
        good, text = compare_models.run(comparison, tmp_path)
        assert not good
        assert "wrong: differs by" in text and "2 models, 1 failed" in text
        assert compare_models.run(comparison, tmp_path, 1e-12)[0]

    def test_no_models(self, comparison, tmp_path):
        good, text = compare_models.run(comparison, tmp_path)
        assert not good and "0 models" in text

    def test_depth_counts_nested_constructs_only(self):
        inner = While(1, 1.0, False, Variable(0), self.BRANCH, (), None)
        assert random_programs.depth_of(inner) == 1  # the branch computes the initial state, in front of the loop
        outer = Foreach(1, False, False, "rows", (inner,), (Variable(0),), (self.BRANCH,), 0, None, (), 0, 0)
        assert random_programs.depth_of(outer) == 2
        assert random_programs.constructs(outer) == Counter(Foreach=1, While=1, Cond=2)

    def test_programs_repeat(self):
        assert random_programs.make(random.Random(3), 4) == random_programs.make(random.Random(3), 4)
        assert prove.distinct_programs(30, 1) == prove.distinct_programs(30, 1)
        assert len(set(prove.distinct_programs(30, 1))) == 30
