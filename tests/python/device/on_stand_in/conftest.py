"""After each check: the driver has nothing to report."""

import pathlib
import sys
from collections.abc import Iterator

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "ops"))

import hybridnet as mx
import stand_in
from hybridnet import _core


@pytest.fixture(autouse=True)
def clean_driver() -> Iterator[None]:
    assert stand_in.is_in_use()
    stand_in.reset()
    yield
    mx.nd.waitall()
    assert stand_in.reports() == []


@pytest.fixture
def by_library() -> Iterator[None]:
    """All products and convolutions of floats go to a library, however small they are."""
    before = _core.set_least_library_steps(0)
    yield
    _core.set_least_library_steps(before)


@pytest.fixture(params=[0, 1, 2])
def order(request: pytest.FixtureRequest) -> Iterator[None]:
    """Orders in which streams run."""
    stand_in.seed(request.param)
    yield
    stand_in.seed(0)
