"""Queries of databases include, require and exclude tags, and have subqueries (more queries: test_databases.py)."""

from hybridnet import rewrite as rw

from rewrite.graphs import tutorial


def chosen(query) -> str:
    log: list[str] = []
    inner = rw.SequenceDB("inner")
    inner.register(rw.global_(name="e")(lambda g: log.append("e")), 0, "x", "y")
    inner.register(rw.global_(name="f")(lambda g: log.append("f")), 1, "x")
    db = rw.SequenceDB("outer")
    for i, (name, tags) in enumerate({"a": "x", "b": "xy", "c": "y"}.items()):
        db.register(rw.global_(name=name)(lambda g, name=name: log.append(name)), i, *tags)
    db.register(inner, 3, "x", "y")
    db.query(query).apply(tutorial())
    return "".join(log)


def test_queries_with_subqueries() -> None:
    assert chosen("x") == "abef"
    assert chosen("x,-y") == "a"
    assert chosen("x,&y") == "be"
    assert chosen("x,inner:-y") == "abf"
    assert chosen(rw.Query(include=["x"], subquery={"inner": rw.Query(include=["y"])})) == "abe"
    assert chosen(rw.Query(include=["x"], position_cutoff=1)) == "ab"
