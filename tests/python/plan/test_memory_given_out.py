"""Parameters whose memory other code may write are never read through a packed, folded or joined copy."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import nd
from hybridnet.gluon import nn, rnn

torch = pytest.importorskip("torch")


def _conv(*layers: Any) -> Any:
    net = nn.HybridSequential()
    net.add(*layers)
    return net


# Network and shape of its input, for each kind of copy that is kept of parameters.
NETS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "dense": (lambda: nn.Dense(256, in_units=256, activation="relu"), (8, 256)),
    "convolution": (lambda: _conv(nn.Conv2D(32, 3, padding=1, in_channels=32)), (2, 32, 28, 28)),
    "depthwise": (lambda: _conv(nn.Conv2D(32, 3, groups=32, in_channels=32)), (1, 32, 14, 14)),
    "batch norm": (
        lambda: _conv(nn.Conv2D(32, 3, padding=1, in_channels=16), nn.BatchNorm(in_channels=32), nn.Activation("relu")),
        (1, 16, 28, 28),
    ),
    "norm of dense": (lambda: _conv(nn.Dense(256, in_units=256), nn.BatchNorm(in_channels=256)), (8, 256)),
    "lstm": (lambda: rnn.LSTM(64, input_size=64), (5, 4, 64)),
    "gru": (lambda: rnn.GRU(64, input_size=64, num_layers=2, bidirectional=True), (5, 4, 64)),
    "deconvolution": (lambda: _conv(nn.Conv2DTranspose(16, 3, in_channels=16)), (1, 16, 14, 14)),
}


def by_torch(array: Any, values: np.ndarray) -> Any:
    view = torch.from_dlpack(array)
    view.copy_(torch.from_numpy(values))
    return view


def by_capsule(array: Any, values: np.ndarray) -> Any:
    return by_torch_capsule(array.to_dlpack_for_write(), values)


def by_capsule_for_reading(array: Any, values: np.ndarray) -> Any:
    return by_torch_capsule(array.to_dlpack_for_read(), values)


def by_torch_capsule(capsule: Any, values: np.ndarray) -> Any:
    view = torch.utils.dlpack.from_dlpack(capsule)
    view.copy_(torch.from_numpy(values))
    return view


def by_a_second_array(array: Any, values: np.ndarray) -> Any:
    other = nd.from_dlpack(array)
    other[:] = values
    other.wait_to_read()
    return other


def by_a_view(array: Any, values: np.ndarray) -> Any:
    view = torch.from_dlpack(array.reshape((-1,)))
    view.copy_(torch.from_numpy(values.reshape(-1)))
    return view


ROUTES = {f.__name__[3:]: f for f in (by_torch, by_capsule, by_capsule_for_reading, by_a_second_array, by_a_view)}


def parameters(net: Any) -> list[Any]:
    return [p.data() for p in net.collect_params().values()]


def changed(rng: np.random.Generator, array: Any) -> np.ndarray:
    return rng.uniform(0.1, 0.9, array.shape).astype("float32")


def check_writes(net: Any, run: Callable[[Any], Any], x: Any, arrays: list[Any], route: Any, rng: Any) -> None:
    """Writes each parameter from outside repeatedly and compares with `net` run imperatively."""
    for _ in range(2):
        run(x).wait_to_read()
    kept = []
    for _ in range(2):
        for array in arrays:
            kept.append(route(array, changed(rng, array)))
            got = run(x).asnumpy()
            wanted = judge(net, x)
            np.testing.assert_allclose(got, wanted, rtol=2e-3, atol=2e-3 * np.abs(wanted).max())
    # After the memory is returned, copies are kept again, of the new values.
    kept.clear()
    gc.collect()
    for _ in range(2):
        wanted = judge(net, x)
        np.testing.assert_allclose(run(x).asnumpy(), wanted, rtol=2e-3, atol=2e-3 * np.abs(wanted).max())
    arrays[0][:] = changed(rng, arrays[0])
    wanted = judge(net, x)
    np.testing.assert_allclose(run(x).asnumpy(), wanted, rtol=2e-3, atol=2e-3 * np.abs(wanted).max())


def judge(net: Any, x: Any) -> np.ndarray:
    """Runs the network imperatively on copies of its parameters."""
    twin = net.twin()
    for (_, p), (_, q) in zip(
        sorted(twin._collect_params_with_prefix().items()),
        sorted(net._collect_params_with_prefix().items()),
        strict=True,
    ):
        p.set_data(nd.array(q.data().asnumpy()))
    return twin(x).asnumpy()


def make(name: str, rng: np.random.Generator) -> tuple[Any, Any]:
    build, shape = NETS[name]
    net = build()
    net.initialize(mx.init.Normal(0.1))

    def twin() -> Any:
        made = build()
        made.initialize()
        return made

    object.__setattr__(net, "twin", twin)
    return net, nd.array(rng.normal(size=shape))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", NETS)
def test_a_hybridized_net_sees_outside_writes(name: str, route: str, rng: np.random.Generator) -> None:
    net, x = make(name, rng)
    net.hybridize(static_alloc=len(route) % 2 == 0)
    check_writes(net, net, x, parameters(net), ROUTES[route], rng)


@pytest.mark.parametrize("name", ["dense", "batch norm", "convolution"])
def test_functions_executors_and_loaded_nets_see_it(name: str, tmp_path: Any, rng: np.random.Generator) -> None:
    net, x = make(name, rng)
    net.hybridize()
    net(x)
    net.export(str(tmp_path / "net"))
    loaded = mx.gluon.SymbolBlock.imports(
        str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params")
    )
    names = {p.name: q for p, q in zip(net.collect_params().values(), loaded.collect_params().values(), strict=False)}
    assert len(names) == len(net.collect_params())
    for found in loaded.collect_params().values():
        array = found.data()
        wanted_names = [p for p in net.collect_params().values() if p.name == found.name]
        loaded(x).wait_to_read()
        values = changed(rng, array)
        kept = by_torch(array, values)
        if wanted_names:
            wanted_names[0].set_data(nd.array(values))
        got, wanted = loaded(x).asnumpy(), judge(net, x)
        np.testing.assert_allclose(got, wanted, rtol=2e-3, atol=2e-3 * np.abs(wanted).max())
        del kept


def test_a_function_reads_weights_that_are_written_from_outside(rng: np.random.Generator) -> None:
    x, w = mx.sym.var("x"), mx.shared(rng.normal(size=(256, 256)).astype("float32"))
    function = mx.function([x], mx.sym.FullyConnected(x, w, num_hidden=256, no_bias=True))
    data = nd.array(rng.normal(size=(8, 256)))
    for _ in range(3):
        function(data).wait_to_read()
    view = torch.from_dlpack(function.shared[0])
    view.fill_(0.5)
    np.testing.assert_allclose(
        function(data).asnumpy(),
        data.asnumpy().sum(axis=1, keepdims=True) * 0.5 + np.zeros((8, 256)),
        rtol=1e-3,
        atol=1e-3,
    )
    executor = mx.sym.FullyConnected(x, mx.sym.var("w"), num_hidden=256, no_bias=True).bind(
        mx.cpu(), {"x": data, "w": (weight := nd.ones((256, 256)))}
    )
    for _ in range(3):
        executor.forward()[0].wait_to_read()
    torch.from_dlpack(weight).fill_(0.25)
    np.testing.assert_allclose(
        executor.forward()[0].asnumpy()[:, 0], data.asnumpy().sum(axis=1) * 0.25, rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize("route", ["torch", "in place"])
def test_constants_that_a_trace_has_captured(route: str, rng: np.random.Generator) -> None:
    """Values computed from a constant in advance are computed again after a write to the constant."""
    factor, weight = nd.array([1.0, 2.0]), nd.array(rng.normal(size=(256, 256)))
    block = nn.HybridLambda(lambda F, x: F.broadcast_mul(x, F.square(F.ones((2,)) * factor)))
    layer = nn.HybridLambda(lambda F, x: F.FullyConnected(x, weight, num_hidden=256, no_bias=True))
    data = nd.array(rng.normal(size=(8, 256)))
    for each in (block, layer):
        each.hybridize()
    for step in range(4):
        values = np.array([step, step + 1.0], "float32")
        rows = rng.normal(size=(256, 256)).astype("float32")
        if route == "torch":
            held = by_torch(factor, values), by_torch(weight, rows)
        else:
            factor[:], weight[:] = values, rows
        np.testing.assert_allclose(block(nd.ones((3, 2))).asnumpy(), np.ones((3, 2)) * values**2)
        np.testing.assert_allclose(layer(data).asnumpy(), data.asnumpy() @ rows.T, rtol=1e-3, atol=1e-3)
    if route == "torch":
        del held


def test_reading_by_numpy_costs_the_copies_only_while_it_lasts(rng: np.random.Generator) -> None:
    net, x = make("dense", rng)
    net.hybridize()
    gc.collect()
    net(x).wait_to_read()
    kept = mx._core.memory_statistics(1, 0)["derived"]
    view = np.from_dlpack(net.weight.data())
    net(x).wait_to_read()
    assert mx._core.memory_statistics(1, 0)["derived"] < kept or kept == 0
    del view
    net(x).wait_to_read()
    assert mx._core.memory_statistics(1, 0)["derived"] == kept
