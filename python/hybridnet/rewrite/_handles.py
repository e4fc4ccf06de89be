"""Graphs owned by Python, and Python methods of the handles of graphs, nodes and entries."""

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

_MAX_DRAWN = 300  # nodes: for more, dot takes long and the drawing is unreadable

Graph = _core.rewrite.Graph
Node = _core.rewrite.Node
Entry = _core.rewrite.Entry


def graph(
    symbol: Symbol,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dtypes: Mapping[str, Any] | None = None,
    train: bool = False,
) -> Any:
    """Returns a Graph with copies of the nodes of a Symbol; the Symbol never changes.

    Parameters
    ----------
    symbol : Symbol
        The source; its outputs become those of the graph, its variables the inputs.
    shapes : mapping of str to tuple of int, optional
        Shapes of variables. Inferred and declared ones may be omitted.
    dtypes : mapping of str to dtype, optional
        Element types of variables; default: inferred, else float32.
    train : bool, default False
        Whether operators such as Dropout are in training mode.

    Raises ShapeError if a shape is unknown, ValueError for names that are not variables of the symbol.
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
    """Parses the text of a Graph, such as that of ``graph.text()`` (docs/rewriting.md describes the notation).

    Types of operators' outputs may be omitted if inference finds them.

    Parameters
    ----------
    text : str
        The lines of the graph: ``parse(graph.text())`` is a graph of the same ``fingerprint()``.

    Raises FormatError with line, column and the expected text. Like graph.add(), it accepts internal operators of the
    library: running the graph of a text is running a program.
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
    """Returns nodes of these operators, each after its producers; "mul" and the like mean all that compute it."""
    wanted = {name for op in ops for name in _core.rewrite.operators_of(op)}
    return [node for node in self.nodes if node.op in wanted]


def _named(self: Any, name: str) -> Any:
    """Returns the node with this name. Raises ValueError if there is none, or more than one."""
    found = [node for node in self.nodes if node.name == name]
    if len(found) != 1:
        known = ", ".join(sorted({node.name for node in self.nodes})[:12])
        raise HybridNetValueError(f"the graph has {len(found)} nodes named {name!r}", expected=f"one of: {known}")
    return found[0]


def _full(self: Any, value: float, like: Any) -> Any:
    """Returns an entry filled with `value`, with shape and dtype of the entry `like`."""
    return self.add("_full", shape=like.shape, dtype=like.dtype, value=float(value))[0]


def _svg(self: Any) -> str:
    """Draws the graph as the text of an SVG file: a box per loop, branch and region.

    Uses Graphviz' program dot. Raises ImportError if it is not installed; ``dot()`` returns its input.
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
    """The output in notebooks: the drawing, or the text if dot is not installed or the graph is large."""
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
