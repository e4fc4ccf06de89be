"""Each mistake of a new user gets one short report that names the line, the reason and the fix, and the fix works.

``python tests/python/mistakes/test_mistakes.py`` writes docs/mistakes.md.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import hybridnet as mx
import pytest

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "docs" / "mistakes.md"
sys.path.insert(0, str(HERE))

from mistake import MOST_LINES, Mistake, Outcome, run  # noqa: E402

ORIGINS = {"torch": "PyTorch", "keras": "Keras", "mxnet": "MXNet", "any": ""}
HEAD = """\
# Mistakes and their messages

Programs that new users write, most of them in the habits of another library, with the report that HybridNet prints and
the program as it should be. `program.py` begins with the lines of setup where they are shown. Frames of the package are
hidden in these reports (`docs/environment-variables.md`, `HYBRIDNET_FULL_TRACEBACK`).

This page is written by `python tests/python/mistakes/test_mistakes.py`, which runs every program.
"""


def _areas() -> list[tuple[str, ModuleType]]:
    """Returns (title, module) of each file of cases; the title is the first sentence of its docstring."""
    areas = []
    for file in sorted(HERE.glob("cases_*.py")):
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        spec.loader.exec_module(module)  # type: ignore[union-attr]
        areas.append(((module.__doc__ or file.stem).strip().splitlines()[0].rstrip("."), module))
    return areas


AREAS = _areas()
MISTAKES: list[Mistake] = [mistake for _, module in AREAS for mistake in module.CASES]


@cache
def outcome(program: str) -> Outcome:
    return run(program)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: re.sub(r"\W+", "-", mistake.title))
def test_a_mistake_gets_a_short_report_with_its_line_and_fix(mistake):
    result = outcome(mistake.program)
    if mistake.warns:
        assert result.error is None, result.report
        assert any(mistake.warns in text and line > mistake.lines_of_setup for line, text in result.warnings), result
        return
    assert isinstance(result.error, mx.MXNetError), result.report or "no error"
    assert type(result.error).__name__ == mistake.error, result.report
    assert 'File "program.py", line ' in result.report
    assert any(line.strip() and line.strip() in result.report for line in mistake.wrong.splitlines()), result.report
    assert len(result.report.splitlines()) <= MOST_LINES, result.report
    assert [text for text in mistake.says if text not in result.report] == [], result.report
    assert "\n  Fix: " in result.report, result.report
    assert not re.search(r"\b_[A-Z]\w+|<frozen |site-packages|0x[0-9a-f]{6}", result.report), result.report


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: re.sub(r"\W+", "-", mistake.title))
def test_the_fixed_program_runs(mistake):
    result = run(f"{mistake.setup}\n{mistake.fixed}\n")
    assert result.error is None, result.report
    assert result.warnings == []


def test_there_are_at_least_120_different_mistakes():
    assert len({mistake.program for mistake in MISTAKES}) >= 120
    assert len({mistake.title for mistake in MISTAKES}) == len(MISTAKES)


# --- the page ---------------------------------------------------------------------------------------------------------


def _shown(mistake: Mistake) -> str:
    """Returns the report, or the warning as Python prints it, without marks and counts of frames, which may change."""
    result = outcome(mistake.program)
    if mistake.warns:
        line, text = next((line, text) for line, text in result.warnings if mistake.warns in text)
        return f"program.py:{line}: UserWarning: {text}"
    lines = result.report.rstrip().splitlines()
    marks = re.compile(r"[ ~^]+|\(\d+ frames? inside .*")
    return "\n".join(line for line in lines if not marks.fullmatch(line))


def _section(mistake: Mistake) -> str:
    origin = f" ({ORIGINS[mistake.origin]})" if ORIGINS[mistake.origin] else ""
    wrong, fixed = mistake.wrong.strip("\n"), mistake.fixed.strip("\n")
    if mistake.setup.strip() != "import hybridnet as mx":
        wrong = f"{mistake.setup.strip()}\n\n{wrong}"
    shown = f"```python\n{wrong}\n```\n```text\n{_shown(mistake)}\n```"
    return f"### {mistake.title}{origin}\n{shown}\nInstead:\n```python\n{fixed}\n```\n"


def page() -> str:
    """Returns the text of docs/mistakes.md."""
    parts = [HEAD]
    for title, module in AREAS:
        parts.append(f"## {title}\n")
        parts += [_section(mistake) for mistake in module.CASES]
    return "\n".join(parts)


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python tests/python/mistakes/test_mistakes.py"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE}: {len(MISTAKES)} mistakes")
