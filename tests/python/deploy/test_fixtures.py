"""Models that MXNet wrote give the same bits in C, C++, Java and Python: outputs and gradients."""

from __future__ import annotations

import json
import pathlib

import hybridnet as mx
import numpy as np
import pytest

from .client_programs import ROOT, compile_program, run
from .java_programs import java

FIXTURES = ROOT / "tests" / "fixtures"
CASES = {path.parent.name: json.loads(path.read_text()) for path in sorted(FIXTURES.glob("*/case.json"))}
MODELS = [name for name, case in CASES.items() if case["kind"] == "model"]


@pytest.fixture(scope="module", params=["c", "cc"])
def program(request, tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("client")
    return compile_program(ROOT / f"tests/cpp/clients/run_model.{request.param}", folder / "run_model")


def results_in_python(name: str, arrays: dict[str, mx.nd.NDArray], heads: dict[int, mx.nd.NDArray], wanted: list[str]):
    """Returns outputs and gradients under the names that run_model uses."""
    case = CASES[name]
    net = mx.gluon.SymbolBlock.imports(
        str(FIXTURES / name / case["symbol"]), list(arrays), str(FIXTURES / name / case["params"])
    )
    net.hybridize(static_alloc=True)
    for key in set(wanted) & set(arrays):
        arrays[key].attach_grad()
    if heads:
        with mx.autograd.record():
            outputs = net(*arrays.values())
            outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        mx.autograd.backward([outputs[i] for i in heads], list(heads.values()))
    else:
        outputs = net(*arrays.values())
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    found = {f"output:{i}": output for i, output in enumerate(outputs)}
    parameters = net.collect_params()
    for key in wanted:
        found[f"grad:{key}"] = arrays[key].grad if key in arrays else parameters[key].grad()
    return found


def cases_of(name: str):
    """Yields (inputs, heads, names whose gradient is compared) for each stored run."""
    case = CASES[name]
    stored = np.load(FIXTURES / name / "inputs.npz")
    for run_name in case["runs"]:
        inputs = {spec["name"]: stored[f"{run_name}/{spec['name']}"] for spec in case["inputs"]}
        yield inputs, {}, []
        rule = case.get("grads", {"not_recorded": 1})
        if "not_recorded" in rule or run_name not in rule["runs"] or rule["mode"] != "train":
            continue
        grads = np.load(FIXTURES / name / "grads.npz")
        heads = {int(k.split("/head:")[1]): grads[k] for k in grads.files if k.startswith(f"{run_name}/head:")}
        yield inputs, heads, sorted(k.split("/grad:")[1] for k in grads.files if k.startswith(f"{run_name}/grad:"))


def as_arrays(values: dict) -> dict:
    return {key: mx.nd.array(value, dtype=value.dtype) for key, value in values.items()}


def write_case(name: str, inputs, heads, wanted, folder: pathlib.Path) -> list[pathlib.Path]:
    """Writes a case and returns the arguments of the programs: files of the model, the case, and the result."""
    given = {f"input:{key}": value for key, value in as_arrays(inputs).items()}
    given |= {f"head:{key}": value for key, value in as_arrays(heads).items()}
    given |= {f"want:{key}": mx.nd.zeros((1,)) for key in wanted}
    mx.nd.save(str(folder / "case.params"), given)
    files = [FIXTURES / name / CASES[name][key] for key in ("symbol", "params")]
    return [*files, folder / "case.params", folder / "result.params"]


def check(name: str, inputs, heads, wanted, path: pathlib.Path) -> None:
    result = mx.nd.load(str(path))
    expected = results_in_python(name, as_arrays(inputs), as_arrays(heads), wanted)
    assert set(result) == set(expected)
    for key, array in expected.items():
        a, b = result[key].asnumpy(), array.asnumpy()
        assert a.dtype == b.dtype and a.shape == b.shape, key
        assert a.tobytes() == b.tobytes(), f"{key} differs by {np.max(np.abs(a.astype(float) - b.astype(float)))}"


@pytest.mark.parametrize("name", MODELS)
def test_outputs_and_gradients_have_the_bits_of_python(name: str, program: pathlib.Path, tmp_path) -> None:
    for case in cases_of(name):
        files = write_case(name, *case, tmp_path)
        run(program, files)
        check(name, *case, files[-1])


@pytest.fixture(scope="module")
def results_of_java(jar, tmp_path_factory) -> dict[str, list[pathlib.Path]]:
    """The result files of each fixture, one per case, all written by one Java process."""
    folder = tmp_path_factory.mktemp("java")
    lines, results = [], {name: [] for name in MODELS}
    for name in MODELS:
        for case in cases_of(name):
            place = folder / str(len(lines))
            place.mkdir()
            files = write_case(name, *case, place)
            lines.append("\t".join(map(str, ["run", *files])))
            results[name].append(files[-1])
    (folder / "cases").write_text("\n".join(lines), "utf-8")
    java(jar, ROOT / "java/src/test/clients/RunFixtures.java", folder / "cases")
    return results


@pytest.mark.parametrize("name", MODELS)
def test_outputs_and_gradients_in_java_have_the_bits_of_python(name: str, results_of_java) -> None:
    for case, result in zip(cases_of(name), results_of_java[name], strict=True):
        check(name, *case, result)


@pytest.fixture(scope="module", params=["c", "cc"])
def copier(request, tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("copier")
    return compile_program(ROOT / f"tests/cpp/clients/copy_arrays.{request.param}", folder / "copy_arrays")


@pytest.mark.parametrize(
    "path", sorted(FIXTURES.glob("params_*/*.params")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_parameter_files_are_read_and_written_with_the_bits_of_python(path, copier, tmp_path) -> None:
    run(copier, [path, tmp_path / "copy.params"])
    found, expected = mx.nd.load(str(tmp_path / "copy.params")), mx.nd.load(str(path))
    assert isinstance(found, dict) == isinstance(expected, dict) or not expected
    pairs = (
        [(found[key], expected[key]) for key in expected]
        if isinstance(expected, dict)
        else zip(found, expected, strict=True)
    )
    assert len(found) == len(expected)
    for a, b in pairs:
        assert (a.stype, a.dtype, a.shape) == (b.stype, b.dtype, b.shape)
        assert a.asnumpy().tobytes() == b.asnumpy().tobytes()
