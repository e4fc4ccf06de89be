"""Puts unsupported forms into branches and loops of the graph: each is refused with its code, at its line.

A context is a program with places for statements before, inside and after its construct (the line with ``#@``). A
mutation gives these statements; ``#!`` marks the line at which it must be refused.
"""

from __future__ import annotations

import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from hybridnet import nd
from hybridnet.errors import TraceError

from .checks import code_of, load

__all__ = ["CONTEXTS", "MUTATIONS", "Mutant", "main", "mutants", "run"]

_HEAD = """\
import contextlib
import numpy as np
import hybridnet as mx
from hybridnet import gluon, nd

TOTAL = 0

def rows_of(x):
    for row in x:  #generator
        yield row

def down(x):
    if x.sum() > 0:  #recursion
        return down(x - 1)
    return x

def untyped(x):
    if x.sum() > 0:  #untyped
        return x, x
    return x

class Net(gluon.HybridBlock):
    state = 0

"""
_FORWARD = """\
def forward(self, x, y):
    {before}
    y = y * 2
"""
# Kinds: what a construct is for the mutations: a branch, or a loop that may run any number of times.
CONTEXTS: dict[str, tuple[str, str]] = {
    "if": ("branch", _FORWARD + """\
    if x.sum() > 0:  #@
        y = y + 1
        {inside}
    {after}
    return y
"""),
    "else": ("branch", _FORWARD + """\
    if x.sum() > 0:  #@
        y = y + 1
    else:
        {inside}
        y = y - 1
    {after}
    return y
"""),
    "elif": ("branch", _FORWARD + """\
    if self.state:
        y = y * 3
    elif x[0] > 0:  #@
        {inside}
        y = y + x.sum()
    {after}
    return y
"""),
    "for": ("loop", _FORWARD + """\
    for v in x:  #@
        y = y + v
        {inside}
    {after}
    return y
"""),
    "zip": ("loop", _FORWARD + """\
    for v, w in zip(x, y):  #@
        {inside}
        y = y + v * w
    {after}
    return y
"""),
    "enumerate": ("loop", _FORWARD + """\
    for i, v in enumerate(reversed(x)):  #@
        {inside}
        y = y + v * i
    {after}
    return y
"""),
    "while": ("free", _FORWARD + """\
    n = 0
    while y.sum() < 20 and n < 4:  #@
        n += 1
        y = y * 2
        {inside}
    {after}
    return y
"""),
    "range": ("free", _FORWARD + """\
    for i in range(abs(x).sum().astype('int32') + 1):  #@
        {inside}
        y = y + i
    {after}
    return y
"""),
    "break": ("loop", _FORWARD + """\
    for v in x:  #@
        {inside}
        if v > 1:
            break
        y = y + v
    {after}
    return y
"""),
    "if in for": ("branch", _FORWARD + """\
    for v in x:  #^
        if v > 0:  #@
            {inside}
            y = y + v
        {after}
    return y
"""),
    "for in if": ("loop", _FORWARD + """\
    if x.sum() > 0:
        for v in x:  #@
            y = y + v
            {inside}
        {after}
    return y
"""),
    "method": ("branch", """\
def step(self, x, y):
    {before}
    y = y * 2
    if x > 0:  #@
        {inside}
        y = y + x
    {after}
    return y

def forward(self, x, y):
    for v in x:
        y = self.step(v, y)
    return y
"""),
    "nested function": ("loop", """\
def forward(self, x, y):
    def total(x, y):
        {before}
        for v in x:  #@
            y = y + v
            {inside}
        {after}
        return y
    return total(x, y) if x.sum() > 0 else y
"""),
}  # fmt: skip

_ALL, _LOOPS = ("branch", "loop", "free"), ("loop", "free")


@dataclass(frozen=True)
class _Mutation:
    """at: the line of the error: "!" the marked line, "@" that of the construct, "^" that of the loop around it, or
    another mark of the program.
    """

    codes: tuple[str, ...]
    inside: str
    before: str = "pass"
    after: str = "pass"
    kinds: tuple[str, ...] = _ALL
    at: str = "!"


