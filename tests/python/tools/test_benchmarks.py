"""The benchmarks: each case is known to its side, loops run, rows show which budgets are met."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import sys

import pytest

BENCHMARKS = pathlib.Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def run():
    spec = importlib.util.spec_from_file_location("benchmarks_run", BENCHMARKS / "run.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def names_in(side: str) -> set[str]:
    """Keys of the tables of cases in a side's files, read and not run: the peers may not be installed."""
    files = [BENCHMARKS / "sides" / f"{side}_side.py", BENCHMARKS / "sides" / f"{side}_control_flow.py"]
    text = "".join(file.read_text(encoding="utf-8") for file in files if file.exists())
    return set(re.findall(r'^ +"(\w+)":', text, re.MULTILINE))


def test_each_case_is_known_to_both_sides(run):
    for case in run.CASES:
        assert case.name in names_in("hybridnet"), case
        assert (case.theirs or case.name) in names_in(case.side), case


@pytest.mark.parametrize("name", ["while_1000", "cond_call", "lstm_foreach", "lstm_foreach_train"])
def test_loops_and_branches_run(run, name):
    side = run.Side("hybridnet_side.py")
    try:
        assert side.ask(case=name, repeat=2)["seconds"] > 0
    finally:
        side.close()


def test_a_case_that_fails_is_reported_each_time(run):
    side = run.Side("hybridnet_side.py")
    try:
        for _ in range(2):
            assert "KeyError" in side.ask(case="no such case", repeat=1)["error"]
        assert side.ask(case="cond_call", repeat=1)["seconds"] > 0
    finally:
        side.close()


def test_rows_say_what_met_its_budget(run):
    assert run.row("w", "p", 1e-3, 2e-3, 0.6) == "| w | p | 1 ms | 2 ms | 0.50 | 0.6 | yes |"
    assert run.row("w", "p", 1e-3, 2e-3, 0.4).endswith("| 0.4 | NO |")
    assert run.row("w", "p", 1e-3, None, 0.4).endswith("| - | 0.4 |  |")
    assert run.row("w", "p", 3e-3, 2e-3, None, 2e-3).endswith("|  | NO |")
    assert run.row("w", "p", 1e-3, 1e-1, 0.5, 1e-2).endswith("| 0.5 | yes |")


@pytest.fixture(scope="module")
def growth():
    spec = importlib.util.spec_from_file_location("benchmarks_growth", BENCHMARKS / "growth.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_each_series_of_growth_runs_at_its_smallest(growth):
    for series in growth.SERIES.values():
        call = series.make(series.sizes[0])
        call()
        result = call()
        for one in result if isinstance(result, list | tuple) else [result]:
            if one is not None:
                one.wait_to_read()


def test_slopes_are_exponents(growth):
    square = [{"size": size, "call": 3 * size**2} for size in (1, 10, 100, 1000)]
    assert growth.slope(square, "call") == pytest.approx(2)
    assert growth.slope(square[:2], "call") == pytest.approx(2)
