"""A replacement that would make a cycle is reverted."""

import pytest

from rewrite.graphs import tutorial


def test_a_replacement_that_makes_a_cycle_reverts() -> None:
    graph = tutorial()
    before = graph.fingerprint()
    (total,) = graph.find("add")
    with pytest.raises(ValueError, match="cycle"):
        graph.replace_validate([(total[0], graph.outputs[0])])
    assert graph.fingerprint() == before
    graph.check()
