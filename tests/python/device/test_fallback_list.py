"""docs/gpu.md names the operators that run on the CPU, as the registry has them."""

import pathlib
import textwrap

import operator_sweep

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "gpu.md"
BEGIN, END = "<!-- operators on the CPU -->\n", "\n<!-- end -->"


def test_the_page_lists_every_operator_without_a_form_for_gpus() -> None:
    names = ", ".join(f"`{name}`" for name in operator_sweep.fallbacks())
    expected = textwrap.fill(names, 118, break_on_hyphens=False)
    listed = PAGE.read_text().split(BEGIN)[1].split(END)[0]
    assert listed == expected, f"put this between the marks in {PAGE.name}:\n{expected}"


def test_few_operators_have_no_form_for_gpus() -> None:
    assert len(operator_sweep.fallbacks()) <= 40
