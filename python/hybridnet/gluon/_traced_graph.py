"""The result of a trace: a graph and its inputs; and the selection of the graph for a call."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from .. import _core, autograd
from .._control_flow import nests
from .._control_flow.nests import Nest
from ..errors import GradientError, TraceError
from ..ndarray import NDArray
from ..symbol import Symbol
from ._decisions import Decisions
from .parameter import Parameter

__all__ = ["CheckedGraph", "TracedGraph", "Variants"]


class TracedGraph:
    """A traced forward: the graph, the sources of its inputs, and the compiled form."""

    def __init__(
        self,
        inputs: list[Symbol],
        outputs: Symbol,
        out_nest: Nest,
        variables: dict[str, Parameter],
        trained: bool,
        decisions: Decisions,
        numpy: Sequence[bool] = (),
        writes: dict[str, str] | None = None,
    ) -> None:
        self.inputs = inputs
        self.numpy = numpy  # per output: whether it is an array of mx.np; empty: same as the first input
        self.outputs = outputs
        self.out_nest = out_nest
        self.single = out_nest is nests.ARRAY
        self.trained = trained
        self.decisions = decisions
        self.attributes = decisions.attributes
        self.params: list[Parameter] = []
        # In the order of outputs.list_inputs(): (True, position of an input), (False, parameter) or
        # (False, array of a constant).
        self.sources: list[tuple[bool, Any]] = []
        self.op: Any = None
        positions = {variable.name: i for i, variable in enumerate(inputs)}
        self.constants: list[NDArray] = []
        order = []
        used = set()
        names = outputs.list_inputs()
        constants = _core.symbol_input_constants(outputs)
        count = sum(1 for name, array in zip(names, constants, strict=False) if array is None and name not in positions)
        for name, array in zip(names, constants, strict=False):
            if array is not None:
                order.append(len(inputs) + count + len(self.constants))
                self.constants.append(array)
                self.sources.append((False, array))
            elif name in positions:
                used.add(positions[name])
                order.append(positions[name])
                self.sources.append((True, positions[name]))
            else:
                order.append(len(inputs) + len(self.params))
                self.params.append(variables[name])
                self.sources.append((False, variables[name]))
        # Names of inputs and parameters that a run writes to, because forward does, with the lines.
        self.writes = writes or {}
        self._written = [(i, name) for i, name in enumerate(names) if name in self.writes]
        self.computes_data = any(param._computes_data for param in self.params)
        self.unused = [i for i in range(len(inputs)) if i not in used]
        # Selects the graph's inputs from (arguments..., parameters..., constants...).
        if len(order) == 1:
            only = order[0]
            self.pick: Callable[[Sequence[Any]], Sequence[Any]] = lambda values: (values[only],)
        elif order:
            self.pick = itemgetter(*order)
        else:
            self.pick = lambda values: ()

    def arrays(self, first: NDArray | None) -> list[NDArray]:
        """Returns the values of the parameters on the context of the first input."""
        try:
            arrays = [param._data[0] for param in self.params]  # type: ignore[index]
            if self.computes_data or (arrays and len(self.params[0]._data) > 1):  # type: ignore[arg-type]
                context = None if first is None else first.context
                arrays = [param._used_data(context) for param in self.params]
        except TypeError:
            arrays = [param._used_data(None) for param in self.params]
        return arrays

    def donated(self, arrays: Sequence[bool]) -> list[bool]:
        """Returns, per input of the compiled graph, whether it is an array of a donated argument."""
        return [is_input and arrays[source] for is_input, source in self.sources]

    def copied(self, **options: Any) -> TracedGraph:
        """Returns the same graph for separate execution; options: see _core.CachedOp.copy."""
        made = copy.copy(self)
        made.op = self.op.copy(**options)
        return made

    def run(self, args: Sequence[NDArray]) -> Any:
        """Calls the compiled graph on the flat inputs and restores the structure of the outputs."""
        params = self.arrays(args[0] if args else None) if self.params else ()
        values = self.pick([*args, *params, *self.constants])
        if self.writes:
            self._check_writes(values)
        out = self.op(*values)
        if self.single:
            return out if isinstance(out, NDArray) else out[0]
        return nests.restore(self.out_nest, [out] if isinstance(out, NDArray) else out)

    def check_export(self) -> None:
        """Raises TraceError if the graph writes to an input: users of an exported file pass values only."""
        for i, name in self._written:
            if self.sources[i][0]:
                raise TraceError(
                    f"export: forward writes to its input {name!r} in place at {self.writes[name]}",
                    because="a file's inputs are values that it does not change",
                    fix="make a new array in forward, as in x = x + 1, and return it",
                )

    def _check_writes(self, values: Sequence[NDArray]) -> None:
        """Raises if writing to an input or a parameter would differ from imperative execution of forward."""
        for i, name in self._written:
            what = f"forward writes to {name!r} in place at {self.writes[name]}"
            if autograd.is_recording() and _core.needs_gradient(values[i]):
                raise GradientError(
                    f"{what}, and gradients are recorded for that array",
                    because="its gradient is that of the value before the write",
                    fix="make a new array in forward, as in x = x + 1, or call the block outside of record()",
                    where=_core.current_location(),
                )
            if any(j != i and _core.shares_memory(values[i], other) for j, other in enumerate(values)):
                raise TraceError(
                    f"{what}, and another array of the call shares memory with that one",
                    because="the graph takes them for two arrays",
                    fix="pass a copy, or run the block without hybridize()",
                    where=_core.current_location(),
                )


class CheckedGraph:
    """A graph that is valid only while Python's decisions are unchanged; otherwise another one is selected."""

    def __init__(self, graph: TracedGraph, block: Any, key: Any) -> None:
        self._graph, self._holds = graph, graph.decisions.holds
        self._block, self._key = weakref.ref(block), key

    def run(self, args: Sequence[NDArray]) -> Any:
        """Same as TracedGraph.run."""
        if self._holds():
            return self._graph.run(args)
        block: Any = self._block()
        return block._find_graph(self._key, args).run(args)


