"""quantize_net: quantization of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import autograd, ndarray
from ... import symbol as sym_module
from ...context import Context
from ...errors import TraceError, UnsupportedError
from ...errors import TypeError as HybridNetTypeError
from ...errors import ValueError as HybridNetValueError
from ...gluon import HybridBlock, SymbolBlock
from ...gluon.parameter import Parameter
from ...ndarray import NDArray
from ...symbol import Symbol
from ...util import is_np_array
from ._graph import (
    MODES,
    Settings,
    batches,
    check_choice,
    check_collector,
    check_excluded_names,
    check_excluded_operators,
    check_parameters,
    check_settings,
    operator_nodes,
    quantize_and_calibrate,
)
from ._weights import WEIGHT_MODES, check_weight_settings, quantize_weights

__all__ = ["quantize_net", "quantize_net_v2"]


def _shape_of(description: Any) -> tuple[int, ...]:
    shape = getattr(description, "shape", description)
    if len(shape) == 2 and isinstance(shape[0], str):  # (name, shape)
        shape = shape[1]
    return tuple(shape)


def _given_examples(data_shapes: Any, calib_data: Any) -> list[NDArray] | None:
    """Returns arrays of the shapes given by the caller or an iterator; None if neither is given."""
    if data_shapes is not None:
        descriptions = [data_shapes] if isinstance(data_shapes[0], int) else list(data_shapes)
    else:
        descriptions = list(getattr(calib_data, "provide_data", None) or ())
    if not descriptions:
        return None
    arrays = [ndarray.zeros(_shape_of(d), dtype=getattr(d, "dtype", None) or "float32") for d in descriptions]
    return [a.as_np_ndarray() for a in arrays] if is_np_array() else arrays


def _graph_of(where: str, network: HybridBlock, arrays: Sequence[NDArray]) -> tuple[list[Symbol], Symbol]:
    try:
        return network._get_graph(*arrays)
    except TraceError as error:
        raise UnsupportedError(
            f"{where}: the network is no graph: {error}",
            fix="write code that depends on values with mx.nd.contrib.cond, foreach and while_loop",
        ) from error


def _trace(where: str, network: Any, examples: Sequence[NDArray], may_have_labels: bool) -> tuple[list[Symbol], Symbol]:
    """Returns inputs and outputs of the network's graph for prediction. The last arrays of a batch may be labels."""
    if not isinstance(network, HybridBlock):
        raise HybridNetTypeError(
            f"{where}: network",
            expected="a HybridBlock",
            given=type(network).__name__,
            fix="derive it from HybridBlock (HybridSequential), or call quantize_model for a Symbol",
        )
    with autograd.pause(train_mode=False):
        for count in range(len(examples), 1, -1) if may_have_labels else ():
            try:
                return _graph_of(where, network, examples[:count])
            except TypeError:
                continue  # forward takes fewer arguments
        return _graph_of(where, network, examples[:1] if may_have_labels else examples)


