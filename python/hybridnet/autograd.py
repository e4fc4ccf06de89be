"""Automatic differentiation: recording and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from . import _core
from ._keywords import no_keyword
from ._lazy_names import refusing
from ._public_names import dir_of
from .base import no_values
from .errors import GradientError, TraceError, not_overridden
from .errors import TypeError as HybridNetTypeError
from .errors import ValueError as HybridNetValueError
from .ndarray import NDArray, zeros

__all__ = [
    "Function",
    "NDArray",
    "backward",
    "detect_anomaly",
    "get_symbol",
    "grad",
    "is_recording",
    "is_training",
    "mark_variables",
    "pause",
    "predict_mode",
    "record",
    "set_detect_anomaly",
    "set_recording",
    "set_training",
    "train_mode",
]

is_recording = _core.asked_recording
is_training = _core.is_training


def set_recording(is_recording: bool) -> bool:
    """Switches recording for this thread; returns the previous value."""
    return _core.set_recording(bool(is_recording))


def set_training(train_mode: bool) -> bool:
    """Switches training mode (dropout drops, batch norm learns) for this thread; returns the previous value."""
    return _core.set_training(bool(train_mode))


class _Mode:
    """Context manager that sets recording and training mode; None leaves a switch unchanged."""

    __slots__ = ("_before", "_recording", "_training")

    def __init__(self, recording: bool | None, training: bool | None) -> None:
        self._recording = -1 if recording is None else int(recording)
        self._training = -1 if training is None else int(training)
        self._before: list[int] = []

    def __enter__(self) -> _Mode:
        self._before.append(_core.enter_mode(self._recording, self._training))
        return self

    def __exit__(self, *exception: Any) -> None:
        _core.leave_mode(self._before.pop())


def record(train_mode: bool = True) -> _Mode:
    """Returns a scope that records operations, so that backward() can compute gradients: ``with record():``."""
    return _Mode(True, train_mode)


def pause(train_mode: bool = False) -> _Mode:
    """Returns a scope that stops recording within record(): ``with pause():``."""
    return _Mode(False, train_mode)


def train_mode() -> _Mode:
    """Returns a scope in training mode (dropout drops, batch norm learns), independent of recording."""
    return _Mode(None, True)


def predict_mode() -> _Mode:
    """Returns a scope in prediction mode (no dropout, batch norm uses running statistics), independent of recording."""
    return _Mode(None, False)


def detect_anomaly(nan: bool = True, inf: bool = True) -> Any:
    """Returns a scope in which the first operator that makes a NaN or an infinity raises AnomalyError.

    ::

        with mx.autograd.detect_anomaly():
            with mx.autograd.record():
                loss = loss_fn(net(data), label)
            loss.backward()

    The error names the operator, its node in the graph of a hybridized block, the block's path, the line of the program
    that called it, the place of the first wrong value, and the usual causes for that operator. Gradients are checked
    if forward ran in a scope, too. Hybridized blocks run operator by operator inside, bodies of loops and branches
    included. A slow run for the search of one fault: each result is read. Also a decorator of functions; for the
    calling thread only.

    nan : bool, default True
        Whether NaN counts; also one that was in the data before.
    inf : bool, default True
        Whether an infinity counts that no input of the operator contained.
    """
    from ._anomaly import DetectAnomaly

    return DetectAnomaly(bool(nan), bool(inf))


def set_detect_anomaly(mode: bool, nan: bool = True, inf: bool = True) -> None:
    """Switches detect_anomaly() on or off for this thread, until the next call."""
    from ._anomaly import set_detect_anomaly

    set_detect_anomaly(bool(mode), bool(nan), bool(inf))


def _listed(value: Any, function: str, what: str) -> list[Any]:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    for item in values:
        if isinstance(item, _core.SymbolBase):
            fix = "compute gradients outside of the block: with mx.autograd.record(): y = net(x)"
            raise no_values(item, f"autograd.{function}", fix)
        if not isinstance(item, NDArray):
            given = f"a {type(item).__name__}"
            raise HybridNetTypeError(
                f"autograd.{function}: {what}", expected="an NDArray or a list of them", given=given
            )
    return values


def mark_variables(
    variables: NDArray | Sequence[NDArray],
    gradients: NDArray | Sequence[NDArray],
    grad_reqs: str | Sequence[str] = "write",
) -> None:
    """Makes variables leaves that gradients are computed for, with these arrays as gradient buffers."""
    variables, gradients = (
        _listed(variables, "mark_variables", "variables"),
        _listed(gradients, "mark_variables", "gradients"),
    )
    requests = [grad_reqs] * len(variables) if isinstance(grad_reqs, str) else list(grad_reqs)
    if not len(variables) == len(gradients) == len(requests):
        raise HybridNetValueError(
            "mark_variables",
            expected=f"as many gradients and requests as variables ({len(variables)})",
            given=f"{len(gradients)} and {len(requests)}",
        )
    for variable, gradient, request in zip(variables, gradients, requests, strict=True):
        _core.mark_variable(variable, gradient, request)


def _head_gradients(heads: list[NDArray], head_grads: Any) -> list[NDArray | None]:
    if head_grads is None:
        return [None] * len(heads)
    grads = [head_grads] if isinstance(head_grads, NDArray) else list(head_grads)
    if len(grads) != len(heads):
        raise HybridNetValueError(f"expected one head gradient per head ({len(heads)})", given=str(len(grads)))
    return grads


def backward(
    heads: NDArray | Sequence[NDArray],
    head_grads: NDArray | Sequence[NDArray | None] | None = None,
    retain_graph: bool = False,
    train_mode: bool = True,
    **unknown: NoReturn,
) -> None:
    """Computes gradients of heads with respect to the leaves they were computed from, into the leaves' ``grad``."""
    if unknown:
        raise no_keyword(backward, unknown)
    heads = _listed(heads, "backward", "heads")
    _core.backward(heads, _head_gradients(heads, head_grads), retain_graph, train_mode)


