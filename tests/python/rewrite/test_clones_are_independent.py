"""Edits of a cloned graph leave the original unchanged."""

from rewrite.graphs import tutorial


def test_the_original_of_an_edited_clone_stays() -> None:
    graph = tutorial()
    before = graph.fingerprint()
    clone, equivalent = graph.clone()
    clone.replace(equivalent[graph.outputs[0]], equivalent[graph.named("x")[0]])
    assert len(clone) == 3
    assert graph.fingerprint() == before
