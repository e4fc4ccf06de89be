"""Training in several processes gives the values of training in one."""

import pathlib
import re

import pytest
from launched import launch, lines_of, needs_gloo, run

pytestmark = needs_gloo

# A step on a batch of 24 in 4 shards of 6, whatever the number of processes. argv: net, mode, optimizer.
TRAINING = """
import hashlib
net_name, mode, optimizer = sys.argv[1:]
mx.random.seed(11 + rank)  # process 0's values count
net = gluon.nn.HybridSequential()
if net_name == "mlp":
    net.add(gluon.nn.Dense(32, activation="relu"), gluon.nn.Dense(5))
else:
    net.add(gluon.nn.Conv2D(6, 3, activation="tanh"), gluon.nn.MaxPool2D(2), gluon.nn.Flatten(), gluon.nn.Dense(5))
net.initialize(mx.init.Xavier())
if mode != "imperative":
    net.hybridize(static_alloc=mode == "static", static_shape=mode == "static")
store = mx.kv.create("dist_sync")
trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.05}, kvstore=store)
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
rng = np.random.default_rng(5)
shards = group.virtual_shards()
for step in range(12):
    data = rng.standard_normal((24, 3, 8, 8)).astype("float32")
    label = rng.integers(0, 5, 24)
    rows = 24 // shards
    for shard in range(*group.own_shards()):
        x = mx.nd.array(data[shard * rows : (shard + 1) * rows])
        y = mx.nd.array(label[shard * rows : (shard + 1) * rows])
        with autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.add_shard()
    trainer.step(24)
values = [param.data().asnumpy().tobytes() for param in net.collect_params().values()]
print("digest", hashlib.sha256(b"".join(values)).hexdigest())
"""


def digests(done: object, processes: int) -> set[str]:
    assert done.returncode == 0, done.stderr  # type: ignore[attr-defined]
    return {re.findall("digest (.*)", "\n".join(lines_of(done, rank)))[0] for rank in range(processes)}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("net", "mode", "optimizer"),
    [("mlp", "imperative", "sgd"), ("mlp", "hybridized", "adam"), ("conv", "static", "adam")],
)
def test_digests_do_not_depend_on_the_number_of_processes(
    net: str, mode: str, optimizer: str, tmp_path: pathlib.Path
) -> None:
    found = [
        digests(
            launch(n, TRAINING, tmp_path, "--virtual-shards", "4", "--threads", "1", arguments=(net, mode, optimizer)),
            n,
        )
        for n in (1, 2, 3, 4)
    ]
    assert len(set.union(*found)) == 1, found


EXAMPLE = pathlib.Path(__file__).parents[3] / "examples" / "train_distributed.py"


def test_the_example_trains_to_the_same_bits_with_every_number_of_processes() -> None:
    found = set()
    for processes in (1, 2, 3, 4):
        done = run(processes, "--virtual-shards", "4", "--threads", "1", str(EXAMPLE), "--epochs", "3")
        assert done.returncode == 0, done.stderr
        found.add(re.findall(r"digest (\w+)", done.stdout)[0])
    assert len(found) == 1


