"""``--ctx``: the device of the commands run, bench, verify and serve."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet._command_line import WRONG_INPUT, main
from hybridnet.gluon import nn

STAND_IN = pathlib.Path(mx.__file__).parent / "libhnstandin.so"
needs_stand_in = pytest.mark.skipif(not STAND_IN.exists(), reason="libhnstandin.so is built with the C++ tests")


@pytest.fixture
def model(tmp_path: pathlib.Path) -> str:
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="relu", in_units=3), nn.BatchNorm(in_channels=4), nn.Dense(2, in_units=4))
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((2, 3)))
    net.export(str(tmp_path / "m"))
    np.save(tmp_path / "x.npy", np.arange(6, dtype="float32").reshape(2, 3))
    return str(tmp_path / "m")


def _on_gpu(*words: object) -> Any:
    """The JSON that a command prints with the tests' driver in place of CUDA's."""
    done = subprocess.run(
        [sys.executable, "-m", "hybridnet", *map(str, words), "--json"],
        env={**os.environ, "HYBRIDNET_CUDA_DRIVER": "stand-in", "HYBRIDNET_GPU_FALLBACK": "ignore"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hnstandin:" not in done.stderr
    return json.loads(done.stdout)


@needs_stand_in
def test_info_names_the_libraries_that_gpus_need() -> None:
    facts = _on_gpu("info")
    assert facts["GPUs"] == ["stand-in (sm_90)"]
    assert facts["GPU libraries"]["driver"].startswith("CUDA ")
    version, _, file = facts["GPU libraries"]["NVRTC"].partition(", ")
    assert version and file.endswith("libhnstandin.so")
    assert "CuPy" in facts["GPU libraries"]


@pytest.mark.parametrize("text", ["tpu", "gpu:", "gpu:x", "gpu:-1", "cpu:1", "gpu(0)", ""])
def test_text_that_names_no_device_is_refused(capsys, model: str, text: str) -> None:
    assert main(["bench", model, f"--ctx={text}"]) == WRONG_INPUT
    assert f"--ctx {text!r}: expected cpu, gpu or gpu:N" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "bench", "verify", "serve"])
def test_without_a_gpu_the_error_gives_the_reason(capsys, monkeypatch, model: str, command: str) -> None:
    monkeypatch.setattr("hybridnet._command_line._devices.num_gpus", lambda: 0)
    monkeypatch.setattr("hybridnet._command_line._devices.why_no_gpu", lambda: "the driver is missing")
    pytest.importorskip("uvicorn")
    assert main([command, model, "--ctx", "gpu"]) == WRONG_INPUT
    said = capsys.readouterr().err
    assert "--ctx gpu: there is no GPU" in said
    assert "Because: the driver is missing" in said


def test_a_number_beyond_the_gpus_is_refused(capsys, monkeypatch, model: str) -> None:
    monkeypatch.setattr("hybridnet._command_line._devices.num_gpus", lambda: 2)
    assert main(["bench", model, "--ctx", "gpu:2"]) == WRONG_INPUT
    assert "expected one of 2 GPUs, got gpu(2)" in capsys.readouterr().err


@needs_stand_in
def test_run_gives_the_outputs_of_the_cpu(model: str) -> None:
    words = ("run", model, "--input", model[:-1] + "x.npy")
    (gpu,), (cpu,) = _on_gpu(*words, "--ctx", "gpu").values(), _on_gpu(*words).values()
    np.testing.assert_allclose(gpu["values"], cpu["values"], rtol=1e-5, atol=1e-6)


@needs_stand_in
def test_verify_compares_every_way_with_the_cpu(model: str) -> None:
    facts = _on_gpu("verify", model, "--ctx", "gpu:0")
    assert facts["device"] == "gpu(0)"
    assert facts["problems"] == []
    assert list(facts["ways"])[:2] == ["imperative, on the CPU", "imperative"]
    assert facts["ways"]["imperative, on the CPU"] == "runs"


@needs_stand_in
def test_bench_measures_the_memory_of_the_gpu(model: str) -> None:
    facts = _on_gpu("bench", model, "--ctx", "gpu", "--seconds", "0.3", "--threads", "2")
    assert facts["device"] == "gpu(0)"
    assert facts["calls"] > 0
    assert facts["memory on the device bytes"] > 0


@needs_stand_in
def test_serve_answers_from_the_gpu(model: str) -> None:
    program = (
        "import argparse, json, numpy as np\n"
        "from hybridnet._command_line import _serve\n"
        "parser = argparse.ArgumentParser()\n"
        "_serve.add_arguments(parser)\n"
        f"app = _serve.make_app(parser.parse_args([{model!r}, '--ctx', 'gpu']))\n"
        "print(json.dumps(app._call([np.ones((2, 3), 'float32')])[0].tolist()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "HYBRIDNET_CUDA_DRIVER": "stand-in", "HYBRIDNET_GPU_FALLBACK": "ignore"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    block = mx.gluon.SymbolBlock.imports(f"{model}-symbol.json", ["data"], f"{model}-0000.params")
    np.testing.assert_allclose(json.loads(done.stdout), block(mx.nd.ones((2, 3))).asnumpy(), rtol=1e-5, atol=1e-6)
