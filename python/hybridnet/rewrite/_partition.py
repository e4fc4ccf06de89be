"""Parts of graphs for other compilers: partition(), and what a backend gives back for a part."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import _core
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from . import _pipeline
from ._rules import Rewriter, _first_line

__all__ = ["Compiled", "NativeCode", "Partition", "backends", "convex_sets", "partition"]

WITH_GRADIENT, BEHIND_GRADIENT = 9.0, 35.0  # positions: of the forward graph; of forward and backward nodes


class Compiled:
    """Python functions that compute a part of a graph.

    Parameters
    ----------
    forward : callable
        ``forward(*inputs)`` gets a NumPy array per input of the part and returns one array, or a list with one per
        output, of the shapes and dtypes of the part.
    backward : callable, optional
        ``backward(output_gradients, inputs, outputs)`` gets three lists of arrays and returns one gradient per input.
    views : bool, default False
        Whether inputs show the memory of the graph, read-only, instead of copies; none may be kept beyond the call.
    all_sizes : bool, default False
        Whether the functions serve every size: for equal parts of other sizes make() is not asked again.

    They run under Python's lock, on the thread that calls the block. What they raise ends the call.
    """

    def __init__(
        self,
        forward: Callable[..., Any],
        backward: Callable[..., Any] | None = None,
        *,
        views: bool = False,
        all_sizes: bool = False,
    ) -> None:
        for name, function in (("forward", forward), ("backward", backward)):
            if not callable(function) and (function is not None or name == "forward"):
                raise HybridNetTypeError(f"Compiled: {name} is a function", given=repr(function))
        self.forward = forward
        self.backward = backward
        self.views = bool(views)
        self.all_sizes = bool(all_sizes)

    def _form(self) -> tuple[Any, ...]:
        return "python", self.forward, self.backward, self.views


class NativeCode:
    """Functions of machine code that compute a part of a graph, without Python and its lock, on any thread.

    Parameters
    ----------
    forward : int or ctypes function
        Address of a ``const char* function(const HnOperatorCall* call)`` (hybridnet/c_api.h), which writes every
        element of ``call->outputs`` and returns NULL, or what is wrong. Several threads may run it at once.
    backward : int or ctypes function, optional
        The same; inputs are gradients of the outputs, the inputs, the outputs; outputs are gradients of the inputs.
    keep : object, optional
        Lives as long as the code may run: the library that it is in.
    all_sizes : bool, default False
        As in Compiled; the sizes of a call stand in the tensors.
    """

    def __init__(self, forward: Any, backward: Any = None, *, keep: Any = None, all_sizes: bool = False) -> None:
        self.forward = _address("forward", forward)
        self.backward = 0 if backward is None else _address("backward", backward)
        self.keep = (keep, forward, backward)
        self.all_sizes = bool(all_sizes)

    def _form(self) -> tuple[Any, ...]:
        return "native", self.forward, self.backward, self.keep


def _address(name: str, function: Any) -> int:
    address: int | None = None
    if isinstance(function, int) and not isinstance(function, bool):
        address = function
    else:
        try:
            address = ctypes.cast(function, ctypes.c_void_p).value if callable(function) else None
        except ctypes.ArgumentError:  # a function of Python
            address = None
        if address is None:
            raise HybridNetTypeError(f"NativeCode: {name} is an address or a function of ctypes", given=repr(function))
    if address <= 0:
        raise HybridNetValueError(f"NativeCode: {name} is no address", given=repr(function))
    return address


class Partition(Rewriter):
    """Hands parts of graphs to a backend; :func:`partition` puts one into the pipeline.

    Parameters as there. ``apply(graph)`` runs it on one graph.
    """

    def __init__(
        self,
        supports: Callable[[Any], Any] | Iterable[str],
        min_nodes: int,
        make: Callable[[Any], Any],
        *,
        name: str | None = None,
        gradient: bool = False,
        tags: Iterable[str] = ("fast_run",),
    ) -> None:
        if not callable(make):
            raise HybridNetTypeError("partition: make is a function of a graph", given=repr(make))
        if isinstance(min_nodes, bool) or not isinstance(min_nodes, int) or min_nodes < 1:
            raise HybridNetValueError("partition: min_nodes", expected="an int of 1 or more", given=repr(min_nodes))
        self.supports = supports if callable(supports) else _one_of(supports)
        self.make = make
        self.gradient = gradient
        self._known: dict[Any, Any] = {}  # by structure: what serves all sizes
        super().__init__(
            _core.rewrite.make_partition(
                name or getattr(make, "__name__", type(make).__name__), self.supports, self._made, min_nodes,
                set(tags), _first_line(make),
            )
        )  # fmt: skip

    def _made(self, graph: Any) -> tuple[Any, ...] | None:
        key = _structure(graph) if self._known else None
        made = self._known.get(key) if key is not None else None
        if made is None:
            made = self.make(graph)
        if made is None:
            return None
        if callable(made) and not isinstance(made, (Compiled, NativeCode)):
            made = Compiled(made)
        if not isinstance(made, (Compiled, NativeCode)):
            raise HybridNetTypeError(
                f"partition '{self.name}': what make() gave", expected="None, a function, Compiled or NativeCode",
                given=repr(made),
            )  # fmt: skip
        if self.gradient and not made.backward:
            raise HybridNetValueError(
                f"partition '{self.name}': make() gave no backward",
                fix="give Compiled(forward, backward), or leave out gradient=True",
            )
        if made.all_sizes:
            self._known[_structure(graph) if key is None else key] = made
        return made._form()


def _one_of(names: Iterable[str]) -> Callable[[Any], bool]:
    given = [] if isinstance(names, str) else list(names)
    if not given or not all(isinstance(name, str) for name in given):
        raise HybridNetTypeError(
            "partition: supports is a function of a node, or names of operators", given=repr(names)
        )
    wanted = {op for name in given for op in _core.rewrite.operators_of(name)}

    def supports(node: Any) -> bool:
        return node.op in wanted

    return supports


def _structure(graph: Any) -> tuple[Any, ...]:
    """What two graphs have in common that differ in sizes only."""
    numbers: dict[Any, int] = {}
    steps: list[Any] = []
    for node in (*(entry.node for entry in graph.inputs), *graph.nodes):
        if node in numbers:
            continue
        numbers[node] = len(numbers)
        value = node.value.asnumpy().tobytes() if node.is_constant else None
        kinds = tuple((str(entry.dtype), len(entry.shape)) for entry in node.outputs)
        reads = tuple((numbers[entry.node], entry.index) for entry in node.inputs)
        # bodies of loops are not compared: parts with some are compiled anew
        steps.append((node.op, repr(node.params), reads, kinds, value, id(node) if node.bodies else None))
    outputs = tuple((numbers[entry.node], entry.index) for entry in graph.outputs)
    return graph.train, outputs, *steps


def partition(
    supports: Callable[[Any], Any] | Iterable[str],
    min_nodes: int,
    make: Callable[[Any], Any],
    *,
    name: str | None = None,
    position: float | None = None,
    gradient: bool = False,
    tags: Iterable[str] = ("fast_run",),
    after: Sequence[str] = (),
) -> Partition:
    """Lets a backend take over parts of graphs that are compiled from now on, bodies of loops and branches included.

    Nodes that the backend supports grow to sets, as large as possible, that can run as one: no value leaves a set and
    comes back to it. Each set of at least `min_nodes` goes to ``make(graph)`` and becomes one instruction of the plan.

    Parameters
    ----------
    supports : callable or iterable of str
        ``supports(node)`` says whether the backend can compute a Node; or names of operators. It is not asked about
        random draws, operators of users, updates of running statistics, and nodes whose shapes only running them tells.
        A loop that is supported goes to the backend as a whole, with its bodies.
    min_nodes : int
        Smaller sets stay as they are.
    make : callable
        ``make(graph)`` gets a set as a Graph (its inputs, nodes, constants, outputs with shapes and dtypes), which it
        may keep, and returns None, and the set stays as it is; or a function ``forward(*inputs)``, a Compiled, or a
        NativeCode. It is asked again for other sizes, unless what it gave serves all sizes.
    name : str, optional
        Of the backend: queries, reports and messages know it by that. Default: the name of make.
    position : float, optional
        In the pipeline (mx.rewrite.register). Default: 9, in front of differentiation, with gradient=True; else 35,
        on forward and backward nodes together, of which no set holds both.
    gradient : bool, default False
        Whether make() gives a backward, too.
    tags : iterable of str
        What queries know it by beside its name. With tags=() only blocks have it whose hybridize() or optimize_for()
        say backend=name.
    after : sequence of str
        Rewrites that must stand in front of it.

    What supports() and make() raise leaves the graph as it was, with a warning that names the backend
    (HYBRIDNET_ON_REWRITE: warn, raise or ignore). Exported files hold the operators, not what backends made of them.
    Returns a Partition, which mx.rewrite.unregister() takes out again. Raises ParamError for names that are taken and
    operators that do not exist, TypeError and ValueError for wrong arguments.
    """
    made = Partition(supports, min_nodes, make, name=name, gradient=gradient, tags=tags)
    if position is None:
        position = WITH_GRADIENT if gradient else BEHIND_GRADIENT
    _pipeline.register(made, position=position, after=after)
    return made


def convex_sets(graph: Any, supports: Callable[[Any], Any] | Iterable[str]) -> list[list[Any]]:
    """The sets of nodes of a Graph, of any number of nodes, that partition() would hand to a backend."""
    sets: list[list[Any]] = _core.rewrite.convex_sets(graph, supports if callable(supports) else _one_of(supports))
    return sets


def backends() -> list[str]:
    """Names of the backends that partition() has put into the pipeline, in order."""
    return [name for name, rewriter in _pipeline.entered().items() if isinstance(rewriter, Partition)]
