"""quantize_model and its parts: quantization of graphs and their parameters."""

from __future__ import annotations

import difflib
import logging
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ... import _core, autograd, ndarray
from ... import symbol as sym_module
from ...context import Context
from ...errors import DTypeError, ParamError, UnsupportedError
from ...errors import TypeError as HybridNetTypeError
from ...errors import ValueError as HybridNetValueError
from ...io import DataBatch
from ...ndarray import NDArray
from ...operator import get_all_registered_operators
from ...symbol import Symbol
from ._collectors import make_collector, note

__all__ = ["calib_graph", "quantize_graph", "quantize_model", "quantize_model_mkldnn"]

Parameters = dict[str, NDArray]

MODES = ("none", "naive", "entropy")


def check_choice(where: str, name: str, given: Any, choices: Sequence[str]) -> None:
    """Raises ValueError unless the argument is one of choices."""
    if given not in choices:
        raise HybridNetValueError(f"{where}: {name}", expected=f"one of {', '.join(choices)}", given=repr(given))


def check_settings(where: str, ctx: Context | None, quantized_dtype: str, quantize_mode: str, granularity: str) -> None:
    """Raises ValueError for unsupported arguments."""
    check_choice(where, "quantized_dtype", quantized_dtype, ("int8", "uint8", "auto"))
    check_choice(where, "quantize_mode", quantize_mode, ("full", "smart"))
    check_choice(where, "quantize_granularity", granularity, ("tensor-wise", "channel-wise"))
    if ctx is not None and ctx.device_type != "cpu":
        raise HybridNetValueError(
            f"{where}: ctx",
            expected="cpu()",
            given=str(ctx),
            because="networks are quantized on the CPU",
            fix="leave ctx out, then call reset_ctx(mx.gpu(0)) on the result",
        )
    if autograd.is_recording() or autograd.is_training():
        raise UnsupportedError(
            f"{where}: called in autograd.record() or train_mode()",
            because="quantized networks are for prediction only: they have no gradients",
            fix="train in float32, leave the with block, then quantize",
        )


def operator_nodes(symbol: Symbol) -> list[str]:
    """Returns the names of the graph's operator nodes, not those of variables."""
    inside = symbol.get_internals()
    return [str(entry.name) for entry in inside if _core.symbol_op(entry) is not None]


def check_excluded_names(where: str, names: Iterable[str], symbol: Symbol) -> set[str]:
    """Returns the names as a set. Raises ValueError for a name that no operator of the graph has."""
    nodes = operator_nodes(symbol)
    for name in names:
        if name not in nodes:
            near = difflib.get_close_matches(name, nodes, 3, 0.4) or nodes[:3]
            raise HybridNetValueError(
                f"{where}: the graph has no layer {name!r}",
                fix=f"name layers as the graph does ({', '.join(near)}); symbol.get_internals() lists all",
            )
    return set(names)


def check_excluded_operators(where: str, names: Iterable[str]) -> set[str]:
    """Returns the names as a set. Raises ValueError for an unknown operator."""
    known = set(get_all_registered_operators())
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 3)
            raise HybridNetValueError(
                f"{where}: there is no operator {name!r}",
                fix=f"did you mean {' or '.join(near)}?" if near else "use operator names, for example Convolution",
            )
    return set(names)


def check_parameters(where: str, parameters: Parameters) -> None:
    """Raises DTypeError if a parameter is float16, bfloat16 or float64."""
    for name, array in parameters.items():
        if np.dtype(array.dtype).name in ("float16", "bfloat16", "float64"):
            raise DTypeError(
                f"{where}: parameter {name!r}",
                expected="float32",
                given=np.dtype(array.dtype).name,
                fix="call net.cast('float32') or array.astype('float32') first",
            )


def quantize_parameters(where: str, qsym: Symbol, parameters: Parameters) -> Parameters:
    """Returns the parameters that a quantized graph reads: quantized where it needs bytes, others unchanged."""
    result: Parameters = {}
    narrow = _core.weights_beside_unsigned_data(qsym)
    for name in qsym.list_arguments():
        if name in parameters:
            result[name] = parameters[name]
        elif name.endswith("_quantize"):
            original = name.removesuffix("_quantize")
            if original not in parameters:
                raise _missing(where, original)
            value = parameters[original]
            ends = [end.reshape((1,)) for end in (value.min(), value.max())]
            made, low, high = ndarray.contrib.quantize(value, *ends, out_type="int8")
            factor = 127 / 255 if name in narrow else 1
            result.update({name: made, f"{name}_min": low * factor, f"{name}_max": high * factor})
    return result


