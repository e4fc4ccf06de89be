"""Arithmetic, activations, reductions, products, random numbers and losses of ONNX files."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, nd
from hybridnet.errors import UnsupportedError
from hybridnet.onnx import import_to_gluon
from onnx_models import expected, model, node, run

reference = pytest.importorskip("onnx.reference")

INT32, BOOL = 6, 9  # codes of TensorProto
TRAINING = "ai.onnx.preview.training"
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 0.5, 1.5, 2.5, -0.5, -2.5, 88.9, -100], "float32")


def standard(proto, arrays):
    """The outputs of the standard's own implementation."""
    inputs = dict(zip([given.name for given in proto.graph.input], arrays, strict=True))
    return reference.ReferenceEvaluator(proto).run(None, inputs)


def assert_agrees(proto, *calls, judge=expected, rtol=1e-5, atol=1e-6):
    """One import agrees with onnxruntime, or with another judge, for all calls."""
    net = import_to_gluon(proto)
    net.hybridize()
    for arrays in calls:
        for got, want in zip(run(net, arrays), judge(proto, arrays), strict=True):
            assert got.shape == np.shape(want)
            assert got.dtype == np.asarray(want).dtype
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
    return net


def operators(net):
    return [line.split()[1] for line in net.plan_text().splitlines() if line.strip().startswith("[")]


# ------------------------------------------------------------------------------------------------------- one element
ONE_ELEMENT = [
    *("Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Round", "Sigmoid", "Sin", "Softsign"),
    *("Sqrt", "Tanh", "Relu", "Softplus", "Mish", "Elu", "Selu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid"),
    *("HardSwish", "Gelu", "Shrink", "Atan", "Asinh", "Celu"),
]


@pytest.mark.parametrize("op", ONE_ELEMENT)
def test_functions_of_one_element_agree_for_zeros_infinities_and_nan(op):
    proto = model([node(op, "x")], {"x": ("float32", ["n"])}, "y")
    assert_agrees(proto, (SPECIAL,), (SPECIAL[:1],), (SPECIAL[:0],))


@pytest.mark.parametrize("signs", [(1, 1), (1, 0), (0, 1), (0, 0)])
def test_is_inf_finds_the_signs_that_are_asked_for(signs):
    proto = model(
        [node("IsInf", "x", "y", detect_positive=signs[0], detect_negative=signs[1])], {"x": ("float32", ["n"])}, "y"
    )
    assert_agrees(proto, (SPECIAL,))


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Equal", "Less", "GreaterOrEqual"])
def test_functions_of_two_tensors_agree_for_zeros_infinities_and_nan(op):
    pairs = np.array(np.meshgrid(SPECIAL, SPECIAL), "float32").reshape(2, -1)
    proto = model([node(op, "a b")], {"a": ("float32", ["n"]), "b": ("float32", ["n"])}, "y")
    assert_agrees(proto, tuple(pairs))


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("number", [3, -3, 2**53 + 1])
def test_integers_are_exact_with_constants(op, number):
    proto = model([node(op, "x c")], {"x": ("int64", ["n"])}, "y", {"c": np.array(number)})
    assert_agrees(proto, (np.array([2**62, -(2**62), 2**53 + 1, 7, -7]),), rtol=0, atol=0)


@pytest.mark.parametrize("fmod", [0, 1])
def test_mod_of_integers_has_the_sign_of_the_divisor_or_of_the_dividend(fmod, rng):
    inputs = {"a": ("int32", ["n", 4]), "b": ("int32", [4])}
    a, b = rng.integers(-50, 50, (5, 4)).astype("int32"), np.array([3, -3, 7, -1], "int32")
    assert_agrees(model([node("Mod", "a b", "y", fmod=fmod)], inputs, "y"), (a, b), (a[:2], b))


