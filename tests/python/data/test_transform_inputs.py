"""Transforms accept NumPy arrays, PIL images and NDArrays; images in the wrong order of axes are errors with a fix."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.gluon.data.vision import transforms

Image = pytest.importorskip("PIL.Image")

CHANNELS_LAST = [
    transforms.Resize(6),
    transforms.CenterCrop(6),
    transforms.CropResize(0, 0, 4, 4),
    transforms.RandomCrop(6),
    transforms.RandomResizedCrop(6),
    transforms.RandomFlipLeftRight(),
    transforms.RandomFlipTopBottom(),
    transforms.RandomBrightness(0.1),
    transforms.RandomContrast(0.1),
    transforms.RandomSaturation(0.1),
    transforms.RandomHue(0.1),
    transforms.RandomColorJitter(0.1, 0.1, 0.1, 0.1),
    transforms.RandomLighting(0.1),
    transforms.ToTensor(),
    transforms.Cast("float32"),
    transforms.Compose([transforms.Resize(6), transforms.ToTensor()]),
    transforms.Compose([transforms.ToTensor(), transforms.Normalize(0.5, 0.5)]),
    transforms.HybridCompose([transforms.ToTensor(), transforms.Normalize(0.5, 0.5)]),
    transforms.RandomApply(transforms.Compose([transforms.Resize(6)]), p=1.0),
]
CHANNELS_FIRST = [transforms.Normalize(0.5, 0.5), transforms.Rotate(30), transforms.RandomRotation((10, 20))]


def name_of(transform) -> str:
    return type(transform).__name__


def same(left, right) -> bool:
    return left.shape == right.shape and left.dtype == right.dtype and bool((left == right).asnumpy().all())


def result(transform, image, seed=7):
    import random

    random.seed(seed)
    np.random.seed(seed)
    return transform(image)


@pytest.fixture
def pixels(rng) -> np.ndarray:
    return rng.integers(0, 256, (8, 9, 3), dtype=np.uint8)


@pytest.mark.parametrize("transform", CHANNELS_LAST, ids=name_of)
def test_numpy_and_pil_images_give_the_result_of_an_ndarray(transform, pixels):
    expected = result(transform, mx.nd.array(pixels, dtype="uint8"))
    assert same(result(transform, pixels), expected)
    assert same(result(transform, Image.fromarray(pixels)), expected)


@pytest.mark.parametrize("transform", CHANNELS_FIRST, ids=name_of)
def test_numpy_arrays_with_channels_first_give_the_result_of_an_ndarray(transform, pixels):
    values = pixels.transpose(2, 0, 1).astype("float32")
    assert same(result(transform, values), result(transform, mx.nd.array(values)))


@pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("1", 1), ("P", 3), ("RGBA", 4)])
def test_modes_of_pil_become_channels(pixels, mode, channels):
    image = Image.fromarray(pixels).convert(mode)
    tensor = transforms.ToTensor()(image)
    assert tensor.shape == (channels, 8, 9)
    assert 0 <= tensor.min().asscalar() <= tensor.max().asscalar() <= 1


def test_gray_numpy_images_get_a_channel(pixels):
    assert transforms.ToTensor()(pixels[:, :, 0]).shape == (1, 8, 9)
    assert transforms.Normalize(0.5, 0.5)(pixels[:, :, 0].astype("float32")).shape == (1, 8, 9)


@pytest.mark.parametrize(
    "transform", [t for t in CHANNELS_LAST if name_of(t) not in ("Cast", "RandomApply")], ids=name_of
)
def test_an_image_with_channels_first_is_an_error_with_the_fix(transform, pixels):
    with pytest.raises(mx.errors.ShapeError, match=r"(?s)\(3, 8, 9\).*Fix: .*transpose\(\(1, 2, 0\)\)"):
        transform(pixels.transpose(2, 0, 1))


def test_a_batch_of_images_with_channels_first_is_an_error_with_the_fix(pixels):
    with pytest.raises(mx.errors.ShapeError, match=r"transpose\(\(0, 2, 3, 1\)\)"):
        transforms.ToTensor()(pixels.transpose(2, 0, 1)[None])


@pytest.mark.parametrize("image", ["cat.png", 3, None, object()])
def test_other_objects_are_errors_with_the_fix(image):
    for transform in (*CHANNELS_LAST, *CHANNELS_FIRST):
        with pytest.raises(mx.errors.TypeError, match="Fix: "):
            transform(image)


def test_floating_images_in_0_to_1_are_warned_about_and_those_in_0_to_255_are_not(pixels, recwarn):
    transforms.ToTensor()(pixels.astype("float32"))
    transforms.ToTensor()(np.zeros((8, 9, 3), "float32"))
    assert not recwarn.list
    with pytest.warns(UserWarning, match="divides by 255") as caught:
        transforms.ToTensor()(pixels / np.float32(255))
    assert caught[0].filename == __file__


def test_a_dataset_of_pil_images_is_loaded_in_batches(pixels):
    samples = [(Image.fromarray(pixels), label) for label in range(4)]
    data = mx.gluon.data.SimpleDataset(samples).transform_first(transforms.ToTensor())
    batch, labels = next(iter(mx.gluon.data.DataLoader(data, batch_size=4)))
    assert batch.shape == (4, 3, 8, 9)
    assert labels.asnumpy().tolist() == [0, 1, 2, 3]
