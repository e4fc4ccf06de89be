"""The command ``hybridnet``: output of each subcommand for people and for programs, and exit codes."""

from __future__ import annotations

import io
import json
import os
import pathlib
import subprocess
import sys
import types

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet._command_line import WRONG_INPUT, main
from hybridnet._command_line._output import error_text


def _ask(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict]:
    code = main([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture
def model(tmp_path: pathlib.Path) -> str:
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(4, 3, in_channels=1), gluon.nn.BatchNorm(), gluon.nn.Flatten(), gluon.nn.Dense(3))
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((2, 1, 8, 8)))
    net.export(str(tmp_path / "m"), epoch=7)
    return str(tmp_path / "m")


class Loop(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        out, _ = F.contrib.foreach(lambda row, state: (F.tanh(row + state), row + state), x, F.zeros((3,)))
        return out


def test_info_names_version_and_instruction_sets(capsys) -> None:
    code, facts = _ask(capsys, "info")
    assert code == 0
    assert facts["version"] == mx.__version__
    assert facts["instruction sets"] == mx.runtime.isa()
    assert "ONEDNN" in facts["features"]
    assert os.path.exists(facts["library"])
    if not mx.num_gpus():
        assert facts["GPU libraries"] == "none"
        assert facts["GPUs"][0].startswith("none: ")


def test_inspect_counts_parameters_and_operators(capsys, model) -> None:
    code, facts = _ask(capsys, "inspect", model)
    assert code == 0
    assert facts["parameter file"].endswith("m-0007.params")
    assert facts["inputs"] == {"data": "float32(free0, 1, 8, 8)"}
    assert facts["shapes"] == {"data": "float32(1, 1, 8, 8)"}
    assert facts["parameters"] == 4 * 9 + 4 + 4 * 4 + 3 * 144 + 3
    assert facts["bytes"] == 4 * facts["parameters"]
    assert facts["operators"] == {"Convolution": 1, "BatchNorm": 1, "Flatten": 1, "FullyConnected": 1}
    assert sorted(a["kind"] for a in facts["arrays"].values()) == ["parameter"] * 6 + ["state"] * 2


def test_inspect_tells_shapes_and_nodes_where_inputs_are_known(capsys, model) -> None:
    assert main(["inspect", model, "--shape", "5,1,8,8", "--nodes"]) == 0
    text = capsys.readouterr().out
    assert "float32(5, 3)" in text
    assert "Convolution(" in text


def test_inspect_shows_an_output_that_is_listed_twice(capsys, tmp_path) -> None:
    dense = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    mx.sym.Group([dense, dense, dense * 2]).save(str(tmp_path / "twice-symbol.json"))
    _, facts = _ask(capsys, "inspect", tmp_path / "twice", "--shape", "data=2,4")
    assert facts["outputs"].pop("_mulscalar0_output", "float32(2, 3)") == "float32(2, 3)"
    assert list(facts["outputs"])[:2] == ["fc_output", "fc_output (output 1)"]
    assert set(facts["outputs"].values()) == {"float32(2, 3)"}


def test_inspect_counts_operators_of_loops(capsys, tmp_path) -> None:
    net = Loop()
    net.hybridize()
    net(mx.nd.ones((4, 3)))
    net.export(str(tmp_path / "loop"))
    _, facts = _ask(capsys, "inspect", tmp_path / "loop", "--shape", "4,3")
    assert facts["operators"]["_foreach"] == 1
    assert facts["operators"]["tanh"] == 1


def test_inspect_counts_work(capsys, tmp_path) -> None:
    class Net(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.conv = gluon.nn.Conv2D(6, 3, strides=2, groups=2, in_channels=4)
            self.dense = gluon.nn.Dense(5, activation="relu", in_units=54)
            self.cell = gluon.nn.Dense(5, flatten=False, in_units=5, use_bias=False)

        def hybrid_forward(self, F, x):
            y = self.dense(self.conv(x))
            steps, _ = F.contrib.foreach(lambda row, s: (self.cell(row) + s[0], [row]), F.expand_dims(y, 0), [y])
            _, (z,) = F.contrib.while_loop(
                lambda v: F.sum(v) < 10, lambda v: ([], [F.dot(v, v, transpose_b=True)[:, :1] * v]), [steps[0]],
                max_iterations=7,
            )  # fmt: skip
            return F.contrib.cond(F.sum(z) > 0, lambda: F.tanh(z), lambda: F.tanh(F.tanh(z)))

    net = Net()
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((2, 4, 7, 7)))
    net.export(str(tmp_path / "work"))
    _, facts = _ask(capsys, "inspect", tmp_path / "work", "--shape", "2,4,7,7")
    work = facts["flops"]
    found = work["by operator"]
    assert found["Convolution"] == 2 * (2 * 6 * 3 * 3) * (2 * 3 * 3)  # (outputs) * (inputs of each)
    assert found["FullyConnected"] == 2 * (2 * 54 * 5) + 2 * (2 * 5 * 5)
    assert found["dot"] == 7 * 2 * (2 * 5 * 2)
    assert found["tanh"] == 2 * (2 * 5)  # the branch with more operations
    assert work["total"] == sum(found.values())
    assert main(["inspect", str(tmp_path / "work"), "--shape", "2,4,7,7"]) == 0
    assert "floating-point operations (a multiply-add is two)" in capsys.readouterr().out
    _, facts = _ask(capsys, "inspect", tmp_path / "work")
    assert facts["flops"] is None or facts["flops"]["total"] >= 0


def test_run_writes_the_outputs_of_the_model(capsys, model, tmp_path) -> None:
    x = np.random.RandomState(0).randn(2, 1, 8, 8).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    block = gluon.SymbolBlock.imports(model + "-symbol.json", ["data"], model + "-0007.params")
    block.hybridize(static_alloc=True)
    expected = block(mx.nd.array(x)).asnumpy()
    code, facts = _ask(capsys, "run", model, "--input", tmp_path / "x.npy")
    assert code == 0
    (output,) = facts.values()
    np.testing.assert_array_equal(np.array(output["values"], np.float32), expected)
    assert main(["run", model, "--input", f"data={tmp_path / 'x.npy'}", "--output", str(tmp_path / "y.npy")]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected)
    np.savez(tmp_path / "all.npz", data=x)
    assert main(["run", model, "--input", str(tmp_path / "all.npz"), "--output", str(tmp_path / "y.npz")]) == 0
    np.testing.assert_array_equal(next(iter(np.load(tmp_path / "y.npz").values())), expected)


def test_verify_runs_all_ways_and_they_agree(capsys, model) -> None:
    code, facts = _ask(capsys, "verify", model, "--shape", "data=2,1,8,8")
    assert code == 0
    assert facts["problems"] == []
    assert set(facts["ways"]) >= {"imperative", "hybridized", "bound", "4 threads"}


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("command", [["verify"], ["bench", "--seconds", "0.2"]], ids=["verify", "bench"])
def test_long_work_shows_a_progress_bar_on_terminals_only(command, capsys, model, monkeypatch) -> None:
    shown = []

    def tqdm(items, desc, leave, file):
        assert file is sys.stderr and not leave
        shown.append((desc, len(items)))
        return items

    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(tqdm=tqdm))
    arguments = [command[0], model, "--shape", "data=2,1,8,8", *command[1:]]
    assert main(arguments) == 0
    assert main([*arguments, "--json"]) == 0
    assert shown == []  # stderr is not a terminal
    monkeypatch.setattr(sys, "stderr", _Terminal())
    assert main([*arguments, "--json"]) == 0
    assert shown == []
    assert main(arguments) == 0
    assert [desc for desc, count in shown if count > 1] == [command[0]]
    monkeypatch.setitem(sys.modules, "tqdm", None)  # makes the import of tqdm fail
    assert main(arguments) == 0


