"""Models that MXNet wrote are trained in C++ by every optimizer as in Python: parameters have the same bits."""

from __future__ import annotations

import hybridnet as mx
import pytest
from hybridnet import _core

from .client_programs import ROOT, compile_program, run
from .test_fixtures_from_c import CASES, FIXTURES, MODELS, as_arrays, cases_of

STEPS = 5
OPTIMIZERS = [name for name in _core.optimizer_names() if name != "GroupAdaGrad"]  # for matrices
# Those with gradients of parameters.
TRAINED = [name for name in MODELS if any(set(wanted) - set(inputs) for inputs, _, wanted in cases_of(name))]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("client")
    return compile_program(ROOT / "tests/cpp/clients/train_fixture.cc", folder / "train_fixture")


def trained_in_python(name: str, inputs, heads, optimizer: str):
    """Parameters after the first and the last step, by the names that train_fixture gives them."""
    case = CASES[name]
    net = mx.gluon.SymbolBlock.imports(
        str(FIXTURES / name / case["symbol"]), list(inputs), str(FIXTURES / name / case["params"])
    )
    net.hybridize(static_alloc=True)
    params = net.collect_params()
    trainer = mx.gluon.Trainer(params, optimizer, {"learning_rate": 0.01})
    mx.random.seed(7)
    for step in range(1, STEPS + 1):
        with mx.autograd.record():
            outputs = net(*inputs.values())
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        mx.autograd.backward([outputs[i] for i in heads], list(heads.values()))
        trainer.step(2, ignore_stale_grad=True)
        if step in (1, STEPS):
            yield from ((f"{optimizer}:{step}:{key}", each.data().asnumpy()) for key, each in params.items())


@pytest.mark.parametrize("name", TRAINED)
def test_steps_of_every_optimizer_have_the_bits_of_python(name: str, program, tmp_path) -> None:
    case = CASES[name]
    inputs, heads, _ = next(each for each in cases_of(name) if each[1])
    given = {f"input:{key}": value for key, value in as_arrays(inputs).items()}
    given |= {f"head:{key}": value for key, value in as_arrays(heads).items()}
    mx.nd.save(str(tmp_path / "case.params"), given)
    files = (FIXTURES / name / case["symbol"], FIXTURES / name / case["params"])
    run(program, [*files, tmp_path / "case.params", STEPS, tmp_path / "result.params", *OPTIMIZERS])
    result = {key: array.asnumpy() for key, array in mx.nd.load(str(tmp_path / "result.params")).items()}
    for optimizer in OPTIMIZERS:
        for key, value in trained_in_python(name, as_arrays(inputs), as_arrays(heads), optimizer):
            assert result.pop(key).tobytes() == value.tobytes(), key
    assert not result


def test_fixtures_are_trained() -> None:
    assert len(TRAINED) >= 10
