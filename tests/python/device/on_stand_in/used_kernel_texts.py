"""Prints the texts of the kernels that the samples of all operators use, as JSON."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import hybridnet as mx
import operator_sweep
from hybridnet.errors import HybridNetError

for name in operator_sweep.names():
    if operator_sweep.kind_of(name) != "device":
        continue
    for dtype, uses in operator_sweep.uses_by_dtype(name).items():
        for use in uses:
            operator_sweep.Run(use, mx.gpu(0), dtype).values(True)
            try:
                operator_sweep.Run(use, mx.gpu(0), dtype).gradients()
            except HybridNetError:  # it has none
                continue
json.dump(mx._core.used_kernel_texts(), sys.stdout)
