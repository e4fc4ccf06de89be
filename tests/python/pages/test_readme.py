"""README.md: its measured rows are those of benchmarks/RESULTS.md, its plan is that of this version, its links work.

``python tests/python/pages/test_readme.py`` writes the outputs that vary into README.md, the plan among them;
test_pages.py compares the other ones.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from blocks import ROOT, blocks, printed

README = ROOT / "README.md"
specification = importlib.util.spec_from_file_location("readme_rows", ROOT / "tools" / "readme_rows.py")
assert specification is not None and specification.loader is not None
readme_rows = importlib.util.module_from_spec(specification)
sys.modules["readme_rows"] = readme_rows  # dataclasses look their module up there
specification.loader.exec_module(readme_rows)
EXAMPLE = re.compile(r"<!-- output varies -->\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RESULTS = readme_rows.RESULTS.read_text(encoding="utf-8")


def without_kernels(plan: str) -> str:
    """A plan without the names of kernels and estimated times, which depend on the instruction set."""
    return re.sub(r" <[^>]*>|, about [\d.]+ \w+ of work", "", plan)


def test_the_rows_are_those_of_the_results() -> None:
    text = README.read_text(encoding="utf-8")
    assert readme_rows.with_rows(text, RESULTS) == text, "run tools/readme_rows.py"


def test_each_cell_of_the_rows_stands_in_the_results() -> None:
    section = readme_rows.rendered(RESULTS)
    times = re.findall(r"[\d.]+ (?:ns|us|ms|s)\b", section)
    assert len(times) >= 4 * len(readme_rows.ROWS) - 4
    assert all(time in RESULTS for time in times)


def test_the_fastest_mode_of_a_library_counts() -> None:
    others = "imperative 9 ms (8 ms); PyTorch 6 ms (5 ms): 0.5; torch.compile 950 us (5 us): 0.6"
    measured = "0.75 (0.5) | 1.0 | yes"
    line = f"| a | hybridized 3 ms (2 ms) | jax.jit 4 ms (4 ms) | {measured} | {others} | 2026-11-28 abc |"
    name, row = readme_rows.read_row(line)
    assert (name, row.own, row.ratio, row.day) == ("a", "3 ms", 0.75, "2026-11-28")
    assert [readme_rows.fastest(row, words) for words in readme_rows.PEERS.values()] == ["950 us", "4 ms", ""]


@pytest.mark.parametrize("cell", ["soon", "PyTorch", "3 weeks (2 weeks)"])
def test_a_cell_without_a_time_is_an_error_that_shows_it(cell: str) -> None:
    with pytest.raises(readme_rows.ResultsError, match=re.escape(repr(cell))):
        readme_rows.side(cell)


def test_results_without_all_rows_name_the_command_that_measures_them() -> None:
    with pytest.raises(readme_rows.ResultsError, match="tools/dev bench --write"):
        readme_rows.rendered("# Results\n\ntext\n")


def test_a_readme_without_marks_is_an_error() -> None:
    with pytest.raises(readme_rows.ResultsError, match="marks"):
        readme_rows.with_rows("# Title\n", RESULTS)


def outputs_that_vary(folder: Path) -> list[str]:
    shown = list(blocks(README.read_text(encoding="utf-8")))
    return [text for (text, _), block in zip(printed(README, folder), shown, strict=True) if block.varies]


def test_the_plan_is_what_the_program_prints_but_for_kernels(tmp_path: Path) -> None:
    accuracy, plan = outputs_that_vary(tmp_path)
    shown_accuracy, shown_plan = EXAMPLE.findall(README.read_text(encoding="utf-8"))
    assert min(float(text.split()[1]) for text in (accuracy, shown_accuracy)) > 0.85
    assert without_kernels(shown_plan) == without_kernels(plan), "run this file as a program"


def test_links_lead_to_files_of_the_repository() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8"))
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_commands_exist() -> None:
    known = set(re.findall(r"^  ([a-z]+)\)", (ROOT / "tools" / "dev").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"tools/dev (\w+)", README.read_text(encoding="utf-8")))
    assert {"demo", "test", "wheel"} <= named <= known, named - known


def write() -> None:
    """Writes the outputs that vary into README.md."""
    text = README.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        outputs = outputs_that_vary(Path(folder))
    for found, output in reversed(list(zip(EXAMPLE.finditer(text), outputs, strict=True))):
        text = text[: found.start(1)] + output + text[found.end(1) :]
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
