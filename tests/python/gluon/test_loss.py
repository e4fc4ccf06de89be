"""Losses against NumPy: values, weights, gradients, imperative and hybridized."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from hybridnet.gluon import loss as losses


def floats(rng, *shape):
    return rng.normal(size=shape).astype("float32")


def run(loss, *inputs, rtol=1e-4):
    """Returns the loss; checks it hybridized, and checks the gradient of its sum by differences."""
    arrays = [None if x is None else mx.nd.array(x, dtype="float64") for x in inputs]
    pred = arrays[0]
    pred.attach_grad()
    results = []
    for hybrid in (False, True):
        loss.hybridize(hybrid)
        with autograd.record():
            out = loss(*arrays)
            total = out.sum()
        total.backward()
        results.append((out.asnumpy(), pred.grad.asnumpy().copy()))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    _check_gradient(loss, arrays, results[0][1])
    return results[0][0]


def _check_gradient(loss, arrays, gradient, step=1e-5):
    pred = arrays[0].asnumpy()
    for index in list(np.ndindex(pred.shape))[:6]:
        ends = []
        for sign in (1, -1):
            moved = pred.copy()
            moved[index] += sign * step
            ends.append(float(loss(mx.nd.array(moved, dtype="float64"), *arrays[1:]).sum().asscalar()))
        assert gradient[index] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-6)


def mean_rest(values):
    return values.reshape(len(values), -1).mean(1)


def log_softmax(x, axis=-1):
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def softplus(x):
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


POINTWISE = {
    "L2Loss": (losses.L2Loss, lambda p, y: 0.5 * (p - y) ** 2),
    "L1Loss": (losses.L1Loss, lambda p, y: np.abs(p - y)),
    "Huber": (
        lambda **k: losses.HuberLoss(rho=0.7, **k),
        lambda p, y: np.where(np.abs(p - y) > 0.7, np.abs(p - y) - 0.35, (p - y) ** 2 / 1.4),
    ),
    "Hinge": (lambda **k: losses.HingeLoss(margin=0.8, **k), lambda p, y: np.maximum(0.8 - p * y, 0)),
    "SquaredHinge": (losses.SquaredHingeLoss, lambda p, y: np.maximum(1 - p * y, 0) ** 2),
    "Logistic": (losses.LogisticLoss, lambda p, y: softplus(p) - p * (y + 1) / 2),
    "BinaryLogistic": (lambda **k: losses.LogisticLoss(label_format="binary", **k), lambda p, y: softplus(p) - p * y),
    "SigmoidBCE": (losses.SigmoidBCELoss, lambda p, y: softplus(p) - p * y),
}


@pytest.mark.parametrize("name", sorted(POINTWISE))
@pytest.mark.parametrize("weighting", ["none", "weight", "samples"])
def test_losses_of_single_values(name, weighting, rng):
    make, reference = POINTWISE[name]
    pred, label = floats(rng, 4, 3, 2).astype("float64"), np.sign(floats(rng, 4, 3, 2)).astype("float64")
    if "BCE" in name or "Binary" in name:
        label = (label + 1) / 2
    expected = reference(pred, label)
    if weighting == "none":
        got = run(make(), pred, label)
    elif weighting == "weight":
        got = run(make(weight=0.3), pred, label)
        # L2Loss has weight 1 by default and a separate factor of one half.
        expected = expected * 0.3
    else:
        samples = rng.uniform(size=(4, 1, 1))
        got = run(make(), pred, label, samples)
        expected = expected * samples
    np.testing.assert_allclose(got, mean_rest(expected), rtol=1e-6, atol=1e-9)


def test_labels_take_the_shape_of_predictions(rng):
    pred, label = floats(rng, 4, 1), floats(rng, 4)
    np.testing.assert_allclose(run(losses.L1Loss(), pred, label), np.abs(pred.ravel() - label), rtol=1e-5)


def test_batch_axis_is_kept(rng):
    pred, label = floats(rng, 3, 5), floats(rng, 3, 5)
    got = run(losses.L2Loss(batch_axis=1), pred, label)
    np.testing.assert_allclose(got, 0.5 * ((pred - label) ** 2).mean(0), rtol=1e-5)


def test_sigmoid_cross_entropy_of_probabilities_and_positive_weights(rng):
    pred = rng.uniform(0.05, 0.95, size=(4, 3))
    label = rng.integers(0, 2, size=(4, 3)).astype("float64")
    positive = rng.uniform(0.5, 2, size=(1, 3))
    expected = -(np.log(pred) * label + np.log(1 - pred) * (1 - label))
    np.testing.assert_allclose(
        run(losses.SigmoidBCELoss(from_sigmoid=True), pred, label), mean_rest(expected), rtol=1e-6
    )
    weighted = -(np.log(pred) * label * positive + np.log(1 - pred) * (1 - label))
    got = run(losses.SigmoidBCELoss(from_sigmoid=True), pred, label, np.ones((1, 1)), positive)
    np.testing.assert_allclose(got, mean_rest(weighted), rtol=1e-6)
    logits = floats(rng, 4, 3).astype("float64")
    probability = 1 / (1 + np.exp(-logits))
    weighted = -(np.log(probability) * label * positive + np.log(1 - probability) * (1 - label))
    got = run(losses.SigmoidBinaryCrossEntropyLoss(), logits, label, np.ones((1, 1)), positive)
    np.testing.assert_allclose(got, mean_rest(weighted), rtol=1e-6)


def test_sigmoid_cross_entropy_does_not_overflow():
    pred, label = np.array([[1000.0], [-1000.0]]), np.array([[0.0], [1.0]])
    assert run(losses.SigmoidBCELoss(), pred, label).tolist() == [1000, 1000]


@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_softmax_cross_entropy(axis, from_logits, sparse, rng):
    pred = floats(rng, 4, 3, 5).astype("float64")
    classes = pred.shape[axis]
    logs = log_softmax(pred, axis)
    if sparse:
        label = rng.integers(0, classes, size=np.delete(pred.shape, axis % 3)).astype("float64")
        picked = np.take_along_axis(logs, np.expand_dims(label.astype(int), axis), axis)
        expected = -picked.squeeze(axis)
    else:
        label = rng.dirichlet(np.ones(classes), size=tuple(np.delete(pred.shape, axis % 3)))
        label = np.moveaxis(label, -1, axis)
        expected = -(logs * label).sum(axis)
    loss = losses.SoftmaxCrossEntropyLoss(axis=axis, sparse_label=sparse, from_logits=from_logits)
    np.testing.assert_allclose(run(loss, logs if from_logits else pred, label), mean_rest(expected), rtol=1e-6)


def test_softmax_cross_entropy_with_sample_weights(rng):
    pred, label = floats(rng, 4, 5).astype("float64"), np.array([0.0, 4, 2, 2])
    samples = np.array([[1.0], [0], [2], [0.5]])
    expected = -log_softmax(pred)[np.arange(4), label.astype(int)] * samples.ravel()
    np.testing.assert_allclose(run(losses.SoftmaxCELoss(), pred, label, samples), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_labels_may_be_integers(dtype, rng):
    pred = mx.nd.array(floats(rng, 4, 5))
    got = losses.SoftmaxCrossEntropyLoss()(pred, mx.nd.array([0, 4, 2, 2], dtype=dtype))
    expected = -log_softmax(pred.asnumpy())[np.arange(4), [0, 4, 2, 2]]
    np.testing.assert_allclose(got.asnumpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("from_logits", [True, False])
def test_kl_divergence(from_logits, rng):
    pred = floats(rng, 4, 5).astype("float64")
    label = rng.dirichlet(np.ones(5), size=4)
    expected = (label * (np.log(label) - log_softmax(pred))).sum(1)
    got = run(losses.KLDivLoss(from_logits=from_logits), log_softmax(pred) if from_logits else pred, label)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_triplets(rng):
    pred, positive, negative = (floats(rng, 4, 3).astype("float64") for _ in range(3))
    expected = np.maximum(((positive - pred) ** 2 - (negative - pred) ** 2).sum(1) + 0.5, 0)
    np.testing.assert_allclose(run(losses.TripletLoss(margin=0.5), pred, positive, negative), expected, rtol=1e-6)


@pytest.mark.parametrize("full", [False, True])
def test_poisson(full, rng):
    pred, target = rng.uniform(0.5, 2, size=(4, 3)), rng.integers(0, 5, size=(4, 3)).astype("float64")
    stirling = np.where(
        target > 1,
        target * np.log(np.maximum(target, 1)) - target + 0.5 * np.log(2 * np.pi * np.maximum(target, 1)),
        0,
    )
    extra = stirling if full else 0
    got = run(losses.PoissonNLLLoss(compute_full=full), pred, target)
    np.testing.assert_allclose(got, [(np.exp(pred) - target * pred + extra).mean()], rtol=1e-6)
    got = run(losses.PoissonNLLLoss(from_logits=False, compute_full=full), pred, target)
    np.testing.assert_allclose(got, [(pred - target * np.log(pred + 1e-8) + extra).mean()], rtol=1e-6)


def test_cosine_embedding(rng):
    a, b = floats(rng, 4, 3).astype("float64"), floats(rng, 4, 3).astype("float64")
    label = np.array([1.0, -1, 1, -1])
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    expected = np.where(label == 1, 1 - cosine, np.maximum(cosine - 0.1, 0))
    got = run(losses.CosineEmbeddingLoss(margin=0.1), a, b, label)
    np.testing.assert_allclose(got.ravel(), expected, rtol=1e-6)


def test_sdml(rng):
    x1, x2 = floats(rng, 4, 3).astype("float64"), floats(rng, 4, 3).astype("float64")
    distances = ((x1[:, None] - x2[None]) ** 2).sum(2)
    labels = np.full((4, 4), 0.3 / 3)
    np.fill_diagonal(labels, 0.7)
    expected = (labels * (np.log(labels) - log_softmax(-distances))).sum(1)
    got = losses.SDMLLoss(smoothing_parameter=0.3)(mx.nd.array(x1), mx.nd.array(x2)).asnumpy()
    np.testing.assert_allclose(got, expected, rtol=1e-4)


def _ctc(logits, label, blank):
    """Negative log likelihood of one sequence, by the forward recursion over the label with blanks inserted."""
    logs = log_softmax(logits.astype("float64"))
    extended = [blank]
    for item in label:
        extended += [item, blank]
    alpha = np.full(len(extended), -np.inf)
    alpha[:2] = logs[0, extended[0]], logs[0, extended[1]] if len(extended) > 1 else -np.inf
    for row in logs[1:]:
        before = alpha.copy()
        for s, item in enumerate(extended):
            options = [before[s]]
            if s >= 1:
                options.append(before[s - 1])
            if s >= 2 and item != blank and item != extended[s - 2]:
                options.append(before[s - 2])
            alpha[s] = np.logaddexp.reduce(options) + row[item]
    return -np.logaddexp.reduce(alpha[-2:])


@pytest.mark.parametrize(("layout", "label_layout"), [("NTC", "NT"), ("TNC", "TN")])
def test_ctc(layout, label_layout, rng):
    pred = floats(rng, 2, 6, 5)
    label = np.array([[1, 2, 2], [3, 0, -1]], "float32")
    expected = [_ctc(pred[0], [1, 2, 2], 4), _ctc(pred[1], [3, 0], 4)]
    x = pred if layout == "NTC" else pred.swapaxes(0, 1)
    y = label if label_layout == "NT" else label.T
    got = losses.CTCLoss(layout, label_layout)(mx.nd.array(x), mx.nd.array(y)).asnumpy()
    np.testing.assert_allclose(got, expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: losses.CTCLoss(layout="CNT"), "CNT"),
        (lambda: losses.CTCLoss(label_layout="X"), "X"),
        (lambda: losses.LogisticLoss(label_format="other"), "other"),
        (lambda: losses.L1Loss(weight="heavy")(mx.nd.ones((1,)), mx.nd.ones((1,))), "weight.*heavy"),
    ],
)
def test_wrong_arguments_are_named(make, text):
    with pytest.raises((ValueError, TypeError), match=text):
        make()


def test_a_custom_loss_needs_its_formula():
    with pytest.raises(NotImplementedError):
        losses.Loss(None, 0)(mx.nd.ones((1,)))
    assert repr(losses.L1Loss(weight=2.0)) == "L1Loss(batch_axis=0, w=2.0)"
    assert isinstance(losses.L1Loss(), gluon.HybridBlock)
