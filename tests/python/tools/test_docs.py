"""Files that the documentation names exist, its links lead somewhere, and its site has every page.

Python blocks of the pages run in tests/python/pages.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools" / "docs"))

import check_links  # noqa: E402
import docstrings  # noqa: E402
import gallery  # noqa: E402
import gallery_entries  # noqa: E402
import stage  # noqa: E402

PICTURES = ROOT / "tools" / "docs" / "pictures"
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
    assert not set(examples) - sources - {"examples/devices.py"}  # an import of the examples


def test_each_entry_of_the_gallery_has_a_picture_and_each_module_of_pictures_is_used() -> None:
    modules = {path.stem: path.read_text(encoding="utf-8") for path in PICTURES.glob("*.py")}
    drawing = {name for name, text in modules.items() if "\ndef draw(" in text}
    assert {entry.drawing for entry in gallery_entries.ENTRIES} == drawing
    imported = set(re.findall(r"^from (\w+) import", "\n".join(modules.values()), re.MULTILINE))
    assert set(modules) - drawing <= imported


@pytest.mark.parametrize("entry", gallery_entries.ENTRIES, ids=lambda entry: entry.page)
def test_the_module_of_an_entry_writes_the_files_that_its_page_shows(entry: gallery_entries.Entry) -> None:
    written = re.findall(r'"(\w+\.svg)"', (PICTURES / f"{entry.drawing}.py").read_text(encoding="utf-8"))
    assert sorted(written) == sorted(entry.pictures) != []


def test_a_picture_without_its_package_or_program_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = gallery_entries.Entry("page", "group", (), "picture_of_nothing", ("nothing.svg",))
    monkeypatch.setattr(gallery, "ENTRIES", [entry])
    monkeypatch.setattr(gallery, "import_package", lambda: None)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "picture_of_nothing.py").write_text("import package_that_is_not_installed\n", encoding="utf-8")
    gallery.draw_pictures(tmp_path / "pictures")
    assert "no picture picture_of_nothing: No module named 'package_that_is_not_installed'" in capsys.readouterr().err
    monkeypatch.setattr(gallery, "PICTURES", tmp_path / "pictures")
    assert gallery.drawn_pictures(entry) == []


@pytest.mark.parametrize(
    ("head", "wide"),
    [
        ('<svg width="900pt" height="10pt" viewBox="0 0 900.00 10.00">', True),
        ("<svg width='1000' height='360' viewBox='0 0 1000 360'>", True),
        ('<svg width="604pt" height="10pt" viewBox="0 0 604.8 10">', False),
        ("<svg>", False),
    ],
)
def test_wide_pictures_scroll_on_a_phone(
    head: str, wide: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.svg").write_text(head, encoding="utf-8")
    monkeypatch.setattr(gallery, "PICTURES", tmp_path)
    assert ('class="wide"' in gallery.picture("A", "a.svg")) is wide


def test_drawings_stand_beside_each_other_with_their_titles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [str(PICTURES), *sys.path])
    from beside import GAP, TITLE, draw_beside

    one, two = (
        f'<?xml version="1.0"?>\n<svg width="{width}pt" height="{height}pt"\n viewBox="0 0 {width} {height}"'
        ' xmlns="http://www.w3.org/2000/svg"><g id="graph0"/></svg>'
        for width, height in ((100, 300), (200, 100))
    )
    draw_beside(tmp_path / "both.svg", {"a < b": one, "after": two})
    root = ElementTree.parse(tmp_path / "both.svg").getroot()
    assert (root.get("width"), root.get("height")) == (f"{100 + GAP + 200}pt", f"{300 + TITLE}pt")
    parts = list(root)
    assert [part.text for part in parts[::2]] == ["a < b", "after"]
    places = [tuple(float(part.get(key)) for key in ("x", "y", "width", "height")) for part in parts[1::2]]
    assert places == [(0, TITLE, 100, 300), (100 + GAP, TITLE, 200, 100)]
    assert not [part for part in root.iter() if part.get("id")]


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
