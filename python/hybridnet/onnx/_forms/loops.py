"""Loop: a graph that runs while a condition holds, a number of times, or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...symbol import contrib
from ...util import np_shape
from .._bodies import answers, inside, make_outside, prepare, slot, unpack, with_axes_of
from .._builder import Runtime
from .._errors import refuse, wrong
from .._iterations import counted
from .._sizes import Size, apply
from .._table import form
from .._values import Value
from .scan import stacked

# Loops that graphs cannot hold (sequences as carried values, changing ranks) are unrolled up to this length.
MOST_UNROLLED = 64
# A while_loop with at most this limit is compiled for it; others run in chunks.
_MOST_COMPILED = 8192


class _Grows(Exception):
    """Sizes of carried values change from iteration to iteration. axes: the ones of each carried value."""

    def __init__(self, axes: list[set[int]]) -> None:
        super().__init__()
        self.axes = axes


class _ChangesRank(Exception):
    """A carried value changes its number of axes or its dtype. index: its place among those that change."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index


@form("Loop")
def loop(g: Any, node: Any, limit: Any = None, condition: Any = None, *carried: Any) -> Any:
    """A foreach if the condition always holds, else a while_loop.

    Inside, the elements of carried values are data, also integers that sizes follow from (see _iterations.py); values
    that the body returns unchanged stay known.
    """
    return _Loop(g, node, limit, condition, carried).run()


