"""Writes one of PyTorch's networks as an ONNX file: python export_onnx.py NETWORK FILE float32|static|dynamic

"static" and "dynamic" round weights and data to bytes by ONNX Runtime's tools. The ranges of the data are measured here
(static), or in each run (dynamic).
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import torch
import torch_networks as networks

# The network, one input, and the axis of the input with a variable size.
NETWORKS = {
    "resnet50": lambda: (networks.resnet50(), networks.array(1, 3, 224, 224), 0),
    "mobilenet": lambda: (networks.mobilenet(), networks.array(1, 3, 224, 224), 0),
    "bert": lambda: (networks.Bert(), networks.integers(networks.VOCABULARY, 1, networks.LENGTH), None),
    "lstm": lambda: (networks.Recurrent(256, 2), networks.array(35, 32, 256), None),
}
CALIBRATION_BATCHES = 4


def quantize(path: str, way: str, data: torch.Tensor) -> None:
    """Replaces the file by one whose products are those of bytes."""
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    original = str(Path(path).with_suffix(".float32.onnx"))
    Path(path).rename(original)
    if way == "dynamic":
        quantization.quantize_dynamic(original, path, weight_type=quantization.QuantType.QInt8, per_channel=True)
        return

    class Batches(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self._batches = iter([{"data": torch.randn_like(data).numpy()} for _ in range(CALIBRATION_BATCHES)])

        def get_next(self) -> Any:
            return next(self._batches, None)

    quant_pre_process(original, original)
    quantization.quantize_static(original, path, Batches(), per_channel=True)


def main() -> None:
    name, path, way = sys.argv[1:]
    net, data, axis = NETWORKS[name]()
    warnings.simplefilter("ignore")  # from the older exporter, which needs no further packages
    axes = {"data": {axis: "batch"}} if axis is not None else None
    torch.onnx.export(net.eval(), (data,), path, input_names=["data"], dynamic_axes=axes, dynamo=False)
    if way != "float32":
        quantize(path, way, data)


if __name__ == "__main__":
    main()
