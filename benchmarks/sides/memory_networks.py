"""The networks whose memory is measured, and their exported graphs as ONNX models."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["NETWORKS", "make_input", "write_onnx"]

INPUTS = {"resnet50": (1, 3, 224, 224), "mobilenet": (1, 3, 224, 224), "bert": (1, 128)}
VOCABULARY, LENGTH = 30522, 512
EPS = {"BatchNorm": 1e-3, "LayerNorm": 1e-5}  # where a file does not say


def make_input(name: str) -> np.ndarray:
    """One batch: an image, or tokens (as float32, which both sides take)."""
    draw = np.random.RandomState(0)
    if name == "bert":
        return draw.randint(0, VOCABULARY, INPUTS[name]).astype("float32")
    return draw.randn(*INPUTS[name]).astype("float32")


def _resnet50() -> Any:
    from hybridnet.gluon.model_zoo import vision

    return vision.resnet50_v1()


def _mobilenet() -> Any:
    from hybridnet.gluon.model_zoo import vision

    return vision.mobilenet1_0()


def _bert(layers: int = 12, units: int = 768, hidden: int = 3072, heads: int = 12) -> Any:
    """BERT-base: tokens (1, length) to the hidden states of the last layer (1, length, units)."""
    from hybridnet import gluon
    from hybridnet.gluon import nn

    class Layer(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope():
                self.query, self.key, self.value, self.out = (
                    nn.Dense(units, flatten=False, in_units=units) for _ in range(4)
                )
                self.up = nn.Dense(hidden, flatten=False, in_units=units)
                self.gelu = nn.GELU()
                self.down = nn.Dense(units, flatten=False, in_units=hidden)
                self.norm1, self.norm2 = nn.LayerNorm(in_channels=units), nn.LayerNorm(in_channels=units)

        def split(self, x: Any) -> Any:  # (1, length, units) to (heads, length, units / heads)
            return x.reshape((-1, heads, units // heads)).transpose((1, 0, 2))

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            query, key, value = (self.split(dense(x)) for dense in (self.query, self.key, self.value))
            scores = F.softmax(F.batch_dot(query, key, transpose_b=True) * (units // heads) ** -0.5, axis=-1)
            context = F.batch_dot(scores, value).transpose((1, 0, 2)).reshape((1, -1, units))
            x = self.norm1(x + self.out(context))
            return self.norm2(x + self.down(self.gelu(self.up(x))))

    class Bert(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope():
                self.words = nn.Embedding(VOCABULARY, units)
                self.places = nn.Embedding(LENGTH, units)
                self.norm = nn.LayerNorm(in_channels=units)
                self.layers = nn.HybridSequential()
                self.layers.add(*(Layer() for _ in range(layers)))

        def hybrid_forward(self, F: Any, tokens: Any) -> Any:
            places = F.arange(0, INPUTS["bert"][1]).reshape((1, -1))
            return self.layers(self.norm(self.words(tokens) + self.places(places)))

    return Bert()


NETWORKS = {"resnet50": _resnet50, "mobilenet": _mobilenet, "bert": _bert}


class _Converter:
    """Writes the operators of these networks; weights of products lie as ONNX multiplies them."""

    def __init__(self, graph: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        import onnx

        self.onnx, self.graph, self.arrays = onnx, graph["nodes"], arrays
        self.nodes: list[Any] = []
        self.weights: dict[str, np.ndarray] = {}

    def constant(self, value: Any) -> str:
        name = f"constant{len(self.weights)}"
        self.weights[name] = np.asarray(value)
        return name

    def add(self, op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(self.onnx.helper.make_node(op, inputs, [output], **attributes))
        return output

    def convert(self, node: dict[str, Any]) -> None:
        name, op = node["name"], node["op"]
        reads = [self.graph[i]["name"] for i, *_ in node["inputs"]]
        p = {key: _value(text) for key, text in node.get("attrs", {}).items() if not key.startswith("__")}
        binary = {"elemwise_add": "Add", "broadcast_add": "Add", "batch_dot": "MatMul"}
        if op == "Convolution":
            self.add(
                "Conv", reads, name, kernel_shape=p["kernel"], strides=p.get("stride", (1, 1)),
                pads=p.get("pad", (0, 0)) * 2, group=p.get("num_group", 1),
            )  # fmt: skip
        elif op == "BatchNorm":
            if p.get("fix_gamma", True):
                reads[1] = self.constant(np.ones_like(self.arrays[reads[1]]))
            self.add("BatchNormalization", reads, name, epsilon=float(p.get("eps", EPS[op])))
        elif op == "Activation":
            self.add({"relu": "Relu"}[p["act_type"]], reads, name)
        elif op == "Pooling" and p.get("global_pool"):
            self.add("GlobalAveragePool", reads, name)
        elif op == "Pooling":
            kind = {"max": "MaxPool", "avg": "AveragePool"}[p.get("pool_type", "max")]
            self.add(
                kind,
                reads,
                name,
                kernel_shape=p["kernel"],
                strides=p.get("stride", (1, 1)),
                pads=p.get("pad", (0, 0)) * 2,
            )
        elif op == "Flatten":
            self.add("Flatten", reads, name)
        elif op == "FullyConnected" and p.get("flatten", True):
            self.add("Gemm", [self.add("Flatten", reads[:1], name + "_flat"), *reads[1:]], name, transB=1)
        elif op == "FullyConnected":
            weight = self.constant(np.ascontiguousarray(self.arrays[reads[1]].T))
            product = self.add("MatMul", [reads[0], weight], name + "_product")
            self.add("Add", [product, reads[2]], name)
        elif op == "Embedding":
            rows = self.add("Cast", reads[:1], name + "_rows", to=self.onnx.TensorProto.INT64)
            self.add("Gather", [reads[1], rows], name)
        elif op == "LayerNorm":
            self.add("LayerNormalization", reads, name, axis=-1, epsilon=float(p.get("eps", EPS[op])))
        elif op == "LeakyReLU" and p["act_type"] == "gelu":
            self.add("Gelu", reads, name)
        elif op in ("Reshape", "reshape"):
            self.add("Reshape", [reads[0], self.constant(np.array(p["shape"], "int64"))], name)
        elif op == "transpose":
            self.add("Transpose", reads, name, perm=p["axes"])
        elif op == "softmax":
            self.add("Softmax", reads, name, axis=p.get("axis", -1))
        elif op == "_mul_scalar":
            self.add("Mul", [reads[0], self.constant(np.float32(p["scalar"]))], name)
        elif op == "_arange":
            self.weights[name] = np.arange(p.get("start", 0), p["stop"]).astype("float32")
        elif op == "batch_dot" and p.get("transpose_b"):
            turned = self.add("Transpose", reads[1:], name + "_turned", perm=(0, 2, 1))
            self.add("MatMul", [reads[0], turned], name)
        else:
            self.add(binary[op], reads, name)

    def model(self, data_shape: tuple[int, ...], output: str) -> Any:
        helper, numeric = self.onnx.helper, self.onnx.TensorProto.FLOAT
        self.weights |= {name: array for name, array in self.arrays.items() if self._is_read(name)}
        graph = helper.make_graph(
            self.nodes, "network",
            [helper.make_tensor_value_info("data", numeric, data_shape)],
            [helper.make_tensor_value_info(output, numeric, None)],
            [self.onnx.numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )  # fmt: skip
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
        made.ir_version = 9
        return made

    def _is_read(self, name: str) -> bool:
        return any(name in node.input for node in self.nodes)


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def write_onnx(prefix: Path, shape: tuple[int, ...]) -> None:
    """prefix-symbol.json with prefix-0000.params, as prefix.onnx."""
    import hybridnet as mx
    import onnx

    graph = json.loads(Path(f"{prefix}-symbol.json").read_text("utf-8"))
    loaded = mx.nd.load(f"{prefix}-0000.params")
    converter = _Converter(graph, {name.split(":", 1)[1]: array.asnumpy() for name, array in loaded.items()})
    for node in graph["nodes"]:
        if node["op"] != "null":
            converter.convert(node)
    onnx.save(converter.model(shape, graph["nodes"][graph["heads"][0][0]]["name"]), f"{prefix}.onnx")
