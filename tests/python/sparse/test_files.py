"""Sparse records of .params files: files of MXNet load, and saved files have the same layout."""

from __future__ import annotations

import struct

import hybridnet as mx
import numpy as np
import pytest


def test_arrays_of_all_storages_come_back(tmp_path):
    values = np.array([[0, 2, 0], [0, 0, 0], [1, 0, 3]], "float64")
    saved = {stype: mx.nd.array(values, dtype="float64").tostype(stype) for stype in ("default", "csr", "row_sparse")}
    saved["empty"] = mx.nd.zeros((4, 2), stype="row_sparse")
    mx.nd.save(tmp_path / "a.params", saved)
    loaded = mx.nd.load(tmp_path / "a.params")
    for name, array in saved.items():
        assert loaded[name].stype == array.stype and loaded[name].dtype == array.dtype
        np.testing.assert_array_equal(loaded[name].asnumpy(), array.asnumpy())


def test_a_csr_record_has_the_bytes_of_mxnet(tmp_path):
    matrix = mx.nd.sparse.csr_matrix(([1, 2, 3], [1, 0, 2], [0, 1, 1, 3]), shape=(3, 4))
    mx.nd.save(tmp_path / "a.params", [matrix])
    record = struct.pack("<Ii iq iqq ii i iiq iiq", 0xF993FAC9, 2, 1, 3, 2, 3, 4, 1, 0, 0, 6, 1, 4, 6, 1, 3)
    record += np.array([1, 2, 3], "<f4").tobytes() + np.array([0, 1, 1, 3, 1, 0, 2], "<i8").tobytes()
    file = struct.pack("<QQQ", 0x112, 0, 1) + record + struct.pack("<Q", 0)
    assert (tmp_path / "a.params").read_bytes() == file
    np.testing.assert_array_equal(mx.nd.load_frombuffer(file)[0].asnumpy(), matrix.asnumpy())


def test_large_arrays_cost_only_their_stored_values(tmp_path):
    rows = mx.nd.sparse.row_sparse_array((np.ones((2, 64), "float32"), [5, 999_999_999]), shape=(10**9, 64))
    mx.nd.save(tmp_path / "a.params", [rows])
    assert (tmp_path / "a.params").stat().st_size < 2000
    assert mx.nd.load(tmp_path / "a.params")[0].indices.asnumpy().tolist() == [5, 999_999_999]


def test_indices_out_of_bounds_are_found_when_a_file_is_read(tmp_path):
    mx.nd.save(tmp_path / "a.params", [mx.nd.sparse.row_sparse_array(([[1.0]], [1]), shape=(2, 1))])
    damaged = (
        (tmp_path / "a.params")
        .read_bytes()
        .replace(struct.pack("<q", 1) + struct.pack("<Q", 0), struct.pack("<qQ", 7, 0))
    )
    with pytest.raises(mx.errors.FormatError, match="out of bounds"):
        mx.nd.load_frombuffer(damaged)
