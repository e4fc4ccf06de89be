#!/usr/bin/env python3
"""Writes python/hybridnet/ops/_generated.pyi: every registered operator as a typed function, with its documentation.

The file is checked in, so that a review shows changes of the API. ``--check`` writes nothing and exits with 1 if the
file differs from the registry. Needs a built package; ``tools/dev gen`` calls it with the right path.
"""

from __future__ import annotations

import keyword
import sys
import textwrap
from typing import Any

from generated_file import ROOT, check_requested, write_or_compare

sys.path.insert(0, str(ROOT / "python"))

from hybridnet import _core
from hybridnet.ops import _describe

TARGET = ROOT / "python" / "hybridnet" / "ops" / "_generated.pyi"
WIDTH = 120

HEADER = '''# Written by tools/gen_frontend.py from the operator registry; `tools/dev gen` writes it again. ruff: noqa
"""Every operator once. nd.X and sym.X are these functions: given arrays they run, given Symbols they make nodes.

Names with an underscore stand under nd._internal, nd.random (_random_), nd.linalg (_linalg_), nd.contrib (_contrib_)
and nd.image (_image_).
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from ..ndarray.ndarray import NDArray
from ..symbol.symbol import Symbol

TensorT = TypeVar("TensorT", NDArray, Symbol)
DType = Any

'''

ANNOTATIONS = {
    "bool": "bool",
    "int": "int",
    "float": "float",
    "str": "str",
    "tuple of int": "int | Sequence[int]",
    "dtype": "DType",
    "bool or None": "bool | None",
    "int or None": "int | None",
    "float or None": "float | None",
    "str or None": "str | None",
    "tuple of int or None": "int | Sequence[int] | None",
    "dtype or None": "DType | None",
    "tuple of float": "Sequence[float]",
    "tuple of int or None items": "int | Sequence[int | None]",
}


def annotation(field: dict[str, Any]) -> str:
    """Python type of a parameter."""
    if field["choices"]:
        choices = ", ".join(repr(choice) for choice in field["choices"])
        optional = " | None" if "None" in field["kind"] else ""
        return f"Literal[{choices}]{optional}"
    return ANNOTATIONS.get(field["kind"], "Any")


def field_argument(field: dict[str, Any], after_default: bool) -> str:
    """``name: type = default``; required parameters that follow optional ones show ``...``."""
    if field["required"]:
        return f"{field['name']}: {annotation(field)}" + (" = ..." if after_default else "")
    return f"{field['name']}: {annotation(field)} = {field['default']!r}"


def arguments(op: dict[str, Any]) -> list[str]:
    """The arguments in the order of a call."""
    args: list[str] = []
    fields = [f for f in op["fields"] if not keyword.iskeyword(f["name"])]
    if op["variadic"]:
        args.append(f"*{op['inputs'][0]['name']}: TensorT")
        args += [field_argument(f, True) for f in fields]
    else:
        optional = False
        for item in op["inputs"]:
            optional = optional or item["optional"]
            args.append(f"{item['name']}: TensorT" + (" | None = None" if optional else ""))
        for field in fields:
            optional = optional or not field["required"]
            args.append(field_argument(field, optional))
        args.append("*")
    taken = {field["name"] for field in fields}
    args.append("out: Any = None")
    if "name" not in taken:
        args.append("name: str | None = None")
    if len(fields) < len(op["fields"]):
        args.append("**kwargs: Any")
    return args


def result(op: dict[str, Any]) -> str:
    """The type of the result: the inputs determine if it is NDArray or Symbol."""
    single = "TensorT" if op["inputs"] else "Any"
    if op["variable_outputs"]:
        return "Any"
    return single if op["num_visible"] == 1 else "Any"


def documentation(op: dict[str, Any]) -> str:
    """Body of the docstring."""
    lines = textwrap.wrap(op["doc"], WIDTH - 8)
    rows = [(i["name"], "tensor" + (", optional" if i["optional"] else ""), i["doc"]) for i in op["inputs"]]
    for field in op["fields"]:
        if field["hidden"]:
            continue
        limits = _describe._range_text(field)
        rows.append((field["name"], _describe.parameter_type(field) + limits, field["doc"]))
    if rows:
        lines += ["", "Parameters", "----------"]
    for name, kind, doc in rows:
        lines.append(f"{name} : {kind}")
        lines += textwrap.wrap(doc, WIDTH - 12, initial_indent="    ", subsequent_indent="    ")
    outputs = [f"{name}: {doc}" if doc else name for name, doc in op["outputs"]]
    lines += ["", *textwrap.wrap("Returns: " + "; ".join(outputs), WIDTH - 8)]
    if not op["differentiable"]:
        lines.append("Not differentiable.")
    return "\n".join(lines)


def stub(op: dict[str, Any]) -> str:
    """The stub of one function, and of its other names."""
    call = ", ".join(arguments(op))
    line = f"def {op['name']}({call}) -> {result(op)}:"
    if len(line) > WIDTH:
        rows = textwrap.wrap(call, WIDTH - 5, break_long_words=False, break_on_hyphens=False)
        body = "\n    ".join(rows)
        line = f"def {op['name']}(\n    {body}\n) -> {result(op)}:"
    doc = documentation(op).replace("\\", "\\\\").replace('"""', "'''")
    text = f'{line}\n    """' + textwrap.indent(doc, "    ").strip() + '\n    """\n'
    aliases = (a for a in op["aliases"] if not a.startswith(("_np_", "_npi_", "_npx_")))
    names = [a for a in aliases if a.isidentifier() and not keyword.iskeyword(a)]
    return text + "".join(f"\n{alias} = {op['name']}" for alias in sorted(names)) + ("\n" if names else "")


def generate() -> str:
    """The whole file."""
    ops = [_core.describe_op(name) for name, _, internal in _core.op_names() if not internal]
    ops.sort(key=lambda op: (op["name"].startswith("_"), op["name"]))
    return HEADER + "\n\n".join(stub(op) for op in ops)


def main() -> int:
    check = check_requested(__doc__)
    wanted = generate()
    present = TARGET.read_text(encoding="utf-8") if TARGET.exists() else ""
    return write_or_compare(TARGET, present, wanted, "operator registry", check)


if __name__ == "__main__":
    sys.exit(main())
