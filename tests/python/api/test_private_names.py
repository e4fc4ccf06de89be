"""Private names and undocumented behavior of MXNet that libraries rely on."""

from __future__ import annotations

import importlib
import io
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from hybridnet.gluon.block import _flatten, _regroup
from hybridnet.gluon.data import dataloader

# Modules of MXNet, and the modules that programs access as their attributes.
MODULES = {
    "metric": "ndarray numpy registry",
    "gluon.block": "ndarray symbol initializer",
    "gluon.loss": "ndarray",
    "gluon.parameter": "context ndarray symbol initializer",
    "gluon.data.dataset": "recordio",
    "gluon.data.dataloader": "context nd",
    "gluon.data.vision.datasets": "image recordio",
    "gluon.nn.conv_layers": "symbol",
    "gluon.rnn.rnn_cell": "ndarray symbol",
    "image.image": "io nd recordio",
    "initializer": "ndarray random",
    "model": "io kvs metric nd opt sym",
    "operator": "context symbol",
}
_LONG = {"nd": "ndarray", "sym": "symbol", "kvs": "kvstore", "opt": "optimizer"}


@pytest.mark.parametrize("path", MODULES)
def test_modules_are_seen_through_the_modules_that_use_them_in_mxnet(path):
    module = importlib.import_module(f"hybridnet.{path}")
    for name in MODULES[path].split():
        expected = np if name == "numpy" else importlib.import_module(f"hybridnet.{_LONG.get(name, name)}")
        assert getattr(module, name) is expected, name


# --- blocks, parameters, losses, optimizers ---------------------------------------------------------------------------


def test_private_names_of_blocks_and_parameters_are_there():
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(gluon.nn.Dense(3))
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((2, 4)))
    assert list(net._children) == ["0"] and net._prefix == "net_" and list(net._params) == []
    assert set(net._collect_params_with_prefix()) == {"0.weight", "0.bias"}
    inputs, outputs = net._cached_graph
    assert [str(variable.name) for variable in inputs] == ["data"] and outputs.list_outputs()
    net._clear_cached_op()
    assert net._cached_graph == ()
    dense = net[0]
    assert set(dense._reg_params) == {"weight", "bias"}
    assert dense.weight._shape == (3, 4) and dense.weight._data[0].shape == (3, 4)
    dense.weight._load_init(mx.nd.ones((3, 4)), mx.cpu())
    dense.weight._finish_deferred_init()
    assert dense.weight.data().asnumpy().min() == 1


def test_private_names_of_losses_and_optimizers_are_there():
    loss = gluon.loss.L2Loss(weight=0.5, batch_axis=1)
    assert (loss._weight, loss._batch_axis) == (0.5, 1)
    optimizer = mx.optimizer.SGD()
    optimizer._update_count(7)
    assert optimizer._index_update_count == {7: 1}


def test_attributes_can_be_set_on_the_class_of_contexts():
    """GluonTS sets the validators that pydantic looks for on mx.Context."""
    mx.Context.validate = classmethod(lambda cls, value: cls(value))
    try:
        assert mx.Context.validate("cpu") == mx.cpu() == mx.cpu().validate("cpu")
        assert type("Own", (mx.Context,), {})("cpu", 1).device_id == 1
    finally:
        del mx.Context.validate


@pytest.mark.parametrize("fmt", [0, [0], [0, [0, [0]], -1], [[], 0], [-1, -1]])
def test_nested_arrays_are_taken_apart_and_put_together_again(fmt):
    def build(part):
        return mx.nd.ones((1,)) if part == 0 else None if part == -1 else [build(item) for item in part]

    nested = build(fmt)
    flat, found = _flatten(nested, "input")
    assert found == fmt and all(item is None or isinstance(item, mx.nd.NDArray) for item in flat)
    assert _flatten(_regroup(flat, found), "input") == (flat, fmt)


