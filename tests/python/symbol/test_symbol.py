"""Building, querying and running Symbols."""

from __future__ import annotations

import copy
import json
import pickle

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import sym


@pytest.fixture(autouse=True)
def fresh_names():
    with mx.name.NameManager():
        yield


def dense_net():
    data = sym.var("data")
    hidden = sym.FullyConnected(data, num_hidden=4, name="fc1")
    hidden = sym.Activation(hidden, act_type="relu", name="relu1")
    return sym.FullyConnected(hidden, num_hidden=2, name="fc2")


def test_missing_inputs_become_variables():
    net = dense_net()
    assert net.list_arguments() == ["data", "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"]
    assert net.list_outputs() == ["fc2_output"]
    assert net.name == "fc2"
    assert sym.FullyConnected(num_hidden=3, name="f", no_bias=True).list_arguments() == ["f_data", "f_weight"]


def test_names_are_numbered_by_function():
    x = sym.var("x")
    assert sym.Flatten(x).name == "flatten0"
    assert sym.Flatten(x).name == "flatten1"
    assert (x + x).name == "_plus0"
    assert (x + 1).name == "_plusscalar0"
    with mx.name.Prefix("net_"):
        assert sym.Flatten(x).name == "net_flatten0"
        assert sym.Flatten(x, name="mine").name == "net_mine"


def test_infer_shape_both_ways():
    net = dense_net()
    arguments, outputs, auxiliaries = net.infer_shape(data=(8, 3))
    assert arguments == [(8, 3), (4, 3), (4,), (2, 4), (2,)]
    assert outputs == [(8, 2)]
    assert auxiliaries == []
    assert net.infer_shape() == (None, None, None)
    partial = net.infer_shape_partial()
    assert partial[0][2] == (4,)
    assert net.infer_shape((8, 3))[1] == [(8, 2)]


def test_infer_type():
    arguments, outputs, _ = dense_net().infer_type(data="float64")
    assert arguments == [np.float64] * 5
    assert outputs == [np.float64]


def test_a_wrong_shape_names_node_and_input():
    net = dense_net()
    with pytest.raises(mx.errors.ShapeError) as caught:
        net.infer_shape(data=(8, 3), fc1_weight=(4, 5))
    assert "fc1" in str(caught.value)
    assert caught.value.op == "FullyConnected"


def test_arithmetic_makes_nodes():
    a, b = sym.var("a"), sym.var("b")
    values = {"a": mx.nd.array([4.0, 9.0]), "b": mx.nd.array([2.0, 3.0])}
    for net, expected in (
        (a + b, [6, 12]),
        (a - b, [2, 6]),
        (a * b, [8, 27]),
        (a / b, [2, 3]),
        (a % b, [0, 0]),
        (a**2, [16, 81]),
        (2**b, [4, 8]),
        (1 - a, [-3, -8]),
        (36 / a, [9, 4]),
        (-a, [-4, -9]),
        (a > 5, [0, 1]),
        (a == 4, [1, 0]),
        (a <= b, [0, 0]),
        (abs(-a), [4, 9]),
        (sym.maximum(a, 5), [5, 9]),
        (sym.minimum(a, b), [2, 3]),
        (sym.hypot(a, 3.0), [5, np.hypot(9, 3)]),
        (sym.pow(a, b), [16, 729]),
    ):
        names = net.list_arguments()
        (out,) = net.eval(**{name: values[name] for name in names})
        np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-6)


def test_composition_replaces_variables():
    net = dense_net()
    pre = sym.Flatten(sym.var("image"), name="flat")
    assert net(data=pre).list_arguments()[0] == "image"
    assert net(pre).list_arguments()[0] == "image"
    assert net.list_arguments()[0] == "data"
    with pytest.raises(ValueError, match="nope"):
        net(nope=pre)


def test_outputs_by_number_name_and_slice():
    parts = sym.split(sym.var("x"), num_outputs=3, name="s")
    assert len(parts) == 3
    assert [p.list_outputs() for p in parts] == [["s_output0"], ["s_output1"], ["s_output2"]]
    assert parts["s_output1"].list_outputs() == ["s_output1"]
    assert parts[-1].list_outputs() == ["s_output2"]
    assert len(parts[1:]) == 2
    with pytest.raises(IndexError):
        parts[3]
    with pytest.raises(ValueError, match="no such output"):
        parts["other"]


