"""NumPy reference of Hawkes processes: sums over pairs of events, without the recursion of the kernel."""

from __future__ import annotations

import numpy as np


def _events(inputs, sample, kind):
    """The times of one process's events in one sample."""
    lags, marks, valid = inputs[4][sample], inputs[5][sample], int(np.ceil(inputs[6][sample]))
    times = np.cumsum(lags[:valid])
    return times[marks[:valid] == kind]


def _memory(times, t, beta, state):
    """The decayed number of events before t, and its derivative by beta."""
    since = np.append(t - times[times < t], t)
    counts = np.append(np.ones(len(since) - 1), state)
    decay = counts * np.exp(-beta * since)
    return decay.sum(), -(since * decay).sum()


def _wide(inputs):
    return [x if x.dtype == np.int32 else np.asarray(x, "float64") for x in inputs]


def _likelihood(inputs, attrs):
    kind = inputs[0].dtype
    inputs = _wide(inputs)
    lda, alpha, beta, state = inputs[:4]
    out, after = np.zeros(len(lda)), np.zeros(lda.shape)
    for n, k in np.ndindex(*lda.shape):
        times, end = _events(inputs, n, k), inputs[7][n]
        rates = [lda[n, k] + alpha[k] * beta[k] * _memory(times, t, beta[k], state[n, k])[0] for t in times]
        after[n, k] = np.exp(-beta[k] * (end - times)).sum() + state[n, k] * np.exp(-beta[k] * end)
        out[n] += np.log(rates).sum() - lda[n, k] * end - alpha[k] * (state[n, k] + len(times) - after[n, k])
    return [out.astype(kind), after.astype(kind)]


def _gradients(inputs, attrs):
    kind = inputs[0].dtype
    grad, *inputs = _wide(inputs)
    lda, alpha, beta, state = inputs[:4]
    found = np.zeros((3, *lda.shape))
    for n, k in np.ndindex(*lda.shape):
        times, end = _events(inputs, n, k), inputs[7][n]
        since, counts = np.append(end - times, end), np.append(np.ones(len(times)), state[n, k])
        decay = counts * np.exp(-beta[k] * since)
        d = np.array([-end, -(counts - decay).sum(), -alpha[k] * (since * decay).sum()])
        for t in times:
            memory, change = _memory(times, t, beta[k], state[n, k])
            rate = lda[n, k] + alpha[k] * beta[k] * memory
            d += np.array([1.0, beta[k] * memory, alpha[k] * (memory + beta[k] * change)]) / rate
        found[:, n, k] = grad[n] * d
    return [x.astype(kind) for x in found]


REFERENCES = {"_contrib_hawkesll": _likelihood, "_contrib_backward_hawkesll": _gradients}
