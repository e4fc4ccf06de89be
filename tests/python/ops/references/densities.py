"""Densities of distributions, from the textbooks' formulas."""

from __future__ import annotations

from math import lgamma

import numpy as np

from .attributes import value

_lgamma = np.vectorize(lgamma, otypes=["float64"])


def _negative_binomial(x, k, p):
    return _lgamma(x + k) - _lgamma(x + 1) - _lgamma(k) + k * np.log(p) + x * np.log(1 - p)


_LOGS = {
    "uniform": lambda x, low, high: -np.log(high - low) + 0 * x,
    "normal": lambda x, mu, sigma: -((x - mu) ** 2) / (2 * sigma**2) - np.log(sigma * np.sqrt(2 * np.pi)),
    "gamma": lambda x, alpha, beta: alpha * np.log(beta) + (alpha - 1) * np.log(x) - beta * x - _lgamma(alpha),
    "exponential": lambda x, lam: np.log(lam) - lam * x,
    "poisson": lambda x, lam: x * np.log(lam) - lam - _lgamma(x + 1),
    "negative_binomial": _negative_binomial,
    "generalized_negative_binomial": lambda x, mu, alpha: _negative_binomial(x, 1 / alpha, 1 / (mu * alpha + 1)),
}


def _given(log, inputs, attrs):
    out = log if value(attrs, "is_log", False) else np.exp(log)
    return [out.astype(inputs[0].dtype)]


def _density(name):
    def reference(inputs, attrs):
        sample, *parameters = (np.asarray(x, "float64") for x in inputs)
        drawn = (1,) * (sample.ndim - parameters[0].ndim)
        return _given(_LOGS[name](sample, *(p.reshape(p.shape + drawn) for p in parameters)), inputs, attrs)

    return reference


def _dirichlet(inputs, attrs):
    sample, alpha = (np.asarray(x, "float64") for x in inputs)
    alpha = alpha.reshape(alpha.shape[:-1] + (1,) * (sample.ndim - alpha.ndim) + alpha.shape[-1:])
    log = ((alpha - 1) * np.log(sample) - _lgamma(alpha)).sum(-1) + _lgamma(alpha.sum(-1))
    return _given(np.atleast_1d(log), inputs, attrs)


REFERENCES = {f"_random_pdf_{name}": _density(name) for name in _LOGS} | {"_random_pdf_dirichlet": _dirichlet}
