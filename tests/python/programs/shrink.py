"""Shrinks a program to the smallest one that fails in the same way."""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Callable, Iterator

from .executors import Outcome
from .instructions import Helper, Instruction
from .program import Program

Ask = Callable[[Program], Outcome | None]


def signature(failure: tuple[str, str]) -> str:
    """The part of a failure's text that stays the same when programs become smaller."""
    executor, text = failure
    text = re.sub(r"round \d+: |\by\d+|\b[atwn]\d+", "", text.split(":", 2)[-1] if text.startswith("round") else text)
    kind = (
        "dtype" if "dtype" in text else "shape" if ": shape" in text else "values" if "expected" in text else text[:40]
    )
    return f"{executor}: {kind}"


def smallest(program: Program, failure: tuple[str, str], ask: Ask, seconds: float = 30) -> tuple[Program, str]:
    """Returns the smallest program found with the same failure, and the text of the failure."""
    wanted, text = signature(failure), failure[1]
    end = time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for candidate in _smaller(program):
            if time.monotonic() > end:
                break
            outcome = ask(candidate)
            if outcome is None:
                continue
            same = [f for f in outcome.failures if signature(f) == wanted]
            if same:
                program, text, progress = candidate, same[0][1], True
                break
    return program, text


def _smaller(program: Program) -> Iterator[Program]:
    if program.rounds > 1:
        candidate = copy.deepcopy(program)
        for array in candidate.inputs:
            array.values = array.values[:1]
        candidate.last = []
        yield candidate
    for part, size in [(part, size) for size in (8, 4, 2) for part in range(4)]:
        length = len(program.lists()[part])
        for start in range(max(length - size, 0), -1, -size):
            candidate = copy.deepcopy(program)
            instructions = candidate.lists()[part]
            removed_part = instructions[start : start + size]
            del instructions[start : start + size]
            fits = [_without(candidate, part, getattr(r, "target", None)) for r in removed_part]
            if length >= size and all(fits):
                yield candidate
    for part in range(len(program.lists())):
        for at in reversed(range(len(program.lists()[part]))):
            candidate = copy.deepcopy(program)
            instructions = candidate.lists()[part]
            removed = instructions[at]
            del instructions[at]
            if _without(candidate, part, getattr(removed, "target", None)):
                yield candidate
            if isinstance(removed, Helper):
                for inner in reversed(range(len(removed.body))):
                    candidate = copy.deepcopy(program)
                    helper = candidate.lists()[part][at]
                    assert isinstance(helper, Helper)
                    del helper.body[inner]
                    yield candidate
    for at in reversed(range(len(program.outputs))):
        if len(program.outputs) > 1:
            candidate = copy.deepcopy(program)
            del candidate.outputs[at]
            candidate.heads = [head for head in candidate.heads if head.output != at]
            for head in candidate.heads:
                head.output -= head.output > at
            if not _mentions([*candidate.between, *candidate.last], f"y{at}"):
                yield candidate
    for at in reversed(range(len(program.heads))):
        candidate = copy.deepcopy(program)
        del candidate.heads[at]
        yield candidate
    yield from _without_arrays(program)
    for name, value in {"retain": False, "shared": False, "train": False, "grad_req": "write", "record": False}.items():
        if getattr(program, name) != value:
            candidate = copy.deepcopy(program)
            setattr(candidate, name, value)
            if name == "record":
                candidate.heads = []
            if name != "shared" or not _mentions(candidate.body, "ws"):
                yield candidate


def _without(program: Program, part: int, target: str | None) -> bool:
    """Drops all instructions that need the name; False if the program needs one of them."""
    if target is None:
        return True
    for number, instructions in enumerate(program.lists()):
        if number < part or (part == 1 and number > 1):
            continue
        gone = {target}
        kept = []
        for instruction in instructions:
            if _uses(instruction, gone):
                made = getattr(instruction, "target", None)
                if made:
                    gone.add(made)
                continue
            kept.append(instruction)
        instructions[:] = kept
        if number == 1:
            stay = [name for name in program.outputs if name not in gone]
            if len(stay) < len(program.outputs):
                return False
        if number == 0 and gone & set(program.arguments):
            return False
    return True


def _uses(instruction: Instruction, names: set[str]) -> bool:
    words = set(
        re.findall(r"\b\w+\b", " ".join(instruction.lines(False) if _classic(instruction) else [repr(instruction)]))
    )
    return bool(words & names)


def _classic(instruction: Instruction) -> bool:
    try:
        instruction.lines(False)
    except AssertionError:
        return False
    return True


def _mentions(instructions: list[Instruction], name: str) -> bool:
    return any(_uses(instruction, {name}) for instruction in instructions)


def _without_arrays(program: Program) -> Iterator[Program]:
    for at in reversed(range(len(program.parameters))):
        name = program.parameters[at].name
        if any(_mentions(part, name) for part in program.lists()) or (at == 0 and program.shared):
            continue
        candidate = copy.deepcopy(program)
        del candidate.parameters[at]
        yield candidate
    for at in reversed(range(len(program.arguments))):
        if len(program.arguments) > 1 and not _mentions(program.body, f"x{at}") and at == len(program.arguments) - 1:
            candidate = copy.deepcopy(program)
            name = candidate.arguments.pop()
            used = name in candidate.arguments or any(
                _mentions(part, name) for part in (program.before, program.between, program.last)
            )
            if not used:
                candidate.inputs = [array for array in candidate.inputs if array.name != name] or candidate.inputs
            yield candidate
    for at, array in enumerate(program.inputs):
        if array.gradient:
            candidate = copy.deepcopy(program)
            candidate.inputs[at].gradient = False
            yield candidate
    for at, array in enumerate(program.parameters):
        if array.gradient:
            candidate = copy.deepcopy(program)
            candidate.parameters[at].gradient = False
            yield candidate
