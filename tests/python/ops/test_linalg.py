"""Factorizations beyond random samples: larger matrices, symmetric inputs, failures."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd
from hybridnet.errors import ShapeError


def positive_definite(rng, *shape):
    a = rng.normal(size=shape)
    return a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1])


def array(x):
    return mx.nd.array(x, dtype="float64")


def gradient_of(function, x, weights):
    """Returns the gradient of sum(weights * function(x)), with one array of weights per output."""
    a = array(x)
    a.attach_grad()
    with autograd.record():
        outputs = function(a)
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        loss = sum(((o * array(w)).sum() for o, w in zip(outputs, weights)), array(np.zeros(1)))
    loss.backward()
    return a.grad.asnumpy()


def symmetric_differences(function, x, weights, step=1e-5):
    """Central differences along symmetric directions: half the change for both (i, j) and (j, i)."""

    def value(y):
        outputs = function(array(y))
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        return sum(float((o.asnumpy() * w).sum()) for o, w in zip(outputs, weights))

    out = np.zeros_like(x)
    n = x.shape[-1]
    for i in range(n):
        for j in range(n):
            d = np.zeros_like(x)
            d[i, j] += step / 2
            d[j, i] += step / 2
            out[i, j] = (value(x + d) - value(x - d)) / (2 * step)
    return out


@pytest.mark.parametrize("n", [1, 5, 8, 9, 64, 65, 150, 500])
def test_potrf_gives_the_cholesky_factor(rng, n):
    a = positive_definite(rng, 2, n, n)
    factor = mx.nd.linalg_potrf(array(a)).asnumpy()
    np.testing.assert_allclose(factor, np.linalg.cholesky(a), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("lower", [True, False])
def test_potrf_gradient_is_that_of_symmetric_matrices(rng, lower):
    a, w = positive_definite(rng, 4, 4), rng.normal(size=(4, 4))

    def factor(x):
        return mx.nd.linalg_potrf(x, lower=lower)

    np.testing.assert_allclose(gradient_of(factor, a, [w]), symmetric_differences(factor, a, [w]), rtol=1e-6, atol=1e-8)


def test_potrf_reads_one_triangle(rng):
    a = positive_definite(rng, 5, 5)
    upper = mx.nd.linalg_potrf(array(np.triu(a)), lower=False).asnumpy()
    np.testing.assert_allclose(upper.T @ upper, a, rtol=1e-10)
    np.testing.assert_allclose(mx.nd.linalg_potri(array(upper), lower=False).asnumpy(), np.linalg.inv(a), rtol=1e-8)


def test_potrf_names_the_matrix_that_is_not_positive_definite(rng):
    a = positive_definite(rng, 3, 2, 2)
    a[1] = [[1.0, 2.0], [2.0, 1.0]]
    with pytest.raises(ValueError, match="matrix 1 whose leading 2 rows"):
        mx.nd.linalg_potrf(array(a)).asnumpy()


@pytest.mark.parametrize("n", [3, 100])
@pytest.mark.parametrize("rightside", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_trsm_undoes_trmm(rng, n, rightside, transpose, lower):
    a = rng.uniform(-0.3, 0.3, size=(n, n)) / n + np.eye(n)
    b = rng.normal(size=(4, n) if rightside else (n, 4))
    how = {"rightside": rightside, "transpose": transpose, "lower": lower}
    product = mx.nd.linalg_trmm(array(a), array(b), alpha=2.0, **how)
    np.testing.assert_allclose(
        mx.nd.linalg_trsm(array(a), product, alpha=0.5, **how).asnumpy(), b, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("n", [1, 2, 64, 130])
def test_inverse_and_determinants_agree_with_numpy(rng, n):
    a = rng.normal(size=(2, n, n))
    np.testing.assert_allclose(mx.nd.linalg_inverse(array(a)).asnumpy(), np.linalg.inv(a), rtol=1e-6, atol=1e-8)
    sign, log = mx.nd.linalg_slogdet(array(a))
    want_sign, want_log = np.linalg.slogdet(a)
    np.testing.assert_allclose(sign.asnumpy(), want_sign)
    np.testing.assert_allclose(log.asnumpy(), want_log, rtol=1e-9)
    np.testing.assert_allclose(mx.nd.linalg_det(array(a)).asnumpy(), np.linalg.det(a), rtol=1e-9)


def test_singular_matrices_have_determinant_zero_and_no_inverse():
    singular = array([[1.0, 2.0], [2.0, 4.0]])
    assert mx.nd.linalg_det(singular).asnumpy() == 0.0
    sign, log = mx.nd.linalg_slogdet(singular)
    assert sign.asnumpy() == 0.0 and log.asnumpy() == -np.inf
    assert not gradient_of(mx.nd.linalg_det, singular.asnumpy(), [np.ones(1)]).any()
    with pytest.raises(ValueError, match="matrix 0, which is singular"):
        mx.nd.linalg_inverse(singular).asnumpy()


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (2, 40, 70)])
def test_gelqf_gives_orthonormal_rows_times_a_lower_triangle(rng, shape):
    a = rng.normal(size=shape)
    q, low = (x.asnumpy() for x in mx.nd.linalg_gelqf(array(a)))
    np.testing.assert_allclose(low @ q, a, atol=1e-12)
    np.testing.assert_allclose(q @ np.swapaxes(q, -1, -2), np.broadcast_to(np.eye(shape[-2]), low.shape), atol=1e-12)
    assert not np.triu(low, 1).any()


@pytest.mark.parametrize("n", [1, 2, 5, 60])
def test_syevd_gives_rising_eigenvalues_and_their_vectors(rng, n):
    a = rng.normal(size=(2, n, n))
    a = a + np.swapaxes(a, -1, -2)
    u, values = (x.asnumpy() for x in mx.nd.linalg.syevd(array(a)))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a), atol=1e-10 * n)
    np.testing.assert_allclose(u @ a, values[..., None] * u, atol=1e-10 * n)
    assert (np.take_along_axis(u, np.abs(u).argmax(-1)[..., None], -1) > 0).all()
    np.testing.assert_allclose(u @ np.swapaxes(u, -1, -2), np.broadcast_to(np.eye(n), a.shape), atol=1e-11 * n)


def test_syevd_takes_matrices_that_fall_apart():
    a = np.diag([3.0, 1.0, 2.0, 1.0])
    u, values = (x.asnumpy() for x in mx.nd.linalg.syevd(array(a)))
    np.testing.assert_allclose(values, [1.0, 1.0, 2.0, 3.0])
    np.testing.assert_allclose(u.T @ np.diag(values) @ u, a, atol=1e-14)


def test_syevd_gradient_is_that_of_symmetric_matrices(rng):
    a = positive_definite(rng, 4, 4)
    weights = [rng.normal(size=(4, 4)), rng.normal(size=4)]
    got = gradient_of(mx.nd.linalg.syevd, a, weights)
    want = symmetric_differences(mx.nd.linalg.syevd, a, weights)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)


def test_syevd_refuses_matrices_that_are_not_finite():
    with pytest.raises(ValueError, match="finite"):
        mx.nd.linalg.syevd(array([[np.nan, 1.0], [1.0, 2.0]]))[0].asnumpy()


@pytest.mark.parametrize("n", [2, 8, 9, 33, 400])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_matrices_that_are_not_finite_give_an_error_or_show_in_the_result(rng, n, dtype, value):
    a = positive_definite(rng, n, n)
    a[n // 2, n // 2] = value
    a = mx.nd.array(a, dtype=dtype)
    for refuses in (mx.nd.linalg_potrf, mx.nd.linalg.syevd, lambda x: mx.np.linalg.svd(x.as_np_ndarray())):
        with pytest.raises(ValueError, match=r"expected .*(matrices|finite)"):
            refuses(a)
            mx.nd.waitall()
    if np.isnan(value):
        low = mx.nd.linalg_gelqf(a)[1]
        for result in (mx.nd.linalg_potri(a), mx.nd.linalg_trsm(a, a), mx.nd.linalg_inverse(a), low):
            assert np.isnan(result.asnumpy()).any()


def test_factorizations_refuse_matrices_that_are_not_square(rng):
    with pytest.raises(ShapeError, match="square"):
        mx.nd.linalg_potrf(array(rng.normal(size=(2, 3))))
    with pytest.raises(ShapeError, match="as many rows as columns"):
        mx.nd.linalg_gelqf(array(rng.normal(size=(3, 2))))


def test_maketrian_refuses_a_length_that_no_triangle_has():
    with pytest.raises(ShapeError, match="1, 3, 6, 10"):
        mx.nd.linalg_maketrian(array(np.zeros(4)))


@pytest.mark.parametrize("name", ["potrf", "potri", "inverse", "det", "sumlogdiag", "syevd"])
def test_stacks_may_be_empty(name):
    outputs = getattr(mx.nd.linalg, name)(array(np.zeros((0, 3, 3))))
    for out in outputs if isinstance(outputs, (list, tuple)) else [outputs]:
        assert out.asnumpy().shape[0] == 0
