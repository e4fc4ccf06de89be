"""Gradients in row_sparse storage, and updates of the rows that they reach."""

from __future__ import annotations

import gc
import warnings

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from hybridnet.gluon import nn


@pytest.fixture(autouse=True)
def no_fallback():
    """Turns the warning about dense copies into an error."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*dense copies.*")
        yield


def dense_gradient(rows, ids, grads):
    total = np.zeros((rows, grads.shape[-1]), "float32")
    np.add.at(total, np.asarray(ids).ravel(), grads.reshape(-1, grads.shape[-1]))
    return total


def look_up(weight, ids, factor):
    with autograd.record():
        out = mx.nd.Embedding(mx.nd.array(ids), weight, input_dim=weight.shape[0], output_dim=weight.shape[1])
        loss = (out * factor).sum()
    loss.backward()


def test_embedding_gives_the_rows_that_were_looked_up(rng):
    weight = mx.nd.array(rng.random((50, 3)))
    weight.attach_grad(stype="row_sparse")
    ids, factor = [[7, 3], [7, 49]], rng.random((2, 2, 3)).astype("float32")
    look_up(weight, ids, mx.nd.array(factor))
    assert weight.grad.stype == "row_sparse"
    assert weight.grad.indices.asnumpy().tolist() == [3, 7, 49]
    np.testing.assert_allclose(weight.grad.asnumpy(), dense_gradient(50, ids, factor), rtol=1e-6)


def test_gradients_of_several_uses_merge_their_rows(rng):
    weight = mx.nd.array(rng.random((20, 2)))
    weight.attach_grad(stype="row_sparse")
    with autograd.record():
        first = mx.nd.take(weight, mx.nd.array([1, 5]))
        second = mx.nd.Embedding(mx.nd.array([5, 9]), weight, input_dim=20, output_dim=2)
        loss = (first + 10 * second).sum()
    loss.backward()
    assert weight.grad.indices.asnumpy().tolist() == [1, 5, 9]
    assert weight.grad.data.asnumpy()[:, 0].tolist() == [1, 11, 10]


def test_a_dense_term_makes_every_row_a_row_of_the_gradient():
    weight = mx.nd.ones((4, 2))
    weight.attach_grad(stype="row_sparse")
    with autograd.record():
        loss = mx.nd.take(weight, mx.nd.array([1])).sum() + (2 * weight).sum()
    loss.backward()
    assert weight.grad.stype == "row_sparse"
    assert weight.grad.asnumpy()[:, 0].tolist() == [2, 3, 2, 2]


def test_gradients_are_added_with_grad_req_add():
    weight = mx.nd.ones((6, 1))
    weight.attach_grad("add", stype="row_sparse")
    for ids in ([1, 2], [2, 4]):
        look_up(weight, ids, 1.0)
    assert weight.grad.indices.asnumpy().tolist() == [1, 2, 4]
    assert weight.grad.data.asnumpy().ravel().tolist() == [1, 2, 1]
    weight.zero_grad()
    assert weight.grad.data.size == 0


def test_a_table_that_is_computed_gets_a_dense_gradient():
    base = mx.nd.ones((4, 2))
    base.attach_grad(stype="row_sparse")
    with autograd.record():
        table = base * 3
        loss = mx.nd.take(table, mx.nd.array([1])).sum()
    loss.backward()
    assert base.grad.asnumpy()[:, 0].tolist() == [0, 3, 0, 0]


def test_products_with_csr_reach_the_columns_that_are_used(rng):
    features = mx.nd.sparse.csr_matrix(([1.0, 2.0, 3.0], [8, 2, 8], [0, 2, 3]), shape=(2, 10))
    weight = mx.nd.array(rng.random((10, 3)))
    weight.attach_grad(stype="row_sparse")
    with autograd.record():
        loss = (mx.nd.dot(features, weight) * mx.nd.array([[1, 1, 1], [2, 2, 2]])).sum()
    loss.backward()
    assert weight.grad.indices.asnumpy().tolist() == [2, 8]
    assert weight.grad.data.asnumpy()[:, 0].tolist() == [2, 7]
    dense = mx.nd.array(weight.asnumpy())
    dense.attach_grad()
    with autograd.record():
        loss = (mx.nd.dot(features, dense) * mx.nd.array([[1, 1, 1], [2, 2, 2]])).sum()
    loss.backward()
    assert dense.grad.stype == "default"
    np.testing.assert_array_equal(dense.grad.asnumpy(), weight.grad.asnumpy())


def test_gradients_of_transposed_products(rng):
    left = rng.random((4, 6)) * (rng.random((4, 6)) < 0.5)
    right = mx.nd.array(rng.random((4, 2)))
    right.attach_grad()
    with warnings.catch_warnings(), autograd.record():
        warnings.simplefilter("ignore")  # warns that the gradient of the row_sparse product is recorded on a dense copy
        loss = (mx.nd.dot(mx.nd.array(left).tostype("csr"), right, transpose_a=True) * 2).sum()
    loss.backward()
    np.testing.assert_allclose(right.grad.asnumpy(), 2 * left @ np.ones((6, 2)), rtol=1e-5)


def test_second_order_gradients_pass_through_products_with_csr():
    features = mx.nd.sparse.csr_matrix(([1.0, 2.0], [0, 1], [0, 1, 2]), shape=(2, 2))
    weight = mx.nd.array([[3.0], [5.0]])
    weight.attach_grad()
    with autograd.record():
        product = mx.nd.dot(features, weight)
        (slope,) = autograd.grad((product**3).sum(), [weight], create_graph=True)
        total = slope.sum()
    total.backward()
    # the derivative of 3 x^3 w^2 by w
    np.testing.assert_allclose(weight.grad.asnumpy().ravel(), [6 * 3, 6 * 8 * 5], rtol=1e-5)


def test_a_change_of_storage_passes_gradients():
    x = mx.nd.array([[1.0, 0.0], [0.0, 4.0]])
    x.attach_grad()
    with autograd.record():
        loss = mx.nd.dot(x.tostype("csr").tostype("default"), mx.nd.ones((2, 1))).sum()
    loss.backward()
    assert x.grad.asnumpy().tolist() == [[1, 1], [1, 1]]


def updated(optimizer, stype, steps, shape=(9, 4)):
    """Returns a weight after steps of an optimizer with gradients in rows 2 and 5."""
    weight = mx.nd.array(np.linspace(-1, 1, 36).reshape(shape))
    updater = mx.optimizer.get_updater(optimizer)
    for step in range(steps):
        grad = np.zeros(shape, "float32")
        grad[[2, 5]] = np.linspace(0.1, 1, 8).reshape(2, 4) * (step + 1)
        updater(0, mx.nd.array(grad).tostype(stype), weight)
    return weight.asnumpy()


OPTIMIZERS = {
    "sgd": lambda **k: mx.optimizer.SGD(learning_rate=0.1, **k),
    "sgd with momentum": lambda **k: mx.optimizer.SGD(learning_rate=0.1, momentum=0.9, **k),
    "adam": lambda **k: mx.optimizer.Adam(learning_rate=0.1, **k),
    "adagrad": lambda **k: mx.optimizer.AdaGrad(learning_rate=0.1, **k),
    "ftrl": lambda **k: mx.optimizer.Ftrl(learning_rate=0.1, **k),
    "ftml": lambda **k: mx.optimizer.FTML(learning_rate=0.1, **k),
    "group adagrad": lambda **k: mx.optimizer.contrib.GroupAdaGrad(learning_rate=0.1, **k),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_lazy_updates_change_their_rows_like_dense_ones(name):
    before = np.linspace(-1, 1, 36, dtype="float32").reshape(9, 4)
    lazy = updated(OPTIMIZERS[name](), "row_sparse", 3)
    full = updated(OPTIMIZERS[name](), "default", 3)
    others = [0, 1, 3, 4, 6, 7, 8]
    np.testing.assert_allclose(lazy[[2, 5]], full[[2, 5]], rtol=1e-5)
    np.testing.assert_array_equal(lazy[others], before[others])


@pytest.mark.parametrize("name", ["sgd", "sgd with momentum", "adam"])
def test_weight_decay_reaches_other_rows_without_lazy_update(name):
    eager = updated(OPTIMIZERS[name](wd=0.1, lazy_update=False), "row_sparse", 2)
    np.testing.assert_allclose(eager, updated(OPTIMIZERS[name](wd=0.1), "default", 2), rtol=1e-6)
    before = np.linspace(-1, 1, 36, dtype="float32").reshape(9, 4)
    assert (updated(OPTIMIZERS[name](wd=0.1), "row_sparse", 2)[0] == before[0]).all()


@pytest.mark.parametrize("name", ["sgd", "sgd with momentum", "adam"])
def test_half_precision_goes_through_the_master_copy(name):
    weight = mx.nd.ones((4, 2), dtype="float16")
    updater = mx.optimizer.get_updater(OPTIMIZERS[name](multi_precision=True))
    grad = mx.nd.sparse.row_sparse_array((np.ones((1, 2), "float16"), [3]), shape=(4, 2))
    updater(0, grad, weight)
    assert weight.dtype == np.float16
    assert (weight.asnumpy()[:3] == 1).all() and (weight.asnumpy()[3] < 1).all()


def test_a_gradient_without_rows_changes_nothing():
    for make in OPTIMIZERS.values():
        weight = mx.nd.ones((3, 2))
        mx.optimizer.get_updater(make())(0, mx.nd.zeros((3, 2), stype="row_sparse"), weight)
        assert (weight.asnumpy() == 1).all()


def trained(sparse, optimizer, settings):
    mx.random.seed(3)
    net = nn.Sequential()
    net.add(nn.Embedding(30, 4, sparse_grad=sparse), nn.Dense(2, flatten=True))
    net.initialize(mx.init.Uniform(0.5))
    trainer = gluon.Trainer(net.collect_params(), optimizer, settings)
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    generator = np.random.default_rng(0)
    for _ in range(4):
        data, label = generator.integers(0, 30, (5, 3)), generator.integers(0, 2, 5)
        with autograd.record():
            loss = loss_fn(net(mx.nd.array(data)), mx.nd.array(label))
        loss.backward()
        trainer.step(5)
    return net


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad"])
def test_networks_train_alike_with_sparse_and_dense_gradients(optimizer):
    sparse, dense = (trained(s, optimizer, {"learning_rate": 0.5}) for s in (True, False))
    assert sparse[0].weight.grad().stype == "row_sparse" and dense[0].weight.grad().stype == "default"
    for ours, theirs in zip(sparse.collect_params().values(), dense.collect_params().values(), strict=True):
        np.testing.assert_allclose(ours.data().asnumpy(), theirs.data().asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_row_sparse_parameters_train_through_the_rows_of_a_batch(optimizer):
    weight = gluon.Parameter("weight", shape=(12, 2), stype="row_sparse", grad_stype="row_sparse")
    weight.initialize(mx.init.One())
    with pytest.raises(RuntimeError, match="Trainer"):
        weight.row_sparse_data(mx.nd.array([1]))
    trainer = gluon.Trainer([weight], optimizer, {"learning_rate": 1.0})
    with pytest.raises(RuntimeError, match="row_sparse_data"):
        weight.data()
    features = mx.nd.sparse.csr_matrix(([1.0, 1.0], [4, 9], [0, 1, 2]), shape=(2, 12))
    with autograd.record():
        rows = weight.row_sparse_data(features.indices)
        loss = mx.nd.dot(features, rows).sum()
    loss.backward()
    assert rows.indices.asnumpy().tolist() == [4, 9]
    assert weight.grad().indices.asnumpy().tolist() == [4, 9]
    trainer.step(1)
    values = weight.row_sparse_data(mx.nd.arange(12)).asnumpy()
    np.testing.assert_allclose(values[[4, 9]], 0, atol=1e-5)
    assert (np.delete(values, [4, 9], axis=0) == 1).all()


def test_stale_gradients_and_clipping_work_on_rows():
    net = nn.Embedding(6, 2, sparse_grad=True)
    net.initialize(mx.init.One())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    with autograd.record():
        loss = net(mx.nd.array([1, 1])).sum()
    loss.backward()
    gluon.utils.clip_global_norm([net.weight.grad()], 1.0)
    assert net.weight.grad().stype == "row_sparse"
    np.testing.assert_allclose(np.linalg.norm(net.weight.grad().asnumpy()), 1.0, rtol=1e-4)
    trainer.step(1)
    with pytest.raises(UserWarning, match="has not been updated"):
        trainer.step(1)
    net.weight.zero_grad()
    assert net.weight.grad().data.size == 0


def test_stores_pull_rows_and_update_by_rows():
    store = mx.kv.create("local")
    store.init("w", mx.nd.ones((8, 2)).tostype("row_sparse"))
    out = mx.nd.zeros((8, 2), stype="row_sparse")
    store.row_sparse_pull("w", out=out, row_ids=mx.nd.array([6, 1, 6]))
    assert out.indices.asnumpy().tolist() == [1, 6]
    assert (out.data.asnumpy() == 1).all()
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
    grad = mx.nd.sparse.row_sparse_array(([[1.0, 1.0]], [6]), shape=(8, 2))
    store.push("w", [grad, grad])
    store.row_sparse_pull("w", out=out, row_ids=mx.nd.array([5, 6]))
    assert out.asnumpy()[:, 0].tolist() == [0, 0, 0, 0, 0, 1, -1, 0]
    everything = mx.nd.zeros((8, 2))
    store.pull("w", out=everything, ignore_sparse=False)
    assert everything.asnumpy()[:, 0].tolist() == [1, 1, 1, 1, 1, 1, -1, 1]


def test_a_step_costs_only_its_rows():
    """A training step on ten rows of a table of a million takes no memory of a second table."""
    gc.collect()
    others = mx._core.memory_statistics(1, 0)["in_use"]
    net = nn.Embedding(1_000_000, 16, sparse_grad=True)
    net.initialize(mx.init.Zero())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})

    def step():
        with autograd.record():
            loss = net(mx.nd.arange(10)).sum()
        loss.backward()
        trainer.step(1)
        mx.nd.waitall()

    step()
    statistics = mx._core.memory_statistics(1, 0)
    before = statistics["peak_in_use"] - statistics["in_use"]
    for _ in range(3):
        step()
    statistics = mx._core.memory_statistics(1, 0)
    assert statistics["in_use"] - others < 1.5 * 1_000_000 * 16 * 4
    assert statistics["peak_in_use"] - statistics["in_use"] <= before + 1_000_000
