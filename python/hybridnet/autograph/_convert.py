"""Rewrites the syntax tree of a function: each branch and loop becomes a call of a function in _staging.

::

    if c:                     def then_1():
        y = x                     nonlocal y
    else:                         y = x
        y = -x                def else_1():
                                  nonlocal y
                                  y = -x
                              ag__.if_(c, then_1, else_1, get_1, set_1, site)

get_1 and set_1 read and assign the names that the branches bind. Calls, writes into containers and attributes, and
operators that Python evaluates by truth values (and, or, not, conditional expressions) become calls too, which run as
plain Python unless an operand is a traced array.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ._errors import Place
from ._jumps import GENERATED, lower_jumps
from ._liveness import Liveness
from ._tree_places import at_place, without_places
from ._variables import (
    binding_places,
    bound_names,
    declared_names,
    has_calls,
    nested_nonlocals,
    rebound_names,
    remembered_names,
)

__all__ = ["FUNCTION", "MODULE", "SITES", "Site", "convert_tree"]

MODULE, SITES, FUNCTION = f"{GENERATED}", f"{GENERATED}sites", f"{GENERATED}function"


@dataclass(frozen=True)
class Site:
    """A branch or loop of the program, as its converted code describes it to _staging."""

    place: Place
    names: tuple[str, ...]  # the names that its statements bind
    live: frozenset[str]  # those of them whose values pass to later code, or to the next iteration
    head: frozenset[str] = frozenset()  # a loop: those that an iteration may read before it binds them
    rebound: frozenset[str] = frozenset()  # those that are bound otherwise than by an augmented assignment
    outer: frozenset[str] = frozenset()  # global names
    test_binds: bool = False  # a while loop: its test binds names
    lines: tuple[tuple[str, int, int], ...] = ()  # name, line and column of the first binding of each name


def convert_tree(
    tree: ast.FunctionDef | ast.Lambda, file: str, free: Sequence[str], class_name: str = ""
) -> tuple[ast.Module, list[Site], list[tuple[int, int]]]:
    """Returns a module that defines a factory of the converted function, its sites, and the lines of generators in it.

    The factory takes the runtime module, the sites, and the free variables of the function.
    """
    if isinstance(tree, ast.Lambda):
        body: list[ast.stmt] = [ast.Return(tree.body)]
        function = ast.FunctionDef("<lambda>".strip("<>") and "ag__lambda", tree.args, body, [], None, None)
        if "type_params" in ast.FunctionDef._fields:
            function.type_params = []  # type: ignore[attr-defined]  # Python 3.12
        ast.copy_location(function, tree)
        ast.copy_location(body[0], tree.body)
    else:
        function = tree
    if class_name:
        _Mangler(class_name).visit(function)
    sites: list[Site] = []
    converter = _Converter(file, sites)
    made = converter.function(function)
    parameters = [ast.arg(name) for name in (MODULE, SITES, *free)]
    factory: Any = ast.parse("def ag__factory(): pass").body[0]
    without_places(factory)
    factory.args.args = parameters
    at_place(factory, function)
    # A name that the program does not use: a function that calls itself by name finds its own, converted when called.
    made.name = FUNCTION
    factory.body = [made, ast.Return(ast.Name(FUNCTION, ast.Load()))]
    module = ast.Module([factory], [])
    return ast.fix_missing_locations(module), sites, converter.generators


class _Mangler(ast.NodeTransformer):
    """Gives private names (__name) the form that they have inside of their class."""

    def __init__(self, class_name: str) -> None:
        self._prefix = "_" + class_name.lstrip("_")

    def _mangled(self, name: str) -> str:
        return self._prefix + name if name.startswith("__") and not name.endswith("__") else name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._mangled(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        node.attr = self._mangled(node.attr)
        return node


class _Converter(ast.NodeTransformer):
    """Converts one function and the functions inside it."""

    def __init__(self, file: str, sites: list[Site]) -> None:
        self._file, self._sites = file, sites
        self.generators: list[tuple[int, int]] = []  # first and last lines of functions that stay as they are
        self._count = 0
        self._live: Any = None
        self._globals: set[str] = set()
        self._nonlocals: set[str] = set()
        self._first_argument = ""
        self._extra: set[str] = set()  # names that helper functions bind
        self._truth = False  # whether the value of the visited expression matters only as true or false
        self._options: dict[str, str] = {}  # the options of the next loop, and the names of their values
        self._nested: set[str] = set()  # names of this function that functions inside it bind

    # -- functions --------------------------------------------------------------------------------------------------

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Returns the converted function."""
        if _is_generator(node):
            self.generators.append((node.lineno, node.end_lineno or node.lineno))
            return node
        outer = (self._live, self._globals, self._nonlocals, self._first_argument, self._extra, self._nested)
        self._globals, self._nonlocals = declared_names(node.body)
        self._extra, self._nested = (
            set(),
            nested_nonlocals(node.body, {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}),
        )
        arguments = [*node.args.posonlyargs, *node.args.args]
        self._first_argument = arguments[0].arg if arguments else ""
        lower_jumps(node)
        with remembered_names():
            self._live = Liveness(node.body, self._globals | self._nonlocals)
            noted = self._noted_nonlocals(node)
            node.body = [*noted, *self._statements(node.body)]
        # A name must be bound in the function so that helper functions can declare it as nonlocal.
        dead: list[ast.stmt] = [
            ast.Assign([ast.Name(n, ast.Store())], ast.Constant(None))
            for n in sorted(self._extra - self._globals - self._nonlocals)
        ]
        if dead:
            place = 1 if _is_docstring(node.body[0]) else 0
            declared = sum(isinstance(part, (ast.Global, ast.Nonlocal)) for part in node.body)
            guard = ast.If(ast.Constant(False), dead, [])
            node.body.insert(0 if not declared else place, at_place(guard, node.body[0]))
            if declared:  # declarations come first
                node.body.sort(key=lambda part: not isinstance(part, (ast.Global, ast.Nonlocal)))
        self._live, self._globals, self._nonlocals, self._first_argument, self._extra, self._nested = outer
        return node

    def _noted_nonlocals(self, node: ast.FunctionDef) -> list[ast.stmt]:
        """Returns statements that report the values of names of enclosing functions which this function assigns."""
        if not self._nonlocals:
            return []
        number = self._number()
        state, (get, set_) = self._state(number, self._nonlocals, node.body[0])
        names: ast.expr = ast.Tuple([ast.Constant(name) for name in sorted(self._nonlocals)], ast.Load())
        return [*state, at_place(ast.Expr(_call("note_nonlocals", [get, set_, names])), node.body[0])]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.decorator_list = [self.visit(part) for part in node.decorator_list]
        node.args.defaults = [self.visit(part) for part in node.args.defaults]
        node.args.kw_defaults = [part and self.visit(part) for part in node.args.kw_defaults]
        return self.function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        first, self._first_argument = self._first_argument, ""
        node.body = self._value(node.body)
        self._first_argument = first
        return node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        return self._comprehension(node)

    def _statements(self, body: Iterable[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for node in body:
            new = self.visit(node)
            made += new if isinstance(new, list) else [new]
        return made

    # -- branches ---------------------------------------------------------------------------------------------------

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _site(
        self, node: Any, construct: str, names: set[str], live: set[str], parts: list[Any], **more: Any
    ) -> ast.expr:
        place = Place(self._file, node.lineno, node.col_offset, construct)
        places = binding_places(parts)
        lines = [(name, *places[name]) for name in sorted(names) if name in places]
        self._sites.append(
            Site(
                place,
                tuple(sorted(names)),
                frozenset(names & live),
                rebound=frozenset(rebound_names(parts) | (names & self._nested)),
                outer=frozenset(names & self._globals),
                lines=tuple(lines),
                **more,
            )
        )
        return ast.Subscript(ast.Name(SITES, ast.Load()), ast.Constant(len(self._sites) - 1), ast.Load())

    def _bound_by_calls(self, parts: list[Any]) -> set[str]:
        """Returns the names that calls in the statements may bind, because functions here declare them as nonlocal."""
        if not self._nested or not has_calls(parts):
            return set()
        return self._nested

    def _declaration(self, names: set[str]) -> list[ast.stmt]:
        self._extra |= names
        inner = sorted(names - self._globals)
        outer = sorted(names & self._globals)
        return [*([ast.Nonlocal(inner)] if inner else []), *([ast.Global(outer)] if outer else [])]

    def _helper(
        self, name: str, arguments: Sequence[str], body: list[ast.stmt], names: set[str], like: ast.AST
    ) -> ast.stmt:
        function: Any = ast.parse(f"def {name}({', '.join(arguments)}): pass").body[0]
        without_places(function)
        function.body = [*self._declaration(names), *(body or [ast.Pass()])]
        return at_place(function, like)

    def _state(self, number: int, names: set[str], like: ast.AST) -> tuple[list[ast.stmt], list[ast.expr]]:
        """Returns the functions that read and assign the names, and expressions for them."""
        if not names:
            return [], [ast.Constant(None), ast.Constant(None)]
        ordered = sorted(names)
        get, set_ = f"{GENERATED}get_{number}", f"{GENERATED}set_{number}"
        values = ", ".join(ordered)
        each = ", ".join(f"{MODULE}.value_of(lambda: {name})" for name in ordered)
        deletions = "".join(f"\n    if {name} is {MODULE}.UNDEFINED: del {name}" for name in ordered)
        code = (
            f"def {get}():\n  try:\n    return ({values},)\n  except NameError:\n    return ({each},)\n"
            f"def {set_}({GENERATED}values):\n    ({values},) = {GENERATED}values{deletions}\n"
        )
        made = ast.parse(code).body
        for function in made:
            without_places(function)
        made[1].body[:0] = self._declaration(names)  # type: ignore[attr-defined]
        return [at_place(function, like) for function in made], [_load(get), _load(set_)]

    def visit_If(self, node: ast.If) -> Any:
        number = self._number()
        parts: list[Any] = [*node.body, *node.orelse]
        names = bound_names(parts) | self._bound_by_calls(parts)
        live = self._live.after[node]
        site = self._site(node, "if", names, live, parts)
        state, accessors = self._state(number, names, node)
        test = self._test(node.test)
        then, other = f"{GENERATED}then_{number}", f"{GENERATED}else_{number}"
        made: list[ast.stmt] = [
            *state,
            self._helper(then, (), self._statements(node.body), names, node),
            self._helper(other, (), self._statements(node.orelse), names, node),
        ]
        arguments = [test, _load(then), _load(other), *accessors, site]
        return [*made, at_place(ast.Expr(_call("if_", arguments)), node)]

    # -- loops ------------------------------------------------------------------------------------------------------

    def visit_While(self, node: ast.While) -> Any:
        number = self._number()
        options = self._take_options()
        tested = bound_names([node.test])
        names = bound_names(node.body) | tested | self._bound_by_calls([node.test, *node.body])
        head, after = self._live.head[node], self._live.after[node]
        site = self._site(
            node, "while", names, head | after, [*node.body, node.test], head=frozenset(names & head),
            test_binds=bool(tested),
        )  # fmt: skip
        state, accessors = self._state(number, names, node)
        tests = [at_place(ast.UnaryOp(ast.Not(), _load(flag)), node.test) for flag in getattr(node, "ag_flags", ())]
        test: ast.expr = ast.BoolOp(ast.And(), [*tests, node.test]) if tests else node.test
        test = self._test(at_place(test, node.test))
        test_name, body_name = f"{GENERATED}test_{number}", f"{GENERATED}body_{number}"
        made = [
            *state,
            self._helper(test_name, (), [ast.Return(test)], tested, node.test),
            self._helper(body_name, (), self._statements(node.body), names, node),
        ]
        return [
            *made,
            at_place(ast.Expr(_call("while_", [_load(test_name), _load(body_name), *accessors, site, options])), node),
        ]

    def visit_For(self, node: ast.For) -> Any:
        number = self._number()
        options = self._take_options()
        targets = bound_names([node.target])
        names = bound_names(node.body) | targets | self._bound_by_calls(node.body)
        head, after = self._live.head[node], self._live.after[node]
        site = self._site(
            node, "for", names, head | after, [node.target, *node.body], head=frozenset(names & head),
        )  # fmt: skip
        state, accessors = self._state(number, names, node)
        item = f"{GENERATED}item_{number}"
        first = at_place(ast.Assign([node.target], _load(item)), node.target)
        iterable = self._value(node.iter)
        body = [self._assigned(first), *self._statements(node.body)]
        flat: list[ast.stmt] = [part for new in body for part in (new if isinstance(new, list) else [new])]
        test_name, body_name = f"{GENERATED}test_{number}", f"{GENERATED}body_{number}"
        made = [*state, self._helper(body_name, (item,), flat, names, node)]
        flags = getattr(node, "ag_flags", ())
        test: ast.expr = ast.Constant(None)
        if flags:
            parts = [at_place(ast.UnaryOp(ast.Not(), _load(flag)), node) for flag in flags]
            value = self._test(at_place(ast.BoolOp(ast.And(), parts) if len(parts) > 1 else parts[0], node))
            made.append(self._helper(test_name, (), [ast.Return(value)], set(), node))
            test = _load(test_name)
        call = _call("for_", [iterable, _load(body_name), test, *accessors, site, options])
        return [*made, at_place(ast.Expr(call), node)]

    def _assigned(self, node: ast.Assign) -> Any:
        return self.visit(node)

    def _take_options(self) -> ast.expr:
        """Returns the options that the statements above the loop declare."""
        options, self._options = self._options, {}
        return ast.Dict([ast.Constant(key) for key in options], [_load(name) for name in options.values()])

    def visit_Expr(self, node: ast.Expr) -> Any:
        option = _directive(node.value)
        if option is not None:
            name = f"{GENERATED}option_{self._number()}"
            self._options[option[0]] = name
            return at_place(ast.Assign([ast.Name(name, ast.Store())], self._value(at_place(option[1], node))), node)
        node.value = self._value(node.value)
        return node

    # -- writes -----------------------------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> Any:
        node.value = self._value(node.value)
        if all(isinstance(target, ast.Name) for target in node.targets):
            return node
        if len(node.targets) == 1 and isinstance(node.targets[0], (ast.Subscript, ast.Attribute)):
            return at_place(ast.Expr(self._store(node.targets[0], node.value)), node)
        if not any(
            isinstance(part, (ast.Subscript, ast.Attribute)) for target in node.targets for part in _leaves_of(target)
        ):
            return node
        # Several targets: each takes its part from a temporary name.
        temporaries, made = [], []
        for target in node.targets:
            new, after = self._temporary_targets(target)
            temporaries.append(new)
            made += after
        node.targets = temporaries
        return [at_place(part, node) for part in (node, *made)]

    def _temporary_targets(self, target: ast.expr) -> tuple[ast.expr, list[ast.stmt]]:
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = [self._temporary_targets(part) for part in target.elts]
            return type(target)([part for part, _ in parts], ast.Store()), [s for _, after in parts for s in after]
        if isinstance(target, ast.Starred):
            new, after = self._temporary_targets(target.value)
            return ast.Starred(new, ast.Store()), after
        if isinstance(target, ast.Name):
            return target, []
        name = f"{GENERATED}part_{self._number()}"
        return ast.Name(name, ast.Store()), [ast.Expr(self._store(target, _load(name)))]

    def _store(self, target: Any, value: ast.expr) -> ast.expr:
        if isinstance(target, ast.Subscript):
            return at_place(_call("set_item", [self._value(target.value), self._index(target.slice), value]), target)
        return at_place(_call("set_attribute", [self._value(target.value), ast.Constant(target.attr), value]), target)

    def _index(self, index: ast.expr) -> ast.expr:
        if isinstance(index, ast.Slice):
            parts = [part and self._value(part) for part in (index.lower, index.upper, index.step)]
            return at_place(
                ast.Call(
                    _load("slice") if False else ast.Attribute(_load(MODULE), "slice", ast.Load()),
                    [p or ast.Constant(None) for p in parts],
                    [],
                ),
                index,
            )
        if isinstance(index, ast.Tuple):
            return at_place(ast.Tuple([self._index(part) for part in index.elts], ast.Load()), index)
        return self._value(index)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        operator = ast.Constant(type(node.op).__name__)
        value = self._value(node.value)
        if isinstance(node.target, ast.Name):
            made = _call("augmented", [operator, _load(node.target.id), value])
            return at_place(ast.Assign([node.target], made), node)
        base = self._value(node.target.value)
        if isinstance(node.target, ast.Subscript):
            return at_place(
                ast.Expr(_call("augmented_item", [operator, base, self._index(node.target.slice), value])), node
            )
        return at_place(
            ast.Expr(_call("augmented_attribute", [operator, base, ast.Constant(node.target.attr), value])), node
        )

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None or not isinstance(node.target, ast.Name):
            if node.value is None:
                return node
            return at_place(ast.Expr(self._store(node.target, self._value(node.value))), node)
        # Without the annotation: annotated names cannot be nonlocal in the functions of branches.
        return at_place(ast.Assign([node.target], self._value(node.value)), node)

    def visit_Delete(self, node: ast.Delete) -> Any:
        made: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                call = _call("delete_item", [self._value(target.value), self._index(target.slice)])
                made.append(at_place(ast.Expr(call), node))
            elif isinstance(target, ast.Attribute):
                call = _call("delete_attribute", [self._value(target.value), ast.Constant(target.attr)])
                made.append(at_place(ast.Expr(call), node))
            else:
                made.append(at_place(ast.Delete([target]), node))
        return made

    def visit_Assert(self, node: ast.Assert) -> Any:
        message = ast.Lambda(_no_arguments(), self._value(node.msg) if node.msg else ast.Constant(None))
        place = ast.Constant(f"{self._file}:{node.lineno}")
        return at_place(ast.Expr(_call("assert_", [self._test(node.test), message, place])), node)

    def visit_With(self, node: ast.With) -> Any:
        for item in node.items:
            manager = self._value(item.context_expr)
            item.context_expr = at_place(_call("context", [manager, self._place(item.context_expr)]), item.context_expr)
        node.body = self._statements(node.body)
        return node

    def visit_Try(self, node: Any) -> Any:
        for name in ("body", "orelse", "finalbody"):
            setattr(node, name, self._statements(getattr(node, name)))
        for handler in node.handlers:
            handler.body = self._statements(handler.body)
        return [at_place(ast.Expr(_call("note_block", [ast.Constant("try"), self._place(node)])), node), node]

    def visit_Match(self, node: Any) -> Any:
        node.subject = self._value(node.subject)
        for case in node.cases:
            case.body = self._statements(case.body)
            if case.guard is not None:
                case.guard = self._test(case.guard)
        return node

    def visit_Raise(self, node: ast.Raise) -> Any:
        node = self.generic_visit(node)
        return [at_place(ast.Expr(_call("note_block", [ast.Constant("raise"), self._place(node)])), node), node]

    def _place(self, node: Any) -> ast.expr:
        return ast.Tuple(
            [ast.Constant(node.lineno), ast.Constant(node.col_offset), ast.Constant(self._file)], ast.Load()
        )

    # -- expressions ------------------------------------------------------------------------------------------------

    def _value(self, node: ast.expr) -> Any:
        before, self._truth = self._truth, False
        made = self.visit(node)
        self._truth = before
        return made

    def _test(self, node: ast.expr) -> Any:
        """Converts an expression of which only the truth matters."""
        before, self._truth = self._truth, True
        made = (
            self.visit(node)
            if isinstance(node, (ast.BoolOp, ast.UnaryOp, ast.Compare, ast.IfExp))
            else self._value(node)
        )
        self._truth = before
        return made

    def generic_visit(self, node: ast.AST) -> Any:
        truth, self._truth = self._truth, False
        node = super().generic_visit(node)
        self._truth = truth
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        if _binds([node.body, node.orelse]):
            return self.generic_visit(node)
        truth = self._truth
        branch = self._test if truth else self._value
        arguments = [
            self._test(node.test),
            _thunk(branch(node.body)),
            _thunk(branch(node.orelse)),
            self._expression_site(node, "conditional expression"),
        ]
        return at_place(_call("if_exp", arguments), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        if _binds(node.values[1:]):
            return self.generic_visit(node)
        truth = self._truth
        word = "and" if isinstance(node.op, ast.And) else "or"
        parts = [self._test(part) if truth else self._value(part) for part in node.values]
        made = parts[-1]
        site = self._expression_site(node, word)
        for part in reversed(parts[:-1]):
            made = _call(f"{word}_", [part, _thunk(made), ast.Constant(truth), site])
        return at_place(made, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return at_place(_call("not_", [self._test(node.operand)]), node)
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        membership = any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops)
        if len(node.ops) == 1:
            if not membership:
                return self.generic_visit(node)
            name = "in_" if isinstance(node.ops[0], ast.In) else "not_in"
            arguments = [self._value(node.left), self._value(node.comparators[0]), self._expression_site(node, "in")]
            return at_place(_call(name, arguments), node)
        if _binds(node.comparators):
            return self.generic_visit(node)
        # a < f(x) < c: the middle operands are evaluated once.
        truth = self._truth
        site = self._expression_site(node, "chained comparison")
        operands = [self._value(node.left), *[_thunk(self._value(part)) for part in node.comparators]]
        names = ast.Tuple([ast.Constant(type(op).__name__) for op in node.ops], ast.Load())
        return at_place(_call("chain", [names, ast.Tuple(operands, ast.Load()), ast.Constant(truth), site]), node)

    def _expression_site(self, node: Any, construct: str) -> ast.expr:
        return self._site(node, construct, set(), set(), [])

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self._first_argument:
            node.args = [_load("__class__"), _load(self._first_argument)]
            return node
        if isinstance(node.func, ast.Name) and node.func.id in ("locals", "globals", "vars", "exec", "eval", "dir"):
            return self.generic_visit(node)
        function = self._value(node.func)
        arguments = [
            ast.Starred(at_place(_call("star", [self._value(part.value)]), part), ast.Load())
            if isinstance(part, ast.Starred)
            else self._value(part)
            for part in node.args
        ]
        keywords = [ast.keyword(part.arg, self._value(part.value)) for part in node.keywords]
        called = at_place(_call("call", [function, self._place(node)]), node)
        return at_place(ast.Call(called, arguments, keywords), node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        return at_place(_call("get_item", [self._value(node.value), self._index(node.slice)]), node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        if node.attr == "shape" and isinstance(node.ctx, ast.Load):
            return at_place(_call("shape_of", [node.value]), node)
        return node

    def visit_List(self, node: ast.List) -> Any:
        if not isinstance(node.ctx, ast.Load):
            return node
        return at_place(_call("fresh", [self.generic_visit(node)]), node)

    def visit_Dict(self, node: ast.Dict) -> Any:
        return at_place(_call("fresh", [self.generic_visit(node)]), node)

    def visit_Set(self, node: ast.Set) -> Any:
        return at_place(_call("fresh", [self.generic_visit(node)]), node)

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        return at_place(_call("fresh", [self._comprehension(node)]), node)

    def visit_SetComp(self, node: ast.SetComp) -> Any:
        return at_place(_call("fresh", [self._comprehension(node)]), node)

    def visit_DictComp(self, node: ast.DictComp) -> Any:
        return at_place(_call("fresh", [self._comprehension(node)]), node)

    def _comprehension(self, node: Any) -> Any:
        for generator in node.generators:
            iterable = self._value(generator.iter)
            site = self._expression_site(generator.iter, "comprehension")
            generator.iter = at_place(_call("items_of", [iterable, site]), generator.iter)
            generator.ifs = [self._test(part) for part in generator.ifs]
        for name in ("elt", "key", "value"):
            if hasattr(node, name):
                setattr(node, name, self._value(getattr(node, name)))
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return node


# ------------------------------------------------------------------------------------------------------------- helpers
def _directive(node: ast.expr) -> tuple[str, ast.expr] | None:
    """Returns name and value of the option in a statement max_iterations(n) or shape_invariants(h=(None, 4))."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Attribute, ast.Name)):
        return None
    name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    is_ours = owner is None or "autograph" in (getattr(owner, "attr", ""), getattr(owner, "id", ""))
    if not is_ours or name not in ("max_iterations", "shape_invariants"):
        return None
    if name == "max_iterations":
        limits = [*node.args, *[part.value for part in node.keywords]]
        return (name, limits[0]) if len(limits) == 1 else None
    sizes = {part.arg: part.value for part in node.keywords if part.arg is not None}
    return name, ast.Dict([ast.Constant(key) for key in sizes], list(sizes.values()))


def _is_generator(node: ast.FunctionDef) -> bool:
    pending: list[ast.AST] = list(node.body)
    while pending:
        part = pending.pop()
        if isinstance(part, (ast.Yield, ast.YieldFrom, ast.Await)):
            return True
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending += ast.iter_child_nodes(part)
    return False


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _binds(nodes: Iterable[ast.AST]) -> bool:
    return any(isinstance(part, ast.NamedExpr) for node in nodes for part in ast.walk(node))


def _leaves_of(target: ast.expr) -> Iterable[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            yield from _leaves_of(part)
    elif isinstance(target, ast.Starred):
        yield from _leaves_of(target.value)
    else:
        yield target


def _no_arguments() -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])


def _thunk(node: ast.expr) -> ast.expr:
    return ast.Lambda(_no_arguments(), node)


def _load(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _call(name: str, arguments: Sequence[ast.expr]) -> ast.expr:
    return ast.Call(ast.Attribute(_load(MODULE), name, ast.Load()), list(arguments), [])
