"""Docstrings and signatures of operator functions, generated from their declarations."""

from __future__ import annotations

import importlib
import inspect
import textwrap
from typing import Any

from .. import _core

__all__ = ["docstring", "find_function", "parameter_default", "parameter_type", "signature"]


def parameter_type(field: dict[str, Any]) -> str:
    """Returns the text of a parameter's type: ``int``, ``{'relu', 'tanh'}``, ``tuple of int``."""
    if field["choices"]:
        choices = "{" + ", ".join(repr(choice) for choice in field["choices"]) + "}"
        return choices + (" or None" if "None" in field["kind"] else "")
    return field["kind"]


def parameter_default(field: dict[str, Any]) -> Any:
    """Returns the default value, or ``inspect.Parameter.empty`` for required parameters."""
    return inspect.Parameter.empty if field["required"] else field["default"]


def _range_text(field: dict[str, Any]) -> str:
    low, high = field["minimum"], field["maximum"]
    if low is None and high is None:
        return ""
    if high is None:
        return f", at least {low:g}"
    if low is None:
        return f", at most {high:g}"
    return f", range [{low:g}, {high:g}]"


def _indented(text: str) -> str:
    return textwrap.indent(textwrap.fill(text, 110), "    ") if text else ""


def docstring(function: Any) -> str:
    """Returns NumPy-style documentation of an operator function."""
    if isinstance(function, _core.BinaryFunction):
        return _binary_docstring(function)
    op = _core.describe_op(function.op_name)
    tensor = "Symbol" if function.symbolic else "NDArray or Symbol"
    lines = [op["doc"], "", "Parameters", "----------"]
    for item in op["inputs"]:
        name = f"*{item['name']}" if op["variadic"] else item["name"]
        lines.append(f"{name} : {tensor}" + (", optional" if item["optional"] else ""))
        lines.append(_indented(item["doc"]))
    for field in op["fields"]:
        if field["hidden"]:
            continue
        default = "required" if field["required"] else f"default {field['default']!r}"
        lines.append(f"{field['name']} : {parameter_type(field)}, {default}{_range_text(field)}")
        lines.append(_indented(field["doc"]))
    lines += [
        "out : NDArray or list of NDArray, optional",
        "    Arrays to write the results into.",
        "name : str, optional",
    ]
    lines += ["    Name of the node, when a graph is made.", "", "Returns", "-------"]
    for name, doc in op["outputs"]:
        lines.append(f"{name} : {tensor}")
        lines.append(_indented(doc))
    return "\n".join(line for line in lines if line is not None).replace("\n\n\n", "\n\n")


def signature(function: Any) -> inspect.Signature:
    """Returns the signature for ``inspect.signature``: inputs, then parameters in order, then out and name."""
    if isinstance(function, _core.BinaryFunction):
        return _binary_signature()
    op = _core.describe_op(function.op_name)
    kind = inspect.Parameter.KEYWORD_ONLY if op["variadic"] else inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = []
    for item in op["inputs"]:
        if op["variadic"]:
            parameters.append(inspect.Parameter(item["name"], inspect.Parameter.VAR_POSITIONAL))
        else:
            parameters.append(inspect.Parameter(item["name"], kind, default=None))
    fields = {field["name"]: field for field in op["fields"]}
    if function.order is not None:
        return _signature_in_order(op, fields, function.order)
    for field in fields.values():
        default = parameter_default(field)
        # Inputs are optional in graphs, so the parameters after them need defaults in Python.
        parameters.append(
            inspect.Parameter(field["name"], kind, default=None if default is inspect.Parameter.empty else default)
        )
    taken = {parameter.name for parameter in parameters}
    for name in ("out", "name"):
        if name not in taken:
            parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None))
    return inspect.Signature(parameters)


def _signature_in_order(op: dict[str, Any], fields: dict[str, Any], order: tuple[str, ...]) -> inspect.Signature:
    """Returns inputs (a sequence of them, if any number), then the further positional parameters, then the rest."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(item["name"], kind) for item in op["inputs"]]
    for name in [*order, *(name for name in (*fields, "out") if name not in order)]:
        field = fields.get(name)
        if field is not None and (field["hidden"] or name == op["count_param"]):
            continue
        default = None if field is None else parameter_default(field)
        where = kind if name in order else inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(name, where, default=default))
    return inspect.Signature(parameters)


def _binary_docstring(function: Any) -> str:
    """Returns the documentation of a function of mx.np with two arguments that may be numbers."""
    op = _core.describe_op(function.op_name)
    return "\n".join(
        [
            op["doc"].replace("lhs", "x1").replace("rhs", "x2"), "", "Parameters", "----------",
            "x1, x2 : ndarray, Symbol, number, list or NumPy array", "    Shapes broadcast.",
            "out : ndarray, optional", "    Array to write the result into.", "", "Returns", "-------",
            f"out : ndarray\n    {op['outputs'][0][1]}; a number where both are numbers",
        ]
    )  # fmt: skip


def _binary_signature() -> inspect.Signature:
    """Returns the signature (x1, x2, out=None)."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [
            inspect.Parameter("x1", kind),
            inspect.Parameter("x2", kind),
            inspect.Parameter("out", kind, default=None),
        ]
    )


def find_function(module: str, name: str) -> Any:
    """Returns the function of a public name; pickled operator functions load through it."""
    return getattr(importlib.import_module(module), name)