MUTATIONS: dict[str, _Mutation] = {
    "try": _Mutation(("HN108",), "try:  #!\n    y = y + 1\nexcept ValueError:\n    y = y - 1"),
    "with": _Mutation(("HN108",), "with contextlib.suppress(ValueError):  #!\n    y = y + 1"),
    "raise": _Mutation(("HN108",), "raise ValueError('no')  #!"),
    "attribute": _Mutation(("HN106",), "self.state = y  #!", at="@!"),
    "attribute number": _Mutation(("HN106",), "self.state += 1  #!", at="@!"),
    "one-sided name": _Mutation(("HN101",), "late = y * 2", after="y = y + late", kinds=("branch",), at="@"),
    "one-sided number": _Mutation(("HN101",), "late = 2", after="y = y + late", kinds=("branch",), at="@"),
    "deleted name": _Mutation(("HN101",), "del old", "old = x", "y = y + old.sum()", kinds=("branch",), at="@"),
    "name of the loop": _Mutation(("HN102",), "late = y * 2", after="y = y + late", kinds=("free",), at="@"),
    "tuple for array": _Mutation(
        ("HN103",), "y2 = (y, y)", "y2 = x", "y = y + y2[0].sum()", kinds=("branch", "free"), at="@"
    ),
    "None for array": _Mutation(
        ("HN103",), "y2 = None", "y2 = x", "y = y if y2 is None else y2 * 3", kinds=("branch", "free"), at="@"
    ),
    "text": _Mutation(
        ("HN103",), "name = 'longer'", "name = 'a'", "y = y * len(name)", kinds=("branch", "free"), at="@"
    ),
    "dtype": _Mutation(
        ("HN103",),
        "y2 = y2.astype('float64')",
        "y2 = x",
        "y = y + y2.sum().astype('float32')",
        kinds=("branch", "free"),
        at="@",
    ),
    "dtype to and fro": _Mutation(
        ("HN103",),
        "y2, y3 = y3, y2",
        "y2, y3 = x, x.astype('int32')",
        "y = y + y2.sum().astype('float32')",
        kinds=("branch", "free"),
        at="@",
    ),
    "rank": _Mutation(("HN103",), "y2 = y2.expand_dims(0)", "y2 = x", "y = y + y2.sum()", at="@"),
    "shape in a loop": _Mutation(
        ("HN103",), "y2 = nd.concat(y2, y2, dim=0)", "y2 = x", "y = y + y2.sum()", kinds=_LOOPS, at="@"
    ),
    "growing tuple": _Mutation(("HN103",), "parts = (*parts, y)", "parts = (x,)", "y = y + len(parts)", at="@"),
    "growing list by +": _Mutation(("HN103",), "parts = parts + [y]", "parts = [x]", "y = y + len(parts)", at="@"),
    "dict key": _Mutation(
        ("HN107",), "table['new'] = y", "table = {'old': x}", "y = y + len(table)", kinds=("branch", "free"), at="@"
    ),
    "set": _Mutation(("HN107",), "seen.add(2)", "seen = {1}", "y = y + len(seen)", kinds=("branch", "free"), at="@"),
    # A loop around the branch fills the list, and refuses that the loop reads it.
    "append in a branch": _Mutation(
        ("HN107", "HN104"), "items.append(y)", "items = []", "y = y + len(items)", kinds=("branch",), at="@^"
    ),
    "pop": _Mutation(("HN107", "HN104"), "items.pop()", "items = [x] * 9", "y = y + len(items)", at="@"),
    "insert": _Mutation(("HN107", "HN104"), "items.insert(0, y)", "items = [x]", "y = y + len(items)", at="@"),
    "del item": _Mutation(("HN107", "HN104"), "del items[0]", "items = [x] * 9", "y = y + len(items)", at="@"),
    "list read while filled": _Mutation(
        ("HN104",), "items.append(y)\ny = y + items[0]", "items = []", "y = y + items[-1]", kinds=_LOOPS, at="@"
    ),
    "length of a list while filled": _Mutation(
        ("HN104",), "items.append(y)\ny = y + len(items)", "items = []", kinds=_LOOPS, at="@"
    ),
    "items of several types": _Mutation(
        ("HN104",), "items.append(y)\nitems.append((y, y))", "items = []", "y = y + items[0]", kinds=_LOOPS, at="@"
    ),
    "functions in a list": _Mutation(
        ("HN104",), "items.append(lambda: y)", "items = []", "y = y + items[0]()", kinds=_LOOPS, at="@"
    ),
    "text in a list": _Mutation(
        ("HN104",), "items.append('text')", "items = []", "y = y + len(items)", kinds=_LOOPS, at="@"
    ),
    "generator function": _Mutation(("HN100",), "for row in rows_of(y):\n    y = y + row", at="generator"),
    "int": _Mutation(("HN108",), "y = y * int(y.sum())  #!"),
    "asnumpy": _Mutation(("HN100",), "y = y * float(y.asnumpy()[0])  #!"),
    "function of NumPy": _Mutation(("HN100",), "y = y + float(np.sum(np.array(y)))  #!"),
    "sorted": _Mutation(("HN100",), "y = y + sorted([y.sum(), x.sum()])[0]  #!"),
    "match": _Mutation(("HN100", "HN108"), "match y.sum():  #!\n    case 1:  #!\n        y = y + 1"),
    "format": _Mutation(("HN100", "HN108"), "y = y * len('%d' % y.sum())  #!"),
    "eval": _Mutation(("HN100", "HN108"), "y = y * eval('1 if y.sum() > 0 else 2', {'y': y})  #!"),
    "whole array as condition": _Mutation(("HN103",), "if y > 0:  #!\n    y = y - 1"),
    "recursion": _Mutation(("HN108", "HN100"), "y = down(y)", at="recursion"),
    "types of returned values": _Mutation(("HN105",), "if y.sum() > 5:  #!\n    return y, y", at="!@"),
    "None returned": _Mutation(("HN105",), "if y.sum() > 5:  #!\n    return None", at="!@"),
    "types of a function's results": _Mutation(("HN105",), "y = y + untyped(y)[0]", at="untyped"),
    "two types in an expression": _Mutation(("HN103",), "y = y + len(x if y.sum() > 0 else (y, y, y, y, y, y))  #!"),
    "global": _Mutation(("HN108", "HN106", "HN103"), "TOTAL = TOTAL + 1  #!", "global TOTAL", at="@!"),
    "comprehension of unknown length": _Mutation(
        ("HN108",), "y = y + sum([i for i in range(y.sum().astype('int32'))])  #!"
    ),
    "index of a list": _Mutation(("HN100", "HN108"), "y = y * [1, 2, 3].index(y.sum())  #!"),
}


