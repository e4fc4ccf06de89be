"""Further optimizers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import ndarray
from ..errors import ParamError
from .optimizer import Optimizer, register

if TYPE_CHECKING:
    from ..ndarray import NDArray

__all__ = ["GroupAdaGrad"]


@register
class GroupAdaGrad(Optimizer):
    """AdaGrad with one rate per row: ``history += mean(g^2 of the row)``. For embeddings.

    Raises ParamError for weights that are not matrices, and if there is weight decay.
    """

    def __init__(self, eps: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Any, weight: NDArray) -> Any:
        if len(weight.shape) != 2:
            raise ParamError("GroupAdaGrad needs a matrix", given=f"a weight of shape {weight.shape}")
        return ndarray.zeros((weight.shape[0], 1), ctx=weight.context, dtype=weight.dtype)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        lr, wd = self._begin(index)
        if wd != 0:
            raise ParamError("Weight decay is not supported for GroupAdaGrad")
        if grad.stype == "row_sparse":
            ndarray.contrib.group_adagrad_update(
                weight, grad, state, out=weight, lr=lr, epsilon=self.float_stable_eps, **self._gradient_arguments()
            )
            return
        grad = self._scaled(grad)
        state += ndarray.mean(ndarray.square(grad), axis=1, keepdims=True)
        weight -= lr * ndarray.broadcast_div(grad, ndarray.sqrt(state + self.float_stable_eps))
