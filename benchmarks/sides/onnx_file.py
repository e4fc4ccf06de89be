"""One ONNX file in one runtime: python onnx_file.py hybridnet|onnxruntime|openvino THREADS FILE INPUTS

INPUTS is an .npz file with an array for each input. Answers requests as serve.py says; its only case is "run".
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from serve import Step, serve

Run = Callable[[], object]


def hybridnet(file: str, threads: int, inputs: dict[str, np.ndarray]) -> tuple[str, Run]:
    import hybridnet
    from hybridnet.onnx import backend  # the caller sets HYBRIDNET_NUM_THREADS

    prepared = backend.prepare(file)
    return hybridnet.__version__, lambda: prepared.run(list(inputs.values()))


def onnxruntime(file: str, threads: int, inputs: dict[str, np.ndarray]) -> tuple[str, Run]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return onnxruntime.__version__, lambda: session.run(None, inputs)


def openvino(file: str, threads: int, inputs: dict[str, np.ndarray]) -> tuple[str, Run]:
    import openvino

    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}
    request = openvino.Core().compile_model(file, "CPU", options).create_infer_request()
    return openvino.__version__, lambda: request.infer(inputs)


def main() -> None:
    runtime, threads, file, inputs = sys.argv[1:]
    makers: dict[str, Any] = {"hybridnet": hybridnet, "onnxruntime": onnxruntime, "openvino": openvino}

    def case() -> Step:
        with np.load(inputs) as stored:
            _, run = makers[runtime](file, int(threads), dict(stored))

        def step(repeat: int) -> None:
            for _ in range(repeat):
                run()

        step(2)  # plans are made, memory is requested
        return step

    serve(runtime, {"run": case})


if __name__ == "__main__":
    main()
