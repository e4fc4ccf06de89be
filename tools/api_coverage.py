#!/usr/bin/env python3
"""Writes docs/api-coverage.md: the names of MXNet 1.9.1 that exist, those that do not, and the reasons.

    PYTHONPATH=python python tools/api_coverage.py            # --check compares only

tests/fixtures/api/names.csv contains the names, each with a tier: how much of the code of GluonCV, GluonNLP, GluonTS
and Dive into Deep Learning uses it. Every missing name needs a reason in REASONS.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import hybridnet as mx  # noqa: E402
from generated_file import check_requested, write_or_compare  # noqa: E402

NAMES = ROOT / "tests" / "fixtures" / "api" / "names.csv"
TARGET = ROOT / "docs" / "api-coverage.md"
AREAS = {"python": "Modules, classes, functions and methods", "operators": "Functions of `nd`, `sym` and `F`"}
TIERS = {
    "1": "most used: 95 % of all uses in the four projects",
    "2": "next: up to 99.5 %",
    "3": "used by any project, by MXNet's examples or tests",
    "unused": "used by none of them",
}
SHORT = {"mod": "module", "kv": "kvstore", "init": "initializer"}
# Classes whose objects have attributes that the class does not have.
OBJECTS: dict[str, Callable[[], Any]] = {
    "gluon.Parameter": lambda: mx.gluon.Parameter("weight", shape=(1,)),
    "io.DataBatch": lambda: mx.io.DataBatch([mx.nd.ones((1,))], pad=0),
    "executor.Executor": lambda: mx.sym.var("x").bind(mx.cpu(), {"x": mx.nd.ones((1,))}),
}
# Pattern of names: the reason why they are missing.
REASONS = {
    r"contrib\.onnx\..*_": "second names of functions that `contrib.onnx` has without the `_`",
    r"executor_manager\..*": "the older form of `Module`",
    r"kv\.KVStoreServer.*": "there are no servers: each process updates",
    r"io\.(MXDataIter.*|ImageRecord\w*)": "iterators are written in Python, `ImageRecordIter` serves; see the error",
    r"base\.(_LIB|c_str|c_str_array|check_call)|.*\._?CachedOp|Symbol\._gen_atomic_symbol": (
        "the way to MXNet's C library by `ctypes`; HybridNet's is an extension module"
    ),
    r"gluon\.data\.vision\.transforms\.\w+\.hybrid_forward|gluon\.rnn\.SequentialRNNCell\.hybrid_forward": (
        "the class has `forward`"
    ),
    r"test_utils\..*": "belongs to MXNet's own tests",
    r"util\.(np_ufunc_legal_option|wrap_np_\w+|_NumpyArrayScope\..*)": "internal to MXNet's NumPy interface",
    r"contrib\.(backward_|uniform).*|get_\w+|indexing_key_\w+|sparse\.gs_retain|NDArray\._basic_indexing_\w+": (
        "internal to MXNet's operators and indexing"
    ),
    r"gluon\.contrib\.data\.text\._LanguageModelDataset\..*": "private; objects of `WikiText2` have the attribute",
    r"rnn\.rnn_unroll|optimizer\.Optimizer\.set_lr_scale|contrib\.autograd\.TrainingStateScope": "deprecated in MXNet",
    r"error\.InternalError|image\.ImageIter\.check_valid_image|metric\.PearsonCorrelation\.update_\w+": "internal",
    r"operator\.CustomOpProp\.infer_storage_type\w*": "`Custom` operators get dense arrays",
    r"NDArray\.asscipy": "method of sparse arrays",
}


class Name(NamedTuple):
    """One row of the data."""

    area: str
    tier: str
    name: str
    namespaces: str


def read_names() -> list[Name]:
    """All names of the data."""
    with NAMES.open(encoding="utf-8") as file:
        return [Name(**row) for row in csv.DictReader(file)]


def _followed(found: Any, parts: list[str]) -> Any:
    for part in parts:
        if inspect.ismodule(found) and not hasattr(found, part):
            found = importlib.import_module(f"{found.__name__}.{part}")
        else:
            found = getattr(found, part)
    return found


def _places(name: Name) -> Iterator[tuple[Any, list[str]]]:
    first, *rest = name.name.split(".")
    if name.area == "operators":
        for namespace in name.namespaces.split("+"):
            yield getattr(mx, namespace), [first, *rest]
        return
    starts = {"NDArray": mx.nd.NDArray, "Symbol": mx.sym.Symbol}
    yield (starts[first], rest) if first in starts else (mx, [SHORT.get(first, first), *rest])
    owner, _, attribute = name.name.rpartition(".")
    if owner in OBJECTS:
        yield OBJECTS[owner](), [attribute]


def is_there(name: Name) -> bool:
    """True if the name can be used, in any of its namespaces."""
    for start, parts in _places(name):
        try:
            _followed(start, parts)
        except (AttributeError, ImportError):
            continue
        return True
    return False


def reason_for(name: str) -> str | None:
    """The reason why a name is missing, or None."""
    return next((reason for pattern, reason in REASONS.items() if re.fullmatch(pattern, name)), None)


def _table(names: list[Name], missing: set[Name]) -> list[str]:
    lines = ["| tier | names | there | |", "|---|---:|---:|---|"]
    for tier, meaning in TIERS.items():
        of_tier = [name for name in names if name.tier == tier]
        there = sum(name not in missing for name in of_tier)
        lines.append(f"| {tier} | {len(of_tier)} | {there} | {meaning} |")
    return lines


def _list_of_missing(missing: list[Name]) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for name in missing:
        by_reason.setdefault(reason_for(name.name) or "no reason is given", []).append(f"`{name.name}` ({name.tier})")
    return [f"- **{reason}**: {', '.join(names)}" for reason, names in sorted(by_reason.items())]


def generate() -> str:
    """The text of the document."""
    lines = [
        "# Which names of MXNet 1.9.1 are there",
        "",
        "Written by `tools/api_coverage.py`; do not edit. A tier says how much programs use a name. Names of `mx.np`",
        "and `mx.npx` are not counted here. `docs/differences-from-mxnet.md` says what behaves otherwise on purpose.",
        "",
    ]
    names = read_names()
    for area, title in AREAS.items():
        of_area = [name for name in names if name.area == area]
        missing = [name for name in of_area if not is_there(name)]
        lines += [f"## {title}", "", *_table(of_area, set(missing)), ""]
        lines += ["Not there, with the tier in brackets:", "", *_list_of_missing(missing), ""]
    return "\n".join(lines)


def main() -> int:
    """Writes or checks the document; returns the exit status."""
    check = check_requested(__doc__)
    present = TARGET.read_text(encoding="utf-8") if TARGET.exists() else ""
    return write_or_compare(TARGET, present, generate(), "list of names", check)


if __name__ == "__main__":
    sys.exit(main())
