"""Summary table of a block's layers, output shapes and parameter counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _tracing
from ..errors import TypeError as HybridNetTypeError
from ..ndarray import NDArray, waitall

if TYPE_CHECKING:
    from .block import Block


class _Row(NamedTuple):
    layer: str
    shape: str
    params: int
    trainable: int
    shared: int


def _shapes(value: Any) -> Any:
    if isinstance(value, NDArray):
        return value.shape
    if isinstance(value, (list, tuple)):
        return [_shapes(item) for item in value]
    return value


def _is_shape(value: Any) -> bool:
    """Whether an input is the size or the sizes of an array."""
    return isinstance(value, int) or (isinstance(value, tuple) and all(isinstance(size, int) for size in value))


def _shape_text(value: Any) -> str:
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    shapes = _shapes(value)
    return str(shapes)[1:-1] if isinstance(shapes, list) else str(shapes)


class _Recorder:
    """Forward hook that counts each call of a layer. Calls with equal shapes, as in a loop, have one row."""

    def __init__(self) -> None:
        self.calls: dict[tuple[int, str], list[_Row]] = {}
        self._seen: set[int] = set()

    def rows(self) -> list[_Row]:
        """Returns a row per layer and shape, with the sums of its calls."""
        rows: list[_Row] = []
        for calls in self.calls.values():
            layer = f"{calls[0].layer}-{len(rows) + 1}" + (f" (x{len(calls)})" if len(calls) > 1 else "")
            params, trainable, shared = (sum(int(call[i]) for call in calls) for i in (2, 3, 4))
            rows.append(_Row(layer, calls[0].shape, params, trainable, shared))
        return rows

    def __call__(self, block: Block, _: Any, outputs: Any) -> None:
        if _tracing.current() is not None:  # a trace that learns the shapes of parameters is no run
            return
        total = trainable = shared = 0
        for param in block.params.values():
            size = param.data().size
            total += size
            trainable += 0 if param.grad_req == "null" else size
            if id(param) in self._seen:
                shared += size
            self._seen.add(id(param))
        shape = _shape_text(outputs)
        row = _Row(type(block).__name__, shape, total, trainable, shared)
        self.calls.setdefault((id(block), shape), []).append(row)


def _segments(block: Any, inputs: tuple[Any, ...]) -> str:
    """Returns the description of the segments of a hybridized block's graph; empty if it has none."""
    block(*inputs)
    waitall()  # segments are compiled once their sizes are known
    text = str(block._cached_op.summary()) if block._cached_op is not None else ""
    return text if "cut at" in text else ""


def print_summary(block: Block, inputs: tuple[Any, ...]) -> None:
    """Runs block on inputs and prints the table; for a graph that was cut into segments, prints these and the cuts.

    Hybridized blocks run their Python code for the table, so that layers in loops and branches count, too.
    """
    from ._hybrid_block import HybridBlock
    from .nn.basic_layers import HybridSequential, Sequential

    if inputs and all(_is_shape(value) for value in inputs):
        raise HybridNetTypeError(
            "summary",
            expected="arrays",
            given=f"the shape {inputs[0] if isinstance(inputs[0], tuple) else inputs}",
            fix=f"pass a batch: net.summary(mx.nd.zeros({inputs[0] if isinstance(inputs[0], tuple) else inputs}))",
        )
    if isinstance(block, HybridBlock) and block._active:
        segments = _segments(block, inputs)
        if segments:
            print(segments)
            return
    recorder = _Recorder()
    handles = []
    hybridized: list[Block] = []

    def watch(layer: Block) -> None:
        if isinstance(layer, HybridBlock) and layer._active:
            hybridized.append(layer)
            layer.__dict__["_active"] = False  # keeps the graphs, which an assignment would drop
        if not isinstance(layer, (Sequential, HybridSequential)):
            handles.append(layer.register_forward_hook(recorder))

    try:
        block.apply(watch)
        block(*inputs)
    finally:
        for handle in handles:
            handle.detach()
        for layer in hybridized:
            layer.__dict__["_active"] = True
    rows = [_Row("Input", _shape_text(inputs), 0, 0, 0), *recorder.rows()]
    total, trainable, shared = (sum(int(row[i]) for row in rows) for i in (2, 3, 4))
    print("-" * 80)
    print(f"{'Layer (type)':>20}  {'Output Shape':>42} {'Param #':>15}")
    print("=" * 80)
    for row in rows:
        print(f"{row.layer:>20}  {row.shape:>42} {row.params:>15}")
    print("=" * 80)
    print("Parameters in forward computation graph, duplicate included")
    print(f"   Total params: {total}")
    print(f"   Trainable params: {trainable}")
    print(f"   Non-trainable params: {total - trainable}")
    print(f"Shared params in forward computation graph: {shared}")
    print(f"Unique parameters in model: {total - shared}")
    print("-" * 80)
