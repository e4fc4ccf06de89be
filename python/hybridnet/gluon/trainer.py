"""Trainer: applies an optimizer to parameters after each backward."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import autograd, group, ndarray
from .. import optimizer as opt
from .._described import count_text, described
from .._files import read_bytes, replacing
from .._habits import add_habits
from .._keywords import ChecksKeywords
from .._public_names import dir_of
from ..errors import ParamError, UnsupportedError
from ..errors import UserWarning as HybridNetUserWarning
from ..kvstore._async_store import AsyncKVStore
from ..kvstore._dist_store import DistKVStore
from ..kvstore._process_store import copy_to_others
from ..kvstore.kvstore import KVStore, _total
from ._gradient_rounds import exchange_gradients
from ._parameter_dict import ParameterDict
from .parameter import Parameter

if TYPE_CHECKING:
    from ..context import Context
    from ..kvstore._shard_sums import ShardSums
    from ..ndarray import NDArray
    from ._joining import Join
    from ._state_shards import StateShards

__all__ = ["Trainer"]

# Single-process key-value stores: they only sum over contexts, which the trainer does itself.
_LOCAL_STORES = {
    "local",
    "device",
    "nccl",
    "local_update_cpu",
    "local_allreduce_cpu",
    "local_allreduce_device",
}


def _parameter_list(params: Any) -> list[Parameter]:
    if isinstance(params, (dict, ParameterDict)):
        params = [params[key] for key in sorted(params.keys())]
    if not isinstance(params, (list, tuple)):
        raise ParamError(
            "First argument must be a list or dict of Parameters",
            given=f"the class {params.__name__}" if isinstance(params, type) else type(params).__name__,
            fix="pass net.collect_params()",
        )
    for param in params:
        if not isinstance(param, Parameter):
            given = f"list of {type(param).__name__}"
            fix = "pass net.collect_params()"
            raise ParamError("First argument must be a list or dict of Parameters", given=given, fix=fix)
    return list(params)


class _SumsOfContexts(KVStore):
    """The value of ``trainer._kvstore`` with several contexts: it shows its type and the trainer's updater."""

    def __init__(self, name: str, updater: opt.Updater) -> None:
        super().__init__(name)
        self._updater = self._optimizer_updater = updater


def _no_batch_size(given: Any) -> ParamError:
    return ParamError(
        "Trainer: batch_size must be positive",
        given="none" if given is None else repr(given),
        because="a loss has one value for each sample, and the sum of their gradients is divided by batch_size",
        fix="call trainer.step(data.shape[0]), or trainer.step(1) after loss.mean().backward()",
    )


class _UpdatedByStoreError(ParamError, AssertionError):
    """The error of a call that update_on_kvstore forbids. MXNet raises an AssertionError."""


