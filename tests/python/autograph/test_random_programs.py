"""Random programs of plain Python are equal to their graphs, or refused; `python -m autograph_prove` runs thousands."""

from __future__ import annotations

from collections import Counter

import pytest
from autograph_prove import mutations, programs

_SEED, _GROUPS, _PER_GROUP = 1, 6, 10


@pytest.mark.parametrize("group", range(_GROUPS))
def test_graphs_of_random_programs_are_right_or_refused(group: int) -> None:
    kinds: Counter[str] = Counter()
    for number in range(group * _PER_GROUP, (group + 1) * _PER_GROUP):
        outcome, source = programs.case(number, _SEED)
        assert not outcome.is_failure, f"case {number}: {outcome.kind}: {outcome.text}\n{source}"
        kinds[outcome.kind] += 1
    assert kinds["equal"] >= 3  # a generator of programs that are all refused would prove nothing


def test_unsupported_forms_are_refused_at_their_lines() -> None:
    wrong = []
    for mutant in list(mutations.mutants())[::10]:
        found, text, right = mutations.run(mutant.source, mutant.lines)
        if found not in mutant.codes or not right:
            wrong.append(f"{mutant.name}: {found}: {text}\n{mutant.source}")
    assert not wrong, "\n\n".join(wrong)
