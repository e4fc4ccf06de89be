"""Cases of the proof by number: a random program, its inputs, and what happened."""

from __future__ import annotations

from . import checks, generator
from .checks import Outcome
from .shrink import shrink

__all__ = ["case", "program_of"]

_PRIME = 1_000_003


def program_of(number: int, seed: int) -> generator.Program:
    """The program of a case."""
    return generator.make(seed * _PRIME + number)


def case(number: int, seed: int, seconds: float = 0) -> tuple[Outcome, str]:
    """Returns the outcome of a program and its source; that of a failure is made smaller if seconds are given."""
    program = program_of(number, seed)
    calls = checks.inputs_of(program, number, with_nan=number % 5 == 0)
    outcome = checks.check(program.source, calls)
    if outcome.kind == "hang":  # the machine may have been busy
        outcome = checks.check(program.source, calls)
    if not outcome.is_failure or not seconds or outcome.kind == "hang":
        return outcome, program.source

    def fails(source: str) -> bool:
        found = checks.check(source, calls)
        return (found.kind, found.cause) == (outcome.kind, outcome.cause)

    source = shrink(program.source, fails, seconds)
    return checks.check(source, calls), source
