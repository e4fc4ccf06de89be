"""From data to C++: train a convolutional net on digits, hybridize, export, and run the export without Python.

Run by ``tools/dev demo``, which also builds examples/export_to_cpp.
By hand: ``python examples/demo.py [--classify PROGRAM]``.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

import devices
import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon
from hybridnet.gluon import nn

ROOT = pathlib.Path(__file__).resolve().parents[1]


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Scikit-learn's 1797 scanned digits, 8x8 pixels: images (N, 1, 8, 8) in [0, 1] and labels, split 4 to 1."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        sys.exit("the demo needs scikit-learn for its data: pip install scikit-learn")
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("float32").reshape(-1, 1, 8, 8)
    order = np.random.default_rng(0).permutation(len(images))
    test, train = order[: len(order) // 5], order[len(order) // 5 :]
    return images[train], labels[train].astype("float32"), images[test], labels[test].astype("float32")


def conv_net() -> nn.HybridSequential:
    """Two convolutions and two dense layers."""
    net = nn.HybridSequential(prefix="digits_")
    with net.name_scope():
        net.add(
            nn.Conv2D(32, kernel_size=3, padding=1, activation="relu"),
            nn.Conv2D(32, kernel_size=3, padding=1, activation="relu"),
            nn.MaxPool2D(),
            nn.Dense(64, activation="relu"),
            nn.Dropout(0.3),
            nn.Dense(10),
        )
    return net


def train_step(
    net: gluon.Block, loss_of: gluon.loss.Loss, trainer: gluon.Trainer, data: mx.nd.NDArray, label: mx.nd.NDArray
) -> mx.nd.NDArray:
    with autograd.record():
        loss = loss_of(net(data), label)
    loss.backward()
    trainer.step(len(data))
    return loss


def seconds_per_step(steps: int, *arguments) -> float:
    """The median time of a training step on one batch, including the wait for its results."""
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        train_step(*arguments).wait_to_read()
        mx.nd.waitall()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def accuracy(net: gluon.Block, images: np.ndarray, labels: np.ndarray) -> float:
    metric = mx.metric.Accuracy()
    metric.update(mx.nd.array(labels), net(mx.nd.array(images)))
    return metric.get()[1]


def run_in_cpp(program: pathlib.Path, symbol: str, params: str, check: pathlib.Path) -> str:
    done = subprocess.run([str(program), symbol, params, str(check)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"C++ disagrees: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument(
        "--classify",
        type=pathlib.Path,
        default=ROOT / "build/examples/export_to_cpp/classify",
        help="the program built from examples/export_to_cpp",
    )
    parser.add_argument("--out", type=pathlib.Path, default=None, help="folder for the exported files")
    args = devices.parse_args(parser)
    mx.random.seed(1)
    np.random.seed(1)
    images, labels, test_images, test_labels = digits()

    net = conv_net()
    net.initialize(mx.init.Xavier())
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 3e-3})
    step = (net, loss_of, trainer, mx.nd.array(images[:64]), mx.nd.array(labels[:64]))
    imperative = seconds_per_step(20, *step)
    net.hybridize(static_alloc=True)
    hybridized = seconds_per_step(20, *step)

    loader = gluon.data.DataLoader(
        gluon.data.ArrayDataset(images, labels), batch_size=64, shuffle=True, last_batch="rollover"
    )
    for _ in range(args.epochs):
        for data, label in loader:
            train_step(net, loss_of, trainer, data.as_in_context(args.ctx), label.as_in_context(args.ctx))
    reached = accuracy(net, test_images, test_labels)

    out = args.out or pathlib.Path(tempfile.mkdtemp(prefix="digits-"))
    out.mkdir(parents=True, exist_ok=True)
    symbol, params = net.export(str(out / "digits"))
    scores = net(mx.nd.array(test_images))
    mx.nd.save(str(out / "check.params"), {"data": mx.nd.array(test_images), "scores": scores})

    print(f"{'test accuracy':24} {reached:.4f}  ({len(test_images)} images)")
    print(f"{'imperative step':24} {imperative * 1e3:.2f} ms  (batch 64)")
    print(f"{'hybridized step':24} {hybridized * 1e3:.2f} ms  ({imperative / hybridized:.1f} times as fast)")
    print(f"{'exported':24} {symbol}, {params}")
    if args.classify.exists():
        print(f"{'run without Python':24} {run_in_cpp(args.classify, symbol, params, out / 'check.params')}")
    else:
        print(f"{'run without Python':24} not done: build examples/export_to_cpp, or run tools/dev demo")
    if reached < 0.97:
        sys.exit("the net did not learn: accuracy below 0.97")


if __name__ == "__main__":
    main()
