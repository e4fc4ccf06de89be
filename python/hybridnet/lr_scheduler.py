"""Learning-rate schedules: functions from the number of updates to a learning rate.

The C trainers have the same schedules (``src/optimizer/schedule.h`` explains the duplication).
"""

from __future__ import annotations

import itertools
import logging
from math import cos, pi

from ._described import changed_arguments, described
from ._habits import add_habits
from ._keywords import ChecksKeywords
from ._lazy_names import refusing
from ._public_names import dir_of
from .errors import TypeError as HybridNetTypeError
from .errors import ValueError as HybridNetValueError
from .errors import not_overridden

__all__ = ["CosineScheduler", "FactorScheduler", "LRScheduler", "MultiFactorScheduler", "PolyScheduler"]


class LRScheduler(ChecksKeywords):
    """Base of learning-rate schedules; handles the warm-up.

    Parameters
    ----------
    base_lr : float, default 0.01
        Rate at the end of the warm-up. An optimizer created with learning_rate overwrites it.
    warmup_steps : int, default 0
        Number of updates of the warm-up, >= 0.
    warmup_begin_lr : float, default 0
        Rate at update 0 of the warm-up, at most base_lr.
    warmup_mode : {'linear', 'constant'}
        'linear' rises in equal steps, 'constant' stays at warmup_begin_lr.

    Raises ValueError for values outside of these ranges, TypeError if warmup_steps is not an int.
    """

    def __init__(
        self, base_lr: float = 0.01, warmup_steps: int = 0, warmup_begin_lr: float = 0, warmup_mode: str = "linear"
    ) -> None:
        if not isinstance(warmup_steps, int):
            raise HybridNetTypeError("warmup_steps must be an int", given=repr(warmup_steps))
        if warmup_begin_lr > base_lr:
            raise HybridNetValueError(
                "Base lr has to be higher than warmup_begin_lr", given=f"{base_lr} and {warmup_begin_lr}"
            )
        if warmup_steps < 0:
            raise HybridNetValueError("Warmup steps has to be positive or 0", given=str(warmup_steps))
        if warmup_mode not in ("linear", "constant"):
            raise HybridNetValueError("Supports only linear and constant modes of warmup", given=repr(warmup_mode))
        self.base_lr = base_lr
        self.warmup_steps = warmup_steps
        self.warmup_final_lr = base_lr
        self.warmup_begin_lr = warmup_begin_lr
        self.warmup_mode = warmup_mode

    def __repr__(self) -> str:
        names = {"base_lr": "base_lr_orig" if hasattr(self, "base_lr_orig") else "base_lr", "pwr": "power"}
        return described(self, **{"base_lr": getattr(self, names["base_lr"]), **changed_arguments(self, names)})

    def get_warmup_lr(self, num_update: int) -> float:
        """Returns the rate during the warm-up. Raises ValueError after it."""
        if num_update >= self.warmup_steps:
            raise HybridNetValueError(f"update {num_update} lies after the {self.warmup_steps} warm-up steps")
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        climb = (self.warmup_final_lr - self.warmup_begin_lr) * float(num_update) / float(self.warmup_steps)
        return self.warmup_begin_lr + climb

    def __call__(self, num_update: int) -> float:
        """Returns the rate for a number of updates (the largest count over all parameters)."""
        raise not_overridden(self, "__call__(num_update)")


add_habits(LRScheduler, "schedule")


