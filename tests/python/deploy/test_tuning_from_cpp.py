"""An exported LSTM, a loop, is tuned from C++: losses and tuned parameters have the bits of Python's Trainer."""

from __future__ import annotations

import hybridnet as mx
import numpy as np

from .client_programs import ROOT, compile_program, run
from .test_sessions_and_threads import LSTM, export

STEPS, RATE, MOMENTUM = 100, 0.25, 0.9


def test_a_hundred_steps_in_cpp_equal_those_in_python_to_the_bit(tmp_path) -> None:
    rng = np.random.default_rng(11)
    inputs = {
        name: mx.nd.array(rng.normal(size=shape).astype("float32"))
        for name, shape in {"data0": (6, 3, 8), "data1": (3, 8), "data2": (3, 8)}.items()
    }
    target = mx.nd.array(rng.uniform(-0.5, 0.5, size=(6, 3, 8)).astype("float32"))
    symbol, params = export(LSTM(8), tmp_path, *inputs.values())

    net = mx.gluon.SymbolBlock.imports(symbol, list(inputs), params)
    net.hybridize(static_alloc=True)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": RATE, "momentum": MOMENTUM})
    losses = []
    for _ in range(STEPS):
        with mx.autograd.record():
            loss = mx.nd.mean(mx.nd.square(net(*inputs.values()) - target))
        loss.backward()
        trainer.step(1)
        losses.append(loss.asnumpy().astype("float32").view("uint32").item())
    assert np.uint32(losses[-1]).view("float32") < 0.5 * np.uint32(losses[0]).view("float32")

    case = {f"input:{name}": array for name, array in inputs.items()} | {"target": target}
    mx.nd.save(str(tmp_path / "case.params"), case)
    program = compile_program(ROOT / "tests/cpp/clients/tune.cc", tmp_path / "tune")
    saved = (tmp_path / "tuned-symbol.json", tmp_path / "tuned-0000.params")
    printed = run(program, [symbol, params, tmp_path / "case.params", STEPS, RATE, MOMENTUM, *saved])
    assert [int(line, 16) for line in printed.split()] == losses

    tuned = mx.nd.load(str(saved[1]))
    assert {name.partition(":")[2] for name in tuned} == set(net.collect_params())
    for name, parameter in net.collect_params().items():
        assert tuned[f"arg:{name}"].asnumpy().tobytes() == parameter.data().asnumpy().tobytes(), name
