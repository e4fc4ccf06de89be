"""Databases of rewrites, and the queries that select from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from .. import _core
from .._query_words import joined_query, listed_words
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from ..errors import not_overridden
from ._navigators import Equilibrium
from ._pipeline import IN_PLACE_POSITION, position_of
from ._rules import LocalRewriter, Report, Rewriter

__all__ = ["EquilibriumDB", "LocalGroupDB", "Query", "SequenceDB", "joined_query"]


class Query:
    """Selects rewrites: those with a tag or name in `include`, and all of `require`, and none of `exclude`.

    Parameters
    ----------
    include, require, exclude : iterable of str
        Tags and names of rewrites.
    subquery : mapping of str to Query
        Replaces this query in the database, or stage, of that name; excludes of both apply.
    position_cutoff : float
        Rewrites after this position of a SequenceDB do not run.

    ``str(query)`` is the text that ``hybridize(passes=...)`` takes: "fast_run,-fusion,&loop,loops:-merge_loops,<=30".
    """

    def __init__(
        self,
        include: Iterable[str] = ("fast_run",),
        require: Iterable[str] = (),
        exclude: Iterable[str] = (),
        subquery: Mapping[str, Query] | None = None,
        position_cutoff: float = math.inf,
    ) -> None:
        self.include = listed_words(include)
        self.require = listed_words(require)
        self.exclude = listed_words(exclude)
        self.subquery = dict(subquery or {})
        self.position_cutoff = float(position_cutoff)

    @classmethod
    def parse(cls, text: str | Query) -> Query:
        """Parses the text of a query; an empty text means "fast_run"."""
        if isinstance(text, Query):
            return text
        include: list[str] = []
        require: list[str] = []
        exclude: list[str] = []
        inner: dict[str, list[str]] = {}
        cutoff = math.inf
        for word in (part.strip() for part in _core.rewrite.query_text(text).split(",")):
            if word.startswith("<="):
                cutoff = float(word[2:])
            elif ":" in word:
                name, _, rest = word.partition(":")
                inner.setdefault(name, []).append(rest)
            else:
                (exclude if word[0] == "-" else require if word[0] == "&" else include).append(word.lstrip("-&+"))
        query = cls(include, require, exclude, position_cutoff=cutoff)
        for name, words in inner.items():
            part = cls.parse(",".join(words))
            if all(word[0] in "-&" for word in words):
                part.include = include
            query.subquery[name] = cls(part.include, require + part.require, exclude + part.exclude)
        return query

    def including(self, *words: str) -> Query:
        """Returns a copy that also includes these words."""
        return self._with(include=[*self.include, *words])

    def excluding(self, *words: str) -> Query:
        """Returns a copy that also excludes these words, in its subqueries as well."""
        inner = {name: query.excluding(*words) for name, query in self.subquery.items()}
        return self._with(exclude=[*self.exclude, *words], subquery=inner)

    def requiring(self, *words: str) -> Query:
        """Returns a copy that also requires these words."""
        return self._with(require=[*self.require, *words])

    def accepts(self, names: Iterable[str]) -> bool:
        """Whether a rewrite with these names and tags is selected."""
        known = set(names)
        return (
            bool(known.intersection(self.include)) and known.issuperset(self.require) and known.isdisjoint(self.exclude)
        )

    def _with(self, **changes: Any) -> Query:
        state = {
            "include": self.include, "require": self.require, "exclude": self.exclude, "subquery": self.subquery,
            "position_cutoff": self.position_cutoff,
        }  # fmt: skip
        return Query(**{**state, **changes})

    def __str__(self) -> str:
        words = [*self.include, *(f"-{word}" for word in self.exclude), *(f"&{word}" for word in self.require)]
        if self.position_cutoff != math.inf:
            words.append(f"<={self.position_cutoff!r}")
        for name, query in self.subquery.items():
            words += [f"{name}:{word}" for word in str(Query(query.include, query.require, query.exclude)).split(",")]
        return ",".join(words)

    def __repr__(self) -> str:
        return f"Query({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Query) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class _Database(Rewriter):
    """Base of databases: names, tags, and use as a rewrite that runs the default query's selection."""

    def __init__(self, name: str, tags: Iterable[str] = ("fast_run",)) -> None:
        self.items: dict[str, Rewriter] = {}
        self.tags: dict[str, set[str]] = {}
        super().__init__(
            _core.rewrite.make_row(name, global_=lambda graph: self.query().apply(graph).changed, tags=set(tags))
        )

    def _add(self, rewriter: Rewriter, tags: Iterable[str], kinds: type | tuple[type, ...]) -> None:
        if not isinstance(rewriter, kinds):
            raise HybridNetTypeError(f"'{self.name}' holds rewrites", expected=str(kinds), given=repr(rewriter))
        name, given = rewriter.name, set(listed_words(tags))
        taken = set().union(*self.tags.values()) if self.tags else set()
        if name in self.items or name in taken:
            raise HybridNetValueError(f"database '{self.name}': the name '{name}' is taken, by a rewrite or as a tag")
        if clash := given.intersection(self.items, given) or given.intersection({name}):
            raise HybridNetValueError(f"database '{self.name}': the tag '{min(clash)}' is the name of a rewrite")
        if rewriter._row.in_place:
            self._take_in_place(name)
        self.items[name] = rewriter
        self.tags[name] = given

    def _take_in_place(self, name: str) -> None:
        """Marks a database with a rule that writes over its inputs. Raises ValueError if its position forbids that."""
        position = position_of(self)
        if position is not None and position < IN_PLACE_POSITION:
            raise HybridNetValueError(
                f"database '{self.name}': '{name}' may write over its inputs, and the database stands at position "
                f"{position:g}",
                fix=f"register the database at a position of {IN_PLACE_POSITION:g} or more",
            )
        self._row.in_place = True

    def _chosen(self, query: Query) -> list[str]:
        inner = query.subquery.get(self.name, query)
        return [name for name in self.items if inner.accepts({name, *self.tags[name]})]

    def _resolved(self, name: str, query: Query) -> Rewriter:
        item = self.items[name]
        return item.query(query) if isinstance(item, _Database) else item

    def __contains__(self, name: str) -> bool:
        return name in self.items

    def query(self, query: Any = "fast_run") -> Rewriter:
        """Returns the rewrite that a query selects."""
        raise not_overridden(self, "query()")

    def apply(self, graph: Any) -> Report:
        """Runs the default query's selection."""
        return self.query().apply(graph)

    rewrite = apply


