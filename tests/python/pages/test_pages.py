"""Python blocks of all pages run and print the text that the pages show. blocks.py has the rules."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from blocks import PYTHON, ROOT, SLOW, blocks, needs, printed

DOCS = ROOT / "docs"
ERRORS = DOCS / "errors"
# The programs of mistakes.md run in tests/python/mistakes, those of the course, with its commands, in test_course.py.
ELSEWHERE = {DOCS / "mistakes.md", DOCS / "from-pytorch.md", DOCS / "from-keras.md", *(DOCS / "course").glob("*.md")}
ALL = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
PAGES = [page for page in ALL if page not in ELSEWHERE and PYTHON.search(page.read_text("utf-8"))]


def case(page: Path):
    marks = [pytest.mark.slow] if SLOW.search(page.read_text("utf-8")) else []
    return pytest.param(page, id=page.relative_to(ROOT).as_posix(), marks=marks)


@pytest.mark.parametrize("page", [case(page) for page in PAGES])
def test_programs_of_a_page_print_the_text_that_it_shows(page: Path, tmp_path: Path) -> None:
    text = page.read_text("utf-8")
    for package in needs(text):
        pytest.importorskip(package)
    shown = list(blocks(text))
    if not shown:
        return
    outputs = printed(page, tmp_path)
    for number, ((output, failed), block) in enumerate(zip(outputs, shown, strict=True), 1):
        if block.shown is not None:
            assert output == block.shown, f"block {number} of {page.name} prints\n{output}"
        else:
            assert not failed or block.varies, f"block {number} of {page.name} fails:\n{block.code}\n{output}"


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_python_blocks_are_not_indented(page: Path) -> None:
    """An indented block, in a list, would not run."""
    assert re.findall(r"^[ \t>]+```python", page.read_text("utf-8"), re.MULTILINE) == []


def test_each_code_has_a_page_with_its_error_and_a_program_without() -> None:
    from hybridnet.autograph import CODES

    pages = sorted(ERRORS.glob("HN*.md"))
    assert [page.stem for page in pages] == sorted(CODES)
    for page in pages:
        text = page.read_text("utf-8")
        assert text.startswith(f"# {page.stem}: {CODES[page.stem]}\n")
        shown = [block.shown or "" for block in blocks(text)]
        assert f"[{page.stem}]" in shown[0] and "Error: [" not in shown[-1], page.stem


def error_classes() -> dict[str, type[BaseException]]:
    from hybridnet import errors

    return {name: getattr(errors, name) for name in errors.__all__ if getattr(errors, name).__name__ == name}


def shown_class(output: str) -> type[BaseException]:
    """The class of the error that ends an output, or that the output says was caught."""
    from hybridnet import base, errors

    name = re.search(r"^(?:caught )?(\w+(?:Error|Warning|ForSymbol))\b", output, re.MULTILINE)
    assert name, output
    return getattr(errors, name[1], None) or getattr(base, name[1])


def test_each_error_class_has_a_page_with_the_error_and_a_program_without() -> None:
    classes = error_classes()
    pages = sorted(page for page in ERRORS.glob("*.md") if page.stem != "README" and not page.stem.startswith("HN"))
    assert [page.stem for page in pages] == sorted(classes)
    for page in pages:
        text = page.read_text("utf-8")
        assert text.startswith(f"# {page.stem}: ")
        shown = [block.shown or "" for block in blocks(text)]
        assert issubclass(shown_class(shown[0]), classes[page.stem]), page.stem
        assert "Error: " not in shown[-1], page.stem
        assert "\n## Fix\n" in text and "\n## Cause\n" in text, page.stem


def test_help_of_an_error_class_names_its_page() -> None:
    for name, error in error_classes().items():
        assert f"docs/errors/{name}.md" in (inspect.getdoc(error) or ""), name


@pytest.mark.parametrize(
    "overview", [ERRORS / "README.md", DOCS / "python-control-flow.md"], ids=lambda page: page.stem
)
def test_overviews_link_the_pages_of_errors(overview: Path) -> None:
    text = overview.read_text("utf-8")
    pattern = "*.md" if overview.parent == ERRORS else "HN*.md"
    pages = [page for page in ERRORS.glob(pattern) if page != overview]
    missing = [page.name for page in pages if not re.search(rf"\((errors/)?{page.name}\)", text)]
    assert not missing


# --- rules of blocks.py -----------------------------------------------------------------------------------------------
PAGE = """
```python
x = 2
print(x)
```

```text
2
```

<!-- not run: it waits for a server -->
```python
serve()
```

```python
print(x + 1)
```
<!-- output varies -->

```text
about 3
```

```python
raise ValueError("no")
```
"""


def test_a_page_is_one_program_without_the_blocks_that_it_excludes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    assert [(block.shown, block.varies) for block in blocks(PAGE)] == [("2\n", False), (None, True), (None, False)]
    assert printed(page, tmp_path) == [("2\n", False), ("3\n", False), ("ValueError: no\n", True)]


def test_write_replaces_shown_output_and_adds_that_of_errors(tmp_path: Path) -> None:
    from blocks import write

    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("```text\n2\n", "```text\nold\n"), encoding="utf-8")
    write(page)
    text = page.read_text(encoding="utf-8")
    assert "```text\n2\n```" in text and "about 3" in text
    assert text.endswith('raise ValueError("no")\n```\n\n```text\nValueError: no\n```\n')
    write(page)
    assert page.read_text(encoding="utf-8") == text


def test_packages_that_a_page_needs() -> None:
    assert needs("a\n<!-- needs: onnx, matplotlib -->\nb") == ["onnx", "matplotlib"]
