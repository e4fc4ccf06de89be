"""Graphs over sparse arrays: hybridized blocks and executors keep the storage that imperative calls keep."""

from __future__ import annotations

import gc
import warnings

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from hybridnet.gluon import nn

ROWS, COLUMNS = 6, 9


def drawn(rng, shape=(ROWS, COLUMNS), density=0.4):
    return (rng.standard_normal(shape) * (rng.random(shape) < density)).astype("float32")


@pytest.fixture
def no_fallback():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*dense copies")
        yield


# Each chain reads x (ROWS, COLUMNS) in some storage and w (COLUMNS, 4).
CHAINS = {
    "relu, scaled, product": lambda F, x, w: F.dot(F.relu(x) * 2, w),
    "product, dense layers": lambda F, x, w: F.tanh(F.dot(F.square(x), w)) * 3 + 1,
    "two uses": lambda F, x, w: F.broadcast_add(F.dot(x, w), F.sum(F.sin(x), axis=1, keepdims=True)),
    "values between layers": lambda F, x, w: F.dot(
        F.broadcast_mul(x, F.softmax(F.dot(x, w)).sum(axis=1, keepdims=True)), w
    ),
    "sparse results": lambda F, x, w: F.broadcast_mul(F.expm1(F.clip(x, -1, 1)), F.sum(w)),
    "dense copies": lambda F, x, w: F.dot(F.exp(x), F.cos(w)),
}
PAIRS = [("csr", "default"), ("csr", "row_sparse"), ("row_sparse", "default"), ("default", "row_sparse")]


class Chain(gluon.HybridBlock):
    def __init__(self, chain):
        super().__init__()
        self.chain = chain

    def hybrid_forward(self, F, x, w):
        return self.chain(F, x, w)


def run_block(net, x, w, wants, train, head):
    """Returns the output, and the gradients that `wants` names, of one call."""
    arrays = {"x": x, "w": w}
    for name, stype in wants.items():
        arrays[name].attach_grad(stype=stype)
    with autograd.record(train_mode=train) if wants else autograd.predict_mode():
        out = net(x, w)
    if wants:
        out.backward(head)
    return [out, *(arrays[name].grad for name in wants)]


@pytest.mark.filterwarnings("ignore:.*dense copies")
@pytest.mark.parametrize("static_alloc", [False, True])
@pytest.mark.parametrize("wants", [{}, {"w": None}, {"w": "row_sparse"}, {"x": "row_sparse", "w": None}], ids=str)
@pytest.mark.parametrize("stypes", PAIRS, ids="-".join)
@pytest.mark.parametrize("chain", CHAINS)
def test_hybridized_blocks_equal_imperative_calls_in_values_and_storage(chain, stypes, wants, static_alloc, rng):
    values = [drawn(rng), drawn(rng, (COLUMNS, 4), 0.7)]
    net = Chain(CHAINS[chain])
    head = mx.nd.array(rng.standard_normal(net(*map(mx.nd.array, values)).shape))

    def results(train):
        x, w = (mx.nd.array(value).tostype(stype) for value, stype in zip(values, stypes, strict=True))
        return run_block(net, x, w, wants, train, head)

    expected = [results(train) for train in (False, True)]
    net.hybridize(static_alloc=static_alloc)
    for _ in range(2):
        for train, wanted in zip((False, True), expected, strict=True):
            for a, b in zip(results(train), wanted, strict=True):
                assert a.stype == b.stype
                np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*dense copies")
