"""Operators of ONNX Runtime's domain that its optimizer writes: fused layers, norms, and attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import hybridnet as mx  # noqa: E402
from hybridnet.errors import UnsupportedError  # noqa: E402
from onnx_models import expected, model, node, run  # noqa: E402

ROWS = ("float32", ["B", "S", 16])


def floats(rng: Any, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


def integers(array: Any) -> np.ndarray:
    return np.asarray(array, "int32")


def assert_as_onnxruntime(
    op: str,
    names: str,
    inputs: dict[str, Any],
    feeds: list[list[np.ndarray]],
    constants: dict[str, Any] | None = None,
    outputs: str = "y",
    **attributes: Any,
) -> None:
    """One import of a node of ONNX Runtime gives its results for all inputs."""
    made = node(op, names, outputs, domain="com.microsoft", **attributes)
    kept = " ".join(name for name in outputs.split() if name != "_")
    proto = model([made], inputs, kept, constants, domains={"com.microsoft": 1})
    proto.graph.node[0].output[:] = ["" if name == "_" else name for name in outputs.split()]
    net = mx.onnx.import_to_gluon(proto)
    net.hybridize()
    for arrays in feeds:
        for made_array, wanted in zip(run(net, arrays), expected(proto, arrays), strict=True):
            np.testing.assert_allclose(made_array, wanted, rtol=1e-4, atol=3e-5, strict=True)


def rows(rng: Any, *sizes: tuple[int, int]) -> list[list[np.ndarray]]:
    return [[floats(rng, batch, length, 16)] for batch, length in sizes or ((2, 5), (1, 7), (3, 1))]


@pytest.mark.parametrize("activation, parameters", [("Relu", None), ("LeakyRelu", [0.2]), ("Clip", [-0.3, 0.5])])
def test_a_convolution_with_a_sum_and_an_activation(rng, activation, parameters):
    given = {} if parameters is None else {"activation_params": parameters}
    assert_as_onnxruntime(
        "FusedConv",
        "x w b z" if activation == "Relu" else "x w b",
        {"x": ("float32", ["N", 4, "H", 6]), **({"z": ("float32", ["N", 6, "H", 6])} if activation == "Relu" else {})},
        [
            [floats(rng, size, 4, 3 + size, 6), *([floats(rng, size, 6, 3 + size, 6)] if activation == "Relu" else [])]
            for size in (1, 2, 3)
        ],
        {"w": floats(rng, 6, 4, 3, 3), "b": floats(rng, 6)},
        activation=activation,
        pads=[1, 1, 1, 1],
        **given,
    )


@pytest.mark.parametrize(
    "transposes", [{}, {"transA": 1}, {"transB": 1}, {"transBatchA": 1}, {"transBatchB": 1, "transB": 1}]
)
def test_products_of_transposed_matrices(rng, transposes):
    def stored(array: np.ndarray, letter: str) -> np.ndarray:
        array = array.swapaxes(-1, -2) if transposes.get(f"trans{letter}") else array
        return np.moveaxis(array, -2, 0) if transposes.get(f"transBatch{letter}") else array

    feeds = [[stored(floats(rng, 3, size, 4), "A"), stored(floats(rng, 3, 4, 5), "B")] for size in (1, 2, 6)]
    shapes = [[size if size in (3, 4, 5) else "M" for size in array.shape] for array in feeds[2]]
    inputs = {name: ("float32", shape) for name, shape in zip("ab", shapes, strict=True)}
    assert_as_onnxruntime("FusedMatMul", "a b", inputs, feeds, alpha=0.5, **transposes)


@pytest.mark.parametrize("op", ["Gelu", "FastGelu", "QuickGelu", "BiasGelu"])
def test_activations(rng, op):
    bias = op == "BiasGelu"
    assert_as_onnxruntime(op, "x b" if bias else "x", {"x": ROWS}, rows(rng), {"b": floats(rng, 16)} if bias else {})


@pytest.mark.parametrize("op", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
@pytest.mark.parametrize("bias", [False, True])
def test_norms_of_sums_return_the_sum(rng, op, bias):
    names = "x s g t" if "Simplified" not in op else "x s g"
    constants = {name: floats(rng, 16) for name in "gtb"}
    used = {name: constants[name] for name in constants if name in names or (bias and name == "b")}
    feeds = [[x, floats(rng, *x.shape)] for (x,) in rows(rng)]
    inputs = {"x": ROWS, "s": ROWS}
    assert_as_onnxruntime(op, f"{names} b" if bias else names, inputs, feeds, used, "y _ _ sum", epsilon=1e-6)


def test_embeddings_with_a_norm(rng):
    tables = {
        "w": floats(rng, 20, 16),
        "p": floats(rng, 10, 16),
        "s": floats(rng, 2, 16),
        "g": floats(rng, 16),
        "t": floats(rng, 16),
    }
    feeds = [[rng.integers(0, high, size).astype("int32") for high in (20, 2, 2)] for size in ((2, 5), (1, 7), (3, 1))]
    inputs = {name: ("int32", ["B", "S"]) for name in ("words", "segments", "mask")}
    assert_as_onnxruntime(
        "EmbedLayerNormalization", "words segments w p s g t mask", inputs, feeds, tables, "y count sum"
    )


# ----------------------------------------------------------------------------------------------------------- attention
@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("mask", ["none", "keys", "lengths", "ends and starts", "pairs"])
def test_attention_with_projections_and_masks(rng, mask, unidirectional):
    shapes = {"keys": ["B", "S"], "lengths": ["B"], "ends and starts": ["B2"], "pairs": ["B", "S", "S"]}
    masks = {
        "keys": ([[1, 1, 1, 0, 0], [1] * 5], [[0, 0, 1, 1, 1, 1, 1]]),
        "lengths": ([3, 5], [7]),
        "ends and starts": ([5, 5, 1, 0], [7, 2]),
        "pairs": (rng.integers(0, 2, (2, 5, 5)), rng.integers(0, 2, (1, 7, 7))),
    }
    feeds = rows(rng, (2, 5), (1, 7))
    inputs: dict[str, Any] = {"x": ROWS}
    if mask != "none":
        inputs["m"] = ("int32", shapes[mask])
        feeds = [[x, integers(given)] for (x,), given in zip(feeds, masks[mask], strict=True)]
    assert_as_onnxruntime(
        "Attention",
        "x w b" if mask == "none" else "x w b m",
        inputs,
        feeds,
        {"w": floats(rng, 16, 48) * 0.3, "b": floats(rng, 48)},
        num_heads=4,
        unidirectional=unidirectional,
    )


def test_attention_to_the_past(rng):
    past = ("float32", ["B", 4, "P", 4])
    inputs = {"q": ROWS, "k": ROWS, "v": ROWS, "m": ("int32", ["B", "P + S"]), "pk": past, "pv": past}

    def feed(batch: int, length: int, before: int) -> list[np.ndarray]:
        mask = integers(rng.random((batch, before + length)) < 0.7)
        mask[:, -1] = 1
        arrays = [floats(rng, batch, length, 16) for _ in range(3)]
        return [*arrays, mask, *(floats(rng, batch, 4, before, 4) for _ in range(2))]

    feeds = [feed(2, 5, 3), feed(1, 7, 2), feed(3, 1, 6)]
    assert_as_onnxruntime("MultiHeadAttention", "q k v _ m _ pk pv", inputs, feeds, {}, "y key value", num_heads=4)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("attributes", [{}, {"local_window_size": 3}, {"softcap": 2.0}, {"smooth_softmax": 1}], ids=str)
def test_heads_of_queries_share_keys(rng, packed, attributes):
    lengths = ("int32", ["B"])
    if packed:
        inputs: dict[str, Any] = {"q": ("float32", ["B", "S", 128])}
    else:
        inputs = {"q": ("float32", ["B", "S", 64]), "k": ("float32", ["B", "S", 32]), "v": ("float32", ["B", "S", 32])}
    inputs |= {"n": lengths, "t": ("int32", [])}

    def feed(batch: int, length: int) -> list[np.ndarray]:
        widths = [128] if packed else [64, 32, 32]
        arrays = [floats(rng, batch, length, width) for width in widths]
        return [*arrays, integers([length - 1] * batch), integers(length)]

    assert_as_onnxruntime(
        "GroupQueryAttention",
        "q _ _ _ _ n t c s" if packed else "q k v _ _ n t c s",
        inputs,
        [feed(2, 5), feed(1, 7)],
        {"c": floats(rng, 20, 8), "s": floats(rng, 20, 8)},
        "y key value",
        num_heads=4,
        kv_num_heads=2,
        do_rotary=1,
        **attributes,
    )


def test_a_new_token_attends_to_the_cache(rng):
    past = ("float32", ["B", 2, "P", 16])
    inputs = {
        "q": ("float32", ["B", 1, 64]),
        "k": ("float32", ["B", 1, 32]),
        "v": ("float32", ["B", 1, 32]),
        "pk": past,
        "pv": past,
        "n": ("int32", ["B"]),
        "t": ("int32", []),
    }

    def feed(batch: int, before: int) -> list[np.ndarray]:
        arrays = [floats(rng, batch, 1, width) for width in (64, 32, 32)]
        cache = [floats(rng, batch, 2, before, 16) for _ in range(2)]
        return [*arrays, *cache, integers([before] * batch), integers(before + 1)]

    assert_as_onnxruntime(
        "GroupQueryAttention",
        "q k v pk pv n t c s",
        inputs,
        [feed(2, 3), feed(1, 6)],
        {"c": floats(rng, 20, 8), "s": floats(rng, 20, 8)},
        "y key value",
        num_heads=4,
        kv_num_heads=2,
        do_rotary=1,
    )


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotations_by_positions(rng, interleaved):
    feeds = [[x, rng.integers(0, 20, x.shape[:2])] for (x,) in rows(rng)]
    assert_as_onnxruntime(
        "RotaryEmbedding",
        "x p c s",
        {"x": ROWS, "p": ("int64", ["B", "S"])},
        feeds,
        {"c": floats(rng, 20, 2), "s": floats(rng, 20, 2)},
        interleaved=interleaved,
    )


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(3, 4), (1, 5)])
def test_crops_of_images(rng, mode, size):
    def feed(count: int, height: int, width: int) -> list[np.ndarray]:
        boxes = (rng.random((count, 4)) * 1.4 - 0.2).astype("float32")
        return [floats(rng, 2, 3, height, width), boxes, integers(rng.integers(0, 2, count))]

    assert_as_onnxruntime(
        "CropAndResize",
        "x boxes numbers size",
        {"x": ("float32", [2, 3, "H", "W"]), "boxes": ("float32", ["R", 4]), "numbers": ("int32", ["R"])},
        [feed(5, 7, 9), feed(2, 6, 5)],
        {"size": integers(size)},
        mode=mode,
        extrapolation_value=0.5,
    )


def test_attention_has_gradients(rng):
    made = node("Attention", "x w b", domain="com.microsoft", num_heads=4)
    constants = {"w": floats(rng, 16, 48) * 0.3, "b": floats(rng, 48)}
    net = mx.onnx.import_to_gluon(model([made], {"x": ROWS}, constants=constants, domains={"com.microsoft": 1}))
    x = floats(rng, 1, 3, 16)
    data = mx.nd.array(x)
    data.attach_grad()
    with mx.autograd.record():
        loss = (net(data) ** 2).sum()
    loss.backward()
    step = np.zeros_like(x)
    step[0, 1, 2] = 1e-2
    ends = [(run(net, [x + sign * step])[0].astype("float64") ** 2).sum() for sign in (1, -1)]
    slope = (ends[0] - ends[1]) / 2e-2
    assert abs(slope - data.grad.asnumpy()[0, 1, 2]) < 2e-2 * abs(slope) + 1e-3


def test_shared_buffers_are_refused(rng):
    made = node("Attention", "x w b", domain="com.microsoft", num_heads=4, past_present_share_buffer=1)
    constants = {"w": floats(rng, 16, 48), "b": floats(rng, 48)}
    proto = model([made], {"x": ROWS}, constants=constants, domains={"com.microsoft": 1})
    with pytest.raises(UnsupportedError, match="one buffer"):
        mx.onnx.import_to_gluon(proto)
