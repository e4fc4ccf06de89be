"""benchmarks/scaling.py: the page has the table of the model; measured sums take its time."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from launched import needs_gloo, needs_limited_network

BENCHMARKS = pathlib.Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture
def scaling() -> Iterator[Any]:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import scaling

        yield scaling
    finally:
        sys.path.remove(str(BENCHMARKS))


def test_the_page_has_the_table_that_the_model_computes(scaling: Any) -> None:
    page = scaling.PAGE.read_text("utf-8")
    assert scaling.put(page, "model", scaling.predictions()) == page
    assert scaling.put(page, "model", "another table") != page
    with pytest.raises(SystemExit, match="no comments of the part 'other'"):
        scaling.put(page, "other", "")


def test_the_model_has_its_limits(scaling: Any) -> None:
    network = scaling.Network(latency=1e-3, rate=1e6)
    assert scaling.seconds_of_sum(1e6, 1, network) == 0
    assert scaling.seconds_of_sum(1e6, 2, network) == pytest.approx(1.002)
    assert scaling.seconds_of_sum(1e6, 1000, network) == pytest.approx(1.998 + 1.998)
    for training in scaling.TRAININGS:
        last = scaling.seconds_of_sum(
            (training.bytes - scaling.FIRST_MESSAGE) % scaling.bytes_of_message(8) or 1, 8, scaling.ETHERNET
        )
        assert last / 2 < scaling.exposed_beside(training, 8) < scaling.exposed_after(training, 8)


@needs_gloo
@pytest.mark.slow
@needs_limited_network
def test_sums_take_the_time_of_the_model(scaling: Any) -> None:
    rows = scaling.comparison({"1 Gbit/s": 1e9 / 8}, (1, 4, 16), 3)
    assert [size for _, size, _, _ in rows] == [1, 4, 16]
    for _, size, seconds, model in rows:
        # Never faster than the network. On a quiet machine within a tenth, as the page says; here other tests run, too.
        assert 0.9 * model < seconds < 1.6 * model, f"{size} MB: {seconds} s, model {model} s"
