"""Random draws have the moments of their distribution; the same seed gives the same bits."""

from __future__ import annotations

import inspect
import pickle

import hybridnet as mx
import numpy as np
import pytest

COUNT = 40_000
# Name, parameters by MXNet's names, mean, variance.
DISTRIBUTIONS = [
    ("uniform", {"low": -1.0, "high": 3.0}, 1.0, 16 / 12),
    ("normal", {"loc": 2.0, "scale": 1.5}, 2.0, 2.25),
    ("gamma", {"alpha": 3.0, "beta": 0.5}, 1.5, 0.75),
    ("gamma", {"alpha": 0.4, "beta": 2.0}, 0.8, 1.6),
    ("exponential", {"lam": 4.0}, 0.25, 1 / 16),
    ("poisson", {"lam": 3.5}, 3.5, 3.5),
    ("poisson", {"lam": 60.0}, 60.0, 60.0),
    ("negative_binomial", {"k": 4, "p": 0.4}, 6.0, 15.0),
    ("generalized_negative_binomial", {"mu": 2.0, "alpha": 0.3}, 2.0, 2.0 + 0.3 * 4.0),
]
IDS = [f"{name}-{index}" for index, (name, *_) in enumerate(DISTRIBUTIONS)]
# Names of the parameters in operators with array parameters, where they differ.
SAMPLED = {"normal": {"loc": "mu", "scale": "sigma"}}


def assert_moments(draws: np.ndarray, mean: float, variance: float) -> None:
    """Checks moments within six standard errors: one failure in 10**8 runs, and the seed is fixed."""
    assert np.isfinite(draws).all()
    assert abs(draws.mean() - mean) < 6 * (variance / draws.size) ** 0.5
    fourth = np.mean((draws - draws.mean()) ** 4)
    assert abs(draws.var() - variance) < 6 * ((fourth - variance**2) / draws.size) ** 0.5 + 1e-6


@pytest.mark.parametrize(("name", "params", "mean", "variance"), DISTRIBUTIONS, ids=IDS)
def test_moments(name, params, mean, variance, rng):
    draws = getattr(mx.nd, f"random_{name}")(**params, shape=(COUNT,))
    assert draws.dtype == np.float32
    assert_moments(draws.asnumpy().astype("float64"), mean, variance)


@pytest.mark.parametrize(("name", "params", "mean", "variance"), DISTRIBUTIONS, ids=IDS)
def test_moments_of_like(name, params, mean, variance, rng):
    like = mx.nd.zeros((200, COUNT // 200))
    draws = getattr(mx.nd._internal, f"_random_{name}_like")(like, **params)
    assert draws.shape == like.shape
    assert_moments(draws.asnumpy().astype("float64"), mean, variance)


@pytest.mark.parametrize(("name", "params", "mean", "variance"), DISTRIBUTIONS, ids=IDS)
def test_one_distribution_per_element(name, params, mean, variance, rng):
    names = SAMPLED.get(name, {})
    arrays = {names.get(key, key): mx.nd.full((2,), value) for key, value in params.items()}
    draws = getattr(mx.nd._internal, f"_sample_{name}")(**arrays, shape=(COUNT,))
    assert draws.shape == (2, COUNT)
    rows = draws.asnumpy().astype("float64")
    for row in rows:
        assert_moments(row, mean, variance)
    assert (rows[0] != rows[1]).any()


@pytest.mark.parametrize("name", sorted({name for name, *_ in DISTRIBUTIONS}))
def test_the_seed_decides(name):
    params = next(params for other, params, *_ in DISTRIBUTIONS if other == name)
    draw = getattr(mx.nd, f"random_{name}")

    def three(seed):
        mx.random.seed(seed)
        return [draw(**params, shape=(5, 7)).asnumpy() for _ in range(3)]

    first, again, other = three(7), three(7), three(8)
    np.testing.assert_array_equal(first, again)
    assert any((a != b).any() for a, b in zip(first, other, strict=True))
    assert (first[0] != first[1]).any()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floating_dtypes(dtype):
    draws = mx.nd.random.normal(shape=(2000,), dtype=dtype)
    assert str(np.dtype(draws.dtype)) == dtype
    assert abs(draws.asnumpy().astype("float64").mean()) < 0.2


def test_samples_of_parameters_that_are_none_are_nan_and_end():
    """Fuzzing found this: rejection samplers looped forever."""
    wrong = mx.nd.array([-2.0, -0.5, float("nan")])
    one = mx.nd.ones((3,))
    assert np.isnan(mx.nd.sample_gamma(wrong, one, shape=(4,)).asnumpy()).all()
    assert np.isnan(mx.nd.sample_poisson(wrong, shape=(4,)).asnumpy()).all()
    assert np.isnan(mx.nd.sample_negative_binomial(wrong, one * 0.5, shape=(4,)).asnumpy()).all()
    assert np.isnan(mx.nd.sample_generalized_negative_binomial(one, wrong, shape=(4,)).asnumpy()).all()


def test_a_gamma_distribution_without_bound_ends():
    assert np.isinf(mx.nd.random_gamma(alpha=float("inf"), beta=1.0, shape=(3,)).asnumpy()).all()


def test_uniform_stays_below_high():
    draws = mx.nd.random.uniform(0, 1, shape=(100_000,)).asnumpy()
    assert draws.min() >= 0
    assert draws.max() < 1
    counts, _ = np.histogram(draws, bins=20, range=(0, 1))
    assert np.abs(counts - 5000).max() < 6 * 5000**0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mx.nd.random.uniform(0, 1, shape=(-2,)), "shape"),
        (lambda: mx.nd.random.normal(0, -1.0, shape=(2,)), "scale"),
        (lambda: mx.nd.random.gamma(-1.0, 1.0, shape=(2,)), "alpha"),
        (lambda: mx.nd.random.poisson(-1.0, shape=(2,)), "lam"),
        (lambda: mx.nd.random.uniform(mx.nd.zeros((2,)), 1.0), "numbers or all arrays"),
    ],
)
def test_bad_parameters_are_named(call, message):
    with pytest.raises(mx.MXNetError, match=message):
        call()


