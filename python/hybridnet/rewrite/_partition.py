"""Parts of graphs for external compilers: partition(), and the results of a backend."""

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

WITH_GRADIENT, BEHIND_GRADIENT = 9.0, 35.0  # positions for the forward graph, and for forward and backward nodes


class Compiled:
    """Python functions that compute a part of a graph.

    Parameters
    ----------
    forward : callable
        ``forward(*inputs)`` takes a NumPy array per input of the part and returns one array, or a list with one per
        output, with the shapes and dtypes of the part.
    backward : callable, optional
        ``backward(output_gradients, inputs, outputs)`` takes three lists of arrays and returns one gradient per input.
    views : bool, default False
        Whether inputs are read-only views of the graph's memory instead of copies; none may be kept after the call.
    all_sizes : bool, default False
        Whether the functions support every size: make() is not called again for equal parts of other sizes.

    They run with Python's lock held, on the thread that calls the block. Their exceptions end the call.
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
    """Machine code functions that compute a part of a graph, without Python and its lock, on any thread.

    Parameters
    ----------
    forward : int or ctypes function
        Address of a ``const char* function(const HnOperatorCall* call)`` (hybridnet/c_api.h), which writes every
        element of ``call->outputs`` and returns NULL, or an error text. Several threads may run it at once.
    backward : int or ctypes function, optional
        The same; inputs are output gradients, inputs, outputs; outputs are input gradients.
    keep : object, optional
        An object that is kept alive as long as the code may run: the library that contains it.
    all_sizes : bool, default False
        See Compiled; the sizes of a call are in the tensors.
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
        except ctypes.ArgumentError:  # a Python function
            address = None
        if address is None:
            raise HybridNetTypeError(f"NativeCode: {name} is an address or a function of ctypes", given=repr(function))
    if address <= 0:
        raise HybridNetValueError(f"NativeCode: {name} is no address", given=repr(function))
    return address


class Partition(Rewriter):
    """Passes parts of graphs to a backend; :func:`partition` registers one in the pipeline.

    Parameters: see partition(). ``apply(graph)`` runs it on one graph.
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
        self._known: dict[Any, Any] = {}  # by structure: results that support all sizes
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
                f"partition '{self.name}': the result of make()", expected="None, a function, Compiled or NativeCode",
                given=repr(made),
            )  # fmt: skip
        if self.gradient and not made.backward:
            raise HybridNetValueError(
                f"partition '{self.name}': make() returned no backward",
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
    """Returns a key that is equal for graphs that differ in sizes only."""
    numbers: dict[Any, int] = {}
    steps: list[Any] = []
    for node in (*(entry.node for entry in graph.inputs), *graph.nodes):
        if node in numbers:
            continue
        numbers[node] = len(numbers)
        value = node.value.asnumpy().tobytes() if node.is_constant else None
        kinds = tuple((str(entry.dtype), len(entry.shape)) for entry in node.outputs)
        reads = tuple((numbers[entry.node], entry.index) for entry in node.inputs)
        # bodies of loops are not compared: parts with bodies are compiled again
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
    """Lets a backend compute parts of graphs that are compiled later, including bodies of loops and branches.

    Supported nodes are grouped into sets, as large as possible, that can run as one: no value leaves a set and reenters
    it. Each set of at least `min_nodes` goes to ``make(graph)`` and becomes one instruction of the plan.

    Parameters
    ----------
    supports : callable or iterable of str
        ``supports(node)`` returns whether the backend can compute a Node; or names of operators. It is not called for
        random draws, operators of users, updates of running statistics, and nodes whose shapes are known only at run
        time. A supported loop goes to the backend as a whole, with its bodies.
    min_nodes : int
        Smaller sets are not passed to the backend.
    make : callable
        ``make(graph)`` takes a set as a Graph (its inputs, nodes, constants, outputs with shapes and dtypes), which it
        may keep, and returns a function ``forward(*inputs)``, a Compiled, or a NativeCode; or None, which leaves the
        set unchanged. It is called again for other sizes, unless its result supports all sizes.
    name : str, optional
        Name of the backend for queries, reports and messages. Default: the name of make.
    position : float, optional
        Position in the pipeline (mx.rewrite.register). Default: 9, before differentiation, with gradient=True; else 35,
        on forward and backward nodes together, where no set holds both.
    gradient : bool, default False
        Whether make() also returns a backward function.
    tags : iterable of str
        Tags for queries, in addition to the name. With tags=() it is only active for blocks whose hybridize() or
        optimize_for() have backend=name.
    after : sequence of str
        Rewrites that must come before it.

    Exceptions of supports() and make() leave the graph unchanged, with a warning that names the backend
    (HYBRIDNET_ON_REWRITE: warn, raise or ignore). Exported files hold the operators, not the backends' results. Returns
    a Partition, which mx.rewrite.unregister() removes again. Raises ParamError for existing names and unknown
    operators, TypeError and ValueError for wrong arguments.
    """
    made = Partition(supports, min_nodes, make, name=name, gradient=gradient, tags=tags)
    if position is None:
        position = WITH_GRADIENT if gradient else BEHIND_GRADIENT
    _pipeline.register(made, position=position, after=after)
    return made


def convex_sets(graph: Any, supports: Callable[[Any], Any] | Iterable[str]) -> list[list[Any]]:
    """Returns the sets of nodes of a Graph, of any size, that partition() would pass to a backend."""
    sets: list[list[Any]] = _core.rewrite.convex_sets(graph, supports if callable(supports) else _one_of(supports))
    return sets


def backends() -> list[str]:
    """Returns the names of the backends that partition() has registered in the pipeline, in order."""
    return [name for name, rewriter in _pipeline.entered().items() if isinstance(rewriter, Partition)]
