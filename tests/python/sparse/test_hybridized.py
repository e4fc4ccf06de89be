"""Hybridized blocks and executors return gradients of tables in row_sparse storage."""

from __future__ import annotations

import gc

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from hybridnet.gluon import nn


class TwoLookups(gluon.HybridBlock):
    """Looks up rows of one table twice."""

    def __init__(self, rows):
        super().__init__()
        with self.name_scope():
            self.table = nn.Embedding(rows, 3, sparse_grad=True)
            self.out = nn.Dense(2, flatten=False)

    def hybrid_forward(self, F, left, right):
        return self.out(self.table(left) * self.table(right))


def gradients(net, *arrays):
    with autograd.record():
        loss = (net(*arrays) ** 2).sum()
    loss.backward()
    return {name: param.grad() for name, param in net.collect_params().items()}


@pytest.mark.parametrize("static_alloc", [False, True])
def test_gradients_by_rows_are_those_of_the_imperative_block(static_alloc, rng):
    net = TwoLookups(1000)
    net.initialize(mx.init.Uniform(1))
    arrays = [mx.nd.array(rng.integers(0, 1000, (4, 2))) for _ in range(2)]
    expected = {name: grad.asnumpy() for name, grad in gradients(net, *arrays).items()}
    net.hybridize(static_alloc=static_alloc)
    for _ in range(2):
        found = gradients(net, *arrays)
        for name, grad in found.items():
            np.testing.assert_allclose(grad.asnumpy(), expected[name], rtol=1e-5, atol=1e-6)
    table = found[net.table.weight.name]
    used = np.unique(np.concatenate([a.asnumpy().ravel() for a in arrays]))
    assert table.stype == "row_sparse"
    assert table.indices.asnumpy().tolist() == used.tolist()


def test_other_batch_sizes_run_the_same_graph(rng):
    net = nn.HybridSequential()
    net.add(nn.Embedding(500, 4, sparse_grad=True), nn.Dense(2))
    net.initialize(mx.init.Uniform(1))
    net.hybridize()
    for size in (3, 5, 7, 5):
        ids = rng.integers(0, 500, (size, 2))
        grads = gradients(net, mx.nd.array(ids))
        assert grads[net[0].weight.name].indices.asnumpy().tolist() == np.unique(ids).tolist()


def test_a_table_that_is_read_as_a_whole_has_a_dense_gradient():
    class Tied(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.weight = self.params.get("weight", shape=(6, 2), init="ones", grad_stype="row_sparse")

        def hybrid_forward(self, F, x, weight):
            return F.dot(F.take(weight, x), weight, transpose_b=True)

    net = Tied()
    net.initialize()
    expected = gradients(net, mx.nd.array([1, 2]))[net.weight.name].asnumpy()
    net.hybridize()
    np.testing.assert_allclose(gradients(net, mx.nd.array([1, 2]))[net.weight.name].asnumpy(), expected)


def test_gradients_are_added_to_rows():
    net = nn.Embedding(9, 2, sparse_grad=True)
    net.initialize(mx.init.One())
    net.weight.grad_req = "add"
    net.hybridize()
    for ids in ([1, 2], [2, 5]):
        gradients(net, mx.nd.array(ids))
    assert net.weight.grad().indices.asnumpy().tolist() == [1, 2, 5]
    assert net.weight.grad().data.asnumpy()[:, 0].tolist() == [2, 4, 2]


def test_a_hybridized_step_costs_only_its_rows():
    gc.collect()
    before = mx._core.memory_statistics(1, 0)["in_use"]
    net = nn.HybridSequential()
    net.add(nn.Embedding(1_000_000, 16, sparse_grad=True), nn.Dense(4))
    net.initialize(mx.init.Zero())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    table = 1_000_000 * 16 * 4
    for _ in range(3):
        gradients(net, mx.nd.array([[1, 2, 3]]))
        trainer.step(1)
    mx.nd.waitall()
    assert mx._core.memory_statistics(1, 0)["in_use"] - before < 1.5 * table


def test_executors_fill_row_sparse_gradients(rng):
    x, weight = mx.sym.var("x"), mx.sym.var("weight")
    symbol = mx.sym.Embedding(x, weight, input_dim=30, output_dim=2)
    arrays = {"x": mx.nd.array([3, 8, 3]), "weight": mx.nd.array(rng.random((30, 2)))}
    grads = {"weight": mx.nd.zeros((30, 2), stype="row_sparse")}
    executor = symbol.bind(mx.cpu(), arrays, args_grad=grads, grad_req={"x": "null", "weight": "write"})
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((3, 2)))
    assert grads["weight"].stype == "row_sparse"
    assert grads["weight"].indices.asnumpy().tolist() == [3, 8]
    assert grads["weight"].data.asnumpy()[:, 0].tolist() == [2, 1]


