"""Sampling and subgraphs for graph networks: a graph is a csr matrix of edge numbers.

Row i stores the outgoing edges of vertex i: the column is the target vertex, the value is the edge's number, int64. All
functions wait for their arguments and have no gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..errors import ParamError, ShapeError
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from .ndarray import NDArray, array
from .sparse import CSRNDArray, csr_matrix

__all__ = [
    "dgl_adjacency", "dgl_csr_neighbor_non_uniform_sample", "dgl_csr_neighbor_uniform_sample", "dgl_graph_compact",
    "dgl_subgraph",
]  # fmt: skip


class _Graph:
    """The edges of a csr matrix as NumPy arrays."""

    def __init__(self, function: str, graph: Any, square: bool = True) -> None:
        if not isinstance(graph, CSRNDArray):
            raise HybridNetTypeError(f"{function}: graph", expected="a CSRNDArray", given=type(graph).__name__)
        if square and graph.shape[0] != graph.shape[1]:
            raise ShapeError(f"{function}: graph", expected="a square matrix", given=f"shape {graph.shape}")
        self.vertices = graph.shape[0]
        self.columns = graph.shape[1]
        self.indptr = graph.indptr.asnumpy()
        self.ends = graph.indices.asnumpy()
        self.edges = graph.data.asnumpy()

    def row(self, vertex: int) -> slice:
        return slice(int(self.indptr[vertex]), int(self.indptr[vertex + 1]))

    def among(self, vertices: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields for each of the vertices (ascending) the list positions of its edges' targets, and edge numbers."""
        for vertex in vertices:
            row = self.row(int(vertex))
            ends = self.ends[row]
            place = np.searchsorted(vertices, ends)
            there = (place < len(vertices)) & (vertices[np.minimum(place, len(vertices) - 1)] == ends)
            yield place[there], self.edges[row][there]


def _integers(function: str, values: Any, graph: _Graph) -> np.ndarray:
    if not isinstance(values, NDArray) or values.ndim != 1:
        raise ShapeError(
            f"{function}: vertices", expected="vectors of vertices", given=repr(getattr(values, "shape", values))
        )
    found = values.asnumpy()
    if (found != found.astype("int64")).any() or (found.size and not 0 <= found.min() <= found.max() < graph.vertices):
        raise HybridNetValueError(
            f"{function}: vertices",
            expected=f"integers from 0 to {graph.vertices - 1}",
            given=str(found.tolist()[:8]),
        )
    return found.astype("int64")


def _csr(rows: list[tuple[np.ndarray, np.ndarray]], shape: tuple[int, int], dtype: Any = "int64") -> CSRNDArray:
    """Builds a csr matrix from (columns, values) of its first rows; the others are empty."""
    counts = [len(columns) for columns, _ in rows] + [0] * (shape[0] - len(rows))
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype("int64")
    columns = np.concatenate([np.zeros(0, "int64"), *(columns for columns, _ in rows)]).astype("int64")
    values = np.concatenate([np.zeros(0, dtype), *(values for _, values in rows)]).astype(dtype)
    return csr_matrix((values, columns, indptr), shape=shape, dtype=dtype)


def _count_of(function: str, num_args: int | None, given: int) -> None:
    if num_args is not None and int(num_args) != given:
        raise ParamError(f"{function}: num_args", expected=f"{given}, the number of arrays", given=str(num_args))