class FactorScheduler(LRScheduler):
    """Multiplies the rate by factor every step updates: ``base_lr * factor ** floor(num_update / step)``.

    Parameters
    ----------
    step : int
        Updates between two changes, >= 1.
    factor : float, default 1
        At most 1.
    stop_factor_lr : float, default 1e-8
        Lower limit of the rate.
    base_lr, warmup_steps, warmup_begin_lr, warmup_mode
        See LRScheduler.
    """

    def __init__(
        self,
        step: int,
        factor: float = 1,
        stop_factor_lr: float = 1e-8,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if step < 1:
            raise HybridNetValueError("Schedule step must be greater or equal than 1 round", given=str(step))
        if factor > 1.0:
            raise HybridNetValueError("Factor must be no more than 1 to make lr reduce", given=str(factor))
        self.step = step
        self.factor = factor
        self.stop_factor_lr = stop_factor_lr
        self.count = 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        # A loop, because a resumed training may start many steps later.
        while num_update > self.count + self.step:
            before = self.base_lr
            self.base_lr *= self.factor
            if max(self.base_lr, self.stop_factor_lr) == before:  # no further change
                self.base_lr = before
                self.count += (num_update - self.count - 1) // self.step * self.step
                break
            self.count += self.step
            if self.base_lr < self.stop_factor_lr:
                self.base_lr = self.stop_factor_lr
                logging.info(
                    "Update[%d]: now learning rate arrived at %0.5e, will not change in the future",
                    num_update,
                    self.base_lr,
                )
            else:
                logging.info("Update[%d]: Change learning rate to %0.5e", num_update, self.base_lr)
        return self.base_lr


class MultiFactorScheduler(LRScheduler):
    """Multiplies the rate by factor after each of the given numbers of updates.

    Parameters
    ----------
    step : list of int
        Increasing numbers of updates, each >= 1.
    factor : float, default 1
        At most 1.
    base_lr, warmup_steps, warmup_begin_lr, warmup_mode
        See LRScheduler.
    """

    def __init__(
        self,
        step: list[int],
        factor: float = 1,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(step, list) or not step:
            raise HybridNetValueError("step must be a non-empty list of int", given=repr(step))
        if any(i < 1 for i in step):
            raise HybridNetValueError("Schedule step must be greater or equal than 1 round", given=str(step))
        if any(a >= b for a, b in itertools.pairwise(step)):
            raise HybridNetValueError("Schedule step must be an increasing integer list", given=str(step))
        if factor > 1.0:
            raise HybridNetValueError("Factor must be no more than 1 to make lr reduce", given=str(factor))
        self.step = step
        self.cur_step_ind = 0
        self.factor = factor
        self.count = 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.count = self.step[self.cur_step_ind]
            self.cur_step_ind += 1
            self.base_lr *= self.factor
            logging.info("Update[%d]: Change learning rate to %0.5e", num_update, self.base_lr)
        return self.base_lr


class _DecayScheduler(LRScheduler):
    """Base of smooth decays from base_lr to final_lr at max_update; subclasses define the curve on [0, 1]."""

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(max_update, int):
            raise HybridNetTypeError("max_update must be an int", given=repr(max_update))
        if max_update < 1:
            raise HybridNetValueError("maximum number of updates must be strictly positive", given=str(max_update))
        if max_update <= warmup_steps:
            raise HybridNetValueError(f"max_update ({max_update}) must be larger than warmup_steps ({warmup_steps})")
        self.base_lr_orig = base_lr
        self.max_update = max_update
        self.final_lr = final_lr
        self.max_steps = max_update - warmup_steps

    def _share(self, progress: float) -> float:
        """Returns the remaining fraction of base_lr - final_lr at progress in [0, 1]."""
        raise not_overridden(self, "_share(progress)")

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        if num_update <= self.max_update:
            progress = float(num_update - self.warmup_steps) / float(self.max_steps)
            self.base_lr = self.final_lr + (self.base_lr_orig - self.final_lr) * self._share(progress)
        return self.base_lr


class PolyScheduler(_DecayScheduler):
    """Polynomial decay: ``final_lr + (base_lr - final_lr) * (1 - progress) ** pwr``.

    Parameters
    ----------
    max_update : int
        Number of updates at which final_lr is reached, larger than warmup_steps.
    base_lr : float, default 0.01
    pwr : float, default 2
    final_lr : float, default 0
    warmup_steps, warmup_begin_lr, warmup_mode
        See LRScheduler.
    """

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        pwr: float = 2,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.power = pwr

    def _share(self, progress: float) -> float:
        return pow(1 - progress, self.power)


class CosineScheduler(_DecayScheduler):
    """Cosine decay: ``final_lr + (base_lr - final_lr) * (1 + cos(pi * progress)) / 2``.

    Parameters
    ----------
    max_update : int
        Number of updates at which final_lr is reached, larger than warmup_steps.
    base_lr : float, default 0.01
    final_lr : float, default 0
    warmup_steps, warmup_begin_lr, warmup_mode
        See LRScheduler.
    """

    def _share(self, progress: float) -> float:
        return (1 + cos(pi * progress)) / 2


__getattr__, __dir__ = refusing(__name__), dir_of(__name__)
