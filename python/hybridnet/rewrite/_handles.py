"""Graphs that Python owns, and what handles of graphs, nodes and entries offer beside what C++ gives them."""

from __future__ import annotations

import html
import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from .. import _core
from ..errors import ImportError as HybridNetImportError
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from ..symbol import Symbol

__all__ = ["Entry", "Graph", "Node", "graph", "parse"]

_MAX_DRAWN = 300  # nodes: dot takes long for more, and nobody can read the drawing

Graph = _core.rewrite.Graph
Node = _core.rewrite.Node
Entry = _core.rewrite.Entry


def graph(
    symbol: Symbol,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dtypes: Mapping[str, Any] | None = None,
    train: bool = False,
) -> Any:
    """A Graph with copies of the nodes of a Symbol; the Symbol never changes.

    Parameters
    ----------
    symbol : Symbol
        Its outputs become those of the graph, its variables the inputs.
    shapes : mapping of str to tuple of int, optional
        Shapes of variables. Those that inference finds, and those that variables declare, may be left out.
    dtypes : mapping of str to dtype, optional
        Element types of variables; float32 where nothing else follows.
    train : bool, default False
        Whether operators such as Dropout are those of training.

    Raises ShapeError if some shape cannot be told, ValueError for names that are no variables of the symbol.
    """
    variables = symbol.list_inputs()
    for given in (*(shapes or ()), *(dtypes or ())):
        if given not in variables:
            raise HybridNetValueError(
                f"mx.rewrite.graph: the symbol has no variable {given!r}",
                expected=", ".join(variables) or "no variable",
            )
    known = {
        name: ((shapes or {}).get(name), (dtypes or {}).get(name))
        for name in variables
        if name in (shapes or {}) or name in (dtypes or {})
    }
    return Graph.of_symbol(symbol, known, train)


def parse(text: str) -> Any:
    """The Graph that a text describes, such as ``graph.text()`` gives (docs/rewriting.md shows the notation).

    Types of operators' outputs may be left out where inference finds them.

    Parameters
    ----------
    text : str
        The lines of the graph: ``parse(graph.text())`` is a graph of the same ``fingerprint()``.

    Raises FormatError with line, column and what was expected there. Like graph.add(), it takes operators that the
    library uses internally: running the graph of a text is running a program.
    """
    if not isinstance(text, str):
        raise HybridNetTypeError("mx.rewrite.parse", expected="a str", given=repr(text))
    return Graph.parse(text)


def _arithmetic(op: str, reversed_: bool = False) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        if not isinstance(other, (Entry, Node, int, float)) or isinstance(other, bool):
            return NotImplemented
        left, right = (other, self) if reversed_ else (self, other)
        return self.graph.add(op, left, right)[0]

    return operator


def _find(self: Any, *ops: str) -> list[Any]:
    """Nodes of these operators, each behind its producers; "mul" and the like stand for all that compute it."""
    wanted = {name for op in ops for name in _core.rewrite.operators_of(op)}
    return [node for node in self.nodes if node.op in wanted]


def _named(self: Any, name: str) -> Any:
    """The node of this name. Raises ValueError if there is none, or more than one."""
    found = [node for node in self.nodes if node.name == name]
    if len(found) != 1:
        known = ", ".join(sorted({node.name for node in self.nodes})[:12])
        raise HybridNetValueError(f"the graph has {len(found)} nodes named {name!r}", expected=f"one of: {known}")
    return found[0]


def _full(self: Any, value: float, like: Any) -> Any:
    """An entry that holds `value` everywhere, with shape and dtype of the entry `like`."""
    return self.add("_full", shape=like.shape, dtype=like.dtype, value=float(value))[0]


def _svg(self: Any) -> str:
    """The drawing of the graph as text of an SVG file: a box per loop, branch and region.

    Graphviz' program dot draws it. Raises ImportError where it is not installed; ``dot()`` gives what it reads.
    """
    program = shutil.which("dot")
    if program is None:
        raise HybridNetImportError(
            "graph.svg() needs the program dot of Graphviz", fix="apt-get install graphviz, or conda install graphviz"
        )
    drawn = subprocess.run([program, "-Tsvg"], input=self.dot().encode(), capture_output=True, check=False)
    if drawn.returncode != 0:
        raise HybridNetValueError("graph.svg()", because=drawn.stderr.decode(errors="replace")[:400])
    return drawn.stdout.decode()


def _repr_html(self: Any) -> str:
    """What notebooks show: the drawing, or the text where dot is not installed or the graph is large."""
    if shutil.which("dot") is not None and len(self) <= _MAX_DRAWN:
        drawing = self.svg()
        return str(drawing[drawing.index("<svg") :])
    return f"<pre>{html.escape(self.text(values=False))}</pre>"


for _class in (Entry, Node):
    for _name, _op in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "mod": "mod"}.items():
        setattr(_class, f"__{_name}__", _arithmetic(_op))
        setattr(_class, f"__r{_name}__", _arithmetic(_op, reversed_=True))
    _class.__neg__ = lambda self: self.graph.add("negative", self)[0]
Graph.find = _find
Graph.named = _named
Graph.full = _full
Graph.svg = _svg
Graph._repr_html_ = _repr_html
Graph.__repr__ = lambda self: f"<Graph of {len(self)} nodes>"
