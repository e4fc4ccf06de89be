"""OpenVINO's programs: PyTorch's networks, exported by torch.onnx, compiled for the lowest latency of one request."""

from __future__ import annotations

import os

import numpy as np
import openvino
from exported import exported
from serve import Step, serve

RNG = np.random.default_rng(0)


def compiled(network: str, data: np.ndarray, precision: str = "f32", quantized: str = "float32") -> Step:
    """precision: the type of products, without which OpenVINO chooses the fastest one of the machine."""
    core = openvino.Core()
    options = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": len(os.sched_getaffinity(0)),
        "ENABLE_HYPER_THREADING": True,  # else the threads are those of whole cores, one on a machine with one
    }
    with exported(network, quantized) as path:
        model = core.read_model(path)
        model.reshape({"data": list(data.shape)})
        request = core.compile_model(model, "CPU", options).create_infer_request()

    def step(repeat: int) -> None:
        for _ in range(repeat):
            request.infer({"data": data})

    return step


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, dtype="float32")


def words() -> np.ndarray:
    return RNG.integers(0, 30522, (1, 128))


CASES = {
    "resnet50_infer_1/compiled": lambda: compiled("resnet50", array(1, 3, 224, 224)),
    "resnet50_infer_16/compiled": lambda: compiled("resnet50", array(16, 3, 224, 224)),
    "mobilenet_infer_1/compiled": lambda: compiled("mobilenet", array(1, 3, 224, 224)),
    "bert_infer/compiled": lambda: compiled("bert", words()),
    "lstm_fused/compiled": lambda: compiled("lstm", array(35, 32, 256)),
    "resnet50_bfloat16/compiled": lambda: compiled("resnet50", array(1, 3, 224, 224), "bf16"),
    "mobilenet_bfloat16/compiled": lambda: compiled("mobilenet", array(1, 3, 224, 224), "bf16"),
    "bert_bfloat16/compiled": lambda: compiled("bert", words(), "bf16"),
    "resnet50_int8/compiled": lambda: compiled("resnet50", array(1, 3, 224, 224), quantized="static"),
    "mobilenet_int8/compiled": lambda: compiled("mobilenet", array(1, 3, 224, 224), quantized="static"),
    "bert_int8/compiled": lambda: compiled("bert", words(), quantized="dynamic"),
}

if __name__ == "__main__":
    serve(openvino.__version__, CASES)
