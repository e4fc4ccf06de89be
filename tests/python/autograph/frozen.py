"""Freezes decisions of programs on purpose, as a tracer does that takes the branch of the first input for all inputs.

frozen_programs() compiles a module of the corpus with each decision replaced by a call::

    while a < b and c:              ag_loop_7 = frozen.loop(7)
        ...                   ->    while frozen.step(ag_loop_7, (frozen.test(8, ag_1 := a < b) and ...)):

Site numbers are unique per module. Decisions are tests of if, while and conditional expressions, operands of and and
or, parts of chained comparisons, and the number of iterations of loops.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .corpus_support import Program

_MOST = 2_000  # a loop that a frozen decision keeps running


class Endless(Exception):
    """A frozen decision made a loop run for too long."""


@dataclass(frozen=True)
class Decision:
    """A decision of a program. kind: "test" or "trips"; text: its source; constant: fixed by the source."""

    number: int
    program: str
    line: int
    kind: str
    text: str
    constant: bool


class Freezer:
    """The runtime of the rewritten programs: notes what decisions give, and freezes one of them."""

    def __init__(self) -> None:
        self.frozen: int | None = None
        self.value: Any = None
        self.seen: dict[int, Any] = {}  # the first value of each decision
        self.steps = 0

    def start(self, frozen: int | None = None, value: Any = None) -> None:
        """Begins a run in which decision number `frozen` has this value."""
        self.frozen, self.value, self.steps = frozen, value, 0

    def test(self, number: int, value: Any) -> bool:
        """Returns the truth of a decision."""
        self._count()
        if number == self.frozen:
            return bool(self.value)
        truth = bool(value)
        self.seen.setdefault(number, truth)
        return truth

    def loop(self, number: int) -> list[int]:
        """Returns the state of a loop: its number and the iterations so far."""
        return [number, 0]

    def step(self, state: list[int], test: Any) -> bool:
        """Whether a while loop has another iteration."""
        self._count()
        number, done = state
        goes_on = done < self.value if number == self.frozen else bool(test)
        if goes_on:
            state[1] += 1
        self._note(state)
        return goes_on

    def items(self, state: list[int], items: Iterable[Any]) -> Iterator[Any]:
        """Yields the items of a for loop."""
        number = state[0]
        for item in items:
            self._count()
            if number == self.frozen and state[1] >= self.value:
                return
            state[1] += 1
            self._note(state)
            yield item
        self._note(state)
        if number == self.frozen and state[1] < self.value:
            raise IndexError("a frozen loop has more iterations than there are items")

    def _note(self, state: list[int]) -> None:
        """Keeps the number of iterations of the first execution of a loop; the state belongs to one execution."""
        number, done = state
        kept = self.seen.get(number)
        if kept is None or kept[1] is state:
            self.seen[number] = (done, state)

    def _count(self) -> None:
        self.steps += 1
        if self.steps > _MOST * 10:
            raise Endless


class _Instrument(ast.NodeTransformer):
    def __init__(self, first: int = 0) -> None:
        self.decisions: list[Decision] = []
        self.program = ""
        self._names = 0

    def _number(self, node: Any, kind: str, constant: bool = False) -> int:
        number = len(self.decisions)
        text = ast.unparse(node)
        self.decisions.append(Decision(number, self.program, node.lineno, kind, text, constant))
        return number

    def _call(self, name: str, *arguments: ast.expr) -> ast.expr:
        return ast.Call(ast.Attribute(ast.Name("frozen", ast.Load()), name, ast.Load()), list(arguments), [])

    def _name(self) -> str:
        self._names += 1
        return f"ag_{self._names}"

    def _decided(self, node: ast.expr, value: ast.expr) -> ast.expr:
        return self._call("test", ast.Constant(self._number(node, "test")), value)

    def _condition(self, node: ast.expr) -> ast.expr:
        """Returns a test whose truth is a decision; and, or, not and chains are decisions of their parts."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ast.UnaryOp(ast.Not(), self._condition(node.operand))
        if isinstance(node, ast.BoolOp):
            return ast.BoolOp(node.op, [self._condition(part) for part in node.values])
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            return ast.BoolOp(ast.And(), [self._decided(*pair) for pair in self._comparisons(node)])
        return self._decided(node, self.visit(node))

    def _comparisons(self, node: ast.Compare) -> Iterator[tuple[ast.expr, ast.expr]]:
        """Yields source and code of each comparison of a chain; the middle operands are evaluated once."""
        left, left_code = node.left, self.visit(node.left)
        for position, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            right_code = self.visit(right)
            if position + 1 < len(node.ops):
                name = self._name()
                next_code: ast.expr = ast.Name(name, ast.Load())
                right_code = ast.NamedExpr(ast.Name(name, ast.Store()), right_code)
            else:
                next_code = right_code
            source = ast.copy_location(ast.Compare(left, [op], [right]), node)
            yield source, ast.Compare(left_code, [op], [right_code])
            left, left_code = right, next_code

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """and and or whose value is used: the last operand is no decision."""
        made = self.visit(node.values[-1])
        for part in reversed(node.values[:-1]):
            name = self._name()
            test = self._decided(part, ast.NamedExpr(ast.Name(name, ast.Store()), self.visit(part)))
            kept = ast.Name(name, ast.Load())
            is_and = isinstance(node.op, ast.And)
            made = ast.IfExp(test, made, kept) if is_and else ast.IfExp(test, kept, made)
        return made

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return ast.IfExp(self._condition(node.test), self.visit(node.body), self.visit(node.orelse))

    def visit_If(self, node: ast.If) -> ast.stmt:
        test = self._condition(node.test)
        body, orelse = self._block(node.body), self._block(node.orelse)
        return ast.copy_location(ast.If(test, body, orelse), node)

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            made += new if isinstance(new, list) else [new]
        return made

    def _loop(self, node: Any, number: int) -> tuple[str, ast.stmt]:
        name = f"ag_loop_{number}"
        start = ast.Assign([ast.Name(name, ast.Store())], self._call("loop", ast.Constant(number)))
        return name, ast.copy_location(start, node)

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        is_constant = isinstance(node.test, ast.Constant)
        name, start = self._loop(node, self._number(node.test, "trips", is_constant))
        test = node.test if is_constant else self._condition(node.test)
        test = self._call("step", ast.Name(name, ast.Load()), test)
        body, orelse = self._block(node.body), self._block(node.orelse)
        return [start, ast.copy_location(ast.While(test, body, orelse), node)]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        name, start = self._loop(node, self._number(node.iter, "trips", _is_constant(node.iter)))
        items = self._call("items", ast.Name(name, ast.Load()), self.visit(node.iter))
        body, orelse = self._block(node.body), self._block(node.orelse)
        return [start, ast.copy_location(ast.For(node.target, items, body, orelse), node)]


def _is_constant(items: ast.expr) -> bool:
    """Whether the source fixes what a loop iterates over."""
    if isinstance(items, ast.Call):
        name = items.func.attr if isinstance(items.func, ast.Attribute) else getattr(items.func, "id", "")
        return name == "range" and all(isinstance(part, ast.Constant) for part in items.args)
    return isinstance(items, (ast.Tuple, ast.List))


def frozen_programs(module: types.ModuleType) -> tuple[Freezer, list[Decision], dict[str, Program]]:
    """Returns the runtime, the decisions, and the rewritten programs of a module of the corpus."""
    tree = ast.parse(inspect.getsource(module))
    instrument = _Instrument()
    body: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            instrument.program = statement.name
            statement = instrument.visit(statement)
        body.append(statement)
    tree.body = body
    freezer = Freezer()
    made = types.ModuleType(module.__name__)
    made.__dict__.update(__package__=module.__package__, frozen=freezer)
    exec(compile(ast.fix_missing_locations(tree), module.__file__ or "", "exec"), made.__dict__)
    return freezer, instrument.decisions, {program.name: program for program in made.PROGRAMS}
