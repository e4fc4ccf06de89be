"""A cast to the dtype that an array has already is removed, except between an input and an output of a graph."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd

from rewrite.graphs import Function


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_it_is_removed_with_its_gradient(dtype: str) -> None:
    net = Function(lambda F, x: F.cast(x * 2, dtype=dtype) + 1)
    net.hybridize()
    x = mx.nd.array([[1, 2, 3]], dtype=dtype)
    np.testing.assert_array_equal(net(x).asnumpy(), [[3, 5, 7]])
    assert "Cast" not in net.plan_text()
    x.attach_grad()
    with autograd.record():
        net(x).backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [[2, 2, 2]])


def test_another_dtype_stays() -> None:
    net = Function(lambda F, x: F.cast(x * 2, dtype="float16") + 1)
    net.hybridize()
    assert net(mx.nd.array([1.0])).dtype == np.float16 and "Cast" in net.plan_text()


def test_a_result_is_never_the_input_itself() -> None:
    net = Function(lambda F, x: F.cast(x, dtype="float32"))
    net.hybridize()
    x = mx.nd.array([1.0, 2.0])
    result: Any = net(x)
    result += 5
    np.testing.assert_array_equal(x.asnumpy(), [1, 2])
