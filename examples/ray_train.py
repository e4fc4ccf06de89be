"""Handwritten digits, trained by two processes that Ray starts (``pip install "ray[train]"``).

Each epoch ends with a checkpoint. ``--kill 3`` kills one of the processes in epoch 3: Ray starts both again, and they
continue from the last checkpoint. The digest of the parameters is the same with and without that.
"""

import argparse
import hashlib
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import hybridnet as mx
import hybridnet.ray
import numpy as np
import ray
import ray.train
from hybridnet import autograd, gluon, group, nd
from hybridnet.gluon import nn
from sklearn.datasets import load_digits

BATCH = 96
FILES = ("net.params", "trainer.states", "epoch")


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Images (N, 1, 8, 8) and labels (N,), in one order in all processes."""
    found = load_digits()
    order = np.random.RandomState(0).permutation(len(found.target))
    return (found.images[order, None] / 16).astype("float32"), found.target[order].astype("float32")


def build() -> tuple[nn.HybridSequential, gluon.Trainer]:
    mx.random.seed(1)
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(16, 3, activation="relu", in_channels=1), nn.MaxPool2D(), nn.Flatten())
        net.add(nn.Dense(32, activation="relu", in_units=144), nn.Dense(10, in_units=32))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    return net, gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.005}, kvstore="dist_sync")


def restore(net: nn.HybridSequential, trainer: gluon.Trainer) -> int:
    """Loads the last checkpoint; returns the epoch to begin with."""
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is None:
        return 0
    with checkpoint.as_directory() as folder:
        params, states, epoch = (Path(folder, name) for name in FILES)
        net.load_parameters(str(params))
        trainer.load_states(str(states))
        return int(epoch.read_text()) + 1


def report(net: nn.HybridSequential, trainer: gluon.Trainer, epoch: int, metrics: dict[str, float]) -> None:
    """Gives Ray the checkpoint of process 0; all processes call it."""
    with tempfile.TemporaryDirectory() as folder:
        params, states, number = (Path(folder, name) for name in FILES)
        net.save_parameters(str(params))
        trainer.save_states(str(states))
        number.write_text(str(epoch))
        mine = ray.train.Checkpoint.from_directory(folder) if group.rank() == 0 else None
        ray.train.report(metrics, checkpoint=mine)


def accuracy(net: nn.HybridSequential, images: np.ndarray, labels: np.ndarray) -> float:
    """Each process tests a part; the counts are added."""
    part = slice(group.rank(), None, group.size())
    found = net(nd.array(images[part])).asnumpy().argmax(axis=1)
    right, tested = group.sum(nd.array([(found == labels[part]).sum(), len(found)]), name="counts").asnumpy()
    return float(right / tested)


def digest(net: nn.HybridSequential) -> str:
    """SHA-256 of all parameters."""
    values = [param.data().asnumpy().tobytes() for _, param in sorted(net.collect_params().items())]
    return hashlib.sha256(b"".join(values)).hexdigest()


def train(config: dict[str, int]) -> tuple[int, str]:
    """Runs in each process; returns the epoch with which this start began, and the digest."""
    images, labels = digits()
    net, trainer = build()
    first = restore(net, trainer)
    print(f"process {group.rank()} of {group.size()} begins with epoch {first}", flush=True)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    rows = BATCH // group.virtual_shards()
    for epoch in range(first, config["epochs"]):
        order = np.random.RandomState(epoch).permutation(1440)
        for start in range(0, len(order), BATCH):
            for shard in range(*group.own_shards()):
                chosen = order[start + shard * rows : start + (shard + 1) * rows]
                with autograd.record():
                    loss = loss_of(net(nd.array(images[chosen])), nd.array(labels[chosen]))
                loss.backward()
                trainer.add_shard()
            trainer.step(BATCH)
        nd.waitall()
        if epoch == config["kill"] and first == 0 and group.rank() == 1:
            ray.train.get_all_reported_checkpoints()  # returns when Ray has taken the reports
            os.kill(os.getpid(), signal.SIGKILL)
        report(net, trainer, epoch, {"epoch": epoch, "accuracy": accuracy(net, images[1440:], labels[1440:])})
    return first, digest(net)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--kill", type=int, default=-1, help="the epoch, from 1, in which a process is killed")
    parser.add_argument("--folder", default=os.path.expanduser("~/ray_results"), help="place of the checkpoints")
    options = parser.parse_args()
    begin = time.perf_counter()
    trainer = hybridnet.ray.Trainer(
        train,
        num_workers=2,
        config={"epochs": options.epochs, "kill": options.kill},
        virtual_shards=4,
        max_restarts=1,
        folder=options.folder,
        checkpoints_to_keep=2,
    )
    result = trainer.fit()
    first, found = result.return_value
    seconds = time.perf_counter() - begin
    print(f"{result.metrics['epoch'] + 1} epochs in {seconds:.1f} s; the last start began with {first}")
    print(f"accuracy {result.metrics['accuracy']:.3f}")
    print(f"digest {found}")
    return 0 if result.metrics["accuracy"] > 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
