"""tools/check_language.py on small texts: the forms that it reports, and sentences that it accepts."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "tools" / "check_language.py"
_spec = importlib.util.spec_from_file_location("check_language", SCRIPT)
assert _spec is not None and _spec.loader is not None
check_language = importlib.util.module_from_spec(_spec)
sys.modules["check_language"] = check_language
_spec.loader.exec_module(check_language)


def rules(reader: str, source: str) -> list[tuple[int, str]]:
    texts = check_language.READERS[reader]("file", source)
    return [(line, rule) for text in texts for line, rule, _ in check_language.findings(text)]


@pytest.mark.parametrize("word", ["What", "Of", "Who", "As", "Where", "Which", "of", "where"])
def test_comments_that_begin_without_a_subject(word: str) -> None:
    assert rules(".cc", f"int x;\nint y;  // {word} the plan keeps.\n") == [(2, f'begins with "{word}"')]
    assert rules(".py", f"x = 1\n# {word} the plan keeps.\n") == [(2, f'begins with "{word}"')]
    assert rules(".sh", f"x=1\n# {word} the plan keeps.\n") == [(2, f'begins with "{word}"')]
    assert rules(".py", f'def f():\n    """{word} the plan keeps."""\n') == [(2, f'begins with "{word}"')]


def test_two_what_in_one_sentence() -> None:
    text = "// Tells what gave what. One what is fine.\n"
    assert rules(".cc", text) == [(1, 'two "what"')]
    assert rules(".cc", "// Says what it is. Says what it does.\n") == []
    assert rules(".cc", "// error.what() and `what` are code, what() too.\n") == []


def test_persons_where_objects_are_meant() -> None:
    assert rules(".cc", 'const char* s = "a node that nobody reads";\n') == [(1, '"nobody"')]
    assert rules(".md", "A plan.\n\nIt waits for somebody.\n") == [(3, '"somebody"')]
    assert rules(".md", "```\nnobody\n```\n") == []


def test_comments_of_consecutive_lines_are_one_text() -> None:
    assert rules(".cc", "// The order\n// of the outputs.\n") == []
    assert rules(".cc", "int a;  // the order\nint b;    // of the outputs\n") == [(2, 'begins with "of"')]


def test_strings_and_comments_are_told_apart() -> None:
    assert rules(".cc", 'auto s = "// What it is";\nauto t = R"(// Of it)";\n') == []
    assert rules(".py", "s = '# What it is'\n") == []


def test_the_tree_is_clean(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["check_language.py"])
    if not (SCRIPT.parents[1] / ".git").exists():
        pytest.skip("the check lists the files of a git checkout")
    assert check_language.main() == 0, capsys.readouterr().out
