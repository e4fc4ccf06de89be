"""After each check: the driver has nothing to report."""

import pathlib
import sys
from collections.abc import Iterator

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "ops"))

import hybridnet as mx
import stand_in


@pytest.fixture(autouse=True)
def clean_driver() -> Iterator[None]:
    assert stand_in.is_in_use()
    stand_in.reset()
    yield
    mx.nd.waitall()
    assert stand_in.reports() == []
