"""Checksums of exported models detect every change of either file, and other readers ignore them."""

from __future__ import annotations

import json
import pathlib

import hybridnet as mx
import pytest
from hybridnet import gluon
from hybridnet._command_line import WRONG_INPUT, main


@pytest.fixture
def model(tmp_path: pathlib.Path) -> tuple[str, str]:
    net = gluon.nn.HybridSequential(prefix="né_")
    net.add(gluon.nn.Dense(3, in_units=4), gluon.nn.BatchNorm(in_channels=3))
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((2, 4)))
    return net.export(str(tmp_path / "m"), checksum=True)


def _load(symbol_file: str, params_file: str | None, **how: bool) -> gluon.SymbolBlock:
    return gluon.SymbolBlock.imports(symbol_file, ["data"], params_file, **how)


def test_files_as_exported_are_right(model) -> None:
    x = mx.nd.ones((2, 4))
    expected = _load(*model)(x).asnumpy()
    assert (_load(*model, verify=True)(x).asnumpy() == expected).all()
    assert main(["verify", model[0], "--shape", "2,4"]) == 0
    assert mx.model.load_checkpoint(model[0].removesuffix("-symbol.json"), 0)[1]


def test_a_change_of_any_byte_of_the_parameters_is_found(model) -> None:
    path = pathlib.Path(model[1])
    content = path.read_bytes()
    for position in range(0, len(content), 37):
        path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        with pytest.raises(mx.errors.FormatError, match="is not the file that was exported"):
            _load(*model, verify=True)
    assert main(["verify", model[0], "--shape", "2,4"]) == WRONG_INPUT


def test_a_change_of_the_graph_is_found_and_one_of_its_spaces_is_none(model) -> None:
    path = pathlib.Path(model[0])
    graph = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(graph), "utf-8")
    _load(*model, verify=True)
    next(node for node in graph["nodes"] if node["op"] == "FullyConnected")["attrs"]["no_bias"] = "True"
    path.write_text(json.dumps(graph), "utf-8")
    with pytest.raises(mx.errors.FormatError, match="is not the file that was exported"):
        _load(*model, verify=True)


def test_the_graph_alone_is_verified_without_parameters(model) -> None:
    pathlib.Path(model[1]).unlink()
    _load(model[0], None, verify=True)


def test_a_model_without_checksums_is_refused_when_they_are_wanted(model, tmp_path) -> None:
    mx.sym.load(model[0]).save(str(tmp_path / "plain-symbol.json"))
    with pytest.raises(mx.errors.FormatError, match=r"holds no checksums\.\n.*checksum=True"):
        _load(str(tmp_path / "plain-symbol.json"), None, verify=True)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"attrs": 3}', '{"attrs": {"hybridnet_sha256_graph": 1}}'])
def test_a_broken_file_is_refused(model, content) -> None:
    pathlib.Path(model[0]).write_text(content)
    with pytest.raises(mx.errors.FormatError):
        _load(*model, verify=True)
