"""Rules run in the order of their positions: 0.5 runs between 0 and 1."""

import hybridnet as mx
from hybridnet import rewrite as rw


def test_position_one_half_runs_between_zero_and_one() -> None:
    log = []
    for name, position in [("one", 1.0), ("half", 0.5), ("zero", 0.0)]:
        rw.global_(name=name, position=position)(lambda graph, name=name: log.append(name))
    net = mx.gluon.nn.Dense(2)
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 2)))
    assert log == ["zero", "half", "one"]
