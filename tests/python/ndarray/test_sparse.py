"""Storage conversions of arrays and in graphs."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest


@pytest.mark.parametrize("namespace", [mx.nd, mx.nd.sparse], ids=["nd", "sparse"])
def test_arrays_change_their_storage(namespace):
    dense = mx.nd.array([[0, 1], [0, 0]])
    csr = namespace.cast_storage(dense, stype="csr")
    assert csr.stype == "csr"
    np.testing.assert_array_equal(csr.indices.asnumpy(), [1])
    assert namespace.cast_storage(csr, "default").stype == "default"


def test_graphs_pass_values_and_gradients():
    net = mx.sym.cast_storage(mx.sym.var("x") * 2, stype="row_sparse")
    again = mx.sym.load_json(net.tojson())
    assert again.attr("stype") == "row_sparse"
    executor = again.simple_bind(mx.cpu(), x=(2, 3))
    (out,) = executor.forward(is_train=True, x=np.full((2, 3), 4))
    executor.backward([mx.nd.full((2, 3), 5)])
    assert (out.asnumpy() == 8).all()
    assert (executor.grad_dict["x"].asnumpy() == 10).all()


def test_csr_is_for_matrices():
    with pytest.raises(mx.MXNetError, match="matrix"):
        mx.nd.ones((2,)).tostype("csr")
    with pytest.raises(mx.MXNetError, match="matrix"):
        mx.sym.cast_storage(mx.sym.var("x"), stype="csr").infer_shape(x=(2, 3, 4))
