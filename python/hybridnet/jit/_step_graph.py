"""The graph of a training step: a traced forward, its gradients, and the parameter updates."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core, errors, ndarray, symbol
from .._control_flow import nests
from ..gluon import HybridBlock
from ..gluon.parameter import Parameter
from ..optimizer._graph_updates import GraphUpdate, Rule

if TYPE_CHECKING:
    from ..gluon import Trainer
    from ..gluon._traced_graph import TracedGraph
    from ..ndarray import NDArray
    from ..symbol import Symbol

__all__ = ["Forward", "StepGraph"]


class Forward(HybridBlock):
    """Runs net, then loss: the traced part of a step. Its graph returns the losses, then optionally net's outputs."""

    def __init__(self, net: HybridBlock, loss: Callable[..., Any] | None, outputs: bool) -> None:
        if not isinstance(net, HybridBlock):
            raise errors.TypeError("train_step: net", expected="a HybridBlock", given=type(net).__name__)
        if loss is not None and not callable(loss):
            raise errors.TypeError("train_step: loss", expected="a block or function", given=type(loss).__name__)
        super().__init__(prefix="")
        self._blocks = (net, loss)
        for name, block in (("net", net), ("loss", loss)):
            if isinstance(block, HybridBlock):
                self._children[name] = block
        self._wants_outputs = outputs
        self._loss_dtypes: list[str] = []  # dtypes of the last trace

    def forward(self, data: Any, *label: Any) -> Any:
        net, loss = self._blocks
        out = net(*data) if isinstance(data, (list, tuple)) else net(data)
        value = out
        if loss is not None:
            heads = out if isinstance(out, (list, tuple)) else (out,)
            rest = [part for each in label for part in (each if isinstance(each, (list, tuple)) else (each,))]
            value = loss(*heads, *rest)
        losses: list[Any] = []
        nests.flatten(value, losses)
        self._loss_dtypes = [np.dtype(each.dtype).name for each in losses]
        return (value, out) if self._wants_outputs else value

    def _compile(self, graph: Any, arguments: Any) -> None:
        graph.loss_dtypes = self._loss_dtypes  # the step compiles its own graph


def _arrays_in(state: Any) -> Iterator[NDArray]:
    if isinstance(state, (list, tuple)):
        for part in state:
            yield from _arrays_in(part)
    elif state is not None:
        yield state


class _Variables:
    """The additional variables of a step's graph, and the positions of their values in a call."""

    def __init__(self, taken: Sequence[str]) -> None:
        self._taken = set(taken)
        self.places: dict[str, int] = {}

    def make(self, name: str, place: int) -> Symbol:
        unique, number = name, 0
        while unique in self._taken:
            number += 1
            unique = f"{name}_{number}"
        self._taken.add(unique)
        self.places[unique] = place
        return symbol.var(unique)


class _Compiled:
    """A graph as an operator, and the positions of its inputs among the values of a call."""

    def __init__(self, outputs: list[Symbol], places: dict[str, int], name: str, **options: Any) -> None:
        self.symbol = _core.group(outputs)
        order = [places[name] for name in self.symbol.list_inputs()]
        self.pick: Callable[[Sequence[Any]], Sequence[Any]] = (
            operator.itemgetter(*order) if len(order) > 1 else lambda values: (values[order[0]],)
        )
        self.op = _core.CachedOp(self.symbol, name=name, static_alloc=True, **options)

    def __call__(self, values: Sequence[Any], key: Any = None) -> list[NDArray]:
        results = self.op(*self.pick(values), key=key)
        return [results] if isinstance(results, ndarray.NDArray) else list(results)


