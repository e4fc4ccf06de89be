"""Initializers: the initial values of parameters. `mx.init` is this module.

An initializer is called with an InitDesc (a name with attributes) and the array to fill. The suffix of the name selects
the rule (weight, bias, gamma, beta, ...), unless the parameter has its own initializer.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import registry
from ._described import changed_arguments, count_text, described
from ._keywords import ChecksKeywords
from ._lazy_names import names_from
from ._public_names import dir_of
from ._user_line import warn
from .errors import TypeError as HybridNetTypeError
from .errors import ValueError as HybridNetValueError
from .errors import not_overridden

if TYPE_CHECKING:
    from .ndarray import NDArray

__all__ = [
    "Bilinear",
    "Constant",
    "FusedRNN",
    "InitDesc",
    "Initializer",
    "LSTMBias",
    "Load",
    "MSRAPrelu",
    "Mixed",
    "Normal",
    "One",
    "Orthogonal",
    "Uniform",
    "Xavier",
    "Zero",
    "alias",
    "create",
    "register",
]


class InitDesc(str):
    """Name of a parameter, with the attributes that select its initialization.

    Parameters
    ----------
    name : str
    attrs : dict of str to str, optional
        Attributes of the variable; ``__init__`` holds its own initializer.
    global_init : Initializer, optional
        Fallback initializer.
    """

    attrs: Mapping[str, Any]
    global_init: Initializer | None

    def __new__(
        cls, name: str, attrs: Mapping[str, Any] | None = None, global_init: Initializer | None = None
    ) -> InitDesc:
        desc = super().__new__(cls, name)
        desc.attrs = attrs or {}
        desc.global_init = global_init
        return desc


def _rms(array: NDArray) -> str:
    values = array.asnumpy().astype(np.float64)
    return str(np.linalg.norm(values.ravel()) / math.sqrt(max(values.size, 1)))


class Initializer(ChecksKeywords):
    """Base of initializers. ``dumps`` writes the keyword arguments, and equality compares them."""

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs
        self._verbose = False
        self._print_func: Callable[[NDArray], str] | None = None

    def set_verbosity(self, verbose: bool = False, print_func: Callable[[NDArray], str] | None = None) -> Initializer:
        """Logs every initialized array; print_func converts an array to text (default: root mean square)."""
        self._verbose = verbose
        self._print_func = print_func or _rms
        return self

    def _verbose_print(self, desc: str, init: str, arr: NDArray) -> None:
        if self._verbose and self._print_func:
            logging.info("Initialized %s as %s: %s", desc, init, self._print_func(arr))

    def dumps(self) -> str:
        """Returns the JSON text from which ``create`` makes an equal initializer: ``'["normal", {"sigma": 0.5}]'``."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    # Name suffixes in the order of matching, each with its method.
    _ENDINGS = (
        ("weight", "_init_weight"),
        ("bias", "_init_bias"),
        ("gamma", "_init_gamma"),
        ("beta", "_init_beta"),
        ("min", "_init_zero"),
        ("max", "_init_one"),
        ("weight_quantize", "_init_quantized_weight"),
        ("bias_quantize", "_init_quantized_bias"),
    )
    # Auxiliary states of symbolic programs, which have no initializer of their own.
    _STATE_ENDINGS = (
        ("moving_mean", "_init_zero"),
        ("moving_var", "_init_one"),
        ("moving_inv_var", "_init_zero"),
        ("moving_avg", "_init_zero"),
    )

    def __call__(self, desc: InitDesc | str, arr: NDArray) -> None:
        """Fills arr in place by the rule for the name's suffix.

        Raises ValueError if no rule matches the name.
        """
        if not isinstance(desc, InitDesc):
            self._legacy_init(desc, arr)
            return
        if desc.global_init is None:
            desc.global_init = self
        own = desc.attrs.get("__init__", "")
        if own:
            create(own)._init_weight(desc, arr)
            self._verbose_print(desc, str(own), arr)
            return
        for ending, method in self._ENDINGS + self._STATE_ENDINGS:
            if desc.endswith(ending):
                getattr(self, method)(desc, arr)
                self._verbose_print(desc, ending, arr)
                return
        self._init_default(desc, arr)

    def _legacy_init(self, name: str, arr: NDArray) -> None:
        warn(
            "Calling initializer with init(str, NDArray) has been deprecated. "
            "Please use init(mx.init.InitDesc(...), NDArray) instead.",
            DeprecationWarning,
        )
        if not isinstance(name, str):
            raise HybridNetTypeError("name must be a string", given=repr(name))
        if not hasattr(arr, "asnumpy"):
            raise HybridNetTypeError("arr must be an NDArray", given=type(arr).__name__)
        if name.startswith("upsampling"):
            self._init_bilinear(name, arr)
            return
        if name.startswith("stn_loc") and name.endswith("weight"):
            self._init_zero(name, arr)
            return
        if name.startswith("stn_loc") and name.endswith("bias"):
            self._init_loc_bias(name, arr)
            return
        for ending, method in self._ENDINGS[:4] + self._STATE_ENDINGS + self._ENDINGS[4:6]:
            if name.endswith(ending):
                getattr(self, method)(name, arr)
                return
        self._init_default(name, arr)

    def _init_bilinear(self, _: str, arr: NDArray) -> None:
        arr[:] = _bilinear_kernel(arr.shape)

    def _init_loc_bias(self, _: str, arr: NDArray) -> None:
        if arr.shape[0] != 6:
            raise HybridNetValueError("an affine transform must have 6 values", given=f"shape {arr.shape}")
        arr[:] = np.array([1.0, 0, 0, 0, 1.0, 0])

    def _init_zero(self, _: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_one(self, _: str, arr: NDArray) -> None:
        arr[:] = 1.0

    def _init_bias(self, _: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_gamma(self, _: str, arr: NDArray) -> None:
        arr[:] = 1.0

    def _init_beta(self, _: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_quantized_bias(self, _: str, arr: NDArray) -> None:
        arr[:] = 0

    def _init_quantized_weight(self, _: str, arr: NDArray) -> None:
        from . import random

        arr[:] = random.randint(-127, 127, shape=arr.shape, dtype="int32").asnumpy().astype(np.int8)

    def _init_weight(self, name: str, arr: NDArray) -> None:
        raise not_overridden(self, "_init_weight()")

    def _init_default(self, name: str, _: NDArray) -> None:
        raise HybridNetValueError(
            f"Unknown initialization pattern for {name}. Default initialization is now limited to "
            '"weight", "bias", "gamma" (1.0), and "beta" (0.0). '
            "Please use mx.sym.Variable(init=mx.init.*) to set initialization pattern"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Initializer):
            return NotImplemented
        return type(self) is type(other) and self._kwargs == other._kwargs

    def __hash__(self) -> int:
        return hash((type(self), self.dumps()))

    def __repr__(self) -> str:
        arguments = ", ".join(f"{k}={v!r}" for k, v in self._kwargs.items())
        return f"{type(self).__name__}({arguments})"


_register = registry.get_register_func(Initializer, "initializer")
alias = registry.get_alias_func(Initializer, "initializer")
create = registry.get_create_func(Initializer, "initializer")


def register(klass: type) -> type:
    """Class decorator that registers an Initializer subclass under its lower-case name."""
    return _register(klass)


class Load:
    """Fills arrays from a ``.params`` file or a dict; the prefixes ``arg:`` and ``aux:`` of names are dropped.

    Parameters
    ----------
    param : str or dict of str to NDArray
    default_init : Initializer, optional
        For names that are not in param.
    verbose : bool, default False
        Logs the source of each array.

    Raises ValueError if a shape differs or a name is missing and there is no default_init.
    """

    def __init__(
        self,
        param: str | Mapping[str, NDArray],
        default_init: Callable[[str, NDArray], None] | None = None,
        verbose: bool = False,
    ) -> None:
        if isinstance(param, str):
            from . import ndarray

            param = ndarray.load(param)
        if not isinstance(param, dict):
            raise HybridNetTypeError(
                "Load: param must be a dict or a file with named arrays", given=type(param).__name__
            )
        self.param = {(name[4:] if name.startswith(("arg:", "aux:")) else name): array for name, array in param.items()}
        self.default_init = default_init
        self.verbose = verbose

    def __repr__(self) -> str:
        return described(self, count_text(len(self.param), "array"), **changed_arguments(self, leave_out=("param",)))

    def __call__(self, name: str, arr: NDArray) -> None:
        loaded = self.param.get(str(name))
        if loaded is not None:
            if arr.shape != loaded.shape:
                raise HybridNetValueError(
                    f"Parameter {name} cannot be initialized from loading. "
                    f"Shape mismatch, target {arr.shape} vs loaded {loaded.shape}"
                )
            arr[:] = loaded
        elif self.default_init is None:
            raise HybridNetValueError(
                f"Cannot Initialize {name}. Not found in loaded param and no default Initializer is provided."
            )
        else:
            self.default_init(name, arr)
        if self.verbose:
            logging.info("Initialized %s by %s", name, "loading" if loaded is not None else "default")


class Mixed:
    """Selects an initializer by the first regular expression that matches the name.

    Raises ValueError if the lists differ in length or no pattern matches.
    """

    def __init__(self, patterns: Sequence[str], initializers: Sequence[Callable[[str, NDArray], None]]) -> None:
        if len(patterns) != len(initializers):
            raise HybridNetValueError(f"Mixed: {len(patterns)} patterns but {len(initializers)} initializers")
        self.map = [(re.compile(pattern), init) for pattern, init in zip(patterns, initializers, strict=False)]

    def __repr__(self) -> str:
        return described(self, ", ".join(f"{pattern.pattern!r}: {init!r}" for pattern, init in self.map))

    def __call__(self, name: str, arr: NDArray) -> None:
        for pattern, init in self.map:
            if pattern.match(name):
                init(name, arr)
                return
        raise HybridNetValueError(
            f'Parameter name {name} did not match any pattern. Consider adding a ".*" pattern at the end with a '
            "default Initializer."
        )


@register
@alias("zeros")
class Zero(Initializer):
    """Fills with zeros."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, _: str, arr: NDArray) -> None:
        arr[:] = 0


@register
@alias("ones")
class One(Initializer):
    """Fills with ones."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, _: str, arr: NDArray) -> None:
        arr[:] = 1


@register
class Constant(Initializer):
    """Fills with one value, or with the values of an array of the parameter's shape."""

    def __init__(self, value: Any) -> None:
        plain = value.asnumpy() if hasattr(value, "asnumpy") else value
        super().__init__(value=plain.tolist() if isinstance(plain, (np.ndarray, np.generic)) else plain)
        self.value = value

    def _init_weight(self, _: str, arr: NDArray) -> None:
        arr[:] = self.value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Initializer):
            return NotImplemented
        return type(self) is type(other) and self.dumps() == other.dumps()

    __hash__ = Initializer.__hash__


def _fill_uniform(arr: NDArray, bound: float) -> None:
    from . import random

    if arr.dtype == np.float32:
        random.uniform(-bound, bound, arr.shape, out=arr)
    else:
        arr[:] = random.uniform(-bound, bound, arr.shape)


def _fill_normal(arr: NDArray, sigma: float) -> None:
    from . import random

    if arr.dtype == np.float32:
        random.normal(0, sigma, arr.shape, out=arr)
    else:
        arr[:] = random.normal(0, sigma, arr.shape)


@register
class Uniform(Initializer):
    """Draws from the uniform distribution on [-scale, scale)."""

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, _: str, arr: NDArray) -> None:
        _fill_uniform(arr, self.scale)


@register
class Normal(Initializer):
    """Draws from the normal distribution with mean 0 and standard deviation sigma."""

    def __init__(self, sigma: float = 0.01) -> None:
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, _: str, arr: NDArray) -> None:
        _fill_normal(arr, self.sigma)


