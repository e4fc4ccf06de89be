"""The programs of examples/ run on gpu(0), too: python examples/X.py --ctx gpu."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
from stand_in import ENVIRONMENT, LIBRARY, MISSING

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples"
# Programs that rewrite graphs on the CPU, and one whose processes Ray starts.
ON_CPU = {"ray_train.py", "rewrite_cancel.py", "rewrite_loop_body.py", "rewrite_partition_gcc.py"}


def test_all_other_examples_have_the_option() -> None:
    without = {path.name for path in EXAMPLES.glob("*.py") if "devices.parse_args(parser)" not in path.read_text()}
    assert without - {"devices.py"} == ON_CPU


@pytest.mark.skipif(not LIBRARY.exists(), reason=MISSING)
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("scan_programs.py", ["--steps", "5", "--chains", "10"]),
        ("beam_search_plain.py", ["--steps", "1", "--beams", "2"]),
    ],
)
def test_an_example_finds_its_result_right(name: str, arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), "--ctx", "gpu", *arguments],
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr
