"""The client lists of a graph equal freshly built ones after 1000 random edits."""

import random

from rewrite.random_rules import random_graph, try_edit


def test_client_lists_equal_a_rebuild_after_a_thousand_edits() -> None:
    draw = random.Random(19)
    graph = random_graph(draw, 30)
    done = 0
    for _ in range(1000):
        done += try_edit(draw, graph, [])
        graph.check()
    assert done > 200
