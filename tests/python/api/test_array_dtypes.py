"""The dtype of an array is an instance of numpy.dtype for mx.np and a class for mx.nd, as in MXNet."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon

DTYPES = ["float16", "float32", "float64", "uint8", "int8", "int32", "int64", "bool"]


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_of_np_arrays_are_instances_and_those_of_nd_arrays_classes(name):
    array = mx.np.ones((2,), dtype=name)
    assert isinstance(array.dtype, np.dtype) and array.dtype.kind == np.dtype(name).kind and array.dtype.name == name
    assert (
        array.dtype == name and array.dtype == np.dtype(name).type and array.dtype.itemsize == np.dtype(name).itemsize
    )
    assert mx.np.ones((2,), dtype=array.dtype).dtype == array.dtype
    assert array.as_nd_ndarray().dtype is np.dtype(name).type
    assert array.astype(array.dtype).dtype is array.dtype


def test_the_dtype_of_a_traced_np_array_is_an_instance():
    seen = []

    class Net(gluon.HybridBlock):
        def forward(self, x):
            seen.append(x.dtype)
            return x * 2 if x.dtype.kind == "f" else x

    net = Net()
    net.hybridize()
    assert net(mx.np.ones((2,))).asnumpy().tolist() == [2, 2]
    assert all(isinstance(dtype, np.dtype) for dtype in seen)