def test_pow_does_not_round_the_exponent_to_an_integer_base():
    proto = model([node("Pow", "a b")], {"a": ("int32", [3])}, "y", {"b": np.array(0.5, "float32")})
    assert_agrees(proto, (np.array([4, 9, 16], "int32"),))


def test_clip_takes_limits_that_are_computed_at_run_time():
    inputs = {"x": ("float32", ["n"]), "low": ("float32", []), "high": ("float32", [])}
    proto = model([node("Clip", "x low high")], inputs, "y")
    low, high = np.array(1, "float32"), np.array(-1, "float32")
    assert_agrees(proto, (SPECIAL[1:], high, low), (SPECIAL[1:5], low, high))


@pytest.mark.parametrize("shape", [(3, 1), (1,), (4,), (3, 4), (2, 3, 4), ()])
def test_prelu_repeats_the_slope_along_leading_axes(shape, rng):
    slope = np.asarray(rng.normal(size=shape), "float32")
    proto = model([node("PRelu", "x s")], {"x": ("float32", [2, 3, 4])}, "y", {"s": slope})
    assert_agrees(proto, (rng.normal(size=(2, 3, 4)).astype("float32"),))


# ------------------------------------------------------------------------------- types that are held in wider dtypes
HELD = {"int16": "int32", "uint16": "int32", "uint32": "int64"}


@pytest.mark.parametrize("dtype", HELD)
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "BitwiseXor"])
def test_arithmetic_of_narrow_integers_wraps_around(op, dtype):
    limits = np.iinfo(dtype)
    a, b = np.array([limits.max, limits.min, 5], dtype), np.array([2, 1, limits.max], dtype)
    proto = model([node(op, "a b")], {"a": (dtype, ["n"]), "b": (dtype, ["n"])}, "y")
    want = standard(proto, (a, b))[0]
    got = run(import_to_gluon(proto), [a.astype(HELD[dtype]), b.astype(HELD[dtype])])[0]
    np.testing.assert_array_equal(got, want.astype(HELD[dtype]))


def test_the_narrow_type_follows_values_through_other_operators():
    nodes = [node("Cast", "x", "n", to=4), node("Max", "n n", "m"), node("BitwiseNot", "m")]
    got = run(import_to_gluon(model(nodes, {"x": ("int64", ["n"])}, "y")), [np.array([1, -1, 70000])])[0]
    np.testing.assert_array_equal(got, ~np.array([1, 65535, 70000 - 65536], "uint16"))


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts_by_all_bits_or_more_leave_zeros_or_signs(direction):
    inputs = {"x": ("int32", ["n"]), "by": ("int32", ["n"])}
    proto = model([node("BitShift", "x by", "y", direction=direction)], inputs, "y")
    x = np.array([5, -5, 5, -5, -5, 2**31 - 1], "int32")
    got = run(import_to_gluon(proto), [x, np.array([1, 1, 32, 40, -1, 31], "int32")])[0]
    wide = [x[0] * 2, x[1] * 2, 0, 0, 0, -(2**31)] if direction == "LEFT" else [2, -3, 0, -1, -1, 0]
    np.testing.assert_array_equal(got, wide)


