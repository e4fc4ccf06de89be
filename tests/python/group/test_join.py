"""Trainer.join(): processes with unequal numbers of batches train together, and none hangs."""

from __future__ import annotations

import pathlib

import pytest
from launched import launch, lines_of, needs_gloo

pytestmark = needs_gloo

# Rank r has 3 + 2r batches of 4 rows. A loop over the batches of all ranks in one process gives the values.
UNEQUAL = """
mode, options = sys.argv[1], {"divided": {"shard_states": True}}.get(sys.argv[1], {})
net = gluon.nn.Dense(2, in_units=3)
net.initialize(mx.init.One())
schedule = mx.lr_scheduler.FactorScheduler(2, 0.5, base_lr=0.1)
trainer = gluon.Trainer(net.collect_params(), "sgd", {"lr_scheduler": schedule, "momentum": 0.9}, kvstore="dist_sync",
                        **options)

def batches(of):
    rng = np.random.default_rng(of)
    return [rng.standard_normal((4, 3)) for _ in range(3 + 2 * of)]

def backward(model, x):
    with autograd.record():
        loss = (model(mx.nd.array(x)) ** 2).sum()
    loss.backward()

for epoch in range(2):  # a process that was done takes part in the next epoch
    with trainer.join():
        for x in batches(rank) if mode != "no batch" or rank else []:
            backward(net, x)
            if mode == "shards":
                trainer.add_shard()
            trainer.step(4 * size, ignore_stale_grad=mode == "stale")

own = gluon.nn.Dense(2, in_units=3)
own.initialize(mx.init.One())
alone = gluon.Trainer(own.collect_params(), "sgd",
    {"lr_scheduler": mx.lr_scheduler.FactorScheduler(2, 0.5, base_lr=0.1), "momentum": 0.9}, kvstore=None)
counts = [len(batches(of)) if mode != "no batch" or of else 0 for of in range(size)]
for epoch in range(2):
    for step in range(max(counts)):
        rows = [batches(of)[step] for of in range(size) if step < counts[of]]
        backward(own, np.concatenate(rows))
        alone.step(4 * size)
assert trainer.learning_rate == alone.learning_rate
np.testing.assert_allclose(net.weight.data().asnumpy(), own.weight.data().asnumpy(), rtol=1e-5)
everyone = group.gather(net.weight.data()).asnumpy()
assert (everyone == everyone[0]).all()
print("fine")
"""


@pytest.mark.parametrize(
    ("processes", "mode"),
    [
        (3, "plain"),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((1, "plain"), (2, "stale"), (2, "no batch"))),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((3, "divided"), (2, "shards"))),
    ],
)
def test_processes_with_fewer_batches_take_part_with_zeros(processes: int, mode: str, tmp_path: pathlib.Path) -> None:
    done = launch(processes, UNEQUAL, tmp_path, arguments=(mode,))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("fine") == processes


# Uses that cannot be joined. argv: the case.
REFUSED = """
case = sys.argv[1]
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(2, in_units=3))
if case == "sync batch norm":
    net.add(gluon.nn.SyncBatchNorm(in_channels=2))
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore="dist_sync")
try:
    with trainer.join():
        for step in range(2 + rank):
            if case == "exception" and step == 1 and rank == 1:
                raise ValueError("a broken sample")
            with autograd.record():
                loss = net(mx.nd.ones((4, 3))).sum()
            loss.backward()
            if case == "apart":
                trainer.allreduce_grads()
            trainer.step(8 if case != "sizes" or rank == 0 else 6)
            if case == "nested":
                with trainer.join():
                    pass
    mx.nd.waitall()
except mx.errors.MXNetError as error:
    print("error", type(error).__name__, " ".join(str(error).split()))
"""


@pytest.mark.parametrize(
    ("case", "text"),
    [
        pytest.param("sync batch norm", "a mean of SyncBatchNorm", marks=pytest.mark.slow),
        pytest.param("sizes", "step(8) and step(6)", marks=pytest.mark.slow),
        pytest.param("exception", "ValueError: a broken sample", marks=pytest.mark.slow),
        pytest.param("apart", "call step(batch_size)", marks=pytest.mark.slow),
        pytest.param("nested", "in a join() already", marks=pytest.mark.slow),
    ],
)
def test_what_cannot_be_joined_is_an_error(case: str, text: str, tmp_path: pathlib.Path) -> None:
    done = launch(2, REFUSED, tmp_path, "--timeout", "10", arguments=(case,))
    for rank in (0, 1) if case != "exception" else (0,):
        assert any(text in line for line in lines_of(done, rank) if line.startswith("error")), done.stdout + done.stderr
