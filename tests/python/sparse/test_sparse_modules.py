"""Module over csr batches and row_sparse weights: linear classification and a factorization machine."""

from __future__ import annotations

import gc
import time
import warnings

import hybridnet as mx
import numpy as np
import pytest

ROWS, COLUMNS, PER_ROW = 1000, 1_000_000, 10


@pytest.fixture(autouse=True)
def no_fallback():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*dense copies")
        yield


def linear(columns, classes=2):
    x = mx.sym.var("data", stype="csr")
    weight = mx.sym.var("weight", shape=(columns, classes), stype="row_sparse", init=mx.init.Normal(0.1))
    bias = mx.sym.var("bias", shape=(classes,))
    scores = mx.sym.broadcast_add(mx.sym.sparse.dot(x, weight), bias)
    return mx.sym.SoftmaxOutput(scores, mx.sym.var("softmax_label"), name="softmax")


def factorization_machine(columns, factors=4):
    x = mx.sym.var("data", stype="csr")
    v = mx.sym.var("v", shape=(columns, factors), stype="row_sparse", init=mx.init.Normal(0.1))
    w = mx.sym.var("w", shape=(columns, 1), stype="row_sparse", init=mx.init.Normal(0.1))
    bias = mx.sym.var("bias", shape=(1,))
    first = mx.sym.broadcast_add(mx.sym.sparse.dot(x, w), bias)
    rows = mx.sym._internal._square_sum(v, axis=1, keepdims=True)
    squares = mx.sym.sparse.dot(mx.sym.sparse.square(x), rows)
    products = mx.sym.sum(mx.sym.square(mx.sym.sparse.dot(x, v)), axis=1, keepdims=True)
    score = first + 0.5 * (products - squares)
    return mx.sym.LogisticRegressionOutput(score, mx.sym.var("softmax_label"), name="machine")


def csr_batch(rng, rows, columns, per_row):
    indices = np.stack([np.sort(rng.choice(columns, per_row, replace=False)) for _ in range(rows)])
    values = rng.standard_normal(rows * per_row).astype("float32")
    return mx.nd.sparse.csr_matrix((values, indices.ravel(), np.arange(rows + 1) * per_row), shape=(rows, columns))


def bound(symbol, rows, columns, label_shape, optimizer="sgd", **settings):
    module = mx.mod.Module(symbol)
    module.bind([("data", (rows, columns))], [("softmax_label", label_shape)])
    module.init_params(mx.init.Zero())
    module.init_optimizer(optimizer=optimizer, optimizer_params=settings)
    return module


def step(module, x, label):
    module.forward(mx.io.DataBatch([x], [label]), is_train=True)
    module.backward()
    module.update()


