"""Compares exported models with expected results in a C++ program without Python."""

from __future__ import annotations

import pathlib
import shutil
import subprocess

import hybridnet

ROOT = pathlib.Path(__file__).resolve().parents[3]


def build(folder: pathlib.Path) -> pathlib.Path:
    """Compiles tests/cpp/models/compare_models.cc as a user would compile a program: public headers, one library."""
    library, program = pathlib.Path(hybridnet.__file__).parent, folder / "compare_models"
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise FileNotFoundError("no C++ compiler (c++, g++ or clang++) is on the path")
    subprocess.run(
        [
            compiler, "-std=c++20", "-O1", "-Wall", "-Wextra", f"-I{ROOT / 'include'}",
            str(ROOT / "tests/cpp/models/compare_models.cc"), "-o", str(program),
            f"-L{library}", "-lhybridnet", f"-Wl,-rpath,{library}", f"-Wl,-rpath-link,{library}",
        ],
        check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return program


def run(program: pathlib.Path, folder: pathlib.Path, tolerance: float = 0) -> tuple[bool, str]:
    """Returns whether all models of the folder agree, and the output of the program."""
    done = subprocess.run(
        [str(program), str(folder), str(tolerance)], capture_output=True, text=True, timeout=1800, check=False
    )
    return done.returncode == 0, done.stdout + done.stderr
