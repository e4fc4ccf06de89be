"""docs/gpu-operators.md has every public operator, and the counts of docs/gpu.md are its own."""

from __future__ import annotations

import pathlib
import sys

import operator_classes
import operator_sweep

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "tools"))

import gpu_operators

FIX = "run tools/gpu_operators.py"


def test_every_public_operator_has_a_row() -> None:
    assert [row.name for row in gpu_operators.read_rows()] == operator_classes.public_names(), FIX


def test_every_row_has_a_class_and_figures() -> None:
    for row in gpu_operators.read_rows():
        assert row.kind in gpu_operators.CLASSES, row.name
        assert any(row.cells), row.name


def test_the_operators_on_the_cpu_are_those_of_the_registry() -> None:
    rows = gpu_operators.read_rows()
    assert [row.name for row in rows if row.kind == gpu_operators.ON_CPU] == operator_sweep.fallbacks(), FIX


def test_both_pages_have_the_counts_of_the_rows() -> None:
    counts = gpu_operators.counts(gpu_operators.read_rows())
    assert counts in gpu_operators.PAGE.read_text("utf-8"), FIX
    assert gpu_operators.BEGIN + counts + gpu_operators.END in gpu_operators.GUIDE.read_text("utf-8"), FIX


def test_a_class_is_the_largest_difference_of_an_operator() -> None:
    def kind(ulps: int, functions: bool = False, **facts: object) -> str:
        same = {"kind": "exact", "relative": 0.0, "ulps": 0, "note": ""}
        found = {**same, "kind": "within", "ulps": ulps} if ulps else same
        return gpu_operators._kind(
            {"runs": "device", "library": False, "differences": {"float32": [same, found]}, **facts}, functions
        )

    assert kind(0) == gpu_operators.SAME
    assert kind(0, functions=True) == kind(3) == gpu_operators.NEAR
    assert kind(90) == gpu_operators.ROUNDING
    assert kind(90, library=True) == gpu_operators.LIBRARY
    assert kind(0, runs="CPU with copies") == gpu_operators.ON_CPU
