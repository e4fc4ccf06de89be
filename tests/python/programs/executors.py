"""The ways to run a program with the library, and the comparison of their results with the reference."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import pathlib
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import hybridnet as mx
import numpy as np
from control_flow import c_model

from . import source as sources
from .memory import NEGLIGIBLE, Value
from .program import Expected, Gradient, Program

HYBRIDIZE = {
    "unrecorded": None,
    "imperative": None,
    "hybridized": {},
    "static_alloc": {"static_alloc": True},
    "static_shape": {"static_alloc": True, "static_shape": True},
}


@dataclass
class Outcome:
    """The outcome of one program."""

    ran: Counter[str] = field(default_factory=Counter)  # runs of each executor, and "compared" arrays
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)  # counts by (executor, kind of error)
    failures: list[tuple[str, str]] = field(default_factory=list)  # (executor, description of the difference)


class Different(Exception):
    """Raised for a value that differs from the expected one."""


# ---------------------------------------------------------------------------------------------------------- comparison
def as_numpy(array: Any) -> np.ndarray:
    if isinstance(array, mx.nd.NDArray):
        return array.asnumpy()
    mx.nd.waitall()
    return np.array(array)


def check(label: str, given: Any, expected: Value | Gradient) -> None:
    """Raises Different if `given` differs from `expected`."""
    if given is None:
        raise Different(f"{label}: None, expected {expected.data.tolist()}")
    got = as_numpy(given)
    if got.shape != expected.data.shape:
        raise Different(f"{label}: shape {got.shape}, expected {expected.data.shape}")
    if isinstance(expected, Gradient):
        wide = got.astype(np.float64)
        good = np.abs(wide - expected.data) <= expected.error
        if not np.all(good):
            raise Different(
                f"{label}: {got.tolist()}, expected {expected.data.tolist()} within {expected.error.tolist()}"
            )
        return
    if got.dtype != expected.dtype:
        raise Different(f"{label}: dtype {got.dtype}, expected {expected.dtype}")
    if not _same(got, expected):
        bound = np.max(expected.error, initial=0)
        raise Different(f"{label}: {got.tolist()}, expected {expected.data.tolist()} within {4 * bound:.3g}")


def _same(got: np.ndarray, expected: Value) -> bool:
    want = expected.data
    if want.dtype.kind != "f":
        return bool(np.array_equal(got, want))
    if not np.array_equal(np.isnan(got), np.isnan(want)):
        return False
    finite = np.isfinite(want)
    error = expected.error
    exact = ~np.isnan(want) & ((error == 0) | ~finite)
    if not np.all((got == want) | ~exact):
        return False
    if not np.array_equal(np.signbit(got) & exact, np.signbit(want) & exact):
        return False
    rest = finite & ~exact
    distance = np.abs(np.where(rest, got, 0).astype(np.float64) - np.where(rest, want, 0).astype(np.float64))
    return bool(np.all(distance <= 4 * np.where(error > NEGLIGIBLE, error, 0)))


_LINE = re.compile(r"\.py:\d+|line \d+|<program[^>]*>:\d+")


def kind_of(error: Exception) -> str:
    """Returns the first line of an error without numbers and names, and whether it names a line of the program."""
    text = str(error)
    first = text.strip().split("\n")[0]
    first = re.sub(r"'[^']*'", "'*'", first)
    first = re.sub(r"\([\d, ?]*\)", "(*)", first)
    first = re.sub(r"Symbol \w+", "Symbol *", first)
    first = re.sub(r"\b[twxavy]\d+\b|\d+", "#", first)[:110]
    return f"{type(error).__name__}: {first}{'' if _LINE.search(text) else ' [NO LINE]'}"


# ----------------------------------------------------------------------------------------------------------- executors
@contextlib.contextmanager
def _mode(program: Program) -> Iterator[None]:
    if program.is_np:
        mx.npx.set_np()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        mx.npx.reset_np()


class Runner:
    """Runs one program in several ways."""

    def __init__(self, program: Program, expected: Expected, folder: pathlib.Path) -> None:
        self.program = program
        self.expected = dict(expected)
        self.folder = folder
        self.source = sources.make(program)
        self.outcome = Outcome()
        self.stateful = False  # the block writes to its parameters

    def attempt(self, name: str, run: Callable[[], None]) -> None:
        outcome = self.outcome
        outcome.ran[name] += 1
        try:
            with _mode(self.program):
                run()
        except mx.base.MXNetError as error:
            outcome.refused[name, kind_of(error)] += 1
        except AttributeError as error:
            if "Symbol' object has no attribute" in str(error):  # a method that Symbols lack
                outcome.refused[name, f"{kind_of(error)[:-10]}"] += 1
            else:
                outcome.failures.append((name, f"{type(error).__name__}: {error}"))
        except Different as difference:
            outcome.failures.append((name, str(difference)))
        except Exception as error:
            outcome.failures.append((name, f"{type(error).__name__}: {error}"))
        finally:
            mx.autograd.set_recording(False)
            mx.autograd.set_training(False)

    def note(self, label: str, array: Any) -> None:
        expected = self.expected.get(label)
        if expected is not None:
            check(label, array, expected)
            self.outcome.ran["compared"] += 1

    def execute(self, lines: list[str], names: dict[str, Any]) -> None:
        exec(compile("\n".join(lines), "<program>.py", "exec"), names)

    def names(self, flags: dict[str, bool] | None) -> dict[str, Any]:
        def prepare(net: Any) -> Any:
            if flags is not None:
                net.hybridize(**flags)
            return net

        return {"__name__": "program", "prepare": prepare, "note": self.note}

    def session(self, mode: str) -> None:
        """Runs the whole program in a mode."""
        names = self.names(HYBRIDIZE[mode])
        source = self.source
        if mode == "unrecorded":
            source = sources.make(dataclasses.replace(self.program, record=False, heads=[]))
        self.execute(source.text().split("\n"), names)

    def started(self) -> tuple[dict[str, Any], list[Any]]:
        """Returns the names before the first call, and the arguments of the call."""
        names = self.names({})
        first = self.source.rounds[0]
        self.execute(self.source.imports + self.source.block + first.begin, names)
        return names, [names[argument] for argument in self.program.arguments]

    def outputs(self, arrays: Any, label: str) -> None:
        arrays = arrays if isinstance(arrays, (list, tuple)) else [arrays]
        for number, array in enumerate(arrays):
            expected = self.expected[f"round 0: y{number}"]
            check(f"{label}: y{number}", array, expected)
            self.outcome.ran["compared"] += 1

    def exported(self) -> None:
        """Runs the first call from exported files, in Python and through the C functions."""
        values, inputs, symbol, params = self.exported_files()
        if not inputs:
            return
        module = mx.np if self.program.is_np else mx.nd
        block = mx.gluon.SymbolBlock.imports(symbol, list(inputs), params)
        fresh = [module.array(values[k], dtype=values[k].dtype) for k in inputs.values()]
        self.outputs(block(*fresh), "imported")
        given = {name: values[k] for name, k in inputs.items()}
        results = c_model.run(symbol, params, given)
        self.outputs(results, "through the C functions")

    def exported_files(self) -> tuple[list[np.ndarray], dict[str, int], str, str]:
        """Returns the values of the arguments, the argument number of each input of the files, and the files."""
        names, arguments = self.started()
        values = [as_numpy(argument) for argument in arguments]
        before = {p.name: names[p.name].asnumpy() for p in self.program.parameters}
        self.outputs(names["net"](*arguments), "before export")
        self.stateful = any(not np.array_equal(names[n].asnumpy(), v, equal_nan=True) for n, v in before.items())
        module = mx.np if self.program.is_np else mx.nd
        for name, value in before.items():  # restores parameters that the block may have written
            getattr(names["net"], name).set_data(module.array(value, dtype=value.dtype))
        prefix = str(self.folder / "program")
        names["net"].export(prefix)
        symbol, params = f"{prefix}-symbol.json", f"{prefix}-0000.params"
        known = {name.split(":", 1)[-1] for name in mx.nd.load(params)} if pathlib.Path(params).exists() else set()
        inputs = [name for name in mx.sym.load(symbol).list_inputs() if name not in known]
        return values, {name: int(name[4:] or 0) for name in inputs}, symbol, params

    def donated(self) -> None:
        """Runs a function that donates its arguments, while other arrays share the memory of some."""
        import torch

        values, inputs, symbol, params = self.exported_files()
        module = mx.np if self.program.is_np else mx.nd
        graph = mx.sym.load(symbol)
        weights = {name.split(":", 1)[-1]: array for name, array in dict(mx.nd.load(params) or {}).items()}
        variables = {name: graph.get_internals()[name] for name in graph.list_inputs()}
        taken = [mx.In(variables[name], donate=True) for name in inputs]
        given = [mx.In(variables[name], default=array) for name, array in weights.items() if name in variables]
        if not taken:
            return
        function = mx.function([*taken, *given], [graph[k] for k in range(len(self.program.outputs))])
        for time in range(1 if self.stateful else 2):
            arrays = {name: module.array(values[k], dtype=values[k].dtype) for name, k in inputs.items()}
            shared = {
                name: torch.from_dlpack(array)
                for number, (name, array) in enumerate(arrays.items())
                if array.size and np.dtype(array.dtype) != np.bool_ and number % 2 == time
            }
            self.outputs(function(**arrays), f"donated {time}")
            for name, other in shared.items():
                value = values[inputs[name]]
                if not np.array_equal(as_numpy(other), value, equal_nan=value.dtype.kind == "f"):
                    raise Different(f"donated {name}: a neighbor reads {other.tolist()}, expected {value.tolist()}")


def run(program: Program, expected: Expected, only: str | None = None) -> Outcome:
    """Runs a program with all of its executors, or with one."""
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(program, expected, pathlib.Path(folder))
        ways: dict[str, Callable[[], None]] = {}
        modes = list(HYBRIDIZE)[:2] if program.imperative_only else list(HYBRIDIZE)
        if not program.record:
            modes.remove("unrecorded")
        for mode in modes:
            ways[mode] = lambda mode=mode: runner.session(mode)  # type: ignore[misc]
        if not program.imperative_only:
            ways["exported"] = runner.exported
            if len(set(program.arguments)) == len(program.arguments) and not program.before:
                ways["donated"] = runner.donated
        for name, way in ways.items():
            if only is None or name == only:
                runner.attempt(name, way)
    return runner.outcome
