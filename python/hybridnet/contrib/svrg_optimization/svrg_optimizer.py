"""The optimizers of SVRGModule: one that stores full gradients, and one that chooses by the name of what is updated."""

from __future__ import annotations

from typing import Any

from ... import optimizer as opt

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
    """Puts the gradient in the weight's place: a store sums full gradients that way."""

    def create_state(self, index: Any, weight: Any) -> None:
        """Nothing is remembered."""

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """weight becomes grad."""
        weight[:] = grad


@opt.register
class _SVRGOptimizer(opt.Optimizer):
    """Assigns to parameters with "full" in their name; updates others by default_optimizer.

    default_optimizer: an Optimizer, or a name, which is made with all of settings; those that every optimizer has
    are also this one's own.
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
        """The state of the optimizer that is responsible."""
        return self._chosen(index).create_state(index, weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Updates weight in place."""
        self._chosen(index).update(index, weight, grad, state)
