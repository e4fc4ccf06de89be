"""A scan may update shared values in each step: a counter grows by 1 per step."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet.contrib import scan


class Counter(gluon.HybridBlock):
    """Returns cumulative sums, and counts the rows of all calls."""

    def __init__(self):
        super().__init__()
        self.count = self.params.get("count", shape=(1,), init="zeros", grad_req="null")

    def forward(self, x):
        return scan(lambda a, s: (s + a, {self.count: self.count.data() + 1}), x, 0)


@pytest.mark.parametrize("hybridized", [False, True])
def test_one_per_step(hybridized):
    block = Counter()
    block.initialize()
    if hybridized:
        block.hybridize(strict=True)
    total = 0
    for rows in (5, 1, 0, 7):
        assert block(mx.nd.array(np.ones((rows, 1)))).shape == (rows, 1)
        total += rows
        assert block.count.data().asscalar() == total


@pytest.mark.parametrize("hybridized", [False, True])
def test_in_training_too(hybridized):
    block = Counter()
    block.initialize()
    if hybridized:
        block.hybridize(strict=True)
    x = mx.nd.ones((4, 1))
    x.attach_grad()
    with mx.autograd.record():
        loss = block(x).sum()
    loss.backward()
    assert x.grad.asnumpy().ravel().tolist() == [4, 3, 2, 1]
    assert block.count.data().asscalar() == 4


def test_in_files(tmp_path):
    block = Counter()
    block.initialize()
    block.hybridize()
    block(mx.nd.ones((3, 1)))
    symbol, params = block.export(str(tmp_path / "counter"))
    loaded = gluon.SymbolBlock.imports(symbol, ["data"], params)
    loaded(mx.nd.ones((2, 1))).wait_to_read()
    (count,) = [p for name, p in loaded.collect_params().items() if name.endswith("count")]
    assert count.data().asscalar() == 5
