"""Checks of symbols against expected numbers, finite differences, and their results in other dtypes."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import symbol as sym_module
from ..context import Context
from ..errors import ValueError as HybridNetValueError
from ..executor import Executor
from ..ndarray import NDArray, array, waitall
from ..symbol import Symbol
from ._compare import Tolerance, assert_almost_equal, default_numeric_eps, get_tolerance, get_tols
from ._environment import default_context

Arrays = Sequence[Any] | Mapping[str, Any]


def _dtype_of(value: Any, dtype: Any) -> Any:
    return value.dtype if isinstance(dtype, str) and dtype == "asnumpy" else dtype


def _named(what: str, names: Sequence[str], given: Arrays, ctx: Context, dtype: Any) -> dict[str, NDArray]:
    """Converts values in order or by name to arrays by name; every name of the symbol exactly once."""
    if not isinstance(given, Mapping):
        given = dict(zip(names, given))
    if set(given) != set(names):
        raise HybridNetValueError(
            f"Symbol {what} and keys of the given values do not match:"
            f" the symbol has {sorted(names)}, given {sorted(given)}"
        )
    return {
        name: given[name]
        if isinstance(given[name], NDArray)
        else array(given[name], ctx=ctx, dtype=_dtype_of(np.asarray(given[name]), dtype))
        for name in sorted(given)
    }


def _arguments(sym: Symbol, location: Arrays, ctx: Context, dtype: Any) -> dict[str, NDArray]:
    return _named("arguments", sym.list_arguments(), location, ctx, dtype)


def _states(sym: Symbol, aux_states: Arrays | None, ctx: Context, dtype: Any) -> dict[str, NDArray] | None:
    return (
        None if aux_states is None else _named("aux_states names", sym.list_auxiliary_states(), aux_states, ctx, dtype)
    )


def simple_forward(sym: Symbol, ctx: Context | None = None, is_train: bool = False, **inputs: Any) -> Any:
    """Returns outputs of sym as NumPy arrays for inputs given by name; a list of them if there are several."""
    executor = sym.bind(ctx or default_context(), args={name: array(value) for name, value in inputs.items()})
    outputs = [out.asnumpy() for out in executor.forward(is_train=is_train)]
    return outputs[0] if len(outputs) == 1 else outputs


def check_symbolic_forward(
    sym: Symbol,
    location: Arrays,
    expected: Arrays,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    aux_states: Arrays | None = None,
    ctx: Context | None = None,
    equal_nan: bool = False,
    dtype: Any = np.float32,
) -> list[NDArray]:
    """Raises AssertionError unless the outputs of sym at location match the expected ones; returns them.

    location, expected, aux_states: values in the order of the symbol's arguments, outputs, states, or by their names.
    dtype: the dtype that inputs are converted to; "asnumpy" leaves them.
    """
    ctx = ctx or default_context()
    arguments = _arguments(sym, location, ctx, dtype)
    executor = sym.bind(ctx, args=arguments, aux_states=_states(sym, aux_states, ctx, dtype), grad_req="null")
    outputs = executor.forward(is_train=False)
    names = sym.list_outputs()
    wanted = [expected[name] for name in names] if isinstance(expected, Mapping) else expected
    for name, want, output in zip(names, wanted, outputs):
        assert_almost_equal(want, output, rtol, atol, (f"EXPECTED_{name}", f"FORWARD_{name}"), equal_nan)
    return outputs


def _requests(names: Sequence[str], grad_req: Any) -> dict[str, str]:
    if isinstance(grad_req, str):
        return dict.fromkeys(names, grad_req)
    return dict(grad_req) if isinstance(grad_req, Mapping) else dict(zip(names, grad_req))


def _compare_gradient(
    name: str,
    request: str,
    want: Any,
    found: NDArray,
    before: np.ndarray,
    rtol: Tolerance,
    atol: Tolerance,
    equal_nan: bool = False,
) -> None:
    """Compares a gradient with the result of its request ("write", "add", "null") on the earlier buffer."""
    got = found.asnumpy()
    if request == "add":
        got = got - before.astype(got.dtype)
    elif request == "null":
        want = before
    elif request != "write":
        raise HybridNetValueError(f"grad_req of {name!r} is {request!r}; expected 'write', 'add' or 'null'")
    assert_almost_equal(want, got, rtol, atol, (f"EXPECTED_{name}", f"BACKWARD_{name}"), equal_nan)


def check_symbolic_backward(
    sym: Symbol,
    location: Arrays,
    out_grads: Arrays | None,
    expected: Arrays,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    aux_states: Arrays | None = None,
    grad_req: Any = "write",
    ctx: Context | None = None,
    grad_stypes: Any = None,
    equal_nan: bool = False,
    dtype: Any = np.float32,
) -> dict[str, NDArray]:
    """Raises AssertionError unless the gradients of sym at location match the expected ones; returns them by name.

    out_grads: gradients of the outputs, in order or by name; None for losses. grad_req: one request, or one for each
    argument in order or by name. The gradient buffers hold random numbers before, so "add" and "null" are checked too.
    grad_stypes: storage of the gradients, in order or by name.
    """
    ctx = ctx or default_context()
    arguments = _arguments(sym, location, ctx, dtype)
    names = sym.list_arguments()
    wanted = dict(expected) if isinstance(expected, Mapping) else dict(zip(names, expected))
    requests = _requests(names, grad_req)
    before = {name: np.random.standard_normal(np.shape(wanted[name])) for name in sorted(wanted)}
    stypes = dict(grad_stypes) if isinstance(grad_stypes, Mapping) else dict(zip(names, grad_stypes or ()))
    grads = {
        name: array(value, ctx=ctx, dtype=_dtype_of(arguments[name], dtype)).tostype(stypes.get(name) or "default")
        for name, value in before.items()
    }
    states = _states(sym, aux_states, ctx, dtype)
    executor = sym.bind(ctx, args=arguments, args_grad=grads, grad_req=requests, aux_states=states)
    outputs = executor.forward(is_train=True)
    executor.backward(_head_gradients(sym, out_grads, outputs, ctx, dtype))
    for name, want in wanted.items():
        _compare_gradient(
            name, requests.get(name, "null"), want, grads[name], before[name], rtol, atol, equal_nan=equal_nan
        )
    return grads


def _head_gradients(sym: Symbol, out_grads: Arrays | None, outputs: Sequence[NDArray], ctx: Context, dtype: Any) -> Any:
    if out_grads is None:
        return None
    if isinstance(out_grads, Mapping):
        out_grads = [out_grads[name] for name in sym.list_outputs()]
    return [
        grad
        if isinstance(grad, NDArray) or grad is None
        else array(grad, ctx=ctx, dtype=_dtype_of(np.asarray(grad), dtype))
        for grad in out_grads
    ]


def numeric_grad(
    executor: Executor,
    location: Mapping[str, np.ndarray],
    aux_states: Mapping[str, np.ndarray] | None = None,
    eps: float = 1e-4,
    use_forward_train: bool = True,
    dtype: Any = np.float32,
) -> dict[str, np.ndarray]:
    """Returns central differences of the sum of the executor's first output, by name; eps: their full width."""
    for name, value in location.items():
        executor.arg_dict[name][:] = array(value, dtype=dtype)

    def total() -> Any:
        for name, value in (aux_states or {}).items():
            executor.aux_dict[name][:] = array(value, dtype=dtype)
        return executor.forward(is_train=use_forward_train)[0].asnumpy().astype(np.float64).sum()

    grads = {}
    for name, value in location.items():
        grads[name] = np.zeros(np.shape(value), dtype=dtype)
        if np.asarray(value).dtype.kind != "f":
            continue
        point = np.array(value)
        for at in np.ndindex(point.shape):
            sides = []
            for step in (eps / 2, -eps / 2):
                moved = point.copy()
                moved[at] += step
                executor.arg_dict[name][:] = array(moved, dtype=dtype)
                sides.append(total())
            grads[name][at] = (sides[0] - sides[1]) / eps
        executor.arg_dict[name][:] = array(point, dtype=dtype)
    return grads


