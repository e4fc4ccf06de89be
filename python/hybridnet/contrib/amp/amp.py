"""Training in mixed precision: init, init_trainer, scale_loss, unscale."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ... import _core, ndarray, symbol
from ..._lazy_names import names_from
from ..._public_names import dir_of
from ...errors import ParamError
from ...ndarray import NDArray
from ...ops._namespace import public_names
from ...symbol import Symbol
from . import lists
from .loss_scaler import LossScaler

__all__ = [
    "init",
    "init_trainer",
    "list_conditional_fp32_ops",
    "list_fp32_ops",
    "list_loss_output_functions",
    "list_lp16_fp32_ops",
    "list_lp16_ops",
    "list_lp16_use_fp32_params",
    "list_widest_type_cast",
    "scale_loss",
    "unscale",
]

_SECTIONS = ("", "_internal", "contrib", "linalg")
_DUNDERS = ("add", "sub", "mul", "truediv", "radd", "rsub", "rmul", "rtruediv", "eq", "ne", "gt", "ge", "lt", "le")


# Libraries read these: whether init() was called, and the scaler of init_trainer(), if any.
_amp_initialized = False
_amp_loss_scale_initialized = False
_loss_scaler: LossScaler | None = None
_target: str | None = None


def target_name(target_dtype: Any) -> str:
    """Returns 'float16' or 'bfloat16'. Raises ParamError for other types."""
    name = target_dtype if isinstance(target_dtype, str) else np.dtype(target_dtype).name
    if name not in ("float16", "bfloat16"):
        raise ParamError("amp: target_dtype must be 'float16' or 'bfloat16'", given=repr(target_dtype))
    return name


def _is_tensor(value: Any) -> bool:
    return isinstance(value, (NDArray, Symbol))


def _floating(value: Any) -> bool:
    return isinstance(value, Symbol) or np.dtype(value.dtype).name in ("float16", "bfloat16", "float32")


def _cast_function(tensor: Any) -> Any:
    return symbol if isinstance(tensor, Symbol) else ndarray


def _cast(value: Any, dtype: str) -> Any:
    if isinstance(value, (list, tuple)):
        return [_cast(part, dtype) for part in value]
    if not _is_tensor(value) or not _floating(value):
        return value
    if isinstance(value, NDArray) and np.dtype(value.dtype).name == dtype:
        return value
    return _cast_function(value).amp_cast(value, dtype=dtype)


def _widest(values: Sequence[Any]) -> list[Any]:
    """Casts all tensors in values to the widest of their types."""
    places = [i for i, value in enumerate(values) if _is_tensor(value) and _floating(value)]
    tensors = [values[i] for i in places]
    result = list(values)
    arrays = [tensor for tensor in tensors if isinstance(tensor, NDArray)]
    same = len(arrays) == len(tensors) and len({np.dtype(array.dtype) for array in arrays}) < 2
    if len(tensors) < 2 or same:
        return result
    cast = _cast_function(tensors[0]).amp_multicast(*tensors, num_outputs=len(tensors))
    for n, place in enumerate(places):
        result[place] = cast[n]
    return result


def _always(function: Callable[..., Any], dtype: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs = {name: value if name == "out" else _cast(value, dtype) for name, value in kwargs.items()}
        return function(*(_cast(value, dtype) for value in args), **kwargs)

    return call


def _sometimes(function: Callable[..., Any], dtype: str, parameter: str, values: Sequence[str]) -> Callable[..., Any]:
    cast = _always(function, dtype)

    def call(*args: Any, **kwargs: Any) -> Any:
        return (cast if kwargs.get(parameter) in values else function)(*args, **kwargs)

    return call


def _agreeing(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        names = [name for name, value in kwargs.items() if name != "out" and _is_tensor(value)]
        if len(args) == 1 and isinstance(args[0], (list, tuple)):
            args = tuple(args[0])
        values = _widest([*args, *(kwargs[name] for name in names)])
        kwargs.update(zip(names, values[len(args) :], strict=True))
        return function(*values[: len(args)], **kwargs)

    return call


def _like_first(function: Callable[..., Any], first: str, written: str, place: int) -> Callable[..., Any]:
    """The values that an operator writes into its first array get the type of that array."""

    def call(*args: Any, **kwargs: Any) -> Any:
        array = args[0] if args else kwargs.get(first)
        value = args[place] if len(args) > place else kwargs.get(written)
        if not (_is_tensor(array) and _is_tensor(value)):
            return function(*args, **kwargs)
        value = _cast_function(array)._internal._amp_cast_like(value, array)
        if len(args) > place:
            return function(*args[:place], value, *args[place + 1 :], **kwargs)
        return function(*args, **{**kwargs, written: value})

    return call


def _replace(operators: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]]) -> None:
    """Replaces functions in mx.nd, mx.sym and their submodules by wrapped ones; operators: name -> wrapper."""
    for package in (ndarray, symbol):
        for section in _SECTIONS:
            modules = [getattr(package, section)] if section else [package, package.op]
            for public, primary in public_names(section).items():
                if primary not in operators:
                    continue
                for module in modules:
                    function = getattr(module, public)
                    wrapped = operators[primary](function)
                    wrapped.__name__, wrapped.__doc__ = public, function.__doc__
                    setattr(module, public, wrapped)


def _replace_methods(wrappers: dict[str, Callable[..., Any]]) -> None:
    """Wraps methods: x + y with arrays of different types, and x.softmax() like nd.softmax(x)."""
    for kind in (NDArray, Symbol):
        for name in _DUNDERS:
            setattr(kind, f"__{name}__", _agreeing(getattr(kind, f"__{name}__")))
        for public, primary in public_names("").items():
            if primary in wrappers and callable(getattr(kind, public, None)):
                setattr(kind, public, wrappers[primary](getattr(kind, public)))


def init(
    target_dtype: Any = "float16",
    target_precision_ops: Sequence[str] | None = None,
    conditional_fp32_ops: Sequence[tuple[str, str, Sequence[str]]] | None = None,
    fp32_ops: Sequence[str] | None = None,
) -> None:
    """Makes operators cast their inputs for the rest of the process. Call it before networks run or are hybridized.

    Parameters
    ----------
    target_dtype : {'float16', 'bfloat16'}
    target_precision_ops : list of str, optional
        Operators that run in target_dtype; default: products.
    conditional_fp32_ops : list of (operator, parameter, values), optional
        Operators that run in float32 if the parameter has one of the values.
    fp32_ops : list of str, optional
        Operators that run in float32; default: exponents, sums, normalization, losses, ...

    A second call does nothing. Raises ParamError for other types and unknown operators.
    """
    global _amp_initialized, _target
    if _amp_initialized:
        return
    target = target_name(target_dtype)
    primaries = {alias: primary for primary, aliases, _ in _core.op_names() for alias in (primary, *aliases)}
    for name in (*(target_precision_ops or ()), *(fp32_ops or ()), *(op for op, _, _ in conditional_fp32_ops or ())):
        if name not in primaries:
            raise ParamError(f"amp.init: there is no operator '{name}'")
    wrappers: dict[str, Callable[..., Any]] = dict.fromkeys(lists.WIDEST, _agreeing)
    for name in lists.FLOAT32 if fp32_ops is None else fp32_ops:
        wrappers[primaries.get(name, name)] = lambda function: _always(function, "float32")
    for name, parameter, values in lists.CONDITIONAL if conditional_fp32_ops is None else conditional_fp32_ops:
        wrappers[primaries.get(name, name)] = lambda function, p=parameter, v=values: _sometimes(
            function, "float32", p, v
        )
    for name, place in lists.written_inputs().items():
        inputs = _core.describe_op(name)["inputs"]
        if not _core.describe_op(name)["variadic"]:
            first, written = inputs[0]["name"], inputs[place]["name"]
            wrappers[name] = functools.partial(_like_first, first=first, written=written, place=place)
    for name in lists.TARGET if target_precision_ops is None else target_precision_ops:
        wrappers[primaries.get(name, name)] = lambda function: _always(function, target)
    _amp_initialized, _target = True, target
    logging.info("Using AMP")
    _replace(wrappers)
    _replace_methods(wrappers)


def init_trainer(optimizer_or_trainer: Any) -> None:
    """Sets a loss scale in a Trainer, for scale_loss. Raises ParamError before init() and for other objects."""
    from ...gluon import Trainer

    global _amp_loss_scale_initialized, _loss_scaler
    if not _amp_initialized:
        raise ParamError("amp.init_trainer: AMP not initialized, did you forget to call amp.init()?")
    if not isinstance(optimizer_or_trainer, Trainer):
        raise ParamError(
            "amp.init_trainer: optimizer_or_trainer should be a Gluon Trainer",
            given=type(optimizer_or_trainer).__name__,
        )
    # bfloat16 has the range of float32, so it needs no scale.
    _loss_scaler = LossScaler() if _target == "float16" else LossScaler(init_scale=1.0, max_scale=1.0)
    _loss_scaler.attach(optimizer_or_trainer)
    _amp_loss_scale_initialized = True


def _scaler(trainer: Any, function: str) -> LossScaler:
    scaler = getattr(trainer, "_amp_loss_scaler", None)
    if scaler is None:
        raise ParamError(f"amp.{function}: Loss scaler is not initialized, did you forget to call amp.init_trainer()?")
    return scaler


@contextlib.contextmanager
def scale_loss(loss: Any, optimizer_or_trainer: Any) -> Iterator[Any]:
    """Yields the loss, or list of losses, times the trainer's loss scale; its step() divides gradients again.

    Raises ParamError unless init_trainer was called.
    """
    scale = _scaler(optimizer_or_trainer, "scale_loss").loss_scale
    optimizer_or_trainer._scale = optimizer_or_trainer._amp_original_scale / scale
    yield [part * scale for part in loss] if isinstance(loss, (list, tuple)) else loss * scale


def unscale(optimizer_or_trainer: Any) -> None:
    """Divides gradients by the loss scale now, for clipping before update(). Raises the errors of scale_loss."""
    scale = _scaler(optimizer_or_trainer, "unscale").loss_scale
    for param in optimizer_or_trainer._params:
        if param.grad_req != "null":
            for gradient in param.list_grad():
                gradient /= scale
    optimizer_or_trainer._scale = optimizer_or_trainer._amp_original_scale


def list_lp16_ops(target_dtype: Any = "float16") -> list[str]:
    """Returns operators that run in target_dtype. Raises ParamError for other types, like all these functions."""
    target_name(target_dtype)
    return list(lists.TARGET)


def list_fp32_ops(target_dtype: Any = "float16") -> list[str]:
    """Returns operators that run in float32."""
    target_name(target_dtype)
    return list(lists.FLOAT32)


def list_conditional_fp32_ops(target_dtype: Any = "float16") -> list[tuple[str, str, list[str]]]:
    """Returns (operator, parameter, values): operators that run in float32 if the parameter has one of the values."""
    target_name(target_dtype)
    return [(operator, parameter, list(values)) for operator, parameter, values in lists.CONDITIONAL]


def list_widest_type_cast(target_dtype: Any = "float16") -> list[str]:
    """Returns operators with inputs that are cast to the widest type among them."""
    target_name(target_dtype)
    return list(lists.WIDEST)


def list_lp16_fp32_ops(target_dtype: Any = "float16") -> list[str]:
    """Returns operators that run in the type of their inputs: all that are on no other list."""
    target_name(target_dtype)
    listed = {*lists.TARGET, *lists.FLOAT32, *lists.WIDEST, *(operator for operator, _, _ in lists.CONDITIONAL)}
    return [primary for primary, _, _ in _core.op_names() if primary not in listed]


def list_loss_output_functions(target_dtype: Any = "float16") -> list[str]:
    """Returns operators whose backward pass starts a new gradient."""
    target_name(target_dtype)
    return list(lists.LOSSES)


def list_lp16_use_fp32_params(target_dtype: Any = "float16") -> dict[str, list[str]] | None:
    """Returns parameters of 16-bit operators that stay in float32: always None, MXNet's form of an empty result."""
    target_name(target_dtype)
    return None


# MXNet also has the conversions in this module.
__getattr__, __dir__ = names_from(
    __name__, {"_convert": "convert_bucketing_module convert_hybrid_block convert_model convert_symbol"}
)
__dir__ = dir_of(__name__, __dir__)
