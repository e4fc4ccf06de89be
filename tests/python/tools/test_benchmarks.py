"""The benchmarks: sides implement each case, loops run, rows show reached goals, files keep other rows."""

from __future__ import annotations

import importlib
import itertools
import pathlib
import re
import sys

import pytest

BENCHMARKS = pathlib.Path(__file__).resolve().parents[3] / "benchmarks"
MODULES = ("cases", "quiet", "sections", "run", "growth", "stability", "cold_side")


@pytest.fixture(scope="module")
def benchmark():
    """The benchmark modules by name, imported as by a script of the folder."""
    paths = [str(BENCHMARKS), str(BENCHMARKS / "sides")]
    sys.path[:0] = paths
    before = set(sys.modules)
    try:
        yield {name: importlib.import_module(name) for name in MODULES}
    finally:
        for path in paths:
            sys.path.remove(path)
        for name in set(MODULES) & (set(sys.modules) - before):
            del sys.modules[name]


@pytest.fixture
def run(benchmark):
    return benchmark["run"]


@pytest.fixture
def sections(benchmark):
    return benchmark["sections"]


def names_in(side: str) -> set[str]:
    """Returns the cases "NAME/VARIANT" in the files of a side, without running them: peers may not be installed."""
    text = "".join(file.read_text(encoding="utf-8") for file in (BENCHMARKS / "sides").glob(f"{side}_*.py"))
    networks = re.findall(r'^    "(\w+)": ', text, re.MULTILINE)
    variants = re.findall(r'f"\{name\}/(\w+)"', text)
    return set(re.findall(r'^    "(\w+/\w+)": ', text, re.MULTILINE)) | {f"{n}/{v}" for n in networks for v in variants}


def test_each_case_is_known_to_its_sides(benchmark):
    for case in benchmark["cases"].CASES:
        assert {f"{case.name}/{mode}" for mode in case.modes} <= names_in("hybridnet"), case
        for peer in case.peers:
            assert f"{case.name}/{peer.variant}" in names_in(peer.side), peer


def test_rows_have_names_of_their_own(benchmark):
    cases = benchmark["cases"].CASES
    assert len({case.name for case in cases}) == len({case.what for case in cases}) == len(cases)


def test_cases_are_chosen_by_words_of_their_names(run):
    assert [case.name for case in run.chosen("lenet,16m")] == ["lenet_train", "expression_16m", "linear_16m"]
    assert run.chosen("") == list(run.CASES)
    assert run.chosen("no such case") == []


@pytest.mark.parametrize("name", ["while_1000", "cond_call", "lstm_foreach", "lstm_foreach_train", "lstm_fused_train"])
def test_loops_and_branches_run(run, name):
    side = run.Side("hybridnet")
    try:
        assert side.ask(case=f"{name}/hybridized", repeat=2)["seconds"] > 0
        assert len(side.ask(case=f"{name}/hybridized", each=3)["each"]) == 3
    finally:
        side.close()


def test_only_the_step_of_the_trainer_is_timed(run):
    side = run.Side("hybridnet")
    try:
        assert 0 < side.ask(case="adam_300/imperative", repeat=2)["seconds"] < 1
    finally:
        side.close()


def test_a_case_that_fails_is_reported_each_time(run):
    side = run.Side("hybridnet")
    try:
        for _ in range(2):
            assert "KeyError" in side.ask(case="no such case", repeat=1)["error"]
        assert side.ask(case="cond_call/hybridized", repeat=1)["seconds"] > 0
        assert side.ask(case="forget") == {}
    finally:
        side.close()


@pytest.fixture
def line_of(benchmark):
    """Returns a function that makes the cells of a row from our times by mode and the times of peers."""

    def build(ours, peers, **fields):
        cases, run = benchmark["cases"], benchmark["run"]
        case = cases.Case("c", "work", fields.pop("goal", 0.6), tuple(peer for peer, _ in peers), tuple(ours), **fields)
        programs = [run.Program(mode, None, mode, times=times) for mode, times in ours.items()]
        programs += [run.Program(peer.label, None, peer.variant, peer, times=times) for peer, times in peers]
        return [cell.strip() for cell in run.row(case, programs, "today").split("|")[1:-1]]

    return build


def peer(benchmark, label, **fields):
    return benchmark["cases"].Peer("torch", label, label, **fields)


def test_a_row_compares_the_better_mode_with_the_best_peer(benchmark, line_of):
    slow, fast = peer(benchmark, "slow"), peer(benchmark, "fast")
    ours = {"imperative": [3e-3] * 3, "hybridized": [1e-3, 0.9e-3, 1.1e-3]}
    cells = line_of(ours, [(slow, [8e-3]), (fast, [2e-3])])
    assert cells == [
        "work", "hybridized 1 ms (900 us)", "fast 2 ms (2 ms)", "0.50 (0.45)", "0.6", "yes",
        "imperative 3 ms (3 ms); slow 8 ms (8 ms): 0.12", "today",
    ]  # fmt: skip


@pytest.mark.parametrize(("ours", "met"), [(1e-3, "yes"), (1.5e-3, "ahead"), (2.5e-3, "NO")])
def test_a_row_shows_reached_goals(benchmark, line_of, ours, met):
    assert line_of({"imperative": [ours]}, [(peer(benchmark, "p"), [2e-3])])[5] == met


