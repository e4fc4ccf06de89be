#!/usr/bin/env python3
"""Writes include/hybridnet/cpp/nd.h: the operators of mx.nd as C++ functions with typed parameters and defaults.

The file is checked in, like the stubs of Python (tools/gen_frontend.py). ``--check`` writes nothing and exits with 1 if
the file differs from the registry. Needs a built package; ``tools/dev gen`` calls it with the right path.
"""

from __future__ import annotations

import json
import math
import re
import sys
import textwrap
from collections.abc import Callable
from typing import Any

from generated_file import ROOT, check_requested, write_or_compare

sys.path.insert(0, str(ROOT / "python"))

from hybridnet import _core

TARGET = ROOT / "include" / "hybridnet" / "cpp" / "nd.h"
WIDTH = 120

HEADER = """// Written by tools/gen_cpp_frontend.py from the operator registry; `tools/dev gen` writes it again.
// The operators of mx.nd as functions, with parameters by name:
//
//   Array y = nd::FullyConnected(x, weight, bias, {.num_hidden = 10});
//   nd::sgd_update(weight, gradient, {.lr = 0.1}, into(weight));
//
// The names are those of mx.nd; _linalg_, _random_, _sample_, _image_ and _contrib_ are namespaces, like in Python. The
// operators of mx.nd._internal are in nd::internal, without the leading underscore. Code that omits a parameter without
// a default does not compile. Operators of mx.np are called by name: invoke("_npi_...", ...).
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "hybridnet/cpp/array.h"
#include "hybridnet/cpp/parameters.h"

// clang-format off
"""

NAMESPACES = ("linalg", "random", "sample", "image", "contrib")
OF_PYTHON = {"Custom"}  # it runs user code in Python
# C++ keywords, and names that the generated code uses.
RESERVED = """
and and_eq asm auto bitand bitor bool break case catch char class compl const continue default delete do double else
enum explicit export extern false float for friend goto if inline int long mutable namespace new not not_eq nullptr
operator or or_eq private protected public register return short signed sizeof static struct switch template this
throw true try typedef typeid typename union unsigned using virtual void volatile while xor xor_eq
p out given
"""
KEYWORDS = frozenset(RESERVED.split())
DTYPES = {
    name: f"HN_{name.upper()}"
    for name in ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool", "bfloat16")
}


def identifier(name: str) -> str:
    """A C++ name, different from keywords and from the names that the generated code uses."""
    return name + "_" if name in KEYWORDS else name


def is_dtype_default(value: Any) -> bool:
    return value is None or value in DTYPES


def number(value: float) -> str:
    if math.isinf(value):
        return "-INFINITY" if value < 0 else "INFINITY"
    text = repr(float(value))
    return text if any(c in text for c in ".en") else text + ".0"


def list_of(render: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda values: "{" + ", ".join(render(value) for value in values) + "}"


def optional_int(value: int | None) -> str:
    return "std::nullopt" if value is None else str(value)


# Kind in the registry: C++ type, and the notation of a value.
KINDS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "bool": ("bool", lambda value: "true" if value else "false"),
    "int": ("int64_t", str),
    "float": ("double", number),
    "str": ("std::string", json.dumps),
    "choice": ("std::string", json.dumps),
    "tuple of int": ("std::vector<int64_t>", list_of(str)),
    "tuple of float": ("std::vector<double>", list_of(number)),
    "tuple of int or None items": ("std::vector<std::optional<int64_t>>", list_of(optional_int)),
    "dtype": ("HnDType", DTYPES.__getitem__),
}


class Field:
    """A parameter as a member of a struct."""

    def __init__(self, field: dict[str, Any]) -> None:
        kind, default = field["kind"], field["default"]
        base = kind.removesuffix(" or None")
        if base == "dtype" and not is_dtype_default(default):
            base = "str"  # a default that is not a dtype
        plain, render = KINDS[base]
        optional = kind.endswith(" or None") and kind in {f"{name} or None" for name in KINDS}
        self.name, self.member = field["name"], identifier(field["name"])
        self.required = field["required"]
        self.type = f"std::optional<{plain}>" if optional else plain
        if base == "tuple of int" and optional:
            self.type = "OptionalInts"
        if self.required:
            self.default = ""
        else:
            self.default = "std::nullopt" if default is None else render(default)
        self.doc = field["doc"]
        if field["choices"]:
            self.doc += (" " if self.doc else "") + "One of: " + ", ".join(field["choices"]) + "."

    def declaration(self) -> str:
        kind = f"Required<{self.type}>" if self.required else self.type
        line = f"  {kind} {self.member}" + ("" if self.required else f" = {self.default}") + ";"
        if not self.doc:
            return line
        if len(line) + len(self.doc) + 5 <= WIDTH:
            return f"{line}  // {self.doc}"
        return "\n".join([*comment(self.doc, "  "), line])

    def statement(self) -> str:
        if self.required:
            return f'    detail::add(given, "{self.name}", this->{self.member});'
        return f'    detail::add(given, "{self.name}", this->{self.member}, {self.type}({self.default}));'


def comment(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent + "// ", subsequent_indent=indent + "// ")


def camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split("_+", name) if part)


