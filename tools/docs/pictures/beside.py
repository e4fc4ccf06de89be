"""Several SVG drawings beside each other in one file, each under its title: graphs before and after a rewrite."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

GAP, TITLE = 24, 26  # points between drawings, and above them


def size_of(drawing: str) -> tuple[float, float]:
    """Returns width and height of a drawing by Graphviz, in points."""
    width, height = (float(re.search(rf'<svg [^>]*{side}="([\d.]+)pt"', drawing)[1]) for side in ("width", "height"))
    return width, height


def draw_beside(path: Path, drawings: Mapping[str, str]) -> None:
    """Writes the drawings (title: SVG text) from left to right; all begin at the top."""
    sizes = [size_of(drawing) for drawing in drawings.values()]
    left, parts = 0.0, []
    for (title, drawing), (width, height) in zip(drawings.items(), sizes, strict=True):
        wide = max(width, 9 * len(title))
        parts.append(
            f'<text x="{left + wide / 2:.1f}" y="17" text-anchor="middle" font-family="sans-serif" font-size="15"'
            f' font-weight="bold">{escape(title)}</text>'
        )
        x = left + (wide - width) / 2
        place = f'<svg x="{x:.1f}" y="{TITLE}" width="{width:g}" height="{height:g}"'
        inner = drawing[drawing.index("<svg") :]
        inner = re.sub(r'<svg width="[^"]*" height="[^"]*"', place, inner, count=1)
        parts.append(re.sub(r' id="[^"]*"', "", inner))  # ids of two drawings are equal
        left += wide + GAP
    width, height = left - GAP, max(height for _, height in sizes) + TITLE
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="{width:.0f}pt"'
        f' height="{height:.0f}pt" viewBox="0 0 {width:.0f} {height:.0f}">'
    )
    path.write_text("\n".join([head, *parts, "</svg>\n"]), encoding="utf-8")
