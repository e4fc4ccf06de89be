"""Records the program's line and the block of each operator, for profiles by line (profiler.set_config)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core
from ..ndarray import waitall
from . import _operators as _op_watch

__all__ = ["LineWatch"]


class LineWatch(_op_watch.OpWatch):
    """Waits after each operator, and passes its events to ``keep`` with the line and the block that called it.

    Graphs run as usual: their nodes know their lines.
    """

    runs_python = False

    def __init__(self, keep: Callable[[list[tuple[Any, ...]]], None]) -> None:
        self._keep = keep

    def call(self, function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._placed(lambda: function(*args, **kwargs))

    def call_step(self, run: Callable[[], Any]) -> Any:
        return self._placed(run)

    def _placed(self, run: Callable[[], Any]) -> Any:
        if not _core.profile_active():
            return run()
        self._take(None, None)  # events from before belong to no call
        result = run()
        blocks = _op_watch.running_blocks()
        self._take(_core.current_location(), blocks[-1].path if blocks else "")
        return result

    def _take(self, where: str | None, path: str | None) -> None:
        waitall()
        events: list[tuple[Any, ...]] = _core.profile_take()
        if where is not None:
            # Nodes of graphs have their own lines and blocks.
            events = [event if event[5] else (*event[:6], event[6] or path, event[7], where) for event in events]
        self._keep(events)
