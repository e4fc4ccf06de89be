"""Sparse arrays: creation, display, conversion, writes, copies, pickles and exchange with SciPy."""

from __future__ import annotations

import copy
import pickle

import hybridnet as mx
import numpy as np
import pytest
import scipy.sparse

DTYPES = ["float32", "float64", "float16", "int8", "uint8", "int32", "int64"]
STYPES = ["csr", "row_sparse"]


def drawn(rng, shape=(7, 5), density=0.3, dtype="float32"):
    values = rng.integers(1, 9, shape) * (rng.random(shape) < density)
    values[2] = 0  # a row that is not stored
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stype", STYPES)
def test_values_survive_the_change_of_storage(stype, dtype, rng):
    values = drawn(rng, dtype=dtype)
    array = mx.nd.array(values, dtype=dtype).tostype(stype)
    assert isinstance(array, mx.nd.NDArray) and array.stype == stype
    assert array.shape == values.shape and array.dtype == values.dtype
    np.testing.assert_array_equal(array.asnumpy(), values)
    back = array.tostype("default")
    assert type(back) is mx.nd.NDArray
    np.testing.assert_array_equal(back.asnumpy(), values)


def test_csr_parts_are_those_of_scipy(rng):
    values = drawn(rng)
    ours, theirs = mx.nd.array(values).tostype("csr"), scipy.sparse.csr_matrix(values)
    np.testing.assert_array_equal(ours.data.asnumpy(), theirs.data)
    np.testing.assert_array_equal(ours.indices.asnumpy(), theirs.indices)
    np.testing.assert_array_equal(ours.indptr.asnumpy(), theirs.indptr)
    assert ours.indices.dtype == ours.indptr.dtype == np.int64
    assert (ours.asscipy() != theirs).nnz == 0
    again = mx.nd.sparse.csr_matrix(theirs)
    np.testing.assert_array_equal(again.asnumpy(), values)
    np.testing.assert_array_equal(mx.nd.array(theirs).asnumpy(), values)


def test_matrices_of_scipy_are_put_in_order():
    loose = scipy.sparse.csr_matrix(([1.0, 2.0, 4.0], [2, 0, 2], [0, 3]), shape=(1, 3))
    ours = mx.nd.sparse.csr_matrix(loose)
    ours.check_format()
    assert ours.indices.asnumpy().tolist() == [0, 2] and ours.data.asnumpy().tolist() == [2, 5]
    assert loose.nnz == 3  # SciPy's matrix is unchanged


def test_row_sparse_parts_are_the_rows_that_are_not_zeros(rng):
    values = drawn(rng, (7, 2, 3), density=0.1)
    array = mx.nd.array(values).tostype("row_sparse")
    rows = np.flatnonzero(values.reshape(7, -1).any(axis=1))
    np.testing.assert_array_equal(array.indices.asnumpy(), rows)
    np.testing.assert_array_equal(array.data.asnumpy(), values[rows])


@pytest.mark.parametrize("stype", STYPES)
def test_nothing_is_stored_of_zeros(stype):
    for array in (
        mx.nd.zeros((3, 4), stype=stype),
        mx.nd.sparse.zeros(stype, (3, 4)),
        mx.nd.sparse.empty(stype, (3, 4)),
        mx.nd.zeros((3, 4)).tostype(stype),
    ):
        assert array.stype == stype and array.data.size == 0 and array.indices.size == 0
        assert (array.asnumpy() == np.zeros((3, 4))).all()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("stype", STYPES)
def test_sizes_of_zero_are_sizes(stype, shape):
    with mx.util.np_shape(True):
        array = mx.nd.sparse.zeros(stype, shape)
        assert array.asnumpy().shape == shape
        assert mx.nd.array(np.zeros(shape)).tostype(stype).shape == shape


def test_csr_is_made_of_parts_coordinates_and_shapes():
    expected = [[0, 7, 0], [0, 0, 0], [8, 0, 9]]
    parts = mx.nd.sparse.csr_matrix(([7, 8, 9], [1, 0, 2], [0, 1, 1, 3]), shape=(3, 3))
    assert parts.dtype == np.float32
    np.testing.assert_array_equal(parts.asnumpy(), expected)
    places = mx.nd.sparse.csr_matrix((np.array([9.0, 7, 5, 3]), ([2, 0, 2, 2], [2, 1, 0, 0])))
    assert places.dtype == np.float64
    np.testing.assert_array_equal(places.asnumpy(), expected)
    assert places.indices.asnumpy().tolist() == [1, 0, 2]
    assert mx.nd.sparse.csr_matrix((2, 5)).shape == (2, 5)
    np.testing.assert_array_equal(mx.nd.sparse.csr_matrix(expected, dtype="int32").asnumpy(), expected)
    assert mx.nd.sparse.csr_matrix(parts, dtype="float64").dtype == np.float64