def grad(
    heads: NDArray | Sequence[NDArray],
    variables: NDArray | Sequence[NDArray],
    head_grads: NDArray | Sequence[NDArray | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    train_mode: bool = True,
    **unknown: NoReturn,
) -> list[NDArray]:
    """Returns gradients of heads with respect to variables: a list of new arrays, also for a single variable.

    With create_graph=True they are recorded too, for gradients of gradients. A variable that the heads do not depend on
    has a gradient of zeros. Raises GradientError if heads were not recorded or a variable has no gradient buffer.
    """
    if unknown:
        raise no_keyword(grad, unknown)
    heads = _listed(heads, "grad", "heads")
    wanted = _listed(variables, "grad", "variables")
    if not wanted:
        raise HybridNetValueError("grad: expected at least one variable")
    keep = create_graph if retain_graph is None else retain_graph
    return _core.grad(heads, _head_gradients(heads, head_grads), wanted, keep, create_graph, train_mode)


def get_symbol(x: NDArray) -> Any:
    """Returns the Symbol of the recorded operators that computed x; leaves and constants are variables var0, var1, ...

    Hybridized blocks appear as their operators. Raises GradientError if x was not recorded, or by a
    :class:`Function`.
    """
    return _core.recorded_graph(x)


class Function:
    """An operation with a custom gradient: override ``forward`` and ``backward``, then call the object.

    Example::

        class Sigmoid(mx.autograd.Function):
            def forward(self, x):
                y = 1 / (1 + mx.nd.exp(-x))
                self.save_for_backward(y)
                return y

            def backward(self, dy):
                (y,) = self.saved_tensors
                return dy * y * (1 - y)
    """

    def __init__(self) -> None:
        self._used = False
        self.saved_tensors: tuple[NDArray, ...] = ()

    def save_for_backward(self, *args: NDArray) -> None:
        """Keeps arrays for backward() as ``saved_tensors``."""
        self.saved_tensors = args

    def __call__(self, *inputs: NDArray) -> Any:
        if self._used:
            raise HybridNetValueError(
                f"{type(self).__name__}: a Function object can be called once", fix="make a new one for each call"
            )
        self._used = True
        if any(isinstance(array, _core.SymbolBase) for array in inputs) and is_recording():
            raise TraceError(
                f"{type(self).__name__}: an autograd.Function is recorded while a block is traced",
                because="its backward is code of Python, which is not part of the graph",
                fix="compute with operators, or write an operator in Python (mx.operator.CustomOp)",
                where=_core.current_location(),
            )
        recording = set_recording(False)
        before = [(_core.overwrites(array), _core.needs_gradient(array)) for array in inputs] if recording else []
        try:
            outputs = self.forward(*inputs)
        finally:
            set_recording(recording)
        if not recording:
            return outputs
        for i, (count, wanted) in enumerate(before):
            if wanted and _core.overwrites(inputs[i]) != count:
                raise GradientError(
                    f"{type(self).__name__}.forward writes in place into its argument {i}, which has a gradient",
                    because=f"it was written at {_core.overwritten_at(inputs[i])}",
                    fix="write into a copy: x = x.copy()",
                )
        return self._record(inputs, outputs)

    def _record(self, inputs: tuple[NDArray, ...], outputs: Any) -> Any:
        single = isinstance(outputs, NDArray)
        results = [outputs] if single else list(outputs)
        # An output that is an input (or a view of a recorded array) needs its own identity on the tape.
        places = [[i for i, result in enumerate(results) if result is saved][:1] for saved in self.saved_tensors]
        kept = [_core.overwrites(saved) if isinstance(saved, NDArray) else 0 for saved in self.saved_tensors]
        results = [result.detach() for result in results]
        run = self._backward_for(
            len(inputs), [(result.shape, result.context, result.dtype) for result in results], places, kept
        )
        _core.record_function(type(self).__name__, run, list(inputs), results)
        return results[0] if single else type(outputs)(results)

    def _backward_for(self, num_inputs: int, specs: list[Any], places: list[list[int]], kept: list[int]) -> Any:
        """Returns the function that the tape calls for the gradients of the inputs.

        places[k] holds the output, if any, that was saved as saved_tensors[k]; kept[k] is the number of times that the
        memory of saved_tensors[k] had been overwritten when it was saved.
        """

        def run(out_grads: list[NDArray | None], create_graph: bool, recorded: Any) -> list[NDArray | None]:
            for i, (saved, count) in enumerate(zip(self.saved_tensors, kept, strict=True)):
                if isinstance(saved, NDArray) and _core.overwrites(saved) != count:
                    raise GradientError(
                        f"{type(self).__name__}: saved_tensors[{i}] was overwritten in place after forward() saved it",
                        because=f"it was written at {_core.overwritten_at(saved)}",
                        fix="write to a new array (y = y * 2 instead of y *= 2), or save a copy",
                    )
            if recorded is not None:
                self.saved_tensors = tuple(
                    recorded(saved, place[0]) if place else saved
                    for saved, place in zip(self.saved_tensors, places, strict=True)
                )
            grads = self.backward(
                *(zeros(*spec) if given is None else given for given, spec in zip(out_grads, specs, strict=True))
            )
            grads = [grads] if isinstance(grads, NDArray) or grads is None else list(grads)
            if len(grads) != num_inputs:
                raise HybridNetValueError(
                    f"{type(self).__name__}.backward",
                    expected=f"one gradient per input ({num_inputs})",
                    given=str(len(grads)),
                )
            return grads

        return run

    def forward(self, *inputs: NDArray) -> Any:
        """Computes outputs from inputs; override it."""
        raise not_overridden(self, "forward()")

    def backward(self, *output_grads: NDArray) -> Any:
        """Computes input gradients from output gradients; override it."""
        raise not_overridden(self, "backward()")


__getattr__, __dir__ = refusing(__name__), dir_of(__name__)
