"""Rules by pattern: what to look for, and what takes its place, both as nested tuples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .. import _core
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from ._handles import Entry, Node
from ._rules import LocalRewriter

__all__ = ["OpRemove", "OpSub", "P", "PatternSub"]

_Pattern = _core.rewrite.Pattern


class P:
    """Parts of patterns with constraints.

    In a pattern a str is a variable, a number is itself (also as an array that zeros, ones or full made), a tuple is
    an operator: its name, then patterns of what it reads. "add", "sub", "mul", "div", "mod", "pow", "maximum" and
    "minimum" stand for all operators that compute them; commutative operators match in both orders.
    """

    @staticmethod
    def var(name: str, where: Callable[[Any, Any], bool] | None = None) -> Any:
        """Any value; ``where(graph, entry)`` must hold. A name that comes again stands for the same value."""
        return _Pattern.any(name, where)

    @staticmethod
    def const(
        value: float | None = None,
        name: str = "",
        *,
        tol: float = 0.0,
        where: Callable[[Any, Any], bool] | None = None,
    ) -> Any:
        """A number, at most `tol` from `value`; without value any number."""
        return _Pattern.number(name, value, tol, where)

    @staticmethod
    def op(
        op: str,
        *inputs: Any,
        attrs: Mapping[str, Any] | None = None,
        out: str = "",
        shared: bool = False,
        where: Callable[[Any, Any], bool] | None = None,
    ) -> Any:
        """A use of an operator.

        attrs : mapping
            Parameters that it must have.
        out : str
            The name of its result.
        shared : bool
            Whether others than the match may read its result, which must then be kept.
        """
        return _Pattern.operator(op, [as_pattern(item) for item in inputs], dict(attrs or {}), out, shared, where)

    @staticmethod
    def many(name: str) -> Any:
        """The inputs that are left, as a list."""
        return _Pattern.rest(name)

    @staticmethod
    def alt(*patterns: Any) -> Any:
        """The first of these that matches."""
        return _Pattern.one_of([as_pattern(item) for item in patterns])


def as_pattern(item: Any) -> Any:
    """The pattern that a tuple, a name or a number stands for."""
    if isinstance(item, _Pattern):
        return item
    if isinstance(item, str):
        return _Pattern.any(item, None)
    if isinstance(item, (int, float)):
        return _Pattern.number("", float(item), 0.0, None)
    if isinstance(item, tuple) and item and isinstance(item[0], str):
        return P.op(item[0], *item[1:])
    raise HybridNetTypeError(
        "this is no part of a pattern",
        expected="a name, a number, a tuple such as ('mul', 'x', 'y'), or what mx.rewrite.P makes",
        given=repr(item),
    )


def _variables(item: Any) -> set[str]:
    if isinstance(item, str):
        return {item}
    return set().union(*map(_variables, item[1:])) if isinstance(item, tuple) else set()


def _build(graph: Any, template: Any, names: Mapping[str, Any]) -> Any:
    """What a template makes of the values that a match has found: an Entry or a number."""
    if isinstance(template, str):
        if template not in names:
            raise HybridNetValueError(f"the replacement names {template!r}, which the pattern does not bind")
        return names[template]
    if isinstance(template, (int, float)):
        return float(template)
    if isinstance(template, tuple) and template and isinstance(template[0], str):
        attrs = dict(template[-1]) if isinstance(template[-1], Mapping) else {}
        parts = template[1:-1] if attrs else template[1:]
        return graph.add(template[0], *(_build(graph, part, names) for part in parts), **attrs)[0]
    raise HybridNetTypeError("this is no replacement", expected="a name, a number or a tuple", given=repr(template))


def _maker(replacement: Any) -> Callable[[Any, Any, Mapping[str, Any]], Any]:
    if callable(replacement):
        return replacement

    def make(graph: Any, node: Any, names: Mapping[str, Any]) -> Any:
        made = _build(graph, replacement, names)
        return made if isinstance(made, (Entry, Node)) else graph.full(made, like=node[0])

    return make


class PatternSub(LocalRewriter):
    """A local rule: where the pattern matches, the replacement takes its place.

    ::

        PatternSub(("div", ("mul", "x", "y"), "y"), "x", values="unsafe")
        PatternSub([(("log", ("softmax", "x")), ("log_softmax", "x")), ...], name="logs")

    Parameters
    ----------
    pattern : tuple, part made by P, or list of (pattern, replacement)
        The root has one output. Nodes inside a match are read by the match alone, but for ``P.op(shared=True)``.
        Several patterns cost one walk over a node; the first that matches is taken.
    replacement : str, number, tuple or callable
        As the pattern; a tuple may end in a dict of parameters. A callable ``make(graph, node, names)`` gives what a
        local rule gives; None: it does not want this match.
    name : str, optional
    tags, values, phase
        As in mx.rewrite.local().

    Raises ParamError for operators that do not exist, ValueError for replacements that name what no pattern binds.
    """

    def __init__(
        self,
        pattern: Any,
        replacement: Any = None,
        *,
        name: str | None = None,
        tags: Iterable[str] = ("fast_run",),
        values: str = "same",
        phase: str = "",
    ) -> None:
        pairs = pattern if isinstance(pattern, list) else [(pattern, replacement)]
        made = [(as_pattern(left), _maker(right)) for left, right in pairs]
        for left, right in pairs:
            unbound = _variables(right) - _variables(left) if not callable(right) and isinstance(left, tuple) else set()
            if unbound and not _has_parts(left):
                raise HybridNetValueError(
                    f"PatternSub: the replacement names {sorted(unbound)}, which the pattern does not bind"
                )
        super().__init__(
            _core.rewrite.make_row(
                name or _name_of(pairs), patterns=made, tags=set(tags), values=values, phase=phase, what=_name_of(pairs)
            )
        )


def _has_parts(item: Any) -> bool:
    """Whether a pattern holds what P made, whose names are not to be seen."""
    return isinstance(item, _Pattern) or (isinstance(item, tuple) and any(map(_has_parts, item)))


def _name_of(pairs: list[tuple[Any, Any]]) -> str:
    def text(item: Any) -> str:
        if isinstance(item, tuple):
            return f"{item[0]}({', '.join(text(part) for part in item[1:] if not isinstance(part, Mapping))})"
        return str(item) if isinstance(item, (str, int, float)) else "..."

    return " | ".join(f"{text(left)} -> {text(right)}" for left, right in pairs)


def OpSub(old: str, new: str, **options: Any) -> LocalRewriter:  # a rule, named as in Theano
    """Nodes of operator `old` become nodes of `new`, with the same inputs and the parameters that both have."""
    from ._rules import local

    known = set(_core.rewrite.parameters_of(new))

    def substitute(graph: Any, node: Any) -> Any:
        params = {key: value for key, value in node.params.items() if key in known and value is not None}
        return list(graph.add(new, *node.inputs, **params).outputs)

    options.setdefault("name", f"{old} -> {new}")
    return local(tracks=[old], **options)(substitute)


def OpRemove(op: str, **options: Any) -> LocalRewriter:
    """Nodes of operator `op` go: readers of output i read input i. Fails at nodes with other numbers of both."""
    from ._rules import local

    def remove(graph: Any, node: Any) -> Any:
        if len(node.inputs) != len(node):
            raise HybridNetValueError(
                f"OpRemove({op!r}): node '{node.name}' has {len(node.inputs)} inputs and {len(node)} outputs",
                expected="as many inputs as outputs",
            )
        return node.inputs

    options.setdefault("name", f"remove {op}")
    return local(tracks=[op], **options)(remove)
