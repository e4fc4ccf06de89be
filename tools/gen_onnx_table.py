#!/usr/bin/env python3
"""Writes docs/onnx-operators.md: which operators of HybridNet an ONNX operator becomes at import, and back at export.

Those of imports are read from the source of the forms (python/hybridnet/onnx/_forms), those of exports from files of
the operators' samples. ``--check`` writes
nothing and exits with 1 if the document differs. Needs a built package; ``tools/dev gen`` calls it with the right path.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from generated_file import ROOT, check_requested, write_or_compare

sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(1, str(ROOT / "tests" / "python" / "ops"))

import hybridnet as mx
import onnx
from hybridnet import _core
from hybridnet.onnx import _export_table, _table
from sweep import uses

TARGET = ROOT / "docs" / "onnx-operators.md"
MOST_NAMES = 8  # in a cell; forms with more cases end in "..."

# Forms that write bodies of loops, or call helpers of other files; and operators without samples for opset 18.
BY_HAND = {
    "BiasAdd": ["broadcast_add"],
    "ConvInteger": ["Convolution", "_contrib_quantized_conv"],
    "DequantizeLinear": ["Cast", "broadcast_sub", "broadcast_mul"],
    "If": ["_cond"],
    "Loop": ["_foreach", "_while_loop"],
    "MatMulInteger": ["_npi_matmul", "_contrib_quantized_fully_connected"],
    "QuantizeLinear": ["broadcast_div", "_npi_around", "clip", "Cast"],
    "Scan": ["_foreach"],
    "SequenceMap": ["_foreach"],
    "Shape": ["shape_array"],
    "Transpose": ["transpose"],
    "Trilu": ["_npi_where"],
    "_cond": ["If"],
    "_contrib_DeformableConvolution": ["DeformConv"],
    "_contrib_ModulatedDeformableConvolution": ["DeformConv"],
    "_foreach": ["Scan", "Loop"],
    "_while_loop": ["Loop"],
    "shape_array": ["Shape"],
    "size_array": ["Size"],
}

HEADER = """<!-- Written by tools/gen_onnx_table.py from python/hybridnet/onnx; `tools/dev gen` writes it again. -->
# ONNX operators and HybridNet's

[onnx.md](onnx.md) describes imports and exports. The names are those that the forms write: which of them a file gets
depends on attributes, shapes and operator sets. Casts, constants, and nodes that compute sizes are left out; "-" means
that nothing else remains.
"""


def tree_of(function: Callable[..., Any]) -> ast.AST:
    """The syntax of a function."""
    return ast.parse(textwrap.dedent(inspect.getsource(function)))


def texts(node: ast.AST) -> Iterator[str]:
    """All strings in an expression."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def enclosed(function: Callable[..., Any]) -> Iterator[Any]:
    """Strings and functions that the function that made this one gave it."""
    for cell in function.__closure__ or ():
        value = cell.cell_contents
        yield from value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else [value]


def written(function: Any, seen: set[Any], strict: bool) -> Iterator[str]:
    """Operators that a form and its helpers in the same file write, in the order of the source.

    strict: only those in calls of ``emit``; otherwise all strings that are names of operators.
    """
    if not inspect.isfunction(function) or function in seen:
        return
    seen.add(function)
    whole = tree_of(function)
    if not strict:
        yield from texts(whole)
    for call in ast.walk(whole):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name == "emit" and call.args:
            yield from list(texts(call.args[0])) or texts(whole)
        elif name in ("standard", "renamed"):
            for text in texts(call):
                yield from written(_table.find("", text), seen, strict)
        helper = function.__globals__.get(name)
        if getattr(helper, "__module__", "") == function.__module__:
            yield from written(helper, seen, strict)
    for item in enclosed(function):
        if isinstance(item, str):
            yield item
        elif getattr(item, "__module__", "") == function.__module__:
            yield from written(item, seen, strict)


