"""Functions of nd.contrib and sym.contrib that are composed of operators."""

from __future__ import annotations

import math

import hybridnet as mx
import numpy as np
import pytest


@pytest.mark.parametrize("name", ["isinf", "isnan", "isfinite"])
def test_predicates_of_special_values(name: str) -> None:
    values = np.array([[np.nan, np.inf, -np.inf], [0.0, -1.5, 3e38]], dtype="float32")
    expected = getattr(np, name)(values)
    np.testing.assert_array_equal(getattr(mx.nd.contrib, name)(mx.nd.array(values)).asnumpy(), expected)
    out = getattr(mx.sym.contrib, name)(mx.sym.var("x")).bind(mx.cpu(), args=[mx.nd.array(values)]).forward()[0]
    np.testing.assert_array_equal(out.asnumpy(), expected)


def test_zipfian_classes_and_their_expected_counts() -> None:
    mx.random.seed(3)
    true_classes, sampled, classes = mx.nd.array([0, 3]), 20000, 5
    drawn, true_counts, drawn_counts = mx.nd.contrib.rand_zipfian(true_classes, sampled, classes)
    probability = np.array([math.log((c + 2) / (c + 1)) / math.log(classes + 1) for c in range(classes)])
    found = np.bincount(drawn.asnumpy(), minlength=classes) / sampled
    np.testing.assert_allclose(found, probability, atol=0.02)
    np.testing.assert_allclose(true_counts.asnumpy(), probability[[0, 3]] * sampled, rtol=1e-6)
    np.testing.assert_allclose(drawn_counts.asnumpy(), probability[drawn.asnumpy()] * sampled, rtol=1e-6)
    outputs = mx.sym.Group(list(mx.sym.contrib.rand_zipfian(mx.sym.var("true"), 10, classes)))
    results = outputs.bind(mx.cpu(), args=[true_classes]).forward()
    assert results[0].shape == (10,)
    np.testing.assert_allclose(results[1].asnumpy(), probability[[0, 3]] * 10, rtol=1e-6)