def test_randint_covers_its_range_evenly():
    draws = mx.nd.random.randint(-3, 5, shape=(80_000,))
    assert np.dtype(draws.dtype) == np.int32
    values, counts = np.unique(draws.asnumpy(), return_counts=True)
    np.testing.assert_array_equal(values, np.arange(-3, 5))
    assert np.abs(counts - 10_000).max() < 600


def test_shuffle_permutes_rows():
    rows = mx.nd.arange(0, 60).reshape((30, 2))
    shuffled = mx.nd.random.shuffle(rows).asnumpy()
    assert sorted(map(tuple, shuffled)) == sorted(map(tuple, rows.asnumpy()))
    assert (shuffled != rows.asnumpy()).any()


def test_multinomial_follows_probabilities():
    probabilities = mx.nd.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])
    draws, log_likelihood = mx.nd.random.multinomial(probabilities, shape=(20_000,), get_prob=True)
    assert draws.shape == (2, 20_000)
    for row, expected in zip(draws.asnumpy(), probabilities.asnumpy(), strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=3) / row.size, expected, atol=0.02)
    picked = np.take_along_axis(np.log(probabilities.asnumpy() + 1e-30), draws.asnumpy().astype("int64"), 1)
    np.testing.assert_allclose(log_likelihood.asnumpy(), picked, rtol=1e-4)


RANDOM_FUNCTIONS = sorted(set(mx.nd.random.__all__))


@pytest.mark.parametrize("name", RANDOM_FUNCTIONS)
def test_functions_of_arrays_and_of_symbols_are_one(name):
    of_arrays, of_symbols = getattr(mx.nd.random, name), getattr(mx.sym.random, name)
    assert of_arrays.__doc__
    assert of_arrays.__doc__ == of_symbols.__doc__
    assert inspect.signature(of_arrays) == inspect.signature(of_symbols)


@pytest.mark.parametrize("name", RANDOM_FUNCTIONS)
def test_random_functions_travel_to_other_processes(name):
    copied = pickle.loads(pickle.dumps(getattr(mx.nd.random, name)))
    arguments = {"randint": (0, 5), "multinomial": (mx.nd.ones((3,)) / 3,), "shuffle": (mx.nd.ones((3,)),)}
    assert isinstance(copied(*arguments.get(name, ())), mx.nd.NDArray)


@pytest.mark.parametrize("F", [mx.nd, mx.sym], ids=["nd", "sym"])
def test_numbers_and_arrays_do_not_mix(F):
    with pytest.raises(
        ValueError, match=r"random\.normal: expected parameters that are all numbers or all .*, got loc: "
    ):
        F.random.normal(F.zeros((2,)), 1.0)


def test_draws_like_data_take_another_dtype():
    like = mx.nd.zeros((3, 4))
    drawn = mx.nd.random.normal(loc=5, scale=0.1, data=like, dtype="float64")
    assert drawn.shape == (3, 4)
    assert drawn.dtype == np.float64
    node = mx.sym.random.randn(loc=5, data=mx.sym.ones((2, 3)), dtype="float16")
    (out,) = node.bind(mx.cpu(), {}).forward()
    assert out.shape == (2, 3)
    assert out.dtype == np.float16


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_normal_numbers_do_not_depend_on_how_many_follow(dtype):
    def drawn(count: int) -> np.ndarray:
        mx.random.seed(7)
        return mx.nd.random.normal(1.0, 2.0, shape=(count,), dtype=dtype).asnumpy()

    many = drawn(10_001)
    for count in (1, 2, 15, 16, 63, 64, 255, 4096, 4097):
        np.testing.assert_array_equal(drawn(count), many[:count])
    assert np.isfinite(many).all()