def _missing(where: str, name: str) -> HybridNetValueError:
    return HybridNetValueError(
        f"{where}: arg_params has no {name!r}", fix="pass all parameters, the result of mod.get_params()"
    )


def fold_batch_norms(
    where: str, symbol: Symbol, arg_params: Parameters, aux_params: Parameters, excluded: Collection[str]
) -> tuple[Symbol, Parameters, Parameters]:
    """Folds batch norms into the layers before them; returns the graph and its parameters."""
    folded, changed = _core.fold_batch_norms(symbol, set(excluded))
    known = {**arg_params, **aux_params}
    new = {}
    for name, value in changed:
        feeds = {}
        for needed in value.list_inputs():
            if needed not in known:
                raise _missing(where, needed)
            feeds[needed] = known[needed]
        (new[name],) = value.eval(**feeds)
    kept = {*folded.list_arguments()}
    arguments = {name: value for name, value in arg_params.items() if name in kept}
    states = set(folded.list_auxiliary_states())
    return folded, {**arguments, **new}, {name: value for name, value in aux_params.items() if name in states}


class Settings:
    """The quantization settings: the arguments that all functions share."""

    def __init__(
        self,
        where: str,
        quantized_dtype: str,
        quantize_mode: str,
        excluded_names: set[str],
        excluded_operators: set[str],
    ) -> None:
        self.where = where
        self.dtype = quantized_dtype
        self.mode = quantize_mode
        self.excluded_names = excluded_names
        self.excluded_operators = excluded_operators

    def quantize(self, symbol: Symbol, parameters: Collection[str], calibrated: bool) -> tuple[Symbol, list[str]]:
        """Returns the quantized graph, and the values of the given graph whose ranges are needed."""
        made: tuple[Symbol, list[str]] = _core.quantize_symbol(
            symbol=symbol,
            excluded_nodes=self.excluded_names,
            excluded_ops=self.excluded_operators,
            parameters=set(parameters),
            always_signed=self.dtype == "int8",
            smart=self.mode == "smart",
            ranges_follow=calibrated,
        )
        return made


def batches(where: str, calib_data: Any, data_names: Sequence[str] | None) -> Iterator[list[NDArray]]:
    """Yields the arrays of each batch, in the order of data_names; None: all arrays."""
    if calib_data is None:
        raise HybridNetValueError(
            f"{where}: calib_data",
            expected="data that the network will see, for calib_mode naive, entropy or customize",
            given="None",
            fix="pass a DataIter or DataLoader of some hundred examples, or calib_mode='none'",
        )
    if isinstance(calib_data, (NDArray, np.ndarray, str)) or not hasattr(calib_data, "__iter__"):
        raise HybridNetTypeError(
            f"{where}: calib_data",
            expected="an iterable of batches: a DataIter, a DataLoader, or a list of arrays",
            given=type(calib_data).__name__,
            fix="pass [array] for a single batch",
        )
    if hasattr(calib_data, "reset"):
        calib_data.reset()
    count = 0
    for batch in calib_data:
        count += 1
        yield _arrays_of(where, batch, data_names, getattr(calib_data, "provide_data", None))
    if count == 0:
        raise HybridNetValueError(f"{where}: calib_data gave no batch", fix="pass data that can be read again")
    if hasattr(calib_data, "reset"):
        calib_data.reset()


