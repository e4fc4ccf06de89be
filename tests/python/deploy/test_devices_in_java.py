"""A program in Java runs and trains an exported model on gpu(0), with the tests' driver in place of CUDA's."""

from __future__ import annotations

import pathlib

import pytest
from device.exported import export_loop
from device.stand_in import ENVIRONMENT, LIBRARY, MISSING

from .java_programs import ROOT, java


@pytest.mark.skipif(not LIBRARY.exists(), reason=MISSING)
def test_java_on_a_gpu_computes_like_the_cpu(jar: pathlib.Path, tmp_path: pathlib.Path, monkeypatch) -> None:
    prefix, case = export_loop(tmp_path)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    assert java(jar, ROOT / "java/src/test/clients/OnGpu.java", prefix, case) == "done\n"
