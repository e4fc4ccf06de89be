"""Containers, Dense, Dropout, Embedding, Flatten, and layers made of functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ... import ndarray, symbol
from ..._habits import add_habits
from ..._lazy_names import names_from
from ..._public_names import dir_of
from ..._user_line import warn
from ...errors import IndexError as HybridNetIndexError
from ...errors import ParamError
from ...errors import ValueError as HybridNetValueError
from .._constructor_calls import layers_in_constructor, no_layer
from .._hybrid_block import HybridBlock
from ..block import Block
from ..utils import _indent
from ._arguments import fraction, positive, unknown_or_positive
from .activations import activation_layer

__all__ = [
    "Concatenate",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "HybridConcatenate",
    "HybridLambda",
    "HybridSequential",
    "Identity",
    "Lambda",
    "Sequential",
]


class _Container(Block):
    """Base of Sequential and HybridSequential: an ordered list of blocks."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], (Block, list, tuple)) and cls.__init__ in _PLAIN_CONSTRUCTORS:
            raise layers_in_constructor(cls, len(args) if isinstance(args[0], Block) else len(args[0]))
        return super().__new__(cls, *args, **kwargs)

    def add(self, *blocks: Any) -> None:
        """Appends blocks."""
        for block in blocks:
            if not isinstance(block, Block):
                raise no_layer(block, type(self).__name__)
            self.register_child(block)

    def __repr__(self) -> str:
        lines = [f"  ({key}): {_indent(repr(block), 2)}" for key, block in self._children.items()]
        return "{}(\n{}\n)".format(type(self).__name__, "\n".join(lines))

    def __getitem__(self, key: int | slice) -> Any:
        """Returns a block, or for a slice a container of the same blocks."""
        layers = list(self._children.values())
        if isinstance(key, int) and not -len(layers) <= key < len(layers):
            fix = "count from 0; net[-1] is the last" if layers else "add layers first: net.add(...)"
            count = "1 layer" if len(layers) == 1 else f"{len(layers)} layers"
            raise HybridNetIndexError(f"{type(self).__name__}: layer {key}, but there is {count}", fix=fix)
        layers = layers[key]
        if not isinstance(layers, list):
            return layers
        net = type(self)(prefix=self._prefix)
        with net.name_scope():
            net.add(*layers)
        return net

    def __len__(self) -> int:
        return len(self._children)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._children.values())


add_habits(_Container, "sequential")