def test_groups_internals_children():
    net = dense_net()
    internals = net.get_internals()
    assert internals.list_outputs()[0] == "data"
    assert internals["fc1_output"].list_outputs() == ["fc1_output"]
    assert net.get_children().list_outputs() == ["relu1_output", "fc2_weight", "fc2_bias"]
    assert sym.var("x").get_children() is None
    group = sym.Group([net, internals["fc1_output"]])
    assert group.list_outputs() == ["fc2_output", "fc1_output"]
    assert group.name is None
    with pytest.raises(TypeError):
        sym.Group([])


def test_attributes():
    x = sym.var("x", shape=(2, 3), lr_mult=2, dtype="float64", init="ones", __mine__="yes")
    assert x.attr("__shape__") == "(2, 3)"
    assert x.attr("lr_mult") == "2"
    assert x.attr("__dtype__") == "1"
    assert x.list_attr()["__mine__"] == "yes"
    net = sym.FullyConnected(x, num_hidden=7, name="fc", attr={"__group__": "a"}, weight_lr_mult=3, wd_mult=4)
    assert net.attr("num_hidden") == "7"
    assert net.attr("__group__") == "a"
    assert net.attr("wd_mult") == "4"
    assert net.attr_dict()["fc_weight"]["__lr_mult__"] == "3"
    net._set_attr(color="red")
    assert net.attr("color") == "red"
    with mx.AttrScope(__stage__="2"):
        assert sym.Flatten(x).attr("__stage__") == "2"
    with pytest.raises(ValueError):
        mx.AttrScope(stage=2)
    with pytest.raises(ValueError, match="__key__"):
        sym.var("y", color="red")


def test_shapes_of_variables_are_used():
    net = sym.FullyConnected(sym.var("x", shape=(5, 3)), num_hidden=2, name="fc")
    assert net.infer_shape()[1] == [(5, 2)]


