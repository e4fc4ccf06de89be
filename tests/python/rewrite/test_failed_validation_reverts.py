"""A replacement whose validation fails is reverted: the graph has its former fingerprint."""

import pytest
from hybridnet import rewrite as rw

from rewrite.graphs import tutorial


def test_a_failed_validation_restores_the_fingerprint() -> None:
    def refuse(graph):
        raise ValueError("no")

    graph, index = tutorial(), rw.OpIndex()
    graph.attach(index)
    graph.attach(rw.ReplaceValidate(refuse))
    before = graph.fingerprint()
    with pytest.raises(ValueError, match="no"):
        graph.replace_validate([(graph.outputs[0], graph.named("x")[0])])
    assert graph.fingerprint() == before
    assert index["elemwise_div"] == graph.find("elemwise_div")