def _parameters(network: HybridBlock) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Returns the values of the variables of the last traced graph: parameters, and auxiliary states."""
    graph = network._graph_to_export()
    states = set(graph.outputs.list_auxiliary_states())
    arguments: dict[str, NDArray] = {}
    auxiliaries: dict[str, NDArray] = {}
    for name, (is_input, source) in zip(graph.outputs.list_inputs(), graph.sources, strict=False):
        if not is_input:
            value = source._reduce() if isinstance(source, Parameter) else source
            (auxiliaries if name in states else arguments)[name] = value.as_nd_ndarray()
    return arguments, auxiliaries


def _block(
    network: HybridBlock, inputs: Sequence[Symbol], qsym: Symbol, values: dict[str, NDArray], ctx: Context | None
) -> SymbolBlock:
    block = SymbolBlock(qsym, [sym_module.var(str(v.name)) for v in inputs])
    for name, param in block.collect_params().items():
        param.grad_req = "null"
        param._load_init(values[name], ctx, cast_dtype=True, dtype_source="saved")
    block._out_format = network._out_format
    block.hybridize()
    return block


def quantize_net_v2(
    network: HybridBlock,
    quantized_dtype: str = "auto",
    quantize_mode: str = "full",
    quantize_granularity: str = "tensor-wise",
    exclude_layers: Sequence[str] | None = None,
    exclude_layers_match: Sequence[str] | None = None,
    exclude_operators: Sequence[str] | None = None,
    calib_data: Any = None,
    data_shapes: Any = None,
    calib_mode: str = "none",
    num_calib_examples: int | None = None,
    ctx: Context | None = None,
    LayerOutputCollector: Any = None,
    logger: Any = None,
    mode: str = "layers",
) -> SymbolBlock:
    """Returns a block that predicts like network, with convolutions and products in 8 bits, or with weights in 8 bits.

    Parameters
    ----------
    network : HybridBlock
        A trained network in float32. It is not modified.
    quantized_dtype : str
        Type of the bytes: 'int8'; 'auto' and 'uint8': unsigned bytes for values without negatives, with half the step
        size.
    quantize_mode : str
        Operators to quantize: 'full': all that can run on bytes. 'smart': convolutions, products, and operators
        between.
    quantize_granularity : str
        One scale per tensor; 'channel-wise' is accepted without effect.
    exclude_layers : sequence of str, optional
        Nodes of the graph that stay in float32, such as ``resnetv10_conv0_fwd``.
    exclude_layers_match : sequence of str, optional
        Substrings of the names of such nodes: ``["dense"]``.
    exclude_operators : sequence of str, optional
        Operators that stay in float32: ``["Pooling"]``.
    calib_data : DataIter, DataLoader, or another iterable of batches
        Representative inputs, some hundred examples. Labels after the inputs are ignored.
    data_shapes : list of tuple or of DataDesc, optional
        Shapes of the inputs; default: those of calib_data.
    calib_mode : str
        Source of the value ranges: 'none', each batch separately; 'naive', minimum and maximum over calib_data;
        'entropy', the range with which bytes preserve most information of calib_data; 'customize',
        LayerOutputCollector.
    num_calib_examples : int, optional
        Number of examples after which calibration ends.
    ctx : Context, default cpu()
    LayerOutputCollector : CalibrationCollector
        An object with collect(name, arr) and min_max_dict.
    logger : optional
    mode : str
        'layers': layers multiply bytes. 'weights': dense layers and embeddings read float32 data and weights of int8,
        with a float32 scale for each output (row of the weight); no other operator changes, and nothing is calibrated.
        Results are those of the rounded weights, summed in float32. For networks that spend their time reading
        weights, such as decoders of few rows. 'dynamic': as 'weights', but dense layers also round each row of their
        data to 8 bits when they run, and multiply bytes with exact sums; faster from a few rows on.

    Raises ValueError for names that the graph does not have, for missing calib_data, for calibration with
    mode='weights' and 'dynamic', and for weights that are not finite; DTypeError for parameters that
    are not float32; UnsupportedError for a network that cannot be traced, and inside of autograd.record().
    """
    where = "quantize_net"
    check_choice(where, "mode", mode, ("layers", *WEIGHT_MODES))
    check_choice(where, "calib_mode", calib_mode, (*MODES, "customize"))
    check_settings(where, ctx, quantized_dtype, quantize_mode, quantize_granularity)
    if mode in WEIGHT_MODES:
        check_weight_settings(
            where,
            mode,
            quantized_dtype=quantized_dtype,
            quantize_mode=quantize_mode,
            calib_mode=calib_mode,
            num_calib_examples=num_calib_examples,
            LayerOutputCollector=LayerOutputCollector,
        )
    collector = check_collector(where, LayerOutputCollector) if calib_mode == "customize" else None
    operators = check_excluded_operators(where, exclude_operators or ())
    examples = _given_examples(data_shapes, calib_data)
    may_have_labels = examples is None
    if examples is None:
        if calib_data is None:
            raise HybridNetValueError(
                f"{where}: the shapes of the inputs are not known",
                fix="pass data_shapes=[(1, 3, 224, 224)], or calib_data",
            )
        if iter(calib_data) is calib_data:
            calib_data = list(calib_data)  # it can be read only once, but is needed twice
        examples = next(iter(batches(where, calib_data, None)))
    inputs, outputs = _trace(where, network, examples, may_have_labels)
    arguments, auxiliaries = _parameters(network)
    check_parameters(where, arguments)
    names = check_excluded_names(where, exclude_layers or (), outputs)
    for part in exclude_layers_match or ():
        names |= {name for name in operator_nodes(outputs) if part in name}
    if mode in WEIGHT_MODES:
        qsym, values = quantize_weights(where, mode, outputs, {**arguments, **auxiliaries}, names, operators)
        return _block(network, inputs, qsym, values, ctx)
    settings = Settings(where, quantized_dtype, quantize_mode, names, operators)
    qsym, qargs, qaux = quantize_and_calibrate(
        settings, outputs, arguments, auxiliaries, [str(v.name) for v in inputs], calib_mode, calib_data,
        num_calib_examples, collector, logger,
    )  # fmt: skip
    return _block(network, inputs, qsym, {**qargs, **qaux}, ctx)


def quantize_net(
    network: HybridBlock,
    quantized_dtype: str = "auto",
    quantize_mode: str = "full",
    exclude_layers: Sequence[str] | None = None,
    exclude_layers_match: Sequence[str] | None = None,
    exclude_operators: Sequence[str] | None = None,
    calib_data: Any = None,
    data_shapes: Any = None,
    calib_mode: str = "none",
    num_calib_examples: int | None = None,
    ctx: Context | None = None,
    logger: Any = None,
    mode: str = "layers",
) -> SymbolBlock:
    """Same as quantize_net_v2, with the arguments of MXNet before 1.9, and mode."""
    return quantize_net_v2(
        network, quantized_dtype, quantize_mode, "tensor-wise", exclude_layers, exclude_layers_match,
        exclude_operators, calib_data, data_shapes, calib_mode, num_calib_examples, ctx, None, logger, mode,
    )  # fmt: skip
