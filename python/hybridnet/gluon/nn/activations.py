"""Activation layers: elementwise functions that keep shape and dtype."""

from __future__ import annotations

from typing import Any

from ... import initializer
from ...errors import ParamError
from .._hybrid_block import HybridBlock
from ._arguments import one_of, positive

__all__ = ["ELU", "GELU", "SELU", "Activation", "LeakyReLU", "PReLU", "SiLU", "Swish"]

_QUARTER = initializer.Constant(0.25)
_ACTIVATIONS = ("relu", "sigmoid", "tanh", "softrelu", "softsign")


class Activation(HybridBlock):
    """Activation function by name: relu, sigmoid, tanh, softrelu, softsign.

    Raises ParamError for other names.
    """

    def __init__(self, activation: str, **kwargs: Any) -> None:
        self._act_type = one_of("Activation", activation, _ACTIVATIONS)
        super().__init__(**kwargs)

    def _alias(self) -> str:
        return self._act_type

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.Activation(x, act_type=self._act_type, name="fwd")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._act_type})"


class LeakyReLU(HybridBlock):
    """``x if x > 0 else alpha * x``. Raises ParamError if alpha < 0."""

    def __init__(self, alpha: float, **kwargs: Any) -> None:
        if alpha < 0:
            raise ParamError(
                "LeakyReLU.alpha: Slope coefficient for LeakyReLU must be no less than 0", given=str(alpha)
            )
        super().__init__(**kwargs)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.LeakyReLU(x, act_type="leaky", slope=self._alpha, name="fwd")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._alpha})"


class PReLU(HybridBlock):
    """LeakyReLU with a learned slope: one for all (in_channels=1) or one per channel (axis 1).

    Shapes: data (N, ...) or (N, in_channels, ...); alpha (in_channels,), 0.25 by default (alpha_initializer).
    Source: He et al., Delving Deep into Rectifiers, arXiv 1502.01852.
    """

    def __init__(self, alpha_initializer: Any = _QUARTER, in_channels: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        positive("PReLU.in_channels", in_channels)
        with self.name_scope():
            self.alpha = self.params.get("alpha", shape=(in_channels,), init=alpha_initializer)

    def hybrid_forward(self, F: Any, x: Any, alpha: Any) -> Any:
        return F.LeakyReLU(x, gamma=alpha, act_type="prelu", name="fwd")


class ELU(HybridBlock):
    """``x if x > 0 else alpha * (exp(x) - 1)``. Source: Clevert et al., arXiv 1511.07289."""

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.LeakyReLU(x, act_type="elu", slope=self._alpha)


class SELU(HybridBlock):
    """Scaled ELU that keeps mean 0 and variance 1. Source: Klambauer et al., arXiv 1706.02515."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.LeakyReLU(x, act_type="selu", name="fwd")


class GELU(HybridBlock):
    """``x * Phi(x)``, Phi is the normal distribution function. Source: Hendrycks and Gimpel, arXiv 1606.08415."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.LeakyReLU(x, act_type="gelu", name="fwd")


class Swish(HybridBlock):
    """``x * sigmoid(beta * x)``. Source: Ramachandran et al., arXiv 1710.05941."""

    def __init__(self, beta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._beta = beta

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return x * F.sigmoid(x if self._beta == 1.0 else self._beta * x, name="fwd")


class SiLU(Swish):
    """``x * sigmoid(x)``."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(1.0, **kwargs)