def check_numeric_gradient(
    sym: Symbol,
    location: Arrays,
    aux_states: Arrays | None = None,
    numeric_eps: Tolerance = None,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    grad_nodes: Sequence[str] | Mapping[str, str] | None = None,
    use_forward_train: bool = True,
    ctx: Context | None = None,
    grad_stype_dict: Any = None,
    dtype: Any = np.float32,
) -> None:
    """Raises AssertionError unless the gradients of sym agree with finite differences at location.

    The only output is multiplied by random numbers in [0.1, 1.1) and summed. grad_nodes: the arguments to check
    (default: all), or their grad_req by name. grad_stype_dict: storage of gradient buffers by name.
    """
    ctx = ctx or default_context()
    arguments = _arguments(sym, location, ctx, dtype)
    states = _states(sym, aux_states, ctx, dtype)
    requests = dict(grad_nodes) if isinstance(grad_nodes, Mapping) else dict.fromkeys(grad_nodes or arguments, "write")
    point = {name: value.asnumpy() for name, value in arguments.items()}
    state_point = None if states is None else {name: value.asnumpy() for name, value in states.items()}

    _, out_shapes, _ = sym.infer_shape(**{name: value.shape for name, value in arguments.items()})
    weights = "__random_proj"
    loss = sym_module.make_loss(sym * sym_module.Variable(weights))
    arguments[weights] = array(np.random.uniform(0.1, 1.1, out_shapes[0]), ctx=ctx, dtype=dtype)
    before: dict[str, Any] = {name: np.random.normal(0, 0.01, arguments[name].shape) for name in [*requests, weights]}
    stypes = dict(grad_stype_dict or {})
    grads = {
        name: array(value, ctx=ctx, dtype=dtype).tostype(stypes.get(name) or "default")
        for name, value in before.items()
    }
    executor = loss.bind(
        ctx,
        args=arguments,
        args_grad=grads,
        grad_req={**dict.fromkeys(arguments, "null"), **requests},
        aux_states=states,
    )
    output = executor.forward(is_train=True)[0]
    executor.backward()
    found = {name: executor.grad_dict[name].copy() for name in requests}
    step = get_tolerance(output, numeric_eps, default_numeric_eps())
    numbers = numeric_grad(executor, point, state_point, step, use_forward_train, dtype)
    for name, request in requests.items():
        _compare_gradient(name, request, numbers[name], found[name], before[name], rtol, atol)