# ------------------------------------------------------------------------------------------------------------- samples
def _sampled(
    graph: _Graph, seeds: np.ndarray, hops: int, limit: int, choose: Callable[[slice], np.ndarray]
) -> tuple[np.ndarray, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Breadth-first search: returns vertices (ascending), the hop that reached each, and the edges chosen for each.

    The search ends when `limit` vertices have been reached. Edges to vertices beyond the limit are dropped.
    """
    hop_of: dict[int, int] = {}
    for seed in seeds.tolist()[:limit]:
        hop_of.setdefault(seed, 0)
    queue = list(hop_of)
    taken: dict[int, np.ndarray] = {}
    for vertex in queue:  # grows during the loop
        if len(hop_of) >= limit or hop_of[vertex] >= hops:
            break
        taken[vertex] = choose(graph.row(vertex))
        for end in graph.ends[taken[vertex]].tolist():
            if end not in hop_of and len(hop_of) < limit:
                hop_of[end] = hop_of[vertex] + 1
                queue.append(end)
    vertices = np.array(sorted(hop_of), "int64")
    rows = []
    for vertex in vertices.tolist():
        at = taken.get(vertex, np.zeros(0, "int64"))
        at = at[[end in hop_of for end in graph.ends[at].tolist()]] if at.size else at
        rows.append((graph.ends[at], graph.edges[at]))
    return vertices, np.array([hop_of[v] for v in vertices.tolist()], "int64"), rows


def _padded(values: np.ndarray, length: int, *last: int) -> NDArray:
    whole = np.concatenate([values, np.zeros(length - len(values), values.dtype), np.array(last, values.dtype)])
    return array(whole, dtype=values.dtype)


def _sample(
    function: str, graph: Any, probability: Any, seeds: tuple[Any, ...], hops: int, neighbors: int, limit: int
) -> list[NDArray]:
    for name, value in (("num_hops", hops), ("num_neighbor", neighbors), ("max_num_vertices", limit)):
        if int(value) < 1:
            raise ParamError(f"{function}: {name}", expected="at least 1", given=str(value))
    source = _Graph(function, graph)
    if probability is not None and probability.shape != (source.vertices,):
        raise ShapeError(
            f"{function}: probability", expected=f"shape ({source.vertices},)", given=f"shape {probability.shape}"
        )
    weights = None if probability is None else probability.asnumpy().astype("float64")
    generator = _generator()

    def choose(row: slice) -> np.ndarray:
        candidates = np.arange(row.start, row.stop)
        if weights is None:
            count, chances = min(int(neighbors), candidates.size), None
        else:
            chances = weights[source.ends[row]]
            count = min(int(neighbors), int((chances > 0).sum()))
            chances = chances / chances.sum() if count else None
        if count == candidates.size:
            return candidates
        return np.sort(generator.choice(candidates, count, replace=False, p=chances))

    parts: list[tuple[Any, ...]] = []
    for given in seeds:
        first = _integers(function, given, source)
        vertices, hop, rows = _sampled(source, first, int(hops), int(limit), choose)
        made = [_padded(vertices, int(limit), len(vertices)), _csr(rows, (int(limit), source.columns))]
        if weights is not None:
            made.append(_padded(weights[vertices].astype("float32"), int(limit)))
        parts.append((*made, _padded(hop, int(limit))))
    return [part for same in zip(*parts, strict=True) for part in same]


def _generator() -> np.random.Generator:
    """Returns a NumPy generator, seeded by a draw from this package's generator."""
    from . import random

    return np.random.default_rng(int(random.randint(0, 2**31 - 1, shape=(1,)).asscalar()))


def dgl_csr_neighbor_uniform_sample(
    csr_matrix: CSRNDArray,
    *seed_arrays: NDArray,
    num_args: int | None = None,
    num_hops: int = 1,
    num_neighbor: int = 2,
    max_num_vertices: int = 100,
) -> list[NDArray]:
    """Samples a part of a graph around seeds: num_hops hops, up to num_neighbor edges per vertex, chosen uniformly.

    Returns for each array of seeds its vertices (max_num_vertices + 1,), ascending, padded by zeros, their number last;
    then for each a csr matrix (max_num_vertices, vertices of the graph) with the chosen edges, row k for the k-th
    vertex; then for each the hop (max_num_vertices,) at which each vertex was reached. The search ends when it has
    reached max_num_vertices.
    """
    function = "dgl_csr_neighbor_uniform_sample"
    _count_of(function, num_args, 1 + len(seed_arrays))
    return _sample(function, csr_matrix, None, seed_arrays, num_hops, num_neighbor, max_num_vertices)


def dgl_csr_neighbor_non_uniform_sample(
    csr_matrix: CSRNDArray,
    probability: NDArray,
    *seed_arrays: NDArray,
    num_args: int | None = None,
    num_hops: int = 1,
    num_neighbor: int = 2,
    max_num_vertices: int = 100,
) -> list[NDArray]:
    """Like :func:`dgl_csr_neighbor_uniform_sample`, but draws vertices in proportion to probability.

    Before the hops, the result holds for each array of seeds the probabilities of its vertices (max_num_vertices,),
    float32.
    """
    function = "dgl_csr_neighbor_non_uniform_sample"
    _count_of(function, num_args, 2 + len(seed_arrays))
    return _sample(function, csr_matrix, probability, seed_arrays, num_hops, num_neighbor, max_num_vertices)


# --------------------------------------------------------------------------------------------------------------- parts
def dgl_subgraph(
    graph: CSRNDArray, *data: NDArray, num_args: int | None = None, return_mapping: bool = False
) -> CSRNDArray | list[CSRNDArray]:
    """Returns for each vector of vertices (ascending) the graph of the edges between them, renumbered from 0.

    With return_mapping, then returns for each the same graph with the original edge numbers.
    """
    _count_of("dgl_subgraph", num_args, 1 + len(data))
    source = _Graph("dgl_subgraph", graph)
    parts = []
    for given in data:
        vertices = _integers("dgl_subgraph", given, source)
        if (np.diff(vertices) <= 0).any():
            raise HybridNetValueError(
                "dgl_subgraph: data", expected="rising vertices", given=str(vertices.tolist()[:8])
            )
        parts.append((list(source.among(vertices)), len(vertices)))
    return _numbered_anew(parts, return_mapping)


def _numbered_anew(
    parts: list[tuple[list[tuple[np.ndarray, np.ndarray]], int]], return_mapping: bool
) -> CSRNDArray | list[CSRNDArray]:
    made = []
    for rows, size in parts:
        numbers = np.arange(sum(len(columns) for columns, _ in rows))
        split = np.split(numbers, np.cumsum([len(columns) for columns, _ in rows])[:-1]) if rows else []
        made.append(_csr([(columns, new) for (columns, _), new in zip(rows, split, strict=True)], (size, size)))
    if return_mapping:
        made += [_csr(rows, (size, size)) for rows, size in parts]
    return made[0] if len(made) == 1 else made


def dgl_graph_compact(
    *graph_data: NDArray,
    num_args: int | None = None,
    return_mapping: bool = False,
    graph_sizes: int | tuple[int, ...] = (),
) -> CSRNDArray | list[CSRNDArray]:
    """Removes empty rows and columns of sampled graphs. graph_data: csr matrices, then the vertices of each sample.

    graph_sizes: the number of vertices of each, which is the last element of its vertices. Edges are renumbered; with
    return_mapping, then the same graphs with the original edge numbers follow.
    """
    function = "dgl_graph_compact"
    _count_of(function, num_args, len(graph_data))
    sizes = (graph_sizes,) if isinstance(graph_sizes, (int, np.integer)) else tuple(graph_sizes)
    if len(graph_data) != 2 * len(sizes):
        raise ParamError(
            f"{function}: graph_sizes",
            expected=f"{len(graph_data) // 2} numbers, one per graph",
            given=str(graph_sizes),
        )
    parts = []
    for graph, given, size in zip(graph_data[: len(sizes)], graph_data[len(sizes) :], sizes, strict=True):
        sample = _Graph(function, graph, square=False)
        vertices = given.asnumpy().astype("int64")[: int(size)]
        if len(vertices) != int(size) or int(size) > sample.vertices or (np.diff(vertices) <= 0).any():
            raise HybridNetValueError(f"{function}: graph_data", expected=f"{size} rising vertices", given=str(given))
        rows = []
        for k in range(int(size)):
            row = sample.row(k)
            rows.append((np.searchsorted(vertices, sample.ends[row]), sample.edges[row]))
            if not np.isin(sample.ends[row], vertices).all():
                raise HybridNetValueError(
                    f"{function}: graph_data", expected="edges between the vertices", given=str(graph)
                )
        parts.append((rows, int(size)))
    return _numbered_anew(parts, return_mapping)


def dgl_adjacency(data: CSRNDArray) -> CSRNDArray:
    """Returns the graph with value 1 for every edge, float32."""
    graph = _Graph("dgl_adjacency", data, square=False)
    return csr_matrix((np.ones(len(graph.ends), "float32"), graph.ends, graph.indptr), shape=data.shape)
