"""The trace of a hybridized block: forward runs once on abstract arrays, whose operators become a graph."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core, _tracing, autograd, errors, symbol
from .._control_flow import nests
from .._control_flow.nests import Nest
from ..errors import HybridNetError, TraceError
from ..errors import ValueError as HybridNetValueError
from ..name import NameManager
from ..symbol import Symbol
from ..util import is_np_array
from ._baked_attributes import AttributeReads
from ._decisions import Decisions
from ._imperative_fallback import RandomStates, draws_error, warn_draws
from ._numpy_border import as_numpy, is_numpy
from ._read_variables import ReadVariables
from ._traced_graph import TracedGraph

if TYPE_CHECKING:
    from ._hybrid_block import HybridBlock

__all__ = ["TRACE_LOCK", "no_array_error", "trace_once", "trace_program", "trace_unless_imperative"]

# The graph, the trace, and the properties of abstract arrays that forward read.
Traced = tuple[TracedGraph, _tracing.Trace, int]

# Traces run one at a time: a trace counts up names and initializes parameters of shared blocks.
TRACE_LOCK = threading.RLock()

# If one line of a block makes more nodes than this, the conversion finds out whether a loop is copied, and warns.
_MAX_COPIES = 64


def no_array_error(place: str, value: Any, fix: str) -> HybridNetError:
    given = f"a {type(value).__module__}.{type(value).__name__}".replace("builtins.", "")
    if isinstance(value, np.ndarray):
        return errors.TypeError(place, expected="an NDArray", given=f"{given} of shape {value.shape}", fix=fix)
    return errors.TypeError(
        place,
        expected="an NDArray, None, a number or text, or a list, tuple or dict of these",
        given=given,
        fix="pass arrays as arguments and other values to the constructor",
    )


def _flatten_outputs(out: Any, arrays: list[Any]) -> Nest:
    try:
        return nests.flatten(out, arrays, constants=True)
    except nests.NotANest as error:
        place = f"output{nests.path_to(error.value, out) or ''} of forward"
        raise no_array_error(place, error.value, "compute with operators of mx.nd instead of NumPy's") from None


def trace_once(
    block: HybridBlock, key: Any, flat: Sequence[Any], converts: bool = False, eager_loops: Iterable[Any] = ()
) -> Traced:
    """Runs forward on abstract arrays with the shapes and dtypes of flat. converts: see _tracing.Trace.

    Returns the graph, the trace, and the properties of abstract arrays that forward read (_core.trace_reads()).
    """
    if not flat:
        raise HybridNetValueError(
            f"All args are None and we do not support such a case. Block '{block.name}' needs an array"
        )
    if converts:
        from .. import autograph
    trained, recording = autograd.is_training(), autograd.is_recording()
    attributes, variables = AttributeReads(), ReadVariables(block)
    with (
        TRACE_LOCK,
        autograd.pause(train_mode=trained),
        attributes,
        _tracing.Trace(block, recording, converts) as scope,
    ):
        names = ["data"] if len(flat) == 1 else [f"data{i}" for i in range(len(flat))]
        inputs = [scope.make_input(name, a.shape, a.dtype) for name, a in zip(names, flat, strict=False)]
        inputs = [as_numpy(i) if is_numpy(a) else i for i, a in zip(inputs, flat, strict=True)]
        # Each trace counts names from zero, so that tracing twice produces the same graph.
        with NameManager():
            if converts:
                scope.effects = autograph.begin_effects()
                scope.eager_loops.update(eager_loops)
            out = block._call_in_scope(scope, nests.restore(key, inputs), {})
            if converts:
                out = autograph.as_outputs(out)
        reads, shape_line = _core.trace_reads(), _core.trace_shape_line()
        arrays = scope.foreign_arrays()
        outputs: list[Any] = []
        out_key = _flatten_outputs(out, outputs)
        outputs = [_core.traced_value(o) if isinstance(o, Symbol) else _core.traced_constant(o) for o in outputs]
        classes = [is_numpy(o) for o in outputs] if is_np_array() or any(map(is_numpy, flat)) else []
        if outputs:
            if scope.effects is not None:
                outputs[0] = autograph.with_effects(outputs[0], scope.effects)
            outputs[0] = scope.written(outputs[0])
            _core.control_check_leaks(symbol.Group(outputs))
            _core.check_held_constants()
    if not outputs:
        raise HybridNetValueError(f"Block '{block.name}': forward gives no array when hybridized", given=repr(out))
    shapes = [a.shape for a in flat]
    decisions = Decisions(attributes, list(scope.value_reads), shape_line, shapes, arrays, block, variables)
    graph = TracedGraph(
        inputs,
        symbol.Group(outputs),
        out_key,
        scope.parameters,
        trained or recording,
        decisions,
        classes,
        scope.writes,
    )
    return graph, scope, reads


def trace_program(block: HybridBlock, key: Any, flat: Sequence[Any], before: RandomStates | None = None) -> Traced:
    """Traces; if forward branches or loops by values of arrays, again with its source converted.

    before: the states of random generators, which are restored for the second trace.
    """
    if not block._converts:
        return trace_once(block, key, flat)
    if not block._needs_conversion:
        try:
            traced = trace_once(block, key, flat)
            if _core.symbol_busiest_line(traced[0].outputs)[0] <= _MAX_COPIES:
                return traced
        except TraceError:
            pass
        if before is not None:
            before.restore()
    from .. import autograph

    traced = autograph.traced(lambda loops: trace_once(block, key, flat, True, loops))
    block._needs_conversion = True
    return traced


def trace_unless_imperative(block: HybridBlock, key: Any, flat: Sequence[Any]) -> Traced:
    """Traces; if an overridden forward cannot become a graph, sets block._untraceable and raises it."""
    before = RandomStates(block)
    try:
        traced = trace_program(block, key, flat, before)
        if not before.changed():
            return traced
        converts = traced[1].converts
        error = draws_error(block, lambda: trace_once(block, key, flat, converts), before)
        if not block._plain_forward:
            warn_draws(block, error)
            traced[0].decisions.draws = error.where or ""
            return traced
    except TraceError as problem:
        if not block._plain_forward:
            raise
        error = problem
    before.restore()
    block._clear_cached_op()
    block._untraceable = error
    raise error
