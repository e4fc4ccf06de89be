"""xy/y as a rule, a pattern and a database: after merge, div(mul(add(y, z), x), add(y, z)) becomes x."""

import pytest
from hybridnet import rewrite as rw

from rewrite.graphs import output_names, tutorial, x_times_y_over_y


def by_rule():
    return rw.local(tracks=["div"], name="rule")(x_times_y_over_y)


def by_pattern():
    return rw.PatternSub(("div", ("mul", "x", "y"), "y"), "x", name="pattern")


def by_database():
    db = rw.EquilibriumDB("database")
    db.register(by_rule())
    return db.query("fast_run")


@pytest.mark.parametrize("way", [by_rule, by_pattern, by_database])
def test_the_program_becomes_x(way) -> None:
    graph = tutorial()
    assert way().apply(graph)
    assert output_names(graph) == ["x"]
    assert len(graph) == 3
