"""Runs a program imperatively and as a graph, and compares results, changed arguments and gradients."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import linecache
import os
import pathlib
import random
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import nd
from hybridnet.errors import TraceError

from .generator import Program
from .numpy_form import is_numpy

__all__ = ["LIMIT", "Outcome", "TooSlow", "check", "inputs_of", "load"]

LIMIT = 20  # seconds of one program
_numbers = itertools.count()


class TooSlow(BaseException):
    """A program runs longer than LIMIT."""


class _NoModule(Exception):
    """The module of a program raises an error when it is imported."""


@dataclass(frozen=True)
class Outcome:
    """kind: "equal", "refused", "invalid" (the imperative program raises an error), or the kind of a failure.

    cause: equal for failures of the same cause, as far as a program can tell; the code of a refusal.
    """

    kind: str
    cause: str = ""
    text: str = ""

    @property
    def is_failure(self) -> bool:
        return self.kind not in ("equal", "refused", "invalid")


@contextlib.contextmanager
def _limit(seconds: float) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    begun = time.monotonic()
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)  # the test runner may have a timer of its own
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - begun), 0.01) if left else 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def load(source: str) -> Iterator[Any]:
    """Writes source to a temporary file and imports it: its functions have a source that can be read."""
    name = f"autograph_program_{os.getpid()}_{next(_numbers)}"
    with tempfile.TemporaryDirectory(prefix="autograph_prove_") as folder:
        path = pathlib.Path(folder) / f"{name}.py"
        path.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            try:
                spec.loader.exec_module(module)
            except Exception as error:
                raise _NoModule(str(error)) from error
            yield module
        finally:
            del sys.modules[name]
            linecache.cache.pop(str(path), None)


def inputs_of(program: Program, seed: int, with_nan: bool = False) -> list[list[np.ndarray]]:
    """Arguments for several calls: other lengths and signs."""
    single = () if is_numpy(program.source) else (1,)
    maker = random.Random(seed)
    calls = []
    for call in range(6):
        n = (3, 3, 2, 1, 4, 3)[call]
        shapes = {"V": (n,), "S": single, "M": (n, 3), "R": (3,)}
        sign = (1, -1, 1, -1, 0, 0)[call]
        arrays = []
        for shape, dtype in program.arguments:
            values = [maker.uniform(-1, 1.5) for _ in range(int(np.prod(shapes[shape])))]
            made = np.array(values).reshape(shapes[shape])
            if sign:
                made = np.where(maker.random() < 0.5, sign * abs(made), made + sign * 0.4)
            made = np.round(made * 16) / 16 if dtype != "int32" else np.round(made * 3)
            if with_nan and call in (1, 4) and dtype != "int32":
                made.flat[maker.randrange(made.size)] = maker.choice([np.nan, np.inf, -np.inf])
            arrays.append(made.astype(dtype))
        calls.append(arrays)
    return calls


def _arrays(inputs: list[np.ndarray]) -> list[Any]:
    if mx.util.is_np_array():
        return [mx.np.array(array, dtype=array.dtype) for array in inputs]
    return [nd.array(array, dtype=array.dtype) for array in inputs]


def _plain(value: Any) -> Any:
    """Returns a result with arrays of NumPy."""
    if isinstance(value, mx.nd.NDArray):
        return value.asnumpy()
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [_plain(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def _difference(one: Any, two: Any, where: str) -> str:
    """Returns "" if the results are equal, or else a text that starts with the kind of the difference."""
    if isinstance(one, dict):
        if not isinstance(two, dict) or list(one) != list(two):
            return f"structure of {where}: {one!r} and {two!r}"
        return next(filter(None, [_difference(one[k], two[k], f"{where}[{k!r}]") for k in one]), "")
    if isinstance(one, (list, tuple)):
        if type(one) is not type(two) or len(one) != len(two):
            return f"structure of {where}: {one!r} and {two!r}"
        parts = [_difference(a, b, f"{where}[{i}]") for i, (a, b) in enumerate(zip(one, two, strict=True))]
        return next(filter(None, parts), "")
    if one is None or two is None:
        return "" if one is two else f"None at {where}: {one!r} and {two!r}"
    if not isinstance(one, np.ndarray):
        # A number that the graph computes is an array of one element.
        kind = {bool: "bool", int: "int64", float: "float64"}.get(type(one))
        if isinstance(two, np.ndarray):
            # A number on one path and an array on another is an array of the graph.
            if two.size != 1 or (two.dtype != kind and two.dtype.kind not in "fi"):
                return f"number at {where}: {one!r} and {two!r}"
            one = np.array(one).reshape(two.shape).astype(two.dtype)
        elif type(one) is not type(two):
            return f"type of the number at {where}: {one!r} and {two!r}"
    if isinstance(one, np.ndarray) != isinstance(two, np.ndarray):
        return f"array or number at {where}: {one!r} and {two!r}"
    one, two = np.asarray(one), np.asarray(two)
    if one.shape != two.shape:
        return f"shape at {where}: {one!r} and {two!r}"
    if one.dtype != two.dtype:
        return f"dtype at {where}: {one!r} and {two!r}"
    if np.array_equal(one, two, equal_nan=one.dtype.kind == "f"):
        return ""
    # Rewrites may change the last bits, and sums cancel.
    near = 3e-6 * max(1.0, _largest(one))
    if one.dtype.kind == "f" and np.allclose(one, two, rtol=1e-5, atol=near, equal_nan=True):
        return ""
    return f"value at {where}: {one!r} and {two!r}"


def _largest(array: np.ndarray) -> float:
    finite = np.abs(array[np.isfinite(array)])
    return float(finite.max()) if finite.size else 0.0


def _floats(value: Any) -> list[Any]:
    if isinstance(value, mx.nd.NDArray):
        return [value] if np.dtype(value.dtype).kind == "f" else []
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in _floats(part)]
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in _floats(part)]
    return []


def _gradients(net: Any, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Gradients of the sum of squares of all results. The program gets copies: it may write into its arguments."""
    arrays = _arrays(inputs)
    floats = [array for array in arrays if np.dtype(array.dtype).kind == "f"]
    for array in floats:
        array.attach_grad()
    with mx.autograd.record():
        leaves = _floats(net(*[array.copy() for array in arrays]))
        loss: Any = sum([(array * 0).sum().astype("float64") for array in floats])
        for leaf in leaves:
            loss = loss + (leaf * leaf).sum().astype("float64")
    loss.backward()
    return [array.grad.asnumpy() for array in floats]