def test_row_sparse_is_made_of_rows_in_any_order():
    array = mx.nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [3, 1]), shape=(5, 2))
    np.testing.assert_array_equal(array.asnumpy(), [[0, 0], [3, 4], [0, 0], [1, 2], [0, 0]])
    assert mx.nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [3, 1])).shape == (4, 2)
    assert mx.nd.sparse.row_sparse_array((3, 2)).shape == (3, 2)
    assert mx.nd.sparse.row_sparse_array(np.eye(3)).dtype == np.float64


def test_rows_that_come_twice_are_summed():
    array = mx.nd.sparse.row_sparse_array(([[1.0], [2.0], [4.0]], [1, 0, 1]), shape=(2, 1))
    assert array.asnumpy().tolist() == [[2.0], [5.0]]


def test_a_shape_that_no_index_determines_must_be_given():
    with pytest.raises(ValueError, match="columns"):
        mx.nd.sparse.csr_matrix(([], [], [0, 0]))
    assert mx.nd.sparse.csr_matrix(([], [], [0, 0]), shape=(1, 4)).shape == (1, 4)


@pytest.mark.parametrize("stype", STYPES)
def test_parts_of_wrong_sizes_are_refused(stype):
    with pytest.raises(mx.errors.ShapeError, match="data"):
        if stype == "csr":
            mx.nd.sparse.csr_matrix(([1, 2], [0], [0, 1]), shape=(1, 2))
        else:
            mx.nd.sparse.row_sparse_array(([[1, 2]], [0, 1]), shape=(3, 2))


BROKEN = {
    "a column beyond the matrix": ([1.0], [5], [0, 1, 1]),
    "a negative column": ([1.0], [-1], [0, 1, 1]),
    "row starts that fall": ([1.0], [0], [0, 2, 1]),
    "row starts that do not begin at 0": ([1.0], [0], [1, 1, 1]),
    "columns in falling order": ([1.0, 2.0], [1, 0], [0, 2, 2]),
}


@pytest.mark.parametrize("parts", BROKEN.values(), ids=BROKEN)
def test_check_format_finds_broken_csr(parts):
    array = mx.nd.sparse.csr_matrix(parts, shape=(2, 3))
    with pytest.raises(mx.MXNetError, match="csr array"):
        array.check_format()


def test_broken_indices_are_errors_of_the_operator_that_reads_them():
    with pytest.raises(mx.errors.FormatError, match=r"indices of a csr array.*0 to 2"):
        mx.nd.sparse.csr_matrix(([1.0], [5], [0, 1, 1]), shape=(2, 3)).asnumpy()
    with pytest.raises(mx.errors.FormatError, match="row_sparse"):
        mx.nd.sparse.row_sparse_array(([[1.0]], [4]), shape=(2, 1)).tostype("default")
    with pytest.raises(mx.MXNetError, match="ascending"):
        mx.nd.sparse.row_sparse_array(([[1.0], [2.0]], [1, 0]), shape=(2, 1)).check_format()


def test_csr_is_for_matrices():
    with pytest.raises(mx.MXNetError, match="matrix"):
        mx.nd.ones((2,)).tostype("csr")
    with pytest.raises(mx.MXNetError, match="matrix"):
        mx.nd.sparse.zeros("csr", (2, 3, 4))
    with pytest.raises(ValueError, match="row_sparse"):
        mx.nd.ones((2, 2)).tostype("coo")


@pytest.mark.parametrize("stype", STYPES)
def test_printing_names_class_and_shape(stype):
    name = {"csr": "CSRNDArray", "row_sparse": "RowSparseNDArray"}[stype]
    assert repr(mx.nd.zeros((2, 3), stype=stype)) == f"\n<{name} 2x3 @cpu(0)>"


@pytest.mark.parametrize("stype", STYPES)
def test_copies_are_independent(stype, rng):
    values = drawn(rng)
    array = mx.nd.array(values).tostype(stype)
    for copied in (array.copy(), copy.copy(array), copy.deepcopy(array), mx.nd.array(array), mx.nd.sparse.array(array)):
        assert type(copied) is type(array)
        array[:] = 0
        np.testing.assert_array_equal(copied.asnumpy(), values)
        array[:] = copied


@pytest.mark.parametrize("stype", STYPES)
def test_pickles_keep_storage(stype, rng):
    values = drawn(rng, dtype="float64")
    again = pickle.loads(pickle.dumps(mx.nd.array(values, dtype="float64").tostype(stype)))
    assert again.stype == stype and again.dtype == np.float64
    np.testing.assert_array_equal(again.asnumpy(), values)


