"""ONNX Runtime's decoder: its operator GroupQueryAttention writes keys and values into caches that are bound as both
input and output, as its tools for generation do."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np
import onnx
import onnxruntime
from decode_net import CASES, HEADS, LAYERS, PROMPT, SIZE, TOKENS, UNITS, keep_words, parts, prompt, weights
from onnx import TensorProto, helper, numpy_helper
from serve import Step, serve

FLOAT, INT32, INT64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64
CACHES = [f"{part}{i}" for i in range(LAYERS) for part in ("key", "value")]


def model() -> Any:
    given = weights()
    nodes: list[Any] = []
    arrays: dict[str, np.ndarray] = {}

    def add(kind: str, inputs: list[str], outputs: list[str], domain: str = "", **attrs: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **attrs))
        return outputs[0]

    def dense(x: str, name: str) -> str:
        arrays[name], arrays[f"{name}.bias"] = np.ascontiguousarray(given[name].T), given[f"{name}.bias"]
        product = add("MatMul", [x, name], [f"{name}.product"])
        return add("Add", [product, f"{name}.bias"], [f"{name}.sum"])

    def norm(x: str, name: str) -> str:
        for part in ("scale", "shift"):
            arrays[f"{name}.{part}"] = given[f"{name}.{part}"]
        return add("LayerNormalization", [x, f"{name}.scale", f"{name}.shift"], [f"{name}.normal"], epsilon=1e-5)

    arrays["words"], arrays["positions"] = given["words"], given["positions"]
    x = add("Gather", ["words", "word"], ["embedded"])
    x = add("Add", [x, add("Gather", ["positions", "position"], ["placed"])], ["start"])
    for i in range(LAYERS):
        qkv = dense(norm(x, f"{i}.before"), f"{i}.qkv")
        mixed = add(
            "GroupQueryAttention",
            [qkv, "", "", f"key{i}", f"value{i}", "lengths", "total"],
            [f"{i}.mixed", f"new_key{i}", f"new_value{i}"],
            "com.microsoft",
            num_heads=HEADS,
            kv_num_heads=HEADS,
        )
        x = add("Add", [x, dense(mixed, f"{i}.projection")], [f"{i}.middle"])
        inner = add("Gelu", [dense(norm(x, f"{i}.between"), f"{i}.inner")], [f"{i}.active"], approximate="tanh")
        x = add("Add", [x, dense(inner, f"{i}.outer")], [f"{i}.end"])
    arrays["words_t"] = np.ascontiguousarray(given["words"].T)
    scores = add("MatMul", [norm(x, "last"), "words_t"], ["scores"])
    add("ArgMax", [scores], ["next"], axis=-1, keepdims=0)
    cache = ["batch", HEADS, "rows", SIZE]
    graph = helper.make_graph(
        nodes,
        "step",
        [
            helper.make_tensor_value_info("word", INT64, ["batch", "length"]),
            helper.make_tensor_value_info("position", INT64, ["batch", "length"]),
            helper.make_tensor_value_info("lengths", INT32, ["batch"]),
            helper.make_tensor_value_info("total", INT32, []),
            *(helper.make_tensor_value_info(name, FLOAT, cache) for name in CACHES),
        ],
        [
            helper.make_tensor_value_info("next", INT64, ["batch", "length"]),
            *(helper.make_tensor_value_info(f"new_{name}", FLOAT, cache) for name in CACHES),
        ],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def session(dtype: str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/step.onnx"
        onnx.save(model(), path)
        if dtype == "int8":
            from onnxruntime.quantization import QuantType, quantize_dynamic

            options_of = {"DefaultTensorType": FLOAT}  # its inference does not know the operators of com.microsoft
            quantize_dynamic(
                path, f"{folder}/int8.onnx", weight_type=QuantType.QInt8, per_channel=True, extra_options=options_of
            )
            path = f"{folder}/int8.onnx"
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


SESSIONS: dict[str, onnxruntime.InferenceSession] = {}


def case(name: str) -> Step:
    dtype, batch, rows = parts(name)
    runner = SESSIONS.get(dtype) or SESSIONS.setdefault(dtype, session(dtype))
    caches = {
        name: onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((batch, HEADS, rows, SIZE), "float32"))
        for name in CACHES
    }

    def call(words: np.ndarray, position: int) -> np.ndarray:
        length = words.shape[1]
        places = np.broadcast_to(np.arange(position, position + length), words.shape)
        binding = runner.io_binding()
        binding.bind_cpu_input("word", words)
        binding.bind_cpu_input("position", np.ascontiguousarray(places))
        binding.bind_cpu_input("lengths", np.full(batch, position + length - 1, "int32"))
        binding.bind_cpu_input("total", np.array(position + length, "int32"))
        binding.bind_output("next")  # the first of the outputs
        for cache, value in caches.items():
            binding.bind_ortvalue_input(cache, value)
            binding.bind_ortvalue_output(f"new_{cache}", value)
        runner.run_with_iobinding(binding)
        return binding.get_outputs()[0].numpy()[:, -1:]

    def step(repeat: int) -> None:
        for _ in range(repeat):
            chosen = [call(prompt(batch), 0)]
            for i in range(TOKENS - 1):
                chosen.append(call(np.ascontiguousarray(chosen[-1]), PROMPT + i))
        keep_words("onnxruntime", name, np.concatenate(chosen, axis=1))

    return step


if __name__ == "__main__":
    assert UNITS == HEADS * SIZE
    serve(onnxruntime.__version__, {name: lambda name=name: case(name) for name in CASES})