class StepGraph:
    """One compiled form of a step: for one traced forward and one state of the optimizer's settings.

    With a store of several processes it is two graphs: the first computes gradients, the store sums them, and the
    second updates the parameters. The sums of gradients that are complete run while the first graph computes the rest.
    """

    def __init__(
        self,
        traced: TracedGraph,
        trainer: Trainer,
        rule: Rule,
        *,
        ignore_stale: bool,
        clips: bool,
        scaled: bool,
        passes: str,
        remat: str,
        precision: str,
    ) -> None:
        self.traced = traced
        self._trainer = trainer
        self._rule = rule
        self._updated = _updated_parameters(traced, trainer, ignore_stale)
        self._indices = [trainer._param2idx[param.name] for param in self._updated]
        # That of the trainer, so that some processes may run step() while others run a compiled step.
        self._order_of_sums = sorted(range(len(self._indices)), key=self._indices.__getitem__)
        self._dtypes = [np.dtype(param._data[0].dtype).name for param in self._updated]  # type: ignore[index]
        self._rows: list[list[float]] = []
        self._table: NDArray | None = None
        self._released: list[NDArray] = []  # gradients without memory
        self._clips, self._scaled = clips, scaled
        self.sums_over_processes = trainer._sums_over_processes()
        self._update: _Compiled | None = None  # null: the main graph updates
        self._compose(passes=passes, remat=remat, precision=precision)

    # -- making the graph ---------------------------------------------------------------------------------------------

    def _compose(self, **options: str) -> None:
        traced: Any = self.traced
        dtypes: list[str] = traced.loss_dtypes
        names = traced.outputs.list_inputs()
        internals = traced.outputs.get_internals()
        of_name = {name: internals[i] for i, name in enumerate(internals.list_outputs())}
        variable_of = {
            source: of_name[name]
            for name, (is_input, source) in zip(names, traced.sources, strict=True)
            if not is_input and isinstance(source, Parameter)
        }
        # Order of the values of a call: arguments, parameters, constants, then the variables below.
        first = len(traced.inputs) + len(traced.params) + len(traced.constants)
        made = _Variables(names)
        place = iter(range(first, 1 << 30))
        weights = [variable_of[param] for param in self._updated]
        outputs = _as_list(traced.outputs, len(traced.outputs.list_outputs()))
        losses = outputs[: len(dtypes)]
        if self._scaled:
            scale = made.make("step_loss_scale", next(place))
            losses = [
                symbol.broadcast_mul(loss, symbol.Cast(scale, dtype=dtype))
                for loss, dtype in zip(losses, dtypes, strict=True)
            ]
        grads = _as_list(symbol._internal._gradient(*losses, *weights, num_losses=len(losses)), len(weights))
        writes: list[tuple[Symbol, Symbol]] = []
        for i, param in enumerate(self._updated):
            if param._grad_req == "add":
                total = made.make(f"{param.name}_grad", next(place))
                grads[i] = symbol.elemwise_add(total, grads[i])
                writes.append((grads[i], total))
        if self.sums_over_processes:
            kept = [grad for grad, param in zip(grads, self._updated, strict=True) if param._grad_req == "write"]
            results = outputs + kept
            self._update = self._compose_update(options["passes"])
        else:
            results = outputs + self._append_updates(made, place, weights, grads, writes)
        for value, variable in writes:
            results[0] = _core.write_state(results[0], value, variable)
        self._name_places(made.places)
        flags = list(traced.numpy) + [False] * (len(results) - len(traced.numpy)) if traced.numpy else ()
        self._main = _Compiled(
            results, made.places, "train_step", numpy=flags, early_outputs=self.sums_over_processes, **options
        )

    def _append_updates(
        self,
        made: _Variables,
        place: Iterator[int],
        weights: Sequence[Symbol],
        grads: list[Symbol],
        writes: list[tuple[Symbol, Symbol]],
    ) -> list[Symbol]:
        """Appends the new values of parameters and states to writes; returns whether all gradients are finite."""
        if self._clips:
            grads = _clipped(grads, made.make("step_norm_limit", next(place)), self._updated)
        condition = None
        if self._scaled:
            condition = symbol.multi_all_finite(*grads, num_arrays=len(grads), init_output=True)
        rates = made.make("step_rates", next(place))
        for row, (param, weight, grad) in enumerate(zip(self._updated, weights, grads, strict=True)):
            states: list[NDArray] = []
            nest = nests.flatten(self._state(self._indices[row], param), states)
            named = [made.make(f"{param.name}_state{k}", next(place)) for k in range(len(states))]
            use = GraphUpdate(
                optimizer=self._trainer.optimizer,
                index=self._indices[row],
                weight=weight,
                grad=grad,
                state=nests.restore(nest, named),
                dtype=self._dtypes[row],
                rates=rates,
                columns=self._rule.columns,
                row=row,
                condition=condition,
            )
            writes += self._rule.build(use)
        return [] if condition is None else [condition]

    def _compose_update(self, passes: str) -> _Compiled:
        """The graph of the updates alone: of parameters, summed gradients, and what _append_updates makes."""
        made, place = _Variables(()), iter(range(1 << 30))
        weights = [made.make(param.name, next(place)) for param in self._updated]
        grads = [made.make(f"{param.name}_grad", next(place)) for param in self._updated]
        writes: list[tuple[Symbol, Symbol]] = []
        results = self._append_updates(made, place, weights, grads, writes) or [symbol.zeros(shape=(1,))]
        for value, variable in writes:
            results[0] = _core.write_state(results[0], value, variable)
        return _Compiled(results, made.places, "train_step_update", passes=passes)

    def _name_places(self, places: dict[str, int]) -> None:
        traced = self.traced
        params = {id(param): i for i, param in enumerate(traced.params)}
        constants = {id(array): i for i, array in enumerate(traced.constants)}
        for name, (is_input, source) in zip(traced.outputs.list_inputs(), traced.sources, strict=True):
            if is_input:
                places[name] = source
            elif id(source) in params:
                places[name] = len(traced.inputs) + params[id(source)]
            else:
                places[name] = len(traced.inputs) + len(traced.params) + constants[id(source)]

    @property
    def ops(self) -> list[Any]:
        """The compiled graphs."""
        return [part.op for part in (self._main, self._update) if part is not None]

    def _state(self, index: int, param: Parameter) -> Any:
        weight = param._data[0].as_nd_ndarray()  # type: ignore[index]
        return self._trainer._updaters[0]._state(index, weight)

    # -- running ------------------------------------------------------------------------------------------------------

    def run(
        self, flat: Sequence[NDArray], limit: float | None, loss_scale: float | None, batch_size: float
    ) -> list[NDArray]:
        """Updates the parameters; returns the outputs of the traced graph, then whether all gradients were finite."""
        optimizer = self._trainer.optimizer
        context = flat[0].context
        optimizer._set_current_context(context.device_id)
        self._release_gradients()
        # Before counting the update: errors in parameters and states are raised here.
        values: list[Any] = [*flat, *self.traced.arrays(flat[0]), *self.traced.constants]
        if loss_scale is not None:
            values.append(ndarray.full((1,), loss_scale, ctx=context))
        values += [param._grad[0] for param in self._updated if param._grad_req == "add"]  # type: ignore[index]
        # Like in a loop, the random numbers of the net come before those of the optimizer.
        key = _core.next_rng_key() if self._rule.draws and self._main.op.is_random else None
        if self._update is None:
            return self._main(values + self._update_values(context, limit), key)
        results = self._main(values, key)
        count = len(self.traced.outputs.list_outputs())
        results, grads = results[:count], iter(results[count:])
        summed = [
            param._grad[0] if param._grad_req == "add" else next(grads)  # type: ignore[index]
            for param in self._updated
        ]
        names = [param.name for param in self._updated]
        order = self._order_of_sums
        self._trainer._store.sum_gradients([names[i] for i in order], [[summed[i]] for i in order], batch_size)
        weights = [param._data[0] for param in self._updated]  # type: ignore[index]
        flags = self._update([*weights, *summed, *self._update_values(context, limit)])
        return results + flags if self._scaled else results

    def _update_values(self, context: Any, limit: float | None) -> list[NDArray]:
        """Counts an update; returns the values of the variables that _append_updates makes."""
        values: list[NDArray] = []
        if limit is not None:
            values.append(ndarray.full((1,), limit / self._trainer.optimizer.rescale_grad, ctx=context))
        states = [
            state
            for index, param in zip(self._indices, self._updated, strict=True)
            for state in _arrays_in(self._state(index, param))
        ]
        return [*values, self._rates(context), *states]

    def export(self, path: str, epoch: int) -> tuple[str, str]:
        """Writes the graph, and the values of all variables except for the inputs of a call."""
        if self._update is not None:
            raise errors.UnsupportedError(
                "train_step: export of a step over several processes",
                because="the sums between its two graphs are calls of this program",
                fix="export the step of a trainer without kvstore",
            )
        values: list[Any] = [*([None] * len(self.traced.inputs)), *self.traced.arrays(None), *self.traced.constants]
        values += [None] * self._scaled
        values += [param._grad[0] for param in self._updated if param._grad_req == "add"]  # type: ignore[index]
        values += [None] * (self._clips + 1)  # the limit of the norm, and the rates
        for index, param in zip(self._indices, self._updated, strict=True):
            values += _arrays_in(self._state(index, param))
        symbol_file, params_file = f"{path}-symbol.json", f"{path}-{epoch:04d}.params"
        self._main.symbol._write(symbol_file, False)
        auxiliary = set(self._main.symbol.list_auxiliary_states())
        arrays = {}
        for name, value in zip(self._main.symbol.list_inputs(), self._main.pick(values), strict=True):
            if value is not None:
                arrays[f"{'aux' if name in auxiliary else 'arg'}:{name}"] = value
        arrays.update({f"arg:{name}": value for name, value in _core.symbol_constants(self._main.symbol).items()})
        ndarray.save(params_file, arrays)
        return symbol_file, params_file

    def _release_gradients(self) -> None:
        """Frees the memory of gradients, which nothing writes. They read as zeros, unless backward() has just run."""
        grads = [param._grad[0] for param in self._updated if param._grad_req == "write"]  # type: ignore[index]
        if len(grads) == len(self._released) and all(map(operator.is_, grads, self._released)):
            return
        self._released = grads
        for param in self._updated:
            if param._grad_req == "write" and not param._data[0]._fresh_grad:  # type: ignore[index]
                _core.release_as_zeros(param._grad[0])  # type: ignore[index]

    def _rates(self, context: Any) -> NDArray:
        rows = self._rule.rows(self._trainer.optimizer, self._indices, self._dtypes)
        if self._table is None or rows != self._rows:
            self._rows = rows
            self._table = ndarray.array(np.array(rows, "float64"), ctx=context, dtype="float64")
        return self._table


