"""One exported file per program of the corpus serves every input: in Python, and in programs of C, C++ and Java."""

from __future__ import annotations

import pathlib
import warnings
from typing import Any

import hybridnet as mx
import pytest
from control_flow import c_model
from deploy.conftest import jar  # noqa: F401  # a fixture: skips where no JDK was there when the library was built
from deploy.java_programs import java
from hybridnet.gluon import SymbolBlock

from . import native_programs
from .corpus import PROGRAMS
from .corpus_support import Program, flat
from .test_corpus import assert_same, results


class Case:
    """An exported program, with the inputs that its file serves and the results of imperative mode."""

    def __init__(self, program: Program, folder: pathlib.Path) -> None:
        self.program = program
        self.path = folder / program.name
        with program.interface():
            block = program.block()
            block.hybridize(strict=True)
            block(*program.arrays(program.inputs[0]))
            with warnings.catch_warnings(record=True) as self.warnings:
                warnings.simplefilter("always")
                self.files = block.export(str(self.path))
            expected = results(program, program.block())
        shapes = [[value.shape for value in values] for values in program.inputs]
        self.serves = [i for i, shape in enumerate(shapes) if shape == shapes[0] or not program.per_length]
        self.expected = {i: flat(expected[i]) for i in self.serves}

    def inputs(self, i: int) -> dict[str, Any]:
        return dict(zip(self.program.names(), self.program.inputs[i], strict=True))


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    folder = tmp_path_factory.mktemp("corpus")
    return {program.name: Case(program, folder) for program in PROGRAMS}


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_a_file_that_fits_one_length_is_announced(program: Program, cases: dict[str, Case]) -> None:
    said = [str(warning.message) for warning in cases[program.name].warnings]
    assert bool(said) == bool(program.per_length), said


def write_cases(cases: dict[str, Case], folder: pathlib.Path) -> pathlib.Path:
    """Writes the inputs of all cases and the list for native_programs."""
    lines = []
    for name, case in cases.items():
        for i in case.serves:
            inputs, outputs = folder / f"{name}-{i}-in.params", folder / f"{name}-{i}-out.params"
            mx.nd.save(str(inputs), {n: mx.nd.array(v, dtype=v.dtype) for n, v in case.inputs(i).items()})
            lines.append(f"{case.path} {inputs} {outputs}\n")
    (folder / "cases.txt").write_text("".join(lines), "utf-8")
    return folder / "cases.txt"


def check_results(cases: dict[str, Case], folder: pathlib.Path) -> None:
    for name, case in cases.items():
        for i in case.serves:
            with mx.util.np_shape(True):
                found = mx.nd.load(str(folder / f"{name}-{i}-out.params"))
            assert_same([found[str(k)] for k in range(len(found))], case.expected[i], case.program)


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_imported(program: Program, cases: dict[str, Case]) -> None:
    case = cases[program.name]
    with program.interface():
        block = SymbolBlock.imports(case.files[0], program.names(), case.files[1])
        for i in case.serves:
            assert_same(block(*program.arrays(program.inputs[i])), case.expected[i], program)


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_through_the_functions_of_c(program: Program, cases: dict[str, Case]) -> None:
    case = cases[program.name]
    for i in case.serves:
        assert_same(c_model.run(*case.files, case.inputs(i)), case.expected[i], program)


@pytest.mark.skipif(native_programs.compiler() is None, reason="there is no C++ compiler")
def test_in_a_program_of_cpp(cases: dict[str, Case], tmp_path: pathlib.Path) -> None:
    done, said = native_programs.run_in_cpp(write_cases(cases, tmp_path), tmp_path)
    assert done, said
    check_results(cases, tmp_path)


def test_in_a_program_of_java(cases: dict[str, Case], jar: pathlib.Path, tmp_path: pathlib.Path) -> None:  # noqa: F811
    (tmp_path / "RunCases.java").write_text(native_programs.JAVA, "utf-8")
    java(jar, tmp_path / "RunCases.java", write_cases(cases, tmp_path))
    check_results(cases, tmp_path)