def check_speed(
    sym: Symbol,
    location: Mapping[str, np.ndarray] | None = None,
    ctx: Context | None = None,
    N: int = 20,
    grad_req: str | None = None,
    typ: str = "whole",
    **kwargs: Any,
) -> float:
    """Returns the seconds of one run, the mean of N. typ: "whole" (forward and backward) or "forward".

    location: arguments by name; without it, kwargs are the shapes and the values are standard normal.
    """
    if typ not in ("whole", "forward"):
        raise HybridNetValueError(f"check_speed: typ is {typ!r}; expected 'whole' or 'forward'")
    request = grad_req or ("write" if typ == "whole" else "null")
    shapes = kwargs if location is None else {name: value.shape for name, value in location.items()}
    executor = sym.simple_bind(ctx or default_context(), grad_req=request, **shapes)
    for name, into in executor.arg_dict.items():
        into[:] = array(np.random.standard_normal(into.shape) if location is None else location[name])

    def once() -> None:
        outputs = executor.forward(is_train=typ == "whole")
        if typ == "whole":
            executor.backward(outputs)

    once()
    waitall()
    start = time.perf_counter()
    for _ in range(N):
        once()
    waitall()
    return (time.perf_counter() - start) / N


def check_consistency(
    sym: Symbol | Sequence[Symbol],
    ctx_list: Sequence[Mapping[str, Any]],
    scale: float = 1.0,
    grad_req: Any = "write",
    arg_params: dict[str, Any] | None = None,
    aux_params: dict[str, Any] | None = None,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    raise_on_err: bool = True,
    ground_truth: Mapping[str, NDArray] | None = None,
    equal_nan: bool = False,
    use_uniform: bool = False,
    rand_type: Any = np.float64,
) -> dict[str, Any]:
    """Raises AssertionError unless a symbol gives the same outputs and gradients in every setting of ctx_list.

    ctx_list: keyword arguments of ``simple_bind`` (``ctx``, shapes, ``type_dict``). The most precise one is the
    reference unless ground_truth (arrays by output and argument name) is given; it is returned.
    """
    symbols = [sym] * len(ctx_list) if isinstance(sym, Symbol) else list(sym)
    if len(ctx_list) < 2 or len(symbols) != len(ctx_list):
        raise HybridNetValueError(
            f"check_consistency: {len(symbols)} symbols for {len(ctx_list)} settings; expected two or more, paired"
        )
    executors = [s.simple_bind(grad_req=grad_req, **setting) for s, setting in zip(symbols, ctx_list)]
    _fill(executors, arg_params or {}, aux_params or {}, scale, use_uniform, rand_type)

    best = int(np.argmax([np.dtype(e.forward(is_train=False)[0].dtype).itemsize for e in executors]))
    _compare_runs(executors, best, ground_truth, rtol, atol, equal_nan, raise_on_err, gradients=False)
    if not _wants_gradients(grad_req):
        return dict(ground_truth or executors[best].output_dict)
    for executor in executors:
        executor.forward(is_train=True)
    narrow = [
        min((np.dtype(e.outputs[i].dtype) for e in executors), key=lambda d: d.itemsize)
        for i in range(len(executors[0].outputs))
    ]
    heads = [out.asnumpy().astype(dtype) for out, dtype in zip(executors[0].outputs, narrow)]
    for executor in executors:
        executor.backward([array(head, dtype=out.dtype) for head, out in zip(heads, executor.outputs)])
    return _compare_runs(executors, best, ground_truth, rtol, atol, equal_nan, raise_on_err, gradients=True)


