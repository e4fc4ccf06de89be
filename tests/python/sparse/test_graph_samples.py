"""Samples and subgraphs of graphs stored as csr matrices of edge numbers; expected values are from MXNet 1.9.1."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors
from hybridnet.ndarray import contrib


@pytest.fixture
def graph():
    """A graph of five vertices, each with an edge to every other one; edges are numbered from 1, row by row."""
    columns = [j for i in range(5) for j in range(5) if i != j]
    edges = (np.arange(1, 21), columns, np.arange(0, 21, 4))
    return mx.nd.sparse.csr_matrix(edges, shape=(5, 5), dtype="int64")


def vertices(*numbers):
    return mx.nd.array(numbers, dtype="int64")


@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("neighbors", [1, 2, 10])
@pytest.mark.parametrize("limit", [3, 5, 9])
def test_a_sample_holds_edges_of_the_graph_between_its_vertices(graph, hops, neighbors, limit):
    for _ in range(5):
        found, edges, hop = contrib.dgl_csr_neighbor_uniform_sample(
            graph, vertices(0, 1), num_args=2, num_hops=hops, num_neighbor=neighbors, max_num_vertices=limit
        )
        assert found.shape == (limit + 1,)
        assert hop.shape == (limit,)
        assert edges.shape == (limit, 5)
        count = int(found[-1].asscalar())
        ids = found.asnumpy()[:count]
        assert 2 <= count <= min(limit, 5)
        assert (np.diff(ids) > 0).all()
        assert {0, 1} <= set(ids.tolist())
        dense, whole = edges.asnumpy(), graph.asnumpy()
        assert (dense[count:] == 0).all()
        for row, vertex in enumerate(ids):
            taken = np.flatnonzero(dense[row])
            assert len(taken) <= neighbors
            assert set(taken.tolist()) <= set(ids.tolist())
            assert (dense[row, taken] == whole[vertex, taken]).all()
        assert (hop.asnumpy()[:count][ids <= 1] == 0).all()
        assert hop.asnumpy().max() <= hops


def test_seeds_come_one_array_each_and_the_seed_decides(graph):
    def draw():
        mx.random.seed(5)
        return contrib.dgl_csr_neighbor_uniform_sample(graph, vertices(0), vertices(2, 3), max_num_vertices=4)

    first, again = draw(), draw()
    assert [part.shape for part in first] == [(5,), (5,), (4, 5), (4, 5), (4,), (4,)]
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_vertices_without_a_chance_are_not_drawn(graph):
    chances = mx.nd.array([0.5, 0.2, 0.0, 0.0, 0.3])
    for _ in range(10):
        found, edges, probability, hop = contrib.dgl_csr_neighbor_non_uniform_sample(
            graph, chances, vertices(0), num_args=3, num_neighbor=3, max_num_vertices=5
        )
        assert found.asnumpy().tolist() == [0, 1, 4, 0, 0, 3]
        assert edges.asnumpy()[0].tolist() == [0, 1, 0, 0, 4]
        np.testing.assert_allclose(probability.asnumpy(), [0.5, 0.2, 0.3, 0, 0], rtol=1e-6)
        assert hop.asnumpy().tolist() == [0, 1, 1, 0, 0]


def test_draws_follow_the_chances(graph):
    mx.random.seed(3)
    counts = np.zeros(5)
    for _ in range(400):
        edges = contrib.dgl_csr_neighbor_non_uniform_sample(
            graph, mx.nd.array([1, 6, 2, 1, 1]), vertices(0), num_neighbor=1, max_num_vertices=5
        )[1]
        counts += edges.asnumpy()[0] > 0
    np.testing.assert_allclose(counts / 400, [0, 0.6, 0.2, 0.1, 0.1], atol=0.08)


def test_the_graph_between_some_vertices(graph):
    new, old = contrib.dgl_subgraph(graph, vertices(0, 2, 4), num_args=2, return_mapping=True)
    assert new.stype == "csr"
    assert new.asnumpy().tolist() == [[0, 0, 1], [2, 0, 3], [4, 5, 0]]
    assert old.asnumpy().tolist() == [[0, 2, 4], [9, 0, 12], [17, 19, 0]]
    assert contrib.dgl_subgraph(graph, vertices(1, 3)).asnumpy().tolist() == [[0, 0], [1, 0]]
    found = contrib.dgl_subgraph(graph, vertices(0, 2, 4), vertices(1, 3), return_mapping=True)
    assert [part.shape for part in found] == [(3, 3), (2, 2), (3, 3), (2, 2)]
    assert found[3].asnumpy().tolist() == [[0, 7], [14, 0]]


def test_samples_are_made_compact(graph):
    found, edges, _ = contrib.dgl_csr_neighbor_uniform_sample(graph, vertices(0, 1), num_hops=2, max_num_vertices=8)
    count = int(found[-1].asscalar())
    new, old = contrib.dgl_graph_compact(edges, found, num_args=2, return_mapping=True, graph_sizes=count)
    ids = found.asnumpy()[:count]
    np.testing.assert_array_equal(old.asnumpy(), edges.asnumpy()[:count][:, ids])
    assert new.data.asnumpy().tolist() == list(range(len(old.data)))
    np.testing.assert_array_equal(new.indices.asnumpy(), old.indices.asnumpy())
    alone = contrib.dgl_graph_compact(edges, found, graph_sizes=(count,))
    np.testing.assert_array_equal(alone.asnumpy(), new.asnumpy())


def test_adjacency_is_one_for_every_edge(graph):
    found = contrib.dgl_adjacency(graph)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.asnumpy(), 1 - np.eye(5))


def test_a_graph_without_edges():
    empty = mx.nd.sparse.zeros("csr", (3, 3), dtype="int64")
    found, edges, hop = contrib.dgl_csr_neighbor_uniform_sample(empty, vertices(2), max_num_vertices=2)
    assert found.asnumpy().tolist() == [2, 0, 1]
    assert edges.asnumpy().tolist() == [[0] * 3] * 2
    assert hop.asnumpy().tolist() == [0, 0]
    assert contrib.dgl_subgraph(empty, vertices(0, 1)).asnumpy().tolist() == [[0, 0], [0, 0]]


def test_errors_of_wrong_calls_name_the_expected_input(graph):
    for wrong, match in (
        (lambda: contrib.dgl_subgraph(graph, vertices(4, 0)), "rising"),
        (lambda: contrib.dgl_subgraph(graph, vertices(5)), "from 0 to 4"),
        (lambda: contrib.dgl_subgraph(graph, vertices(0), num_args=3), "num_args"),
        (lambda: contrib.dgl_subgraph(mx.nd.ones((2, 2)), vertices(0)), "CSRNDArray"),
        (lambda: contrib.dgl_subgraph(mx.nd.sparse.zeros("csr", (2, 3)), vertices(0)), "square"),
        (lambda: contrib.dgl_csr_neighbor_uniform_sample(graph, vertices(0), num_hops=0), "num_hops"),
        (lambda: contrib.dgl_csr_neighbor_non_uniform_sample(graph, mx.nd.ones(3), vertices(0)), "probability"),
        (lambda: contrib.dgl_graph_compact(graph, vertices(0, 1), graph_sizes=(1, 2)), "graph_sizes"),
    ):
        with pytest.raises(errors.HybridNetError, match=match):
            wrong()