# -------------------------------------------------------------------------------------------------- open sizes
X = ("float32", ["a", "b", 5])
OPEN = {
    "Softmax over the axes from one on": (9, [node("Softmax", "x", "y", axis=1)], {}),
    "LogSoftmax over all axes": (11, [node("LogSoftmax", "x", "y", axis=0)], {}),
    "Softmax along one axis": (13, [node("Softmax", "x", "y", axis=1)], {}),
    "Hardmax along one axis": (13, [node("Hardmax", "x", "y", axis=1)], {}),
    "ReduceMean of two axes": (13, [node("ReduceMean", "x", "y", axes=[0, -1])], {}),
    "ReduceMean of all axes": (18, [node("ReduceMean", "x", "y", keepdims=0)], {}),
    "ReduceL2": (18, [node("ReduceL2", "x axis", "y", keepdims=0)], {"axis": np.array([1])}),
    "ReduceLogSumExp": (18, [node("ReduceLogSumExp", "x axis", "y", keepdims=0)], {"axis": np.array([1])}),
    "last ArgMax": (13, [node("ArgMax", "x", "y", axis=1, select_last_index=1)], {}),
    "CumSum": (14, [node("CumSum", "x axis", "y", exclusive=1, reverse=1)], {"axis": np.array(1)}),
    "dense layer": (
        13,
        [node("MatMul", "x w", "h"), node("Add", "bias h")],
        {"w": np.linspace(-1, 1, 20, dtype="float32").reshape(5, 4), "bias": np.arange(4, dtype="float32")},
    ),
    "Einsum": (13, [node("Einsum", "x x", "y", equation="abc,abd->acd")], {}),
}


@pytest.mark.parametrize("case", OPEN)
def test_one_import_serves_all_sizes(case, rng):
    opset, nodes, constants = OPEN[case]
    proto = model(nodes, {"x": X}, "y", constants, opset=opset)
    arrays = [rng.normal(size=(*sizes, 5)).astype("float32") for sizes in ((2, 3), (1, 1), (4, 7))]
    assert_agrees(proto, *[(array,) for array in arrays], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", [9, 13])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_of_no_elements_has_their_shape(opset, axis):
    proto = model([node("Softmax", "x", "y", axis=axis)], {"x": ("float32", ["a", "b", 5])}, "y", opset=opset)
    assert_agrees(proto, (np.zeros((0, 3, 5), "float32"),), (np.ones((2, 3, 5), "float32"),))


def test_means_of_integers_round_toward_zero_for_all_sizes(rng):
    proto = model([node("ReduceMean", "x", "y", axes=[1], keepdims=0)], {"x": ("int32", ["a", "b"])}, "y", opset=13)
    calls = [(rng.integers(-9, 9, shape).astype("int32"),) for shape in ((2, 3), (4, 5), (1, 1))]
    assert_agrees(proto, *calls, judge=standard)


@pytest.mark.parametrize("flags", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_cumulative_products_serve_all_sizes(flags, rng):
    nodes = [node("CumProd", "x axis", "y", exclusive=flags[0], reverse=flags[1])]
    proto = model(nodes, {"x": ("float32", ["a", "b"])}, "y", {"axis": np.array(-1)}, opset=26)
    calls = [(rng.normal(size=shape).astype("float32"),) for shape in ((2, 3), (4, 6), (3, 1))]
    assert_agrees(proto, *calls, judge=standard)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceLogSumExp"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes_may_be_computed_at_run_time(op, keepdims, rng):
    proto = model([node(op, "x axes", "y", keepdims=keepdims)], {"x": X, "axes": ("int64", [1])}, "y")
    x = rng.normal(size=(2, 3, 5)).astype("float32")
    assert_agrees(proto, (x, np.array([1])), (x, np.array([-1])), (x[:1], np.array([0])))


def test_reductions_of_nothing_give_the_neutral_element():
    nodes = [node(f"Reduce{kind}", "x axis", kind, keepdims=0) for kind in ("Max", "Min", "Sum", "Prod")]
    proto = model(nodes, {"x": ("float32", [2, 0])}, "Max Min Sum Prod", {"axis": np.array([1])}, opset=20)
    got = run(import_to_gluon(proto), [np.zeros((2, 0), "float32")])
    np.testing.assert_array_equal(got, np.array([-np.inf, np.inf, 0, 1])[:, None] * np.ones(2))


def test_log_sum_exp_does_not_overflow_and_keeps_minus_infinity():
    proto = model([node("ReduceLogSumExp", "x", "y", axes=[1])], {"x": ("float32", ["n", 3])}, "y", opset=13)
    rows = [[1000, 1000, 0], [-np.inf] * 3, [np.inf, 0, 1], [-1000, -1001, -np.inf], [np.nan, 0, 0]]
    with np.errstate(all="ignore"):
        assert_agrees(proto, (np.array(rows, "float32"),))


# ------------------------------------------------------------------------------------------------------- products
@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (3,)), ((3,), (5, 3, 4)), ((2, 1, 2, 3), (5, 3, 4))])
def test_matmul_follows_numpy(shapes, rng):
    a, b = (rng.normal(size=shape).astype("float32") for shape in shapes)
    proto = model([node("MatMul", "a b")], {"a": ("float32", a.shape), "b": ("float32", b.shape)}, "y")
    assert_agrees(proto, (a, b), rtol=1e-4)