def test_json_and_files(tmp_path):
    net = dense_net()
    text = net.tojson()
    assert {node["name"] for node in json.loads(text)["nodes"]} == {
        "data",
        "fc1_weight",
        "fc1_bias",
        "fc1",
        "relu1",
        "fc2_weight",
        "fc2_bias",
        "fc2",
    }
    for again in (sym.load_json(text), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert again.tojson() == text
    path = tmp_path / "net-symbol.json"
    net.save(str(path))
    assert sym.load(str(path)).tojson() == text
    with pytest.raises(mx.errors.FileError, match="missing"):
        sym.load(str(tmp_path / "missing.json"))
    with pytest.raises(mx.errors.FormatError):
        sym.load_json(text[:100])
    with pytest.raises(mx.errors.FormatError, match="NoSuchOp"):
        sym.load_json(text.replace("FullyConnected", "NoSuchOp"))


def test_bind_runs_forward_and_backward(rng):
    net = dense_net()
    shapes = dict(zip(net.list_arguments(), net.infer_shape(data=(8, 3))[0], strict=True))
    args = {name: mx.nd.array(rng.normal(size=shape)) for name, shape in shapes.items()}
    grads = {name: mx.nd.zeros(shape) for name, shape in shapes.items()}
    executor = net.bind(mx.cpu(), args, args_grad=grads, grad_req={n: "write" for n in args if n != "data"})
    (out,) = executor.forward(is_train=True)
    a = {name: array.asnumpy() for name, array in args.items()}
    hidden = np.maximum(a["data"] @ a["fc1_weight"].T + a["fc1_bias"], 0)
    np.testing.assert_allclose(out.asnumpy(), hidden @ a["fc2_weight"].T + a["fc2_bias"], rtol=1e-4, atol=1e-5)
    executor.backward(mx.nd.ones((8, 2)))
    np.testing.assert_allclose(grads["fc2_bias"].asnumpy(), [8, 8])
    np.testing.assert_allclose(grads["fc2_weight"].asnumpy(), np.ones((2, 8)) @ hidden, rtol=1e-4)
    assert executor.grad_dict["data"] is grads["data"]  # bound, but no gradient was requested
    assert not grads["data"].asnumpy().any()
    assert executor.output_dict.keys() == {"fc2_output"}
    executor.forward(data=np.zeros((8, 3)))
    np.testing.assert_allclose(args["data"].asnumpy(), 0)
    with pytest.raises(mx.errors.ShapeError, match="reshape"):
        executor.forward(data=mx.nd.zeros((4, 3)))
    with pytest.raises(TypeError, match="nope"):
        executor.forward(nope=1)


def test_simple_bind_allocates_everything():
    executor = dense_net().simple_bind(mx.cpu(), data=(8, 3))
    assert executor.arg_dict["fc1_weight"].shape == (4, 3)
    executor.copy_params_from({"fc1_weight": mx.nd.ones((4, 3)), "fc2_bias": mx.nd.ones((2,))})
    np.testing.assert_allclose(executor.forward()[0].asnumpy(), np.ones((8, 2)))
    with pytest.raises(ValueError, match="other"):
        executor.copy_params_from({"other": mx.nd.ones((1,))})
    executor.copy_params_from({"other": mx.nd.ones((1,))}, allow_extra_params=True)
    with pytest.raises(mx.errors.ShapeError, match="allow_up_sizing"):
        executor.reshape(data=(16, 3))
    bigger = executor.reshape(data=(16, 3), allow_up_sizing=True)
    assert bigger.forward()[0].shape == (16, 2)
    assert bigger.arg_dict["fc1_weight"] is executor.arg_dict["fc1_weight"]
    with pytest.raises(ValueError, match="data"):
        dense_net().simple_bind(mx.cpu())


def test_bind_names_missing_arguments():
    with pytest.raises(ValueError, match="fc1_weight"):
        dense_net().bind(mx.cpu(), {"data": mx.nd.ones((8, 3))})


def test_cached_op_runs_a_graph_with_gradient(rng):
    net = dense_net()
    op = mx._core.CachedOp(net)
    shapes = dict(zip(net.list_arguments(), net.infer_shape(data=(8, 3))[0], strict=True))
    arrays = [mx.nd.array(rng.normal(size=shapes[name])) for name in net.list_inputs()]
    for array in arrays:
        array.attach_grad()
    with mx.autograd.record():
        y = op(*arrays)
        y2 = mx.nd.FullyConnected(
            mx.nd.Activation(mx.nd.FullyConnected(*arrays[:3], num_hidden=4), act_type="relu"),
            *arrays[3:],
            num_hidden=2,
        )
    np.testing.assert_allclose(y.asnumpy(), y2.asnumpy(), rtol=1e-5, atol=1e-6)
    grads = []
    for head in (y, y2):
        head.backward()
        grads.append([array.grad.asnumpy() for array in arrays])
    for a, b in zip(*grads, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert op.num_plans >= 1
    with pytest.raises(mx.errors.ShapeError):
        op(mx.nd.ones((8, 7)), *arrays[1:])


def test_constant_nodes():
    net = (
        sym.zeros((2, 3)) + sym.ones((2, 3)) * sym.full((2, 3), 5) + sym.arange(3).reshape((1, 3)).broadcast_to((2, 3))
    )
    np.testing.assert_allclose(net.eval()[0].asnumpy(), np.full((2, 3), 5) + np.arange(3))
    np.testing.assert_allclose(sym.eye(3).eval()[0].asnumpy(), np.eye(3))
    np.testing.assert_allclose(sym.linspace(0, 1, 5).eval()[0].asnumpy(), np.linspace(0, 1, 5), rtol=1e-6)


def test_functions_serve_arrays_and_symbols():
    x = sym.var("x")
    assert isinstance(mx.nd.Flatten(x), mx.sym.Symbol)
    assert isinstance(mx.sym.Flatten(mx.nd.ones((2, 3))), mx.nd.NDArray)
    both = x + mx.nd.array([1.0, 2.0])
    assert isinstance(both, mx.sym.Symbol)


def test_symbols_have_no_values():
    x = sym.var("x") * 2
    for use in (bool, float, int, lambda s: s.asnumpy(), lambda s: s.asscalar(), lambda s: [1, 2][s]):
        with pytest.raises(mx.errors.TraceError) as caught:
            use(x)
        assert "test_symbol.py" in str(caught.value)
    with pytest.raises(mx.MXNetError):
        x.wait_to_read()
    with pytest.raises(AttributeError):
        _ = x.shape
    with pytest.raises(mx.errors.TraceError):
        x[0:1] = 3


def test_smaller_shapes_reuse_the_memory_of_the_executor():
    executor = dense_net().simple_bind(mx.cpu(), data=(8, 3))
    executor.arg_dict["data"][:] = 2
    smaller = executor.reshape(data=(4, 3))
    np.testing.assert_array_equal(smaller.arg_dict["data"].asnumpy(), np.full((4, 3), 2))
    smaller.arg_dict["data"][:] = 5
    assert executor.arg_dict["data"][3, 2].asscalar() == 5
    assert executor.arg_dict["data"][4, 0].asscalar() == 2


def test_backward_after_a_run_in_prediction_mode():
    x = mx.nd.array([1.0, 2.0])
    grad = mx.nd.zeros((2,))
    executor = (sym.var("x") ** 2).bind(mx.cpu(), args=[x], args_grad=[grad])
    executor.forward()
    executor.backward(mx.nd.ones((2,), dtype="float16"))
    np.testing.assert_array_equal(grad.asnumpy(), [2, 4])


def test_given_shapes_replace_declared_ones():
    a = sym.var("a", shape=(2, 3))
    assert (a + sym.var("b")).infer_shape()[0] == [(2, 3), (2, 3)]
    assert (a + sym.var("b")).infer_shape(a=(5, 6))[0] == [(5, 6), (5, 6)]
    with mx.np_shape():
        assert sym.sin(sym.var("x")).infer_shape_partial()[0] == [None]
    assert sym.sin(sym.var("x")).infer_shape_partial()[0] == [()]


def test_multipliers_are_found_with_and_without_underscores():
    x = sym.var("x", lr_mult=2, attr={"force_mirroring": "True"})
    assert x.attr("lr_mult") == x.attr("__lr_mult__") == "2"
    assert x.attr("__force_mirroring__") == "True"
    assert {"__lr_mult__": "2", "lr_mult": "2"}.items() <= x.list_attr().items()


@pytest.mark.parametrize(
    ("scope", "current"),
    [
        (mx.cpu(1), mx.current_context),
        (mx.name.Prefix("own_"), lambda: mx.name.NameManager.current),
        (mx.AttrScope(group="1"), lambda: mx.AttrScope.current),
    ],
    ids=["context", "names", "attributes"],
)
def test_a_scope_may_be_entered_inside_itself(scope, current):
    before = current()
    with scope:
        with scope:
            assert current() is scope
        assert current() is scope
    assert current() is before


def test_an_attribute_scope_forgets_the_outer_attributes():
    own = mx.AttrScope(group="own")
    with mx.AttrScope(stage="outer"), own:
        assert mx.sym.var("x").attr("stage") == "outer"
    with own:
        assert mx.sym.var("x").list_attr() == {"group": "own"}


def test_a_variable_names_the_storage_types_it_takes():
    with pytest.raises(ValueError, match="expected stype to be one of default, row_sparse, csr, got 'dense'"):
        mx.sym.var("x", stype="dense")


def _operators(graph):
    return [
        name
        for node in graph["nodes"]
        for name in [node["op"], *(op for body in node.get("subgraphs", ()) for op in _operators(body))]
    ]


def _cast_graph():
    def body(x, total):
        return mx.sym.amp_cast(x, dtype="float16") * 2, total + 1

    data = mx.sym.var("data")
    rows, last = mx.sym.contrib.foreach(body, mx.sym.amp_cast(data, dtype="float16"), mx.sym.var("start"))
    left, right = mx.sym.amp_multicast(rows, mx.sym.var("other"), num_outputs=2)
    return mx.sym.Group([mx.sym.elemwise_add(left, right), last, mx.sym.amp_cast(data, dtype="float16")])


def test_files_hold_casts_of_mixed_precision_only_if_asked(tmp_path):
    graph = _cast_graph()
    with_casts = _operators(json.loads(graph.tojson(remove_amp_cast=False)))
    without = _operators(json.loads(graph.tojson()))
    assert sorted(set(with_casts) - set(without)) == ["amp_cast", "amp_multicast"]
    assert without == [op for op in with_casts if not op.startswith("amp_")]
    for remove in (True, False):
        graph.save(tmp_path / "graph.json", remove_amp_cast=remove)
        assert mx.sym.load(tmp_path / "graph.json").tojson(False) == graph.tojson(remove)


def test_a_graph_without_casts_computes_the_same():
    graph = _cast_graph()
    plain = mx.sym.load_json(graph.tojson())
    values = {"data": mx.nd.arange(6).reshape((3, 2)), "start": mx.nd.zeros((1,)), "other": mx.nd.ones((3, 2))}
    for one, two in zip(graph.eval(**values), plain.eval(**values), strict=True):
        np.testing.assert_array_equal(one.asnumpy(), two.asnumpy())
    assert {out.dtype for out in plain.eval(**values)} == {np.float32}
    assert plain.list_inputs() == graph.list_inputs()


def test_copies_of_a_graph_keep_its_casts():
    graph = _cast_graph()
    for made in (copy.copy(graph), copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert made.tojson(remove_amp_cast=False) == graph.tojson(remove_amp_cast=False)


def test_a_range_without_end_is_a_vector_as_long_as_its_reader_needs():
    total = mx.sym.arange(1, None, step=2, infer_range=True) + mx.sym.var("data")
    np.testing.assert_array_equal(total.eval(data=mx.nd.zeros((4,)))[0].asnumpy(), [1, 3, 5, 7])
    with pytest.raises(mx.errors.ShapeError):
        total.infer_shape(data=(4, 2))


def test_a_column_as_bias_is_not_folded_into_later_work(rng):
    data, bias = mx.sym.var("data"), mx.sym.var("bias", shape=(3, 1))
    dense = mx.sym.FullyConnected(data, mx.sym.var("weight"), bias, num_hidden=3, name="fc")
    net = mx.sym.BatchNorm(dense, name="bn", fix_gamma=False)
    values = {"data": (4, 2), "weight": (3, 2), "bias": (3, 1), "bn_gamma": (3,), "bn_beta": (3,)}
    values = {name: mx.nd.array(rng.normal(size=shape)) for name, shape in values.items()}
    moving = {"bn_moving_mean": mx.nd.array(rng.normal(size=3)), "bn_moving_var": mx.nd.ones((3,)) * 2}
    found = []
    for shape in ((3, 1), (3,)):
        values["bias"] = values["bias"].reshape(shape)
        net = mx.sym.load_json(net.tojson().replace("(3, 1)", str(shape)))
        found.append(net.bind(mx.cpu(), values, aux_states=moving).forward()[0].asnumpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-6)


def test_the_slope_of_prelu_starts_at_a_quarter():
    made = mx.sym.LeakyReLU(mx.sym.var("data"), act_type="prelu", name="act")
    own = mx.sym.LeakyReLU(mx.sym.var("data"), mx.sym.var("slope", init=mx.init.One()), act_type="prelu")
    for graph, wanted in ((made, 0.25), (mx.sym.load_json(made.tojson()), 0.25), (own, 1.0)):
        module = mx.mod.Module(graph, label_names=None)
        module.bind([("data", (2, 3))], for_training=False)
        module.init_params(mx.init.Xavier())
        (slope,) = module.get_params()[0].values()
        np.testing.assert_array_equal(slope.asnumpy(), np.full(3, wanted))
    assert "__init__" not in str(mx.sym.LeakyReLU(mx.sym.var("data"), act_type="leaky").attr_dict())


def test_optimizing_for_a_backend_checks_arguments_and_keeps_the_graph():
    graph = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    args = {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.ones(2), "other": mx.nd.ones(1)}
    made = graph.optimize_for("MKLDNN", args, {}, mx.cpu(), shape_dict={"data": (4, 3)})
    assert made.list_arguments() == graph.list_arguments() == graph.get_backend_symbol("MKLDNN").list_arguments()
    assert made.bind(mx.cpu(), {"data": mx.nd.ones((4, 3)), **args}).get_optimized_symbol().list_outputs() == [
        "fc_output"
    ]
    with pytest.raises(mx.MXNetError, match=r"fc_weight|weight"):
        graph.optimize_for("MKLDNN", args, shape_dict={"data": (4, 5)})
    graph.optimize_for("MKLDNN", args, shape_dict={"data": (4, 5)}, skip_infer=True)
    with pytest.raises(mx.MXNetError, match="backend must be a name"):
        graph.optimize_for("")
