"""ONNX Runtime as a backend for parts of graphs. Needs the packages ``onnx`` and ``onnxruntime``.

::

    from hybridnet.contrib.backends import onnxruntime

    onnxruntime.register()
    net.hybridize(backend="onnxruntime")  # or net.optimize_for(x, backend="onnxruntime")
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ... import rewrite
from ...errors import ImportError as HybridNetImportError

__all__ = ["make", "model_of", "register", "supports"]

OPSET = 17
IR_VERSION = 8  # older runtimes also read this version

Write = Callable[["_Writer", Any, list[str], list[str]], None]
Accepts = Callable[[Any], bool]
_WITH_STATISTICS = ("BatchNorm", "_contrib_BatchNormWithReLU", "LayerNorm", "_contrib_rms_norm", "_flash_attention")
_TABLE: dict[str, tuple[Write, Accepts | None]] = {}  # operator -> its writer, and a filter of supported uses


def _needed(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise HybridNetImportError(
            f"the backend 'onnxruntime' needs the package '{package}'", fix="pip install onnx onnxruntime"
        ) from None


def supports(node: Any) -> bool:
    """Whether ONNX Runtime supports this Node: non-empty float32 values, operators of the table below."""
    entry = _TABLE.get(node.op)
    if entry is None:
        return False
    values = [*node.inputs, *_visible(node)]
    if any(value.dtype != np.float32 or 0 in value.shape for value in values):
        return False
    return entry[1] is None or entry[1](node)


def model_of(graph: Any) -> Any:
    """Converts a Graph of supported nodes to an ``onnx.ModelProto``; inputs and outputs keep the graph's order."""
    onnx = _needed("onnx")
    writer = _Writer(onnx)
    inputs = [writer.value_info(entry, writer.name(entry)) for entry in graph.inputs]
    for node in graph.nodes:
        if node.is_constant:
            writer.constants.append(onnx.numpy_helper.from_array(node.value.asnumpy(), writer.name(node[0])))
        elif node.op:
            reads, makes = [writer.name(entry) for entry in node.inputs], [writer.name(entry) for entry in node.outputs]
            _TABLE[node.op][0](writer, node, reads, makes)
    outputs = []
    for number, entry in enumerate(graph.outputs):  # a value may be several outputs, or an input
        name = f"output{number}"
        writer.add("Identity", [writer.name(entry)], [name])
        outputs.append(writer.value_info(entry, name))
    made = onnx.helper.make_graph(writer.nodes, "part", inputs, outputs, writer.constants)
    model = onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", OPSET)], producer_name="hybridnet")
    model.ir_version = IR_VERSION
    onnx.checker.check_model(model)
    return model


