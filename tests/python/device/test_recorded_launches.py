"""Launches of samples, repeated by the PTX that NVRTC makes of their kernels: ptx_sweep.py for a few operators."""

from __future__ import annotations

import pathlib

import ptx_sweep
import pytest
from ptx import PtxProgram, nvrtc, unavailable
from recorded import Apart, launches_of, repeat
from stand_in import LIBRARY, MISSING

pytestmark = [
    pytest.mark.skipif(not LIBRARY.exists(), reason=MISSING),
    pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "-"),
]
needs_nvrtc = pytest.mark.skipif(bool(nvrtc.available()), reason=nvrtc.available() or "NVRTC is there")
OPERATORS = ("erf", "pick", "softmin")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("launches")


@pytest.fixture(scope="module")
def measured(folder: pathlib.Path) -> dict[str, dict]:
    return {each["name"]: each for each in ptx_sweep.record(OPERATORS, folder)}


def test_samples_are_measured_with_their_kernels(measured: dict[str, dict]) -> None:
    assert set(measured) == set(OPERATORS)
    for one in measured.values():
        assert set(one["differences"]) == {"float32", "float64"}
        assert one["texts"]
    assert {pair[0]["kind"] for pair in measured["pick"]["differences"].values()} == {"exact"}


@needs_nvrtc
def test_ptx_repeats_launches_with_the_same_bits(measured: dict[str, dict], folder: pathlib.Path) -> None:
    launches = ptx_sweep.recorded_launches(folder)
    assert set(launches) >= {text for one in measured.values() for text in one["texts"]}
    found = list(ptx_sweep.compare_all(launches, ("sm_90",)))
    assert [fault for each in found for fault in each.faults] == []
    differing = [each.text for each in found if each.values["sm_90"]]
    assert len(differing) == 1
    assert "Map<Erf, double" in differing[0]  # CUDA's library has other last bits than the C library
    assert ptx_sweep.summary(found)[0].startswith(f"{len(launches)} texts")


NOTHING = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry {name}(.param .align 8 .b8 a[{bytes}]) {{ ret; }}
"""


def test_a_kernel_that_writes_nothing_differs(measured: dict[str, dict], folder: pathlib.Path) -> None:
    launch = next(launch for file in folder.glob("*.launches") for launch in launches_of(file))
    program = PtxProgram(NOTHING.format(name=launch.entry, bytes=len(launch.arguments)))
    assert repeat(launch, program, launch.entry) > Apart()
