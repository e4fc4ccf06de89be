"""The build rebinds oneDNN (rebind_dnnl.py): to our threads, to our `new` and `delete`, to statics that stay."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SPEC = importlib.util.spec_from_file_location("rebind_dnnl", ROOT / "cmake/rebind_dnnl.py")
rebind_dnnl = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(rebind_dnnl)

NAMES = rebind_dnnl.FUNCTIONS | rebind_dnnl.OPERATORS | rebind_dnnl.EXIT
ALL = "".join(f"    {name.decode()}();\n" for name in NAMES)


def library(folder: Path, calls: str) -> Path:
    """Builds a shared library that links libgomp and calls these functions."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    for name in ("gomp", "user"):
        (folder / f"{name}.c").write_text(
            "".join(f"void {line.strip()[:-3]}(void) {{}}\n" for line in calls.splitlines())
            if name == "gomp"
            else "".join(f"void {line.strip()[:-3]}(void);\n" for line in calls.splitlines())
            + f"void use(void) {{\n{calls}}}\n"
        )
    gomp, user = folder / "libgomp.so.1", folder / "libuser.so"
    shared = [compiler, "-shared", "-fPIC", "-w"]
    subprocess.run([*shared, "-Wl,-soname,libgomp.so.1", folder / "gomp.c", "-o", gomp], check=True)
    subprocess.run([*shared, folder / "user.c", gomp, "-o", user], check=True)
    return user


def test_names_of_the_library_and_its_functions_are_replaced_and_nothing_moves(tmp_path: Path) -> None:
    before = library(tmp_path, ALL).read_bytes()
    after = rebind_dnnl.rebind(before)
    assert len(after) == len(before)
    assert rebind_dnnl.sections(after) == rebind_dnnl.sections(before)
    changed = tmp_path / "changed.so"
    changed.write_bytes(after)
    text = subprocess.run(
        ["readelf", "-d", "--dyn-syms", "-W", changed], capture_output=True, text=True, check=True
    ).stdout
    assert "[libhnteam.so]" in text
    assert "libgomp" not in text
    for old, new in NAMES.items():
        assert f" {new.decode()}\n" in text
        assert f" {old.decode()}\n" not in text


def test_a_function_that_we_do_not_have_is_named(tmp_path: Path) -> None:
    source = library(tmp_path, ALL + "    GOMP_taskwait();\n")
    with pytest.raises(ValueError, match="GOMP_taskwait"):
        rebind_dnnl.rebind(source.read_bytes())
    target = tmp_path / "copy.so"
    command = [sys.executable, ROOT / "cmake/rebind_dnnl.py", source, target]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "GOMP_taskwait" in run.stderr
    assert not target.exists()


def test_a_copy_that_is_up_to_date_is_not_written_again(tmp_path: Path) -> None:
    source, target = library(tmp_path, ALL), tmp_path / "copy.so"
    command = [sys.executable, ROOT / "cmake/rebind_dnnl.py", source, target]
    subprocess.run(command, check=True)
    os.utime(target, (1, 1))
    subprocess.run(command, check=True)
    assert target.stat().st_mtime == 1
    target.write_bytes(b"old")
    subprocess.run(command, check=True)
    assert target.read_bytes() == rebind_dnnl.rebind(source.read_bytes())


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ELF"):
        rebind_dnnl.rebind(b"\x7fELF\x01\x01" + bytes(100))
    with pytest.raises(ValueError, match="is not among its names"):
        rebind_dnnl.rebind(library(tmp_path, "    GOMP_barrier();\n").read_bytes())