PLAIN = """
mx.random.seed(3)
net = gluon.nn.Dense(1, use_bias=False)
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore="dist_sync")
before = net.weight.data().asnumpy() if net.weight._data else None
x = mx.nd.full((2, 3), rank + 1.0)
with autograd.record():
    loss = net(x).sum()
loss.backward()
begin = net.weight.data().asnumpy().copy()
trainer.step(2 * size)
change = begin - net.weight.data().asnumpy()
np.testing.assert_allclose(change, 0.1 * np.full((1, 3), size * (size + 1)) / (2 * size), rtol=1e-5)

trainer.allreduce_grads()  # sums again: the gradients are those of all now
np.testing.assert_allclose(net.weight.grad().asnumpy(), np.full((1, 3), size * size * (size + 1.0)))
net.weight.set_data(mx.nd.full((1, 3), float(rank)))
assert (net.weight.data().asnumpy() == 0).all()  # process 0's
print("fine")
"""


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_a_trainer_sums_gradients_and_takes_the_values_of_process_0(processes: int, tmp_path: pathlib.Path) -> None:
    done = launch(processes, PLAIN, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == processes


WRONG_COUNTS = """
net = gluon.nn.Dense(1, in_units=2)
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "sgd", kvstore="dist_sync")
with autograd.record():
    loss = net(mx.nd.ones((1, 2)))
loss.backward()
try:
    trainer.step(1)
    raise SystemExit(5)
except mx.errors.ParamError as error:
    assert "2 calls before each step" in str(error) and "got 0" in str(error), error
trainer.add_shard()
try:
    trainer.step(1)
    raise SystemExit(5)
except mx.errors.ParamError as error:
    assert "got 1" in str(error), error
trainer.add_shard()
try:
    trainer.add_shard()
    raise SystemExit(5)
except mx.errors.ParamError as error:
    assert "at most 2" in str(error), error
trainer.step(1)
print("fine")
"""


def test_a_wrong_number_of_shards_is_named(tmp_path: pathlib.Path) -> None:
    done = launch(2, WRONG_COUNTS, tmp_path, "--virtual-shards", "4")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == 2


STORE = """
kv = mx.kv.create(sys.argv[1])
assert (kv.rank, kv.num_workers, kv.type) == (rank, size, sys.argv[1])
kv.init(3, mx.nd.full((2, 3), rank + 1.0))
out = mx.nd.zeros((2, 3))
kv.pull(3, out)
assert (out.asnumpy() == 1).all()  # process 0's
kv.push(3, [mx.nd.full((2, 3), rank + 1.0), mx.nd.ones((2, 3))])
kv.pull(3, out)
assert (out.asnumpy() == size * (size + 1) / 2 + size).all()

named = mx.kv.create("dist_sync")
named.init(["a", "b"], [mx.nd.zeros((2,)), mx.nd.zeros((4,))])
grads = [mx.nd.ones((2,)), mx.nd.full((4,), 2.0)]
named.pushpull(["a", "b"], grads)
assert (grads[0].asnumpy() == size).all() and (grads[1].asnumpy() == 2 * size).all()
named.set_optimizer(mx.optimizer.create("test", rescale_grad=2.0))
value = mx.nd.zeros((2,))
named.broadcast("c", mx.nd.full((2,), float(rank)), out=value)
assert (value.asnumpy() == 0).all()
for _ in range(3):
    named.push("c", mx.nd.ones((2,)))
named.pull("c", value)
assert (value.asnumpy() == 3 * 2 * size).all(), value
kv.barrier()

# Module sums gradients over processes and divides by the number of all samples.
data = mx.sym.var("data")
symbol = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(data, num_hidden=1, no_bias=True, name="fc"), name="lro")
module = mx.mod.Module(symbol, label_names=["lro_label"])
module.bind([("data", (2, 3))], [("lro_label", (2, 1))])
module.init_params(mx.init.Constant(float(rank)))
module.init_optimizer("dist_sync", "sgd", {"learning_rate": 0.5})
batch = mx.io.DataBatch([mx.nd.full((2, 3), rank + 1.0)], [mx.nd.ones((2, 1))])
module.forward_backward(batch)
module.update()
weight = module.get_params()[0]["fc_weight"].asnumpy()
gradient = sum(2 * (0 - 1.0) * (r + 1) for r in range(size)) / (2 * size)
np.testing.assert_allclose(weight, np.full((1, 3), -0.5 * gradient), rtol=1e-5)
print("fine")
"""


@pytest.mark.parametrize("name", ["dist_sync", "dist_sync_device", "dist_device_sync"])
def test_stores_sum_over_processes(name: str, tmp_path: pathlib.Path) -> None:
    for processes in (1, 3) if name == "dist_sync" else (2,):
        done = launch(processes, STORE, tmp_path, arguments=(name,))
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("fine") == processes


# SyncBatchNorm over the rows of all processes, beside BatchNorm over all rows in one process.
SYNC = """
layer_of = {"nn": gluon.nn.SyncBatchNorm, "contrib": gluon.contrib.nn.SyncBatchNorm}[sys.argv[1]]
mode = sys.argv[2]
rng = np.random.default_rng(3)
rows = [4, 6, 5][:size]  # unequal batches
everything = rng.standard_normal((sum(rows), 3, 5, 4)).astype("float32") * 3 + 10
heads = rng.standard_normal(everything.shape).astype("float32")
mine = slice(sum(rows[:rank]), sum(rows[: rank + 1]))

def run(layer, data, head):
    layer.initialize()
    if mode != "imperative":
        layer.hybridize(static_alloc=mode == "static", static_shape=mode == "static")
    x = mx.nd.array(data)
    with autograd.record():
        layer(x)  # the channels are known from here on
    layer.running_mean.set_data(mx.nd.zeros((3,)))
    layer.running_var.set_data(mx.nd.ones((3,)))
    layer.gamma.set_data(mx.nd.array([0.5, 2.0, -1.0]))
    layer.beta.set_data(mx.nd.array([0.1, 0.2, 0.3]))
    x.attach_grad()
    for _ in range(3):
        with autograd.record():
            y = layer(x)
        y.backward(mx.nd.array(head))
    return [a.asnumpy() for a in (y, x.grad, layer.gamma.grad(), layer.beta.grad(), layer.running_mean.data(),
                                  layer.running_var.data(), layer(x))]

own = run(layer_of(), everything[mine], heads[mine])
whole = run(gluon.nn.BatchNorm(), everything, heads)
for name, got, want in zip("y dx dgamma dbeta mean var predicted".split(), own, whole, strict=True):
    if name in ("dgamma", "dbeta"):
        got = group.sum(mx.nd.array(got)).asnumpy()
    elif want.ndim > 1:
        want = want[mine]
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4, err_msg=name)
print("fine")
"""


@pytest.mark.parametrize("layer", ["nn", "contrib"])
@pytest.mark.parametrize("mode", ["imperative", "hybridized", "static"])
def test_sync_batch_norm_has_the_statistics_of_all_processes(layer: str, mode: str, tmp_path: pathlib.Path) -> None:
    for processes in (2, 3) if layer == "nn" else (2,):
        done = launch(processes, SYNC, tmp_path, arguments=(layer, mode))
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("fine") == processes


# A loop with a sum over the group in its body, imperative and hybridized.
IN_GRAPHS = """
class Net(gluon.HybridBlock):
    def forward(self, x):
        def body(data, state):
            total = group.sum(data * state, name="state")
            return total, state + total
        outputs, state = mx.nd.contrib.foreach(body, x, x[0] * 0 + 1)
        return outputs, state

x = mx.nd.array(np.arange(6).reshape(3, 2) * 0.1 + rank)
results = []
for hybrid in (False, True):
    net = Net()
    if hybrid:
        net.hybridize()
    x.attach_grad()
    with autograd.record():
        outputs, state = net(x)
        loss = (outputs * outputs).sum() + state.sum()
    loss.backward()
    results.append([outputs.asnumpy(), state.asnumpy(), x.grad.asnumpy()])
for one, other in zip(*results, strict=True):
    np.testing.assert_allclose(one, other, rtol=1e-6)
everyone = group.gather(outputs).asnumpy()
assert (everyone == everyone[0]).all()
print("fine")
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_sums_in_graphs_and_loops(processes: int, tmp_path: pathlib.Path) -> None:
    done = launch(processes, IN_GRAPHS, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == processes


# A parameter that only one process reaches; values from a file that come after the trainer; deferred ones, too.
UNEVEN = """
net, unused = gluon.nn.Dense(1, in_units=2, use_bias=False), gluon.nn.Dense(1, in_units=2, use_bias=False)
for each in (net, unused):
    each.initialize(mx.init.One())
params = {**net.collect_params(), **unused.collect_params()}
trainer = gluon.Trainer(params, "sgd", {"learning_rate": 0.1}, kvstore="dist_sync")
for step in range(3):
    with autograd.record():
        x = mx.nd.ones((1, 2))
        loss = net(x) + (unused(x) if rank == 0 else 0)
    loss.backward()
    trainer.step(1, ignore_stale_grad=True)
    expected = 1 - 0.1 * (step + 1)
    np.testing.assert_allclose(unused.weight.data().asnumpy(), np.full((1, 2), expected), rtol=1e-5)
    np.testing.assert_allclose(net.weight.data().asnumpy(), np.full((1, 2), 1 - 0.1 * size * (step + 1)), rtol=1e-5)

# No process reaches it: it stays, and its momentum, too.
with autograd.record():
    loss = net(x)
loss.backward()
trainer.step(1, ignore_stale_grad=True)
np.testing.assert_allclose(unused.weight.data().asnumpy(), np.full((1, 2), 0.7), rtol=1e-5)

# Sums and updates apart: old gradients of one process would have been added.
with autograd.record():
    loss = net(x) + (unused(x) if rank == 0 else 0)
loss.backward()
trainer.allreduce_grads()
try:
    trainer.update(1, ignore_stale_grad=True)
    raise SystemExit(5)
except mx.errors.ParamError as error:
    assert "the backward of 1 of 2 processes" in str(error), error

file = os.path.join(sys.argv[1], f"{rank}.params")
saved = gluon.nn.Dense(1, in_units=2, use_bias=False)
saved.initialize(mx.init.Constant(rank + 1.0))
saved.save_parameters(file)
for units in (2, 0):
    loaded = gluon.nn.Dense(1, in_units=units, use_bias=False)
    loaded.initialize()
    gluon.Trainer(loaded.collect_params(), "sgd", kvstore="dist_sync")
    gluon.Trainer(loaded.collect_params(), "sgd", kvstore=None)  # a second one, of this process alone
    loaded.load_parameters(file)
    assert (loaded.weight.data().asnumpy() == 1).all()
print("fine")
"""


def test_parameters_stay_equal_if_one_process_leaves_some_out_or_loads_others(tmp_path: pathlib.Path) -> None:
    done = launch(2, UNEVEN, tmp_path, arguments=(str(tmp_path),))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == 2


# The last batch of one process is smaller, and each divides by its own.
DIVISORS = """
net = gluon.nn.Dense(2, in_units=3)
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "sgd", kvstore="dist_sync", shard_states=sys.argv[1] == "sharded")
with autograd.record():
    loss = net(mx.nd.ones((4 + rank, 3))).sum()
loss.backward()
trainer.step(4 + rank)
mx.nd.waitall()
"""


@pytest.mark.parametrize("states", ["whole", "sharded"])
def test_steps_that_divide_by_different_numbers_are_an_error(states: str, tmp_path: pathlib.Path) -> None:
    done = launch(2, DIVISORS, tmp_path, arguments=(states,))
    assert done.returncode != 0
    for rank in (0, 1):
        text = "\n".join(lines_of(done, rank))
        assert "GroupError" in text
        assert "gradients (divided by 4)" in text
        assert "gradients (divided by 5)" in text
