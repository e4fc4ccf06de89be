"""A training of 12 steps on 4 virtual shards, for test_ray.py: by the launcher (prints the digest), or in Ray."""

from __future__ import annotations

import hashlib
import os
import pathlib
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon, group

STEPS, BATCH = 12, 24


class Unsendable(Exception):
    """Cannot be unpickled: it needs two arguments and keeps one."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(f"row {row} is {reason}")


def build() -> tuple[gluon.nn.HybridSequential, gluon.Trainer]:
    mx.random.seed(11 + group.rank())  # process 0's values count
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(6, 3, activation="tanh", in_channels=3), gluon.nn.Flatten())
    net.add(gluon.nn.Dense(5, in_units=216))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    return net, gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05}, kvstore="dist_sync")


def steps(
    net: gluon.nn.HybridSequential, trainer: gluon.Trainer, first: int, after: Callable[[int], None]
) -> tuple[str, int]:
    """Trains from a step on; returns the digest of the parameters and the number of shards of this process."""
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    shards = group.own_shards()
    rows = BATCH // group.virtual_shards()
    for step in range(first, STEPS):
        rng = np.random.default_rng(step)
        data, label = rng.standard_normal((BATCH, 3, 8, 8)).astype("float32"), rng.integers(0, 5, BATCH)
        for shard in range(*shards):
            part = slice(shard * rows, (shard + 1) * rows)
            with autograd.record():
                loss = loss_of(net(mx.nd.array(data[part])), mx.nd.array(label[part]))
            loss.backward()
            trainer.add_shard()
        trainer.step(BATCH)
        mx.nd.waitall()
        after(step)
    values = [param.data().asnumpy().tobytes() for param in net.collect_params().values()]
    return hashlib.sha256(b"".join(values)).hexdigest(), shards[1] - shards[0]


def in_ray(config: dict[str, Any]) -> dict[str, Any]:
    """A function for hybridnet.ray.Trainer. config: kill or fail: a step; notes: a folder that outlives the process."""
    import ray.train

    net, trainer = build()
    first, notes = 0, pathlib.Path(config["notes"])
    is_restarted = (notes / "killed").exists()
    if checkpoint := ray.train.get_checkpoint():
        with checkpoint.as_directory() as folder:
            net.load_parameters(os.path.join(folder, "net.params"))
            trainer.load_states(os.path.join(folder, "trainer.states"))
            first = int(pathlib.Path(folder, "step").read_text()) + 1

    def after(step: int) -> None:
        if group.rank() == 0 and is_restarted and step == first:
            (notes / "next").write_text(str(time.time()))
        if group.rank() == 1 and step == config.get("kill") and not is_restarted:
            ray.train.get_all_reported_checkpoints()  # returns when Ray has taken the reports
            (notes / "killed").write_text(str(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)
        if group.rank() == 1 and step == config.get("fail"):
            raise Unsendable(7, "negative") if config.get("unsendable") else ValueError(f"no label at step {step}")
        if step % 4 == 3:
            with tempfile.TemporaryDirectory() as folder:
                net.save_parameters(os.path.join(folder, "net.params"))
                trainer.save_states(os.path.join(folder, "trainer.states"))
                pathlib.Path(folder, "step").write_text(str(step))
                saved = ray.train.Checkpoint.from_directory(folder) if group.rank() == 0 else None
                ray.train.report({"step": step}, checkpoint=saved)

    digest, own = steps(net, trainer, first, after)
    return {"digest": digest, "first": first, "size": group.size(), "own": own}


if __name__ == "__main__":
    print("digest", steps(*build(), 0, lambda step: None)[0])
    sys.exit(0)
