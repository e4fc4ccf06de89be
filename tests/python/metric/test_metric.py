"""Metrics: values computed by hand or by scikit-learn, local and global counts, creation by name."""

from __future__ import annotations

import math

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import metric, nd
from hybridnet.metric._metric import PairMetric


def arr(values, dtype="float32"):
    return nd.array(np.asarray(values), dtype=dtype)


def test_accuracy_takes_scores_or_classes():
    acc = metric.Accuracy()
    acc.update([arr([0, 1, 1])], [arr([[0.3, 0.7], [0, 1.0], [0.4, 0.6]])])
    assert acc.get() == ("accuracy", pytest.approx(2 / 3))
    acc.reset()
    acc.update([arr([2, 1])], [arr([2, 0])])
    assert acc.get()[1] == 0.5


def test_accuracy_with_classes_on_another_axis(rng):
    scores = rng.normal(size=(2, 5, 3))
    labels = scores.argmax(axis=1)
    acc = metric.Accuracy(axis=1)
    acc.update(arr(labels), arr(scores))
    assert acc.get()[1] == 1.0


def test_accuracy_names_both_shapes_when_they_differ():
    with pytest.raises(ValueError, match=r"2.*3"):
        metric.Accuracy().update([arr([0, 1])], [arr([0, 1, 1])])


def test_values_are_nan_before_the_first_batch():
    assert math.isnan(metric.Accuracy().get()[1])
    assert math.isnan(metric.Perplexity(None).get()[1])


def test_local_reset_keeps_the_global_tally():
    acc = metric.Accuracy()
    acc.update([arr([1])], [arr([1])])
    acc.reset_local()
    acc.update([arr([1])], [arr([0])])
    assert acc.get()[1] == 0.0
    assert acc.get_global()[1] == 0.5
    assert acc.get_global_name_value() == [("accuracy", 0.5)]


def test_top_k_counts_labels_among_the_best(rng):
    scores, labels = rng.normal(size=(40, 10)).astype("f"), rng.integers(0, 10, 40)
    top = metric.TopKAccuracy(top_k=3)
    top.update([arr(labels)], [arr(scores)])
    best = np.argsort(scores, axis=1)[:, -3:]
    expected = np.mean([label in row for label, row in zip(labels, best, strict=True)])
    assert top.get() == ("top_k_accuracy_3", pytest.approx(expected))


def test_top_k_refuses_k_of_one():
    with pytest.raises(ValueError, match="Accuracy"):
        metric.TopKAccuracy(top_k=1)


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_f1_and_mcc_agree_with_scikit_learn(rng, average):
    sk = pytest.importorskip("sklearn.metrics")
    f1, mcc = metric.F1(average=average), metric.MCC(average=average)
    labels, preds = [], []
    for _ in range(3):
        label = rng.integers(0, 2, 50)
        pred = rng.random((50, 2)).astype("f")
        f1.update([arr(label)], [arr(pred)])
        mcc.update([arr(label)], [arr(pred)])
        labels.append(label)
        preds.append(pred.argmax(axis=1))
    if average == "micro":
        labels, preds = [np.concatenate(labels)], [np.concatenate(preds)]
    assert f1.get()[1] == pytest.approx(np.mean([sk.f1_score(*pair) for pair in zip(labels, preds, strict=True)]))
    expected = np.mean([sk.matthews_corrcoef(*pair) for pair in zip(labels, preds, strict=True)])
    assert mcc.get()[1] == pytest.approx(expected)


def test_f1_refuses_more_than_two_classes():
    with pytest.raises(ValueError, match="binary"):
        metric.F1().update([arr([0, 1, 2])], [arr(np.eye(3)[:, :2])])


def test_fbeta_weighs_recall():
    sk = pytest.importorskip("sklearn.metrics")
    label, pred = np.array([1, 1, 0, 0, 1]), np.array([1, 0, 1, 0, 0])
    fbeta = metric.Fbeta(beta=2)
    fbeta.update([arr(label)], [arr(np.stack([1 - pred, pred], 1))])
    assert fbeta.get()[1] == pytest.approx(sk.fbeta_score(label, pred, beta=2))


def test_pcc_equals_mcc_for_two_classes_and_scikit_learn_for_more(rng):
    sk = pytest.importorskip("sklearn.metrics")
    label, pred = rng.integers(0, 5, 100), rng.integers(0, 5, 100)
    pcc = metric.PCC()
    pcc.update([arr(label, "int32")], [arr(pred, "int32")])
    assert pcc.get()[1] == pytest.approx(sk.matthews_corrcoef(label, pred))


def test_regression_metrics_average_over_batches():
    label, pred = arr([0.0, 1.0]), arr([[0.5], [3.0]])
    for name, expected in (("mae", 1.25), ("mse", 2.125), ("rmse", math.sqrt(2.125))):
        m = metric.create(name)
        m.update([label], [pred])
        assert m.get() == (name, pytest.approx(expected))


