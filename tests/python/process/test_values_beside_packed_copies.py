"""Parameters without a file that hybridized predictions read only as packed copies take memory only once."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet.gluon import nn

from process.parameter_writes import WRITES, write_parameters

UNITS = 1024  # a weight takes 4 MiB


def some_rows(seed: int = 0) -> mx.nd.NDArray:
    return mx.nd.array(np.random.RandomState(seed).uniform(-1, 1, (4, UNITS)).astype("float32"))


class Predicted:
    """A network after a hybridized prediction, and its values and results before."""

    def __init__(self) -> None:
        self.net = nn.HybridSequential(prefix="net_")
        with self.net.name_scope():
            self.net.add(*(nn.Dense(UNITS, in_units=UNITS) for _ in range(2)))
        self.net.initialize(mx.init.Xavier())
        self.values = [parameter.data().asnumpy() for parameter in self.parameters()]
        self.imperative = self.net(some_rows()).asnumpy()
        self.net.hybridize()
        self.result = self.net(some_rows()).asnumpy()

    def parameters(self) -> list[gluon.Parameter]:
        return list(self.net.collect_params().values())

    def check(self) -> None:
        for parameter, value in zip(self.parameters(), self.values, strict=True):
            np.testing.assert_array_equal(parameter.data().asnumpy(), value)
        np.testing.assert_array_equal(self.net(some_rows()).asnumpy(), self.result)


@pytest.fixture
def predicted() -> Predicted:
    return Predicted()


def test_predictions_and_values_are_those_of_the_imperative_network(predicted: Predicted) -> None:
    np.testing.assert_allclose(predicted.result, predicted.imperative, rtol=1e-4, atol=1e-5)
    predicted.check()
    predicted.check()


READERS: dict[str, Callable[[mx.nd.NDArray], np.ndarray]] = {
    "operator": lambda weight: (weight + 0).asnumpy(),
    "slice": lambda weight: np.concatenate([weight[:5].asnumpy(), weight[5:].asnumpy()]),
    "row": lambda weight: np.stack([weight[i].asnumpy() for i in range(UNITS)]),
    "copy": lambda weight: weight.copy().asnumpy(),
    "copyto": lambda weight: weight.copyto(mx.nd.zeros((UNITS, UNITS))).asnumpy(),
    "reshape": lambda weight: weight.reshape((-1,)).asnumpy().reshape(UNITS, UNITS),
    "dlpack": lambda weight: np.from_dlpack(weight).copy(),
    "as_in_context": lambda weight: weight.as_in_context(mx.cpu()).asnumpy(),
    "detach": lambda weight: weight.detach().asnumpy(),
    "astype": lambda weight: weight.astype("float64").asnumpy().astype("float32"),
    "out": lambda weight: mx.nd.identity(weight, out=mx.nd.zeros((UNITS, UNITS))).asnumpy(),
}


@pytest.mark.parametrize("reader", READERS)
def test_everybody_reads_the_values_that_were_set(predicted: Predicted, reader: str) -> None:
    for parameter, value in list(zip(predicted.parameters(), predicted.values, strict=True))[::2]:
        np.testing.assert_array_equal(READERS[reader](parameter.data()), value)
    predicted.check()


def test_files_have_the_values_that_were_set(predicted: Predicted, tmp_path: Path) -> None:
    predicted.net.save_parameters(str(tmp_path / "net.params"))
    predicted.net.export(str(tmp_path / "net"))
    for path, names in (("net.params", None), ("net-0000.params", "arg:")):
        loaded = mx.nd.load(str(tmp_path / path))
        for number, (parameter, value) in enumerate(zip(predicted.parameters(), predicted.values, strict=True)):
            key = f"arg:{parameter.name}" if names else f"{number // 2}.{('weight', 'bias')[number % 2]}"
            np.testing.assert_array_equal(loaded[key].asnumpy(), value)
    predicted.check()


@pytest.mark.parametrize("how", WRITES)
def test_a_write_is_seen_by_the_next_prediction(predicted: Predicted, how: str) -> None:
    weight, values = predicted.net[0].weight, predicted.values
    write_parameters(how, predicted.net, values, some_rows(3))
    np.testing.assert_allclose(weight.data().asnumpy(), values[0], rtol=1e-5, atol=1e-6)
    result = predicted.net(some_rows()).asnumpy()
    predicted.net.hybridize(active=False)
    np.testing.assert_allclose(result, predicted.net(some_rows()).asnumpy(), rtol=1e-4, atol=1e-3)


def test_training_after_a_prediction_is_that_of_a_network_that_never_predicted(rng: np.random.Generator) -> None:
    def trained(predicts: bool) -> list[np.ndarray]:
        mx.random.seed(5)
        one = Predicted().net
        if not predicts:
            for parameter in one.collect_params().values():
                parameter.data().asnumpy()
        trainer = gluon.Trainer(one.collect_params(), "adam")
        for step in range(3):
            with mx.autograd.record():
                loss = one(some_rows(step)).square().mean()
            loss.backward()
            trainer.step(1)
            if predicts:
                one(some_rows()).wait_to_read()
        return [parameter.data().asnumpy() for parameter in one.collect_params().values()]

    for with_it, without in zip(trained(True), trained(False), strict=True):
        np.testing.assert_array_equal(with_it, without)


def test_memory_that_was_shared_before_keeps_its_values() -> None:
    net = nn.Dense(UNITS, in_units=UNITS)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    view = np.from_dlpack(net.weight.data())
    before = view.copy()
    net(some_rows()).wait_to_read()
    np.testing.assert_array_equal(view, before)


def test_a_parameter_outlives_its_network(predicted: Predicted) -> None:
    weight, value = predicted.net[0].weight.data(), predicted.values[0]
    predicted.net = None
    gc.collect()
    np.testing.assert_array_equal(weight.asnumpy(), value)


def test_threads_read_the_values_while_others_predict() -> None:
    for _ in range(5):
        one = Predicted()
        wrong: list[str] = []

        def predict(one: Predicted = one, wrong: list[str] = wrong) -> None:
            for _ in range(5):
                if not (one.net(some_rows()).asnumpy() == one.result).all():
                    wrong.append("prediction")

        def read(one: Predicted = one, wrong: list[str] = wrong) -> None:
            for parameter, value in zip(one.parameters(), one.values, strict=True):
                if not (parameter.data().asnumpy() == value).all():
                    wrong.append(parameter.name)

        threads = [threading.Thread(target=target) for target in (predict, read, predict, read)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


@pytest.mark.parametrize("kind", ["lstm", "bidirectional", "gru", "rnn", "convolution"])
def test_layers_of_other_kinds_keep_their_values(kind: str) -> None:
    shape = (4, 3, 256)
    if kind == "convolution":
        layer, shape = nn.Conv2D(256, 3, padding=1, in_channels=128), (1, 128, 14, 14)
    elif kind == "rnn":
        layer = gluon.rnn.RNN(256, input_size=256)
    elif kind == "gru":
        layer = gluon.rnn.GRU(256, input_size=256, num_layers=2)
    else:
        layer = gluon.rnn.LSTM(256, input_size=256, num_layers=2, bidirectional=kind == "bidirectional")
    layer.initialize(mx.init.Xavier())
    parameters = layer.collect_params().values()
    values = [parameter.data().asnumpy() for parameter in parameters]
    x = mx.nd.array(np.random.RandomState(1).uniform(-1, 1, shape).astype("float32"))
    imperative = layer(x).asnumpy()
    layer.hybridize()
    result = layer(x).asnumpy()
    np.testing.assert_allclose(result, imperative, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(layer(x).asnumpy(), result)
    for parameter, value in zip(parameters, values, strict=True):
        np.testing.assert_array_equal(parameter.data().asnumpy(), value)
    np.testing.assert_array_equal(layer(x).asnumpy(), result)
    first = next(iter(parameters))
    layer(x).wait_to_read()
    first.set_data(first.data() * 2)
    changed = layer(x).asnumpy()
    layer.hybridize(active=False)
    np.testing.assert_allclose(changed, layer(x).asnumpy(), rtol=1e-4, atol=1e-4)


# ------------------------------------------------------------------------------------------------------- resident size
PRELUDE = """
    import os
    import hybridnet as mx
    from hybridnet.gluon import nn

    UNITS, LAYERS = 2048, 6  # 16 MiB each: 96 MiB

    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) / 256

    def network(layers=LAYERS, units=UNITS):
        net = nn.HybridSequential()
        net.add(*(nn.Dense(units, in_units=units) for _ in range(layers)))
        net.initialize(mx.init.Xavier())
        net.hybridize()
        return net

    network(1, 8)(mx.nd.ones((4, 8))).wait_to_read()
    x = mx.nd.ones((4, UNITS))
    before = resident()
    net = network()
