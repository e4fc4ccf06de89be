"""A decision frozen to what the first input gives, or to the other value, changes a result of the corpus.

So a conversion that takes one branch for all inputs, or copies a loop's body, fails test_corpus.py.
"""

from __future__ import annotations

import types
from typing import Any

import hybridnet as mx
import numpy as np
import pytest

from .corpus import BUGS, MODULES
from .corpus_support import Program, flat
from .frozen import Decision, Endless, Freezer, frozen_programs

# Decisions that nothing can catch: (program or helper, source of the decision, frozen to) and the reason.
EXCEPTIONS: dict[tuple[str, str, Any], str] = {
    ("match_on_python_values", "name == 'square'", True): "the only string among the layers is 'square'",
    ("zip_with_a_constant", "zip(x, weights)", 3): "the constant has three rows, and all inputs fit it",
    ("beam_search", "zip(last, totals, finished)", 3): "there are WIDTH beams for all inputs",
    ("EarlyExit", "self.stages", 3): "the block has three stages for all inputs",
}


def outcome(program: Program, values: Any) -> Any:
    """Returns the results of an input; the type of the exception if it raises one."""
    mx.random.seed(1)
    try:
        with program.interface():
            return flat(program.block()(*program.arrays(values)))
    except Endless:
        return Endless
    except Exception as error:
        return type(error)


def same(one: Any, two: Any) -> bool:
    if isinstance(one, type) or isinstance(two, type):
        return one is two
    return len(one) == len(two) and all(
        a.shape == b.shape and np.array_equal(a, b, equal_nan=True) for a, b in zip(one, two, strict=True)
    )


class Corpus:
    """The rewritten programs of a module, and what their decisions give."""

    def __init__(self, module: types.ModuleType) -> None:
        self.freezer: Freezer
        self.freezer, self.decisions, self.programs = frozen_programs(module)
        self.expected: dict[str, list[Any]] = {}
        self.first: dict[tuple[str, int], Any] = {}  # per program and decision
        for program in self.programs.values():
            self.freezer.seen.clear()
            self.freezer.start()
            self.expected[program.name] = []
            for values in program.inputs:
                self.freezer.start()
                self.expected[program.name].append(outcome(program, values))
            for number, value in self.freezer.seen.items():
                self.first[program.name, number] = value[0] if isinstance(value, tuple) else value

    def users(self, decision: Decision) -> list[Program]:
        """Returns the programs that take a decision: its own one, or those that use a helper."""
        return [program for program in self.programs.values() if (program.name, decision.number) in self.first]

    def catches(self, program: Program, decision: Decision, value: Any) -> bool:
        """Whether an input gives another result if the decision has this value."""
        for values, expected in zip(program.inputs, self.expected[program.name], strict=True):
            self.freezer.start(decision.number, value)
            if not same(outcome(program, values), expected):
                return True
        return False


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_frozen_decision_is_caught(module: types.ModuleType) -> None:
    corpus = Corpus(module)
    for program, expected in corpus.expected.items():
        assert not any(isinstance(result, type) for result in expected), program
    missed, checked, exceptions = [], 0, set()
    for decision in corpus.decisions:
        users = corpus.users(decision)
        if decision.constant or decision.program in {program.name for program in BUGS}:
            continue
        assert users, f"no input reaches {decision}"
        for program in users:
            first = corpus.first[program.name, decision.number]
            for value in [first] if decision.kind == "trips" else [False, True]:
                key = (decision.program, decision.text, value)
                checked += 1
                if key in EXCEPTIONS:
                    exceptions.add(key)
                elif not corpus.catches(program, decision, value):
                    missed.append(f"{program.name}:{decision.line} {decision.text!r} frozen to {value}")
    assert not missed, "\n".join(missed)
    assert checked > 50
    assert exceptions == {key for key in EXCEPTIONS if key[0] in corpus.programs}


def test_frozen_programs_compute_the_same_when_nothing_is_frozen() -> None:
    for module in MODULES:
        corpus = Corpus(module)
        for program in module.PROGRAMS:
            for values, expected in zip(program.inputs, corpus.expected[program.name], strict=True):
                assert same(outcome(program, values), expected), program.name
