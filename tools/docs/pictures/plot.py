"""Figures of the gallery: one size, one set of colors, SVG files with text that browsers can search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLORS = ["#3f51b5", "#e65100", "#00897b", "#8e24aa", "#c0a000", "#546e7a"]
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "hybridnet",  # the same picture gives the same file
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.prop_cycle": matplotlib.cycler(color=COLORS),
}


@contextmanager
def figure(path: Path, columns: int = 1, rows: int = 1, size: tuple[float, float] = (4.2, 3.1)) -> Iterator[Any]:
    """Gives the axes, in rows and columns, and saves the figure; each of the axes has this size in inches."""
    with plt.rc_context(STYLE):
        shape = (size[0] * columns, size[1] * rows)
        drawing, axes = plt.subplots(rows, columns, figsize=shape, layout="constrained")
        yield axes
        drawing.savefig(path, dpi=110, metadata={"Date": None})
        plt.close(drawing)