def _cause(error: BaseException) -> str:
    """The class of an error and its place in the library."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if trace.tb_frame.f_code.co_name in ("stage_if", "stage_for", "stage_while") and not isinstance(
            error, (TraceError, SyntaxError, AssertionError, AttributeError)
        ):
            return f"{type(error).__name__} in a traced branch or loop"
        if f"{os.sep}hybridnet{os.sep}" in file:
            place = f"{os.path.basename(file)}:{trace.tb_frame.f_code.co_name}"
        trace = trace.tb_next
    return f"{type(error).__name__} in {place}"


def code_of(error: BaseException) -> str:
    """The code HN1xx of an error, or ""."""
    code = getattr(error, "code", "")
    text = str(error)
    if not code and text.startswith("[HN10"):
        code = text[1:6]
    return code


def check(source: str, calls: list[list[np.ndarray]], gradients: bool = True) -> Outcome:
    """Compares the program with its graph on all calls."""
    numpy = is_numpy(source)
    with warnings.catch_warnings(), mx.util.np_shape(numpy), mx.util.np_array(numpy):
        warnings.simplefilter("ignore")
        try:
            with load(source) as module:
                return _checked(module, calls, gradients)
        except TooSlow:
            return Outcome("hang", "hang", f"longer than {LIMIT} s")
        except _NoModule as error:
            return Outcome("invalid", "module", str(error))


def _checked(module: Any, calls: list[list[np.ndarray]], gradients: bool) -> Outcome:
    net = module.Net()
    graph = module.Net()
    graph.hybridize(strict=True)
    outcome = Outcome("invalid")
    valid = False
    for number, inputs in enumerate(calls):
        arrays = _arrays(inputs)
        try:
            with _limit(LIMIT):
                wanted = _plain(net(*arrays))
                arguments = _plain(arrays)
        except Exception as error:
            outcome = Outcome("invalid", type(error).__name__, str(error))
            continue
        except TooSlow:
            return Outcome("invalid", "slow")
        if _has_large_numbers(wanted):  # integers of the graph have 64 bits
            return Outcome("invalid", "large")
        valid = True
        given = _arrays(inputs)
        try:
            with _limit(LIMIT):
                result = _plain(graph(*given))
                changed = _plain(given)
        except TraceError as error:
            if code := code_of(error):
                return Outcome("refused", code, str(error))
            return Outcome("error", _cause(error), f"{type(error).__name__}: {error}")
        except Exception as error:
            return Outcome("error", _cause(error), f"call {number} {inputs}: {type(error).__name__}: {error}")
        if text := _difference(wanted, result, "the result"):
            return Outcome(
                "wrong " + text.split(" ")[0], text.split(" at ")[0].split(" of ")[0], f"call {number} {inputs}: {text}"
            )
        if text := _difference(arguments, changed, "the arguments"):
            return Outcome("wrong argument", text.split(" at ")[0], f"call {number} {inputs}: {text}")
        # The gradient of a branch that was not taken is 0 times its derivative: NaN if that is infinite.
        finite = all(np.isfinite(array).all() for array in inputs)
        if not gradients or not finite or not _has_floats(wanted):
            continue
        try:
            with _limit(LIMIT):
                wanted = _gradients(net, inputs)
        except Exception:
            continue
        try:
            with _limit(LIMIT):
                result = _gradients(graph, inputs)
        except Exception as error:
            if "and gradients are recorded for that array" in str(error):
                continue  # a rule of every hybridized block: it must not write into arguments with a gradient
            if isinstance(error, TraceError) and code_of(error):
                return Outcome("refused", code_of(error) + " (gradient)", str(error))
            return Outcome("gradient error", _cause(error), f"call {number} {inputs}: {type(error).__name__}: {error}")
        if text := _difference(wanted, result, "the gradients"):
            return Outcome("wrong gradient", text.split(" at ")[0], f"call {number} {inputs}: {text}")
    return Outcome("equal") if valid else outcome


def _has_large_numbers(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_large_numbers, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_has_large_numbers, value))
    return isinstance(value, (int, float)) and abs(value) > 1e15


def _has_floats(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_floats, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_has_floats, value))
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"
