"""Tests of the distribution of random generators."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ValueError as HybridNetValueError

Generator = Callable[[int], Any]


def gen_buckets_probs_with_ppf(
    ppf: Callable[[float], float], nbuckets: int
) -> tuple[list[tuple[float, float]], list[float]]:
    """Returns nbuckets intervals of equal probability from a quantile function: (intervals, their probabilities)."""
    if nbuckets < 1:
        raise HybridNetValueError(f"gen_buckets_probs_with_ppf: nbuckets is {nbuckets}; expected at least 1")
    edges = [ppf(i / nbuckets) for i in range(nbuckets + 1)]
    return list(itertools.pairwise(edges)), [1 / nbuckets] * nbuckets


def _counts(samples: np.ndarray, buckets: Sequence[Any]) -> np.ndarray:
    if not isinstance(buckets[0], list | tuple):
        return np.array([np.count_nonzero(samples == value) for value in buckets])
    lows, highs = (np.asarray(side, dtype=np.float64) for side in zip(*buckets))
    if np.any(lows > highs) or np.any(highs[:-1] > lows[1:]):
        raise HybridNetValueError("chi_square_check: the buckets overlap or are not in ascending order")
    edges = np.stack([lows, highs], axis=1).ravel()
    places = np.searchsorted(edges, samples.astype(np.float64).ravel(), side="right")  # odd: inside a bucket
    return np.bincount(places, minlength=len(edges) + 1)[1::2]


def chi_square_check(
    generator: Generator, buckets: Sequence[Any], probs: Sequence[float], nsamples: int = 1000000
) -> tuple[float, np.ndarray, np.ndarray]:
    """Runs Pearson's chi-square test: returns (p value, observed counts, expected counts).

    buckets: values of a discrete distribution, or (low, high) intervals in ascending order; probs: their probabilities.
    Needs SciPy.
    """
    from scipy.stats import chisquare

    if len(buckets) != len(probs):
        raise HybridNetValueError(f"chi_square_check: {len(buckets)} buckets but {len(probs)} probabilities")
    found = _counts(np.asarray(generator(nsamples)), buckets)
    expected = nsamples * np.asarray(probs, dtype=np.float64)
    scale = found.sum() / expected.sum() if found.sum() else 1.0  # SciPy requires equal sums; tails may be outside
    return float(chisquare(f_obs=found, f_exp=expected * scale).pvalue), found, expected


def verify_generator(
    generator: Generator,
    buckets: Sequence[Any],
    probs: Sequence[float],
    nsamples: int = 1000000,
    nrepeat: int = 5,
    success_rate: float = 0.2,
    alpha: float = 0.05,
) -> list[float]:
    """Returns p values of nrepeat chi-square tests. Raises AssertionError if too few of them exceed alpha."""
    results = [chi_square_check(generator, buckets, probs, nsamples) for _ in range(nrepeat)]
    p_values = [p for p, _, _ in results]
    if sum(p > alpha for p in p_values) < nrepeat * success_rate:
        raise AssertionError(
            f"the generator draws from another distribution: p values {p_values}\n"
            f"  found: {[found.tolist() for _, found, _ in results]}\n  expected: {results[0][2].tolist()}\n"
            f"  buckets: {list(buckets)}"
        )
    return p_values


def mean_check(generator: Generator, mu: float, sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the mean of nsamples draws lies within three standard errors of mu; sigma: standard deviation of one."""
    mean = float(np.asarray(generator(nsamples), dtype=np.float64).mean())
    return abs(mean - mu) < 3 * sigma / np.sqrt(nsamples)


def var_check(generator: Generator, sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the variance of nsamples draws lies within three standard errors of sigma squared (normal kurtosis)."""
    variance = float(np.asarray(generator(nsamples), dtype=np.float64).var(ddof=1))
    return abs(variance - sigma**2) < 3 * sigma**2 * np.sqrt(2.0 / (nsamples - 1))
