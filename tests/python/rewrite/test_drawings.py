"""Drawings of graphs: regions are boxes, names are escaped, and without Graphviz the source is shown."""

from __future__ import annotations

import os
import re
import shutil
import xml.etree.ElementTree as ElementTree

import hybridnet as mx
import pytest
from hybridnet import rewrite as rw

from rewrite.graphs import graph_of
from rewrite.zoo import NETS, graphs_of

EVIL = '<script>alert("x")</script>" ]; } \\ & \n é'
needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz' program dot is not installed")


@pytest.fixture
def without_dot(monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")


def boxes(source: str) -> list[str]:
    return re.findall(r"label=\"([^\"]*)\"; style", source)


@pytest.mark.parametrize("name", NETS)
def test_every_node_and_edge_is_drawn(name: str) -> None:
    for graph in graphs_of(name):
        source = graph.dot()
        assert source.count("{") == source.count("}")
        points = re.findall(r"^  (n\d+) \[label=", source, re.MULTILINE)
        edges = re.findall(r"^  (n\d+) -> (n\d+);$", source, re.MULTILINE)
        assert len(points) == len(set(points))
        assert {end for edge in edges for end in edge} <= set(points)
        plain = [node for node in graph.nodes if not node.bodies]
        assert len(edges) >= sum(len(node.inputs) for node in plain) + len(graph.outputs)


def test_regions_are_boxes_in_boxes() -> None:
    graph = graphs_of("nested")[0]
    found = boxes(graph.dot())
    assert [name for name in found if name in ("pred", "then", "else")] == ["pred", "then", "else"]
    assert found.count("do") == 2
    assert "test" in boxes(graphs_of("counted_while")[0].dot())


def test_names_do_not_break_out() -> None:
    graph = graph_of(mx.sym.relu(mx.sym.var(EVIL), name=EVIL))
    for line in graph.dot().splitlines():
        assert re.fullmatch(r'[^"]*("([^"\\]|\\.)*"[^"]*)*', line), line  # quotes are balanced within the line
    assert "<script>" not in graph._repr_html_()


def test_without_graphviz_there_is_the_text(without_dot: None) -> None:
    graph = graph_of(mx.sym.relu(mx.sym.var(EVIL)))
    with pytest.raises(ImportError, match="apt-get install graphviz"):
        graph.svg()
    shown = graph._repr_html_()
    assert shown.startswith("<pre>graph\n%&quot;&lt;script&gt;")
    assert "<script>" not in shown


@pytest.mark.skipif(os.name != "posix", reason="a shell script stands for dot")
def test_the_error_contains_the_message_of_dot(tmp_path, monkeypatch) -> None:
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\necho 'syntax error in line 3' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(ValueError, match="syntax error in line 3"):
        graph_of(mx.sym.relu(mx.sym.var("x"))).svg()


@needs_dot
def test_graphviz_draws_the_graph() -> None:
    for graph in (graphs_of("nested")[0], graph_of(mx.sym.relu(mx.sym.var(EVIL), name=EVIL))):
        root = ElementTree.fromstring(graph.svg())
        assert root.tag.endswith("svg")
        assert not [element for element in root.iter() if element.tag.endswith("script")]
        assert graph._repr_html_().startswith("<svg")
    assert rw.parse(graphs_of("nested")[0].text())._repr_html_().startswith("<svg")
