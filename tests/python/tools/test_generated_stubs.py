"""The checked-in stubs agree with the registry, so that a review shows how the API changes."""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys

import hybridnet as mx

ROOT = pathlib.Path(__file__).resolve().parents[3]
STUBS = ROOT / "python" / "hybridnet" / "ops" / "_generated.pyi"


def test_the_stubs_are_up_to_date():
    check = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "gen_frontend.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert check.returncode == 0, check.stdout[-2000:] + check.stderr + "\nFix: tools/dev gen"


def test_the_stubs_name_every_public_operator():
    tree = ast.parse(STUBS.read_text(encoding="utf-8"))
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    public = {name for name, _, internal in mx._core.op_names() if not internal and name.isidentifier()}
    assert public - defined == set()
    assert all(ast.get_docstring(node) for node in tree.body if isinstance(node, ast.FunctionDef))
