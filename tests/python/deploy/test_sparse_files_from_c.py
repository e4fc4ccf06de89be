"""Sparse arrays of files are dense in C: with the values that they have in Python, and never without bound."""

from __future__ import annotations

import ctypes

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import libinfo

LIBRARY = ctypes.CDLL(libinfo.find_lib_path()[0])
LIBRARY.hn_last_error.restype = LIBRARY.hn_last_error_kind.restype = ctypes.c_char_p


def load(path) -> tuple[int, ctypes.Array]:
    count, arrays, names = ctypes.c_size_t(), ctypes.POINTER(ctypes.c_void_p)(), ctypes.POINTER(ctypes.c_char_p)()
    status = LIBRARY.hn_arrays_load(str(path).encode(), ctypes.byref(count), ctypes.byref(arrays), ctypes.byref(names))
    return status, (count, arrays, names)


def rows(shape):
    return mx.nd.sparse.row_sparse_array((np.ones((1, *shape[1:]), "float32"), [1]), shape=shape)


@pytest.mark.parametrize("shape", [(4, 3), (3_000_000, 5)])  # below and above what is never refused, both small enough
def test_values_are_those_of_python(tmp_path, shape):
    held = mx.nd.sparse.row_sparse_array(
        (np.ones((max(1, shape[0] // 500), *shape[1:]), "float32"), np.arange(max(1, shape[0] // 500))), shape=shape
    )
    mx.nd.save(str(tmp_path / "a.params"), [held])
    status, (count, arrays, names) = load(tmp_path / "a.params")
    assert status == 0, LIBRARY.hn_last_error().decode()
    found = np.zeros(shape, "float32")
    address = found.ctypes.data_as(ctypes.c_void_p)
    assert LIBRARY.hn_array_copy_to(ctypes.c_void_p(arrays[0]), address, ctypes.c_size_t(found.nbytes)) == 0
    np.testing.assert_array_equal(found, held.asnumpy())
    assert LIBRARY.hn_arrays_free(count, arrays, names) == 0


def test_a_small_file_that_would_fill_the_memory_is_refused(tmp_path):
    mx.nd.save(str(tmp_path / "a.params"), [rows((1_000_000_000, 3))])
    assert (tmp_path / "a.params").stat().st_size < 1000
    status, _ = load(tmp_path / "a.params")
    assert status == -1
    assert LIBRARY.hn_last_error_kind() == b"FormatError"
    text = LIBRARY.hn_last_error().decode()
    assert "(1000000000, 3) would take 11444 MB" in text
    assert "keeps it sparse" in text