# Properties of traced arrays that forward read: bits of _core.trace_reads().
READ_SHAPE, READ_RANK, READ_DTYPE, READ_TRAINING, READ_RECORDING = 1, 2, 4, 8, 16


class Variants:
    """Graphs for one input structure. More than one only if forward reads shapes, dtypes, the training mode or the
    recording mode: a graph is then valid only for equal values of these.
    """

    def __init__(self) -> None:
        self.only: TracedGraph | CheckedGraph | None = None  # for calls without a choice
        self.reads = 0
        self.table: dict[Any, TracedGraph] = {}

    @property
    def by_mode(self) -> bool:
        return bool(self.reads & (READ_TRAINING | READ_RECORDING))

    def key(self, flat: Sequence[Any]) -> Any:
        reads = self.reads
        return (
            tuple(a.shape for a in flat) if reads & READ_SHAPE else None,
            tuple(a.ndim for a in flat) if reads & READ_RANK else None,
            tuple(a.dtype for a in flat) if reads & READ_DTYPE else None,
            autograd.is_training() if reads & READ_TRAINING else None,
            autograd.is_recording() if reads & READ_RECORDING else None,
        )

    def mapped(self, change: Callable[[TracedGraph], TracedGraph]) -> Variants:
        """Returns the same selection with other forms of the graphs."""
        made = Variants()
        made.reads = self.reads
        made.table = {key: change(graph) for key, graph in self.table.items()}
        made.only = next(iter(made.table.values())) if isinstance(self.only, TracedGraph) else None
        return made

    def place_of(self, graph: TracedGraph) -> Any:
        """Returns the key of a graph in the table; None if it is not there."""
        return next((key for key, known in self.table.items() if known is graph), None)

    def find(self, flat: Sequence[Any]) -> TracedGraph | None:
        key = self.key(flat)
        graph = self.table.get(key)
        if graph is not None and graph.decisions.must_be_checked and not graph.decisions.holds():
            del self.table[key]
            self.only = None
            return None
        return graph

    def add(self, flat: Sequence[Any], graph: TracedGraph, reads: int) -> None:
        if reads & ~self.reads:
            # Earlier graphs have a coarser key; they are traced again when needed.
            self.table.clear()
            self.reads |= reads
        self.table[self.key(flat)] = graph
        self.only = None if self.reads or graph.decisions.must_be_checked else graph