@pytest.mark.parametrize("transposes", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("c_shape", [None, (4,), (1, 4), (2, 4), (2, 1), ()])
@pytest.mark.parametrize("constant", [True, False])
def test_gemm_scales_and_transposes(transposes, c_shape, constant, rng):
    a = rng.normal(size=(3, 2) if transposes[0] else (2, 3)).astype("float32")
    tensors = {"b": rng.normal(size=(4, 3) if transposes[1] else (3, 4)).astype("float32")}
    if c_shape is not None:
        tensors["c"] = np.asarray(rng.normal(size=c_shape), "float32")
    gemm = node("Gemm", " ".join(["a", *tensors]), "y", transA=transposes[0], transB=transposes[1], alpha=0.5, beta=2.0)
    inputs = {"a": ("float32", a.shape)} | ({} if constant else {k: ("float32", v.shape) for k, v in tensors.items()})
    proto = model([gemm], inputs, "y", tensors if constant else {})
    assert_agrees(proto, (a, *([] if constant else tensors.values())), rtol=1e-4)


def dense(outputs="y"):
    nodes = [node("MatMul", "x w", "h"), node("Add", "h bias")]
    constants = {"w": np.arange(12, dtype="float32").reshape(3, 4), "bias": np.ones(4, "float32")}
    return model(nodes, {"x": ("float32", ["n", "t", 3])}, outputs, constants)


def test_a_product_with_a_constant_and_a_row_is_one_dense_layer(rng):
    net = assert_agrees(dense(), (rng.normal(size=(2, 3, 3)).astype("float32"),))
    assert operators(net) == ["FullyConnected"]


def test_a_product_that_is_read_twice_stays_apart_from_the_sum(rng):
    assert_agrees(dense("y h"), (rng.normal(size=(2, 3, 3)).astype("float32"),))


def test_two_products_with_one_constant_share_its_parameter(rng):
    nodes = [node("MatMul", "x w", "h"), node("MatMul", "h w")]
    proto = model(nodes, {"x": ("float32", ["n", 3])}, "y", {"w": rng.normal(size=(3, 3)).astype("float32")})
    assert len(import_to_gluon(proto).collect_params()) == 1


def test_a_norm_in_elementary_operators_becomes_one_operator(rng):
    nodes = [
        node("ReduceMean", "x", "mean", axes=[-1]),
        node("Sub", "x mean", "d"),
        node("Pow", "d two", "squares"),
        node("ReduceMean", "squares", "variance", axes=[-1]),
        node("Add", "variance eps", "shifted"),
        node("Sqrt", "shifted", "deviation"),
        node("Div", "d deviation", "n"),
        node("Mul", "n gamma", "scaled"),
        node("Add", "scaled beta"),
    ]
    constants = {"two": np.float32(2), "eps": np.float32(1e-5)}
    constants |= {name: rng.normal(size=16).astype("float32") for name in ("gamma", "beta")}
    proto = model(nodes, {"x": ("float32", ["n", "t", 16])}, "y", constants, opset=14)
    net = assert_agrees(proto, (rng.normal(size=(2, 3, 16)).astype("float32"),), rtol=1e-4, atol=1e-5)
    assert operators(net) == ["LayerNorm"]


# ------------------------------------------------------------------------------------------------------ training
def test_imported_layers_learn(rng):
    net, x = import_to_gluon(dense()), nd.array(rng.normal(size=(2, 3, 3)))
    with autograd.record():
        net(x).sum().backward()
    gradients = {name: parameter.grad().asnumpy() for name, parameter in net.collect_params().items()}
    np.testing.assert_allclose(gradients["bias"], np.full(4, 6))
    total = x.asnumpy().sum((0, 1))
    np.testing.assert_allclose(gradients["w_transposed"], np.tile(total, (4, 1)), rtol=1e-5)


def gradient_at(proto, array):
    net, x = import_to_gluon(proto), nd.array(array)
    x.attach_grad()
    with autograd.record():
        net(x).sum().backward()
    return x.grad.asnumpy()


def test_the_norm_of_zeros_has_the_gradient_zero():
    proto = model([node("ReduceL2", "x", "y", axes=[1])], {"x": ("float32", ["n", 2])}, "y", opset=13)
    got = gradient_at(proto, np.array([[0, 0], [3, 4]], "float32"))
    np.testing.assert_allclose(got, [[0, 0], [0.6, 0.8]], rtol=1e-6)


def test_log_sum_exp_has_the_gradient_of_softmax():
    proto = model([node("ReduceLogSumExp", "x", "y", axes=[1])], {"x": ("float32", ["n", 2])}, "y", opset=13)
    got = gradient_at(proto, np.array([[0, 0], [1000, 1000 + np.log(3)]], "float32"))
    np.testing.assert_allclose(got, [[0.5, 0.5], [0.25, 0.75]], rtol=1e-4)


def test_ignored_targets_of_a_loss_have_no_gradient(rng):
    loss = node("SoftmaxCrossEntropyLoss", "x target", "y", ignore_index=-1)
    proto = model([loss], {"x": ("float32", [2, 3])}, "y", {"target": np.array([2, -1])}, opset=13)
    got = gradient_at(proto, np.zeros((2, 3), "float32"))
    np.testing.assert_allclose(got, [[1 / 3, 1 / 3, -2 / 3], [0, 0, 0]], rtol=1e-5)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [True, False])
