"""Random draws from given probabilities, and classes drawn without replacement."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd


def test_multinomial_draws_as_often_as_probabilities_say(rng):
    p = np.array([[0.1, 0.0, 0.6, 0.3], [0.25, 0.25, 0.25, 0.25]])
    drawn = mx.nd.sample_multinomial(mx.nd.array(p), shape=20000).asnumpy()
    assert drawn.dtype == np.int32 and drawn.shape == (2, 20000)
    shares = np.stack([np.bincount(row, minlength=4) for row in drawn]) / 20000
    np.testing.assert_allclose(shares, p, atol=0.015)
    assert shares[0, 1] == 0


def test_multinomial_scales_probabilities_to_sum_to_one():
    drawn = mx.nd.sample_multinomial(mx.nd.array([3.0, 0.0, 1.0]), shape=4000).asnumpy()
    assert set(drawn) == {0, 2} and abs((drawn == 0).mean() - 0.75) < 0.04


def test_multinomial_log_probabilities_teach_their_distribution(rng):
    p = mx.nd.array(rng.dirichlet(np.ones(5), size=3))
    p.attach_grad()
    with autograd.record():
        drawn, log = mx.nd.sample_multinomial(p, shape=(4, 2), get_prob=True)
        reward = mx.nd.array(rng.normal(size=(3, 4, 2)))
        loss = (log * reward).sum()
    loss.backward()
    picked = np.take_along_axis(p.asnumpy(), drawn.asnumpy().reshape(3, 8), axis=1)
    np.testing.assert_allclose(log.asnumpy().reshape(3, 8), np.log(picked), rtol=1e-5)
    want = np.zeros((3, 5))
    for row, outcome, weight, probability in zip(
        np.repeat(np.arange(3), 8), drawn.asnumpy().ravel(), reward.asnumpy().ravel(), picked.ravel(), strict=True
    ):
        want[row, outcome] += weight / probability
    np.testing.assert_allclose(p.grad.asnumpy(), want, rtol=1e-4)


def test_multinomial_without_shape_draws_one():
    assert mx.nd.sample_multinomial(mx.nd.array([0.5, 0.5])).shape == (1,)
    assert mx.nd.sample_multinomial(mx.nd.array([[0.5, 0.5]] * 3), dtype="float64").dtype == np.float64


def test_multinomial_refuses_distributions_without_outcomes():
    with mx.util.np_shape(True), pytest.raises(mx.errors.ShapeError, match="at least one outcome"):
        mx.nd.sample_multinomial(mx.nd.zeros((2, 0)))


def test_unique_zipfian_repeats_no_class_and_prefers_the_first():
    samples, tries = mx.nd._internal._sample_unique_zipfian(range_max=1000, shape=(200, 20))
    samples, tries = samples.asnumpy(), tries.asnumpy()
    assert samples.min() >= 0 and samples.max() < 1000 and (tries >= 20).all()
    assert all(len(set(row)) == 20 for row in samples)
    assert (samples == 0).any(axis=1).mean() > (samples == 500).any(axis=1).mean() + 0.3


def test_unique_zipfian_refuses_more_classes_than_there_are():
    with pytest.raises(mx.errors.ParamError, match="range_max=3"):
        mx.nd._internal._sample_unique_zipfian(range_max=3, shape=(1, 4))
