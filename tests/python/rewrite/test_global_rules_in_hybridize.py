"""A global rewrite written in Python runs when a block is hybridized."""

import hybridnet as mx
from hybridnet import rewrite as rw


def test_a_python_global_rewrite_runs_in_hybridize() -> None:
    class Absolute(rw.GlobalRewriter):
        def requirements(self, graph):
            self.index = rw.OpIndex()
            graph.attach(self.index)

        def apply_to(self, graph):
            for node in self.index["relu"]:
                graph.replace(node, graph.add("abs", node.inputs[0], like=node))

    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.relu(x)

    rw.register(Absolute(tags=["fast_run"]), position=0.5)
    net = Net()
    net.hybridize()
    assert net(mx.nd.array([-2.0])).asscalar() == 2