def test_verify_names_parameters_that_are_no_numbers(capsys, model) -> None:
    arrays = mx.nd.load(model + "-0007.params")
    arrays["arg:dense0_bias" if "arg:dense0_bias" in arrays else next(n for n in arrays if "bias" in n)][0] = np.nan
    mx.nd.save(model + "-0007.params", arrays)
    code, facts = _ask(capsys, "verify", model, "--shape", "2,1,8,8")
    assert code == 1
    assert "bias has 1 values that are NaN or infinite" in facts["problems"][0]


def test_bench_measures_calls(capsys, model) -> None:
    code, facts = _ask(capsys, "bench", model, "--shape", "1,1,8,8", "--seconds", "0.2", "--threads", "2")
    assert code == 0
    assert facts["calls"] > 10
    latency = facts["latency ms"]
    assert 0 < latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["p99.9"] <= latency["max"]


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_convert_goes_there_and_back(capsys, model, tmp_path, kind) -> None:
    other, back = tmp_path / f"o.{kind}", tmp_path / "back.params"
    assert main(["convert", model + "-0007.params", str(other)]) == 0
    assert main(["convert", str(other), str(back), "--like", model + "-symbol.json"]) == 0
    capsys.readouterr()
    code, facts = _ask(capsys, "diff", model + "-0007.params", back)
    assert code == 0
    assert facts["same"]
    assert set(mx.nd.load(str(back))) == set(mx.nd.load(model + "-0007.params"))


