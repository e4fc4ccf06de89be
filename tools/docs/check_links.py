#!/usr/bin/env python3
"""Finds dead links: ``check_links.py`` in the Markdown files of the repository, ``check_links.py FOLDER`` in a site.

A relative link must lead to a file, and its anchor to a heading or an id in that file. Links with a protocol are not
fetched. In a site, all pages, scripts, styles and pictures must be files of the site: nothing loads from a network.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2[ \t]*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+).+?\1", re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
ANCHOR = re.compile(r"(?:id|name)=\"([^\"]+)\"|\{\s*#([\w.-]+)\s*\}")
OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
# Pictures and pages that tools/docs/build.py makes; links to them are checked in the site.
MADE = ("docs/api/", "docs/gallery/", "docs/benchmarks/")


def blank(match: re.Match[str]) -> str:
    """Spaces in place of code, so that offsets and lines stay."""
    return re.sub(r"[^\n]", " ", match[0])


def prose(text: str) -> str:
    return CODE.sub(blank, FENCE.sub(blank, text))


def slug(heading: str) -> str:
    """The anchor of a heading, as MkDocs and GitHub make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text).strip())


@functools.cache
def anchors(path: Path) -> frozenset[str]:
    """The anchors of a Markdown file; the second of two equal headings ends in -1 or _1."""
    text = path.read_text(encoding="utf-8")
    found = {next(filter(None, names)) for names in ANCHOR.findall(text)}
    counts: dict[str, int] = {}
    for heading in HEADING.findall(FENCE.sub(blank, text)):
        name = slug(heading)
        counts[name] = counts.get(name, -1) + 1
        found.update([name] if counts[name] == 0 else [f"{name}-{counts[name]}", f"{name}_{counts[name]}"])
    return frozenset(found)


def links(text: str) -> Iterator[tuple[int, str]]:
    """Yields (line, target) of the links of a Markdown text, without those in code."""
    plain = prose(text)
    for pattern in (LINK, REFERENCE):
        for match in pattern.finditer(plain):
            yield plain.count("\n", 0, match.start()) + 1, match[1]


def problem_of(page: Path, target: str, root: Path) -> str:
    """The fault of a link of a Markdown file, "" if there is none."""
    path, _, anchor = unquote(target).partition("#")
    if OUTSIDE.match(target):
        return ""
    file = page if not path else (root / path.lstrip("/") if path.startswith("/") else page.parent / path).resolve()
    inside = file.relative_to(root).as_posix() if file.is_relative_to(root) else ""
    if inside.startswith(MADE):
        return ""
    if not file.exists():
        return f"there is no {path}"
    if anchor and file.suffix == ".md" and anchor not in anchors(file):
        return f"{path or page.name} has no heading #{anchor}"
    return ""


def check_sources(root: Path = ROOT, files: list[Path] | None = None) -> list[str]:
    """Returns the dead links of Markdown files; of all files that git knows if none are given."""
    if files is None:
        command = ["git", "ls-files", "-co", "--exclude-standard", "*.md"]
        listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.split("\n")
        files = [root / name for name in sorted(set(filter(None, listed))) if (root / name).exists()]
    found = []
    for page in files:
        for line, target in links(page.read_text(encoding="utf-8")):
            if problem := problem_of(page, target, root):
                found.append(f"{page.relative_to(root)}:{line}: dead link ({target}): {problem}")
    return found


class _Page(HTMLParser):
    """Collects ids, links and loaded files of a page of the site."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in ("img", "script", "iframe", "source") and "src" in values:
            self.loaded.append(values["src"])
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.loaded.append(values["href"])


def parsed(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def check_site(site: Path) -> list[str]:
    """Returns dead links of a built site, and files that it would load from elsewhere."""
    pages = {path.resolve(): parsed(path) for path in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site} has no pages"]
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        where = path.relative_to(site.resolve())
        for target in dict.fromkeys(page.loaded):
            if target.startswith("data:"):
                continue
            file = path.parent / unquote(target.split("?")[0].split("#")[0])
            if OUTSIDE.match(target) or target.startswith("//"):
                found.append(f"{where}: loads {target} from a network")
            elif not file.exists():
                found.append(f"{where}: there is no {target}")
        found += [f"{where}: {text}" for target in dict.fromkeys(page.links) if (text := dead(path, target, pages))]
    return found


def dead(path: Path, target: str, pages: dict[Path, _Page]) -> str:
    """The fault of a link of a page of the site, "" if there is none."""
    if OUTSIDE.match(target) or target.startswith("//"):
        return ""
    name, _, anchor = unquote(target).partition("#")
    file = (path.parent / name).resolve() if name else path
    file = file / "index.html" if file.is_dir() else file
    if not file.exists():
        return f"dead link {target}"
    if anchor and file in pages and anchor not in pages[file].ids and not anchor.startswith("__"):
        return f"dead anchor {target}"
    return ""


def main() -> int:
    if len(sys.argv) > 2 or (len(sys.argv) == 2 and not Path(sys.argv[1]).is_dir()):
        print(__doc__, file=sys.stderr)
        return 2
    problems = check_site(Path(sys.argv[1])) if len(sys.argv) == 2 else check_sources()
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
