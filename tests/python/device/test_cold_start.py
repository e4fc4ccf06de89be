"""Kernels are compiled once for all processes: a second one compiles nothing."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from stand_in import ENVIRONMENT, LIBRARY, MISSING

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason=MISSING)
PROGRAM = """
import hybridnet as mx
from hybridnet import autograd, gluon

with mx.gpu(0):
    net = gluon.nn.Dense(3, activation="relu", in_units=4)
    net.initialize(mx.init.One())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    with autograd.record():
        loss = net(mx.nd.arange(8).reshape((2, 4))).mean()
    loss.backward()
    trainer.step(1)
    print(loss.asscalar(), len(mx._core.used_kernel_texts()))
"""


def run(cache: pathlib.Path, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **ENVIRONMENT, "HYBRIDNET_CACHE": str(cache), "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is missing")
def test_a_second_process_compiles_nothing(tmp_path: pathlib.Path) -> None:
    cache, nothing = tmp_path / "cache", tmp_path / "nothing"
    nothing.mkdir()
    first = run(cache, os.environ["PATH"])
    assert first.returncode == 0, first.stderr
    images = {file: file.stat().st_mtime_ns for file in cache.rglob("*") if file.is_file()}
    assert len(images) >= int(first.stdout.split()[1]) >= 4
    second = run(cache, str(nothing))  # there is no compiler
    assert second.stdout == first.stdout, second.stderr
    assert {file: file.stat().st_mtime_ns for file in cache.rglob("*") if file.is_file()} == images
    without = run(tmp_path / "empty", str(nothing))
    assert without.returncode != 0
    assert "cannot be started" in without.stderr