def place(name: str) -> tuple[str, str]:
    """The namespace within nd and the name there; ("", name) for nd itself."""
    for space in NAMESPACES:
        if name.startswith(f"_{space}_"):
            return space, identifier(name.removeprefix(f"_{space}_"))
    return ("internal", identifier(name.lstrip("_"))) if name.startswith("_") else ("", identifier(name))


def uses(op: dict[str, Any]) -> list[dict[str, Any]]:
    """The properties that depend on parameters, for the parameters of each sample."""
    return [_core.describe_use(op["name"], dict(sample["attrs"])) for sample in op["samples"]]


# Operators that return one array except in a rare use, for which C++ programs call invoke(): the slopes of rrelu.
ONE_BUT_RARELY = {"LeakyReLU"}


def returns_one(op: dict[str, Any]) -> bool:
    """True if every known use returns one array."""
    if op["name"] in ONE_BUT_RARELY:
        return True
    return {use["num_visible"] for use in uses(op)} == {1} and (op["variable_outputs"] or op["num_visible"] == 1)


def input_lists(op: dict[str, Any]) -> list[list[str]]:
    """The lists of inputs of the known uses, which may omit optional ones."""
    names = [identifier(item["name"]) for item in op["inputs"]]
    if not any(item["optional"] for item in op["inputs"]):
        return [names]
    lists = {tuple(identifier(name) for name in use["inputs"]) for use in uses(op)}
    return [list(each) for each in sorted(lists | {tuple(names)}, key=len)]


def wrapped(line: str, indent: str) -> list[str]:
    return textwrap.wrap(line, WIDTH, subsequent_indent=indent + "    ", break_long_words=False, break_on_hyphens=False)


def function(op: dict[str, Any], name: str, struct: str, fields: list[Field]) -> list[str]:
    """The overloads of one function."""
    kind = "Array" if returns_one(op) else "Outputs"
    all_default = all(not field.required for field in fields)
    lines = []
    for inputs in [[identifier(op["inputs"][0]["name"])]] if op["variadic"] else input_lists(op):
        if op["variadic"]:
            parameters, given = [f"const std::vector<Array>& {inputs[0]}"], inputs[0]
        else:
            parameters, given = [f"const Array& {each}" for each in inputs], "{" + ", ".join(inputs) + "}"
        if fields:
            parameters.append(f"const {struct}& p" + (" = {}" if all_default else ""))
        parameters.append("const Into& out = {}")
        attributes = "p.attributes()" if fields else "{}"
        lines += wrapped(f"inline {kind} {name}({', '.join(parameters)}) {{", "")
        lines += textwrap.indent(
            "\n".join(wrapped(f'return invoke("{op["name"]}", {given}, {attributes}, out);', "")), "  "
        ).split("\n")
        lines.append("}")
    return lines


def operator(op: dict[str, Any], name: str, with_struct: bool, struct: str) -> str:
    """The function `name` of an operator, after its parameters and documentation."""
    fields = [Field(f) for f in op["fields"] if not f["hidden"] and f["name"] != op["count_param"]]
    lines = []
    if fields and with_struct:
        lines += [f"struct {struct} {{", *(field.declaration() for field in fields)]
        lines += ["  Attributes attributes() const {", "    Attributes given;"]
        lines += [field.statement() for field in fields]
        lines += ["    return given;", "  }", "};"]
    doc = op["doc"] if with_struct else f"Alias of {op['name'].lstrip('_')}."
    return "\n".join([*lines, *comment(doc), *function(op, name, struct, fields)])


def generate() -> str:
    """The whole file."""
    names = [name for name, _, internal in _core.op_names() if not internal and not name.startswith("_np")]
    spaces: dict[str, list[str]] = {space: [] for space in (*NAMESPACES, "internal", "")}
    taken: set[tuple[str, str]] = {place(name) for name in names}
    for name in sorted(names):
        op = _core.describe_op(name)
        if op["subgraphs"] or name in OF_PYTHON:
            continue
        space, own = place(name)
        struct = camel(name) + "Params"
        spaces[space].append(operator(op, own, True, struct))
        for alias in sorted(op["aliases"]):
            where = place(alias)
            if alias.startswith("_np") or not alias.isidentifier() or where in taken or where[0] == "internal":
                continue
            taken.add(where)
            qualified = struct if where[0] == space else f"nd::{space + '::' if space else ''}{struct}"
            # After everything else, so that the parameters are declared before their use.
            spaces.setdefault(f"alias {where[0]}", []).append(operator(op, where[1], False, qualified))
    text = HEADER
    for space, functions in spaces.items():
        if functions:
            inner = space.removeprefix("alias ").strip()
            opening = "namespace hybridnet::cpp::nd" + (f"::{inner}" if inner else "")
            text += f"{opening} {{\n\n" + "\n\n".join(functions) + f"\n\n}}  // {opening}\n"
    return text


def main() -> int:
    check = check_requested(__doc__)
    wanted = generate()
    present = TARGET.read_text(encoding="utf-8") if TARGET.exists() else ""
    return write_or_compare(TARGET, present, wanted, "operator registry", check)


if __name__ == "__main__":
    sys.exit(main())
