"""Blocks that share parameters, and copies that share compiled graphs."""

from __future__ import annotations

import threading

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.errors import ShapeError
from hybridnet.gluon import nn


def network():
    net = nn.HybridSequential()
    net.add(nn.Dense(4, in_units=3, activation="tanh"), nn.BatchNorm(in_channels=4))
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True)
    return net


class Tied(mx.gluon.HybridBlock):
    """An embedding whose table is also the weight of the output layer."""

    def __init__(self, tied):
        super().__init__()
        self.embed, self.decode = nn.Embedding(5, 3), nn.Dense(5, in_units=3, use_bias=False, flatten=False)
        if tied:
            self.decode.share_parameters({"weight": self.embed.weight})

    def hybrid_forward(self, F, x):
        return self.decode(self.embed(x))


@pytest.mark.parametrize("hybridized", [False, True])
def test_tied_weights_have_one_gradient_the_sum_of_both(hybridized):
    table = np.random.RandomState(0).rand(5, 3)
    tokens = mx.nd.array([[0, 2, 2]])
    gradients = {}
    for tied in (True, False):
        net = Tied(tied)
        net.initialize()
        for param in net.collect_params().values():
            param.set_data(mx.nd.array(table))
        if hybridized:
            net.hybridize()
        with mx.autograd.record():
            loss = (net(tokens) ** 2).sum()
        loss.backward()
        gradients[tied] = [param.grad().asnumpy() for param in net.collect_params().values()]
    [of_both] = gradients[True]
    np.testing.assert_allclose(of_both, sum(gradients[False]), rtol=1e-5)


def test_share_parameters_of_a_block():
    first, second = network(), network()
    data = mx.nd.ones((2, 3))
    second(data)
    assert second.share_parameters(first) is second
    np.testing.assert_array_equal(first(data).asnumpy(), second(data).asnumpy())
    first[0].weight.set_data(mx.nd.ones((4, 3)))
    np.testing.assert_array_equal(first(data).asnumpy(), second(data).asnumpy())
    assert second[0].weight is first[0].weight


def test_share_parameters_names_shapes_that_differ():
    first, other = nn.Dense(4, in_units=3), nn.Dense(4, in_units=2)
    with pytest.raises(ShapeError, match=r"'weight'.*\(4, 2\).*\(4, 3\)"):
        other.share_parameters(first)
    nn.Dense(4).share_parameters(first)  # an unknown shape fits any


def test_a_compiled_copy_has_the_same_parameters_and_links_nothing():
    net, data = network(), mx.nd.array(np.random.RandomState(1).rand(5, 3))
    with pytest.raises(mx.MXNetError, match="hybridize"):
        network().compiled_copy()
    wanted = net(data)
    copy = net.compiled_copy()
    np.testing.assert_array_equal(copy(data).asnumpy(), wanted.asnumpy())
    net[0].weight.set_data(mx.nd.ones((4, 3)))
    np.testing.assert_array_equal(copy(data).asnumpy(), net(data).asnumpy())
    assert copy._cached_op.num_linked == net._cached_op.num_linked == 1
    copy.hybridize(False)
    assert net._active


def test_a_copy_without_updates_leaves_running_statistics():
    net, data = network(), mx.nd.array(np.random.RandomState(1).rand(5, 3))
    net(data)
    copy = net.compiled_copy(delete_updates=True, name="evaluation")
    assert copy.name == "evaluation"
    before = net[1].running_mean.data().asnumpy()
    with mx.autograd.train_mode():
        copy(data).wait_to_read()
        np.testing.assert_array_equal(net[1].running_mean.data().asnumpy(), before)
        net(data).wait_to_read()
    assert (net[1].running_mean.data().asnumpy() != before).all()


def test_threads_that_call_a_block_and_its_copy():
    net = network()
    inputs = [mx.nd.array(np.random.RandomState(k).rand(50, 3)) for k in range(4)]
    wanted = [net(value).asnumpy() for value in inputs]
    wrong = []

    def run(block):
        for _ in range(50):
            wrong.extend(
                1
                for value, result in zip(inputs, wanted, strict=True)
                if not np.array_equal(block(value).asnumpy(), result)
            )

    threads = [threading.Thread(target=run, args=(block,)) for block in (net, net.compiled_copy(), net.compiled_copy())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