def test_symbols_of_several_outputs_count_them():
    pair = mx.sym.Group([mx.sym.var("a"), mx.sym.var("b")])
    flat, fmt = _flatten([pair, mx.sym.var("c")], "input")
    assert fmt == [2, 0] and len(flat) == 2
    assert _regroup([1, 2, 3, 4], fmt) == [[1, 2], 3]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: _flatten([3], "input"), "the input of a hybridized block.*got 3 of type int"),
        (lambda: _regroup(3, 0), "a flat list, got int"),
        (lambda: _regroup([1], [0, 0]), r"2 values for format \[0, 0\], got 1"),
        (lambda: _regroup([1], -1), "None where the format is -1, got int"),
    ],
)
def test_values_that_are_not_arrays_are_named(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_formats_of_inputs_and_outputs_are_kept_beside_an_exported_block(tmp_path):
    """A loaded graph returns nested results again when its formats are set, as GluonTS sets them."""

    class Nested(gluon.HybridBlock):
        def hybrid_forward(self, F, x, states):
            return x + 1, [states[0] * 2, states[1] * 3]

    net = Nested()
    assert net._in_format is None and net._out_format is None
    net.hybridize()
    x = mx.nd.ones((2,))
    net(x, [x, x])
    assert (net._in_format, net._out_format) == ([0, [0, 0]], [0, [0, 0]])
    assert len(net._get_graph(x, [x, x])[0]) == 3
    net.export(str(tmp_path / "nested"))
    loaded = gluon.SymbolBlock.imports(str(tmp_path / "nested-symbol.json"), ["data0", "data1", "data2"])
    assert len(loaded(x, x, x)) == 3
    loaded._in_format, loaded._out_format = net._in_format, net._out_format
    out, (two, three) = loaded(x, [x, x])
    assert [a.asnumpy().tolist() for a in (out, two, three)] == [[2, 2], [2, 2], [3, 3]]
    assert (loaded._in_format, loaded._out_format) == ([0, [0, 0]], [0, [0, 0]])
    with pytest.raises(ValueError, match="a format of 3 outputs"):
        loaded._out_format = [0]


# --- scopes -----------------------------------------------------------------------------------------------------------


def _in_a_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_every_thread_has_its_own_attribute_scope_and_setting_it_replaces_it():
    before = mx.AttrScope.current
    mx.AttrScope.current = mx.AttrScope(group="here")
    try:
        assert mx.sym.var("a").attr("group") == "here"
        assert _in_a_thread(lambda: mx.AttrScope.current._attr) == {}
        with mx.AttrScope(other="inner") as scope:
            assert mx.AttrScope.current is scope
            assert mx.sym.var("a").attr("group") == "here" and mx.sym.var("a").attr("other") == "inner"
    finally:
        mx.AttrScope.current = before
    assert mx.sym.var("a").attr("group") is None


def test_every_thread_counts_names_from_zero_and_setting_a_manager_replaces_it():
    managers = mx.name.NameManager
    before = managers.current
    managers.current = managers()
    try:
        assert [managers.current.get(None, "layer") for _ in range(2)] == ["layer0", "layer1"]
        assert _in_a_thread(lambda: managers.current.get(None, "layer")) == "layer0"
        with mx.name.Prefix("own_"):
            assert mx.sym.relu(mx.sym.var("x")).name == "own_relu0"
            assert _in_a_thread(lambda: managers.current.get(None, "layer")) == "layer0"
        assert managers.current.get(None, "layer") == "layer2"
    finally:
        managers.current = before


def test_the_scope_of_a_block_is_that_of_its_thread():
    net = gluon.nn.HybridSequential(prefix="outer_")
    with net.name_scope():
        assert gluon.nn.Dense(1).prefix.startswith("outer_dense")
        assert _in_a_thread(lambda: gluon.nn.Dense(1).prefix.startswith("dense"))


# --- trainer ----------------------------------------------------------------------------------------------------------


def _stepped(contexts, **options):
    parameter = gluon.Parameter("x", shape=(3,))
    parameter.initialize(ctx=[mx.cpu(i) for i in range(contexts)], init="zeros")
    trainer = gluon.Trainer([parameter], "sgd", {"learning_rate": 1.0}, **options)
    before = (trainer._kvstore, trainer._update_on_kvstore, trainer._kv_initialized, len(trainer._params_to_init))
    assert before == (None, None, False, 1)
    with autograd.record():
        for value in parameter.list_data():
            (value + 1).backward()
    trainer.step(1)
    assert trainer._kv_initialized and trainer._params_to_init == [] and len(trainer._updaters) == contexts
    assert parameter.data(mx.cpu(0)).asnumpy().tolist() == [-contexts] * 3
    return trainer


# The attributes of a Trainer of MXNet 1.9.1 after the first step.
@pytest.mark.parametrize(
    ("contexts", "options", "store", "on_store"),
    [
        (1, {}, None, None),
        (1, {"kvstore": None}, None, None),
        (1, {"update_on_kvstore": False}, None, None),
        (2, {}, "device", True),
        (2, {"kvstore": "local"}, "local", True),
        (2, {"kvstore": None}, None, None),
        (2, {"update_on_kvstore": False}, "device", False),
        (2, {"kvstore": "teststore"}, "teststore", False),
    ],
)
def test_a_trainer_knows_its_store_from_the_first_step_on(contexts, options, store, on_store):
    trainer = _stepped(contexts, **options)
    assert getattr(trainer._kvstore, "type", None) == store and trainer._update_on_kvstore is on_store
    if store in ("local", "device"):
        assert trainer._kvstore._updater is trainer._updaters[0]
        assert trainer._kvstore._updater.optimizer._get_lr(0) == 1.0


@pytest.mark.parametrize("on_store", [True, False])
def test_a_store_that_updates_is_made_anew_when_values_are_set(on_store):
    trainer = _stepped(2, update_on_kvstore=on_store)
    (parameter,) = trainer._params
    parameter.set_data(mx.nd.ones((3,)))
    assert trainer._kv_initialized is not on_store and (trainer._kvstore is None) is on_store
    with autograd.record():
        for value in parameter.list_data():
            (value + 1).backward()
    trainer.step(1)
    assert trainer._kvstore.type == "device" and parameter.data(mx.cpu(1)).asnumpy().tolist() == [-1] * 3


def test_a_store_without_optimizer_cannot_update():
    parameter = gluon.Parameter("x", shape=(3,))
    parameter.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    trainer = gluon.Trainer([parameter], "sgd", kvstore="teststore", update_on_kvstore=True)
    with pytest.raises(ValueError, match="update_on_kvstore=False when training with TestStore"):
        trainer._init_kvstore()


# --- data loading -----------------------------------------------------------------------------------------------------


def _doubled(samples, batchify_fn, factor, dataset=None):
    """A worker function like those of libraries: it has an argument of its own and reads the dataset of the process."""
    from hybridnet.gluon.data import _pool_iterator

    source = _pool_iterator._worker_dataset if dataset is None else dataset
    batch = batchify_fn([source[i] * factor for i in samples])
    if dataset is not None:
        return batch
    buffer = io.BytesIO()
    dataloader.ForkingPickler(buffer, pickle.HIGHEST_PROTOCOL).dump(batch)
    return buffer.getvalue()


class _FactorIter(dataloader._MultiWorkerIter):
    """Passes the number of the batch to the worker as a factor, like GluonCV's loader with changing transforms."""

    def _push_next(self):
        indices = next(self._iter, None)
        if indices is None:
            return
        arguments = (indices, self._batchify_fn, self._sent_idx, self._dataset)
        self._data_buffer[self._sent_idx] = self._worker_pool.apply_async(self._worker_fn, arguments)
        self._sent_idx += 1


class _FactorLoader(gluon.data.DataLoader):
    def __iter__(self):
        return _FactorIter(
            self._worker_pool,
            self._batchify_fn,
            self._batch_sampler,
            pin_memory=self._pin_memory,
            worker_fn=_doubled,
            prefetch=self._prefetch,
            dataset=self._dataset if self._thread_pool else None,
            data_loader=self,
            timeout=self._timeout,
        )


@pytest.mark.parametrize("thread_pool", [False, True], ids=["processes", "threads"])
def test_loaders_of_libraries_derive_from_the_iterator(thread_pool):
    loader = _FactorLoader(np.arange(6, dtype="float32"), 2, num_workers=2, thread_pool=thread_pool, pin_memory=True)
    for _ in range(2):
        batches = iter(loader)
        assert len(batches) == 3
        assert [batch.asnumpy().tolist() for batch in batches] == [[0, 0], [2, 3], [8, 10]]
    assert next(iter(loader)).context == mx.cpu_pinned(0)


def test_the_worker_functions_of_mxnet_make_batches():
    dataset, batchify = np.arange(4, dtype="float32"), dataloader.default_mp_batchify_fn
    assert dataloader._thread_worker_fn([1, 3], batchify, dataset).asnumpy().tolist() == [1, 3]
    loader = gluon.data.DataLoader(dataset, 2, num_workers=1)
    with loader._worker_pool as pool:
        answer = pool.apply(dataloader._worker_fn, ([1, 3], batchify))
    assert pickle.loads(answer).asnumpy().tolist() == [1, 3]
    assert gluon.data.DataLoader(dataset, 2)._worker_pool is None


def _fails(*arguments):
    raise KeyError("the reason")


def _never_ends(*arguments):
    threading.Event().wait()


def test_an_iterator_raises_errors_of_workers_and_ends_its_pool():
    with multiprocessing.Pool(1) as pool:
        batches = dataloader._MultiWorkerIter(pool, list, [[0]], worker_fn=_fails)
        with pytest.raises(KeyError, match="the reason"):
            next(batches)
        with pytest.raises(ValueError, match="not running"):
            pool.apply(_fails)


def test_a_worker_that_takes_too_long_is_named():
    with multiprocessing.Pool(1) as pool:
        batches = dataloader._MultiWorkerIter(pool, list, [[0]], worker_fn=_never_ends, timeout=0.2)
        with pytest.raises(TimeoutError, match=r"timed out after 0.2 seconds(.|\n)*larger timeout="):
            next(batches)


def test_batches_are_moved_with_their_lists():
    moved = dataloader._as_in_context([mx.nd.ones((1,)), (mx.nd.ones((1,)), 3)], mx.cpu(1))
    assert moved[0].context == moved[1][0].context == mx.cpu(1) and moved[1][1] == 3


# --- mixed precision --------------------------------------------------------------------------------------------------


def test_lists_of_mixed_precision_name_each_operator_once_for_each_rule():
    amp = mx.contrib.amp
    named = [
        *amp.list_lp16_ops("float16"),
        *amp.list_fp32_ops("float16"),
        *amp.list_widest_type_cast("float16"),
        *amp.list_lp16_fp32_ops("float16"),
        *(operator for operator, _, _ in amp.list_conditional_fp32_ops("float16")),
    ]
    assert len(named) == len(set(named))
    assert "Convolution" in amp.list_lp16_ops("bfloat16") and "softmax" in amp.list_fp32_ops("float16")
    assert "relu" in amp.list_lp16_fp32_ops("float16") and "dot" in amp.list_widest_type_cast("float16")
    assert ("Activation", "act_type", ["softrelu"]) in amp.list_conditional_fp32_ops("float16")
    assert "SoftmaxOutput" in amp.list_loss_output_functions("float16")
    assert amp.list_lp16_use_fp32_params("float16") is None
    with pytest.raises(ValueError, match="float16"):
        amp.list_fp32_ops("float64")


def test_programs_see_whether_mixed_precision_was_begun():
    program = """
import hybridnet as mx
from hybridnet.contrib import amp
print(amp.amp._amp_initialized, amp.amp._amp_loss_scale_initialized, amp.amp._loss_scaler)
amp.init()
parameter = mx.gluon.Parameter("x", shape=(1,)); parameter.initialize()
trainer = mx.gluon.Trainer([parameter], "sgd")
amp.init_trainer(trainer)
print(amp.amp._amp_initialized, amp.amp._amp_loss_scale_initialized, amp.amp._loss_scaler is trainer._amp_loss_scaler)
"""
    assert _printed(program) == "False False None\nTrue True True\n"


# --- calls ------------------------------------------------------------------------------------------------------------


def _printed(program, **variables):
    environment = {**os.environ, "PYTHONPATH": str(Path(mx.__file__).parents[1]), **variables}
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True, env=environment
    )
    return ran.stdout