@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("grad_req", ["write", "add"])
@pytest.mark.parametrize("grad_stype", ["default", "row_sparse"])
@pytest.mark.parametrize("stypes", PAIRS, ids="-".join)
@pytest.mark.parametrize("chain", CHAINS)
def test_executors_equal_imperative_calls_in_values_and_storage(chain, stypes, grad_stype, grad_req, train, rng):
    values = {"x": drawn(rng), "w": drawn(rng, (COLUMNS, 4), 0.7)}
    stype_of = dict(zip("xw", stypes, strict=True))

    def bound():
        return {name: mx.nd.array(value).tostype(stype_of[name]) for name, value in values.items()}

    arrays, copies = bound(), bound()
    for array in copies.values():
        array.attach_grad()
    with autograd.record(train_mode=train):
        wanted = CHAINS[chain](mx.nd, copies["x"], copies["w"])
    head = mx.nd.array(rng.standard_normal(wanted.shape))
    wanted.backward(head)

    symbol = CHAINS[chain](mx.sym, mx.sym.var("x"), mx.sym.var("w"))
    grads = {name: mx.nd.ones(array.shape).tostype(grad_stype) for name, array in arrays.items()}
    executor = symbol.bind(mx.cpu(), arrays, args_grad=grads, grad_req=grad_req)
    for repeat in range(1, 3):
        (out,) = executor.forward(is_train=train)
        assert out.stype == wanted.stype
        np.testing.assert_allclose(out.asnumpy(), wanted.asnumpy(), rtol=1e-5, atol=1e-5)
        executor.backward(head)
        for name, grad in grads.items():
            once = copies[name].grad.asnumpy()
            expected = 1 + repeat * once if grad_req == "add" else once
            assert grad.stype == grad_stype
            np.testing.assert_allclose(grad.asnumpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*dense copies")
@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_outputs_of_executors_are_stored_as_imperative_results(rng, stype, train):
    values = drawn(rng, (5, 3))
    x, y = mx.sym.var("x"), mx.sym.var("y")
    symbol = mx.sym.Group([mx.sym.relu(x) * 2, mx.sym.maximum(x, y), mx.sym.exp(x)])
    arrays = {"x": mx.nd.array(values).tostype(stype), "y": mx.nd.array(-values).tostype(stype)}
    grads = {name: mx.nd.zeros((5, 3), stype=stype) for name in arrays}
    executor = symbol.bind(mx.cpu(), arrays, args_grad=grads)
    outputs = executor.forward(is_train=train)
    assert [output.stype for output in outputs] == [stype, stype, "default"]
    for found, expected in zip(outputs, [np.maximum(values, 0) * 2, np.abs(values), np.exp(values)], strict=True):
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-6)
    executor.backward([mx.nd.ones((5, 3)).tostype(stype), mx.nd.zeros((5, 3)), mx.nd.ones((5, 3))])
    assert grads["x"].stype == stype
    np.testing.assert_allclose(grads["x"].asnumpy(), 2 * (values > 0) + np.exp(values), rtol=1e-6)


def test_the_product_with_csr_reaches_a_row_sparse_gradient_through_layers(rng, no_fallback):
    features = drawn(rng)
    weight = rng.standard_normal((COLUMNS, 4))
    x, w = mx.sym.var("x", stype="csr"), mx.sym.var("w", stype="row_sparse")
    symbol = mx.sym.sigmoid(mx.sym.dot(x, w)) * 2
    arrays = {"x": mx.nd.array(features).tostype("csr"), "w": mx.nd.array(weight).tostype("row_sparse")}
    grads = {"w": mx.nd.zeros(weight.shape, stype="row_sparse")}
    executor = symbol.bind(mx.cpu(), arrays, args_grad=grads, grad_req={"x": "null", "w": "write"})
    head = rng.standard_normal((ROWS, 4))
    (out,) = executor.forward(is_train=True)
    executor.backward(mx.nd.array(head))
    s = 1 / (1 + np.exp(-features.astype("float64") @ weight))
    np.testing.assert_allclose(out.asnumpy(), 2 * s, rtol=1e-5)
    np.testing.assert_allclose(grads["w"].asnumpy(), features.T @ (head * 2 * s * (1 - s)), rtol=1e-4, atol=1e-5)
    assert grads["w"].indices.asnumpy().tolist() == np.flatnonzero(features.any(0)).tolist()


