"""LossScaler: the loss scale that avoids underflow of small gradients in 16 bits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ... import ndarray
from ..._public_names import dir_of

if TYPE_CHECKING:
    from ...gluon import Parameter

__all__ = ["LossScaler"]


class LossScaler:
    """Halves the scale if gradients overflow, doubles it after scale_window steps without overflow.

    Parameters
    ----------
    init_scale : float, default 2 ** 16
    scale_factor : float, default 2
    scale_window : int, default 2000
    max_scale : float, default 2 ** 24
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        scale_factor: float = 2.0,
        scale_window: int = 2000,
        max_scale: float = 2.0**24,
    ) -> None:
        self.loss_scale = init_scale
        self._scale_factor = scale_factor
        self._scale_window = scale_window
        self._max_scale = max_scale
        self._finite_steps = 0

    def attach(self, trainer: Any) -> None:
        """Makes the trainer divide gradients by this scale, and leave out steps whose gradients overflow."""
        trainer._amp_loss_scaler = self
        trainer._amp_original_scale = trainer._scale

    def has_overflow(self, params: Iterable[Parameter]) -> bool:
        """Whether a gradient is infinite or NaN; also updates the scale for the next step."""
        gradients: list[Any] = [
            gradient for param in params if param.grad_req != "null" for gradient in param.list_grad()
        ]
        return self._note(self._are_finite(gradients))

    @staticmethod
    def _are_finite(gradients: list[Any]) -> bool:
        return not gradients or bool(
            ndarray.multi_all_finite(*gradients, num_arrays=len(gradients), init_output=True).asscalar()
        )

    def _note(self, finite: bool) -> bool:
        """Counts a step with or without finite gradients; returns whether they overflowed."""
        if not finite:
            self.loss_scale = max(1.0, self.loss_scale / self._scale_factor)
            self._finite_steps = 0
            return True
        self._finite_steps += 1
        if self._finite_steps == self._scale_window:
            self.loss_scale = min(self._max_scale, self.loss_scale * self._scale_factor)
            self._finite_steps = 0
        return False


__dir__ = dir_of(__name__)
