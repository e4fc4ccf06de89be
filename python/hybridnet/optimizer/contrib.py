"""Additional optimizers."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._public_names import dir_of
from ._ruled import RuledOptimizer
from .optimizer import register

__all__ = ["GroupAdaGrad"]


@register
class GroupAdaGrad(RuledOptimizer):
    """AdaGrad with one rate per row: ``history += mean(g^2 of the row)``, for embeddings.

    Raises ParamError for weights that are not matrices, and if there is weight decay.
    """

    _rule = _core.UpdateRule("GroupAdaGrad")

    def __init__(self, eps: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.float_stable_eps = eps


__dir__ = dir_of(__name__)
