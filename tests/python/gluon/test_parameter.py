"""Parameter, Constant, ParameterDict: initialization, sharing, names, gradients, types, contexts, files."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from hybridnet.gluon import nn


def test_initialize_makes_value_and_gradient():
    param = gluon.Parameter("weight", shape=(3, 4))
    param.initialize(init="xavier", ctx=[mx.cpu(0), mx.cpu(1)])
    assert len(param.list_data()) == len(param.list_grad()) == 2
    assert param.data(mx.cpu(1)).context == mx.cpu(1)
    assert param.list_ctx() == [mx.cpu(0), mx.cpu(1)]
    np.testing.assert_array_equal(param.data(mx.cpu(0)).asnumpy(), param.data(mx.cpu(1)).asnumpy())
    assert not param.grad(mx.cpu(0)).asnumpy().any()
    with pytest.raises(RuntimeError, match=r"not initialized on context cpu\(2\)"):
        param.data(mx.cpu(2))


def test_an_uninitialized_parameter_is_an_error_that_names_initialize():
    param = gluon.Parameter("weight", shape=(3, 4))
    with pytest.raises(RuntimeError, match=r"weight.*\n.*initialize\(\)"):
        param.data()
    with pytest.raises(RuntimeError, match="has not been initialized"):
        param.list_ctx()


def test_unknown_sizes_need_deferred_initialization():
    with pytest.raises(ValueError, match=r"invalid shape: \(3, 0\)"):
        gluon.Parameter("weight", shape=(3, 0)).initialize()
    param = gluon.Parameter("weight", shape=(3, -1), allow_deferred_init=True)
    param.initialize()
    with pytest.raises(gluon.DeferredInitializationError, match="first forward pass"):
        param.data()
    param.shape = (3, 5)
    param._finish_deferred_init()
    assert param.data().shape == (3, 5)


def test_a_second_initialize_is_ignored_unless_forced():
    param = gluon.Parameter("weight", shape=(2,))
    param.initialize(init="ones")
    with pytest.warns(UserWarning, match="already initialized"):
        param.initialize(init="zeros")
    assert param.data().asnumpy().tolist() == [1, 1]
    param.initialize(init="zeros", force_reinit=True)
    assert param.data().asnumpy().tolist() == [0, 0]


def test_its_own_initializer_goes_before_the_default():
    net = nn.Dense(2, in_units=3, weight_initializer=mx.init.Constant(7), bias_initializer="ones")
    net.initialize(mx.init.Constant(3))
    assert (net.weight.data().asnumpy() == 7).all()
    assert (net.bias.data().asnumpy() == 1).all()


def test_a_shape_can_be_completed_but_not_changed():
    param = gluon.Parameter("weight", shape=(0, 4), allow_deferred_init=True)
    param.shape = (3, 4)
    assert param.shape == (3, 4)
    with pytest.raises(ValueError, match=r"Expected shape \(3, 4\) is incompatible with given shape \(3, 5\)"):
        param.shape = (3, 5)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"grad_req": "sum"}, "'write', 'add', or 'null'"),
        ({"stype": "dense"}, "stype"),
        ({"grad_stype": "dense"}, "grad_stype"),
    ],
)
def test_wrong_settings_are_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        gluon.Parameter("weight", shape=(1,), **arguments)


def test_grad_req_add_sums_and_zero_grad_clears():
    param = gluon.Parameter("weight", shape=(2,), grad_req="add")
    param.initialize(init="ones")
    for _ in range(3):
        with autograd.record():
            loss = (param.data() * mx.nd.array([2, 3])).sum()
        loss.backward()
    assert param.grad().asnumpy().tolist() == [6, 9]
    param.zero_grad()
    assert param.grad().asnumpy().tolist() == [0, 0]


def test_grad_req_null_frees_the_gradient_and_write_makes_it_again():
    param = gluon.Parameter("weight", shape=(2,))
    param.initialize(init="ones")
    param.grad_req = "null"
    with pytest.raises(RuntimeError, match="grad_req='null'"):
        param.grad()
    param.grad_req = "write"
    with autograd.record():
        loss = (3 * param.data()).sum()
    loss.backward()
    assert param.grad().asnumpy().tolist() == [3, 3]


def test_parameters_that_are_not_differentiable_never_have_a_gradient():
    param = gluon.Parameter("mean", shape=(2,), differentiable=False)
    param.grad_req = "add"
    assert param.grad_req == "null"


def test_set_data_before_and_after_initialization():
    param = gluon.Parameter("weight", shape=(2, 0), allow_deferred_init=True)
    with pytest.raises(ValueError, match="has not been initialized"):
        param.set_data(mx.nd.ones((2, 3)))
    param = gluon.Parameter("weight", shape=(2, 0), allow_deferred_init=True)
    param.initialize()
    param.set_data(mx.nd.ones((2, 3)))
    param._finish_deferred_init()
    assert (param.data().asnumpy() == 1).all()
    param.set_data(mx.nd.ones((2, 3)) * 2)
    assert (param.data().asnumpy() == 2).all()
    with pytest.raises(ValueError, match=r"\(3, 3\)"):
        param.set_data(mx.nd.ones((3, 3)))


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_cast_converts_value_and_gradient(dtype):
    param = gluon.Parameter("weight", shape=(3,))
    param.initialize(init="ones")
    param.cast(dtype)
    assert param.data().dtype == np.dtype(dtype)
    assert param.grad().dtype == np.dtype(dtype)
    with autograd.record():
        loss = (2 * param.data()).sum()
    loss.backward()
    assert param.grad().asnumpy().tolist() == [2, 2, 2]


def test_reset_ctx_moves_the_value():
    param = gluon.Parameter("weight", shape=(2,))
    with pytest.raises(ValueError, match="has not been initialized"):
        param.reset_ctx(mx.cpu(1))
    param.initialize(init="ones", ctx=mx.cpu(0))
    param.reset_ctx([mx.cpu(1), mx.cpu(2)])
    assert param.list_ctx() == [mx.cpu(1), mx.cpu(2)]
    assert param.data(mx.cpu(2)).asnumpy().tolist() == [1, 1]
    deferred = gluon.Parameter("late", shape=(0,), allow_deferred_init=True)
    deferred.initialize(ctx=mx.cpu(0))
    deferred.reset_ctx(mx.cpu(1))
    deferred.shape = (2,)
    deferred._finish_deferred_init()
    assert deferred.list_ctx() == [mx.cpu(1)]


def test_constants_keep_their_value():
    class Shift(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.shift = self.params.get_constant("shift", [[1, 2], [3, 4]])

        def hybrid_forward(self, F, x, shift):
            return x + shift

    net = Shift(prefix="net_")
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0, "momentum": 0.5})
    for _ in range(2):
        x = mx.nd.ones((2, 2))
        x.attach_grad()
        with autograd.record():
            y = net(x)
        y.backward()
        trainer.step(1)
        assert y.asnumpy().tolist() == [[2, 3], [4, 5]]
        assert (x.grad.asnumpy() == 1).all()
        net.hybridize()
    with pytest.warns(UserWarning, match="does not support grad_req other than"):
        net.shift.grad_req = "write"
    assert net.shift.grad_req == "null"
    with pytest.raises(ValueError, match="doesn't match"):
        net.params.get_constant("shift", [[1, 2], [3, 5]])
    with pytest.raises(KeyError, match="No constant named"):
        net.params.get_constant("other")
    net.params.get("plain", shape=(1,))
    with pytest.raises(ValueError, match="not a constant"):
        net.params.get_constant("plain")


def test_get_makes_once_and_checks_attributes():
    params = gluon.ParameterDict("net_")
    weight = params.get("weight", shape=(10, 0), allow_deferred_init=True)
    assert weight.name == "net_weight"
    assert params.get("weight", shape=(0, 5)) is weight
    assert weight.shape == (10, 5)
    assert params.get("weight", dtype="float32") is weight
    with pytest.raises(ValueError, match=r"'shape': desired '\(3, 5\)'"):
        params.get("weight", shape=(3, 5))
    with pytest.raises(ValueError, match="'grad_req'"):
        params.get("weight", grad_req="null")


def test_shared_dicts_give_the_same_parameters():
    base = gluon.ParameterDict("net_")
    weight = base.get("weight", shape=(2,))
    shared = gluon.ParameterDict("net_", base)
    assert shared.get("weight") is weight
    assert "net_weight" in shared
    assert list(shared) == ["net_weight"]
    other = gluon.ParameterDict("net_")
    other.get("weight", shape=(2,))
    with pytest.raises(ValueError, match="different Parameters with the same name 'net_weight'"):
        base.update(other)


def test_layers_share_parameters_through_params():
    first = nn.Dense(4, in_units=4, prefix="a_")
    second = nn.Dense(4, in_units=4, prefix="b_", params=first.collect_params())
    assert second.weight is first.weight
    first.initialize()
    x = mx.nd.ones((2, 4))
    np.testing.assert_array_equal(first(x).asnumpy(), second(x).asnumpy())
    with autograd.record():
        loss = second(first(x)).sum()
    loss.backward()
    trainer = gluon.Trainer(first.collect_params(), "sgd", {"learning_rate": 0.1})
    trainer.step(1)
    np.testing.assert_array_equal(first(x).asnumpy(), second(x).asnumpy())


def test_share_parameters_takes_structural_names():
    first, second = nn.HybridSequential(), nn.HybridSequential()
    for net in (first, second):
        net.add(nn.Dense(3, in_units=2), nn.Dense(1, in_units=3))
        net.initialize()
    x = mx.nd.ones((1, 2))
    second.hybridize()
    second(x)
    second.share_parameters(first._collect_params_with_prefix())
    np.testing.assert_array_equal(first(x).asnumpy(), second(x).asnumpy())
    with pytest.raises(ValueError, match=r"no parameter '7.weight'"):
        second.share_parameters({"7.weight": first[0].weight})


def test_multipliers_scale_rate_and_decay():
    net = nn.Dense(1, in_units=2, use_bias=False)
    net.initialize(mx.init.One())
    net.weight.lr_mult = 0.5
    net.weight.wd_mult = 3.0
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "wd": 0.01})
    with autograd.record():
        loss = net(mx.nd.array([[2, 4]])).sum()
    loss.backward()
    trainer.step(1)
    expected = 1 - 0.1 * 0.5 * (np.array([[2, 4]]) + 0.01 * 3)
    np.testing.assert_allclose(net.weight.data().asnumpy(), expected, rtol=1e-6)


def test_setattr_and_zero_grad_reach_all_parameters():
    net = nn.HybridSequential()
    net.add(nn.Dense(2, in_units=2), nn.Dense(1, in_units=2))
    net.initialize()
    params = net.collect_params()
    params.setattr("grad_req", "add")
    params.setattr("lr_mult", 2.0)
    assert {p.grad_req for p in params.values()} == {"add"}
    assert {p.lr_mult for p in params.values()} == {2.0}
    for _ in range(2):
        with autograd.record():
            loss = net(mx.nd.ones((1, 2))).sum()
        loss.backward()
    assert net[1].bias.grad().asnumpy().tolist() == [2]
    params.zero_grad()
    assert all(not p.grad().asnumpy().any() for p in params.values())


def test_prefixes_count_up_per_kind_and_scope():
    class Model(gluon.Block):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.first = nn.Dense(2, in_units=2)
                self.second = nn.Dense(2, in_units=2)
                self.norm = nn.BatchNorm(in_channels=2)

        def forward(self, x):
            return self.norm(self.second(self.first(x)))

    net = Model(prefix="model_")
    assert list(net.collect_params()) == [
        "model_dense0_weight",
        "model_dense0_bias",
        "model_dense1_weight",
        "model_dense1_bias",
        "model_batchnorm0_gamma",
        "model_batchnorm0_beta",
        "model_batchnorm0_running_mean",
        "model_batchnorm0_running_var",
    ]
    assert net.name == "model"
    assert list(net.collect_params(".*bias|.*gamma")) == [
        "model_dense0_bias",
        "model_dense1_bias",
        "model_batchnorm0_gamma",
    ]
    a, b = Model(), Model()
    assert a.prefix != b.prefix
    assert a.prefix.startswith("model")


def test_save_and_load_strip_and_restore_prefixes(tmp_path):
    file = str(tmp_path / "net.params")
    net = nn.Dense(2, in_units=3, prefix="a_")
    net.initialize(mx.init.Uniform(1))
    net.collect_params().save(file, strip_prefix="a_")
    assert sorted(mx.nd.load(file)) == ["bias", "weight"]
    other = nn.Dense(2, in_units=3, prefix="b_")
    other.collect_params().load(file, restore_prefix="b_")
    np.testing.assert_array_equal(net.weight.data().asnumpy(), other.weight.data().asnumpy())
    with pytest.raises(ValueError, match="Prefix 'x_'"):
        net.collect_params().save(file, strip_prefix="x_")
    with pytest.raises(ValueError, match="restore_prefix is 'x_'"):
        other.collect_params().load(file, restore_prefix="x_")
    with pytest.raises(ValueError, match="is missing"):
        other.collect_params().load(file)


def test_load_names_parameters_that_do_not_fit(tmp_path):
    file = str(tmp_path / "net.params")
    params = gluon.ParameterDict()
    params.get("weight", shape=(2, 3))
    for saved, text in [
        ({"weight": mx.nd.ones((2, 4))}, r"expected \(2, 3\) vs saved \(2, 4\)"),
        ({"weight": mx.nd.ones((2, 3), dtype="float64")}, "expected float32 vs saved float64"),
        ({"weight": mx.nd.ones((2, 3)), "bias": mx.nd.ones((2,))}, "'bias' loaded from .* is not present"),
        ({}, "'weight' is missing"),
    ]:
        mx.nd.save(file, saved)
        with pytest.raises(ValueError, match=text):
            params.load(file)
    mx.nd.save(file, [mx.nd.ones((2, 3))])
    with pytest.raises(ValueError, match="list of 1 arrays without names"):
        params.load(file)


@pytest.mark.parametrize(("source", "dtype"), [("current", "float32"), ("saved", "float64")])
def test_load_casts_if_asked(tmp_path, source, dtype):
    file = str(tmp_path / "net.params")
    mx.nd.save(file, {"arg:weight": mx.nd.array([1, 2], dtype="float64")})
    params = gluon.ParameterDict()
    weight = params.get("weight", shape=(2,))
    params.load(file, cast_dtype=True, dtype_source=source)
    assert weight.data().dtype == np.dtype(dtype)
    assert weight.data().asnumpy().tolist() == [1, 2]
    with pytest.raises(ValueError, match="'current' or 'saved'"):
        params.load(file, cast_dtype=True, dtype_source="other")


def test_loading_on_other_contexts_than_initialized_is_refused(tmp_path):
    file = str(tmp_path / "net.params")
    net = nn.Dense(2, in_units=3)
    net.initialize(ctx=mx.cpu(0))
    net.save_parameters(file)
    with pytest.raises(ValueError, match="previous initialized on"):
        net.load_parameters(file, ctx=mx.cpu(1))
    net.load_parameters(file, ctx=mx.cpu(0))


def test_representations_name_shapes_and_types():
    param = gluon.Parameter("weight", shape=(3, 0), allow_deferred_init=True)
    assert repr(param) == "Parameter weight (shape=(3, 0), dtype=<class 'numpy.float32'>)"
    params = gluon.ParameterDict("net_")
    params.get("weight", shape=(1,))
    assert repr(params).startswith("net_ (\n")


def test_deepcopy_of_an_initialized_net_is_independent():
    import copy

    net = nn.Dense(2, in_units=2)
    net.initialize(mx.init.One())
    twin = copy.deepcopy(net)
    twin.weight.set_data(mx.nd.zeros((2, 2)))
    assert (net.weight.data().asnumpy() == 1).all()
    assert (twin.weight.data().asnumpy() == 0).all()


@pytest.mark.parametrize("what", ["stype", "grad_stype"])
def test_an_unknown_storage_type_is_refused(what):
    for kind in (AssertionError, ValueError, mx.base.HybridNetError):
        with pytest.raises(kind, match=what):
            gluon.Parameter("w", shape=(2,), **{what: "dense"})


class Doubled(gluon.Parameter):
    """A parameter whose data() is twice its array, like parameters of libraries that drop weights."""

    def __init__(self, source: gluon.Parameter) -> None:
        super().__init__(source.name, shape=source.shape, allow_deferred_init=True)
        self._data, self._grad = source._data, source._grad
        self._ctx_list, self._ctx_map = source._ctx_list, source._ctx_map

    def data(self, ctx=None):
        return 2 * self._check_and_get(self._data, ctx)


@pytest.mark.parametrize("hybridized", [False, True])
@pytest.mark.parametrize("contexts", [1, 2])
def test_blocks_compute_with_the_data_of_a_parameter_subclass(hybridized, contexts, rng):
    net = nn.Dense(3, in_units=4, use_bias=False)
    net.initialize(mx.init.Uniform(), ctx=[mx.cpu(i) for i in range(contexts)])
    weight = net.weight.list_data()[0].asnumpy()
    doubled = Doubled(net.weight)
    net._reg_params["weight"] = net.params._params[net.weight.name] = doubled  # like libraries do
    if hybridized:
        net.hybridize()
    last = mx.cpu(contexts - 1)
    data = rng.normal(size=(2, 4)).astype("float32")
    with autograd.record():
        out = net(mx.nd.array(data, ctx=last))
    out.backward()
    np.testing.assert_allclose(out.asnumpy(), 2 * data @ weight.T, rtol=1e-5)
    np.testing.assert_allclose(
        doubled.grad(last).asnumpy(), np.broadcast_to(2 * data.sum(0), (3, 4)), rtol=1e-5, atol=1e-6
    )


def test_a_traced_variable_has_the_attributes_that_mxnet_writes() -> None:
    net = nn.Dense(2, in_units=3, weight_initializer=mx.init.Normal(0.5), prefix="fc_")
    net.initialize()
    net.hybridize()
    net.weight.lr_mult, net.weight.wd_mult = 2, 0.25
    attributes = net._get_graph(mx.nd.zeros((1, 3)))[1].attr_dict()
    hidden = {name: value for name, value in attributes["fc_weight"].items() if name.startswith("__")}
    assert hidden == {
        "__init__": mx.init.Normal(0.5).dumps(),
        "__lr_mult__": "2",
        "__storage_type__": "0",
        "__wd_mult__": "0.25",
    }
    assert attributes["fc_bias"]["__lr_mult__"] == "1.0"


class Scaled(gluon.HybridBlock):
    """A block that makes its parameters without a ParameterDict."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.scale = gluon.Parameter("scale", shape=(3,), init="ones")
        self.shift = gluon.Constant("shift", [1, 2, 3])

    def hybrid_forward(self, F, x, scale, shift):
        return x * scale + shift


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_parameter_set_as_an_attribute_is_one_of_the_block(hybrid, tmp_path):
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(Scaled(prefix="a_"), Scaled(prefix="b_"))
    assert list(net.collect_params()) == ["net_a_scale", "net_a_shift", "net_b_scale", "net_b_shift"]
    net.initialize()
    if hybrid:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1})
    with mx.autograd.record():
        net(mx.nd.ones((1, 3))).sum().backward()
    trainer.step(1)
    np.testing.assert_array_equal(net[1].scale.data().asnumpy(), [-1, -2, -3])
    net.save_parameters(str(tmp_path / "p"))
    again = gluon.nn.HybridSequential()
    again.add(Scaled(), Scaled())
    again.load_parameters(str(tmp_path / "p"))
    np.testing.assert_array_equal(again[1].scale.data().asnumpy(), [-1, -2, -3])


def test_parameters_of_one_name_get_the_names_of_their_attributes():
    block = Scaled(prefix="c_")
    block.more = gluon.Parameter("scale", shape=(2,))
    assert list(block.collect_params()) == ["c_scale", "c_shift", "c_more"]


def test_a_parameter_of_another_block_stays_where_it_is():
    first, second = gluon.nn.Dense(3, in_units=3), Scaled()
    second.tied = first.weight
    assert first.weight.name not in second.collect_params()
    assert second.tied is first.weight


def test_set_data_names_expected_and_given_shapes():
    param = gluon.Parameter("w", shape=(3,))
    param.initialize()
    with pytest.raises(ValueError, match=r"Expected shape \(3,\) is incompatible with given shape \(4,\)"):
        param.set_data(mx.nd.ones((4,)))
