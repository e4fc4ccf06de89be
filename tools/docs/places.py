"""Folders of the documentation: sources in docs/, prepared pages in build/docs/pages, the site in build/site."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "docs"
STAGE = ROOT / "build" / "docs"
PAGES = STAGE / "pages"
NAVIGATION = STAGE / "navigation.json"
SITE = ROOT / "build" / "site"

# Files outside of docs/ that are pages of the site. Links to them, and their names in backquotes, lead to these pages.
OUTER_PAGES = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security-policy.md",
    "benchmarks/README.md": "benchmarks/programs.md",
    **{
        f"benchmarks/{name}.md": f"benchmarks/{name.lower().replace('_', '-')}.md"
        for name in (
            *("RESULTS", "OPERATORS", "KERNELS", "MEMORY", "COLD_START", "GROWTH", "HYBRID_GAIN", "PROFILES"),
            "STABILITY",
        )
    },
}


def import_package() -> None:
    """Makes ``import hybridnet`` find the package of this checkout."""
    if str(ROOT / "python") not in sys.path:
        sys.path.insert(0, str(ROOT / "python"))


def write(page: str, text: str) -> None:
    """Writes a page, named relative to PAGES; leaves the file alone if it has this text already."""
    path = PAGES / page
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
