"""mx.np.random and mx.npx.random: distributions by their cumulative functions, shapes, seeds, gradients, graphs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import hybridnet as mx
import numpy as onp
import pytest

N = 20_000


@pytest.fixture(params=[False, True], ids=["classic", "set_np"])
def switched(request: pytest.FixtureRequest):
    """Runs each test with and without npx.set_np(), on which NumPy's interface does not depend."""
    if request.param:
        mx.npx.set_np()
    yield
    mx.npx.reset_np()


def kolmogorov_distance(sample: onp.ndarray, cumulative: Callable[[onp.ndarray], onp.ndarray]) -> float:
    """The largest gap between the cumulative frequencies of the sample and the expected ones."""
    sample = onp.sort(sample.astype("float64").ravel())
    expected = cumulative(sample)
    steps = onp.arange(len(sample) + 1) / len(sample)
    return float(max(onp.abs(expected - steps[1:]).max(), onp.abs(expected - steps[:-1]).max()))


_erf = onp.vectorize(math.erf)


def _normal(loc: float, scale: float) -> Callable[[onp.ndarray], onp.ndarray]:
    return lambda x: 0.5 * (1 + _erf((x - loc) / (scale * math.sqrt(2))))


def _erlang2(scale: float) -> Callable[[onp.ndarray], onp.ndarray]:
    """The cumulative function of a gamma distribution of shape 2."""
    return lambda x: 1 - onp.exp(-x / scale) * (1 + x / scale)


def _laplace(loc: float, scale: float) -> Callable[[onp.ndarray], onp.ndarray]:
    def cumulative(x: onp.ndarray) -> onp.ndarray:
        tail = 0.5 * onp.exp(-onp.abs(x - loc) / scale)
        return onp.where(x < loc, tail, 1 - tail)

    return cumulative


# Function, parameters, cumulative distribution.
CONTINUOUS: list[tuple[str, tuple[float, ...], Callable[[onp.ndarray], onp.ndarray]]] = [
    ("uniform", (-1.0, 3.0), lambda x: (x + 1) / 4),
    ("uniform", (3.0, -1.0), lambda x: (x + 1) / 4),
    ("normal", (2.0, 0.5), _normal(2, 0.5)),
    ("lognormal", (0.5, 0.25), lambda x: _normal(0.5, 0.25)(onp.log(x))),
    ("gumbel", (1.0, 2.0), lambda x: onp.exp(-onp.exp(-(x - 1) / 2))),
    ("logistic", (1.0, 2.0), lambda x: 1 / (1 + onp.exp(-(x - 1) / 2))),
    ("laplace", (1.0, 2.0), _laplace(1, 2)),
    ("gamma", (2.0, 1.5), _erlang2(1.5)),
    ("gamma", (1.0, 2.0), lambda x: 1 - onp.exp(-x / 2)),
    ("gamma", (0.5, 2.0), lambda x: _erf(onp.sqrt(x / 2))),
    ("beta", (2.0, 1.0), lambda x: x**2),
    ("beta", (1.0, 3.0), lambda x: 1 - (1 - x) ** 3),
    ("chisquare", (4.0,), _erlang2(2)),
    ("f", (2.0, 2.0), lambda x: x / (1 + x)),
    ("exponential", (1.5,), lambda x: 1 - onp.exp(-x / 1.5)),
    ("rayleigh", (1.5,), lambda x: 1 - onp.exp(-(x**2) / (2 * 1.5**2))),
    ("weibull", (2.5,), lambda x: 1 - onp.exp(-(x**2.5))),
    ("pareto", (2.5,), lambda x: 1 - (1 + x) ** -2.5),
    ("power", (2.5,), lambda x: x**2.5),
]
PARAMETER_FORMS = ["numbers", "arrays", "mixed"]


