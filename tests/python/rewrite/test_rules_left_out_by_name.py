"""hybridize() can exclude one rule of a model by its name."""

import hybridnet as mx


def test_one_rule_is_left_out_by_name() -> None:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(4, activation="relu"))
    net.initialize()
    x = mx.nd.ones((2, 3))
    net.hybridize()
    net(x)
    assert "fuse_activation " in net.pass_report()
    net.hybridize(exclude=["fuse_activation"])
    net(x)
    assert "fuse_activation " not in net.pass_report()
