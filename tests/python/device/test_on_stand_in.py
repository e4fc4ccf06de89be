"""Everything runs on gpu(0) without a GPU: the files of on_stand_in/ run in processes that use the tests' driver."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
from stand_in import ENVIRONMENT, LIBRARY, MISSING

FOLDER = pathlib.Path(__file__).parent / "on_stand_in"
SETTINGS = {"check_compared.py": {"HYBRIDNET_CUDA_CHECK": "1"}}


@pytest.mark.skipif(not LIBRARY.exists(), reason=MISSING)
@pytest.mark.timeout(1200)  # the first run compiles hundreds of kernels
@pytest.mark.parametrize("file", sorted(path.name for path in FOLDER.glob("check_*.py")))
def test_gpu_computes_like_the_cpu(file: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", str(FOLDER / file)],
        env={**os.environ, **ENVIRONMENT, **SETTINGS.get(file, {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