def test_convert_replaces_nothing_unasked(capsys, model, tmp_path) -> None:
    target = tmp_path / "o.npz"
    target.write_bytes(b"mine")
    assert main(["convert", model + "-0007.params", str(target)]) == WRONG_INPUT
    assert target.read_bytes() == b"mine"
    assert main(["convert", model + "-0007.params", str(target), "--force"]) == 0
    assert main(["convert", model + "-0007.params", str(tmp_path / "o.txt")]) == WRONG_INPUT
    assert "one of .params, .npy, .npz, .safetensors" in capsys.readouterr().err


def test_diff_shows_structure_and_values(capsys, model, tmp_path) -> None:
    arrays = mx.nd.load(model + "-0007.params")
    name = next(name for name in arrays if name.endswith("conv0_weight") or "conv" in name)
    arrays[name] = arrays[name] + 0.5
    mx.nd.save(str(tmp_path / "b.params"), arrays)
    code, facts = _ask(capsys, "diff", model + "-0007.params", tmp_path / "b.params")
    assert code == 1
    assert list(facts["values"]) == [name]
    assert f"{arrays[name].size} of {arrays[name].size} elements differ, by 0.5" in facts["values"][name]
    code, _ = _ask(capsys, "diff", model + "-0007.params", tmp_path / "b.params", "--atol", "0.6")
    assert code == 0
    graph = mx.sym.load(model + "-symbol.json")
    mx.sym.relu(graph, name="last").save(str(tmp_path / "c-symbol.json"))
    code, facts = _ask(capsys, "diff", model, tmp_path / "c")
    assert code == 1
    assert any(line.startswith("+relu last(") for line in facts["structure"])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "{model}"], "give --input data=FILE.npy"),
        (["run", "{model}", "--input", "none.npy"], "there is no file 'none.npy'"),
        (["run", "nothing"], "cannot read 'nothing-symbol.json'"),
        (["verify", "{model}", "--shape", "other=1"], "one of data"),
        (["verify", "{model}", "--shape", "1x2"], "sizes with commas"),
        (["verify", "{model}", "--shape", "1:what"], "what"),
        (["inspect", "{model}", "--params", "none"], "there is no parameter file 'none'"),
        (["bench", "{model}", "--shape", "1,1,8,8", "--threads", "0"], "more than 0"),
        (["diff", "{model}", "none.params"], "none.params"),
        (
            ["run", "{model}", "--output", "o.xyz"],
            ".npy, .npz, .safetensors, .params, got '.xyz'.\n  Fix: give --output o.npz",
        ),
        (["run", "{model}", "--output", "o"], "got none of these endings"),
        (["serve", "{model}", "--port", "99999"], "--port: expected 0 to 65535, got 99999"),
        (["serve", "{model}", "--port", "-1"], "--port: expected 0 to 65535, got -1"),
    ],
)
def test_wrong_input_is_said_in_one_text(capsys, model, arguments, text) -> None:
    assert main([argument.format(model=model) for argument in arguments]) == WRONG_INPUT
    shown = capsys.readouterr()
    assert text in shown.err
    assert "Traceback" not in shown.err


def test_an_input_that_is_given_twice_is_refused(capsys, model, tmp_path) -> None:
    np.save(tmp_path / "x.npy", np.ones((1, 1, 8, 8), "float32"))
    np.savez(tmp_path / "x.npz", data=np.ones((1, 1, 8, 8), "float32"))
    for other in (f"data={tmp_path / 'x.npy'}", tmp_path / "x.npz"):
        assert main(["run", model, "--input", str(tmp_path / "x.npy"), "--input", str(other)]) == WRONG_INPUT
        assert "input 'data' is given twice" in capsys.readouterr().err


def test_errors_show_no_place_in_the_start_of_the_command(capsys, model) -> None:
    code, facts = _ask(capsys, "inspect", model, "--shape", "2,3,8,8")
    error = mx.errors.ShapeError("x", expected="y", because="z", fix="a", where="<frozen runpy>:88")
    assert "  At: " in str(error) and error_text(error) == str(error).partition("\n  At: ")[0]
    assert code == WRONG_INPUT and "At: " not in facts["text"] and "Convolution" in facts["text"]


def test_a_wrong_command_line_shows_how_it_is_used(capsys) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["bogus"])
    assert exit_.value.code == 2
    assert "usage: hybridnet" in capsys.readouterr().err


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hybridnet", "--version"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, f"hybridnet {mx.__version__}\n")


def test_completion_knows_commands_and_options(capsys) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    shell = script + '\nCOMP_WORDS=(hybridnet be); COMP_CWORD=1; _hybridnet; echo "${COMPREPLY[@]}"'
    shell += '\nCOMP_WORDS=(hybridnet bench m --th); COMP_CWORD=3; _hybridnet; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True)
    assert done.stdout.split() == ["bench", "--threads"], done.stderr
