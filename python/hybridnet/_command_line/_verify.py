"""Checks a model: files match, parameters are finite numbers, and every way to run it gives the same results.

Checksums in the file are compared (export(checksum=True) writes them). The model runs on random inputs imperatively,
hybridized, without rewrites, bound as a Module does it, and from several threads; with --ctx gpu all of these on the
GPU, and first on the CPU. Exit code 0 if all agree within --rtol, else 1.
"""

from __future__ import annotations

import argparse
import dataclasses
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ..context import Context, cpu
from ..errors import HybridNetError
from ..gluon._checksums import has_checksums, verify_checksums
from ..ndarray import NDArray
from ._models import Model, add_model_arguments, open_model, random_value
from ._output import answer, progress, table
from ._shapes import add_shape_argument, form, shapes_of

_THREADS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the model, shapes and tolerance."""
    add_model_arguments(parser, has_device=True)
    add_shape_argument(parser)
    parser.add_argument("--rtol", type=float, default=1e-4, help="of the largest value of an output; default 1e-4")
    parser.add_argument("--seed", type=int, default=0)


def _listed(result: Any) -> list[np.ndarray]:
    return [output.asnumpy() for output in (result if isinstance(result, (list, tuple)) else [result])]


def _imperative(model: Model, inputs: list[NDArray]) -> list[np.ndarray]:
    return _listed(model.block()(*inputs))


def _hybridized(**how: Any) -> Callable[[Model, list[NDArray]], list[np.ndarray]]:
    def run(model: Model, inputs: list[NDArray]) -> list[np.ndarray]:
        block = model.block()
        block.hybridize(**how)
        block(*inputs)
        return _listed(block(*inputs))  # the second call runs the plan of the first

    return run


def _bound(model: Model, inputs: list[NDArray]) -> list[np.ndarray]:
    given = dict(zip(model.inputs, inputs, strict=True))
    values = {**{name: array.as_in_context(model.ctx) for name, array in model.parameters.items()}, **given}
    arguments = {name: values[name] for name in model.symbol.list_arguments()}
    states = {name: values[name] for name in model.symbol.list_auxiliary_states()}
    executor = model.symbol.bind(model.ctx, arguments, aux_states=states, grad_req="null")
    return _listed(executor.forward(is_train=False))


def _threaded(model: Model, inputs: list[NDArray]) -> list[np.ndarray]:
    block = model.block()
    block.hybridize(static_alloc=True)
    block(*inputs)
    results: list[Any] = [None] * _THREADS

    def call(number: int) -> None:
        for _ in range(3):
            results[number] = _listed(block(*inputs))

    threads = [threading.Thread(target=call, args=(number,)) for number in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results[1:]:
        if result is None or not all(
            np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(results[0], result, strict=True)
        ):
            raise HybridNetError("threads that call at one time get different results")
    return results[0]


def _on_cpu(model: Model, inputs: list[NDArray]) -> list[np.ndarray]:
    return _imperative(dataclasses.replace(model, ctx=cpu()), [array.as_in_context(cpu()) for array in inputs])


def _ways(ctx: Context) -> dict[str, Way]:
    """Returns the ways to run a model on a device by name; the first is what the others are compared with."""
    return {"imperative, on the CPU": _on_cpu, **_WAYS} if ctx.device_type == "gpu" else _WAYS


Way = Callable[[Model, list[NDArray]], list[np.ndarray]]
_WAYS: dict[str, Way] = {
    "imperative": _imperative,
    "hybridized": _hybridized(),
    "hybridized, static memory": _hybridized(static_alloc=True, static_shape=True),
    "hybridized, no rewrites": _hybridized(passes="none"),
    "bound": _bound,
    f"{_THREADS} threads": _threaded,
}


def _parameter_problems(model: Model) -> list[str]:
    problems = []
    variables = set(model.symbol.list_inputs())
    for name, array in model.parameters.items():
        values = array.asnumpy()
        if name not in variables:
            problems.append(f"parameter {name} is not in the graph")
        elif values.dtype.kind == "f" and not np.isfinite(values).all():
            problems.append(
                f"parameter {name} has {np.count_nonzero(~np.isfinite(values))} values that are NaN or infinite"
            )
    return problems


def _distance(a: list[np.ndarray], b: list[np.ndarray]) -> float:
    """Returns the largest difference of outputs relative to their largest values; inf for other shapes and NaN."""
    worst = 0.0
    for x, y in zip(a, b, strict=True):
        if x.shape != y.shape or x.dtype != y.dtype:
            return float("inf")
        u, v = x.astype(np.float64), y.astype(np.float64)
        if not np.array_equal(np.isnan(u), np.isnan(v)):
            return float("inf")
        same = np.isnan(u) | (u == v)
        if not same.all():
            finite = np.abs(u[np.isfinite(u)])
            worst = max(worst, float(np.max(np.abs(u - v)[~same])) / max(float(finite.max(initial=0)), 1e-30))
    return worst


def run(options: argparse.Namespace) -> int:
    """Runs all checks and prints a table."""
    model = open_model(options)
    checked = has_checksums(model.path)
    if checked:
        verify_checksums(model.path, model.parameter_path)
    problems = _parameter_problems(model)
    specs = shapes_of(model, options.shape)
    inputs = [
        random_value(*specs[name], options.seed + i).as_in_context(model.ctx) for i, name in enumerate(model.inputs)
    ]
    reference: list[np.ndarray] | None = None
    ways: dict[str, str] = {}
    random_draws = False
    for name, way in progress(options, _ways(model.ctx).items(), "verify"):
        try:
            result = way(model, inputs)
        except HybridNetError as error:
            ways[name] = "fails"
            problems.append(f"{name}: {error}")
            continue
        if reference is None:
            reference = result
            random_draws = _distance(result, way(model, inputs)) > 0
            ways[name] = "runs, draws random numbers" if random_draws else "runs"
            if any(x.dtype.kind == "f" and not np.isfinite(x).all() for x in result):
                problems.append("outputs on random inputs are NaN or infinite")
        elif random_draws:
            ways[name] = "runs"
        else:
            distance = _distance(reference, result)
            ways[name] = "same bits" if distance == 0 else f"within {distance:.2g} of the largest value"
            if distance > options.rtol:
                problems.append(
                    f"{name}: differs by {distance:.3g} of the largest value, more than --rtol {options.rtol:g}"
                )
    forms = {name: form(*specs[name]) for name in model.inputs}
    facts = {
        "checksums": "right" if checked else "none",
        "file": model.path,
        "parameters": model.parameter_path,
        "inputs": forms,
        "device": str(model.ctx),
        "ways": ways,
        "problems": problems,
    }
    text = [
        f"{model.path} with {model.parameter_path or 'no parameter file'}",
        f"inputs {', '.join(f'{name} {text}' for name, text in forms.items()) or '(none)'}",
        table(ways.items()),
    ]
    text += ["  checksums are right"] if checked else []
    answer(options, facts, "\n".join([*text, *problems] if problems else [*text, "in order"]))
    return 1 if problems else 0
