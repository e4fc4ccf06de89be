"""Row 47: pass profile and debug mode. A wrong rule is caught and named."""

import hybridnet as mx
from hybridnet import rewrite as rw


def test_a_wrong_rule_is_caught_and_named_in_a_body_too() -> None:
    @rw.local(tracks=["relu"], db="canonicalize")
    def wrong(graph, node):
        return graph.full(0.0, like=node[0])

    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.contrib.foreach(lambda row, s: (F.relu(row) + s, s), x, F.ones((2,)))[0]

    net = Net()
    net.hybridize(passes="debug")
    assert net(mx.nd.ones((3, 2))).asnumpy().tolist() == [[2, 2]] * 3
    report = net.pass_report()
    assert "rewrite 'wrong' failed" in report
    assert "it changed element" in report
