"""Sums run while gradients are still computed, also those of mx.jit.train_step, and change no bit."""

import pathlib
import re

import pytest
from device.stand_in import ENVIRONMENT, LIBRARY, MISSING
from launched import launch, lines_of, needs_gloo

pytestmark = needs_gloo

# Dense layers of 1 MB behind slow convolutions: their gradients are complete long before the last ones.
PROFILED = """
net = gluon.nn.HybridSequential()
for _ in range(4):
    net.add(gluon.nn.Conv2D(32, 3, padding=1, activation="relu"))
net.add(gluon.nn.GlobalAvgPool2D(), gluon.nn.Flatten(), gluon.nn.Dense(4096), gluon.nn.Dense(64))
net.initialize()
net.hybridize(static_alloc=True)
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01}, kvstore="dist_sync")
loss_of = gluon.loss.L2Loss()
if sys.argv[1] == "train_step":
    step = mx.jit.train_step(net, loss_of, trainer)
else:
    def step(x, y):
        with autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(len(x))
x, y = mx.nd.ones((8, 3, 48, 48)), mx.nd.ones((8, 64))
for _ in range(2):
    step(x, y)
    mx.nd.waitall()
mx.profiler.set_config(profile_all=True, filename=f"{rank}.json")
mx.profiler.set_state("run")
step(x, y)
mx.nd.waitall()
mx.profiler.set_state("stop")
events = mx.profiler._events()
sums = sorted(begin for name, category, begin, *_ in events if category == "group")
graphs = [end for name, category, begin, end, *_ in events if category == "graph" and name != "train_step_update"]
print("sums", len(sums), "first begins before the gradients end:", sums[0] < max(graphs))
"""


@pytest.mark.parametrize("way", ["loop", "train_step"])
def test_the_first_sum_begins_before_the_last_gradient_is_complete(way: str, tmp_path: pathlib.Path) -> None:
    done = launch(2, PROFILED, tmp_path, "--threads", "1", arguments=(way,))
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        assert lines_of(done, rank)[-1].endswith("before the gradients end: True"), done.stdout


# Gradients on a GPU, of which the host knows only in the end whether they are complete.
ON_GPU = """
gpu = mx.gpu(0)
mx.random.seed(1)
net = gluon.nn.HybridSequential()
for _ in range(6):
    net.add(gluon.nn.Dense(256, in_units=256, activation="tanh"))
net.initialize(mx.init.Xavier(), ctx=gpu)
net.hybridize()
loss_of = gluon.loss.L2Loss()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.0}, kvstore="dist_sync")
params = list(net.collect_params().values())

def backward(x):
    with autograd.record():
        loss = loss_of(net(mx.nd.array(x, ctx=gpu)), mx.nd.zeros((64, 256), ctx=gpu))
    loss.backward()

for number in range(6):
    batches = np.random.default_rng(number).standard_normal((size, 64, 256))
    expected = 0
    for batch in batches:
        backward(batch)
        mx.nd.waitall()
        expected = expected + np.concatenate([p.grad().asnumpy().ravel() for p in params])
    backward(batches[rank])
    trainer.step(1)
    found = np.concatenate([p.grad().asnumpy().ravel() for p in params])
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
print("equal")
"""


@pytest.mark.skipif(not LIBRARY.exists(), reason=MISSING)
@pytest.mark.parametrize("order", ["1", "3"])
def test_sums_of_gradients_on_a_gpu_are_of_complete_ones(order: str, tmp_path: pathlib.Path) -> None:
    done = launch(2, ON_GPU, tmp_path, "--threads", "1", **ENVIRONMENT, HNSTANDIN_SEED=order)
    assert done.returncode == 0, done.stderr
    assert "race" not in done.stdout + done.stderr
    assert [lines_of(done, rank)[-1] for rank in (0, 1)] == ["equal", "equal"]