def _as_list(symbols: Symbol, count: int) -> list[Symbol]:
    return [symbols] if count == 1 else [symbols[i] for i in range(count)]


def _clipped(grads: list[Symbol], limit: Symbol, params: Sequence[Parameter]) -> list[Symbol]:
    """Scales grads so that their common norm is at most the limit: gluon.utils.clip_global_norm as nodes."""
    squares = [symbol.sum(symbol.square(symbol.Cast(grad, dtype="float32"))) for grad in grads]
    total = symbol.sqrt(symbol.add_n(*(symbol.reshape(square, shape=(1,)) for square in squares)))
    scale = symbol.broadcast_div(limit, total + 1e-8)
    scale = symbol._internal._minimum_scalar(scale, scalar=1.0)
    dtypes = [np.dtype(param._data[0].dtype).name for param in params]  # type: ignore[index]
    return [
        symbol.broadcast_mul(grad, symbol.Cast(scale, dtype=dtype)) for grad, dtype in zip(grads, dtypes, strict=True)
    ]


def _updated_parameters(traced: TracedGraph, trainer: Trainer, ignore_stale: bool) -> list[Parameter]:
    """Returns the parameters that a step updates. Raises for parameters that it cannot update."""
    if len(trainer._contexts) > 1:
        contexts = ", ".join(map(str, trainer._contexts))
        raise _unsupported(f"the parameters are on several contexts: {contexts}", "a step is one plan on one device")
    wanted = {param.name: param for param in trainer._params if param._grad_req != "null"}
    used = [param for param in traced.params if wanted.get(param.name) is param]
    for param in used:
        if param._grad_stype != "default" or param._stype != "default":
            raise _unsupported(
                f"parameter '{param.name}' or its gradient is row_sparse", "gradients in a plan are dense"
            )
        if param.name in traced.writes:
            raise _unsupported(
                f"forward writes to parameter '{param.name}' in place at {traced.writes[param.name]}",
                "a step updates it from its gradient",
            )
        if param._computes_data:
            raise _unsupported(f"parameter '{param.name}' computes its value", "there is no array to update")
    unused = [name for name, param in wanted.items() if not any(param is each for each in used)]
    if unused and not ignore_stale:
        raise errors.UserWarning(
            f"train_step: parameter `{unused[0]}` of the trainer has no part in the loss"
            + (f", nor have {len(unused) - 1} more" if len(unused) > 1 else ""),
            because="neither net nor loss reads it, so it would get no gradient",
            fix="pass ignore_stale_grad=True, or give the Trainer the parameters of net only",
        )
    if not used:
        raise errors.ValueError(
            "train_step: no parameter of net is trained",
            because="no parameter of the trainer with a gradient belongs to net",
            fix="make the Trainer with net.collect_params()",
        )
    return used


def _unsupported(what: str, because: str) -> errors.UnsupportedError:
    return errors.UnsupportedError(
        f"train_step: {what}", because=because, fix="train with autograd.record(), backward() and trainer.step()"
    )
