"""OpenVINO's decoder: a stateful model. Its caches of keys and values are variables, which are reordered by the beams'
parents and read by scaled_dot_product_attention: its plugin for CPUs computes that form as one operation."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import openvino
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
from openvino import opset13 as op
from openvino.op.util import Variable, VariableInfo
from serve import Step, serve


def int64(*values: int) -> Any:
    return op.constant(np.array(values, "int64"))


class Writer:
    """The graph of one step: (words, positions, parents) -> the best words, or with beams > 0 also (chances) ->
    (chances, parents)."""

    def __init__(self, compressed: bool) -> None:
        self._given, self._compressed = weights(), compressed
        self._sinks: list[Any] = []
        self._words = self._matrix("words")

    def _matrix(self, name: str) -> Any:
        """(outputs, inputs); compressed: bytes, with a step for each output."""
        matrix = self._given[name]
        if not self._compressed:
            return op.constant(matrix)
        steps = np.abs(matrix).max(axis=1, keepdims=True) / 127
        stored = op.constant(np.rint(matrix / steps).astype("int8"))
        return op.multiply(op.convert(stored, "f32"), op.constant(steps))

    def _dense(self, x: Any, name: str) -> Any:
        product = op.matmul(x, self._matrix(name), transpose_a=False, transpose_b=True)
        return op.add(product, op.constant(self._given[f"{name}.bias"]))

    def _norm(self, x: Any, name: str) -> Any:
        normal = op.mvn(x, int64(-1), normalize_variance=True, eps=1e-5, eps_mode="inside_sqrt")
        scaled = op.multiply(normal, op.constant(self._given[f"{name}.scale"]))
        return op.add(scaled, op.constant(self._given[f"{name}.shift"]))

    def _cache(self, name: str, rows: Any, new: Any, parents: Any) -> Any:
        """The rows of the earlier steps, and the new ones."""
        info = VariableInfo()
        info.data_shape = openvino.PartialShape([-1, HEADS, -1, SIZE])
        info.data_type, info.variable_id = openvino.Type.f32, name
        variable = Variable(info)
        shape = op.concat([rows, int64(HEADS, 0, SIZE)], axis=0)
        empty = op.broadcast(op.constant(np.float32(0)), shape)
        earlier = op.gather(op.read_value(empty, variable), parents, op.constant(np.int64(0)))
        both = op.concat([earlier, new], axis=2)
        self._sinks.append(op.assign(both, variable))
        return both

    def _attention(self, x: Any, i: int, rows: Any, parents: Any) -> Any:
        qkv = op.reshape(self._dense(x, f"{i}.qkv"), int64(0, 0, 3 * HEADS, SIZE), special_zero=True)
        qkv = op.transpose(qkv, int64(0, 2, 1, 3))
        query, key, value = op.split(qkv, op.constant(np.int64(1)), 3).outputs()
        key, value = self._cache(f"key{i}", rows, key, parents), self._cache(f"value{i}", rows, value, parents)
        # A mask, not causal=True: that would give the words of a step the first positions.
        mixed = op.scaled_dot_product_attention(query, key, value, self._mask)
        mixed = op.transpose(mixed, int64(0, 2, 1, 3))
        return self._dense(op.reshape(mixed, int64(0, 0, UNITS), special_zero=True), f"{i}.projection")

    def model(self, beams: int) -> openvino.Model:
        words = op.parameter([-1, -1], np.int64, name="words")
        positions = op.parameter([-1, -1], np.int64, name="positions")
        parents = op.parameter([-1], np.int32, name="parents")
        self._mask = op.parameter([1, 1, -1, -1], np.float32, name="mask")
        inputs = [words, positions, parents, self._mask]
        zero = op.constant(np.int64(0))
        rows = op.gather(op.shape_of(words), int64(0), zero)
        places = op.gather(op.constant(self._given["positions"]), positions, zero)
        x = op.add(op.gather(self._words, words, zero), places)
        for i in range(LAYERS):
            x = op.add(x, self._attention(self._norm(x, f"{i}.before"), i, rows, parents))
            inner = op.gelu(self._dense(self._norm(x, f"{i}.between"), f"{i}.inner"), "tanh")
            x = op.add(x, self._dense(inner, f"{i}.outer"))
        last = self._norm(op.gather(x, int64(-1), op.constant(np.int64(1))), "last")
        scores = op.matmul(last, self._words, transpose_a=False, transpose_b=True)
        if not beams:
            best = op.topk(scores, op.constant(np.int64(1)), 2, "max", "value", index_element_type="i64")
            return openvino.Model([op.result(op.squeeze(best.output(1), int64(2)))], self._sinks, inputs)
        chances = op.parameter([-1], np.float32, name="chances")
        logs = op.log_softmax(op.squeeze(scores, int64(1)), 1)
        totals = op.reshape(op.add(logs, op.unsqueeze(chances, int64(1))), int64(-1), special_zero=False)
        best = op.topk(totals, op.constant(np.int64(beams)), 0, "max", "value", index_element_type="i64")
        index, count = best.output(1), op.constant(np.int64(WORDS))
        results = [op.unsqueeze(op.mod(index, count), int64(1)), best.output(0), op.divide(index, count)]
        return openvino.Model([op.result(each) for each in results], self._sinks, [*inputs, chances])


MADE: dict[tuple[str, int], Any] = {}


def request_of(name: str) -> Any:
    dtype, batch, _ = parts(name)
    beams = batch if name in BEAM_CASES else 0
    if (dtype, beams) not in MADE:
        options = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "bf16" if dtype == "bfloat16" else "f32",
            "INFERENCE_NUM_THREADS": len(os.sched_getaffinity(0)),
            "ENABLE_HYPER_THREADING": True,
            "KV_CACHE_PRECISION": "bf16" if dtype == "bfloat16" else "f32",
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": 32 if dtype == "dynamic" else 0,
        }
        model = Writer(dtype in ("int8", "dynamic")).model(beams)
        MADE[dtype, beams] = openvino.Core().compile_model(model, "CPU", options).create_infer_request()
    return MADE[dtype, beams]


def mask(length: int, position: int) -> np.ndarray:
    """(1, 1, length, position + length): 0 where a word sees another one, the lowest float elsewhere."""
    hidden = np.triu(np.full((length, position + length), np.finfo("float32").min), k=position + 1)
    return hidden[None, None].astype("float32")


def case(name: str) -> Step:
    _, count, _ = parts(name)
    beams = count if name in BEAM_CASES else 0
    request = request_of(name)
    straight = np.arange(count, dtype="int32")

    def call(words: np.ndarray, position: int, parents: np.ndarray, **others: np.ndarray) -> list[np.ndarray]:
        length = words.shape[1]
        places = np.broadcast_to(np.arange(position, position + length), words.shape)
        inputs = {"words": words, "positions": places, "parents": parents, "mask": mask(length, position), **others}
        results = request.infer(inputs)
        return [np.array(results[i]) for i in range(len(results))]

    def greedy() -> np.ndarray:
        request.reset_state()
        chosen = call(prompt(count), 0, straight)
        for i in range(TOKENS - 1):
            chosen += call(chosen[-1], PROMPT + i, straight)
        return np.concatenate(chosen, axis=1)

    def search() -> np.ndarray:
        request.reset_state()
        chances = np.array([0.0] + [NEVER] * (beams - 1), "float32")
        steps = [call(prompt(1).repeat(beams, 0), 0, straight, chances=chances)]
        for i in range(TOKENS - 1):
            words, chances, parents = steps[-1]
            steps.append(call(words, PROMPT + i, parents.astype("int32"), chances=chances))
        return best_beam(np.array([step[0][:, 0] for step in steps]), np.array([step[2] for step in steps]))

    def step(repeat: int) -> None:
        for _ in range(repeat):
            chosen = search() if beams else greedy()
        keep_words("openvino", name, chosen)

    return step


if __name__ == "__main__":
    serve(openvino.__version__, {name: lambda name=name: case(name) for name in CASES})
