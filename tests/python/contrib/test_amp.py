"""contrib.amp: mixed precision. init() changes the whole process, so tests of it run in separate processes."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet.contrib import amp

_START = """
import numpy as np
import hybridnet as mx
from hybridnet import autograd, gluon
from hybridnet.contrib import amp
"""


def _run(code, *arguments):
    program = _START + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("hybridize", ["hybridized", "imperative"])
@pytest.mark.parametrize("target", ["float16", "bfloat16"])
def test_a_network_learns_in_mixed_precision(target, hybridize):
    code = """
    import sys
    target, hybridize = sys.argv[1:]
    amp.init(target)
    amp.init(target)  # a second call does nothing
    mx.random.seed(1)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(4, 3, activation="relu"), gluon.nn.BatchNorm(), gluon.nn.Flatten(), gluon.nn.Dense(2))
    net.initialize(mx.init.Xavier())
    if hybridize == "hybridized":
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    amp.init_trainer(trainer)
    x = np.random.RandomState(0).randn(32, 1, 6, 6).astype("float32")
    y = mx.nd.array(x[:, 0, :3].mean((1, 2)) > x[:, 0, 3:].mean((1, 2)))
    x, loss_function = mx.nd.array(x), gluon.loss.SoftmaxCrossEntropyLoss()
    losses = []
    for _ in range(40):
        with autograd.record():
            out = net(x)
            loss = loss_function(out, y)
            with amp.scale_loss(loss, trainer) as scaled:
                autograd.backward(scaled)
        trainer.step(32)
        losses.append(float(loss.mean().asscalar()))
    assert np.dtype(out.dtype).name == target and loss.dtype == np.float32
    assert all(np.dtype(param.dtype) == np.float32 for param in net.collect_params().values())
    assert losses[-1] < 0.3 * losses[0], losses
    """
    _run(code, target, hybridize)


def test_operators_cast_their_inputs():
    code = """
    amp.init("float16")
    one, half = mx.nd.ones((2, 2)), mx.nd.ones((2, 2), dtype="float16")
    assert mx.nd.FullyConnected(one, one, no_bias=True, num_hidden=2).dtype == np.float16
    assert mx.nd.op.FullyConnected(one, one, no_bias=True, num_hidden=2).dtype == np.float16
    assert mx.nd.softmax(half).dtype == half.softmax().dtype == half.sum().dtype == np.float32
    assert (half + one).dtype == (one * half).dtype == mx.nd.concat(half, one, dim=0).dtype == np.float32
    assert (half + half).dtype == (half * 2).dtype == np.float16
    assert mx.nd.Activation(half, act_type="relu").dtype == np.float16
    assert mx.nd.Activation(half, act_type="softrelu").dtype == np.float32
    assert mx.nd.linalg.gemm2(half, half).dtype == np.float32
    assert mx.nd.stack(*[half, one]).dtype == np.float32
    assert {one: 1}[one] == 1
    x = mx.sym.var("x")
    y = mx.sym.FullyConnected(x, mx.sym.var("w"), no_bias=True, num_hidden=3, name="fc")
    assert y.infer_type(x="float32", w="float32")[1] == [np.float16]
    assert (y + x).infer_type(x="float32", w="float32")[1] == [np.float32]
    """
    _run(code)


def test_overflow_skips_the_step_and_halves_the_scale():
    code = """
    amp.init("float16")
    param = gluon.Parameter("w", shape=(2,))
    param.initialize(mx.init.One())
    trainer = gluon.Trainer([param], "sgd", {"learning_rate": 0.5})
    amp.init_trainer(trainer)
    scale = trainer._amp_loss_scaler.loss_scale
    for factor, expected, after in ((np.inf, [1, 1], scale / 2), (2.0, [0, 0], scale / 2)):
        with autograd.record():
            loss = (param.data() * factor).sum()
            with amp.scale_loss([loss], trainer) as scaled:
                autograd.backward(scaled)
        trainer.step(1)
        assert (param.data().asnumpy() == expected).all()
        assert trainer._amp_loss_scaler.loss_scale == after
    with autograd.record():
        loss = (param.data() * 3).sum()
        with amp.scale_loss(loss, trainer) as scaled:
            scaled.backward()
    amp.unscale(trainer)
    np.testing.assert_array_equal(param.grad().asnumpy(), [3, 3])
    trainer.step(1)
    np.testing.assert_array_equal(param.data().asnumpy(), [-1.5, -1.5])
    """
    _run(code)


def test_the_scale_grows_after_a_window_of_finite_steps():
    param = gluon.Parameter("w", shape=(2,))
    param.initialize()
    scaler = amp.LossScaler(init_scale=4, scale_window=2, max_scale=8)
    scales = []
    for _ in range(6):
        assert not scaler.has_overflow([param])
        scales.append(scaler.loss_scale)
    assert scales == [4, 8, 8, 8, 8, 8]
    param.grad()[:] = np.nan
    for expected in (4, 2, 1, 1):
        assert scaler.has_overflow([param]) and scaler.loss_scale == expected


def test_wrong_uses_are_errors():
    with pytest.raises(ValueError, match="'float16' or 'bfloat16'"):
        amp.init("float64")
    with pytest.raises(ValueError, match="no operator 'nothing'"):
        amp.init(fp32_ops=["nothing"])
    param = gluon.Parameter("w", shape=(2,))
    param.initialize()
    trainer = gluon.Trainer([param], "sgd")
    with pytest.raises(ValueError, match=r"amp\.init\(\)"):
        amp.init_trainer(trainer)
    for function in (amp.unscale, lambda t: amp.scale_loss(mx.nd.ones(1), t).__enter__()):
        with pytest.raises(ValueError, match="init_trainer"):
            function(trainer)


# -- graphs ------------------------------------------------------------------------------------------------------------


def _net():
    data = mx.sym.var("data")
    fc = mx.sym.FullyConnected(data, num_hidden=8, name="fc1")
    left, right = mx.sym.SliceChannel(fc, num_outputs=2, name="cut")
    total = mx.sym.FullyConnected(left, num_hidden=4, name="fc2") + mx.sym.exp(right, name="exp")
    return mx.sym.softmax(total, name="out")


@pytest.mark.parametrize("target", ["float16", "bfloat16"])
def test_a_converted_graph_computes_nearly_the_same(target):
    net = _net()
    converted = amp.convert_symbol(net, target)
    assert converted.list_arguments() == net.list_arguments() and converted.list_outputs() == net.list_outputs()
    nodes = json.loads(converted.tojson(remove_amp_cast=False))["nodes"]
    assert {"amp_cast", "amp_multicast"} <= {node["op"] for node in nodes}
    inner = converted.get_internals()
    types = dict(
        zip(
            inner.list_outputs(),
            inner.infer_type(**dict.fromkeys(converted.list_arguments(), "float32"))[1],
            strict=True,
        )
    )
    assert np.dtype(types["fc1_output"]).name == np.dtype(types["fc2_output"]).name == target
    assert types["exp_output"] == types["out_output"] == np.float32
    shapes = dict(zip(net.list_arguments(), net.infer_shape(data=(3, 5))[0], strict=True))
    values = {name: mx.nd.random.normal(scale=0.5, shape=shape) for name, shape in shapes.items()}
    expected, ours = (graph.bind(mx.cpu(), values).forward()[0].asnumpy() for graph in (net, converted))
    assert not np.array_equal(expected, ours)
    np.testing.assert_allclose(ours, expected, rtol=0.01 if target == "float16" else 0.08)


def test_excluded_nodes_keep_their_type():
    converted, args, aux = amp.convert_model(_net(), {"a": 1}, {}, "float16", excluded_sym_names=["fc1"])
    inner = converted.get_internals()
    types = dict(
        zip(
            inner.list_outputs(),
            inner.infer_type(**dict.fromkeys(converted.list_arguments(), "float32"))[1],
            strict=True,
        )
    )
    assert types["fc1_output"] == np.float32 and types["fc2_output"] == np.float16
    assert (args, aux) == ({"a": 1}, {})
    with pytest.raises(ValueError, match="no node 'fc9'"):
        amp.convert_symbol(_net(), excluded_sym_names=["fc9"])


def test_a_converted_block_computes_nearly_the_same():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(4, 3), gluon.nn.BatchNorm(), gluon.nn.Activation("relu"), gluon.nn.Dense(3))
    net.initialize()
    net.hybridize()
    x = mx.nd.random.normal(shape=(2, 3, 8, 8))
    expected = net(x)
    converted = amp.convert_hybrid_block(net, "bfloat16")
    assert converted(x).dtype != expected.dtype
    np.testing.assert_allclose(converted(x).astype("float32").asnumpy(), expected.asnumpy(), rtol=0.1, atol=0.01)


def _buckets(rng):
    """Returns a bound module over lengths 3 and 5, and batches of both."""

    def sym_gen(length):
        cell = mx.rnn.LSTMCell(6, prefix="lstm_")
        outputs, _ = cell.unroll(length, mx.sym.var("data"), layout="NTC", merge_outputs=True)
        scores = mx.sym.FullyConnected(outputs, num_hidden=4, flatten=False, name="scores")
        return mx.sym.softmax(scores, name="out"), ("data",), ()

    module = mx.mod.BucketingModule(sym_gen, default_bucket_key=5)
    module.bind([("data", (2, 5, 3))], for_training=False)
    module.init_params(mx.init.Uniform(0.7))
    batches = []
    for length in (5, 3):
        shape = (2, length, 3)
        data = mx.nd.array(rng.normal(size=shape))
        batches.append(mx.io.DataBatch([data], bucket_key=length, provide_data=[("data", shape)], provide_label=None))
    return module, batches


def test_converted_buckets_compute_nearly_the_same(rng):
    module, batches = _buckets(rng)
    converted = amp.convert_bucketing_module(module, "float16", excluded_sym_names=["scores", "lstm_t4_i2h"])
    converted.bind([("data", (2, 5, 3))], for_training=False)
    for batch in batches:
        results = []
        for mod in (module, converted):
            mod.forward(batch, is_train=False)
            results.append(mod.get_outputs()[0].asnumpy())
        assert not np.array_equal(*results)
        np.testing.assert_allclose(*results, rtol=0.02, atol=1e-3)
    for name, value in module.get_params()[0].items():
        np.testing.assert_array_equal(converted.get_params()[0][name].asnumpy(), value.asnumpy())
    inner = converted.symbol.get_internals()
    types = inner.infer_type(**dict.fromkeys(converted.symbol.list_arguments(), "float32"))[1]
    types = dict(zip(inner.list_outputs(), types, strict=True))
    assert types["lstm_t0_i2h_output"] == np.float16 and types["scores_output"] == np.float32


def test_a_module_binds_a_converted_graph(rng):
    values = {"data": (3, 5), "fc1_weight": (8, 5), "fc1_bias": (8,), "fc2_weight": (4, 4), "fc2_bias": (4,)}
    values = {name: mx.nd.array(rng.normal(size=shape)) for name, shape in values.items()}
    data = values.pop("data")
    results = []
    for graph in (_net(), amp.convert_model(_net(), values, {})[0]):
        module = mx.mod.Module(graph, label_names=None)
        module.bind([("data", (3, 5))], for_training=False)
        module.init_params(arg_params=values)
        module.forward(mx.io.DataBatch([data]))
        results.append(module.get_outputs()[0].asnumpy())
    np.testing.assert_allclose(*results, rtol=0.02)
    assert not np.array_equal(*results)


def test_other_modules_are_not_converted_as_buckets():
    with pytest.raises(ValueError, match="expected a BucketingModule, got int"):
        amp.convert_bucketing_module(3)


@pytest.mark.parametrize("target", ["float16", "bfloat16"])
def test_parameters_that_only_products_read_are_converted_on_request(target, rng):
    data = mx.sym.var("data")
    body = mx.sym.BatchNorm(mx.sym.FullyConnected(data, num_hidden=4, name="fc"), name="bn")
    out = mx.sym.softmax(mx.sym.FullyConnected(body, num_hidden=3, name="last"))
    shapes, _, states = out.infer_shape(data=(2, 5))
    arguments = {
        name: mx.nd.array(rng.normal(size=shape))
        for name, shape in zip(out.list_arguments(), shapes, strict=True)
        if name != "data"
    }
    auxiliary = {n: mx.nd.ones(s) for n, s in zip(out.list_auxiliary_states(), states, strict=True)}
    plain, kept, _ = mx.contrib.amp.convert_model(out, arguments, auxiliary, target)
    assert {str(np.dtype(array.dtype)) for array in kept.values()} == {"float32"}
    converted, cast, still = mx.contrib.amp.convert_model(
        out, arguments, auxiliary, target, cast_optional_params=True, data_names=["data"]
    )
    types = {name: str(np.dtype(array.dtype)) for name, array in cast.items()}
    assert types == {
        **dict.fromkeys(["fc_weight", "fc_bias", "last_weight", "last_bias"], target),
        **dict.fromkeys(["bn_gamma", "bn_beta"], "float32"),
    }
    assert {str(np.dtype(array.dtype)) for array in still.values()} == {"float32"}
    x = mx.nd.array(rng.normal(size=(2, 5)))
    results = []
    for symbol, parameters in ((plain, kept), (converted, cast)):
        executor = symbol.bind(mx.cpu(), {"data": x, **parameters}, aux_states=dict(auxiliary), grad_req="null")
        results.append(executor.forward()[0].asnumpy().astype("float32"))
    # BatchNorm is folded into weights before they are rounded where they are float32.
    np.testing.assert_allclose(*results, atol=0.01 if target == "float16" else 0.06)
