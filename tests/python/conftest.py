"""Fixtures for every test."""

from __future__ import annotations

import random
import sys
import zlib
from collections.abc import Iterator

import numpy as np
import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=None, help="seed of the rng fixture; printed by tests that fail")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> Iterator[np.random.Generator]:
    """NumPy generator with a fixed seed per test; a failing test prints it, ``--seed`` sets it.

    Also seeds ``random``, NumPy's old global generator and hybridnet's, for code under test that draws from those.
    """
    seed = request.config.getoption("--seed")
    if seed is None:
        seed = zlib.crc32(request.node.nodeid.encode()) & 0x7FFFFFFF
    request.node.add_report_section("setup", "rng", f"seed {seed}: repeat with --seed={seed}")
    random.seed(seed)
    np.random.seed(seed)
    if "hybridnet" in sys.modules:
        sys.modules["hybridnet"].random.seed(seed)
    yield np.random.default_rng(seed)