# Weights, values that a call of the group overwrites, and the gradient: rows of one array. The plan reads the second
# row until its end, when the gradient in the third one has long been complete.
ONE_ARRAY = """
width = 500
class Net(gluon.HybridBlock):
    def hybrid_forward(self, F, x, weight, other):
        y = x * other
        for _ in range(6):
            y = F.tanh(F.dot(y, other))
        return F.dot(y, weight)
net = Net()
net.hybridize()

def gradient(waits):
    rng = np.random.default_rng(rank)
    weight, other, grad = mx.nd.array(rng.standard_normal((3, width, width)) / 22)
    x = mx.nd.array(rng.standard_normal((width, width)))
    x.attach_grad()
    autograd.mark_variables([weight], [grad])
    with autograd.record():
        loss = net(x, weight, other)
    loss.backward()
    if waits:
        mx.nd.waitall()
    group.broadcast(other, 0, "other")
    return x.grad.asnumpy()

for _ in range(4):
    np.testing.assert_array_equal(gradient(False), gradient(True))
print("equal")
"""


def test_gradients_that_share_memory_with_inputs_wait_for_the_end_of_their_plan(tmp_path: pathlib.Path) -> None:
    done = launch(2, ONE_ARRAY, tmp_path, "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert [lines_of(done, rank)[-1] for rank in (0, 1)] == ["equal", "equal"]


# argv: train_step or loop, net, dtype, optimizer, options
STEPS = """
import hashlib
way, net_name, dtype, optimizer, extra = sys.argv[1:]
mx.random.seed(3)
class Last(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = gluon.rnn.LSTM(12, layout="NTC"), gluon.nn.Dense(5)
    def forward(self, x):
        return self.out(self.lstm(x)[:, -1])
net = gluon.nn.HybridSequential()
if net_name == "lstm":
    net.add(Last())
elif net_name == "conv":
    net.add(gluon.nn.Conv2D(6, 3), gluon.contrib.nn.SyncBatchNorm(), gluon.nn.Activation("relu"), gluon.nn.Dense(5))
else:
    net.add(gluon.nn.Dense(16, activation="tanh"), gluon.nn.Dense(5))
net.initialize(mx.init.Xavier())
net.cast(dtype)
if extra == "add":
    net.collect_params().setattr("grad_req", "add")
options = {"learning_rate": 0.05, "multi_precision": dtype != "float32"}
trainer = gluon.Trainer(net.collect_params(), optimizer, options, kvstore="dist_sync")
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
loss_of.hybridize(static_alloc=True)
net.hybridize(static_alloc=True)
step = mx.jit.train_step(net, loss_of, trainer, clip_global_norm=0.5 if extra == "clip" else None)
rng = np.random.default_rng(5)
for number in range(20):
    shape = {"lstm": (8, 6, 7), "conv": (8, 3, 6, 6), "mlp": (8, 7)}[net_name]
    data, label = rng.standard_normal((2, *shape)), rng.integers(0, 5, (2, 8))
    x, y = mx.nd.array(data[rank], dtype=dtype), mx.nd.array(label[rank])
    if way == "train_step":
        step(x, y, batch_size=16)
    else:
        with autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        if extra == "clip":
            trainer.allreduce_grads()
            gluon.utils.clip_global_norm([p.grad() for p in net.collect_params().values()], 0.5 * 16)
            trainer.update(16)
        else:
            trainer.step(16)
    if extra == "add":
        net.collect_params().zero_grad()
values = [
    param.data().astype("float32").asnumpy().tobytes()
    for param in net.collect_params().values()
    if "running" not in param.name
]
print("digest", hashlib.sha256(b"".join(values)).hexdigest())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("net", "dtype", "optimizer", "extra"),
    [
        ("mlp", "float32", "sgd", "plain"),
        ("mlp", "float32", "sgd", "clip"),
        ("mlp", "float32", "adam", "add"),
        ("mlp", "bfloat16", "adam", "plain"),
        ("lstm", "float32", "adam", "plain"),
        ("conv", "float32", "adam", "plain"),
    ],
)
def test_a_train_step_gives_the_bits_of_the_loop_in_every_process(
    net: str, dtype: str, optimizer: str, extra: str, tmp_path: pathlib.Path
) -> None:
    found = set()
    for way in ("loop", "train_step"):
        done = launch(2, STEPS, tmp_path, "--threads", "1", arguments=(way, net, dtype, optimizer, extra))
        assert done.returncode == 0, done.stderr
        found |= {re.findall("digest (.*)", "\n".join(lines_of(done, rank)))[0] for rank in (0, 1)}
    assert len(found) == 1, found


# The trainer has the parameters in another order than the forward uses them.
MIXED = """
mx.random.seed(3)
last, first = gluon.nn.Dense(3, in_units=400), gluon.nn.Dense(400, in_units=300)
net = gluon.nn.HybridSequential()
net.add(first, last)
net.initialize(mx.init.Xavier())
net.hybridize()
params = [last.bias, first.weight, last.weight, first.bias]
trainer = gluon.Trainer(params, "sgd", {"learning_rate": 0.05}, kvstore="dist_sync")
loss_of = gluon.loss.L2Loss()
step = mx.jit.train_step(net, loss_of, trainer)
x, y = mx.nd.ones((4, 300)) * (rank + 1), mx.nd.ones((4, 3))
for number in range(4):
    if (number + rank) % 2:
        step(x, y, batch_size=8)
    else:
        with autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(8)
values = b"".join(param.data().asnumpy().tobytes() for param in params)
print("equal", set(group.gather(mx.nd.array(np.frombuffer(values, "float32"))).asnumpy().std(axis=0).tolist()) == {0.0})
"""


def test_processes_may_run_compiled_steps_and_loops_side_by_side(tmp_path: pathlib.Path) -> None:
    done = launch(2, MIXED, tmp_path, "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert lines_of(done, 0)[-1] == lines_of(done, 1)[-1] == "equal True"


# One rank computes an infinite gradient in step 3: all of them skip the update and halve the scale.
OVERFLOW = """
mx.random.seed(3)
net = gluon.nn.Dense(4, in_units=3)
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.05}, kvstore="dist_sync")
step = mx.jit.train_step(net, gluon.loss.L2Loss(), trainer, precision="float16")
scaler = trainer._amp_loss_scaler
before = scaler.loss_scale
for number in range(5):
    x = mx.nd.ones((2, 3)) * (1e30 if (number, rank) == (3, 1) else 1)
    kept = net.weight.data().asnumpy()
    step(x, mx.nd.zeros((2, 4)), batch_size=4)
    print("step", number, "updated", bool((net.weight.data().asnumpy() != kept).any()), scaler.loss_scale / before)
