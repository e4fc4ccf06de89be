"""Training: equal parameters at the beginning, trainers and optimizers that reduce gradients over processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .._user_line import warn
from ..errors import DeferredInitializationError, ParamError, UnsupportedError
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from ..gluon._parameter_dict import ParameterDict
from ..gluon.parameter import Parameter
from ..gluon.trainer import Trainer
from ..kvstore._dist_store import DistKVStore
from ..kvstore._process_store import broadcast_lists
from ..kvstore.kvstore import _total
from ..ndarray import NDArray
from ..optimizer import Optimizer
from ._calls import grouped_allreduce_
from ._processes import ProcessSet, check_process_set, global_process_set, size

if TYPE_CHECKING:
    from ..context import Context

# --- compression ------------------------------------------------------------------------------------------------------


class _NoCompression:
    """Gradients travel as they are."""

    @staticmethod
    def compress(tensor: NDArray) -> tuple[NDArray, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: NDArray, ctx: Any) -> NDArray:
        return tensor


class _HalfPrecision:
    """Gradients of float32 and float64 travel, and are summed, as float16: sums above 65,504 overflow."""

    @staticmethod
    def compress(tensor: NDArray) -> tuple[NDArray, Any]:
        if np.dtype(tensor.dtype).name in ("float32", "float64"):
            return tensor.astype("float16"), tensor.dtype
        return tensor, None

    @staticmethod
    def decompress(tensor: NDArray, ctx: Any) -> NDArray:
        return tensor if ctx is None else tensor.astype(ctx)


class Compression:
    """Choices for ``DistributedTrainer(compression=)``: none, or fp16.

    Other classes have static methods ``compress(array)``, which returns (array, anything), and ``decompress(array,
    anything)``.
    """

    none = _NoCompression
    fp16 = _HalfPrecision


# --- parameters -------------------------------------------------------------------------------------------------------


def _init_and_broadcast(
    root_rank: int, name: str, param: Parameter, data: NDArray, ctx_list: Sequence[Context], own: bool = False
) -> None:
    """Stands in for ``param._init_impl`` until the shape is known."""
    del param._init_impl  # the instance's: the class's method is found again
    param._init_impl(data, ctx_list, own)
    broadcast_lists([name], [param.list_data()], root_rank)


def broadcast_parameters(
    params: ParameterDict | Mapping[str, Parameter | NDArray], root_rank: int = 0, prefix: str | None = None
) -> None:
    """Overwrites parameters by those of the process root_rank, and waits for them.

    Parameters
    ----------
    params : ParameterDict or dict of str to Parameter or NDArray
        ``net.collect_params()``, or ``arg_params`` of a Module. A parameter whose shape is not known yet is broadcast
        when it gets its value.
    root_rank : int, default 0
    prefix : str, optional
        Prepended to the names in errors.

    Raises ParamError for other types, ValueError for root_rank, RuntimeError for parameters without initialize(),
    GroupError if the parameters of the processes differ in names, shapes or dtypes.
    """
    if not isinstance(params, (Mapping, ParameterDict)):
        raise ParamError(
            "hvd.broadcast_parameters: params",
            expected="a ParameterDict or a dict of Parameters or NDArrays",
            given=type(params).__name__,
            fix="pass net.collect_params()",
        )
    if isinstance(root_rank, bool) or not isinstance(root_rank, (int, np.integer)) or not 0 <= root_rank < size():
        raise HybridNetValueError(
            "hvd.broadcast_parameters: root_rank", expected=f"a rank from 0 to {size() - 1}", given=repr(root_rank)
        )
    names, arrays = [], []
    for name, value in sorted(params.items()):
        full = f"{prefix or ''}{name}"
        if isinstance(value, NDArray):
            found = [value]
        elif isinstance(value, Parameter):
            try:
                found = value.list_data()
            except DeferredInitializationError:
                if size() > 1:
                    value._init_impl = MethodType(partial(_init_and_broadcast, root_rank, full), value)  # type: ignore[method-assign]
                continue
        else:
            raise HybridNetTypeError(
                f"hvd.broadcast_parameters: '{full}'", expected="a Parameter or an NDArray", given=type(value).__name__
            )
        names.append(full)
        arrays.append(found)
    broadcast_lists(names, arrays, root_rank)
    for found in arrays:
        found[0].wait_to_read()


# --- gradients --------------------------------------------------------------------------------------------------------


def _check_factor(call: str, factor: Any) -> None:
    if isinstance(factor, bool) or not isinstance(factor, (int, float, np.number)) or not factor > 0:
        raise ParamError(f"{call}: gradient_predivide_factor", expected="a positive number", given=repr(factor))


def _check_groups(call: str, num_groups: Any) -> None:
    if isinstance(num_groups, bool) or not isinstance(num_groups, (int, np.integer)) or num_groups < 0:
        raise ParamError(f"{call}: num_groups", expected="an integer, 0 or more", given=repr(num_groups))


class GradientStore:
    """The store of a trainer: reduces gradients over processes, and leaves parameters alone.

    Gradients are divided by predivide_factor, compressed, summed, decompressed, and divided by divisor.
    """

    def __init__(self, compression: Any, predivide_factor: float = 1.0, divisor: float = 1.0, prefix: str = "") -> None:
        self._sums = DistKVStore()
        self._compression = compression
        self._predivide_factor = predivide_factor
        self._divisor = divisor
        self._prefix = prefix

    @property
    def rank(self) -> int:
        return self._sums.rank

    @property
    def num_workers(self) -> int:
        return size()  # raises after shutdown()

    @property
    def num_shards(self) -> int:
        return self._sums.num_shards

    @property
    def own_shards(self) -> tuple[int, int]:
        return self._sums.own_shards

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Overwrites out (default: value) by the sums over contexts and processes."""
        self._sums.pushpull(key, value, out, priority)

    def sum_gradients(
        self, names: Sequence[str], gradients: Sequence[Sequence[NDArray]], divisor: float | None = None
    ) -> None:
        """Overwrites the gradients of each parameter, one for each context, by their reduction."""
        size()  # raises after shutdown()
        names = [f"{self._prefix}{name}" for name in names]
        if self._compression is _NoCompression and self._predivide_factor == 1:
            self._sums.sum_gradients(names, gradients, divisor)
        else:
            self._sum_compressed(names, gradients, divisor)
        self._divide(gradients)

    def _sum_compressed(
        self, names: Sequence[str], gradients: Sequence[Sequence[NDArray]], divisor: float | None
    ) -> None:
        totals = [_total(list(arrays)) for arrays in gradients]
        if self._predivide_factor != 1:
            totals = [total / self._predivide_factor for total in totals]
        packed = [self._compression.compress(total) for total in totals]
        self._sums.sum_gradients(names, [[array] for array, _ in packed], divisor)
        for (array, context), targets in zip(packed, gradients):
            result = self._compression.decompress(array, context)
            for target in targets:
                if target is not result:
                    target[:] = result.as_in_context(target.context)

    def sum_shards(
        self,
        names: Sequence[str],
        nodes: Sequence[Sequence[NDArray]],
        out: Sequence[NDArray],
        divisor: float | None = None,
    ) -> None:
        """Overwrites out by the sums over virtual shards (Trainer.add_shard)."""
        if self._compression is not _NoCompression or self._predivide_factor != 1:
            raise UnsupportedError(
                "DistributedTrainer with virtual shards: compression or gradient_predivide_factor",
                because="shards are summed as they are",
                fix="leave both out, or start without --virtual-shards",
            )
        self._sums.sum_shards([f"{self._prefix}{name}" for name in names], nodes, out, divisor)
        self._divide([[array] for array in out])

    def _divide(self, gradients: Sequence[Sequence[NDArray]]) -> None:
        if self._divisor != 1:
            for arrays in gradients:
                for array in arrays:
                    array /= self._divisor


