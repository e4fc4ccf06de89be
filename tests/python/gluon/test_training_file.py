"""save_training and load_training: training that stopped anywhere resumes with the same bits."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon, lr_scheduler
from hybridnet.errors import FileError, FormatError, ParamError, UnsupportedError
from hybridnet.gluon import load_training, nn, save_training
from hybridnet.gluon.data import ArrayDataset, DataLoader

EPOCHS, CUTS = 2, (0, 1, 4, 6, 7, 11)


class Noisy:
    """Samples with noise from numpy.random, like augmented images."""

    def __init__(self) -> None:
        draw = np.random.RandomState(5)
        self.data, self.labels = draw.randn(50, 6).astype("float32"), draw.randint(0, 3, 50).astype("float32")

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.float32]:
        noise = np.random.standard_normal(6).astype("float32") * (1 + random.random() * 0)
        return self.data[index] + 0.1 * noise, self.labels[index]


def make(optimizer: str = "adam", **options: Any) -> tuple[gluon.HybridBlock, gluon.Trainer, DataLoader]:
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(8, activation="relu"), nn.BatchNorm(), nn.Dropout(0.4), nn.Dense(3))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    schedule = lr_scheduler.FactorScheduler(step=3, factor=0.7, base_lr=0.05)
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"lr_scheduler": schedule, "wd": 1e-3})
    return net, trainer, DataLoader(Noisy(), batch_size=8, shuffle=True, last_batch="rollover", **options)


def train(net: Any, trainer: Any, loader: Any, done: int = 0, epoch: int = 0, stop: int = 1 << 30, path: str = ""):
    """Returns the losses of the steps; stops after step `stop` and saves there."""
    loss_of, losses = gluon.loss.SoftmaxCrossEntropyLoss(), []
    for number in range(epoch, EPOCHS):
        for data, label in loader:
            with autograd.record():
                loss = loss_of(net(data), label)
            loss.backward()
            trainer.step(len(data))
            losses.append(loss.asnumpy())
            done += 1
            if done == stop:
                save_training(path, net, trainer, loader, {"done": done, "epoch": number})
                return losses
    return losses


def begin(seed: int) -> None:
    mx.random.seed(seed)
    np.random.seed(seed)
    random.seed(seed)


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 1, "prefetch": 3, "auto_reload": True}])
@pytest.mark.parametrize("optimizer", ["adam", "sgd", "nag"])
def test_a_training_that_was_cut_goes_on_to_the_bit(tmp_path, options, optimizer) -> None:
    path = str(tmp_path / "training")
    begin(3)
    whole = train(*make(optimizer, **options))
    assert len(whole) == 12
    for cut in CUTS:
        begin(3)
        parts = make(optimizer, **options)
        if cut == 0:
            parts[0](mx.nd.ones((1, 6)))
            save_training(path, *parts, {"done": 0, "epoch": 0})
            first = []
        else:
            first = train(*parts, stop=cut, path=path)
        begin(1000 + cut)  # another process has another random state
        net, trainer, loader = make(optimizer, **options)
        extra = load_training(path, net, trainer, loader)
        losses = first + train(net, trainer, loader, extra["done"], extra["epoch"])
        assert len(losses) == len(whole)
        for step, (found, expected) in enumerate(zip(losses, whole, strict=True)):
            np.testing.assert_array_equal(found, expected, f"cut behind step {cut}, step {step}")


def test_random_numbers_of_all_kinds_go_on() -> None:
    begin(1)
    mx.nd.random.normal(shape=(3,)).wait_to_read()
    state = mx.random.get_state()

    def draws() -> tuple[Any, ...]:
        return (
            mx.nd.random.normal(shape=(3,)).asnumpy().tolist(),
            np.random.standard_normal(3).tolist(),
            random.gauss(0, 1),
        )

    expected = draws()
    begin(2)
    mx.random.set_state(state)
    assert draws() == expected
    for wrong in ({}, {**state, "hybridnet": [1]}, {**state, "numpy": {"key": [1], "pos": 0, "gauss": [0, 0]}}, 3):
        with pytest.raises(FormatError, match="state"):
            mx.random.set_state(wrong)


def test_without_a_round_the_loader_begins_one(tmp_path) -> None:
    loader = DataLoader(ArrayDataset(np.arange(10)), batch_size=4, shuffle=True, last_batch="rollover")
    np.random.seed(0)
    assert len(list(loader)) == 2
    position = loader.position()
    state = mx.random.get_state()
    expected = [batch.asnumpy().tolist() for batch in loader]
    other = DataLoader(ArrayDataset(np.arange(10)), batch_size=4, shuffle=True, last_batch="rollover")
    other.set_position(position)
    mx.random.set_state(state)
    assert [batch.asnumpy().tolist() for batch in other] == expected


@pytest.fixture
def saved(tmp_path) -> tuple[str, tuple[Any, ...]]:
    parts = make()
    train(*parts, stop=2, path=str(tmp_path / "training"))
    return str(tmp_path / "training"), parts


def test_damage_is_found_and_changes_nothing(saved, tmp_path) -> None:
    path, (net, trainer, loader) = saved
    content = pathlib.Path(path).read_bytes()
    before = {name: parameter.data().asnumpy() for name, parameter in net.collect_params().items()}
    draw = np.random.RandomState(1)
    sizes = [0, 5, 8, 20, 48, *draw.randint(48, len(content), 30)]
    damaged = [content[:size] for size in sizes] + [content + b"x"]
    for place in [*range(16), *draw.randint(16, len(content), 60)]:
        damaged.append(content[:place] + bytes([content[place] ^ 1 << draw.randint(8)]) + content[place + 1 :])
    state = mx.random.get_state()
    for wrong in damaged:
        (tmp_path / "wrong").write_bytes(wrong)
        with pytest.raises(FormatError, match="wrong"):
            load_training(str(tmp_path / "wrong"), net, trainer, loader)
    assert mx.random.get_state() == state
    for name, parameter in net.collect_params().items():
        np.testing.assert_array_equal(parameter.data().asnumpy(), before[name])


def test_a_header_that_is_made_up_ends_in_an_error_of_this_package(saved, tmp_path) -> None:
    path, parts = saved
    content = pathlib.Path(path).read_bytes()
    end = 48 + int.from_bytes(content[8:16], "little")
    header = json.loads(content[48:end])
    made_up: list[Any] = [3, [], {}, {"sections": []}, {**header, "sections": [{"name": 1, "bytes": -1, "sha256": ""}]}]
    for name in ("random", "loader", "loss_scaler", "sections"):
        made_up += [{**header, name: wrong} for wrong in (3, "x", [1])]
    made_up += [{**header, name: {"numpy": 1}} for name in ("random", "loader")]
    made_up += [{**header, "loader": {**header["loader"], **wrong}} for wrong in ({"batches": -1}, {"rollover": ["x"]})]
    for wrong in made_up:
        text = json.dumps(wrong).encode()
        begin = b"HNTRAIN1" + len(text).to_bytes(8, "little") + hashlib.sha256(text).digest()
        (tmp_path / "wrong").write_bytes(begin + text + content[end:])
        with pytest.raises(FormatError):
            load_training(str(tmp_path / "wrong"), *parts)


def test_errors_name_missing_and_wrong_parts(saved, tmp_path) -> None:
    path, (net, trainer, loader) = saved
    assert load_training(path, net) == {"done": 2, "epoch": 0}
    with pytest.raises(FileError, match="load_training"):
        load_training(str(tmp_path / "none"), net)
    with pytest.raises(FileError, match="save_training"):
        save_training(str(tmp_path / "none" / "file"), net)
    with pytest.raises(ParamError, match=r"expected an object that json\.dumps accepts"):
        save_training(path, net, extra=object())
    save_training(str(tmp_path / "bare"), net)
    with pytest.raises(ParamError, match="without a trainer"):
        load_training(str(tmp_path / "bare"), net, trainer)
    with pytest.raises(ParamError, match="without a loader"):
        load_training(str(tmp_path / "bare"), net, None, loader)
    assert load_training(str(tmp_path / "bare"), net) is None


def test_numbers_and_arrays_of_numpy_are_kept_as_those_of_python(tmp_path) -> None:
    net = make()[0]
    net(mx.nd.ones((2, 6)))
    extra = {"best": np.float32(0.5), "count": np.int64(3), "losses": [mx.nd.ones((1,)).asscalar()], "rows": np.eye(2)}
    save_training(tmp_path / "a", net, extra=extra)
    assert load_training(tmp_path / "a", net) == {"best": 0.5, "count": 3, "losses": [1.0], "rows": [[1, 0], [0, 1]]}
    with pytest.raises(ParamError, match=r"Fix: .*asnumpy"):
        save_training(tmp_path / "a", net, extra={"loss": mx.nd.ones((1,))})


def test_another_generator_of_numpy_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(np.random, "get_state", lambda legacy=True: {"bit_generator": "PCG64"})
    with pytest.raises(UnsupportedError, match="PCG64"):
        mx.random.get_state()


CHILD = """
import sys, hybridnet as mx
from hybridnet.gluon import nn, save_training
net = nn.Dense(64, in_units=2000)
net.initialize()
print("ready", flush=True)
for number in range(int(sys.argv[2]), 10**9):
    net.weight.set_data(mx.nd.full((64, 2000), number % 4096))
    save_training(sys.argv[1], net, extra=number)
    print(number, flush=True)
"""


def test_killing_the_program_at_any_moment_leaves_a_whole_file(tmp_path) -> None:
    path, at = str(tmp_path / "training"), 0
    draw = random.Random(7)
    for _ in range(12):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with subprocess.Popen(
            [sys.executable, "-c", CHILD, path, str(at)], stdout=subprocess.PIPE, text=True, env=environment
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            assert int(child.stdout.readline()) == at
            time.sleep(draw.random() * 0.06)
            child.send_signal(signal.SIGKILL)
            said = [int(line) for line in child.stdout.read().split() if line.isdigit()]
        net = nn.Dense(64, in_units=2000)
        found = load_training(path, net)
        assert max([at, *said[:-1]]) <= found
        assert (net.weight.data().asnumpy() == found % 4096).all()
        at = found + 1