def test_forward_reads_changed_arguments_and_backward_the_values_of_forward(rng, no_fallback):
    first, second, weight = drawn(rng), drawn(rng), rng.standard_normal((COLUMNS, 2))
    arrays = {"x": mx.nd.array(first).tostype("csr"), "w": mx.nd.array(weight)}
    grads = {"w": mx.nd.zeros(weight.shape)}
    executor = mx.sym.dot(mx.sym.var("x"), mx.sym.var("w")).bind(
        mx.cpu(), arrays, args_grad=grads, grad_req={"x": "null", "w": "write"}
    )
    executor.forward(is_train=True)
    arrays["x"][:] = mx.nd.array(second).tostype("csr")
    executor.backward(mx.nd.ones((ROWS, 2)))
    np.testing.assert_allclose(grads["w"].asnumpy(), first.T @ np.ones((ROWS, 2)), rtol=1e-5, atol=1e-6)
    (out,) = executor.forward(is_train=True)
    np.testing.assert_allclose(out.asnumpy(), second @ weight, rtol=1e-4, atol=1e-5)


def test_a_change_of_storage_makes_a_graph_sparse(rng, no_fallback):
    values = drawn(rng)
    symbol = mx.sym.cast_storage(mx.sym.relu(mx.sym.var("x")), stype="csr")
    executor = symbol.bind(mx.cpu(), {"x": mx.nd.array(values)}, args_grad={"x": mx.nd.zeros(values.shape)})
    (out,) = executor.forward(is_train=True)
    assert out.stype == "csr"
    np.testing.assert_allclose(out.asnumpy(), np.maximum(values, 0))
    executor.backward(mx.nd.ones(values.shape))
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), values > 0)


def test_the_second_call_does_not_cut_again(rng, no_fallback):
    net = Chain(CHAINS["product, dense layers"])
    net.hybridize()
    w = mx.nd.array(rng.standard_normal((COLUMNS, 4)))
    x = mx.nd.array(drawn(rng)).tostype("csr")
    dense = x.tostype("default")
    seen = set()
    for _ in range(3):
        net(x, w)
        net(dense, w)
        op = net._last_graph.op
        seen.add((op, op.num_plans, op.num_linked, op.num_layouts, op.num_rewritten))
    assert len(seen) == 1
    text = op.summary()
    assert text.count("for inputs in storages (csr, default)") == 1
    assert text.count("cut at dot") == 1
    assert text.count("cut at square") == 1
    assert text.count("segment 0: 1 inputs, 1 outputs") == 1


def test_graphs_name_the_operator_that_reads_dense_copies_once():
    class Uncommon(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.softmin(F.relu(x)) + 1

    net = nn.HybridSequential()
    net.add(Uncommon())
    net.hybridize()
    x = mx.nd.ones((2, 2)).tostype("csr")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        net(x)
        net(x)
    messages = [str(w.message) for w in told if "dense copies" in str(w.message)]
    assert len(messages) == 1
    assert "operator 'softmin' (node '" in messages[0]
    assert "block '" in messages[0]
    assert "storage csr" in messages[0]
    assert "tostype('default')" in messages[0]


@pytest.mark.filterwarnings("ignore:.*dense copies")
def test_loops_and_branches_read_dense_copies(rng):
    class Loop(gluon.HybridBlock):
        def hybrid_forward(self, F, x, w):
            rows, _ = F.contrib.foreach(lambda row, states: (row * 2, states), x, [])
            return F.contrib.cond(F.sum(x) > 0, lambda: rows + F.dot(x, w), lambda: rows - F.dot(x, w))

    values, weight = drawn(rng), rng.standard_normal((COLUMNS, COLUMNS)).astype("float32")
    net = Loop()
    net.hybridize()
    out = net(mx.nd.array(values).tostype("csr"), mx.nd.array(weight))
    sign = 1 if values.sum() > 0 else -1
    np.testing.assert_allclose(out.asnumpy(), values * 2 + sign * (values @ weight), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*dense copies")
def test_sizes_known_at_run_time_and_custom_operators_work_beside_sparse_values(rng):
    class Thrice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 3)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 3)

    class Thrices(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Thrice()

    mx.operator.register("thrice_of_sparse")(Thrices)

    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x, w, mask):
            thrice = F.Custom(F.relu(x), op_type="thrice_of_sparse")
            return F.contrib.boolean_mask(F.dot(F.square(x), w), mask), F.broadcast_mul(x, F.sum(thrice))

    values, weight = drawn(rng), rng.standard_normal((COLUMNS, 2)).astype("float32")
    mask = np.array([1, 0, 1, 1, 0, 0], "float32")
    net = Net()
    net.hybridize()
    for _ in range(2):
        x, w = mx.nd.array(values).tostype("csr"), mx.nd.array(weight)
        w.attach_grad(stype="row_sparse")
        with autograd.record():
            chosen, scaled = net(x, w, mx.nd.array(mask))
            loss = chosen.sum()
        loss.backward()
        np.testing.assert_allclose(chosen.asnumpy(), ((values**2) @ weight)[mask > 0], rtol=1e-4, atol=1e-5)
        assert scaled.stype == "csr"
        np.testing.assert_allclose(scaled.asnumpy(), values * 3 * np.maximum(values, 0).sum(), rtol=1e-4, atol=1e-5)
        assert w.grad.stype == "row_sparse"
        np.testing.assert_allclose(w.grad.asnumpy(), (values**2).T @ np.stack([mask, mask], 1), rtol=1e-4, atol=1e-5)


