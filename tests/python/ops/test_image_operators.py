"""Image operators: random ones, and properties that references cannot check."""

from __future__ import annotations

import colorsys

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd


@pytest.fixture
def pixels(rng):
    return rng.integers(0, 256, size=(5, 6, 3)).astype("uint8")


def array(x):
    return mx.nd.array(x, dtype=x.dtype)


def fixed(factor):
    return {"min_factor": factor, "max_factor": factor}


def test_brightness_multiplies_and_keeps_bytes_in_range(pixels):
    out = mx.nd.image.random_brightness(array(pixels), **fixed(1.5)).asnumpy()
    np.testing.assert_array_equal(out, np.floor(np.minimum(pixels * 1.5, 255)))


def test_contrast_moves_values_from_the_mean_luminance(pixels):
    mean = (pixels @ np.array([0.299, 0.587, 0.114])).mean()
    out = mx.nd.image.random_contrast(array(pixels), **fixed(0.5)).asnumpy()
    np.testing.assert_allclose(out, np.floor(pixels * 0.5 + 0.5 * mean), atol=1)


def test_saturation_zero_leaves_luminance(pixels):
    out = mx.nd.image.random_saturation(array(pixels), **fixed(0.0)).asnumpy()
    gray = np.floor(pixels @ np.array([0.299, 0.587, 0.114]))
    np.testing.assert_allclose(out, np.broadcast_to(gray[..., None], out.shape), atol=1)


def test_hue_turns_the_color_circle(pixels):
    out = mx.nd.image.random_hue(array(pixels), **fixed(0.25)).asnumpy()
    want = np.empty(pixels.shape)
    for index in np.ndindex(pixels.shape[:2]):
        hue, lightness, saturation = colorsys.rgb_to_hls(*(pixels[index] / 255))
        want[index] = np.array(colorsys.hls_to_rgb((hue + 0.25) % 1, lightness, saturation)) * 255
    np.testing.assert_allclose(out, want, atol=1.01)


def test_gray_images_have_no_hue():
    gray = array(np.full((2, 3, 1), 7, "uint8"))
    np.testing.assert_array_equal(mx.nd.image.random_hue(gray, **fixed(0.3)).asnumpy(), gray.asnumpy())


@pytest.mark.parametrize(("name", "axis"), [("left_right", 1), ("top_bottom", 0)])
def test_random_flips_turn_half_of_the_images_and_their_gradients(rng, name, axis):
    x, weights = rng.normal(size=(4, 5, 3)).astype("float32"), rng.normal(size=(4, 5, 3)).astype("float32")
    flip = getattr(mx.nd.image, f"random_flip_{name}")
    flips = []
    for _ in range(40):
        a = array(x)
        a.attach_grad()
        with autograd.record():
            out = flip(a)
            loss = (out * array(weights)).sum()
        loss.backward()
        flips.append(not np.array_equal(out.asnumpy(), x))
        np.testing.assert_array_equal(out.asnumpy(), np.flip(x, axis) if flips[-1] else x)
        np.testing.assert_array_equal(a.grad.asnumpy(), np.flip(weights, axis) if flips[-1] else weights)
    assert 8 < sum(flips) < 32


def test_color_jitter_draws_anew_and_by_the_seed(pixels):
    jitter = {"brightness": 0.3, "contrast": 0.3, "saturation": 0.3, "hue": 0.1}
    mx.random.seed(3)
    first, second = (mx.nd.image.random_color_jitter(array(pixels), **jitter).asnumpy() for _ in range(2))
    mx.random.seed(3)
    again = mx.nd.image.random_color_jitter(array(pixels), **jitter).asnumpy()
    assert (first != second).any()
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("interp", [0, 1, 2, 3, 4])
def test_resize_to_the_same_size_changes_nothing(pixels, interp):
    np.testing.assert_array_equal(mx.nd.image.resize(array(pixels), (6, 5), False, interp).asnumpy(), pixels)


def test_resize_by_the_shorter_side_keeps_the_ratio(pixels):
    assert mx.nd.image.resize(array(pixels), 10, True).shape == (10, 12, 3)


def test_bad_sizes_and_rectangles_are_named(pixels):
    image = array(pixels)
    with pytest.raises(mx.errors.ParamError, match="size"):
        mx.nd.image.resize(image, (0, 3))
    with pytest.raises(mx.errors.ParamError, match="inside the image"):
        mx.nd.image.crop(image, 3, 0, 4, 2)
    with pytest.raises(mx.errors.ParamError, match="one per channel"):
        mx.nd.image.normalize(mx.nd.image.to_tensor(image), mean=(0.1, 0.2), std=1.0)
    with pytest.raises(mx.errors.ShapeError, match="to_tensor"):
        mx.nd.image.normalize(mx.nd.zeros((3, 3)), mean=0.0, std=1.0)
