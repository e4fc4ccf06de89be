"""The store 'p3': the bits of 'dist_sync', sent in the order of the parameters."""

from __future__ import annotations

import pathlib

import pytest
from launched import launch, lines_of, needs_gloo

TRAINING = """
import hashlib
compression = {"type": sys.argv[1], "threshold": 0.5}
def digest(store):
    mx.random.seed(5)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(300, in_units=300), gluon.nn.Dense(300, in_units=300), gluon.nn.Dense(3, in_units=300))
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "adam", kvstore=store, compression_params=compression)
    before = group.counters()["calls"]
    for step in range(3):
        with autograd.record():
            loss = (net(mx.nd.ones((2, 300)) * (rank + step)) ** 2).sum()
        loss.backward()
        trainer.step(2)
    values = [param.data().asnumpy().tobytes() for param in net.collect_params().values()]
    return hashlib.sha256(b"".join(values)).hexdigest(), group.counters()["calls"] - before
plain, plain_calls = digest("dist_sync")
first, first_calls = digest("p3")
assert mx.kv.create("p3").type == "p3"
assert plain == first
print("calls", plain_calls, first_calls)
"""


@needs_gloo
@pytest.mark.parametrize("compression", [pytest.param("none", marks=pytest.mark.slow), "2bit"])
def test_values_are_those_of_dist_sync_in_more_messages(compression: str, tmp_path: pathlib.Path) -> None:
    done = launch(2, TRAINING, tmp_path, "--threads", "1", arguments=(compression,))
    assert done.returncode == 0, done.stderr
    _, plain, first = lines_of(done, 0)[0].split()
    assert int(first) > int(plain)
