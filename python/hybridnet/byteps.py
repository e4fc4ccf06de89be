"""The API of ``byteps.mxnet``, on the processes of :mod:`mx.group <hybridnet.group>`.

``python -m hybridnet.launch -n 4 train.py`` starts the processes: there are no servers. The functions are
those of :mod:`hybridnet.horovod`, which names the differences and errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._public_names import dir_of
from .errors import ParamError, UnsupportedError
from .errors import TypeError as HybridNetTypeError
from .gluon._parameter_dict import ParameterDict
from .gluon.parameter import Parameter
from .gluon.trainer import Trainer
from .horovod import (
    Compression,
    DistributedOptimizer,
    allreduce_,
    broadcast_parameters,
    init,
    local_rank,
    local_size,
    rank,
    shutdown,
    size,
)
from .horovod._training import GradientStore, _unwrapped
from .ndarray import NDArray
from .optimizer import Optimizer

__all__ = [
    "DistributedOptimizer",
    "DistributedTrainer",
    "broadcast_parameters",
    "byteps_declare_tensor",
    "byteps_push_pull",
    "init",
    "local_rank",
    "local_size",
    "rank",
    "shutdown",
    "size",
]


def byteps_push_pull(
    tensor: NDArray, version: int = 0, priority: int = 0, name: str | None = None, is_average: bool = True
) -> None:
    """Overwrites an array by its average over all processes, or by the sum.

    version: accepted, as calls run in the order of the program. Raises the errors of ``hybridnet.horovod.allreduce``.
    """
    allreduce_(tensor, average=is_average, name=name, priority=priority)


def byteps_declare_tensor(name: str, **kwargs: Any) -> None:
    """Does nothing: arrays need no declaration. Raises TypeError unless name is text, UnsupportedError for compressors.

    kwargs: settings of a compressor (``byteps_compressor_type="onebit"``).
    """
    if not isinstance(name, str):
        raise HybridNetTypeError("bps.byteps_declare_tensor: name", expected="text", given=type(name).__name__)
    if kwargs:
        raise _no_compressor("bps.byteps_declare_tensor", next(iter(kwargs)))


def _no_compressor(call: str, setting: str) -> UnsupportedError:
    return UnsupportedError(
        f"{call}: {setting}",
        because="gradients travel as they are, or as float16",
        fix="leave compressors out, or pass DistributedTrainer(compression_params={'fp16': True})",
    )


def _compression(params: Any) -> Any:
    if params is not None and not isinstance(params, Mapping):
        raise ParamError("bps.DistributedTrainer: compression_params", expected="a dict", given=type(params).__name__)
    params = dict(params or {})
    is_half = bool(params.pop("fp16", False))
    for setting, value in params.items():
        if value:
            raise _no_compressor("bps.DistributedTrainer: compression_params", repr(setting))
    return Compression.fp16 if is_half else Compression.none


class DistributedTrainer(Trainer):
    """A gluon.Trainer that begins with the parameters of the process root_rank, and averages gradients over processes.

    ``step(batch_size)`` takes the batch size of one process; ``allreduce_grads()`` leaves averages in the gradients.

    Parameters
    ----------
    params, optimizer, optimizer_params
        Those of Trainer.
    root_rank : int, default 0
        The process with the parameters. One whose shape is not known yet is broadcast when it gets its value.
    compression_params : dict, optional
        ``{"fp16": True}`` sends gradients as float16.

    Raises the errors of Trainer, UnsupportedError for compressors, ValueError for root_rank and before init().
    """

    def __init__(
        self,
        params: ParameterDict | Mapping[str, Parameter] | Sequence[Parameter],
        optimizer: str | Optimizer,
        optimizer_params: Mapping[str, Any] | None = None,
        root_rank: int = 0,
        compression_params: Mapping[str, Any] | None = None,
    ) -> None:
        compression = _compression(compression_params)
        store = GradientStore(compression, divisor=size()) if size() > 1 else None
        super().__init__(
            params, _unwrapped(optimizer), optimizer_params, kvstore=store, update_on_kvstore=False if store else None
        )
        broadcast_parameters({f"{i}:{param.name}": param for i, param in enumerate(self._params)}, root_rank)


__dir__ = dir_of(__name__)
