"""Tags choose rules: without "inplace" no instruction works in place, and users define tags of their own."""

import hybridnet as mx
import numpy as np
from control_flow.scans import Function
from hybridnet import rewrite as rw


def function(x):
    return mx.sym.softmax(mx.sym.relu(mx.sym.FullyConnected(x, num_hidden=3, no_bias=True, weight=x)))


def test_without_inplace_no_instruction_overwrites_its_inputs() -> None:
    x = mx.nd.array(np.linspace(-1, 1, 9).reshape(3, 3))
    block = Function(function, passes="fast_run,-fusion")
    usual = block(x).asnumpy()
    assert "(in place)" in block.plan_text()
    block.hybridize(passes="fast_run,-fusion", exclude=["inplace"])
    np.testing.assert_array_equal(block(x).asnumpy(), usual)
    assert "(in place)" not in block.plan_text()


def test_states_are_written_at_the_end_then() -> None:
    net = mx.gluon.nn.BatchNorm(in_channels=3)
    net.initialize()
    net.hybridize(exclude=["inplace"])
    x = mx.nd.array(np.linspace(-1, 1, 12).reshape(4, 3))
    with mx.autograd.record():
        net(x)
    np.testing.assert_allclose(net.running_mean.data().asnumpy(), 0.1 * x.asnumpy().mean(0), rtol=1e-5)
    assert "(in place)" not in net.plan_text()


def test_a_tag_of_ones_own_chooses_rules() -> None:
    @rw.local(tracks=["relu"], db="canonicalize", tags=["fast_run", "buggy"])
    def relu_is_abs(graph, node):
        """Rewrites relu(x) to |x|, which is wrong and shows that the rule ran."""
        return graph.add("abs", node.inputs[0])

    x = mx.nd.array([-1.0, 2.0])
    block = Function(lambda x: mx.sym.relu(x) + 0.5)
    assert block(x).asnumpy().tolist() == [1.5, 2.5]
    block.hybridize(exclude=["buggy"])
    assert block(x).asnumpy().tolist() == [0.5, 2.5]
