"""hybridnet.horovod and hybridnet.byteps: their calls, trainers and errors, and programs for Horovod run unchanged."""

from __future__ import annotations

import copy
import os
import pathlib
import pickle
import re
import socket
import subprocess
import sys
from collections.abc import Iterator

import hybridnet as mx
import hybridnet.byteps as bps
import hybridnet.horovod as hvd
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet.horovod._training import GradientStore
from launched import launch, lines_of, needs_gloo

# --- several processes ------------------------------------------------------------------------------------------------

CALLS = """
import hybridnet.horovod as hvd
hvd.init()
hvd.init()
assert hvd.is_initialized() and (hvd.rank(), hvd.size()) == (rank, size) == (hvd.local_rank(), hvd.local_size())
assert (hvd.cross_rank(), hvd.cross_size(), hvd.is_homogeneous()) == (0, 1, True)
assert hvd.global_process_set.ranks == list(range(size)) and hvd.global_process_set.included()
assert (hvd.global_process_set.rank(), hvd.global_process_set.size()) == (rank, size)
total = size * (size + 1) // 2

for dtype in ("float32", "float64", "float16", "int32", "int64", "uint8"):
    x = mx.nd.full((2, 3), rank + 1, dtype=dtype)
    for got, expected in (
        (hvd.allreduce(x), total / size),
        (hvd.allreduce(x, average=False, name="x"), total),
        (hvd.allreduce(x, op=hvd.Sum, prescale_factor=2, postscale_factor=0.5), total),
        (hvd.allreduce(x, op=hvd.Average, postscale_factor=size), total),
        (hvd.allreduce(x, op=hvd.Min), 1),
        (hvd.allreduce(x, op=hvd.Max, postscale_factor=2), 2 * size),
        (hvd.allreduce(x, op=hvd.Product), np.prod(np.arange(size) + 1)),
        (hvd.broadcast(x, size - 1), size),
    ):
        assert got.dtype == x.dtype and got.shape == x.shape
        expected = np.float64(expected) if "float" in dtype else int(expected)
        np.testing.assert_allclose(got.asnumpy(), np.full((2, 3), expected), rtol=1e-3)
    assert (x.asnumpy() == rank + 1).all()  # not written
    y, z = x.copy(), x.copy()
    assert hvd.allreduce_(y, average=False) is y and hvd.broadcast_(z, 0) is z
    assert (y.asnumpy() == total).all() and (z.asnumpy() == 1).all()
    assert (hvd.allreduce_(x.copy(), op=hvd.Max).asnumpy() == size).all()
equal = mx.nd.array([0.1, 1e-30, 3.3])
assert (hvd.allreduce(equal).asnumpy() == equal.asnumpy()).all()  # an average of equal values is that value

# Groups of arrays, of several dtypes and with a gradient.
arrays = [mx.nd.full((n,), rank + 1.0) for n in (3, 1)] + [mx.nd.full((2,), rank + 1, dtype="int32")]
sums = hvd.grouped_allreduce(arrays, average=False, name="some")
assert [int(a.asnumpy()[0]) for a in sums] == [total] * 3 and arrays[0].asnumpy()[0] == rank + 1
assert hvd.grouped_allreduce_(arrays, op=hvd.Max) is arrays and [int(a.asnumpy()[0]) for a in arrays] == [size] * 3
assert hvd.grouped_allreduce([]) == [] == hvd.grouped_allreduce_([])
w = mx.nd.array([2.0])
w.attach_grad()
with autograd.record():
    (mean,) = hvd.grouped_allreduce([w * (rank + 1)])
    loss = (mean + hvd.allreduce(w * (rank + 1))).sum()
loss.backward()
np.testing.assert_allclose(w.grad.asnumpy(), 2.0 * (rank + 1), rtol=1e-6)  # each process' loss counts

# Joined rows; their number differs.
rows = mx.nd.arange(rank * 10, rank * 10 + 2 * (rank + 1)).reshape((rank + 1, 2))
expected = np.concatenate([np.arange(r * 10, r * 10 + 2 * (r + 1)).reshape(r + 1, 2) for r in range(size)])
for dtype in ("float32", "int64", "uint8"):
    assert (hvd.allgather(rows.astype(dtype), name="rows").asnumpy() == expected).all()
assert hvd.allgather(mx.nd.full((2, 1, 3), rank)).shape == (2 * size, 1, 3)
with mx.util.np_shape(True):
    assert hvd.allgather(mx.nd.zeros((0, 3))).shape == (0, 3)
    few = hvd.allgather(mx.nd.full((2 if rank == size - 1 else 0, 3), 7))
    assert few.shape == (2, 3) and (few.asnumpy() == 7).all()

# Rows for others: rank r sends 10 r + s to rank s, in equal parts and in others.
sent = mx.nd.array([10 * rank + s for s in range(size) for _ in range(2)])
assert hvd.alltoall(sent).asnumpy().tolist() == [10 * r + rank for r in range(size) for _ in range(2)]
sent = mx.nd.array([10 * rank + s for s in range(size) for _ in range(s + 1)])
got, counts = hvd.alltoall(sent, splits=[s + 1 for s in range(size)], name="parts")
assert got.asnumpy().tolist() == [10 * r + rank for r in range(size) for _ in range(rank + 1)]
assert counts.asnumpy().tolist() == [rank + 1] * size and counts.dtype == np.int32
try:
    hvd.alltoall(mx.nd.ones((size + 1,)))
    raise SystemExit(5)
except mx.errors.ShapeError as error:
    assert f"a multiple of {size}" in str(error) and "splits" in error.fix

# Objects are JSON in all processes, or an error in all of them.
value = {"lr": 0.1, "steps": [1, 2, None, True], "name": f"rank {rank}"}
assert hvd.broadcast_object(value, root_rank=1) == {**value, "name": "rank 1"}
assert hvd.allgather_object([rank] * rank) == [[r] * r for r in range(size)]
for call, bad in (
    (lambda: hvd.broadcast_object((1, 2) if rank == 1 else 3, root_rank=1), "the object is a tuple"),
    (lambda: hvd.allgather_object({"a": [{1}]} if rank == 1 else 3), r"the object['a'][0] is a set"),
):
    try:
        call()
        raise SystemExit(5)
    except mx.errors.UnsupportedError as error:
        assert bad in str(error) and "rank 1" in str(error) and "pickle" in error.because, error

# Differences between processes are named.
hvd.shutdown()
hvd.shutdown()
assert not hvd.is_initialized()
for call, kind in ((hvd.rank, mx.errors.ValueError), (hvd.init, mx.errors.GroupError)):
    try:
        call()
        raise SystemExit(5)
    except kind as error:
        assert "hvd." in str(error), error
print("fine")
"""


