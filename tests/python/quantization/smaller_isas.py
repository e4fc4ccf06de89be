"""Runs a file of tests again with narrower instruction sets."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ISAS = ["sse4", "avx2", "avx512", "avx512_bf16"]


def run_again(file: str, isa: str, *options: str) -> None:
    """Expects that all tests of the file pass in a process with this cap; skips in a process that has one."""
    if "HYBRIDNET_MAX_ISA" in os.environ:
        pytest.skip("this run has a cap of its own")
    env = {**os.environ, "HYBRIDNET_MAX_ISA": isa}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *options, file]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
