"""Runs library_cases.py, operators of shared objects, in a separate process."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
from library_cases import COMPILER

CASES = pathlib.Path(__file__).with_name("library_cases.py")


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler to build an operator library with")
def test_operators_of_shared_objects():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CASES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
