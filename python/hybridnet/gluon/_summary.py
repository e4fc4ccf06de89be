"""Summary table of a block's layers, output shapes and parameter counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import HybridNetError
from ..ndarray import NDArray, waitall

if TYPE_CHECKING:
    from .block import Block


class HybridizedError(HybridNetError, ValueError, AssertionError):
    """Raised because a summary must run every layer separately. Also an AssertionError, which MXNet raised here."""


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


def _shape_text(value: Any) -> str:
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    shapes = _shapes(value)
    return str(shapes)[1:-1] if isinstance(shapes, list) else str(shapes)


class _Recorder:
    """Forward hook that adds one row per call of a layer."""

    def __init__(self) -> None:
        self.rows: list[_Row] = []
        self._seen: set[int] = set()

    def __call__(self, block: Block, _: Any, outputs: Any) -> None:
        total = trainable = shared = 0
        for param in block.params.values():
            size = param.data().size
            total += size
            trainable += 0 if param.grad_req == "null" else size
            if id(param) in self._seen:
                shared += size
            self._seen.add(id(param))
        layer = f"{type(block).__name__}-{len(self.rows) + 1}"
        self.rows.append(_Row(layer, _shape_text(outputs), total, trainable, shared))


def _segments(block: Any, inputs: tuple[Any, ...]) -> str:
    """Returns the description of the segments of a hybridized block's graph; empty if it has none."""
    block(*inputs)
    waitall()  # segments are compiled once their sizes are known
    text = str(block._cached_op.summary()) if block._cached_op is not None else ""
    return text if "cut at" in text else ""


def print_summary(block: Block, inputs: tuple[Any, ...]) -> None:
    """Runs block on inputs and prints the table; for a graph that was cut into segments, prints these and the cuts.

    Raises ValueError if the block, or one below, is hybridized and its graph is not cut.
    """
    from ._hybrid_block import HybridBlock
    from .nn.basic_layers import HybridSequential, Sequential

    if isinstance(block, HybridBlock) and block._active:
        segments = _segments(block, inputs)
        if segments:
            print(segments)
            return
    recorder = _Recorder()
    handles = []

    def watch(layer: Block) -> None:
        if isinstance(layer, HybridBlock) and layer._active:
            raise HybridizedError(f'"{layer.name}" must not be hybridized to print summary.')
        if not isinstance(layer, (Sequential, HybridSequential)):
            handles.append(layer.register_forward_hook(recorder))

    try:
        block.apply(watch)
        block(*inputs)
    finally:
        for handle in handles:
            handle.detach()
    rows = [_Row("Input", _shape_text(inputs), 0, 0, 0), *recorder.rows]
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