@pytest.mark.parametrize("sparse_grad", [True, False])
def test_simple_bind_allocates_gradients_of_sparse_embeddings_by_rows(sparse_grad):
    weight = mx.sym.var("weight")
    rows = mx.sym.Embedding(mx.sym.var("x"), weight, input_dim=30, output_dim=2, sparse_grad=sparse_grad)
    executor = rows.simple_bind(mx.cpu(), grad_req={"x": "null", "weight": "write"}, x=(3,))
    executor.forward(is_train=True, x=mx.nd.array([3, 8, 3]))
    executor.backward(mx.nd.ones((3, 2)))
    gradient = executor.grad_dict["weight"]
    assert gradient.stype == ("row_sparse" if sparse_grad else "default")
    assert gradient.asnumpy()[[3, 8]].tolist() == [[2, 2], [1, 1]]
    tied = mx.sym.broadcast_add(rows, mx.sym.sum(weight))
    assert tied.simple_bind(mx.cpu(), x=(3,)).grad_dict["weight"].stype == "default"


def test_simple_bind_allocates_the_storage_that_variables_declare():
    double = mx.sym.var("x", stype="row_sparse") * mx.sym.var("y")
    bound = double.simple_bind(mx.cpu(), x=(3, 2), y=(3, 2), stype_dict={"y": "csr"}).arg_dict
    assert [bound[name].stype for name in "xy"] == ["row_sparse", "csr"]


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_sparse_gradients_arrive_at_executors(stype):
    executor = (mx.sym.var("x") * 3).simple_bind(mx.cpu(), x=(2, 2))
    executor.forward(is_train=True, x=mx.nd.ones((2, 2)))
    executor.backward([mx.nd.array([[0, 1], [0, 2]]).tostype(stype)])
    assert executor.grad_dict["x"].asnumpy().tolist() == [[0, 3], [0, 6]]


def test_executors_read_sparse_arguments(rng):
    values = rng.random((4, 3)) * (rng.random((4, 3)) < 0.5)
    symbol = mx.sym.dot(mx.sym.var("x", stype="csr"), mx.sym.var("w"))
    executor = symbol.bind(mx.cpu(), {"x": mx.nd.array(values).tostype("csr"), "w": mx.nd.ones((3, 2))})
    (out,) = executor.forward()
    np.testing.assert_allclose(out.asnumpy(), values @ np.ones((3, 2)), rtol=1e-6)


def test_blocks_called_with_sparse_arrays_keep_them_sparse(rng):
    class Linear(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.weight = self.params.get("weight", shape=(50, 2), init="ones", grad_stype="row_sparse")

        def hybrid_forward(self, F, x, weight):
            return F.dot(x, weight)

    net = Linear()
    net.initialize()
    net.hybridize()
    features = mx.nd.sparse.csr_matrix(([1.0, 2.0], [3, 40], [0, 1, 2]), shape=(2, 50))
    grads = gradients(net, features)
    assert grads[net.weight.name].indices.asnumpy().tolist() == [3, 40]
    np.testing.assert_allclose(net(features).asnumpy(), [[1, 1], [2, 2]])
    np.testing.assert_allclose(net(features.tostype("default")).asnumpy(), [[1, 1], [2, 2]])
