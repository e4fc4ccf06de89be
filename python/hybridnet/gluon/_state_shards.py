"""StateShards: each process keeps the optimizer states of its part of the parameters, and updates that part (ZeRO-1).

Gradients are packed into the buckets of the store. Each bucket has one part per process: the process gets the sum of
its part, updates these elements of the parameters, and all processes gather the parts. A rule that updates each element
by itself gives the same bits wherever a parameter is cut, so parts are equal numbers of elements. Rules that compute
norms or rows get whole parameters, balanced by bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core, group, ndarray
from ..errors import FormatError, ParamError, UnsupportedError
from ..kvstore._agreement import gather_bytes
from ..kvstore._dist_store import DistKVStore
from ..kvstore._process_store import buckets, copy_to_others
from ..ndarray._dtypes import numpy_dtype
from ..optimizer._ruled import RuledOptimizer
from ..optimizer._state_parts import Extent, merged_states

if TYPE_CHECKING:
    from ..ndarray import NDArray
    from ..optimizer import Optimizer
    from .trainer import Trainer

__all__ = ["StateShards", "balanced_owners", "check_can_shard", "extents_from_json", "extents_to_json"]


def check_can_shard(store: Any, optimizer: Optimizer, params: Iterable[Any]) -> None:
    """Raises ParamError or UnsupportedError if a trainer cannot keep states in parts, with the reason."""
    call = "Trainer: shard_states=True"
    if not isinstance(store, DistKVStore):
        raise ParamError(
            call,
            because="the trainer has no store that sums over processes in each step",
            fix="pass kvstore='dist_sync' to the trainer",
        )
    if store._compression is not None:
        raise UnsupportedError(call, because="sums of parts are not compressed", fix="leave compression_params out")
    if reason := _coupling(optimizer):
        raise UnsupportedError(
            f"{call} with {type(optimizer).__name__}",
            because=reason,
            fix="leave shard_states out, or use an optimizer such as 'sgd', 'adam' or 'lamb'",
        )
    for param in params:
        if param._stype != "default" or param._grad_stype != "default":
            raise UnsupportedError(
                f"{call}: parameter '{param.name}'",
                because="it or its gradient is row_sparse",
                fix="leave shard_states out, or use a dense parameter and gradient",
            )


def _coupling(optimizer: Optimizer) -> str | None:
    """The reason for which the update of one parameter may depend on those of others; None if it does not."""
    kind = type(optimizer)
    if not isinstance(optimizer, RuledOptimizer) or not kind.__module__.startswith("hybridnet."):
        return "its update is written in Python, and may depend on the parameters that were updated before"
    if optimizer._rule.draws:
        return "it draws random numbers for one parameter after the other"
    if optimizer._rule.variables:
        return f"the updates of all parameters share {', '.join(optimizer._rule.variables)}"
    return None


def balanced_owners(sizes: Sequence[int], processes: int) -> list[int]:
    """Returns the owner of each of some items: the largest ones first, each for the process that has least so far."""
    loads, owners = [0] * processes, [0] * len(sizes)
    for place in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        owners[place] = min(range(processes), key=lambda r: (loads[r], r))
        loads[owners[place]] += sizes[place]
    return owners


def extents_to_json(extents: dict[int, Extent]) -> list[Any]:
    """Returns the table of a part as JSON values."""
    return [[index, *extent] for index, extent in extents.items()]


def extents_from_json(table: list[Any]) -> dict[int, Extent]:
    """Returns the table that extents_to_json wrote."""
    return {index: Extent(begin, end, tuple(shape)) for index, begin, end, shape in table}


class _Bucket(NamedTuple):
    """Parameters whose gradients travel in one message."""

    members: list[int]  # indices in the trainer, in the order of the message
    bounds: list[int]  # the part of the process r is [bounds[r], bounds[r + 1])
    own: dict[int, Extent]  # the own elements of members
    name: str


class StateShards:
    """The own part of a trainer's parameters: its sums, its states, its update."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._plan: list[_Bucket] = []
        self._signature: Any = None  # that the plan is for
        self._sums: dict[int, NDArray] | None = None  # sums of the own elements, between step()'s sum and its update
        check_can_shard(trainer._store, trainer._optimizer, trainer._params)

    # -- the plan ---------------------------------------------------------------------------------------------------

    def _buckets(self) -> list[_Bucket]:
        """The plan for the parameters that are trained now. States are moved if it has changed."""
        params = self._trainer._params
        trained = [i for i, param in enumerate(params) if param.grad_req != "null"]
        for i in trained:
            if params[i]._data is None:
                raise params[i]._uninitialized()
        signature: list[Any] = [(group.rank(), group.size())]
        signature += [(i, params[i]._data[0].shape, str(params[i]._data[0].dtype)) for i in trained]  # type: ignore[index]
        if signature != self._signature:
            if self._signature is not None:
                self._trainer._updaters[0].set_states(self.states())  # now of all parameters
            self._plan = self._planned(trained)
            self._signature = signature
            self._keep_own_states()
        return self._plan

    def _planned(self, trained: list[int]) -> list[_Bucket]:
        order = list(reversed(trained))  # the gradients of the last ones are ready first
        arrays = {i: self._trainer._params[i]._data[0] for i in order}  # type: ignore[index]
        by_element = self._trainer._optimizer._rule.by_element  # type: ignore[attr-defined]
        sizes = [array.size * numpy_dtype(array.dtype).itemsize for array in arrays.values()]
        owners = dict(zip(order, balanced_owners(sizes, group.size()), strict=True))
        plan = []
        for members in buckets(arrays.values()):
            chosen = [order[place] for place in members]
            if by_element:
                bounds = _core.group_part_bounds(sum(arrays[i].size for i in chosen), group.size())
            else:
                chosen.sort(key=owners.__getitem__)
                bounds = [sum(arrays[i].size for i in chosen if owners[i] < rank) for rank in range(group.size() + 1)]
            plan.append(self._bucket(chosen, bounds))
        return plan

    def _bucket(self, members: list[int], bounds: list[int]) -> _Bucket:
        own, position = {}, 0
        begin, end = bounds[group.rank()], bounds[group.rank() + 1]
        params = self._trainer._params
        for i in members:
            shape = params[i]._data[0].shape  # type: ignore[index]
            size = math.prod(shape)
            extent = Extent(max(begin - position, 0), min(end - position, size), shape)
            if extent.begin < extent.end:
                own[i] = extent
            position += size
        names = [params[i].name for i in members]
        return _Bucket(members, bounds, own, f"'{names[0]}'..'{names[-1]}'" if len(names) > 1 else f"'{names[0]}'")

    # -- a step -----------------------------------------------------------------------------------------------------

    def sum_gradients(self, batch_size: float) -> None:
        """Sums the own part of the gradients over contexts and processes, or virtual shards.

        The gradients stay as they are.
        """
        trainer, plan = self._trainer, self._buckets()
        trained = [i for i, param in enumerate(trainer._params) if param.grad_req != "null"]
        lists, of_shards = trainer._nodes_of_step([trainer._params[i].list_grad() for i in trained])
        nodes = [{i: array.as_nd_ndarray() for i, array in zip(trained, node, strict=True)} for node in lists]
        self._sums = {}
        for bucket in plan:
            for i, extent in bucket.own.items():
                shape = extent.shape if extent.is_whole else (extent.end - extent.begin,)
                self._sums[i] = ndarray.empty(shape, ctx=nodes[0][i].context, dtype=nodes[0][i].dtype)
            _core.group_sum_scatter(
                [[node[i] for i in bucket.members] for node in nodes],
                bucket.bounds,
                [self._sums[i] for i in bucket.own],
                f"{_core.group_gradients_kind(batch_size)} {bucket.name}",
                of_shards,
            )

    def update(self, ignore_stale_grad: bool) -> None:
        """Updates the own elements, by the sums of sum_gradients() or else by the gradients, and gathers all others."""
        trainer, plan = self._trainer, self._buckets()
        sums, self._sums = self._sums, None
        if self._overflows(sums):
            return
        fresh = self._fresh_parameters(ignore_stale_grad)
        pieces = {i: extent for bucket in plan for i, extent in bucket.own.items() if i in fresh}
        grads = {i: sums[i] if sums is not None else self._view(trainer._params[i]._grad, e) for i, e in pieces.items()}
        weights = {i: self._view(trainer._params[i]._data, extent) for i, extent in pieces.items()}
        self._apply(sorted(fresh), grads, weights)
        for bucket in plan:
            if not fresh.isdisjoint(bucket.members):
                self._gather(bucket)
        for i in fresh:
            for weight in trainer._params[i].list_data():
                weight._fresh_grad = False

    def _overflows(self, sums: dict[int, NDArray] | None) -> bool:
        """Whether the scaled gradients of any process overflowed; all processes find the same."""
        scaler = getattr(self._trainer, "_amp_loss_scaler", None)
        if scaler is None:
            return False
        if sums is None:
            return bool(scaler.has_overflow(self._trainer._params))
        found = ndarray.array([0 if scaler._are_finite(list(sums.values())) else 1], dtype="int32")
        group.sum_into(found, name="numbers of overflows")
        return bool(scaler._note(int(found.asscalar()) == 0))

    def _fresh_parameters(self, ignore_stale_grad: bool) -> set[int]:
        """The parameters that the last backward has reached."""
        fresh = set()
        for i, param in enumerate(self._trainer._params):
            if param.grad_req == "null":
                continue
            stale = next((weight for weight in param.list_data() if not weight._fresh_grad), None)
            if stale is None:
                fresh.add(i)
            elif not ignore_stale_grad:
                self._trainer._raise_stale(param, stale)
        return fresh

    @staticmethod
    def _view(arrays: list[NDArray] | None, extent: Extent) -> NDArray:
        """The elements of the first array, which share its memory."""
        array = arrays[0].as_nd_ndarray()  # type: ignore[index]
        return array if extent.is_whole else array.reshape((-1,))[extent.begin : extent.end]

    def _apply(self, fresh: list[int], grads: dict[int, NDArray], weights: dict[int, NDArray]) -> None:
        """Updates the own elements. Updates of all parameters are counted in the order of a trainer without parts, so
        that learning rates are the same."""
        if not fresh:
            return
        updater = self._trainer._updaters[0]
        optimizer = updater.optimizer
        first = {i: self._trainer._params[i]._data[0] for i in fresh}  # type: ignore[index]
        optimizer._set_current_context(first[fresh[0]].context.device_id)
        for members in updater.groups_of(fresh, [first[i].dtype for i in fresh]):
            optimizer._update_count([i for i in members if i not in weights])
            own = [i for i in members if i in weights]
            updater(own, [grads[i] for i in own], [weights[i] for i in own])

    def _gather(self, bucket: _Bucket) -> None:
        """Overwrites parameters by the parts of all processes, on all contexts."""
        params = [self._trainer._params[i] for i in bucket.members]
        values = [param._data[0].as_nd_ndarray() for param in params]  # type: ignore[index]
        _core.group_gather_parts(values, bucket.bounds, f"parameters {bucket.name}")
        for param in params:
            copy_to_others(param.list_data())

    # -- states -----------------------------------------------------------------------------------------------------

    def extents(self) -> dict[int, Extent]:
        """The elements to which the states of this process belong. All states are whole before the first step."""
        return {i: extent for bucket in self._plan for i, extent in bucket.own.items()}

    def own_states(self) -> tuple[bytes, dict[int, Extent]]:
        """The states that this process alone has, and to which elements they belong."""
        updater, planned = self._trainer._updaters[0], {i for bucket in self._plan for i in bucket.members}
        extents = self.extents()
        if group.rank() == 0:  # those that are whole everywhere
            for i in updater.states:
                if i not in planned:
                    shape = tuple(self._trainer._params[i].shape)
                    extents[i] = Extent(0, math.prod(shape), shape)
        kept = {i: state for i, state in updater.states.items() if i in extents}
        return updater.bytes_of(kept, dump_optimizer=True), {i: extents[i] for i in kept}

    def states(self) -> bytes:
        """Returns the states of all processes, in the bytes of a trainer without parts. All processes must call it."""
        own, extents = self.own_states()
        name = "optimizer states (with shard_states, all processes save)"
        tables = gather_bytes(json.dumps(extents_to_json(extents)).encode(), f"tables of {name}")
        parts = gather_bytes(own, name)
        return merged_states(
            [(part, extents_from_json(json.loads(table))) for part, table in zip(parts, tables, strict=True)]
        )

    def take_all_states(self) -> None:
        """Called when the trainer has loaded states of all parameters: the next step keeps those of this process."""
        check_can_shard(self._trainer._store, self._trainer._optimizer, self._trainer._params)
        self._plan, self._signature, self._sums = [], None, None

    def _keep_own_states(self) -> None:
        """Drops the states of elements that other processes update."""
        updater, own = self._trainer._updaters[0], self.extents()
        for bucket in self._plan:
            for i in bucket.members:
                if i not in updater.states:
                    continue
                if i not in own:
                    del updater.states[i]
                elif not own[i].is_whole:
                    updater.states[i] = self._elements(updater.states[i], own[i], self._trainer._params[i].name)

    def _elements(self, state: Any, extent: Extent, name: str) -> Any:
        if isinstance(state, (tuple, list)):
            return type(state)(self._elements(item, extent, name) for item in state)
        if not isinstance(state, ndarray.NDArray):
            return state
        if state.size != math.prod(extent.shape):
            raise FormatError(
                f"optimizer states: those of parameter '{name}'",
                expected=f"shape {extent.shape}",
                given=str(state.shape),
                fix="make the trainer over the same parameters, or start its states afresh by a new trainer",
            )
        return state.reshape((-1,))[extent.begin : extent.end].copy()