@pytest.mark.parametrize("target", ["default", *STYPES])
@pytest.mark.parametrize("source", ["default", *STYPES])
def test_copyto_and_assignment_go_between_all_storages(source, target, rng):
    values = drawn(rng)
    from_array, to_array = mx.nd.array(values).tostype(source), mx.nd.ones((7, 5)).tostype(target)
    assert from_array.copyto(to_array) is to_array
    assert to_array.stype == target
    np.testing.assert_array_equal(to_array.asnumpy(), values)
    other = mx.nd.ones((7, 5), dtype="float64").tostype(target)
    other[:] = from_array
    assert other.stype == target and other.dtype == np.float64
    np.testing.assert_array_equal(other.asnumpy(), values)


@pytest.mark.parametrize("stype", STYPES)
def test_whole_arrays_are_assigned(stype):
    array = mx.nd.zeros((2, 2), stype=stype)
    array[:] = np.array([[0, 3], [0, 0]])
    assert array.asnumpy().tolist() == [[0, 3], [0, 0]]
    array[:] = 2
    assert array.asnumpy().tolist() == [[2, 2], [2, 2]]
    array[:] = 0
    assert array.data.size == 0
    with pytest.raises(mx.errors.ValueError, match="whole"):
        array[0] = 1
    with pytest.raises(mx.errors.ShapeError):
        array[:] = mx.nd.zeros((3, 2))


@pytest.mark.parametrize("stype", STYPES)
def test_astype_keeps_storage(stype, rng):
    values = drawn(rng)
    array = mx.nd.array(values).tostype(stype).astype("int32")
    assert array.stype == stype and array.dtype == np.int32
    np.testing.assert_array_equal(array.asnumpy(), values)


def test_rows_of_csr_are_sliced(rng):
    values = drawn(rng)
    array = mx.nd.array(values).tostype("csr")
    for key in (slice(1, 4), slice(-3, -1), slice(5, 2), slice(0, 0), slice(None, 100)):
        part = array[key]
        assert part.stype == "csr"
        np.testing.assert_array_equal(part.asnumpy(), values[key])
    np.testing.assert_array_equal(array[-1].asnumpy(), values[-1:])
    assert array[:] is array
    with pytest.raises(IndexError):
        array[7]
    with pytest.raises(ValueError, match="step"):
        array[::2]


def test_row_sparse_has_no_slices():
    array = mx.nd.zeros((2, 2), stype="row_sparse")
    assert array[:] is array
    with pytest.raises(ValueError, match="retain"):
        array[0]


def test_retain_stores_the_rows_that_were_asked_for(rng):
    values = drawn(rng)
    array = mx.nd.array(values).tostype("row_sparse")
    kept = array.retain(mx.nd.array([5, 2, 2]))
    assert kept.indices.asnumpy().tolist() == [2, 5]
    expected = np.zeros_like(values)
    expected[[2, 5]] = values[[2, 5]]
    np.testing.assert_array_equal(kept.asnumpy(), expected)
    np.testing.assert_array_equal(mx.nd.sparse.retain(array, mx.nd.array([5, 2])).asnumpy(), expected)
    with pytest.raises(IndexError):
        array.retain(mx.nd.array([7]))


def test_views_of_sparse_arrays_are_refused_with_a_way_out():
    with pytest.raises(mx.errors.UnsupportedError, match="tostype"):
        mx.nd.zeros((2, 3), stype="csr").reshape((3, 2))


@pytest.mark.parametrize("stype", STYPES)
def test_arrays_of_mx_np_are_dense(stype):
    array = mx.nd.ones((2, 2)).tostype(stype)
    assert array.as_nd_ndarray() is array
    dense = array.as_np_ndarray()
    assert type(dense) is mx.np.ndarray and dense.stype == "default"
    assert dense.sum() == 4


@pytest.mark.parametrize("stype", STYPES)
def test_contexts_are_kept(stype):
    array = mx.nd.ones((2, 2)).tostype(stype).as_in_context(mx.cpu(1))
    assert array.context == mx.cpu(1) and array.stype == stype
    assert mx.nd.sparse.zeros(stype, (2, 2), ctx=mx.cpu(1)).context == mx.cpu(1)


def test_operators_named_as_builtins_do_not_take_their_place():
    operators = mx.nd.sparse.slice, mx.nd.sparse.max
    assert all(callable(operator) for operator in operators)
    x = mx.nd.sparse.csr_matrix([[1.0, 0.0], [0.0, 2.0]])
    np.testing.assert_array_equal(x[0:1].asnumpy(), [[1, 0]])
    assert mx.nd.sparse.csr_matrix(([1.0], ([1], [2]))).shape == (2, 3)