def test_perplexity_adds_logarithms_of_the_predictions_dtype():
    chances = np.array([0.8, 0.8, 1.0], "float32")
    perplexity = metric.Perplexity(ignore_label=None)
    perplexity.update([arr([0, 1, 1])], [arr([[0.8, 0.2], [0.2, 0.8], [0, 1.0]])])
    assert perplexity.get()[1] == math.exp(-float(np.log(chances).sum()) / 3)  # equals MXNet's to the last digit
    halves = metric.Perplexity(ignore_label=None)
    halves.update([arr([1])], [mx.nd.array([[1.0, 0.0]], dtype="float16")])
    assert halves.get()[1] == pytest.approx(1e10, rel=1e-4)


def test_perplexity_ignores_a_label():
    pred = arr([[0.3, 0.7], [0, 1.0], [0.4, 0.6]])
    perplexity = metric.Perplexity(ignore_label=None)
    perplexity.update([arr([0, 1, 1])], [pred])
    assert perplexity.get()[1] == pytest.approx(1.77109762852)
    ignoring = metric.Perplexity(ignore_label=0)
    ignoring.update([arr([0, 1, 1])], [pred])
    assert ignoring.get()[1] == pytest.approx(math.exp(-math.log(0.6) / 2))


@pytest.mark.parametrize("name", ["ce", "nll_loss"])
def test_cross_entropy_is_mean_negative_log_probability(name):
    m = metric.create(name)
    m.update([arr([0, 1])], [arr([[0.3, 0.7], [0.2, 0.8]])])
    assert m.get()[1] == pytest.approx(-(math.log(0.3) + math.log(0.8)) / 2)


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_pearson_correlation_agrees_with_numpy(rng, average):
    m = metric.PearsonCorrelation(average=average)
    label, pred = rng.normal(size=(4, 30)), rng.normal(size=(4, 30))
    for batch in zip(label, pred, strict=True):
        m.update([arr(batch[0])], [arr(batch[1])])
    if average == "micro":
        expected = np.corrcoef(label.ravel(), pred.ravel())[0, 1]
    else:
        expected = np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(label, pred, strict=True)])
    assert m.get()[1] == pytest.approx(expected, abs=1e-6)


def test_loss_averages_the_outputs_of_the_network():
    loss = metric.Loss()
    loss.update(None, [arr([1.0, 2.0]), arr([6.0])])
    assert loss.get() == ("loss", pytest.approx(3.0))


def test_custom_metrics_get_numpy_arrays():
    def total(label, pred):
        assert isinstance(label, np.ndarray)
        return float((label + pred).sum()), label.size

    m = metric.create(total)
    m.update([arr([1.0, 2.0])], [arr([3.0, 4.0])])
    assert m.get() == ("total", 5.0)
    assert metric.np(lambda label, pred: 1.0).name == "custom(<lambda>)"


def test_composite_lists_its_children_and_survives_its_config():
    both = metric.create(["acc", metric.MSE()])
    both.update([arr([1.0])], [arr([1.0])])
    names, values = both.get()
    assert names == ["accuracy", "mse"]
    assert values == [1.0, 0.0]
    assert type(metric.create(**both.get_config())) is metric.CompositeEvalMetric
    with pytest.raises(ValueError, match="out of range"):
        both.get_metric(5)


@pytest.mark.parametrize(
    "name", ["acc", "f1", "mcc", "pcc", "mae", "mse", "rmse", "ce", "nll_loss", "pearsonr", "loss"]
)
def test_metrics_are_made_by_name_and_from_their_config(name):
    made = metric.create(name)
    again = metric.create(**made.get_config())
    assert type(again) is type(made)
    assert again.get_config() == made.get_config()


def test_update_dict_picks_by_name():
    m = metric.Accuracy(output_names=["a"], label_names=["y"])
    m.update_dict({"y": arr([1]), "z": arr([0])}, {"a": arr([1]), "b": arr([0])})
    assert m.get()[1] == 1.0


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="accuracy"):
        mx.metric.create("no_such_metric")


@pytest.mark.parametrize("kind", [metric.MAE, metric.MSE, metric.RMSE])
def test_an_empty_batch_leaves_errors_as_they_are(kind):
    measured = kind()
    measured.update([np.array([1.0, 3.0])], [np.array([1.0, 1.0])])
    before = measured.get()
    measured.update([np.zeros((0, 2))], [np.zeros((0, 2))])
    assert measured.get() == before
    assert np.isfinite(before[1])


def test_accuracy_counts_axes_from_the_end_too():
    measured = metric.Accuracy(axis=-1)
    measured.update([np.array([1, 0])], [np.array([[0.1, 0.9], [0.2, 0.8]])])
    assert measured.get()[1] == 0.5
    with pytest.raises(ValueError, match="no axis 2"):
        metric.Accuracy(axis=2).update([np.array([1, 0])], [np.zeros((2, 2))])


def test_abstract_classes_name_the_method_to_override():
    class Half(PairMetric):
        pass

    with pytest.raises(NotImplementedError, match=r"Half must override _measure\(label, pred\)"):
        Half("half").update([np.zeros(1)], [np.zeros(1)])
