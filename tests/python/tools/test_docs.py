"""Code in the documentation runs, and files that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("*.md"))]


def test_the_operators_of_the_guide_are_those_in_the_tree() -> None:
    guide = (ROOT / "docs/adding-an-operator.md").read_text(encoding="utf-8")
    whole, part = re.findall(r"```cpp\n(.*?)```", guide, re.DOTALL)
    assert whole == (ROOT / "src/ops/elementwise/quadratic.cc").read_text(encoding="utf-8")
    assert part in (ROOT / "src/ops/elementwise/hard_swish.cc").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = re.findall(
        r"`((?:src|include|python|tests|docs|examples|benchmarks|tools|cmake)/[\w./-]+)`", page.read_text("utf-8")
    )
    missing = [name for name in named if not (ROOT / name).exists()]
    assert not missing, f"{page.name} names {missing}"


@pytest.mark.parametrize("page", ["functions.md", "onnx.md", "rewriting.md", "scan.md", "serving.md"])
def test_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs all Python blocks of a page as one program."""
    if page == "onnx.md":
        pytest.importorskip("onnx")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text("utf-8"), re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), page, "exec"), {"__name__": page})
