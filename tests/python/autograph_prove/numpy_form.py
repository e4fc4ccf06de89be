"""Rewrites a random program for the interface of NumPy: numbers of shape (), mx.np and mx.npx."""

from __future__ import annotations

import re

__all__ = ["is_numpy", "numpy_form"]

_CALLS = (
    (r"nd\.broadcast_to\((\w+)\.reshape\(\(-1, 1\)\), shape=\(0, 3\)\)", r"np.tile(\1.reshape((-1, 1)), (1, 3))"),
    (r"nd\.(stack|concat)\(\*", r"np.\1("),
    (r"np\.concat\((\[.*?\]|\w+), dim=0\)", r"np.concatenate([part.reshape((-1,)) for part in \1], axis=0)"),
    (r"nd\.add_n\(\*(\w+)\)", r"sum(\1)"),
    (r"nd\.(relu|sigmoid)", r"npx.\1"),
    (r"nd\.(zeros|ones)\(\(1,\)", r"np.\1(()"),
    (r"\bnd\.", "np."),
    (r"\.asscalar\(\)", ".item()"),
    (r"from hybridnet import gluon, nd", "from hybridnet import gluon, np, npx"),
)


def numpy_form(source: str) -> str:
    """Returns the program; numbers that the graph computes and rows of vectors have shape () in it."""
    for pattern, text in _CALLS:
        source = re.sub(pattern, text, source)
    return source


def is_numpy(source: str) -> bool:
    """Whether a program uses the interface of NumPy."""
    return "import gluon, np, npx" in source
