"""Networks of bytes: float32 networks whose convolutions and products run in int8, for prediction on the CPU.

::

    quantized = mx.contrib.quantization.quantize_net(net, calib_data=loader, calib_mode="entropy")
    quantized.hybridize()
    quantized(batch)

``quantize_model`` does the same to a Symbol and its parameters. docs/quantization.md says what the arguments do.
"""

from ._collectors import *
from ._graph import *
from ._net import *
