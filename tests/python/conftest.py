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
    parser.addoption("--fast", action="store_true", help="one case of each test, without tests that start programs")


# These start processes, compile programs or train networks: seconds each.
SLOW_FOLDERS = {"command_line", "deploy", "examples", "hostile", "pages", "process", "programs", "tools"}
SLOW_FILES = {
    *("test_as_mxnet", "test_cond_hoist", "test_library", "test_native_chains", "test_native_loops"),
    *("test_packed_weights", "test_quantization", "test_random_programs", "test_text_parses_back"),
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --fast: keeps the first case of each test function outside of SLOW_FOLDERS and SLOW_FILES."""
    if not config.getoption("--fast"):
        return
    kept: dict[object, pytest.Item] = {}
    for item in items:
        is_slow = SLOW_FOLDERS.intersection(item.path.parts) or item.path.stem in SLOW_FILES
        if not is_slow and item.get_closest_marker("slow") is None:
            kept.setdefault((item.path, getattr(item, "cls", None), getattr(item, "originalname", item.name)), item)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept.values()])
    items[:] = kept.values()


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
