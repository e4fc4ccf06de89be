"""Row_sparse gradients and values over processes: unions of rows, with the bits of dense sums."""

from __future__ import annotations

import pathlib

import pytest
from launched import launch, lines_of, needs_gloo

pytestmark = needs_gloo

# Every process pushes other rows; some push none.
PUSHES = """
def rows_of(step, process):
    rng = np.random.default_rng(100 * step + process)
    ids = np.sort(rng.choice(40, size=[5, 0, 17, 40][(step + process) % 4], replace=False))
    return ids, rng.standard_normal((len(ids), 3)).astype("float32")

def dense_of(ids, values):
    dense = np.zeros((40, 3), "float32")
    dense[ids] = values
    return dense

def pushed(ids, values):
    return mx.nd.sparse.row_sparse_array((values, ids), shape=(40, 3))

store = mx.kv.create("dist_sync")
store.init("rows", mx.nd.sparse.zeros("row_sparse", (40, 3)))
store.init("dense", mx.nd.zeros((40, 3)))
for step in range(6):
    all_rows = [rows_of(step, process) for process in range(size)]
    own = all_rows[rank]
    store.push(["rows"], [pushed(*own)])
    store.push("dense", mx.nd.array(dense_of(*own)))
    found, dense = mx.nd.sparse.zeros("row_sparse", (40, 3)), mx.nd.zeros((40, 3))
    union = np.unique(np.concatenate([ids for ids, _ in all_rows]))
    store.row_sparse_pull("rows", out=found, row_ids=mx.nd.arange(40))
    store.pull("dense", out=dense)
    assert found.asnumpy().tobytes() == (dense + 0).asnumpy().tobytes(), step
    np.testing.assert_allclose(dense.asnumpy(), sum(dense_of(*rows) for rows in all_rows), rtol=1e-5, atol=1e-6)
    whole = mx.nd.sparse.zeros("row_sparse", (40, 3))
    store.pull("rows", out=whole, ignore_sparse=False)
    if len(union):
        assert whole.indices.asnumpy().tolist() == union.tolist()
    wanted = mx.nd.array([3, 9, 3], dtype="int64")
    store.row_sparse_pull("rows", out=found, row_ids=wanted)
    assert set(found.indices.asnumpy().tolist()) <= {3, 9}
    assert (found.asnumpy()[[3, 9]] == dense.asnumpy()[[3, 9]]).all()

out = mx.nd.sparse.zeros("row_sparse", (40, 3))
store.pushpull("rows", pushed(*rows_of(7, rank)), out=out)
assert (out.asnumpy() == sum(dense_of(*rows_of(7, process)) for process in range(2))).all() or size > 2

# Two contexts in each process; an updater.
store.set_updater(lambda key, total, stored: stored.__isub__(total.tostype("default") * 0.5))
ones = np.ones((2, 3), "float32")
store.init("updated", mx.nd.ones((40, 3)))
store.push("updated", [pushed([1, 5], ones), pushed([5, rank + 10], ones)])
value = mx.nd.zeros((40, 3))
store.pull("updated", out=value)
expected = np.ones((40, 3))
expected[1] -= 0.5 * size
expected[5] -= 1.0 * size
expected[10 : 10 + size] -= 0.5
assert (value.asnumpy() == expected).all()

# Initial values are those of process 0.
start = [pushed([2, 3 + rank], np.full((2, 3), 7.0 + rank, "float32")), mx.nd.sparse.zeros("row_sparse", (40, 3))]
store.init(["start", "empty"], start)
store.row_sparse_pull("start", out=out, row_ids=mx.nd.arange(40))
assert out.asnumpy().sum() == 2 * 3 * 7.0 and (out.asnumpy()[3] == 7).all()
print("fine")
"""


@pytest.mark.parametrize("processes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_pushed_rows_are_summed_like_dense_arrays(processes: int, tmp_path: pathlib.Path) -> None:
    done = launch(processes, PUSHES, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == processes


# The whole batch in one process, or its parts; gradients are integers, so sums are exact in every order. Lazy updates
# leave rows without gradient alone, with momentum and weight decay.
TRAINING = """
import hashlib
kind, optimizer = sys.argv[1:]
mx.random.seed(3 + rank)
words, weights = 50, mx.nd.array(np.random.default_rng(1).integers(-3, 4, (50, 4)), dtype="float32")
if kind == "gradient":
    net = gluon.nn.Embedding(words, 4, sparse_grad=True)
    parameter = net.weight
    lookup = lambda ids: net(ids)
else:
    parameter = gluon.Parameter("weight", shape=(words, 4), stype="row_sparse", grad_stype="row_sparse")
    lookup = lambda ids: mx.nd.sparse.Embedding(
        ids, parameter.row_sparse_data(ids), input_dim=words, output_dim=4, sparse_grad=True
    )
params = net.collect_params() if kind == "gradient" else [parameter]
parameter.initialize(mx.init.Uniform(1.0))
options = {"learning_rate": 0.5, "wd": 0.125, **({"momentum": 0.5} if optimizer == "sgd" else {})}
trainer = gluon.Trainer(params, optimizer, options, kvstore="dist_sync")
parameter.set_data(weights if kind == "gradient" else weights.tostype("row_sparse"))
rng = np.random.default_rng(2)
for step in range(5):
    batch = rng.integers(0, 20, 12)
    own = np.array_split(batch, size)[rank]
    if step == 3 and rank == size - 1:
        own = own[:1]
    if step == 3 and size == 1:
        batch = np.concatenate([batch[:6], batch[6:7]])
        own = batch
    ids = mx.nd.array(own)
    with autograd.record():
        loss = (lookup(ids) * 2).sum()
    loss.backward()
    trainer.step(2)
value = parameter.row_sparse_data(mx.nd.arange(words)).asnumpy() if kind == "value" else parameter.data().asnumpy()
assert (value[20:] == weights.asnumpy()[20:]).all()
assert not (value[:20] == weights.asnumpy()[:20]).all()
print("digest", hashlib.sha256(value.tobytes()).hexdigest())
"""


@pytest.mark.parametrize(
    ("kind", "optimizer"),
    [
        ("gradient", "sgd"),
        pytest.param("value", "sgd", marks=pytest.mark.slow),
        pytest.param("gradient", "adam", marks=pytest.mark.slow),
        pytest.param("value", "adam", marks=pytest.mark.slow),
    ],
)
def test_lazy_updates_are_those_of_one_process_with_the_whole_batch(
    kind: str, optimizer: str, tmp_path: pathlib.Path
) -> None:
    found = set()
    for processes in (1, 2):
        done = launch(processes, TRAINING, tmp_path, "--threads", "1", arguments=(kind, optimizer))
        assert done.returncode == 0, done.stderr
        found |= {lines_of(done, rank)[0] for rank in range(processes)}
    assert len(found) == 1, found


DIFFERENT = """
store = mx.kv.create("dist_sync")
store.init("w", mx.nd.zeros((6, 2)))
value = mx.nd.ones((6, 2)).tostype("row_sparse" if rank else "default")
try:
    store.push("w", value)
    mx.nd.waitall()
except mx.errors.GroupError as error:
    print("error", " ".join(str(error).split()))
"""


@pytest.mark.slow
def test_different_storages_are_named(tmp_path: pathlib.Path) -> None:
    done = launch(2, DIFFERENT, tmp_path)
    for rank in (0, 1):
        (line,) = lines_of(done, rank)
        assert "sum of values 'w'" in line and "numbers of rows of values 'w'" in line
