"""Optimizer: the base of update rules, and their registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._described import changed_arguments, described
from .._habits import add_habits
from .._keywords import unknown_keyword
from .._lazy_names import names_from
from .._public_names import dir_of
from .._user_line import warn
from ..errors import ParamError, not_overridden, suggestion
from ..errors import TypeError as HybridNetTypeError
from ..errors import UserWarning as HybridNetUserWarning
from ..errors import ValueError as HybridNetValueError

if TYPE_CHECKING:
    from ..lr_scheduler import LRScheduler
    from ..ndarray import NDArray
    from ..symbol import Symbol

__all__ = ["Optimizer", "create", "register"]

# The aggregate_num of optimizers that update any number of weights in one operator call.
AGGREGATE_ALL = 1 << 30


def check_rate(name: str, value: Any) -> None:
    """Raises ParamError if a rate is text or None, or negative: the weights would move up the gradient."""
    is_negative = isinstance(value, (int, float, np.number)) and not value >= 0
    if value is None or isinstance(value, (str, bool)) or is_negative:
        raise _no_rate(name, value)


def _no_rate(name: str, value: Any) -> ParamError:
    example = {"learning_rate": 0.1, "wd": 1e-4}[name]
    if isinstance(value, str):
        fix = f"pass a number, {name}=float({value!r})"
    elif isinstance(value, (int, float, np.number)):
        fix = (
            f"pass {name}={-value:g}: updates subtract the gradient already" if value < 0 else f"pass {name}={example}"
        )
    else:
        fix = f"pass a number, such as {name}={example}, or leave it out"
    return ParamError(f"optimizer: {name}", expected="a number >= 0", given=repr(value), fix=fix)


class Optimizer:
    """Base of optimizers. Subclasses define create_state and update.

    Parameters
    ----------
    rescale_grad : float, default 1.0
        Factor of the gradient, often 1 / batch size (Trainer.step sets it).
    param_idx2name : dict of int to str, optional
        Names of the parameters, for multipliers given by name.
    wd : float, default 0.0
        Weight decay.
    clip_gradient : float, optional
        The rescaled gradient is clipped to [-clip_gradient, clip_gradient].
    learning_rate : float, optional
        Default 0.01, or the scheduler's; if given, it replaces the scheduler's base_lr.
    lr_scheduler : LRScheduler, optional
    sym : Symbol, optional
        Graph whose variables' attributes __lr_mult__ and __wd_mult__ are used.
    begin_num_update : int, default 0
    multi_precision : bool, default False
        Whether float16 and bfloat16 weights are updated through a float32 copy.
    param_dict : dict of int to Parameter, optional
        Parameters whose lr_mult and wd_mult take precedence over those given by name.
    """

    opt_registry: dict[str, type[Optimizer]] = {}

    def __init__(
        self,
        rescale_grad: float = 1.0,
        param_idx2name: Mapping[int, str] | None = None,
        wd: float = 0.0,
        clip_gradient: float | None = None,
        learning_rate: float | None = None,
        lr_scheduler: LRScheduler | None = None,
        sym: Symbol | None = None,
        begin_num_update: int = 0,
        multi_precision: bool = False,
        param_dict: Mapping[int, Any] | None = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            raise unknown_keyword(type(self), unknown)
        self.rescale_grad = rescale_grad
        self.lr_scheduler = lr_scheduler
        if lr_scheduler is None and learning_rate is None:
            learning_rate = 0.01
        if learning_rate is not None:
            check_rate("learning_rate", learning_rate)
        check_rate("wd", wd)
        self.lr = learning_rate
        if lr_scheduler is not None and learning_rate is not None and lr_scheduler.base_lr != learning_rate:
            warn(
                "learning rate from ``lr_scheduler`` has been overwritten by ``learning_rate`` in optimizer.",
                UserWarning,
            )
            lr_scheduler.base_lr = learning_rate
        self.wd = wd
        self.lr_mult: dict[Any, float] = {}
        self.wd_mult: dict[Any, float] = {}
        self.begin_num_update = begin_num_update
        self.num_update = begin_num_update
        self._all_index_update_counts: dict[int, dict[Any, int]] = {0: {}}
        self._index_update_count = self._all_index_update_counts[0]
        self.clip_gradient = clip_gradient
        self.multi_precision = multi_precision
        self.aggregate_num = 0
        if param_idx2name is not None and not isinstance(param_idx2name, dict):
            raise HybridNetTypeError(
                "param_idx2name should be a dict of param indexes to names", given=repr(param_idx2name)
            )
        self.idx2name = dict(param_idx2name or {})
        self.allow_np_array = True  # programs read it
        self.sym_info = (sym.attr_dict(), sym.list_arguments()) if sym is not None else ()
        self.param_dict = param_dict or {}
        self.set_lr_mult({})
        self.set_wd_mult({})

    def __repr__(self) -> str:
        names = {"eps": "float_stable_eps"}
        known = {"learning_rate", "lr_scheduler", "wd", "clip_gradient", "multi_precision", "param_dict", "sym"}
        shown: dict[str, Any] = {}
        if self.lr_scheduler is None:
            shown["learning_rate"] = self.lr
        else:
            shown["lr_scheduler"] = self.lr_scheduler
        shown.update(changed_arguments(self, names, {*known, "rescale_grad", "param_idx2name", "begin_num_update"}))
        shown.update({"wd": self.wd} if self.wd else {})
        shown.update({"clip_gradient": self.clip_gradient} if self.clip_gradient is not None else {})
        shown.update({"multi_precision": True} if self.multi_precision else {})
        return described(self, **shown)

    # -- registry ---------------------------------------------------------------------------------------------------

    @staticmethod
    def register(klass: type[Optimizer]) -> type[Optimizer]:
        """Class decorator that registers an Optimizer under its lower-case name."""
        name = klass.__name__.lower()
        old = Optimizer.opt_registry.get(name)
        if old is not None:
            warn(
                f"WARNING: New optimizer {klass.__module__}.{klass.__name__} is overriding existing optimizer "
                f"{old.__module__}.{old.__name__}",
            )
        Optimizer.opt_registry[name] = klass
        return klass

    @staticmethod
    def create_optimizer(name: str, **kwargs: Any) -> Optimizer:
        """Creates an optimizer by its case-insensitive name. Raises ValueError for unknown names."""
        if not isinstance(name, str):
            given = name.__name__ if isinstance(name, type) else type(name).__name__
            raise ParamError(
                "optimizer",
                expected="a name or an instance of Optimizer",
                given=f"the class {given}" if isinstance(name, type) else given,
                fix="pass 'sgd', or mx.optimizer.SGD(learning_rate=0.1)",
            )
        klass = Optimizer.opt_registry.get(name.lower())
        if klass is None:
            raise HybridNetValueError(
                f"Cannot find optimizer {name}", fix=suggestion(name, sorted(Optimizer.opt_registry))
            )
        if kwargs.get("learning_rate", 0.0) is None and kwargs.get("lr_scheduler") is None:
            raise _no_rate("learning_rate", None)
        return klass(**kwargs)

    # -- learning rate ----------------------------------------------------------------------------------------------

    @property
    def learning_rate(self) -> float:
        """The current learning rate: the scheduler's for the number of updates so far, or the fixed one."""
        if self.lr_scheduler is not None:
            return self.lr_scheduler(self.num_update)
        return self.lr  # type: ignore[return-value]

    def set_learning_rate(self, lr: float) -> None:
        """Sets a fixed learning rate. Raises UserWarning (like MXNet) if there is a scheduler."""
        if self.lr_scheduler is not None:
            raise HybridNetUserWarning(
                "LRScheduler of the optimizer has already been defined. Note that set_learning_rate can mutate the "
                "value of the learning rate of the optimizer only when the LRScheduler of the optimizer is undefined."
            )
        check_rate("learning_rate", lr)
        self.lr = lr

    def _attribute_of_variables(self, key: str) -> dict[str, Any]:
        if not self.sym_info:
            return {}
        attributes, names = self.sym_info
        return {name: float(attributes[name][key]) for name in names if key in attributes.get(name, {})}

    def set_lr_mult(self, args_lr_mult: Mapping[Any, float]) -> None:
        """Sets factors of the learning rate by parameter name (or index)."""
        self.lr_mult = {**self._attribute_of_variables("__lr_mult__"), **args_lr_mult}

    def _decays(self, name: str) -> bool:
        """Whether a parameter of that name decays by default, if names are known."""
        return name.endswith(("_weight", "_gamma"))

    def set_wd_mult(self, args_wd_mult: Mapping[Any, float]) -> None:
        """Sets factors of the weight decay by parameter name (or index).

        If names are known, only those that end in _weight or _gamma decay by default.
        """
        plain = {name: 0.0 for name in self.idx2name.values() if not self._decays(name)}
        self.wd_mult = {**plain, **self._attribute_of_variables("__wd_mult__"), **args_wd_mult}

    def _multiplied(
        self, base: float, indices: Sequence[Any], attribute: str, table: Mapping[Any, float]
    ) -> list[float]:
        values = []
        for index in indices:
            param = self.param_dict.get(index)
            if param is not None:
                values.append(base * getattr(param, attribute))
            elif index in table:
                values.append(base * table[index])
            else:
                values.append(base * table.get(self.idx2name.get(index), 1.0))
        return values

    def _get_lrs(self, indices: Sequence[Any]) -> list[float]:
        """Returns the learning rates of the weights with these indices."""
        return self._multiplied(self.learning_rate, indices, "lr_mult", self.lr_mult)

    def _get_lr(self, index: Any) -> float:
        """Returns the learning rate of one weight."""
        return self._get_lrs([index])[0]

    def _get_wds(self, indices: Sequence[Any]) -> list[float]:
        """Returns the weight decays of the weights with these indices."""
        return self._multiplied(self.wd, indices, "wd_mult", self.wd_mult)

    def _get_wd(self, index: Any) -> float:
        """Returns the weight decay of one weight."""
        return self._get_wds([index])[0]

    # -- counting ---------------------------------------------------------------------------------------------------

    def _set_current_context(self, device_id: int) -> None:
        """Selects the update counts of a device, which are kept separately."""
        self._index_update_count = self._all_index_update_counts.setdefault(device_id, {})

    def _update_count(self, index: Any) -> None:
        """Counts an update of the weights with these indices."""
        counts = self._index_update_count
        for i in index if isinstance(index, (list, tuple)) else (index,):
            count = counts.get(i, self.begin_num_update) + 1
            counts[i] = count
            if count > self.num_update:
                self.num_update = count

    # -- updating ---------------------------------------------------------------------------------------------------

    def create_state(self, index: Any, weight: NDArray) -> Any:
        """Returns the state of a weight for update: None, an array, or a tuple of these."""
        return None

    def _uses_master_copy(self, weight: NDArray) -> bool:
        return self.multi_precision and np.dtype(weight.dtype).itemsize == 2

    def _warn_about_low_precision(self, weight: NDArray) -> None:
        if np.dtype(weight.dtype).itemsize == 2 and not self.multi_precision:
            warn(
                f"Accumulating with {np.dtype(weight.dtype).name} in optimizer can lead to poor accuracy or slow "
                "convergence. Consider using multi_precision=True option of the optimizer",
            )

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        """Returns the state of a weight; with multi_precision and a 16-bit weight: (float32 copy, state)."""
        if self._uses_master_copy(weight):
            master = weight.astype("float32")
            return (master, self.create_state(index, master))
        self._warn_about_low_precision(weight)
        return self.create_state(index, weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Updates weight and state in place. With aggregate_num > 0, arguments are lists."""
        raise not_overridden(self, "update()")

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Same as update, through the float32 copy if there is one."""
        if isinstance(index, (list, tuple)):
            if not weight or not self._uses_master_copy(weight[0]):
                self.update(index, weight, grad, state)
                return
            masters = [s[0] for s in state]
            self.update(index, masters, [g.astype("float32") for g in grad], [s[1] for s in state])
            for master, w in zip(masters, weight, strict=False):
                w[:] = master.astype(w.dtype)
        elif self._uses_master_copy(weight):
            self.update(index, state[0], grad.astype("float32"), state[1])
            weight[:] = state[0].astype(weight.dtype)
        else:
            self.update(index, weight, grad, state)

    def _begin(self, index: Any) -> tuple[float, float]:
        """Counts an update of one weight; returns its learning rate and weight decay."""
        self._update_count(index)
        return self._get_lr(index), self._get_wd(index)

    def __getstate__(self) -> dict[str, Any]:
        # param_dict belongs to a Trainer, which sets it again after loading.
        state = self.__dict__.copy()
        del state["param_dict"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        self.param_dict = {}


add_habits(Optimizer, "optimizer")
register = Optimizer.register
create = Optimizer.create_optimizer

# MXNet also has these in this file.
__getattr__, __dir__ = names_from(
    __name__,
    {
        "_adam": "Adam AdamW Adamax LAMB Nadam",
        "_adaptive": "AdaDelta AdaGrad Ftrl RMSProp",
        "_sgd": "DCASGD FTML LARS LBSGD NAG SGD SGLD Signum Test ccSGD",
        "_updater": "Updater get_updater",
    },
)
__dir__ = dir_of(__name__, __dir__)