def _arrays_of(where: str, batch: Any, data_names: Sequence[str] | None, descriptions: Any) -> list[NDArray]:
    if isinstance(batch, DataBatch):
        arrays = list(batch.data or ())
        names = [d[0] for d in descriptions or ()]
        if data_names is not None and len(names) == len(arrays) and set(data_names) <= set(names):
            return [arrays[names.index(name)] for name in data_names]
    elif isinstance(batch, (list, tuple)):
        arrays = list(batch)
    else:
        arrays = [batch]
    arrays = [ndarray.array(a) if isinstance(a, np.ndarray) else a for a in arrays]
    count = len(arrays) if data_names is None else len(data_names)
    if len(arrays) < count or not all(isinstance(a, NDArray) for a in arrays[:count]):
        raise HybridNetTypeError(
            f"{where}: a batch of calib_data",
            expected="arrays" if data_names is None else f"arrays for {', '.join(data_names)}",
            given=", ".join(type(a).__name__ for a in arrays),
        )
    return arrays[:count] if data_names is None else [a.as_nd_ndarray() for a in arrays[:count]]


# Limit of the observed values per run of the graph, because a run keeps all observed values at once.
WATCHED_BYTES = 1 << 30


class Watch:
    """Runs a float graph and returns some of its inner values."""

    def __init__(self, where: str, symbol: Symbol, entries: Sequence[str], feeds: Parameters) -> None:
        inside = symbol.get_internals()
        whole = sym_module.Group([inside[name] for name in entries])
        for name in whole.list_inputs():
            if name not in feeds:
                raise _missing(where, name)
        _, shapes, _ = whole.infer_shape(**{name: feeds[name].shape for name in whole.list_inputs()})
        parts: list[list[str]] = [[]]
        size = 0
        for name, shape in zip(entries, shapes, strict=True):
            size += 4 * math.prod(shape)
            if parts[-1] and size > WATCHED_BYTES:
                parts.append([])
                size = 4 * math.prod(shape)
            parts[-1].append(name)
        graphs = [sym_module.Group([inside[name] for name in part]) for part in parts]
        self._runs = [(part, g.list_inputs(), _core.CachedOp(g)) for part, g in zip(parts, graphs, strict=True)]

    def values(self, feeds: Parameters) -> Iterator[tuple[str, NDArray]]:
        """Yields name and value of each entry for these inputs and parameters."""
        for entries, names, run in self._runs:
            values = run(*[feeds[name] for name in names])
            yield from zip(entries, [values] if isinstance(values, NDArray) else values, strict=True)


def run_calibration(
    where: str,
    symbol: Symbol,
    parameters: Parameters,
    entries: Sequence[str],
    data: Iterator[list[NDArray]],
    data_names: Sequence[str],
    num_examples: int | None,
    collector: Any,
    logger: Any,
) -> None:
    """Passes the entries of the float graph to collector, batch by batch until num_examples."""
    watch: Watch | None = None
    seen = count = 0
    with autograd.pause(train_mode=False):
        for arrays in data:
            feeds = {**parameters, **dict(zip(data_names, arrays, strict=True))}
            watch = watch or Watch(where, symbol, entries, feeds)
            for name, value in watch.values(feeds):
                collector.collect(name, value)
            seen += arrays[0].shape[0]
            count += 1
            if num_examples is not None and seen >= num_examples:
                break
    note(logger, "Calibrated with %d examples in %d batches", seen, count)


def calibrated(qsym: Symbol, collector: Any, quantized_dtype: str) -> Symbol:
    """Returns the graph with the ranges of collector."""
    ranges = collector.ranges(quantized_dtype) if hasattr(collector, "ranges") else collector.min_max_dict
    found = {str(name): (float(low), float(high)) for name, (low, high) in ranges.items()}
    made: Symbol = _core.set_quantized_ranges(qsym, found)
    return made


