"""The decoder that the sides of decode.py run: GPT-2-small with random weights, the same for every side."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

LAYERS, UNITS, HEADS, WORDS, POSITIONS = 12, 768, 12, 50257, 4352
SIZE = UNITS // HEADS
PROMPT, TOKENS = 16, 128
# Name of a case: the batch, and the rows of the cache. A decoder that reads all rows becomes slower with more of them.
CASES = [f"{dtype} {batch} x {rows}" for dtype in ("float32", "int8") for batch in (1, 8) for rows in (144, 1024, 4096)]


def parts(case: str) -> tuple[str, int, int]:
    dtype, batch, _, rows = case.split()
    return dtype, int(batch), int(rows)


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


def keep_words(side: str, case: str, words: np.ndarray) -> None:
    """Stores the (batch, TOKENS) chosen words for the comparison of the sides."""
    np.save(Path(os.environ["DECODE_WORDS"]) / f"{side} {case}.npy", words)
