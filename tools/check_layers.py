#!/usr/bin/env python3
"""Checks the dependencies between rooms: every ``#include`` of src/ and include/, every import of python/hybridnet.

The tables below are the complete rule. A room sees the rooms on lines below its own, and those that an arrow adds;
rooms on one line do not see each other. Prints ``file:line:`` with problem, reason and fix for each violation and exits
with 1 if there is any.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# --- the rules --------------------------------------------------------------------------------------------------------

CPP_LINES: list[tuple[str, ...]] = [  # top to bottom
    ("bindings", "jni", "cpp"),
    ("c_api", "runtime"),
    ("optimizer",),  # the table of optimizers, and training with it
    ("imperative", "plan", "sparse"),  # imperative/sparse_calls.h and sparse.h declare what sparse implements
    ("passes", "ops"),
    ("graph", "ndarray", "kernels"),
    ("op",),  # the definition of an operator: its declaration, parameters, inference and registry
    ("cuda",),  # the backend of device/backend.h for NVIDIA's driver
    ("device",),  # streams, tickets and kernels of accelerators
    ("group",),  # the processes that train together
    ("engine", "storage"),
    ("base",),
    ("teams",),  # teams of threads: a separate library
]
CPP_ARROWS: dict[str, set[str]] = {"c_api": {"runtime"}, "plan": {"imperative", "sparse"}, "sparse": {"imperative"}}
CPP_ONLY: dict[str, set[str]] = {  # rooms that see less than their line allows
    # loops over memory that a TensorRef (kernel.h) describes; no arrays, nodes or tasks
    "kernels": {"base", "device", "op", "storage"},
    "cpp": {"c_api"},  # the C++ front end that users compile is based on the C ABI alone
    "jni": {"c_api"},  # like the library that Java loads, src/bindings/jni
}
# The room of a public header: the one that implements it, except for sparse.h, which imperative declares.
PUBLIC_HEADERS: dict[str, str] = {
    "base.h": "base",
    "env.h": "base",
    "error.h": "base",
    "threads.h": "base",
    "engine.h": "engine",
    "storage.h": "storage",
    "ndarray.h": "ndarray",
    "op.h": "op",
    "declare.h": "op",
    "gradient.h": "op",
    "inference.h": "op",
    "kernel.h": "op",
    "params.h": "op",
    "custom.h": "ops",
    "graph.h": "graph",
    "mutable_graph.h": "graph",
    "pass.h": "graph",
    "imperative.h": "imperative",
    "sparse.h": "imperative",
    "plan.h": "plan",
    "runtime.h": "runtime",
    "c_api.h": "c_api",
}
FOREIGN_HEADERS: dict[str, set[str]] = {  # libhybridnet.so must not depend on Python or Java
    "Python.h": {"bindings"},
    "pybind11/": {"bindings"},
    "jni.h": {"jni"},
}
FOREIGN_QUOTED = ("hwy/",)  # foreach_target.h and the headers after it, in the style of Highway's documentation
ENVIRONMENT_READERS = (Path("src/base/env.cc"),)

PYTHON_LINES: list[tuple[str, ...]] = [  # top to bottom; modules of one line may import each other
    (
        *("__init__", "__main__", "_command_line", "launch", "_launch_hosts", "_launch_output", "_remote_member"),
        *("test_utils", "as_mxnet"),
    ),
    (
        *("gluon", "contrib", "module", "model", "_feed_forward", "rnn", "visualization", "monitor", "callback"),
        *("image", "jit", "onnx", "serving", "debug", "horovod", "byteps", "ray"),
        *("_anomaly", "_watch", "_profile_tables"),
    ),
    ("initializer", "optimizer", "lr_scheduler", "metric", "registry", "io", "kvstore", "recordio", "profiler"),
    ("autograph",),
    ("_control_flow", "rewrite", "_function", "group", "_dmlc", "rtc"),
    (
        *("ndarray", "symbol", "dlpack", "autograd", "random", "executor", "operator", "_python_operator", "ops"),
        *("cuda", "_tracing", "library", "numpy", "numpy_extension", "numpy_dispatch_protocol", "numpy_op_signature"),
    ),
    (
        *("base", "context", "errors", "engine", "runtime", "util", "name", "attribute", "libinfo", "_core", "log"),
        *(
            "_c_interface",
            "_files",
            "_keywords",
            "_lazy_names",
            "_monitor_names",
            "_drawing",
            "_query_words",
            "_scopes",
        ),
        *("_described", "_error_help", "_habits", "_public_names", "_user_line", "_meeting_server"),
        *("_meeting_client", "_meeting_members"),
    ),
]
# Names that MXNet has in a lower namespace (nd.contrib.foreach, nd.imdecode), and observers of the rooms above that a
# switch below begins: a function there may import them.
PYTHON_DOORS: set[tuple[str, str]] = {
    *{("ndarray", "_control_flow"), ("symbol", "_control_flow"), ("ndarray", "image"), ("autograd", "_anomaly")},
    *{("profiler", "_watch"), ("profiler", "_profile_tables")},
}
PYTHON_SAME_ROOM: dict[str, str] = {  # short public names and their rooms
    "nd": "ndarray", "sym": "symbol", "np": "numpy", "npx": "numpy_extension", "init": "initializer",
    "viz": "visualization", "kv": "kvstore", "mod": "module", "error": "errors",
}  # fmt: skip


@dataclass(frozen=True)
class Break:
    """One include or import that the tables forbid."""

    file: Path
    line: int
    what: str
    why: str
    fix: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}.\n  Because: {self.why}.\n  Fix: {self.fix}."


# --- C++ --------------------------------------------------------------------------------------------------------------

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
GETENV = re.compile(r"\b(?:secure_)?getenv\s*\(")


def cpp_room_sees(room: str, other: str) -> bool:
    """True if a file of room may include a header of other."""
    if room == other:
        return True
    if room in CPP_ONLY:
        return other in CPP_ONLY[room]
    if other in CPP_ARROWS.get(room, ()):
        return True
    return _line_of(CPP_LINES, other) > _line_of(CPP_LINES, room)


def _line_of(lines: list[tuple[str, ...]], room: str) -> int:
    return next(index for index, rooms in enumerate(lines) if room in rooms)


def _cpp_rooms() -> set[str]:
    return {room for line in CPP_LINES for room in line}


def cpp_room_of(path: Path) -> str | None:
    """The room of a path relative to the repository root, or None."""
    parts = path.parts
    if parts[:3] == ("src", "bindings", "jni"):
        return "jni"
    if parts[:1] == ("src",) and len(parts) > 2:
        return parts[1] if parts[1] in _cpp_rooms() else None
    if parts[:2] == ("include", "hybridnet") and len(parts) > 2:
        return "cpp" if parts[2] == "cpp" and len(parts) > 3 else PUBLIC_HEADERS.get(parts[2])
    return None


def _included_path(root: Path, file: Path, quote: str, target: str) -> Path | None:
    """The file of this repository that an include refers to, relative to root; None for headers of other projects."""
    if target.startswith("hybridnet/"):
        return Path("include") / target
    if quote == "<" or target.startswith(FOREIGN_QUOTED):
        return None
    beside = (root / file.parent / target).resolve()
    if beside.is_file():
        return beside.relative_to(root)
    return Path("src") / target


def check_cpp(root: Path) -> Iterator[Break]:
    """Yields the violations in src/ and include/ under root."""
    root = root.resolve()
    files = sorted(f for top in ("src", "include") for kind in ("*.cc", "*.h") for f in (root / top).rglob(kind))
    for path in files:
        file = path.relative_to(root)
        room = cpp_room_of(file)
        if room is None:
            yield Break(
                file, 1, "this file belongs to no room", "every file of src/ and include/hybridnet/ stands in one room",
                "move it into a room, or name its room in tools/check_layers.py (CPP_LINES, PUBLIC_HEADERS)",
            )  # fmt: skip
            continue
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if match := INCLUDE.match(text):
                yield from _check_include(root, file, number, room, match[1], match[2])
            elif GETENV.search(text.split("//")[0]) and file not in ENVIRONMENT_READERS and room != "cpp":
                yield Break(
                    file, number, "an environment variable is read here", f"only {ENVIRONMENT_READERS[0]} reads them",
                    "add a field to Environment in include/hybridnet/env.h and use environment()",
                )  # fmt: skip


def _check_include(root: Path, file: Path, number: int, room: str, quote: str, target: str) -> Iterator[Break]:
    for prefix, allowed in FOREIGN_HEADERS.items():
        if target.startswith(prefix) and room not in allowed:
            yield Break(
                file, number, f"room '{room}' includes <{target}>", f"only {', '.join(sorted(allowed))} may",
                "hand plain C++ values down and translate them in the binding",
            )  # fmt: skip
    included = _included_path(root, file, quote, target)
    if included is None:
        return
    other = cpp_room_of(included)
    if other is None:
        yield Break(
            file, number, f'"{target}" is in no known room', "includes are written from src/ or include/, by room",
            'write "room/file.h" or "hybridnet/file.h", or name the header\'s room in tools/check_layers.py',
        )  # fmt: skip
    elif not cpp_room_sees(room, other):
        yield Break(
            file, number, f"room '{room}' includes room '{other}' (\"{target}\")", _cpp_reason(room, other),
            f"move what both need to a room below '{room}', or pass it in through an interface that '{room}' declares",
        )  # fmt: skip


def _cpp_reason(room: str, other: str) -> str:
    if room in CPP_ONLY:
        return f"'{room}' sees only {', '.join(sorted(CPP_ONLY[room]))}"
    if _line_of(CPP_LINES, room) == _line_of(CPP_LINES, other):
        return f"'{room}' and '{other}' stand on one line and do not see each other"
    return f"'{other}' stands above '{room}'"


# --- Python -----------------------------------------------------------------------------------------------------------


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _imports(tree: ast.AST, lazy: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Every import that runs, and True if only when a function is called; imports under ``if TYPE_CHECKING`` do not
    run."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            for branch in node.orelse:
                yield from _imports(branch, lazy)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield node, lazy
        else:
            yield from _imports(node, lazy or isinstance(node, ast.FunctionDef))


def _imported_modules(node: ast.Import | ast.ImportFrom, package: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Dotted names inside hybridnet that a statement in package imports, without the leading 'hybridnet'."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            parts = tuple(alias.name.split("."))
            if parts[0] == "hybridnet":
                yield parts[1:]
        return
    module = tuple(node.module.split(".")) if node.module else ()
    if node.level:
        base = package[: len(package) - (node.level - 1)] + module
    elif module[:1] == ("hybridnet",):
        base = module[1:]
    else:
        return
    if base:
        yield base
    else:  # from . import nd
        for alias in node.names:
            yield (alias.name,)


def _python_room(parts: tuple[str, ...]) -> str | None:
    name = PYTHON_SAME_ROOM.get(parts[0], parts[0]) if parts else "__init__"
    return name if any(name in line for line in PYTHON_LINES) else None


def check_python(root: Path) -> Iterator[Break]:
    """Yields the violations in python/hybridnet under root."""
    top = root.resolve() / "python" / "hybridnet"
    for path in sorted(top.rglob("*.py")):
        file = path.relative_to(root.resolve())
        parts = path.relative_to(top).with_suffix("").parts
        room = _python_room(parts)
        if room is None:
            yield Break(
                file, 1, f"module '{parts[0]}' stands on no line", "every module of python/hybridnet has its line",
                "name it in PYTHON_LINES in tools/check_layers.py",
            )  # fmt: skip
            continue
        for node, lazy in _imports(ast.parse(path.read_text(encoding="utf-8"), str(path))):
            for module in _imported_modules(node, parts[:-1]):
                other = _python_room(module)
                if module == () or other is None or other == room:  # names defined in __init__ are not modules
                    continue
                if lazy and (room, other) in PYTHON_DOORS:
                    continue
                if _line_of(PYTHON_LINES, other) < _line_of(PYTHON_LINES, room):
                    yield Break(
                        file, node.lineno, f"'{room}' imports '{other}'", f"'{other}' stands above '{room}'",
                        f"move what both need to '{room}' or below, or let '{other}' hand it over",
                    )  # fmt: skip


def check_import_circles(root: Path) -> Iterator[Break]:
    """Yields the modules of python/hybridnet that import each other at import time."""
    top = root.resolve() / "python" / "hybridnet"
    files = {_module_of(path.relative_to(top)): path for path in sorted(top.rglob("*.py"))}
    imports = {module: dict(_imports_at_once(module, path, files)) for module, path in files.items()}
    reported: set[frozenset[tuple[str, ...]]] = set()
    for module in files:
        circle = _circle_through(module, imports)
        if circle and frozenset(circle) not in reported:
            reported.add(frozenset(circle))
            names = " -> ".join(".".join(part) or "__init__" for part in [*circle, module])
            yield Break(
                files[module].relative_to(root.resolve()), imports[module][circle[1 % len(circle)]],
                f"import circle {names}", "which names exist would depend on what is imported first",
                "move what both need to a module of its own; re-export with names_from (_lazy_names.py)",
            )  # fmt: skip


def _module_of(path: Path) -> tuple[str, ...]:
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def _imports_at_once(
    module: tuple[str, ...], path: Path, files: dict[tuple[str, ...], Path]
) -> Iterator[tuple[tuple[str, ...], int]]:
    """The modules that must be imported before module, with the line. Packages around module count as imported."""
    package = module if path.name == "__init__.py" else module[:-1]
    for node, lazy in _imports(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if lazy:
            continue
        for found in _imported_modules(node, package):
            targets = [found]
            if isinstance(node, ast.ImportFrom):
                targets += [(*found, alias.name) for alias in node.names]
            for target in targets:
                for end in range(1, len(target) + 1):
                    if target[:end] in files and target[:end] != module[:end]:
                        yield target[:end], node.lineno
                    elif target[:end] == module and end == len(target) and module != package:
                        yield module, node.lineno


def _circle_through(
    module: tuple[str, ...], imports: dict[tuple[str, ...], dict[tuple[str, ...], int]]
) -> list[tuple[str, ...]]:
    """The shortest chain of imports from module back to it, with module listed once; empty if there is none."""
    chains = [[module]]
    seen: set[tuple[str, ...]] = set()
    for chain in chains:  # grows during iteration: breadth first
        for other in imports[chain[-1]]:
            if other == module:
                return chain
            if other not in seen:
                seen.add(other)
                chains.append([*chain, other])
    return []


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    root = parser.parse_args(arguments).root
    breaks = [*check_cpp(root), *check_python(root), *check_import_circles(root)]
    for found in breaks:
        print(found)
    return 1 if breaks else 0


if __name__ == "__main__":
    sys.exit(main())
