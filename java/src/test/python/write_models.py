"""Writes models with inputs and the outputs that Python computes for them: the reference for the tests of java/.

``python write_models.py FOLDER`` writes into FOLDER:
  cases.txt                      a line per case: name, graph file, parameter file ("-": none), file of arrays
  NAME.params, NAME-RUN.params   arrays "in:NAME" of the inputs and "out:0", ... of the outputs, with their bits
  net-*, lstm-*, decoder-*       a classifier, a recurrent net by foreach, and a model that is a while_loop
  NAME-tuned-VARIANT.params      parameters after 20 steps of Python's Trainer
  lstm-OPTIMIZER.params          losses of 105 steps of each optimizer, parameters after 100 and after 105 steps
  lstm-OPTIMIZER.states          the file of Trainer.save_states after 100 steps
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import hybridnet as mx
import numpy as np
from hybridnet import _core, autograd, gluon
from hybridnet.gluon import HybridBlock, SymbolBlock, nn, rnn

FIXTURES = Path(__file__).resolve().parents[4] / "tests" / "fixtures"


class Decoder(HybridBlock):
    """Adds up ``data`` until the sum of its elements passes 100, at most 50 times: returns the sum and the steps."""

    def hybrid_forward(self, F, data):
        _, (total, steps) = F.contrib.while_loop(
            lambda total, steps: F.sum(total) < 100,
            lambda total, steps: ([], [total + F.tanh(data), steps + 1]),
            [F.zeros_like(data), F.zeros((1,))],
            max_iterations=50,
        )
        return total, steps


class Recurrent(HybridBlock):
    """Returns the outputs of an LSTM of width 4 over ``data`` (time, batch, 3), run by foreach."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = rnn.LSTMCell(4, input_size=3)

    def hybrid_forward(self, F, data):
        zeros = F.broadcast_mul(F.zeros((1, 4)), F.slice_axis(F.squeeze(F.slice_axis(data, 0, 0, 1), 0), 1, 0, 1))
        outputs, _ = F.contrib.foreach(self.cell, data, [zeros, zeros])
        return outputs


VARIANTS = {
    "plain": ("sgd", {"learning_rate": 0.1}),
    "sgd": ("sgd", {"learning_rate": 0.05, "momentum": 0.9, "wd": 0.01, "clip_gradient": 0.2}),
    "adam": ("adam", {"learning_rate": 0.01, "wd": 0.001}),
}


def write_tuned(folder: Path, name: str, example: mx.nd.NDArray) -> None:
    """Trains FOLDER/NAME to output ones, with each of VARIANTS, and writes the parameters."""
    for variant, (optimizer, settings) in VARIANTS.items():
        prefix = str(folder / name)
        net = SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
        net.hybridize()
        trainer = gluon.Trainer(net.collect_params(), optimizer, settings)
        for _ in range(20):
            with autograd.record():
                loss = mx.nd.mean(mx.nd.square(net(example) - 1))
            loss.backward()
            trainer.step(2)
        values = {key: parameter.data() for key, parameter in net.collect_params().items()}
        mx.nd.save(f"{prefix}-tuned-{variant}.params", values)


def write_trained(folder: Path, example: mx.nd.NDArray) -> None:
    """Trains FOLDER/lstm with every optimizer that accepts all its parameters; writes losses, states and parameters."""
    prefix = str(folder / "lstm")
    for name in _core.optimizer_names():
        if name == "GroupAdaGrad":  # for matrices
            continue
        net = SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
        net.hybridize()
        trainer = gluon.Trainer(net.collect_params(), name, {"learning_rate": 0.01})
        losses, arrays = [], {}
        for step in range(105):
            if step == 100:
                trainer.save_states(f"{prefix}-{name}.states")
                arrays |= {f"100:{key}": each.data().copy() for key, each in net.collect_params().items()}
            mx.random.seed(step)
            with autograd.record():
                loss = mx.nd.mean(mx.nd.square(net(example) - 1))
            loss.backward()
            trainer.step(2)
            losses.append(loss.asscalar())
        arrays |= {f"105:{key}": each.data() for key, each in net.collect_params().items()}
        mx.nd.save(f"{prefix}-{name}.params", {"losses": mx.nd.array(losses), **arrays})


def as_list(result) -> list[mx.nd.NDArray]:
    return list(result) if isinstance(result, (list, tuple)) else [result]


def write_case(
    folder: Path, name: str, files: tuple[Path, Path | None], net: HybridBlock, inputs: dict[str, mx.nd.NDArray]
) -> str:
    """Runs net and writes its inputs and outputs; returns the line of cases.txt."""
    arrays = {f"in:{key}": value for key, value in inputs.items()}
    arrays.update({f"out:{index}": out for index, out in enumerate(as_list(net(*inputs.values())))})
    path = folder / f"{name}.params"
    mx.nd.save(str(path), arrays)
    symbol, params = files
    return f"{name}\t{symbol}\t{params or '-'}\t{path}"


def write_fixtures(folder: Path) -> list[str]:
    """Runs every model of tests/fixtures on each of its inputs; returns the lines of cases.txt."""
    lines = []
    for path in sorted(FIXTURES.glob("*/case.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        if case["kind"] != "model":
            continue
        files = (path.parent / case["symbol"], path.parent / case["params"])
        names = [spec["name"] for spec in case["inputs"]]
        stored = np.load(path.parent / "inputs.npz")
        for run in case["runs"]:
            net = SymbolBlock.imports(str(files[0]), names, str(files[1]))
            net.hybridize()
            inputs = {name: mx.nd.array(stored[f"{run}/{name}"], dtype=stored[f"{run}/{name}"].dtype) for name in names}
            lines.append(write_case(folder, f"{path.parent.name}-{run}", files, net, inputs))
    return lines


def write_net(folder: Path, name: str, net: HybridBlock, example: mx.nd.NDArray) -> str:
    """Exports net as FOLDER/NAME; returns the line of cases.txt."""
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(example)
    prefix = folder / name
    net.export(str(prefix))
    params = Path(f"{prefix}-0000.params")
    files = (Path(f"{prefix}-symbol.json"), params if params.exists() else None)
    return write_case(folder, name, files, net, {"data": example})


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    mx.random.seed(1)
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, activation="relu"), nn.MaxPool2D(), nn.Dense(16, activation="tanh"), nn.Dense(10))
    images = mx.nd.random.uniform(shape=(5, 1, 8, 8))
    lines = write_fixtures(folder)
    lines.append(write_net(folder, "net", net, images))
    series = mx.nd.random.normal(shape=(6, 2, 3))
    lines.append(write_net(folder, "lstm", Recurrent(), series))
    write_tuned(folder, "net", images)
    write_tuned(folder, "lstm", series)
    write_trained(folder, series)
    lines.append(write_net(folder, "decoder", Decoder(), mx.nd.array([[0.5, 1.0], [2.0, 0.25]])))
    (folder / "cases.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
