"""An error of a kernel surfaces at a later wait: it names the kernels that were launched last, with node and line."""

from __future__ import annotations

import hybridnet as mx
import pytest
import stand_in
from hybridnet.errors import EngineError
from hybridnet.gluon import nn

GPU = mx.gpu(0)


@pytest.mark.parametrize("graphs", [False, True])
def test_an_error_at_a_wait_names_the_last_kernels_with_their_nodes_and_lines(graphs: bool) -> None:
    net = nn.HybridSequential()
    net.add(nn.Dense(5, in_units=4, activation="tanh"), nn.LayerNorm(in_channels=5), nn.Dense(3, in_units=5))
    net.initialize(ctx=GPU)
    net.hybridize(static_alloc=True, static_shape=True)
    data = mx.nd.ones((2, 4), ctx=GPU)
    for _ in range(4 if graphs else 1):
        out = net(data)
        mx.nd.waitall()
    stand_in.reset()
    out = net(data)
    mx.nd.waitall()
    assert stand_in.counters()["graph_launches"] == int(graphs)
    stand_in.fail("cuStreamSynchronize:1:CUDA_ERROR_ILLEGAL_ADDRESS")
    with pytest.raises(EngineError) as failed:
        out.asnumpy()
    stand_in.fail("")
    stand_in.reset()
    text = str(failed.value)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in text
    assert "the last ones, newest first: '" in text
    assert "of node '" in text
    assert "dense" in text and "layernorm" in text, text
    assert text.count("' of node") <= 64
