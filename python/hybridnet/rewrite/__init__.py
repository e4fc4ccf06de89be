"""Graph rewriting in Python: rules, patterns, navigators, databases and features (docs/rewriting.md).

A rule examines a node of a graph and returns its replacement. Rules in a database run whenever a graph is compiled,
also on bodies of loops and branches; other rules run where they are called::

    @mx.rewrite.local(tracks=["div"], db="canonicalize")
    def xy_over_y(graph, node):
        '''x * y / y is x.'''
        product, y = node.operands
        if isinstance(product, mx.rewrite.Entry) and product.node.op == "elemwise_mul" and y in product.node.inputs:
            left, right = product.node.inputs
            return left if right == y else right

Handles of graphs, nodes and entries are only valid until the rule returns; a later use is a ValueError.
"""

from .._public_names import dir_of
from ._databases import EquilibriumDB, LocalGroupDB, Query, SequenceDB, joined_query
from ._features import (
    ChangeTracker,
    Feature,
    History,
    OpIndex,
    Provenance,
    RegionMap,
    ReplaceValidate,
)
from ._handles import Entry, Graph, Node, graph, parse
from ._navigators import Equilibrium, Random, ReverseTopo, Topo, Walk
from ._partition import Compiled, NativeCode, Partition, backends, convex_sets, partition
from ._patterns import OpRemove, OpSub, P, PatternSub
from ._pipeline import apply, generation, register, rows, scope, stages, trace, unregister
from ._rules import GlobalRewriter, LocalRewriter, Rewriter, global_, local
from ._views import Slot, View

__all__ = [
    "ChangeTracker",
    "Compiled",
    "Entry",
    "Equilibrium",
    "EquilibriumDB",
    "Feature",
    "GlobalRewriter",
    "Graph",
    "History",
    "LocalGroupDB",
    "LocalRewriter",
    "NativeCode",
    "Node",
    "OpIndex",
    "OpRemove",
    "OpSub",
    "P",
    "Partition",
    "PatternSub",
    "Provenance",
    "Query",
    "Random",
    "RegionMap",
    "ReplaceValidate",
    "ReverseTopo",
    "Rewriter",
    "SequenceDB",
    "Slot",
    "Topo",
    "View",
    "Walk",
    "apply",
    "backends",
    "convex_sets",
    "generation",
    "global_",
    "graph",
    "joined_query",
    "local",
    "parse",
    "partition",
    "register",
    "rows",
    "scope",
    "stages",
    "trace",
    "unregister",
]

__dir__ = dir_of(__name__)
