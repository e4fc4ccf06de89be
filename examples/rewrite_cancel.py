"""Simplifies x * y / y to x in three ways: a rule over a node, a pattern, and rules from a database.

    python examples/rewrite_cancel.py

The graph is ((y + z) * x) / (y + z). Merging equal sums must come first: then the factor and the divisor are one value.
"""

from __future__ import annotations

import argparse
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import rewrite as rw


def xy_over_y(graph: Any, node: Any) -> Any:
    """x * y / y is x."""
    product, divisor = node.operands
    if isinstance(product, rw.Entry) and product.node.op == "elemwise_mul" and divisor in product.node.inputs:
        left, right = product.node.inputs
        return left if right == divisor else right
    return None


RULE = rw.local(tracks=["div"], values="unsafe")(xy_over_y)
PATTERN = rw.PatternSub(("div", ("mul", "x", "y"), "y"), "x", name="xy_over_y_pattern", values="unsafe")
DATABASE = rw.EquilibriumDB("algebra")
DATABASE.register(rw.local(tracks=["div"], values="unsafe", name="xy_over_y_registered")(xy_over_y), "cancel")


def graph_of_quotient() -> Any:
    x, y, z = (mx.sym.var(name) for name in "xyz")
    graph = rw.graph(((y + z) * x) / (y + z), shapes=dict.fromkeys("xyz", (2, 3)))
    assert not RULE.apply(graph)  # the two sums are two values
    rw.apply(graph, "merge")
    return graph


def value(graph: Any, arrays: dict[str, Any]) -> Any:
    symbol = graph.symbol()
    return symbol.bind(mx.cpu(), {name: arrays[name] for name in symbol.list_arguments()}).forward()[0].asnumpy()


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    arrays = {name: mx.nd.random.uniform(1, 2, shape=(2, 3)) for name in "xyz"}
    for name, rewriter in (
        ("rule", RULE), ("pattern", rw.Equilibrium(PATTERN)), ("database", DATABASE.query("cancel")),
    ):  # fmt: skip
        graph = graph_of_quotient()
        before, expected = len(graph), value(graph, arrays)
        report = rewriter.apply(graph)
        np.testing.assert_allclose(value(graph, arrays), expected, rtol=1e-6)
        assert graph.outputs[0].node.name == "x"
        print(f"{name}: {before} nodes -> {len(graph)}, fired {sum(line['fired'] for line in report.lines)} time")
    print("results agree")


if __name__ == "__main__":
    main()
