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
    "amp_training.py": (
        ["--epochs", "6"],
        r"float16 +test accuracy 0\.9[789]\d, [^\n]*\naccuracies agree within a point: True",
    ),
    "beam_search_plain.py": ([], r"words and chances equal to the bit: True, from the exported file: True"),
    "beam_search_while.py": ([], r"beam search: [\d.]+ ms"),
    "demo.py": (["--epochs", "8"], r"test accuracy +0\.9[789]"),
    "early_exit_cond.py": ([], r"the deep branch ran (\d+) times[^\n]*\n\d+ convolutions ran; without the exit 718"),
    "early_exit_plain.py": ([], r"(\d+) convolutions ran, explicit \1\nscores and exits equal to the bit: True"),
    "lstm_foreach.py": ([], r"epoch 2: perplexity [\d.]+, not seen [1-4]\.\d"),
    "lstm_plain.py": ([], r"losses and weights after 10 steps equal to the bit: True"),
    "onnx_roundtrip.py": (
        [],
        r"file: 1 Loop, 1 Scan\nlargest difference over four sizes: \d\.\de-0[5-9]\ntrained: error 1\.\d+ -> 0\.0",
    ),
    "ode_plain.py": ([], r"time  12\.0: +\d+ steps, equal to the bit True, to imperative \d\.\de-1\d"),
    "ode_while.py": ([], r"fitted: rate 1\.(29|30)\d+"),
    "rewrite_cancel.py": ([], r"rule: 6 nodes -> 3, fired 1 time\npattern: [^\n]*\ndatabase: [^\n]*\nresults agree"),
    "rewrite_loop_body.py": (
        [],
        r"fuse_scaled_tanh +fired +1 [^\n]*\n1 in the body of '\w+'\nresults and gradients agree",
    ),
    "rewrite_partition_gcc.py": ([], r"2 parts were compiled; results agree|there is no C compiler"),
    "ray_train.py": (
        ["--epochs", "4", "--kill", "2", "--folder", "kept"],
        r"4 epochs in [^\n]* the last start began with 2\n[\s\S]*accuracy 0\.9\d+\n[\s\S]*digest",
    ),
    "train_distributed.py": (
        ["--epochs", "5"],
        r"1 processes, 1 shards, [^\n]*\nsent [^\n]*\naccuracy 0\.9\d+ of 357 images\ndigest",
    ),
    "tune_onnx.py": (
        [],
        r"tuned: test accuracy 0\.9\d+ in ONNX Runtime\nlargest difference to HybridNet: (0\.0e\+00|\d\.\de-)",
    ),
    "train_step.py": (["--epochs", "6"], r"weights equal those of the loop: True\nplans: 1, learning rate now 0\.00"),
    "scan_programs.py": ([], r"programs: 6, on arrays and in graphs\nsampler: correlation 0\.(79|80|81)\d"),
}
NEED_SKLEARN = {
    *("amp_training.py", "demo.py", "early_exit_cond.py", "early_exit_plain.py", "train_step.py", "tune_onnx.py")
}


def test_all_examples_are_run_here():
    assert sorted(RUNS) == sorted({path.name for path in EXAMPLES.glob("*.py")} - {"devices.py"})  # an import of theirs


@pytest.mark.parametrize("name", RUNS)
def test_is_short(name):
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) < 150


NEED_RAY = {"ray_train.py"}
NEED_ONNX = {"onnx_roundtrip.py", "tune_onnx.py"}


def run(folder, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    if name in NEED_RAY:
        pytest.importorskip("ray", reason="no Ray here: run `tools/dev test --ray`")
    if name in NEED_ONNX:
        pytest.importorskip("onnx")
        pytest.importorskip("onnxruntime")
    if name in NEED_SKLEARN:
        pytest.importorskip("sklearn")
    return subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        cwd=folder, env=dict(os.environ, PYTHONPATH=str(ROOT / "python")), capture_output=True, text=True, timeout=240,
    )  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_runs_and_finds_its_result_right(name, tmp_path):
    arguments, shown = RUNS[name]
    done = run(tmp_path, name, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(shown, done.stdout), done.stdout
    if name not in NEED_RAY:  # Ray writes messages of its own, and the error of the process that the example kills
        assert not done.stderr


SMALL = [
    ("beam_search_while.py", ["--beams", "1", "--steps", "5"]),
    ("beam_search_while.py", ["--beams", "100", "--steps", "0"]),
    ("beam_search_plain.py", ["--beams", "1", "--steps", "5"]),
    ("early_exit_plain.py", ["--epochs", "1", "--confidence", "1"]),
    ("lstm_plain.py", ["--steps", "2", "--width", "16"]),
    ("ode_plain.py", ["--rate", "2.5", "--tolerance", "1e-4"]),
    ("early_exit_cond.py", ["--epochs", "1", "--confidence", "1"]),
    ("early_exit_cond.py", ["--epochs", "1", "--confidence", "0"]),
    ("lstm_foreach.py", ["--epochs", "1", "--width", "16", "--letters", "5"]),
    ("ode_while.py", ["--rate", "2.5", "--tolerance", "1e-6"]),
    ("scan_programs.py", ["--steps", "1", "--chains", "2"]),
    ("onnx_roundtrip.py", ["--width", "1", "--steps", "2"]),
]


@pytest.mark.parametrize(("name", "arguments"), SMALL)
def test_runs_with_other_arguments(name, arguments, tmp_path):
    done = run(tmp_path, name, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr


@pytest.mark.parametrize("name", RUNS)
def test_help_describes_the_example_and_runs_nothing(name, tmp_path):
    done = run(tmp_path, name, "--help")
    assert done.returncode == 0
    assert "usage:" in done.stdout and len(done.stdout.splitlines()) > 6
    assert not done.stderr


WRONG = [
    ("beam_search_while.py", ["--beams", "0"]),
    ("beam_search_plain.py", ["--beams", "0"]),
    ("early_exit_plain.py", ["--confidence", "-1"]),
    ("lstm_plain.py", ["--steps", "0"]),
    ("ode_plain.py", ["--tolerance", "2"]),
    ("early_exit_cond.py", ["--confidence", "1.5"]),
    ("early_exit_cond.py", ["--epochs", "0"]),
    ("lstm_foreach.py", ["--epochs", "-1"]),
    ("ode_while.py", ["--rate", "0"]),
    ("ode_while.py", ["--tolerance", "nan"]),
    ("scan_programs.py", ["--steps", "0"]),
    ("onnx_roundtrip.py", ["--width", "0"]),
    ("onnx_roundtrip.py", ["--steps", "1"]),
]


@pytest.mark.parametrize(("name", "arguments"), WRONG)
def test_wrong_arguments_are_named(name, arguments, tmp_path):
    done = run(tmp_path, name, *arguments)
    assert done.returncode == 2
    assert arguments[0] in done.stderr.splitlines()[-1]
