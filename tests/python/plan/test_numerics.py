"""The promises of docs/numerics.md: which results are equal to the bit, and which agree within rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core, autograd, gluon, nd
from hybridnet.gluon import nn
from networks import NETWORKS, gradients_of, make, sequential, values_of
from rounding import assert_all_close, assert_close


def predict(net: gluon.HybridBlock, x: nd.NDArray) -> list[np.ndarray]:
    return [net(x).asnumpy()]


def train(net: gluon.HybridBlock, x: nd.NDArray) -> list[np.ndarray]:
    """Returns result, gradients and new states of a training step, and restores the states."""
    before = values_of(net)
    x = x.copy()
    x.attach_grad()
    with autograd.record():
        y = net(x)
        loss = (y * y).sum()
    loss.backward()
    found = [y.asnumpy(), x.grad.asnumpy(), *gradients_of(net), *values_of(net)]
    for param, value in zip(net.collect_params().values(), before, strict=True):
        param.set_data(nd.array(value))
    return found


def dense(units: int, features: int, rng: np.random.Generator) -> nn.Dense:
    layer = nn.Dense(units, in_units=features)
    layer.initialize()
    layer.weight.set_data(nd.array(rng.standard_normal((units, features))))
    layer.bias.set_data(nd.array(rng.standard_normal(units)))
    return layer


def assert_same_bits(actual: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, e)


both_ways = pytest.mark.parametrize("run", [predict, train], ids=lambda f: f.__name__)
each_network = pytest.mark.parametrize("name", NETWORKS)


@both_ways
@each_network
def test_the_same_call_gives_the_same_bits(name: str, run: Callable) -> None:
    net, x = make(name, 1)
    assert_same_bits(run(net, x), run(net, x))
    net.hybridize()
    assert_same_bits(run(net, x), run(net, x))


@both_ways
@each_network
def test_plans_of_one_graph_give_the_same_bits(name: str, run: Callable) -> None:
    net, x = make(name, 1)
    net.hybridize()
    expected = run(net, x)
    for flags in ({}, {"static_alloc": True}, {"static_alloc": True, "static_shape": True}):
        net.hybridize(**flags)  # drops all plans
        assert_same_bits(run(net, x), expected)
        run(net, nd.concat(x, x, dim=0))  # a plan for other shapes changes nothing
        assert_same_bits(run(net, x), expected)


@each_network
def test_a_loaded_network_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    net, x = make(name, 1)
    imperative = predict(net, x)
    net.save_parameters(str(tmp_path / "parameters"))
    loaded, _ = make(name, 5)
    loaded.load_parameters(str(tmp_path / "parameters"))
    assert_same_bits(predict(loaded, x), imperative)

    net.hybridize()
    hybridized = predict(net, x)
    loaded.hybridize()
    assert_same_bits(predict(loaded, x), hybridized)

    net.export(str(tmp_path / "net"))
    files = [str(tmp_path / name) for name in ("net-symbol.json", "net-0000.params")]
    imported = gluon.SymbolBlock.imports(files[0], "data", files[1])
    imported.hybridize()
    assert_same_bits(predict(imported, x), hybridized)


def test_rows_of_batches_of_other_sizes_agree_within_rounding(rng: np.random.Generator) -> None:
    net = sequential(dense(128, 96, rng), dense(16, 128, rng))
    rows = nd.array(rng.standard_normal((120, 96)))
    for hybridized in (False, True):
        net.hybridize(active=hybridized)
        whole = net(rows).asnumpy()
        for size in (1, 7, 20, 64):
            assert_close(net(rows[:size]).asnumpy(), whole[:size])


def test_a_row_does_not_depend_on_other_rows(rng: np.random.Generator) -> None:
    net = sequential(dense(128, 96, rng), dense(16, 128, rng))
    first, second = rng.standard_normal((2, 40, 96))
    second[17] = first[17]
    for hybridized in (False, True):
        net.hybridize(active=hybridized)
        np.testing.assert_array_equal(net(nd.array(first)).asnumpy()[17], net(nd.array(second)).asnumpy()[17])


def norm_gradients(layer: str, x: nd.NDArray) -> list[nd.NDArray]:
    operator = getattr(nd, layer)
    size = x.shape[-1] if layer == "LayerNorm" else x.shape[1]
    parameters = [nd.ones(size) * 1.5, nd.ones(size) * 0.5]
    states = [nd.zeros(size), nd.ones(size)] if layer == "BatchNorm" else []
    for array in (x, *parameters):
        array.attach_grad()
    with autograd.record():
        y = operator(x, *parameters, *states)
        loss = (y * y * y).sum()
    loss.backward()
    return [y, x.grad, *(p.grad for p in parameters), *states]


def adam(x: nd.NDArray) -> nd.NDArray:
    weight, mean, var = x.copy(), nd.zeros_like(x), nd.zeros_like(x)
    for _ in range(3):
        nd.adam_update(weight, x, mean, var, lr=0.1, out=weight)
    return weight


def random_draws(x: nd.NDArray) -> list[nd.NDArray]:
    mx.random.seed(5)
    return [
        nd.random.normal(shape=x.shape),
        nd.random.gamma(2, 2, shape=x.shape),
        nd.random.poisson(3, shape=x.shape),
        nd.random.shuffle(x),
        nd.Dropout(x, p=0.3, mode="always"),
    ]


def factorizations(x: nd.NDArray) -> list[nd.NDArray]:
    matrix = x.asnumpy().reshape((256, 1024))[:, :256].astype("float64")
    found = []
    for dtype in ("float32", "float64"):
        a = nd.array(matrix, dtype=dtype)
        positive = nd.array(matrix @ matrix.T + 256 * np.eye(256), dtype=dtype)
        lower = nd.linalg_potrf(positive)
        found += [lower, nd.linalg_potri(lower), nd.linalg_trsm(lower, a), nd.linalg_inverse(a), *nd.linalg_slogdet(a)]
        found += [*nd.linalg_gelqf(a), *nd.linalg_syevd(positive), *mx.np.linalg.svd(a.as_np_ndarray())]
    return found


# Functions of an array of shape (4, 64, 1024) or larger whose results do not depend on the number of cores.
SAME_ON_ANY_CORES: dict[str, Callable] = {
    "elementwise": lambda x: nd.tanh(x) * x + nd.erf(x) / (x + 9),
    "sum": lambda x: [nd.sum(x), nd.sum(x, axis=0), nd.sum(x, axis=1), nd.sum(x, axis=2), nd.norm(x)],
    "softmax": lambda x: [nd.softmax(x), nd.log_softmax(x, axis=1)],
    "LayerNorm": lambda x: norm_gradients("LayerNorm", x),
    "BatchNorm": lambda x: norm_gradients("BatchNorm", x),
    "pooling": lambda x: nd.Pooling(x.reshape((4, 64, 32, 32)), kernel=(3, 3), pool_type="avg"),
    "cumsum": lambda x: [nd.cumsum(x, axis=2), nd.cumsum(x)],
    "sort": lambda x: [nd.sort(x), nd.topk(x, k=5)],
    "adam": adam,
    "random": random_draws,
    "product in float64": lambda x: nd.dot(*2 * [x.reshape((256, 1024)).astype("float64")], transpose_b=True),
    "factorizations": factorizations,
}


@pytest.fixture
def any_cores() -> Iterator[Callable[[int], None]]:
    before = _core.cpu_cores()
    yield _core.set_cpu_cores
    nd.waitall()
    _core.set_cpu_cores(before)


@pytest.mark.parametrize("name", SAME_ON_ANY_CORES)
def test_any_number_of_cores_gives_the_same_bits(
    name: str, any_cores: Callable[[int], None], rng: np.random.Generator
) -> None:
    values = rng.standard_normal((4, 64, 1024))
    found = []
    for cores in (1, 2, 4):
        any_cores(cores)
        result = SAME_ON_ANY_CORES[name](nd.array(values))
        found.append([r.asnumpy() for r in (result if isinstance(result, list) else [result])])
    assert_same_bits(found[1], found[0])
    assert_same_bits(found[2], found[0])


@both_ways
@pytest.mark.parametrize("name", ["mlp", "lenet", "residual", "wide"])
def test_networks_on_any_number_of_cores_agree_within_rounding(
    name: str, run: Callable, any_cores: Callable[[int], None]
) -> None:
    found = []
    for cores in (1, 2, 4):
        any_cores(cores)
        net, x = make(name, 1)
        net.hybridize()
        found.append(run(net, x))
    assert_all_close(found[1], found[0])
    assert_all_close(found[2], found[0])


@pytest.mark.parametrize("offset", [1, 3])
def test_the_address_of_an_array_changes_no_bit(offset: int, rng: np.random.Generator) -> None:
    values = nd.array(rng.standard_normal(100 * 1001))
    shifted = nd.zeros(100 * 1001 + offset)
    shifted[offset:] = values
    aligned, unaligned = values.reshape((100, 1001)), shifted[offset:].reshape((100, 1001))
    weight = nd.array(rng.standard_normal((64, 1001)))
    for function in (
        lambda x: nd.dot(x, weight, transpose_b=True),
        lambda x: nd.FullyConnected(x, weight, num_hidden=64, no_bias=True),
        lambda x: nd.sum(x, axis=1),
        lambda x: nd.sum(x, axis=0),
        nd.softmax,
        nd.tanh,
    ):
        np.testing.assert_array_equal(function(unaligned).asnumpy(), function(aligned).asnumpy())
