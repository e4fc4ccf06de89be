"""Layers of neural networks in ONNX files: open sizes, versions, gradients, and uses that are refused."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, nd
from hybridnet.errors import UnsupportedError
from hybridnet.onnx import import_model, import_to_gluon
from onnx_models import expected, model, node, run

IMAGES = [(1, 3, 7, 9), (2, 3, 12, 8), (3, 3, 31, 20)]
OPEN = ["N", 3, "H", "W"]


def assert_agrees(proto, *calls, rtol=1e-4, atol=1e-5):
    """One import agrees with onnxruntime for all calls."""
    net = import_to_gluon(proto)
    net.hybridize()
    for arrays in calls:
        for got, want in zip(run(net, arrays), expected(proto, arrays), strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, strict=True)
    return net


def floats(rng, *shape):
    return rng.normal(size=shape).astype("float32")


def images(rng, shapes=IMAGES):
    return [(floats(rng, *shape),) for shape in shapes]


def plain(op, inputs, constants, outputs="y", opset=17, **attributes):
    """A model of one node. inputs: shapes by name; the node reads them, then the constants; `_` is an absent input."""
    names = " ".join([*inputs, *constants])
    given = {name: array for name, array in constants.items() if not name.startswith("_")}
    names = " ".join("_" if name.startswith("_") else name for name in names.split())
    kinds = {name: shape if isinstance(shape, tuple) else ("float32", shape) for name, shape in inputs.items()}
    return model([node(op, names, outputs, **attributes)], kinds, outputs, given, opset)


def operators(net):
    return [line.split()[1] for line in net.plan_text().splitlines() if line.strip().startswith("[")]


# -------------------------------------------------------------------------------------------------------- convolutions
WINDOWS = [
    {},
    {"strides": [2, 3], "pads": [1, 0, 2, 1]},
    {"auto_pad": "SAME_UPPER", "strides": [2, 3]},
    {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
    {"auto_pad": "VALID", "strides": [2, 1]},
]


@pytest.mark.parametrize("attributes", [*WINDOWS, {"dilations": [2, 1], "pads": [2, 1, 1, 0]}], ids=str)
def test_one_import_convolves_images_of_all_sizes(attributes, rng):
    proto = plain("Conv", {"x": OPEN}, {"w": floats(rng, 4, 3, 3, 3), "b": floats(rng, 4)}, **attributes)
    assert_agrees(proto, *images(rng))


@pytest.mark.parametrize(
    "attributes",
    [
        *WINDOWS,
        {"strides": [2, 2], "output_padding": [1, 0]},
        {"strides": [2, 2], "pads": [0, 0, 1, 2]},
        {"strides": [2, 2], "pads": [2, 1, 0, 0], "output_padding": [1, 1]},
        {"strides": [2, 2], "output_shape": [20, 15]},
    ],
    ids=str,
)
def test_one_import_makes_larger_images_of_all_sizes(attributes, rng):
    proto = plain("ConvTranspose", {"x": OPEN}, {"w": floats(rng, 3, 4, 3, 3), "b": floats(rng, 4)}, **attributes)
    sizes = [(1, 3, 10, 8), (2, 3, 10, 8)] if "output_shape" in attributes else IMAGES
    assert_agrees(proto, *images(rng, sizes))


def test_groups_and_lines_are_convolved(rng):
    constants = {"w": floats(rng, 4, 1, 5)}
    proto = plain("Conv", {"x": ["N", 4, "L"]}, constants, group=4, pads=[2, 2], strides=[2])
    assert_agrees(proto, (floats(rng, 1, 4, 9),), (floats(rng, 3, 4, 20),))


def test_the_weight_of_a_convolution_may_be_computed(rng):
    proto = model(
        [node("Relu", "v", "w"), node("Conv", "x w")],
        {"x": ("float32", OPEN), "v": ("float32", [4, 3, 3, 3])},
    )
    weight = floats(rng, 4, 3, 3, 3)
    assert_agrees(proto, *[(*call, weight) for call in images(rng)])


def test_an_image_of_four_axes_is_refused(rng):
    proto = plain("Conv", {"x": [1, 3, 4, 4, 4, 4]}, {"w": floats(rng, 2, 3, 1, 1, 1, 1)})
    with pytest.raises(UnsupportedError, match=r"ONNX operator Conv.*images of 4 axes"):
        import_model(proto)


# ------------------------------------------------------------------------------------------------------------ poolings
POOLINGS = [
    *WINDOWS,
    {"ceil_mode": 1, "strides": [2, 3]},
    {"ceil_mode": 1, "strides": [3, 2], "pads": [1, 1, 1, 1]},
    {"dilations": [2, 1], "strides": [2, 1], "pads": [1, 0, 0, 1]},
]


@pytest.mark.parametrize("attributes", POOLINGS, ids=str)
@pytest.mark.parametrize("storage_order", [0, 1])
def test_one_import_finds_maxima_and_their_places_in_all_sizes(attributes, storage_order, rng):
    attributes = {"kernel_shape": [3, 2], "storage_order": storage_order, **attributes}
    proto = plain("MaxPool", {"x": OPEN}, {}, "y places", **attributes)
    assert_agrees(proto, *images(rng))


@pytest.mark.parametrize("attributes", POOLINGS, ids=str)
@pytest.mark.parametrize("count_include_pad", [0, 1])
def test_one_import_averages_windows_in_all_sizes(attributes, count_include_pad, rng):
    attributes = {"kernel_shape": [3, 2], "count_include_pad": count_include_pad, **attributes}
    assert_agrees(plain("AveragePool", {"x": OPEN}, {}, opset=19, **attributes), *images(rng))


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_norms_of_windows_have_any_exponent(p, rng):
    assert_agrees(plain("LpPool", {"x": OPEN}, {}, opset=18, kernel_shape=[3, 2], p=p), *images(rng))


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_whole_images_of_one_to_three_axes_are_pooled(op, spatial, rng):
    proto = plain(op, {"x": ["N", 3, *"ABC"[:spatial]]}, {})
    assert_agrees(proto, *[(floats(rng, 2, 3, *[size] * spatial),) for size in (2, 5)])


def test_maxima_of_bytes_are_bytes(rng):
    proto = plain("MaxPool", {"x": ("uint8", OPEN)}, {}, kernel_shape=[2, 2], pads=[1, 1, 1, 1])
    assert_agrees(proto, *[(rng.integers(0, 256, shape).astype("uint8"),) for shape in IMAGES])


def test_sizes_that_agree_in_even_images_are_told_apart_in_odd_ones(rng):
    proto = model(
        [
            node("Conv", "x w", "a", strides=[2, 2], pads=[1, 1, 1, 1]),
            node("MaxPool", "x", "b", kernel_shape=[2, 2], strides=[2, 2]),
            *(node("Shape", f"{name}", f"shape_{name}") for name in "ab"),
            *(node("Slice", f"shape_{name} two four", f"image_{name}") for name in "ab"),
            *(node("ReduceProd", f"image_{name}", f"pixels_{name}", keepdims=1) for name in "ab"),
            *(node("Concat", f"front pixels_{name}", f"target_{name}", axis=0) for name in "ab"),
            *(node("Reshape", f"{name} target_{name}", f"y_{name}") for name in "ab"),
        ],
        {"x": ("float32", OPEN)},
        "y_a y_b",
        {
            "w": floats(rng, 3, 3, 3, 3),
            "two": np.array([2]),
            "four": np.array([4]),
            "front": np.array([-1, 3]),
        },
        opset=17,
    )
    assert_agrees(proto, *images(rng))


# ------------------------------------------------------------------------------------------------------ normalizations
def statistics(rng):
    return {"s": floats(rng, 3), "b": floats(rng, 3), "m": floats(rng, 3), "v": np.abs(floats(rng, 3))}


def test_running_statistics_arrive_as_states_and_training_moves_them(rng):
    proto = plain("BatchNormalization", {"x": OPEN}, statistics(rng), opset=15, momentum=0.75)
    _, args, states = import_model(proto)
    assert set(args) == {"s", "b"}
    assert set(states) == {"m", "v"}
    net = assert_agrees(proto, *images(rng))
    x = nd.array(floats(rng, 2, 3, 4, 5))
    before = net.collect_params()["m"].data().asnumpy()
    with autograd.record():
        net(x)
    after = net.collect_params()["m"].data().asnumpy()
    np.testing.assert_allclose(after, 0.75 * before + 0.25 * x.asnumpy().mean((0, 2, 3)), rtol=1e-5)


def test_a_constant_may_be_a_running_mean_and_a_bias(rng):
    constants = statistics(rng)
    proto = model(
        [node("BatchNormalization", "x s m m v", "a"), node("Add", "a m")],
        {"x": ("float32", ["N", 3])},
        constants=constants,
    )
    assert_agrees(proto, (floats(rng, 4, 3),))
    _, args, states = import_model(proto)
    assert len(states) == 2
    assert any(np.array_equal(array.asnumpy(), constants["m"]) for array in args.values())


def test_statistics_of_the_batch_are_outputs_in_training_mode(rng):
    proto = plain("BatchNormalization", {"x": ["N", 3, 5]}, statistics(rng), "y m2 v2", 15, training_mode=1)
    assert_agrees(proto, (floats(rng, 4, 3, 5),), (floats(rng, 7, 3, 5),))


@pytest.mark.parametrize(
    "shape, axis, scale",
    [
        (["N", "L", 5], -1, (5,)),
        (["N", "L", 4, 5], 2, (4, 5)),
        (["N", 4, 5], 1, (4, 5)),
        (["N", 4, 5], 1, (5,)),
        (["N", 4, 5], 2, (1,)),
    ],
    ids=str,
)
def test_rows_over_several_axes_are_normalized(shape, axis, scale, rng):
    constants = {"s": floats(rng, *scale), "b": floats(rng, *scale)}
    proto = plain("LayerNormalization", {"x": shape}, constants, "y mean deviation", axis=axis)
    sizes = [{"N": 2, "L": 3}, {"N": 1, "L": 7}]
    assert_agrees(proto, *[(floats(rng, *(size.get(n, n) for n in shape)),) for size in sizes])


@pytest.mark.parametrize("groups", [2, 6])
def test_channels_of_groups_have_a_scale_each(groups, rng):
    constants = {"s": floats(rng, 6), "b": floats(rng, 6)}
    proto = plain("GroupNormalization", {"x": ["N", 6, "H", "W"]}, constants, opset=21, num_groups=groups)
    assert_agrees(proto, (floats(rng, 1, 6, 3, 4),), (floats(rng, 2, 6, 5, 2),))


@pytest.mark.parametrize("op, opset", [("LayerNormalization", 17), ("RMSNormalization", 23)])
def test_a_normalization_is_one_operator(op, opset, rng):
    constants = {"s": floats(rng, 5), **({"b": floats(rng, 5)} if op[0] == "L" else {})}
    net = assert_agrees(plain(op, {"x": ["N", 5]}, constants, opset=opset), (floats(rng, 4, 5),))
    assert len(operators(net)) == 1


def test_windows_of_an_even_number_of_channels_are_summed():
    proto = plain("LRN", {"x": [1, 4, 1]}, {}, size=2, alpha=1.0, beta=1.0, bias=0.0)
    (y,) = run(import_to_gluon(proto), [np.ones((1, 4, 1), "float32")])
    np.testing.assert_allclose(y.reshape(-1), [1, 1, 1, 2])


@pytest.mark.parametrize("p", [1, 2])
def test_rows_of_zeros_keep_their_zeros(p, rng):
    proto = plain("LpNormalization", {"x": ["N", 5]}, {}, opset=22, p=p)
    x = floats(rng, 4, 5)
    x[1] = 0
    (y,) = run(import_to_gluon(proto), [x])
    norm = np.abs(x).sum(1) if p == 1 else np.sqrt((x**2).sum(1))
    np.testing.assert_allclose(y, x / np.where(norm == 0, 1, norm)[:, None], rtol=1e-5)


# ------------------------------------------------------------------------------------------------------------ resizing
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"])
@pytest.mark.parametrize("scales", [[2, 2], [2, 3], [0.5, 0.5], [1.5, 0.7]], ids=str)
def test_one_import_resizes_images_of_all_sizes(mode, coordinates, scales, rng):
    constants = {"_roi": None, "scales": np.array([1, 1, *scales], "float32")}
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
    assert_agrees(plain("Resize", {"x": OPEN}, constants, opset=19, **attributes), *images(rng))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize(
    "attributes",
    [
        {"coordinate_transformation_mode": "align_corners"},
        {"keep_aspect_ratio_policy": "not_larger"},
        {"keep_aspect_ratio_policy": "not_smaller"},
        {"antialias": 1},
        {"antialias": 1, "exclude_outside": 1},
    ],
    ids=str,
)
def test_one_import_resizes_to_given_sizes(mode, attributes, rng):
    if mode == "nearest" and "antialias" in attributes:
        pytest.skip("ONNX has no such use")
    if mode == "linear" and attributes.get("exclude_outside") and not attributes.get("antialias"):
        pytest.skip("ONNX has no such use")
    constants = {"_roi": None, "_scales": None, "sizes": np.array([14, 10])}
    proto = plain("Resize", {"x": OPEN}, constants, opset=19, mode=mode, axes=[2, 3], **attributes)
    assert_agrees(proto, *images(rng))


def test_sizes_may_follow_from_those_of_another_image(rng):
    proto = model(
        [
            node("Shape", "like", "shape"),
            node("Slice", "shape two four", "image"),
            node("Resize", "x _ _ image", mode="linear", axes=[2, 3]),
        ],
        {"x": ("float32", OPEN), "like": ("float32", ["N", 1, "A", "B"])},
        constants={"two": np.array([2]), "four": np.array([4])},
    )
    calls = [
        (call[0], floats(rng, len(call[0]), 1, *size))
        for call, size in zip(images(rng), [(5, 4), (30, 9), (62, 40)], strict=True)
    ]
    assert_agrees(proto, *calls)


def test_sizes_may_be_computed_from_data(rng):
    inputs = {"x": ("float32", OPEN), "sizes": ("int64", [2])}
    proto = model([node("Resize", "x _ _ sizes", mode="linear", axes=[2, 3])], inputs, opset=19)
    net = import_to_gluon(proto)
    for shape, sizes in zip(IMAGES, [(5, 4), (30, 9), (7, 1)], strict=True):
        x = floats(rng, *shape)
        fixed = plain(
            "Resize",
            {"x": OPEN},
            {"_r": None, "_s": None, "sizes": np.array(sizes)},
            opset=19,
            mode="linear",
            axes=[2, 3],
        )
        np.testing.assert_allclose(run(net, [x, np.array(sizes)])[0], expected(fixed, [x])[0], rtol=1e-4, atol=1e-5)


def test_a_region_is_cropped_and_the_outside_has_a_value_of_its_own(rng):
    constants = {"roi": np.array([0.1, -0.2, 0.8, 1.3], "float32"), "_s": None, "sizes": np.array([6, 5])}
    proto = plain(
        "Resize",
        {"x": OPEN},
        constants,
        opset=19,
        mode="linear",
        axes=[2, 3],
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=7.0,
    )
    assert_agrees(proto, *images(rng))


def test_repeated_pixels_and_bilinear_images_are_one_operator(rng):
    for attributes in ({"mode": "nearest"}, {"mode": "linear"}):
        constants = {"_roi": None, "scales": np.array([1, 1, 2, 2], "float32")}
        net = assert_agrees(plain("Resize", {"x": OPEN}, constants, opset=13, **attributes), *images(rng))
        assert len(operators(net)) == 1


@pytest.mark.parametrize("scales", [[2, 3], [0.6, 0.5]], ids=str)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_version_ten_counts_from_the_first_pixel(scales, mode, rng):
    constants = {"scales": np.array([1, 1, *scales], "float32")}
    assert_agrees(plain("Resize", {"x": OPEN}, constants, opset=10, mode=mode), *images(rng))


def test_integers_are_rounded_after_they_are_resized(rng):
    constants = {"_roi": None, "_scales": None, "sizes": np.array([4, 9])}
    proto = plain("Resize", {"x": ("uint8", OPEN)}, constants, opset=19, mode="linear", axes=[2, 3], antialias=1)
    calls = [(rng.integers(0, 256, (2, 3, 8, 12)).astype("uint8"),)]
    assert_agrees(proto, *calls, rtol=0, atol=1)


# ------------------------------------------------------------------------------------------------------ grids, regions
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [0, 1])
def test_one_import_reads_images_of_all_sizes_at_points(mode, padding, aligned, rng):
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
    proto = plain("GridSample", {"x": OPEN, "grid": ["N", "A", "B", 2]}, {}, opset=20, **attributes)
    calls = [(floats(rng, *shape), rng.uniform(-1.4, 1.4, (shape[0], 4, 5, 2)).astype("float32")) for shape in IMAGES]
    assert_agrees(proto, *calls)


def test_volumes_are_read_at_points_and_the_outside_adds_nothing(rng):
    proto = plain("GridSample", {"x": ["N", 2, "D", "H", "W"], "grid": ["N", "A", "B", "C", 3]}, {}, opset=20)
    x = floats(rng, 1, 2, 3, 4, 5)
    x[0, 0, 0, 0, 0] = np.inf
    grid = rng.uniform(0, 1.5, (1, 2, 3, 4, 3)).astype("float32")
    assert_agrees(proto, (x, grid))


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
def test_regions_are_pooled_at_points(mode, coordinates, rng):
    proto = plain(
        "RoiAlign",
        {"x": OPEN, "rois": ["R", 4], "images": ("int64", ["R"])},
        {},
        opset=16,
        mode=mode,
        coordinate_transformation_mode=coordinates,
        sampling_ratio=2,
        output_height=2,
        output_width=3,
        spatial_scale=0.5,
    )
    rois = np.array([[1, 1, 6, 5], [0, 2, 8.5, 7.2], [-2, -1, 4, 4]], "float32")
    assert_agrees(proto, *[(floats(rng, *shape), rois, np.array([0, shape[0] - 1, 0])) for shape in IMAGES])


def test_maxima_of_regions_need_a_number_of_points():
    proto = plain("RoiAlign", {"x": [1, 3, 8, 8], "rois": ["R", 4], "images": ("int64", ["R"])}, {}, mode="max")
    with pytest.raises(UnsupportedError, match="mode max with sampling_ratio 0"):
        import_model(proto)


# ----------------------------------------------------------------------------------------------------------- recurrent
def cell(op, rng, directions=1, bias=True):
    gates = {"RNN": 1, "LSTM": 4, "GRU": 3}[op]
    constants = {"w": floats(rng, directions, gates * 4, 3), "r": floats(rng, directions, gates * 4, 4)}
    return {**constants, **({"b": floats(rng, directions, 2 * gates * 4)} if bias else {})}


def steps(rng):
    return [(floats(rng, length, batch, 3),) for length, batch in ((1, 1), (6, 3), (9, 2))]


LAYERS = [
    ("RNN", {}),
    ("RNN", {"activations": ["Relu"]}),
    ("RNN", {"activations": ["HardSigmoid"], "activation_alpha": [0.3], "activation_beta": [0.4]}),
    ("LSTM", {}),
    ("LSTM", {"clip": 0.6}),
    ("LSTM", {"input_forget": 1}),
    ("LSTM", {"activations": ["Sigmoid", "LeakyRelu", "Softsign"], "activation_alpha": [0.2]}),
    ("GRU", {"linear_before_reset": 1}),
    ("GRU", {"linear_before_reset": 0}),
]


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op, attributes", LAYERS, ids=str)
def test_one_import_runs_sequences_of_all_lengths(op, attributes, direction, rng):
    directions = 2 if direction == "bidirectional" else 1
    if "activations" in attributes:
        repeated = {name: value * directions for name, value in attributes.items() if name.startswith("activation")}
        attributes = {**attributes, **repeated}
    outputs = "y last memory" if op == "LSTM" else "y last"
    constants = cell(op, rng, directions)
    proto = plain(op, {"x": ["T", "B", 3]}, constants, outputs, 14, hidden_size=4, direction=direction, **attributes)
    assert_agrees(proto, *steps(rng))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op, attributes", [("LSTM", {}), ("GRU", {}), ("GRU", {"linear_before_reset": 1})], ids=str)
def test_sequences_of_a_batch_may_have_lengths_of_their_own(op, attributes, direction, rng):
    directions = 2 if direction == "bidirectional" else 1
    constants = cell(op, rng, directions)
    proto = model(
        [node(op, "x w r b lengths first", "y last", hidden_size=4, direction=direction, **attributes)],
        {"x": ("float32", ["T", "B", 3]), "lengths": ("int32", ["B"]), "first": ("float32", [directions, "B", 4])},
        "y last",
        constants,
        14,
    )
    calls = [
        (floats(rng, 6, 3, 3), np.array([6, 1, 4], "int32"), floats(rng, directions, 3, 4)),
        (floats(rng, 2, 1, 3), np.array([2], "int32"), floats(rng, directions, 1, 4)),
    ]
    assert_agrees(proto, *calls)


def test_the_usual_layers_are_one_operator_with_one_vector_of_weights(rng):
    for op, attributes in (("RNN", {}), ("LSTM", {}), ("GRU", {"linear_before_reset": 1})):
        proto = plain(op, {"x": ["T", "B", 3]}, cell(op, rng), "y last", 14, hidden_size=4, **attributes)
        net = assert_agrees(proto, *steps(rng))
        assert [name for name in operators(net) if name in ("RNN", "_foreach")] == ["RNN"]
        assert [name for name in net.collect_params() if name.endswith("_parameters")]


def test_weights_of_a_layer_may_be_computed(rng):
    constants = cell("LSTM", rng)
    proto = model(
        [node("Mul", "w two", "w2"), node("LSTM", "x w2 r", "y last", hidden_size=4)],
        {"x": ("float32", ["T", "B", 3]), "w": ("float32", [1, 16, 3])},
        "y last",
        {"r": constants["r"], "two": np.float32(2)},
        14,
    )
    assert_agrees(proto, *[(*call, constants["w"]) for call in steps(rng)])


# ----------------------------------------------------------------------------------------------------------- attention
HEADS = {"q": ["B", 4, "L", 8], "k": ["B", 2, "K", 8], "v": ["B", 2, "K", 8]}


@pytest.mark.parametrize("attributes", [{}, {"is_causal": 1}, {"softcap": 2.0}, {"scale": 0.3}], ids=str)
def test_one_import_attends_over_all_lengths_with_shared_heads(attributes, rng):
    proto = plain("Attention", HEADS, {}, opset=23, **attributes)
    calls = []
    for batch, queries, keys in ((1, 3, 5), (2, 64, 70), (2, 1, 60)):
        calls.append(
            (floats(rng, batch, 4, queries, 8), floats(rng, batch, 2, keys, 8), floats(rng, batch, 2, keys, 8))
        )
    assert_agrees(proto, *calls)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("dtype", ["bool", "float32"])
def test_masks_keep_keys_or_add_to_scores(dtype, causal, rng):
    inputs = {**HEADS, "mask": (dtype, ["L", "K"])}
    proto = plain("Attention", inputs, {}, opset=23, is_causal=causal)
    calls = []
    for queries, keys in ((3, 5), (50, 70)):
        mask = rng.random((queries, keys)) < 0.7 if dtype == "bool" else floats(rng, queries, keys)
        if dtype == "bool":
            mask[:, 0] = True
        calls.append((*(floats(rng, 2, n, size, 8) for n, size in ((4, queries), (2, keys), (2, keys))), mask))
    assert_agrees(proto, *calls)


def test_keys_and_values_of_earlier_steps_come_first(rng):
    inputs = {**HEADS, "k": ["B", 2, "L", 8], "v": ["B", 2, "L", 8]}
    names = "q k v _ past_k past_v"
    shapes = {name: ("float32", shape) for name, shape in inputs.items()}
    past = {name: ("float32", ["B", 2, "P", 8]) for name in ("past_k", "past_v")}
    nodes = [node("Attention", names, "y keys values", is_causal=1)]
    proto = model(nodes, {**shapes, **past}, "y keys values", opset=23)
    calls = [
        tuple(floats(rng, 2, n, size, 8) for n, size in ((4, own), (2, own), (2, own), (2, before), (2, before)))
        for own, before in ((3, 2), (50, 20), (1, 60))
    ]
    assert_agrees(proto, *calls)


def test_a_query_that_attends_to_no_key_gives_zeros(rng):
    for attributes in ({}, {"softcap": 1.0}):
        proto = plain("Attention", {**HEADS, "mask": ("bool", ["L", "K"])}, {}, opset=23, **attributes)
        mask = np.ones((3, 5), bool)
        mask[1] = False
        arrays = [floats(rng, 1, 4, 3, 8), floats(rng, 1, 2, 5, 8), floats(rng, 1, 2, 5, 8), mask]
        (y,) = run(import_to_gluon(proto), arrays)
        assert np.isfinite(y).all()
        assert (y[:, :, 1] == 0).all()
        assert (y[:, :, 0] != 0).all()


# -------------------------------------------------------------------------------------------------------------- signals
@pytest.mark.parametrize("attributes", [{}, {"inverse": 1}, {"onesided": 1}], ids=str)
@pytest.mark.parametrize("length", [None, 24])
def test_one_import_transforms_signals_of_all_lengths(attributes, length, rng):
    constants = {"_length" if length is None else "length": np.array(length or 0), "axis": np.array(1)}
    proto = plain("DFT", {"x": ["N", "L", 1]}, constants, opset=20, **attributes)
    assert_agrees(proto, (floats(rng, 1, 20, 1),), (floats(rng, 2, 33, 1),), atol=1e-4)


def test_the_axis_of_a_transform_may_be_computed_from_data(rng):
    inputs = {"x": ("float32", ["N", "L", "M", 1]), "axis": ("int64", [])}
    net = import_to_gluon(model([node("DFT", "x _ axis")], inputs, opset=20))
    x = floats(rng, 2, 6, 5, 1)
    for axis in (1, 2):
        y = run(net, [x, np.array(axis)])[0]
        wanted = np.fft.fft(x[..., 0], axis=axis)
        np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1], wanted, atol=1e-4)


def test_frames_of_signals_of_all_lengths_are_transformed(rng):
    constants = {"step": np.array(3), "window": np.hanning(8).astype("float32")}
    proto = plain("STFT", {"x": ["N", "L", 1]}, constants)
    assert_agrees(proto, (floats(rng, 1, 20, 1),), (floats(rng, 2, 33, 1),), atol=1e-4)


# ------------------------------------------------------------------------------------------------------------ gradients
GRADIENTS = [
    ("Conv", OPEN, {"w": (4, 3, 3, 3)}, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ("ConvTranspose", OPEN, {"w": (3, 4, 3, 3)}, {"strides": [2, 2], "pads": [1, 0, 2, 1]}),
    ("AveragePool", OPEN, {}, {"kernel_shape": [3, 2], "pads": [1, 0, 0, 1]}),
    ("Resize", OPEN, {"_roi": None, "scales": [1, 1, 1.5, 0.7]}, {"mode": "cubic"}),
    ("LayerNormalization", ["N", 3, 4, 5], {"s": (4, 5)}, {"axis": 2}),
    ("LSTM", ["N", 3, 3], {"w": (1, 16, 3), "r": (1, 16, 4)}, {"hidden_size": 4, "clip": 3.0}),
    ("LSTM", ["N", 3, 3], {"w": (1, 16, 3), "r": (1, 16, 4)}, {"hidden_size": 4}),
]


@pytest.mark.parametrize("op, shape, constants, attributes", GRADIENTS, ids=lambda value: str(value)[:30])
def test_gradients_agree_with_differences(op, shape, constants, attributes, rng):
    made = {
        name: value
        if value is None
        else floats(rng, *value)
        if isinstance(value, tuple)
        else np.array(value, "float32")
        for name, value in constants.items()
    }
    net = import_to_gluon(plain(op, {"x": shape}, made, opset=17, **attributes))
    net.hybridize()
    sizes = {"N": 2, "H": 6, "W": 7}
    x = nd.array(floats(rng, *(sizes.get(size, size) for size in shape)))
    x.attach_grad()
    with autograd.record():
        y = net(x)
        weights = nd.array(floats(rng, *y.shape))
        loss = (y * weights).sum()
    loss.backward()
    direction = nd.array(floats(rng, *x.shape))
    ends = [(net(x + step * direction) * weights).sum().asscalar() for step in (0.01, -0.01)]
    slope = (ends[0] - ends[1]) / 0.02
    assert (x.grad * direction).sum().asscalar() == pytest.approx(slope, rel=0.03, abs=0.03)


def test_constants_that_the_import_adds_are_not_trained(rng):
    proto = plain("LayerNormalization", {"x": ["N", 5]}, {"s": floats(rng, 5)})
    trained = {name: parameter.grad_req for name, parameter in import_to_gluon(proto).collect_params().items()}
    assert trained == {"s": "write", "zeros": "null"}


def test_images_are_not_decoded():
    proto = model([node("ImageDecoder", "data", "y")], {"data": ("uint8", ["n"])}, opset=20)
    with pytest.raises(UnsupportedError, match="images are not decoded in a graph"):
        mx.onnx.import_model(proto)