class Trainer(ChecksKeywords):
    """Updates parameters by an optimizer::

        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
        with autograd.record():
            loss = loss_fn(net(data), label)
        loss.backward()
        trainer.step(batch_size)

    Parameters
    ----------
    params : ParameterDict, dict or list of Parameter
        Parameters from ``net.collect_params()``; must be initialized (or waiting for the first batch).
    optimizer : str or Optimizer
    optimizer_params : dict, optional
        Arguments of an optimizer that is given by name: learning_rate, wd, clip_gradient, lr_scheduler, ...
    kvstore : str, object or None, default 'device'
        Method of summing gradients of several contexts or processes. All names of single-process stores are equivalent;
        an object must have ``pushpull(key, values, out=...)``.
    compression_params : dict, optional
        Passed to ``kvstore.set_gradient_compression`` if kvstore is an object.
    update_on_kvstore : bool, optional
        This follows MXNet: True forbids allreduce_grads() and update(), and is the default with several contexts and
        mandatory for row_sparse values; row_sparse gradients of dense values have False by default.
    shard_states : bool, default False
        Whether each process of ``kvstore='dist_sync'`` keeps the optimizer's states of its part of the parameters only,
        with the same results. step() leaves the gradients of the process as they are; save_states and load_states must
        then be called by all processes.

    Raises ParamError for wrong arguments, RuntimeError for uninitialized parameters.
    """

    def __init__(
        self,
        params: ParameterDict | Mapping[str, Parameter] | Sequence[Parameter],
        optimizer: str | opt.Optimizer,
        optimizer_params: Mapping[str, Any] | None = None,
        kvstore: Any = "device",
        compression_params: Mapping[str, Any] | None = None,
        update_on_kvstore: bool | None = None,
        shard_states: bool = False,
    ) -> None:
        if optimizer_params is not None and not isinstance(optimizer_params, Mapping):
            raise ParamError(
                "Trainer: optimizer_params",
                expected="a dict",
                given=repr(optimizer_params),
                fix="pass {'learning_rate': 0.1}",
            )
        self._params = _parameter_list(params)
        self._param2idx = {param.name: i for i, param in enumerate(self._params)}
        self._values_set = [0] * len(self._params)  # how often the values of each parameter were set
        for param in self._params:
            param._set_trainer(self)
        self._contexts = self._check_contexts()
        self._init_optimizer(optimizer, dict(optimizer_params or {}))
        self._scale = self._optimizer.rescale_grad
        self._compression_params = compression_params
        self._kvstore_params = {"kvstore": kvstore, "update_on_kvstore": update_on_kvstore}
        self._store = self._check_kvstore(kvstore, compression_params)
        self._shards: ShardSums | None = None  # filled by add_shard()
        self._join: Join | None = None  # while the program is in join()
        self._state_shards = self._make_state_shards() if shard_states else None
        self._reset_kvstore()
        if self._sums_over_processes():
            for param in self._params:
                param._synchronizer = self
            self._take_values_of_first_process(self._params)

    def __repr__(self) -> str:
        sizes = [param.shape for param in self._params if param.grad_req != "null"]
        counts = [0 if shape is None else math.prod(shape) for shape in sizes]
        values = f" of {sum(counts):,} values" if counts and min(counts) > 0 else ""
        frozen = len(self._params) - len(sizes)
        parts = [repr(self._optimizer), f"{count_text(len(sizes), 'parameter')}{values}"]
        parts += [f"{frozen} without gradient"] if frozen else []
        return described(self, *parts, f"on {', '.join(map(str, self._contexts)) or 'no context'}")

    # MXNet training loops read these attributes; like in MXNet, they are set at the first step. Sums over contexts need
    # no store here, so with several contexts the store is only a placeholder.

    def _reset_kvstore(self) -> None:
        self._kv_initialized = False
        self._kvstore: Any = None
        self._distributed: bool | None = None
        self._update_on_kvstore: bool | None = None
        self._params_to_init = list(self._params)

    def _value_was_set(self, param: Parameter) -> None:
        """Called when a value is set: a store that updates holds the values, so it is recreated at the next step."""
        self._values_set[self._param2idx[param.name]] += 1
        if self._kv_initialized and self._update_on_kvstore and param not in self._params_to_init:
            self._reset_kvstore()

    def _take_values_of_first_process(self, params: Sequence[Parameter]) -> None:
        """Overwrites values that exist by those of process 0, so that all processes have the same ones.

        All processes must set a value, because all wait for it here.
        """
        made = [param for param in params if param._data is not None]
        with autograd.pause():
            self._store.broadcast_all([param.name for param in made], [param._data for param in made])

    def _sums_over_processes(self) -> bool:
        """Whether the store is one of several processes that begin with equal values."""
        return hasattr(self._store, "broadcast_all") and self._store.num_workers > 1

    def _make_state_shards(self) -> StateShards | None:
        """Returns the states in parts; None for a single process. Raises the errors of check_can_shard."""
        from ._state_shards import StateShards, check_can_shard

        check_can_shard(self._store, self._optimizer, self._params)
        return StateShards(self) if self._sums_over_processes() else None

    def _init_kvstore(self) -> None:
        """Decides where parameters are updated. Raises ValueError for an update on a store that does not support it."""
        self._kvstore, wanted = self._store, self._kvstore_params["update_on_kvstore"]
        by_rows = any(param._stype != "default" for param in self._params)
        if by_rows and wanted is False:
            raise ParamError("Cannot set update_on_kvstore=False when sparse weights are present.")
        needs_store = by_rows or len(self._contexts) > 1
        if self._kvstore is None and self._kvstore_params["kvstore"] is not None and needs_store:
            self._kvstore = _SumsOfContexts(self._kvstore_params["kvstore"], self._updaters[0])
        if wanted is False and isinstance(self._store, AsyncKVStore):
            raise ParamError(
                "Trainer: Please set update_on_kvstore=True when training in async mode",
                because="each process's gradients update by themselves, so there is no sum to update by",
            )
        self._update_on_kvstore = True if wanted else None
        if self._kvstore is not None:
            if wanted and not getattr(self._kvstore, "is_capable", lambda capability: False)("optimizer"):
                raise ParamError(
                    f"Please set update_on_kvstore=False when training with {type(self._kvstore).__name__}",
                    because="this store has no optimizer",
                )
            sums_rows = not by_rows and any(param._grad_stype != "default" for param in self._params)
            by_default = isinstance(self._store, AsyncKVStore) or (self._store is None and not sums_rows)
            self._update_on_kvstore = by_default if wanted is None else bool(wanted)
        self._distributed = self._sums_over_processes()
        self._kv_initialized = True

    def _init_params(self) -> None:
        """Marks the parameters, which are all initialized by the first step, as in use."""
        self._params_to_init = []

    def _be_ready(self) -> None:
        if not self._kv_initialized:
            self._init_kvstore()
        if self._params_to_init:
            self._init_params()

    @staticmethod
    def _check_kvstore(kvstore: Any, compression_params: Any) -> Any:
        if kvstore is None or (isinstance(kvstore, str) and kvstore in _LOCAL_STORES):
            return None
        if isinstance(kvstore, str):
            from ..kvstore import create

            store: Any = create(kvstore)
        else:
            store = kvstore
        if not hasattr(store, "pushpull"):
            raise ParamError("Trainer: kvstore must be a name or have pushpull()", given=type(store).__name__)
        if compression_params:
            store.set_gradient_compression(compression_params)
        return store

    def _check_contexts(self) -> list[Context]:
        contexts: list[Context] | None = None
        for param in self._params:
            own = param.list_ctx()
            if contexts is not None and contexts != own:
                raise ParamError(
                    "All Parameters must be initialized on the same set of contexts, but Parameter "
                    f"{param.name} is initialized on {own} while previous Parameters are initialized on {contexts}."
                )
            contexts = own
        return contexts or []

    def _init_optimizer(self, optimizer: Any, optimizer_params: dict[str, Any]) -> None:
        param_dict = dict(enumerate(self._params))
        if isinstance(optimizer, opt.Optimizer):
            if optimizer_params:
                raise ParamError(
                    "optimizer_params must be None if optimizer is an instance of Optimizer instead of str"
                )
            self._optimizer = optimizer
            optimizer.param_dict = param_dict
        else:
            self._optimizer = opt.create(optimizer, param_dict=param_dict, **optimizer_params)
        self._updaters = [opt.get_updater(self._optimizer) for _ in self._contexts]

    # -- settings ---------------------------------------------------------------------------------------------------

    @property
    def optimizer(self) -> opt.Optimizer:
        """The optimizer."""
        return self._optimizer

    @property
    def learning_rate(self) -> float:
        """The current learning rate."""
        return self._optimizer.learning_rate

    def set_learning_rate(self, lr: float) -> None:
        """Sets a fixed learning rate. Raises UserWarning if the optimizer has a scheduler."""
        self._optimizer.set_learning_rate(lr)

    # -- stepping ---------------------------------------------------------------------------------------------------

    def step(self, batch_size: float | None = None, ignore_stale_grad: bool = False) -> None:
        """Sums gradients over contexts and updates all parameters. Call it after backward, outside of record().

        Parameters
        ----------
        batch_size : int
            Divisor of the gradients; 1 if the loss is a mean already.
        ignore_stale_grad : bool, default False
            Whether parameters that the last backward did not reach are skipped instead of raising UserWarning.
        """
        self._be_ready()
        scale = self._scale_for(batch_size)
        if self._join is not None:
            has_shards = self._shards is not None and self._shards.count > 0
            self._join.begin_step(batch_size, scale, ignore_stale_grad, has_shards)  # type: ignore[arg-type]
        self._step(scale, ignore_stale_grad, batch_size)  # type: ignore[arg-type]

    def _step(self, scale: float, ignore_stale_grad: bool, batch_size: float) -> None:
        self._check_and_rescale_grad(scale)
        if isinstance(self._store, AsyncKVStore):
            exchange_gradients(self, self._store, batch_size, ignore_stale_grad)
            return
        if ignore_stale_grad:
            self._agree_on_stale_gradients()
        if self._state_shards is not None:
            self._state_shards.sum_gradients(batch_size)
        else:
            self._allreduce_grads(batch_size)
        self._update(ignore_stale_grad)

    def _finish_exchanges(self) -> None:
        """Updates by all gradients of 'dist_async' that are on their way. All processes must call it."""
        if isinstance(self._store, AsyncKVStore):
            self._store.barrier()

    def join(self) -> Join:
        """Returns a context for loops over unequal numbers of batches in the processes of kvstore='dist_sync'::

            with trainer.join():
                for data, label in loader:
                    ...
                    trainer.step(32 * mx.group.size())

        A process that has left the loop takes part in the steps of the others with gradients of zero, until the last
        one has left it. All steps divide by the batch_size that is given, so each sample has the same weight; learning
        rates count the steps of the longest loop. All processes must give the same batch_size. step() waits for the
        other processes once more. Layers that sum over processes themselves, such as SyncBatchNorm, cannot be joined:
        this is a GroupError.

        Raises ParamError without a store of several processes. In the context allreduce_grads() and update() raise
        ParamError.
        """
        from ._joining import Join

        if not hasattr(self._store, "sum_gradients"):
            raise ParamError(
                "Trainer.join()",
                because="this trainer does not sum over processes",
                fix="pass kvstore='dist_sync' to the trainer",
            )
        return Join(self)

    def _check_can_compile(self) -> None:
        """Raises UnsupportedError if compiled steps would differ from step()."""
        if (found := self._difference_of_compiled_steps()) is None:
            return
        what, because = found
        raise UnsupportedError(
            f"train_step: {what}",
            because=because,
            fix="write the loop: with autograd.record(): ...; loss.backward(); trainer.step(batch_size)",
        )

    def _difference_of_compiled_steps(self) -> tuple[str, str] | None:
        """Returns what a compiled step cannot do for this trainer, and why; None if it gives the values of step()."""
        store = self._store
        if store is None:
            return None
        if not isinstance(store, DistKVStore):
            what = f"the trainer sums gradients by key-value store {type(store).__name__}"
            return what, "a compiled step does not know how it changes them"
        if store.compresses:
            return "the key-value store changes gradients (compression)", "a compiled step sums them as they are"
        if self._state_shards is not None or self._join is not None:
            what = "join()" if self._state_shards is None else "shard_states=True"
            return f"a trainer with {what}", "a compiled step updates all parameters in each process, by its own batch"
        begin, end = store.own_shards
        if end - begin > 1:
            what = f"this process has the virtual shards {begin} to {end - 1} of the group"
            return what, "a compiled step computes one batch"
        return None

    def _step_without_batch(self, batch_size: float, scale: float, ignore_stale_grad: bool, has_shards: bool) -> None:
        """A step with gradients of zero, while other processes have batches."""
        self._be_ready()
        for param in self._params:
            if param.grad_req == "null":
                continue
            param.zero_grad()
            for weight in param._data or ():
                weight._fresh_grad = not ignore_stale_grad
        if has_shards:
            begin, end = self._store.own_shards
            for _ in range(begin, end):
                self.add_shard()
        self._step(scale, ignore_stale_grad, batch_size)

    def allreduce_grads(self) -> None:
        """Only sums gradients over contexts, for clipping before update(). Raises ParamError with update_on_kvstore."""
        self._refuse_on_kvstore("allreduce_grads()")
        self._allreduce_grads()

    def update(self, batch_size: float | None = None, ignore_stale_grad: bool = False) -> None:
        """Only updates, after allreduce_grads(). Arguments: see step. Raises ParamError with update_on_kvstore."""
        self._refuse_on_kvstore("update()")
        self._check_and_rescale_grad(self._scale_for(batch_size))
        if ignore_stale_grad:
            self._check_stale_gradients()
        self._update(ignore_stale_grad)

    def _refuse_on_kvstore(self, what: str) -> None:
        self._be_ready()
        if self._join is not None:
            raise ParamError(
                f"Trainer.{what} in join()",
                because="processes without batches cannot repeat what the program does between sum and update",
                fix="call step(batch_size)",
            )
        if self._kvstore_params["update_on_kvstore"] or (self._kvstore is not None and self._update_on_kvstore):
            raise _UpdatedByStoreError(
                f"{what} when parameters are updated on kvstore is not supported. Try setting `update_on_kvstore` to "
                "False when creating trainer."
            )

    def _scale_for(self, batch_size: float | None) -> float:
        if batch_size is None or isinstance(batch_size, (str, list, tuple)) or not batch_size > 0:
            raise _no_batch_size(batch_size)
        return self._scale / batch_size

    def _check_and_rescale_grad(self, scale: float) -> None:
        self._optimizer.rescale_grad = scale

    def _allreduce_grads(self, batch_size: float | None = None) -> None:
        if len(self._contexts) < 2 and (self._store is None or self._is_alone()):
            return
        if hasattr(self._store, "sum_gradients"):
            self._sum_over_processes(batch_size)
            return
        for i, param in enumerate(self._params):
            if param.grad_req == "null":
                continue
            grads = param.list_grad()
            if self._store is not None:
                self._store.pushpull(i, grads, out=grads, priority=-i)
            else:
                total = ndarray.add_n(*(grad.as_in_context(grads[0].context) for grad in grads))
                for grad in grads:
                    grad[:] = total.as_in_context(grad.context)

    def _is_alone(self) -> bool:
        """Whether sums over processes are the gradients themselves."""
        store = self._store
        return (
            isinstance(store, DistKVStore) and store.num_shards == 1 and self._shards is None and not store.compresses
        )

    def _reached_parameters(self) -> Iterator[tuple[Parameter, bool, int]]:
        """Yields each parameter, whether the backward of this process reached it, and in how many processes one did."""
        if not hasattr(self._store, "sum_gradients") or self._store.num_workers == 1:
            return
        trained = [param for param in self._params if param.grad_req != "null"]
        reached = [any(weight._fresh_grad for weight in param._data or ()) for param in trained]
        counts = ndarray.array(reached, dtype="int32")
        group.sum_into(counts, name="numbers of processes that reached parameters")
        yield from zip(trained, reached, counts.asnumpy().tolist(), strict=True)

    def _agree_on_stale_gradients(self) -> None:
        """A parameter that any process has reached is updated in all; its gradient is zero where it was not reached."""
        for param, is_reached, count in self._reached_parameters():
            if is_reached or count == 0:
                continue
            for weight, grad in zip(param._data or (), param.list_grad(), strict=True):
                grad[:] = 0
                weight._fresh_grad = True

    def _check_stale_gradients(self) -> None:
        """Raises if only some processes would update a parameter: allreduce_grads() has summed its old gradients."""
        for param, _, count in self._reached_parameters():
            if 0 < count < self._store.num_workers:
                raise ParamError(
                    f"Trainer.update: parameter '{param.name}'",
                    because=f"the backward of {count} of {self._store.num_workers} processes has reached it",
                    fix="call step(batch_size, ignore_stale_grad=True) in place of allreduce_grads() and update()",
                )

    def _sum_over_processes(self, batch_size: float | None) -> None:
        trained = [param for param in self._params if param.grad_req != "null"]
        names, gradients = [param.name for param in trained], [param.list_grad() for param in trained]
        if not self._has_shards_of_step():
            self._store.sum_gradients(names, gradients, batch_size)
            return
        nodes = self._shards.take()  # type: ignore[union-attr]
        self._store.sum_shards(names, nodes, [arrays[0] for arrays in gradients], batch_size)
        for arrays in gradients:
            copy_to_others(arrays)

    def _has_shards_of_step(self) -> bool:
        """Whether the gradients of this step are those of virtual shards. Raises ParamError if some are missing."""
        count = self._shards.count if self._shards is not None else 0
        begin, end = self._store.own_shards
        if count != end - begin and (count != 0 or end - begin > 1):
            raise ParamError(
                "Trainer: add_shard()",
                expected=f"{end - begin} calls before each step",
                given=str(count),
                because=f"the group has {self._store.num_shards} virtual shards, and this process the shards "
                f"{begin} to {end - 1}",
                fix="call trainer.add_shard() after the backward of each shard",
            )
        return count > 0

    def _nodes_of_step(self, gradients: Sequence[Sequence[NDArray]]) -> tuple[list[list[NDArray]], bool]:
        """Returns what this process adds to the sums: lists of arrays, and whether they are of virtual shards."""
        if self._has_shards_of_step():
            return self._shards.take(), True  # type: ignore[union-attr]
        return [[_total(list(arrays)) for arrays in gradients]], False

    def add_shard(self) -> None:
        """Ends a virtual shard: call it after the backward of each, then step() once, with kvstore='dist_sync'.

        Each process computes its ``mx.group.own_shards()`` of the batch, one after the other. Their gradients are added
        in an order that does not depend on the number of processes, so training gives the same bits with 1, 2, 3 or 4
        of them. Raises ParamError without a store of several processes, or after too many calls.
        """
        if not hasattr(self._store, "sum_shards"):
            raise ParamError(
                "Trainer.add_shard()",
                because="this trainer does not sum over processes",
                fix="pass kvstore='dist_sync' to the trainer",
            )
        if self._shards is None:
            from ..kvstore._shard_sums import ShardSums

            self._shards = ShardSums()
        begin, end = self._store.own_shards
        if self._shards.count == end - begin:
            raise ParamError(
                "Trainer.add_shard()",
                expected=f"at most {end - begin} calls before each step",
                given=str(self._shards.count + 1),
                because=f"this process has the shards {begin} to {end - 1} of {self._store.num_shards}",
                fix="call trainer.step() after the last shard",
            )
        gradients = [param.list_grad() for param in self._params if param.grad_req != "null"]
        self._shards.add([_total(arrays) for arrays in gradients])

    def _update(self, ignore_stale_grad: bool) -> None:
        if self._state_shards is not None:
            self._state_shards.update(ignore_stale_grad)
            return
        scaler = getattr(self, "_amp_loss_scaler", None)
        if scaler is not None and scaler.has_overflow(self._params):
            return
        for place, updater in enumerate(self._updaters):
            indices: list[int] = []
            weights: list[NDArray] = []
            grads: list[NDArray] = []
            for i, param in enumerate(self._params):
                if param._grad_req == "null":
                    continue
                if param._data is None:
                    raise param._uninitialized()
                weight = param._data[place]
                if not weight._fresh_grad:
                    if ignore_stale_grad:
                        continue
                    self._raise_stale(param, weight)
                indices.append(i)
                weights.append(weight)
                grads.append(param._grad[place])  # type: ignore[index]
            updater(indices, grads, weights)
            # After the update, so that a step that raised can be repeated.
            for weight in weights:
                weight._fresh_grad = False

    @staticmethod
    def _raise_stale(param: Parameter, weight: NDArray) -> None:
        raise HybridNetUserWarning(
            f"Gradient of Parameter `{param.name}` on context {weight.context} has not been updated by backward since "
            "last `step`",
            because="backward() was not called, or the loss does not depend on the parameter",
            fix="call loss.backward() before each step; if the model leaves parameters out on purpose, "
            "step(batch_size, ignore_stale_grad=True)",
        )

    # -- files ------------------------------------------------------------------------------------------------------

    def save_states(self, fname: str) -> None:
        """Writes the optimizer's states (momentum, counts, settings) to a file, without lr_mult and wd_mult.

        With shard_states all processes must call it; each writes the states of all.
        """
        states = self._states()
        with replacing(fname, "Trainer.save_states") as file:
            file.write(states)

    def _states(self) -> bytes:
        """Returns the bytes that save_states writes."""
        self._be_ready()
        if not self._updaters:
            raise ParamError("Trainer.save_states: there are no parameters, so there are no states")
        if self._state_shards is not None:
            return self._state_shards.states()
        return self._updaters[0].get_states(dump_optimizer=True)

    def load_states(self, fname: str) -> None:
        """Reads states that save_states wrote; lr_mult and wd_mult are those of this trainer's parameters.

        Raises FileError if the file cannot be read, FormatError if it holds no states.
        """
        self._set_states(read_bytes(fname, "Trainer.load_states"))

    def _set_states(self, states: bytes) -> None:
        """Restores states that _states returned."""
        self._be_ready()
        for updater in self._updaters if self._state_shards is None else self._updaters[:1]:
            updater.set_states(states)
        if self._updaters:
            self._optimizer = self._updaters[0].optimizer
        for updater in self._updaters:
            updater.optimizer = self._optimizer
        self._optimizer.param_dict = dict(enumerate(self._params))
        if self._state_shards is not None:
            self._state_shards.take_all_states()


__dir__ = dir_of(__name__)


add_habits(Trainer, "trainer", refused=("lr", "param_groups"))
