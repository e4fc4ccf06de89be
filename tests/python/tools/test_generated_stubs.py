"""The generated stubs agree with the registry, so that reviews show API changes."""

from __future__ import annotations

import ast
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
STUBS = ROOT / "python" / "hybridnet" / "ops" / "_generated.pyi"


@pytest.mark.parametrize("generator", ["gen_frontend.py", "gen_cpp_frontend.py"])
def test_generated_files_are_up_to_date(generator):
    check = subprocess.run(
        [sys.executable, str(ROOT / "tools" / generator), "--check"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert check.returncode == 0, check.stdout[-2000:] + check.stderr + "\nFix: tools/dev gen"


def test_the_stubs_name_every_public_operator():
    tree = ast.parse(STUBS.read_text(encoding="utf-8"))
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    # Lists operators in a separate process, because other tests load operator libraries into this one.
    listing = "from hybridnet import _core; print(*(name for name, _, internal in _core.op_names() if not internal))"
    done = subprocess.run(
        [sys.executable, "-c", listing],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    public = {name for name in done.stdout.split() if name.isidentifier()}
    assert public
    assert public - defined == set()
    assert all(ast.get_docstring(node) for node in tree.body if isinstance(node, ast.FunctionDef))