@dataclass(frozen=True)
class Mutant:
    """A program that must be refused with one of the codes at one of the lines."""

    name: str
    mutation: str
    source: str
    codes: tuple[str, ...]
    lines: tuple[int, ...]


def _filled(template: str, parts: dict[str, str]) -> str:
    for name, text in parts.items():

        def indented(found: re.Match[str], text: str = text) -> str:
            return textwrap.indent(text, found.group(1))

        template = re.sub(rf"^( *)\{{{name}\}}$", indented, template, flags=re.MULTILINE)
    return template


def mutants() -> Iterator[Mutant]:
    """All mutations of all programs that they fit."""
    for context, (kind, template) in CONTEXTS.items():
        for name, mutation in MUTATIONS.items():
            if kind not in mutation.kinds:
                continue
            parts = {"before": mutation.before, "inside": mutation.inside, "after": mutation.after}
            source = _HEAD + textwrap.indent(_filled(template, parts), "    ")
            marks = [mutation.at] if mutation.at.isalpha() else list(mutation.at)
            lines = [
                number
                for number, line in enumerate(source.split("\n"), 1)
                if any(line.endswith(f"#{mark}") for mark in marks)
            ]
            yield Mutant(f"{name} in {context}", name, source, mutation.codes, tuple(lines))


def supported() -> Iterator[tuple[str, str]]:
    """The programs without a mutation: they are converted."""
    for context, (_, template) in CONTEXTS.items():
        parts = dict.fromkeys(("before", "inside", "after"), "pass")
        yield context, _HEAD + textwrap.indent(_filled(template, parts), "    ")


# More rows than a loop of the graph may run before its types settle.
_INPUTS = (np.array([0.5, 1.5, -0.25, 0.75, 0.125], "float32"), np.array([1.0, 2.0, 3.0, 0.5, 0.25], "float32"))


def run(source: str, lines: tuple[int, ...]) -> tuple[str, str, bool]:
    """Returns the code or what came instead, the text of the error, and whether the error has one of the lines."""
    with warnings.catch_warnings(), load(source) as module:
        warnings.simplefilter("ignore")
        net = module.Net()
        net.hybridize(strict=True)
        try:
            result = net(*[nd.array(array) for array in _INPUTS])
        except TraceError as error:
            where = error.where or ""
            right = where in [f"{module.__file__}:{line}" for line in lines]
            found = code_of(error) or f"{type(error).__name__} without code"
            return found, f"{error}\n(where: {where.rpartition(':')[2]}, expected {lines})", right
        except RecursionError:
            return "RecursionError", "", False
        except Exception as error:
            return type(error).__name__, str(error), False
        try:
            wanted = module.Net()(*[nd.array(array) for array in _INPUTS])
        except Exception as error:
            return "converted", f"the imperative program raises {type(error).__name__}: {error}", False
        equal = np.array_equal(wanted.asnumpy(), result.asnumpy(), equal_nan=True)
        return "converted" if equal else "WRONG VALUE", f"{wanted.asnumpy()} and {result.asnumpy()}", False


def main() -> int:
    """Runs all mutations; returns 1 if one is not refused as it should be."""
    failures: Counter[str] = Counter()
    count = 0
    for name, source in supported():
        found, text, _ = run(source, ())
        if found != "converted":
            failures["supported"] += 1
            print(f"--- the program {name!r} without mutation: {found}\n{source}\n{text}")
    for mutant in mutants():
        count += 1
        found, text, right = run(mutant.source, mutant.lines)
        if found in mutant.codes and right:
            continue
        reason = "wrong line" if found in mutant.codes else "wrong code"
        failures[f"{mutant.mutation}: {found} ({reason})"] += 1
        forward = mutant.source[len(_HEAD) :]
        print(f"--- {mutant.name}: {found}, expected {' or '.join(mutant.codes)}\n{forward}\n{text}")
    for name, number in failures.most_common():
        print(f"{number:>5}  {name}")
    print(f"{count} mutations, {sum(failures.values())} failures")
    return bool(failures)
