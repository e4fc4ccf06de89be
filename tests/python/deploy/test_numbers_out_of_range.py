"""Programs in C and C++ get reports of indices and lengths out of range by callback, on stderr or as an error."""

from __future__ import annotations

import os
import pathlib
import subprocess

import hybridnet as mx
import pytest

from .client_programs import ROOT, compile_program

RESULTS = {
    "pick": "0 4 8 11",  # elements 0, 1, 7 and 2 of the rows (0 1 2), (3 4 5), (6 7 8), (9 10 11)
    "SequenceLast": "9 1 11",
    "model": "-9 -1 -11",
}
LENGTH = "input 'sequence_length': expected an integer from 1 to 4, got 9 at position 2"
REPORTS = [
    "operator 'pick', input 'index': expected an integer from 0 to 2, got 7 at position 2",
    f"operator 'SequenceLast', {LENGTH}",
    f"operator 'SequenceLast' (node 'net_last_one'), {LENGTH}",
]


class NegatedLast(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, x, lengths):
        return -F.SequenceLast(x, lengths, use_sequence_length=True, name="last_one")


@pytest.fixture(scope="module", params=["c", "cc"])
def program(request, tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("client")
    return compile_program(ROOT / f"tests/cpp/clients/out_of_range.{request.param}", folder / "out_of_range")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> list[pathlib.Path]:
    net = NegatedLast(prefix="net_")
    net.hybridize()
    net(mx.nd.ones((4, 3)), mx.nd.ones((3,)))
    folder = tmp_path_factory.mktemp("model")
    net.export(str(folder / "net"))
    return [folder / "net-symbol.json", folder / "net-0000.params"]


def run(program: pathlib.Path, log: str, model: list[pathlib.Path], strict: bool) -> tuple[str, str]:
    environment = {**os.environ, "HYBRIDNET_STRICT": "1" if strict else "0"}
    command = [str(word) for word in (program, log, *model)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=True)
    return done.stdout, done.stderr


def results(printed: str) -> list[str]:
    return [line for line in printed.splitlines() if line.partition(":")[0] in RESULTS]


@pytest.mark.parametrize("log", ["callback", "stderr"])
def test_a_number_out_of_range_is_said_once_in_the_log(program, model, log) -> None:
    printed, complaint = run(program, log, model, strict=False)
    assert results(printed) == [f"{name}: {values}" for name, values in RESULTS.items()] * 2
    said, silent = (printed, complaint) if log == "callback" else (complaint, printed)
    for report in REPORTS:
        assert said.count(report) == 1, said
        assert report not in silent
    assert said.count("warning: " if log == "callback" else "hybridnet: ") == len(REPORTS)


@pytest.mark.parametrize("log", ["callback", "stderr"])
def test_strict_makes_it_an_error_of_each_call(program, model, log) -> None:
    printed, complaint = run(program, log, model, strict=True)
    assert not results(printed) and not complaint
    lines = printed.splitlines()
    for name in RESULTS:
        assert sum(line.startswith(f"{name} failed: IndexError: ") for line in lines) == 2, printed
    for report in REPORTS:
        assert printed.count(report) == 2, printed
