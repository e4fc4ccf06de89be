"""mx.autograd.detect_anomaly: names the operator that made the first NaN or infinity, forward or backward.

Forward, the results of each operator are read when it has run. Backward, each input of an operator that has a gradient
passes through a step on the tape whose backward reads that gradient; a second step behind the operator reads the
gradient that arrives at its result, so that an operator is not blamed for what others passed to it.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import _core, autograd
from .._watch import _operators as _op_watch
from ..errors import AnomalyError, HybridNetError
from ..ndarray import NDArray
from ._causes import fix_of
from ._graph_replay import can_replay, replay
from ._special_values import Special, special_of, values_of

__all__ = ["DetectAnomaly", "set_detect_anomaly"]


class _Use(NamedTuple):
    """A call of an operator: its name, the user's line, the path of its block, its inputs by name."""

    op: str
    where: str
    blocks: tuple[_op_watch.RunningBlock, ...]
    inputs: dict[str, Any]
    node: str | None = None
    path: str | None = None

    @property
    def block(self) -> str | None:
        return self.path or (self.blocks[-1].path if self.blocks else None)


def _flat(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields the arrays and numbers among arguments, with their keywords or ''."""
    for key, value in [*(("", a) for a in args), *kwargs.items()]:
        for part in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(part, (NDArray, float)) and key != "out":
                yield key, part


def _inputs(op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    values = list(_flat(args, kwargs))
    names = iter(_input_names(op))
    named: dict[str, Any] = {}
    for i, (key, value) in enumerate(values):
        own = next(names, f"input{i}") if isinstance(value, NDArray) else f"number{i}"
        named[key or own] = value
    return named


def _input_names(op: str) -> list[str]:
    """The operator's own names of its inputs; [] if it takes any number of them, or is a function of Python."""
    try:
        described = _core.describe_op(op)
    except HybridNetError:
        return []
    return [] if described["variadic"] else [str(info["name"]) for info in described["inputs"]]


def _mapped(value: Any, change: Callable[[NDArray], NDArray]) -> Any:
    if isinstance(value, NDArray):
        return change(value)
    if isinstance(value, (list, tuple)) and any(isinstance(part, NDArray) for part in value):
        return type(value)([_mapped(part, change) for part in value])
    return value


class _Watch(_op_watch.OpWatch):
    """Checks each operator's results, and puts the checks of gradients on the tape."""

    def __init__(self, nan: bool, inf: bool) -> None:
        self._nan, self._inf = nan, inf

    # ------------------------------------------------------------------------------------------------------ forward
    def call(self, function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        op = _op_watch.operator_name(function, name, args)
        use = _Use(op, _core.current_location(), _op_watch.running_blocks(), _inputs(op, args, kwargs))
        if not any(isinstance(value, NDArray) for value in use.inputs.values()):
            return function(*args, **kwargs)  # makes an array: its values are the program's
        if _op_watch.is_one_operator(function, name):
            return self._checked(use, function, args, kwargs, args[:1] if _op_watch.writes_in_place(name) else ())
        result = function(*args, **kwargs)  # a function of Python: most of its operators are observed themselves
        self._check_results(use, result, {})
        return result

    def _checked(
        self, use: _Use, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], targets: tuple[Any, ...] = ()
    ) -> Any:
        named = use.inputs
        out = kwargs.get("out")
        outs = out if isinstance(out, (list, tuple)) else [out]
        written = [a for a in (*outs, *targets) if isinstance(a, NDArray)]
        # An input that the operator overwrites is read before.
        before = {key: special_of(a) for key, a in named.items() if any(a is o for o in written)}
        if _core.is_recording():
            change = functools.partial(self._edge, use, written)
            args = tuple(_mapped(value, change) for value in args)
            kwargs = {key: value if key == "out" else _mapped(value, change) for key, value in kwargs.items()}
        result = function(*args, **kwargs)
        self._check_results(use, result, before)
        if written or not _core.is_recording() or any(result is value for value in named.values()):
            return result
        return _mapped(result, functools.partial(self._behind, use))

    def _check_results(self, use: _Use, result: Any, before: dict[str, Any]) -> None:
        results = result if isinstance(result, (list, tuple)) else [result]
        for number, array in enumerate(results):
            if isinstance(array, NDArray):
                self._check_result(use, array, before, f"output {number}" if len(results) > 1 else "output")

    def _check_result(self, use: _Use, array: NDArray, before: dict[str, Any], label: str) -> None:
        found = special_of(array)
        if found is None:
            return
        inputs = {key: before[key] if key in before else special_of(value) for key, value in use.inputs.items()}
        had_nan = next(((key, special) for key, special in inputs.items() if special and special.nans), None)
        had_inf = next((key for key, special in inputs.items() if special and special.infs), None)
        if self._nan and found.nans and had_nan:
            key, special = had_nan
            raise self._error(use, special, f"input '{key}'", key, _ENTERED, _ENTERED_FIX)
        new_nan = self._nan and found.nans > 0 and not had_nan
        new_inf = self._inf and found.infs > 0 and not had_nan and not had_inf
        if new_nan or new_inf:
            because = _inputs_text(use, found, inputs)
            fix = fix_of(use.op, str(np.dtype(array.dtype)), False)
            raise self._error(use, found, label, None, because, fix)

    # ----------------------------------------------------------------------------------------------------- backward
    def _edge(self, use: _Use, written: list[NDArray], array: NDArray) -> NDArray:
        """Returns the array for an input of the operator, behind a step that checks the gradient of that input."""
        if array.stype != "default" or not _core.needs_gradient(array) or any(array is a for a in written):
            return array
        return _step(array, lambda grad: self._check_gradient(use, array, grad))

    def _check_gradient(self, use: _Use, array: NDArray, grad: NDArray) -> None:
        found = special_of(grad)
        if found is None or not self._counts(found):
            return
        key = next((key for key, value in use.inputs.items() if value is array), None)
        because = f"the gradient of its output is finite, {_at(found, use.inputs)}".rstrip(", ")
        fix = fix_of(use.op, str(np.dtype(grad.dtype)), True)
        raise self._error(use, found, f"gradient of input '{key}'", key, because, fix)

    def _behind(self, use: _Use, array: NDArray) -> NDArray:
        """Returns a result of the operator behind a step that checks the gradient that arrives there."""
        if array.stype != "default" or not _core.needs_gradient(array):
            return array
        return _step(array, lambda grad: self._check_arriving(use, grad))

    def _check_arriving(self, use: _Use, grad: NDArray) -> None:
        found = special_of(grad)
        if found is not None and self._counts(found):
            raise self._error(use, found, "gradient of the output", None, _ARRIVED, _ARRIVED_FIX)

    def _counts(self, found: Special) -> bool:
        return bool((self._nan and found.nans) or (self._inf and found.infs))

    # -------------------------------------------------------------------------------------------------------- graphs
    def call_block(self, block: Any, args: tuple[Any, ...], run: Callable[[], Any]) -> Any:
        """Checks the results of a block for a NaN that operators made which are not observed.

        An infinity may come from a constant of the block.
        """
        inputs = {f"input{i}": array for i, (_, array) in enumerate(_flat(args, {})) if isinstance(array, NDArray)}
        result = run()
        for _, array in _flat((result,), {}):
            if self._nan and isinstance(array, NDArray) and (found := special_of(array)) is not None and found.nans:
                use = _Use(type(block).__name__, _core.current_location(), _op_watch.running_blocks(), inputs)
                if not any(special and special.nans for special in map(special_of, inputs.values())):
                    raise self._error(use, found, "output", None, _UNSEEN, _UNSEEN_FIX)
        return result

    def _call_node(self, node: Any, function: Any, inputs: tuple[Any, ...], params: dict[str, Any]) -> Any:
        blocks = _op_watch.running_blocks()
        where = node.where or _core.current_location()
        use = _Use(node.op, where, blocks, _inputs(node.op, inputs, {}), node.name, node.block or None)
        return self._checked(use, function, inputs, params)

    def call_graph(self, block: Any, args: tuple[Any, ...], run: Callable[[], Any]) -> Any:
        """Runs the graph of a SymbolBlock node by node; one with loops or branches as one operator."""
        from .._control_flow import nests
        from ..gluon._hybrid_block import flatten_arguments

        graph = getattr(block, "_graph", None)
        if graph is None:
            return run()
        flat: list[Any] = []
        flatten_arguments(args, flat)
        if len(flat) != len(graph.inputs):
            return run()  # raises
        block._infer(flat)
        arrays = list(graph.pick([*flat, *graph.arrays(flat[0] if flat else None), *graph.constants]))
        train = autograd.is_training()
        if can_replay(graph.outputs, arrays, train):
            results = replay(graph.outputs, arrays, train, self._call_node)
            return results[0] if graph.single else nests.restore(graph.out_nest, results)
        named = dict(zip(graph.outputs.list_inputs(), arrays, strict=True))
        use = _Use("graph", _core.current_location(), _op_watch.running_blocks(), named, path=block.name or None)
        result = run()
        found: list[Any] = []
        nests.flatten(result, found, constants=True)
        for array in found:
            self._check_result(use, array, {}, "output")
        return result

    def call_executor(self, executor: Any, is_train: bool, run: Callable[[], Any]) -> Any:
        """Runs the graph of an Executor as usual, and then on copies of its arrays node by node."""
        result = run()
        outputs, arrays = executor._symbol, {}
        for (name, array), grad in zip(executor.arg_dict.items(), executor.grad_arrays, strict=True):
            arrays[name] = array if grad is None or array.stype != "default" else array.copy()
            if arrays[name] is not array:
                arrays[name].attach_grad()
        arrays.update({name: array.copy() for name, array in executor.aux_dict.items()})
        listed = [arrays[name] for name in outputs.list_inputs()]
        executor._observed = None
        if can_replay(outputs, listed, is_train):
            with autograd.record(train_mode=is_train):
                executor._observed = replay(outputs, listed, is_train, self._call_node)
        return result

    def call_executor_backward(self, executor: Any, out_grads: Any, run: Callable[[], Any]) -> Any:
        heads = executor.__dict__.pop("_observed", None)
        if heads:
            grads = list(out_grads.values()) if isinstance(out_grads, dict) else out_grads
            grads = [grads] if isinstance(grads, NDArray) else grads
            autograd.backward(heads, grads)
        return run()

    # --------------------------------------------------------------------------------------------------------- error
    def _error(self, use: _Use, found: Special, label: str, key: str | None, because: str, fix: str) -> AnomalyError:
        node = use.node or _node_of(use)
        inside = [f"node '{node}'"] if node else []
        inside += [f"block '{use.block}'"] if use.block else []
        operator = f"operator '{use.op}' ({', '.join(inside)})" if inside else f"operator '{use.op}'"
        return AnomalyError(
            f"{operator}, {label}",
            expected=f"values without {' and '.join(['NaN'] * self._nan + ['infinities'] * self._inf)}",
            given=found.text(self._nan, self._inf),
            because=because,
            fix=fix,
            where=use.where,
            op=use.op,
            node=node,
            block=use.block,
            input=key,
        )


_UNSEEN = "none of the operators that detect_anomaly observes has made it, so a function of the block did"
_UNSEEN_FIX = (
    "call operators as mx.nd.exp(x) or x.exp(), not by names that were imported before (from mxnet.nd import exp), and "
    "check the functions of Python and the constants that the block uses"
)
_ENTERED = (
    "no operator inside of detect_anomaly made it: it was in the data or a parameter, or an earlier update wrote it"
)
_ENTERED_FIX = (
    "check the data before the network (numpy.isfinite(x.asnumpy()).all()) and the parameters after each update; begin "
    "detect_anomaly before the step that makes it"
)
_ARRIVED = (
    "every operator that detect_anomaly observes has passed on a finite gradient: it comes from the gradient given to "
    "backward(), from the sum of several gradients, or from a function that is not observed (autograd.Function, a "
    "compiled graph, a function imported before detect_anomaly)"
)
_ARRIVED_FIX = "check the gradient given to backward(), and the functions that read this result"


def _step(array: NDArray, check: Callable[[NDArray], None]) -> NDArray:
    """Returns the array behind a step on the tape that calls check with its gradient and passes it on."""
    behind = array.detach()

    def backward(grads: list[NDArray | None], create_graph: bool, recorded: Any) -> list[NDArray | None]:
        if grads[0] is not None:
            check(grads[0])
        return grads

    _core.record_function("detect_anomaly", backward, [array], [behind])
    return behind


def _at(found: Special, inputs: dict[str, Any]) -> str:
    """Text of the inputs at the place of the first special value, if they have its shape."""
    texts = []
    for key, value in inputs.items():
        values = values_of(value) if isinstance(value, NDArray) else None
        if values is not None and values.shape == found.values.shape:
            texts.append(f"'{key}' is {float(values[found.first]):.6g} there")
    return ", ".join(texts)


def _inputs_text(use: _Use, found: Special, inputs: dict[str, Any]) -> str:
    """Text of the inputs' ranges: "the inputs are finite: 'data' float32(2, 3) from 0 to 2, 'data' is 0 there"."""
    texts = []
    for key, value in use.inputs.items():
        values = values_of(value) if isinstance(value, NDArray) else None
        if values is None or values.size == 0:
            continue
        finite = values[np.isfinite(values)].astype("float64")
        span = f" from {finite.min():.6g} to {finite.max():.6g}" if finite.size else ""
        infinite = f" and {inputs[key].infs} infinite" if inputs.get(key) else ""
        texts.append(f"'{key}' is {np.dtype(value.dtype)}{value.shape}{span}{infinite}")
    there = _at(found, use.inputs)
    state = "no input is NaN" if any(inputs.values()) else "the inputs are finite"
    return f"{state}: {', '.join(texts)}" + (f"; {there}" if there else "")


def _node_of(use: _Use) -> str | None:
    """Name of the node in the graph of the outermost hybridized block, found by line, block and operator."""
    outer = next((running for running in use.blocks if running.hybridized), None)
    if outer is None or not use.where:
        return None
    from ..gluon._hybrid_block import flatten_arguments

    with contextlib.suppress(HybridNetError), _op_watch.watching(None):
        flat: list[Any] = []
        outer.block._find_graph(flatten_arguments(outer.args, flat), flat)
        # Read at once: handles of bodies are valid while their view exists.
        nodes = [(n.op, n.name, n.block) for n in _nodes(outer.block.graph()) if n.where == use.where]
        # One line may run several layers: the path decides, then the operator.
        inside = [node for node in nodes if _same_block(node[2], use.block)] or nodes
        named = [node for node in inside if node[0] == use.op]
        if named or len(inside) == 1:
            return str((named or inside)[0][1])
    return None


def _same_block(path: str, wanted: str | None) -> bool:
    return bool(path) and wanted is not None and (wanted == path or wanted.endswith(f".{path}"))


def _nodes(graph: Any) -> Iterator[Any]:
    """Yields the nodes of a graph and of the bodies of its loops and branches."""
    for node in graph.nodes:
        if node.op is None:
            continue
        yield node
        if node.bodies:
            with contextlib.suppress(HybridNetError):
                view = node.view()  # bodies are valid as long as it exists
                for body in view.bodies.values():
                    yield from _nodes(body)


class DetectAnomaly(contextlib.ContextDecorator):
    """The scope that autograd.detect_anomaly() returns: a context manager and a decorator."""

    def __init__(self, nan: bool, inf: bool) -> None:
        self._watch = _Watch(nan, inf) if nan or inf else None
        self._before: list[Any] = []

    def __enter__(self) -> DetectAnomaly:
        self._before.append(_op_watch.begin(self._watch))
        return self

    def __exit__(self, *exception: Any) -> None:
        _op_watch.end(self._before.pop())


class _Switch(threading.local):
    scope: DetectAnomaly | None = None


_switch = _Switch()


def set_detect_anomaly(mode: bool, nan: bool, inf: bool) -> None:
    """Switches detection on or off for this thread."""
    if _switch.scope is not None:
        _switch.scope.__exit__()
    _switch.scope = DetectAnomaly(nan, inf) if mode else None
    if _switch.scope is not None:
        _switch.scope.__enter__()
