"""Runs a program in several processes by ``python -m hybridnet.launch``."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import hybridnet as mx
import pytest

LIBRARY = pathlib.Path(mx.__file__).parent / "libhybridnet_gloo.so"
needs_gloo = pytest.mark.skipif(not LIBRARY.exists(), reason="the build found no Gloo (libgloo-dev)")

HEAD = """
import os, signal, sys, time
import numpy as np
import hybridnet as mx
from hybridnet import autograd, gluon, group
rank, size = group.rank(), group.size()
"""


def launch(
    processes: int,
    program: str,
    folder: pathlib.Path,
    *options: str,
    arguments: tuple[str, ...] = (),
    limit: float = 120.0,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Runs HEAD and the program; the launcher's options come before its name, the arguments after it."""
    path = folder / "program.py"
    path.write_text(HEAD + program)
    return run(processes, *options, str(path), *arguments, limit=limit, **environment)


def run(processes: int, *arguments: str, limit: float = 120.0, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the launcher."""
    command = [sys.executable, "-m", "hybridnet.launch", "-n", str(processes), *arguments]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=limit, check=False
    )


def lines_of(done: subprocess.CompletedProcess[str], rank: int) -> list[str]:
    """The lines that a rank printed to either stream, without the prefix of the launcher."""
    prefix = f"[{rank}] "
    return [line[len(prefix) :] for line in (done.stdout + done.stderr).splitlines() if line.startswith(prefix)]