def test_goals_beside_one_peer_and_limits_of_time_count(benchmark, line_of):
    others = [(peer(benchmark, "p"), [2e-3]), (peer(benchmark, "q", goal=0.05), [4e-3])]
    cells = line_of({"imperative": [1e-3]}, others)
    assert cells[5] == "ahead"
    assert "q 4 ms (4 ms): 0.25, goal 0.05" in cells[6]
    assert line_of({"imperative": [1e-3]}, others[:1], limit=0.5e-3)[5] == "NO"


def test_a_limit_of_the_machine_is_no_peer(benchmark, line_of):
    cells = line_of(
        {"imperative": [1e-3]}, [(peer(benchmark, "p"), [2e-3]), (peer(benchmark, "copy", is_rival=False), [1e-4])]
    )
    assert cells[2].startswith("p ")
    assert cells[6] == "copy 100 us (100 us): 10"


def test_rows_without_a_peer_or_without_us_are_shown(benchmark, line_of):
    assert line_of({"imperative": [1e-3]}, [])[1:6] == ["1 ms (1 ms)", "-", "-", "0.6", ""]
    assert line_of({}, [(peer(benchmark, "p"), [2e-3])])[1:6] == ["failed", "", "", "0.6", "NO"]


def section(sections, rows, title="here", versions="torch 1", order=("a", "b", "c"), columns=("work", "time")):
    return sections.Section(title, versions, columns, tuple(rows), order)


def rows_of(text: str, title: str) -> list[str]:
    part = text.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return [line for line in part.splitlines() if line.startswith("| ") and not line.startswith("| work")]


def test_a_run_of_some_rows_keeps_the_others_in_order(sections):
    text = sections.merged("", "# Head", section(sections, ["| c | 1 |", "| a | 1 |"]))
    text = sections.merged(text, "# Head", section(sections, ["| b | 2 |", "| a | 2 |"]))
    assert rows_of(text, "here") == ["| a | 2 |", "| b | 2 |", "| c | 1 |"]
    assert text.startswith("# Head\n\n## here\n\ntorch 1\n\n| work | time |\n|---|---|\n")


def test_a_run_keeps_the_sections_of_other_machines_as_they_are(sections):
    elsewhere = "## there: avx512\n\nanything\n\nin any shape | of any time"
    text = sections.merged(f"# Old\n\n{elsewhere}\n", "# New", section(sections, ["| a | 1 |"]))
    assert elsewhere in text
    assert text.startswith("# New\n")
    assert rows_of(text, "here") == ["| a | 1 |"]


@pytest.mark.parametrize("change", [{"versions": "torch 2"}, {"columns": ("work", "seconds")}])
def test_rows_that_do_not_compare_are_dropped(sections, change):
    text = sections.merged("", "# Head", section(sections, ["| a | 1 |", "| b | 1 |"]))
    text = sections.merged(text, "# Head", section(sections, ["| b | 2 |"], **change))
    assert rows_of(text, "here") == ["| b | 2 |"]


def test_rows_that_there_are_no_more_are_dropped(sections):
    text = sections.merged("", "# Head", section(sections, ["| a | 1 |", "| b | 1 |"]))
    text = sections.merged(text, "# Head", section(sections, ["| b | 2 |"], order=("b",)))
    assert rows_of(text, "here") == ["| b | 2 |"]


def test_merging_twice_changes_nothing(sections):
    once = sections.merged("", "# Head", section(sections, ["| a | 1 |"]))
    assert sections.merged(once, "# Head", section(sections, ["| a | 1 |"])) == once


@pytest.mark.parametrize(("own", "remark"), [(3, ""), (1, "disturbed: others took ")])
def test_work_of_other_processes_disturbs_a_measurement_and_own_work_does_not(benchmark, monkeypatch, own, remark):
    quiet = benchmark["quiet"]
    ticks = {"busy": iter([1000, 1000 + 3 * quiet.TICKS]), "own": iter([10, 10 + own * quiet.TICKS])}
    monkeypatch.setattr(quiet, "_busy_ticks", lambda: next(ticks["busy"]))
    monkeypatch.setattr(quiet, "_own_ticks", lambda: next(ticks["own"]))
    found = quiet.Watch().remark()
    assert found.startswith(remark) and bool(found) == bool(remark)


def test_two_groups_are_found_and_single_late_processes_are_not(benchmark):
    two_groups = benchmark["stability"].two_groups
    assert two_groups([1.0, 1.01, 1.02, 1.35, 1.36])
    assert not two_groups([1.0, 1.01, 1.02, 1.03, 1.5])
    assert not two_groups([1.0, 1.1, 1.2, 1.3, 1.4])
    assert not two_groups([1.0])


def test_no_layer_of_the_cold_start_is_like_another(benchmark):
    widths = benchmark["cold_side"].widths()
    assert len(set(itertools.pairwise(widths))) == benchmark["cold_side"].LAYERS


def test_each_series_of_growth_runs_at_its_smallest(benchmark):
    for series in benchmark["growth"].SERIES.values():
        call = series.make(series.sizes[0])
        call()
        result = call()
        for one in result if isinstance(result, list | tuple) else [result]:
            if one is not None:
                one.wait_to_read()


def test_slopes_are_exponents(benchmark):
    slope = benchmark["growth"].slope
    square = [{"size": size, "call": 3 * size**2} for size in (1, 10, 100, 1000)]
    assert slope(square, "call") == pytest.approx(2)
    assert slope(square[:2], "call") == pytest.approx(2)
