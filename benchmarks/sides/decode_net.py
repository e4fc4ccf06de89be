"""The decoder that the sides of decode.py run: GPT-2-small with random weights, the same for every side."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

LAYERS, UNITS, HEADS, WORDS, POSITIONS = 12, 768, 12, 50257, 4352
SIZE = UNITS // HEADS
PROMPT, TOKENS = 16, 128
# Name of a case: the batch, and the rows of the cache. A decoder that reads all rows becomes slower with more of them.
# bfloat16: products of 16 bits. int8: weights of bytes. dynamic: data that is rounded to bytes, too; sides with one of
# the last two run it for both.
DTYPES = ("float32", "bfloat16", "int8", "dynamic")
GREEDY = [f"{dtype} {batch} x {rows}" for dtype in DTYPES for batch in (1, 8) for rows in (144, 1024, 4096)]
# Beam search: one sequence, the best BEAMS of whose continuations are kept.
BEAMS = 4
BEAM_CASES = [f"{dtype} beams {BEAMS} x {rows}" for dtype in ("float32", "dynamic") for rows in (144, 1024)]
CASES = GREEDY + BEAM_CASES
NEVER = -1e9  # the logarithm of the chance of beams that do not exist yet


def parts(case: str) -> tuple[str, int, int]:
    """The type, the number of sequences or beams, and the rows of the caches."""
    fields = case.split()
    return fields[0], int(fields[-3]), int(fields[-1])


def weights() -> dict[str, np.ndarray]:
    """Arrays by name, of shape (outputs, inputs) as in Dense; GPT-2's initial distribution, but wider, so that the
    largest of the scores of the next words is clear."""
    rng = np.random.default_rng(0)

    def matrix(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype="float32") * np.float32(0.05)

    made = {"words": matrix(WORDS, UNITS), "positions": matrix(POSITIONS, UNITS)}
    for i in range(LAYERS):
        for name, shape in {
            "qkv": (3 * UNITS, UNITS),
            "projection": (UNITS, UNITS),
            "inner": (4 * UNITS, UNITS),
            "outer": (UNITS, 4 * UNITS),
        }.items():
            made[f"{i}.{name}"] = matrix(*shape)
            made[f"{i}.{name}.bias"] = matrix(shape[0])
        for name in ("before", "between"):
            made[f"{i}.{name}.scale"] = 1 + matrix(UNITS)
            made[f"{i}.{name}.shift"] = matrix(UNITS)
    made["last.scale"] = 1 + matrix(UNITS)
    made["last.shift"] = matrix(UNITS)
    return made


def prompt(batch: int) -> np.ndarray:
    """(batch, PROMPT): the first words of each sequence."""
    return np.random.default_rng(1).integers(0, WORDS, (batch, PROMPT)).astype("int64")


def best_beam(words: np.ndarray, parents: np.ndarray) -> np.ndarray:
    """(1, TOKENS): the words of the first beam. words and parents: (TOKENS, BEAMS), a row for each step."""
    beam, found = 0, []
    for step in range(len(words) - 1, -1, -1):
        found.append(words[step, beam])
        beam = parents[step, beam]
    return np.array(found[::-1])[None]


def keep_words(side: str, case: str, words: np.ndarray) -> None:
    """Stores the (batch, TOKENS) chosen words for the comparison of the sides."""
    np.save(Path(os.environ["DECODE_WORDS"]) / f"{side} {case}.npy", words)
