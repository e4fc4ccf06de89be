"""Every way to write the parameters of a network of dense layers, for tests of copies of parameters."""

from __future__ import annotations

import ctypes

import hybridnet as mx
import numpy as np
from hybridnet import gluon

__all__ = ["WRITES", "write_parameters"]

WRITES = ["set_data", "in place", "slice", "trainer", "dlpack", "copyto"]


def write_parameters(how: str, net: gluon.nn.HybridSequential, values: list[np.ndarray], data: mx.nd.NDArray) -> None:
    """Writes the weight of the first layer, or with "trainer" all parameters, by a training step on `data`.

    values: the values of all parameters, which the function updates.
    """
    weight = net[0].weight
    if how == "set_data":
        values[0] = values[0] + 1
        weight.set_data(mx.nd.array(values[0]))
    elif how == "in place":
        weight.data()[:] = 0.5
        values[0] = np.full_like(values[0], 0.5)
    elif how == "slice":
        weight.data()[3:5] = 2
        values[0] = values[0].copy()
        values[0][3:5] = 2
    elif how == "copyto":
        values[0] = values[0] * 2
        mx.nd.array(values[0]).copyto(weight.data())
    elif how == "dlpack":
        view = np.from_dlpack(weight.data())  # read-only for NumPy, but other libraries may write to it
        row = np.full(values[0].shape[1], 3, "float32")
        ctypes.memmove(view[7].ctypes.data, row.ctypes.data, row.nbytes)
        weight.data()[8] = 4  # after this write by the library, writes of others are visible
        values[0] = values[0].copy()
        values[0][7], values[0][8] = 3, 4
    else:
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
        with mx.autograd.record():
            loss = net(data).sum()
        loss.backward()
        trainer.step(1)
        for number, parameter in enumerate(net.collect_params().values()):
            values[number] = values[number] - 0.5 * parameter.grad().asnumpy()
