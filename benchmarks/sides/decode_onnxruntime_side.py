"""ONNX Runtime's decoder: its operator GroupQueryAttention writes keys and values into caches that are bound as both
input and output, as its tools for generation do."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np
import onnx
import onnxruntime
from decode_net import (
    BEAM_CASES,
    CASES,
    HEADS,
    LAYERS,
    NEVER,
    PROMPT,
    SIZE,
    TOKENS,
    UNITS,
    WORDS,
    best_beam,
    keep_words,
    parts,
    prompt,
    weights,
)
from onnx import TensorProto, helper, numpy_helper
from serve import Step, serve

FLOAT, INT32, INT64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64
CACHES = [f"{part}{i}" for i in range(LAYERS) for part in ("key", "value")]


def model(beams: int) -> Any:
    """One step: greedy, or, with beams > 0, of a beam search that begins with caches in the order of its parents."""
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
    if beams:
        for name in CACHES:
            add("Gather", [name, "parents"], [f"ordered_{name}"], axis=0)
    prefix = "ordered_" if beams else ""
    x = add("Gather", ["words", "word"], ["embedded"])
    x = add("Add", [x, add("Gather", ["positions", "position"], ["placed"])], ["start"])
    for i in range(LAYERS):
        qkv = dense(norm(x, f"{i}.before"), f"{i}.qkv")
        mixed = add(
            "GroupQueryAttention",
            [qkv, "", "", f"{prefix}key{i}", f"{prefix}value{i}", "lengths", "total"],
            [f"{i}.mixed", f"new_key{i}", f"new_value{i}"],
            "com.microsoft",
            num_heads=HEADS,
            kv_num_heads=HEADS,
        )
        x = add("Add", [x, dense(mixed, f"{i}.projection")], [f"{i}.middle"])
        inner = add("Gelu", [dense(norm(x, f"{i}.between"), f"{i}.inner")], [f"{i}.active"], approximate="tanh")
        x = add("Add", [x, dense(inner, f"{i}.outer")], [f"{i}.end"])
    arrays["words_t"] = np.ascontiguousarray(given["words"].T)
    if beams:  # the scores of the last word alone
        arrays["minus_one"] = np.array([-1])
        x = add("Gather", [x, "minus_one"], ["last_x"], axis=1)
    scores = add("MatMul", [norm(x, "last"), "words_t"], ["scores"])
    if beams:
        arrays |= {"one": np.array([1]), "flat": np.array([-1]), "count": np.array([beams]), "all": np.array(WORDS)}
        chances = add("LogSoftmax", [add("Squeeze", [scores, "one"], ["last_scores"])], ["log_scores"], axis=-1)
        totals = add("Add", [chances, add("Unsqueeze", ["chances", "one"], ["column"])], ["totals"])
        add("TopK", [add("Reshape", [totals, "flat"], ["row"]), "count"], ["new_chances", "best"])
        add("Div", ["best", "all"], ["new_parents"])
        add("Unsqueeze", [add("Mod", ["best", "all"], ["new_words"]), "one"], ["next"])
    else:
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
            *([helper.make_tensor_value_info("chances", FLOAT, ["batch"])] if beams else []),
            *([helper.make_tensor_value_info("parents", INT64, ["batch"])] if beams else []),
            *(helper.make_tensor_value_info(name, FLOAT, cache) for name in CACHES),
        ],
        [
            helper.make_tensor_value_info("next", INT64, ["batch", "length"]),
            *([helper.make_tensor_value_info("new_chances", FLOAT, ["batch"])] if beams else []),
            *([helper.make_tensor_value_info("new_parents", INT64, ["batch"])] if beams else []),
            *(helper.make_tensor_value_info(f"new_{name}", FLOAT, cache) for name in CACHES),
        ],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def session(dtype: str, beams: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/step.onnx"
        onnx.save(model(beams), path)
        if dtype != "float32":
            from onnxruntime.quantization import QuantType, quantize_dynamic

            options_of = {"DefaultTensorType": FLOAT}  # its inference does not know the operators of com.microsoft
            quantize_dynamic(
                path, f"{folder}/int8.onnx", weight_type=QuantType.QInt8, per_channel=True, extra_options=options_of
            )
            path = f"{folder}/int8.onnx"
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


SESSIONS: dict[tuple[str, int], onnxruntime.InferenceSession] = {}


def runner_of(name: str) -> onnxruntime.InferenceSession:
    dtype, batch, _ = parts(name)
    key = "float32" if dtype == "float32" else "dynamic", batch if name in BEAM_CASES else 0
    return SESSIONS.get(key) or SESSIONS.setdefault(key, session(*key))


def case(name: str) -> Step:
    _, batch, rows = parts(name)
    runner = runner_of(name)
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


def beam_case(name: str) -> Step:
    _, beams, rows = parts(name)
    runner = runner_of(name)
    caches, others = (
        {
            cache: onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((beams, HEADS, rows, SIZE), "float32"))
            for cache in CACHES
        }
        for _ in range(2)
    )

    def call(words: np.ndarray, chances: np.ndarray, parents: np.ndarray, position: int) -> list[np.ndarray]:
        nonlocal caches, others
        length = words.shape[1]
        places = np.broadcast_to(np.arange(position, position + length), words.shape)
        binding = runner.io_binding()
        binding.bind_cpu_input("word", words)
        binding.bind_cpu_input("position", np.ascontiguousarray(places))
        binding.bind_cpu_input("lengths", np.full(beams, position + length - 1, "int32"))
        binding.bind_cpu_input("total", np.array(position + length, "int32"))
        binding.bind_cpu_input("chances", chances)
        binding.bind_cpu_input("parents", parents)
        for output in ("next", "new_chances", "new_parents"):
            binding.bind_output(output)
        for cache in CACHES:
            binding.bind_ortvalue_input(cache, caches[cache])
            binding.bind_ortvalue_output(f"new_{cache}", others[cache])
        runner.run_with_iobinding(binding)
        caches, others = others, caches
        return [output.numpy() for output in binding.get_outputs()[:3]]

    def step(repeat: int) -> None:
        for _ in range(repeat):
            chances = np.array([0.0] + [NEVER] * (beams - 1), "float32")
            state = call(prompt(1).repeat(beams, 0), chances, np.arange(beams), 0)
            words, origins = [state[0]], [state[2]]
            for i in range(TOKENS - 1):
                state = call(*state, PROMPT + i)
                words.append(state[0])
                origins.append(state[2])
        keep_words("onnxruntime", name, best_beam(np.concatenate(words, axis=1).T, np.array(origins)))

    return step


if __name__ == "__main__":
    assert UNITS == HEADS * SIZE
    serve(
        onnxruntime.__version__,
        {
            name: lambda name=name: (beam_case if name in BEAM_CASES else case)(name)
            for name in CASES
            if not name.startswith("bfloat16")  # its CPU kernels do not multiply bfloat16
        },
    )
