"""ConfusionMatrix and its picture."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.metric import ConfusionMatrix


def filled(**options):
    metric = ConfusionMatrix(**options)
    metric.update(mx.nd.array([0, 1, 2, 2]), mx.nd.array([[5, 1, 0], [4, 1, 0], [0, 1, 3], [0, 9, 3]]))
    return metric


def test_pairs_of_classes_are_counted():
    metric = filled(labels=["cat", "dog", "cow"])
    assert metric.matrix.tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 1]]
    assert metric.get() == ("confusion-matrix-accuracy", 0.5)
    metric.update([mx.nd.array([1])], [mx.nd.array([1])])  # lists, and class numbers as predictions
    assert metric.matrix[1].tolist() == [1, 1, 0]
    found = metric.per_class()["dog"]
    assert found == {"precision": 0.5, "recall": 0.5, "f1": 0.5, "count": 2}
    assert metric.table().splitlines() == [
        "true \\ predicted  cat  dog  cow",
        "             cat    1    0    0",
        "             dog    1    1    0",
        "             cow    0    1    1",
    ]


def test_the_matrix_grows_with_the_classes_and_local_counts_are_their_own():
    metric = ConfusionMatrix()
    assert np.isnan(metric.get()[1]) and metric.matrix.shape == (0, 0)
    metric.update(np.array([0, 1]), np.array([1, 1]))
    metric.reset_local()
    metric.update(np.array([4]), np.array([4]))
    assert metric.matrix.shape == (5, 5) and metric.matrix.sum() == 3
    assert metric.get()[1] == 1 and metric.get_global()[1] == pytest.approx(2 / 3)
    metric.reset()
    assert metric.matrix.sum() == 0 and np.isnan(metric.get_global()[1])


def test_a_matrix_is_created_by_name_and_by_its_configuration():
    metric = mx.metric.create("confusionmatrix", num_classes=4)
    assert mx.metric.create(**metric.get_config()).num_classes == 4


def test_wrong_classes_are_named():
    metric = ConfusionMatrix(num_classes=2)
    with pytest.raises(ValueError, match="labels: expected class numbers from 0 to 1, got 2"):
        metric.update(np.array([2]), np.array([0]))
    with pytest.raises(ValueError, match="predictions: expected class numbers from 0 to 1, got -1"):
        metric.update(np.array([0]), np.array([-1]))
    with pytest.raises(ValueError, match="2 names, got 3"):
        ConfusionMatrix(2, labels="abc")
    assert metric.matrix.sum() == 0


def test_a_matrix_is_drawn_with_the_names_of_its_classes(tmp_path):
    pytest.importorskip("matplotlib", reason="draws pictures")
    path = tmp_path / "matrix.png"
    figure = mx.viz.plot_confusion_matrix(filled(labels=["cat", "dog", "cow"]), normalize=True, path=path)
    assert path.read_bytes().startswith(b"\x89PNG")
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["cat", "dog", "cow"]
    assert [text.get_text() for text in axes.texts][6:] == ["0.00", "0.50", "0.50"]
    figure = mx.viz.plot_confusion_matrix([[3, 1], [0, 2]], labels="ab", path=path)
    assert [text.get_text() for text in figure.axes[0].texts] == ["3", "1", "0", "2"]
    with pytest.raises(ValueError, match=r"square array, got shape \(0, 0\)"):
        mx.viz.plot_confusion_matrix(ConfusionMatrix())
    with pytest.raises(ValueError, match="2 names, got 1"):
        mx.viz.plot_confusion_matrix([[3, 1], [0, 2]], labels="a")
