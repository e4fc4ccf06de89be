"""Programs in C++ on gpu(0): they are compiled like a user's, and run with the tests' driver in place of CUDA's."""

from __future__ import annotations

import os
import subprocess

import hybridnet as mx
import nets
import pytest
from deploy.client_programs import ROOT, compile_program
from exported import export_case, export_loop
from stand_in import ENVIRONMENT, LIBRARY, MISSING

CHECKS = ("arrays", "errors", "gradients", "model", "moves", "session", "copies", "batcher", "train", "memory")

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason=MISSING)


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> str:
    return str(compile_program(ROOT / "tests/cpp/clients/on_gpu.cc", tmp_path_factory.mktemp("on_gpu") / "on_gpu"))


def _command(program: str, prefix: str, case: str) -> list[str]:
    """The program and the files that it checks."""
    return [program, f"{prefix}-symbol.json", f"{prefix}-0000.params", case]


@pytest.fixture(scope="module")
def command(program, tmp_path_factory) -> list[str]:
    return _command(program, *export_loop(tmp_path_factory.mktemp("loop")))


def _run(command: list[str], check: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, check],
        env={**os.environ, **ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("order", ["0", "7"])
def test_cpp_on_a_gpu_computes_like_the_cpu_and_names_what_it_refuses(command, check: str, order: str) -> None:
    done = _run(command, check, HNSTANDIN_SEED=order)
    assert (done.returncode, done.stdout) == (0, f"{check}\n"), done.stderr
    assert "hnstandin:" not in done.stderr  # the driver reports races and wrong accesses there


@pytest.mark.parametrize("name", nets.CASES)
def test_exported_nets_run_in_cpp_with_and_without_cuda_graphs(program, name: str, tmp_path) -> None:
    net, runs = nets.CASES[name]()
    files = _command(program, *export_case(net, [mx.nd.array(x) for x in runs[0]], tmp_path / name))
    for graphs in ("0", "1"):
        done = _run(files, "outputs", HYBRIDNET_CUDA_GRAPHS=graphs)
        assert (done.returncode, done.stdout) == (0, "outputs\n"), done.stderr
        assert "hnstandin:" not in done.stderr


def test_without_a_gpu_the_error_says_why(command) -> None:
    done = _run(command, "arrays", HYBRIDNET_CUDA_DRIVER="/nowhere/libcuda.so")
    assert done.returncode == 1
    assert "there is a GPU" in done.stderr
    done = _run(command, "model", HYBRIDNET_CUDA_DRIVER="/nowhere/libcuda.so")
    assert done.returncode == 1
    assert "gpu(0)" in done.stderr
    assert "/nowhere/libcuda.so" in done.stderr
