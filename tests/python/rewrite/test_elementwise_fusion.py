"""A chain of five elementwise operators is one kernel and one write."""

import hybridnet as mx
import numpy as np
from control_flow.scans import Function


def test_five_operators_are_one_kernel_and_one_write() -> None:
    block = Function(lambda x, y: (x * y + 1).tanh().exp() - y)
    x, y = mx.nd.array(np.linspace(-1, 1, 6)), mx.nd.ones((6,))
    block(x, y)
    with mx.test_utils.exec_counts() as ran:
        out = block(x, y)
    assert sum(ran.values()) == 1
    assert "1 instruction, arena 0 bytes" in block.plan_text()  # the intermediate values have no memory
    np.testing.assert_allclose(out.asnumpy(), np.exp(np.tanh(np.linspace(-1, 1, 6) + 1)) - 1, rtol=1e-5)
