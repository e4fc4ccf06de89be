"""Signatures for programs of MXNet: every name of the census that the four main client projects use exists, and
accepts the parameters that MXNet 1.9.1 declares and the keywords that these programs pass.

The census (tests/fixtures/api/python-api.csv) lists names with MXNet's signatures and the keywords seen in calls.
"""

from __future__ import annotations

import ast
import csv
import importlib
import inspect
from pathlib import Path
from typing import Any

import hybridnet as mx
import pytest

_CENSUS = Path(__file__).parents[2] / "fixtures" / "api" / "python-api.csv"
_ROWS = {row["name"]: row for row in csv.DictReader(_CENSUS.open(encoding="utf-8"))}
_CALLABLE = ("class", "function", "method")
_SHORT = {"mod": "module", "kv": "kvstore", "init": "initializer"}

# Names of the census that HybridNet does not have.
_ABSENT: dict[str, str] = {}
# Differences that no program can notice, or only a wrong call.
_ON_PURPOSE = {
    ("NDArray.sum", "dim"): "a call of another library, counted by mistake: MXNet refuses the keyword",
    ("NDArray.mean", "dtype"): "a call on mx.np's array",
    ("nd.sum", "out"): "by keyword only",
    ("nd.sum", "name"): "by keyword only",
    ("io.DataDesc", "name"): "MXNet shows *args for a class with these arguments",
    ("io.DataDesc", "shape"): "MXNet shows *args for a class with these arguments",
}


def _resolve(name: str) -> Any:
    first, *rest = name.split(".")
    found: Any = {"NDArray": mx.nd.NDArray, "Symbol": mx.sym.Symbol}.get(first)
    if found is None:
        found = getattr(mx, _SHORT.get(first, first))
    for part in rest:
        if inspect.ismodule(found) and not hasattr(found, part):
            found = importlib.import_module(f"{found.__name__}.{part}")
        else:
            found = getattr(found, part)
    return found


def _declared(signature: str) -> list[tuple[str, bool]]:
    """Returns (name, has a default) for each positional parameter except self."""
    # Defaults that are shown as <objects> are not expressions.
    readable = "".join("'" if c in "<>" else c for c in signature)
    arguments = ast.parse(f"def f{readable}: pass").body[0].args
    required = len(arguments.args) - len(arguments.defaults)
    names = [(argument.arg, i >= required) for i, argument in enumerate(arguments.args)]
    return names[1:] if names and names[0][0] == "self" else names


def _complaints(row: dict[str, str]) -> list[tuple[str, str]]:
    """Returns (parameter, complaint) pairs."""
    signature = inspect.signature(_resolve(row["name"]))
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    by_name = {p.name: p for p in parameters}
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_any_keyword = any(p.kind is p.VAR_KEYWORD for p in parameters)
    takes_any_position = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    declared = _declared(row["signature"])
    wrong = []
    for place, (name, has_default) in enumerate(declared):
        if name not in by_name:
            if not takes_any_keyword:
                wrong.append((name, "is not taken"))
            continue
        own = by_name[name]
        if name in positional:
            if positional.index(name) != place:
                wrong.append((name, f"stands at place {positional.index(name)}, in MXNet at {place}"))
        elif not takes_any_position:
            wrong.append((name, "cannot be given by position"))
        if has_default and own.default is own.empty and own.kind is not own.VAR_POSITIONAL:
            wrong.append((name, "must be given, in MXNet it has a default"))
    known = {name for name, _ in declared}
    for p in parameters:
        if p.name not in known and p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
            wrong.append((p.name, "must be given, and MXNet has no such parameter"))
    if not takes_any_keyword:
        wrong += [(k, "is passed by programs") for k in row["keywords_used"].split() if k not in by_name]
    return wrong


@pytest.mark.parametrize("name", sorted(set(_ROWS) - set(_ABSENT)))
def test_a_name_that_programs_use_exists(name):
    row = _ROWS[name]
    if row["kind"] == "attribute" and name.startswith("gluon.Parameter."):
        assert hasattr(mx.gluon.Parameter("weight", shape=(1,)), name.rsplit(".", 1)[1])
    else:
        assert callable(_resolve(name)) or row["kind"] not in _CALLABLE


@pytest.mark.parametrize("name", sorted(_ABSENT))
def test_a_name_said_to_be_absent_is(name):
    with pytest.raises((AttributeError, ImportError)):
        _resolve(name)


def _has_signature(name: str) -> bool:
    if _ROWS[name]["kind"] not in _CALLABLE or name in _ABSENT:
        return False
    try:
        inspect.signature(_resolve(name))
    except (TypeError, ValueError):  # not a function, or a function of the extension module without a signature
        return False
    return True


@pytest.mark.parametrize("name", [name for name in sorted(_ROWS) if _has_signature(name)])
def test_a_signature_accepts_the_arguments_of_mxnet_and_programs(name):
    wrong = [(p, what) for p, what in _complaints(_ROWS[name]) if (name, p) not in _ON_PURPOSE]
    assert not wrong, f"{name}{inspect.signature(_resolve(name))}, in MXNet {_ROWS[name]['signature']}"


@pytest.mark.parametrize(("name", "parameter"), sorted(_ON_PURPOSE))
def test_a_difference_said_to_be_on_purpose_is_one(name, parameter):
    assert parameter in [p for p, _ in _complaints(_ROWS[name])]