"""


def resident_sizes(body: str, **env: str) -> list[float]:
    code = textwrap.dedent(PRELUDE) + textwrap.dedent(body)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **env},
    )
    assert done.returncode == 0, done.stderr
    return [float(word) for word in done.stdout.split()]


def test_parameters_take_memory_once_after_a_prediction() -> None:
    (grown,) = resident_sizes("net(x).asnumpy(); print(resident() - before)")
    assert grown < 96 * 1.15 + 8


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_parameters_of_recurrent_layers_take_memory_once(kind: str) -> None:
    body = f"""
        layer = mx.gluon.rnn.{kind}(1024, input_size=1024, num_layers=3)
        layer.initialize(mx.init.Xavier())
        layer.hybridize()
        mx.nd.waitall()
        before = resident()
        layer(mx.nd.ones((4, 2, 1024))).asnumpy()
        mx.cpu().empty_cache()
        print(resident() - before)
    """
    (grown,) = resident_sizes(body)
    matrices = {"LSTM": 96, "GRU": 72}[kind]
    assert grown < matrices * 0.3 + 10, "the packed copies took the place of the values"


def test_parameters_that_were_set_and_trained_take_memory_once() -> None:
    body = """
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
        for parameter in net.collect_params().values():
            parameter.set_data(mx.nd.ones(parameter.shape) * 0.01)
        with mx.autograd.record():
            loss = net(x).sum()
        loss.backward()
        trainer.step(1)
        mx.nd.waitall()
        mx.cpu().empty_cache()
        held = resident()
        net(x).asnumpy()
        mx.cpu().empty_cache()
        print(resident() - held)
    """
    (grown,) = resident_sizes(body)
    assert grown < 16, "the packed copies took the place of the values"


def test_without_room_for_packed_copies_there_are_the_values_alone() -> None:
    (grown,) = resident_sizes(
        "net(x).asnumpy(); mx.cpu().empty_cache(); print(resident() - before)", HYBRIDNET_PACKED_LIMIT_MB="0"
    )
    assert grown < 96 * 1.15 + 24


def test_a_child_process_has_the_values() -> None:
    body = """
        import numpy as np
        held = [parameter.data().asnumpy() for parameter in net.collect_params().values()]
        result = net(x).asnumpy()
        child = os.fork()
        same = all((p.data().asnumpy() == v).all() for p, v in zip(net.collect_params().values(), held))
        same = same and (net(x).asnumpy() == result).all()
        if child == 0:
            os._exit(0 if same else 1)
        print(int(same), os.waitpid(child, 0)[1])
    """
    assert resident_sizes(body) == [1, 0]