def quantize_model(
    sym: Symbol,
    arg_params: Parameters,
    aux_params: Parameters,
    data_names: Sequence[str] | None = ("data",),
    label_names: Sequence[str] | None = ("softmax_label",),
    ctx: Context | None = None,
    excluded_sym_names: Sequence[str] | None = None,
    excluded_op_names: Sequence[str] | None = None,
    calib_mode: str = "entropy",
    calib_data: Any = None,
    num_calib_examples: int | None = None,
    quantized_dtype: str = "int8",
    quantize_mode: str = "smart",
    quantize_granularity: str = "tensor-wise",
    logger: Any = None,
) -> tuple[Symbol, Parameters, Parameters]:
    """Returns the graph with convolutions and products in 8 bits, and its parameters.

    Parameters
    ----------
    sym : Symbol
        A graph in float32. Batch norms after convolutions and dense layers are folded into their weights.
    arg_params, aux_params : dict of str to NDArray
    data_names : sequence of str
        The names of the inputs in calib_data.
    label_names : accepted
    ctx : Context, default cpu()
    excluded_sym_names, excluded_op_names : sequence of str, optional
        Nodes and operators that stay in float32.
    calib_mode : str
        Source of the value ranges: 'none', each batch separately; 'naive', minimum and maximum over calib_data;
        'entropy', the range with which bytes preserve most information of calib_data.
    calib_data : DataIter, DataLoader, or another iterable of batches
    num_calib_examples : int, optional
        Number of examples after which calibration ends.
    quantized_dtype : str
        Type of the bytes: 'int8'; 'auto' and 'uint8': unsigned bytes for values without negatives, with half the step
        size.
    quantize_mode : str
        Operators to quantize: 'full': all that can run on bytes. 'smart': convolutions, products, and operators
        between.
    quantize_granularity : str
        One scale per tensor; 'channel-wise' is accepted without effect.
    logger : optional

    Returns the graph, arg_params, aux_params. A weight w is stored as w_quantize, w_quantize_min and w_quantize_max.
    Raises ValueError for names that the graph does not have and for missing calib_data; DTypeError for parameters that
    are not float32.
    """
    where = "quantize_model"
    check_choice(where, "calib_mode", calib_mode, MODES)
    check_settings(where, ctx, quantized_dtype, quantize_mode, quantize_granularity)
    check_parameters(where, arg_params)
    if not isinstance(sym, Symbol):
        raise HybridNetTypeError(
            f"{where}: sym", expected="a Symbol", given=type(sym).__name__, fix="call quantize_net for a block"
        )
    names = check_excluded_names(where, excluded_sym_names or (), sym)
    settings = Settings(
        where, quantized_dtype, quantize_mode, names, check_excluded_operators(where, excluded_op_names or ())
    )
    return quantize_and_calibrate(
        settings, sym, arg_params, aux_params, list(data_names or ()), calib_mode, calib_data, num_calib_examples,
        None, logger,
    )  # fmt: skip


def quantize_and_calibrate(
    settings: Settings,
    symbol: Symbol,
    arg_params: Parameters,
    aux_params: Parameters,
    data_names: list[str],
    calib_mode: str,
    calib_data: Any,
    num_examples: int | None,
    collector: Any,
    logger: Any,
) -> tuple[Symbol, Parameters, Parameters]:
    """Runs quantize_model with validated arguments. collector: the user's, or None."""
    where = settings.where
    unknown = [name for name in data_names if name not in symbol.list_arguments()]
    if unknown:
        raise ParamError(
            f"{where}: data_names: the graph has no input {', '.join(unknown)}",
            fix="name the variables that calib_data gives",
        )
    folded, new_args, new_aux = fold_batch_norms(where, symbol, arg_params, aux_params, settings.excluded_names)
    qsym, entries = settings.quantize(folded, new_args, calib_mode != "none")
    if calib_mode != "none" and entries:
        collector = collector if collector is not None else make_collector(calib_mode, entries, logger)
        data = batches(where, calib_data, data_names)
        parameters = {**arg_params, **aux_params}
        run_calibration(where, symbol, parameters, entries, data, data_names, num_examples, collector, logger)
        qsym = calibrated(qsym, collector, settings.dtype)
    note(logger, "%s: ranges of %d values are known", where, len(entries) if calib_mode != "none" else 0)
    return qsym, quantize_parameters(where, qsym, new_args), new_aux