class _Sequence(Rewriter):
    """Runs rewrites in sequence."""

    def __init__(self, name: str, steps: list[Rewriter]) -> None:
        self.steps = steps
        in_place = any(step._row.in_place for step in steps)
        super().__init__(
            _core.rewrite.make_row(name, global_=lambda graph: self.apply(graph).changed, in_place=in_place)
        )

    def apply(self, graph: Any) -> Report:
        report = Report(False)
        for step in self.steps:
            part = step.apply(graph)
            report.changed = report.changed or part.changed
            report.lines += part.lines
            report.warnings += part.warnings
        return report

    rewrite = apply


class SequenceDB(_Database):
    """Rewrites in the order of their positions; equal positions are ordered by name."""

    def __init__(self, name: str, tags: Iterable[str] = ("fast_run",)) -> None:
        super().__init__(name, tags)
        self.positions: dict[str, float] = {}

    def register(self, rewriter: Rewriter, position: float, *tags: str) -> Rewriter:
        """Adds a rewrite or a database. Raises ValueError for an existing name."""
        if math.isnan(position):
            raise HybridNetValueError("SequenceDB.register: position is NaN")
        self._add(rewriter, tags or ("fast_run",), Rewriter)
        self.positions[rewriter.name] = float(position)
        return rewriter

    def query(self, query: Any = "fast_run") -> Rewriter:
        wanted = Query.parse(query)
        names = [name for name in self._chosen(wanted) if self.positions[name] <= wanted.position_cutoff]
        names.sort(key=lambda name: (self.positions[name], name))
        return _Sequence(self.name, [self._resolved(name, wanted) for name in names])


class EquilibriumDB(_Database):
    """Rewrites that run together until none fires (see Equilibrium)."""

    def register(self, rewriter: Rewriter, *tags: str) -> Rewriter:
        """Adds a rewrite or a database. Raises ValueError for an existing name."""
        self._add(rewriter, tags or ("fast_run",), Rewriter)
        return rewriter

    def query(self, query: Any = "fast_run") -> Rewriter:
        wanted = Query.parse(query)
        return Equilibrium([self._resolved(name, wanted) for name in self._chosen(wanted)], name=self.name)


class LocalGroupDB(_Database):
    """Local rules that are tried in order at one node: the first that fires is applied."""

    def register(self, rewriter: LocalRewriter, *tags: str) -> LocalRewriter:
        """Adds a local rule. Raises TypeError for other rewrites, ValueError for an existing name."""
        self._add(rewriter, tags or ("fast_run",), LocalRewriter)
        return rewriter

    def query(self, query: Any = "fast_run") -> Rewriter:
        return Equilibrium([self.items[name] for name in self._chosen(Query.parse(query))], name=self.name)