class DistributedTrainer(Trainer):
    """A gluon.Trainer that averages gradients over processes::

        hvd.init()
        hvd.broadcast_parameters(net.collect_params(), root_rank=0)
        trainer = hvd.DistributedTrainer(net.collect_params(), "sgd", {"learning_rate": 0.1 * hvd.size()})
        ...
        trainer.step(batch_size)  # of one process

    ``allreduce_grads()`` leaves the sums in the gradients, and ``update(batch_size)`` divides by batch_size * size().

    Parameters
    ----------
    params, optimizer, optimizer_params
        Those of Trainer. A DistributedOptimizer is unwrapped, with a warning.
    compression : default Compression.none
        ``Compression.fp16`` halves the bytes that float32 gradients send.
    gradient_predivide_factor : float, default 1.0
        Gradients are divided by it before the sum, and by size() / gradient_predivide_factor after it.
    prefix : str, optional
        Prepended to the names of gradients in errors.
    num_groups : int, default 0
        Accepted: gradients are packed into messages of 1 MB, then 25 MB.
    process_set : ProcessSet
        Only ``hvd.global_process_set``.

    Raises the errors of Trainer, ParamError for wrong factors, ValueError before init().
    """

    def __init__(
        self,
        params: ParameterDict | Mapping[str, Parameter] | Sequence[Parameter],
        optimizer: str | Optimizer,
        optimizer_params: Mapping[str, Any] | None = None,
        compression: Any = Compression.none,
        gradient_predivide_factor: float = 1.0,
        prefix: str | None = None,
        num_groups: int = 0,
        process_set: ProcessSet = global_process_set,
    ) -> None:
        check_process_set("hvd.DistributedTrainer", process_set)
        _check_factor("hvd.DistributedTrainer", gradient_predivide_factor)
        _check_groups("hvd.DistributedTrainer", num_groups)
        if not (hasattr(compression, "compress") and hasattr(compression, "decompress")):
            raise ParamError(
                "hvd.DistributedTrainer: compression",
                expected="hvd.Compression.none, hvd.Compression.fp16, or a class with compress() and decompress()",
                given=repr(compression),
            )
        store = None  # one process is a plain Trainer
        if size() > 1:
            store = GradientStore(compression, gradient_predivide_factor, prefix=prefix or "")
        super().__init__(
            params, _unwrapped(optimizer), optimizer_params, kvstore=store, update_on_kvstore=False if store else None
        )
        if store is not None:
            self._scale *= gradient_predivide_factor / size()


