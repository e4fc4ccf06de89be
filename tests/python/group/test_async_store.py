"""The store 'dist_async': one update for the gradients of each process, a given number of pushes late."""

from __future__ import annotations

import pathlib

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from launched import launch, lines_of, needs_gloo

TRAINING = """
import hashlib
store = mx.kv.create("dist_async")
store.staleness = int(sys.argv[1])
mx.random.seed(5 + rank)  # the values are those of process 0
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(7, in_units=5), gluon.nn.Dense(3, in_units=7, dtype="float32"))
net.initialize(mx.init.Xavier())
net.hybridize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9}, kvstore=store)
first = [param.data().asnumpy() for param in net.collect_params().values()]
rng = np.random.default_rng(3)
batches = rng.standard_normal((6, size, 4, 5)).astype("float32")
seen = []
for batch in batches:
    with autograd.record():
        loss = (net(mx.nd.array(batch[rank])) ** 2).sum()
    loss.backward()
    trainer.step(4)
    seen.append([param.data().asnumpy() for param in net.collect_params().values()])
store.barrier()
last = [param.data().asnumpy() for param in net.collect_params().values()]

# The same in one process, as MXNet's server does it, with the gradients of older parameters.
ours = gluon.nn.HybridSequential()
ours.add(gluon.nn.Dense(7, in_units=5), gluon.nn.Dense(3, in_units=7))
ours.initialize()
for param, value in zip(ours.collect_params().values(), first):
    param.set_data(mx.nd.array(value))
server = gluon.Trainer(ours.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9}, kvstore=None)
def apply(gradients):
    for param, gradient in zip(ours.collect_params().values(), gradients):
        param.list_grad()[0][:] = gradient
        param.data()._fresh_grad = True
    server.update(4)
waiting, expected = [], []
for batch in batches:
    for of_rank in batch:
        with autograd.record():
            loss = (ours(mx.nd.array(of_rank)) ** 2).sum()
        loss.backward()
        waiting.append([param.grad().copy() for param in ours.collect_params().values()])
    while len(waiting) > store.staleness * size:
        apply(waiting.pop(0))
    expected.append([param.data().asnumpy() for param in ours.collect_params().values()])
for gradients in waiting:
    apply(gradients)
expected.append([param.data().asnumpy() for param in ours.collect_params().values()])
for found, wanted in zip([*seen, last], expected, strict=True):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
print(hashlib.sha256(b"".join(a.tobytes() for a in last)).hexdigest())
"""


@needs_gloo
@pytest.mark.parametrize(("processes", "staleness"), [(2, 0), (2, 1), (3, 2)])
def test_updates_follow_those_of_a_server_with_the_given_delay(
    processes: int, staleness: int, tmp_path: pathlib.Path
) -> None:
    done = launch(processes, TRAINING, tmp_path, "--threads", "1", arguments=(str(staleness),))
    assert done.returncode == 0, done.stderr
    assert len({lines_of(done, rank)[-1] for rank in range(processes)}) == 1


STORE = """
store = mx.kv.create("dist_async")
store.init([3, 5], [mx.nd.ones((2, 2)) * (1 + 5 * rank), mx.nd.ones((3,), dtype="float64")])
store.init(7, mx.nd.zeros((4, 2)))
store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
out = [mx.nd.zeros((2, 2)), mx.nd.zeros((3,), dtype="float64")]
for push in range(2):
    store.pushpull([3, 5], [mx.nd.ones((2, 2)) * (rank + 1), mx.nd.ones((3,), dtype="float64") * rank], out=out)
    assert (out[0].asnumpy() == 1 - 3 * push).all() and (out[1].asnumpy() == 1 - push).all()
rows = mx.nd.sparse.row_sparse_array((np.ones((1, 2), "float32"), [rank]), shape=(4, 2))
store.push(7, rows)
store.push(7, mx.nd.sparse.zeros("row_sparse", (4, 2)))
found = mx.nd.zeros((4, 2))
store.pull(7, out=found)
assert (found.asnumpy() == [[-1, -1], [-1, -1], [0, 0], [0, 0]]).all(), found
store.barrier()
store.pull([3, 5], out=out)
assert (out[0].asnumpy() == 1 - 6).all() and (out[1].asnumpy() == 1 - 2).all()
print("ok")
"""


