"""mx.group: sums, broadcasts and gathering over processes, in every dtype and mode."""

import pathlib

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, group
from launched import launch, needs_gloo

pytestmark = needs_gloo

CALLS = """
for dtype in ("float32", "float64", "float16", "int8", "uint8", "int32", "int64", "bool", "bfloat16"):
    for shape in ((), (1,), (3, 5), (0, 4), (70_000,)):
        with mx.util.np_shape(True):
            mine = mx.nd.ones(shape, dtype=dtype)
            total = group.sum(mine)
            assert total.shape == shape and total.dtype == mine.dtype
            expected = 1 if dtype == "bool" else size
            assert (total.asnumpy().astype("float64") == expected).all(), (dtype, shape)
            assert (mine.asnumpy().astype("float64") == 1).all()  # not written
            all_of_them = group.gather(mine * 0 + (rank if dtype != "bool" else 1))
            assert all_of_them.shape == (size, *shape)
            values = mx.nd.ones(shape, dtype=dtype) * 0 + (rank == size - 1)
            group.broadcast(values, root=size - 1)
            assert (values.asnumpy().astype("float64") == 1).all()

# Several arrays in one message, in place and not, views and NaN.
arrays = [mx.nd.full((n,), rank + 1.0) for n in (3, 0, 100_000, 1)]
group.sum_into(arrays, name="some")
for array in arrays:
    assert (array.asnumpy() == size * (size + 1) / 2).all()
base = mx.nd.zeros((4, 3)) + rank
group.sum_into(base[1:3])
assert (base.asnumpy()[1:3] == size * (size - 1) / 2).all() and (base.asnumpy()[[0, 3]] == rank).all()
special = mx.nd.array([np.nan if rank == 0 else 1, np.inf, -0.0])
got = group.sum(special).asnumpy()
assert np.isnan(got[0]) and got[1] == np.inf and np.signbit(got[2])

# A sum in a graph of gradients: d/dx of sum_r w_r x_r at this process is w_r * sum of the heads.
x = mx.nd.array([2.0, 3.0])
x.attach_grad()
with autograd.record():
    y = (group.sum(x * (rank + 1)) ** 2).sum()
y.backward()
total = size * (size + 1) / 2
np.testing.assert_allclose(x.grad.asnumpy(), size * 2 * total * np.array([2.0, 3.0]) * (rank + 1), rtol=1e-6)

# Work before and after a call keeps its order.
z = mx.nd.ones((256, 256))
for _ in range(20):
    z = mx.nd.dot(z, z) / 256
    group.sum_into(z)
    z /= size
assert (z.asnumpy() == 1).all()
group.barrier()
assert group.counters()["calls"] > 100
print("fine")
"""


@pytest.mark.parametrize("processes", [1, 2, 3, 4])
@pytest.mark.parametrize("engine", ["ThreadedEnginePerDevice", "NaiveEngine"])
def test_calls_give_the_same_values_everywhere(processes: int, engine: str, tmp_path: pathlib.Path) -> None:
    if engine == "NaiveEngine" and processes not in (1, 2):
        processes = 2
    done = launch(processes, CALLS, tmp_path, HYBRIDNET_ENGINE_TYPE=engine)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == processes


def test_without_a_launcher_the_group_has_one_process() -> None:
    assert (group.rank(), group.size(), group.own_shards()) == (0, 1, (0, 1))
    x = mx.nd.array([1.0, 2.0])
    assert group.sum(x).asnumpy().tolist() == [1, 2]
    assert group.gather(x).shape == (1, 2)
    group.broadcast(x)
    group.barrier()
    group.sum_into([x])
    assert x.asnumpy().tolist() == [1, 2]


def test_results_have_the_class_of_their_array() -> None:
    for array in (mx.nd.ones((2,)), mx.np.ones((2,))):
        assert type(group.sum(array)) is type(array)
        assert type(group.gather(array)) is type(array)


def test_wrong_arguments_are_named() -> None:
    x = mx.nd.ones((2,))
    with pytest.raises(mx.errors.TypeError, match="expected NDArrays"):
        group.sum(np.ones(2))
    with pytest.raises(mx.errors.DTypeError, match="arrays of one dtype"):
        group.sum_into([x, x.astype("float64")])
    with pytest.raises(mx.errors.ShapeError):
        group.sum_into([x], [mx.nd.ones((3,))])
    with pytest.raises(mx.errors.ValueError, match="a rank from 0 to 0"):
        group.broadcast(x, root=1)
    with pytest.raises(mx.errors.UnsupportedError, match="sparse"):
        group.sum(x.expand_dims(0).tostype("row_sparse"))
    with pytest.raises(mx.errors.ValueError, match="folder:/PATH"):
        group.init(0, 2, "nowhere")
    with pytest.raises(mx.errors.GroupError, match="there is no folder"):
        group.init(0, 2, "folder:/does/not/exist")


