"""Pages of the operators by category: one section per operator, written from the registry."""

from __future__ import annotations

import keyword
import re
from typing import Any

import docstrings
from places import ROOT, import_package, write

import_package()

import hybridnet as mx  # noqa: E402
from hybridnet import _core  # noqa: E402
from hybridnet.ops import _describe  # noqa: E402

# Folders of src/ops in the order of the pages; an operator belongs to the folder that declares it.
CATEGORIES = {
    "elementwise": "Elementwise",
    "broadcast": "Broadcasting",
    "reduce": "Reductions",
    "shape": "Shapes and joining",
    "index": "Indexing and sorting",
    "init": "Creation",
    "linalg": "Linear algebra",
    "nn": "Layers of networks",
    "attention": "Attention",
    "random": "Random numbers",
    "image": "Images",
    "contrib": "Detection and others",
    "optimizer": "Updates of optimizers",
    "numpy": "NumPy's functions",
    "quantized": "Bytes (int8)",
    "control_flow": "Control flow",
    "fused": "Made by rewrites",
    "other": "Others",
}
PREFIXES = {
    "_contrib_": "contrib",
    "_random_": "random",
    "_linalg_": "linalg",
    "_image_": "image",
    "_sparse_": "sparse",
    "_np_": "np",
    "_npi_": "np",
    "_npx_": "npx",
}


FAMILIES = {
    **dict.fromkeys(("_npi_", "_np_", "_npx_"), "numpy"),
    **dict.fromkeys(("_random_", "_sample_"), "random"),
    "_image_": "image",
    "_linalg_": "linalg",
}


def declaring_folders() -> dict[str, str]:
    """Maps operator names to the folder of src/ops that declares them; a line with "declare" outweighs others."""
    found: dict[str, str] = {}
    weak: dict[str, str] = {}
    for folder in CATEGORIES:
        for path in sorted((ROOT / "src" / "ops" / folder).rglob("*.cc")):
            for line in path.read_text(encoding="utf-8").splitlines():
                target = found if "declare" in line else weak
                for name in re.findall(r'"(\w+)"', line):
                    target.setdefault(name, folder)
    return {**weak, **found}


def category(op: dict[str, Any], folders: dict[str, str]) -> str:
    name = op["name"]
    for word, folder in FAMILIES.items():
        if name.startswith(word):
            return folder
    return next((folders[n] for n in (name, *op["aliases"]) if n in folders), "other")


def user_names(op: dict[str, Any]) -> list[str]:
    """The names under which users reach an operator: nd.relu, nd.contrib.box_nms; nd._internal last."""
    names = []
    for name in (op["name"], *sorted(op["aliases"])):
        prefix = next((p for p in PREFIXES if name.startswith(p)), "")
        place, rest = PREFIXES.get(prefix, ""), name[len(prefix) :]
        if place in ("np", "npx"):
            continue
        if not prefix and name.startswith("_"):
            place, rest = "_internal", name
        owner = getattr(mx.nd, place) if place else mx.nd
        if hasattr(owner, rest):
            names.append(".".join(filter(None, ("nd", place, rest))))
    return sorted(dict.fromkeys(names), key=lambda n: n.startswith("nd._internal"))


def default(field: dict[str, Any]) -> str:
    value = field["default"]
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def call(op: dict[str, Any], shown: str) -> str:
    """The call with inputs and parameters, as users write it."""
    fields = [f for f in op["fields"] if not f["hidden"] and not keyword.iskeyword(f["name"])]
    arguments = [f"*{op['inputs'][0]['name']}"] if op["variadic"] else []
    if not op["variadic"]:
        arguments += [i["name"] + ("=None" if i["optional"] else "") for i in op["inputs"]]
    arguments += [f["name"] if f["required"] else f"{f['name']}={default(f)}" for f in fields]
    arguments.append("out=None" if op["variadic"] else "*, out=None")
    text = f"{shown}({', '.join(arguments)})"
    return text if len(text) <= 100 else f"{shown}(\n" + "".join(f"    {a},\n" for a in arguments) + ")"


