"""A program in C++ or Java may end while work is queued: nothing that this work uses is destroyed before it is done."""

from __future__ import annotations

import pathlib

import pytest

from .client_programs import ROOT, compile_program, run
from .java_programs import java

REPEATED = 4  # whether work is queued when the process ends depends on timing


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return compile_program(ROOT / "tests/cpp/clients/exit_early.cc", tmp_path_factory.mktemp("client") / "exit_early")


@pytest.mark.parametrize("way", ["return", "exit", "thread", "shutdown"])
def test_a_cpp_program_ends_well_with_queued_work(program: pathlib.Path, way: str) -> None:
    for _ in range(REPEATED):
        assert run(program, [way], timeout=60) == "queued\n"


@pytest.mark.parametrize("way", ["return", "exit", "halt"])
def test_a_java_program_ends_well_with_queued_work(jar: pathlib.Path, way: str) -> None:
    for _ in range(REPEATED):
        assert java(jar, ROOT / "java/src/test/clients/ExitEarly.java", way) == "queued\n"