def of_import(domain: str, name: str) -> list[str]:
    """Operators that an ONNX operator becomes."""
    if name in BY_HAND:
        return BY_HAND[name]
    form = _table.find(domain, name)
    for strict in (True, False):
        found = [text for text in written(form, set(), strict) if text in operators()]
        if found:
            return found
    return []


def of_export(op: str) -> list[str]:
    """ONNX operators that the samples of an operator become."""
    found = [*BY_HAND.get(op, [])]
    for use in uses(lambda described: described["name"] == op):
        with contextlib.suppress(Exception), tempfile.TemporaryDirectory() as folder:  # a sample of another opset
            found += operators_of(use, f"{folder}/m.onnx")
    return found


def operators_of(use: Any, path: str) -> list[str]:
    """ONNX operators in the file of a sample."""
    values = use.inputs("float32")
    variables = [mx.sym.var(f"in{index}", dtype=value.dtype) for index, value in enumerate(values)]
    with mx.util.np_shape(use.op != "broadcast_to"):
        symbol = _core.op_function(use.op, use.op, "hybridnet.ndarray", symbolic=True)(*variables, **use.attrs)
        shapes = {f"in{index}": value.shape for index, value in enumerate(values)}
        dtypes = {f"in{index}": value.dtype for index, value in enumerate(values)}
        mx.onnx.export_model(symbol, {}, shapes, dtypes, path, check=False, dynamic=False)
    return [node.op_type for node in onnx.load(path).graph.node if node.op_type not in ("Constant", "Identity", "Cast")]


def cell(names: list[str]) -> str:
    """Names as code, each once."""
    found = list(dict.fromkeys(names))
    more = ", ..." if len(found) > MOST_NAMES else ""
    return ", ".join(f"`{name}`" for name in found[:MOST_NAMES]) + more or "-"


@functools.cache
def operators() -> frozenset[str]:
    """Names of HybridNet's operators."""
    return frozenset(name for op, aliases, _ in _core.op_names() for name in (op, *aliases))


def imports() -> list[str]:
    """The table from ONNX to HybridNet."""
    lines = ["## From ONNX", ""]
    for domain in sorted({domain for domain, _ in _table.known()}):
        lines += [f"### Domain {domain or 'ai.onnx'}", "", "| ONNX | HybridNet |", "|---|---|"]
        for known, name in _table.known():
            if known == domain:
                lines.append(f"| {name} | {cell(of_import(domain, name))} |")
        lines.append("")
    return lines


def exports() -> list[str]:
    """The table from HybridNet to ONNX."""
    lines = ["## To ONNX", "", "| HybridNet | ONNX |", "|---|---|"]
    for op in _export_table.exported_operators():
        found = cell(of_export(op)).replace("`", "")
        lines.append(f"| `{op}` | {found} |")
    described = {op: _core.describe_op(op) for op in sorted(op for op, *_ in _core.op_names())}
    composed = [
        op
        for op, facts in described.items()
        if facts["composed"] and not facts["internal"] and _export_table.find_form(op) is None
    ]
    lines += ["", "These are exported as the operators that they are composed of: "]
    lines[-1] += ", ".join(f"`{op}`" for op in composed) + "." if composed else "none."
    lines += ["", "These have no form:", "", "| HybridNet | because |", "|---|---|"]
    for reason in sorted(set(_export_table.REASONS.values())):
        names = sorted(op for op, why in _export_table.REASONS.items() if why == reason)
        lines.append(f"| {', '.join(f'`{op}`' for op in names)} | {reason} |")
    return [*lines, ""]


def main() -> int:
    """Writes or checks the document; returns the exit status."""
    check = check_requested(__doc__)
    present = TARGET.read_text(encoding="utf-8") if TARGET.exists() else ""
    wanted = "\n".join([HEADER, *imports(), *exports()]).rstrip("\n") + "\n"
    return write_or_compare(TARGET, present, wanted, "forms of operators", check)


if __name__ == "__main__":
    raise SystemExit(main())
