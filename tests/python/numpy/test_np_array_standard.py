"""Names of the Array API standard in addition to MXNet's: results equal NumPy's, and gradients exist where defined."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as onp
import pytest
from hybridnet import autograd, errors, np
from hybridnet.gluon import HybridBlock

X = onp.array([[1.5, -2.0, 0.25], [3.0, -0.5, 4.0]], "float32")
N = onp.array([[3, -2, 7], [5, 1, -4]], "int32")


def check(actual: Any, expected: Any) -> None:
    onp.testing.assert_allclose(actual.asnumpy(), expected, rtol=1e-6)
    assert actual.shape == onp.shape(expected)


@pytest.mark.parametrize(
    "name, numpy_name",
    [("acos", "arccos"), ("asin", "arcsin"), ("atan", "arctan"), ("asinh", "arcsinh"), ("atanh", "arctanh")],
)
def test_short_names_are_the_long_ones(name, numpy_name):
    x = onp.linspace(-0.9, 0.9, 5, dtype="float32")
    check(getattr(np, name)(np.array(x)), getattr(onp, numpy_name)(x))


def test_asarray_keeps_arrays_and_the_dtypes_of_values():
    x = np.array(X)
    assert np.asarray(x) is x
    assert np.asarray(x, copy=True) is not x
    assert np.asarray(x, dtype="float64").dtype == onp.float64
    assert np.asarray([1, 2]).dtype == onp.int64
    assert np.asarray(1.5).dtype == onp.float32
    assert np.asarray([True]).dtype == onp.bool_
    assert np.asarray(X.astype("float64")).dtype == onp.float64
    check(np.asarray([x[0], x[1]]), X)
    with pytest.raises(errors.ParamError, match="copy"):
        np.asarray([1.0], copy=False)


def test_dlpack_brings_arrays_of_other_packages():
    source = onp.array([1.0, 2.0], "float32")
    shared, copied = np.from_dlpack(source), np.from_dlpack(source, copy=True)
    source[0] = 5
    assert type(shared) is np.ndarray
    check(shared, [5, 2])
    check(copied, [1, 2])


@pytest.mark.parametrize("kind", ["bool", "signed integer", "unsigned integer", "integral", "real floating", "numeric"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "float32"])
def test_kinds_of_dtypes(dtype, kind):
    kinds = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f"}
    expected = onp.dtype(dtype).kind in kinds.get(kind, "iuf")
    assert np.isdtype(onp.dtype(dtype), kind) == expected
    assert np.isdtype(onp.dtype(dtype), (kind, "complex floating")) == expected
    assert np.isdtype(onp.dtype(dtype), onp.dtype(dtype))


def test_an_unknown_kind_is_named():
    with pytest.raises(errors.ParamError, match="'real'"):
        np.isdtype(onp.float32, "real")


def test_casts_that_keep_values():
    assert np.can_cast(np.float32, "float64")
    assert not np.can_cast(np.array(X), "int32")
    assert np.finfo(np.array(X)).bits == 32
    assert np.iinfo(np.array(N, dtype="int32")).max == 2**31 - 1


def test_logaddexp_neither_overflows_nor_loses_infinities():
    a = onp.array([1000.0, -1000.0, onp.inf, -onp.inf, onp.inf, 0.0, onp.nan], "float32")
    b = onp.array([1000.0, 1000.0, onp.inf, -onp.inf, -onp.inf, 1.0, 0.0], "float32")
    with onp.errstate(invalid="ignore"):
        check(np.logaddexp(np.array(a), np.array(b)), onp.logaddexp(a, b))
    check(np.logaddexp(np.array(X), 0.5), onp.logaddexp(X, onp.float32(0.5)))


def test_logaddexp_has_the_gradient_of_softmax():
    a, b = np.array(X), np.array(X[::-1].copy())
    a.attach_grad()
    with autograd.record():
        out = np.logaddexp(a, b)
    out.backward()
    check(a.grad, onp.exp(X - onp.logaddexp(X, X[::-1])))


@pytest.mark.parametrize("shift", [0, 1, 3])
def test_shifts_of_integers(shift):
    n = np.array(N, dtype="int32")
    check(n << shift, N << shift)
    check(n >> shift, N >> shift)
    check(1 << np.array([0, 3], dtype="int32"), [1, 8])
    check(np.bitwise_left_shift(n, shift), N << shift)


def test_arrangements():
    x = np.array(X)
    check(np.concat([x, x]), onp.concatenate([X, X]))
    check(np.concat([x, x], axis=None), onp.concatenate([X, X], axis=None))
    check(np.permute_dims(x, (1, 0)), X.T)
    check(np.matrix_transpose(np.ones((2, 3, 4))), onp.ones((2, 4, 3)))
    check(x.mT, X.T)
    assert [part.tolist() for part in np.unstack(x, axis=1)] == X.T.tolist()
    assert np.unstack(np.zeros((0, 2))) == ()
    assert np.broadcast_shapes((2, 1), (3,)) == (2, 3)
    with pytest.raises(errors.ShapeError, match="two axes"):
        np.matrix_transpose(np.zeros(3))


@pytest.mark.parametrize("include_initial", [False, True])
@pytest.mark.parametrize("name, start", [("sum", 0), ("prod", 1)])
def test_cumulative_results_may_begin_with_the_neutral_element(name, start, include_initial):
    function = getattr(np, f"cumulative_{name}")
    for values in (X, N, X[:0]):
        expected = getattr(onp, f"cum{name}")(values, axis=0)
        if include_initial:
            expected = onp.concatenate([onp.full_like(expected[:1], start, shape=(1, 3)), expected])
        found = function(np.array(values, dtype=values.dtype), axis=0, include_initial=include_initial)
        check(found, expected)
        assert found.dtype == (onp.int64 if values.dtype.kind == "i" else onp.float32)
    with pytest.raises(errors.ParamError, match="axis"):
        function(np.array(X))


def test_vecdot_keeps_the_dtype():
    found = np.vecdot(np.array(N, dtype="int32"), np.array(N, dtype="int32"))
    check(found, (N * N).sum(-1))
    assert found.dtype == onp.int32
    check(np.vecdot(np.array(X), np.array(X[:1]), axis=-1), (X * X[:1]).sum(-1))
    with pytest.raises(errors.ShapeError, match="one size"):
        np.vecdot(np.ones(3), np.ones(4))
    with pytest.raises(errors.ShapeError, match="axis"):
        np.vecdot(np.ones(3), np.ones(3), axis=0)


def test_sets_tell_nans_apart():
    values = onp.array([[2.0, onp.nan], [1.0, onp.nan], [2.0, 1.0]], "float32")
    found = np.unique_all(np.array(values))
    assert found.values.shape == (4,)
    assert found.counts.tolist() == [2, 2, 1, 1]
    assert found.inverse_indices.shape == values.shape
    onp.testing.assert_array_equal(found.values.asnumpy()[found.inverse_indices.asnumpy()], values)
    onp.testing.assert_array_equal(values.reshape(-1)[found.indices.asnumpy()], found.values.asnumpy())
    whole = np.array(N, dtype="int32")
    assert np.unique_values(whole).tolist() == onp.unique(N).tolist()
    assert np.unique_counts(whole).counts.tolist() == [1] * 6
    assert (
        np.unique_inverse(whole).inverse_indices.tolist()
        == onp.unique(N, return_inverse=True)[1].reshape(2, 3).tolist()
    )


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (2, 0)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("ord", [1, 2, 3, onp.inf])
def test_vector_norms_take_axes_as_one_vector(axis, keepdims, ord):
    x = onp.arange(24, dtype="float32").reshape(2, 3, 4) - 7
    axes = (0, 1, 2) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    magnitudes = onp.abs(x.astype("float64"))
    if ord == onp.inf:
        expected = magnitudes.max(axis=axes, keepdims=keepdims)
    else:
        expected = (magnitudes**ord).sum(axis=axes, keepdims=keepdims) ** (1 / ord)
    check(np.linalg.vector_norm(np.array(x), axis=axis, keepdims=keepdims, ord=ord), expected)


def test_linear_algebra_of_stacks():
    x = onp.arange(24, dtype="float32").reshape(2, 3, 4) - 7
    stack = np.array(x)
    check(np.linalg.diagonal(stack, offset=1), onp.diagonal(x, 1, -2, -1))
    check(np.linalg.trace(stack), onp.trace(x, 0, -2, -1))
    check(np.linalg.matrix_norm(stack, keepdims=True), onp.linalg.norm(x, "fro", (-2, -1), keepdims=True))
    onp.testing.assert_allclose(
        np.linalg.svdvals(stack).asnumpy(), onp.linalg.svd(x.astype("float64"), compute_uv=False), rtol=1e-4, atol=1e-4
    )
    check(np.linalg.cross(np.array([1.0, 2, 3]), np.array([4.0, 5, 6])), onp.cross([1, 2, 3], [4, 5, 6]))


def test_results_of_decompositions_have_names():
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    assert np.linalg.eigh(matrix)._fields == ("eigenvalues", "eigenvectors")
    assert np.linalg.eig(matrix)._fields == ("eigenvalues", "eigenvectors")
    assert np.linalg.svd(matrix)._fields == ("U", "S", "Vh")
    assert np.linalg.slogdet(matrix)._fields == ("sign", "logabsdet")
    found = np.linalg.qr(matrix)
    check(np.matmul(found.Q, found.R), matrix.asnumpy())
    check(np.linalg.pinv(matrix, rtol=1e-6), onp.linalg.inv(matrix.asnumpy()))


def test_an_array_knows_its_namespace_and_device():
    x = np.array(X)
    assert x.__array_namespace__() is np
    assert x.device == mx.cpu()
    assert x.to_device(mx.cpu()) is x
    info = np.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] == onp.float32
    assert set(info.dtypes(kind="integral")) == {"int8", "int32", "int64", "uint8"}
    assert set(info.dtypes()) >= {"bool", "float64"}
    assert info.default_device() in info.devices()
    for dtype in info.dtypes().values():
        assert np.zeros((), dtype=dtype).dtype == onp.dtype(dtype)


@pytest.mark.parametrize("key", [True, False, onp.True_, onp.array(False)])
def test_a_scalar_is_chosen_by_a_bool_as_in_numpy(key):
    value = onp.asarray(3.5, "float32")
    check(np.array(value)[key], value[key])
    chosen = key if isinstance(key, bool) else np.array(bool(key))
    check(np.array(value)[chosen], value[key])


def test_logical_functions_take_bools_beside_arrays():
    flags = onp.array([True, False])
    for name in ("logical_and", "logical_or", "logical_xor"):
        for other in (True, False, onp.True_, 2.5):
            check(getattr(np, name)(np.array(flags), other), getattr(onp, name)(flags, other))
            check(getattr(np, name)(other, np.array(flags)), getattr(onp, name)(other, flags))


def test_repeats_may_be_an_array():
    check(np.repeat(np.array(X), np.array([2, 0, 1]), axis=1), onp.repeat(X, [2, 0, 1], axis=1))
    with pytest.raises(errors.ValueError, match=r"expected integers, got 1\.5"):
        np.repeat(np.array(X), 1.5)


def test_clip_without_bounds_copies():
    x = np.array(X)
    found = np.clip(x)
    check(found, X)
    assert not np.shares_memory(found, x)


def test_memory_is_shared_where_elements_are():
    x = np.zeros((4, 3))
    assert np.shares_memory(x, x[1:3])
    assert np.may_share_memory(x[1], x.reshape((2, 6))[0])
    assert not np.shares_memory(x[:2], x[2:])
    assert not np.shares_memory(x, x.copy())
    assert not np.shares_memory(x, onp.zeros(3))
    assert not np.shares_memory(x[:0], x)
    csr = mx.nd.sparse.csr_matrix(X)
    assert np.shares_memory(csr, csr)
    assert not np.shares_memory(csr, csr.copy())


def test_the_names_work_in_hybridized_blocks():
    class Net(HybridBlock):
        def forward(self, x):
            return np.concat([np.logaddexp(x, 0.5), np.matrix_transpose(np.permute_dims(x, (1, 0)))], axis=0)

    net = Net()
    x = np.array(X)
    expected = net(x).asnumpy()
    net.hybridize()
    check(net(x), expected)
    check(net(x), onp.concatenate([onp.logaddexp(X, onp.float32(0.5)), X]))


def test_creation_functions_take_a_device():
    a = np.ones((2, 3), device="cpu")
    for made in (
        np.zeros((2, 3), device=a.device), np.empty((2, 3), device="cpu"), np.full((2, 3), 4.0, device="cpu(0)"),
        np.zeros_like(a, device="cpu"), np.ones_like(a, device="cpu"), np.full_like(a, 3, device=a.device),
        np.empty_like(a, device="cpu"), np.eye(2, 3, device="cpu"), np.asarray(onp.ones((2, 3)), device="cpu"),
        np.arange(6, device="cpu").reshape(2, 3), np.linspace(0, 1, 6, device="cpu").reshape(2, 3),
    ):  # fmt: skip
        assert made.shape == (2, 3) and made.device == a.device


@pytest.mark.parametrize("correction", [0, 1, 0.5, 1.25])
@pytest.mark.parametrize("name", ["std", "var"])
def test_spreads_take_a_correction(name, correction, rng):
    values = rng.normal(size=(3, 4)).astype("float32")
    for axis, keepdims in ((None, False), (0, True), ((0, 1), False)):
        count = values.size if axis in (None, (0, 1)) else 3
        plain = onp.var(values.astype("float64"), axis=axis, keepdims=keepdims) * count / (count - correction)
        got = getattr(np, name)(np.array(values), axis=axis, keepdims=keepdims, correction=correction)
        onp.testing.assert_allclose(got.asnumpy(), plain if name == "var" else onp.sqrt(plain), rtol=1e-5)


def test_sorting_falls_when_asked(rng):
    values = rng.integers(0, 4, (3, 7)).astype("float32")
    onp.testing.assert_array_equal(np.sort(np.array(values), descending=True).asnumpy(), -onp.sort(-values))
    places = np.argsort(np.array(values), axis=0, descending=True, stable=True).asnumpy()
    onp.testing.assert_array_equal(places, onp.argsort(-values, axis=0, kind="stable"))


def test_an_array_of_one_number_is_a_complex_number():
    assert complex(np.array(2.5)) == 2.5 + 0j


def test_several_axes_are_inserted_at_once():
    a = np.ones((2, 3))
    assert np.expand_dims(a, (0, -1)).shape == (1, 2, 3, 1) and np.expand_dims(a, axis=(1,)).shape == (2, 1, 3)
    for axis in (3, -4, (5,), (0, -5)):
        with pytest.raises(IndexError, match="places in"):
            np.expand_dims(a, axis)
    for axis in ((0, 0), (0, -4)):
        with pytest.raises(errors.ParamError, match="different places"):
            np.expand_dims(a, axis)


def test_linear_algebra_has_the_standards_keywords():
    a = np.array([[4.0, 2.0], [2.0, 3.0]])
    upper = np.linalg.cholesky(a, upper=True)
    onp.testing.assert_allclose((upper.T @ upper).asnumpy(), a.asnumpy(), rtol=1e-6)
    assert int(np.linalg.matrix_rank(np.array([[1.0, 0.0], [0.0, 0.1]]), rtol=0.2)) == 1


def test_bounds_and_axes_have_numpy_2s_names_and_defaults():
    x = np.array(X)
    check(np.clip(x, min=0.0), onp.clip(X, 0, None))
    check(np.clip(x, max=1.0, min=-1.0), onp.clip(X, -1, 1))
    check(np.clip(x, min=np.array([0.0, 1.0, 2.0])), onp.clip(X, onp.array([0.0, 1.0, 2.0]), None))
    places = onp.argsort(X, axis=-1)
    check(np.take_along_axis(x, np.array(places)), onp.take_along_axis(X, places, -1))


# ------------------------------------------------------------------------------------- forms that the standard requires
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3), (2, 5, 3), (0, 3, 2), (3, 0), (0, 2)])
def test_svd_with_full_matrices(shape):
    """The factors are square, also for linearly dependent columns."""
    x = onp.random.default_rng(0).normal(size=shape)
    if x.size and shape[-1] > 1:
        x[..., 1] = x[..., 0]
    u, s, v = (part.asnumpy() for part in np.linalg.svd(np.array(x, dtype="float64"), full_matrices=True))
    for part, wanted in zip((u, s, v), onp.linalg.svd(x), strict=True):
        assert part.shape == wanted.shape
    for square in (u, v):
        product = onp.matmul(square, onp.swapaxes(square, -1, -2))
        onp.testing.assert_allclose(product, onp.broadcast_to(onp.eye(square.shape[-1]), product.shape), atol=1e-12)
    k = s.shape[-1]
    onp.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ v[..., :k, :], x, atol=1e-12)


def test_gradients_of_full_factors_are_those_of_the_thin_ones():
    x = onp.random.default_rng(0).normal(size=(4, 2))
    slopes = []
    for full in (False, True):
        a = np.array(x, dtype="float64")
        a.attach_grad()
        with autograd.record():
            u, s, v = np.linalg.svd(a, full_matrices=full)
            loss = (u[:, :2] ** 3).sum() + s.sum() + (v**3).sum()
        loss.backward()
        slopes.append(a.grad.asnumpy())
    onp.testing.assert_array_equal(*slopes)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [2, 40])
def test_outer_products_keep_the_signs_of_zeros(dtype, size):
    x, y = onp.ones(size, dtype), onp.ones(size, dtype)
    x[0], y[-1] = -0.0, -0.0
    product = np.outer(np.array(x, dtype=dtype), np.array(y, dtype=dtype)).asnumpy()
    onp.testing.assert_array_equal(onp.signbit(product), onp.signbit(onp.outer(x, y)))


def test_repeat_as_arrays_say():
    x = np.array([[1, 2], [3, 4]], dtype="int32")
    check(np.repeat(x, np.array([2, 1], dtype="int8"), axis=0), [[1, 2], [1, 2], [3, 4]])
    check(np.repeat(x, np.array([0, 3], dtype="int64"), axis=1), [[2, 2, 2], [4, 4, 4]])
    assert np.repeat(np.array([], dtype="bool"), np.array([], dtype="int8")).shape == (0,)


def test_bounds_of_slices_may_be_arrays():
    x = np.arange(6)
    check(x[np.array(1, dtype="int32") : np.array(4, dtype="int64")], [1, 2, 3])


def test_broadcast_arrays_are_a_tuple():
    assert isinstance(np.broadcast_arrays(np.array(X), np.array(1.0)), tuple)
