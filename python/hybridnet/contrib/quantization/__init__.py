"""Quantized networks: float32 networks with convolutions and products in int8, for prediction on the CPU.

::

    quantized = mx.contrib.quantization.quantize_net(net, calib_data=loader, calib_mode="entropy")
    quantized.hybridize()
    quantized(batch)

``quantize_model`` does the same for a Symbol and its parameters. docs/quantization.md explains the arguments.
"""

from ..._public_names import dir_of
from ._collectors import *
from ._graph import *
from ._net import *

__dir__ = dir_of(__name__)
