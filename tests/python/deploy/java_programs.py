"""Compiles and runs programs in Java like a user, with the native libraries of `tools/dev build`."""

from __future__ import annotations

import os
import pathlib
import subprocess

from .client_programs import ROOT

TOOL = ROOT / "tools" / "java.py"
NATIVES = ROOT / "python" / "hybridnet"


def output_of(*command: object, folder: pathlib.Path | None = None) -> str:
    """Runs a command and returns its output; a nonzero exit status fails the test."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, capture_output=True, text=True, timeout=280, env=environment
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def java(jar: pathlib.Path, *words: object, folder: pathlib.Path | None = None) -> str:
    """Runs a program (a source file) with 64 MB of Java heap."""
    return output_of("java", "-Xmx64m", "-cp", jar, f"-Djava.library.path={NATIVES}", *words, folder=folder)
