"""Every error of the Python package is a HybridNetError whose text hybridnet/errors.py composes."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path

import hybridnet
import pytest

PACKAGE = Path(hybridnet.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
# Builtin exceptions that Python's protocols need (DLPack asks for BufferError); comparisons of test_utils may raise
# AssertionError for pytest, and assert statements of converted programs raise it as in Python.
ALLOWED = {"StopIteration", "BufferError"}
ALLOWED_WITH_ASSERTIONS = {*ALLOWED, "AssertionError"}
WITH_ASSERTIONS = {*(PACKAGE / "test_utils").rglob("*.py"), PACKAGE / "autograph" / "_operators.py"}


def builtin_raises(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields (line, name) for each statement that raises a builtin exception."""
    imported = {a.asname or a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            named = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(named, ast.Name) and named.id not in imported and hasattr(builtins, named.id):
                yield node.lineno, named.id


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_module_raises_a_builtin_error_or_writes_the_parts_of_a_text(file):
    source = file.read_text(encoding="utf-8")
    allowed = ALLOWED_WITH_ASSERTIONS if file in WITH_ASSERTIONS else ALLOWED
    tree = ast.parse(source)
    assert [(line, name) for line, name in builtin_raises(tree) if name not in allowed] == []
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    composed = [text for text in texts if any(mark in text for mark in ("\n  Fix: ", "\n  Because: ", ", got "))]
    assert file.name == "errors.py" or composed == []


def test_the_check_finds_builtin_errors():
    source = "from .errors import ValueError\nraise ValueError('a')\nraise TypeError\nraise error\n"
    assert list(builtin_raises(ast.parse(source))) == [(3, "TypeError")]
