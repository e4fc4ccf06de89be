"""Compiles programs in C and C++ like a user: with public headers and the flags of hybridnet.libinfo."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
from collections.abc import Sequence

from hybridnet import libinfo

ROOT = pathlib.Path(__file__).resolve().parents[3]


def compile_program(source: pathlib.Path, program: pathlib.Path) -> pathlib.Path:
    """Compiles one file, .c as C11 and .cc as C++20, with warnings as errors."""
    language = ("cc", "-std=c11") if source.suffix == ".c" else ("c++", "-std=c++20")
    compiler = shutil.which(language[0])
    if compiler is None:
        raise FileNotFoundError(f"no compiler ({language[0]}) is on the path")
    subprocess.run(
        [
            *(
                compiler,
                language[1],
                "-O1",
                "-Wall",
                "-Wextra",
                "-Wpedantic",
                "-Werror",
                str(source),
                "-o",
                str(program),
            ),
            *libinfo.compile_flags(),
            *libinfo.link_flags(),
            "-pthread",
        ],
        check=True,
        timeout=300,
    )
    return program


def run(program: pathlib.Path, arguments: Sequence[object] = (), timeout: float = 300) -> str:
    """Runs a program and returns its output; a nonzero exit status fails the test."""
    done = subprocess.run(
        [str(program), *map(str, arguments)], capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, f"{program.name} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout
