"""Pages of the gallery: a program's docstring, its pictures, how to run it, and its source."""

from __future__ import annotations

import ast
import importlib
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import docstrings
from gallery_entries import ENTRIES, Entry
from places import PAGES, ROOT, SOURCES, import_package, write

LANGUAGES = {".py": "python", ".cc": "cpp", ".c": "c", ".java": "java", ".txt": "cmake"}
PICTURES = PAGES / "gallery" / "pictures"
UNLISTED = {"python examples/", "By hand:"}


def draw_pictures(folder: Path) -> None:
    """Runs the scripts of tools/docs/pictures; each writes its files into the folder."""
    import_package()
    folder.mkdir(parents=True, exist_ok=True)
    sys.path[:0] = [str(Path(__file__).parent / "pictures"), str(ROOT / "examples")]
    for name in dict.fromkeys(entry.drawing for entry in ENTRIES if entry.drawing):
        start = time.perf_counter()
        try:
            importlib.import_module(name).draw(folder)
        except ModuleNotFoundError as missing:  # an optional package, or a program of the system such as graphviz
            print(f"no picture {name}: {missing}", file=sys.stderr)
            continue
        print(f"picture {name}: {time.perf_counter() - start:.1f} s", file=sys.stderr)


def drawn_pictures(entry: Entry) -> list[str]:
    return [name for name in entry.pictures if (PICTURES / name).exists()]


def is_wide(drawing: str) -> bool:
    """True for drawings whose text is too small to read if they are scaled to the width of a phone."""
    width = re.search(r"""<svg [^>]*viewBox=["']\S+ \S+ ([\d.]+)""", drawing)
    return width is not None and float(width[1]) > 800


def picture(title: str, name: str) -> str:
    image = f"![{title}](pictures/{name})"
    wide = is_wide((PICTURES / name).read_text(encoding="utf-8"))
    return f'<div class="wide" markdown>\n\n{image}\n\n</div>' if wide else image


def docstring_of(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def title_and_text(entry: Entry) -> tuple[str, str]:
    """The title, and the text below it as Markdown, without the lines that say how to run the program."""
    if entry.title:
        return entry.title, entry.text
    first, _, rest = docstring_of(ROOT / entry.sources[0]).partition("\n")
    title, _, lead = first.rstrip(".").partition(": ")
    lead = f"{lead[:1].upper()}{lead[1:]}.\n\n" if lead else ""
    rest = "\n".join(line for line in rest.splitlines() if not any(word in line for word in UNLISTED))
    return title, docstrings.prose(lead + rest)


def source_block(source: str) -> str:
    path = ROOT / source
    text = path.read_text(encoding="utf-8").rstrip("\n")
    fence = "````" if "```" in text else "```"
    return f"## `{source}`\n\n{fence}{LANGUAGES[path.suffix]}\n{text}\n{fence}"


def guide_links(entry: Entry, start: str) -> str:
    links = []
    for guide in entry.guides:
        path = SOURCES / guide
        if path.exists():
            title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        elif guide.startswith("api/"):
            title = f"mx.{Path(guide).stem.replace('-', '.') if guide.startswith('api/gluon') else Path(guide).stem}"
        else:
            continue
        links.append(f"[{title}]({os.path.relpath(guide, start)})")
    return f"See also: {', '.join(links)}." if links else ""


def page(entry: Entry) -> str:
    title, text = title_and_text(entry)
    parts = [f"# {title}", text]
    parts += [picture(title, name) for name in drawn_pictures(entry)]
    if drawn_pictures(entry) and (drawing := f"tools/docs/pictures/{entry.drawing}.py") not in entry.sources:
        parts.append(f"Drawn by `{drawing}`, which runs code of this program.")
    parts.append(f"```sh\n{entry.command}\n```")
    parts += [guide_links(entry, "gallery"), *map(source_block, entry.sources)]
    return "\n\n".join(part for part in parts if part) + "\n"


def card(entry: Entry) -> str:
    """The entry on the first page: picture and title, which lead to its page."""
    title, text = title_and_text(entry)
    drawn = drawn_pictures(entry)
    picture = f"[![{title}](gallery/pictures/{drawn[0]})](gallery/{entry.page}.md)" if drawn else ""
    first = docstrings.summary(text.replace("\\", "")) if text else ""
    body = "\n\n    ".join(part for part in (f"**[{title}](gallery/{entry.page}.md)**", picture, first) if part)
    return f"-   {body}"


def write_pages() -> list[Any]:
    """Writes a page per entry, adds cards to the page gallery.md, and returns their navigation."""
    draw_pictures(PICTURES)
    parts = [(PAGES / "gallery.md").read_text(encoding="utf-8").rstrip()]
    navigation: list[Any] = ["gallery.md"]
    for group in dict.fromkeys(entry.group for entry in ENTRIES):
        members = [entry for entry in ENTRIES if entry.group == group]
        cards = "\n\n".join(card(entry) for entry in members)
        parts.append(f'## {group}\n\n<div class="grid cards" markdown>\n\n{cards}\n\n</div>')
        for entry in members:
            write(f"gallery/{entry.page}.md", page(entry))
        navigation.append({group: [{title_and_text(e)[0]: f"gallery/{e.page}.md"} for e in members]})
    write("gallery.md", "\n\n".join(parts) + "\n")
    return navigation