class Sequential(_Container):
    """Blocks called one after the other.

    Example: ``net = nn.Sequential(); net.add(nn.Dense(10, activation='relu'), nn.Dense(20))``
    """

    def __init__(self, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)

    def forward(self, x: Any, *args: Any) -> Any:
        for block in self._children.values():
            x = block(x, *args)
            args = ()
            if isinstance(x, (tuple, list)):
                args, x = x[1:], x[0]
        return [x, *args] if args else x

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Hybridizes each HybridBlock inside separately."""
        if self._children and all(isinstance(child, HybridBlock) for child in self._children.values()):
            warn(
                f"All children of this Sequential layer '{self.prefix}' are HybridBlocks. Consider using "
                "HybridSequential for the best performance.",
            )
        super().hybridize(active, **kwargs)


class HybridSequential(_Container, HybridBlock):
    """HybridBlocks called one after the other, hybridized as one graph."""

    def __init__(self, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        for block in self._children.values():
            x = block(x, *args) if args else block(x)
            args = ()
            if isinstance(x, (tuple, list)):
                args, x = x[1:], x[0]
        return [x, *args] if args else x


# Subclasses of the program may take layers.
_PLAIN_CONSTRUCTORS = (Sequential.__init__, HybridSequential.__init__)


class Dense(HybridBlock):
    """Affine map: ``activation(dot(data, weight.T) + bias)``.

    Shapes: data (N, ...) or, with flatten=False, (..., in_units); weight (units, in_units); bias (units,);
    out (N, units) or (..., units).

    Parameters
    ----------
    units : int
        Size of the output, >= 1.
    activation : str, optional
        See Activation.
    use_bias : bool, default True
    flatten : bool, default True
        Whether all axes after the first are flattened.
    dtype : str or numpy dtype, default 'float32'
        Element type of the parameters.
    weight_initializer, bias_initializer : Initializer or str, optional
    in_units : int, default 0
        Size of the input; 0 or -1: found from the first batch.

    Raises ParamError if units < 1; ShapeError if a batch disagrees with in_units.
    """

    def __init__(
        self,
        units: int,
        activation: str | None = None,
        use_bias: bool = True,
        flatten: bool = True,
        dtype: Any = "float32",
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_units: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._units = positive("Dense.units", units)
        self._in_units = unknown_or_positive("Dense.in_units", in_units)
        self._flatten = flatten
        self._kwargs = {"num_hidden": self._units, "no_bias": not use_bias, "flatten": flatten, "name": "fwd"}
        with self.name_scope():
            self.weight = self.params.get(
                "weight",
                shape=(self._units, self._in_units),
                init=weight_initializer,
                dtype=dtype,
                allow_deferred_init=True,
            )
            self.bias = (
                self.params.get(
                    "bias", shape=(self._units,), init=bias_initializer, dtype=dtype, allow_deferred_init=True
                )
                if use_bias
                else None
            )
            self.act = activation_layer("Dense", activation, _units_fix(units, activation))

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        out = (
            F.FullyConnected(x, weight, **self._kwargs)
            if bias is None
            else F.FullyConnected(x, weight, bias, **self._kwargs)
        )
        return out if self.act is None else self.act(out)

    def __repr__(self) -> str:
        units, in_units = self.weight.shape or (0, 0)
        return f"{type(self).__name__}({in_units if in_units > 0 else None} -> {units}, {self.act or 'linear'})"


def _units_fix(units: Any, activation: Any) -> str:
    """The fix for an integer as activation: it was meant as the second size."""
    return f"for {units} inputs and {activation} outputs write nn.Dense({activation}, in_units={units})"


class Dropout(HybridBlock):
    """Sets values to zero with probability rate in training, scaling the rest by 1 / (1 - rate).

    Parameters
    ----------
    rate : float
        In [0, 1); 0 does nothing.
    axes : tuple of int, default ()
        Axes along which all elements share one random decision.

    Raises ParamError if rate is not in [0, 1].
    """

    def __init__(self, rate: float, axes: tuple[int, ...] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._rate = fraction("Dropout.rate", rate)
        self._axes = axes

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        if self._rate > 0:
            return F.Dropout(x, p=self._rate, axes=self._axes, name="fwd", cudnn_off=False)
        return F.identity(x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p = {self._rate}, axes={self._axes})"


class Embedding(HybridBlock):
    """Rows of a table: integer indices (...) in [0, input_dim) become vectors (..., output_dim).

    Parameters
    ----------
    input_dim, output_dim : int
        Rows and columns of the table, >= 1.
    dtype : str or numpy dtype, default 'float32'
    weight_initializer : Initializer or str, optional
    sparse_grad : bool, default False
        Whether the gradient of the table is row_sparse: memory and time of a step depend on the looked-up rows only.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        dtype: Any = "float32",
        weight_initializer: Any = None,
        sparse_grad: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._kwargs = {
            "input_dim": positive("Embedding.input_dim", input_dim),
            "output_dim": positive("Embedding.output_dim", output_dim),
            "dtype": dtype,
            "sparse_grad": sparse_grad,
        }
        self.weight = self.params.get(
            "weight",
            shape=(input_dim, output_dim),
            init=weight_initializer,
            dtype=dtype,
            allow_deferred_init=True,
            grad_stype="row_sparse" if sparse_grad else "default",
        )

    def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:
        return F.Embedding(x, weight, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        return "{}({input_dim} -> {output_dim}, {dtype})".format(type(self).__name__, **self._kwargs)


class Flatten(HybridBlock):
    """Flattens (N, a, b, ...) to (N, a * b * ...)."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.Flatten(x)

    def __repr__(self) -> str:
        return type(self).__name__


class Identity(HybridBlock):
    """Returns its input."""

    def __init__(self, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return x


class Concatenate(Sequential):
    """Calls each block on the same input and joins the outputs along axis."""

    def __init__(self, axis: int = -1, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def forward(self, x: Any) -> Any:
        return ndarray.concat(*[block(x) for block in self._children.values()], dim=self.axis)


class HybridConcatenate(HybridSequential):
    """Calls each HybridBlock on the same input and joins the outputs along axis."""

    def __init__(self, axis: int = -1, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.concat(*[block(x) for block in self._children.values()], dim=self.axis)


def _function_named(namespace: Any, function: str) -> Callable[..., Any]:
    found = getattr(namespace, function, None)
    if found is None:
        raise ParamError(f"Function name {function} is not found in {namespace.__name__}.")
    return found


class Lambda(Block):
    """A function of arrays as a Block: a callable, or the name of a function of mx.nd.

    Raises ParamError for an unknown name, ValueError for anything else.
    """

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None) -> None:
        super().__init__(prefix=prefix)
        if isinstance(function, str):
            self._func_impl = _function_named(ndarray, function)
        elif callable(function):
            self._func_impl = function
        else:
            raise HybridNetValueError(f"Unrecognized function in lambda: {function} of type {type(function)}")

    def forward(self, *args: Any) -> Any:
        return self._func_impl(*args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self._func_impl, '__name__', self._func_impl)})"


class HybridLambda(HybridBlock):
    """A function ``(F, x, ...)`` as a HybridBlock, or the name of a function of mx.nd and mx.sym.

    Raises ParamError for an unknown name, ValueError for anything else.
    """

    _calls_user_code = True

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None) -> None:
        super().__init__(prefix=prefix)
        if isinstance(function, str):
            functions = {symbol: _function_named(symbol, function), ndarray: _function_named(ndarray, function)}
            self._func = lambda F, *args: functions[F](*args)
            self._func_name = function
        elif callable(function):
            self._func = function
            self._func_name = getattr(function, "__name__", repr(function))
        else:
            raise HybridNetValueError(f"Unrecognized function in lambda: {function} of type {type(function)}")

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        return self._func(F, x, *args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_name})"


# MXNet also has these in this file.
__getattr__, __dir__ = names_from(
    __name__,
    {
        "_norm_layers": "BatchNorm BatchNormReLU GroupNorm InstanceNorm LayerNorm",
        "..block": "Block",
        ".._hybrid_block": "HybridBlock",
    },
)
__dir__ = dir_of(__name__, __dir__)
