"""partition() passes loop bodies to a backend, too."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
from hybridnet import rewrite as rw


def test_a_dummy_backend_gets_the_body_of_a_loop() -> None:
    parts: list[list[str]] = []

    def dummy(graph):
        parts.append([node.op for node in graph.nodes if node.op])
        return lambda row, state: np.tanh(row) + state

    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, data):
            def step(row, state):
                state = F.tanh(row) + state
                return state, state

            rows, _ = F.contrib.foreach(step, data, F.zeros((3,)))
            return rows

    rw.partition(["tanh", "add"], 2, dummy)
    try:
        net = Net()
        net.hybridize()
        data = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
        got = net(mx.nd.array(data)).asnumpy()
        np.testing.assert_allclose(got, np.cumsum(np.tanh(data), axis=0), rtol=1e-5)
        assert len(parts) == 1
        assert sorted(parts[0]) == ["elemwise_add", "tanh"]
        assert "1 in the body of" in net.pass_report()
    finally:
        rw.unregister("dummy")
