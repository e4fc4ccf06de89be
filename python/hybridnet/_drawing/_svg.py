"""Small pictures as SVG text, without a drawing library."""

from __future__ import annotations

import os
from xml.sax.saxutils import escape, quoteattr

from ..errors import FileError
from ..errors import ValueError as HybridNetValueError

__all__ = ["Drawing", "Picture", "color_of"]

_FONT = "font-family='sans-serif' font-size='11'"
_CHARACTER = 6.2  # mean width of a character of that font, in pixels


class Picture:
    """An SVG picture: notebooks show it, save() writes it, ``str()`` is its text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Picture: {len(self._text):,} characters of SVG; save('picture.svg') writes it>"

    def _repr_svg_(self) -> str:
        return self._text

    def save(self, filename: str | os.PathLike[str]) -> str:
        """Writes the picture, which browsers open. Returns the name of the file.

        Raises ValueError if the name does not end in .svg, FileError if the file cannot be written.
        """
        name = os.fspath(filename)
        if not name.lower().endswith(".svg"):
            raise HybridNetValueError("Picture.save", expected="a name that ends in .svg", given=repr(name))
        try:
            with open(name, "w", encoding="utf-8") as file:
                file.write(self._text)
        except OSError as problem:
            raise FileError(f"Picture.save: {name!r} cannot be written", because=f"{problem}") from problem
        return name


class Drawing:
    """Collects shapes. Coordinates are pixels; y grows downwards."""

    def __init__(self, width: float) -> None:
        self._width, self._height = width, 0.0
        self._parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, fill: str, label: str = "", tip: str = "") -> None:
        """Adds a rectangle with a text inside, if it fits, and a text for the pointer."""
        self._height = max(self._height, y + height)
        shape = (
            f"<rect x='{x:.2f}' y='{y:.2f}' width='{max(width, 0.3):.2f}' height='{height:.2f}' fill='{fill}' "
            "stroke='white' stroke-width='0.5'/>"
        )
        room = int((width - 6) / _CHARACTER)
        text = ""
        if label and room >= 3 and height >= 11:
            shown = label if len(label) <= room else f"{label[: room - 1]}…"
            text = f"<text x='{x + 3:.2f}' y='{y + height / 2 + 4:.2f}'>{escape(shown)}</text>"
        self._parts.append(f"<g><title>{escape(tip or label)}</title>{shape}{text}</g>")

    def text(self, x: float, y: float, content: str, anchor: str = "start") -> None:
        """Adds a line of text; y is that of its baseline, anchor 'start', 'middle' or 'end'."""
        self._height = max(self._height, y + 4)
        self._parts.append(f"<text x='{x:.2f}' y='{y:.2f}' text-anchor={quoteattr(anchor)}>{escape(content)}</text>")

    def line(self, points: list[tuple[float, float]], stroke: str = "#444", width: float = 1) -> None:
        """Adds lines from point to point."""
        self._height = max([self._height, *(y for _, y in points)])
        path = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
        self._parts.append(f"<polyline points='{path}' fill='none' stroke='{stroke}' stroke-width='{width}'/>")

    def picture(self) -> Picture:
        """Returns the picture."""
        size = f"width='{self._width:.0f}' height='{self._height + 6:.0f}'"
        view = f"viewBox='0 0 {self._width:.0f} {self._height + 6:.0f}'"
        head = f"<svg xmlns='http://www.w3.org/2000/svg' {size} {view} {_FONT}>"
        ground = "<rect width='100%' height='100%' fill='white'/>"
        return Picture("\n".join([head, ground, *self._parts, "</svg>", ""]))


def color_of(name: str, first_hue: int = 0, hues: int = 360) -> str:
    """Returns a light color that is the same for equal names."""
    number = 0
    for character in name:
        number = (number * 31 + ord(character)) & 0xFFFFFF
    return f"hsl({first_hue + number % hues},{55 + number // 7 % 25}%,{68 + number // 11 % 12}%)"
