"""Pattern rules: a pattern and its replacement, both as nested tuples."""

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

    In a pattern a str is a variable, a number matches itself (also as an array made by zeros, ones or full), a tuple is
    an operator: its name, then the patterns of its inputs. "add", "sub", "mul", "div", "mod", "pow", "maximum" and
    "minimum" match all operators that compute them; commutative operators match in both orders.
    """

    @staticmethod
    def var(name: str, where: Callable[[Any, Any], bool] | None = None) -> Any:
        """Matches any value for which ``where(graph, entry)`` is true. A repeated name must match the same value."""
        return _Pattern.any(name, where)

    @staticmethod
    def const(
        value: float | None = None,
        name: str = "",
        *,
        tol: float = 0.0,
        where: Callable[[Any, Any], bool] | None = None,
    ) -> Any:
        """Matches a number at most `tol` from `value`; without value any number."""
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
        """Matches a use of an operator.

        attrs : mapping
            Parameters that it must have.
        out : str
            Name of its result.
        shared : bool
            Whether nodes outside of the match may read its result, which must then be kept.
        """
        return _Pattern.operator(op, [as_pattern(item) for item in inputs], dict(attrs or {}), out, shared, where)

    @staticmethod
    def many(name: str) -> Any:
        """Matches the remaining inputs, as a list."""
        return _Pattern.rest(name)

    @staticmethod
    def alt(*patterns: Any) -> Any:
        """Matches the first matching one of these."""
        return _Pattern.one_of([as_pattern(item) for item in patterns])


def as_pattern(item: Any) -> Any:
    """Converts a tuple, a name or a number to a pattern."""
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
        expected="a name, a number, a tuple such as ('mul', 'x', 'y'), or an object that mx.rewrite.P makes",
        given=repr(item),
    )


def _variables(item: Any) -> set[str]:
    if isinstance(item, str):
        return {item}
    return set().union(*map(_variables, item[1:])) if isinstance(item, tuple) else set()


def _build(graph: Any, template: Any, names: Mapping[str, Any]) -> Any:
    """Instantiates a template with the values of a match: returns an Entry or a number."""
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
    """A local rule that replaces matches of a pattern.

    ::

        PatternSub(("div", ("mul", "x", "y"), "y"), "x", values="unsafe")
        PatternSub([(("log", ("softmax", "x")), ("log_softmax", "x")), ...], name="logs")

    Parameters
    ----------
    pattern : tuple, part made by P, or list of (pattern, replacement)
        The root has one output. Nodes inside a match must have no readers outside of it, except for
        ``P.op(shared=True)``. Several patterns cost one walk over a node; the first match is used.
    replacement : str, number, tuple or callable
        In the same form as the pattern; a tuple may end with a dict of parameters. A callable
        ``make(graph, node, names)`` returns the result of a local rule; None: it declines this match.
    name : str, optional
    tags, values, phase
        See mx.rewrite.local().

    Raises ParamError for operators that do not exist, ValueError for replacements with unbound names.
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
    """Whether a pattern holds parts made by P, whose names are hidden."""
    return isinstance(item, _Pattern) or (isinstance(item, tuple) and any(map(_has_parts, item)))


def _name_of(pairs: list[tuple[Any, Any]]) -> str:
    def text(item: Any) -> str:
        if isinstance(item, tuple):
            return f"{item[0]}({', '.join(text(part) for part in item[1:] if not isinstance(part, Mapping))})"
        return str(item) if isinstance(item, (str, int, float)) else "..."

    return " | ".join(f"{text(left)} -> {text(right)}" for left, right in pairs)


def OpSub(old: str, new: str, **options: Any) -> LocalRewriter:  # a rule with Theano's name
    """Returns a rule that converts nodes of operator `old` to `new`, with the same inputs and the common parameters."""
    from ._rules import local

    known = set(_core.rewrite.parameters_of(new))

    def substitute(graph: Any, node: Any) -> Any:
        params = {key: value for key, value in node.params.items() if key in known and value is not None}
        return list(graph.add(new, *node.inputs, **params).outputs)

    options.setdefault("name", f"{old} -> {new}")
    return local(tracks=[old], **options)(substitute)


def OpRemove(op: str, **options: Any) -> LocalRewriter:
    """Returns a rule that removes nodes of operator `op`: readers of output i read input i. Fails if counts differ."""
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