@pytest.mark.parametrize("many", [False, True], ids=["one array", "a list"])
def test_grad_returns_a_list_also_for_a_single_variable(many):
    x = mx.nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = x * x
    grads = autograd.grad(y, [x] if many else x)
    assert type(grads) is list and len(grads) == 1
    assert grads[0].asnumpy().tolist() == [2, 4]


@pytest.mark.parametrize("space", [mx.nd, mx.sym], ids=["nd", "sym"])
def test_operators_without_parameters_ignore_unknown_keywords_and_name_the_line(space):
    x = mx.nd.ones((2,)) if space is mx.nd else mx.sym.var("x")
    with pytest.warns(UserWarning, match="'broadcast_mul' has no argument 'axis': it is ignored") as caught:
        out = space.broadcast_mul(x, x, axis=-1)
    assert [warning.filename for warning in caught] == [__file__]
    assert (out if space is mx.nd else out.eval(x=mx.nd.ones((2,)))[0]).asnumpy().tolist() == [1, 1]


def test_a_keyword_that_is_ignored_warns_once_for_each_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            mx.nd.relu(mx.nd.ones((2,)), slope=1)
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: mx.nd.sum(x, axes=1), "did you mean 'axis'"),
        (lambda x: mx.nd.broadcast_mul(x, rsh=x), "did you mean 'rhs'"),
    ],
    ids=["an operator with parameters", "an array"],
)
def test_other_unknown_keywords_are_errors(call, text):
    with pytest.raises(mx.errors.ParamError, match=text):
        call(mx.nd.ones((2, 2)))


def test_in_strict_programs_ignored_keywords_are_errors():
    program = """
import hybridnet as mx
try:
    mx.nd.broadcast_mul(mx.nd.ones((1,)), mx.nd.ones((1,)), axis=-1)
except mx.errors.ParamError as error:
    print(error.input)
"""
    assert _printed(program, HYBRIDNET_STRICT="1") == "axis\n"
