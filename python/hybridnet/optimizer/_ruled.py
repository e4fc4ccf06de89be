"""Optimizers with settings here, and states and updates in the library's table, which C++ and Java use too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from .optimizer import AGGREGATE_ALL, Optimizer

if TYPE_CHECKING:
    from ..ndarray import NDArray

__all__ = ["RuledOptimizer"]


class RuledOptimizer(Optimizer):
    """An optimizer with states and update defined by a row of the library's table (src/optimizer).

    Its attributes are the settings of that row; they may be changed between steps.
    """

    _rule: ClassVar[Any]
    # Properties of the rule that steps depend on.
    _adjusts: ClassVar[bool]
    _aggregates: ClassVar[bool]
    _native_master: ClassVar[bool]
    _rate_before_count: ClassVar[bool]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("adjusts", "aggregates", "native_master", "rate_before_count"):
            setattr(cls, f"_{name}", getattr(cls._rule, name))

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.aggregate_num = AGGREGATE_ALL if self._aggregates else 0

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return self._rule.make_state(self, weight)

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        if self._native_master and self._uses_master_copy(weight):
            master = weight.astype("float32")
            return (self.create_state(index, master), master)
        return super().create_state_multi_precision(index, weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._apply(index, weight, grad, state, False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        if self.multi_precision:
            weights = weight if isinstance(index, (list, tuple)) else [weight]
            if weights and self._uses_master_copy(weights[0]):
                if self._native_master:
                    self._apply(index, weight, grad, state, True)
                else:
                    super().update_multi_precision(index, weight, grad, state)
                return
        self.update(index, weight, grad, state)

    def _apply(self, index: Any, weight: Any, grad: Any, state: Any, has_master: bool) -> None:
        if not isinstance(index, (list, tuple)):
            lr, wd = self._rates(index)
            self._run([index], [weight], [grad], [state], has_master, [lr], [wd])
        elif not self._aggregates:
            for item in zip(index, weight, grad, state, strict=True):
                self._apply(*item, has_master)
        elif index:
            indices = list(index)
            self._update_count(indices)
            rates = self._get_lrs(indices), self._get_wds(indices)
            self._run(indices, list(weight), list(grad), list(state), has_master, *rates)

    def _rates(self, index: Any) -> tuple[float, float]:
        """Counts an update of one weight; returns its learning rate and weight decay."""
        if not self._rate_before_count:
            return self._begin(index)
        rates = self._get_lr(index), self._get_wd(index)
        self._update_count(index)
        return rates

    def _run(
        self,
        indices: list[Any],
        weights: list[Any],
        grads: list[Any],
        states: list[Any],
        has_master: bool,
        lrs: list[float],
        wds: list[float],
    ) -> None:
        counts = [self._index_update_count[index] for index in indices]
        names: list[str] = []
        base_lr = 0.0
        if self._adjusts:
            names, base_lr = [self._name(index) for index in indices], self.learning_rate
        self._rule.update(self, has_master, weights, grads, states, lrs, wds, counts, names, base_lr)

    def _name(self, index: Any) -> str:
        """Returns the name of a parameter, if it is known."""
        param = self.param_dict.get(index)
        return str(param.name if param is not None else self.idx2name.get(index, index))
