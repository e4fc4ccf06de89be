"""Loops and branches of ONNX: nodes with graphs inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._emitter import Emitter
from ._export_values import Spec, Tensor
from ._writer import Graph

__all__ = ["Subgraphs"]

# (number of the iteration, carried values) -> (whether to go on, next carried values, values to stack)
LoopBody = Callable[[Tensor, list[Tensor]], tuple[Any, list[Tensor], list[Tensor]]]
# (carried values, slices) -> (next carried values, values to stack)
ScanBody = Callable[[list[Tensor], list[Tensor]], tuple[list[Tensor], list[Tensor]]]


class Subgraphs(Emitter):
    """Adds nodes that hold graphs."""

    def inner_input(self, name: str, dtype: str, spec: Spec | None) -> Tensor:
        """Adds an input to the innermost graph and returns it."""
        graph = self.writer.graph
        tensor = Tensor(self.writer.unique(f"{self.label}/{name}" if self.label else name), dtype, spec)
        tensor.depth = graph.depth
        graph.inputs.append(tensor)
        return tensor

    def _give(self, graph: Graph, tensor: Tensor) -> None:
        """Makes a tensor an output of the graph: a copy, unless a node of the graph makes it and it is no output."""
        own = tensor.depth == graph.depth and tensor.known is None
        if not own or any(tensor is other for other in (*graph.inputs, *graph.outputs)):
            spec = tensor.spec
            tensor = self.emit("Identity", tensor)
            tensor.spec = spec
        graph.outputs.append(tensor)

    def _results(self, op: str, operands: Sequence[Any], graph: Graph, outputs: list[Tensor], **attributes: Any) -> Any:
        made = self.emit(op, *operands, outputs=max(len(outputs), 1), dtype="float32", body=graph, **attributes)
        made = made if isinstance(made, tuple) else (made,)
        for tensor, like in zip(made, outputs, strict=False):
            tensor.dtype = like.dtype
        return list(made[: len(outputs)])

    def loop(
        self, count: Tensor | None, condition: Tensor | None, carried: Sequence[Tensor], body: LoopBody
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Runs body `count` times (None: no limit) while its condition holds. Returns the last carried values, and the
        stacked ones. body returns None as its condition for a loop of a fixed count."""
        with self.writer.inner_graph() as graph:
            number = self.inner_input("iteration", "int64", Spec([()] * self.num_trials, "int64"))
            going_on = self.inner_input("condition", "bool", Spec([()] * self.num_trials, "bool"))
            inner = [self.inner_input("carried", tensor.dtype, tensor.spec) for tensor in carried]
            keep, following, stacked = body(number, inner)
            for tensor in (going_on if keep is None else keep, *following, *stacked):
                self._give(graph, tensor)
        made = self._results("Loop", [count, condition, *carried], graph, graph.outputs[1:])
        for tensor, like in zip(made, carried, strict=False):
            tensor.spec = like.spec
        return made[: len(carried)], made[len(carried) :]

    def scan(
        self, carried: Sequence[Tensor], rows: Sequence[Tensor], body: ScanBody, reverse: bool = False
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Runs body for each slice of the rows along axis 0. Returns the last carried values, and the stacked ones."""
        with self.writer.inner_graph() as graph:
            inner = [self.inner_input("carried", tensor.dtype, tensor.spec) for tensor in carried]
            slices = [
                self.inner_input(
                    "row", row.dtype, row.spec and Spec([shape[1:] for shape in row.spec.shapes], row.dtype)
                )
                for row in rows
            ]
            following, stacked = body(inner, slices)
            for tensor in (*following, *stacked):
                self._give(graph, tensor)
        directions = {}
        if reverse:
            directions["scan_input_directions"] = [1] * len(rows)
            if stacked:
                directions["scan_output_directions"] = [1] * len(stacked)
        operands = [*carried, *rows]
        made = self._results("Scan", operands, graph, graph.outputs, num_scan_inputs=len(rows), **directions)
        for tensor, like in zip(made, carried, strict=False):
            tensor.spec = like.spec
        return made[: len(carried)], made[len(carried) :]

    def branch(
        self, condition: Tensor, then: Callable[[], Sequence[Tensor]], other: Callable[[], Sequence[Tensor]]
    ) -> list[Tensor]:
        """Runs `then` if the condition holds, else `other`. Returns the results."""
        graphs = []
        for make in (then, other):
            with self.writer.inner_graph() as graph:
                for tensor in make():
                    self._give(graph, tensor)
            graphs.append(graph)
        outputs = graphs[0].outputs
        made = self.emit(
            "If", condition, outputs=len(outputs), dtype=outputs[0].dtype, then_branch=graphs[0], else_branch=graphs[1]
        )
        made = made if isinstance(made, tuple) else (made,)
        for tensor, like in zip(made, outputs, strict=True):
            tensor.dtype = like.dtype
        return list(made)
