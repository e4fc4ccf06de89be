"""Files that the documentation names exist, its links lead somewhere, and its site has every page.

Python blocks of the pages run in tests/python/pages.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools" / "docs"))

import check_links  # noqa: E402
import docstrings  # noqa: E402
import gallery_entries  # noqa: E402
import stage  # noqa: E402

PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]


def test_the_operators_of_the_guide_are_those_in_the_tree() -> None:
    guide = (ROOT / "docs/adding-an-operator.md").read_text(encoding="utf-8")
    whole, part = re.findall(r"```cpp\n(.*?)```", guide, re.DOTALL)
    assert whole == (ROOT / "src/ops/elementwise/quadratic.cc").read_text(encoding="utf-8")
    assert part in (ROOT / "src/ops/elementwise/hard_swish.cc").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = re.findall(
        r"`((?:src|include|python|tests|docs|examples|benchmarks|tools|cmake)/[\w./-]+)`", page.read_text("utf-8")
    )
    missing = [name for name in named if not (ROOT / name).exists()]
    assert not missing, f"{page.name} names {missing}"


def test_no_link_of_a_page_is_dead() -> None:
    assert check_links.check_sources() == []


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("[a](other.md)", ""),
        ("[a](other.md#a-heading-with-code)", ""),
        ("[a](other.md#named)", ""),
        ("[a](#here)", ""),
        ("[a](https://example.com/nothing)", ""),
        ("`[a](nothing.md)`", ""),
        ("```python\nx = [a](nothing.md)\n```", ""),
        ("[a](nothing.md)", "page.md:3: dead link (nothing.md): there is no nothing.md"),
        ("![a](picture.png)", "page.md:3: dead link (picture.png): there is no picture.png"),
        ("[a](other.md#none)", "page.md:3: dead link (other.md#none): other.md has no heading #none"),
        ("[a](#none)", "page.md:3: dead link (#none): page.md has no heading #none"),
        ("[a]: nothing.md", "page.md:3: dead link (nothing.md): there is no nothing.md"),
    ],
)
def test_dead_links_are_found(link: str, problem: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Here\n\n{link}\n", encoding="utf-8")
    (tmp_path / "other.md").write_text("## A heading with `code`\n\n## Other { #named }\n", encoding="utf-8")
    assert check_links.check_sources(tmp_path, [page]) == ([problem] if problem else [])


def test_a_site_must_not_load_from_a_network_or_have_dead_anchors(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<script src="https://example.com/x.js"></script><a href="b.html#one">1</a><a href="b.html#two">2</a>'
        '<img src="none.svg"><a href="https://example.com">outside</a><a href="c.html">3</a>',
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text('<h1 id="one">One</h1>', encoding="utf-8")
    assert check_links.check_site(tmp_path) == [
        "a.html: loads https://example.com/x.js from a network",
        "a.html: there is no none.svg",
        "a.html: dead anchor b.html#two",
        "a.html: dead link c.html",
    ]


def test_the_navigation_of_the_site_has_each_page_once() -> None:
    """Folders stand for all pages in them; tools/docs/build.py lists these."""
    navigation = (ROOT / "docs" / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    named = re.findall(r"([\w./-]+\.md)\b", navigation)
    assert len(named) == len(set(named))
    folders = re.findall(r"- (\w+/)$", navigation, re.MULTILINE)
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))]
    listed = ("gallery.md", "benchmarks.md")  # generated folders begin with these
    missing = [p for p in pages if p not in named and not p.startswith(tuple(folders)) and p not in listed]
    assert missing == []


def test_the_gallery_has_each_example_and_its_files_exist() -> None:
    sources = {source for entry in gallery_entries.ENTRIES for source in entry.sources}
    assert not [source for source in sources if not (ROOT / source).exists()]
    examples = (path.relative_to(ROOT).as_posix() for path in (ROOT / "examples").glob("*.py"))
    assert not set(examples) - sources


@pytest.mark.parametrize(
    ("text", "page", "wanted"),
    [
        ("see `docs/scan.md`", "scan2.md", "see [`docs/scan.md`](scan.md)"),
        ("(docs/errors/HN101.md)", "a.md", "([docs/errors/HN101.md](errors/HN101.md))"),
        ("[all](../benchmarks/RESULTS.md#x)", "a.md", "[all](benchmarks/results.md#x)"),
        ("[code](../src/README.md)", "a.md", "`code`"),
        ("[next](scan.md#one), [out](https://example.com)", "errors/a.md", None),
        ("```sh\nls `docs/scan.md`\n```", "a.md", None),
        ("`examples/demo.py`", "errors/a.md", "[`examples/demo.py`](../gallery/demo.md)"),
    ],
)
def test_links_lead_to_pages_of_the_site(text: str, page: str, wanted: str | None) -> None:
    assert stage.relinked(text, f"docs/{page}", page, stage.targets()) == (wanted or text)


def test_docstrings_become_markdown() -> None:
    text = """Adds `a` and *b*, see :class:`~hybridnet.nd.NDArray` and ``x_y``::

        add(a_b, **c)

    Parameters
    ----------
    a : int, default 0
        First_one, <any>.
    rest
    """
    assert docstrings.markdown(text) == (
        "Adds `a` and \\*b\\*, see `hybridnet.nd.NDArray` and `x_y`:\n\n```python\nadd(a_b, **c)\n```\n\n"
        "**Parameters**\n\n- **a** (int, default 0): First\\_one, &lt;any>.\n- rest"
    )
    assert docstrings.summary("Runs a program. And more.") == "Runs a program."
    assert docstrings.markdown(None) == docstrings.summary(None) == ""
