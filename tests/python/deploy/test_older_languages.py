"""C++ headers name the language that they need in one error; the C header is C99."""

from __future__ import annotations

import pathlib
import shutil
import subprocess

import pytest

from .client_programs import ROOT

HEADERS = sorted(path.name for path in (ROOT / "include" / "hybridnet" / "cpp").glob("*.h"))


def _compiled(source: pathlib.Path, *words: str) -> subprocess.CompletedProcess[str]:
    compiler = shutil.which("cc" if source.suffix == ".c" else "c++")
    assert compiler is not None
    command = [compiler, "-fsyntax-only", f"-I{ROOT / 'include'}", *words, str(source)]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


@pytest.mark.parametrize("header", HEADERS)
def test_an_older_language_is_named_in_one_error(header: str, tmp_path) -> None:
    source = tmp_path / "main.cc"
    source.write_text(f"#include <hybridnet/cpp/{header}>\nint main() {{}}\n")
    for language in ("c++11", "c++17"):
        done = _compiled(source, f"-std={language}")
        assert done.returncode != 0
        errors = [line for line in done.stderr.splitlines() if "error:" in line]
        assert "HybridNet's C++ headers need C++20" in errors[0] and "Fix: compile with -std=c++20" in errors[0]
        assert len(errors) == 2, done.stderr  # the second ends the compilation


def test_the_c_header_is_c99_and_any_cpp(tmp_path) -> None:
    for name, languages in (("main.c", ("c99", "c11")), ("main.cc", ("c++11", "c++20"))):
        source = tmp_path / name
        source.write_text("#include <hybridnet/c_api.h>\nint main(void) { return 0; }\n")
        for language in languages:
            done = _compiled(source, f"-std={language}", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
            assert done.returncode == 0, done.stderr
