"""ONNX's bytes: quantization, products of bytes, files with QDQ pairs, and packed weights."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import hybridnet as mx  # noqa: E402
from hybridnet.errors import UnsupportedError  # noqa: E402
from onnx_models import exact, expected, model, node, run  # noqa: E402

MICROSOFT = {"com.microsoft": 1}


def whole(rng: Any, dtype: str, *shape: int) -> np.ndarray:
    """All numbers of an integer dtype."""
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def floats(rng: Any, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


def assert_within_a_step(
    proto: Any, *feeds: Any, steps: int = 1, rtol: float = 1e-4, reference: Callable[..., Any] = expected
) -> Any:
    """One import gives the integers of the reference, onnxruntime, but for `steps`, and its floats, for all inputs."""
    net = mx.onnx.import_to_gluon(proto)
    net.hybridize()
    for arrays in feeds:
        for made, wanted in zip(run(net, arrays), reference(proto, arrays), strict=True):
            assert made.dtype == wanted.dtype
            assert made.shape == wanted.shape
            if wanted.dtype.kind in "iu":
                assert np.abs(made.astype("int64") - wanted.astype("int64")).max() <= steps
            else:
                np.testing.assert_allclose(made, wanted, rtol=rtol, atol=rtol)
    return net


def operators(proto: Any) -> str:
    return str(mx.onnx.import_model(proto)[0].tojson())


# -------------------------------------------------------------------------------------------------------- quantization
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
@pytest.mark.parametrize("per_axis", [False, True])
def test_floats_become_the_integers_of_onnxruntime(rng, dtype, per_axis):
    scale = (rng.random(4) * 0.1 + 0.01).astype("float32") if per_axis else np.float32(0.03)
    zero = whole(rng, dtype, 4) if per_axis else np.array(5, dtype)
    proto = model(
        [node("QuantizeLinear", "x s z", "q", axis=1), node("DequantizeLinear", "q s z", "y", axis=1)],
        {"x": ("float32", ["N", 4, "M"])},
        "y",
        {"s": scale, "z": zero},
    )
    assert_within_a_step(proto, *[[floats(rng, size, 4, 2 * size) * 5] for size in (1, 3, 6)], rtol=1e-6)
    only = model(
        [node("QuantizeLinear", "x s z", axis=1)], {"x": ("float32", ["N", 4, "M"])}, constants={"s": scale, "z": zero}
    )
    made = run(mx.onnx.import_to_gluon(only), [floats(rng, 2, 4, 50) * 5])[0]
    assert made.dtype == (dtype if dtype.endswith("8") else "int32")  # held in a wider one


def test_halves_are_rounded_to_even_and_saturated():
    x = np.float32([0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9, 127.5])
    proto = model(
        [node("QuantizeLinear", "x one zero")],
        {"x": ("float32", ["N"])},
        constants={"one": np.float32(1), "zero": np.int8(0)},
    )
    assert_within_a_step(proto, [x], steps=0)


def test_bytes_that_were_dequantized_are_these_bytes(rng):
    proto = model(
        [node("DequantizeLinear", "x s z", "f"), node("Reshape", "f shape", "g"), node("QuantizeLinear", "g s z")],
        {"x": ("uint8", ["N", 4])},
        constants={"s": np.float32(0.1), "z": np.uint8(9), "shape": np.array([-1, 2])},
    )
    assert_within_a_step(proto, [whole(rng, "uint8", 3, 4)], steps=0)
    assert "Cast" not in operators(proto)


def test_the_range_of_data_gives_scale_and_zero_point(rng):
    proto = model([node("DynamicQuantizeLinear", "x", "q s z")], {"x": ("float32", ["N", 4])}, "q s z")
    feeds = [[floats(rng, 3, 4)], [abs(floats(rng, 2, 4))], [-abs(floats(rng, 5, 4))], [np.zeros((2, 4), "float32")]]
    assert_within_a_step(proto, *feeds, rtol=1e-6)


# ----------------------------------------------------------------------------------------------------------- products
WINDOWS = [
    {},
    {"pads": [1, 1, 1, 1]},
    {"pads": [0, 1, 2, 1], "strides": [2, 1]},
    {"group": 2, "dilations": [1, 2]},
    {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
]


@pytest.mark.parametrize("zeros", ["none", "constant", "data"])
@pytest.mark.parametrize("dtypes", [*itertools.product(["uint8", "int8"], repeat=2)], ids="-".join)
@pytest.mark.parametrize("attributes", WINDOWS, ids=str)
def test_sums_of_convolutions_of_bytes_are_exact(rng, dtypes, attributes, zeros):
    weight = whole(rng, dtypes[1], 4, 4 // attributes.get("group", 1), 3, 2)
    constants: dict[str, Any] = {"w": weight}
    inputs: dict[str, Any] = {"x": (dtypes[0], ["N", 4, "H", "W"])}
    names, zero, weight_zero = "x w", 0, np.zeros((4, 1, 1, 1))
    if zeros != "none":
        names, zero = "x w xz wz", 7
        constants["wz"] = whole(rng, dtypes[1], 4)
        weight_zero = constants["wz"].astype("float64").reshape(4, 1, 1, 1)
        if zeros == "constant":
            constants["xz"] = np.array(7, dtypes[0])
        else:
            inputs["xz"] = (dtypes[0], [])
    proto = model([node("ConvInteger", names, **attributes)], inputs, constants=constants)
    net = mx.onnx.import_to_gluon(proto)
    plain = model(
        [node("Conv", "x w", **attributes)],
        {"x": ("float32", [None] * 4)},
        constants={"w": (weight - weight_zero).astype("float32")},
    )
    for size in ((1, 6, 7), (2, 9, 8)):
        x = whole(rng, dtypes[0], size[0], 4, *size[1:])
        wanted = expected(plain, [x.astype("float32") - zero])[0]
        made = run(net, [x, np.array(7, dtypes[0])] if zeros == "data" else [x])[0]
        assert made.dtype == "int32"
        assert (made == wanted).all()


@pytest.mark.parametrize("dtypes", [*itertools.product(["uint8", "int8"], repeat=2)], ids="-".join)
@pytest.mark.parametrize("a_zero", ["none", "number", "rows"])
@pytest.mark.parametrize("b_zero", ["none", "number", "columns"])
def test_sums_of_products_of_bytes_are_exact(rng, dtypes, a_zero, b_zero):
    b = whole(rng, dtypes[1], 17, 5)
    constants: dict[str, Any] = {"b": b}
    inputs: dict[str, Any] = {"a": (dtypes[0], ["M", 17])}
    if a_zero == "rows":
        inputs["az"] = (dtypes[0], ["M"])
    elif a_zero == "number":
        constants["az"] = np.array(7, dtypes[0])
    if b_zero != "none":
        constants["bz"] = whole(rng, dtypes[1], 5) if b_zero == "columns" else np.array(3, dtypes[1])
    names = f"a b {'_' if a_zero == 'none' else 'az'} {'' if b_zero == 'none' else 'bz'}"
    net = mx.onnx.import_to_gluon(model([node("MatMulInteger", names)], inputs, constants=constants))
    right = b.astype("int64") - constants.get("bz", np.array(0)).astype("int64")
    for rows in (3, 6):
        a, given = whole(rng, dtypes[0], rows, 17), whole(rng, dtypes[0], rows)
        zero = given.astype("int64")[:, None] if a_zero == "rows" else 7 if a_zero == "number" else 0
        made = run(net, [a, given] if a_zero == "rows" else [a])[0]
        assert (made == (a.astype("int64") - zero) @ right).all()


# --------------------------------------------------------------------------------------------- files with QDQ pairs
def network(rng: Any, data: str, weights: str) -> Any:
    """Two convolutions with a pooling between them and a dense layer, with QDQ pairs around."""
    signed = weights == "int8"
    constants: dict[str, Any] = {
        "w1": whole(rng, weights, 8, 3, 3, 3),
        "w2": whole(rng, weights, 8, 8, 3, 3),
        "w3": whole(rng, weights, 5, 8),
        "b1": rng.integers(-500, 500, 8).astype("int32"),
        "b1s": np.float32(0.02) * (rng.random(8).astype("float32") * 0.01 + 0.001),
        "xs": np.float32(0.02),
        "xz": np.array(3, data),
        "ws": None,
        "wz": np.zeros(8, weights) if signed else np.full(8, 130, weights),
        "ws1": np.float32(0.004),
        "wz1": np.array(0 if signed else 130, weights),
        "ys": np.float32(0.05),
        "yz": np.array(10, data),
        "bz": np.zeros(8, "int32"),
    }
    constants["ws"] = constants["b1s"] / np.float32(0.02)

    def pair(name: str, scale: str = "ys", zero: str = "yz") -> list[Any]:
        return [
            node("QuantizeLinear", f"{name} {scale} {zero}", f"{name}_q"),
            node("DequantizeLinear", f"{name}_q {scale} {zero}", f"{name}_d"),
        ]

    nodes = [
        *pair("x", "xs", "xz"),
        node("DequantizeLinear", "w1 ws wz", "w1_d", axis=0),
        node("DequantizeLinear", "b1 b1s bz", "b1_d", axis=0),
        node("Conv", "x_d w1_d b1_d", "c", pads=[1, 1, 1, 1]),
        node("Relu", "c", "r"),
        *pair("r"),
        node("MaxPool", "r_d", "m", kernel_shape=[2, 2], strides=[2, 2]),
        *pair("m"),
        node("DequantizeLinear", "w2 ws wz", "w2_d", axis=0),
        node("Conv", "m_d w2_d", "e", pads=[1, 0, 1, 2]),
        *pair("e"),
        node("GlobalAveragePool", "e_d", "g"),
        node("Flatten", "g", "f"),
        *pair("f"),
        node("DequantizeLinear", "w3 ws1 wz1", "w3_d"),
        node("Gemm", "f_d w3_d", "h", transB=1),
        node("QuantizeLinear", "h ys yz", "y"),
    ]
    return model(nodes, {"x": ("float32", ["N", 3, "H", "W"])}, constants=constants)


@pytest.mark.parametrize("data, weights", [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8")])
def test_files_with_qdq_pairs_multiply_bytes(rng, data, weights):
    proto = network(rng, data, weights)
    names = operators(proto)
    assert '"_contrib_quantized_conv"' in names
    assert '"_contrib_quantized_fully_connected"' in names
    assert '"_contrib_quantized_pooling"' in names
    assert '"Convolution"' not in names
    assert_within_a_step(proto, *[[floats(rng, size, 3, 8 * size, 10)] for size in (1, 2, 3)], reference=exact)


@pytest.mark.parametrize("weights", ["int8", "uint8"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_qlinear_layers_give_the_bytes_of_onnxruntime(rng, weights, per_channel):
    channels = 6
    constants = {
        "xs": np.float32(0.05),
        "xz": np.uint8(7),
        "w": whole(rng, weights, channels, 4, 3, 3),
        "ws": rng.random(channels).astype("float32") * 0.02 if per_channel else np.float32(0.01),
        "wz": np.full(channels if per_channel else (), 0 if weights == "int8" else 130, weights),
        "ys": np.float32(2.0),
        "yz": np.uint8(5),
        "b": rng.integers(-2000, 2000, channels).astype("int32"),
    }
    proto = model(
        [node("QLinearConv", "x xs xz w ws wz ys yz b", pads=[1, 1, 1, 1])],
        {"x": ("uint8", ["N", 4, "H", "W"])},
        constants=constants,
    )
    images = [[whole(rng, "uint8", size, 4, 5 + size, 6)] for size in (1, 2, 3)]
    assert_within_a_step(proto, *images, reference=exact)
    dense = model(
        [node("QLinearMatMul", "x xs xz w ws wz ys yz")],
        {"x": ("uint8", ["B", "M", 9])},
        constants={**constants, "w": whole(rng, weights, 9, channels)},
    )
    assert_within_a_step(dense, *[[whole(rng, "uint8", size, 4, 9)] for size in (1, 2, 3)], reference=exact)


# --------------------------------------------------------------------------------------- operators of ONNX Runtime
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(
    "op, attributes",
    [
        ("Sigmoid", {}),
        ("LeakyRelu", {"alpha": 0.2}),
        ("Softmax", {"opset": 13, "axis": -1}),
        ("Softmax", {"opset": 12, "axis": 1}),
        ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
        ("GlobalAveragePool", {"channels_last": 0}),
    ],
)
def test_operators_of_bytes_of_onnxruntime(rng, dtype, op, attributes):
    proto = model(
        [node(f"QLinear{op}", "x xs xz ys yz", domain="com.microsoft", **attributes)],
        {"x": (dtype, ["N", 4, "H", "W"])},
        constants={
            "xs": np.float32(0.05),
            "xz": np.array(7, dtype),
            "ys": np.float32(1 / 256 if op in ("Sigmoid", "Softmax") else 0.04),
            "yz": np.array(np.iinfo(dtype).min if op in ("Sigmoid", "Softmax") else 3, dtype),
        },
        domains=MICROSOFT,
    )
    assert_within_a_step(proto, *[[whole(rng, dtype, size, 4, 5 + size, 6)] for size in (1, 2, 3)])


@pytest.mark.parametrize("op, step", [("QLinearAdd", 0.07), ("QLinearMul", 0.3)])
def test_arithmetic_of_bytes_of_onnxruntime(rng, op, step):
    constants = {"as": 0.02, "bs": 0.05, "cs": step}
    proto = model(
        [node(op, "a as az b bs bz cs cz", domain="com.microsoft")],
        {"a": ("uint8", ["N", 4]), "b": ("uint8", ["N", 1])},
        constants={
            **{name: np.float32(value) for name, value in constants.items()},
            **{name: np.uint8(value) for name, value in {"az": 7, "bz": 3, "cz": 12}.items()},
        },
        domains=MICROSOFT,
    )
    assert_within_a_step(proto, *[[whole(rng, "uint8", size, 4), whole(rng, "uint8", size, 1)] for size in (1, 5)])


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", [False, True])
def test_weights_of_some_bits_are_unpacked(rng, bits, zeros):
    rows, columns, block = 6, 80, 32
    blocks = -(-columns // block)
    constants = {
        "b": whole(rng, "uint8", rows, blocks, block * bits // 8),
        "s": rng.random((rows, blocks)).astype("float32") * 0.1,
        "z": whole(rng, "uint8", rows, -(-blocks * bits // 8)),
    }
    proto = model(
        [
            node(
                "MatMulNBits",
                "a b s z" if zeros else "a b s",
                domain="com.microsoft",
                N=rows,
                K=columns,
                bits=bits,
                block_size=block,
            )
        ],
        {"a": ("float32", ["B", "S", columns])},
        constants=constants if zeros else {name: constants[name] for name in "bs"},
        domains=MICROSOFT,
    )
    assert_within_a_step(proto, *[[floats(rng, 2, size, columns)] for size in (1, 3, 5)], rtol=1e-3)


def test_packed_weights_must_be_constants(rng):
    proto = model(
        [node("MatMulNBits", "a b s", domain="com.microsoft", N=2, K=16, bits=4, block_size=16)],
        {"a": ("float32", [3, 16]), "b": ("uint8", [2, 1, 8])},
        constants={"s": np.ones((2, 1), "float32")},
        domains=MICROSOFT,
    )
    with pytest.raises(UnsupportedError, match="B must be a constant"):
        mx.onnx.import_to_gluon(proto)


def test_the_type_to_quantize_to_must_be_an_integer():
    attributes = {"output_dtype": onnx.TensorProto.FLOAT8E4M3FN}
    proto = model(
        [node("QuantizeLinear", "x s", **attributes)], {"x": ("float32", [2])}, constants={"s": np.float32(1)}
    )
    with pytest.raises(UnsupportedError, match="float8"):
        mx.onnx.import_to_gluon(proto)


def test_a_layer_around_dequantized_weights_alone_is_trained_as_floats(rng):
    weight = whole(rng, "int8", 4, 3)
    proto = model(
        [node("DequantizeLinear", "w s", "wf"), node("MatMul", "x wf")],
        {"x": ("float32", ["N", 4])},
        constants={"w": weight, "s": np.float32(0.1)},
    )
    net, x = mx.onnx.import_to_gluon(proto), floats(rng, 2, 4)
    data = mx.nd.array(x)
    data.attach_grad()
    with mx.autograd.record():
        y = net(data)
        loss = y.sum()
    loss.backward()
    right = weight.astype("float32") * np.float32(0.1)
    np.testing.assert_allclose(y.asnumpy(), x @ right, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(data.grad.asnumpy(), np.tile(right.sum(axis=1), (2, 1)), rtol=1e-5, atol=1e-4)