@register
class Orthogonal(Initializer):
    """Orthogonal rows (or columns, if there are fewer), multiplied by scale; trailing axes count as one.

    Source: Saxe et al., Exact solutions to the nonlinear dynamics of learning in deep linear neural networks,
    arXiv 1312.6120.

    Parameters
    ----------
    scale : float, default 1.414
    rand_type : {'uniform', 'normal'}
        Distribution of the matrix that is orthogonalized.
    """

    def __init__(self, scale: float = 1.414, rand_type: str = "uniform") -> None:
        super().__init__(scale=scale, rand_type=rand_type)
        if rand_type not in ("uniform", "normal"):
            raise HybridNetValueError("Orthogonal: rand_type must be 'uniform' or 'normal'", given=repr(rand_type))
        self.scale = scale
        self.rand_type = rand_type

    def _init_weight(self, _: str, arr: NDArray) -> None:
        from . import random

        shape = (arr.shape[0], math.prod(arr.shape[1:]))
        if self.rand_type == "uniform":
            start = random.uniform(-1.0, 1.0, shape=shape)
        else:
            start = random.normal(0.0, 1.0, shape=shape)
        left, _, right = np.linalg.svd(start.asnumpy().astype(np.float64), full_matrices=False)
        basis = left if left.shape == shape else right
        arr[:] = (self.scale * basis).reshape(arr.shape).astype(np.float32)


