"""tools/dev gpu-check: the command on the tests' driver, and what it says when something is wrong."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from stand_in import LIBRARY, MISSING

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

from gpu_check import runner, sanitizer  # noqa: E402
from gpu_check.compare import compare  # noqa: E402
from gpu_check.outcome import Options  # noqa: E402
from gpu_check.steps import STEPS, Step  # noqa: E402


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    found = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "tools"), str(ROOT / "python"))), **environment}
    command = [sys.executable, "-m", "gpu_check", *arguments]
    return subprocess.run(command, env=found, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.skipif(not LIBRARY.exists(), reason=MISSING)
def test_all_steps_run_on_the_stand_in(tmp_path: pathlib.Path) -> None:
    done = run("--stand-in", "--operators", "6", "--report", str(tmp_path / "report.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    steps = {step["name"]: step for step in report["steps"]}
    assert list(steps) == [step.name for step in STEPS if step.listed]
    assert [name for name, step in steps.items() if step["skipped"]] == ["speed", "networks", "memcheck", "racecheck"]
    assert report["wrong"] == 0
    assert steps["samples"]["rows"]["counts"]["exact"] > 0
    for name in ("products", "convolutions"):
        types = set(steps[name]["rows"]["largest difference"])
        assert types == {"float16", "bfloat16", "float32", "float64", "TF32"}
    assert report["machine"]["card"] == "stand-in"
    for name in steps:
        assert any(name in line for line in done.stdout.splitlines())


def test_a_machine_without_a_gpu_is_an_error_with_the_reason(tmp_path: pathlib.Path) -> None:
    done = run("--only", "machine", HYBRIDNET_CUDA_DRIVER="none")
    assert done.returncode == 1
    assert "there is no usable GPU" in done.stdout


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("crashing", "ended by SIGABRT"),
        ("hanging", "ran longer than"),
        ("raising", "ValueError in"),
        ("leaving", "exited with 7 after the step was over"),
    ],
)
def test_a_step_that_fails_loses_only_itself(
    place: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "failing_steps.py").write_text(FAILING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(
        runner, "_command_of", lambda step: [sys.executable, "-m", "failing_steps", "--step", step.name]
    )
    checks = runner.Runner(Options())
    checks._run(Step(place, "", 3))
    checks._run(Step("good", "", 30))
    bad, good = checks.results
    assert said in bad["wrong"][0]
    assert not good["wrong"]
    assert "WRONG" in capsys.readouterr().out


FAILING = """
import os, pathlib, sys, time
import atexit
from gpu_check import __main__ as command
from gpu_check.outcome import Outcome
name, answer = sys.argv[sys.argv.index("--step") + 1], sys.argv[sys.argv.index("--answer") + 1]
def crashing(options): os.abort()
def hanging(options): time.sleep(60)
def raising(options): raise ValueError("no")
def leaving(options):
    atexit.register(os._exit, 7)
    return Outcome()
def good(options): return Outcome(line="fine")
class Found:
    def function(self): return globals()[name]
command.find = lambda name: Found()
sys.exit(command.run_step(name, command.Options(), pathlib.Path(answer)))
"""


def test_no_step_starts_after_the_total_time() -> None:
    checks = runner.Runner(Options(), total_seconds=0)
    assert checks.run([])
    assert all(result["skipped"] for result in checks.results)
    assert sum(step.seconds for step in STEPS[:-4]) < runner.TOTAL_SECONDS * 1.25


def values(*numbers: float, dtype: str = "float32") -> np.ndarray:
    return np.array(numbers, dtype)


@pytest.mark.parametrize(
    ("found", "expected", "kind"),
    [
        (values(1, np.nan), values(1, np.nan), "exact"),
        (values(0.0), values(-0.0), "exact"),
        (values(1, np.nextafter(np.float32(2), np.float32(3))), values(1, 2), "1 ulp"),
        (values(1.00001), values(1), "within"),
        (values(1.001), values(1), "WRONG"),
        (values(np.nan), values(1), "WRONG"),
        (values(np.inf), values(1), "WRONG"),
        (values(-np.inf), values(np.inf), "WRONG"),
        (values(-1e300, dtype="float64"), values(1e300, dtype="float64"), "WRONG"),
        (values(1, 2, dtype="int32"), values(1, 3, dtype="int32"), "WRONG"),
        (values(1), values(1, 2), "WRONG"),
        (values(), values(), "exact"),
    ],
)
def test_differences_have_classes(found: np.ndarray, expected: np.ndarray, kind: str) -> None:
    assert compare(found, expected).kind == kind


def test_what_compute_sanitizer_finds_is_wrong() -> None:
    clean = sanitizer._outcome("memcheck", "========= ERROR SUMMARY: 0 errors\n", {"wrong": [], "line": "11 families"})
    assert not clean.wrong
    found = "========= Invalid __global__ write of size 4\n========= ERROR SUMMARY: 1 error\n"
    assert "Invalid __global__ write" in " ".join(sanitizer._outcome("memcheck", found, {"wrong": []}).wrong)
    races = "========= RACECHECK SUMMARY: 3 hazards displayed (2 errors, 1 warning)\n"
    assert sanitizer._outcome("racecheck", races, {"wrong": []}).wrong
    assert sanitizer._outcome("racecheck", "", {"wrong": []}).wrong
