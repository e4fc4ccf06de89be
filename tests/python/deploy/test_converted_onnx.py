"""Models that `hybridnet convert` makes of ONNX files give the same bits in C++ as in Python, loops included."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import hybridnet as mx
import numpy as np
import pytest

from .client_programs import ROOT, compile_program, run

onnx = pytest.importorskip("onnx")
sys.path.insert(0, str(ROOT / "tests" / "python" / "onnx"))
from onnx_models import helper, model, node  # noqa: E402

RNG = np.random.default_rng(6)


def _value(name: str, dtype: int, shape: Any) -> Any:
    return helper.make_tensor_value_info(name, dtype, shape)


def _layers() -> Any:
    """Convolution, pooling and a dense layer, whose sizes follow from Shape."""
    constants = {
        "w": RNG.normal(size=(4, 2, 3, 3)).astype("float32"),
        "v": RNG.normal(size=(3, 64)).astype("float32"),
        "zero": np.array([0]),
        "rest": np.array([-1]),
    }
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]), node("Shape", "p", "s"),
        node("Gather", "s zero", "n"), node("Concat", "n rest", "t", axis=0), node("Reshape", "p t", "f"),
        node("Gemm", "f v", "y", transB=1),
    ]  # fmt: skip
    return model(nodes, {"x": ("float32", ["batch", 2, 8, 8])}, constants=constants)


def _loop() -> Any:
    """A Loop that runs until the sum of its state is large, with a value of the outer scope."""
    flt, truth, whole = onnx.TensorProto.FLOAT, onnx.TensorProto.BOOL, onnx.TensorProto.INT64
    body = helper.make_graph(
        [
            node("Add", "h x", "h1"), node("ReduceSum", "h1", "total", keepdims=0),
            node("Less", "total limit", "more"),
        ],
        "body",
        [_value("i", whole, []), _value("c", truth, []), _value("h", flt, [3])],
        [_value("more", truth, []), _value("h1", flt, [3])],
    )  # fmt: skip
    constants = {"limit": np.float32(20), "most": np.array(50), "go": np.array(True)}
    return model([node("Loop", "most go x", "y", body=body)], {"x": ("float32", [3])}, constants=constants)


CASES = {
    "layers": (_layers, [(2, 2, 8, 8), (5, 2, 8, 8)]),
    "loop": (_loop, [(3,)]),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("client")
    return compile_program(ROOT / "tests/cpp/clients/run_model.cc", folder / "run_model")


@pytest.mark.parametrize("name", CASES)
def test_has_the_bits_of_python(name: str, program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    make, shapes = CASES[name]
    onnx.save(make(), tmp_path / "net.onnx")
    subprocess.run(
        [sys.executable, "-m", "hybridnet", "convert", tmp_path / "net.onnx", tmp_path / "out"],
        check=True, capture_output=True, cwd=ROOT / "python",
    )  # fmt: skip
    files = [tmp_path / "out-symbol.json", tmp_path / "out-0000.params"]
    net = mx.gluon.SymbolBlock.imports(str(files[0]), ["x"], str(files[1]))
    net.hybridize(static_alloc=True)
    for shape in shapes:
        x = mx.nd.array(np.abs(RNG.normal(size=shape)).astype("float32"))
        mx.nd.save(str(tmp_path / "case.params"), {"input:x": x})
        run(program, [*files, tmp_path / "case.params", tmp_path / "result.params"])
        got = mx.nd.load(str(tmp_path / "result.params"))["output:0"].asnumpy()
        wanted = net(x).asnumpy()
        assert got.shape == wanted.shape
        assert got.tobytes() == wanted.tobytes()
