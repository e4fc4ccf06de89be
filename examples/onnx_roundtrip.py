"""A net with a loop goes to an ONNX file and comes back: results are equal, for all sizes, here and in ONNX Runtime.

The net reads rows of a sequence by ``foreach``, a Scan in the file, and halves its scores by ``while_loop`` until they
are small, a Loop in the file. Length and batch stay open in the file. The net that comes back is trained for a few
steps. Needs the packages onnx and onnxruntime. By hand: ``python examples/onnx_roundtrip.py``.
"""

import argparse
import pathlib
import sys
import tempfile
from collections import Counter

import devices
import hybridnet as mx
import numpy as np
import onnx
import onnxruntime
from hybridnet import autograd, gluon, nd


class Net(gluon.HybridBlock):
    """A recurrent layer written as a loop, and a loop whose number of steps depends on its data."""

    def __init__(self, width: int) -> None:
        super().__init__()
        with self.name_scope():
            self.cell = gluon.rnn.GRUCell(width, input_size=3)
            self.head = gluon.nn.Dense(2, in_units=width)

    def hybrid_forward(self, F, rows, state):
        rows = rows.transpose((1, 0, 2))  # (time, batch, 3)
        _, states = F.contrib.foreach(self.cell, rows, [state])
        scores = self.head(states[0])

        def is_large(value):
            return F.max(F.abs(value)) > 0.1

        def halve(value):
            return [], [value * 0.5]

        _, small = F.contrib.while_loop(is_large, halve, [scores], max_iterations=20)
        return scores, small[0]


def inputs(batch: int, length: int, width: int, seed: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    return {
        "data0": draw.normal(size=(batch, length, 3)).astype("float32"),
        "data1": np.zeros((batch, width), "float32"),
    }


def operators(path: str) -> str:
    """The operators of a file and of the bodies of its loops."""
    found: Counter[str] = Counter()

    def count(graph: onnx.GraphProto) -> None:
        for node in graph.node:
            found[node.op_type] += 1
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    count(attribute.g)

    count(onnx.load(path).graph)
    return ", ".join(f"{number} {name}" for name, number in sorted(found.items()) if name in ("Loop", "Scan"))


def largest_difference(net, back, session, width: int) -> float:
    """Between the net, the net that came back, and ONNX Runtime, for several sizes."""
    worst = 0.0
    for seed, (batch, length) in enumerate([(2, 5), (1, 1), (7, 3), (4, 40)]):
        arrays = inputs(batch, length, width, seed)
        wanted = net(*map(nd.array, arrays.values()))
        returned = back(*map(nd.array, arrays.values()))
        names = [given.name for given in session.get_inputs()]
        elsewhere = session.run(None, dict(zip(names, arrays.values(), strict=True)))
        for own, other, third in zip(wanted, returned, elsewhere, strict=True):
            for result in (other.asnumpy(), third):
                worst = max(worst, float(np.abs(own.asnumpy() - result).max()))
    return worst


def train(net, width: int, steps: int) -> tuple[float, float]:
    """Returns the first and the last error."""
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    arrays = [nd.array(array) for array in inputs(8, 6, width, 9).values()]
    errors = []
    for _ in range(steps):
        with autograd.record():
            error = ((net(*arrays)[0] - 1) ** 2).mean()
        error.backward()
        trainer.step(1)
        errors.append(float(error.asscalar()))
    return errors[0], errors[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=16, help="of the state")
    parser.add_argument("--steps", type=int, default=30, help="of the training")
    options = devices.parse_args(parser)
    if options.width < 1 or options.steps < 2:
        parser.error("--width must be at least 1, and --steps at least 2")
    mx.random.seed(3)
    net = Net(options.width)
    net.initialize(mx.init.Xavier(magnitude=4))
    net.hybridize()
    net(*map(nd.array, inputs(2, 5, options.width, 0).values()))
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "net.onnx")
        shapes = [("batch", "length", 3), ("batch", options.width)]
        mx.onnx.export_model(net, onnx_file_path=path, dynamic_input_shapes=shapes)
        print(f"loops in the file: {operators(path)}")
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        back = mx.onnx.import_to_gluon(path)
    back.hybridize()
    difference = largest_difference(net, back, session, options.width)
    print(f"largest difference over four sizes: {difference:.1e}")
    first, last = train(back, options.width, options.steps)
    print(f"trained: error {first:.3f} -> {last:.3f}")
    return 0 if difference < 1e-4 and last < first else 1


if __name__ == "__main__":
    sys.exit(main())