def make(graph: Any, threads: int = 0) -> rewrite.Compiled:
    """Compiles a Graph of supported nodes to an ONNX Runtime session; threads: of the session, 0: all cores."""
    runtime = _needed("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = runtime.InferenceSession(model_of(graph).SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]

    def forward(*arrays: np.ndarray) -> list[np.ndarray]:
        outputs: list[np.ndarray] = session.run(None, dict(zip(names, arrays, strict=True)))
        return outputs

    return rewrite.Compiled(forward, views=True)


def register(
    min_nodes: int = 3, *, name: str = "onnxruntime", tags: Iterable[str] = (), threads: int = 0
) -> rewrite.Partition:
    """Registers the backend in the pipeline (mx.rewrite.partition).

    Parameters
    ----------
    min_nodes : int, default 3
        Smaller sets of nodes are not given to the backend.
    name : str, default 'onnxruntime'
        The name for hybridize(backend=...) and queries.
    tags : iterable of str, default ()
        With ("fast_run",) it is active for all graphs, else for blocks that select it.
    threads : int, default 0
        Threads of each session; 0: the number of cores.

    Weights are inputs of the sessions, so that training may change them; ONNX Runtime packs them in each call. Raises
    ImportError if a package is missing.
    """
    _needed("onnx")
    _needed("onnxruntime")

    def backend(graph: Any) -> rewrite.Compiled:
        """parts of graphs that ONNX Runtime computes"""
        return make(graph, threads)

    return rewrite.partition(supports, min_nodes, backend, name=name, tags=tags)


# ------------------------------------------------------------------------------------------------------------ operators
class _Writer:
    """Collects ONNX nodes and names values."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._names: dict[Any, str] = {}
        self._made = 0

    def name(self, entry: Any) -> str:
        return self._names.setdefault(entry, f"value{len(self._names)}")

    def value_info(self, entry: Any, name: str) -> Any:
        return self.onnx.helper.make_tensor_value_info(name, self.onnx.TensorProto.FLOAT, list(entry.shape))

    def add(self, op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        self.nodes.append(self.onnx.helper.make_node(op, list(inputs), list(outputs), **attributes))

    def then(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Adds a node with one output and returns the output's name."""
        self._made += 1
        name = f"made{self._made}"
        self.add(op, inputs, [name], **attributes)
        return name

    def constant(self, value: Any, dtype: str = "float32") -> str:
        self._made += 1
        name = f"made{self._made}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value, dtype=dtype), name))
        return name


def _operator(*names: str, when: Accepts | None = None) -> Callable[[Write], Write]:
    def note(write: Write) -> Write:
        for name in names:
            _TABLE[name] = (write, when)
        return write

    return note


def _visible(node: Any) -> list[Any]:
    """Returns the relevant outputs: those after the first are statistics, which only training reads."""
    return node.outputs[:1] if node.op in _WITH_STATISTICS else node.outputs


def _plainly(name: str, onnx_name: str) -> None:
    _operator(name)(lambda w, node, reads, makes: w.add(onnx_name, reads, makes))


for _name, _onnx_name in {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "abs": "Abs",
    "negative": "Neg", "erf": "Erf", "floor": "Floor", "ceil": "Ceil", "softsign": "Softsign", "_copy": "Identity",
    "elemwise_add": "Add", "elemwise_sub": "Sub", "elemwise_mul": "Mul", "elemwise_div": "Div", "_grad_add": "Add",
    "broadcast_add": "Add", "broadcast_sub": "Sub", "broadcast_mul": "Mul", "broadcast_div": "Div",
    "broadcast_maximum": "Max", "broadcast_minimum": "Min", "broadcast_power": "Pow", "reciprocal": "Reciprocal",
}.items():  # fmt: skip
    _plainly(_name, _onnx_name)


@_operator("square")
def _square(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    w.add("Mul", [reads[0], reads[0]], makes)


@_operator("rsqrt")
def _rsqrt(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    w.add("Reciprocal", [w.then("Sqrt", reads)], makes)


def _gelu(w: _Writer, reads: list[str], makes: list[str]) -> None:
    """Writes GELU with the error function; the operator Gelu belongs to a later opset than the one written here."""
    grown = w.then("Add", [w.then("Erf", [w.then("Mul", [reads[0], w.constant(0.5**0.5)])]), w.constant(1)])
    w.add("Mul", [w.then("Mul", [reads[0], w.constant(0.5)]), grown], makes)


@_operator("_silu")
def _silu(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    w.add("Mul", [reads[0], w.then("Sigmoid", reads)], makes)


@_operator("_gelu_tanh")
def _gelu_tanh(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    grown = w.then("Add", [w.then("Mul", [w.then("Mul", [reads[0], reads[0]]), w.constant(0.044715)]), w.constant(1)])
    argument = w.then("Mul", [w.then("Mul", [reads[0], w.constant((2 / np.pi) ** 0.5)]), grown])
    half = w.then("Mul", [reads[0], w.constant(0.5)])
    w.add("Mul", [half, w.then("Add", [w.then("Tanh", [argument]), w.constant(1)])], makes)


def _with_number(name: str, onnx_name: str, number_first: bool = False) -> None:
    def write(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
        number = w.constant(node.params["scalar"])
        w.add(onnx_name, [number, reads[0]] if number_first else [reads[0], number], makes)

    _operator(name)(write)


for _name, _onnx_name in {"plus": "Add", "minus": "Sub", "mul": "Mul", "div": "Div", "power": "Pow"}.items():
    _with_number(f"_{_name}_scalar", _onnx_name)
for _name, _onnx_name in {"rminus": "Sub", "rdiv": "Div", "rpower": "Pow"}.items():
    _with_number(f"_{_name}_scalar", _onnx_name, number_first=True)
for _name, _onnx_name in {"maximum": "Max", "minimum": "Min"}.items():
    _with_number(f"_{_name}_scalar", _onnx_name)


@_operator("clip")
def _clip(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    w.add("Clip", [reads[0], w.constant(node.params["a_min"]), w.constant(node.params["a_max"])], makes)


_ACTIVATIONS = {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "softrelu": "Softplus", "softsign": "Softsign",
}  # fmt: skip


@_operator("Activation", when=lambda node: node.params["act_type"] in _ACTIVATIONS)
def _activation(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    w.add(_ACTIVATIONS[node.params["act_type"]], reads, makes)


@_operator("_plain_leaky_relu", "LeakyReLU", when=lambda node: node.params["act_type"] in ("leaky", "elu", "gelu"))
def _leaky_relu(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    if node.params["act_type"] == "gelu":
        _gelu(w, reads, makes[:1])
        return
    op = "LeakyRelu" if node.params["act_type"] == "leaky" else "Elu"
    w.add(op, reads[:1], makes[:1], alpha=float(node.params["slope"]))


def _over_pairs(value: Sequence[int], rank: int, default: int) -> list[int]:
    return [int(size) for size in value] if value else [default] * rank


def _is_channels_first(node: Any) -> bool:
    return node.params.get("layout") in (None, "", "NCW", "NCHW", "NCDHW", "None")


@_operator("Convolution", when=_is_channels_first)
def _convolution(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    p = node.params
    rank = len(p["kernel"])
    w.add(
        "Conv", reads, makes, kernel_shape=[int(size) for size in p["kernel"]], group=int(p["num_group"]),
        strides=_over_pairs(p["stride"], rank, 1), dilations=_over_pairs(p["dilate"], rank, 1),
        pads=_over_pairs(p["pad"], rank, 0) * 2,
    )  # fmt: skip


def _has_pooling(node: Any) -> bool:
    p = node.params
    if p["pool_type"] not in ("max", "avg") or not _is_channels_first(node):
        return False
    return bool(p["global_pool"]) or p["pooling_convention"] == "valid"


@_operator("Pooling", when=_has_pooling)
def _pooling(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    p = node.params
    maximum = p["pool_type"] == "max"
    if p["global_pool"]:
        w.add("GlobalMaxPool" if maximum else "GlobalAveragePool", reads, makes[:1])
        return
    rank = len(p["kernel"])
    more = {} if maximum else {"count_include_pad": int(p.get("count_include_pad") is not False)}
    w.add(
        "MaxPool" if maximum else "AveragePool", reads, makes[:1], kernel_shape=[int(size) for size in p["kernel"]],
        strides=_over_pairs(p["stride"], rank, 1), pads=_over_pairs(p["pad"], rank, 0) * 2, **more,
    )  # fmt: skip


def _predicts(node: Any) -> bool:
    clients = node.graph.clients
    unread = not any(clients(entry) for entry in node.outputs[1:])
    is_channel = node.params["axis"] in (1, 1 - len(node.inputs[0].shape))
    return unread and is_channel and (not node.graph.train or bool(node.params["use_global_stats"]))


@_operator("BatchNorm", "_contrib_BatchNormWithReLU", when=_predicts)
def _batch_norm(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    data, gamma, beta, mean, variance = reads
    if node.params["fix_gamma"]:
        gamma = w.constant(np.ones(node.inputs[1].shape))
    inputs = [data, gamma, beta, mean, variance]
    if node.op == "BatchNorm":
        w.add("BatchNormalization", inputs, makes[:1], epsilon=float(node.params["eps"]))
    else:
        w.add("Relu", [w.then("BatchNormalization", inputs, epsilon=float(node.params["eps"]))], makes[:1])


def _normalizes_last(node: Any) -> bool:
    last = len(node.inputs[0].shape) - 1
    return node.params["axis"] in (-1, last) and not any(node.graph.clients(entry) for entry in node.outputs[1:])


@_operator("LayerNorm", when=_normalizes_last)
def _layer_norm(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    w.add("LayerNormalization", reads, makes[:1], axis=-1, epsilon=float(node.params["eps"]))


@_operator("_contrib_rms_norm", when=_normalizes_last)
def _rms_norm(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    squares = w.then("ReduceMean", [w.then("Mul", [reads[0], reads[0]])], axes=[-1], keepdims=1)
    root = w.then("Sqrt", [w.then("Add", [squares, w.constant(float(node.params["eps"]))])])
    w.add("Mul", [w.then("Div", [reads[0], root]), reads[1]], makes[:1])


@_operator("FullyConnected")
def _fully_connected(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    data, shape = reads[0], node.inputs[0].shape
    if node.params["flatten"] and len(shape) != 2:
        data = w.then("Reshape", [data, w.constant([shape[0], int(np.prod(shape[1:]))], "int64")])
    if node.params["flatten"] or len(shape) == 2:
        w.add("Gemm", [data, *reads[1:]], makes, transB=1)
        return
    product = w.then("MatMul", [data, w.then("Transpose", [reads[1]], perm=[1, 0])])
    w.add("Add", [product, reads[2]], makes) if len(reads) == 3 else w.add("Identity", [product], makes)


def _is_plain_softmax(node: Any) -> bool:
    return len(node.inputs) == 1 and node.params.get("temperature") in (None, 1, 1.0)


@_operator("softmax", when=_is_plain_softmax)
def _softmax(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    w.add("Softmax", reads, makes, axis=int(node.params["axis"]))


@_operator("log_softmax", when=_is_plain_softmax)
def _log_softmax(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    w.add("LogSoftmax", reads, makes, axis=int(node.params["axis"]))


@_operator("Concat")
def _concat(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    w.add("Concat", reads, makes, axis=int(node.params["dim"]))


@_operator("Reshape", "Flatten", "expand_dims", "squeeze", "reshape_like", when=lambda node: len(node.inputs) == 1)
def _reshape(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    w.add("Reshape", [reads[0], w.constant(node[0].shape, "int64")], makes)


@_operator("transpose")
def _transpose(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    rank = len(node.inputs[0].shape)
    w.add("Transpose", reads, makes, perm=[int(axis) % rank for axis in node.params["axes"] or range(rank - 1, -1, -1)])


def _are_matrices(node: Any) -> bool:
    rank = 3 if node.op == "batch_dot" else 2
    return all(len(entry.shape) == rank for entry in node.inputs)


@_operator("dot", "batch_dot", when=_are_matrices)
def _dot(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    perm = [0, 2, 1] if node.op == "batch_dot" else [1, 0]
    operands = [
        w.then("Transpose", [name], perm=perm) if node.params[flag] else name
        for name, flag in zip(reads, ("transpose_a", "transpose_b"), strict=True)
    ]
    w.add("MatMul", operands, makes)


def _is_whole_attention(node: Any) -> bool:
    p = node.params
    return p["parts"] == 0 and not p["causal"] and p["mask_type"] in ("none", "added")


@_operator("_flash_attention", when=_is_whole_attention)
def _attention(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    """Writes attention as separate operators, which ONNX Runtime may fuse."""
    rank = len(node.inputs[0].shape)
    keys = w.then("Transpose", [reads[1]], perm=[*range(rank - 2), rank - 1, rank - 2])
    scores = w.then("Mul", [w.then("MatMul", [reads[0], keys]), w.constant(node.params["scale"])])
    if node.params["mask_type"] == "added":
        scores = w.then("Add", [scores, reads[3]])
    w.add("MatMul", [w.then("Softmax", [scores], axis=-1), reads[2]], makes[:1])


@_operator("sum", "mean", "max", "min")
def _reduce(w: _Writer, node: Any, reads: list[str], makes: list[str]) -> None:
    p, rank = node.params, len(node.inputs[0].shape)
    given = p["axis"]
    axes = {int(axis) % rank for axis in ((given,) if isinstance(given, int) else given or ())} or set(range(rank))
    if p.get("exclude") and given not in (None, ()):
        axes = set(range(rank)) - axes
    if node.op == "sum":
        made = w.then("ReduceSum", [reads[0], w.constant(sorted(axes), "int64")], keepdims=0)
    else:
        made = w.then(f"Reduce{node.op.capitalize()}", reads, axes=sorted(axes), keepdims=0)
    w.add("Reshape", [made, w.constant(node[0].shape, "int64")], makes)