@needs_gloo
def test_a_store_updates_dense_and_row_sparse_arrays_for_each_process(tmp_path: pathlib.Path) -> None:
    done = launch(2, STORE, tmp_path, "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert all(lines_of(done, rank)[-1] == "ok" for rank in range(2))


OTHERS = """
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(4, in_units=3), gluon.nn.Dense(2, in_units=3))
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0}, kvstore="dist_async")
before = net[1].weight.data().asnumpy()
for step in range(2):
    layer = net[step if rank == 0 else 0]  # process 1 never reaches the second layer
    with autograd.record():
        loss = layer(mx.nd.ones((1, 3))).sum()
    loss.backward()
    trainer.step(1, ignore_stale_grad=True)
trainer._kvstore.barrier()
assert (net[1].weight.data().asnumpy() == before - 1).all()
fresh = gluon.nn.Dense(1, in_units=1)
fresh.initialize()
one = gluon.Trainer(fresh.collect_params(), "sgd", kvstore="dist_async")
with autograd.record():
    loss = fresh(mx.nd.ones((1, 1)))
loss.backward()
one.step(1 + rank)
try:
    mx.nd.waitall()
    one._kvstore.barrier()
    fresh.weight.data().wait_to_read()
except mx.errors.GroupError as error:
    print("divided" if "divided by" in str(error) else error)
"""


@needs_gloo
def test_parameters_that_a_process_has_not_reached_and_other_divisors(tmp_path: pathlib.Path) -> None:
    done = launch(2, OTHERS, tmp_path, "--threads", "1")
    assert all("divided" in lines_of(done, rank) for rank in range(2)), done.stdout + done.stderr


MODULE = """
x = mx.sym.Variable("data")
net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=3, name="fc"), name="softmax")
rng = np.random.default_rng(rank)
data = rng.standard_normal((40, 5)).astype("float32")
label = (data[:, 0] > 0).astype("float32") + (data[:, 1] > 0)
module = mx.mod.Module(net)
mx.random.seed(rank)
module.fit(
    mx.io.NDArrayIter(data, label, 10), num_epoch=50, kvstore="dist_async",
    optimizer="sgd", optimizer_params={"learning_rate": 0.3}, initializer=mx.init.Xavier(),
)
assert module._optimizer.rescale_grad == 1 / 10
accuracy = dict(module.score(mx.io.NDArrayIter(data, label, 10), "acc"))["accuracy"]
assert accuracy > 0.7, accuracy
print(np.concatenate([value.asnumpy().ravel() for value in module.get_params()[0].values()]).tolist())
"""


@needs_gloo
def test_modules_train(tmp_path: pathlib.Path) -> None:
    done = launch(2, MODULE, tmp_path, "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert lines_of(done, 0)[-1] == lines_of(done, 1)[-1]


CHECKPOINT = """
net = gluon.nn.Dense(2, in_units=3)
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "adam", kvstore="dist_async")
def step():
    with autograd.record():
        loss = (net(mx.nd.ones((1, 3)) * (1 + rank)) ** 2).sum()
    loss.backward()
    trainer.step(1)
for _ in range(3):
    step()
group.save_checkpoint(sys.argv[1], net, trainer, step=3)
saved = net.weight.data().asnumpy()
assert trainer.optimizer.num_update == 3 * size
step()
trainer._kvstore.barrier()
after = net.weight.data().asnumpy()
step()
assert group.load_checkpoint(sys.argv[1], net, trainer).step == 3
assert (net.weight.data().asnumpy() == saved).all()
step()
trainer._kvstore.barrier()
assert (net.weight.data().asnumpy() == after).all()
print("ok")
"""


@needs_gloo
def test_checkpoints_hold_the_gradients_that_were_on_their_way(tmp_path: pathlib.Path) -> None:
    done = launch(2, CHECKPOINT, tmp_path, "--threads", "1", arguments=(str(tmp_path / "kept"),))
    assert done.returncode == 0, done.stderr
    assert all(lines_of(done, rank)[-1] == "ok" for rank in range(2))


EDGES = """
def net_of(first, **options):
    net = gluon.nn.Dense(1, in_units=1, use_bias=False)
    net.initialize(mx.init.Constant(first))
    return net, gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0}, kvstore="dist_async", **options)
def step(net, trainer, **options):
    with autograd.record():
        loss = net(mx.nd.ones((1, 1)))
    loss.backward()
    trainer.step(1, **options)

# Gradients of values that were set anew meanwhile have no effect on the new ones.
net, trainer = net_of(5.0)
step(net, trainer)
net.weight.set_data(mx.nd.array([[7.0]]))
step(net, trainer)
assert net.weight.data().asscalar() == 7
trainer._kvstore.barrier()
assert net.weight.data().asscalar() == 7 - size

# Nothing to train.
net, trainer = net_of(5.0)
net.collect_params().setattr("grad_req", "null")
for ignored in (True, False):
    trainer.step(1, ignore_stale_grad=ignored)
    trainer.step(1, ignore_stale_grad=ignored)
trainer._kvstore.barrier()
assert net.weight.data().asscalar() == 5

# Arrays without elements, float16 and values that are not finite.
with mx.util.np_shape(True):
    store = mx.kv.create("dist_async")
    store.init(["a", "b", "c"], [mx.nd.zeros((0, 3)), mx.nd.zeros(2, dtype="float16"), mx.nd.zeros(2)])
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
    values = [mx.nd.zeros((0, 3)), mx.nd.ones(2, dtype="float16") * rank, mx.nd.array([float("nan"), rank])]
    store.push(["a", "b", "c"], values)
    values[1][:] = 100  # what was pushed does not change
    store.barrier()
    out = [mx.nd.zeros((0, 3)), mx.nd.zeros(2, dtype="float16"), mx.nd.zeros(2)]
    store.pull(["a", "b", "c"], out=out)
    assert out[0].shape == (0, 3) and (out[1].asnumpy() == -1).all()
    assert np.isnan(out[2].asnumpy()[0]) and out[2].asnumpy()[1] == -1

# Processes that wait for other pushes.
store = mx.kv.create("dist_async")
store.staleness = 1 + rank
store.init(0, mx.nd.zeros(1))
store.set_optimizer(mx.optimizer.SGD())
store.push(0, mx.nd.ones(1))
try:
    store.barrier()
    store._stored[0].wait_to_read()
except mx.errors.GroupError as error:
    assert "(staleness 1)" in str(error) and "(staleness 2)" in str(error), error
    print("other staleness")
"""


@needs_gloo
def test_values_that_are_set_nothing_to_train_odd_arrays_and_other_delays(tmp_path: pathlib.Path) -> None:
    done = launch(2, EDGES, tmp_path, "--threads", "1")
    assert all("other staleness" in lines_of(done, rank) for rank in range(2)), done.stdout + done.stderr


def test_one_process_updates_at_once() -> None:
    store = mx.kv.create("dist_async")
    assert (store.type, store.rank, store.num_workers, store.staleness) == ("dist_async", 0, 1, 1)
    store.init("w", mx.nd.ones(3))
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    out = mx.nd.zeros(3)
    store.pushpull("w", mx.nd.ones(3), out=out)
    assert (out.asnumpy() == 0.5).all()


def _net() -> gluon.nn.Dense:
    net = gluon.nn.Dense(2, in_units=2)
    net.initialize()
    return net


def _step(**arguments: object) -> None:
    net = _net()
    trainer = gluon.Trainer(net.collect_params(), "sgd", kvstore="dist_async", **arguments)
    with mx.autograd.record():
        loss = net(mx.nd.ones((1, 2)))
    loss.backward()
    trainer.step(1)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: mx.kv.create("dist_async").push(0, mx.nd.ones(1)), ValueError, "was not initialized"),
        (lambda: _pushed_without_optimizer(), NotImplementedError, "without an optimizer"),
        (lambda: setattr(mx.kv.create("dist_async"), "staleness", -1), ValueError, "from 0"),
        (lambda: setattr(mx.kv.create("dist_async"), "staleness", 1.5), ValueError, "from 0"),
        (lambda: _step(update_on_kvstore=False), ValueError, "async mode"),
        (lambda: _step(compression_params={"type": "2bit"}), NotImplementedError, "compression"),
        (lambda: _step(shard_states=True), ValueError, "dist_sync"),
        (lambda: _trainer().allreduce_grads(), ValueError, "update_on_kvstore"),
        (lambda: _trainer().join(), ValueError, "dist_sync"),
        (lambda: _trainer().add_shard(), ValueError, "dist_sync"),
    ],
)
def test_wrong_uses_are_named(call, error, text) -> None:
    with pytest.raises(error, match=text):
        call()


def _trainer() -> gluon.Trainer:
    return gluon.Trainer(_net().collect_params(), "sgd", kvstore="dist_async")


def _pushed_without_optimizer() -> None:
    store = mx.kv.create("dist_async")
    store.init(0, mx.nd.ones(1))
    store.push(0, mx.nd.ones(1))


def test_a_compiled_step_refuses_the_store() -> None:
    net = _net()
    trainer = gluon.Trainer(net.collect_params(), "sgd", kvstore="dist_async")
    with pytest.raises(mx.errors.UnsupportedError, match="AsyncKVStore"):
        mx.jit.train_step(net, lambda y: (y**2).sum(), trainer)(mx.nd.ones((1, 2)))


def test_steps_of_one_process_have_the_values_of_dist_sync() -> None:
    def trained(store: str) -> np.ndarray:
        mx.random.seed(1)
        net = _net()
        trainer = gluon.Trainer(net.collect_params(), "adam", kvstore=store)
        for _ in range(3):
            with mx.autograd.record():
                loss = (net(mx.nd.ones((1, 2))) ** 2).sum()
            loss.backward()
            trainer.step(1)
        return net.weight.data().asnumpy()

    assert (trained("dist_async") == trained("dist_sync")).all()