def test_weights_of_products_with_csr_have_row_sparse_gradients():
    executor = linear(20).simple_bind(mx.cpu(), data=(3, 20), softmax_label=(3,), grad_req="write")
    assert executor.arg_dict["data"].stype == "csr"
    assert executor.arg_dict["weight"].stype == "row_sparse"
    assert executor.grad_dict["weight"].stype == "row_sparse"
    assert executor.grad_dict["bias"].stype == "default"
    machine = factorization_machine(20).simple_bind(mx.cpu(), data=(3, 20), softmax_label=(3, 1))
    assert [machine.grad_dict[name].stype for name in ("v", "w", "bias")] == ["row_sparse", "row_sparse", "default"]
    x, w = mx.sym.var("x", stype="csr"), mx.sym.var("w")
    used_as_a_whole = mx.sym.broadcast_add(mx.sym.dot(x, w), mx.sym.sum(w)).simple_bind(mx.cpu(), x=(3, 4), w=(4, 2))
    assert used_as_a_whole.grad_dict["w"].stype == "default"


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_linear_classification_learns_like_numpy_and_dense_modules(optimizer, rng):
    rows, columns = 8, 12
    features = (rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < 0.4)).astype("float32")
    labels = rng.integers(0, 2, rows)
    module = bound(linear(columns), rows, columns, (rows,), optimizer, learning_rate=0.1, wd=0.0, rescale_grad=1.0)
    weight = module.get_params()[0]["weight"].asnumpy().astype("float64")
    bias = np.zeros(2)
    x = mx.nd.array(features).tostype("csr")
    for _ in range(3):
        step(module, x, mx.nd.array(labels))
        scores = features @ weight + bias
        p = np.exp(scores - scores.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        np.testing.assert_allclose(module.get_outputs()[0].asnumpy(), p, rtol=1e-4)
        head = p - np.eye(2)[labels]
        if optimizer == "sgd":
            weight -= 0.1 * features.T @ head
            bias -= 0.1 * head.sum(0)
            found = module.get_params()[0]
            np.testing.assert_allclose(found["weight"].asnumpy(), weight, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(found["bias"].asnumpy(), bias, rtol=1e-4, atol=1e-5)
        else:
            weight, bias = (module.get_params()[0][name].asnumpy().astype("float64") for name in ("weight", "bias"))


def test_factorization_machines_have_the_gradients_of_float64(rng):
    rows, columns = 6, 10
    features = (rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < 0.4)).astype("float32")
    labels = rng.integers(0, 2, (rows, 1))
    module = bound(
        factorization_machine(columns), rows, columns, (rows, 1), learning_rate=1.0, wd=0.0, rescale_grad=1.0
    )
    before = {name: value.asnumpy().astype("float64") for name, value in module.get_params()[0].items()}
    step(module, mx.nd.array(features).tostype("csr"), mx.nd.array(labels))
    x, v, w = features.astype("float64"), before["v"], before["w"]
    score = (
        x @ w + before["bias"] + 0.5 * (((x @ v) ** 2).sum(1, keepdims=True) - (x**2) @ (v**2).sum(1, keepdims=True))
    )
    head = 1 / (1 + np.exp(-score)) - labels
    np.testing.assert_allclose(module.get_outputs()[0].asnumpy(), head + labels, rtol=1e-4)
    after = module.get_params()[0]
    np.testing.assert_allclose(after["w"].asnumpy(), w - x.T @ head, rtol=1e-4, atol=1e-5)
    gradient = x.T @ (head * (x @ v)) - v * ((x**2).T @ head)
    np.testing.assert_allclose(after["v"].asnumpy(), v - gradient, rtol=1e-4, atol=1e-5)


# The second term of a factorization machine sums the squares of each row of v: one number per column.
@pytest.mark.parametrize(
    ("make", "label_shape", "megabytes"), [(linear, (ROWS,), 1), (factorization_machine, (ROWS, 1), 5)]
)
def test_a_step_of_a_module_costs_only_stored_values(make, label_shape, megabytes, rng):
    gc.collect()
    module = bound(make(COLUMNS), ROWS, COLUMNS, label_shape, learning_rate=0.1)
    batches = [csr_batch(rng, ROWS, COLUMNS, PER_ROW) for _ in range(3)]
    label = mx.nd.zeros(label_shape)
    step(module, batches[0], label)
    mx.nd.waitall()
    mx._core.reset_peak_memory(1, 0)
    before = mx._core.memory_statistics(1, 0)["in_use"]
    begin = time.perf_counter()
    for batch in batches[1:]:
        step(module, batch, label)
    mx.nd.waitall()
    seconds = (time.perf_counter() - begin) / 2
    peak = mx._core.memory_statistics(1, 0)["peak_in_use"] - before
    assert peak < megabytes << 20  # the batch stores 10 000 values; as a dense array it would take 4 GB
    assert seconds < 1
    assert (
        module._exec_group.execs[0].grad_dict[module._param_names[0] if make is linear else "v"].stype == "row_sparse"
    )


@pytest.mark.parametrize("make", [linear, factorization_machine])
def test_rows_that_are_pulled_per_batch_train_like_whole_tables(make, rng):
    rows, columns = 6, 40
    label_shape = (rows,) if make is linear else (rows, 1)
    batches = [csr_batch(rng, rows, columns, 3) for _ in range(3)]
    label = mx.nd.array(rng.integers(0, 2, label_shape))
    tables = ["weight"] if make is linear else ["v", "w"]
    modules = []
    for by_rows in (False, True):
        module = mx.mod.Module(make(columns))
        module.bind([("data", (rows, columns))], [("softmax_label", label_shape)])
        mx.random.seed(5)
        module.init_params(mx.init.Zero())
        module.init_optimizer(kvstore=mx.kv.create("local"), optimizer="sgd", optimizer_params={"learning_rate": 0.5})
        for batch in batches:
            rows_of = (lambda b: dict.fromkeys(tables, b.data[0].indices)) if by_rows else None
            module.prepare(mx.io.DataBatch([batch], [label]), rows_of)
            step(module, batch, label)
            held = module._exec_group.execs[0].arg_dict[tables[0]].indices.shape[0]
            assert held == (len(np.unique(batch.indices.asnumpy())) if by_rows else columns)
        modules.append(module)
    whole, parts = (module.get_params()[0] for module in modules)
    for name, value in whole.items():
        np.testing.assert_allclose(parts[name].asnumpy(), value.asnumpy(), rtol=1e-5, atol=1e-6)
    modules[1].prepare(None, lambda _: dict.fromkeys(tables, batches[0].indices))
    modules[1].prepare(mx.io.DataBatch([batches[0]]))
    assert modules[1]._exec_group.execs[0].arg_dict[tables[0]].indices.shape == (columns,)


def wide_and_deep(columns, sparse=True):
    """Returns a linear model of csr features plus a network over embedding rows and dense features."""
    stype = "row_sparse" if sparse else "default"
    wide = mx.sym.sparse.dot(
        mx.sym.var("features", stype="csr" if sparse else "default"),
        mx.sym.var("wide_weight", shape=(columns, 2), stype=stype),
    )
    ids = mx.sym.split(mx.sym.slice_axis(mx.sym.var("dense"), axis=1, begin=0, end=2), num_outputs=2, squeeze_axis=1)
    parts = [mx.sym.slice_axis(mx.sym.var("dense"), axis=1, begin=2, end=None)]
    for number in range(2):
        table = mx.sym.var(f"table{number}_weight", stype=stype)
        parts.append(mx.sym.Embedding(ids[number], table, input_dim=20, output_dim=3, sparse_grad=sparse))
    hidden = mx.sym.Activation(
        mx.sym.FullyConnected(mx.sym.concat(*parts, dim=1), num_hidden=5, name="first"), act_type="relu"
    )
    deep = mx.sym.FullyConnected(hidden, num_hidden=2, name="second")
    return mx.sym.SoftmaxOutput(wide + deep, mx.sym.var("softmax_label"), name="model")


@pytest.mark.parametrize("kvstore", [None, "store"])
def test_wide_and_deep_models_train_like_dense_ones(kvstore, rng):
    rows, columns = 8, 30
    x = csr_batch(rng, rows, columns, 4)
    dense = mx.nd.array(np.concatenate([rng.integers(0, 20, (rows, 2)), rng.standard_normal((rows, 3))], axis=1))
    label = mx.nd.array(rng.integers(0, 2, rows))
    trained = []
    for sparse in (True, False):
        module = mx.mod.Module(wide_and_deep(columns, sparse), data_names=["features", "dense"])
        module.bind([("features", x.shape), ("dense", dense.shape)], [("softmax_label", label.shape)])
        start = trained[0][0] if trained else None
        module.init_params(mx.init.Uniform(0.5), arg_params=start)
        before = {name: value.tostype("default").copy() for name, value in module.get_params()[0].items()}
        store = mx.kv.create("local") if kvstore else None
        module.init_optimizer(kvstore=store, optimizer="sgd", optimizer_params={"learning_rate": 0.3})
        rows_of = {"wide_weight": x.indices, "table0_weight": dense[:, 0], "table1_weight": dense[:, 1]}
        for _ in range(3):
            if sparse:
                module.prepare(None, lambda _, rows_of=rows_of: rows_of)
            module.forward(mx.io.DataBatch([x, dense], [label]), is_train=True)
            module.backward()
            module.update()
        grads = module._exec_group.execs[0].grad_dict
        assert {grads[name].stype for name in rows_of} == {"row_sparse" if sparse else "default"}
        trained.append((before, {name: value.asnumpy() for name, value in module.get_params()[0].items()}))
    for name, value in trained[1][1].items():
        np.testing.assert_allclose(trained[0][1][name], value, rtol=1e-4, atol=1e-5)


def test_prediction_and_fit_take_csr_batches(rng):
    rows, columns = 40, 30
    features = (rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < 0.3)).astype("float32")
    labels = (features.sum(1) > 0).astype("float32")
    data = mx.io.NDArrayIter(mx.nd.array(features).tostype("csr"), labels, batch_size=8, last_batch_handle="discard")
    module = mx.mod.Module(linear(columns))
    module.fit(data, num_epoch=30, optimizer="adam", optimizer_params={"learning_rate": 0.05}, eval_metric="acc")
    data.reset()
    assert module.score(data, "acc")[0][1] > 0.95
    data.reset()
    assert module.predict(data).shape == (rows, 2)