def test_losses_serve_all_sizes(reduction, weighted, rng):
    constants = {"w": np.array([1, 2, 0.5], "float32")} if weighted else {}
    loss = node("SoftmaxCrossEntropyLoss", " ".join(["x", "t", *constants]), "y", reduction=reduction, ignore_index=1)
    proto = model([loss], {"x": ("float32", ["n", 3, "d"]), "t": ("int64", ["n", "d"])}, "y", constants, opset=13)
    calls = [
        (rng.normal(size=(n, 3, d)).astype("float32"), rng.integers(0, 3, (n, d))) for n, d in ((2, 5), (4, 3), (3, 4))
    ]
    assert_agrees(proto, *calls)


# ------------------------------------------------------------------------------------------------- random numbers
def test_dropout_drops_in_training_only():
    proto = model([node("Dropout", "x p")], {"x": ("float32", ["n"])}, "y", {"p": np.float32(0.5)})
    net, ones = import_to_gluon(proto), nd.ones(1000)
    assert (net(ones) == 1).asnumpy().all()
    with autograd.record():
        dropped = net(ones).asnumpy()
    assert set(np.unique(dropped)) == {0, 2}


def test_dropout_in_training_mode_drops_in_prediction_and_says_where():
    inputs = {"x": ("float32", ["n"]), "p": ("float32", []), "training": ("bool", [])}
    proto = model([node("Dropout", "x p training", "y mask")], inputs, "y mask")
    net, ones = import_to_gluon(proto), np.ones(1000, "float32")
    y, mask = run(net, [ones, np.array(0.75, "float32"), np.array(True)])
    np.testing.assert_array_equal(y, np.where(mask, 4, 0))
    assert 150 < mask.sum() < 350
    y, mask = run(net, [ones, np.array(0.75, "float32"), np.array(False)])
    assert (y == 1).all()
    assert mask.all()


