"""Search for the rewrite of the pipeline that changes a network's results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core, autograd, random
from ..errors import TypeError as HybridNetTypeError

if TYPE_CHECKING:
    from ..gluon.block import HybridBlock
    from ..ndarray import NDArray

__all__ = ["bisect_passes"]


def bisect_passes(
    net: HybridBlock, *inputs: NDArray, train: bool = False, rtol: float = 1e-3, atol: float = 1e-5, seed: int = 0
) -> str | None:
    """Returns the name of the first rewrite that changes the results of net for these inputs; None if there is none.

    The pipeline is cut off after one rewrite after another, and each result is compared with that of the traced graph.
    The name can be passed to ``hybridize(passes="fast_run,-NAME")``; docs/graph-passes.md describes the rewrites. The
    plans, parameters and states of net are unchanged.

    Parameters
    ----------
    net : HybridBlock
        A block with initialized parameters, or parameters that a call initializes.
    inputs : NDArray
        Arguments of a call of net.
    train : bool, default False
        Whether net runs in training mode, and gradients of inputs and parameters are also compared.
    rtol, atol : float
        Maximum distance of a value from the reference: ``atol + rtol * largest value of that array``.
    seed : int, default 0
        Seed of the random draws, the same for all runs.

    Raises TypeError if net is not a HybridBlock.
    """
    if not hasattr(net, "_find_graph"):
        raise HybridNetTypeError("bisect_passes: net", expected="a HybridBlock", given=type(net).__name__)
    graph, arrays = _traced(net, inputs, train)
    # A rewrite can be left out of one of its stages. Linking needs those with the tag "none".
    rows = [(row["name"], row["stage"]) for row in _core.pipeline_rows() if "none" not in row["tags"]]
    base = net._flags.get("passes") or "fast_run"

    def run(kept: int) -> tuple[list[Any], set[tuple[str, str]]]:
        passes = ",".join([base, *(f"{stage}:-{name}" for name, stage in rows[kept:])])
        return _run(_core.CachedOp(graph.outputs, name=net.name, passes=passes), arrays, train, seed)

    reference, _ = run(0)
    result, fired = run(len(rows))
    if _agree(result, reference, rtol, atol):
        return None
    for kept, row in enumerate(rows, 1):
        if row in fired and not _agree(run(kept)[0], reference, rtol, atol):
            return row[0]
    return None


def _traced(net: HybridBlock, inputs: tuple[NDArray, ...], train: bool) -> tuple[Any, list[NDArray]]:
    """Returns the graph of a call, and copies of its inputs, in order."""
    from ..gluon._hybrid_block import flatten_arguments

    flat: list[Any] = []
    key = flatten_arguments(inputs, flat)
    with autograd.pause(train_mode=train):
        graph = net._find_graph(key, flat)
    values = graph.pick([*flat, *graph.arrays(flat[0]), *graph.constants])
    return graph, [value.copy() for value in values]


def _run(op: Any, arrays: list[NDArray], train: bool, seed: int) -> tuple[list[Any], set[tuple[str, str]]]:
    """Returns the results, with train also the gradients, and the rewrites that fired, with their stages."""
    copies = [array.copy() for array in arrays]  # training changes states
    random.seed(seed)
    if not train:
        with autograd.pause(train_mode=False):
            outputs = op(*copies)
        outputs = outputs if isinstance(outputs, list) else [outputs]
        return [output.asnumpy() for output in outputs], _fired(op)
    wanted = [copy for copy in copies if np.issubdtype(copy.dtype, np.floating)]
    for copy in wanted:
        copy.attach_grad()
    with autograd.record():
        outputs = op(*copies)
        outputs = outputs if isinstance(outputs, list) else [outputs]
    autograd.backward([output for output in outputs if np.issubdtype(output.dtype, np.floating)])
    return [array.asnumpy() for array in [*outputs, *(copy.grad for copy in wanted)]], _fired(op)


def _fired(op: Any) -> set[tuple[str, str]]:
    """Returns names and stages of the rewrites that fired; the stage of a row between the stages has its name."""
    return {(name, stage or name) for name, stage in op.fired_rewrites()}


def _agree(result: list[Any], reference: list[Any], rtol: float, atol: float) -> bool:
    """Whether all arrays are equal within the tolerance, which grows with the largest finite value of an array."""
    for got, want in zip(result, reference, strict=True):
        got, want = got.astype("float64"), want.astype("float64")
        largest = np.max(np.abs(want), where=np.isfinite(want), initial=0.0)
        if not np.allclose(got, want, rtol=0.0, atol=atol + rtol * largest, equal_nan=True):
            return False
    return True