@register
class Xavier(Initializer):
    """Random values scaled by the layer's numbers of inputs and outputs: variance magnitude / factor.

    Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks, 2010.
    'uniform' draws from [-c, c] with c = sqrt(magnitude / factor), 'gaussian' uses c as standard deviation.

    Parameters
    ----------
    rnd_type : {'uniform', 'gaussian'}
    factor_type : {'avg', 'in', 'out'}
        Selects fan-in, fan-out or their mean as the factor.
    magnitude : float, default 3

    Raises ValueError for arrays with fewer than two axes and for unknown types.
    """

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3) -> None:
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = float(magnitude)

    def _init_weight(self, name: str, arr: NDArray) -> None:
        shape = arr.shape
        if len(shape) < 2:
            raise HybridNetValueError(
                f"Xavier initializer cannot be applied to vector {name}. It requires at least 2D",
                given=f"shape {shape}",
            )
        area = math.prod(shape[2:])
        fan_in, fan_out = shape[1] * area, shape[0] * area
        if self.factor_type == "avg":
            factor = (fan_in + fan_out) / 2.0
        elif self.factor_type == "in":
            factor = fan_in
        elif self.factor_type == "out":
            factor = fan_out
        else:
            raise HybridNetValueError(f"Incorrect factor type {self.factor_type!r}: expected 'avg', 'in' or 'out'")
        scale = math.sqrt(self.magnitude / max(factor, 1e-30))
        if self.rnd_type == "uniform":
            _fill_uniform(arr, scale)
        elif self.rnd_type == "gaussian":
            _fill_normal(arr, scale)
        else:
            raise HybridNetValueError(f"Unknown random type {self.rnd_type!r}: expected 'uniform' or 'gaussian'")