class DistributedOptimizer(Optimizer):
    """An optimizer whose updates average the gradients over processes first, for Module and plain updates::

        optimizer = hvd.DistributedOptimizer(mx.optimizer.create("sgd", rescale_grad=1 / batch_size))
        module.fit(data, optimizer=optimizer, kvstore=None)

    It has the attributes of the given optimizer, and changes of one are changes of the other; its rescale_grad is
    divided by size(). The arguments are those of DistributedTrainer. Gradients hold their sums after an update.

    Raises TypeError unless optimizer is an Optimizer, ParamError for a DistributedOptimizer and for wrong factors,
    ValueError before init().
    """

    _wrapped: ClassVar[Optimizer]
    _predivide_factor: ClassVar[float]

    def __new__(
        cls,
        optimizer: Optimizer,
        gradient_predivide_factor: float = 1.0,
        num_groups: int = 0,
        process_set: ProcessSet = global_process_set,
    ) -> Any:
        if not isinstance(optimizer, Optimizer):
            raise HybridNetTypeError(
                "hvd.DistributedOptimizer: optimizer",
                expected="an Optimizer",
                given=type(optimizer).__name__,
                fix="pass mx.optimizer.create('sgd', learning_rate=0.1)",
            )
        if isinstance(optimizer, DistributedOptimizer):
            raise ParamError("hvd.DistributedOptimizer: optimizer", because="it is a DistributedOptimizer already")
        check_process_set("hvd.DistributedOptimizer", process_set)
        _check_factor("hvd.DistributedOptimizer", gradient_predivide_factor)
        _check_groups("hvd.DistributedOptimizer", num_groups)
        # A class that is derived from the optimizer's inherits its states. It has the same name, which files of states
        # contain, and shares the attributes, because the methods of both change them.
        members = {
            "_wrapped": optimizer,
            "_predivide_factor": gradient_predivide_factor,
            "__doc__": cls.__doc__,
            "__module__": cls.__module__,
        }
        derived = type(type(optimizer).__name__, (cls, type(optimizer)), members)
        self: Any = object.__new__(derived)
        self.__dict__ = optimizer.__dict__
        return self

    def __init__(
        self,
        optimizer: Optimizer,
        gradient_predivide_factor: float = 1.0,
        num_groups: int = 0,
        process_set: ProcessSet = global_process_set,
    ) -> None:
        self.rescale_grad *= self._rescaling()

    def _rescaling(self) -> float:
        return self._predivide_factor / size() if size() > 1 else 1.0

    def __repr__(self) -> str:
        return f"DistributedOptimizer({self._wrapped!r})"

    def __reduce__(self) -> Any:  # the derived class has no name to be found by
        return _rewrapped, (self._wrapped, self._predivide_factor)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Sums the gradients over processes, in place, and updates. With aggregate_num > 0, arguments are lists."""
        self._sum(index, grad)
        self._wrapped.update(index, weight, grad, state)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Same as update, through the float32 copy if there is one."""
        self._sum(index, grad)
        self._wrapped.update_multi_precision(index, weight, grad, state)

    def _sum(self, index: Any, grad: Any) -> None:
        if size() == 1:
            return
        grads = list(grad) if isinstance(index, (list, tuple)) else [grad]
        indices = list(index) if isinstance(index, (list, tuple)) else [index]
        name = "..".join(f"gradient {i}" for i in dict.fromkeys((indices[0], indices[-1])))
        factor = self._predivide_factor
        grouped_allreduce_(grads, average=False, name=name, prescale_factor=1 / factor)


def _rewrapped(optimizer: Optimizer, factor: float) -> Any:
    """Wraps an optimizer whose rescale_grad is divided already."""
    return DistributedOptimizer.__new__(DistributedOptimizer, optimizer, factor)


def _unwrapped(optimizer: Any) -> Any:
    """Returns the optimizer itself, or the one that a DistributedOptimizer was made of, with its own rescale_grad."""
    if not isinstance(optimizer, DistributedOptimizer):
        return optimizer
    warn("DistributedTrainer reduces gradients itself: it uses the optimizer inside of the DistributedOptimizer")
    plain = optimizer._wrapped
    plain.rescale_grad /= optimizer._rescaling()
    return plain
