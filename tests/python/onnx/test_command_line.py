"""The command hybridnet takes ONNX files where it takes exported models, and converts both ways."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet._command_line import WRONG_INPUT, main

onnx = pytest.importorskip("onnx")

from onnx_models import model, node  # noqa: E402

RNG = np.random.default_rng(2)
WEIGHT = RNG.normal(size=(4, 3)).astype("float32")


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "net.onnx"
    proto = model(
        [node("MatMul", "x w", "h"), node("Tanh", "h", "y")], {"x": ("float32", ["batch", 4])}, constants={"w": WEIGHT}
    )
    onnx.save(proto, path)
    return path


def _ask(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, Any]:
    code = main([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_convert_writes_a_model_that_blocks_load(capsys: Any, file: pathlib.Path, tmp_path: pathlib.Path) -> None:
    code, facts = _ask(capsys, "convert", file, tmp_path / "out")
    assert code == 0
    net = gluon.SymbolBlock.imports(facts["graph"], ["x"], facts["parameters"])
    x = RNG.normal(size=(5, 4)).astype("float32")
    np.testing.assert_allclose(net(mx.nd.array(x)).asnumpy(), np.tanh(x @ WEIGHT), atol=1e-6)
    assert main(["convert", str(file), str(tmp_path / "out")]) == WRONG_INPUT
    assert "--force" in capsys.readouterr().err


def test_convert_writes_onnx_again(capsys: Any, file: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert _ask(capsys, "convert", file, tmp_path / "out")[0] == 0
    target = tmp_path / "again.onnx"
    code, facts = _ask(capsys, "convert", tmp_path / "out", target, "--shape", "x=2,4")
    assert code == 0
    assert facts["file"] == str(target)
    onnx.checker.check_model(onnx.load(target), full_check=True)
    net = mx.onnx.import_to_gluon(target)
    x = RNG.normal(size=(5, 4)).astype("float32")
    np.testing.assert_allclose(net(mx.nd.array(x)).asnumpy(), np.tanh(x @ WEIGHT), atol=1e-6)
    code, facts = _ask(capsys, "diff", file, target)
    assert code in (0, 1)
    assert facts


def test_other_commands_take_onnx_files(capsys: Any, file: pathlib.Path, tmp_path: pathlib.Path) -> None:
    code, facts = _ask(capsys, "inspect", file)
    assert code == 0
    assert facts["parameters"] == WEIGHT.size
    x = RNG.normal(size=(5, 4)).astype("float32")
    np.save(tmp_path / "x.npy", x)
    assert main(["run", str(file), "--input", str(tmp_path / "x.npy"), "--output", str(tmp_path / "y.npy")]) == 0
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), np.tanh(x @ WEIGHT), atol=1e-6)
    capsys.readouterr()
    code, _ = _ask(capsys, "verify", file, "--shape", "x=2,4")
    assert code == 0
    code, facts = _ask(capsys, "bench", file, "--shape", "x=2,4", "--seconds", "0.1")
    assert code == 0
    assert facts


def test_a_file_that_is_no_model_is_refused(capsys: Any, tmp_path: pathlib.Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"no model at all")
    assert main(["inspect", str(tmp_path / "bad.onnx")]) == WRONG_INPUT
    assert "not an ONNX model" in capsys.readouterr().err


def test_converted_models_keep_the_shapes_and_open_sizes_of_the_file(tmp_path, capsys) -> None:
    net = mx.gluon.nn.Dense(3, in_units=4)
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((2, 4)))
    file = str(tmp_path / "m.onnx")
    mx.onnx.export_model(net, onnx_file_path=file)
    assert main(["verify", file]) == 0  # no --shape
    assert main(["convert", file, str(tmp_path / "m")]) == 0
    assert main(["inspect", str(tmp_path / "m")]) == 0
    shown = capsys.readouterr()
    assert "float32(batch, 4)" in shown.out
    assert "free sizes: batch = 1" in shown.err
