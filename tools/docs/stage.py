"""Copies Markdown pages to the folder that MkDocs reads; links and names of files there lead to pages of the site."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from gallery_entries import ENTRIES
from places import OUTER_PAGES, PAGES, ROOT, SOURCES, write

LINK = re.compile(r"(?<!\!)\[([^\]]+)\]\(([^)\s]+)\)")
NAMED = re.compile(r"(?<![\[`])`((?:docs|examples|benchmarks)/[\w./-]+|[A-Z_]+\.md)`(?!\])")
PLAIN = re.compile(r"(?<![\w/`\[])(?<!\]\()docs/[\w/-]+\.md\b")
FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2[ \t]*$", re.MULTILINE | re.DOTALL)


def targets() -> dict[str, str]:
    """Maps files of the repository to pages of the site."""
    found = {
        f"docs/{p.relative_to(SOURCES).as_posix()}": p.relative_to(SOURCES).as_posix() for p in SOURCES.rglob("*.md")
    }
    found.update({"docs/errors/": "errors/README.md", "docs/course/": "course/README.md"})
    found.update(OUTER_PAGES)
    for entry in ENTRIES:
        for source in entry.sources:
            found.setdefault(source, f"gallery/{entry.page}.md")
            folder = source.rpartition("/")[0]
            if folder not in ("examples", "tools/docs/pictures"):
                found.setdefault(folder, f"gallery/{entry.page}.md")
    return found


def relinked(text: str, source: str, page: str, known: dict[str, str]) -> str:
    """The text of a file of the repository as a page of the site."""
    start = os.path.dirname(page) or "."

    def to(target: str) -> str | None:
        found = known.get(target.rstrip("/") if target.rstrip("/") in known else target)
        return os.path.relpath(found, start) if found and found != page else None

    def link(match: re.Match[str]) -> str:
        path, hash_, anchor = match[2].partition("#")
        if ":" in path or not path:
            return match[0]
        target = os.path.normpath(os.path.join(os.path.dirname(source), path))
        found = to(target)
        if found:
            return f"[{match[1]}]({found}{hash_}{anchor})"
        return match[0] if target.startswith("docs/") else f"`{match[1]}`"

    def name(match: re.Match[str]) -> str:
        found = to(match[1])
        return f"[`{match[1]}`]({found})" if found else match[0]

    def plain(match: re.Match[str]) -> str:
        found = to(match[0])
        return f"[{match[0]}]({found})" if found else match[0]

    return outside_of_code(text, lambda part: PLAIN.sub(plain, NAMED.sub(name, LINK.sub(link, part))))


def outside_of_code(text: str, change: Callable[[str], str]) -> str:
    """Applies a function to the parts of a text between its code blocks."""
    result, end = [], 0
    for fence in FENCE.finditer(text):
        result += [change(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*result, change(text[end:])])


def weighted(text: str, boost: float) -> str:
    """The text of a page with the weight of its results in the search; other pages have 1."""
    return f"---\nsearch:\n  boost: {boost:g}\n---\n\n{text}"


def copy_pages() -> None:
    """Copies docs/ and the outer pages; removes pages that no longer have a source."""
    known = targets()
    sources = {f"docs/{p.relative_to(SOURCES).as_posix()}": p for p in SOURCES.rglob("*") if p.is_file()}
    for name, path in sources.items():
        page = name.removeprefix("docs/")
        if path.suffix == ".md":
            text = relinked(path.read_text(encoding="utf-8"), name, page, known)
            write(page, weighted(text, 0.3) if page == "mistakes.md" else text)
        elif path.name != "mkdocs.yml":
            (PAGES / page).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, PAGES / page)
    for name, page in OUTER_PAGES.items():
        write(page, relinked((ROOT / name).read_text(encoding="utf-8"), name, page, known))
    plots = ROOT / "benchmarks" / "plots"
    shutil.copytree(plots, PAGES / "benchmarks" / "plots", dirs_exist_ok=True)
    for name in ("site.css", "iframe-worker.js", "favicon.svg"):
        (PAGES / "assets").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(__file__).parent / name, PAGES / "assets" / name)
