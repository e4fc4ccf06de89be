"""take in the memory of its data, and topk of long rows: the results of NumPy for every way through the kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.gluon import HybridBlock


class _Taken(HybridBlock):
    """The data of take has no other reader, so that the plan lets take write over it."""

    def __init__(self, axis):
        super().__init__()
        self.axis = axis

    def hybrid_forward(self, F, data, order):
        return F.take(data * 2, order, axis=self.axis)


ORDERS = {
    "same": lambda rng, n: np.arange(n),
    "permuted": lambda rng, n: rng.permutation(n),
    "repeated": lambda rng, n: rng.integers(0, n, n),
    "one moved": lambda rng, n: np.where(np.arange(n) == n - 1, 0, np.arange(n)),
}
# Rows of many columns, short rows, elements, several planes, rows that no buffer holds, nothing.
SHAPES = [((4, 9000), 0), ((5, 7, 3), 1), ((20000,), 0), ((3, 6, 700), 1), ((2, 40000), 0), ((6, 5, 2), 2), ((4, 0), 0)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_rows_are_taken_in_the_memory_of_the_data(shape, axis, order, rng):
    indices = mx.nd.array(ORDERS[order](rng, shape[axis]), dtype="int64")
    net = _Taken(axis)
    net.hybridize(static_alloc=True)
    for dtype in ("float32", "uint8", "float16", "float64"):
        values = (rng.random(shape) * 50).astype(dtype)
        expected = np.take(values, indices.asnumpy(), axis)
        np.testing.assert_array_equal(net(mx.nd.array(values, dtype=dtype), indices).asnumpy(), expected * 2)
        data = mx.nd.array(values, dtype=dtype)
        mx.nd.take(data, indices, axis=axis, out=data)
        np.testing.assert_array_equal(data.asnumpy(), expected)


def test_indices_that_are_the_data_are_read_before_they_are_overwritten(rng):
    values = rng.permutation(3000)

    class Twice(HybridBlock):
        def hybrid_forward(self, F, data):
            order = data * 1
            return F.take(order, order)

    net = Twice()
    net.hybridize(static_alloc=True)
    np.testing.assert_array_equal(net(mx.nd.array(values, dtype="int64")).asnumpy(), values[values])


def test_caches_of_beams_stay_in_their_memory(rng):
    def place(array):
        return np.from_dlpack(array).ctypes.data

    class Reordered(HybridBlock):
        def forward(self, row, at, order, *caches):
            written = (mx.nd.contrib.index_copy(cache, at, row, axis=1) for cache in caches)
            return [mx.nd.take(cache, order, axis=0) for cache in written]

    net = Reordered()
    net.hybridize(static_alloc=True, donate=["caches"])
    values = rng.random((2, 4, 9, 5)).astype("float32")
    caches = [mx.nd.array(value) for value in values]
    before = sorted(place(cache) for cache in caches)
    for step, order in enumerate([[0, 0, 1, 3], [0, 1, 2, 3], [3, 2, 1, 0]]):
        row = rng.random((4, 1, 5)).astype("float32")
        values[:, :, step] = row[:, 0]
        values = values[:, order]
        caches = net(mx.nd.array(row), mx.nd.array([step], dtype="int64"), mx.nd.array(order), *caches)
        np.testing.assert_array_equal([cache.asnumpy() for cache in caches], values)
    assert sorted(place(cache) for cache in caches) == before


# Rows of several parts that the cores share; the shortest rows of the one-pass kernel; longer results.
LENGTHS = [(70000, 4), (8192 * 3 + 5, 30), (40000, 2500), (992, 62), (992, 63), (16, 1), (15, 1)]


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize(("length", "k"), LENGTHS)
def test_the_first_elements_of_long_rows_are_those_of_a_stable_sort(length, k, ascending, rng):
    for dtype in ("float32", "float64", "float16", "int32", "int64", "uint8"):
        values = (rng.normal(size=(2, length)) * 20).astype(dtype)  # the short types have many equal elements
        if np.issubdtype(dtype, np.floating):
            values[0, length // 2], values[1, 3], values[1, 4] = np.nan, -0.0, 0.0
        keys = np.where(np.isnan(values), np.inf, values.astype("float64"))
        expected = np.argsort(keys if ascending else -keys, axis=1, kind="stable")[:, :k]
        for rows in (1, 2):
            data = mx.nd.array(values[:rows], dtype=dtype)
            found = mx.nd.topk(data, k=k, ret_typ="indices", is_ascend=ascending, dtype="int64").asnumpy()
            np.testing.assert_array_equal(found, expected[:rows])


@pytest.mark.parametrize("isa", ["sse4", "avx2"])
def test_smaller_instruction_sets_give_the_same(isa):
    if "HYBRIDNET_MAX_ISA" in os.environ:
        pytest.skip("this run has a cap of its own")
    env = {**os.environ, "HYBRIDNET_MAX_ISA": isa}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", "stable_sort", __file__]
    done = subprocess.run(command, env=env, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
