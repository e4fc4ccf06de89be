"""ImageDetRecordIter returns the images, objects and label layout that MXNet 1.9.1 returns for the same file."""

from __future__ import annotations

import random

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors, recordio
from hybridnet.io._detection_augmenter import DetectionAugmenter

HEIGHT, WIDTH = 80, 100


def picture(number):
    image = np.full((HEIGHT, WIDTH, 3), [10 * number, 50, 200], np.uint8)
    image[20:40, 30:50] = 255
    return image


def objects_of(number):
    return [[k, 0.1 + 0.1 * k, 0.2, 0.5 + 0.1 * k, 0.6] for k in range(1 + number % 3)]


@pytest.fixture
def path(tmp_path):
    """A record file of five images with one, two, three, one and two objects; the header holds the image size."""
    file = str(tmp_path / "objects.rec")
    with recordio.MXRecordIO(file, "w") as records:
        for i in range(5):
            label = np.array([4, 5, WIDTH, HEIGHT, *np.ravel(objects_of(i))], np.float32)
            records.write(recordio.pack_img(recordio.IRHeader(0, label, i, 0), picture(i)[:, :, ::-1], img_fmt=".png"))
    return file


def batches(path, **settings):
    return list(mx.io.ImageDetRecordIter(path, **{"data_shape": (3, 40, 50), "batch_size": 2, **settings}))


def row(number, width, *, height=40, columns=50, pad=-1.0):
    """The expected label row of an image whose objects did not move."""
    values = [4, 5, WIDTH, HEIGHT, *np.ravel(objects_of(number))]
    return np.array([3, height, columns, len(values), *values] + [pad] * (width - len(values)), np.float32)


def test_labels_are_sizes_header_objects_and_padding(path):
    iterator = mx.io.ImageDetRecordIter(path, data_shape=(3, 40, 50), batch_size=2)
    assert iterator.provide_data[0].shape == (2, 3, 40, 50)
    assert (iterator.provide_label[0].name, iterator.provide_label[0].shape) == ("softmax_label", (2, 23))
    found = list(iterator)
    assert [batch.pad for batch in found] == [0, 0, 1]
    for numbers, batch in zip([(0, 1), (2, 3), (4, 0)], found, strict=True):
        np.testing.assert_array_equal(batch.label[0].asnumpy(), [row(number, 19) for number in numbers])
        for number, image in zip(numbers, batch.data[0].asnumpy(), strict=True):
            np.testing.assert_array_equal(image[:, 0, 0], [10 * number, 50, 200])
            np.testing.assert_array_equal(image[:, 15, 20], 255)
    iterator.reset()
    np.testing.assert_array_equal(next(iterator).label[0].asnumpy(), found[0].label[0].asnumpy())


def test_labels_are_padded_to_the_given_width(path):
    label = batches(path, label_pad_width=25, label_pad_value=-7)[0].label[0].asnumpy()
    np.testing.assert_array_equal(label, [row(0, 25, pad=-7), row(1, 25, pad=-7)])


def test_values_are_normalized(path):
    image = batches(path, mean_r=1, mean_g=2, mean_b=3, std_r=2)[0].data[0].asnumpy()[0]
    np.testing.assert_allclose(image[:, 0, 0], [-0.5, 48, 197])


def test_mirrored_objects(path):
    batch = batches(path, rand_mirror_prob=1.0)[0]
    found = batch.label[0].asnumpy()[1]
    np.testing.assert_allclose(found[8:18], [0, 0.5, 0.2, 0.9, 0.6, 1, 0.4, 0.2, 0.8, 0.6], rtol=1e-6)
    np.testing.assert_array_equal(batch.data[0].asnumpy()[1][:, 15, 50 - 20], 255)


@pytest.mark.parametrize("mode, shape, size", [
    ("fit", (40, 40), (32, 40)), ("shrink", (40, 40), (32, 40)), ("shrink", (200, 200), (80, 100)),
    ("fit", (200, 200), (160, 200)),
])  # fmt: skip
def test_proportions_are_kept_with_zeros_around(path, mode, shape, size):
    batch = batches(path, data_shape=(3, *shape), resize_mode=mode)[0]
    label, image = batch.label[0].asnumpy()[1], batch.data[0].asnumpy()[1]
    np.testing.assert_array_equal(label[:4], [3, *size, 14])
    assert (image[:, : size[0], : size[1]] > 0).all()
    assert (image[:, size[0] :] == 0).all()
    assert (image[:, :, size[1] :] == 0).all()


def as_pixels(objects, image):
    height, width = image.shape[:2]
    return objects[:, 1:5] * [width, height, width, height]


def marked():
    """Returns an image whose only object is its white part, and the object."""
    return picture(1), np.array([[3, 0.3, 0.25, 0.5, 0.5, 9]], np.float32)


