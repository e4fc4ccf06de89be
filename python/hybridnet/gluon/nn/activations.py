"""Activation layers: elementwise functions that keep shape and dtype."""

from __future__ import annotations

import numbers
from typing import Any

from ... import initializer
from ..._public_names import dir_of
from ...errors import HybridNetError, ParamError, suggestion
from .._hybrid_block import HybridBlock
from ._arguments import positive

__all__ = ["ELU", "GELU", "SELU", "Activation", "LeakyReLU", "PReLU", "SiLU", "Swish"]

_QUARTER = initializer.Constant(0.25)
_ACTIVATIONS = ("relu", "sigmoid", "tanh", "softrelu", "softsign")


_LAYERS = {"elu": "ELU", "gelu": "GELU", "leaky_relu": "LeakyReLU", "prelu": "PReLU", "selu": "SELU", "swish": "Swish"}
_LAYERS |= {"leakyrelu": "LeakyReLU", "silu": "SiLU"}


def _unknown(what: str, activation: Any) -> HybridNetError:
    """Returns the error for an activation that does not exist under this name."""
    word = activation.lower() if isinstance(activation, str) else ""
    if word in _LAYERS:
        fix = f"add the layer nn.{_LAYERS[word]}() behind this one"
    elif word in ("softmax", "log_softmax"):
        fix = f"leave it out: SoftmaxCrossEntropyLoss computes it; for probabilities call mx.nd.{word}(out)"
    elif word in ("linear", "identity", "none"):
        fix = "leave it out"
    else:
        fix = suggestion(word, _ACTIVATIONS) if word else f"use one of {', '.join(map(repr, _ACTIVATIONS))}"
    return ParamError(
        what, expected=f"one of {', '.join(map(repr, _ACTIVATIONS))}", given=_text_of(activation), fix=fix
    )


def _text_of(value: Any) -> str:
    name = getattr(value, "__name__", None)
    return f"the function {name}" if name and callable(value) else repr(value)


def activation_layer(layer: str, activation: Any, fix_of_integer: str) -> Activation | None:
    """Returns the Activation at the end of a layer, or None. Raises ParamError for what is no name of one.

    fix_of_integer: fix if activation is an integer, as where another library has a size at this place.
    """
    if activation is None:
        return None
    if isinstance(activation, numbers.Integral):
        raise ParamError(
            f"{layer}.activation",
            expected="a name, such as 'relu'",
            given=repr(activation),
            because="sizes of the input have keywords and may be left out",
            fix=fix_of_integer,
        )
    if activation not in _ACTIVATIONS:
        raise _unknown(f"{layer}.activation", activation)
    return Activation(activation, prefix=activation + "_")


class Activation(HybridBlock):
    """Activation function by name: relu, sigmoid, tanh, softrelu, softsign.

    Raises ParamError for other names.
    """

    def __init__(self, activation: str, **kwargs: Any) -> None:
        if activation not in _ACTIVATIONS:
            raise _unknown("Activation", activation)
        self._act_type = activation
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


__dir__ = dir_of(__name__)