def described(op: dict[str, Any]) -> list[str]:
    """Lists of the inputs, parameters and outputs."""
    esc = docstrings.escaped
    rows = [f"- **{esc(i['name'])}**{' (optional)' if i['optional'] else ''}: {esc(i['doc'])}" for i in op["inputs"]]
    for field in op["fields"]:
        if field["hidden"]:
            continue
        kind = _describe.parameter_type(field) + ("" if field["required"] else f", default {default(field)}")
        rows.append(f"- **{esc(field['name'])}** ({esc(kind + _describe._range_text(field))}): {esc(field['doc'])}")
    outputs = [f"- **{esc(name)}**: {esc(doc)}" if doc else f"- **{esc(name)}**" for name, doc in op["outputs"]]
    parts = ["**Parameters**\n\n" + "\n".join(rows)] if rows else []
    return [*parts, "**Returns**\n\n" + "\n".join(outputs)] if outputs else parts


def page_of(folder: str) -> str:
    return "indexing" if folder == "index" else folder.replace("_", "-")  # index.md is the list of all


def anchor(op: dict[str, Any]) -> str:
    return "op-" + op["name"]


def section(op: dict[str, Any]) -> str:
    """The text about an operator."""
    names = user_names(op)
    shown = f"mx.{names[0]}" if names else op["name"]
    parts = [f"## `{shown}` {{ #{anchor(op)} }}", f"```python\n{call(op, shown)}\n```", docstrings.prose(op["doc"])]
    parts += described(op)
    notes = [] if op["differentiable"] else ["Not differentiable."]
    if len(names) > 1:
        notes.append("Other names: " + ", ".join(f"`mx.{name}`" for name in names[1:]) + ".")
    if op["name"] not in {name.rpartition(".")[2] for name in names[:1]}:
        notes.append(f"Name in graphs: `{op['name']}`.")
    if notes:
        parts.append(" ".join(notes))
    return "\n\n".join(parts)


def sort_key(op: dict[str, Any]) -> tuple[bool, str]:
    names = user_names(op)
    return not names or "_internal" in names[0], (names[0] if names else op["name"]).rpartition(".")[2].lower()


def write_pages() -> tuple[dict[str, str], list[Any]]:
    """Writes a page per category; returns the page and anchor of each operator, and the navigation."""
    folders = declaring_folders()
    groups: dict[str, list[dict[str, Any]]] = {folder: [] for folder in CATEGORIES}
    for name, _, internal in _core.op_names():
        if not internal:
            op = _core.describe_op(name)
            groups[category(op, folders)].append(op)
    groups = {folder: sorted(ops, key=sort_key) for folder, ops in groups.items() if ops}
    total = sum(len(ops) for ops in groups.values())
    index = [
        "# Operators",
        f"{total} operators, by category. `mx.nd.X` computes on arrays, `mx.sym.X` and `F.X` make nodes of a graph: "
        "one function, one signature. `mx.np` has NumPy's names for them. Every operator also takes `out=`, an array "
        "for the result, and, given Symbols, `name=`.",
    ]
    homes = {}
    for folder, ops in groups.items():
        title, page = CATEGORIES[folder], page_of(folder)
        homes.update({op["name"]: f"{page}.md#{anchor(op)}" for op in ops})
        intro = (
            f"{len(ops)} operators, declared in `src/ops/{folder}`." if folder != "other" else f"{len(ops)} operators."
        )
        write(f"api/operators/{page}.md", "\n\n".join([f"# {title}", intro, *map(section, ops)]) + "\n")
        links = ", ".join(
            f"[{(user_names(op) or [op['name']])[0].removeprefix('nd.')}]({homes[op['name']]})" for op in ops
        )
        index.append(f"## {title}\n\n{links}")
    write("api/operators/index.md", "\n\n".join(index) + "\n")
    navigation = ["api/operators/index.md"]
    navigation += [{CATEGORIES[folder]: f"api/operators/{page_of(folder)}.md"} for folder in groups]
    return homes, navigation
