"""Optimizer states in parts (shard_states=True): the bits of plain training, with states of total / n per process."""

from __future__ import annotations

import pathlib
import re
import subprocess

import pytest
from launched import launch, lines_of, needs_gloo

pytestmark = needs_gloo

# Trains 20 steps on a batch of 24 in 4 shards of 6, with plain and with divided states. argv: net, optimizer.
TRAINING = """
import hashlib
from hybridnet.contrib import amp
net_name, optimizer = sys.argv[1:]
if net_name == "amp":
    amp.init("float16")

def make_net():
    mx.random.seed(11)
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        if net_name == "conv":
            net.add(gluon.nn.Conv2D(6, 3), gluon.nn.SyncBatchNorm(in_channels=6), gluon.nn.Activation("relu"),
                    gluon.nn.Flatten(), gluon.nn.Dense(5))
        elif net_name == "lstm":
            net.add(gluon.rnn.LSTM(9, layout="NTC"), gluon.nn.Dense(5))
        else:
            net.add(gluon.nn.Dense(33, activation="relu"), gluon.nn.Dense(7, activation="tanh"), gluon.nn.Dense(5))
    net.initialize(mx.init.Xavier())
    shape = {"conv": (6, 3, 8, 8), "lstm": (6, 5, 12)}.get(net_name, (6, 20))
    net(mx.nd.ones(shape))
    if net_name == "bfloat16":
        net.cast("bfloat16")
    net.hybridize()
    return net, shape

def state_bytes(state):
    if isinstance(state, (tuple, list)):
        return sum(map(state_bytes, state))
    return 0 if state is None else state.size * state.dtype(0).itemsize

def train(shard_states):
    net, shape = make_net()
    params = net.collect_params()
    list(params.values())[0].lr_mult = 0.5
    list(params.values())[1].wd_mult = 0.0
    options = {"learning_rate": 0.01, "multi_precision": net_name == "bfloat16", "wd": 0.01}
    if optimizer == "sgd":
        options["momentum"] = 0.9
    if optimizer != "lamb":
        options["lr_scheduler"] = mx.lr_scheduler.FactorScheduler(7, 0.5, base_lr=0.01)
    trainer = gluon.Trainer(params, optimizer, options, kvstore="dist_sync", shard_states=shard_states)
    if net_name == "amp":
        amp.init_trainer(trainer)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    rng = np.random.default_rng(5)
    for step in range(20):
        data = rng.standard_normal((4, *shape)).astype("float32")
        label = rng.integers(0, 5, (4, 6))
        for shard in range(*group.own_shards()):
            x, y = mx.nd.array(data[shard]), mx.nd.array(label[shard])
            if net_name == "bfloat16":
                x = x.astype("bfloat16")
            with autograd.record():
                loss = loss_of(net(x), y)
                if net_name == "amp":
                    if (step, shard) in ((5, 3), (6, 0)):
                        loss = loss * 1e36  # overflows in one process
                    with amp.scale_loss(loss, trainer) as scaled:
                        loss = scaled.sum()
            loss.backward()
            trainer.add_shard()
        trainer.step(24)
    values = [param.data().asnumpy().tobytes() for param in params.values()]
    digest = hashlib.sha256(b"".join(values)).hexdigest()
    assert np.isfinite(list(params.values())[0].data().astype("float32").asnumpy()).all()
    own = sum(state_bytes(state) for state in trainer._updaters[0].states.values())
    if net_name == "amp":
        digest += f" scale {trainer._amp_loss_scaler.loss_scale}"
    return digest, hashlib.sha256(trainer._states()).hexdigest(), own

plain, divided = train(False), train(True)
assert plain[:2] == divided[:2], (plain, divided)
largest = max(param.data().size for param in make_net()[0].collect_params().values())
by_weight = optimizer in ("lamb", "lbsgd")
assert divided[2] <= plain[2] / size + (8 * largest if by_weight else 1500), (plain[2], divided[2], size)
print("digest", plain[0])
print("bytes of states", plain[2], divided[2])
"""


def digests(done: subprocess.CompletedProcess[str], processes: int) -> set[str]:
    assert done.returncode == 0, done.stdout + done.stderr
    return {re.findall("digest (.*)", "\n".join(lines_of(done, rank)))[0] for rank in range(processes)}


def trained(net: str, optimizer: str, processes: int, folder: pathlib.Path) -> set[str]:
    options = ("--virtual-shards", "4", "--threads", "1")
    return digests(launch(processes, TRAINING, folder, *options, arguments=(net, optimizer)), processes)


@pytest.mark.parametrize(("net", "optimizer"), [("mlp", "adam"), pytest.param("amp", "sgd", marks=pytest.mark.slow)])
def test_divided_states_train_to_the_bits_of_plain_training(net: str, optimizer: str, tmp_path: pathlib.Path) -> None:
    assert len(trained(net, optimizer, 2, tmp_path)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("net", "optimizer"),
    [
        *(("mlp", name) for name in ("sgd", "adam", "lamb", "adagrad", "rmsprop", "ftrl", "nag", "signum", "adadelta")),
        *(("mlp", name) for name in ("adamw", "adamax", "ftml", "dcasgd", "lbsgd")),
        ("lstm", "adam"),
        ("bfloat16", "sgd"),
        ("bfloat16", "adam"),
        ("amp", "adam"),
    ],
)
def test_digests_do_not_depend_on_the_number_of_processes(net: str, optimizer: str, tmp_path: pathlib.Path) -> None:
    found = [trained(net, optimizer, n, tmp_path) for n in (1, 2, 4)]
    assert len(set.union(*found)) == 1, found


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_sync_batch_norm_trains_with_divided_states(processes: int, tmp_path: pathlib.Path) -> None:
    """Its statistics are those of the shards that are computed at the same time: bits depend on the processes."""
    assert len(trained("conv", "adam", processes, tmp_path)) == 1


