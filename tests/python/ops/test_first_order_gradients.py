"""Gradients that the samples of operators cannot check: some inputs have none, or the inputs depend on each other."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
from hybridnet import autograd


def gradients(function, arrays, wanted, weights):
    values = [mx.nd.array(x, dtype=x.dtype) for x in arrays]
    for i in wanted:
        values[i].attach_grad()
    with autograd.record():
        out = function(*values)
        out = out[0] if isinstance(out, (list, tuple)) else out
        loss = (out * mx.nd.array(weights, dtype="float64")).sum()
    loss.backward()
    return [values[i].grad.asnumpy() for i in wanted]


def differences(function, arrays, i, weights, step=1e-6):
    """Central differences of sum(weights * function(arrays)) by array i."""

    def loss(x):
        changed = [mx.nd.array(x if k == i else a, dtype=a.dtype) for k, a in enumerate(arrays)]
        out = function(*changed)
        out = out[0] if isinstance(out, (list, tuple)) else out
        return float((out.asnumpy() * weights).sum())

    result = np.zeros_like(arrays[i])
    for index in np.ndindex(arrays[i].shape):
        change = np.zeros_like(arrays[i])
        change[index] = step
        result[index] = (loss(arrays[i] + change) - loss(arrays[i] - change)) / (2 * step)
    return result


def agree(function, arrays, wanted, weights):
    for i, got in zip(wanted, gradients(function, arrays, wanted, weights), strict=True):
        np.testing.assert_allclose(got, differences(function, arrays, i, weights), rtol=1e-5, atol=1e-7)


def test_hawkes_processes(rng):
    lags, marks = rng.uniform(0.1, 1.0, (3, 6)), rng.integers(0, 2, (3, 6)).astype("int32")
    arrays = [
        rng.uniform(0.5, 1.0, (3, 2)),
        rng.uniform(0.1, 0.6, 2),
        rng.uniform(0.5, 2.0, 2),
        rng.uniform(0.0, 1.0, (3, 2)),
        lags,
        marks,
        np.array([6.0, 4.0, 0.0]),
        np.full(3, 8.0),
    ]
    agree(mx.nd.contrib.hawkesll, arrays, [0, 1, 2], rng.normal(size=3))


def test_deformable_region_pooling(rng):
    arrays = [
        rng.normal(size=(2, 8, 6, 7)),
        np.array([[0, 0, 0, 4, 4], [1, 1, 2, 5, 5], [0, 2, 1, 6, 3]], "float64"),
        rng.uniform(-0.9, 0.9, (3, 4, 2, 2)),
    ]

    def pool(data, rois, trans):
        return mx.nd.contrib.DeformablePSROIPooling(
            data,
            rois,
            trans,
            spatial_scale=0.83,
            output_dim=2,
            group_size=2,
            pooled_size=2,
            sample_per_part=3,
            trans_std=0.1,
        )

    agree(pool, arrays, [0, 2], rng.normal(size=(3, 2, 2, 2)))


def test_region_pooling_reaches_the_data(rng):
    rois = np.array([[0, 0, 0, 4, 4], [1, 1, 2, 5, 5]], "float64")
    agree(
        lambda d, r: mx.nd.contrib.PSROIPooling(d, r, spatial_scale=0.9, output_dim=2, pooled_size=2),
        [rng.normal(size=(2, 8, 6, 7)), rois],
        [0],
        rng.normal(size=(2, 2, 2, 2)),
    )
    rotated = np.array([[0, 3, 3, 4, 2, 30], [1, 2, 3, 3, 3, -70]], "float64")
    agree(
        lambda d, r: mx.nd.contrib.RROIAlign(d, r, pooled_size=(2, 3), spatial_scale=0.9),
        [rng.normal(size=(2, 2, 6, 7)), rotated],
        [0],
        rng.normal(size=(2, 2, 2, 3)),
    )


def test_probabilities_of_integers_reach_their_parameters(rng):
    counts = rng.integers(0, 5, (3, 4)).astype("float64")
    for is_log in (False, True):
        weights = rng.normal(size=(3, 4))
        agree(
            lambda *a, log=is_log: mx.nd.random_pdf_poisson(*a, is_log=log),
            [counts, rng.uniform(0.5, 3, 3)],
            [1],
            weights,
        )
        for density, second in (
            (mx.nd.random_pdf_negative_binomial, rng.uniform(0.2, 0.8, 3)),
            (mx.nd.random_pdf_generalized_negative_binomial, rng.uniform(0.3, 2.0, 3)),
        ):
            arrays = [counts, rng.uniform(0.5, 3, 3), second]
            agree(lambda *a, f=density, log=is_log: f(*a, is_log=log), arrays, [1, 2], weights)
