"""SVRGModule: a Module that reduces gradient variance with full-data gradients at a snapshot of the parameters."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ... import ndarray
from ..._public_names import dir_of
from ...errors import ParamError
from ...module import Module
from .svrg_optimizer import _SVRGOptimizer

__all__ = ["SVRGModule"]


class SVRGModule(Module):
    """A Module with the update ``g(w) - g(s) + mean of g(s) over all batches``.

    g is the gradient of a batch, w are the parameters, s a snapshot of them that fit takes every update_freq epochs.
    Custom training loops call update_full_grads to take a snapshot. Each batch is computed twice.

    Parameters
    ----------
    update_freq : int
        Epochs between snapshots.
    Other arguments: see Module.

    Raises ParamError unless update_freq is a positive int.
    """

    def __init__(
        self,
        symbol: Any,
        data_names: Sequence[str] = ("data",),
        label_names: Sequence[str] | None = ("softmax_label",),
        logger: Any = logging,
        context: Any = None,
        work_load_list: Any = None,
        fixed_param_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
        compression_params: Any = None,
        update_freq: int | None = None,
    ) -> None:
        if not isinstance(update_freq, int) or update_freq < 1:
            raise ParamError("SVRGModule: update_freq", expected="a positive number of epochs", given=repr(update_freq))
        settings: dict[str, Any] = {
            "data_names": data_names,
            "label_names": label_names,
            "logger": logger,
            "context": context,
            "work_load_list": work_load_list,
            "fixed_param_names": fixed_param_names,
            "state_names": state_names,
            "group2ctxs": group2ctxs,
        }
        super().__init__(symbol, compression_params=compression_params, **settings)
        self.update_freq = update_freq
        self._mod_aux = Module(symbol, **settings)  # runs with the snapshot's parameters
        self._full_grads: list[list[Any] | None] = []  # per parameter, per context

    def bind(
        self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True, *args: Any, **kwargs: Any
    ) -> None:
        """Same as Module.bind, for both sets of parameters."""
        super().bind(data_shapes, label_shapes, for_training, *args, **kwargs)
        if for_training:
            self._mod_aux.bind(data_shapes, label_shapes, for_training, *args, **kwargs)

    def reshape(self, data_shapes: Any, label_shapes: Any = None) -> None:
        """Same as Module.reshape, for both sets of parameters."""
        super().reshape(data_shapes, label_shapes)
        if self._mod_aux.binded:
            self._mod_aux.reshape(data_shapes, label_shapes)

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Runs the graph; in training also with the snapshot."""
        super().forward(data_batch, is_train)
        if self._full_grads and (self.for_training if is_train is None else is_train):
            self._mod_aux.forward(data_batch, is_train)

    def backward(self, out_grads: Any = None) -> None:
        """Computes the gradients of the batch, at the parameters and at the snapshot."""
        super().backward(out_grads)
        if self._full_grads:
            self._mod_aux.backward(out_grads)

    def update(self) -> None:
        """Updates parameters by the last gradients, with reduced variance once there is a snapshot."""
        if self._full_grads:
            columns = zip(
                self._exec_group.grad_arrays, self._mod_aux._exec_group.grad_arrays, self._full_grads, strict=True
            )
            for grads, at_snapshot, full in columns:
                for grad, special, mean in zip(grads, at_snapshot, full or (), strict=False):
                    grad[:] = grad - special + mean
        super().update()

    def update_full_grads(self, train_data: Any) -> None:
        """Takes a snapshot of the parameters and computes its mean gradients over train_data, which is then reset."""
        self._mod_aux.set_params(*self.get_params())
        train_data.reset()
        totals: list[list[Any] | None] = []
        count = 0
        for batch in train_data:
            self._mod_aux.forward(batch, is_train=True)
            self._mod_aux.backward()
            grads = self._mod_aux._exec_group.grad_arrays
            if not totals:
                totals = [None if per[0] is None else [ndarray.zeros_like(grad) for grad in per] for per in grads]
            for total, per in zip(totals, grads, strict=True):
                for summed, grad in zip(total or (), per, strict=False):
                    summed += grad
            count += 1
        train_data.reset()
        self._full_grads = [None if total is None else [summed / count for summed in total] for total in totals]

    def _make_optimizer(self, optimizer: Any, params: Any, names: dict[int, str]) -> Any:
        """Wraps the requested optimizer as the default_opt of an _SVRGOptimizer, which updates all parameters."""
        default = super()._make_optimizer(optimizer, params, names)
        made = _SVRGOptimizer(default, param_idx2name=names, rescale_grad=default.rescale_grad)
        made.lr, made.wd = default.lr, default.wd
        return made

    def _fit_epoch(self, epoch: int, train_data: Any, *args: Any) -> None:
        if epoch % self.update_freq == 0 or not self._full_grads:
            self.update_full_grads(train_data)
        super()._fit_epoch(epoch, train_data, *args)


__dir__ = dir_of(__name__)
