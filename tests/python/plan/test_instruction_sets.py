"""Instruction sets: HYBRIDNET_MAX_ISA caps them, and results agree within rounding (docs/numerics.md)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import nd
from networks import NETWORKS, make
from rounding import assert_all_close
from test_numerics import assert_same_bits, predict, train

ISA_WORDS = ("sse4", "avx2", "avx512", "avx512_bf16", "amx")


def results_of_networks() -> list[np.ndarray]:
    """Returns the results that each process of test_instruction_sets_agree_within_rounding computes."""
    found = []
    for name in NETWORKS:
        for run in (predict, train):
            net, x = make(name, 1)
            net.hybridize()
            found += run(net, x)
    return found


def draws() -> list[np.ndarray]:
    mx.random.seed(7)
    return [
        nd.random.uniform(shape=(5000,)).asnumpy(),
        nd.random.randint(0, 1000, shape=(5000,)).asnumpy(),
        nd.random.shuffle(nd.arange(1000)).asnumpy(),
    ]


def run_capped(word: str, folder: Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Returns results and draws of a process with HYBRIDNET_MAX_ISA=word."""
    file = folder / f"{word}.npz"
    code = f"""
import hybridnet as mx, numpy as np, test_instruction_sets
assert mx.runtime.isa().split()[0] == {word!r}, mx.runtime.isa()
results, draws = test_instruction_sets.results_of_networks(), test_instruction_sets.draws()
np.savez({str(file)!r}, *results, *draws)
"""
    path = os.pathsep.join(p for p in sys.path if p)
    env = {**os.environ, "HYBRIDNET_MAX_ISA": word, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    arrays = list(np.load(file).values())
    return arrays[:-3], arrays[-3:]


@pytest.mark.parametrize("word", ISA_WORDS[: ISA_WORDS.index(mx.runtime.isa().split()[0])])
def test_instruction_sets_agree_within_rounding(word: str, tmp_path: Path) -> None:
    results, drawn = run_capped(word, tmp_path)
    assert_all_close(results, results_of_networks())
    assert_same_bits(drawn, draws())


def test_an_unknown_word_is_an_error_that_names_the_choices() -> None:
    env = {**os.environ, "HYBRIDNET_MAX_ISA": "avx3", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-c", "import hybridnet"], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "HYBRIDNET_MAX_ISA: expected sse4 | avx2 | avx512 | avx512_bf16 | amx, got 'avx3'" in done.stderr