@register
class MSRAPrelu(Xavier):
    """Xavier with a normal distribution and magnitude 2 / (1 + slope^2), for layers followed by (P)ReLU.

    Source: He et al., Delving Deep into Rectifiers, arXiv 1502.01852.
    """

    def __init__(self, factor_type: str = "avg", slope: float = 0.25) -> None:
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


def _bilinear_kernel(shape: tuple[int, ...]) -> np.ndarray:
    height, width = shape[2], shape[3]
    factor = np.ceil(width / 2.0)
    center = (2 * factor - 1 - factor % 2) / (2.0 * factor)
    x = 1 - np.abs(np.arange(width) / factor - center)
    y = 1 - np.abs(np.arange(height) / factor - center)
    return np.broadcast_to(np.outer(y, x), shape).astype(np.float32)


@register
class Bilinear(Initializer):
    """Kernel of bilinear upsampling, for weights (out, in, height, width)."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, _: str, arr: NDArray) -> None:
        arr[:] = _bilinear_kernel(arr.shape)


@register
class LSTMBias(Initializer):
    """Zeros, except for the forget gate (second quarter), which is set to forget_bias."""

    def __init__(self, forget_bias: float = 1.0) -> None:
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = 0.0
        hidden = arr.shape[0] // 4
        arr[hidden : 2 * hidden] = self.forget_bias


@register
class FusedRNN(Initializer):
    """Fills the flat parameter vector of the fused ``RNN`` operator as if its matrices were separate.

    Parameters
    ----------
    init : Initializer, JSON text of one, or None
        For weights; None: the global initializer. Biases are zero, the forget gate's is forget_bias.
    num_hidden, num_layers : int
    mode : {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'}
    bidirectional : bool, default False
    forget_bias : float, default 1.0
    """

    _GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}

    def __init__(
        self,
        init: Initializer | str | None,
        num_hidden: int,
        num_layers: int,
        mode: str,
        bidirectional: bool = False,
        forget_bias: float = 1.0,
    ) -> None:
        if mode not in self._GATES:
            raise HybridNetValueError(f"FusedRNN: mode must be one of {sorted(self._GATES)}", given=repr(mode))
        if isinstance(init, str):
            init = create(init)
        super().__init__(
            init=init.dumps() if init is not None else None,
            num_hidden=num_hidden,
            num_layers=num_layers,
            mode=mode,
            bidirectional=bidirectional,
            forget_bias=forget_bias,
        )
        self._init = init
        self._num_hidden = num_hidden
        self._num_layers = num_layers
        self._mode = mode
        self._bidirectional = bidirectional
        self._forget_bias = forget_bias

    def _input_size(self, total: int) -> int:
        gates, hidden, directions = self._GATES[self._mode], self._num_hidden, 1 + self._bidirectional
        deeper = (self._num_layers - 1) * (directions * hidden + hidden + 2)
        size, rest = divmod(total, gates * hidden * directions)
        inputs = size - deeper - hidden - 2
        if rest or inputs <= 0:
            raise HybridNetValueError(f"FusedRNN: a vector of {total} values does not fit the given sizes")
        return inputs

    def _init_weight(self, desc: str, arr: NDArray) -> None:
        from . import ndarray

        init = self._init or getattr(desc, "global_init", None)
        if init is None:
            raise HybridNetValueError("FusedRNN: no initializer for the weights; pass init=")
        rows, hidden = self._GATES[self._mode] * self._num_hidden, self._num_hidden
        directions = 1 + self._bidirectional
        inputs = self._input_size(math.prod(arr.shape))
        parts = []
        for layer in range(self._num_layers):
            width = inputs if layer == 0 else hidden * directions
            for _ in range(directions):
                for columns in (width, hidden):
                    matrix = ndarray.zeros((rows, columns))
                    init(InitDesc(f"{desc}_weight", global_init=init), matrix)
                    parts.append(matrix.asnumpy().ravel())
        bias = np.zeros(rows, np.float32)
        if self._mode == "lstm":
            bias[hidden : 2 * hidden] = self._forget_bias
        parts.extend([bias] * (2 * directions * self._num_layers))
        arr[:] = np.concatenate(parts).reshape(arr.shape)


# MXNet programs reach these modules through this one.
__getattr__, __dir__ = names_from(__name__, modules={"ndarray": ".ndarray", "random": ".random"})
__dir__ = dir_of(__name__, __dir__)
