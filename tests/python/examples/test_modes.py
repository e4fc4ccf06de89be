"""Networks of the examples give the same numbers on arrays, hybridized, and exported to a program without Python."""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd

TESTS = pathlib.Path(__file__).resolve().parents[1]


def load(path: pathlib.Path):
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


c_model = load(TESTS / "control_flow" / "c_model.py")


EXAMPLES = TESTS.parents[1] / "examples"


def example(name: str):
    sys.path.insert(0, str(EXAMPLES))  # examples in plain Python import the explicit form
    try:
        return load(EXAMPLES / f"{name}.py")
    finally:
        sys.path.remove(str(EXAMPLES))


def uniform(rng, *shape, low=0.0, high=1.0, dtype="float32"):
    return mx.nd.array(rng.uniform(low, high, shape), dtype=dtype)


def ready(net):
    net.initialize(mx.init.Xavier(magnitude=6))
    return net


def language_model(rng, plain=False):
    net = ready(
        example("lstm_plain").PlainLanguageModel(width=16) if plain else example("lstm_foreach").LanguageModel(width=16)
    )
    return net, [mx.nd.array(rng.integers(0, 30, (7, 3))), *(uniform(rng, 3, 16, low=-1) for _ in range(4))]


def beam_search(rng, plain=False):
    module = example("beam_search_while")
    kind = example("beam_search_plain").PlainBeamSearch if plain else module.BeamSearch
    return ready(kind(module.Model())), [
        mx.nd.array([0.0] + [module.NEVER] * 7),
        mx.nd.zeros((8, module.WIDTH)),
    ]


def ode(rng, plain=False):
    module = example("ode_while")
    kind = example("ode_plain").PlainSolver if plain else module.AdaptiveSolver
    values = [
        uniform(rng, 5, low=0.1, high=1.5, dtype="float64"),
        *(mx.nd.array([v], dtype="float64") for v in (3, 1.3, 2)),
    ]
    return kind(module.logistic, tolerance=1e-6), values


def early_exit(rng, plain=False):
    kind = example("early_exit_plain").PlainEarlyExitNet if plain else example("early_exit_cond").EarlyExitNet
    net, images = ready(kind()), uniform(rng, 12, 1, 8, 8)
    confidences = np.sort(net.cheap(images).softmax().max(axis=1).asnumpy())
    net.confidence = float(confidences[5:7].mean())  # half of the images exit early
    return net, [images]


NETS = {"language model": language_model, "beam search": beam_search, "ode": ode, "early exit": early_exit}


def flat(outputs) -> list[np.ndarray]:
    return [out.asnumpy() for out in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]


def assert_all_close(found, wanted, rtol):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("plain", [False, True], ids=["explicit", "plain"])
@pytest.mark.parametrize("name", NETS)
def test_outputs(name, plain, rng, tmp_path):
    net, inputs = NETS[name](rng, plain)
    wanted = flat(net(*inputs))
    if name == "early exit":
        assert wanted[1].sum() == 6  # both branches run
    for options in ({}, {"static_alloc": True, "static_shape": True}, {"passes": "none"}, {"passes": "fast_compile"}):
        net.hybridize(**options)
        assert_all_close(flat(net(*inputs)), wanted, 1e-5)
    files = net.export(str(tmp_path / "net"))
    names = ["data"] if len(inputs) == 1 else [f"data{i}" for i in range(len(inputs))]
    assert_all_close(c_model.run(*files, dict(zip(names, map(mx.nd.NDArray.asnumpy, inputs)))), wanted, 1e-5)


def gradients(name, net, inputs):
    variables = inputs[1:] if name == "language model" else [inputs[0], *inputs[2:]]
    for variable in variables:
        variable.attach_grad()
    with autograd.record():
        out = net(*inputs)[0]
        (out**2).mean().backward()
    parameters = [p.grad() for p in net.collect_params().values()]
    return [g.asnumpy() for g in [v.grad for v in variables] + parameters]


@pytest.mark.parametrize("plain", [False, True], ids=["explicit", "plain"])
@pytest.mark.parametrize("name", ["language model", "ode"])
def test_gradients(name, plain, rng):
    net, inputs = NETS[name](rng, plain)
    found = []
    for hybridized in (False, True):
        net.hybridize(hybridized)
        found.append(gradients(name, net, inputs))
    assert all(np.abs(g).max() > 0 for g in found[0])
    assert_all_close(found[1], found[0], 1e-5)


@pytest.mark.parametrize("name", NETS)
def test_plain_python_gives_the_bits_of_the_explicit_form(name, rng):
    net, inputs = NETS[name](rng)
    plain, _ = NETS[name](rng, True)
    for mine, given in zip(plain.collect_params().values(), net.collect_params().values(), strict=True):
        mine.set_data(given.data())
    if name == "early exit":
        plain.confidence = net.confidence
    results = []
    for block in (net, plain):
        block.hybridize(strict=True)
        results.append(flat(block(*inputs)))
        if name in ("language model", "ode"):
            results[-1] += gradients(name, block, inputs)
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))


def test_second_order_gradient_of_the_solver(rng):
    """The second derivative of the population by the growth rate equals central differences of the exact slope."""
    module = example("ode_while")
    solve = module.AdaptiveSolver(module.logistic, tolerance=1e-9)
    solve.hybridize()
    start, time, limit = np.array([0.2]), 1.5, 2.0
    rate = module.array(1.3)
    rate.attach_grad()
    with autograd.record():
        y, _, _ = solve(module.array(start), module.array(time), rate, module.array(limit))
        (slope,) = autograd.grad(y, [rate], create_graph=True, retain_graph=True)
    slope.backward()
    step = 1e-4
    slopes = [module.exact_gradients(start, time, 1.3 + d, limit)[1] for d in (-step, step)]
    np.testing.assert_allclose(slope.asnumpy(), module.exact_gradients(start, time, 1.3, limit)[1], rtol=1e-6)
    np.testing.assert_allclose(rate.grad.asnumpy(), (slopes[1] - slopes[0]) / (2 * step), rtol=1e-4)
