"""NumPy references of Fourier transforms and count sketches."""

from __future__ import annotations

import numpy as np


def _pairs(values):
    return np.stack([values.real, values.imag], axis=-1).reshape((*values.shape[:-1], -1))


def fft(x, attrs):
    return [_pairs(np.fft.fft(x))]


def ifft(x, attrs):
    pairs = x.reshape((*x.shape[:-1], -1, 2))
    return [(np.fft.ifft(pairs[..., 0] + 1j * pairs[..., 1]) * pairs.shape[-2]).real]


def count_sketch(x, h, s, attrs):
    out = np.zeros((*x.shape[:-1], int(attrs["out_dim"])), x.dtype)
    for i, (place, sign) in enumerate(zip(h.reshape(-1).astype("int64"), s.reshape(-1), strict=True)):
        out[..., place] += sign * x[..., i]
    return [out]


REFERENCES = {
    "_contrib_fft": lambda inputs, attrs: fft(inputs[0], attrs),
    "_contrib_ifft": lambda inputs, attrs: ifft(inputs[0], attrs),
    "_contrib_count_sketch": lambda inputs, attrs: count_sketch(*inputs, attrs),
}
