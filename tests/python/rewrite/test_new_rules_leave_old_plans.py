"""A rule that a decorator registers applies to new plans and leaves existing plans unchanged."""

import hybridnet as mx
from hybridnet import rewrite as rw


def test_the_old_plan_stays_and_the_new_plan_has_the_rule() -> None:
    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.relu(x)

    net, x = Net(), mx.nd.array([-2.0])
    net.hybridize()
    assert net(x).asscalar() == 0

    @rw.local(tracks=["relu"], db="canonicalize")
    def to_abs(graph, node):
        return graph.add("abs", node.inputs[0])

    assert net(x).asscalar() == 0
    net.hybridize()
    assert net(x).asscalar() == 2
    assert "to_abs" in net.pass_report()
