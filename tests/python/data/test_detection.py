"""Images with boxes: augmenters move boxes with their objects; ImageDetIter's batches, labels and files."""

from __future__ import annotations

import json
import random

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import image, recordio


@pytest.fixture(autouse=True)
def _seed():
    random.seed(11)


def _marked(height=40, width=60):
    """Returns an image of two colored rectangles on black, and their boxes."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[10:20, 6:30] = (200, 0, 0)
    pixels[24:36, 36:54] = (0, 200, 0)
    boxes = [
        [0, 6 / width, 10 / height, 30 / width, 20 / height],
        [1, 36 / width, 24 / height, 54 / width, 36 / height],
    ]
    return mx.nd.array(pixels, dtype="uint8"), np.array(boxes, np.float32)


def _check_boxes(picture, boxes, slack=1):
    """Checks that each box encloses the pixels of its color."""
    pixels = picture.asnumpy()
    height, width = pixels.shape[:2]
    for box in boxes:
        rows, columns = np.nonzero(pixels[:, :, int(box[0])] == 200)
        seen = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        np.testing.assert_allclose(box[1:5] * [width, height, width, height], seen, atol=slack)


@pytest.mark.parametrize(
    "augmenter",
    [
        image.DetHorizontalFlipAug(1),
        image.DetRandomCropAug(min_object_covered=0.5, area_range=(0.3, 0.9)),
        image.DetRandomPadAug(pad_val=(0, 0, 0)),
        image.DetRandomPadAug(pad_val=0, area_range=(1, 2), aspect_ratio_range=1.5),
        image.CreateMultiRandCropAugmenter([0.1, 0.5], area_range=[(0.1, 1.0), (0.5, 1.0)]),
    ],
    ids=["flip", "crop", "pad", "pad_fixed", "crops"],
)
def test_boxes_move_with_their_objects(augmenter):
    changed = 0
    for _ in range(20):
        picture, boxes = _marked()
        before = boxes.copy()
        seen, moved = augmenter(picture, boxes)
        _check_boxes(seen, moved)
        np.testing.assert_array_equal(boxes, before)
        changed += seen.shape != picture.shape or (moved != boxes).any()
    assert changed > 10


def test_parts_hold_the_wanted_share_of_objects_and_drop_the_rest():
    crop = image.DetRandomCropAug(min_object_covered=0.9, area_range=(0.2, 0.5), min_eject_coverage=0.95)
    counts = set()
    for _ in range(40):
        picture, boxes = _marked()
        seen, kept = crop(picture, boxes)
        counts.add(len(kept))
        share = seen.shape[0] * seen.shape[1] / (40 * 60)
        assert share == 1 or 0.2 <= share <= 0.5
    assert counts >= {1}


def test_choosing_skips_with_its_probability_and_ranges_that_are_empty_do_nothing():
    picture, boxes = _marked()
    assert image.DetRandomSelectAug(image.DetHorizontalFlipAug(1), skip_prob=1)(picture, boxes)[0] is picture
    assert image.DetRandomSelectAug([])(picture, boxes)[0] is picture
    assert image.DetHorizontalFlipAug(0)(picture, boxes)[1] is boxes
    with pytest.warns(UserWarning, match="area_range"):
        idle = image.DetRandomCropAug(area_range=(0.5, 0.1))
    with pytest.warns(UserWarning, match="aspect_ratio_range"):
        image.DetRandomPadAug(aspect_ratio_range=(0, 1))
    assert idle(picture, boxes)[0] is picture


def test_augmenters_dump_their_settings_and_name_wrong_arguments():
    borrowed = image.DetBorrowAug(image.HorizontalFlipAug(0.5))
    assert borrowed.dumps() == ["detborrowaug", image.HorizontalFlipAug(0.5).dumps()]
    assert json.loads(image.DetHorizontalFlipAug(0.5).dumps()) == ["detHorizontalFlipAug".lower(), {"p": 0.5}]
    with pytest.raises(mx.MXNetError, match="expected an Augmenter of images"):
        image.DetBorrowAug(image.DetHorizontalFlipAug(1))
    with pytest.raises(mx.MXNetError, match="expected DetAugmenters"):
        image.DetRandomSelectAug(image.HorizontalFlipAug(1))
    with pytest.raises(mx.MXNetError, match="same length"):
        image.CreateMultiRandCropAugmenter([0.1, 0.2, 0.3], max_attempts=[1, 2])
    assert image.det.CreateDetAugmenter is image.CreateDetAugmenter is image.detection.CreateDetAugmenter


def _records(tmp_path, labels):
    index, file = str(tmp_path / "d.idx"), str(tmp_path / "d.rec")
    with recordio.MXIndexedRecordIO(index, file, "w") as writer:
        for i, label in enumerate(labels):
            pixels = _marked()[0].asnumpy()[:, :, ::-1]
            writer.write_idx(i, recordio.pack_img((0, label, i, 0), pixels, 1, ".png"))
    return {"path_imgrec": file, "path_imgidx": index}


def _label(count, width=5):
    return [2, width] + [v for i in range(count) for v in [i, 0.1, 0.1, 0.5, 0.6, *[7] * (width - 5)]]


def test_batches_have_room_for_the_most_objects(tmp_path):
    files = _records(tmp_path, [_label(1), _label(3), _label(2), [2, 5, 0, 0.5, 0.5, 0.1, 0.1]])
    it = image.ImageDetIter(2, (3, 20, 30), **files)
    assert it.provide_label == [("label", (2, 3, 5))]
    first, second = list(it)
    assert first.data[0].shape == (2, 3, 20, 30)
    labels = first.label[0].asnumpy()
    assert (labels[0, 1:] == -1).all()
    np.testing.assert_allclose(labels[1, 2], [2, 0.1, 0.1, 0.5, 0.6], rtol=1e-6)
    assert second.pad == 1  # the image whose box is empty is left out
    it.reset()
    assert len(list(it)) == 2
    it.reshape((3, 10, 10), (5, 5))
    it.auglist = image.CreateDetAugmenter((3, 10, 10), mean=True, std=True, rand_gray=1, hue=0.1, brightness=0.1)
    it.reset()
    batch = next(it)
    assert batch.data[0].shape == (2, 3, 10, 10) and batch.label[0].shape == (2, 5, 5)


def test_all_augmenters_together_keep_shapes(tmp_path):
    files = _records(tmp_path, [_label(2, 6)] * 6)
    it = image.ImageDetIter(
        3, (3, 24, 24), shuffle=True, rand_crop=0.5, rand_pad=0.5, rand_mirror=True, mean=True, std=True, resize=30,
        contrast=0.1, saturation=0.1, pca_noise=0.1, min_object_covered=[0.1, 0.5], area_range=(0.3, 2.0), **files,
    )  # fmt: skip
    for batch in it:
        boxes = batch.label[0].asnumpy()
        real = boxes[boxes[:, :, 0] >= 0]
        assert len(real) and (real[:, 1:5] >= 0).all() and (real[:, 1:5] <= 1).all() and (real[:, 5] == 7).all()


def test_iterators_share_room_for_objects(tmp_path):
    (tmp_path / "a").mkdir()
    train = image.ImageDetIter(1, (3, 8, 8), **_records(tmp_path, [_label(1)]))
    other = image.ImageDetIter(1, (3, 8, 8), **_records(tmp_path / "a", [_label(4)]))
    assert train.sync_label_shape(other) is other
    assert train.label_shape == other.label_shape == (4, 5)
    assert next(train).label[0].shape == (1, 4, 5)
    with pytest.raises(mx.MXNetError, match="reduce label count from 4 to 2"):
        train.reshape(label_shape=(2, 5))
    with pytest.raises(mx.MXNetError, match="5 vs 6"):
        train.reshape(label_shape=(4, 6))
    with pytest.raises(mx.MXNetError, match="expected an ImageDetIter"):
        train.sync_label_shape(None)


def test_lists_of_files_and_drawn_boxes(tmp_path):
    pytest.importorskip("cv2")
    (tmp_path / "x.png").write_bytes(
        recordio.unpack(recordio.pack_img((0, 0, 0, 0), _marked()[0].asnumpy(), 1, ".png"))[1]
    )
    it = image.ImageDetIter(1, (3, 40, 60), imglist=[[*_label(2), "x.png"]], path_root=str(tmp_path))
    assert next(it).label[0].shape == (1, 2, 5)
    it.reset()
    drawn = list(it.draw_next(color=(0, 0, 255), id2labels={0: "cat"}))
    assert len(drawn) == 1 and drawn[0].shape == (40, 60, 3)
    assert (drawn[0][4, 6:30] == [255, 0, 0]).all()


@pytest.mark.parametrize(
    ("labels", "text"),
    [([[2, 5, 1]], "no image with a valid object"), ([_label(1, 5), _label(1, 6)], "from 5 to 6 numbers")],
)
def test_labels_that_make_no_batch_are_named(tmp_path, labels, text):
    with pytest.raises(mx.MXNetError, match=text):
        image.ImageDetIter(1, (3, 8, 8), **_records(tmp_path, labels))