def test_deferred_shapes_are_found_from_sparse_arguments(rng, no_fallback):
    class Linear(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.weight = self.params.get("weight", shape=(COLUMNS, 5), grad_stype="row_sparse")
            self.out = nn.Dense(2)

        def hybrid_forward(self, F, x, weight):
            return self.out(F.dot(x, weight))

    net = Linear()
    net.initialize(mx.init.Uniform(1))
    net.hybridize(static_alloc=True)
    x = mx.nd.array(drawn(rng)).tostype("csr")
    for _ in range(2):
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
    assert net.out.weight.shape == (2, 5)
    assert net.weight.grad().stype == "row_sparse"
    np.testing.assert_allclose(net(x).asnumpy(), net(x.tostype("default")).asnumpy(), rtol=1e-5, atol=1e-6)


def test_graphs_exported_after_sparse_calls_run_on_either_storage(rng, tmp_path, no_fallback):
    net = Chain(CHAINS["relu, scaled, product"])
    net.hybridize()
    x, w = mx.nd.array(drawn(rng)).tostype("csr"), mx.nd.array(rng.standard_normal((COLUMNS, 2)))
    expected = net(x, w).asnumpy()
    net.export(str(tmp_path / "model"))
    loaded = gluon.SymbolBlock.imports(str(tmp_path / "model-symbol.json"), ["data0", "data1"])
    for features in (x, x.tostype("default")):
        np.testing.assert_allclose(loaded(features, w).asnumpy(), expected, rtol=1e-5, atol=1e-6)


def test_rows_of_row_sparse_parameters_are_read_by_hybridized_blocks(rng, no_fallback):
    class Scores(gluon.Block):
        def __init__(self):
            super().__init__()
            self.weight = self.params.get("weight", shape=(COLUMNS, 4), stype="row_sparse", grad_stype="row_sparse")
            self.inner = Chain(CHAINS["relu, scaled, product"])

        def forward(self, x):
            return self.inner(x, self.weight.row_sparse_data(x.indices))

    net = Scores()
    net.initialize(mx.init.Uniform(1))
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    x = mx.nd.array(drawn(rng)).tostype("csr")

    def step():
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
        return loss.asscalar(), net.weight.list_grad()[0]

    expected, grad = step()
    net.inner.hybridize()
    found, by_graph = step()
    assert found == pytest.approx(expected, rel=1e-5)
    assert by_graph.stype == "row_sparse"
    np.testing.assert_allclose(by_graph.asnumpy(), grad.asnumpy(), rtol=1e-5, atol=1e-6)
    trainer.step(1)


@pytest.mark.filterwarnings("ignore:.*dense copies")
@pytest.mark.parametrize("csr", [0, 1])
@pytest.mark.parametrize("transposed", [False, True])
def test_gradients_of_csr_factors_are_those_of_dense_ones(csr, transposed, rng):
    matrix = rng.standard_normal((4, 4)) * (rng.random((4, 4)) < 0.5)
    values = [matrix, rng.standard_normal((4, 4))][:: -1 if csr else 1]
    head = mx.nd.array(rng.standard_normal((4, 4)))
    settings = {"transpose_b": transposed} if csr else {"transpose_a": transposed}
    outs, gradients = [], []
    for stype in ("default", "csr"):
        factors = [mx.nd.array(value) for value in values]
        factors[csr] = factors[csr].tostype(stype)
        for factor in factors:
            factor.attach_grad()
        with autograd.record():
            out = mx.nd.dot(*factors, **settings)
        out.backward(head)
        outs.append(out)
        gradients.append([factor.grad.asnumpy() for factor in factors])
    assert outs[1].stype == ("csr" if csr else "row_sparse" if transposed else "default")
    for found, expected in zip(gradients[1], gradients[0], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*dense copies")
@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_gradients_of_gradients_are_those_of_dense_arrays(stype, hybrid, rng):
    class Power(gluon.HybridBlock):
        def hybrid_forward(self, F, x, w):
            return F.square(x) * F.square(x) * w

    net = Power()
    if hybrid:
        net.hybridize()
    values, weight = drawn(rng), rng.standard_normal((ROWS, COLUMNS))
    found = []
    for storage in ("default", stype):
        x, w = mx.nd.array(values).tostype(storage), mx.nd.array(weight)
        x.attach_grad()
        w.attach_grad()
        with autograd.record():
            out = net(x, w).sum()
            first = autograd.grad(out, [x, w], create_graph=True, retain_graph=True)
            (first[0] * first[0]).sum().backward()
        found.append([x.grad.asnumpy(), w.grad.asnumpy(), first[0].asnumpy()])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-4)


def test_squares_of_rows_have_gradients_by_rows(rng, no_fallback):
    """The second term of a factorization machine, dot(x ** 2, _square_sum(v)), costs only the batch's columns."""
    features, table = drawn(rng), rng.standard_normal((COLUMNS, 3)).astype("float32")
    v = mx.nd.array(table).tostype("row_sparse")
    v.attach_grad(stype="row_sparse")
    x = mx.nd.array(features).tostype("csr")
    with autograd.record():
        out = mx.nd.dot(mx.nd.square(x), mx.nd._internal._square_sum(v, axis=1, keepdims=True))
    head = rng.standard_normal((ROWS, 1))
    out.backward(mx.nd.array(head))
    np.testing.assert_allclose(out.asnumpy(), (features**2) @ (table**2).sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(v.grad.asnumpy(), 2 * table * ((features**2).T @ head), rtol=1e-4, atol=1e-5)
    assert v.grad.indices.asnumpy().tolist() == np.flatnonzero(features.any(0)).tolist()


def test_graphs_take_memory_for_stored_values_only(rng, no_fallback):
    rows, columns, per_row = 1000, 1_000_000, 10
    gc.collect()
    mx.nd.waitall()
    indices = np.sort(rng.integers(0, columns, (rows, per_row)), axis=1)
    x = mx.nd.sparse.csr_matrix(
        (np.ones(rows * per_row, "float32"), indices.ravel(), np.arange(rows + 1) * per_row), shape=(rows, columns)
    )
    w = mx.nd.ones((columns, 1))
    w.attach_grad(stype="row_sparse")
    net = Chain(CHAINS["relu, scaled, product"])
    net.hybridize()
    mx.nd.waitall()
    mx._core.reset_peak_memory(1, 0)
    before = mx._core.memory_statistics(1, 0)["in_use"]
    with autograd.record():
        out = net(x, w)
    out.backward()
    mx.nd.waitall()
    np.testing.assert_allclose(out.asnumpy(), np.full((rows, 1), 2 * per_row))
    assert mx._core.memory_statistics(1, 0)["peak_in_use"] - before < 4 << 20
