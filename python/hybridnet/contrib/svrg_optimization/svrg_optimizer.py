"""The optimizers of SVRGModule: one that stores full gradients, and one that selects by the name of the parameter."""

from __future__ import annotations

from typing import Any

from ... import optimizer as opt
from ..._public_names import dir_of

__all__: list[str] = []

_OWN_SETTINGS = (
    "rescale_grad",
    "param_idx2name",
    "wd",
    "clip_gradient",
    "learning_rate",
    "lr_scheduler",
    "sym",
    "begin_num_update",
    "multi_precision",
    "param_dict",
)


@opt.register
class _AssignmentOptimizer(opt.Optimizer):
    """Assigns the gradient to the weight: a store sums full gradients this way."""

    def create_state(self, index: Any, weight: Any) -> None:
        """Returns None: there is no state."""

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Sets weight to grad."""
        weight[:] = grad


@opt.register
class _SVRGOptimizer(opt.Optimizer):
    """Assigns to parameters with "full" in their name; updates others by default_optimizer.

    default_optimizer: an Optimizer, or a name, which is created with all settings; settings that every optimizer has
    also apply to this one.
    """

    def __init__(self, default_optimizer: str | opt.Optimizer, **settings: Any) -> None:
        super().__init__(**{name: value for name, value in settings.items() if name in _OWN_SETTINGS})
        given = default_optimizer
        self.default_opt = opt.create(given, **settings) if isinstance(given, str) else given
        self.aux_opt = opt.create(_AssignmentOptimizer.__name__)

    def _chosen(self, index: Any) -> opt.Optimizer:
        name = index if index in self.idx2name.values() else self.idx2name[index]
        return self.aux_opt if "full" in name else self.default_opt

    def create_state(self, index: Any, weight: Any) -> Any:
        """Creates the state with the optimizer that updates this weight."""
        return self._chosen(index).create_state(index, weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Updates weight in place."""
        self._chosen(index).update(index, weight, grad, state)


__dir__ = dir_of(__name__)
