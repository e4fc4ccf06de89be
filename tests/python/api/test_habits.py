"""Uses of MXNet that no signature shows: dtypes, handles, contexts, private functions."""

from __future__ import annotations

import ctypes
import itertools
import threading

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, base, gluon
from hybridnet.contrib.svrg_optimization.svrg_module import SVRGModule
from hybridnet.contrib.svrg_optimization.svrg_optimizer import _SVRGOptimizer


@pytest.mark.parametrize("hybridized", [False, True])
@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize("first", [1, 2])
def test_parameters_on_several_contexts_serve_the_parts_of_a_batch(hybridized, deferred, first):
    contexts = [mx.cpu(first), mx.cpu(first + 1)]
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(4, in_units=0 if deferred else 5), gluon.nn.BatchNorm(), gluon.nn.Dense(3))
    net.initialize(ctx=contexts)
    if hybridized:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    data = mx.nd.random.uniform(shape=(4, 5))
    for _ in range(2):
        with autograd.record():
            outputs = [net(part) for part in gluon.utils.split_and_load(data, contexts)]
            losses = [output.sum() for output in outputs]
        for loss in losses:
            loss.backward()
        trainer.step(4)
    assert [output.context for output in outputs] == contexts
    weights = [net[0].weight.data(ctx).asnumpy() for ctx in contexts]
    np.testing.assert_array_equal(*weights)


def test_a_second_trainer_of_a_row_sparse_parameter_is_refused():
    parameter = gluon.Parameter("w", shape=(4, 2), stype="row_sparse", grad_stype="row_sparse")
    parameter.initialize()
    first = gluon.Trainer([parameter], "sgd")
    with pytest.raises(RuntimeError, match="'w' has a Trainer already"):
        gluon.Trainer([parameter], "sgd")
    assert parameter._trainer is first


@pytest.mark.parametrize("grad_stype", ["default", "row_sparse"])
def test_a_dense_parameter_may_have_a_second_trainer(grad_stype):
    parameter = gluon.Parameter("w", shape=(4, 2), grad_stype=grad_stype)
    parameter.initialize()
    gluon.Trainer([parameter], "sgd")
    second = gluon.Trainer([parameter], "sgd")
    assert parameter._trainer is second


def test_handles_are_those_of_ctypes():
    for name in ("NDArrayHandle", "SymbolHandle", "ExecutorHandle", "KVStoreHandle", "CachedOpHandle", "DLPackHandle"):
        assert getattr(base, name) is ctypes.c_void_p
    assert base.c_str("a").value == b"a" and list(base.c_array(base.mx_int, [1, 2])) == [1, 2]
    assert list(base.c_str_array(["a", "b"])) == [b"a", b"b"]
    base.check_call(0)
    with pytest.raises(base.MXNetError):
        base.check_call(-1)
    with pytest.raises(base.MXNetError, match="MXNDArrayFromDLPack"):
        base._LIB.MXNDArrayFromDLPack(0)
    assert not hasattr(base._LIB, "__wrapped__")


def test_names_that_a_symbol_does_not_have_are_refused():
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    for infer, value in (
        (symbol.infer_shape, (2, 3)),
        (symbol.infer_shape_partial, (2, 3)),
        (symbol.infer_type, "int8"),
    ):
        with pytest.raises(mx.MXNetError, match="no argument 'other'"):
            infer(other=value)
    assert symbol.simple_bind(mx.cpu(), data=(2, 3), other=(1,)).arg_dict.keys() == {"data", "fc_weight", "fc_bias"}


def test_contiguous_slices_are_recognized():
    shape = (4, 3, 2)
    array = np.empty(shape)
    keys = [slice(None), slice(0, 1), slice(1, 3), slice(None, None, 2), slice(None, None, -1), slice(2, 2)]
    for key in itertools.product(keys, repeat=3):
        expected = array[key].flags.contiguous
        assert mx.nd.NDArray._basic_indexing_slice_is_contiguous(key, shape) == expected, key


def test_an_atomic_symbol_has_variables_of_its_own():
    symbol = mx.sym.RNN(*map(mx.sym.var, "xphc"), state_size=3, num_layers=1, mode="lstm", state_outputs=True, name="r")
    atomic = symbol._gen_atomic_symbol()
    assert atomic.list_arguments() == ["r_data", "r_parameters", "r_state", "r_state_cell"]
    assert len(atomic.list_outputs()) == 3


def test_a_graph_as_text_is_called_like_an_operator():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    called = mx.sym._internal._CachedOp(mx.sym.var("x"), mx.sym.var("y"), subgraph=(a - b).tojson())
    assert called.eval(x=mx.nd.array([5.0]), y=mx.nd.array([2.0]))[0].asscalar() == 3


def test_svrg_optimizers_choose_by_name():
    optimizer = _SVRGOptimizer(
        default_optimizer="sgd", param_idx2name={0: "weight", 1: "weight_full"}, learning_rate=1.0
    )
    assert optimizer.default_opt.lr == 1.0
    store = mx.kv.create("local")
    store.set_optimizer(optimizer)
    results = {}
    for key in (0, 1):
        store.init(key, mx.nd.zeros((3,)))
        store.push(key, mx.nd.full((3,), key + 1))
        results[key] = mx.nd.zeros((3,))
        store.pull(key, results[key])
    assert results[0].asnumpy().tolist() == [-1] * 3 and results[1].asnumpy().tolist() == [2] * 3