class _Loop:
    def __init__(self, g: Any, node: Any, limit: Value | None, condition: Value | None, carried: Sequence[Any]) -> None:
        self.g, self.node, self.graph = g, node, node.graph("body")
        self.limit = None if limit is None else g.item(limit)
        self.limit_value, self.condition = limit, condition
        self.num_outs = len(self.graph.output) - 1 - len(carried)
        # Values that the body returns unchanged are read from around, so that constants stay constants. Values that
        # nothing reads are left out: files carry variables from before their first use, with other shapes.
        self.all_carried = list(carried)
        self.moving = [
            index
            for index in range(len(carried))
            if not _is_passed_on(self.graph, index) and not self._is_unread(index)
        ]
        self.carried = [carried[index] for index in self.moving]
        if answers(condition) is False:
            self.limit, self.limit_value, self.condition = 0, None, None
        self.always = answers(self.condition) is True and _stays(g, self.graph)

    def run(self) -> Any:
        if not all(isinstance(value, Value) for value in self.carried):
            return self._unrolled("a carried value is a sequence or an optional value")
        prepare(self.g, self.graph)
        make_outside(unpack(self.all_carried))
        replaced: set[int] = set()
        while True:
            try:
                return self._with_fixed(self._loop())
            except _ChangesRank as found:
                unread = self.g.readers(self.graph.input[2 + self.moving[found.index]].name) == 0
                if not unread or found.index in replaced:
                    return self._unrolled("a carried value changes its number of axes or its dtype")
                replaced.add(found.index)
                self.carried[found.index] = self._like_a_result(found.index)

    def _like_a_result(self, index: int) -> Value:
        """Zeros in place of an initial value that the body does not read, with the shape of the result.

        Files give variables a number before the loop that sets them. The shape is that of one iteration in front.
        """
        g = self.g
        made = g.subgraph(self.graph, [g.constant(0, dtype="int64"), g.constant(True), *self.all_carried])
        result: Value = g.emit("zeros_like", [made[1 + self.moving[index]]])
        return result

    def _loop(self) -> tuple[Value, ...]:
        axes: list[set[int]] = [set() for _ in self.carried]
        try:
            if self.always and self.limit is not None:
                return self._foreach()
        except _Grows as found:
            axes = found.axes
        while True:
            try:
                return self._while(axes)
            except _Grows as found:
                axes = [old | new for old, new in zip(axes, found.axes, strict=True)]

    def _with_fixed(self, results: Sequence[Any]) -> tuple[Any, ...]:
        """The carried values, in the order of the node, and the stacked outputs: results has those that change."""
        whole = list(self.all_carried)
        for index, value in zip(self.moving, results, strict=False):
            whole[index] = value
        return (*whole, *results[len(self.moving) :])

    def _is_unread(self, index: int) -> bool:
        outputs = self.node.proto.output
        reads = self.g.readers(self.graph.input[2 + index].name)
        return bool(reads == 0 and (index >= len(outputs) or self.g.readers(outputs[index]) == 0))

    # ------------------------------------------------------------------------------------------------------- the graph
    def _argument(self, index: int, like: Value, symbol: Any) -> Value:
        """The number of the iteration, or the condition: with one axis if the body declares it so."""
        value = slot(self.graph.input[index].name, like, symbol)
        declared = self.graph.input[index].type.tensor_type
        if declared.HasField("shape") and len(declared.shape.dim) == 1:
            return self.g.emit("_np_reshape", [value], newshape=(1,))
        return value

    def _iteration(self, number: Any, condition: Any, states: Sequence[Value]) -> list[Any]:
        """The results of the body, without the values that it returns unchanged. condition: None: it is true."""
        g = self.g
        arguments = [
            self._argument(0, g.constant(0, dtype="int64"), number),
            g.constant(True) if condition is None else self._argument(1, g.constant(True), condition),
        ]
        carried = self._with_fixed([counted(state) for state in states])
        made: list[Any] = g.subgraph(self.graph, [counted(arguments[0]), arguments[1], *carried])
        kept = [made[0], *(made[1 + index] for index in self.moving), *made[1 + len(carried) :]]
        if not all(isinstance(value, Value) for value in kept):
            raise refuse("the body makes a sequence or an optional value", node=self.node.proto)
        for index, state in enumerate(states, start=1):
            kept[index] = with_axes_of(g, kept[index], state)
        return kept

    def _check(self, states: Sequence[Value], results: Sequence[Value], free: Sequence[set[int]]) -> None:
        grows = [set(axes) for axes in free]
        for index, (before, after, axes) in enumerate(zip(states, results, grows, strict=True)):
            if before.dtype != after.dtype or before.ndim != after.ndim:
                raise _ChangesRank(index)
            for axis in range(before.ndim):
                if [shape[axis] for shape in before.shapes] != [shape[axis] for shape in after.shapes]:
                    axes.add(axis)
        if grows != list(free):
            raise _Grows(grows)

    # ----------------------------------------------------------------------------------------------------- kinds of it
    def _foreach(self) -> Any:
        g, count = self.g, len(self.carried)
        rows, data, options = self._rows()
        made: list[Value] = []

        def body(number: Any, carried: Any) -> Any:
            with inside(g):
                states = [slot(v.name, v, symbol) for v, symbol in zip(self.carried, carried, strict=True)]
                results = self._iteration(number, None, states)[1:]
                self._check(states, results[:count], [set()] * count)
                made[:] = results[count:]
                symbols = [value.symbol for value in results]
            return symbols[count:], symbols[:count]

        function = body if data is not None else lambda number, _, carried: body(number, carried)
        with np_shape(True):
            outs, last = contrib.foreach(
                function,
                [] if data is None else data.symbol,
                [value.symbol for value in self.carried],
                name=g.unique(self.node.name),
                **options,
            )
        states = [slot(value.name, value, symbol) for value, symbol in zip(self.carried, last, strict=True)]
        return (*states, *stacked(made, outs, rows))

    def _rows(self) -> tuple[tuple[int, ...], Value | None, dict[str, Any]]:
        """The number of iterations per trial, the data to iterate over, and arguments of foreach."""
        g, limit = self.g, self.limit
        if isinstance(limit, Runtime):
            bound = Runtime(g.emit("_maximum_scalar", [limit.value], scalar=0), limit.index)
            rows = g.data_size()
            shapes = [(size,) for size in rows]
            return rows, g.emit("_arange", [], start=0, stop=bound, dtype="int64", shapes=shapes), {}
        if isinstance(limit, Size):
            size = apply("max", limit, 0)
            assert isinstance(size, Size)
            trials = tuple(int(trial) for trial in size.trials)
            return trials, g.emit("_arange", [], start=0, stop=size, dtype="int64"), {}
        assert limit is not None
        length = max(int(limit), 0)
        return (length,) * g.num_trials, None, {"length": length, "with_index": True}

    def _while(self, free: Sequence[set[int]]) -> Any:
        g, count = self.g, len(self.carried)
        limit = int(self.limit) if isinstance(self.limit, (int, float)) else None
        compiled = limit if limit is not None and limit <= _MOST_COMPILED else None
        if self.limit is None and self.always:
            raise wrong(
                "the loop has no end: its condition is always true, and it has no trip count", node=self.node.proto
            )
        likes = [self._with_free(value, axes) for value, axes in zip(self.carried, free, strict=True)]
        bound = None if compiled is not None or self.limit_value is None else self._scalar(self.limit_value)
        made: list[Value] = []

        def test(number: Any, condition: Any, *_: Any) -> Any:
            with inside(g):
                holds = slot("condition", g.constant(True), condition)
                if bound is not None:
                    runs = g.emit("_npi_less", [slot("iteration", g.constant(0, dtype="int64"), number), bound])
                    holds = g.emit("_npi_bitwise_and", [runs, holds])
                return holds.symbol

        def body(number: Any, condition: Any, *carried: Any) -> Any:
            with inside(g):
                states = [slot(v.name, v, symbol) for v, symbol in zip(likes, carried, strict=True)]
                results = self._iteration(number, None if self.always else condition, states)
                self._check(states, results[1 : 1 + count], free)
                made[:] = results[1 + count :]
                after = g.emit("_plus_scalar", [slot("iteration", g.constant(0, dtype="int64"), number)], scalar=1)
                kept = [after, self._scalar(g.cast(results[0], "bool")), *results[1 : 1 + count]]
                symbols = [value.symbol for value in kept]
                outs = [value.symbol for value in made]
            return (outs, symbols) if self.num_outs else symbols

        first = g.emit("_np_reshape", [g.emit("_npi_zeros", [], shape=(1,), dtype="int64")], newshape=())
        starts = [first, self._start(), *self.carried]
        with np_shape(True):
            result = contrib.while_loop(
                test,
                body,
                [value.symbol for value in starts],
                max_iterations=None if compiled is None else max(compiled, 0),
                exact=bool(self.num_outs),
                has_outputs=bool(self.num_outs),
                shape_invariants=_invariants(likes, free),
                name=g.unique(self.node.name),
            )
        outs, last = result if self.num_outs else ([], result)
        states = [slot(v.name, v, symbol) for v, symbol in zip(likes, last[2:], strict=True)]
        return (*states, *stacked(made, outs, g.data_size() if self.num_outs else ()))

    def _with_free(self, value: Value, axes: set[int]) -> Value:
        """A carried value inside of the loop, with sizes of their own on the axes that change."""
        sizes = [
            self.g.data_size() if axis in axes else tuple(shape[axis] for shape in value.shapes)
            for axis in range(value.ndim)
        ]
        return slot(value.name, value, value.symbol, tuple(zip(*sizes, strict=True)) if sizes else value.shapes)

    def _scalar(self, value: Value) -> Value:
        return value if value.ndim == 0 else self.g.emit("_np_reshape", [value], newshape=())

    def _start(self) -> Value:
        if self.condition is not None:
            return self._scalar(self.g.cast(self.condition, "bool"))
        ones = self.g.emit("_npi_ones", [], shape=(1,), dtype="bool")
        return self.g.emit("_np_reshape", [ones], newshape=())

    def _unrolled(self, because: str) -> Any:
        """One copy of the body per iteration: the number of iterations must be known."""
        g, limit = self.g, self.limit
        states = list(self.all_carried)
        rows: list[list[Value]] = [[] for _ in range(self.num_outs)]
        most = int(limit) if isinstance(limit, (int, float)) else None
        holds, number = answers(self.condition), 0
        while holds and (most is None or number < most):
            if number == MOST_UNROLLED or (most is None and self.limit is not None):
                raise self._cannot_unroll(because)
            results = g.subgraph(self.graph, [g.constant(number, dtype="int64"), g.constant(True), *states])
            holds, number = answers(results[0]), number + 1
            states = results[1 : 1 + len(states)]
            for row, value in zip(rows, results[1 + len(states) :], strict=True):
                row.append(value)
        if holds is None or (rows and number == 0):
            raise self._cannot_unroll(because)
        outs = [g.emit("_npi_stack", row, num_args=len(row), axis=0, name=self.node.name) for row in rows]
        return (*states, *outs)

    def _cannot_unroll(self, because: str) -> Exception:
        return refuse(
            "this loop cannot be part of a graph",
            because=f"{because}, and the number of iterations is not a constant of at most {MOST_UNROLLED}",
            fix="export the model with a fixed number of iterations",
            node=self.node.proto,
        )


