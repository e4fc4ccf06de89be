"""Execution counts of graph nodes, for tests of laziness and of rewrites."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator

from .. import _core, profiler
from ..ndarray import waitall


@contextlib.contextmanager
def exec_counts() -> Iterator[Counter[tuple[str, str]]]:
    """Counts the operators that run in the ``with`` block, by (operator, name of the node), including bodies of loops.

    Copies that graphs make without an operator count as ``"copy"``: an output or state that is an input, values kept
    for the gradient, the last state of a loop. Their name is that of the node whose value is copied, or of the loop or
    branch that passes it on. Values of no bytes are not copied.

    The counts are available when the block ends. Node names are those of HybridBlock.plan_text(); nodes of a gradient
    end in ``_backward``; outside of graphs the name is "". Several nodes fused into one are counted as one:
    ``hybridize(passes="fast_run,-fusion")`` keeps them apart.
    """
    waitall()
    profiled = _core.profile_active()
    profiler._recorded.collect()
    counts: Counter[tuple[str, str]] = Counter()
    _core.profile_start()
    try:
        yield counts
        waitall()
    finally:
        if not profiled:
            _core.profile_stop()
        events = _core.profile_take()
        if profiled:
            with profiler._recorded.lock:
                profiler._recorded.events += events
        for name, category, _, _, _, node, *_ in events:
            if category in ("operator", "copy"):
                counts[name, node] += 1