def assert_object_is_white(image, objects, slack=2.0):
    x0, y0, x1, y1 = as_pixels(objects, image)[0]
    ys, xs = np.nonzero((image == 255).all(axis=2))
    np.testing.assert_allclose([xs.min(), ys.min(), xs.max() + 1, ys.max() + 1], [x0, y0, x1, y1], atol=slack)
    assert objects[0, 0] == 3
    assert objects[0, 5] == 9


@pytest.mark.parametrize("seed", range(8))
def test_a_border_moves_objects_along(seed):
    augment = DetectionAugmenter(160, 200, rand_pad_prob=1.0, max_pad_scale=3.0, fill_value=7, inter_method=0)
    image, objects, size = augment(*marked(), random.Random(seed))
    assert size == (160, 200)
    assert_object_is_white(image, objects, 4)
    assert (image == 7).all(axis=2).any()


@pytest.mark.parametrize("seed", range(12))
def test_a_part_holds_as_much_of_the_object_as_asked_for(seed):
    augment = DetectionAugmenter(
        160, 200, rand_crop_prob=1.0, min_crop_scales=(0.3,), max_crop_scales=0.8, min_crop_object_coverages=(1.0,),
        min_crop_aspect_ratios=(0.8,), max_crop_aspect_ratios=(1.25,), max_crop_trials=(500,), inter_method=0,
    )  # fmt: skip
    image, objects, _ = augment(*marked(), random.Random(seed))
    assert_object_is_white(image, objects, 6)
    assert (objects[0, 3] - objects[0, 1]) * (objects[0, 4] - objects[0, 2]) > 0.05 / 0.8**2 * 0.8


@pytest.mark.parametrize("mode, kept", [("center", 0), ("overlap", 1)])
def test_objects_leave_with_their_middle_or_with_their_area(mode, kept):
    """The crop ends just left of the object's center, so a bit less than half of the object is in it."""
    augment = DetectionAugmenter(80, 100, crop_emit_mode=mode, emit_overlap_thresh=0.3)
    found = augment._objects_in(np.array([[1, 0.2, 0.2, 0.6, 0.6]]), np.array([0.0, 0.0, 0.39, 1.0]))
    assert len(found) == kept
    if kept:
        np.testing.assert_allclose(found[0, 1:5], [0.2 / 0.39, 0.2, 1, 0.6])


def test_a_part_without_any_object_is_not_taken():
    augment = DetectionAugmenter(80, 100, rand_crop_prob=1.0, min_crop_scales=(0.1,), max_crop_scales=(0.2,))
    for seed in range(20):
        _, objects, _ = augment(*marked(), random.Random(seed))
        assert len(objects) == 1


def test_colors_change_with_the_given_probability(path):
    plain, changed = (
        batches(path, max_random_hue=90, random_hue_prob=p, max_random_contrast=0.5, random_contrast_prob=p)
        for p in (0.0, 1.0)
    )
    np.testing.assert_array_equal(plain[0].data[0].asnumpy(), batches(path)[0].data[0].asnumpy())
    assert (plain[0].data[0].asnumpy() != changed[0].data[0].asnumpy()).any()


def test_the_same_seed_draws_the_same(path):
    settings = {"rand_mirror_prob": 0.5, "rand_pad_prob": 0.5, "max_pad_scale": 2.0, "shuffle": True, "seed": 4}
    for a, b in zip(batches(path, **settings), batches(path, **settings), strict=True):
        np.testing.assert_array_equal(a.label[0].asnumpy(), b.label[0].asnumpy())
        np.testing.assert_array_equal(a.data[0].asnumpy(), b.data[0].asnumpy())


@pytest.mark.parametrize("settings, match", [
    ({"label_pad_width": 10}, "label_pad_width(.|\n)*at least 14"),
    ({"label_width": 9}, "label_width"),
    ({"crop_emit_mode": "middle"}, "center or overlap"),
    ({"resize_mode": "cut"}, "resize_mode"),
    ({"min_crop_scales": (0.9,), "max_crop_scales": (0.5,)}, "min_crop_scales is above"),
    ({"num_crop_sampler": 3, "min_crop_scales": (0.1, 0.2)}, "1 or 3 numbers"),
    ({"max_pad_scale": 0.5}, "max_pad_scale"),
    ({"rand_mirror": True}, "rand_mirror_prob"),
    ({"rand_miror_prob": 1}, "rand_mirror_prob"),
])  # fmt: skip
def test_wrong_settings_are_named(path, settings, match):
    with pytest.raises(errors.HybridNetError, match=match):
        batches(path, **settings)


def test_labels_that_are_no_objects_are_named(tmp_path):
    file = str(tmp_path / "classes.rec")
    with recordio.MXRecordIO(file, "w") as records:
        records.write(recordio.pack_img(recordio.IRHeader(0, 3.0, 0, 0), picture(0), img_fmt=".png"))
    with pytest.raises(errors.FormatError, match="length of header"):
        batches(file, batch_size=1)
