#!/usr/bin/env python3
"""Builds the documentation as a site in build/site that works without a network: ``tools/dev docs``.

The pages of docs/ are copied to build/docs/pages; the API, the operators, the gallery and the plots of the benchmarks
are generated beside them; MkDocs renders all, and check_links.py checks the result.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time

import api
import benchmark_plots
import check_links
import gallery
import operators
import stage
from places import NAVIGATION, PAGES, ROOT, SITE, SOURCES


def error_pages() -> list[dict[str, str]]:
    """The pages of error classes, then those of the codes HN100 and so on, under their short names."""
    names = sorted(path.stem for path in (SOURCES / "errors").glob("*.md") if path.stem != "README")
    return [{name: f"errors/{name}.md"} for name in sorted(names, key=lambda n: n.startswith("HN"))]


def course_pages() -> list[str]:
    """The overview of the course, then its parts."""
    names = sorted(path.name for path in (SOURCES / "course").glob("*.md"))
    return [f"course/{name}" for name in sorted(names, key=lambda n: n != "README.md")]


def write_pages() -> None:
    """Writes all pages into PAGES, and the generated parts of the navigation."""
    stage.copy_pages()
    homes, operator_pages = operators.write_pages()
    made = {
        "api/": [*api.write_pages(homes), {"Operators": operator_pages}],
        "gallery/": gallery.write_pages(),
        "benchmarks/": benchmark_plots.write_pages(),
        "errors/": error_pages(),
        "course/": course_pages(),
    }
    NAVIGATION.write_text(json.dumps(made), encoding="utf-8")


def render() -> bool:
    """Runs MkDocs and prints its warnings, each of which is a fault."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(SOURCES / "mkdocs.yml")]
    done = subprocess.run(
        command, env=dict(os.environ, NO_MKDOCS_2_WARNING="1"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    faults = [line for line in lines if line.startswith(("WARNING", "ERROR", "  - "))]
    if done.returncode != 0:
        print(*(faults or lines[-20:]), sep="\n", file=sys.stderr)
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", action="store_true", help="show the site at http://127.0.0.1:8000 until Ctrl-C")
    options = parser.parse_args()
    start = time.perf_counter()
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir(parents=True)
    write_pages()
    print(f"pages written after {time.perf_counter() - start:.0f} s", file=sys.stderr)
    if not render():
        return 1
    problems = check_links.check_site(SITE)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{SITE.relative_to(ROOT)}/index.html: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    if options.serve and not problems:
        subprocess.run([sys.executable, "-m", "http.server", "-b", "127.0.0.1", "-d", str(SITE), "8000"], check=False)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
