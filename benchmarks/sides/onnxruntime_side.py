"""ONNX Runtime's programs: PyTorch's networks, exported by torch.onnx; a loop and a branch built with onnx.helper."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import onnx
import onnxruntime
from exported import exported
from onnx import TensorProto, helper
from serve import Step, serve

RNG = np.random.default_rng(0)


def repeated(model: Any, **inputs: np.ndarray) -> Step:
    """Returns a step on a session with the default options: all graph optimizations, a thread per core."""
    source = model if isinstance(model, str) else model.SerializeToString()
    options = onnxruntime.SessionOptions()
    cores = len(os.sched_getaffinity(0))
    if cores < (os.cpu_count() or cores):  # the default includes cores that this process may not use
        options.intra_op_num_threads = cores
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])

    def step(repeat: int) -> None:
        for _ in range(repeat):
            session.run(None, inputs)

    return step


def network(name: str, data: np.ndarray, quantized: str = "float32") -> Step:
    with exported(name, quantized) as path:
        return repeated(path, data=data)


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, dtype="float32")


def value(name: str, kind: int, *shape: int) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name: str, kind: int, number: float) -> Any:
    return helper.make_tensor(name, kind, (), [number])


def model_of(graph: Any) -> Any:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def while_1000() -> Step:
    """A Loop whose condition depends on the counter that it carries."""
    number, truth = TensorProto.FLOAT, TensorProto.BOOL
    body = helper.make_graph(
        [
            helper.make_node("Add", ["i", "one"], ["next_i"]),
            helper.make_node("Mul", ["x", "factor"], ["next_x"]),
            helper.make_node("Less", ["next_i", "end"], ["next_go"]),
        ],
        "body",
        [value("trip", TensorProto.INT64), value("go", truth), value("i", number), value("x", number, 8)],
        [value("next_go", truth), value("next_i", number), value("next_x", number, 8)],
        [constant("one", number, 1), constant("factor", number, 0.999), constant("end", number, 1000)],
    )
    graph = helper.make_graph(
        [
            helper.make_node("Less", ["start", "limit"], ["begin"]),
            helper.make_node("Loop", ["", "begin", "start", "data"], ["last_i", "last_x"], body=body),
        ],
        "count",
        [value("start", number), value("data", number, 8)],
        [value("last_x", number, 8)],
        [constant("limit", number, 1000)],
    )
    return repeated(model_of(graph), start=np.zeros((), "float32"), data=np.ones(8, "float32"))


def cond_call() -> Step:
    number = TensorProto.FLOAT

    def branch(factor: float) -> Any:
        name = f"times_{factor:.0f}"
        node = helper.make_node("Mul", ["data", "factor"], [name])
        return helper.make_graph([node], name, [], [value(name, number, 8)], [constant("factor", number, factor)])

    graph = helper.make_graph(
        [
            helper.make_node("ReduceSum", ["data"], ["sum"], keepdims=0),
            helper.make_node("Greater", ["sum", "zero"], ["positive"]),
            helper.make_node("If", ["positive"], ["out"], then_branch=branch(2), else_branch=branch(3)),
        ],
        "choose",
        [value("data", number, 8)],
        [value("out", number, 8)],
        [constant("zero", number, 0)],
    )
    return repeated(model_of(graph), data=np.ones(8, "float32"))


CASES = {
    "resnet50_infer_1/session": lambda: network("resnet50", array(1, 3, 224, 224)),
    "resnet50_infer_16/session": lambda: network("resnet50", array(16, 3, 224, 224)),
    "mobilenet_infer_1/session": lambda: network("mobilenet", array(1, 3, 224, 224)),
    "bert_infer/session": lambda: network("bert", RNG.integers(0, 30522, (1, 128))),
    "lstm_fused/session": lambda: network("lstm", array(35, 32, 256)),
    "resnet50_int8/session": lambda: network("resnet50", array(1, 3, 224, 224), "static"),
    "mobilenet_int8/session": lambda: network("mobilenet", array(1, 3, 224, 224), "static"),
    "bert_int8/session": lambda: network("bert", RNG.integers(0, 30522, (1, 128)), "dynamic"),
    "while_1000/session": while_1000,
    "cond_call/session": cond_call,
}

if __name__ == "__main__":
    serve(onnxruntime.__version__, CASES)
