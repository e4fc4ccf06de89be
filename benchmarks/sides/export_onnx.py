"""Writes one of PyTorch's networks as an ONNX file: python export_onnx.py NETWORK FILE"""

from __future__ import annotations

import sys
import warnings

import torch
import torch_networks as networks

# The network, one input, and the axis of the input with a variable size.
NETWORKS = {
    "resnet50": lambda: (networks.resnet50(), networks.array(1, 3, 224, 224), 0),
    "mobilenet": lambda: (networks.mobilenet(), networks.array(1, 3, 224, 224), 0),
    "bert": lambda: (networks.Bert(), networks.integers(networks.VOCABULARY, 1, networks.LENGTH), None),
    "lstm": lambda: (networks.Recurrent(256, 2), networks.array(35, 32, 256), None),
}


def main() -> None:
    name, path = sys.argv[1:]
    net, data, axis = NETWORKS[name]()
    warnings.simplefilter("ignore")  # from the older exporter, which needs no further packages
    axes = {"data": {axis: "batch"}} if axis is not None else None
    torch.onnx.export(net.eval(), (data,), path, input_names=["data"], dynamic_axes=axes, dynamo=False)


if __name__ == "__main__":
    main()