def test_a_gathering_of_something_differentiable_is_an_error() -> None:
    x = mx.nd.ones((2,))
    x.attach_grad()
    with autograd.record(), pytest.raises(mx.errors.GradientError, match="gathering has no gradient"):
        group.gather(x)


REDUCED = """
rng = np.random.default_rng(8)
labels = rng.integers(0, 2, 60)
scores = rng.uniform(size=(60, 2)).astype("float32")
rows = [slice(0, 20), slice(20, 45), slice(45, 60)][rank] if size == 3 else slice(0, 60)  # unequal parts

def metrics():
    micro = {"average": "micro"}
    return [mx.metric.Accuracy(), mx.metric.CrossEntropy(), mx.metric.F1(**micro), mx.metric.MCC(**micro),
            mx.metric.ConfusionMatrix(num_classes=2), mx.metric.create(["acc", "ce"])]

for mine, whole in zip(metrics(), metrics(), strict=True):
    mine.update([mx.nd.array(labels[rows])], [mx.nd.array(scores[rows])])
    whole.update([mx.nd.array(labels)], [mx.nd.array(scores)])
    before = mine.get()
    total = group.reduce(mine)
    for got, want in ((total.get(), whole.get()), (total.get_global(), whole.get_global())):
        np.testing.assert_allclose(got[1], want[1], rtol=1e-6)
    assert mine.get() == before  # unchanged
assert (group.reduce(mine.metrics[0]).get()[0]) == "accuracy"
matrix = mx.metric.ConfusionMatrix(num_classes=2)
matrix.update([mx.nd.array(labels[rows])], [mx.nd.array(scores[rows])])
assert group.reduce(matrix).matrix.sum() == 60
assert np.isnan(group.reduce(mx.metric.Accuracy()).get()[1])
print("fine")
"""


@pytest.mark.parametrize("processes", [1, 3])
def test_reduced_metrics_are_those_of_all_samples(processes: int, tmp_path: pathlib.Path) -> None:
    done = launch(processes, REDUCED, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == processes


def test_metrics_that_no_sums_determine_are_refused() -> None:
    with pytest.raises(mx.errors.UnsupportedError, match="does not follow from sums"):
        group.reduce(mx.metric.PearsonCorrelation())
    with pytest.raises(mx.errors.ValueError, match="needs num_classes"):
        group.reduce(mx.metric.ConfusionMatrix())


ALIASES = """
for n in (10, 600_000):
    # Crossed outputs of a store, in one message and in several.
    kv = mx.kv.create("dist_sync")
    x, y = mx.nd.full((n,), rank + 1.0), mx.nd.full((n,), 10.0 * (rank + 1))
    kv.pushpull(["a", "b"], [x, y], out=[y, x])
    total = size * (size + 1) / 2
    assert (y.asnumpy() == total).all() and (x.asnumpy() == 10 * total).all()

    # Overlapping views, in both directions, and the same array twice.
    for source, target in ((slice(0, n - 2), slice(2, n)), (slice(2, n), slice(0, n - 2))):
        base = mx.nd.arange(n) * (rank + 1)
        expected = np.arange(n, dtype="float32") * (rank + 1)
        expected[target] = np.arange(n, dtype="float32")[source] * total
        group.sum_into([base[source]], [base[target]])
        np.testing.assert_array_equal(base.asnumpy(), expected)
    twice = mx.nd.ones((n,))
    group.sum_into([twice, twice])
    assert (twice.asnumpy() == size).all()
print("fine")
"""


@pytest.mark.parametrize("processes", [2, 3])
def test_arrays_that_share_memory_are_read_before_they_are_written(processes: int, tmp_path: pathlib.Path) -> None:
    done = launch(processes, ALIASES, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == processes


SHAPES = """
class Net(gluon.HybridBlock):
    def forward(self, x):
        return group.sum(x, name="a")

net = Net()
net.hybridize()
try:
    net(mx.nd.ones((4, 3) if rank == 0 else (3, 4))).wait_to_read()
except mx.errors.GroupError as error:
    assert "disagree" in str(error), error
    print("fine")
"""


def test_other_shapes_in_a_graph_are_an_error(tmp_path: pathlib.Path) -> None:
    done = launch(2, SHAPES, tmp_path)
    assert done.stdout.count("fine") == 2, done.stderr
