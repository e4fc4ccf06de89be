"""Packed copies of weights in predictions: one per weight and layout, kept while it is useful."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import nd
from hybridnet.gluon import nn

# Every machine with packed kernels packs dense layers of this size for few rows (kernels/dnnl/dense_choice.cc).
UNITS = 256


def kept():
    gc.collect()  # frees networks of earlier tests
    mx.nd.waitall()
    return mx._core.memory_statistics(1, 0)["derived"]


@pytest.fixture
def before():
    return kept()


def dense_net(sharing_with=None):
    """Returns a network of two dense layers, which may share the parameters of another."""
    net = nn.HybridSequential()
    for activation, layer in zip(("relu", None), sharing_with or (None, None), strict=True):
        net.add(nn.Dense(UNITS, in_units=UNITS, activation=activation, params=layer.params if layer else None))
    if not sharing_with:
        net.initialize(mx.init.Normal(0.1))
    net.hybridize()
    return net


def conv_net():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(32, 3, padding=1, in_channels=16), nn.BatchNorm(in_channels=32), nn.Activation("relu"))
    net.add(nn.Conv2D(32, 1, in_channels=32), nn.GlobalAvgPool2D())
    net.initialize(mx.init.Normal(0.1))
    net.hybridize()
    return net


def test_input_shapes_of_a_dense_net_share_packed_weights(rng, before):
    net = dense_net()
    net(nd.array(rng.normal(size=(8, UNITS)))).wait_to_read()
    first = kept() - before
    for rows in (7, 9, 11, 12, 13, 16):
        net(nd.array(rng.normal(size=(rows, UNITS)))).wait_to_read()
    assert kept() - before == first


def test_image_sizes_share_folded_and_packed_weights(rng, before):
    net = conv_net()
    data = rng.normal(size=(1, 16, 56, 56)).astype("float32")
    sizes = range(16, 57, 4)
    net(nd.array(data[:, :, :32, :32])).wait_to_read()
    first = kept() - before
    assert first > 0
    for size in sizes:
        net(nd.array(data[:, :, :size, :size])).wait_to_read()
    # The best layout may depend on the size, but the number of copies does not grow with the number of sizes.
    layouts = 4
    assert kept() - before <= layouts * first
    grown = kept()
    for size in sizes:
        net(nd.array(data[:, :, : size + 1, : size + 2])).wait_to_read()
    assert kept() == grown


def test_writing_a_weight_drops_its_copies(rng, before):
    net = conv_net()
    data = nd.array(rng.normal(size=(1, 16, 32, 32)))
    net(data).wait_to_read()
    assert kept() > before
    old = net(data).asnumpy()
    for parameter in net.collect_params().values():
        parameter.set_data(parameter.data() * 2)
    assert kept() == before
    assert np.abs(net(data).asnumpy() - old).max() > 1e-3
    assert kept() > before


def test_a_training_step_drops_copies(rng, before):
    net = dense_net()
    data = nd.array(rng.normal(size=(8, UNITS)))
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    first = net(data).asnumpy()
    with mx.autograd.record():
        loss = net(data).square().mean()
    loss.backward()
    trainer.step(1)
    assert kept() == before
    assert np.abs(net(data).asnumpy() - first).max() > 0


@pytest.mark.parametrize("make", [dense_net, conv_net])
def test_dropping_the_net_frees_its_copies(make, rng, before):
    net = make()
    net(nd.array(rng.normal(size=(8, UNITS) if make is dense_net else (1, 16, 32, 32)))).wait_to_read()
    del net
    assert kept() == before


def test_dropping_one_of_two_nets_leaves_the_copies_to_the_other(rng, before):
    net = dense_net()
    data = nd.array(rng.normal(size=(8, UNITS)))
    expected = net(data).asnumpy()
    one = kept() - before
    sharing = dense_net(net)
    np.testing.assert_array_equal(sharing(data).asnumpy(), expected)
    assert kept() - before == one
    del net
    assert kept() - before == one
    np.testing.assert_array_equal(sharing(data).asnumpy(), expected)
    assert kept() - before == one


LIMITED = """
import numpy as np, hybridnet as mx
from test_packed_weights import conv_net, dense_net, kept, UNITS
mx.random.seed(3)
rng = np.random.default_rng(3)
results = []
for make, shape in ((dense_net, (8, UNITS)), (conv_net, (1, 16, 32, 32))):
    net = make()
    data = mx.nd.array(rng.normal(size=shape))
    results += [net(data).asnumpy().ravel() for _ in range(3)]
    assert kept() <= limit, kept()
np.save(path, np.concatenate(results))
"""


def test_the_limit_holds_and_changes_no_bit(tmp_path):
    outputs = []
    for megabytes in ("-1", "0"):
        path = tmp_path / f"{megabytes}.npy"
        limit = "float('inf')" if megabytes == "-1" else "0"
        subprocess.run(
            [sys.executable, "-c", f"limit, path = {limit}, {str(path)!r}\n" + LIMITED],
            check=True,
            cwd=Path(__file__).parent,
            env={**os.environ, "HYBRIDNET_PACKED_LIMIT_MB": megabytes},
        )
        outputs.append(np.load(path))
    np.testing.assert_array_equal(outputs[0], outputs[1])


def dense(x, weight):
    return mx.sym.FullyConnected(x, weight, num_hidden=UNITS, no_bias=True)


@pytest.mark.parametrize("atomic", [True, False])
def test_a_function_with_updates_packs_the_weights_that_stay(atomic, rng, before):
    plain = dense_net()
    plain(nd.ones((8, UNITS))).wait_to_read()
    packs = kept() > before  # on this machine
    del plain
    weight = mx.shared(rng.normal(size=(UNITS, UNITS)).astype("float32"))
    calls = mx.shared(np.zeros(1, "float32"))
    x = mx.sym.var("x")
    function = mx.function([x], dense(x, weight), updates={calls: calls + 1}, atomic=atomic)
    data = rng.normal(size=(8, UNITS)).astype("float32")
    for factor in (1, 1, 3):
        weight.set_value(weight.get_value() * factor)
        expected = data.astype("float64") @ weight.get_value().asnumpy().astype("float64").T
        np.testing.assert_allclose(function(nd.array(data)).asnumpy(), expected, rtol=1e-4, atol=1e-4)
        assert (kept() > before) == packs
    assert calls.get_value().asnumpy() == [3]


@pytest.mark.parametrize("atomic", [True, False])
@pytest.mark.parametrize("form", ["the old value", "the new value", "a copy of the old value"])
def test_a_function_reads_no_stale_copy_of_a_weight_that_it_updates(form, atomic, rng):
    weight = mx.shared(rng.normal(size=(UNITS, UNITS)).astype("float32"))
    x = mx.sym.var("x")
    new = weight * 0.5 + 0.01
    used = {"the old value": weight, "the new value": new, "a copy of the old value": mx.sym.identity(weight)}[form]
    function = mx.function([x], dense(x, used), updates={weight: new}, atomic=atomic)
    data = rng.normal(size=(8, UNITS)).astype("float32")
    for _ in range(4):
        old = weight.get_value().asnumpy().astype("float64")
        matrix = old * 0.5 + 0.01 if form == "the new value" else old
        np.testing.assert_allclose(function(nd.array(data)).asnumpy(), data @ matrix.T, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(weight.get_value().asnumpy(), old * 0.5 + 0.01, rtol=1e-6, atol=1e-7)