def quantize_model_mkldnn(
    sym: Symbol,
    arg_params: Parameters,
    aux_params: Parameters,
    data_names: Sequence[str] | None = ("data",),
    label_names: Sequence[str] | None = ("softmax_label",),
    ctx: Context | None = None,
    excluded_sym_names: Sequence[str] | None = None,
    excluded_op_names: Sequence[str] | None = None,
    calib_mode: str = "entropy",
    calib_data: Any = None,
    num_calib_examples: int | None = None,
    quantized_dtype: str = "int8",
    quantize_mode: str = "smart",
    quantize_granularity: str = "tensor-wise",
    logger: Any = None,
) -> tuple[Symbol, Parameters, Parameters]:
    """Same as quantize_model: plans fuse the operators that oneDNN runs as one, whichever function made the graph."""
    return quantize_model(
        sym, arg_params, aux_params, data_names, label_names, ctx, excluded_sym_names, excluded_op_names, calib_mode,
        calib_data, num_calib_examples, quantized_dtype, quantize_mode, quantize_granularity, logger,
    )  # fmt: skip


def quantize_graph(
    sym: Symbol,
    arg_params: Parameters,
    aux_params: Parameters,
    ctx: Context | None = None,
    excluded_sym_names: Sequence[str] | None = None,
    excluded_op_names: Sequence[str] | None = None,
    calib_mode: str = "entropy",
    quantized_dtype: str = "int8",
    quantize_mode: str = "full",
    quantize_granularity: str = "tensor-wise",
    LayerOutputCollector: Any = None,
    logger: Any = None,
) -> tuple[Symbol, Parameters, Parameters, Any]:
    """Runs the first half of quantize_model, for programs that run the calibration data themselves.

    Arguments: see quantize_model. Returns the graph, its parameters, and a collector (None for calib_mode 'none';
    LayerOutputCollector for 'customize'): pass ``collector.collect`` to ``set_monitor_callback(..., monitor_all=True)``
    of an executor of the float graph, run batches, then call calib_graph. Batch norms are not folded.
    """
    where = "quantize_graph"
    check_choice(where, "calib_mode", calib_mode, (*MODES, "customize"))
    check_settings(where, ctx, quantized_dtype, quantize_mode, quantize_granularity)
    check_parameters(where, arg_params)
    names = check_excluded_names(where, excluded_sym_names or (), sym)
    operators = check_excluded_operators(where, excluded_op_names or ())
    settings = Settings(where, quantized_dtype, quantize_mode, names, operators)
    qsym, entries = settings.quantize(sym, arg_params, calib_mode != "none")
    collector: Any = None
    if calib_mode == "customize":
        collector = check_collector(where, LayerOutputCollector)
        if getattr(collector, "include_layer", entries) is None:
            collector.include_layer = entries
    elif calib_mode != "none":
        collector = make_collector(calib_mode, entries, logger)
    return qsym, quantize_parameters(where, qsym, arg_params), dict(aux_params), collector


def check_collector(where: str, collector: Any) -> Any:
    """Raises ValueError unless the user's object is a collector."""
    if not hasattr(collector, "collect") or not hasattr(collector, "min_max_dict"):
        raise HybridNetValueError(
            f"{where}: LayerOutputCollector",
            expected="an object with collect(name, arr) and min_max_dict, for calib_mode 'customize'",
            given=repr(collector),
            fix="derive a class from mx.contrib.quantization.CalibrationCollector",
        )
    return collector


def calib_graph(
    qsym: Symbol,
    arg_params: Parameters,
    aux_params: Parameters,
    collector: Any,
    calib_mode: str = "entropy",
    quantized_dtype: str = "int8",
    logger: Any = logging,
) -> tuple[Symbol, Parameters, Parameters]:
    """Runs the second half of quantize_model: sets the collected ranges in a graph of quantize_graph.

    arg_params: those of the float graph, or those of quantize_graph. Raises ValueError for calib_mode 'none' and for a
    collector without values.
    """
    where = "calib_graph"
    check_choice(where, "calib_mode", calib_mode, ("naive", "entropy", "customize"))
    check_choice(where, "quantized_dtype", quantized_dtype, ("int8", "uint8", "auto"))
    seen = getattr(collector, "hist_dict", None) or getattr(collector, "min_max_dict", None)
    if not seen:
        raise HybridNetValueError(
            f"{where}: collector has seen no values",
            fix="give collector.collect to the executor's set_monitor_callback(..., monitor_all=True), and run batches",
        )
    qsym = calibrated(qsym, collector, quantized_dtype)
    note(logger, "%s: ranges of %d values are known", where, len(seen))
    return qsym, quantize_parameters(where, qsym, arg_params), dict(aux_params)