def drawn(name: str, parameters: tuple[float, ...], form: str) -> Any:
    function = getattr(mx.np.random, name)
    if form == "numbers":
        return function(*parameters, size=(N // 4, 4))
    arrays = [mx.np.full((N // 4, 1) if i == 0 else (4,), p) for i, p in enumerate(parameters)]
    if form == "arrays":
        return function(*arrays, size=(N // 4, 4))
    return function(*arrays[:1], *parameters[1:], size=(N // 4, 4))


@pytest.mark.parametrize("form", PARAMETER_FORMS)
@pytest.mark.parametrize("name, parameters, cumulative", CONTINUOUS, ids=lambda v: str(v) if not callable(v) else "")
def test_numbers_follow_their_distribution(name, parameters, cumulative, form, switched):
    mx.npx.seed(17)
    sample = drawn(name, parameters, form)
    assert type(sample) is mx.np.ndarray and sample.shape == (N // 4, 4)
    # One sample in a thousand exceeds 1.95 / sqrt(n).
    assert kolmogorov_distance(sample.asnumpy(), cumulative) < 1.95 / math.sqrt(N)


@pytest.mark.parametrize("name, parameters, cumulative", CONTINUOUS, ids=lambda v: str(v) if not callable(v) else "")
def test_shapes_are_the_size_or_that_of_the_parameters(name, parameters, cumulative, switched):
    function = getattr(mx.np.random, name)
    assert function(*parameters).shape == ()
    assert function(*parameters, size=()).shape == ()
    assert function(*parameters, size=3).shape == (3,)
    assert function(*parameters, size=(2, 0)).shape == (2, 0)
    arrays = [mx.np.full((2, 1) if i == 0 else (3,), p) for i, p in enumerate(parameters)]
    assert function(*arrays).shape == ((2, 3) if len(arrays) == 2 else (2, 1))
    assert function(mx.np.array(parameters[0]), *parameters[1:]).shape == ()
    assert function(onp.full((2, 2), parameters[0]), *parameters[1:]).shape == (2, 2)
    assert function(mx.np.full((0, 3), parameters[0]), *parameters[1:]).shape == (0, 3)
    if len(parameters) == 2:  # one draw per element of the array, not one for all
        two = function(parameters[0], mx.np.full((50,), parameters[1])).asnumpy()
        assert len(set(two.tolist())) > 40
    with pytest.raises(mx.errors.ShapeError, match="broadcasts"):
        function(mx.np.full((2, 3), parameters[0]), *parameters[1:], size=(5,))


@pytest.mark.parametrize("name", ["uniform", "normal", "gamma", "lognormal", "laplace"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dtypes_are_those_asked_for(name, dtype):
    result = getattr(mx.np.random, name)(1.0, 2.0, size=(4, 4), dtype=dtype)
    assert result.dtype == onp.dtype(dtype) and onp.isfinite(result.asnumpy()).all()


@pytest.mark.parametrize("name, parameters, cumulative", CONTINUOUS, ids=lambda v: str(v) if not callable(v) else "")
def test_the_same_seed_gives_the_same_numbers_and_no_others_follow(name, parameters, cumulative):
    function = getattr(mx.np.random, name)
    mx.np.random.seed(5)
    first, second = function(*parameters, size=8).asnumpy(), function(*parameters, size=8).asnumpy()
    mx.npx.random.seed(5)
    onp.testing.assert_array_equal(function(*parameters, size=8).asnumpy(), first)
    assert (first != second).any()


# ------------------------------------------------------------------------------------------------------- gradients
# d sample / d parameter as functions of the sample and the parameters.
SLOPES = {
    "uniform": lambda x, low, high: [(high - x) / (high - low), (x - low) / (high - low)],
    "normal": lambda x, loc, scale: [onp.ones_like(x), (x - loc) / scale],
    "lognormal": lambda x, mean, sigma: [x, x * (onp.log(x) - mean) / sigma],
    "gumbel": lambda x, loc, scale: [onp.ones_like(x), (x - loc) / scale],
    "logistic": lambda x, loc, scale: [onp.ones_like(x), (x - loc) / scale],
    "laplace": lambda x, loc, scale: [onp.ones_like(x), (x - loc) / scale],
    "gamma": lambda x, shape, scale: [onp.zeros_like(x), x / scale],
    "exponential": lambda x, scale: [x / scale],
    "rayleigh": lambda x, scale: [x / scale],
    "weibull": lambda x, a: [-x * onp.log(x) / a],
    "pareto": lambda x, a: [-(1 + x) * onp.log1p(x) / a],
    "power": lambda x, a: [-x * onp.log(x) / a],
}


class Drawing(mx.gluon.HybridBlock):
    """A block that draws numbers whose parameters are its inputs."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__()
        self.function, self.kwargs = name, kwargs

    def forward(self, *parameters: Any) -> Any:
        return getattr(mx.np.random, self.function)(*parameters, **self.kwargs)


@pytest.mark.parametrize("mode", ["imperative", "hybrid"])
@pytest.mark.parametrize("name", SLOPES)
def test_gradients_reach_parameters_through_the_numbers(name, mode):
    values = next(p for n, p, _ in CONTINUOUS if n == name)
    arrays = [mx.np.full((3, 4), p) for p in values]
    block = Drawing(name)
    if mode == "hybrid":
        block.hybridize()
    for a in arrays:
        a.attach_grad()
    with mx.autograd.record():
        sample = block(*arrays)
        sample.sum().backward()
    for a, want in zip(arrays, SLOPES[name](sample.asnumpy(), *values), strict=True):
        onp.testing.assert_allclose(a.grad.asnumpy(), want, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("name, parameters, cumulative", CONTINUOUS, ids=lambda v: str(v) if not callable(v) else "")
def test_hybridized_blocks_draw_anew_at_every_call(name, parameters, cumulative):
    block = Drawing(name)
    block.hybridize()
    arrays = [mx.np.full((N,), p) for p in parameters]
    mx.npx.seed(3)
    first, second = block(*arrays).asnumpy(), block(*arrays).asnumpy()
    assert (first != second).mean() > 0.9
    assert kolmogorov_distance(first, cumulative) < 1.95 / math.sqrt(N)
    mx.npx.seed(3)
    onp.testing.assert_array_equal(block(*arrays).asnumpy(), first)
    assert block(*[a[:5] for a in arrays]).shape == (5,)


class Noisy(mx.gluon.HybridBlock):
    """A block that draws numbers without inputs."""

    def forward(self, x: Any) -> Any:
        return x + mx.np.random.normal(0, 1, size=(2, 3)) + mx.np.random.randint(0, 2, size=(2, 3))


def test_numbers_without_parameters_are_part_of_the_graph():
    block = Noisy()
    block.hybridize()
    x = mx.np.zeros((2, 3))
    first, second = block(x).asnumpy(), block(x).asnumpy()
    assert (first != second).all()


def test_symbols_draw():
    x = mx.sym.var("x").as_np_ndarray()
    out = x + mx.sym.np.random.uniform(2, 3, size=(2, 3)) + mx.sym.npx.random.bernoulli(1.0, size=(2, 3))
    result = out.eval(x=mx.np.zeros((2, 3)))[0].asnumpy()
    assert result.shape == (2, 3) and (result >= 3).all() and (result < 4).all()


# ------------------------------------------------------------------------------------------------------ integers
def test_randint_gives_every_number_equally_often(switched):
    mx.npx.seed(1)
    drawn = mx.np.random.randint(-2, 3, size=(N,)).asnumpy()
    values, counts = onp.unique(drawn, return_counts=True)
    assert drawn.dtype == onp.int64 and values.tolist() == [-2, -1, 0, 1, 2]
    assert onp.abs(counts / N - 0.2).max() < 0.015
    assert mx.np.random.randint(4).shape == () and mx.np.random.randint(4, size=(0, 2)).shape == (0, 2)
    assert mx.np.random.randint(4, size=2, dtype="int32").dtype == onp.int32
    assert set(mx.np.random.randint(250, 256, size=99, dtype="uint8").asnumpy().tolist()) <= set(range(250, 256))
    with pytest.raises(mx.errors.ParamError, match="above low"):
        mx.np.random.randint(3, 3)


def test_choice_draws_from_ranges_and_arrays_with_and_without_weights(switched):
    mx.npx.seed(2)
    choice = mx.np.random.choice
    assert onp.unique(choice(4, N).asnumpy()).tolist() == [0, 1, 2, 3]
    weights = [0.1, 0.0, 0.6, 0.3]
    for p in (weights, onp.array(weights), mx.np.array(weights)):
        counts = onp.bincount(choice(4, N, p=p).asnumpy(), minlength=4)
        assert onp.abs(counts / N - weights).max() < 0.015 and counts[1] == 0
    assert sorted(choice(6, 6, replace=False).asnumpy().tolist()) == list(range(6))
    assert sorted(choice(4, 3, replace=False, p=weights).asnumpy().tolist()) == [0, 2, 3]
    firsts = [int(choice(4, 2, replace=False, p=mx.np.array(weights))[0]) for _ in range(2000)]
    assert onp.abs(onp.bincount(firsts, minlength=4) / 2000 - weights).max() < 0.05
    pool = mx.np.array([1.5, 2.5, 3.5])
    assert set(choice(pool, (20, 5)).asnumpy().ravel().tolist()) == {1.5, 2.5, 3.5}
    assert choice(pool).shape == () and choice(pool).dtype == onp.float32
    assert set(choice(pool, 9, p=[0.0, 0.0, 1.0]).asnumpy().tolist()) == {3.5}


def test_choice_names_impossible_choices():
    with pytest.raises(mx.errors.ParamError, match="replace=True"):
        mx.np.random.choice(3, 4, replace=False)
    with pytest.raises(mx.errors.ParamError, match="at least one place"):
        mx.np.random.choice(0, 2)
    with pytest.raises(mx.errors.ValueError, match="probabilities that are not 0"):
        mx.np.random.choice(3, 2, replace=False, p=[0.0, 0.0, 1.0]).asnumpy()
    with pytest.raises(mx.errors.ShapeError, match="expected shape"):
        mx.np.random.choice(3, 2, p=[0.5, 0.5])


@pytest.mark.parametrize("size", [None, 3, (2, 2), (0,)])
def test_multinomial_counts_outcomes(size, switched):
    shape = () if size is None else (size,) if isinstance(size, int) else size
    for pvals in ([0.2, 0.3, 0.5], onp.array([0.2, 0.3, 0.5]), mx.np.array([0.2, 0.3, 0.5])):
        counts = mx.np.random.multinomial(10, pvals, size=size)
        assert counts.shape == (*shape, 3) and counts.dtype == onp.int64
        onp.testing.assert_array_equal(counts.asnumpy().sum(-1), onp.full(shape, 10))


@pytest.mark.parametrize("experiments", [33, 10**6, 2**40])
def test_multinomial_counts_of_many_experiments_have_binomial_mean_and_deviation(experiments):
    p = onp.array([0.2, 0.5, 0.0, 0.3])
    mx.random.seed(17)
    counts = mx.np.random.multinomial(experiments, list(p), size=4000).asnumpy().astype("float64")
    assert (counts.sum(axis=1) == experiments).all() and (counts[:, 2] == 0).all()
    deviation = onp.sqrt(experiments * p * (1 - p))
    assert onp.all(onp.abs(counts.mean(axis=0) - experiments * p) <= 5 * deviation / onp.sqrt(4000))
    assert onp.allclose(counts.std(axis=0), deviation, rtol=0.06)


def test_multinomial_frequencies_are_the_probabilities():
    mx.npx.seed(4)
    counts = mx.np.random.multinomial(10, [0.2, 0.3, 0.4], size=2000).asnumpy()  # the last chance completes the sum
    onp.testing.assert_allclose(counts.mean(0), [2, 3, 5], atol=0.1)
    onp.testing.assert_allclose(counts.var(0), [1.6, 2.1, 2.5], atol=0.2)
    with pytest.raises(mx.errors.ValueError, match="sum of at most 1"):
        mx.np.random.multinomial(10, [0.8, 0.9, 0.1]).asnumpy()


def test_shuffle_works_in_place_and_permutation_does_not(switched):
    x = mx.np.arange(60).reshape((20, 3))
    assert mx.np.random.shuffle(x) is None
    rows = x.asnumpy()
    assert (rows[:, 0] != onp.arange(0, 60, 3)).any()
    onp.testing.assert_array_equal(onp.sort(rows[:, 0]), onp.arange(0, 60, 3))
    onp.testing.assert_array_equal(rows[:, 1:], rows[:, :1] + [1, 2])
    order = mx.np.random.permutation(20)
    assert order.dtype == onp.int64 and sorted(order.asnumpy().tolist()) == list(range(20))
    permuted = mx.np.random.permutation(x)
    onp.testing.assert_array_equal(x.asnumpy(), rows)
    onp.testing.assert_array_equal(onp.sort(permuted.asnumpy(), 0), onp.sort(rows, 0))


def test_multivariate_normal_has_the_mean_and_covariance_asked_for(switched):
    mx.npx.seed(6)
    mean, cov = onp.array([1.0, -2.0]), onp.array([[2.0, 0.6], [0.6, 0.5]])
    sample = mx.np.random.multivariate_normal(mx.np.array(mean), mx.np.array(cov), size=(N,))
    assert sample.shape == (N, 2)
    onp.testing.assert_allclose(sample.asnumpy().mean(0), mean, atol=0.05)
    onp.testing.assert_allclose(onp.cov(sample.asnumpy().T), cov, atol=0.06)
    singular = mx.np.random.multivariate_normal(onp.zeros(2), onp.ones((2, 2)), size=50).asnumpy()
    onp.testing.assert_allclose(singular[:, 0], singular[:, 1], atol=1e-3)
    stacked = mx.np.random.multivariate_normal(mx.np.zeros((3, 1, 2)), mx.np.array([cov] * 4), size=(5, 2))
    assert stacked.shape == (5, 2, 3, 4, 2)
    assert mx.np.random.multivariate_normal(mx.np.array(mean), mx.np.array(cov)).shape == (2,)


def test_wrong_parameters_are_named():
    with pytest.raises(mx.errors.ParamError, match=r"scale.*not negative"):
        mx.np.random.normal(0, -1.0)
    with pytest.raises(mx.errors.ParamError, match=r"'a'.*positive"):
        mx.np.random.weibull(0.0)
    with pytest.raises(mx.errors.ParamError, match="float"):
        mx.np.random.uniform(0, 1, dtype="int32")
    with pytest.raises(mx.errors.ParamError, match="probability"):
        mx.npx.random.bernoulli(1.5)


# --------------------------------------------------------------------------------------------------- npx.random
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8", "bool"])
def test_bernoulli_draws_by_probability_or_logit(dtype, switched):
    mx.npx.seed(8)
    bernoulli = mx.npx.random.bernoulli
    p = onp.array([[0.2], [0.9]])
    logit = onp.log(p / (1 - p))
    for sample in (
        bernoulli(mx.np.array(p), size=(2, N), dtype=dtype),
        bernoulli(logit=mx.np.array(logit), size=(2, N), dtype=dtype),
    ):
        assert sample.dtype == onp.dtype(dtype) and sample.shape == (2, N)
        onp.testing.assert_allclose(sample.asnumpy().astype("float64").mean(1), p[:, 0], atol=0.015)
    assert abs(float(bernoulli(0.3, size=N, dtype=dtype).asnumpy().astype("float64").mean()) - 0.3) < 0.015
    assert abs(float(bernoulli(logit=1.0, size=N).asnumpy().mean()) - 0.7311) < 0.015
    assert bernoulli(0.3).shape == ()


def test_bernoulli_takes_one_of_its_parameters():
    with pytest.raises(mx.errors.ValueError, match=r"prob.*logit"):
        mx.npx.random.bernoulli(0.5, 0.5)
    with pytest.raises(mx.errors.ValueError, match=r"prob.*logit"):
        mx.npx.random.bernoulli()


@pytest.mark.parametrize("name, first, second", [("uniform_n", 2.0, 3.0), ("normal_n", 2.0, 0.0)])
def test_batches_of_numbers_are_drawn_for_every_parameter(name, first, second, switched):
    function = getattr(mx.npx.random, name)
    assert function(first, second, batch_shape=(3, 2)).shape == (3, 2)
    assert function(mx.np.full((4,), first), second, batch_shape=(3, 2)).shape == (3, 2, 4)
    assert function(mx.np.full((4, 1), first), mx.np.full((5,), second), batch_shape=3).shape == (3, 4, 5)
    assert function(mx.np.full((4,), first), second).shape == (4,)
    assert function(first, second, batch_shape=(2,), dtype="float64").dtype == onp.float64
    values = function(mx.np.full((4,), first), second, batch_shape=(3,)).asnumpy()
    assert (values >= 2).all() and (values <= 3).all()


@pytest.mark.parametrize(
    "draw",
    [
        lambda bad: mx.np.random.normal(0, bad),
        lambda bad: mx.np.random.gumbel(0, bad),
        lambda bad: mx.np.random.logistic(0, bad),
        lambda bad: mx.np.random.gamma(bad, 1),
        lambda bad: mx.np.random.gamma(1, bad),
        lambda bad: mx.np.random.exponential(bad),
        lambda bad: mx.np.random.rayleigh(bad),
        lambda bad: mx.np.random.weibull(bad),
        lambda bad: mx.np.random.pareto(bad),
        lambda bad: mx.np.random.power(bad),
        lambda bad: mx.npx.random.bernoulli(bad),
        lambda bad: mx.npx.random.bernoulli(bad + 2.5),
    ],
)
def test_parameters_out_of_range_are_errors_in_arrays_too(draw, switched):
    with pytest.raises(ValueError, match="expected a"):
        draw(-0.5).asnumpy()
    with pytest.raises(ValueError, match=r"expected a .* everywhere"):
        draw(mx.np.array([0.5, -0.5])).asnumpy()
    assert draw(mx.np.array([]).reshape(0, 2)).shape == (0, 2)


def test_the_seed_is_called_seed():
    mx.npx.random.seed(seed=7)
    first = mx.np.random.uniform(size=3).tolist()
    mx.npx.random.seed(7, ctx=mx.cpu())
    assert mx.np.random.uniform(size=3).tolist() == first


def test_normal_vectors_of_float16():
    mean, covariance = mx.np.zeros(2, dtype="float16"), mx.np.array([[1, 0.5], [0.5, 1]], dtype="float16")
    vectors = mx.np.random.multivariate_normal(mean, covariance, size=5000).asnumpy().astype("float64")
    onp.testing.assert_allclose(onp.cov(vectors.T), [[1, 0.5], [0.5, 1]], atol=0.1)
