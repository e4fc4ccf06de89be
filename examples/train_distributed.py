"""Handwritten digits, trained by several processes: ``python -m hybridnet.launch -n 4 examples/train_distributed.py``.

The batch has four virtual shards; each process computes its own, and the sum of their gradients has the same bits with
1, 2, 3 or 4 processes. Process 0 prints the accuracy and the digest of the parameters, which does not depend on their
number (``--virtual-shards 4``). Without the launcher the program is a group of one process.

With ``--checkpoints FOLDER`` it saves a checkpoint after each epoch, and continues from the last one: after a failure
(the launcher's ``--max-restarts``), or with another number of processes.
"""

import argparse
import hashlib
import sys
import time

import devices
import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon, group, nd
from hybridnet.gluon import nn
from sklearn.datasets import load_digits

BATCH = 96


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Images (N, 1, 8, 8) and labels (N,), in one order in all processes."""
    found = load_digits()
    order = np.random.RandomState(0).permutation(len(found.target))
    return (found.images[order, None] / 16).astype("float32"), found.target[order].astype("float32")


def build() -> nn.HybridSequential:
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(16, 3, activation="relu"), nn.MaxPool2D(), nn.Flatten(), nn.Dense(32, activation="relu"))
        net.add(nn.Dense(10))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    return net


def digest(net: nn.HybridSequential) -> str:
    """SHA-256 of all parameters."""
    values = hashlib.sha256()
    for _, param in sorted(net.collect_params().items()):
        values.update(param.data().asnumpy().tobytes())
    return values.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--checkpoints", help="folder that all processes see")
    parser.add_argument("--shard-states", action="store_true", help="each process keeps its part of Adam's states")
    options = devices.parse_args(parser)
    epochs = options.epochs
    images, labels = digits()
    train_images, train_labels, test_images, test_labels = images[:1440], labels[:1440], images[1440:], labels[1440:]

    mx.random.seed(1)
    net = build()
    trainer = gluon.Trainer(
        net.collect_params(),
        "adam",
        {"learning_rate": 0.005},
        kvstore="dist_sync",
        shard_states=options.shard_states,
    )
    found = group.load_checkpoint(options.checkpoints, net, trainer) if options.checkpoints else None
    first_epoch = found.extra["epochs"] if found else 0
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    rows = BATCH // group.virtual_shards()
    steps = max(epochs - first_epoch, 1) * len(train_labels) // BATCH
    begin = time.perf_counter()
    for epoch in range(first_epoch, epochs):
        order = np.random.RandomState(epoch).permutation(len(train_labels))
        for first in range(0, len(order), BATCH):
            for shard in range(*group.own_shards()):
                chosen = order[first + shard * rows : first + (shard + 1) * rows]
                with autograd.record():
                    loss = loss_of(net(nd.array(train_images[chosen])), nd.array(train_labels[chosen]))
                loss.backward()
                trainer.add_shard()
            trainer.step(BATCH)
        if options.checkpoints:
            step = trainer.optimizer.num_update
            group.save_checkpoint(options.checkpoints, net, trainer, step=step, extra={"epochs": epoch + 1})

    nd.waitall()
    sent = group.counters()["bytes_sent"] / steps

    # Each process tests a part; the counts are added.
    part = slice(group.rank(), None, group.size())
    found = net(nd.array(test_images[part])).asnumpy().argmax(axis=1)
    counts = group.sum(nd.array([(found == test_labels[part]).sum(), len(found)]), name="counts of the test")
    right, tested = counts.asnumpy().astype(int)
    if group.rank() == 0:
        print(f"{group.size()} processes, {group.virtual_shards()} shards, {time.perf_counter() - begin:.1f} s")
        print(f"sent in each step {sent / 1000:.1f} kB")
        print(f"accuracy {right / tested:.3f} of {tested} images")
        print(f"digest {digest(net)}")
    return 0 if right / tested > 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