def _invariants(likes: Sequence[Value], free: Sequence[set[int]]) -> dict[int, tuple[int | None, ...]] | None:
    """The sizes of carried values that change; the loop's variables begin with the iteration and the condition."""
    return {
        2 + index: tuple(None if axis in axes else value.fixed(axis) for axis in range(value.ndim))
        for index, (value, axes) in enumerate(zip(likes, free, strict=True))
        if axes
    } or None


def _is_passed_on(graph: Any, index: int) -> bool:
    """Whether the body returns carried value `index` as it gets it."""
    makers = {name: node for node in graph.node for name in node.output}
    name = _made_from(graph.output[1 + index].name, makers, ("Identity",))
    return bool(name == graph.input[2 + index].name)


def _made_from(name: str, makers: Mapping[str, Any], op_types: Sequence[str]) -> str:
    """The name behind all operators of these types; files that break the rules may go around in a circle."""
    for _ in makers:
        if name not in makers or makers[name].op_type not in op_types or not makers[name].input:
            break
        name = makers[name].input[0]
    return name


def _stays(g: Any, graph: Any) -> bool:
    """Whether the condition that the body makes is true if the one that it gets is."""
    makers = {name: node for node in graph.node for name in node.output}
    name = _made_from(graph.output[0].name, makers, ("Identity", "Cast"))
    if name == graph.input[1].name:
        return True
    if name in makers:
        maker = makers[name]
        return maker.op_type == "Constant" and answers(g.apply(g.view(maker), [])) is True
    for tensor in graph.initializer:
        if tensor.name == name:
            return answers(g.constant(g.tensor(tensor))) is True
    return isinstance(g.lookup(name), Value) and answers(g.lookup(name)) is True


__all__ = ["loop"]
