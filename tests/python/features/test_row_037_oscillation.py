"""Row 37: oscillation and budget. A <-> B stops, and both names are reported."""

import hybridnet as mx
from hybridnet import rewrite as rw
from rewrite.graphs import graph_of


def test_rules_that_undo_each_other_stop_and_are_named() -> None:
    rules = [rw.OpSub("relu", "tanh", name="forth"), rw.OpSub("tanh", "relu", name="back")]
    report = rw.Equilibrium(rules).apply(graph_of(mx.sym.relu(mx.sym.var("x"))))
    (warning,) = report.warnings
    assert "forth" in warning
    assert "back" in warning
