"""Unregisters the rewrites that a test registered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hybridnet import rewrite as rw


@pytest.fixture(autouse=True)
def _own_pipeline() -> Iterator[None]:
    before = {row["name"] for row in rw.rows()}
    yield
    for name in {row["name"] for row in rw.rows()} - before:
        rw.unregister(name)
