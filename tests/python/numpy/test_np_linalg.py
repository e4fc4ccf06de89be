"""mx.np.linalg and einsum beyond the tables: large and rank-deficient matrices, and errors."""

from __future__ import annotations

import hybridnet as mx
import numpy as onp
import pytest
from hybridnet import np


@pytest.mark.parametrize("shape", [(60, 60), (40, 90), (90, 40)])
def test_factors_of_large_matrices_are_orthonormal_and_give_the_matrix(shape, rng):
    a = rng.normal(size=shape)
    ut, s, v = (part.asnumpy() for part in np.linalg.svd(np.array(a, dtype="float64")))
    onp.testing.assert_allclose((ut * s) @ v, a, atol=1e-11)
    onp.testing.assert_allclose(ut.T @ ut, onp.eye(len(s)), atol=1e-12)
    onp.testing.assert_allclose(v @ v.T, onp.eye(len(s)), atol=1e-12)
    onp.testing.assert_allclose(s, onp.linalg.svd(a, compute_uv=False), rtol=1e-11)


@pytest.mark.parametrize("a", [onp.ones((3, 3)), onp.zeros((2, 3)), onp.outer([1, 2, 3, 4], [1, -1])], ids=str)
def test_rank_deficient_matrices_have_orthonormal_factors_and_pseudo_inverses(a):
    array = np.array(a, dtype="float64")
    ut, s, v = (part.asnumpy() for part in np.linalg.svd(array))
    onp.testing.assert_allclose((ut * s) @ v, a, atol=1e-12)
    onp.testing.assert_allclose(v @ v.T, onp.eye(len(s)), atol=1e-12)
    onp.testing.assert_allclose(ut.T @ ut, onp.eye(len(s)), atol=1e-12)
    onp.testing.assert_allclose(np.linalg.pinv(array, 1e-12).asnumpy(), onp.linalg.pinv(a), atol=1e-12)
    assert np.linalg.matrix_rank(array).asnumpy() == onp.linalg.matrix_rank(a)


def test_eigenvectors_of_general_matrices_belong_to_their_values(rng):
    basis = rng.normal(size=(2, 30, 30))
    values = onp.sort(rng.normal(size=(2, 30)))
    a = basis * values[:, None] @ onp.linalg.inv(basis)
    w, v = (part.asnumpy() for part in np.linalg.eig(np.array(a, dtype="float64")))
    onp.testing.assert_allclose(onp.sort(w), values, atol=1e-8)
    onp.testing.assert_allclose(a @ v, v * w[:, None], atol=1e-8)
    onp.testing.assert_allclose(onp.linalg.norm(v, axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("rcond", [None, "warn", -1, 0.1])
@pytest.mark.parametrize("a_shape, b_shape", [((5, 3), (5,)), ((5, 3), (5, 2)), ((3, 5), (3,)), ((3, 3), (3, 2))])
def test_least_squares_are_those_of_numpy(a_shape, b_shape, rcond, rng):
    a, b = rng.normal(size=a_shape), rng.normal(size=b_shape)
    got = np.linalg.lstsq(np.array(a, dtype="float64"), np.array(b, dtype="float64"), rcond)
    wanted = onp.linalg.lstsq(a, b, None if rcond == "warn" else rcond)
    for result, want in zip(got, wanted, strict=True):
        assert result.shape == onp.shape(want)
        onp.testing.assert_allclose(result.asnumpy(), want, atol=1e-10)


def test_least_squares_of_a_deficient_matrix_are_the_shortest():
    a, b = onp.outer([1.0, 2.0, 3.0], [1.0, 1.0]), onp.array([1.0, 2.0, 4.0])
    x, residuals, rank, _ = np.linalg.lstsq(np.array(a, dtype="float64"), np.array(b, dtype="float64"), None)
    onp.testing.assert_allclose(x.asnumpy(), onp.linalg.lstsq(a, b, None)[0], atol=1e-12)
    assert residuals.shape == (0,) and int(rank) == 1


def test_errors_name_the_matrix_and_its_fault():
    singular = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]])
    with pytest.raises(mx.errors.ValueError, match="matrix 1, which is singular"):
        np.linalg.inv(singular).asnumpy()
    with pytest.raises(mx.errors.ValueError, match="matrix 1, which is singular"):
        np.linalg.solve(singular, np.ones((2, 2, 1))).asnumpy()
    with pytest.raises(mx.errors.ValueError, match="complex eigenvalues"):
        np.linalg.eigvals(np.array([[0.0, 1.0], [-1.0, 0.0]])).asnumpy()
    with pytest.raises(mx.errors.ValueError, match="finite"):
        np.linalg.svd(np.array([[onp.nan, 1.0]]))[1].asnumpy()
    with pytest.raises(mx.errors.HybridNetError, match="positive definite"):
        np.linalg.cholesky(np.array([[1.0, 2.0], [2.0, 1.0]])).asnumpy()
    for name in ("inv", "det", "slogdet", "eigvals", "cholesky"):
        with pytest.raises(mx.errors.ShapeError, match="square"):
            getattr(np.linalg, name)(np.ones((2, 3)))
    with pytest.raises(mx.errors.ParamError, match="one axis, or two"):
        np.linalg.norm(np.ones((2, 2, 2)), ord=1)
    with pytest.raises(mx.errors.ParamError, match="ord"):
        np.linalg.norm(np.ones((2, 2)), ord=3)


@pytest.mark.parametrize(
    "subscripts, shapes, message",
    [
        ("ij,jk", [(2, 3)], "as many terms as arrays"),
        ("ij", [(2, 3, 4)], "a letter for each axis"),
        ("ij->ik", [(2, 3)], "'k' is new"),
        ("ij->ii", [(2, 3)], "comes twice"),
        ("i1", [(2, 3)], "none of these"),
        ("...i->i", [(2, 3)], "after '->' too"),
        ("ij,jk", [(2, 3), (4, 5)], "3 and 4"),
        ("ii", [(2, 3)], "letter that comes twice"),
    ],
)
def test_einsum_says_which_subscripts_do_not_fit(subscripts, shapes, message):
    with pytest.raises(mx.errors.HybridNetError, match=message):
        np.einsum(subscripts, *(np.ones(shape) for shape in shapes))


def test_einsum_of_bools_does_not_wrap_around():
    assert bool(np.einsum("i,i", np.ones(256, dtype="bool"), np.ones(256, dtype="bool")))