"""


def test_an_overflow_in_one_process_skips_the_step_of_all(tmp_path: pathlib.Path) -> None:
    done = launch(2, OVERFLOW, tmp_path, "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert lines_of(done, 0) == lines_of(done, 1)
    assert lines_of(done, 0)[3] == "step 3 updated False 0.5"
    assert lines_of(done, 0)[4] == "step 4 updated True 0.5"


REFUSED = """
net = gluon.nn.Dense(4, in_units=3)
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "sgd", kvstore="dist_sync")
step = mx.jit.train_step(net, gluon.loss.L2Loss(), trainer)
step(mx.nd.ones((2, 3)), mx.nd.ones((2, 4)))
try:
    step.export("step")
except mx.MXNetError as error:
    print("refused", str(error).splitlines()[0])
"""


def test_a_step_over_processes_is_not_exported(tmp_path: pathlib.Path) -> None:
    done = launch(2, REFUSED, tmp_path, "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert "export of a step over several processes" in lines_of(done, 0)[-1]


def test_a_step_refuses_several_virtual_shards_in_a_process(tmp_path: pathlib.Path) -> None:
    done = launch(2, REFUSED, tmp_path, "--virtual-shards", "4")
    assert done.returncode != 0
    assert "has the virtual shards 0 to 1 of the group" in done.stdout + done.stderr
