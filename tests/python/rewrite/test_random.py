"""Random edits and rules leave consistent graphs (rewrite/random_rules.py runs more of them)."""

from __future__ import annotations

import random

import pytest
from hybridnet import rewrite as rw

from rewrite.random_rules import random_graph, random_program, try_edit


@pytest.mark.parametrize("seed", range(5))
def test_readers_equal_a_rebuild_after_a_thousand_edits(seed) -> None:
    draw = random.Random(seed)
    graph = random_graph(draw, 20)
    kept: list = []
    done = 0
    for _ in range(1000):
        done += try_edit(draw, graph, kept)
        graph.check()
        if len(graph) < 4:
            graph = random_graph(draw, 20)
            kept.clear()
    assert done > 200
    copy, _ = graph.clone()
    assert copy.fingerprint() == graph.fingerprint()


@pytest.mark.filterwarnings("ignore")
def test_random_rules_good_and_bad(capfd) -> None:
    for seed in range(300):
        random_program(seed)


def test_confluent_rules_end_in_one_graph_in_any_order() -> None:
    rules = [rw.OpRemove("identity"), rw.PatternSub(("negative", ("negative", "x")), "x", name="twice")]
    for seed in range(20):
        graph = random_graph(random.Random(seed), 25)
        ends = set()
        for order in range(20):
            copy, _ = graph.clone()
            while rw.Random(rules, seed=order).apply(copy):
                pass
            ends.add(copy.fingerprint())
        assert len(ends) == 1
