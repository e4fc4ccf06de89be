"""SequentialModule: a chain of modules, each of which takes the previous one's outputs as data."""

from __future__ import annotations

import logging
from typing import Any

from .._public_names import dir_of
from ..errors import ParamError
from ..initializer import Uniform
from ..io import DataBatch, DataDesc
from .base_module import BaseModule

__all__ = ["SequentialModule"]


class SequentialModule(BaseModule):
    """A chain of modules.

    add(module, take_labels=True) passes the labels to that module; auto_wiring=True renames the inputs to the names of
    its data.
    """

    META_TAKE_LABELS = "take_labels"
    META_AUTO_WIRING = "auto_wiring"

    def __init__(self, logger: Any = logging) -> None:
        super().__init__(logger=logger)
        self._modules: list[Any] = []
        self._metas: list[dict[str, Any]] = []
        self._label_shapes: Any = None

    def add(self, module: BaseModule, **kwargs: Any) -> SequentialModule:
        """Appends a module. Returns itself. Raises ParamError for other keywords than take_labels and auto_wiring."""
        unknown = sorted(set(kwargs) - {self.META_TAKE_LABELS, self.META_AUTO_WIRING})
        if unknown:
            raise ParamError(f'Unknown meta "{unknown[0]}", a typo?')
        self._modules.append(module)
        self._metas.append(kwargs)
        self.binded = self.params_initialized = self.optimizer_initialized = False
        return self

    def _takes_labels(self, i: int) -> bool:
        return bool(self._metas[i].get(self.META_TAKE_LABELS))

    @property
    def data_names(self) -> list[str]:
        """The names of the first module's data."""
        return self._modules[0].data_names if self._modules else []

    @property
    def output_names(self) -> list[str]:
        """The names of the last module's outputs."""
        return self._modules[-1].output_names if self._modules else []

    @property
    def data_shapes(self) -> Any:
        """The descriptions of the first module's data."""
        self._need("data_shapes", params=False)
        return self._modules[0].data_shapes

    @property
    def label_shapes(self) -> Any:
        """The descriptions of the labels."""
        self._need("label_shapes", params=False)
        return self._label_shapes

    @property
    def output_shapes(self) -> Any:
        """The (name, shape) pairs of the last module's outputs."""
        self._need("output_shapes", params=False)
        return self._modules[-1].output_shapes

    def get_params(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the parameters of all modules."""
        self._need("get_params")
        arguments: dict[str, Any] = {}
        states: dict[str, Any] = {}
        for module in self._modules:
            own_arguments, own_states = module.get_params()
            arguments.update(own_arguments)
            states.update(own_states)
        return arguments, states

    def init_params(
        self,
        initializer: Any = None,
        arg_params: dict[str, Any] | None = None,
        aux_params: dict[str, Any] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Initializes all modules. Arguments: see Module.init_params. Raises ParamError if two modules share a name."""
        if self.params_initialized and not force_init:
            return
        self._need("init_params", params=False)
        for module in self._modules:
            # The dicts hold the parameters of all modules, so each module finds extra names.
            module.init_params(
                initializer or (Uniform(0.01) if arg_params is None else None),
                arg_params,
                aux_params,
                allow_missing,
                force_init,
                True,
            )
        seen: dict[str, int] = {}
        for i, module in enumerate(self._modules):
            for names in module.get_params():
                for name in names:
                    if seen.setdefault(name, i) != i:
                        raise ParamError(f"Duplicated parameter names: '{name}' in layers {seen[name]} and {i}")
        self.params_initialized = True

    def bind(
        self,
        data_shapes: Any,
        label_shapes: Any = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Any = None,
        grad_req: Any = "write",
    ) -> None:
        """Allocates memory for all modules. Arguments: see Module.bind."""
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if shared_module is not None:
            raise ParamError("Shared module is not supported")
        if not self._modules:
            raise ParamError("Attempting to bind an empty SequentialModule")
        self.for_training = for_training
        self.inputs_need_grad = inputs_need_grad
        self._label_shapes = label_shapes
        shapes = data_shapes
        for i, module in enumerate(self._modules):
            if self._metas[i].get(self.META_AUTO_WIRING):
                listed = [desc if isinstance(desc, DataDesc) else DataDesc(*desc) for desc in shapes]
                shapes = [
                    DataDesc(name, desc.shape, desc.dtype, desc.layout)
                    for name, desc in zip(module.data_names, listed, strict=True)
                ]
            module.bind(
                shapes,
                label_shapes if self._takes_labels(i) else None,
                for_training,
                for_training and (inputs_need_grad or i > 0),
                force_rebind,
                grad_req=grad_req,
            )
            shapes = module.output_shapes
        if not any(self._takes_labels(i) for i in range(len(self._modules))):
            self._label_shapes = None
        self.binded = True

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        """Creates the optimizers. Arguments: see Module.init_optimizer."""
        self._need("init_optimizer")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring.")
            return
        for module in self._modules:
            module.init_optimizer(kvstore, optimizer, optimizer_params, force_init)
        self.optimizer_initialized = True

    def forward(self, data_batch: DataBatch, is_train: bool | None = None) -> None:
        """Runs all modules, each on the outputs of the previous one."""
        self._need("forward")
        data = data_batch.data
        for i, module in enumerate(self._modules):
            batch = DataBatch(data, data_batch.label if self._takes_labels(i) else None, data_batch.pad)
            module.forward(batch, is_train=is_train)
            data = module.get_outputs()

    def backward(self, out_grads: Any = None) -> None:
        """Computes gradients, from the last module to the first."""
        self._need("backward")
        for i in reversed(range(len(self._modules))):
            self._modules[i].backward(out_grads=out_grads)
            if i > 0:
                out_grads = self._modules[i].get_input_grads()

    def update(self) -> None:
        """Updates all modules."""
        self._need("update", optimizer=True)
        for module in self._modules:
            module.update()

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the outputs of the last module."""
        self._need("get_outputs")
        return self._modules[-1].get_outputs(merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the gradients of the first module's data."""
        self._need("get_input_grads")
        return self._modules[0].get_input_grads(merge_multi_context)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Adds the outputs of modules that take labels to a metric."""
        self._need("update_metric")
        for i, module in enumerate(self._modules):
            if self._takes_labels(i):
                module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        """Installs a monitor on all modules."""
        self._need("install_monitor", params=False)
        for module in self._modules:
            module.install_monitor(mon)


__dir__ = dir_of(__name__)