@needs_gloo
def test_calls_give_horovods_values(tmp_path: pathlib.Path) -> None:
    done = launch(3, CALLS, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == 3


TRAINING = """
import copy, warnings
import hybridnet.byteps as bps
import hybridnet.horovod as hvd
hvd.init()

def net_of(value, in_units=3):
    net = gluon.nn.Dense(1, use_bias=False, in_units=in_units)
    net.initialize(mx.init.Constant(value))
    return net

def backward(net, scale=1.0):
    with autograd.record():
        loss = net(mx.nd.full((2, 3), scale * (rank + 1.0))).sum()
    loss.backward()

def gradient(net):
    return float(net.weight.grad().asnumpy()[0, 0])

def weight(net):
    return float(net.weight.data().asnumpy()[0, 0])

total = size * (size + 1)  # the sum of all gradients: 2 (rank + 1) each
change = 0.5 * total / (2 * size)  # step(2), the batch of one process, averages over all

# Parameters of one process, whose shapes are known or not.
known, waiting = net_of(rank + 1), net_of(rank + 1, in_units=0)
block = gluon.nn.HybridSequential()
block.add(waiting)
block.hybridize()
hvd.broadcast_parameters(known.collect_params(), root_rank=1)
hvd.broadcast_parameters(block.collect_params(), root_rank=1)
hvd.broadcast_parameters(block.collect_params(), root_rank=1)
twin = copy.deepcopy(block)
for net in (block, twin):
    net(mx.nd.ones((2, 3)))
    assert "_init_impl" not in vars(net[0].weight)
for net in (known, waiting, twin[0]):
    assert weight(net) == 2, weight(net)
arrays = {"a": mx.nd.full((2,), rank), "b": mx.nd.full((3,), rank, dtype="int32")}
hvd.broadcast_parameters(arrays, prefix="arg:")
assert (arrays["a"].asnumpy() == 0).all() and (arrays["b"].asnumpy() == 0).all()
# On two contexts of each process.
two = gluon.nn.Dense(1, use_bias=False, in_units=3)
two.initialize(mx.init.Constant(rank + 1), ctx=[mx.cpu(0), mx.cpu(1)])
hvd.broadcast_parameters(two.collect_params())
assert [float(a.asnumpy()[0, 0]) for a in two.weight.list_data()] == [1, 1]
trainer = hvd.DistributedTrainer(two.collect_params(), "sgd", {"learning_rate": 0.5})
with autograd.record():
    losses = [two(mx.nd.full((1, 3), rank + 1.0, ctx=ctx)).sum() for ctx in (mx.cpu(0), mx.cpu(1))]
autograd.backward(losses)
trainer.step(2)
for a in two.weight.list_data():
    np.testing.assert_allclose(a.asnumpy(), 1 - change, rtol=1e-6)

half = {"compression": hvd.Compression.fp16}
divided = {"gradient_predivide_factor": 4.0, "prefix": "p:", "num_groups": 2}
for options in ({}, half, divided):
    net = net_of(2)
    trainer = hvd.DistributedTrainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, **options)
    backward(net)
    trainer.step(2)
    np.testing.assert_allclose(weight(net), 2 - change, rtol=1e-6)
    backward(net)
    trainer.allreduce_grads()
    np.testing.assert_allclose(gradient(net), total / options.get("gradient_predivide_factor", 1), rtol=1e-6)
    trainer.update(2)
    np.testing.assert_allclose(weight(net), 2 - 2 * change, rtol=1e-6)
assert net.weight.grad().dtype == np.float32
grads = [mx.nd.ones((2,))]
trainer._kvstore.pushpull(0, grads)
assert (grads[0].asnumpy() == size).all() and trainer._kvstore.num_workers == size and trainer._kvstore.rank == rank
try:
    mx.jit.train_step(net, gluon.loss.L2Loss(), trainer)(mx.nd.ones((2, 3)), mx.nd.ones((2, 1)))
    raise SystemExit(5)
except mx.errors.UnsupportedError as error:  # its step would not sum
    assert "key-value store" in str(error), error

# An optimizer that reduces, in a Trainer and in a Module, and its unwrapping.
optimizer = mx.optimizer.SGD(learning_rate=0.5, momentum=0.0)
reducing = hvd.DistributedOptimizer(optimizer, gradient_predivide_factor=2)
assert isinstance(reducing, mx.optimizer.SGD) and optimizer.rescale_grad == reducing.rescale_grad == 2 / size
assert reducing.learning_rate == 0.5
optimizer.set_learning_rate(0.25)
assert reducing.learning_rate == 0.25
optimizer.set_learning_rate(0.5)
net = net_of(2)
trainer = gluon.Trainer(net.collect_params(), reducing, kvstore=None)
backward(net)
trainer.step(2)
np.testing.assert_allclose(weight(net), 2 - change, rtol=1e-6)
assert optimizer.num_update == 1
net = net_of(2)
optimizer = mx.optimizer.SGD(learning_rate=0.5)
reducing = hvd.DistributedOptimizer(optimizer, gradient_predivide_factor=2)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    trainer = hvd.DistributedTrainer(net.collect_params(), reducing)
assert "inside of the DistributedOptimizer" in str(caught[0].message) and optimizer.rescale_grad == 1
backward(net)
trainer.step(2)
np.testing.assert_allclose(weight(net), 2 - change, rtol=1e-6)
half = net_of(2)
half.cast("float16")
reducing = hvd.DistributedOptimizer(mx.optimizer.SGD(learning_rate=0.5, multi_precision=True))
trainer = gluon.Trainer(half.collect_params(), reducing, kvstore=None)
with autograd.record():
    loss = half(mx.nd.full((2, 3), rank + 1.0, dtype="float16")).sum()
loss.backward()
trainer.step(2)
np.testing.assert_allclose(weight(half), 2 - change, rtol=1e-3)
data = mx.sym.var("data")
symbol = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(data, num_hidden=1, no_bias=True, name="fc"), name="lro")
module = mx.mod.Module(symbol, label_names=["lro_label"])
module.bind([("data", (2, 3))], [("lro_label", (2, 1))])
module.init_params(mx.init.Constant(float(rank)))
arg_params, aux_params = module.get_params()
hvd.broadcast_parameters(arg_params)
hvd.broadcast_parameters(aux_params)
module.set_params(arg_params, aux_params)
module.init_optimizer(None, hvd.DistributedOptimizer(mx.optimizer.SGD(learning_rate=0.5, rescale_grad=0.5)))
module.forward_backward(mx.io.DataBatch([mx.nd.full((2, 3), rank + 1.0)], [mx.nd.ones((2, 1))]))
module.update()
expected = 0.5 * sum(2 * (r + 1) for r in range(size)) / (2 * size)
np.testing.assert_allclose(module.get_params()[0]["fc_weight"].asnumpy(), np.full((1, 3), expected), rtol=1e-5)

# BytePS: the trainer broadcasts, and leaves averages in the gradients.
assert (bps.rank(), bps.size(), bps.local_rank(), bps.local_size()) == (rank, size, rank, size)
value = mx.nd.full((2,), rank + 1.0)
bps.byteps_declare_tensor("value")
bps.byteps_push_pull(value, name="value", is_average=False)
assert (value.asnumpy() == total / 2).all()
bps.byteps_push_pull(value, version=0, priority=-1, name="value")
assert (value.asnumpy() == total / 2).all()
for params in (None, {"fp16": True}):
    net = net_of(rank + 1, in_units=0)
    trainer = bps.DistributedTrainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, 1, params)
    backward(net)
    trainer.step(2)
    np.testing.assert_allclose(weight(net), 2 - change, rtol=1e-6)
    backward(net)
    trainer.allreduce_grads()
    np.testing.assert_allclose(gradient(net), total / size, rtol=1e-6)

# After the end, a step is an error instead of training alone.
hvd.shutdown()
backward(net)
try:
    trainer.step(2)
    raise SystemExit(5)
except mx.errors.GroupError as error:
    assert "has left its group" in str(error)
print("fine")
"""


@needs_gloo
def test_training_averages_over_processes(tmp_path: pathlib.Path) -> None:
    done = launch(2, TRAINING, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == 2


SHARDS = """
import hybridnet.horovod as hvd
hvd.init()
for options in ({}, {"compression": hvd.Compression.fp16}):
    net = gluon.nn.Dense(1, use_bias=False, in_units=3)
    net.initialize(mx.init.Constant(2))
    trainer = hvd.DistributedTrainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, **options)
    for shard in range(*group.own_shards()):
        with autograd.record():
            loss = net(mx.nd.full((1, 3), shard + 1.0)).sum()
        loss.backward()
        trainer.add_shard()
    try:
        trainer.step(2)
        np.testing.assert_allclose(net.weight.data().asnumpy(), 2 - 0.5 * 10 / 4)
        assert not options
    except mx.errors.UnsupportedError as error:
        assert options and "virtual shards" in str(error), error
try:
    hvd.broadcast_parameters({"a": mx.nd.ones((2 + rank,))})
    raise SystemExit(5)
except mx.errors.GroupError as error:
    assert "disagree" in str(error) and "parameters 'a'" in str(error), error
print("fine")
"""


@needs_gloo
def test_virtual_shards_and_differing_parameters(tmp_path: pathlib.Path) -> None:
    done = launch(2, SHARDS, tmp_path, "--virtual-shards", "4")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == 2


PLACES = """
import hybridnet.horovod as hvd
local = [("0", "2"), ("1", "2"), ("0", "1")][rank]
os.environ["HYBRIDNET_GROUP_LOCAL_RANK"], os.environ["HYBRIDNET_GROUP_LOCAL_SIZE"] = local
hvd.init()
place = (hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size(), hvd.is_homogeneous())
assert place == [(0, 2, 0, 2, False), (1, 2, 0, 1, False), (0, 1, 1, 2, False)][rank], place
print("fine")
"""


@needs_gloo
def test_places_on_machines_come_from_the_environment(tmp_path: pathlib.Path) -> None:
    done = launch(3, PLACES, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == 3


# --- one process ------------------------------------------------------------------------------------------------------


@pytest.fixture
def alone() -> Iterator[None]:
    hvd.init()
    yield
    hvd.shutdown()


def trained(**options: object) -> hvd.DistributedTrainer:
    net = gluon.nn.Dense(1, in_units=2)
    net.initialize()
    return hvd.DistributedTrainer(net.collect_params(), "sgd", **options)  # type: ignore[arg-type]


def test_one_process_needs_no_launcher(alone: None) -> None:
    assert (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size()) == (0, 1, 0, 1)
    assert (hvd.cross_rank(), hvd.cross_size(), hvd.is_homogeneous()) == (0, 1, True)
    x = mx.nd.array([1.0, 2.0])
    for out in (
        hvd.allreduce(x),
        hvd.allgather(x),
        hvd.alltoall(x),
        hvd.broadcast(x, 0),
        hvd.grouped_allreduce([x])[0],
    ):
        out += 1
        assert out.asnumpy().tolist() == [2, 3] and x.asnumpy().tolist() == [1, 2]
    assert hvd.broadcast_object({"a": [1.5, None]}) == {"a": [1.5, None]} and hvd.allgather_object("x") == ["x"]
    bps.byteps_push_pull(x)
    trainer = trained(compression=hvd.Compression.fp16, gradient_predivide_factor=2.0)
    assert trainer._scale == 1 and trainer._store is None
    net = gluon.nn.Dense(1)
    net.initialize()
    hvd.broadcast_parameters(net.collect_params())
    assert "_init_impl" not in vars(net.weight)
    hvd.init()
    hvd.shutdown()
    hvd.init()  # with one process, it is possible again


def test_queries_tell_that_only_gloo_is_there(alone: None) -> None:
    library = pathlib.Path(mx.__file__).parent / "libhybridnet_gloo.so"
    assert hvd.gloo_built() == hvd.gloo_enabled() == library.exists()
    built = (hvd.mpi_built, hvd.mpi_enabled, hvd.ddl_built, hvd.ccl_built, hvd.cuda_built, hvd.rocm_built)
    assert not any(query() for query in (*built, hvd.mpi_threads_supported, hvd.nccl_built))


def test_a_distributed_optimizer_is_copied_and_saved_like_the_one_inside(alone: None) -> None:
    optimizer = hvd.DistributedOptimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.9))
    assert repr(optimizer) == "DistributedOptimizer(SGD(learning_rate=0.5, momentum=0.9))"
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert isinstance(other, hvd.DistributedOptimizer) and isinstance(other, mx.optimizer.SGD)
        assert (other.momentum, other.rescale_grad) == (0.9, 1) and other._wrapped is not optimizer._wrapped
    weight = mx.nd.ones((2,))
    updater = mx.optimizer.get_updater(optimizer)
    updater(0, mx.nd.ones((2,)), weight)
    plain = mx.optimizer.get_updater(mx.optimizer.SGD())
    plain.set_states(updater.get_states(dump_optimizer=True))
    assert type(plain.optimizer) is mx.optimizer.SGD and plain.optimizer.momentum == 0.9
    again = mx.optimizer.get_updater(hvd.DistributedOptimizer(mx.optimizer.SGD()))
    again.set_states(updater.get_states(dump_optimizer=True))
    assert isinstance(again.optimizer, hvd.DistributedOptimizer) and again.optimizer.num_update == 1


ONES = mx.nd.ones((4,))
PLAIN = mx.optimizer.SGD()
WRONG = {
    "communicator": (lambda: hvd.init(comm=[0, 1]), mx.errors.UnsupportedError, "no MPI communicators"),
    "process sets": (lambda: hvd.init(process_sets=[[0]]), mx.errors.UnsupportedError, "runs on all processes"),
    "process set": (lambda: hvd.ProcessSet([0]), mx.errors.UnsupportedError, "global_process_set"),
    "adding a set": (lambda: hvd.add_process_set([0]), mx.errors.UnsupportedError, "add_process_set"),
    "removing a set": (lambda: hvd.remove_process_set(1), mx.errors.UnsupportedError, "remove_process_set"),
    "another set": (lambda: hvd.allreduce(ONES, process_set=1), mx.errors.UnsupportedError, "allreduce: process_set"),
    "set of objects": (lambda: hvd.broadcast_object(1, process_set=1), mx.errors.UnsupportedError, "process_set"),
    "set of lists": (lambda: hvd.allgather_object(1, process_set=1), mx.errors.UnsupportedError, "process_set"),
    "set of trainers": (lambda: trained(process_set=1), mx.errors.UnsupportedError, "DistributedTrainer: process_set"),
    "timeline": (lambda: hvd.start_timeline("x.json"), mx.errors.UnsupportedError, "mx.profiler"),
    "end of timeline": (lambda: hvd.stop_timeline(), mx.errors.UnsupportedError, "stop_timeline"),
    "no array": (lambda: hvd.allreduce(np.ones(2)), mx.errors.TypeError, "expected an NDArray, got ndarray"),
    "no array in place": (lambda: hvd.allreduce_(3), mx.errors.TypeError, "allreduce_"),
    "no array to gather": (lambda: hvd.allgather(3), mx.errors.TypeError, "allgather"),
    "no array to exchange": (lambda: hvd.alltoall(3), mx.errors.TypeError, "alltoall"),
    "no array to send": (lambda: hvd.broadcast(3, 0), mx.errors.TypeError, "broadcast:"),
    "no array to overwrite": (lambda: hvd.broadcast_(3, 0), mx.errors.TypeError, "broadcast_"),
    "no list": (lambda: hvd.grouped_allreduce(ONES), mx.errors.TypeError, "a list of NDArrays"),
    "no list in place": (lambda: hvd.grouped_allreduce_([3]), mx.errors.TypeError, "grouped_allreduce_"),
    "both ways": (lambda: hvd.allreduce(ONES, average=True, op=hvd.Sum), mx.errors.ParamError, "op replaces average"),
    "unknown op": (lambda: hvd.allreduce(ONES, op="sum"), mx.errors.ParamError, "hvd.Average, Sum.*got 'sum'"),
    "unknown number": (lambda: hvd.allreduce(ONES, op=9), mx.errors.ParamError, "got 9"),
    "bool as op": (lambda: hvd.allreduce(ONES, op=True), mx.errors.ParamError, "got True"),
    "Adasum": (lambda: hvd.allreduce(ONES, op=hvd.Adasum), mx.errors.UnsupportedError, "Adasum"),
    "average of bool": (lambda: hvd.allreduce(ONES.astype("bool")), mx.errors.DTypeError, "expected numbers, got bool"),
    "sparse": (
        lambda: hvd.allreduce(mx.nd.ones((2, 2)).tostype("row_sparse")),
        mx.errors.UnsupportedError,
        "tostype\\('default'\\)",
    ),
    "no rows": (lambda: hvd.allgather(mx.nd.sum(ONES).reshape(())), mx.errors.ShapeError, "a first axis"),
    "splits": (lambda: hvd.alltoall(ONES, [3]), mx.errors.ParamError, "1 numbers of rows.*sum 4, got \\[3\\]"),
    "fractions": (lambda: hvd.alltoall(ONES, [3.5]), mx.errors.ParamError, "numbers of rows"),
    "two splits": (lambda: hvd.alltoall(ONES, [5, -1]), mx.errors.ParamError, "1 numbers of rows"),
    "root": (lambda: hvd.broadcast(ONES, 1), mx.errors.ValueError, "a rank from 0 to 0"),
    "params": (lambda: hvd.broadcast_parameters([ONES]), mx.errors.ParamError, "a dict of Parameters.*got list"),
    "param": (lambda: hvd.broadcast_parameters({"a": 3}), mx.errors.TypeError, "'a'.*got int"),
    "root of params": (lambda: hvd.broadcast_parameters({}, 1), mx.errors.ValueError, "a rank from 0 to 0, got 1"),
    "root of BytePS": (lambda: bps.DistributedTrainer([], "sgd", None, -1), mx.errors.ValueError, "got -1"),
    "no value": (
        lambda: hvd.broadcast_parameters(gluon.nn.Dense(1, in_units=2).collect_params()),
        RuntimeError,
        "has not been initialized",
    ),
    "tuple": (lambda: hvd.broadcast_object((1,)), mx.errors.UnsupportedError, "is a tuple.*pickles are not sent"),
    "key": (lambda: hvd.allgather_object({"a": {1: 2}}), mx.errors.UnsupportedError, "\\['a'\\] has the key 1"),
    "infinity": (lambda: hvd.broadcast_object([float("inf")]), mx.errors.UnsupportedError, "\\[0\\] is inf"),
    "factor": (lambda: trained(gradient_predivide_factor=0), mx.errors.ParamError, "a positive number, got 0"),
    "groups": (lambda: trained(num_groups=-1), mx.errors.ParamError, "num_groups.*0 or more, got -1"),
    "compression": (lambda: trained(compression="fp16"), mx.errors.ParamError, "hvd.Compression.fp16.*got 'fp16'"),
    "no optimizer": (lambda: hvd.DistributedOptimizer("sgd"), mx.errors.TypeError, "an Optimizer, got str"),
    "two wrappers": (
        lambda: hvd.DistributedOptimizer(hvd.DistributedOptimizer(PLAIN)),
        mx.errors.ParamError,
        "is a DistributedOptimizer already",
    ),
    "factor of the optimizer": (lambda: hvd.DistributedOptimizer(PLAIN, "2"), mx.errors.ParamError, "got '2'"),
    "groups of the optimizer": (lambda: hvd.DistributedOptimizer(PLAIN, 1, 1.5), mx.errors.ParamError, "got 1.5"),
    "set of the optimizer": (
        lambda: hvd.DistributedOptimizer(PLAIN, process_set=1),
        mx.errors.UnsupportedError,
        "process_set",
    ),
    "declared number": (lambda: bps.byteps_declare_tensor(3), mx.errors.TypeError, "text, got int"),
    "compressor": (
        lambda: bps.byteps_declare_tensor("a", byteps_compressor_type="onebit"),
        mx.errors.UnsupportedError,
        "byteps_compressor_type.*'fp16': True",
    ),
    "compressor of the trainer": (
        lambda: bps.DistributedTrainer([], "sgd", compression_params={"compressor": "topk"}),
        mx.errors.UnsupportedError,
        "'compressor'",
    ),
    "no dict": (
        lambda: bps.DistributedTrainer([], "sgd", compression_params="fp16"),
        mx.errors.ParamError,
        "a dict, got str",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_named(name: str, alone: None) -> None:
    call, kind, text = WRONG[name]
    with pytest.raises(kind, match=f"(?s){text}"):
        call()


def test_an_object_that_is_nested_too_deeply_is_named(alone: None) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(mx.errors.UnsupportedError, match="nested too deeply"):
        hvd.broadcast_object(deep)


def test_gathering_something_differentiable_is_an_error(alone: None) -> None:
    x = mx.nd.ones((2,))
    x.attach_grad()
    with mx.autograd.record():
        with pytest.raises(mx.errors.GradientError, match="gathering has no gradient"):
            hvd.allgather(x)
        y = hvd.broadcast(x * 2, 0)
    with pytest.raises(mx.errors.GradientError):  # it is a constant
        y.backward()


@pytest.mark.parametrize(
    "call",
    [
        *(hvd.rank, hvd.size, hvd.local_rank, hvd.local_size, hvd.cross_rank, hvd.cross_size, hvd.is_homogeneous),
        *(hvd.mpi_threads_supported, lambda: hvd.allreduce(ONES), lambda: hvd.broadcast_object(1), lambda: trained()),
        *(lambda: hvd.broadcast_parameters({}), lambda: hvd.DistributedOptimizer(PLAIN), bps.rank),
        *(lambda: bps.DistributedTrainer([], "sgd"), lambda: bps.byteps_push_pull(ONES)),
    ],
)
def test_calls_before_init_are_errors(call: object) -> None:
    assert not hvd.is_initialized()
    with pytest.raises(mx.errors.ValueError, match=r"has not been initialized.\n.*hvd.init\(\)"):
        call()  # type: ignore[operator]


@pytest.mark.parametrize(("rank", "size"), [("1", "1"), ("0", ""), ("", "1"), ("x", "1"), ("-1", "1"), ("0", "2")])
def test_wrong_places_on_a_machine_are_named(rank: str, size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRIDNET_GROUP_LOCAL_RANK", rank)
    monkeypatch.setenv("HYBRIDNET_GROUP_LOCAL_SIZE", size)
    with pytest.raises(mx.errors.ValueError, match=r"HYBRIDNET_GROUP_LOCAL_RANK(.|\n)*set both, or neither"):
        hvd.init()
    assert not hvd.is_initialized()


def test_a_store_sums_a_group_of_one(alone: None) -> None:
    store = GradientStore(hvd.Compression.fp16, 2.0, divisor=4)
    gradient = mx.nd.array([8.0])
    store.sum_gradients(["a"], [[gradient]])
    assert gradient.asnumpy().tolist() == [1]
    assert (store.num_shards, store.own_shards, store.num_workers) == (1, (0, 1), 1)


# --- unchanged programs -----------------------------------------------------------------------------------------------

# In the style of Horovod's examples and GluonCV's scripts of classification: a part of the data by part_index.
CLASSIFICATION = """
import argparse
import hashlib
import logging
import math
import time

import horovod.mxnet as hvd
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, lr_scheduler

parser = argparse.ArgumentParser(description="Train a model")
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--num-epochs", type=int, default=4)
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--no-cuda", action="store_true")
parser.add_argument("--dtype", type=str, default="float32")
args = parser.parse_args()
logging.basicConfig(level=logging.INFO)

hvd.init()
num_workers = hvd.size()
rank = hvd.rank()
local_rank = hvd.local_rank()
context = mx.cpu(local_rank) if args.no_cuda else mx.gpu(local_rank)

rng = np.random.RandomState(0)
images = rng.normal(size=(512, 1, 8, 8)).astype("float32")
labels = (images[:, 0, :4].mean(axis=(1, 2)) > images[:, 0, 4:].mean(axis=(1, 2))).astype("float32")
share = len(images) // num_workers
part = slice(rank * share, (rank + 1) * share)
train_data = mx.io.NDArrayIter(images[part], labels[part], args.batch_size, shuffle=True)
epoch_size = int(math.ceil(share / args.batch_size))

net = gluon.nn.HybridSequential(prefix="net_")
with net.name_scope():
    net.add(gluon.nn.Conv2D(4, 3, in_channels=1), gluon.nn.BatchNorm(), gluon.nn.Activation("relu"), gluon.nn.Dense(2))
net.cast(args.dtype)
net.hybridize(static_alloc=True)
mx.random.seed(rank)
net.initialize(mx.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2), ctx=context)
params = net.collect_params()
if params is not None:
    hvd.broadcast_parameters(params, root_rank=0)

schedule = lr_scheduler.CosineScheduler(
    args.num_epochs * epoch_size, base_lr=args.lr * num_workers, warmup_steps=3, warmup_begin_lr=args.lr
)
optimizer_params = {"wd": 1e-4, "momentum": 0.9, "lr_scheduler": schedule}
if args.dtype == "float16":
    optimizer_params["multi_precision"] = True
opt = mx.optimizer.create("sgd", **optimizer_params)
trainer = hvd.DistributedTrainer(params, opt)
loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
metric = mx.metric.Accuracy()

for epoch in range(args.num_epochs):
    tic = time.time()
    train_data.reset()
    metric.reset()
    for nbatch, batch in enumerate(train_data, start=1):
        data = gluon.utils.split_and_load(batch.data[0], ctx_list=[context], batch_axis=0)
        label = gluon.utils.split_and_load(batch.label[0], ctx_list=[context], batch_axis=0)
        with autograd.record():
            output = [net(x.astype(args.dtype, copy=False)) for x in data]
            loss = [loss_fn(yhat, y.astype(args.dtype, copy=False)) for yhat, y in zip(output, label)]
        for value in loss:
            value.backward()
        trainer.step(args.batch_size)
        metric.update(label, output)
    mx.nd.waitall()
    if rank == 0:
        logging.info("Epoch[%d] Rank[%d] speed=%.2f samples/s", epoch, rank, share * num_workers / (time.time() - tic))
    _, acc = metric.get()
    acc = hvd.allreduce(mx.nd.array([acc]), name="acc", average=True).asscalar()
if rank == 0:
    print("accuracy %.3f" % acc)
trained = b"".join(p.data(context).asnumpy().tobytes() for _, p in sorted(params.items()) if p.grad_req != "null")
print("digest", hashlib.sha256(trained).hexdigest())
hvd.shutdown()
"""

# In the style of GluonNLP's scripts that pretrain BERT and GluonCV's of detection: an optional import, gradients that
# are reduced, clipped and applied in three calls, samples by a split sampler, checkpoints by rank 0.
PRETRAINING = """
import os

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon.data import SplitSampler

try:
    import horovod.mxnet as hvd
except ImportError:
    hvd = None

backend = "horovod"
hvd.init()
num_workers, rank, local_rank = hvd.size(), hvd.rank(), hvd.local_rank()
is_master_node = rank == local_rank
ctxs = [mx.cpu(local_rank)]


def grad_global_norm(parameters, max_norm):
    arrays = [p.list_grad()[0] for p in parameters if p.grad_req != "null"]
    norm = mx.nd.sqrt(mx.nd.add_n(*[(a.astype("float32") ** 2).sum() for a in arrays]))
    ratio = mx.nd.maximum(1, norm / max_norm).asscalar()
    return norm, ratio, mx.nd.contrib.isfinite(norm)


class FP16Trainer:
    def __init__(self, trainer, scale=128.0):
        if trainer._kvstore_params["update_on_kvstore"] is not False and trainer._kvstore:
            raise NotImplementedError("Only gluon.Trainer created with update_on_kvstore=False is supported.")
        self.fp32_trainer = trainer
        self.scale = scale

    def backward(self, loss):
        with mx.autograd.record():
            scaled = [value * self.scale for value in loss]
        mx.autograd.backward(scaled)

    def step(self, batch_size, max_norm):
        self.fp32_trainer.allreduce_grads()
        max_norm *= self.scale * num_workers * batch_size
        _, ratio, is_finite = grad_global_norm(self.fp32_trainer._params, max_norm)
        assert is_finite.asscalar() == 1
        self.fp32_trainer.update(ratio * batch_size * self.scale, ignore_stale_grad=True)


class Model(gluon.HybridBlock):
    def __init__(self, **kwargs):
        super(Model, self).__init__(**kwargs)
        with self.name_scope():
            self.embed = gluon.nn.Embedding(20, 8)
            self.decoder = gluon.nn.Dense(20, flatten=False)

    def hybrid_forward(self, F, tokens):
        return self.decoder(F.relu(self.embed(tokens)))


np.random.seed(3)
tokens = np.random.randint(0, 20, size=(123, 6)).astype("float32")
dataset = gluon.data.ArrayDataset(tokens, (tokens + 1) % 20)
sampler = SplitSampler(len(dataset), num_parts=num_workers, part_index=rank)
loader = gluon.data.DataLoader(dataset, batch_sampler=gluon.data.BatchSampler(sampler, 8, "keep"))

model = Model(prefix="model_")
model.initialize(mx.init.Normal(0.02 * (rank + 1)), ctx=ctxs)
model.hybridize(static_alloc=True)
param_dict = model.collect_params()
for _, v in model.collect_params(".*beta|.*gamma|.*bias").items():
    v.wd_mult = 0.0
optim_params = {"learning_rate": 0.05, "epsilon": 1e-6, "wd": 0.01}
hvd.broadcast_parameters(param_dict, root_rank=0)
trainer = hvd.DistributedTrainer(param_dict, "adam", optim_params)
fp16_trainer = FP16Trainer(trainer)
loss_fn = gluon.loss.SoftmaxCELoss()
first = last = None
steps = 0
for epoch in range(12):
    running = mx.nd.zeros((1,), ctx=ctxs[0])
    for data, label in loader:
        data, label = data.as_in_context(ctxs[0]), label.as_in_context(ctxs[0])
        with mx.autograd.record():
            loss = loss_fn(model(data), label).mean()
        fp16_trainer.backward([loss])
        fp16_trainer.step(1, max_norm=1.0)
        running += loss
        steps += 1
    hvd.allreduce_(running, average=True, name="running_loss")
    last = running.asscalar()
    first = last if first is None else first
    trainer.set_learning_rate(0.05 * (1 - epoch / 24))
    if is_master_node and rank == 0:
        model.save_parameters("step.params")
        trainer.save_states("step.states")
assert steps == 12 * 8, steps
digest = sum(p.data(ctxs[0]).sum().asscalar() for p in param_dict.values())
print("loss %.4f %.4f" % (first, last), "digest", float(digest))
"""

BYTEPS = """
import byteps.mxnet as bps
import mxnet as mx
from mxnet import autograd, gluon

bps.init()
net = gluon.nn.Sequential()
net.add(gluon.nn.Dense(8, activation="relu"), gluon.nn.Dense(1))
context = mx.cpu(bps.local_rank())
net.initialize(mx.init.Uniform(0.1 * (1 + bps.rank())), ctx=context)
trainer = bps.DistributedTrainer(net.collect_params(), "sgd", {"learning_rate": 0.1 * bps.size()})
for step in range(150):
    x = mx.nd.random.uniform(shape=(16, 4), ctx=context)
    with autograd.record():
        loss = gluon.loss.L2Loss()(net(x), x.sum(axis=1, keepdims=True))
    loss.backward()
    trainer.step(16)
total = mx.nd.array([loss.mean().asscalar()], ctx=context)
bps.byteps_push_pull(total, name="loss", is_average=True)
digest = sum(p.data(context).sum().asscalar() for p in net.collect_params().values())
print("loss %.4f 0" % total.asscalar(), "digest", float(digest))
bps.shutdown()
"""


def run(*arguments: str, folder: pathlib.Path, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": str(pathlib.Path(mx.__file__).parents[1]), **environment}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def run_unchanged(program: str, folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(program)
    words = ("-m", "hybridnet.launch", "-np", "2", "-H", "localhost:2", "-m", "hybridnet.as_mxnet", "train.py")
    return run(*words, *arguments, folder=folder)


def words_after(word: str, done: subprocess.CompletedProcess[str], rank: int) -> list[str]:
    assert done.returncode == 0, done.stderr
    return re.findall(f"{word} (.*)", "\n".join(lines_of(done, rank)))[0].split()


@needs_gloo
def test_a_program_of_classification_runs_unchanged(tmp_path: pathlib.Path) -> None:
    done = run_unchanged(CLASSIFICATION, tmp_path, "--no-cuda")
    assert words_after("digest", done, 0) == words_after("digest", done, 1)
    assert float(words_after("accuracy", done, 0)[0]) > 0.8
    assert "accuracy" not in "\n".join(lines_of(done, 1))


@needs_gloo
@pytest.mark.parametrize("program", [PRETRAINING, BYTEPS], ids=["gluonnlp", "byteps"])
def test_programs_of_pretraining_and_for_byteps_run_unchanged(program: str, tmp_path: pathlib.Path) -> None:
    done = run_unchanged(program, tmp_path)
    assert words_after("digest", done, 0) == words_after("digest", done, 1)
    first, last = map(float, words_after("loss", done, 0)[:2])
    if program is PRETRAINING:
        assert last < 0.5 * first, done.stdout
        assert {file.name for file in tmp_path.glob("step.*")} == {"step.params", "step.states"}
    else:
        assert first < 0.1, done.stdout


# --- names under as_mxnet ---------------------------------------------------------------------------------------------


def test_horovod_and_byteps_are_found_under_as_mxnet(tmp_path: pathlib.Path) -> None:
    program = """
import horovod.mxnet as hvd
import byteps.mxnet as bps
from horovod.mxnet.mpi_ops import rank, size
from horovod.mxnet import DistributedTrainer
import horovod, byteps, hybridnet.horovod, hybridnet.byteps, mxnet.horovod
assert hvd is hybridnet.horovod is horovod.mxnet is mxnet.horovod and bps is hybridnet.byteps is byteps.mxnet
assert rank is hvd.rank and hvd.__spec__.name == "hybridnet.horovod" and hvd.__name__ == "hybridnet.horovod"
for name in ("horovod.torch", "byteps.torch", "byteps.mxnet.ops"):
    try:
        __import__(name)
        raise SystemExit(5)
    except ModuleNotFoundError as error:
        assert name in str(error), error
print(horovod.__version__, byteps.__version__)
"""
    (tmp_path / "train.py").write_text(program)
    done = run("-m", "hybridnet.as_mxnet", "train.py", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "0.28.1 0.2.5\n"), done.stderr
    # The path that as_mxnet --install sets: the import of horovod comes first.
    packages = pathlib.Path(mx.__file__).parents[1]
    path = os.pathsep.join([str(packages), str(packages / "hybridnet" / "as_mxnet" / "_import_path")])
    done = run("train.py", folder=tmp_path, PYTHONPATH=path)
    assert (done.returncode, done.stdout) == (0, "0.28.1 0.2.5\n"), done.stderr
    done = run("train.py", folder=tmp_path)
    assert "No module named 'horovod'" in done.stderr


def test_only_the_mxnet_part_of_an_installed_horovod_is_replaced(tmp_path: pathlib.Path) -> None:
    for package in ("horovod", "byteps"):
        folder = tmp_path / "installed" / package
        (folder / "mxnet").mkdir(parents=True)
        (folder / "__init__.py").write_text("__version__ = 'installed'\n")
        (folder / "mxnet" / "__init__.py").write_text("raise ImportError('needs MXNet')\n")
        (folder / "torch.py").write_text("name = 'torch'\n")
    program = """
import horovod.torch
import horovod.mxnet as hvd
import byteps.mxnet as bps
import horovod, byteps
print(horovod.__version__, byteps.__version__, horovod.torch.name, hvd.__name__, bps.__name__)
"""
    (tmp_path / "train.py").write_text(program)
    path = os.pathsep.join([str(pathlib.Path(mx.__file__).parents[1]), str(tmp_path / "installed")])
    done = run("-m", "hybridnet.as_mxnet", "train.py", folder=tmp_path, PYTHONPATH=path)
    assert done.stdout.split() == ["installed", "installed", "torch", "hybridnet.horovod", "hybridnet.byteps"], (
        done.stderr
    )


# --- dialects of launchers --------------------------------------------------------------------------------------------


def test_servers_of_old_scripts_end_under_as_mxnet(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text("import mxnet\nprint('trains')\n")
    done = run("-m", "hybridnet.as_mxnet", "train.py", folder=tmp_path, DMLC_ROLE="server", DMLC_NUM_WORKER="2")
    assert (done.returncode, done.stdout) == (0, "")
    assert len(done.stderr.splitlines()) == 1 and "(DMLC_ROLE=server) ends: there are no servers" in done.stderr


@needs_gloo
def test_the_launcher_takes_options_of_mxnet(tmp_path: pathlib.Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(f"# machines\nlocalhost\n\n{socket.gethostname()} slots=1\n")
    program = "print('place', os.environ['HYBRIDNET_GROUP_LOCAL_RANK'], os.environ['HYBRIDNET_GROUP_LOCAL_SIZE'])"
    options = ("-s", "2", "--launcher", "local", "-H", str(hosts))
    done = launch(2, program, tmp_path, *options, DMLC_NUM_WORKER="2", DMLC_ROLE="worker")
    assert done.returncode == 0, done.stderr
    assert [words_after("place", done, rank) for rank in (0, 1)] == [["0", "2"], ["1", "2"]]
    assert "-s 2 has no effect: there are no servers" in done.stderr


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("-H", "localhost:1,node7:2"), "'node7' is not this machine: add --launcher ssh"),
        (("-H", "localhost:1"), "-H has 1 slots, fewer than the 2 processes of -n"),
        (("-H", "localhost:two"), "'localhost:two' is not HOST or HOST:PROCESSES"),
        (("-H", "localhost:0"), "'localhost:0' is not HOST or HOST:PROCESSES"),
        (("-H", ""), "'' is not HOST or HOST:PROCESSES"),
        (("--launcher", "yarn"), "--launcher: yarn is not local, ssh or mpi"),
        (("-H", "::1:2"), "write an address of IPv6 in brackets"),
        (("--sync-dst-dir", "/tmp/a b"), "--sync-dst-dir: '/tmp/a b' is no absolute path"),
        (("--env-worker", "=3"), "--env: '=3' is not NAME"),
    ],
)
def test_options_of_launchers_that_cannot_be_followed_are_errors(
    options: tuple[str, str], text: str, tmp_path: pathlib.Path
) -> None:
    done = launch(2, "print('started')", tmp_path, *options)
    assert done.returncode == 2 and text in done.stderr and "started" not in done.stdout
