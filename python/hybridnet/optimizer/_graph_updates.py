"""How optimizers update inside a compiled training step (mx.jit.train_step): as operators of its graph.

Each optimizer that has update operators has one row here. What changes from step to step (rates, the number of the
step) comes from an array, one row per parameter; everything else is an attribute of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import symbol
from ..errors import ParamError, UnsupportedError
from ._adam import LAMB, Adam, AdamW
from ._adaptive import AdaGrad, Ftrl, RMSProp
from ._sgd import FTML, NAG, SGD, Signum, ccSGD
from .contrib import GroupAdaGrad
from .optimizer import Optimizer

if TYPE_CHECKING:
    from ..symbol import Symbol

__all__ = ["GraphUpdate", "Rule", "rule_of"]


@dataclass
class GraphUpdate:
    """The update of one parameter as nodes: what they read."""

    optimizer: Any
    weight: Symbol
    grad: Symbol
    state: Any  # nest of Symbols, built as the optimizer's own state
    dtype: str  # of the weight
    rates: Symbol  # (parameters, columns) float64
    columns: tuple[str, ...]
    row: int
    condition: Symbol | None = None  # (1,) float32: 0 where nothing is to be updated

    def apply(self, update: str, *inputs: Symbol, rates: str = "lr wd rescale_grad", **attributes: Any) -> Symbol:
        """The first output of an update operator; it replaces the weight and the states among its inputs."""
        texts = [f"{name}={value}" for name, value in attributes.items() if value is not None]
        used = rates.split()
        inputs += (self.rates,) if self.condition is None else (self.rates, self.condition)
        return symbol._internal._update_with_rates(
            *inputs,
            update=update,
            attributes=";".join(texts),
            rates=";".join(column if column in used else "-" for column in self.columns),
            row=self.row,
            conditional=self.condition is not None,
        )

    def rate(self, column: str, dtype: str) -> Symbol:
        """One number of the table, of shape (1,)."""
        place = self.columns.index(column)
        cell = symbol.slice(self.rates, begin=(self.row, place), end=(self.row + 1, place + 1))
        return symbol.Cast(symbol.reshape(cell, shape=(1,)), dtype=dtype)

    @property
    def clip(self) -> float | None:
        """clip_gradient, if there is one."""
        return self.optimizer.clip_gradient or None

    @property
    def has_master(self) -> bool:
        """Whether the update goes through a float32 copy of the weight."""
        return self.optimizer.multi_precision and self.dtype in ("float16", "bfloat16")


@dataclass(frozen=True)
class Rule:
    """build: adds the nodes and returns the new weight. settings: attributes of the optimizer that it reads."""

    build: Callable[[GraphUpdate], Symbol]
    settings: tuple[str, ...]
    columns: tuple[str, ...] = ("lr", "wd", "rescale_grad")

    def key(self, optimizer: Any) -> tuple[Any, ...]:
        """Graphs made for an equal key are valid."""
        return tuple(getattr(optimizer, name) for name in ("clip_gradient", "multi_precision", *self.settings))

    def rows(self, optimizer: Any, indices: Sequence[int]) -> list[list[float]]:
        """Counts an update of the parameters with these indices, and gives what the table of rates holds for it."""
        rates = _RATES.get(type(optimizer), _plain_rates)
        scale = optimizer.rescale_grad
        if optimizer.aggregate_num > 0:
            optimizer._update_count(list(indices))
            lrs, wds = optimizer._get_lrs(indices), optimizer._get_wds(indices)
        else:
            begun = [optimizer._begin(index) for index in indices]
            lrs, wds = [lr for lr, _ in begun], [wd for _, wd in begun]
        lrs, wds = rates(optimizer, list(indices), lrs, wds)
        rows = [[lr, wd, scale] for lr, wd in zip(lrs, wds, strict=True)]
        if "t" in self.columns:
            counts = optimizer._index_update_count
            rows = [[*row, counts[index]] for row, index in zip(rows, indices, strict=True)]
        return rows


def rule_of(optimizer: Optimizer) -> Rule:
    """The rule of an optimizer. Raises UnsupportedError for optimizers that are written in Python."""
    rule = _RULES.get(type(optimizer))
    if rule is None:
        names = ", ".join(sorted(klass.__name__ for klass in _RULES))
        raise UnsupportedError(
            f"train_step: optimizer {type(optimizer).__name__} cannot be compiled",
            because="its update is written in Python, not as an operator",
            fix=f"use one of {names}; or train with autograd.record(), backward() and trainer.step()",
        )
    return rule


# -- rates ------------------------------------------------------------------------------------------------------------

_Rates = tuple[list[float], list[float]]


def _plain_rates(optimizer: Any, indices: list[int], lrs: list[float], wds: list[float]) -> _Rates:
    return lrs, wds


def _adam_rates(optimizer: Any, indices: list[int], lrs: list[float], wds: list[float]) -> _Rates:
    return optimizer._corrected(indices, lrs), wds


def _group_rates(optimizer: Any, indices: list[int], lrs: list[float], wds: list[float]) -> _Rates:
    if any(wds):
        raise ParamError("Weight decay is not supported for GroupAdaGrad")
    return lrs, wds


def _adamw_rates(optimizer: Any, indices: list[int], lrs: list[float], wds: list[float]) -> _Rates:
    decays = [lr * wd for lr, wd in zip(lrs, wds, strict=True)]
    return (optimizer._corrected(indices, lrs) if optimizer.correct_bias else lrs), decays


_RATES: dict[type, Callable[..., _Rates]] = {Adam: _adam_rates, AdamW: _adamw_rates, GroupAdaGrad: _group_rates}


# -- updates ----------------------------------------------------------------------------------------------------------


def _through_master(update: Callable[[GraphUpdate], Symbol]) -> Callable[[GraphUpdate], Symbol]:
    """update, on the float32 copy where there is one: as Optimizer.update_multi_precision."""

    def build(use: GraphUpdate) -> Symbol:
        if not use.has_master:
            return update(use)
        master, state = use.state
        grad = symbol.Cast(use.grad, dtype="float32")
        own = GraphUpdate(use.optimizer, master, grad, state, "float32", use.rates, use.columns, use.row, use.condition)
        return symbol.Cast(update(own), dtype=use.dtype)

    return build


def _sgd(use: GraphUpdate) -> Symbol:
    momentum, master = use.state if use.has_master else (use.state, None)
    states = [state for state in (momentum, master) if state is not None]
    factor = use.optimizer.momentum if momentum is not None and use.optimizer.momentum > 0 else None
    name = f"{'mp_' if master is not None else ''}sgd_{'mom_' if momentum is not None else ''}update"
    return use.apply(name, use.weight, use.grad, *states, momentum=factor, clip_gradient=use.clip)


def _nag(use: GraphUpdate) -> Symbol:
    momentum, master = use.state if use.has_master else (use.state, None)
    if momentum is None:
        return _sgd(use)
    states = [momentum] if master is None else [momentum, master]
    name = "nag_mom_update" if master is None else "mp_nag_mom_update"
    factor = use.optimizer.momentum if use.optimizer.momentum > 0 else None
    return use.apply(name, use.weight, use.grad, *states, momentum=factor, clip_gradient=use.clip)


def _signum(use: GraphUpdate) -> Symbol:
    optimizer = use.optimizer
    factor = optimizer.momentum if optimizer.momentum > 0 else None
    if use.state is None:
        return use.apply("signsgd_update", use.weight, use.grad, clip_gradient=use.clip)
    return use.apply(
        "signum_update",
        use.weight,
        use.grad,
        use.state,
        momentum=factor,
        wd_lh=optimizer.wd_lh or None,
        clip_gradient=use.clip,
    )


def _ftml(use: GraphUpdate) -> Symbol:
    o = use.optimizer
    return use.apply(
        "ftml_update",
        use.weight,
        use.grad,
        *use.state,
        rates="lr wd rescale_grad t",
        beta1=o.beta1,
        beta2=o.beta2,
        epsilon=o.epsilon,
        clip_grad=use.clip,
    )


def _adam(use: GraphUpdate) -> Symbol:
    o = use.optimizer
    return use.apply(
        "adam_update",
        use.weight,
        use.grad,
        *use.state,
        beta1=o.beta1,
        beta2=o.beta2,
        epsilon=o.epsilon,
        clip_gradient=use.clip,
    )


def _adamw(use: GraphUpdate) -> Symbol:
    o = use.optimizer
    factor = use.rate("rescale_grad", use.dtype)
    return use.apply(
        "_adamw_update",
        use.weight,
        use.grad,
        *use.state,
        factor,
        rates="lr wd",
        eta=1.0,
        beta1=o.beta1,
        beta2=o.beta2,
        epsilon=o.epsilon,
        clip_gradient=use.clip,
    )


def _lamb(use: GraphUpdate) -> Symbol:
    o = use.optimizer
    step = use.apply(
        "lamb_update_phase1",
        use.weight,
        use.grad,
        *use.state,
        rates="wd rescale_grad t",
        beta1=o.beta1,
        beta2=o.beta2,
        epsilon=o.epsilon,
        bias_correction=o.bias_correction,
        clip_gradient=use.clip,
    )
    norms = [symbol.reshape(symbol.norm(value), shape=(1,)) for value in (use.weight, step)]
    return use.apply("lamb_update_phase2", use.weight, step, *norms, rates="lr", **o._bounds())


def _rmsprop(use: GraphUpdate) -> Symbol:
    o = use.optimizer
    attributes = {
        "gamma1": o.gamma1,
        "epsilon": o.epsilon,
        "clip_gradient": use.clip,
        "clip_weights": o.clip_weights or None,
    }
    if o.centered:
        return use.apply("rmspropalex_update", use.weight, use.grad, *use.state, gamma2=o.gamma2, **attributes)
    return use.apply("rmsprop_update", use.weight, use.grad, *use.state, **attributes)


def _adagrad(use: GraphUpdate) -> Symbol:
    epsilon = use.optimizer.float_stable_eps
    return use.apply("_sparse_adagrad_update", use.weight, use.grad, use.state, epsilon=epsilon, clip_gradient=use.clip)


def _group_adagrad(use: GraphUpdate) -> Symbol:
    return use.apply(
        "_contrib_group_adagrad_update",
        use.weight,
        use.grad,
        use.state,
        rates="lr rescale_grad",
        epsilon=use.optimizer.float_stable_eps,
        clip_gradient=use.clip,
    )


def _ftrl(use: GraphUpdate) -> Symbol:
    o = use.optimizer
    return use.apply(
        "ftrl_update", use.weight, use.grad, *use.state, lamda1=o.lamda1, beta=o.beta, clip_gradient=use.clip
    )


_BETAS = ("beta1", "beta2", "epsilon")
_WITH_COUNT = ("lr", "wd", "rescale_grad", "t")
_RULES: dict[type, Rule] = {
    SGD: Rule(_sgd, ("momentum",)),
    ccSGD: Rule(_sgd, ("momentum",)),
    NAG: Rule(_nag, ("momentum",)),
    Signum: Rule(_through_master(_signum), ("momentum", "wd_lh")),
    FTML: Rule(_through_master(_ftml), _BETAS, _WITH_COUNT),
    Adam: Rule(_through_master(_adam), _BETAS),
    AdamW: Rule(_through_master(_adamw), (*_BETAS, "correct_bias")),
    LAMB: Rule(_through_master(_lamb), (*_BETAS, "lower_bound", "upper_bound", "bias_correction"), _WITH_COUNT),
    RMSProp: Rule(_through_master(_rmsprop), ("gamma1", "gamma2", "epsilon", "centered", "clip_weights")),
    AdaGrad: Rule(_through_master(_adagrad), ("float_stable_eps",)),
    GroupAdaGrad: Rule(_through_master(_group_adagrad), ("float_stable_eps",)),
    Ftrl: Rule(_through_master(_ftrl), ("lamda1", "beta")),
}
