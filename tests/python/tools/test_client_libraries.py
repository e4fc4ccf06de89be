"""tools/client_libraries.py reports the stage that each model reached. The libraries themselves are not needed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "client_libraries.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("client_libraries", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Model:
    """A model that returns given outputs in turn, and whose training may fail."""

    def __init__(self, *outputs, training_fails=False):
        self.outputs = list(outputs)
        self.training_fails = training_fails

    def forward(self):
        return [np.array(self.outputs.pop(0), "float32")]

    def hybridize(self):
        pass

    def train(self):
        if self.training_fails:
            raise FloatingPointError("a gradient")


def stages(tool, capsys, make):
    tool._run_model(make)
    facts = list(tool._lines(capsys.readouterr().out))
    reached = [fact["stage"] for fact in facts if not fact.get("problem")]
    return reached, [fact["problem"] for fact in facts if fact.get("problem")]


def test_a_model_that_works_reaches_every_stage(tool, capsys):
    assert stages(tool, capsys, lambda: Model([1, 2], [1, 2.0001])) == (list(tool.STAGES), [])


def test_a_difference_of_the_graph_is_reported_and_training_continues(tool, capsys):
    reached, problems = stages(tool, capsys, lambda: Model([1, 2], [1, 2.1]))
    assert reached == ["constructed", "forward", "hybridized", "trained"]
    assert problems == ["output 0: differs by 0.1, its largest value is 2"]


@pytest.mark.parametrize(("second", "problem"), [([1.0, np.nan], "not finite"), ([1.0], "shapes differ")])
def test_results_that_cannot_be_compared_differ(tool, capsys, second, problem):
    _, problems = stages(tool, capsys, lambda: Model([1, 2], second))
    assert problem in problems[0]


def test_the_stage_that_fails_is_named(tool, capsys):
    reached, problems = stages(tool, capsys, lambda: Model([1], [1], training_fails=True))
    assert reached == ["constructed", "forward", "hybridized", "equal"]
    assert problems == ["FloatingPointError: a gradient"]


def test_a_library_is_run_model_by_model_in_processes_of_their_own(tmp_path):
    """The library is a fake d2l with a module that can be imported, one that cannot, and no models."""
    package = tmp_path / "d2l"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "mxnet.py").write_text("import mxnet\nassert mxnet.__version__ == '1.9.1'\n")
    (package / "torch.py").write_text("import no_such_module\n")
    out = tmp_path / "result.json"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    words = [sys.executable, str(TOOL), "--library", "d2l", "--out", str(out)]
    ran = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert "| d2l | 1 of 2 | 0 |" in ran.stdout
    result = json.loads(out.read_text())
    assert [module["module"] for module in result["modules"]] == ["d2l.mxnet", "d2l.torch"]
    assert "no_such_module" in result["modules"][1]["problem"]
