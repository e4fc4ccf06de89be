"""foreach, while_loop and cond on arrays: plain Python control flow, recorded operator by operator."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import _core, autograd, errors, ndarray
from .._user_line import warn
from ..ndarray import NDArray
from ..util import is_np_array, is_np_shape
from . import nests, rules
from .calls import Cond, Foreach, Step, WhileLoop
from .nests import Nest


def scalar_shape() -> tuple[int, ...]:
    return () if is_np_shape() else (1,)


def array_of_number(value: Any, dtype: Any = None) -> NDArray:
    return in_current_interface(ndarray.full(scalar_shape(), value, dtype=dtype or np.float32))


def in_current_interface(array: NDArray) -> NDArray:
    return array.as_np_ndarray() if is_np_array() else array


def settle_numbers(
    call: Foreach | WhileLoop, states: list[Any], run: Callable[[list[Any]], Step]
) -> tuple[list[Any], Step]:
    """Returns the states as arrays, and run(states).

    Numbers among the states become arrays of the dtype that the body returns for them. Without numbers, run is called
    once; with them possibly again with other dtypes: that of the other arrays if the body refuses float32.
    """
    numbers = [i for i, state in enumerate(states) if rules.is_number(state)]
    arrays, step = _try_dtypes(call, states, run)
    wrong = [i for i in numbers if (spec := rules.spec_of(step.states[i])) is not None and spec[1] != arrays[i].dtype]
    if wrong:
        for i in wrong:
            arrays[i] = array_of_number(states[i], rules.spec_of(step.states[i])[1])  # type: ignore[index]
        step = run(arrays)
    paths = call.state_paths()
    for i in numbers:
        rules.check_kept_spec(
            call.construct, paths[i], rules.spec_of(arrays[i]), rules.spec_of(step.states[i]), call.function
        )
    return arrays, step


def _try_dtypes(
    call: Foreach | WhileLoop, states: list[Any], run: Callable[[list[Any]], Step]
) -> tuple[list[Any], Step]:
    if not any(rules.is_number(state) for state in states):
        return states, run(states)
    others = [
        spec[1] for a in [*getattr(call, "data", []), *states] if not rules.is_number(a) and (spec := rules.spec_of(a))
    ]
    *first, last = dict.fromkeys([np.dtype(np.float32), *others])
    for dtype in first:
        with contextlib.suppress(errors.DTypeError):
            arrays = _as_arrays(states, dtype)
            return arrays, run(arrays)
    arrays = _as_arrays(states, last)
    return arrays, run(arrays)


def _as_arrays(states: list[Any], dtype: Any) -> list[Any]:
    return [array_of_number(state, dtype) if rules.is_number(state) else state for state in states]


def _stack(call: Foreach | WhileLoop, rows: Sequence[Sequence[NDArray]], out_nest: Nest, size: int) -> list[NDArray]:
    """Stacks outputs of all iterations along a new axis 0; pads with zeros up to `size` rows."""
    stacked = []
    for parts in zip(*rows, strict=True):
        whole = ndarray.stack(*parts, axis=0)
        if size > len(parts):
            padding = ndarray.zeros((size - len(parts), *parts[0].shape), dtype=parts[0].dtype, ctx=parts[0].context)
            whole = ndarray.concat(whole, rules.in_interface(whole, padding), dim=0)
        stacked.append(rules.in_interface(parts[0], whole))
    return stacked


class _Rows:
    """Outputs of the iterations so far, checked against those of the first."""

    def __init__(self, call: Foreach | WhileLoop) -> None:
        self._call = call
        self._specs: list[Any] = []
        self.nest: Nest | None = None
        self.rows: list[list[NDArray]] = []

    def add(self, step: Step) -> None:
        specs = [rules.spec_of(out) for out in step.outs]
        if self.nest is None:
            self.nest, self._specs = step.out_nest, specs
        elif specs != self._specs or step.out_nest is not self.nest:
            call = self._call
            rules.check_structure(
                call.construct,
                self.nest,
                step.out_nest,
                "outputs",
                call.function,
                "the outputs of all iterations are stacked",
                "those of the first iteration",
            )
            rules.check_same_specs(call.construct, self.nest.paths("outputs"), self._specs, specs, call.function)
        self.rows.append(step.outs)


def _empty_outputs(
    call: Foreach | WhileLoop, states: list[Any], size: int
) -> tuple[list[NDArray], Nest, list[NDArray]]:
    """Returns the outputs of a loop without iterations, with the specs found by running the body on abstract arrays."""
    from .trace import abstract_step

    step, states, parameters = abstract_step(call, states)
    outs = []
    for path, out in zip(step.out_nest.paths("outputs"), step.outs, strict=True):
        spec = rules.spec_of(out)
        if spec is None:
            rules.fail(
                errors.ShapeError,
                call.construct,
                f"the shape of {path} is not known without an iteration",
                fix="run at least one iteration",
                function=call.function,
            )
        outs.append(_zeros((size, *spec[0]), spec[1]))
    sources = [*getattr(call, "data", []), *states, *(p.data() for p in parameters if p._data is not None)]
    arrays = [*getattr(call, "data", []), *states]
    is_numpy = any(getattr(array, "_has_numpy_interface", False) for array in arrays)
    outs = [out.as_np_ndarray() if is_numpy else out for out in _on_tape(outs, sources)]
    return outs, step.out_nest, states


def _on_tape(outs: list[NDArray], sources: list[NDArray]) -> list[NDArray]:
    """Records outs as results of sources, so that they have a (zero) gradient, like those of loops that run."""
    sources = [a for a in sources if np.dtype(a.dtype).kind not in "biu" and _core.needs_gradient(a)]
    sources = [a.as_nd_ndarray() for a in sources]
    if not _core.is_recording() or not sources:
        return outs
    nothing = [ndarray.slice_axis(a.reshape((-1,)), axis=0, begin=0, end=0).sum() for a in sources]
    joined = []
    for out in outs:
        for zero in nothing if np.dtype(out.dtype).kind not in "biu" else []:
            out = ndarray.broadcast_add(out, zero.astype(out.dtype).reshape((1,) * len(out.shape)))
        joined.append(out)
    return joined


def _zeros(shape: tuple[int, ...], dtype: Any) -> NDArray:
    if 0 not in shape:
        return ndarray.zeros(shape, dtype=dtype)
    return ndarray.array(np.zeros(shape, dtype), dtype=dtype)


# ----------------------------------------------------------------------------------------------------- in-place writes
class _Arguments:
    """The inputs of the iterations: arrays that a body may write into, as in ``s += x``.

    In a graph such a write makes a new value. Here it must not change the caller's arrays, nor earlier outputs. So the
    first iteration receives copies of its slices and states, and so do the others if it has written into them.
    """

    def __init__(self) -> None:
        self._copies = True

    def step(self, run: Callable[[list[Any]], Step], arrays: list[Any]) -> Step:
        """Calls run(arrays), with copies of arrays if needed."""
        if not self._copies:
            return run(arrays)
        arrays = [a.copy() if isinstance(a, NDArray) else a for a in arrays]
        before = self._writes(arrays)
        step = run(arrays)
        self._copies = before != self._writes(arrays)
        return step

    @staticmethod
    def _writes(arrays: list[Any]) -> list[int]:
        return [_core.overwrites(a) for a in arrays if isinstance(a, NDArray)]


def _own(results: Sequence[Any], first_id: int) -> list[Any]:
    """Returns results with separate memory created after first_id was drawn: writing to one changes no other array."""
    own, seen = [], set()
    for array in results:
        number = _core.memory_id(array)
        if number < first_id or number in seen:
            array = array.copy()
        else:
            seen.add(number)
        own.append(array)
    return own


@contextlib.contextmanager
def _iteration(call: Foreach | WhileLoop, number: int) -> Iterator[None]:
    """Adds the iteration number to errors of the package, after those of inner loops."""
    try:
        yield
    except errors.HybridNetError as error:
        if error.args and isinstance(error.args[0], str):
            error.args = (f"{error.args[0]}\n  In: {call.construct}, iteration {number}", *error.args[1:])
        raise


# ------------------------------------------------------------------------------------------------------------- foreach
def foreach(call: Foreach) -> tuple[Any, Any]:
    """Runs the loop on arrays."""
    first_id = _core.next_memory_id()
    paths = call.data_nest.paths("data")
    size = rules.leading_size(call.construct, call.data, paths, call.length)
    assert size is not None
    if size == 0:
        outs, out_nest, states = _empty_outputs(call, call.states, 0)
        return nests.restore(out_nest, outs), nests.restore(call.state_nest, _own(states, first_id))
    rows = _Rows(call)
    arguments = _Arguments()
    states = call.states
    for done in range(size):
        with _iteration(call, done):
            step = _foreach_step(call, arguments, states, done, size)
            rows.add(step)
            ended = call.ends_after(step)
        states = step.states
        if ended:
            break
    ordered = rows.rows[::-1] if call.reverse and not call.rows_by_iteration else rows.rows
    assert rows.nest is not None
    outs = _stack(call, ordered, rows.nest, len(ordered))
    return nests.restore(rows.nest, outs), nests.restore(call.state_nest, _own(states, first_id))


def _foreach_step(call: Foreach, arguments: _Arguments, states: list[Any], done: int, size: int) -> Step:
    row = size - 1 - done if call.reverse else done
    first_recorded = max(size - call.truncate_gradient, 0) if call.truncate_gradient > 0 else 0
    unrecorded = done < first_recorded
    if done == first_recorded > 0 or (call.detach_every > 0 and done % call.detach_every == 0):
        states = _detached(states)
    with autograd.pause(train_mode=autograd.is_training()) if unrecorded else contextlib.nullcontext():
        slices = [array[row] for array in call.data]
        index = array_of_number(row, np.int64) if call.with_index else None

        def run(arrays: list[Any]) -> Step:
            return call.step(index, arrays[: len(slices)], arrays[len(slices) :])

        if done == 0:
            step = settle_numbers(call, states, lambda s: arguments.step(run, [*slices, *s]))[1]
        else:
            step = arguments.step(run, [*slices, *states])
        if unrecorded:  # the body may return an array from outside, which has a gradient
            step = dataclasses.replace(step, outs=_detached(step.outs), states=_detached(step.states))
        return step


def _detached(arrays: Sequence[Any]) -> list[Any]:
    return [array.detach() if isinstance(array, NDArray) else array for array in arrays]


# ---------------------------------------------------------------------------------------------------------- while_loop
def while_loop(call: WhileLoop) -> tuple[Any, Any, NDArray]:
    """Runs the loop on arrays. Returns outputs, final variables, and the number of iterations."""
    first_id = _core.next_memory_id()
    limit = read_limit(call)
    arrays: list[Any] = [array_of_number(s) if rules.is_number(s) else s for s in call.states]
    rows, arguments, count = _Rows(call), _Arguments(), 0
    running = limit != 0 and rules.truth(call.construct, call.test(arrays), call.cond)
    if running:
        with _iteration(call, 0):
            arrays, step = settle_numbers(call, call.states, lambda s: arguments.step(call.step, s))
        while True:
            with _iteration(call, count):
                rows.add(step)
            arrays, count = step.states, count + 1
            with _iteration(call, count):
                running = rules.truth(call.construct, call.test(arrays), call.cond)
                if not running or count == limit:
                    break
                step = arguments.step(call.step, arrays)
    if running and limit is not None and count == limit and call.on_limit != "stop":
        report_limit(call, limit)
    total = array_of_number(count, np.int64)
    size = count if call.exact or limit is None else limit
    outs: list[NDArray] = []
    nest: Nest | None = rows.nest
    if count == 0 and call.has_outputs:
        outs, nest, arrays = _empty_outputs(call, call.states, size)
    final = nests.restore(call.state_nest, _own(arrays, first_id))
    if not call.has_outputs:
        return [], final, total
    assert nest is not None
    if count > 0:
        outs = _stack(call, rows.rows, nest, size)
    return nests.restore(nest, outs), final, total


def report_limit(call: WhileLoop, limit: int) -> None:
    """Reports that max_iterations ended the loop while its condition was still true."""
    if call.on_limit == "raise":
        rules.fail_rule(call.construct, _core.control_limit_rule(limit), call.cond)
    warn(_core.control_limit_warning(limit))


def read_limit(call: WhileLoop) -> int | None:
    limit = call.max_iterations
    if isinstance(limit, NDArray):
        limit = limit.asnumpy().item()
        if isinstance(limit, float) and limit.is_integer():
            limit = int(limit)
        limit = rules.check_count(call.construct, "max_iterations", limit, 0)
    return limit


# ---------------------------------------------------------------------------------------------------------------- cond
def cond(call: Cond) -> Any:
    """Runs the branch that pred selects."""
    first_id = _core.next_memory_id()
    outs, nest = call.branch(rules.truth(call.construct, call.pred))
    return nests.restore(nest, _own(outs, first_id))