def test_random_numbers_of_a_constant_shape_are_drawn_in_each_call():
    nodes = [node("RandomNormalLike", "c", "z", mean=3.0, scale=0.5), node("Add", "x z")]
    proto = model(nodes, {"x": ("float32", [1000])}, "y", {"c": np.zeros(1000, "float32")})
    net = import_to_gluon(proto)
    net.hybridize()
    first, second = (run(net, [np.zeros(1000, "float32")])[0] for _ in range(2))
    assert (first != second).any()
    assert abs(first.mean() - 3) < 0.1
    assert abs(first.std() - 0.5) < 0.1


def test_multinomial_draws_classes_by_their_logarithms():
    proto = model([node("Multinomial", "x", "y", sample_size=2000)], {"x": ("float32", ["n", 3])}, "y")
    drawn = run(import_to_gluon(proto), [np.log([[0.2, 0.8, 1e-30]]).astype("float32")])[0]
    assert drawn.shape == (1, 2000)
    assert abs((drawn == 1).mean() - 0.8) < 0.05
    assert not (drawn == 2).any()


def test_bernoulli_draws_ones_with_the_probability():
    proto = model([node("Bernoulli", "x", "y", dtype=BOOL)], {"x": ("float32", ["n"])}, "y")
    drawn = run(import_to_gluon(proto), [np.array([0.0] * 500 + [1.0] * 500 + [0.5] * 1000, "float32")])[0]
    assert drawn.dtype == bool
    assert not drawn[:500].any()
    assert drawn[500:1000].all()
    assert 400 < drawn[1000:].sum() < 600


# ------------------------------------------------------------------------------------------------------ refusals
def test_bits_of_floats_are_refused():
    proto = model([node("BitCast", "x", "y", to=INT32)], {"x": ("float32", ["n"])}, "y", opset=26)
    with pytest.raises(UnsupportedError, match=r"BitCast.*the bits of float32 as int32"):
        import_to_gluon(proto)


def test_an_unknown_number_of_axes_is_refused():
    proto = model([node("ReduceSum", "x axes")], {"x": X, "axes": ("int64", ["n"])}, "y")
    with pytest.raises(UnsupportedError, match=r"ReduceSum.*the number of axes"):
        import_to_gluon(proto)


def test_the_determinant_of_other_than_squares_is_an_error():
    proto = model([node("Det", "x")], {"x": ("float32", [2, 3])}, "y")
    with pytest.raises(mx.errors.ValueError, match=r"Det.*square"):
        import_to_gluon(proto)


def test_gradients_of_values_inside_the_graph_are_refused():
    nodes = [
        node("Mul", "x x", "h"),
        node("Mul", "h x"),
        node("Gradient", "h", "d", domain=TRAINING, xs=["h"], y="y"),
    ]
    with pytest.raises(UnsupportedError, match=r"Gradient.*that the graph computes"):
        import_to_gluon(model(nodes, {"x": ("float32", ["n"])}, "d", domains={TRAINING: 1}))


def test_gradient_nodes_give_gradients_of_inputs_twice():
    nodes = [
        node("Mul", "x x", "h"),
        node("Mul", "h x"),
        node("Gradient", "x", "d", domain=TRAINING, xs=["x"], y="y"),
        node("Gradient", "x", "dd", domain=TRAINING, xs=["x"], y="d"),
    ]
    proto = model(nodes, {"x": ("float32", ["n"])}, "d dd", domains={TRAINING: 1})
    first, second = run(import_to_gluon(proto), [np.array([1, 2], "float32")])
    np.testing.assert_allclose(first, [3, 12])
    np.testing.assert_allclose(second, [6, 12])
