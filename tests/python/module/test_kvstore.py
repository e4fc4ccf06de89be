"""Key-value stores in one process."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import kvstore


def value(array):
    return array.asnumpy().tolist()


def test_values_are_stored_summed_and_read():
    store = mx.kv.create("local")
    store.init(3, mx.nd.ones((2,)))
    out = mx.nd.zeros((2,))
    store.pull(3, out=out)
    assert value(out) == [1, 1]
    store.push(3, [mx.nd.ones((2,)), mx.nd.ones((2,)) * 2])
    store.pull(3, out=[out])
    assert value(out) == [3, 3]
    assert (store.type, store.rank, store.num_workers) == ("local", 0, 1)


def test_lists_of_keys():
    store = mx.kv.create("device")
    store.init(["a", "b"], [mx.nd.ones((1,)), mx.nd.ones((2,))])
    outs = [mx.nd.zeros((1,)), mx.nd.zeros((2,))]
    store.push(["a", "b"], [mx.nd.ones((1,)) * 5, [mx.nd.ones((2,)), mx.nd.ones((2,))]])
    store.pull(["a", "b"], out=outs)
    assert [value(out) for out in outs] == [[5], [2, 2]]


def test_updaters_change_the_stored_values():
    store = mx.kv.create()
    store.init("w", mx.nd.ones((2,)))

    def update(key, pushed, stored):
        assert key == "w"
        stored += pushed * 2

    store._set_updater(update)
    store.push("w", [mx.nd.ones((2,)), mx.nd.ones((2,))])
    out = mx.nd.zeros((2,))
    store.pull("w", out=out)
    assert value(out) == [5, 5]


def test_optimizers_update_and_their_states_are_saved(tmp_path):
    file = str(tmp_path / "states")
    stores = []
    for _ in range(2):
        store = mx.kv.create()
        store.init(0, mx.nd.ones((2,)))
        store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.5))
        stores.append(store)
    first, second = stores
    outs = [mx.nd.zeros((2,)), mx.nd.zeros((2,))]
    first.pushpull(0, mx.nd.ones((2,)), out=outs)
    assert [value(out) for out in outs] == [[0.5, 0.5]] * 2
    first.save_optimizer_states(file)
    second.pushpull(0, mx.nd.zeros((2,)), out=outs[0])
    second.load_optimizer_states(file)
    second.pushpull(0, mx.nd.zeros((2,)), out=outs[0])
    assert value(outs[0]) == [0.75, 0.75]
    assert kvstore.KVStore.is_capable("optimizer")
    with pytest.raises(OSError, match="nowhere"):
        second.load_optimizer_states(str(tmp_path / "nowhere"))


def test_pushpull_only_sums_without_updater():
    store = mx.kv.create()
    grads = [mx.nd.ones((2,)), mx.nd.ones((2,), ctx=mx.cpu(1)) * 3]
    store.pushpull("never initialized", grads)
    assert [value(g) for g in grads] == [[4, 4], [4, 4]]
    assert grads[1].context == mx.cpu(1)


def test_broadcast_and_rows():
    store = mx.kv.create()
    outs = [mx.nd.zeros((3, 2)), mx.nd.zeros((3, 2), ctx=mx.cpu(1))]
    store.broadcast("w", mx.nd.array([[1, 2], [3, 4], [5, 6]]), out=outs)
    assert value(outs[1]) == [[1, 2], [3, 4], [5, 6]]
    rows = mx.nd.zeros((3, 2))
    store.row_sparse_pull("w", out=rows, row_ids=mx.nd.array([2, 0, 2]))
    assert value(rows) == [[1, 2], [0, 0], [5, 6]]


def test_rows_are_read_for_several_keys():
    store = mx.kv.create()
    store.init(["a", "b"], [mx.nd.array([[1], [2]]), mx.nd.array([[3], [4]])])
    outs = [[mx.nd.ones((2, 1)), mx.nd.ones((2, 1))], [mx.nd.ones((2, 1))]]
    first, second = mx.nd.array([0]), mx.nd.array([1])
    store.row_sparse_pull(["a", "b"], out=outs, row_ids=[[first, second], [second]])
    assert [[value(out) for out in listed] for listed in outs] == [[[[1], [0]], [[0], [2]]], [[[0], [4]]]]
    with pytest.raises(mx.MXNetError, match="3 arrays of out have 2 row_ids"):
        store.row_sparse_pull(["a", "b"], out=outs, row_ids=[[first], [second]])


def test_pull_passes_sparse_arrays_over_unless_asked_for():
    store = mx.kv.create()
    store.init(0, mx.nd.ones((2, 1)))
    out = mx.nd.full((2, 1), 5).tostype("row_sparse")
    store.pull(0, out=out)
    assert value(out) == [[5], [5]]
    store.pull(0, out=out, ignore_sparse=False)
    assert value(out) == [[1], [1]]


@pytest.mark.parametrize("updater", [None, lambda key, pushed, stored: stored.__iadd__(pushed)], ids=["sum", "update"])
def test_pushpull_sums_all_keys_before_it_writes_any(updater):
    store = mx.kv.create("device")
    store.init(["a", "b"], [mx.nd.zeros((2,))] * 2)
    if updater is not None:
        store._set_updater(updater)
    shared = [mx.nd.full((2,), 3), mx.nd.full((2,), 4)]
    store.pushpull(["a", "b"], [shared, shared])
    assert [value(array) for array in shared] == [[7, 7], [7, 7]]


def test_own_stores_are_created_by_name_and_train():
    @kvstore.KVStoreBase.register
    class Doubling(kvstore.KVStoreBase):
        def pushpull(self, key, value, out=None, priority=0):
            for array in out:
                array *= 2

    assert isinstance(mx.kv.create("Doubling"), Doubling)
    net = mx.gluon.nn.Dense(1, in_units=1, use_bias=False)
    net.initialize(mx.init.One())
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0}, kvstore="doubling")
    with mx.autograd.record():
        loss = net(mx.nd.ones((1, 1)))
    loss.backward()
    trainer.step(1)
    assert net.weight.data().asscalar() == -1


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda s: s.init("a", mx.nd.ones((1,))), ValueError, "initialized already"),
        (lambda s: s.push("b", mx.nd.ones((1,))), ValueError, "'b' was not initialized"),
        (lambda s: s.pull("a"), ValueError, "out is missing"),
        (lambda s: s.push("a", mx.nd.ones((2,))), ValueError, r"expected shape \(1,\), got \(2,\)"),
        (lambda s: s.push("a", np.ones(1)), ValueError, "NDArrays, got ndarray"),
        (lambda s: s.push(1.5, mx.nd.ones((1,))), ValueError, "int or str"),
        (lambda s: s.push(["a"], []), ValueError, "equally long"),
        (lambda s: s.save_optimizer_states("x"), ValueError, "no optimizer"),
        (lambda s: s.set_gradient_compression({"type": "2bit"}), NotImplementedError, "compression"),
        (lambda s: mx.kv.create("dist_ring"), NotImplementedError, "use 'dist_sync'"),
        (lambda s: mx.kv.create("other"), ValueError, "unknown store 'other'"),
        (lambda s: mx.kv.create(3), TypeError, "must be a string"),
    ],
)
def test_wrong_uses_are_named(call, error, text):
    store = mx.kv.create()
    store.init("a", mx.nd.ones((1,)))
    with pytest.raises(error, match=text):
        call(store)


def test_keys_do_not_mix():
    store = mx.kv.create()
    store.init(3, mx.nd.ones(2))
    with pytest.raises(mx.base.HybridNetError, match="do not mix"):
        store.init("a", mx.nd.ones(2))


def test_a_store_without_push_and_pull_trains():
    store = mx.kv.create("teststore")
    assert store.type == "teststore" and (store.rank, store.num_workers) == (0, 1)
    a, b = mx.nd.ones(2), mx.nd.ones(2) * 2
    store.pushpull(0, [a, b])
    np.testing.assert_array_equal(b.asnumpy(), [3, 3])
    store.broadcast(0, mx.nd.ones(2) * 5, [a, b])
    np.testing.assert_array_equal(a.asnumpy(), [5, 5])
    assert not store.is_capable("optimizer")
    param = mx.gluon.Parameter("w", shape=(2,))
    param.initialize(mx.init.One())
    trainer = mx.gluon.Trainer([param], "sgd", {"learning_rate": 0.5}, kvstore="teststore")
    with mx.autograd.record():
        loss = (param.data() * 2).sum()
    loss.backward()
    trainer.step(1)
    np.testing.assert_array_equal(param.data().asnumpy(), [0, 0])


def trained(store, contexts, sparse=False):
    """Returns (module, parameters) after three steps of SGD with momentum on a linear network."""
    data = mx.sym.Variable("data")
    weight = mx.sym.Variable("fc_weight", stype="row_sparse" if sparse else None)
    out = mx.sym.FullyConnected(data, weight=weight, num_hidden=2, name="fc")
    net = mx.sym.LinearRegressionOutput(out, mx.sym.Variable("label"), name="loss")
    mod = mx.mod.Module(net, label_names=["label"], context=contexts)
    mod.bind([("data", (4, 3))], [("label", (4, 2))])
    values = {"fc_weight": mx.nd.arange(6).reshape((2, 3)), "fc_bias": mx.nd.array([1, -1])}
    mod.init_params(arg_params=values)
    mod.init_optimizer(store, "sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01})
    rows = np.random.default_rng(0).normal(size=(4, 3))
    batch = mx.io.DataBatch([mx.nd.array(rows)], [mx.nd.ones((4, 2))])
    for _ in range(3):
        mod.forward(batch, is_train=True)
        mod.backward()
        mod.update()
    return mod, {name: value.asnumpy() for name, value in mod.get_params()[0].items()}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_a_store_that_is_given_to_a_module_holds_its_parameters_and_updates_them(count, sparse, tmp_path):
    contexts = [mx.cpu(i) for i in range(count)]
    _, wanted = trained("local", contexts)
    store = mx.kv.create("local")
    mod, found = trained(store, contexts, sparse)
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5)
        held = mx.nd.zeros(array.shape)
        store.pull(name, out=held)
        np.testing.assert_allclose(held.asnumpy(), array, rtol=1e-5)
    mod.save_optimizer_states(str(tmp_path / "states"))
    mod.load_optimizer_states(str(tmp_path / "states"))
    # A batch may pull only the rows that it needs; the store has the others.
    store.row_sparse_pull("fc_weight", mod._exec_group.param_arrays[0], row_ids=mx.nd.array([1]))
    assert not mod._exec_group.param_arrays[0][0].asnumpy()[0].any()
    mod._params_dirty = True
    np.testing.assert_allclose(mod.get_params()[0]["fc_weight"].asnumpy(), wanted["fc_weight"], rtol=1e-5)


def test_parameters_that_are_set_reach_the_store_of_a_module():
    store = mx.kv.create("local")
    mod, before = trained(store, [mx.cpu()])
    mod.set_params({"fc_bias": mx.nd.array([7, 8])}, {}, allow_missing=True)
    held = [mx.nd.zeros((2,)), mx.nd.zeros((2, 3))]
    store.pull(["fc_bias", "fc_weight"], out=held)
    assert value(held[0]) == [7, 8]
    np.testing.assert_allclose(held[1].asnumpy(), before["fc_weight"], rtol=1e-6)
    mod.set_params({"fc_bias": mx.nd.zeros((2,)), "fc_weight": mx.nd.ones((2, 3))}, {})
    store.pull(["fc_bias", "fc_weight"], out=held)
    assert value(held[0]) == [0, 0] and value(held[1]) == [[1, 1, 1], [1, 1, 1]]


def test_results_in_the_arrays_of_other_keys_are_those_of_the_given_values():
    store = mx.kv.create("local")
    x, y = mx.nd.array([1.0, 2.0]), mx.nd.array([10.0, 20.0])
    store.pushpull(["a", "b"], [x, y], out=[y, x])
    assert y.asnumpy().tolist() == [1, 2] and x.asnumpy().tolist() == [10, 20]
    base = mx.nd.arange(6)
    store.pushpull(["a", "b"], [base[:2], base[2:4]], out=[base[2:4], base[4:]])
    assert base.asnumpy().tolist() == [0, 1, 0, 1, 2, 3]
