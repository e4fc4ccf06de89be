"""Contributed operators, and the control-flow functions."""

from __future__ import annotations

from typing import Any

from .._public_names import dir_of
from ..ops._contrib import isfinite as isfinite
from ..ops._contrib import isinf as isinf
from ..ops._contrib import isnan as isnan
from ..ops._contrib import zipfian_classes
from ..ops._namespace import lazy_functions
from ._contrib_updates import adamw_update as adamw_update
from ._contrib_updates import mp_adamw_update as mp_adamw_update
from ._contrib_updates import multi_adamw_update as multi_adamw_update
from ._contrib_updates import multi_lamb_update as multi_lamb_update
from ._contrib_updates import multi_mp_adamw_update as multi_mp_adamw_update
from ._contrib_updates import multi_mp_lamb_update as multi_mp_lamb_update
from .ndarray import NDArray

_lazy, _names = lazy_functions(globals(), "contrib", symbolic=False)
_CONTROL_FLOW = ("cond", "foldl", "foldr", "foreach", "map", "reduce", "scan", "until", "while_loop")
_GRAPH_SAMPLES = (
    "dgl_adjacency", "dgl_csr_neighbor_non_uniform_sample", "dgl_csr_neighbor_uniform_sample", "dgl_graph_compact",
    "dgl_subgraph",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _CONTROL_FLOW:
        from .._control_flow import functions, scan

        return getattr(functions if name in functions.__all__ else scan, name)
    if name in _GRAPH_SAMPLES:
        from . import _graph_samples

        return getattr(_graph_samples, name)
    return _lazy(name)


def _listed() -> list[str]:
    return sorted({*_names(), *_CONTROL_FLOW, *_GRAPH_SAMPLES})


def rand_zipfian(
    true_classes: NDArray, num_sampled: int, range_max: int, ctx: Any = None
) -> tuple[NDArray, NDArray, NDArray]:
    """Draws classes with a log-uniform (Zipfian) probability, and returns expected counts; see zipfian_classes."""
    from .. import ndarray

    where = true_classes.context if ctx is None else ctx
    return zipfian_classes(ndarray, true_classes, num_sampled, range_max, ctx=where)


__dir__ = dir_of(__name__, _listed)
