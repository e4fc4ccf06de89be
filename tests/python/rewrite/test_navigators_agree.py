"""All navigators rewrite xy/y to the same result."""

import pytest
from hybridnet import rewrite as rw

from rewrite.graphs import output_names, tutorial, x_times_y_over_y


@pytest.mark.parametrize("navigator", [rw.Topo, rw.ReverseTopo, rw.Random, rw.Walk, rw.Equilibrium])
def test_all_navigators_agree(navigator) -> None:
    graph = tutorial()
    assert navigator(rw.local(tracks=["div"])(x_times_y_over_y)).apply(graph)
    assert output_names(graph) == ["x"]
