"""Models that MXNet wrote are trained in C, C++ and Java by every optimizer, with the bits of Python."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core

from .client_programs import ROOT, compile_program, run
from .java_programs import java
from .test_fixtures import CASES, FIXTURES, MODELS, as_arrays, cases_of

STEPS = 5
# The models whose cases have gradients of parameters.
TRAINED = [name for name in MODELS if any(set(wanted) - set(inputs) for inputs, _, wanted in cases_of(name))]


def imported(name: str, inputs: dict) -> mx.gluon.SymbolBlock:
    case = CASES[name]
    files = [str(FIXTURES / name / case[key]) for key in ("symbol", "params")]
    return mx.gluon.SymbolBlock.imports(files[0], list(inputs), files[1])


def optimizers(name: str, inputs: dict) -> list[str]:
    has_matrices = any(len(each.shape) == 2 for each in imported(name, inputs).collect_params().values())
    return [each for each in _core.optimizer_names() if has_matrices or each != "GroupAdaGrad"]


def trained_in_python(name: str, inputs, heads, optimizer: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the parameters after the first and the last step under the names that train_fixture uses."""
    net = imported(name, inputs)
    net.hybridize(static_alloc=True)
    params = net.collect_params()
    # GroupAdaGrad updates matrices only.
    chosen = {key: each for key, each in params.items() if optimizer != "GroupAdaGrad" or len(each.shape) == 2}
    trainer = mx.gluon.Trainer(chosen, optimizer, {"learning_rate": 0.01})
    mx.random.seed(7)
    for step in range(1, STEPS + 1):
        with mx.autograd.record():
            outputs = net(*inputs.values())
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        mx.autograd.backward([outputs[i] for i in heads], list(heads.values()))
        trainer.step(2, ignore_stale_grad=True)
        if step in (1, STEPS):
            yield from ((f"{optimizer}:{step}:{key}", each.data().asnumpy()) for key, each in params.items())


def command_of(name: str, folder: pathlib.Path) -> list[object]:
    """Writes a case and returns the arguments of the programs, which write folder/result.params."""
    inputs, heads, _ = next(each for each in cases_of(name) if each[1])
    given = {f"input:{key}": value for key, value in as_arrays(inputs).items()}
    given |= {f"head:{key}": value for key, value in as_arrays(heads).items()}
    mx.nd.save(str(folder / "case.params"), given)
    files = [FIXTURES / name / CASES[name][key] for key in ("symbol", "params")]
    return [*files, folder / "case.params", STEPS, folder / "result.params", *optimizers(name, inputs)]


def check(name: str, result: pathlib.Path) -> None:
    inputs, heads, _ = next(each for each in cases_of(name) if each[1])
    found = {key: array.asnumpy() for key, array in mx.nd.load(str(result)).items()}
    for optimizer in optimizers(name, inputs):
        for key, value in trained_in_python(name, as_arrays(inputs), as_arrays(heads), optimizer):
            assert found.pop(key).tobytes() == value.tobytes(), key
    assert not found


@pytest.fixture(scope="module", params=["c", "cc"])
def program(request, tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("client")
    return compile_program(ROOT / f"tests/cpp/clients/train_fixture.{request.param}", folder / "train_fixture")


@pytest.mark.parametrize("name", TRAINED)
def test_steps_of_every_optimizer_have_the_bits_of_python(name: str, program, tmp_path) -> None:
    run(program, command_of(name, tmp_path))
    check(name, tmp_path / "result.params")


@pytest.fixture(scope="module")
def trained_in_java(jar, tmp_path_factory) -> pathlib.Path:
    """A folder with the results of each fixture, all written by one Java process."""
    folder = tmp_path_factory.mktemp("java")
    lines = []
    for name in TRAINED:
        (folder / name).mkdir()
        lines.append("\t".join(map(str, ["train", *command_of(name, folder / name)])))
    (folder / "cases").write_text("\n".join(lines), "utf-8")
    java(jar, ROOT / "java/src/test/clients/RunFixtures.java", folder / "cases")
    return folder


@pytest.mark.parametrize("name", TRAINED)
def test_steps_in_java_have_the_bits_of_python(name: str, trained_in_java) -> None:
    check(name, trained_in_java / name / "result.params")


def test_fixtures_are_trained() -> None:
    assert len(TRAINED) >= 10
