"""Every kernel that the samples of the registry use: NVRTC compiles it, and to which instructions."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest
from kernel_texts import Facts, facts_of, family
from ptx import nvrtc
from stand_in import ENVIRONMENT, LIBRARY, MISSING

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),  # the first run compiles hundreds of kernels
    pytest.mark.skipif(not LIBRARY.exists(), reason=MISSING),
    pytest.mark.skipif(bool(nvrtc.available()), reason=nvrtc.available() or "NVRTC is there"),
]
KERNELS_OF_A_MODULE = 24
# Families of kernels that call functions of NVIDIA's library with estimates in them (docs/gpu.md, "Numbers").
WITH_ESTIMATES = {
    "boxes": "exp of float32",
    "draw": "log of float64",
    "matrices": "log",
    "pooling": "pow",
    "random": "log and cos",
    "values": "fmod, which corrects its estimates",
    "windows": "pow of float32",
}
# Bytes of registers that are saved around calls, such as the division of 64-bit integers, outside of the loops.
MOST_SPILLED = {"reduce": 160, "image": 64, "draw": 48, "sequences": 40, "layer_norm": 24}
MOST_SPILLED_ELSEWHERE = 16


@pytest.fixture(scope="module")
def texts() -> dict[str, list[str]]:
    """The texts of each family."""
    done = subprocess.run(
        [sys.executable, str(pathlib.Path(__file__).parent / "on_stand_in" / "used_kernel_texts.py")],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, list[str]] = {}
    for text in sorted(json.loads(done.stdout)):
        found.setdefault(family(text), []).append(text)
    return found


def described(fact: Facts) -> str:
    return f"{fact.name}, {fact.spilled} bytes spilled, of:\n{fact.text}"


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_kernels_compile_without_spills_and_to_ieee_instructions(
    architecture: str, texts: dict[str, list[str]]
) -> None:
    assert len(texts) >= 30
    for name, members in texts.items():
        if name == "map":  # those of test_kernel_texts
            continue
        # A part for the other architecture, and of reductions, which take seconds each.
        chosen = members if architecture == "sm_80" and name != "reduce" else members[::4]
        for first in range(0, len(chosen), KERNELS_OF_A_MODULE):
            for fact in facts_of(chosen[first : first + KERNELS_OF_A_MODULE], architecture):
                assert fact.spilled <= MOST_SPILLED.get(name, MOST_SPILLED_ELSEWHERE), described(fact)
                assert not fact.estimates or name in WITH_ESTIMATES, described(fact)
