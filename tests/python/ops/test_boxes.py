"""Box operators: examples with known answers."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd

BOXES = [
    [0, 0.5, 0.1, 0.1, 0.2, 0.2],
    [1, 0.4, 0.1, 0.1, 0.2, 0.2],
    [0, 0.3, 0.1, 0.1, 0.14, 0.14],
    [2, 0.6, 0.5, 0.5, 0.7, 0.8],
]


def test_box_nms_keeps_the_best_box_of_every_heap_and_sends_gradients_back():
    data = mx.nd.array(BOXES)
    data.attach_grad()
    with autograd.record():
        out = mx.nd.contrib.box_nms(
            data, overlap_thresh=0.1, coord_start=2, score_index=1, id_index=0, force_suppress=True
        )
    np.testing.assert_allclose(out.asnumpy(), [BOXES[3], BOXES[0], [-1] * 6, [-1] * 6], rtol=1e-6)
    out.backward(mx.nd.array(np.arange(1, 5)[:, None] * np.ones(6)))
    np.testing.assert_array_equal(data.grad.asnumpy()[:, 0], [2, 0, 0, 1])


def test_box_nms_leaves_other_classes_alone_unless_forced():
    out = mx.nd.contrib.box_nms(mx.nd.array(BOXES), overlap_thresh=0.1, id_index=0).asnumpy()
    np.testing.assert_array_equal(out[:, 0], [2, 0, 1, -1])


def test_box_nms_ignores_background_and_scores_that_are_not_numbers():
    rows = np.array(BOXES)
    rows[3, 1] = np.nan
    out = mx.nd.contrib.box_nms(mx.nd.array(rows), id_index=0, background_id=0).asnumpy()
    np.testing.assert_array_equal(out[:, 0], [1, -1, -1, -1])


def test_box_nms_names_columns_that_clash():
    with pytest.raises(mx.errors.ParamError, match=r"score_index.*\n.*coordinates"):
        mx.nd.contrib.box_nms(mx.nd.array(BOXES), score_index=3)


def test_box_nms_converts_formats():
    data = mx.nd.array([[0.9, 0.5, 0.5, 0.2, 0.4], [0.8, -0.1, 0.0, 0.2, 0.2]])
    out = mx.nd.contrib.box_nms(data, coord_start=1, score_index=0, in_format="center", out_format="corner").asnumpy()
    np.testing.assert_allclose(out, [[0.9, 0.4, 0.3, 0.6, 0.7], [0.8, -0.2, -0.1, 0.0, 0.1]], atol=1e-6)


def test_bipartite_matching_takes_the_best_pairs_first():
    rows, columns = mx.nd.contrib.bipartite_matching(mx.nd.array([[0.5, 0.6], [0.1, 0.2], [0.3, 0.4]]), threshold=1e-12)
    np.testing.assert_array_equal(rows.asnumpy(), [1, -1, 0])
    np.testing.assert_array_equal(columns.asnumpy(), [2, 0])


def test_box_decode_undoes_box_encode(rng):
    corners = np.sort(rng.uniform(size=(1, 5, 2, 2)), axis=2).reshape(1, 5, 4)
    anchors = np.sort(rng.uniform(size=(1, 5, 2, 2)), axis=2).reshape(1, 5, 4)
    stds = np.array([0.1, 0.1, 0.2, 0.2])
    arrays = [np.ones((1, 5)), np.arange(5)[None], anchors, corners, np.zeros(4), stds]
    codes, masks = mx.nd.contrib.box_encode(*[mx.nd.array(x, dtype="float64") for x in arrays])
    assert masks.asnumpy().all()
    back = mx.nd.contrib.box_decode(codes, mx.nd.array(anchors, dtype="float64"), 0.1, 0.1, 0.2, 0.2, format="corner")
    np.testing.assert_allclose(back.asnumpy(), corners, rtol=1e-9, atol=1e-12)


def test_box_encode_names_a_match_that_does_not_exist():
    arrays = [np.ones((1, 1)), np.full((1, 1), 3.0), np.ones((1, 1, 4)), np.ones((1, 2, 4)), np.zeros(4), np.ones(4)]
    with pytest.raises(IndexError, match="matches"):
        mx.nd.contrib.box_encode(*[mx.nd.array(x) for x in arrays])[0].asnumpy()


def test_multibox_detection_finds_the_object_of_multibox_target():
    """Targets that MultiBoxTarget makes from an object, read as predictions by MultiBoxDetection, give the object."""
    anchors = mx.nd.contrib.MultiBoxPrior(mx.nd.zeros((1, 3, 4, 4)), sizes=(0.3, 0.6), ratios=(1, 2))
    truth = np.array([[[1.0, 0.1, 0.2, 0.4, 0.6], [-1, -1, -1, -1, -1]]])
    scores = mx.nd.zeros((1, 4, anchors.shape[1]))
    offsets, mask, classes = mx.nd.contrib.MultiBoxTarget(anchors, mx.nd.array(truth), scores)
    positive = classes.asnumpy()[0] > 0
    assert positive.any() and set(classes.asnumpy()[0]) == {0.0, 2.0}
    np.testing.assert_array_equal(mask.asnumpy().reshape(-1, 4).all(axis=1), positive)
    probabilities = np.eye(4)[classes.asnumpy()[0].astype(int)].T[None]
    found = mx.nd.contrib.MultiBoxDetection(mx.nd.array(probabilities), offsets, anchors).asnumpy()[0]
    kept = found[found[:, 0] >= 0]
    np.testing.assert_allclose(kept, [[1.0, 1.0, 0.1, 0.2, 0.4, 0.6]], atol=1e-5)


def test_multibox_target_without_objects_ignores_every_anchor():
    anchors = mx.nd.contrib.MultiBoxPrior(mx.nd.zeros((1, 1, 2, 2)))
    offsets, mask, classes = mx.nd.contrib.MultiBoxTarget(anchors, mx.nd.full((2, 1, 5), -1), mx.nd.zeros((2, 2, 4)))
    assert not offsets.asnumpy().any() and not mask.asnumpy().any()
    assert (classes.asnumpy() == -1).all()
