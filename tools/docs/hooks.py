"""MkDocs hook: an entry ``NAME/`` of the navigation becomes the list of pages that tools/docs/build.py made for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

NAVIGATION = Path(__file__).resolve().parents[2] / "build" / "docs" / "navigation.json"


def expanded(entries: list[Any], made: dict[str, list[Any]]) -> list[Any]:
    """The navigation with generated lists in place of their names."""
    result: list[Any] = []
    for entry in entries:
        if isinstance(entry, str) and entry in made:
            result += made[entry]
        elif isinstance(entry, dict):
            ((title, value),) = entry.items()
            result.append({title: expanded(value, made) if isinstance(value, list) else value})
        else:
            result.append(entry)
    return result


def on_config(config: Any) -> Any:
    made = json.loads(NAVIGATION.read_text(encoding="utf-8"))
    config.nav = expanded(config.nav, made)
    return config
