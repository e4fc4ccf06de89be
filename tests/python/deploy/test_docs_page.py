"""The programs of docs/deploy-cpp.md compile and run in the folder into which its Python code exports."""

from __future__ import annotations

import re

import pytest

from .client_programs import ROOT, compile_program, run

PAGE = (ROOT / "docs" / "deploy-cpp.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```(cpp|c)\n(.*?)```", PAGE, re.DOTALL)
EXPECTED = [
    r"input data\n(\S+\n){6}",
    r"\S+\n",
    r"5\n",
    r"(\S+\n){5}",
    r"\d+ scores\n",
    r"(?s)operator 'FullyConnected'.*Fix: .*",
    r"\S+ \S+ \S+\n",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("deploy")
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile(block, "deploy-cpp.md", "exec"), {"__name__": "deploy-cpp.md"})
    return folder


def test_every_program_of_the_page_has_its_output_here():
    assert len(PROGRAMS) == len(EXPECTED)


@pytest.mark.parametrize("number", range(len(EXPECTED)))
def test_programs_of_the_page_run(number: int, folder, monkeypatch) -> None:
    language, text = PROGRAMS[number]
    source = folder / f"program{number}.{'cc' if language == 'cpp' else 'c'}"
    source.write_text(text)
    monkeypatch.chdir(folder)
    printed = run(compile_program(source, folder / f"program{number}"))
    assert re.fullmatch(EXPECTED[number], printed), printed
