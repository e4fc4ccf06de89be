"""Commands take a model as PREFIX, as either file, or as both, and help if a file is missing or of another model."""

from __future__ import annotations

import pathlib
import shutil

import hybridnet as mx
import pytest
from hybridnet import gluon
from hybridnet._command_line import WRONG_INPUT, main


def _export(prefix: pathlib.Path, units: int, *epochs: int) -> None:
    net = gluon.nn.Dense(units, in_units=4, prefix="d_")
    net.initialize(mx.init.Normal(1))
    net.hybridize()
    net(mx.nd.ones((2, 4)))
    for epoch in epochs:
        net.export(str(prefix), epoch=epoch)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> pathlib.Path:
    """A folder with the models m (epochs 0 and 7) and n."""
    monkeypatch.chdir(tmp_path)
    _export(tmp_path / "m", 3, 0, 7)
    _export(tmp_path / "n", 5, 0)
    return tmp_path


FORMS = [
    ["m"],
    ["m-symbol.json"],
    ["m-0007.params"],
    ["m-symbol.json", "m-0007.params"],
    ["m-0007.params", "m-symbol.json"],
    ["m", "--epoch", "7"],
    ["m", "--params", "m-0007.params"],
]


@pytest.mark.parametrize("words", FORMS, ids=" ".join)
def test_every_form_names_the_same_two_files(words, capsys) -> None:
    assert main(["inspect", *words]) == 0
    assert capsys.readouterr().out.startswith("m-symbol.json with m-0007.params\n")


@pytest.mark.parametrize("command", [["run", "--input", "x.npy"], ["verify"], ["bench", "--seconds", "0.05"]])
def test_commands_take_both_files_in_any_order(command, capsys, folder) -> None:
    mx.nd.save("x.npy", mx.nd.ones((2, 4)))
    assert main([command[0], "m-0000.params", "m-symbol.json", *command[1:]]) == 0


def test_an_earlier_epoch_can_be_chosen(capsys) -> None:
    assert main(["inspect", "m", "--epoch", "0"]) == 0
    assert "m-0000.params" in capsys.readouterr().out


def test_files_of_other_names_are_given_together(capsys) -> None:
    shutil.copy("m-symbol.json", "graph.json")
    shutil.copy("m-0000.params", "weights.params")
    assert main(["inspect", "weights.params", "graph.json"]) == 0
    assert main(["inspect", "weights.params"]) == WRONG_INPUT
    assert "there is no 'weights-symbol.json'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (["m", "m-0000.params"], True),
        (["m-symbol.json", "m-0007.params", "m", "--epoch"], None),
        (["m-0007.params", "m-symbol.json", "k-symbol.json", "k-0007.params"], True),
        (["m", "n"], False),
        (["m", "n-symbol.json", "n-0000.params"], False),
        (["n-0000.params", "n-symbol.json", "m"], False),
        (["m-0000.params", "m-0007.params"], True),
    ],
)
def test_diff_takes_models_in_every_form(words, same, capsys) -> None:
    for name in ("symbol.json", "0007.params"):
        shutil.copy(f"m-{name}", f"k-{name}")
    if same is None:
        with pytest.raises(SystemExit):
            main(["diff", *words])
    elif words == ["m", "m-0000.params"]:
        assert main(["diff", *words]) == WRONG_INPUT
        assert "are one model" in capsys.readouterr().err
    else:
        assert main(["diff", *words]) == (0 if same else 1)


def test_convert_takes_the_parameters_of_a_model(folder) -> None:
    assert main(["convert", "m", "a.npz"]) == 0
    assert main(["convert", "m-symbol.json", "m-0007.params", "b.npz"]) == 0
    assert main(["diff", "a.npz", "b.npz"]) == 0


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        (
            ["m-symbol.json", "n-0000.params"],
            ["of another model than 'm-symbol.json'", "there is m-0000.params, m-0007"],
        ),
        (["n-symbol.json", "m-0000.params"], ["of another model than 'n-symbol.json'", "Fix: give"]),
        (["m-0009.params"], ["there is no parameter file 'm-0009.params'", "m-0000.params, m-0007.params"]),
        (["m", "--epoch", "9"], ["there is no parameter file 'm-0009.params'", "m-0000.params, m-0007.params"]),
        (["mm"], ["there is no model 'mm'", "cannot read 'mm-symbol.json'", "m-symbol.json, n-symbol.json"]),
        (["mm-symbol.json"], ["cannot read 'mm-symbol.json'", "m-symbol.json, n-symbol.json"]),
        (["none/m"], ["there is no folder 'none'"]),
        (["."], ["'.' is a folder", "m-symbol.json"]),
        (["m", "n"], ["2 graphs and 0 parameter files"]),
        (["m-0000.params", "m-0007.params"], ["0 graphs and 2 parameter files"]),
        (["m", "m-0000.params", "--params", "m-0007.params"], ["one parameter file"]),
        (["m", "m-0000.params", "--epoch", "0"], ["one parameter file"]),
        (["m", "x.txt"], ["x.txt", "a graph (PREFIX-symbol.json), parameters (PREFIX-0000.params)"]),
        (["m", "m.onnx"], ["one file of ONNX alone"]),
    ],
    ids=lambda words: " ".join(words) if len(words) < 5 else "",
)
def test_a_wrong_use_is_answered_with_names_that_exist(words, texts, capsys) -> None:
    pathlib.Path("x.txt").write_text("text")
    assert main(["inspect", *words]) == WRONG_INPUT
    shown = capsys.readouterr().err
    for text in texts:
        assert text in shown
    assert "Traceback" not in shown


def test_parameters_without_a_graph_are_named(capsys) -> None:
    pathlib.Path("n-symbol.json").unlink()
    assert main(["inspect", "n"]) == WRONG_INPUT
    assert "there is only n-0000.params" in capsys.readouterr().err
    assert main(["inspect", "n-0000.params"]) == WRONG_INPUT
    assert "there is no 'n-symbol.json'" in capsys.readouterr().err


def test_parameters_of_other_names_are_another_model(capsys) -> None:
    mx.nd.save("other.params", {"arg:conv_weight": mx.nd.ones((2, 2))})
    assert main(["inspect", "m-symbol.json", "other.params"]) == WRONG_INPUT
    shown = capsys.readouterr().err
    assert "expected d_weight, d_bias" in shown and "got conv_weight" in shown


def test_a_graph_without_its_parameters_says_that_they_are_missing(capsys) -> None:
    for path in ("m-0000.params", "m-0007.params"):
        pathlib.Path(path).unlink()
    assert main(["inspect", "m"]) == 0
    for command in (["verify"], ["bench"], ["run", "--input", "x.npy"]):
        assert main([command[0], "m", *command[1:]]) == WRONG_INPUT
        shown = capsys.readouterr().err
        assert "the parameters of 'm-symbol.json' are missing (d_weight, d_bias)" in shown
        assert "there is no m-NNNN.params" in shown