@pytest.mark.parametrize("scheduled", [False, True])
def test_svrg_modules_train_by_the_optimizer_that_was_asked_for(scheduled):
    x = np.random.RandomState(0).uniform(-1, 1, (40, 2)).astype("float32")
    iterator = mx.io.NDArrayIter(x, x @ [1.0, 2.0], batch_size=8, label_name="label")
    output = mx.sym.LinearRegressionOutput(
        mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc"), mx.sym.var("label")
    )
    module = SVRGModule(output, label_names=["label"], update_freq=2)
    scheduler = mx.lr_scheduler.FactorScheduler(1000, 0.9, base_lr=0.5)
    settings = {"lr_scheduler": scheduler} if scheduled else {"learning_rate": 0.5}
    module.fit(iterator, num_epoch=12, optimizer="sgd", optimizer_params=settings, eval_metric="mse")
    assert isinstance(module._optimizer, _SVRGOptimizer)
    np.testing.assert_allclose(module.get_params()[0]["fc_weight"].asnumpy(), [[1, 2]], atol=0.05)


def test_a_store_of_several_contexts_updates_unless_it_is_told_otherwise():
    def trainer(contexts, **settings):
        parameter = gluon.Parameter("w", shape=(4, 2), **settings.pop("parameter", {}))
        parameter.initialize(ctx=[mx.cpu(i) for i in range(contexts)])
        made = gluon.Trainer([parameter], "sgd", **settings)
        made._be_ready()
        return made

    rows = {"stype": "row_sparse", "grad_stype": "row_sparse"}
    assert trainer(2)._update_on_kvstore is True
    assert trainer(2, update_on_kvstore=False)._update_on_kvstore is False
    assert trainer(2, parameter={"grad_stype": "row_sparse"})._update_on_kvstore is False
    assert trainer(1, parameter=rows)._update_on_kvstore is True
    assert trainer(1, parameter=rows)._kvstore._updater.optimizer is not None
    with pytest.raises(ValueError, match="update_on_kvstore=False when sparse weights"):
        trainer(1, parameter=rows, update_on_kvstore=False)
    for refused in ("allreduce_grads", "update"):
        with pytest.raises(AssertionError, match="update_on_kvstore"):
            getattr(trainer(2), refused)(*([1] if refused == "update" else []))
    trainer(2, update_on_kvstore=False).allreduce_grads()


def test_scopes_of_np_arrays_belong_to_a_thread():
    scope = mx.util._NumpyArrayScope
    seen = []
    try:
        scope._current = scope(True)
        assert scope._current._is_np_array and mx.util.is_np_array()
        thread = threading.Thread(target=lambda: seen.append((scope._current._is_np_array, mx.util.is_np_array())))
        thread.start()
        thread.join()
        assert seen == [(False, False)]
    finally:
        scope._current = scope(False)
    assert not mx.util.is_np_array()


def test_a_block_scope_needs_a_prefix_only():
    class Named:
        prefix, _empty_prefix = "spawned_", False

    with gluon.block._BlockScope(Named()):
        assert mx.name.NameManager.current.get(None, "hello") == "spawned_hello0"


def test_updaters_work_with_optimizers_of_old_pickles():
    optimizer = mx.optimizer.SGD()
    del optimizer.allow_np_array
    mx.optimizer.Updater(optimizer)(0, mx.nd.ones((2,)), mx.nd.zeros((2,)))


@pytest.mark.parametrize("hook", [False, True], ids=["executor", "block"])
def test_monitors_call_inputs_as_mxnet_does(hook):
    """Monitors number the inputs of an operator, unless MXNet's operator lists names for them."""
    seen = []

    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            x = F.Pooling(F.Activation(x, act_type="relu", name="act"), global_pool=True, name="pool")
            return F.broadcast_add(F.exp(x, name="exp"), F.softmax(x, name="soft"), name="sum")

    net = Net()
    if hook:
        net.hybridize()
        net.register_op_hook(lambda name, op, array: seen.append(name), monitor_all=True)
        net(mx.nd.ones((1, 1, 2, 2)))
    else:
        executor = net(mx.sym.var("x")).simple_bind(mx.cpu(), x=(1, 1, 2, 2))
        executor.set_monitor_callback(lambda name, array: seen.append(name), monitor_all=True)
        executor.forward()
    endings = ["act_input0", "pool_data", "exp_input0", "soft_data", "sum_lhs", "sum_rhs"]
    assert all(any(name.endswith(ending) for name in seen) for ending in endings), seen


@pytest.mark.parametrize(("start", "mask"), [(0, [True, False]), (1, [True, False, True])])
def test_masked_assignment_has_its_internal_name(start, mask):
    data = mx.np.arange(6.0).reshape(2, 3)
    expected = data.asnumpy()
    expected[(slice(None),) * start + (np.array(mask),)] = 7
    kept = mx.np._internal.boolean_mask_assign_scalar(data, mx.np.array(mask, dtype=bool), 7, start_axis=start)
    assert data.asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]] and kept.asnumpy().tolist() == expected.tolist()
    mx.np._internal.boolean_mask_assign_tensor(
        data, mx.np.array(mask, dtype=bool), mx.np.array(7.0), start_axis=start, out=data
    )
    assert data.asnumpy().tolist() == expected.tolist()
    assert mx.np._internal.add(data, data).asnumpy().tolist() == (2 * expected).tolist()
