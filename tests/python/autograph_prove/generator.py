"""Makes random modules of plain Python with a block whose forward branches and loops over arrays.

The programs end on every input: the conditions of while loops bound a counter, arrays have at most four rows, and
numbers stay small. They may raise errors of Python, such as UnboundLocalError: those programs count as invalid.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from .numpy_form import numpy_form

__all__ = ["Program", "make"]

# Types of names. Arrays are (shape, dtype), shapes "V" (n,), "S" (1,), "M" (n, 3), "R" (3,); others are strings or
# tuples ("tuple", ...), ("list", type of the items, known length or None), ("dict", type of the values).
FLOAT, DOUBLE, INT = "float32", "float64", "int32"
S, V, M, R = ("S", FLOAT), ("V", FLOAT), ("M", FLOAT), ("R", FLOAT)
_ROW_OF = {"V": "S", "S": "S", "M": "R", "R": "S"}
_KEYS = ("a", "b", "c")


_HEAD = """\
from collections import namedtuple
import hybridnet as mx
from hybridnet import gluon, nd

FLAG, SIZES = True, (2, 3)
Pair = namedtuple('Pair', ['one', 'two'])

class Box:
    def __init__(self, one, two):
        self.one, self.two = one, two
"""


@dataclass
class Program:
    """The source of a module with a class Net, and the types of the arguments of its forward."""

    source: str
    arguments: list[tuple[str, str]]
    features: set[str] = field(default_factory=set)


@dataclass
class _Helper:
    name: str
    parameters: list[Any]
    result: Any
    is_method: bool


class _Scope:
    """Names of a function with their types; may_* say which jumps are allowed at a place."""

    def __init__(self, names: dict[str, Any], result: Any) -> None:
        self.names, self.result = names, result
        self.depth = 0
        self.in_loop = False
        self.steps = 1  # how often the statement runs at most
        self.filling: set[str] = set()  # lists that the loops around fill
        self.busy: set[str] = set()  # lists that the loops around iterate over: growing them would not end

    def inner(self, in_loop: bool | None = None, times: int = 1) -> _Scope:
        made = _Scope(dict(self.names), self.result)
        made.depth, made.steps = self.depth + 1, self.steps * times
        made.in_loop = self.in_loop if in_loop is None else in_loop
        made.filling, made.busy = set(self.filling), set(self.busy)
        return made


def is_array(kind: Any) -> bool:
    return isinstance(kind, tuple) and len(kind) == 2 and kind[0] in ("V", "S", "M", "R")


class _Maker:
    def __init__(self, seed: int, risk: float) -> None:
        self.random = random.Random(seed)
        self.risk = risk  # how often a statement may change a type or leave a name undefined
        self.count = 0
        self.helpers: list[_Helper] = []
        self.features: set[str] = set()
        # Whether it writes into arrays in place: with aliases of the branches, that is refused often (HN109).
        self.aliases = False  # whether a list has two names
        self.writes = self.random.random() < 0.6

    # -- choices ----------------------------------------------------------------------------------------------------

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def risky(self) -> bool:
        return self.chance(self.risk)

    def pick(self, items: Any) -> Any:
        return self.random.choice(list(items))

    def weighted(self, table: dict[Any, float]) -> Any:
        return self.random.choices(list(table), list(table.values()))[0]

    def new(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def named(self, scope: _Scope, test: Any) -> list[str]:
        return [name for name, kind in scope.names.items() if test(kind)]

    # -- expressions ------------------------------------------------------------------------------------------------

    def number(self, scope: _Scope, depth: int = 0) -> str:
        """An expression whose value is a number of Python."""
        ints = self.named(scope, lambda k: k == "int")
        floats = self.named(scope, lambda k: k == "float")
        if depth > 2 or self.chance(0.35):
            pool = ints + floats
            if pool and self.chance(0.75):
                return self.pick(pool)
            return self.pick(["0", "1", "2", "3", "0.5", "-1", "1.5", "-0.25"])
        choice = self.weighted(
            {"op": 5, "len": 1, "max": 1, "abs": 1, "ternary": 1, "float": 0.7, "item": 0.4, "mod": 1}
        )
        if choice == "op":
            return f"({self.number(scope, depth + 1)} {self.pick('+-*')} {self.number(scope, depth + 1)})"
        if choice == "mod":
            return f"({self.integer(scope, depth + 1)} {self.pick(['%', '//'])} {self.pick('234')})"
        if choice == "len":
            names = self.named(scope, lambda k: is_array(k) or k[0] in ("list", "tuple"))
            return f"len({self.pick(names)})" if names else "2"
        if choice == "max":
            word = self.pick(["max", "min"])
            return f"{word}({self.number(scope, depth + 1)}, {self.number(scope, depth + 1)})"
        if choice == "abs":
            return f"abs({self.number(scope, depth + 1)})"
        if choice == "ternary":
            return (
                f"({self.number(scope, depth + 1)} if {self.test(scope, depth + 1)} "
                f"else {self.number(scope, depth + 1)})"
            )
        if choice == "float":
            self.features.add("float()")
            return f"float({self.array(scope, S, depth + 1)})"
        self.features.add("asscalar")
        return f"{self.array(scope, S, depth + 1)}.asscalar()"

    def integer(self, scope: _Scope, depth: int = 0) -> str:
        ints = self.named(scope, lambda k: k == "int")
        if ints and (depth > 2 or self.chance(0.5)):
            return self.pick(ints)
        if depth > 2 or self.chance(0.4):
            return self.pick("0123")
        return f"({self.integer(scope, depth + 1)} {self.pick('+-*')} {self.integer(scope, depth + 1)})"

    def array(self, scope: _Scope, kind: Any, depth: int = 0) -> str:
        """An expression of an array type."""
        shape = kind[0]
        same = self.named(scope, lambda k: k == kind)
        if depth > 2 or self.chance(0.3):
            if same:
                return self.pick(same)
            return self.leaf(scope, kind)
        choices: dict[str, float] = {
            "op": 6, "scalar": 4, "unary": 2, "ternary": 1, "helper": 1.5, "boolop": 0.3, "builtin": 0.4, "item": 1,
            "leaf": 1, "inner": 0.5, "unchecked": 0.2,
        }  # fmt: skip
        if shape == "S":
            choices |= {"reduce": 4, "row": 2, "sum": 0.4, "minmax": 0.7}
        if shape in ("V", "M", "R"):
            choices |= {"slice": 0.3, "comprehension": 0.2}
        choice = self.weighted(choices)
        made = getattr(self, f"_array_{choice}")(scope, kind, depth + 1)
        if made is None:
            return self.pick(same) if same else self.leaf(scope, kind)
        return made

    def leaf(self, scope: _Scope, kind: Any) -> str:
        """A new array of a type that no name may have."""
        shape, dtype = kind
        like = self.named(scope, lambda k: is_array(k) and k[0] == shape)
        if like:
            name = self.pick(like)
            return f"{name}.astype('{dtype}')" if scope.names[name][1] != dtype else name
        text = self.pick(["zeros", "ones"])
        if shape == "S" and (whole := self.named(scope, lambda k: is_array(k) and k[0] != "S")) and self.chance(0.85):
            name = self.pick(whole)
            reduced = f"{name}.{self.pick(['sum', 'max', 'min'])}()"
            return reduced if scope.names[name][1] == dtype else f"{reduced}.astype('{dtype}')"
        if shape == "S":
            return f"nd.{text}((1,), dtype='{dtype}')"
        if shape == "R":
            return f"nd.{text}((3,), dtype='{dtype}')"
        source = self.named(scope, lambda k: is_array(k) and k[0] in ("V", "M"))
        if source:
            name = self.pick(source)
            other = scope.names[name][0]
            base = f"{name}.sum(axis=1)" if other == "M" else f"nd.broadcast_to({name}.reshape((-1, 1)), shape=(0, 3))"
            return f"{base}.astype('{dtype}')"
        return (
            f"nd.{text}(({'2' if shape == 'V' else '2, 3'},), dtype='{dtype}')"
            if shape == "V"
            else f"nd.{text}((2, 3), dtype='{dtype}')"
        )

    def _bounded(self, text: str, dtype: str) -> str:
        if dtype == INT:
            return f"(({text}) % 7)"
        return f"nd.tanh({text})" if self.chance(0.6) else f"({text})"

    def _array_op(self, scope: _Scope, kind: Any, depth: int) -> str:
        other = kind if self.chance(0.7) or kind[0] == "S" else ("S", kind[1])
        left, right = self.array(scope, kind, depth), self.array(scope, other, depth)
        if self.chance(0.3):
            left, right = right, left
        return self._bounded(f"{left} {self.pick('+-*')} {right}", kind[1])

    def _array_scalar(self, scope: _Scope, kind: Any, depth: int) -> str:
        left = self.array(scope, kind, depth)
        right = self.integer(scope, depth) if kind[1] == INT else self.number(scope, depth)
        if self.chance(0.3):
            left, right = right, left
        return self._bounded(f"{left} {self.pick('+-*')} {right}", kind[1])

    def _array_unary(self, scope: _Scope, kind: Any, depth: int) -> str:
        text = self.array(scope, kind, depth)
        if kind[1] == INT:
            return self.pick([f"(-{text})", f"abs({text})"])
        return self.pick([f"(-{text})", f"abs({text})", f"nd.tanh({text})", f"nd.relu({text})", f"nd.sigmoid({text})"])

    def _array_ternary(self, scope: _Scope, kind: Any, depth: int) -> str:
        self.features.add("ternary")
        return f"({self.array(scope, kind, depth)} if {self.test(scope, depth)} else {self.array(scope, kind, depth)})"

    def _array_boolop(self, scope: _Scope, kind: Any, depth: int) -> str | None:
        if kind[0] != "S":
            return None
        return f"({self.array(scope, kind, depth)} {self.pick(['and', 'or'])} {self.array(scope, kind, depth)})"

    def _array_builtin(self, scope: _Scope, kind: Any, depth: int) -> str:
        if kind[0] == "S":
            return f"{self.pick(['max', 'min'])}({self.array(scope, kind, depth)}, {self.array(scope, kind, depth)})"
        return f"abs({self.array(scope, kind, depth)})"

    _array_minmax = _array_builtin

    def _array_helper(self, scope: _Scope, kind: Any, depth: int) -> str | None:
        fitting = [helper for helper in self.helpers if helper.result == kind]
        if not fitting or scope.steps > 30:
            return None
        helper = self.pick(fitting)
        self.features.add("helper")
        arguments = ", ".join(self.value(scope, parameter, depth) for parameter in helper.parameters)
        return f"{'self.' if helper.is_method else ''}{helper.name}({arguments})"

    def _array_inner(self, scope: _Scope, kind: Any, depth: int) -> str | None:
        fitting = self.named(scope, lambda k: k[0] == "function" and k[1] == kind)
        return f"{self.pick(fitting)}({self.array(scope, kind, depth)})" if fitting else None

    def _array_item(self, scope: _Scope, kind: Any, depth: int) -> str | None:
        made: list[str] = []
        for name, other in scope.names.items():
            if other[0] == "tuple":
                made += [f"{name}[{i}]" for i, part in enumerate(other[1:]) if part == kind]
            elif other[0] == "list" and other[1] == kind and (name not in scope.filling or self.risky()):
                if other[2]:
                    made += [
                        f"{name}[{self.pick([*range(other[2]), -1])}]",
                        f"{name}[{self.integer(scope, 2)} % {other[2]}]",
                    ]
                elif self.chance(0.5):  # it may be empty
                    made += [f"{name}[-1]", f"{name}[0]", f"sum({name})", f"nd.add_n(*{name})"]
            elif other[0] == "record" and other[1] == kind:
                made += [f"{name}.one", f"{name}.two"]
            elif other[0] == "dict" and other[1] == kind:
                made.append(f"{name}['{self.pick(_KEYS[:2])}']")
        return self.pick(made) if made else None

    def _array_leaf(self, scope: _Scope, kind: Any, depth: int) -> str:
        return self.leaf(scope, kind)

    def _array_unchecked(self, scope: _Scope, kind: Any, depth: int) -> str:
        return f"nd.zeros_like({self.array(scope, kind, depth)})"

    def _array_reduce(self, scope: _Scope, kind: Any, depth: int) -> str:
        shape = self.pick(["V", "M", "R"])
        name = self.pick(["sum", "max", "min", "sum"] + ["mean"] * (kind[1] != INT))
        return f"{self.array(scope, (shape, kind[1]), depth)}.{name}()"

    def _array_row(self, scope: _Scope, kind: Any, depth: int) -> str | None:
        names = self.named(scope, lambda k: is_array(k) and k[0] in ("V", "R") and k[1] == kind[1])
        return f"{self.pick(names)}[{self.position(scope)}]" if names else None

    def _array_slice(self, scope: _Scope, kind: Any, depth: int) -> str | None:
        shape, dtype = kind
        if shape == "R":
            names = self.named(scope, lambda k: k == ("M", dtype))
            return f"{self.pick(names)}[{self.position(scope)}]" if names else None
        return f"{self.array(scope, kind, depth)}[::-1]" if self.chance(0.5) else f"{self.array(scope, kind, depth)}[:]"

    def _array_comprehension(self, scope: _Scope, kind: Any, depth: int) -> str | None:
        if kind[0] != "V":
            return None
        name = self.new("c")
        inner = scope.inner()
        inner.names[name] = ("S", kind[1])
        self.features.add("comprehension")
        return f"nd.concat(*[{self.array(inner, ('S', kind[1]), 2)} for {name} in {self.array(scope, kind, 2)}], dim=0)"

    def _array_sum(self, scope: _Scope, kind: Any, depth: int) -> str:
        return f"sum({self.array(scope, (self.pick(['V', 'R']), kind[1]), depth)})"

    def position(self, scope: _Scope) -> str:
        if self.chance(0.6):
            return self.pick(["0", "-1", "0"])
        if self.chance(0.04):
            return "1"
        return f"{self.integer(scope, 2)} % 2" if self.chance(0.3) else "0"

    def test(self, scope: _Scope, depth: int = 0) -> str:
        """A condition: on traced values mostly."""
        if depth < 3 and self.chance(0.25):
            word = self.pick(["and", "or", "not"])
            self.features.add(word)
            if word == "not":
                return f"not ({self.test(scope, depth + 1)})"
            return f"({self.test(scope, depth + 1)} {word} {self.test(scope, depth + 1)})"
        compare = ["<", ">", "<=", ">=", "<", ">", "==", "!="]
        kind = self.weighted(
            {
                "array": 6,
                "two": 2,
                "number": 2,
                "chain": 1,
                "bool": 1,
                "bare": 0.5,
                "python": 0.7,
                "none": 0.5,
                "in": 0.2,
            }
        )
        limit = self.pick(["0", "0.5", "-0.3", "1", "0.1", "2"])
        dtype = self.pick([FLOAT, FLOAT, FLOAT, self.pick([INT, DOUBLE])])
        if kind == "none":
            names = self.named(scope, lambda k: k[0] == "optional")
            if names:
                return f"{self.pick(names)} is {self.pick(['', 'not '])}None"
        if kind == "array":
            return f"{self.array(scope, ('S', dtype), depth + 1)} {self.pick(compare)} {limit}"
        if kind == "two":
            left, right = (self.array(scope, ("S", dtype), depth + 1) for _ in range(2))
            return f"{left} {self.pick(compare)} {right}"
        if kind == "number":
            return f"{self.number(scope, depth + 1)} {self.pick(compare)} {self.number(scope, depth + 1)}"
        if kind == "chain":
            self.features.add("chained comparison")
            middle = self.array(scope, ("S", dtype), depth + 1)
            low, high = self.pick(["-1", "0", "-0.5"]), self.pick(["1", "2", "0.7"])
            return f"{low} {self.pick(['<', '<='])} {middle} {self.pick(['<', '<=', '!='])} {high}"
        if kind == "bool":
            names = self.named(scope, lambda k: k == "bool")
            if names:
                return self.pick(names)
        if kind == "bare":
            return self.array(scope, ("S", dtype), depth + 1)
        if kind == "in":
            return f"{self.number(scope, 2)} in ({self.number(scope, 2)}, 1, 2)"
        return self.pick(["self.flag", "len(self.sizes) > 1", f"{self.integer(scope, 1)} % 2 == 0"])

    def value(self, scope: _Scope, kind: Any, depth: int = 0) -> str:
        """An expression of any type."""
        if is_array(kind):
            return self.array(scope, kind, depth)
        if kind == "int":
            return self.integer(scope, depth)
        if kind == "float":
            return f"({self.number(scope, depth)} * 0.5)"
        if kind == "bool":
            return f"({self.test(scope, depth)})"
        if kind[0] == "tuple":
            same = self.named(scope, lambda k: k == kind)
            if same and self.chance(0.4):
                return self.pick(same)
            return "(" + ", ".join(self.value(scope, part, depth + 1) for part in kind[1:]) + ",)"
        if kind[0] == "list":
            same = self.named(scope, lambda k: k == kind)
            if same and self.chance(0.3):
                return self.pick(same)
            return "[" + ", ".join(self.value(scope, kind[1], depth + 1) for _ in range(kind[2] or 0)) + "]"
        if kind[0] == "dict":
            return "{" + ", ".join(f"'{key}': {self.value(scope, kind[1], depth + 1)}" for key in _KEYS[:2]) + "}"
        if kind[0] == "optional":
            return self.array(scope, kind[1], depth)
        if kind[0] == "record":
            return f"{kind[2]}({self.value(scope, kind[1], depth + 1)}, {self.value(scope, kind[1], depth + 1)})"
        raise ValueError(kind)

    def some_kind(self, scope: _Scope) -> Any:
        """Returns the type of a new value."""
        arrays = [k for k in scope.names.values() if is_array(k)] or [S]
        which = self.weighted(
            {"array": 6, "S": 3, "int": 2, "float": 1, "bool": 0.7, "tuple": 1, "list": 1, "dict": 0.6, "other": 0.4}
        )
        if which == "array":
            return self.pick(arrays)
        if which == "S":
            return S
        if which == "tuple":
            return ("tuple", *[self.pick([*arrays, "int", S]) for _ in range(self.random.randint(1, 3))])
        if which == "list":
            return ("list", self.pick(arrays), self.random.randint(1, 3))
        if which == "dict":
            return ("dict", self.pick(arrays))
        if which == "other":
            return (self.pick("VSMR"), self.pick([FLOAT, INT, DOUBLE]))
        return which

    # -- statements -------------------------------------------------------------------------------------------------

    def block(self, scope: _Scope, size: int, ends: bool = True) -> tuple[list[str], bool]:
        """Returns lines, and whether the block ends in a jump."""
        lines: list[str] = []
        for _ in range(max(1, size)):
            made = self.statement(scope)
            lines += made
            if ends and (scope.in_loop or scope.depth) and self.chance(0.07):
                jump = self.jump(scope)
                if jump:
                    return lines + jump, True
        return lines, False

    def jump(self, scope: _Scope) -> list[str]:
        if scope.in_loop and self.chance(0.75):
            return [self.pick(["break", "continue"])]
        if scope.result is not None:
            self.features.add("early return")
            return [f"return {self.value(scope, scope.result, 1)}"]
        return []

    def statement(self, scope: _Scope) -> list[str]:
        table: dict[str, float] = {
            "assign": 5, "assign_new": 2, "augment": 2, "item": 2, "swap": 0.5, "lists": 1.5, "dicts": 0.7,
            "alias": 0.7, "view": 0.7, "optional": 0.6, "delete": 0.15, "guarded_jump": 1.0, "unpack": 0.5,
            "function": 0.3, "counter": 1, "array_augment": 1.0, "match": 0.2, "record": 0.5, "walrus": 0.3,
            "of_list": 0.5,
        }  # fmt: skip
        if not self.writes:
            for name in ("array_augment", "item", "alias", "view"):
                del table[name]
        if scope.depth < 4 and scope.steps < 60:
            table |= {"if": 4, "while": 1.3, "for": 2.6}
        for _ in range(8):
            made = getattr(self, f"_{self.weighted(table)}")(scope)
            if made:
                return made
        return ["pass"]

    def target(self, scope: _Scope) -> tuple[str, Any]:
        names = [n for n, k in scope.names.items() if k[0] not in ("function", "protected") and not n.startswith("k")]
        if not names or self.chance(0.2):
            return self.new(), self.some_kind(scope)
        name = self.pick(names)
        return name, scope.names[name]

    def _assign(self, scope: _Scope) -> list[str]:
        name, kind = self.target(scope)
        if self.risky():
            kind = self.some_kind(scope)
            self.features.add("type change")
        if kind[0] == "list" and (kind[2] is None or name in scope.filling) and not self.risky():
            return []
        if kind[0] == "list" and kind[2] is None:
            kind = (*kind[:2], 2)
        text = self.value(scope, kind)
        scope.names[name] = kind
        return [f"{name} = {text}"]

    def _assign_new(self, scope: _Scope) -> list[str]:
        name, kind = self.new(), self.some_kind(scope)
        text = self.value(scope, kind)
        scope.names[name] = kind
        return [f"{name} = {text}"]

    def _counter(self, scope: _Scope) -> list[str]:
        names = self.named(scope, lambda k: k == "int")
        names = [n for n in names if not n.startswith("k")]
        if not names:
            name = self.new("n")
            scope.names[name] = "int"
            return [f"{name} = {self.pick('012')}"]
        name = self.pick(names)
        return [f"{name} {self.pick(['+=', '-=', '+='])} {self.pick(['1', '2', self.integer(scope, 2)])}"]

    def _augment(self, scope: _Scope) -> list[str]:
        names = [n for n in self.named(scope, lambda k: k in ("int", "float")) if not n.startswith("k")]
        if not names:
            return []
        name = self.pick(names)
        right = self.integer(scope, 1) if scope.names[name] == "int" else self.number(scope, 1)
        # No products: integers of Python have any size, those of a graph 64 bits.
        operator = self.pick(["+=", "-=", "+="])
        return [f"{name} {operator} {right}"]

    def _array_augment(self, scope: _Scope) -> list[str]:
        names = self.named(scope, is_array)
        if not names:
            return []
        name = self.pick(names)
        kind = scope.names[name]
        self.features.add("in-place")
        right = self.value(scope, self.pick([kind, ("S", kind[1]), "int"]), 1)
        return [f"{name} {self.pick(['+=', '-=', '*='])} {right}"]

    def _item(self, scope: _Scope) -> list[str]:
        kinds = ("tuple", "list", "dict")
        names = self.named(scope, lambda k: is_array(k) or k[0] in kinds[1:])
        if not names:
            return []
        name = self.pick(names)
        kind = scope.names[name]
        operator = "=" if self.chance(0.75) else self.pick(["+=", "*="])
        if kind[0] == "list":
            if (kind[2] is None or name in scope.filling) and not self.risky():
                return []
            self.features.add("list item")
            index = self.pick(range(kind[2])) if kind[2] else 0
            return [f"{name}[{index}] {operator} {self.value(scope, kind[1], 1)}"]
        if kind[0] == "dict":
            self.features.add("dict item")
            key = self.pick(_KEYS[: 3 if self.risky() else 2])
            return [f"{name}['{key}'] {operator} {self.value(scope, kind[1], 1)}"]
        self.features.add("in-place")
        shape, dtype = kind
        row = (_ROW_OF[shape], dtype)
        way = self.weighted({"row": 5, "all": 1, "head": 1, "one": 1, "traced": 0.5})
        if way == "row":
            return [f"{name}[{self.position(scope)}] {operator} {self.value(scope, self.pick([row, row, 'int']), 1)}"]
        if way == "all":
            return [f"{name}[:] {operator} {self.value(scope, self.pick([kind, 'int']), 1)}"]
        if way == "head":
            part = self.pick(["0:1", ":1", "-1:", "1:", "::2"])
            value = self.value(scope, self.pick(["int", ("R" if shape == "M" else "S", dtype)]), 1)
            return [f"{name}[{part}] {operator} {value}"]
        if way == "one":
            if shape == "M":
                return [f"{name}[{self.position(scope)}, {self.pick('012')}] {operator} {self.value(scope, 'int', 1)}"]
            return [f"{name}[-1] {operator} {self.value(scope, 'float' if dtype != INT else 'int', 1)}"]
        names = self.named(scope, lambda k: k == "int")
        return [f"{name}[{self.pick(names)} % len({name})] {operator} {self.value(scope, row, 1)}"] if names else []

    def _swap(self, scope: _Scope) -> list[str]:
        names = self.named(scope, is_array)
        if len(names) < 2:
            return []
        one = self.pick(names)
        others = [n for n in names if n != one and (scope.names[n] == scope.names[one] or self.risky())]
        if not others:
            return []
        other = self.pick(others)
        scope.names[one], scope.names[other] = scope.names[other], scope.names[one]
        if self.chance(0.5):
            return [f"{one}, {other} = {other}, {one}"]
        kind = scope.names[one]
        return (
            [f"{one}, {other} = {other}, {self._bounded(f'{one} + {other}', kind[1])}"]
            if scope.names[other] == kind
            else []
        )

    def _unpack(self, scope: _Scope) -> list[str]:
        names = self.named(scope, lambda k: k[0] == "tuple")
        if not names:
            return []
        name = self.pick(names)
        parts = scope.names[name][1:]
        targets = []
        for part in parts:
            same = [n for n in self.named(scope, lambda k, part=part: k == part) if not n.startswith("k")]
            same = [n for n in same if n not in targets]
            target = self.pick(same) if same and self.chance(0.5) else self.new()
            targets.append(target)
            scope.names[target] = part
        return [f"{', '.join(targets)}, = {name}"]

    def _lists(self, scope: _Scope) -> list[str]:
        names = self.named(scope, lambda k: k[0] == "list")
        if not names or self.chance(0.3):
            name, kind = self.new("l"), self.pick([k for k in scope.names.values() if is_array(k)] or [S])
            made = ("list", kind, None if self.chance(0.7) else 2)
            items = [] if made[2] is None else [self.value(scope, kind, 1) for _ in range(2)]
            scope.names[name] = made
            return [f"{name} = [{', '.join(items)}]"]
        name = self.pick(names)
        kind = scope.names[name]
        self.features.add("append")
        if name in scope.busy or (scope.busy and self.aliases) or (kind[2] is not None and not self.risky()):
            return []
        if scope.in_loop:
            scope.filling.add(name)
        scope.names[name] = (*kind[:2], None)
        extra = self.weighted({"append": 8, "extend": 0.5, "iadd": 0.3, "insert": 0.2, "pop": 0.3})
        item = self.value(scope, kind[1], 1)
        return [
            {
                "append": f"{name}.append({item})",
                "extend": f"{name}.extend([{item}, {item}])",
                "iadd": f"{name} += [{item}]",
                "insert": f"{name}.insert(0, {item})",
                "pop": f"{name}.pop()",
            }[extra]
        ]

    def _dicts(self, scope: _Scope) -> list[str]:
        names = self.named(scope, lambda k: k[0] == "dict")
        if not names:
            name, kind = self.new("d"), self.pick([k for k in scope.names.values() if is_array(k)] or [S])
            text = self.value(scope, ("dict", kind))
            scope.names[name] = ("dict", kind)
            return [f"{name} = {text}"]
        name = self.pick(names)
        kind = scope.names[name]
        return [
            self.pick(
                [
                    f"{name}['a'] = {self.value(scope, kind[1], 1)}",
                    f"{name}['b'] = {name}['a']",
                    f"{name}.update(a={self.value(scope, kind[1], 1)})",
                    f"{name}['a'], {name}['b'] = {name}['b'], {name}['a']",
                ]
            )
        ]

    def _alias(self, scope: _Scope) -> list[str]:
        names = self.named(scope, lambda k: is_array(k) or k[0] in ("list", "dict"))
        if not names:
            return []
        self.features.add("alias")
        one = self.pick(names)
        kind = scope.names[one]
        if kind[0] == "list" and kind[2] is None:
            return []
        same = [n for n in self.named(scope, lambda k: k == kind) if n != one]
        other = self.pick(same) if same and self.chance(0.6) else self.new()
        scope.names[other] = kind
        lines = [f"{other} = {one}"]
        self.aliases |= kind[0] == "list"
        if is_array(kind) and self.chance(0.6):
            lines.append(f"{other}[0] {self.pick(['=', '+='])} {self.value(scope, (_ROW_OF[kind[0]], kind[1]), 1)}")
        return lines

    def _view(self, scope: _Scope) -> list[str]:
        names = self.named(scope, lambda k: is_array(k) and k[0] in ("V", "M", "R"))
        if not names:
            return []
        self.features.add("view")
        one = self.pick(names)
        shape, dtype = scope.names[one]
        row = (_ROW_OF[shape], dtype)
        same = self.named(scope, lambda k: k == row)
        name = self.pick(same) if same and self.chance(0.3) else self.new("w")
        way = self.pick(
            [f"{one}[0]", f"{one}[-1]", f"{one}[0:1]" if shape != "M" else f"{one}[0]", f"{one}.reshape((-1,))[0:1]"]
        )
        if "reshape" in way:
            row = ("S", dtype)
        scope.names[name] = row
        lines = [f"{name} = {way}"]
        if self.chance(0.6):
            value = self.value(scope, self.pick([("S", dtype), "int"]), 1)
            lines.append(f"{name}{self.pick(['[:] =', ' +=', '[0] =', ' *='])} {value}")
        return lines

    def _optional(self, scope: _Scope) -> list[str]:
        names = self.named(scope, lambda k: k[0] == "optional")
        if not names or self.chance(0.3):
            name = self.new("h")
            kind = self.pick([k for k in scope.names.values() if is_array(k)] or [S])
            scope.names[name] = ("optional", kind)
            return [f"{name} = None"]
        self.features.add("None")
        name = self.pick(names)
        kind = scope.names[name][1]
        value = self.value(scope, kind, 1)
        if self.chance(0.5):
            return [f"{name} = {value} if {name} is None else {self._bounded(f'{name} + {value}', kind[1])}"]
        return [
            f"if {name} is None:",
            f"    {name} = {value}",
            "else:",
            f"    {name} = {self._bounded(f'{name} - {value}', kind[1])}",
        ]

    def _match(self, scope: _Scope) -> list[str]:
        """A match on a value of Python."""
        subject = self.pick(["len(self.sizes)", "self.flag", "self.sizes", "'word'"])
        first = {"len(self.sizes)": "2", "self.flag": "False", "self.sizes": "(2, other)", "'word'": "'w' | 'word'"}
        lines, branches = [f"match {subject}:"], []
        for pattern in (first[subject], "_"):
            inner = scope.inner()
            body, ended = self.block(inner, 1)
            lines += _indented([f"case {pattern}:", *_indented(body)])
            if not ended:
                branches.append(inner)
        self.features.add("match")
        self.merge(scope, branches)
        return lines

    def _record(self, scope: _Scope) -> list[str]:
        """A named tuple, or an object with attributes that the function makes."""
        names = self.named(scope, lambda k: k[0] == "record")
        if not names or self.chance(0.3):
            name, kind = self.new("r"), self.pick([k for k in scope.names.values() if is_array(k)] or [S])
            text = f"{self.value(scope, kind, 1)}, {self.value(scope, kind, 1)}"
            made = self.pick(["Pair", "Box"])
            scope.names[name] = ("record", kind, made)
            return [f"{name} = {made}({text})"]
        self.features.add("record")
        name = self.pick(names)
        _, kind, made = scope.names[name]
        if made == "Pair":
            same = self.named(scope, lambda k: k == kind)
            lines = [f"{name} = {name}._replace({self.pick(['one', 'two'])}={self.value(scope, kind, 1)})"]
            if same and self.chance(0.4):
                lines.append(f"{self.pick(same)} = {name}.{self.pick(['one', 'two'])}")
            return lines
        operator = "=" if self.chance(0.7) else "+="
        return [f"{name}.{self.pick(['one', 'two'])} {operator} {self.value(scope, kind, 1)}"]

    def _walrus(self, scope: _Scope) -> list[str]:
        name, kind = self.target(scope)
        kind = S if not is_array(kind) or kind[0] != "S" else kind
        if scope.names.get(name, kind) != kind:
            name = self.new()
        text = self.value(scope, kind, 1)
        scope.names[name] = kind
        self.features.add("walrus")
        inner = scope.inner()
        body, ended = self.block(inner, 1)
        self.merge(scope, [scope.inner()] if ended else [inner, scope.inner()])
        return [f"if ({name} := {text}) > {self.pick(['0', '0.5'])}:", *_indented(body)]

    def _of_list(self, scope: _Scope) -> list[str]:
        """Builtins and comprehensions of lists, tuples and dicts."""
        names = self.named(scope, lambda k: k[0] in ("list", "dict") and is_array(k[1]) and (k[0] == "dict" or k[2]))
        if not names:
            return []
        name = self.pick(names)
        kind = scope.names[name]
        target, item = self.new(), self.new("c")
        inner = scope.inner()
        inner.names[item] = kind[1]
        values = name if kind[0] == "list" else f"{name}.values()"
        part = self.value(inner, kind[1], 2)
        if self.chance(0.3):
            scope.names[target] = "bool"
            return [f"{target} = {self.pick(['any', 'all'])}({item}.sum() > 0 for {item} in {values})"]
        if kind[0] == "dict":
            key = self.new("c")
            scope.names[target] = kind
            return [f"{target} = {{{key}: {part} for {key}, {item} in {name}.items()}}"]
        scope.names[target] = kind if self.chance(0.7) else ("tuple", *[kind[1]] * kind[2])
        text = f"[{part} for {item} in {values}]"
        return [f"{target} = {text if scope.names[target] == kind else f'tuple({text})'}"]

    def _delete(self, scope: _Scope) -> list[str]:
        names = [n for n in self.named(scope, lambda k: k[0] != "function") if n not in "xyz" and not n.startswith("k")]
        if not names:
            return []
        name = self.pick(names)
        del scope.names[name]
        self.features.add("del")
        return [f"del {name}"]

    def _function(self, scope: _Scope) -> list[str]:
        if scope.depth > 2:
            return []
        name, kind = self.new("f"), self.pick([k for k in scope.names.values() if is_array(k)] or [S])
        inner = scope.inner(in_loop=False, times=2)
        inner.depth = max(inner.depth, 3)
        inner.result = kind
        # Names of the function itself: those of the outer one are only read.
        parameter = self.new("p")
        inner.names = {n: k for n, k in scope.names.items() if k[0] not in ("function", "optional")}
        self.features.add("nested function")
        if self.chance(0.4):
            body = self.array(inner, kind, 1)
            inner.names[parameter] = kind
            lines = [f"{name} = lambda {parameter}: {self._bounded(f'{parameter} + {body}', kind[1])}"]
        else:
            inner.names[parameter] = kind
            test, one, two = self.test(inner, 1), self.array(inner, kind, 1), self.array(inner, kind, 1)
            lines = [f"def {name}({parameter}):", f"    if {test}:", f"        return {one}", f"    return {two}"]
        scope.names[name] = ("function", kind)
        return lines

    def _guarded_jump(self, scope: _Scope) -> list[str]:
        jump = self.jump(scope)
        if not jump:
            return []
        self.features.add(jump[0].split()[0])
        test = self.test(scope)
        lines = [f"if {test}:"]
        if self.chance(0.3):
            inner = scope.inner()
            lines += _indented(self.statement(inner))
        return [*lines, f"    {jump[0]}"]

    def merge(self, scope: _Scope, branches: list[_Scope]) -> None:
        """The names after an if whose branches end without a jump."""
        if not branches:
            return
        every = set().union(*[set(b.names) for b in branches])
        for name in every:
            kinds = {b.names.get(name) for b in branches}
            kind = next(k for k in kinds if k is not None)
            if len(kinds) == 1 or (self.risky() and self.chance(0.5)):
                scope.names[name] = kind
            else:
                scope.names.pop(name, None)
        for branch in branches:
            scope.filling |= branch.filling if scope.in_loop else set()

    def _if(self, scope: _Scope) -> list[str]:
        lines: list[str] = []
        branches: list[_Scope] = []
        count = self.weighted({1: 5, 2: 1.5, 3: 0.5})
        for i in range(count):
            lines.append(f"{'if' if i == 0 else 'elif'} {self.test(scope)}:")
            inner = scope.inner()
            body, ended = self.block(inner, self.random.randint(1, 3))
            lines += _indented(body)
            if not ended:
                branches.append(inner)
        if self.chance(0.6):
            inner = scope.inner()
            body, ended = self.block(inner, self.random.randint(1, 3))
            lines += ["else:", *_indented(body)]
            if not ended:
                branches.append(inner)
        else:
            branches.append(scope.inner())
        self.features.add("if")
        self.merge(scope, branches)
        return lines

    def loop_body(self, scope: _Scope, inner: _Scope, start: list[str], size: int) -> list[str]:
        body, _ = self.block(inner, size)
        for name, kind in inner.names.items():
            if name not in scope.names:
                if self.risky() and self.chance(0.4) and kind[0] != "function":
                    scope.names[name] = kind
            elif kind[0] == "list" and scope.names[name][0] == "list":
                scope.names[name] = kind
        for name in list(scope.names):
            if name not in inner.names:
                del scope.names[name]
        return _indented([*start, *body])

    def otherwise(self, scope: _Scope) -> list[str]:
        if self.chance(0.92):
            return []
        self.features.add("loop else")
        inner = scope.inner()
        body, _ = self.block(inner, 1, ends=False)
        self.merge(scope, [inner, scope.inner()])
        return ["else:", *_indented(body)]

    def _while(self, scope: _Scope) -> list[str]:
        counter = self.new("k")
        limit = self.random.randint(1, 4)
        self.features.add("while")
        scope.names[counter] = "int"
        inner = scope.inner(in_loop=True, times=limit)
        test = self.test(scope)
        shape = self.weighted({"both": 5, "swapped": 2, "true": 1, "counter": 1})
        start = [f"{counter} += 1"]
        if shape == "both":
            head = f"while {test} and {counter} < {limit}:"
        elif shape == "swapped":
            head = f"while {counter} < {limit} and {test}:"
        elif shape == "counter":
            head = f"while {counter} < {limit}:"
        else:
            head = "while True:"
            start += [f"if {counter} > {limit} or {test}:", "    break"]
        body = self.loop_body(scope, inner, start, self.random.randint(1, 3))
        return [f"{counter} = 0", head, *body, *self.otherwise(scope)]

    def _for(self, scope: _Scope) -> list[str]:
        self.features.add("for")
        target, items, names = self.iterable(scope)
        inner = scope.inner(in_loop=True, times=4)
        inner.names |= names
        if items in scope.names and scope.names[items][0] == "list":
            inner.busy.add(items)
        body = self.loop_body(scope, inner, [], self.random.randint(1, 3))
        return [f"for {target} in {items}:", *body, *self.otherwise(scope)]

    def iterable(self, scope: _Scope) -> tuple[str, str, dict[str, Any]]:
        """Returns the target, the iterable, and the names that they bind."""
        name, index = self.new("e"), self.new("k")
        arrays = self.named(scope, lambda k: is_array(k) and k[0] in ("V", "M", "R"))
        if not arrays:
            return index, "range(2)", {index: "int"}
        way = self.weighted(
            {
                "array": 5,
                "zip": 1.5,
                "enumerate": 1.5,
                "reversed": 1,
                "range": 1.5,
                "traced": 1.5,
                "list": 1.5,
                "mixed": 0.7,
                "expression": 1,
                "positions": 0.8,
                "dict": 0.5,
                "loop_range": 0.5,
            }
        )
        one = self.pick(arrays)
        shape, dtype = scope.names[one]
        row = (_ROW_OF[shape], dtype)
        self.features.add(f"for over {way}")
        if way == "zip":
            other = self.pick(arrays)
            second = self.new("e")
            shape, dtype = scope.names[other]
            return f"{name}, {second}", f"zip({one}, {other})", {name: row, second: (_ROW_OF[shape], dtype)}
        if way == "enumerate":
            start = self.pick(["", ", 1"])
            return f"{index}, {name}", f"enumerate({one}{start})", {index: "int", name: row}
        if way == "reversed":
            return name, f"reversed({one})", {name: row}
        if way == "range":
            text = self.pick(["2", "3", "1, 3", f"len({one})", f"{one}.shape[0]", "3, 0, -1"])
            return index, f"range({text})", {index: "int"}
        if way == "traced":
            text = (
                f"({self.array(scope, S, 1)} > {self.pick(['0', '0.4', '-0.3'])}).astype('int32') * {self.pick('23')}"
            )
            if self.chance(0.4):
                text = f"nd.clip({self.array(scope, S, 1)} * 2, 0, 3).astype('int32')"
            word = self.pick(["range({})", "range({})", "range(1, {} + 1)"]) if self.chance(0.7) else "range({})"
            return index, word.format(text), {index: "int"}
        if way == "positions":
            return f"{index}, {name}", f"[(i, {one}[i]) for i in range(len({one}))]", {index: "int", name: row}
        if way == "loop_range":
            return index, f"mx.range({self.pick(['3', '1, 4', '4, 0, -2'])})", {index: "int"}
        if way == "dict" and (dicts := self.named(scope, lambda k: k[0] == "dict")):
            items = self.pick(dicts)
            return name, f"{items}.values()", {name: scope.names[items][1]}
        if way == "list":
            lists = self.named(scope, lambda k: k[0] in ("list", "tuple"))
            lists = [
                n
                for n in lists
                if (n not in scope.filling and len(set(scope.names[n][1:])) == 1) or scope.names[n][0] == "list"
            ]
            if lists:
                items = self.pick(lists)
                kind = scope.names[items][1]
                return name, items, {name: kind}
            kind = self.pick([S, V])
            return name, f"[{', '.join(self.value(scope, kind, 2) for _ in range(2))}]", {name: kind}
        if way == "mixed":
            return (
                f"{index}, {name}",
                self.pick([f"zip(range(3), {one})", f"enumerate(reversed({one}))", f"zip(self.sizes, {one})"]),
                {index: "int", name: row},
            )
        if way == "expression":
            kind = self.pick([V, R, M])
            return name, self.array(scope, kind, 1), {name: (_ROW_OF[kind[0]], kind[1])}
        return name, one, {name: row}

    # -- programs ---------------------------------------------------------------------------------------------------

    def helper(self) -> list[str]:
        is_method = self.chance(0.3)
        parameters = [self.pick([S, V, R, S]) for _ in range(self.random.randint(1, 2))]
        if self.chance(0.3):
            parameters.append("int")
        result = self.pick([p for p in parameters if p != "int"])
        name = self.new("g")
        scope = _Scope({f"q{i}": p for i, p in enumerate(parameters)}, result)
        scope.depth = 2
        self.features.add("method" if is_method else "function")
        lines, _ = self.block(scope, self.random.randint(1, 2))
        arguments = ", ".join(([] if not is_method else ["self"]) + [f"q{i}" for i in range(len(parameters))])
        if not is_method:
            lines = [
                line.replace("self.flag", "FLAG").replace("self.sizes", "SIZES").replace("self.", "") for line in lines
            ]
        made = [
            f"def {name}({arguments}):",
            *_indented(lines),
            f"    return {self.value(scope, result, 1)}".replace("self.flag", "FLAG").replace("self.sizes", "SIZES")
            if not is_method
            else f"    return {self.value(scope, result, 1)}",
        ]
        self.helpers.append(_Helper(name, parameters, result, is_method))
        return made

    def result_kind(self, scope: _Scope) -> Any:
        kinds = [k for k in scope.names.values() if is_array(k)]
        if self.chance(0.4):
            return self.pick(kinds)
        parts: list[Any] = [self.pick([*kinds, S]) for _ in range(self.random.randint(1, 3))]
        if self.chance(0.15):
            parts.append(self.pick(["int", "float"]))
        return ("tuple", *parts)

    def program(self) -> Program:
        functions, methods = [], []
        for _ in range(self.weighted({0: 5, 1: 3, 2: 1})):
            lines = self.helper()
            (methods if self.helpers[-1].is_method else functions).append(lines)
        kinds = [V]
        if self.chance(0.6):
            kinds.append(self.pick([V, M, R]))
        if self.chance(0.35):
            kinds.append(self.pick([S, ("S", INT), ("V", INT), ("V", DOUBLE), R]))
        names = dict(zip("xyz", kinds, strict=False))
        scope = _Scope(dict(names), None)
        scope.result = self.result_kind(scope)
        # Gradients are refused for arguments that are written to, so most programs write into copies.
        lines = [f"{name} = {name}.copy()" for name in names] if self.chance(0.6) else []
        for _ in range(self.random.randint(0, 3)):
            kind = self.pick([S, "int", "float", V, ("list", S, None)])
            name = self.new("v" if kind[0] != "list" else "l")
            lines.append(f"{name} = {self.value(scope, kind, 1)}")
            scope.names[name] = kind
        lines += self.block(scope, self.random.randint(2, 5), ends=False)[0]
        result = scope.result
        extra = [n for n, k in scope.names.items() if k[0] not in ("function", "protected")]
        shown = [n for n in extra if self.chance(0.6)] if not self.has_early_return(lines) else []
        texts = [self.value(scope, result, 1)]
        if shown:
            texts += [self.shown(scope, n) for n in shown]
        lines.append(f"return {', '.join(t for t in texts if t)}")
        source = _HEAD.split("\n")
        for function in functions:
            source += [*function, ""]
        source += ["", "class Net(gluon.HybridBlock):", "    flag, sizes = True, (2, 3)", ""]
        for method in methods:
            source += [*_indented(method), ""]
        source += [f"    def forward(self, {', '.join(names)}):", *_indented(_indented(lines))]
        return Program("\n".join(source) + "\n", kinds, self.features)

    def has_early_return(self, lines: list[str]) -> bool:
        return any(line.strip().startswith("return") for line in lines)

    def shown(self, scope: _Scope, name: str) -> str:
        """Returns how a name of any type becomes part of the result."""
        kind = scope.names[name]
        if kind in ("int", "float", "bool"):
            return name if self.chance(0.1) else f"nd.ones((1,)) * {name}"
        if kind[0] == "list" and kind[2] is None:
            joined = self.pick([f"nd.stack(*{name})", f"nd.concat(*{name}, dim=0)", name, f"{name}[-1]"])
            return joined if self.chance(0.4) else f"({joined} if len({name}) > 0 else None)"
        if kind[0] == "record" and kind[2] == "Box":
            return f"{name}.one, {name}.two"
        return name


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def make(seed: int, risk: float = 0.04) -> Program:
    """Returns the program of a seed. risk: how often types change, or a name has a value on one path only."""
    program = _Maker(seed, risk).program()
    if seed % 6 == 5:
        program.source = numpy_form(program.source)
    return program
