"""Plots of the checked-in measurements: benchmarks/RESULTS.md, OPERATORS.md and KERNELS.md as SVG files."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from places import OUTER_PAGES, PAGES, ROOT, write

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
TIME = re.compile(r"([\d.]+) (ns|us|ms|s)\b")


class Table(NamedTuple):
    """A table of a Markdown file, with the heading above it."""

    section: str
    columns: list[str]
    rows: list[list[str]]


def tables(path: Path) -> Iterator[Table]:
    """Yields the tables of a file."""
    section, found = "", list[list[str]]()
    for line in [*path.read_text(encoding="utf-8").splitlines(), ""]:
        if line.startswith("|"):
            found.append([cell.strip() for cell in line.strip("|").split("|")])
        else:
            if len(found) > 2:
                yield Table(section, found[0], found[2:])
            found = []
        if line.startswith("## "):
            section = line[3:].strip()


def seconds(cell: str) -> float | None:
    match = TIME.search(cell)
    return float(match[1]) * SECONDS[match[2]] if match else None


def numbers(cells: list[str]) -> list[float]:
    return [float(cell) for cell in cells if re.fullmatch(r"\d+(\.\d+)?", cell)]


def draw_results(table: Table, path: Path) -> None:
    """A row per measured program: the time of HybridNet and that of the best peer on one logarithmic axis."""
    from plot import COLORS, figure

    rows = [(row[0], seconds(row[1]), seconds(row[2]), row[2]) for row in table.rows]
    rows = [row for row in rows if row[1] and row[2]][::-1]
    with figure(path, size=(9.5, 0.34 * len(rows) + 1.2)) as ax:
        for y, (_, ours, peer, text) in enumerate(rows):
            ax.plot([ours, peer], [y, y], color="#b0bec5", linewidth=2, zorder=1)
            name = TIME.split(text)[0].strip().removeprefix("best ")
            ratio = f"{ours / peer:.2f}" if ours / peer >= 0.005 else f"{ours / peer:.4f}"
            ax.annotate(
                f"{name}: {ratio}", (max(ours, peer), y), textcoords="offset points", xytext=(7, -3), fontsize=8
            )
        places = range(len(rows))
        ax.scatter([row[1] for row in rows], places, color=COLORS[0], zorder=2, label="HybridNet")
        ax.scatter(
            [row[2] for row in rows], places, color=COLORS[1], zorder=2, label="best peer: our share of its time"
        )
        ax.set(xscale="log", xlabel="seconds, less is better")
        ax.set_yticks(list(places), [row[0] for row in rows], fontsize=8)
        ax.set_xlim(right=ax.get_xlim()[1] * 300)  # room for the names
        ax.margins(y=0.02)
        ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=9)


def draw_operators(found: list[Table], path: Path) -> None:
    """All operators in order of the ratio to PyTorch, a curve for each kind of measurement."""
    from plot import figure

    with figure(path, columns=len(found), size=(5.2, 4.2)) as axes:
        for ax, table in zip([axes] if len(found) == 1 else axes, found, strict=True):
            for column, title in enumerate(table.columns):
                if "PyTorch" not in title and "/" not in title:
                    continue
                ratios = sorted(numbers([row[column] for row in table.rows if column < len(row)]))
                if len(ratios) > 5:
                    kind = f"{table.columns[column - 1]} {title}" if title.startswith("/") else title
                    share = [100 * (i + 1) / len(ratios) for i in range(len(ratios))]
                    ax.plot(share, ratios, label=f"{kind} ({len(ratios)})")
            ax.axhline(1, color="black", linewidth=0.8)
            ax.set(yscale="log", xlabel="share of the operators, %", title=table.section, ylim=(0.01, 8))
            ax.set_ylabel("our time / the other's")
            ax.legend(frameon=False, fontsize=8)


def draw_kernels(table: Table, path: Path) -> None:
    """A bar per kernel: the median over its sizes of our time as a share of the library's."""
    from plot import COLORS, figure

    by_kernel: dict[str, list[float]] = {}
    for row in table.rows:
        by_kernel.setdefault(row[0], []).extend(numbers(row[2:3]))
    medians = sorted(((statistics.median(v), k, len(v)) for k, v in by_kernel.items() if v), reverse=True)
    with figure(path, size=(8.5, 0.24 * len(medians) + 1.0)) as ax:
        ax.barh(
            range(len(medians)), [m[0] for m in medians], color=[COLORS[0] if m[0] <= 1 else COLORS[1] for m in medians]
        )
        ax.set_yticks(range(len(medians)), [f"{name} ({count})" for _, name, count in medians], fontsize=8)
        ax.axvline(1, color="black", linewidth=0.8)
        ax.set(xscale="log", xlabel="our time / the library's: one core, best instruction sets, median of the sizes")
        ax.margins(y=0.01)


def results_plots(folder: Path) -> Iterator[tuple[str, str]]:
    """Draws a plot per machine; yields (title, file)."""
    for number, table in enumerate(tables(ROOT / "benchmarks/RESULTS.md")):
        if table.columns[:3] == ["work", "HybridNet", "best peer"]:
            name = f"results-{number + 1}.svg"
            draw_results(table, folder / name)
            yield table.section, name


def wide(title: str, name: str) -> str:
    """A picture that keeps its size on narrow screens, where it can be scrolled."""
    return f'<div class="wide" markdown>\n\n![{title}](benchmarks/plots/{name})\n\n</div>'


def write_pages() -> list[Any]:
    """Adds the plots to the page benchmarks.md; returns the navigation."""
    folder = PAGES / "benchmarks" / "plots"
    folder.mkdir(parents=True, exist_ok=True)
    parts = [(PAGES / "benchmarks.md").read_text(encoding="utf-8").rstrip(), "## Whole programs"]
    for title, name in results_plots(folder):
        parts += [f"### {title}", wide("Times of HybridNet and of the best peer", name)]
    operators = [t for t in tables(ROOT / "benchmarks/OPERATORS.md") if t.columns[0] == "operator" and len(t.rows) > 20]
    draw_operators(operators[:2], folder / "operators.svg")
    parts += [
        "## Single operators",
        "Each curve has the operators in the order of our time in relation to that of PyTorch or NumPy, on small and "
        "on large arrays ([all rows](benchmarks/operators.md)).",
        wide("Operators in relation to PyTorch's and NumPy's", "operators.svg"),
    ]
    kernels = [t for t in tables(ROOT / "benchmarks/KERNELS.md") if t.section == "All figures"]
    draw_kernels(kernels[0], folder / "kernels.svg")
    parts += [
        "## Kernels",
        "Our kernels in relation to those of oneDNN and OpenBLAS. Some of the slower ones are not in use: "
        "[the result file](benchmarks/kernels.md) says which kernel runs, and why.",
        wide("Kernels in relation to libraries'", "kernels.svg"),
    ]
    write("benchmarks.md", "\n\n".join(parts) + "\n")
    pages = [page for source, page in OUTER_PAGES.items() if source.startswith("benchmarks/")]
    return ["benchmarks.md", *pages]