def _wants_gradients(grad_req: Any) -> bool:
    return grad_req != "null" if isinstance(grad_req, str) else True


def _fill(
    executors: Sequence[Executor],
    arg_params: dict[str, Any],
    aux_params: dict[str, Any],
    scale: float,
    uniform: bool,
    dtype: Any,
) -> None:
    values: dict[str, Any] = dict(arg_params)
    for name, into in sorted(executors[0].arg_dict.items()):
        if name not in values:
            drawn: Any = (
                np.random.uniform(-0.92, 0.92, into.shape) if uniform else np.random.standard_normal(into.shape)
            )
            values[name] = (drawn * scale).astype(dtype)
    for executor in executors:
        for name, into in executor.arg_dict.items():
            into[:] = array(values[name], dtype=into.dtype)
        for name, into in executor.aux_dict.items():
            into[:] = aux_params.get(name, 0)
        for grad in executor.grad_arrays:
            if grad is not None:
                grad[:] = 0


def _compare_runs(
    executors: Sequence[Executor],
    best: int,
    ground_truth: Mapping[str, NDArray] | None,
    rtol: Tolerance,
    atol: Tolerance,
    equal_nan: bool,
    raise_on_err: bool,
    gradients: bool,
) -> dict[str, Any]:
    def values(executor: Executor) -> dict[str, Any]:
        return {**executor.output_dict, **(executor.grad_dict if gradients else {})}

    truth = dict(ground_truth) if ground_truth is not None else values(executors[best])
    for number, executor in enumerate(executors):
        if number == best and ground_truth is None:
            continue
        primary = np.dtype(executor.outputs[0].dtype)
        for name, got in values(executor).items():
            if got is None or truth.get(name) is None:
                continue
            try:
                limits = get_tols(
                    np.empty(0, primary) if primary.itemsize < np.dtype(got.dtype).itemsize else got,
                    truth[name],
                    rtol,
                    atol,
                )
                assert_almost_equal(got, truth[name], *limits, equal_nan=equal_nan)
            except AssertionError as problem:
                if raise_on_err:
                    raise AssertionError(f"setting {number} against setting {best}, {name!r}: {problem}") from problem
                print(f"setting {number} against setting {best}, {name!r}: {problem}")
    return truth


def same_symbol_structure(sym1: Symbol, sym2: Symbol) -> bool:
    """Whether two graphs have the same operators at the same positions."""
    operators = [
        [node["op"] for node in json.loads(sym.tojson(remove_amp_cast=False))["nodes"]] for sym in (sym1, sym2)
    ]
    return operators[0] == operators[1]
