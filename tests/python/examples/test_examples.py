"""Every program in examples/ runs, checks its own result, and stays short."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
RUNS = {
    "beam_search_while.py": ([], r"beam search: [\d.]+ ms"),
    "demo.py": (["--epochs", "8"], r"test accuracy +0\.9[789]"),
    "early_exit_cond.py": ([], r"the deep branch ran \d+ times"),
    "lstm_foreach.py": ([], r"epoch 2: perplexity [\d.]+, not seen [1-4]\.\d"),
    "ode_while.py": ([], r"fitted: rate 1\.(29|30)\d+"),
}
NEED_SKLEARN = {"demo.py", "early_exit_cond.py"}


def test_all_examples_are_run_here():
    assert sorted(RUNS) == sorted(path.name for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", RUNS)
def test_is_short(name):
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) < 150


@pytest.mark.parametrize("name", RUNS)
def test_runs_and_finds_its_result_right(name, tmp_path):
    if name in NEED_SKLEARN:
        pytest.importorskip("sklearn")
    arguments, shown = RUNS[name]
    env = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(shown, done.stdout), done.stdout
    assert not done.stderr
