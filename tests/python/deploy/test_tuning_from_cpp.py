"""An exported LSTM loop is fine-tuned from C++: losses, parameters and states have the bits of Python's Trainer."""

from __future__ import annotations

import pathlib

import hybridnet as mx
import numpy as np
import pytest

from .client_programs import ROOT, compile_program, run
from .test_sessions_and_threads import LSTM, export

STEPS = 100
OPTIMIZERS = {
    "sgd": {"learning_rate": 0.25, "momentum": 0.9},
    "adam": {"learning_rate": 0.01, "wd": 0.001, "clip_gradient": 0.2},
    "nadam": {"learning_rate": 0.01},
    "lamb": {"learning_rate": 0.01},
    "rmsprop": {"learning_rate": 0.003, "centered": True},
}


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> pathlib.Path:
    return compile_program(ROOT / "tests/cpp/clients/tune.cc", tmp_path_factory.mktemp("client") / "tune")


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_hundred_steps_in_cpp_equal_those_in_python_to_the_bit(optimizer: str, program, tmp_path) -> None:
    rng = np.random.default_rng(11)
    inputs = {
        name: mx.nd.array(rng.normal(size=shape).astype("float32"))
        for name, shape in {"data0": (6, 3, 8), "data1": (3, 8), "data2": (3, 8)}.items()
    }
    target = mx.nd.array(rng.uniform(-0.5, 0.5, size=(6, 3, 8)).astype("float32"))
    symbol, params = export(LSTM(8), tmp_path, *inputs.values())

    net = mx.gluon.SymbolBlock.imports(symbol, list(inputs), params)
    net.hybridize(static_alloc=True)
    settings = OPTIMIZERS[optimizer]
    trainer = mx.gluon.Trainer(net.collect_params(), optimizer, dict(settings))
    losses = []
    for _ in range(STEPS):
        with mx.autograd.record():
            loss = mx.nd.mean(mx.nd.square(net(*inputs.values()) - target))
        loss.backward()
        trainer.step(1)
        losses.append(loss.asnumpy().astype("float32").view("uint32").item())
    assert np.uint32(losses[-1]).view("float32") < 0.8 * np.uint32(losses[0]).view("float32")

    case = {f"input:{name}": array for name, array in inputs.items()} | {"target": target}
    mx.nd.save(str(tmp_path / "case.params"), case)
    saved = (tmp_path / "tuned-symbol.json", tmp_path / "tuned-0000.params", tmp_path / "tuned.states")
    words = [word for setting in settings.items() for word in setting]
    printed = run(program, [symbol, params, tmp_path / "case.params", STEPS, *saved, optimizer, *words])
    assert [int(line, 16) for line in printed.split()] == losses

    tuned = mx.nd.load(str(saved[1]))
    assert {name.partition(":")[2] for name in tuned} == set(net.collect_params())
    for name, parameter in net.collect_params().items():
        assert tuned[f"arg:{name}"].asnumpy().tobytes() == parameter.data().asnumpy().tobytes(), name

    # The states that C++ saved equal those of Python.
    own = {index: _bytes(state) for index, state in trainer._updaters[0].states.items()}
    trainer.load_states(str(saved[2]))
    assert {index: _bytes(state) for index, state in trainer._updaters[0].states.items()} == own
    assert trainer.optimizer.num_update == STEPS


def _bytes(state):
    if isinstance(state, tuple):
        return tuple(map(_bytes, state))
    return None if state is None else state.asnumpy().tobytes()