# Sums and updates apart, stale gradients, states in files, frozen parameters, a plain step without virtual shards.
USES = """
import hashlib
folder = sys.argv[1]
def make(shard_states, seed=3, optimizer="adam"):
    mx.random.seed(seed)
    net, other = gluon.nn.HybridSequential(prefix="net_"), gluon.nn.Dense(7, in_units=10, prefix="other_")
    with net.name_scope():
        net.add(gluon.nn.Dense(40, in_units=10, activation="relu"), gluon.nn.Dense(3, in_units=40))
    for block in (net, other):
        block.initialize(mx.init.Xavier())
    params = {**net.collect_params(), **other.collect_params()}
    trainer = gluon.Trainer(params, optimizer, {"learning_rate": 0.01}, kvstore="dist_sync", shard_states=shard_states)
    return net, other, params, trainer

def digest(params):
    return hashlib.sha256(b"".join(param.data().asnumpy().tobytes() for param in params.values())).hexdigest()

def backward(net, other, step, both=True):
    rng = np.random.default_rng(100 * step + rank)
    x = mx.nd.array(rng.standard_normal((4, 10)))
    with autograd.record():
        loss = (net(x) ** 2).sum()
        if both:
            loss = loss + (other(x) ** 2).sum()
    loss.backward()

def run(shard_states):
    net, other, params, trainer = make(shard_states)
    for step in range(3):
        backward(net, other, step)
        before = [param.grad().asnumpy() for param in params.values()]
        trainer.step(8)
        if shard_states:  # gradients stay those of the process
            assert all((a == param.grad().asnumpy()).all() for a, param in zip(before, params.values(), strict=True))
    for step in range(3, 6):  # with clipping between
        backward(net, other, step)
        trainer.allreduce_grads()
        gluon.utils.clip_global_norm([param.grad() for param in params.values()], 0.5)
        trainer.update(8)
    for step in range(6, 9):  # stale ones: in all processes, and in one
        backward(net, other, step, both=step == 6 or (step == 8 and rank == 0))
        trainer.step(8, ignore_stale_grad=True)
    for param in other.collect_params().values():
        param.grad_req = "null"
    for step in range(9, 11):  # another set of trained parameters
        backward(net, other, step, both=False)
        trainer.step(8)
    for param in other.collect_params().values():
        param.grad_req = "write"
    for step in range(11, 13):
        backward(net, other, step)
        trainer.step(8)
    return digest(params), hashlib.sha256(trainer._states()).hexdigest(), trainer, params

plain, divided = run(False), run(True)
assert plain[:2] == divided[:2]

def continued(source, shard_states):  # states of either trainer continue in either
    file = f"{folder}/{shard_states}-{source[2]._state_shards is not None}-{rank}"
    source[2].save_states(file)
    net, other, params, trainer = make(shard_states, seed=4)
    for own, param in zip(params.values(), source[3].values(), strict=True):
        own.set_data(param.data())
    trainer.load_states(file)
    for step in range(13, 16):
        backward(net, other, step)
        trainer.step(8)
    return digest(params), hashlib.sha256(trainer._states()).hexdigest()

results = {continued(source, shard_states) for source in (plain, divided) for shard_states in (False, True)}
assert len(results) == 1, results

for name, reason in (("sgld", "random numbers"), ("nadam", "m_schedule"), ("lars", "last_lr")):
    try:
        make(True, optimizer=name)
        raise SystemExit(5)
    except mx.errors.UnsupportedError as error:
        assert reason in str(error), error

class Own(mx.optimizer.SGD):
    pass
try:
    make(True, optimizer=Own())
    raise SystemExit(5)
except mx.errors.MXNetError as error:
    assert "is written in Python" in str(error) or "optimizer_params" in str(error), error
try:
    gluon.Trainer(make(False)[2], "sgd", shard_states=True)
    raise SystemExit(5)
except mx.errors.ParamError as error:
    assert "kvstore='dist_sync'" in str(error), error
if size > 1:
    net, other, params, trainer = make(True)
    try:
        mx.jit.train_step(net, None, trainer)
        raise SystemExit(5)
    except mx.errors.UnsupportedError as error:
        assert "shard_states=True" in str(error), error
print("fine")
"""


@pytest.mark.parametrize(
    "processes", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3, 4))], ids=lambda n: f"{n}"
)
def test_divided_states_follow_every_use_of_a_trainer(processes: int, tmp_path: pathlib.Path) -> None:
    done = launch(processes, USES, tmp_path, "--threads", "1", arguments=(str(tmp_path),))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("fine") == processes


ALONE = """
net = gluon.nn.Dense(3, in_units=4)
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "adam", kvstore="dist_sync", shard_states=True)
with autograd.record():
    loss = net(mx.nd.ones((2, 4)))
loss.backward()
trainer.step(2)
if rank == 0:
    trainer.save_states(sys.argv[1])
else:
    loss = net(mx.nd.ones((2, 4)))
    group.sum_into(mx.nd.ones((3,)), name="something else")
    mx.nd.waitall()
"""


@pytest.mark.slow
def test_states_that_one_process_saves_alone_are_a_named_error(tmp_path: pathlib.Path) -> None:
    done = launch(2, ALONE, tmp_path, "--timeout", "5", arguments=(str(tmp_path / "states"),))
    assert done.returncode != 0
    assert "all processes save" in done.stderr, done.stderr
    assert not (tmp_path / "states").exists()
